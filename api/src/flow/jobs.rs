//! Job runner: does work that a change asked for and that happens after it, such as sending a letter.
//!
//! Invariant: a job is done at least once. It is deleted only after its handler returned, so a process that dies in
//! between leaves it to another runner, which begins it again when the lease ends. A handler therefore must be able to
//! do the same job twice.

pub mod delete_table;
pub mod later_prints;
pub mod mail;
pub mod points;
pub mod prints;
pub mod requests;

use std::collections::HashMap;
use std::fmt::Debug;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use futures_util::StreamExt as _;
use futures_util::stream;
use store::{Job, Store};
use tokio_util::sync::CancellationToken;
use types::{Backoff, Clock, fault};

use crate::periodic::PeriodicTimer;
use crate::rules::jobs::JobFailure;
use types::error::with_causes;

/// Interval at which due jobs are looked for.
const POLL_INTERVAL: Duration = Duration::from_secs(1);
/// Jobs leased at a time.
const BATCH: u32 = 8;
/// Jobs of a batch that run at the same time.
const CONCURRENCY: usize = 4;
/// Time that a runner has for the jobs of a batch. Longer than [`RUN_TIMEOUT`] times the rounds of a batch, so that no
/// other runner begins a job that is still running.
const LEASE: Duration = Duration::from_mins(5);
/// Time after which a run of a handler counts as failed.
const RUN_TIMEOUT: Duration = Duration::from_mins(1);
/// Pauses between tries of a job.
const BACKOFF: Backoff = Backoff {
    first: Duration::from_secs(5),
    most: Duration::from_hours(1),
};
/// Tries after which a job is given up: about three days.
const MAX_ATTEMPTS: u32 = 80;

/// Way to do the jobs of one kind.
#[async_trait]
pub trait JobHandler: Debug + Send + Sync {
    /// Does a job, which may have been done before.
    ///
    /// # Errors
    /// [`JobFailure`], which says whether another try can help.
    async fn run(&self, job: &Job) -> Result<(), JobFailure>;
}

/// Task that does the jobs of the kinds it has handlers for.
#[derive(Debug)]
pub struct JobRunner {
    store: Store,
    clock: Arc<dyn Clock>,
    handlers: HashMap<&'static str, Arc<dyn JobHandler>>,
}

impl JobRunner {
    /// Creates a runner without handlers that has not started.
    pub fn new(store: Store, clock: Arc<dyn Clock>) -> Self {
        Self {
            store,
            clock,
            handlers: HashMap::new(),
        }
    }

    /// Adds the handler of a kind.
    #[must_use]
    pub fn with(mut self, kind: &'static str, handler: Arc<dyn JobHandler>) -> Self {
        self.handlers.insert(kind, handler);
        self
    }

    /// Does jobs until `stop`. A job that is running then is done again by another runner, or after the next start.
    pub async fn run(self, stop: CancellationToken) {
        let running = async {
            let mut rounds = PeriodicTimer::every(POLL_INTERVAL, &stop);
            while rounds.next().await {
                // A full batch means that more jobs are due, so the next batch does not wait.
                while self.run_due().await == BATCH as usize {}
            }
        };
        stop.run_until_cancelled(running).await;
    }

    /// Leases the jobs that are due, up to a batch, runs them, and returns their number.
    pub async fn run_due(&self) -> usize {
        let leased = self.store.flow().jobs_lease(self.clock.now(), LEASE, BATCH).await;
        let jobs = leased.unwrap_or_else(|error| {
            tracing::warn!(
                error = with_causes(&error),
                "cannot lease the jobs that are due; trying again"
            );
            Vec::new()
        });
        // Side by side, so that one server that hangs does not hold up the other jobs of the batch.
        stream::iter(&jobs)
            .for_each_concurrent(CONCURRENCY, |job| self.run_one(job))
            .await;
        jobs.len()
    }

    async fn run_one(&self, job: &Job) {
        let result = match self.handlers.get(job.kind.as_str()) {
            Some(handler) => tokio::time::timeout(RUN_TIMEOUT, handler.run(job))
                .await
                .unwrap_or_else(|_late| {
                    Err(JobFailure {
                        reason: format!("it took longer than {RUN_TIMEOUT:?}"),
                        may_pass: true,
                    })
                }),
            // A newer build added the job. It waits until this process is of that build too.
            None => Err(JobFailure {
                reason: format!("this build has no handler for jobs of the kind `{}`", job.kind),
                may_pass: true,
            }),
        };
        if result.is_ok() {
            fault::point("job.done");
        }
        if let Err(error) = self.settle(job, result).await {
            // The lease ends, and the job is done once more.
            tracing::warn!(
                job = job.id,
                error = with_causes(&error),
                "cannot record the result of a job; it runs again in five minutes"
            );
        }
    }

    /// Records the result of a run: deletes the job, schedules the next try, or gives it up.
    async fn settle(&self, job: &Job, result: Result<(), JobFailure>) -> Result<(), store::Error> {
        let flow = self.store.flow();
        let now = self.clock.now();
        let Job { id, kind, attempts, .. } = job;
        match result {
            Ok(()) => flow.job_done(id).await,
            Err(JobFailure { reason, may_pass }) if may_pass && *attempts < MAX_ATTEMPTS => {
                tracing::warn!(job = id, kind, attempts, reason, "a job failed; trying again later");
                // The lease has counted this try already.
                let pause = BACKOFF.pause(attempts.saturating_sub(1));
                flow.job_retry(id, &reason, now.plus(pause)).await
            }
            Err(JobFailure { reason, .. }) => {
                tracing::error!(job = id, kind, attempts, reason, "a job failed and is not tried again");
                flow.job_fail(id, &reason, now).await
            }
        }
    }
}

#[cfg(test)]
mod tests;

//! The worker: reads submissions, hands each to the lane of its dataset, commits what is done.

use std::collections::HashMap;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use catalog::Catalog;
use eventlog::{Delivered, Event, EventLog, Subscription};
use operators::screen::Screener;
use serde::Deserialize;
use tokio::time::MissedTickBehavior;
use tokio_util::sync::CancellationToken;
use types::{Classify, Clock, Kind, Retry, fault};

use crate::emit::{Backoff, Emitter, Stopped};
use crate::finished::Finished;
use crate::judge::{Work, described};
use crate::lane::Context;
use crate::lanes::{Bounds, Lanes};
use crate::message::{CONTRIBUTIONS, OUTCOMES, Outcome, Resolution};
use crate::places::Places;
use crate::progress::Progress;
use crate::staging::Uploads;

/// How many outcomes of a partition a worker reads again when it is given partitions.
const REMEMBERED: u64 = 1_024;
/// How many messages are taken from the log at once.
const FETCH: usize = 64;
/// How often idle lanes are looked for.
const TICK: Duration = Duration::from_secs(5);
/// How long progress waits to be committed when nothing comes in: committing ends the read that is going on.
const COMMIT_AFTER: Duration = Duration::from_millis(250);

/// How a worker behaves.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// The consumer group; workers of one group share the datasets.
    pub group: String,
    /// How many submissions of a dataset are judged ahead of the one being merged.
    pub judged_ahead: usize,
    /// The most bytes one dataset may have queued in memory.
    pub lane_bytes: usize,
    /// The most bytes all datasets together may have queued in memory; half of it is for those that have none.
    pub queue_bytes: usize,
    /// After how many seconds without work a dataset's table is closed.
    pub idle_seconds: u64,
    /// The first wait after a failure, in milliseconds; doubles up to `retry_most_ms`.
    pub retry_first_ms: u64,
    /// The longest wait after a failure, in milliseconds.
    pub retry_most_ms: u64,
    /// How many seconds a stopping worker waits for its lanes.
    pub grace_seconds: u64,
}

/// Why a worker stopped by itself.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The log cannot be read, or takes no outcomes any more.
    #[error("the log cannot be used")]
    Log(#[from] eventlog::Error),
}

impl Classify for Error {
    fn kind(&self) -> Kind {
        match self {
            Self::Log(error) => error.kind(),
        }
    }

    fn retry(&self) -> Retry {
        match self {
            Self::Log(error) => error.retry(),
        }
    }
}

/// Carries submissions into tables.
#[derive(Debug)]
pub struct Worker {
    log: Arc<dyn EventLog>,
    catalog: Catalog,
    screener: Arc<dyn Screener>,
    clock: Arc<dyn Clock>,
    config: Config,
    uploads: Option<Uploads>,
}

impl Worker {
    /// A worker that has not started.
    pub fn new(
        log: Arc<dyn EventLog>,
        catalog: Catalog,
        screener: Arc<dyn Screener>,
        clock: Arc<dyn Clock>,
        config: Config,
    ) -> Self {
        Self {
            log,
            catalog,
            screener,
            clock,
            config,
            uploads: None,
        }
    }

    /// The same worker, which takes uploads too.
    #[must_use]
    pub fn with_uploads(self, uploads: Uploads) -> Self {
        Self {
            uploads: Some(uploads),
            ..self
        }
    }

    /// Runs until `stop`, or until the log fails, then lets the lanes conclude what they have begun.
    pub async fn run(self, stop: CancellationToken) -> Result<(), Error> {
        let halt = stop.child_token();
        let context = self.context(&halt);
        let failure = Arc::clone(&context.emitter.failure);
        let mut submissions = self.log.subscribe(CONTRIBUTIONS, &self.config.group).await?;
        let progress = Progress::new(halt.clone());
        let finished = Arc::clone(&context.finished);
        let backoff = context.backoff;
        let mut lanes = Lanes::new(context, self.bounds());
        let mut tick = tokio::time::interval(TICK);
        tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            let event = {
                // Why: a read that is dropped has read for nothing, so it is kept for as long as nothing is to be
                // committed.
                let mut reading = submissions.event(FETCH);
                let mut due = pin!(due(&progress));
                loop {
                    tokio::select! {
                        () = halt.cancelled() => break None,
                        event = &mut reading => break Some(event?),
                        () = &mut due => break Some(Event::Records(Vec::new())),
                        _ = tick.tick() => lanes.retire_idle(),
                    }
                }
            };
            match event {
                None => break,
                Some(Event::Records(batch)) => {
                    if !batch.is_empty() {
                        fault::point("consume.polled");
                    }
                    for Delivered { position, record } in batch {
                        let ticket = progress.open(position);
                        lanes.dispatch(Work { record, ticket });
                    }
                }
                Some(Event::Assigned(partitions)) => {
                    tracing::info!(?partitions, "the worker has these partitions now");
                    match self.remember(&finished, backoff, &halt).await {
                        Ok(()) => {}
                        Err(Ended::Stopped) => break,
                        Err(Ended::Log(error)) => return Err(error.into()),
                    }
                }
                Some(Event::Revoked(partitions)) => {
                    tracing::info!(?partitions, "the worker lost these partitions");
                    progress.lose(&partitions);
                    lanes.lose(&partitions);
                }
            }
            commit(submissions.as_mut(), &progress).await?;
        }
        lanes.close(Duration::from_secs(self.config.grace_seconds)).await;
        if let Some(error) = failure.get() {
            return Err(Error::Log(error.clone()));
        }
        commit(submissions.as_mut(), &progress).await
    }

    fn context(&self, halt: &CancellationToken) -> Context {
        let finished = Arc::new(Finished::default());
        let backoff = Backoff {
            first: Duration::from_millis(self.config.retry_first_ms),
            most: Duration::from_millis(self.config.retry_most_ms),
        };
        Context {
            catalog: self.catalog.clone(),
            screener: Arc::clone(&self.screener),
            finished: Arc::clone(&finished),
            clock: Arc::clone(&self.clock),
            emitter: Emitter {
                log: Arc::clone(&self.log),
                finished,
                clock: Arc::clone(&self.clock),
                backoff,
                stop: halt.clone(),
                failure: Arc::default(),
            },
            uploads: self.uploads.clone(),
            backoff,
            places: Places::new(),
            ahead: self.config.judged_ahead,
            stop: halt.clone(),
        }
    }

    const fn bounds(&self) -> Bounds {
        Bounds {
            lane_bytes: self.config.lane_bytes,
            all_bytes: self.config.queue_bytes,
            idle: Duration::from_secs(self.config.idle_seconds),
        }
    }

    /// Reads the latest outcomes to their end as of now, so that what was decided before a restart, or by the worker
    /// that had the partition before, is not judged again. Tries for as long as that can help.
    async fn remember(&self, finished: &Finished, backoff: Backoff, halt: &CancellationToken) -> Result<(), Ended> {
        let mut failures = 0;
        loop {
            let Some(read) = halt.run_until_cancelled(self.read_outcomes(finished)).await else {
                return Err(Ended::Stopped);
            };
            match read {
                Ok(()) => return Ok(()),
                Err(error) if error.retry() == Retry::Never => return Err(Ended::Log(error)),
                Err(error) => tracing::warn!(
                    error = described(&error),
                    "the latest outcomes cannot be read, trying again"
                ),
            }
            backoff.wait(failures, halt).await.map_err(|Stopped| Ended::Stopped)?;
            failures += 1;
        }
    }

    async fn read_outcomes(&self, finished: &Finished) -> Result<(), eventlog::Error> {
        let mut outcomes = self.log.recent(OUTCOMES, REMEMBERED).await?;
        let bounds = self.log.bounds(OUTCOMES).await?;
        let mut unread: HashMap<u32, u64> = (0..)
            .zip(bounds)
            .filter(|(_, bounds)| bounds.next > bounds.first)
            .map(|(at, bounds)| (at, bounds.next))
            .collect();
        while !unread.is_empty() {
            for Delivered { position, record } in outcomes.next(FETCH).await? {
                if unread
                    .get(&position.partition)
                    .is_some_and(|next| position.offset + 1 >= *next)
                {
                    unread.remove(&position.partition);
                }
                match Outcome::decode(&record.value) {
                    Ok(outcome) if !matches!(outcome.resolution, Resolution::Waiting { .. }) => {
                        finished.insert(outcome.contribution, outcome.generation);
                    }
                    _ => {}
                }
            }
        }
        Ok(())
    }
}

/// Why the latest outcomes were not read.
enum Ended {
    Stopped,
    Log(eventlog::Error),
}

/// Waits until there is progress to commit, and a little longer, so that much is committed at once.
async fn due(progress: &Progress) {
    progress.moved().await;
    tokio::time::sleep(COMMIT_AFTER).await;
}

async fn commit(submissions: &mut dyn Subscription, progress: &Progress) -> Result<(), Error> {
    let marks = progress.marks();
    if !marks.is_empty() {
        fault::point("position.commit");
        submissions.commit(&marks).await?;
    }
    Ok(())
}

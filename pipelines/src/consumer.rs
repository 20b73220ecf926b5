//! The consumer of a worker: subscribes, recovers what was decided, tracks and dispatches each delivery, and commits
//! offsets.

use std::collections::HashMap;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use catalog::Catalog;
use eventlog::{Delivered, Event, EventLog, Position, Record, Subscription};
use operators::screen::Screener;
use serde::Deserialize;
use tokio::time::MissedTickBehavior;
use tokio_util::sync::CancellationToken;
use types::trace::{NoTraces, Propagator};
use types::{Backoff, Classify, Clock, Kind, Retry, fault};

use crate::context::{Context, Uploads};
use crate::cpu_slots::CpuSlots;
use crate::delivery::{BytePermit, Delivery};
use crate::dispatcher::{Bounds, Dispatcher};
use crate::isolation::{Isolation, MessageKind};
use crate::judge::decided;
use crate::message::CONTRIBUTIONS_TOPIC;
use crate::offsets::OffsetTracker;
use crate::outcome_cache::OutcomeCache;
use crate::recovery::{Recovery, RecoveryEnd};
use crate::trace;

/// Number of messages that are read from the log at once.
const FETCH: usize = 64;
/// Interval between two searches for idle writers.
const TICK: Duration = Duration::from_secs(5);
/// Delay of a commit of offsets when nothing comes in: committing ends the read that is going on.
const COMMIT_AFTER: Duration = Duration::from_millis(250);

/// Settings of a worker.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// The consumer group; workers of one group share the datasets.
    pub group: String,
    /// Number of submissions of a dataset that are judged ahead of the one being merged.
    pub judged_ahead: usize,
    /// The most bytes one dataset may have queued in memory.
    pub writer_bytes: usize,
    /// The most bytes all datasets together may have queued in memory; half of it is for those that have none.
    pub queue_bytes: usize,
    /// After how many seconds without work a dataset's table is closed.
    pub idle_seconds: u64,
    /// The first wait after a failure, in milliseconds; doubles up to `retry_most_ms`.
    pub retry_first_ms: u64,
    /// The longest wait after a failure, in milliseconds.
    pub retry_most_ms: u64,
    /// Seconds that a stopping worker waits for its writers.
    pub grace_seconds: u64,
}

/// Reason for which a worker stopped by itself.
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
    isolation: Option<Arc<dyn Isolation>>,
    propagator: Arc<dyn Propagator>,
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
            isolation: None,
            propagator: Arc::new(NoTraces),
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

    /// The same worker, which tries out what can have ended an earlier process, if there is an isolation.
    #[must_use]
    pub fn with_isolation(self, isolation: Option<Arc<dyn Isolation>>) -> Self {
        Self { isolation, ..self }
    }

    /// The same worker, whose spans continue the traces of its messages.
    #[must_use]
    pub fn with_propagator(self, propagator: Arc<dyn Propagator>) -> Self {
        Self { propagator, ..self }
    }

    /// Runs until `stop`, or until the log fails, then lets the writers commit the submissions they have begun.
    pub async fn run(self, stop: CancellationToken) -> Result<(), Error> {
        // A child, because the worker also stops by itself when the log takes no outcomes, which must
        // not stop the rest of the process.
        let halt = stop.child_token();
        let context = self.context(&halt);
        let failure = Arc::clone(&context.failure);
        let mut submissions = self.log.subscribe(CONTRIBUTIONS_TOPIC, &self.config.group).await?;
        let mut state = ConsumerState {
            recovery: Recovery {
                log: Arc::clone(&self.log),
                outcomes: Arc::clone(&context.outcomes),
                clock: Arc::clone(&context.clock),
                backoff: context.backoff,
                halt: halt.clone(),
            },
            offsets: OffsetTracker::new(halt.clone()),
            redelivered: HashMap::new(),
            dispatcher: Dispatcher::new(context, self.bounds()),
            halt,
        };
        let read = self.read(submissions.as_mut(), &mut state).await;
        let ConsumerState {
            offsets, dispatcher, ..
        } = state;
        // A log that cannot be read takes no outcomes either: waiting for the writers would only use up
        // the grace.
        if read.is_ok() {
            dispatcher.close(Duration::from_secs(self.config.grace_seconds)).await;
        }
        read?;
        if let Some(error) = failure.get() {
            return Err(Error::Log(error.clone()));
        }
        // The last commit comes after the writers have ended, so only what was not committed is
        // redelivered.
        commit(submissions.as_mut(), &offsets).await
    }

    /// Reads until the worker is to stop.
    async fn read(&self, submissions: &mut dyn Subscription, state: &mut ConsumerState) -> Result<(), Error> {
        let ConsumerState {
            recovery,
            offsets,
            redelivered,
            dispatcher,
            halt,
        } = state;
        let mut tick = tokio::time::interval(TICK);
        // Recovering partitions may take many ticks, and one search for idle writers makes up for all of
        // them.
        tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            let event = {
                // A read that is dropped has read for nothing, so it is kept for as long as nothing is
                // to be committed.
                let mut reading = submissions.event(FETCH);
                let mut due = pin!(due(offsets));
                loop {
                    tokio::select! {
                        () = halt.cancelled() => break None,
                        event = &mut reading => break Some(event?),
                        () = &mut due => break Some(Event::Records(Vec::new())),
                        _ = tick.tick() => dispatcher.retire_idle(),
                    }
                }
            };
            match event {
                None => return Ok(()),
                Some(Event::Records(batch)) => {
                    if !batch.is_empty() {
                        fault::point("consume.polled");
                    }
                    for Delivered { position, record } in batch {
                        dispatcher.dispatch(Delivery {
                            span: trace::submission(&record, &*self.propagator),
                            suspect: suspect(redelivered, position, &record, &recovery.outcomes),
                            record,
                            ack: offsets.track(position),
                            permit: BytePermit::default(),
                        });
                    }
                }
                Some(Event::Assigned(partitions)) => {
                    tracing::info!(?partitions, "the worker has these partitions now");
                    let next = match recovery.read().await {
                        Ok(next) => next,
                        Err(RecoveryEnd::Stopped) => return Ok(()),
                        Err(RecoveryEnd::Log(error)) => return Err(error.into()),
                    };
                    // A partition that the log does not list yet has no end to be behind, so nothing of
                    // it is suspected.
                    let next = partitions
                        .into_iter()
                        .filter_map(|at| Some((at, *next.get(at as usize)?)));
                    redelivered.extend(next);
                }
                Some(Event::Revoked(partitions)) => {
                    tracing::info!(?partitions, "the worker lost these partitions");
                    // Before the writers end: their handles must not acknowledge messages that another
                    // worker has now.
                    offsets.revoke(&partitions);
                    redelivered.retain(|partition, _| !partitions.contains(partition));
                    dispatcher.revoke(&partitions);
                }
            }
            commit(submissions, offsets).await?;
        }
    }

    fn context(&self, halt: &CancellationToken) -> Context {
        let backoff = Backoff {
            first: Duration::from_millis(self.config.retry_first_ms),
            most: Duration::from_millis(self.config.retry_most_ms),
        };
        Context {
            log: Arc::clone(&self.log),
            catalog: self.catalog.clone(),
            screener: Arc::clone(&self.screener),
            outcomes: Arc::default(),
            clock: Arc::clone(&self.clock),
            propagator: Arc::clone(&self.propagator),
            uploads: self.uploads.clone(),
            isolation: self.isolation.clone(),
            backoff,
            slots: CpuSlots::new(),
            ahead: self.config.judged_ahead,
            stop: halt.clone(),
            worker_stop: halt.clone(),
            failure: Arc::default(),
        }
    }

    const fn bounds(&self) -> Bounds {
        Bounds {
            writer_bytes: self.config.writer_bytes,
            all_bytes: self.config.queue_bytes,
            idle: Duration::from_secs(self.config.idle_seconds),
        }
    }
}

/// Parts that a worker needs while it reads.
struct ConsumerState {
    recovery: Recovery,
    offsets: OffsetTracker,
    /// The offset at which each partition ended when the worker was given it: what is before can have been in work when
    /// an earlier process ended.
    redelivered: HashMap<u32, u64>,
    dispatcher: Dispatcher,
    halt: CancellationToken,
}

/// Returns the kind of a message if it can have been in work when an earlier process ended.
fn suspect(
    redelivered: &HashMap<u32, u64>,
    position: Position,
    record: &Record,
    outcomes: &OutcomeCache,
) -> Option<MessageKind> {
    let end = *redelivered.get(&position.partition)?;
    let is_open = position.offset < end && decided(outcomes, record).is_none();
    is_open.then(|| MessageKind::of_submission(&record.value))
}

/// Waits until there are offsets to commit, and a little longer, so that much is committed at once.
async fn due(offsets: &OffsetTracker) {
    offsets.moved().await;
    tokio::time::sleep(COMMIT_AFTER).await;
}

async fn commit(submissions: &mut dyn Subscription, offsets: &OffsetTracker) -> Result<(), Error> {
    let marks = offsets.committable();
    if !marks.is_empty() {
        fault::point("position.commit");
        submissions.commit(&marks).await?;
    }
    Ok(())
}

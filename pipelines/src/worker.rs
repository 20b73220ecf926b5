//! The worker: reads submissions, hands each to the lane of its dataset, commits what is done.

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use catalog::Catalog;
use eventlog::{Delivered, Event, EventLog, Subscription};
use operators::screen::Screener;
use serde::Deserialize;
use tokio::time::MissedTickBehavior;
use tokio_util::sync::CancellationToken;
use types::trace::{NoTraces, Propagator};
use types::{Backoff, Classify, Clock, Kind, Retry, fault};

use crate::emit::Emitter;
use crate::finished::Finished;
use crate::in_work::InWork;
use crate::judge::Work;
use crate::lane::Context;
use crate::lanes::{Bounds, Lanes};
use crate::memory::{Ended, Memory, Remembered};
use crate::message::CONTRIBUTIONS;
use crate::places::Places;
use crate::progress::Progress;
use crate::quarantine::{Patience, Quarantine};
use crate::staging::Uploads;
use crate::trace;

/// Number of messages that are read from the log at once.
const FETCH: usize = 64;
/// Interval between two searches for idle lanes.
const TICK: Duration = Duration::from_secs(5);
/// Delay of a commit of progress when nothing comes in: committing ends the read that is going on.
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
    pub lane_bytes: usize,
    /// The most bytes all datasets together may have queued in memory; half of it is for those that have none.
    pub queue_bytes: usize,
    /// After how many seconds without work a dataset's table is closed.
    pub idle_seconds: u64,
    /// The first wait after a failure, in milliseconds; doubles up to `retry_most_ms`.
    pub retry_first_ms: u64,
    /// The longest wait after a failure, in milliseconds.
    pub retry_most_ms: u64,
    /// Seconds that a stopping worker waits for its lanes.
    pub grace_seconds: u64,
    /// Milliseconds that everything else waits for a submission that may have ended a process before.
    pub alone_ms: u64,
    /// Number of processes that may end with a submission alone in work before it is a dead letter; 0 for any number.
    pub ends: usize,
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
    propagator: Arc<dyn Propagator>,
    in_work: InWork,
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
            propagator: Arc::new(NoTraces),
            in_work: InWork::new(),
        }
    }

    /// The same worker, whose suspects are alone also among what others of the process note in `in_work`.
    #[must_use]
    pub fn beside(self, in_work: InWork) -> Self {
        Self { in_work, ..self }
    }

    /// The same worker, which takes uploads too.
    #[must_use]
    pub fn with_uploads(self, uploads: Uploads) -> Self {
        Self {
            uploads: Some(uploads),
            ..self
        }
    }

    /// The same worker, whose spans continue the traces of its messages.
    #[must_use]
    pub fn with_propagator(self, propagator: Arc<dyn Propagator>) -> Self {
        Self { propagator, ..self }
    }

    /// Runs until `stop`, or until the log fails, then lets the lanes conclude the submissions they have begun.
    pub async fn run(self, stop: CancellationToken) -> Result<(), Error> {
        // A child, because the worker also stops by itself when the log takes no outcomes, which must
        // not stop the rest of the process.
        let halt = stop.child_token();
        let context = self.context(&halt);
        let failure = Arc::clone(&context.emitter.failure);
        let mut submissions = self.log.subscribe(CONTRIBUTIONS, &self.config.group).await?;
        let mut desk = Desk {
            memory: Memory {
                log: Arc::clone(&self.log),
                finished: Arc::clone(&context.finished),
                clock: Arc::clone(&context.clock),
                group: self.config.group.clone(),
                backoff: context.backoff,
                halt: halt.clone(),
            },
            progress: Progress::new(halt.clone()),
            quarantine: self.quarantine(&context),
            lanes: Lanes::new(context, self.bounds()),
            halt,
        };
        let read = self.read(submissions.as_mut(), &mut desk).await;
        let Desk {
            progress,
            mut quarantine,
            lanes,
            ..
        } = desk;
        // A log that cannot be read takes no outcomes either: waiting for the lanes would only use up
        // the grace.
        if read.is_ok() {
            lanes.close(Duration::from_secs(self.config.grace_seconds)).await;
        }
        quarantine.end().await;
        read?;
        if let Some(error) = failure.get() {
            return Err(Error::Log(error.clone()));
        }
        // The last commit comes after the lanes have ended, so only what was not concluded is
        // redelivered.
        commit(submissions.as_mut(), &progress).await
    }

    /// Reads until the worker is to stop.
    async fn read(&self, submissions: &mut dyn Subscription, desk: &mut Desk) -> Result<(), Error> {
        let Desk {
            memory,
            progress,
            quarantine,
            lanes,
            halt,
        } = desk;
        let mut tick = tokio::time::interval(TICK);
        // Recovering partitions may take many ticks, and one search for idle lanes makes up for all of
        // them.
        tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            let event = {
                // A read that is dropped has read for nothing, so it is kept for as long as nothing is
                // to be committed.
                let mut reading = submissions.event(FETCH);
                let mut due = pin!(due(progress));
                loop {
                    tokio::select! {
                        () = halt.cancelled() => break None,
                        event = &mut reading, if quarantine.has_room() => break Some(event?),
                        () = &mut due => break Some(Event::Records(Vec::new())),
                        () = quarantine.step(lanes) => {}
                        _ = tick.tick() => lanes.retire_idle(),
                    }
                }
            };
            match event {
                None => return Ok(()),
                Some(Event::Records(batch)) => {
                    if !batch.is_empty() {
                        fault::point("consume.polled");
                    }
                    let works = batch.into_iter().map(|Delivered { position, record }| Work {
                        span: trace::submission(&record, &*self.propagator),
                        record,
                        ticket: progress.open(position),
                        condemned: None,
                    });
                    quarantine.take_in(works, lanes);
                }
                Some(Event::Assigned(partitions)) => {
                    tracing::info!(?partitions, "the worker has these partitions now");
                    let Remembered { ledger, next } = match memory.read(quarantine.life()).await {
                        Ok(remembered) => remembered,
                        Err(Ended::Stopped) => return Ok(()),
                        Err(Ended::Log(error)) => return Err(error.into()),
                    };
                    // A partition that the log does not list yet has no end to be behind, so nothing of
                    // it is suspected.
                    let next = partitions
                        .into_iter()
                        .filter_map(|at| Some((at, *next.get(at as usize)?)));
                    quarantine.assigned(ledger, next.collect());
                }
                Some(Event::Revoked(partitions)) => {
                    tracing::info!(?partitions, "the worker lost these partitions");
                    // Before the lanes end: their tickets must not mark messages done that another
                    // worker has now.
                    progress.lose(&partitions);
                    quarantine.lose(&partitions, lanes);
                }
            }
            commit(submissions, progress).await?;
        }
    }

    fn quarantine(&self, context: &Context) -> Quarantine {
        let patience = Patience {
            bound: Duration::from_millis(self.config.alone_ms),
            ends: self.config.ends,
            // Messages that are held back count beside the queues of the lanes, so they get a share of
            // their own.
            room: self.config.queue_bytes / 4,
        };
        let (emitter, in_work) = (context.emitter.clone(), context.in_work.clone());
        Quarantine::new(emitter, in_work, self.config.group.clone(), patience)
    }

    fn context(&self, halt: &CancellationToken) -> Context {
        let (finished, in_work) = (Arc::new(Finished::default()), self.in_work.clone());
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
                propagator: Arc::clone(&self.propagator),
                backoff,
                stop: halt.clone(),
                failure: Arc::default(),
            },
            uploads: self.uploads.clone(),
            backoff,
            places: Places::new(in_work.clone()),
            in_work,
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
}

/// Parts that a worker needs while it reads.
struct Desk {
    memory: Memory,
    progress: Progress,
    quarantine: Quarantine,
    lanes: Lanes,
    halt: CancellationToken,
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

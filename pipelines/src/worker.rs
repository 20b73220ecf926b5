//! The worker: reads submissions, hands each to the lane of its dataset, commits what is done.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use catalog::Catalog;
use eventlog::{Delivered, EventLog, Position, Subscription};
use operators::screen::Screener;
use serde::Deserialize;
use tokio::time::MissedTickBehavior;
use tokio_util::sync::CancellationToken;
use types::{Classify, Clock, DatasetId, Kind, Retry, fault};

use crate::emit::{Backoff, Emitter};
use crate::finished::Finished;
use crate::judge::Work;
use crate::lane::Context;
use crate::lanes::{Bounds, Lanes};
use crate::message::{CONTRIBUTIONS, OUTCOMES, Outcome, Resolution};
use crate::progress::Progress;

/// How many outcomes of a partition a worker reads again when it starts.
const REMEMBERED: u64 = 1_024;
/// How many messages are taken from the log at once.
const FETCH: usize = 64;
/// How often idle lanes are looked for and the outcomes' position is moved.
const TICK: Duration = Duration::from_secs(5);

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
    /// The most bytes all datasets together may have queued in memory.
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
    /// The log cannot be read.
    #[error("the log cannot be read")]
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
        }
    }

    /// Runs until `stop`, then lets the lanes conclude what they have begun.
    pub async fn run(self, stop: CancellationToken) -> Result<(), Error> {
        let context = self.context(&stop);
        let mut decided = self.log.subscribe(OUTCOMES, &self.config.group).await?;
        if let Some(remembered) = stop
            .run_until_cancelled(self.remember(decided.as_mut(), &context.finished))
            .await
        {
            remembered?;
        }
        let mut submissions = self.log.subscribe(CONTRIBUTIONS, &self.config.group).await?;
        let progress = Progress::default();
        let mut lanes = Lanes::new(context.clone(), self.bounds());
        let mut tick = tokio::time::interval(TICK);
        tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                () = stop.cancelled() => break,
                () = progress.moved() => commit(submissions.as_mut(), &progress).await?,
                _ = tick.tick() => {
                    lanes.retire_idle();
                    self.forget(decided.as_mut()).await?;
                }
                batch = submissions.next(FETCH) => {
                    fault::point("consume.polled");
                    for Delivered { position, record } in batch? {
                        let work = Work { record, ticket: progress.open(position) };
                        dispatch(&context, &mut lanes, work).await;
                    }
                }
            }
        }
        lanes.close(Duration::from_secs(self.config.grace_seconds)).await;
        commit(submissions.as_mut(), &progress).await
    }

    fn context(&self, stop: &CancellationToken) -> Context {
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
                stop: stop.clone(),
            },
            backoff,
            ahead: self.config.judged_ahead,
            stop: stop.clone(),
        }
    }

    const fn bounds(&self) -> Bounds {
        Bounds {
            lane_bytes: self.config.lane_bytes,
            all_bytes: self.config.queue_bytes,
            idle: Duration::from_secs(self.config.idle_seconds),
        }
    }

    /// Reads the latest outcomes to their end as of now, so that what was decided before a restart is not judged
    /// again.
    async fn remember(&self, outcomes: &mut dyn Subscription, finished: &Finished) -> Result<(), Error> {
        // Why: `forget` leaves the last records of every partition to be read, so each that has any comes to its end.
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

    /// Moves the group's position on the outcomes, leaving the latest to be read again.
    async fn forget(&self, outcomes: &mut dyn Subscription) -> Result<(), Error> {
        let positions: Vec<_> = (0_u32..)
            .zip(self.log.bounds(OUTCOMES).await?)
            .filter(|(_, bounds)| bounds.next > bounds.first.saturating_add(REMEMBERED))
            .map(|(partition, bounds)| Position {
                partition,
                offset: bounds.next - REMEMBERED,
            })
            .collect();
        if !positions.is_empty() {
            outcomes.commit(&positions).await?;
        }
        Ok(())
    }
}

/// Hands a message to the lane that its key names.
async fn dispatch(context: &Context, lanes: &mut Lanes, work: Work) {
    if let Ok(key) = <[u8; 16]>::try_from(&work.record.key[..]) {
        lanes.dispatch(DatasetId::from_bytes(key), work);
    } else if context
        .emitter
        .dead_letter(&work, "its key is not a dataset's id".to_owned())
        .await
        .is_ok()
    {
        work.ticket.finish();
    }
}

async fn commit(submissions: &mut dyn Subscription, progress: &Progress) -> Result<(), Error> {
    let marks = progress.marks();
    if !marks.is_empty() {
        fault::point("position.commit");
        submissions.commit(&marks).await?;
    }
    Ok(())
}

//! What a worker reads before it works on partitions that it was given: what was decided, what was alone in work, and
//! where the partitions end.
//!
//! Invariants:
//! - What had an outcome when the partitions were given is known to be decided, within the latest outcomes.
//! - What was there then and is not any more is not waited for.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use eventlog::{Bounds, Delivered, EventLog};
use messages::Outcome;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;
use types::{Backoff, Classify as _, Clock, LifeId, Retry};

use crate::emit::{Stopped, pause};
use crate::finished::Finished;
use crate::judge::described;
use crate::message::{ATTEMPTS, Attempt, CONTRIBUTIONS, OUTCOMES};
use crate::quarantine::Ledger;

/// Number of outcomes of a partition that are read again.
const REMEMBERED: u64 = 1_024;
/// Number of notes of a partition that are kept and read again: more than several processes make.
const NOTES: u64 = 1_024;
/// Number of messages that are read from the log at once.
const FETCH: usize = 64;
/// Time without a message after which the log is asked for its present bounds.
const LULL: Duration = Duration::from_secs(5);

/// Reads what came before.
#[derive(Debug)]
pub(crate) struct Memory {
    pub(crate) log: Arc<dyn EventLog>,
    pub(crate) finished: Arc<Finished>,
    pub(crate) clock: Arc<dyn Clock>,
    /// The consumer group of the worker.
    pub(crate) group: String,
    pub(crate) backoff: Backoff,
    pub(crate) halt: CancellationToken,
}

/// Result of reading the history of the partitions, beside the decided submissions.
#[derive(Debug)]
pub(crate) struct Remembered {
    /// Record of the submissions that were alone in work.
    pub(crate) ledger: Ledger,
    /// Next offset of each partition of the submissions.
    pub(crate) next: Vec<u64>,
}

/// Reason for which nothing was read.
#[derive(Debug)]
pub(crate) enum Ended {
    /// The worker is to stop.
    Stopped,
    /// The log cannot be read.
    Log(eventlog::Error),
}

impl Memory {
    /// Reads the latest outcomes and notes to their end as of now, so that what was decided before a restart, or by the
    /// worker that had the partition before, is not judged again. Tries for as long as that can help.
    pub(crate) async fn read(&self, life: LifeId) -> Result<Remembered, Ended> {
        let mut failures = 0;
        loop {
            let Some(read) = self.halt.run_until_cancelled(self.recall(life)).await else {
                return Err(Ended::Stopped);
            };
            match read {
                Ok(remembered) => return Ok(remembered),
                Err(error) if error.retry() == Retry::Never => return Err(Ended::Log(error)),
                Err(error) => {
                    tracing::warn!(
                        error = described(&error),
                        "what came before cannot be read, trying again"
                    );
                }
            }
            let waited = pause(self.backoff, failures, &self.halt).await;
            waited.map_err(|Stopped| Ended::Stopped)?;
            failures += 1;
        }
    }

    async fn recall(&self, life: LifeId) -> Result<Remembered, eventlog::Error> {
        let ledger = ledger(&*self.log, &self.group, life).await?;
        // Nobody reads a submission again that is done, and its bytes on disk are charged to nobody.
        self.log.keep(CONTRIBUTIONS, 0).await?;
        let now = self.clock.now();
        // After the notes: whatever was noted to be over has its outcome by then.
        latest(&*self.log, OUTCOMES, REMEMBERED, |value| match Outcome::decode(value) {
            Ok(Outcome::Contribution(outcome)) => self.finished.insert(outcome, now),
            Ok(Outcome::Unit(_)) => {}
            Err(error) => tracing::warn!(error = described(&error), "an outcome cannot be read"),
        })
        .await?;
        let bounds = self.log.bounds(CONTRIBUTIONS).await?;
        Ok(Remembered {
            ledger,
            next: bounds.iter().map(|bounds| bounds.next).collect(),
        })
    }
}

/// Reads what the latest notes of a group say to the life that asks.
pub(crate) async fn ledger(log: &dyn EventLog, group: &str, own: LifeId) -> Result<Ledger, eventlog::Error> {
    log.keep(ATTEMPTS, NOTES).await?;
    let mut notes = Vec::new();
    latest(log, ATTEMPTS, NOTES, |value| match Attempt::decode(value) {
        Ok(note) => notes.push(note),
        Err(error) => tracing::warn!(error = described(&error), "a note cannot be read"),
    })
    .await?;
    Ok(Ledger::of(&notes, group, own))
}

/// Reads the latest `count` records of each partition of a topic to their end as of now.
async fn latest(
    log: &dyn EventLog,
    topic: &str,
    count: u64,
    mut each: impl FnMut(&[u8]) + Send,
) -> Result<(), eventlog::Error> {
    let mut latest = log.recent(topic, count).await?;
    let bounds = log.bounds(topic).await?;
    let mut unread: HashMap<u32, u64> = (0..)
        .zip(bounds)
        .filter(|(_, bounds)| bounds.next > bounds.first)
        .map(|(at, bounds)| (at, bounds.next))
        .collect();
    while !unread.is_empty() {
        let Ok(read) = timeout(LULL, latest.next(FETCH)).await else {
            let kept = log.bounds(topic).await?;
            unread.retain(|at, next| kept.get(*at as usize).is_some_and(|kept| is_there(*next, kept)));
            continue;
        };
        for Delivered { position, record } in read? {
            if unread
                .get(&position.partition)
                .is_some_and(|next| position.offset + 1 >= *next)
            {
                unread.remove(&position.partition);
            }
            each(&record.value);
        }
    }
    Ok(())
}

/// Returns true if a partition whose next offset was `next` still has a record from that time. A partition that ends
/// before `next` was created again since; one that begins after it has lost the earlier records to retention.
const fn is_there(next: u64, kept: &Bounds) -> bool {
    kept.first < next && next <= kept.next
}

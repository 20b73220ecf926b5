//! What a worker reads before it works on partitions that it was given: what was decided, and where the partitions end.
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
use types::error::with_causes;
use types::{Backoff, Classify as _, Clock, Retry};

use crate::message::{CONTRIBUTIONS_TOPIC, OUTCOMES_TOPIC};
use crate::outcome_cache::OutcomeCache;
use crate::step::{Stopped, pause};

/// Number of outcomes of a partition that are read again.
const REMEMBERED: u64 = 1_024;
/// Number of messages that are read from the log at once.
const FETCH: usize = 64;
/// Time without a message after which the log is asked for its present bounds.
const LULL: Duration = Duration::from_secs(5);

/// Reads what came before.
#[derive(Debug)]
pub(crate) struct Recovery {
    pub(crate) log: Arc<dyn EventLog>,
    pub(crate) outcomes: Arc<OutcomeCache>,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) backoff: Backoff,
    pub(crate) halt: CancellationToken,
}

/// Reason for which nothing was read.
#[derive(Debug)]
pub(crate) enum RecoveryEnd {
    /// The worker is to stop.
    Stopped,
    /// The log cannot be read.
    Log(eventlog::Error),
}

impl Recovery {
    /// Reads the latest outcomes to their end as of now, so that what was decided before a restart, or by the worker that
    /// had the partition before, is not judged again. Returns where each partition of the submissions ends. Tries for as
    /// long as that can help.
    pub(crate) async fn read(&self) -> Result<Vec<u64>, RecoveryEnd> {
        let mut failures = 0;
        loop {
            let Some(read) = self.halt.run_until_cancelled(self.recall()).await else {
                return Err(RecoveryEnd::Stopped);
            };
            match read {
                Ok(next) => return Ok(next),
                Err(error) if error.retry() == Retry::Never => return Err(RecoveryEnd::Log(error)),
                Err(error) => {
                    tracing::warn!(
                        error = with_causes(&error),
                        "what came before cannot be read, trying again"
                    );
                }
            }
            let waited = pause(self.backoff, failures, &self.halt).await;
            waited.map_err(|Stopped| RecoveryEnd::Stopped)?;
            failures += 1;
        }
    }

    async fn recall(&self) -> Result<Vec<u64>, eventlog::Error> {
        // Nobody reads a submission again that is done, and its bytes on disk are charged to nobody.
        self.log.keep(CONTRIBUTIONS_TOPIC, 0).await?;
        let now = self.clock.now();
        self.latest(OUTCOMES_TOPIC, REMEMBERED, |value| match Outcome::decode(value) {
            Ok(Outcome::Contribution(outcome)) => self.outcomes.insert(outcome, now),
            Ok(Outcome::Unit(_)) => {}
            Err(error) => tracing::warn!(error = with_causes(&error), "an outcome cannot be read"),
        })
        .await?;
        let bounds = self.log.bounds(CONTRIBUTIONS_TOPIC).await?;
        Ok(bounds.iter().map(|bounds| bounds.next).collect())
    }

    /// Reads the latest `count` records of each partition of a topic to their end as of now.
    async fn latest(&self, topic: &str, count: u64, mut each: impl FnMut(&[u8]) + Send) -> Result<(), eventlog::Error> {
        let mut latest = self.log.recent(topic, count).await?;
        let bounds = self.log.bounds(topic).await?;
        let mut unread: HashMap<u32, u64> = (0..)
            .zip(bounds)
            .filter(|(_, bounds)| bounds.next > bounds.first)
            .map(|(at, bounds)| (at, bounds.next))
            .collect();
        while !unread.is_empty() {
            let Ok(read) = timeout(LULL, latest.next(FETCH)).await else {
                let kept = self.log.bounds(topic).await?;
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
}

/// Returns true if a partition whose next offset was `next` still has a record from that time. A partition that ends
/// before `next` was created again since; one that begins after it has lost the earlier records to retention.
const fn is_there(next: u64, kept: &Bounds) -> bool {
    kept.first < next && next <= kept.next
}

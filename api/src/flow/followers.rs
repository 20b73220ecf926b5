//! Followers: notify requests that wait on this replica of outcomes that another replica projects.
//!
//! Invariant: a follower only gives hints; the content of answers comes from the database. So a follower that lags,
//! misses an outcome or ends delays its waiters and does no other harm. It never ends because of the log.

use std::sync::Arc;
use std::time::Duration;

use eventlog::{Delivered, EventLog};
use messages::{OUTCOMES_TOPIC, Outcome};
use tokio_util::sync::CancellationToken;
use types::Backoff;
use types::metric;

use crate::state::waiters::Waiters;

/// Outcomes read at a time.
const OUTCOMES_PER_READ: usize = 256;
/// Pauses after successive failures of the log.
const BACKOFF: Backoff = Backoff {
    first: Duration::from_millis(100),
    most: Duration::from_secs(10),
};

/// Task that follows the outcomes of every dataset, whichever replica projects them.
#[derive(Debug)]
pub struct Follower {
    log: Arc<dyn EventLog>,
    waiters: Waiters,
}

impl Follower {
    /// Creates a follower that has not started.
    pub fn new(log: Arc<dyn EventLog>, waiters: Waiters) -> Self {
        Self { log, waiters }
    }

    /// Follows the topic until `stop`.
    pub async fn run(self, stop: CancellationToken) {
        stop.run_until_cancelled(self.follow()).await;
    }

    async fn follow(&self) {
        let mut failures = 0;
        loop {
            // A tail begins at the end of the topic. Outcomes that were missed before are in the database, which each
            // request reads at the end of its wait.
            let error = match self.log.tail(OUTCOMES_TOPIC).await {
                Err(error) => error,
                Ok(mut tail) => loop {
                    match tail.next(OUTCOMES_PER_READ).await {
                        Ok(batch) => {
                            // The log answers, so the next failure begins with a short pause again.
                            failures = 0;
                            self.notify(&batch);
                        }
                        Err(error) => break error,
                    }
                },
            };
            tracing::warn!(
                error = &error as &dyn std::error::Error,
                "cannot read the topic `outcomes`; trying again"
            );
            tokio::time::sleep(BACKOFF.pause(failures)).await;
            failures += 1;
        }
    }

    fn notify(&self, batch: &[Delivered]) {
        // Decoding an outcome with many verdicts is expensive, and usually no request on this replica waits for it.
        if self.waiters.is_empty() {
            return;
        }
        for delivered in batch {
            // An outcome that cannot be decoded is ignored, since the projector stores it as a dead letter.
            let is_waited_for = match Outcome::decode(&delivered.record.value) {
                Ok(Outcome::Contribution(outcome)) => self.waiters.notify_logged(outcome.contribution),
                Ok(Outcome::Unit(outcome)) => self.waiters.notify_unit_logged(outcome.unit),
                Err(_) => false,
            };
            if is_waited_for {
                metrics::counter!(metric::REMOTE_OUTCOMES).increment(1);
            }
        }
    }
}

#[cfg(test)]
mod tests;

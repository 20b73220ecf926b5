//! Followers: tell the requests that wait on this replica of outcomes that another replica projects.
//!
//! Invariant: a follower only tells; what a request answers it reads from the database. So a follower that lags, that
//! misses an outcome or that ends costs its waiters time and nothing else, and it never ends because of the log.

use std::sync::Arc;
use std::time::Duration;

use eventlog::{Delivered, EventLog};
use pipelines::message::{OUTCOMES, Outcome};
use tokio_util::sync::CancellationToken;
use types::Backoff;
use types::metric;

use super::Waiters;

/// The most outcomes read at once.
const FETCH: usize = 256;
/// Pauses before a log that failed is followed again.
const BACKOFF: Backoff = Backoff {
    first: Duration::from_millis(100),
    most: Duration::from_secs(10),
};

/// Follows the outcomes of every dataset, whoever projects them.
#[derive(Debug)]
pub struct Follower {
    log: Arc<dyn EventLog>,
    waiters: Waiters,
}

impl Follower {
    /// A follower that has not started.
    pub fn new(log: Arc<dyn EventLog>, waiters: Waiters) -> Self {
        Self { log, waiters }
    }

    /// Follows until `stop`.
    pub async fn run(self, stop: CancellationToken) {
        stop.run_until_cancelled(self.follow()).await;
    }

    async fn follow(&self) {
        let mut failures = 0;
        loop {
            let error = match self.log.tail(OUTCOMES).await {
                Err(error) => error,
                Ok(mut tail) => loop {
                    match tail.next(FETCH).await {
                        Ok(batch) => {
                            failures = 0;
                            self.tell(&batch);
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

    fn tell(&self, batch: &[Delivered]) {
        // Why: an outcome may say much of each record, and mostly nobody here waits for it.
        if self.waiters.is_empty() {
            return;
        }
        for delivered in batch {
            // Why ignored: the projector keeps what cannot be read.
            if let Ok(outcome) = Outcome::decode(&delivered.record.value)
                && self.waiters.hint(outcome.contribution)
            {
                metrics::counter!(metric::FOLLOWED).increment(1);
            }
        }
    }
}

#[cfg(test)]
mod tests;

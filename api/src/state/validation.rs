//! State of the reviews, as this process knows it.
//!
//! Invariant: a change in the database is known here within `INTERVAL` and the time of a query. Without an answer of
//! the database the last state stays in use.

use std::sync::Arc;
use std::time::Duration;

use parking_lot::RwLock;
use store::{Store, ValidationState};
use tokio_util::sync::CancellationToken;
use types::Timestamp;

use crate::periodic::PeriodicTimer;

/// Interval at which the state is read.
const INTERVAL: Duration = Duration::from_millis(500);

/// State of the reviews. Clones share it.
#[derive(Clone, Debug, Default)]
pub struct ReviewState {
    state: Arc<RwLock<ValidationState>>,
}

impl ReviewState {
    /// Returns the reason and the end of the hold that stops reviews at a time, if there is one.
    pub fn held(&self, now: Timestamp) -> Option<(String, Option<Timestamp>)> {
        self.state.read().held(now)
    }

    /// Returns true while an administrator has paused the reviews.
    pub fn is_paused(&self) -> bool {
        self.state.read().paused
    }

    /// Reads the state from the database.
    pub async fn refresh(&self, store: &Store) -> Result<(), store::Error> {
        let (state, _) = store.validation().await?;
        *self.state.write() = state;
        Ok(())
    }

    /// Reads the state until `stop`.
    pub async fn run(self, store: Store, stop: CancellationToken) {
        let reading = async {
            let mut rounds = PeriodicTimer::every(INTERVAL, &stop);
            while rounds.next().await {
                if let Err(error) = self.refresh(&store).await {
                    let error = &error as &dyn std::error::Error;
                    tracing::warn!(error, "cannot read the state of the reviews; the last one stays in use");
                }
            }
        };
        stop.run_until_cancelled(reading).await;
    }
}

//! Task that drops what this process keeps of datasets that were deleted lately, by whatever process: pages, copies of
//! parts, keys.
//!
//! Invariant: no read waits for it. A dataset that is deleted is found by nobody from that instant on, whether or not a
//! round has come by.

use std::time::Duration;

use tokio_util::sync::CancellationToken;
use types::DatasetId;
use types::error::with_causes;

use crate::periodic::PeriodicTimer;
use crate::state::app::App;

/// Interval at which deletions are looked for.
const POLL_INTERVAL: Duration = Duration::from_mins(1);
/// Time for which a deletion is looked at again: a read that began before it may remember something, and the clocks of
/// processes differ.
const LOOKED_AT_FOR: Duration = Duration::from_mins(10);

/// Task that forgets deleted datasets.
#[derive(Debug)]
pub struct DeletionFollower {
    app: App,
}

impl DeletionFollower {
    /// Creates a task that has not started.
    pub const fn new(app: App) -> Self {
        Self { app }
    }

    /// Looks for deletions until `stop`.
    pub async fn run(self, stop: CancellationToken) {
        let following = async {
            let mut rounds = PeriodicTimer::every(POLL_INTERVAL, &stop);
            while rounds.next().await {
                let now = self.app.clock.now();
                match self.app.store.projects_deleted(now.minus(LOOKED_AT_FOR)).await {
                    Ok(deleted) => {
                        for dataset in deleted {
                            self.forget(dataset).await;
                        }
                    }
                    Err(error) => {
                        tracing::warn!(
                            error = with_causes(&error),
                            "cannot look for deleted datasets; trying again"
                        );
                    }
                }
            }
        };
        stop.run_until_cancelled(following).await;
    }

    async fn forget(&self, dataset: DatasetId) {
        self.app.process.caches.forget_pages(dataset);
        self.app.sandbox.forget(dataset);
        if let Err(error) = self.app.catalog.forget_table(dataset).await {
            tracing::warn!(%dataset, error = with_causes(&error), "cannot drop the keys of a deleted dataset; trying again");
        }
    }
}

//! Upload reaper: deletes the bytes of uploads that are expired or decided.
//!
//! Invariant: the deletion is recorded after it was done. A crash in between only repeats the deletion, and leaves no
//! bytes behind.

use std::sync::Arc;
use std::time::Duration;

use store::Store;
use tokio_util::sync::CancellationToken;
use types::{Clock, ContributionId, fault};
use uploads::UploadStore;

use crate::periodic::PeriodicTimer;
use types::error::with_causes;

/// Uploads listed at a time.
const UPLOADS_PER_PAGE: u32 = 64;
/// Time for which the bytes of an upload that no worker could process are kept, so that it can be replayed.
const DEAD_LETTER_RETENTION: Duration = Duration::from_hours(7 * 24);

/// Task that deletes the bytes of expired and of decided uploads.
#[derive(Debug)]
pub struct UploadReaper {
    store: Store,
    objects: Arc<dyn UploadStore>,
    clock: Arc<dyn Clock>,
    every: Duration,
}

impl UploadReaper {
    /// Creates a reaper that has not started. It runs at the interval `every`.
    pub fn new(store: Store, objects: Arc<dyn UploadStore>, clock: Arc<dyn Clock>, every: Duration) -> Self {
        Self {
            store,
            objects,
            clock,
            every,
        }
    }

    /// Deletes until `stop`.
    pub async fn run(self, stop: CancellationToken) {
        // An interval of zero would panic.
        let period = self.every.max(Duration::from_millis(10));
        let reaping = async {
            let mut rounds = PeriodicTimer::every(period, &stop);
            while rounds.next().await {
                self.reap().await;
            }
        };
        stop.run_until_cancelled(reaping).await;
    }

    /// Deletes everything that is due, and returns the number of uploads deleted. A failed deletion is retried in the
    /// next run.
    pub async fn reap(&self) -> usize {
        let (mut reaped, mut after) = (0, None);
        loop {
            let page = self
                .store
                .uploads_to_free(self.clock.now(), DEAD_LETTER_RETENTION, after, UPLOADS_PER_PAGE);
            let page = page.await.unwrap_or_else(|error| {
                tracing::warn!(
                    error = with_causes(&error),
                    "cannot list the finished uploads; trying again"
                );
                Vec::new()
            });
            // The next page begins after this one, so an upload that cannot be deleted does not block the others.
            after = page.last().copied();
            if after.is_none() {
                return reaped;
            }
            reaped += self.reap_each(page).await;
        }
    }

    async fn reap_each(&self, uploads: Vec<ContributionId>) -> usize {
        let mut reaped = 0;
        for upload in uploads {
            // The bytes come before the row, so that a crash repeats the deletion instead of forgetting it.
            if let Err(error) = self.objects.delete(upload).await {
                tracing::warn!(
                    %upload, error = with_causes(&error),
                    "cannot delete the bytes of a finished upload; trying again"
                );
                continue;
            }
            fault::point("upload.freed");
            match self.store.upload_freed(upload, self.clock.now()).await {
                Ok(()) => reaped += 1,
                Err(error) => {
                    tracing::warn!(
                        %upload, error = with_causes(&error),
                        "cannot record the deletion of an upload; trying again"
                    );
                }
            }
        }
        reaped
    }
}

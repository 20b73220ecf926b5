//! Deletes the bytes of uploads that nobody needs any more.
//!
//! Invariant: that bytes are deleted is noted after it was done, so a crash in between deletes nothing again for good,
//! and leaves nothing behind.

use std::sync::Arc;
use std::time::Duration;

use pipelines::staging::objects::Objects;
use store::Store;
use tokio_util::sync::CancellationToken;
use types::{Clock, ContributionId, fault};

use crate::error::chain;
use crate::periodic::Rounds;

/// How many uploads are looked at at once.
const PAGE: u32 = 64;
/// How long what no worker could process is kept, to be replayed.
const REPLAYABLE: Duration = Duration::from_hours(7 * 24);

/// Frees the storage of expired and of decided uploads.
#[derive(Debug)]
pub struct Freeing {
    store: Store,
    objects: Arc<dyn Objects>,
    clock: Arc<dyn Clock>,
    every: Duration,
}

impl Freeing {
    /// One that has not started; looks `every` so often.
    pub fn new(store: Store, objects: Arc<dyn Objects>, clock: Arc<dyn Clock>, every: Duration) -> Self {
        Self {
            store,
            objects,
            clock,
            every,
        }
    }

    /// Frees until `stop`.
    pub async fn run(self, stop: CancellationToken) {
        let period = self.every.max(Duration::from_millis(10));
        let freeing = async {
            let mut rounds = Rounds::every(period, &stop);
            while rounds.next().await {
                self.free().await;
            }
        };
        stop.run_until_cancelled(freeing).await;
    }

    /// Frees what can be freed now; what fails is tried again the next time. How many uploads were freed.
    pub async fn free(&self) -> usize {
        let (mut freed, mut after) = (0, None);
        loop {
            let page = self.store.uploads_to_free(self.clock.now(), REPLAYABLE, after, PAGE);
            let page = page.await.unwrap_or_else(|error| {
                tracing::warn!(error = chain(&error), "cannot list the finished uploads; trying again");
                Vec::new()
            });
            // Why not the same again: those that cannot be deleted keep no others.
            after = page.last().copied();
            if after.is_none() {
                return freed;
            }
            freed += self.free_each(page).await;
        }
    }

    async fn free_each(&self, uploads: Vec<ContributionId>) -> usize {
        let mut freed = 0;
        for upload in uploads {
            if let Err(error) = self.objects.delete(upload).await {
                tracing::warn!(
                    %upload, error = chain(&error),
                    "cannot delete the bytes of a finished upload; trying again"
                );
                continue;
            }
            fault::point("upload.freed");
            match self.store.upload_freed(upload, self.clock.now()).await {
                Ok(()) => freed += 1,
                Err(error) => {
                    tracing::warn!(
                        %upload, error = chain(&error),
                        "cannot record the deletion of an upload; trying again"
                    );
                }
            }
        }
        freed
    }
}

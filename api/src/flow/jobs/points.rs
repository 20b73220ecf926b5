//! Job that gives batches their points that were merged before there were points.
//!
//! Invariant: a batch gets its points once, because its event has a key; so a run may begin again from the start.

use async_trait::async_trait;
use store::{Job, Store};

use super::JobHandler;
use crate::rules::jobs::JobFailure;

/// Contributions looked at in one transaction.
const PER_PAGE: u32 = 1_000;

/// Handler of the job.
#[derive(Debug)]
pub struct BatchPoints {
    store: Store,
}

impl BatchPoints {
    /// Kind of the job, which the migration of the schema adds where there are merged batches.
    pub const KIND: &'static str = "points_of_batches";

    /// Creates a handler.
    pub const fn new(store: Store) -> Self {
        Self { store }
    }
}

#[async_trait]
impl JobHandler for BatchPoints {
    async fn run(&self, _job: &Job) -> Result<(), JobFailure> {
        let (mut after, mut added) = (None, 0);
        loop {
            let page = self.store.points().batches_fill(after, PER_PAGE).await;
            let page = page.map_err(|error| JobFailure::passing(&error))?;
            added += page.added;
            let Some(last) = page.last else { break };
            // In pages, so that no transaction holds the rows of years.
            after = Some(last);
        }
        tracing::info!(
            batches = added,
            "gave points for batches that were merged before there were points"
        );
        Ok(())
    }
}

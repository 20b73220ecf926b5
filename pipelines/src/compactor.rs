//! The compaction of a writer's table: built beside the merges, committed between two of them.
//!
//! Invariant: a writer has at most one compaction under way. A failure only puts it off: nothing waits for it, and what
//! is to be done is found again from the table.

use std::future;

use catalog::{BuiltPart, Error, Table};
use tokio::task::JoinHandle;
use types::error::with_causes;

/// After how many merges a compaction is tried again that failed for the first time; doubles with every failure.
const PATIENCE: u64 = 16;
/// Number of times that this wait doubles.
const DOUBLINGS: u32 = 10;

/// Compaction of the table of one writer: at most one is under way.
#[derive(Debug)]
pub(crate) struct Compactor {
    building: Option<JoinHandle<Result<BuiltPart, Error>>>,
    failures: u32,
    /// Number of merges that pass before the next try.
    waits: u64,
}

impl Compactor {
    /// Nothing is under way.
    pub(crate) const fn new() -> Self {
        Self {
            building: None,
            failures: 0,
            waits: 0,
        }
    }

    /// Begins what is due, unless something is under way or failed a short while ago.
    pub(crate) fn schedule(&mut self, table: &Table) {
        if self.building.is_some() {
            return;
        }
        if self.waits > 0 {
            self.waits -= 1;
            return;
        }
        if let Some(compaction) = table.compaction() {
            self.building = Some(tokio::spawn(async move { compaction.build().await }));
        }
    }

    /// Waits for the compaction in progress and returns it. Never returns if there is none. The future may be dropped
    /// without loss.
    pub(crate) async fn built(&mut self) -> Result<BuiltPart, Error> {
        let Some(building) = &mut self.building else {
            return future::pending().await;
        };
        let built = building.await;
        self.building = None;
        built.map_err(Error::Stopped).and_then(|built| built)
    }

    /// Commits what was built, and begins what is due then.
    pub(crate) async fn adopt(&mut self, table: &mut Table, built: Result<BuiltPart, Error>) {
        let installed = match built {
            Ok(compacted) => table.install_compaction(compacted).await,
            Err(error) => Err(error),
        };
        match installed {
            // The writer learns of it with its next message.
            Ok(_) | Err(Error::Deleted { .. }) => self.failures = 0,
            Err(error) => {
                tracing::warn!(error = with_causes(&error), "a table could not be compacted now");
                self.waits = PATIENCE << self.failures.min(DOUBLINGS);
                self.failures += 1;
            }
        }
        self.schedule(table);
    }
}

impl Drop for Compactor {
    fn drop(&mut self) {
        if let Some(building) = &self.building {
            building.abort();
        }
    }
}

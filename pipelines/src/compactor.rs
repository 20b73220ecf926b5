//! The compaction of a lane's table: built beside the merges, committed between two of them.
//!
//! Invariant: a lane has at most one compaction under way. A failure only puts it off: nothing waits for it, and what
//! is to be done is found again from the table.

use std::future;

use catalog::{Compacted, Error, Table};
use tokio::task::JoinHandle;

use crate::in_work::InWork;
use crate::judge::described;

/// After how many merges a compaction is tried again that failed for the first time; doubles with every failure.
const PATIENCE: u64 = 16;
/// Number of times that this wait doubles.
const DOUBLINGS: u32 = 10;

/// Compaction of the table of one lane: at most one is under way.
#[derive(Debug)]
pub(crate) struct Compactor {
    in_work: InWork,
    /// It looked while something was to be alone in work.
    put_off: bool,
    building: Option<JoinHandle<Result<Compacted, Error>>>,
    failures: u32,
    /// Number of merges that pass before the next try.
    waits: u64,
}

impl Compactor {
    /// Nothing is under way.
    pub(crate) const fn new(in_work: InWork) -> Self {
        Self {
            in_work,
            put_off: false,
            building: None,
            failures: 0,
            waits: 0,
        }
    }

    /// Begins what is due, unless something is under way or failed a short while ago, or a message is to be alone in
    /// work.
    pub(crate) fn look(&mut self, table: &Table) {
        if self.building.is_some() {
            return;
        }
        // The token is taken before anything else: a suspect must be alone in work, and a build that
        // began meanwhile could be the one that ends the process, which the suspect would be charged
        // with.
        let Some(token) = self.in_work.optional() else {
            self.put_off = true;
            return;
        };
        self.put_off = false;
        if self.waits > 0 {
            self.waits -= 1;
            return;
        }
        if let Some(compaction) = table.compaction() {
            self.building = Some(tokio::spawn(async move {
                let built = compaction.build().await;
                drop(token);
                built
            }));
        }
    }

    /// Waits for the compaction in progress and returns it. Returns `None` when it is time to look for another. Never
    /// returns if there is neither. The future may be dropped without loss.
    pub(crate) async fn built(&mut self) -> Option<Result<Compacted, Error>> {
        let Some(building) = &mut self.building else {
            if !self.put_off {
                return future::pending().await;
            }
            self.in_work.loud().await;
            return None;
        };
        let built = building.await;
        self.building = None;
        Some(built.map_err(Error::Stopped).and_then(|built| built))
    }

    /// Commits what was built, if anything, and begins what is due then.
    pub(crate) async fn adopt(&mut self, table: &mut Table, built: Option<Result<Compacted, Error>>) {
        let Some(built) = built else {
            return self.look(table);
        };
        let installed = match built {
            Ok(compacted) => table.install_compaction(compacted).await,
            Err(error) => Err(error),
        };
        match installed {
            Ok(_) => self.failures = 0,
            Err(error) => {
                tracing::warn!(error = described(&error), "a table could not be compacted now");
                self.waits = PATIENCE << self.failures.min(DOUBLINGS);
                self.failures += 1;
            }
        }
        self.look(table);
    }
}

impl Drop for Compactor {
    fn drop(&mut self) {
        if let Some(building) = &self.building {
            building.abort();
        }
    }
}

//! Operators that read datasets of others, for the ranking by points.
//!
//! Invariant: noting a reader never delays its read. An operator is noted once for a dataset and process, however often
//! it reads; a crash loses at most a second of readers, which are noted again when they read again.

use std::collections::HashSet;
use std::mem;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use store::{Project, Store};
use tokio_util::sync::CancellationToken;
use types::{DatasetId, OperatorId, Timestamp};

use crate::periodic::PeriodicTimer;

/// Interval at which readers are stored.
const STORE_INTERVAL: Duration = Duration::from_secs(1);
/// Readers that a process remembers. Beyond it begins anew, and what is stored stays.
const MOST_KNOWN: usize = 100_000;

/// Readers that are not stored yet, and those that need no second note. Clones share them.
#[derive(Clone, Debug, Default)]
pub struct ReaderLog {
    seen: Arc<Mutex<SeenReaders>>,
}

#[derive(Debug, Default)]
struct SeenReaders {
    known: HashSet<(DatasetId, OperatorId)>,
    new: Vec<(DatasetId, OperatorId, Timestamp)>,
}

impl ReaderLog {
    /// Notes that an operator, if one is known, read records of a dataset.
    pub(crate) fn note(&self, project: &Project, operator: Option<OperatorId>, at: Timestamp) {
        let Some(operator) = operator.filter(|operator| *operator != project.operator) else {
            return;
        };
        let mut seen = self.seen.lock();
        if seen.known.contains(&(project.id, operator)) {
            return;
        }
        if seen.known.len() >= MOST_KNOWN {
            seen.known.clear();
        }
        seen.known.insert((project.id, operator));
        seen.new.push((project.id, operator, at));
    }

    /// Stores the readers that are new. Those that cannot be stored are kept for the next attempt.
    pub async fn store(&self, store: &Store) -> Result<(), store::Error> {
        let new = mem::take(&mut self.seen.lock().new);
        if new.is_empty() {
            return Ok(());
        }
        let stored = store.points().readers_note(new.clone()).await;
        if stored.is_err() {
            self.seen.lock().new.extend(new);
        }
        stored.map(drop)
    }

    /// Stores the readers once a second until `stop`, and then once more.
    pub async fn run(self, store: Store, stop: CancellationToken) {
        let mut rounds = PeriodicTimer::every(STORE_INTERVAL, &stop);
        loop {
            // Once more after the stop, so that a shutdown loses none.
            let is_last = !rounds.next().await;
            if let Err(error) = self.store(&store).await {
                tracing::warn!(%error, "cannot note in the database who read which dataset; trying again in a second");
            }
            if is_last {
                return;
            }
        }
    }
}

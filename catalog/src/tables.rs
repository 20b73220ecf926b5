//! The open tables of this process.
//!
//! Invariants: a dataset has one state while anybody has a reference to it. Unreferenced states may be closed, because
//! everything in them is in the log too. Together they stay within [`MAX_IDLE_TABLES`] and [`MAX_IDLE_BYTES`], however
//! many datasets were opened.

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::{Mutex, MutexGuard};
use tokio::sync::OnceCell;
use types::DatasetId;

use crate::state::TableState;

/// Maximum number of open tables without a reference.
const MAX_IDLE_TABLES: usize = 1_024;
/// Maximum memory of these tables, in bytes.
const MAX_IDLE_BYTES: usize = 128 << 20;

/// States by dataset. The first caller that gets the cell loads the state.
#[derive(Debug, Default)]
pub(crate) struct Tables {
    open: Mutex<OpenState>,
}

#[derive(Debug, Default)]
struct OpenState {
    tables: HashMap<DatasetId, OpenTable>,
    /// Number of lookups so far: the clock of the least-recently-used order.
    uses: u64,
}

#[derive(Debug)]
struct OpenTable {
    state: Arc<OnceCell<Arc<TableState>>>,
    used: u64,
}

impl Tables {
    /// Returns the cell of a dataset's state. The cell is empty if the table is not open.
    pub(crate) fn get(&self, dataset: DatasetId) -> Arc<OnceCell<Arc<TableState>>> {
        let mut open = self.lock();
        // A counter orders the uses without a clock.
        open.uses += 1;
        let used = open.uses;
        if let Some(entry) = open.tables.get_mut(&dataset) {
            entry.used = used;
            // A state that lost its history is its holders' alone; the next one is read from the log.
            if entry.state.get().is_some_and(|state| state.is_lost()) {
                entry.state = Arc::default();
            }
            return Arc::clone(&entry.state);
        }
        // Only a new table can exceed the bounds, so they are checked here.
        let closed = open.take_excess();
        let state = Arc::default();
        let entry = OpenTable {
            state: Arc::clone(&state),
            used,
        };
        open.tables.insert(dataset, entry);
        // Closing frees much memory. It happens after the lock is released, so that no other lookup waits for it.
        drop((open, closed));
        state
    }

    /// Removes the state of a dataset, so that the next one is read from the log.
    pub(crate) fn remove(&self, dataset: DatasetId) -> Option<Arc<TableState>> {
        let removed = self.lock().tables.remove(&dataset)?;
        removed.state.get().map(Arc::clone)
    }

    /// Returns the open table with the most keys that are only in memory.
    pub(crate) fn fullest(&self) -> Option<Arc<TableState>> {
        let open = self.lock();
        let states = open.tables.values().filter_map(|entry| entry.state.get());
        states.max_by_key(|state| state.storable()).map(Arc::clone)
    }

    fn lock(&self) -> MutexGuard<'_, OpenState> {
        self.open.lock()
    }
}

impl OpenState {
    /// Removes unreferenced states beyond the bounds, the least recently used first.
    fn take_excess(&mut self) -> Vec<OpenTable> {
        let mut idle: Vec<_> = self
            .tables
            .iter()
            .filter_map(|(&dataset, entry)| Some((entry.used, dataset, entry.idle_bytes()?)))
            .collect();
        let mut bytes: usize = idle.iter().map(|(_, _, bytes)| bytes).sum();
        let mut count = idle.len();
        if count <= MAX_IDLE_TABLES && bytes <= MAX_IDLE_BYTES {
            return Vec::new();
        }
        idle.sort_unstable();
        let mut taken = Vec::new();
        for (_, dataset, size) in idle {
            // An eighth more than necessary is removed at once. Otherwise every lookup beyond the bounds would sort.
            if count <= MAX_IDLE_TABLES / 8 * 7 && bytes <= MAX_IDLE_BYTES / 8 * 7 {
                break;
            }
            taken.extend(self.tables.remove(&dataset));
            (count, bytes) = (count - 1, bytes - size);
        }
        taken
    }
}

impl OpenTable {
    /// Returns the memory in bytes that closing the state frees, or `None` while anybody has a reference to it.
    fn idle_bytes(&self) -> Option<usize> {
        // The reference count is stable: cells are cloned only under the lock, and a state is cloned only from its cell
        // or from another clone.
        if Arc::strong_count(&self.state) > 1 {
            return None;
        }
        match self.state.get() {
            None => Some(0),
            Some(state) => (Arc::strong_count(state) == 1).then(|| state.bytes()),
        }
    }
}

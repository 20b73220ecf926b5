//! The tables that this process has open.
//!
//! Invariant: a dataset has one state for as long as anybody holds it. A state that nobody holds may be closed, as what
//! it knows is in the log, and those together stay within bounds, however many datasets were ever asked for.

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::{Mutex, MutexGuard};
use tokio::sync::OnceCell;
use types::DatasetId;

use crate::state::State;

/// How many tables that nobody holds stay open.
const IDLE: usize = 1_024;
/// How many bytes these take.
const IDLE_BYTES: usize = 128 << 20;

/// States by dataset; a state is loaded by the first who asks for it.
#[derive(Debug, Default)]
pub(crate) struct Tables {
    open: Mutex<Open>,
}

#[derive(Debug, Default)]
struct Open {
    tables: HashMap<DatasetId, Entry>,
    /// Counts the look-ups, to order them.
    uses: u64,
}

#[derive(Debug)]
struct Entry {
    state: Arc<OnceCell<Arc<State>>>,
    used: u64,
}

impl Tables {
    /// The state of a dataset, or the place for it.
    pub(crate) fn get(&self, dataset: DatasetId) -> Arc<OnceCell<Arc<State>>> {
        let mut open = self.lock();
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
        let closed = open.take_excess();
        let state = Arc::default();
        let entry = Entry {
            state: Arc::clone(&state),
            used,
        };
        open.tables.insert(dataset, entry);
        // Why: closing gives back much memory, and nobody else has to wait for that.
        drop((open, closed));
        state
    }

    /// The open table with the most keys that are in memory only.
    pub(crate) fn fullest(&self) -> Option<Arc<State>> {
        let open = self.lock();
        let states = open.tables.values().filter_map(|entry| entry.state.get());
        states.max_by_key(|state| state.storable()).map(Arc::clone)
    }

    fn lock(&self) -> MutexGuard<'_, Open> {
        self.open.lock()
    }
}

impl Open {
    /// Takes the states that nobody holds out of the table beyond the bounds, those not used for longest first.
    fn take_excess(&mut self) -> Vec<Entry> {
        let mut idle: Vec<_> = self
            .tables
            .iter()
            .filter_map(|(&dataset, entry)| Some((entry.used, dataset, entry.idle_bytes()?)))
            .collect();
        let mut bytes: usize = idle.iter().map(|(_, _, bytes)| bytes).sum();
        let mut count = idle.len();
        if count <= IDLE && bytes <= IDLE_BYTES {
            return Vec::new();
        }
        idle.sort_unstable();
        let mut taken = Vec::new();
        for (_, dataset, size) in idle {
            // Why: some room is made at once, or every look-up beyond the bounds would sort.
            if count <= IDLE / 8 * 7 && bytes <= IDLE_BYTES / 8 * 7 {
                break;
            }
            taken.extend(self.tables.remove(&dataset));
            (count, bytes) = (count - 1, bytes - size);
        }
        taken
    }
}

impl Entry {
    /// The bytes that closing it gives back; `None` while somebody holds it.
    fn idle_bytes(&self) -> Option<usize> {
        // Why: a place is handed out only under the lock, and a state only by one who has its place or the state.
        if Arc::strong_count(&self.state) > 1 {
            return None;
        }
        match self.state.get() {
            None => Some(0),
            Some(state) => (Arc::strong_count(state) == 1).then(|| state.bytes()),
        }
    }
}

//! Sizes of what operators store.
//!
//! Invariant: a size is forgotten after [`SEEN`], so a limit is exceeded by what was written since at most.

use std::collections::HashMap;
use std::time::Duration;

use parking_lot::Mutex;
use types::{DatasetId, OperatorId, Timestamp, Version};

/// Time for which the size of an unchanged table, and of all tables of an operator with much room, is not read again for a
/// batch.
const SEEN: Duration = Duration::from_secs(10);
/// Operators, and tables, whose size is remembered at most.
const MAX_CACHED: usize = 10_000;

/// Sizes of what operators store, as this process saw them lately.
#[derive(Debug, Default)]
pub(crate) struct StorageUsageCache {
    /// Bytes of an operator: those that were counted, with those of the batches since.
    stored: Mutex<HashMap<OperatorId, (u64, Timestamp)>>,
    /// Bytes of a table at a version.
    tables: Mutex<HashMap<DatasetId, (Version, u64, Timestamp)>>,
}

impl StorageUsageCache {
    /// Adds a batch, and returns what an operator stores at most with it if only this process writes; `None` if it was not
    /// counted lately.
    pub(crate) fn at_most(&self, operator: OperatorId, batch: u64, now: Timestamp) -> Option<u64> {
        let mut stored = self.stored.lock();
        let (bytes, at) = stored.get_mut(&operator)?;
        if now.since(*at) >= SEEN {
            return None;
        }
        // An estimate: most tables are smaller than their JSON, and a small batch takes some kilobytes more. The other half
        // of the free bytes has room for what batches of some seconds take beyond it.
        *bytes = bytes.saturating_add(batch);
        Some(*bytes)
    }

    pub(crate) fn remember(&self, operator: OperatorId, counted: u64, batch: u64, now: Timestamp) {
        let mut stored = self.stored.lock();
        bounded(&mut stored).insert(operator, (counted.saturating_add(batch), now));
    }

    pub(crate) fn table(&self, dataset: DatasetId, version: Version, now: Timestamp) -> Option<u64> {
        let tables = self.tables.lock();
        let (of, bytes, at) = tables.get(&dataset)?;
        (*of == version && now.since(*at) < SEEN).then_some(*bytes)
    }

    pub(crate) fn remember_table(&self, dataset: DatasetId, version: Version, bytes: u64, now: Timestamp) {
        let mut tables = self.tables.lock();
        bounded(&mut tables).insert(dataset, (version, bytes, now));
    }
}

/// Makes room for an entry. A full map is emptied as a whole: a lost figure costs one look at a table.
fn bounded<K, V>(map: &mut HashMap<K, V>) -> &mut HashMap<K, V> {
    if map.len() >= MAX_CACHED {
        map.clear();
    }
    map
}

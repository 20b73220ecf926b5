//! The key index of a table: which record keys it has.
//!
//! Invariant: it has exactly the keys of versions 1 to the one it reflects. It is derived: opened again after a crash,
//! or over another history of the table, it drops what does not belong and catches up from the parts' key columns.
//!
//! New keys are held in memory and go to the store many at a time, so a merge writes nothing here; in front of the
//! stored keys stands a filter, so a key that is new costs no look at the disk.

use std::collections::HashSet;
use std::sync::atomic::Ordering;
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use types::key::Known;
use types::{DatasetId, RecordKey, Version};

use crate::bloom::Filter;
use crate::key_store::{KeyStore, Stored};
use crate::{Error, Root};

/// How many keys a table holds in memory before they are stored.
const RECENT: usize = 64 << 10;
/// After how many versions keys are stored although they are few: bounds what an opening has to catch up.
const VERSIONS: u64 = 256;
/// How many keys all tables together hold in memory before even small lots are stored.
const RECENT_OF_ALL: usize = 1 << 20;
const SMALL_LOT: usize = 4 << 10;

/// The keys of one table.
#[derive(Debug)]
pub(crate) struct KeyIndex {
    dataset: DatasetId,
    store: Arc<KeyStore>,
    keys: RwLock<Keys>,
    /// Held while keys are read from parts, so that it is done once.
    pub(crate) catching_up: tokio::sync::Mutex<()>,
}

#[derive(Debug, Default)]
struct Keys {
    reflects: Version,
    stored: Version,
    /// How many keys are stored.
    count: u64,
    recent: HashSet<RecordKey>,
    /// Keys on their way to the store, ascending.
    leaving: Option<Arc<Vec<RecordKey>>>,
    filter: Filter,
    /// The store failed: every key is in `recent`.
    in_memory: bool,
}

impl KeyIndex {
    /// The index with the keys that are stored. `stored` is what they reflect, if the table's history agrees; without
    /// it they are dropped. Blocks.
    pub(crate) fn open(dataset: DatasetId, store: Arc<KeyStore>, stored: Option<Stored>) -> Self {
        let keys = match Keys::load(dataset, &store, stored) {
            Ok(keys) => keys,
            Err(error) => {
                tracing::warn!(%dataset, %error, "stored keys cannot be read; the table's keys stay in memory");
                store.condemn();
                Keys {
                    in_memory: true,
                    ..Keys::default()
                }
            }
        };
        Self {
            dataset,
            store,
            keys: RwLock::new(keys),
            catching_up: tokio::sync::Mutex::default(),
        }
    }

    /// The version whose keys it has, with those of all versions before.
    pub(crate) fn reflects(&self) -> Version {
        self.read().reflects
    }

    /// For each key, whether the table has it. May look at the disk for keys that it has.
    pub(crate) fn contains(&self, keys: &[RecordKey]) -> Result<Vec<bool>, Error> {
        let mut known = Vec::with_capacity(keys.len());
        let mut unsure = Vec::new();
        {
            let held = self.read();
            for (row, key) in keys.iter().enumerate() {
                let leaving = held
                    .leaving
                    .as_ref()
                    .is_some_and(|leaving| leaving.binary_search(key).is_ok());
                let found = leaving || held.recent.contains(key);
                if !found && held.filter.may_contain(key) {
                    unsure.push(row);
                }
                known.push(found);
            }
        }
        for row in unsure {
            known[row] = self.store.contains(self.dataset, &keys[row]).map_err(Error::Index)?;
        }
        Ok(known)
    }

    /// Adds the keys of the next version; those of any other version are left out.
    pub(crate) fn insert(&self, version: Version, keys: &[RecordKey]) {
        let mut held = self.write();
        if version == held.reflects.next() {
            let before = held.recent.len();
            held.recent.extend(keys);
            held.reflects = version;
            self.store
                .unstored
                .fetch_add(held.recent.len() - before, Ordering::Relaxed);
        }
    }

    /// Whether it is time to [`Self::flush`].
    pub(crate) fn is_due(&self) -> bool {
        let held = self.read();
        let versions = held.reflects.0 - held.stored.0;
        let crowded = self.store.unstored() > RECENT_OF_ALL && held.recent.len() >= SMALL_LOT;
        !held.in_memory && held.leaving.is_none() && (held.recent.len() >= RECENT || versions >= VERSIONS || crowded)
    }

    /// Stores the keys that are in memory only, if the index still reflects `version`, whose content root is `root`.
    /// Blocks. Without success they stay in memory, which is right as well.
    pub(crate) fn flush(&self, version: Version, root: Root) {
        let (leaving, keys) = {
            let mut held = self.write();
            if held.in_memory || held.leaving.is_some() || held.reflects != version || held.stored == version {
                return;
            }
            let mut leaving: Vec<_> = held.recent.drain().collect();
            leaving.sort_unstable();
            let leaving = Arc::new(leaving);
            held.leaving = Some(Arc::clone(&leaving));
            held.recent.shrink_to(RECENT);
            let keys = held.count + leaving.len() as u64;
            (leaving, keys)
        };
        let added = self.store.add(self.dataset, &leaving, Stored { version, root, keys });
        let mut held = self.write();
        held.leaving = None;
        if held.in_memory {
            self.store.unstored.fetch_sub(leaving.len(), Ordering::Relaxed);
            return;
        }
        match added {
            Ok(()) => {
                leaving.iter().for_each(|key| held.filter.insert(key));
                held.count = keys;
                held.stored = version;
                self.store.unstored.fetch_sub(leaving.len(), Ordering::Relaxed);
            }
            Err(error) => {
                tracing::warn!(dataset = %self.dataset, %error, "keys could not be stored and stay in memory");
                held.recent.extend(leaving.iter());
            }
        }
    }

    /// Gives up the stored keys after they could not be read: the index is empty and has to catch up.
    pub(crate) fn forget_stored(&self) {
        self.store.condemn();
        let mut held = self.write();
        self.store.unstored.fetch_sub(held.recent.len(), Ordering::Relaxed);
        *held = Keys {
            in_memory: true,
            ..Keys::default()
        };
    }

    fn read(&self) -> RwLockReadGuard<'_, Keys> {
        self.keys.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) -> RwLockWriteGuard<'_, Keys> {
        self.keys.write().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for KeyIndex {
    fn drop(&mut self) {
        let unstored = self.read().recent.len();
        self.store.unstored.fetch_sub(unstored, Ordering::Relaxed);
    }
}

impl Keys {
    fn load(dataset: DatasetId, store: &KeyStore, stored: Option<Stored>) -> fjall::Result<Self> {
        let Some(Stored {
            version, keys: count, ..
        }) = stored
        else {
            store.clear(dataset)?;
            return Ok(Self::default());
        };
        let mut filter = Filter::with_capacity(usize::try_from(count + count / 4).unwrap_or(0));
        store.scan(dataset, |key| filter.insert(&key))?;
        Ok(Self {
            reflects: version,
            stored: version,
            count,
            filter,
            ..Self::default()
        })
    }
}

/// A key that cannot be looked up counts as unknown: the commit looks again, and there a failure is an error.
impl Known for KeyIndex {
    fn known(&self, keys: &[RecordKey]) -> Vec<bool> {
        self.contains(keys).unwrap_or_else(|error| {
            tracing::warn!(dataset = %self.dataset, %error, "keys could not be looked up before the commit");
            vec![false; keys.len()]
        })
    }
}

#[cfg(test)]
mod tests;

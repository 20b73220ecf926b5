//! The key index of a table: the set of its record keys.
//!
//! Invariant: the index has exactly the keys of versions 1 to the one that it reflects. It is derived. If it is opened
//! after a crash, or over another history of the table, it drops keys that do not belong and catches up from the parts'
//! key columns. It accepts stored keys only if their count matches.
//!
//! New keys are in memory and are stored in large batches, so a merge writes nothing here. A Bloom filter stands in
//! front of the stored keys, so a lookup of a new key reads nothing from disk.

mod sorted_snapshot;

use std::error::Error as _;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use parking_lot::{Mutex, RwLock, RwLockReadGuard, RwLockWriteGuard};
use tokio::runtime::{Handle, RuntimeFlavor};
use types::key::{KeyLookup, KeySet};
use types::{DatasetId, RecordKey, Version};

pub(crate) use self::sorted_snapshot::SortedKeySnapshot;

use crate::bloom::KeyFilter;
use crate::key_file::is_damage;
use crate::key_store::{KeyStore, StoredFile, StoredVersion};
use crate::{Error, Root};

/// Number of keys in memory from which a table stores them.
const MAX_KEYS_IN_MEMORY: usize = 64 << 10;
/// The same bound while a table catches up from key objects.
const MAX_BULK_KEYS_IN_MEMORY: usize = 512 << 10;
/// Number of versions after which even few keys are stored. Bounds the work of the next opening.
const MAX_UNFLUSHED_VERSIONS: u64 = 256;
/// Number of keys, or of versions, from which storing is worth it when the table is closed.
const MIN_FLUSH_KEYS: usize = 4 << 10;
const MIN_FLUSH_VERSIONS: u64 = 16;
/// Number of keys that enter the shared filter under one lock.
const FILTER_INSERT_KEYS: usize = 4 << 10;
/// Maximum number of lookups on the calling thread. For so few, moving to another thread costs more.
const MAX_INLINE_LOOKUPS: usize = 16;

/// Time that reads of stored keys may fail before the keys are dropped, even if each error is transient.
const READ_FAILURE_TIMEOUT: Duration = Duration::from_mins(1);
/// Time after which a failure is independent of an earlier one.
const FAILURE_MEMORY: Duration = Duration::from_mins(10);

/// Bytes that an open file counts as, so that unused tables have few open files.
const OPEN_FILE_BYTES: usize = 256 << 10;

/// Keys that were stored by a flush.
#[derive(Debug)]
pub(crate) struct FlushBatch {
    /// Version that the stored keys reflected before the flush.
    pub(crate) after: Version,
    /// The stored keys in ascending order.
    pub(crate) keys: Arc<Vec<RecordKey>>,
}

/// The record keys of one table.
#[derive(Debug)]
pub(crate) struct KeyIndex {
    dataset: DatasetId,
    store: Arc<KeyStore>,
    keys: RwLock<Keys>,
    /// True after stored keys could not be read, until they are dropped.
    pub(crate) unreadable: AtomicBool,
    /// Time of the first failure in a row of read failures.
    failing: Mutex<Option<Instant>>,
    /// Held while keys are being stored.
    pub(crate) storing: Arc<tokio::sync::Mutex<()>>,
    /// Held while keys are read from parts, so that concurrent callers read them once.
    pub(crate) catching_up: tokio::sync::Mutex<()>,
}

#[derive(Debug, Default)]
struct Keys {
    indexed_version: Version,
    stored: Version,
    /// Number of stored keys.
    count: u64,
    /// Stored keys in files, the oldest file first.
    files: Vec<Arc<StoredFile>>,
    unflushed: KeySet,
    /// Keys that a flush is storing, in ascending order.
    flushing: Option<Arc<Vec<RecordKey>>>,
    filter: KeyFilter,
    /// True after the stored keys were dropped: every key is in `unflushed`.
    in_memory: bool,
    /// Number of keys that `unflushed` must have before storing is tried again. Zero unless storing failed.
    min_flush_size: usize,
}

impl KeyIndex {
    /// Opens the index with the stored keys. `stored` is the version that they reflect, if it belongs to the table's
    /// history. Without it the stored keys are dropped. Blocks.
    pub(crate) fn open(dataset: DatasetId, store: Arc<KeyStore>, stored: Option<StoredVersion>) -> Self {
        let keys = match Keys::load(dataset, &store, stored) {
            Ok(keys) => keys,
            Err(error) => {
                tracing::warn!(
                    %dataset, %error,
                    "cannot read the key index of a table; its record keys stay in memory"
                );
                // An I/O error of a file may be transient and concerns one table. Any other error means that the
                // database is damaged, so all of it is rebuilt at the next start.
                if !matches!(error, fjall::Error::Io(_)) {
                    store.mark_corrupt();
                }
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
            unreadable: AtomicBool::new(false),
            failing: Mutex::default(),
            storing: Arc::default(),
            catching_up: tokio::sync::Mutex::default(),
        }
    }

    /// Returns the version up to which the index has all keys.
    pub(crate) fn indexed_version(&self) -> Version {
        self.read().indexed_version
    }

    /// Returns for each key if the table has it. Blocks: it may read from disk, mostly for keys that the table has.
    pub(crate) fn contains(&self, keys: &[RecordKey]) -> Result<Vec<bool>, Error> {
        let MemoryLookup {
            mut known,
            undecided,
            files,
        } = self.read().look_up_in_memory(keys);
        self.look_up(keys, &undecided, &files, &mut known)?;
        Ok(known)
    }

    /// Returns for each key if the table has it. `often` counts the lookups of a caller with many.
    ///
    /// # Errors
    /// [`Error::KeysGivenUp`] if the index no longer reflects `version`, [`Error::Index`] if stored keys cannot be
    /// read.
    pub(crate) fn contains_since(
        &self,
        version: Version,
        keys: &[RecordKey],
        snapshot: Option<&SortedKeySnapshot>,
    ) -> Result<Vec<bool>, Error> {
        let held = self.read();
        if held.indexed_version < version {
            return Err(Error::KeysGivenUp { dataset: self.dataset });
        }
        // The lock is released before any read from disk.
        let (in_memory, count) = (held.look_up_in_memory(keys), held.count);
        drop(held);
        let MemoryLookup {
            mut known,
            mut undecided,
            files,
        } = in_memory;
        if let Some(snapshot) = snapshot
            && let Some(sorted) = snapshot.keys_for(undecided.len(), count, self.dataset, &self.store, &files)
        {
            undecided.retain(|row| {
                known[*row] = sorted_snapshot::contains(sorted, &keys[*row]);
                !known[*row]
            });
        }
        self.look_up(keys, &undecided, &files, &mut known)?;
        Ok(known)
    }

    fn look_up(
        &self,
        keys: &[RecordKey],
        undecided: &[usize],
        files: &[Arc<StoredFile>],
        known: &mut [bool],
    ) -> Result<(), Error> {
        let stored = |key| -> fjall::Result<bool> {
            for file in files.iter().rev() {
                if file.keys.contains(key)? {
                    return Ok(true);
                }
            }
            self.store.contains(self.dataset, key)
        };
        for &row in undecided {
            known[row] = stored(&keys[row]).map_err(|error| {
                self.note(&error, Instant::now());
                Error::Index(error)
            })?;
        }
        Ok(())
    }

    /// Records a read failure of stored keys at the time `at`. Marks the keys as unreadable if they are damaged, or if
    /// the failures last for [`READ_FAILURE_TIMEOUT`].
    fn note(&self, error: &fjall::Error, at: Instant) {
        let mut failing = self.failing.lock();
        // The time counts from the first failure and not from the last success, because reads of other keys may succeed
        // all the while.
        let since = *failing.get_or_insert(at);
        let lasted = at.saturating_duration_since(since);
        // The earlier failure was another one, so the time starts again.
        if lasted > FAILURE_MEMORY {
            *failing = Some(at);
        }
        if !is_transient(error) || (READ_FAILURE_TIMEOUT..=FAILURE_MEMORY).contains(&lasted) {
            self.unreadable.store(true, Ordering::Relaxed);
        }
    }

    /// Adds the keys of the next version. Ignores the keys of any other version.
    pub(crate) fn insert(&self, version: Version, keys: &[RecordKey]) {
        let mut held = self.write();
        if version == held.indexed_version.next() {
            let before = held.unflushed.len();
            held.unflushed.extend(keys);
            held.indexed_version = version;
            self.store
                .unstored
                .fetch_add(held.unflushed.len() - before, Ordering::Relaxed);
        }
    }

    /// Adds the keys of the versions after `after`, up to and including `upto`. `new` is the number of rows that these
    /// versions add beyond the index. Returns false without a change if the index does not reach `after`, or if the
    /// keys do not fit that number.
    pub(crate) fn insert_key_object(
        &self,
        after: Version,
        upto: Version,
        mut keys: Vec<RecordKey>,
        new: u64,
    ) -> Result<bool, Error> {
        let indexed_version = self.indexed_version();
        if after > indexed_version || upto <= indexed_version {
            return Ok(false);
        }
        // The index has some of these versions already. Only their new keys are inserted.
        if after < indexed_version {
            let mut known = self.contains(&keys)?.into_iter();
            keys.retain(|_| !known.next().unwrap_or(false));
        }
        let mut held = self.write();
        if keys.len() as u64 != new || held.indexed_version != indexed_version {
            return Ok(false);
        }
        let before = held.unflushed.len();
        held.unflushed.extend(keys);
        held.indexed_version = upto;
        self.store
            .unstored
            .fetch_add(held.unflushed.len() - before, Ordering::Relaxed);
        Ok(true)
    }

    /// Returns true if [`Self::flush`] is due while the table catches up from key objects.
    pub(crate) fn is_due_in_bulk(&self) -> bool {
        let held = self.read();
        held.is_storable() && held.unflushed.len() >= MAX_BULK_KEYS_IN_MEMORY
    }

    /// Returns true if [`Self::flush`] is due.
    pub(crate) fn is_due(&self) -> bool {
        let held = self.read();
        held.is_storable()
            && (held.unflushed.len() >= MAX_KEYS_IN_MEMORY
                || held.indexed_version.0 - held.stored.0 >= MAX_UNFLUSHED_VERSIONS)
    }

    /// Returns true if [`Self::flush`] is worth it although it is not due, because the table is closed.
    pub(crate) fn is_worth_storing(&self) -> bool {
        let held = self.read();
        held.is_storable()
            && (held.unflushed.len() >= MIN_FLUSH_KEYS || held.indexed_version.0 - held.stored.0 >= MIN_FLUSH_VERSIONS)
    }

    /// Returns the number of keys that [`Self::flush`] would store.
    pub(crate) fn storable(&self) -> usize {
        let held = self.read();
        if held.is_storable() { held.unflushed.len() } else { 0 }
    }

    /// Returns the approximate memory use in bytes.
    pub(crate) fn bytes(&self) -> usize {
        let held = self.read();
        let files: usize = held.files.iter().map(|file| OPEN_FILE_BYTES + file.keys.bytes()).sum();
        held.filter.bytes() + files + held.unflushed.capacity() * (size_of::<RecordKey>() + 1)
    }

    /// Stores the keys that are only in memory, if the index still reflects `version` with the content root `root`.
    /// Returns the stored keys. After a failure the keys stay in memory, and the index remains correct. Blocks.
    pub(crate) fn flush(&self, version: Version, root: Root) -> Option<FlushBatch> {
        let (flushing, keys, after) = {
            let mut held = self.write();
            if held.in_memory || held.flushing.is_some() || held.indexed_version != version || held.stored == version {
                return None;
            }
            let mut flushing: Vec<_> = held.unflushed.drain().collect();
            // The store takes sorted keys, and lookups during the flush use a binary search.
            flushing.sort_unstable();
            let flushing = Arc::new(flushing);
            // Lookups find the keys here until the store has them.
            held.flushing = Some(Arc::clone(&flushing));
            // The set may have grown far beyond its usual size while the table caught up.
            held.unflushed.shrink_to(MAX_KEYS_IN_MEMORY);
            let keys = held.count + flushing.len() as u64;
            (flushing, keys, held.stored)
        };
        // The lock is free meanwhile, so lookups continue.
        let added = self
            .store
            .add(self.dataset, &flushing, StoredVersion { version, root, keys });
        let mut held = self.write();
        held.flushing = None;
        // The stored keys were dropped meanwhile, so these are no longer part of the index.
        if held.in_memory {
            self.store.unstored.fetch_sub(flushing.len(), Ordering::Relaxed);
            return None;
        }
        match added {
            Ok(()) => {
                flushing.iter().for_each(|key| held.filter.insert(key));
                held.count = keys;
                held.stored = version;
                held.min_flush_size = 0;
                self.store.unstored.fetch_sub(flushing.len(), Ordering::Relaxed);
                drop(held);
                Some(FlushBatch { after, keys: flushing })
            }
            Err(error) => {
                tracing::warn!(
                    dataset = %self.dataset, %error,
                    "cannot store record keys in the key index; they stay in memory"
                );
                held.unflushed.extend(flushing.iter());
                // Each try sorts all keys. The distance of two tries grows with the number of keys.
                held.min_flush_size = held.unflushed.len().saturating_mul(2);
                None
            }
        }
    }

    /// Stores the sorted, distinct keys of the next version without holding them in memory. `table` is the number of
    /// keys of the table with them, `root` its content root. Returns false without a change if that is impossible now.
    /// The caller then [inserts](Self::insert) the keys. The caller holds [`Self::catching_up`]. Blocks.
    pub(crate) fn ingest(
        &self,
        version: Version,
        root: Root,
        table: u64,
        keys: impl Iterator<Item = io::Result<RecordKey>>,
    ) -> bool {
        let fits = |held: &Keys| {
            let alone = !held.in_memory && held.flushing.is_none() && held.unflushed.is_empty();
            alone && held.indexed_version.next() == version && held.indexed_version == held.stored
        };
        let (count, files, mut apart) = {
            let held = self.read();
            if !fits(&held) {
                return false;
            }
            let count = usize::try_from(table.saturating_sub(held.count)).unwrap_or(0);
            (count, held.files.clone(), held.filter.apart(count))
        };
        let mut some = Vec::new();
        let stored = StoredVersion {
            version,
            root,
            keys: table,
        };
        let filtered = keys.inspect(|key| {
            let Ok(key) = key else { return };
            if let Some(filter) = &mut apart {
                filter.insert(key);
                return;
            }
            some.push(*key);
            // The lock is taken per piece, because readers wait for it. A key in the filter that is not stored yet is
            // only a false positive.
            if some.len() == FILTER_INSERT_KEYS {
                let mut held = self.write();
                some.drain(..).for_each(|key| held.filter.insert(&key));
            }
        });
        let files = match self.store.add_file(self.dataset, &files, (filtered, count), stored) {
            Ok(files) => files,
            Err(error) => {
                tracing::warn!(
                    dataset = %self.dataset, %error,
                    "cannot store the record keys of an upload in the key index; they stay in memory"
                );
                return false;
            }
        };
        let mut held = self.write();
        if !fits(&held) {
            return false;
        }
        for key in &some {
            held.filter.insert(key);
        }
        if let Some(apart) = apart {
            held.filter.absorb(apart);
        }
        held.files = files;
        held.count = table;
        (held.indexed_version, held.stored) = (version, version);
        true
    }

    /// Returns true if keys are stored, false if all are in memory.
    pub(crate) fn is_stored(&self) -> bool {
        !self.read().in_memory
    }

    /// Drops the stored keys after they became unreadable. The index is then empty and must catch up.
    pub(crate) fn forget_stored(&self) {
        self.store.mark_corrupt();
        let mut held = self.write();
        self.unreadable.store(false, Ordering::Relaxed);
        *self.failing.lock() = None;
        self.store.unstored.fetch_sub(held.unflushed.len(), Ordering::Relaxed);
        *held = Keys {
            in_memory: true,
            ..Keys::default()
        };
    }

    fn read(&self) -> RwLockReadGuard<'_, Keys> {
        self.keys.read()
    }

    fn write(&self) -> RwLockWriteGuard<'_, Keys> {
        self.keys.write()
    }
}

impl Drop for KeyIndex {
    fn drop(&mut self) {
        // Keys of a closed table no longer count towards the bound of all tables.
        let unstored = self.read().unflushed.len();
        self.store.unstored.fetch_sub(unstored, Ordering::Relaxed);
    }
}

/// Returns true if a read error may be transient: the operating system reported it, and the file is not damaged.
fn is_transient(error: &fjall::Error) -> bool {
    // The I/O error may be wrapped in several others.
    let mut cause = error.source();
    while let Some(error) = cause {
        if let Some(error) = error.downcast_ref::<io::Error>() {
            return !is_damage(error);
        }
        cause = error.source();
    }
    false
}

/// Result of a lookup in memory.
struct MemoryLookup {
    /// For each key, true if the table is known to have it.
    known: Vec<bool>,
    /// Indexes of the keys that must be looked up on disk.
    undecided: Vec<usize>,
    /// Files to look them up in.
    files: Vec<Arc<StoredFile>>,
}

impl Keys {
    fn look_up_in_memory(&self, keys: &[RecordKey]) -> MemoryLookup {
        let mut known = Vec::with_capacity(keys.len());
        let mut undecided = Vec::new();
        for (row, key) in keys.iter().enumerate() {
            let flushing = self.flushing.as_ref();
            let found =
                flushing.is_some_and(|flushing| flushing.binary_search(key).is_ok()) || self.unflushed.contains(key);
            // Only positives of the filter need a read from disk.
            if !found && self.filter.might_contain(key) {
                undecided.push(row);
            }
            known.push(found);
        }
        MemoryLookup {
            known,
            undecided,
            files: self.files.clone(),
        }
    }

    /// Returns true if storing is possible and its retry distance is reached.
    fn is_storable(&self) -> bool {
        !self.in_memory && self.flushing.is_none() && self.unflushed.len() >= self.min_flush_size
    }

    fn load(dataset: DatasetId, store: &KeyStore, stored: Option<StoredVersion>) -> fjall::Result<Self> {
        let Some(StoredVersion {
            version, keys: count, ..
        }) = stored
        else {
            store.clear(dataset)?;
            return Ok(Self::default());
        };
        // A quarter more capacity leaves room for new keys before the next generation.
        let mut filter = KeyFilter::with_capacity(usize::try_from(count + count / 4).unwrap_or(0));
        let mut found = 0;
        store.scan(dataset, |key| {
            filter.insert(&key);
            found += 1;
        })?;
        let files = store.files(dataset, |key| {
            filter.insert(&key);
            found += 1;
        });
        // A damaged file counts as no keys, and the count below then differs.
        let files = match files {
            Err(fjall::Error::Io(error)) if is_damage(&error) => {
                tracing::warn!(%dataset, %error, "a file of the key index is damaged");
                found = 0;
                Vec::new()
            }
            files => files?,
        };
        if found != count {
            tracing::warn!(
                %dataset, found, expected = count,
                "the key index of a table lacks record keys; building it again from the parts"
            );
            store.clear(dataset)?;
            return Ok(Self::default());
        }
        Ok(Self {
            indexed_version: version,
            stored: version,
            count,
            files,
            filter,
            ..Self::default()
        })
    }
}

/// A key whose lookup fails counts as unknown. The commit looks it up again, and a failure there is an error.
impl KeyLookup for KeyIndex {
    fn known(&self, keys: &[RecordKey]) -> Vec<bool> {
        let MemoryLookup {
            mut known,
            undecided,
            files,
        } = self.read().look_up_in_memory(keys);
        let mut look_up = || self.look_up(keys, &undecided, &files, &mut known);
        // A batch full of duplicates needs many reads from disk, which must not block a thread of the runtime.
        let looked_up = match Handle::try_current().map(|runtime| runtime.runtime_flavor()) {
            Ok(RuntimeFlavor::MultiThread) if undecided.len() > MAX_INLINE_LOOKUPS => {
                tokio::task::block_in_place(look_up)
            }
            _ => look_up(),
        };
        if let Err(error) = looked_up {
            tracing::warn!(
                dataset = %self.dataset, %error,
                "cannot look up record keys before the commit; the commit looks them up"
            );
        }
        known
    }
}

#[cfg(test)]
pub(crate) mod tests;

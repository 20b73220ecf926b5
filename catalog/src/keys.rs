//! The key index of a table: which record keys it has.
//!
//! Invariant: it has exactly the keys of versions 1 to the one it reflects. It is derived: opened again after a crash,
//! or over another history of the table, it drops what does not belong and catches up from the parts' key columns. Of
//! stored keys it believes only as many as were stored.
//!
//! New keys are held in memory and go to the store many at a time, so a merge writes nothing here; in front of the
//! stored keys stands a filter, so a key that is new costs no look at the disk.

mod ordered;

use std::error::Error as _;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use parking_lot::{Mutex, RwLock, RwLockReadGuard, RwLockWriteGuard};
use tokio::runtime::{Handle, RuntimeFlavor};
use types::key::{KeySet, Known};
use types::{DatasetId, RecordKey, Version};

pub(crate) use self::ordered::Ordered;

use crate::bloom::Filter;
use crate::key_file::is_damage;
use crate::key_store::{KeyStore, Stored, StoredFile};
use crate::{Error, Root};

/// How many keys a table holds in memory before they are stored.
const RECENT: usize = 64 << 10;
/// The same for one that is being opened from many keys at once.
const BULK: usize = 512 << 10;
/// After how many versions keys are stored although they are few: bounds what an opening has to catch up.
const VERSIONS: u64 = 256;
/// From how many keys, or versions, on it is worth to store keys that will not grow more soon.
const LOT: usize = 4 << 10;
const LOT_OF_VERSIONS: u64 = 16;
/// How many keys go into the filter of a table that is read meanwhile at once.
const PIECE: usize = 4 << 10;
/// Up to how many look-ups are done where they are asked for: moving them would cost more.
const FEW: usize = 16;

/// How long stored keys may fail to be read before they are given up, although each failure could have passed.
const PATIENCE: Duration = Duration::from_mins(1);
/// After how long a failure has nothing to do with one before.
const FORGOTTEN: Duration = Duration::from_mins(10);

/// What an open file counts as: so tables that nobody uses have few.
const OPEN_FILE: usize = 256 << 10;

/// Keys that went to the store.
#[derive(Debug)]
pub(crate) struct Leaving {
    /// The version whose keys, with those before it, were stored already.
    pub(crate) after: Version,
    /// The keys, ascending.
    pub(crate) keys: Arc<Vec<RecordKey>>,
}

/// The keys of one table.
#[derive(Debug)]
pub(crate) struct KeyIndex {
    dataset: DatasetId,
    store: Arc<KeyStore>,
    keys: RwLock<Keys>,
    /// Whether stored keys could not be read since they were opened or given up.
    pub(crate) unreadable: AtomicBool,
    /// Since when stored keys fail to be read.
    failing: Mutex<Option<Instant>>,
    /// Held while keys are on their way to the store.
    pub(crate) storing: Arc<tokio::sync::Mutex<()>>,
    /// Held while keys are read from parts, so that it is done once.
    pub(crate) catching_up: tokio::sync::Mutex<()>,
}

#[derive(Debug, Default)]
struct Keys {
    reflects: Version,
    stored: Version,
    /// How many keys are stored.
    count: u64,
    /// Those of them that are in files, oldest first.
    files: Vec<Arc<StoredFile>>,
    recent: KeySet,
    /// Keys on their way to the store, ascending.
    leaving: Option<Arc<Vec<RecordKey>>>,
    filter: Filter,
    /// The stored keys were given up: every key is in `recent`.
    in_memory: bool,
    /// Storing failed: how many keys `recent` must have before it is tried again.
    patience: usize,
}

impl KeyIndex {
    /// The index with the keys that are stored. `stored` is what they reflect, if the table's history agrees; without
    /// it they are dropped. Blocks.
    pub(crate) fn open(dataset: DatasetId, store: Arc<KeyStore>, stored: Option<Stored>) -> Self {
        let keys = match Keys::load(dataset, &store, stored) {
            Ok(keys) => keys,
            Err(error) => {
                tracing::warn!(
                    %dataset, %error,
                    "cannot read the key index of a table; its record keys stay in memory"
                );
                // Why not for a file: that may pass, and what others stored is as it was.
                if !matches!(error, fjall::Error::Io(_)) {
                    store.condemn();
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

    /// The version whose keys it has, with those of all versions before.
    pub(crate) fn reflects(&self) -> Version {
        self.read().reflects
    }

    /// For each key, whether the table has it. May look at the disk, mostly for keys that it has: blocks.
    pub(crate) fn contains(&self, keys: &[RecordKey]) -> Result<Vec<bool>, Error> {
        let Sifted {
            mut known,
            unsure,
            files,
        } = self.read().sift(keys);
        self.look_up(keys, &unsure, &files, &mut known)?;
        Ok(known)
    }

    /// The same, where it has the keys of the versions up to `version`; an error where it gave them up meanwhile. `often`
    /// counts the look-ups of one who has many.
    pub(crate) fn contains_since(
        &self,
        version: Version,
        keys: &[RecordKey],
        often: Option<&Ordered>,
    ) -> Result<Vec<bool>, Error> {
        let held = self.read();
        if held.reflects < version {
            return Err(Error::KeysGivenUp { dataset: self.dataset });
        }
        let (sifted, count) = (held.sift(keys), held.count);
        drop(held);
        let Sifted {
            mut known,
            mut unsure,
            files,
        } = sifted;
        if let Some(often) = often
            && let Some(ordered) = often.after(unsure.len(), count, self.dataset, &self.store, &files)
        {
            unsure.retain(|row| {
                known[*row] = ordered::has(ordered, &keys[*row]);
                !known[*row]
            });
        }
        self.look_up(keys, &unsure, &files, &mut known)?;
        Ok(known)
    }

    fn look_up(
        &self,
        keys: &[RecordKey],
        unsure: &[usize],
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
        for &row in unsure {
            known[row] = stored(&keys[row]).map_err(|error| {
                self.note(&error, Instant::now());
                Error::Index(error)
            })?;
        }
        Ok(())
    }

    /// Notes that stored keys could not be read at an instant: that they are lost where they are damaged, or it does not
    /// pass.
    fn note(&self, error: &fjall::Error, at: Instant) {
        let mut failing = self.failing.lock();
        // Why not since the last success: others may be read all the while.
        let since = *failing.get_or_insert(at);
        let lasted = at.saturating_duration_since(since);
        if lasted > FORGOTTEN {
            *failing = Some(at);
        }
        if !may_pass(error) || (PATIENCE..=FORGOTTEN).contains(&lasted) {
            self.unreadable.store(true, Ordering::Relaxed);
        }
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

    /// Adds the keys of the versions after `after` up to `upto`, of which `new` are not in the index. Answers whether they
    /// were added: not where the index does not reach `after`, nor where other keys than those of these versions are among
    /// them.
    pub(crate) fn insert_run(
        &self,
        after: Version,
        upto: Version,
        mut keys: Vec<RecordKey>,
        new: u64,
    ) -> Result<bool, Error> {
        let reflects = self.reflects();
        if after > reflects || upto <= reflects {
            return Ok(false);
        }
        if after < reflects {
            let mut known = self.contains(&keys)?.into_iter();
            keys.retain(|_| !known.next().unwrap_or(false));
        }
        let mut held = self.write();
        if keys.len() as u64 != new || held.reflects != reflects {
            return Ok(false);
        }
        let before = held.recent.len();
        held.recent.extend(keys);
        held.reflects = upto;
        self.store
            .unstored
            .fetch_add(held.recent.len() - before, Ordering::Relaxed);
        Ok(true)
    }

    /// Whether it is time to [`Self::flush`] while many keys come at once.
    pub(crate) fn is_due_in_bulk(&self) -> bool {
        let held = self.read();
        held.is_storable() && held.recent.len() >= BULK
    }

    /// Whether it is time to [`Self::flush`].
    pub(crate) fn is_due(&self) -> bool {
        let held = self.read();
        held.is_storable() && (held.recent.len() >= RECENT || held.reflects.0 - held.stored.0 >= VERSIONS)
    }

    /// Whether it is worth to [`Self::flush`] before it is due.
    pub(crate) fn is_worth_storing(&self) -> bool {
        let held = self.read();
        held.is_storable() && (held.recent.len() >= LOT || held.reflects.0 - held.stored.0 >= LOT_OF_VERSIONS)
    }

    /// How many keys [`Self::flush`] would store.
    pub(crate) fn storable(&self) -> usize {
        let held = self.read();
        if held.is_storable() { held.recent.len() } else { 0 }
    }

    /// Roughly the memory it takes.
    pub(crate) fn bytes(&self) -> usize {
        let held = self.read();
        let files: usize = held.files.iter().map(|file| OPEN_FILE + file.keys.bytes()).sum();
        held.filter.bytes() + files + held.recent.capacity() * (size_of::<RecordKey>() + 1)
    }

    /// Stores the keys that are in memory only, if the index still reflects `version`, whose content root is `root`.
    /// Blocks. Without success they stay in memory, which is right as well; with it, answers what was stored.
    pub(crate) fn flush(&self, version: Version, root: Root) -> Option<Leaving> {
        let (leaving, keys, after) = {
            let mut held = self.write();
            if held.in_memory || held.leaving.is_some() || held.reflects != version || held.stored == version {
                return None;
            }
            let mut leaving: Vec<_> = held.recent.drain().collect();
            leaving.sort_unstable();
            let leaving = Arc::new(leaving);
            held.leaving = Some(Arc::clone(&leaving));
            held.recent.shrink_to(RECENT);
            let keys = held.count + leaving.len() as u64;
            (leaving, keys, held.stored)
        };
        let added = self.store.add(self.dataset, &leaving, Stored { version, root, keys });
        let mut held = self.write();
        held.leaving = None;
        if held.in_memory {
            self.store.unstored.fetch_sub(leaving.len(), Ordering::Relaxed);
            return None;
        }
        match added {
            Ok(()) => {
                leaving.iter().for_each(|key| held.filter.insert(key));
                held.count = keys;
                held.stored = version;
                held.patience = 0;
                self.store.unstored.fetch_sub(leaving.len(), Ordering::Relaxed);
                drop(held);
                Some(Leaving { after, keys: leaving })
            }
            Err(error) => {
                tracing::warn!(
                    dataset = %self.dataset, %error,
                    "cannot store record keys in the key index; they stay in memory"
                );
                held.recent.extend(leaving.iter());
                // Why: each try touches every key, so the tries must become rarer as the keys become more.
                held.patience = held.recent.len().saturating_mul(2);
                None
            }
        }
    }

    /// Stores the keys of the next version, ascending and distinct, without holding them in memory: the table now has
    /// `table` keys, and `root`. `false` where that cannot be done now; then nothing changed, and the keys have to be
    /// [inserted](Self::insert). Nothing else may bring keys meanwhile, so [`Self::catching_up`] is to be held. Blocks.
    pub(crate) fn ingest(
        &self,
        version: Version,
        root: Root,
        table: u64,
        keys: impl Iterator<Item = io::Result<RecordKey>>,
    ) -> bool {
        let fits = |held: &Keys| {
            let alone = !held.in_memory && held.leaving.is_none() && held.recent.is_empty();
            alone && held.reflects.next() == version && held.reflects == held.stored
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
        let stored = Stored {
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
            // Why in pieces: readers wait meanwhile. That the keys are not stored yet makes the filter no less right.
            if some.len() == PIECE {
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
        (held.reflects, held.stored) = (version, version);
        true
    }

    /// Whether keys are stored at all, rather than kept in memory.
    pub(crate) fn is_stored(&self) -> bool {
        !self.read().in_memory
    }

    /// Gives up the stored keys after they could not be read: the index is empty and has to catch up.
    pub(crate) fn forget_stored(&self) {
        self.store.condemn();
        let mut held = self.write();
        self.unreadable.store(false, Ordering::Relaxed);
        *self.failing.lock() = None;
        self.store.unstored.fetch_sub(held.recent.len(), Ordering::Relaxed);
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
        let unstored = self.read().recent.len();
        self.store.unstored.fetch_sub(unstored, Ordering::Relaxed);
    }
}

/// Whether what cannot be read now may be read later: what an operating system says of a file that is not damaged.
fn may_pass(error: &fjall::Error) -> bool {
    let mut cause = error.source();
    while let Some(error) = cause {
        if let Some(error) = error.downcast_ref::<io::Error>() {
            return !is_damage(error);
        }
        cause = error.source();
    }
    false
}

/// What memory alone tells of keys.
struct Sifted {
    /// For each key, whether the table is known to have it.
    known: Vec<bool>,
    /// The indexes of those that are to be looked up.
    unsure: Vec<usize>,
    /// The files that they are to be looked up in.
    files: Vec<Arc<StoredFile>>,
}

impl Keys {
    fn sift(&self, keys: &[RecordKey]) -> Sifted {
        let mut known = Vec::with_capacity(keys.len());
        let mut unsure = Vec::new();
        for (row, key) in keys.iter().enumerate() {
            let leaving = self.leaving.as_ref();
            let found = leaving.is_some_and(|leaving| leaving.binary_search(key).is_ok()) || self.recent.contains(key);
            if !found && self.filter.may_contain(key) {
                unsure.push(row);
            }
            known.push(found);
        }
        Sifted {
            known,
            unsure,
            files: self.files.clone(),
        }
    }

    /// Whether it makes sense to store what is in memory only.
    fn is_storable(&self) -> bool {
        !self.in_memory && self.leaving.is_none() && self.recent.len() >= self.patience
    }

    fn load(dataset: DatasetId, store: &KeyStore, stored: Option<Stored>) -> fjall::Result<Self> {
        let Some(Stored {
            version, keys: count, ..
        }) = stored
        else {
            store.clear(dataset)?;
            return Ok(Self::default());
        };
        let mut filter = Filter::with_capacity(usize::try_from(count + count / 4).unwrap_or(0));
        let mut found = 0;
        store.scan(dataset, |key| {
            filter.insert(&key);
            found += 1;
        })?;
        let files = store.files(dataset, |key| {
            filter.insert(&key);
            found += 1;
        });
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
            reflects: version,
            stored: version,
            count,
            files,
            filter,
            ..Self::default()
        })
    }
}

/// A key that cannot be looked up counts as unknown: the commit looks again, and there a failure is an error.
impl Known for KeyIndex {
    fn known(&self, keys: &[RecordKey]) -> Vec<bool> {
        let Sifted {
            mut known,
            unsure,
            files,
        } = self.read().sift(keys);
        let mut look_up = || self.look_up(keys, &unsure, &files, &mut known);
        // Why: a batch full of duplicates is many looks at the disk, which a thread of the runtime has no time for.
        let looked_up = match Handle::try_current().map(|runtime| runtime.runtime_flavor()) {
            Ok(RuntimeFlavor::MultiThread) if unsure.len() > FEW => tokio::task::block_in_place(look_up),
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

//! The key index of an open table: opening, catching up with the version index, lookups and storing.
//!
//! Invariant: a table has one index at a time, and no task of an earlier index key objects when a new one is opened.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use futures_util::stream::{self, StreamExt as _, TryStreamExt as _};
use parking_lot::Mutex;
use types::key::KeyLookup;
use types::{RecordKey, Version, mutate};

use super::key_objects::MIN_VERSIONS_FOR_KEY_OBJECTS;
use super::{CommitBase, PARTS_AT_ONCE, TableState, WriteOccasion};
use crate::blocking::in_place;
use crate::key_store::StoredVersion;
use crate::keys::{FlushBatch, KeyIndex, SortedKeySnapshot};
use crate::part::{self, PartInfo};
use crate::prepare::runs::KeyRuns;
use crate::{Error, Root};

/// Maximum number of keys of a version that go into memory.
pub(crate) const MAX_INSERTED_KEYS: u64 = 32 << 10;
/// Approximate memory of a version in the version index, in bytes.
const BYTES_OF_VERSION: usize = 256;

impl TableState {
    /// Returns the key index, up to date with the version index. The first call opens it.
    pub(crate) async fn index(self: &Arc<Self>) -> Result<Arc<KeyIndex>, Error> {
        let index = if let Some(index) = self.index.get() {
            Arc::clone(index)
        } else {
            let state = Arc::clone(self);
            // Opening may clear stored keys, and two openings must not overlap. A task of its own completes even if the
            // caller is dropped.
            let open = async move { state.index.get_or_try_init(|| state.open_index()).await.map(Arc::clone) };
            tokio::spawn(open).await.map_err(Error::Stopped)??
        };
        self.catch_up(&index).await?;
        Ok(index)
    }

    async fn open_index(&self) -> Result<Arc<KeyIndex>, Error> {
        let (dataset, store) = (self.dataset, Arc::clone(&self.store));
        let stored = match store.stored(dataset) {
            Ok(Some(stored)) if self.agrees(stored).await? => Some(stored),
            _ => None,
        };
        // Without `stored` the opening drops the stored keys.
        let open = move || KeyIndex::open(dataset, store, stored);
        Ok(Arc::new(
            tokio::task::spawn_blocking(open).await.map_err(Error::Stopped)?,
        ))
    }

    /// Returns true if stored keys belong to this table's history: same root, same number of rows.
    async fn agrees(&self, stored: StoredVersion) -> Result<bool, Error> {
        let CommitBase {
            version, rows, root, ..
        } = self.base();
        if stored.version == version {
            return Ok(stored.root == root && stored.keys == rows);
        }
        // Stored keys beyond the head belong to a history that was cut back.
        if stored.version > version || stored.version == Version::EMPTY {
            return Ok(false);
        }
        let merge = self.merge_of(stored.version).await?;
        Ok(merge.root == stored.root.to_string() && merge.record_count == stored.keys)
    }

    /// Catches up with the version index's head. If the index is far behind, it reads key objects first, then the key
    /// columns of the parts.
    pub(crate) async fn catch_up(self: &Arc<Self>, index: &KeyIndex) -> Result<(), Error> {
        if index.indexed_version() >= self.head() {
            return Ok(());
        }
        let _once = index.catching_up.lock().await;
        while self.head().0.saturating_sub(index.indexed_version().0) >= MIN_VERSIONS_FOR_KEY_OBJECTS {
            let Some(gap) = self.catch_up_from_key_objects(index).await? else {
                break;
            };
            // The owner of one key object may have crashed before writing it. Its versions are read from the parts, and
            // the later key objects are still used.
            self.catch_up_from_parts(index, gap.min(self.head())).await?;
        }
        self.catch_up_from_parts(index, self.head()).await
    }

    async fn catch_up_from_parts(self: &Arc<Self>, index: &KeyIndex, upto: Version) -> Result<(), Error> {
        let parts = self.parts_between(index.indexed_version(), upto);
        tracing::debug!(dataset = %self.dataset, parts = parts.len(), "the key index catches up");
        let mut of_few = Vec::new();
        // Small versions are collected and read together. A large one goes to the store by way of files.
        for of_version in parts.chunk_by(|part, next| part.version == next.version) {
            if of_version.iter().map(|part| part.rows).sum::<u64>() <= MAX_INSERTED_KEYS {
                of_few.extend_from_slice(of_version);
            } else {
                self.insert(index, std::mem::take(&mut of_few)).await?;
                self.store_or_insert(index, of_version).await?;
            }
        }
        self.insert(index, of_few).await
    }

    /// Stores the keys of a version with many rows. Inserts them into memory if they cannot be stored.
    async fn store_or_insert(self: &Arc<Self>, index: &KeyIndex, parts: &[PartInfo]) -> Result<(), Error> {
        let stored = if index.is_stored() {
            match self.store_all(index, parts).await {
                Err(error @ (Error::Scratch(_) | Error::NoRoom { .. })) => {
                    tracing::warn!(
                        dataset = %self.dataset, %error,
                        "cannot sort record keys on disk; taking them into memory"
                    );
                    false
                }
                stored => stored?,
            }
        } else {
            false
        };
        if stored {
            Ok(())
        } else {
            self.insert(index, parts.to_vec()).await
        }
    }

    /// Sorts the keys of a version in scratch files and stores them, so that at most some millions are in memory.
    /// Returns false if the index cannot store them now.
    async fn store_all(self: &Arc<Self>, index: &KeyIndex, parts: &[PartInfo]) -> Result<bool, Error> {
        let Some(version) = parts.first().map(|part| part.version) else {
            return Ok(true);
        };
        // Keys in memory are stored first, because a file must begin where the stored keys end.
        let before = index.indexed_version();
        if let Some(batch) = self.flush(before, self.root_at(before)).await? {
            self.put_key_object(batch, before, self.root_at(before)).await;
        }
        let scratch = self.store.scratch()?;
        let mut keys = KeyRuns::new(scratch.path());
        for part in parts {
            let some = part::keys(self.source(), part).await?;
            in_place(|| keys.insert_all(&some)).map_err(Error::Scratch)?;
        }
        in_place(|| {
            let ascending = keys.ascending().map_err(Error::Scratch)?;
            Ok(index.ingest(version, self.root_at(version), self.rows_at(version), ascending))
        })
    }

    /// Inserts the keys of parts into memory and stores them when due. `parts` must have whole versions.
    async fn insert(self: &Arc<Self>, index: &KeyIndex, parts: Vec<PartInfo>) -> Result<(), Error> {
        let mut read = stream::iter(parts)
            .map(|part| async move {
                let keys = part::keys(self.source(), &part).await?;
                Ok::<_, Error>((part.version, keys))
            })
            .buffered(PARTS_AT_ONCE);
        let mut of_version: Option<(Version, Vec<RecordKey>)> = None;
        loop {
            let next = read.try_next().await?;
            // The index reflects whole versions only, so the keys of all parts of a version are inserted at once.
            let (version, keys) = match (of_version.take(), next) {
                (Some((version, mut keys)), Some((next, more))) if version == next => {
                    keys.extend(more);
                    of_version = Some((version, keys));
                    continue;
                }
                (Some(complete), next) => {
                    of_version = next;
                    complete
                }
                (None, Some(first)) => {
                    of_version = Some(first);
                    continue;
                }
                (None, None) => break,
            };
            index.insert(version, &keys);
            if index.is_due() {
                let root = self.root_at(version);
                if let Some(batch) = self.flush(version, root).await? {
                    self.put_key_object(batch, version, root).await;
                }
            }
        }
        Ok(())
    }

    /// Drops the stored keys after they became unreadable, and reads the parts again.
    pub(crate) async fn rebuild(self: &Arc<Self>, index: &KeyIndex) -> Result<(), Error> {
        index.forget_stored();
        self.catch_up(index).await
    }

    /// Stores the keys that are only in memory, after an earlier flush has ended. Returns the stored keys, if any.
    pub(crate) async fn flush(self: &Arc<Self>, version: Version, root: Root) -> Result<Option<FlushBatch>, Error> {
        let Some(index) = self.index.get() else {
            return Ok(None);
        };
        let turn = Arc::clone(&index.storing).lock_owned().await;
        // The task owns the state. So the table cannot be closed and its index reopened during a flush.
        let state = Arc::clone(self);
        let flush = move || {
            let _turn = turn;
            if state.is_lost() {
                return None;
            }
            state.index.get().and_then(|index| index.flush(version, root))
        };
        tokio::task::spawn_blocking(flush).await.map_err(Error::Stopped)
    }

    /// Returns the number of keys that are only in memory and can be stored now.
    pub(crate) fn storable(&self) -> usize {
        self.index.get().map_or(0, |index| index.storable())
    }

    /// Returns the approximate memory use in bytes.
    pub(crate) fn bytes(&self) -> usize {
        let versions = usize::try_from(self.head().0).unwrap_or(usize::MAX);
        let keys = self.index.get().map_or(0, |index| index.bytes());
        versions.saturating_mul(BYTES_OF_VERSION).saturating_add(keys)
    }

    /// Stores keys, and writes the derived file and a checkpoint, each if due.
    pub(crate) async fn save(self: &Arc<Self>, when: WriteOccasion) -> Result<(), Error> {
        if self.is_lost() {
            return Ok(());
        }
        let due = self.index.get().is_some_and(|index| match when {
            WriteOccasion::Growing => index.is_due(),
            WriteOccasion::Closing => index.is_worth_storing(),
        });
        if due {
            let CommitBase { version, root, .. } = self.base();
            if let Some(batch) = self.flush(version, root).await? {
                self.put_key_object(batch, version, root).await;
            }
        }
        self.derive_if_due(when).await;
        self.checkpoint_if_due().await;
        Ok(())
    }
}

/// Live key lookup of a table, for checks before the commit. Keeps the table open and follows its merges.
#[derive(Debug)]
pub(crate) struct LiveLookup {
    _state: Arc<TableState>,
    index: Arc<KeyIndex>,
}

impl LiveLookup {
    pub(crate) async fn new(state: &Arc<TableState>) -> Result<Self, Error> {
        Ok(Self {
            index: state.index().await?,
            _state: Arc::clone(state),
        })
    }
}

impl KeyLookup for LiveLookup {
    fn known(&self, keys: &[RecordKey]) -> Vec<bool> {
        self.index.known(keys)
    }
}

/// Key lookup for an upload, whose commit checks only the versions after `since`. Every lookup must cover the versions
/// up to `least`; otherwise [`SnapshotLookup::end`] returns an error and all results are void.
#[derive(Debug)]
pub(crate) struct SnapshotLookup {
    _state: Arc<TableState>,
    index: Arc<KeyIndex>,
    pub(crate) since: Version,
    /// Version that every lookup must cover.
    min_indexed_version: Version,
    snapshot: SortedKeySnapshot,
    failed: Mutex<Option<Error>>,
}

impl SnapshotLookup {
    pub(crate) async fn new(state: &Arc<TableState>) -> Result<Self, Error> {
        mutate!(Bug::UploadBlind => if let Some(open) = state.index.get() {
            return Ok(Self::of(state, Arc::clone(open), state.head(), Version::EMPTY));
        });
        let index = state.index().await?;
        if index.unreadable.load(Ordering::Relaxed) {
            state.rebuild(&index).await?;
        }
        // The head may be later than `since`: commits of other owners enter the version index before their keys enter
        // the index.
        let since = index.indexed_version();
        Ok(Self::of(state, index, since, since))
    }

    fn of(state: &Arc<TableState>, index: Arc<KeyIndex>, since: Version, min_indexed_version: Version) -> Self {
        Self {
            _state: Arc::clone(state),
            index,
            since,
            min_indexed_version,
            snapshot: SortedKeySnapshot::default(),
            failed: Mutex::default(),
        }
    }

    /// Returns an error if any lookup failed. The results of all lookups are then void.
    pub(crate) fn finish(&self) -> Result<(), Error> {
        let failed = self.failed.lock().take();
        failed.map_or(Ok(()), Err)
    }
}

/// A lookup may read from disk on the calling thread, so it blocks.
impl KeyLookup for SnapshotLookup {
    fn known(&self, keys: &[RecordKey]) -> Vec<bool> {
        let known = self
            .index
            .contains_since(self.min_indexed_version, keys, Some(&self.snapshot));
        // A lookup cannot return an error, so `end` returns it.
        known.unwrap_or_else(|error| {
            *self.failed.lock() = Some(error);
            vec![false; keys.len()]
        })
    }
}

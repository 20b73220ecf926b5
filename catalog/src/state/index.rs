//! The key index of a table that is open: how it is opened, brought up to the timeline, asked and stored.
//!
//! Invariant: a table has one index at a time, and nothing of an earlier one still runs when it is opened.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use futures_util::stream::{self, StreamExt as _, TryStreamExt as _};
use parking_lot::Mutex;
use types::fault::{self, Plant};
use types::key::Known;
use types::{RecordKey, Version};

use super::runs::FAR;
use super::{Base, PARTS_AT_ONCE, State, When};
use crate::blocking::in_place;
use crate::key_store::Stored;
use crate::keys::{KeyIndex, Leaving, Ordered};
use crate::part::{self, PartInfo};
use crate::staged::runs::Runs;
use crate::{Error, Root};

/// Up to how many keys of a version go into memory.
pub(crate) const FEW: u64 = 32 << 10;
/// Roughly what a version takes in the timeline.
const BYTES_OF_VERSION: usize = 256;

impl State {
    /// The key index, opened at the first call.
    pub(crate) async fn index(self: &Arc<Self>) -> Result<Arc<KeyIndex>, Error> {
        let index = if let Some(index) = self.index.get() {
            Arc::clone(index)
        } else {
            let state = Arc::clone(self);
            // Why: opening may clear stored keys, which must not go on beside a second opening when its caller is
            // gone; in a task of its own it ends before the next one begins.
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
        let open = move || KeyIndex::open(dataset, store, stored);
        Ok(Arc::new(
            tokio::task::spawn_blocking(open).await.map_err(Error::Stopped)?,
        ))
    }

    /// Whether stored keys are of this table's history.
    async fn agrees(&self, stored: Stored) -> Result<bool, Error> {
        let Base {
            version, rows, root, ..
        } = self.base();
        if stored.version == version {
            return Ok(stored.root == root && stored.keys == rows);
        }
        if stored.version > version || stored.version == Version::EMPTY {
            return Ok(false);
        }
        let merge = self.merge_of(stored.version).await?;
        Ok(merge.root == stored.root.to_string() && merge.record_count == stored.keys)
    }

    /// Brings the index to the timeline's head: from runs where it is far behind, and from the key columns of the parts.
    pub(crate) async fn catch_up(self: &Arc<Self>, index: &KeyIndex) -> Result<(), Error> {
        if index.reflects() >= self.head() {
            return Ok(());
        }
        let _once = index.catching_up.lock().await;
        while self.head().0.saturating_sub(index.reflects().0) >= FAR {
            let Some(gap) = self.catch_up_from_runs(index).await? else {
                break;
            };
            // Why: what one run lacks, because its owner died, is no reason to do without those after it.
            self.catch_up_from_parts(index, gap.min(self.head())).await?;
        }
        self.catch_up_from_parts(index, self.head()).await
    }

    async fn catch_up_from_parts(self: &Arc<Self>, index: &KeyIndex, upto: Version) -> Result<(), Error> {
        let parts = self.parts_between(index.reflects(), upto);
        tracing::debug!(dataset = %self.dataset, parts = parts.len(), "the key index catches up");
        let mut of_few = Vec::new();
        for of_version in parts.chunk_by(|part, next| part.version == next.version) {
            if of_version.iter().map(|part| part.rows).sum::<u64>() <= FEW {
                of_few.extend_from_slice(of_version);
            } else {
                self.insert(index, std::mem::take(&mut of_few)).await?;
                self.store_or_insert(index, of_version).await?;
            }
        }
        self.insert(index, of_few).await
    }

    /// Stores the keys of a version that has many; takes them into memory only where they cannot be stored.
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

    /// Stores the keys of a version by way of files, so that some millions are in memory at most; whether it could.
    async fn store_all(self: &Arc<Self>, index: &KeyIndex, parts: &[PartInfo]) -> Result<bool, Error> {
        let Some(version) = parts.first().map(|part| part.version) else {
            return Ok(true);
        };
        let before = index.reflects();
        if let Some(leaving) = self.flush(before, self.root_at(before)).await? {
            self.put_run(leaving, before, self.root_at(before)).await;
        }
        let scratch = self.store.scratch()?;
        let mut keys = Runs::new(scratch.path());
        for part in parts {
            let some = part::keys(self.source(), part).await?;
            in_place(|| keys.insert_all(&some)).map_err(Error::Scratch)?;
        }
        in_place(|| {
            let ascending = keys.ascending().map_err(Error::Scratch)?;
            Ok(index.ingest(version, self.root_at(version), self.rows_at(version), ascending))
        })
    }

    /// Takes the keys of parts, all those of a version or none, into memory, and stores them when that is due.
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
            // Why: a version is in the index with all its parts or not at all.
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
                if let Some(leaving) = self.flush(version, root).await? {
                    self.put_run(leaving, version, root).await;
                }
            }
        }
        Ok(())
    }

    /// Gives up the stored keys after they could not be read, and reads the parts again.
    pub(crate) async fn rebuild(self: &Arc<Self>, index: &KeyIndex) -> Result<(), Error> {
        index.forget_stored();
        self.catch_up(index).await
    }

    /// Stores keys that are in memory only, after those that are on their way; answers which, if any were.
    pub(crate) async fn flush(self: &Arc<Self>, version: Version, root: Root) -> Result<Option<Leaving>, Error> {
        let Some(index) = self.index.get() else {
            return Ok(None);
        };
        let turn = Arc::clone(&index.storing).lock_owned().await;
        // Why: a table is not closed, and its index not opened again, while keys are on their way to the store.
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

    /// How many keys are in memory only and can be stored now.
    pub(crate) fn storable(&self) -> usize {
        self.index.get().map_or(0, |index| index.storable())
    }

    /// Roughly the memory it takes.
    pub(crate) fn bytes(&self) -> usize {
        let versions = usize::try_from(self.head().0).unwrap_or(usize::MAX);
        let keys = self.index.get().map_or(0, |index| index.bytes());
        versions.saturating_mul(BYTES_OF_VERSION).saturating_add(keys)
    }

    /// Stores the keys that are in memory only and writes the derived file and a checkpoint, where that is due.
    pub(crate) async fn save(self: &Arc<Self>, when: When) -> Result<(), Error> {
        if self.is_lost() {
            return Ok(());
        }
        let due = self.index.get().is_some_and(|index| match when {
            When::Growing => index.is_due(),
            When::Closing => index.is_worth_storing(),
        });
        if due {
            let Base { version, root, .. } = self.base();
            if let Some(leaving) = self.flush(version, root).await? {
                self.put_run(leaving, version, root).await;
            }
        }
        self.derive_if_due(when).await;
        self.checkpoint_if_due().await;
        Ok(())
    }
}

/// Which records a table has, for one who looks before the commit does. Keeps the table open and follows its merges.
#[derive(Debug)]
pub(crate) struct Follower {
    _state: Arc<State>,
    index: Arc<KeyIndex>,
}

impl Follower {
    pub(crate) async fn new(state: &Arc<State>) -> Result<Self, Error> {
        Ok(Self {
            index: state.index().await?,
            _state: Arc::clone(state),
        })
    }
}

impl Known for Follower {
    fn known(&self, keys: &[RecordKey]) -> Vec<bool> {
        self.index.known(keys)
    }
}

/// The same for an upload, whose commit looks only at what came after `since`: every answer has the keys of the versions
/// up to it, or none of them counts.
#[derive(Debug)]
pub(crate) struct Witness {
    _state: Arc<State>,
    index: Arc<KeyIndex>,
    pub(crate) since: Version,
    /// The version whose keys every answer must have.
    least: Version,
    often: Ordered,
    failed: Mutex<Option<Error>>,
}

impl Witness {
    pub(crate) async fn new(state: &Arc<State>) -> Result<Self, Error> {
        if fault::planted(Plant::UploadBlind)
            && let Some(index) = state.index.get()
        {
            return Ok(Self::of(state, Arc::clone(index), state.head(), Version::EMPTY));
        }
        let index = state.index().await?;
        if index.unreadable.load(Ordering::Relaxed) {
            state.rebuild(&index).await?;
        }
        // Why not the head: commits that were found rather than put are in the timeline before their keys are here.
        let since = index.reflects();
        Ok(Self::of(state, index, since, since))
    }

    fn of(state: &Arc<State>, index: Arc<KeyIndex>, since: Version, least: Version) -> Self {
        Self {
            _state: Arc::clone(state),
            index,
            since,
            least,
            often: Ordered::default(),
            failed: Mutex::default(),
        }
    }

    /// Whether every answer counts.
    pub(crate) fn end(&self) -> Result<(), Error> {
        let failed = self.failed.lock().take();
        failed.map_or(Ok(()), Err)
    }
}

/// Looks at the disk where it is asked, so it blocks.
impl Known for Witness {
    fn known(&self, keys: &[RecordKey]) -> Vec<bool> {
        let known = self.index.contains_since(self.least, keys, Some(&self.often));
        known.unwrap_or_else(|error| {
            *self.failed.lock() = Some(error);
            vec![false; keys.len()]
        })
    }
}

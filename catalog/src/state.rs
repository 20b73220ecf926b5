//! State of one table in this process, shared by its owner and its readers.
//!
//! Invariants: the version index is a durable prefix of the log. A commit that was found and not put here is made
//! durable before it is applied. When the version index shows a commit that this process put, the key index has its
//! keys already. Before a commit, the key index catches up with the version index.

mod checkpoint;
mod derived;
mod index;
mod key_objects;

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering};
use std::time::Duration;

use object_store::ObjectStore;
use object_store::path::Path;
use parking_lot::{RwLock, RwLockReadGuard};
use tokio::sync::OnceCell;
use types::{Contract, ContributionId, DatasetId, Timestamp, Version};

pub(crate) use self::derived::WriteOccasion;
pub(crate) use self::index::{LiveLookup, MAX_INSERTED_KEYS, SnapshotLookup};
use crate::blocking::BlockingPool;
use crate::key_store::KeyStore;
use crate::keys::KeyIndex;
use crate::log::{self, CommitContent};
use crate::part::{Footers, PartInfo, PartLink, PartSource, Proofs};
use crate::storage::DurableStore;
use crate::version_index::{PartSlice, VersionIndex};
use crate::{Error, Merge, Root};

/// Minimum interval between two checks of the last commit by readers.
const CONFIRM_INTERVAL: Duration = Duration::from_secs(1);
/// Number of parts that are read at once.
pub(crate) const PARTS_AT_ONCE: usize = 8;

/// Stores that all tables of a catalog share.
#[derive(Clone, Debug)]
pub(crate) struct TableStores {
    pub(crate) objects: Arc<dyn ObjectStore>,
    /// The same store as `objects`, with its durability operations.
    pub(crate) durable: Arc<dyn DurableStore>,
    pub(crate) footers: Arc<Footers>,
    pub(crate) proofs: Arc<Proofs>,
    pub(crate) blocking: Arc<BlockingPool>,
    pub(crate) store: Arc<KeyStore>,
}

/// State of one table.
#[derive(Debug)]
pub(crate) struct TableState {
    pub(crate) dataset: DatasetId,
    pub(crate) objects: Arc<dyn ObjectStore>,
    pub(crate) durable: Arc<dyn DurableStore>,
    footers: Arc<Footers>,
    proofs: Arc<Proofs>,
    pub(crate) blocking: Arc<BlockingPool>,
    pub(crate) store: Arc<KeyStore>,
    version_index: RwLock<VersionIndex>,
    /// Held while commits are read, so that concurrent callers read them once.
    refreshing: tokio::sync::Mutex<()>,
    index: OnceCell<Arc<KeyIndex>>,
    /// Number of commits in the derived file.
    derived: AtomicU64,
    /// Number of commits from which a checkpoint may be due.
    checkpoint_due: AtomicU64,
    /// Set once the log lacks the last commit of the version index, has another in its place, or ends with a deletion.
    lost: AtomicBool,
    /// Time of the latest check of the last commit, in microseconds since the epoch.
    confirmed: AtomicI64,
}

/// State that the next commit continues.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CommitBase {
    pub(crate) version: Version,
    pub(crate) rows: u64,
    pub(crate) root: Root,
    /// Number of the next commit.
    pub(crate) commit: u64,
}

impl CommitBase {
    /// State of a table that has a contract and no version.
    pub(crate) const CREATED: Self = Self {
        version: Version::EMPTY,
        rows: 0,
        root: Root::EMPTY,
        commit: 1,
    };
}

impl TableState {
    /// Reads a table: the derived file, if it is valid, and the commits after it.
    pub(crate) async fn load(backing: &TableStores, dataset: DatasetId, now: Timestamp) -> Result<Arc<Self>, Error> {
        let TableStores {
            objects,
            durable,
            footers,
            proofs,
            blocking,
            store,
        } = backing.clone();
        // Without a valid derived file every commit is read.
        let mut version_index = derived::read(&objects, dataset).await.unwrap_or_default();
        // The derived file contains all commits before this one.
        let next = version_index.next_commit();
        let apply = |number, commit| add(&mut version_index, dataset, number, commit);
        log::read_from(&objects, dataset, next, apply).await?;
        let state = Arc::new(Self {
            dataset,
            objects,
            durable,
            footers,
            proofs,
            blocking,
            store,
            derived: AtomicU64::new(next),
            checkpoint_due: AtomicU64::new(checkpoint::MIN_COMMITS_BETWEEN),
            lost: AtomicBool::new(false),
            confirmed: AtomicI64::new(now.micros()),
            version_index: RwLock::new(version_index),
            refreshing: tokio::sync::Mutex::default(),
            index: OnceCell::new(),
        });
        if state.contract().is_some() {
            state.sync_dir(&log::directory(dataset)).await?;
        }
        // A checkpoint is considered only after the derived file was written. So readers make no extra requests, and a
        // table from a build without checkpoints still gets its first one.
        if state.derive_if_due(WriteOccasion::Growing).await {
            state.checkpoint_if_due().await;
        }
        Ok(state)
    }

    /// Reads the commits after the version index, up to the head.
    ///
    /// # Errors
    /// [`Error::Deleted`] if the table was deleted. The state then stays unusable.
    pub(crate) async fn refresh(&self) -> Result<(), Error> {
        let _once = self.refreshing.lock().await;
        let next = self.version_index().next_commit();
        let mut found = Vec::new();
        // Commits are collected first and applied once they are durable.
        let keep = |number, commit: CommitContent| {
            found.push((number, commit.without_notes()));
            Ok(())
        };
        let read = log::read_from(&self.objects, self.dataset, next, keep).await;
        if !found.is_empty() {
            // The process that put the commits may have failed before they were durable.
            self.sync_dir(&log::directory(self.dataset)).await?;
            for (number, commit) in found {
                self.apply(number, commit)?;
            }
        }
        if matches!(read, Err(Error::Deleted { .. })) {
            self.lost.store(true, Ordering::Relaxed);
        }
        read
    }

    /// Verifies that the log still has the last commit of the version index. A state that fails once stays unusable.
    ///
    /// # Errors
    /// [`Error::HistoryLost`] if the commit is gone or is another one, [`Error::Deleted`] if the table was deleted.
    /// [`Error::Corrupt`] if the commit is damaged. [`Error::Storage`] if the store cannot be read.
    pub(crate) async fn confirm(&self) -> Result<(), Error> {
        // An empty log has nothing to lose.
        let Some((number, text)) = self.version_index().last_commit() else {
            return Ok(());
        };
        let path = log::path(self.dataset, number);
        if !self.is_lost() {
            let bytes = log::bytes_of(&self.objects, &path).await?;
            // The commit of a deletion is looked at as if it were missing.
            if let Some(bytes) = bytes.filter(|bytes| !log::is_deletion(self.dataset, bytes)) {
                // A damaged commit can be restored, so no history is lost. Nothing may be merged after it meanwhile.
                let damaged = |problem: String| Error::corrupt(&path, &problem);
                log::verify(&bytes).map_err(damaged)?;
                if contains(&bytes, text.as_bytes()) {
                    return Ok(());
                }
                // A commit of an older build has no checksum, so only parsing it finds damage.
                log::decode(self.dataset, number, &bytes).map_err(damaged)?;
            }
        }
        let deleted = log::was_deleted(&self.objects, self.dataset).await?;
        if !self.lost.swap(true, Ordering::Relaxed) && !deleted {
            tracing::error!(dataset = %self.dataset, %path, "the last commit of a table is gone or another");
        }
        if let Some(index) = self.index.get() {
            // The flush in progress ends before another state of the table opens the stored keys.
            drop(index.storing.lock().await);
        }
        Err(if deleted {
            Error::Deleted { dataset: self.dataset }
        } else {
            Error::HistoryLost {
                dataset: self.dataset,
                path: path.to_string(),
            }
        })
    }

    /// Makes the state unusable, and waits for the storing of keys that is under way.
    pub(crate) async fn give_up(&self) {
        self.lost.store(true, Ordering::Relaxed);
        if let Some(index) = self.index.get() {
            drop(index.storing.lock().await);
        }
    }

    /// Verifies the last commit for readers, at most once per [`CONFIRM_INTERVAL`]. The clock may go back, so both
    /// directions count.
    pub(crate) async fn confirm_at(&self, now: Timestamp) -> Result<(), Error> {
        let before = Timestamp::from_micros(self.confirmed.load(Ordering::Relaxed));
        if !self.is_lost() && now.since(before) < CONFIRM_INTERVAL && before.since(now) < CONFIRM_INTERVAL {
            return Ok(());
        }
        self.confirm().await?;
        self.confirmed.store(now.micros(), Ordering::Relaxed);
        Ok(())
    }

    /// Returns true once the log lacks the last commit of the version index, or the table was deleted.
    pub(crate) fn is_lost(&self) -> bool {
        self.lost.load(Ordering::Relaxed)
    }

    /// Returns true if requests to the store block the calling thread.
    pub(crate) fn blocks(&self) -> bool {
        self.durable.blocks()
    }

    /// Makes the entries directly below a directory of the table durable.
    pub(crate) async fn sync_dir(&self, directory: &Path) -> Result<(), Error> {
        let synced = self.durable.sync_dir(directory).await;
        synced.map_err(|error| Error::storage(directory, error))
    }

    /// Applies a commit that is in the log with this number.
    pub(crate) fn apply(&self, number: u64, commit: CommitContent) -> Result<(), Error> {
        let mut version_index = self.version_index.write();
        add(&mut version_index, self.dataset, number, commit)
    }

    pub(crate) fn contract(&self) -> Option<Arc<Contract>> {
        self.version_index().contract().cloned()
    }

    pub(crate) fn base(&self) -> CommitBase {
        let version_index = self.version_index();
        let version = version_index.head();
        CommitBase {
            version,
            rows: version_index.rows_at(version),
            root: version_index.root(),
            commit: version_index.next_commit(),
        }
    }

    pub(crate) fn head(&self) -> Version {
        self.version_index().head()
    }

    pub(crate) fn root_at(&self, version: Version) -> Root {
        self.version_index().root_at(version)
    }

    pub(crate) fn rows_at(&self, version: Version) -> u64 {
        self.version_index().rows_at(version)
    }

    pub(crate) fn locate(&self, version: Version, rows: Range<u64>) -> Vec<PartSlice> {
        self.version_index().locate(version, rows)
    }

    pub(crate) fn layout(&self, version: Version) -> Vec<PartInfo> {
        let version_index = self.version_index();
        version_index.layout(version).map(|range| range.part.clone()).collect()
    }

    pub(crate) fn parts_between(&self, after: Version, upto: Version) -> Vec<PartInfo> {
        self.version_index().parts_between(after, upto)
    }

    pub(crate) fn chain(&self, version: Version) -> Vec<PartLink> {
        self.version_index().chain(version)
    }

    pub(crate) const fn source(&self) -> PartSource<'_> {
        PartSource {
            objects: &self.objects,
            footers: &self.footers,
            proofs: &self.proofs,
            version_index: &self.version_index,
            dataset: self.dataset,
        }
    }

    /// Returns the version that a contribution became, read from its commit.
    ///
    /// # Errors
    /// [`Error::Gap`] if the log no longer has the commit of that contribution.
    pub(crate) async fn find(&self, contribution: ContributionId) -> Result<Option<Merge>, Error> {
        let Some(version) = self.version_index().find(contribution) else {
            return Ok(None);
        };
        let merge = self.merge_of(version).await?;
        if merge.contribution != contribution {
            // The commit was replaced after this process read it.
            return Err(log::missing(&self.objects, self.dataset, merge.version.0).await);
        }
        Ok(Some(merge))
    }

    /// Reads the merge of a version that the version index has.
    ///
    /// # Errors
    /// [`Error::Gap`] if the log no longer has the commit of that version.
    pub(crate) async fn merge_of(&self, version: Version) -> Result<Merge, Error> {
        // A version that is not in the version index has no commit, and the check below reports a gap.
        let number = self.version_index().commit_of(version).unwrap_or(version.0);
        match log::read(&self.objects, self.dataset, number).await? {
            Some(CommitContent::Merged(merge, _)) if merge.version == version => Ok(*merge),
            _ => Err(log::missing(&self.objects, self.dataset, number).await),
        }
    }

    pub(crate) fn version_index(&self) -> RwLockReadGuard<'_, VersionIndex> {
        self.version_index.read()
    }
}

/// Returns true if the text occurs in the bytes.
fn contains(bytes: &[u8], text: &[u8]) -> bool {
    text.is_empty() || bytes.windows(text.len()).any(|window| window == text)
}

fn add(version_index: &mut VersionIndex, dataset: DatasetId, number: u64, commit: CommitContent) -> Result<(), Error> {
    version_index.apply(number, commit, || log::path(dataset, number).to_string())
}

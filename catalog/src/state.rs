//! What this process knows of one table, shared by its owner and its readers.
//!
//! Invariant: the timeline is a prefix of the log. The key index is never behind what the owner committed in this
//! process when the timeline shows it, and before a commit it is brought up to the timeline.

use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard};

use futures_util::stream::{self, StreamExt as _, TryStreamExt as _};
use object_store::path::Path;
use object_store::{ObjectStore, ObjectStoreExt as _, PutMode, PutPayload};
use tokio::sync::OnceCell;
use types::{Contract, ContributionId, DatasetId, RecordKey, Version};

use crate::key_store::{KeyStore, Stored};
use crate::keys::KeyIndex;
use crate::log::{self, Commit};
use crate::part::{self, PartInfo};
use crate::timeline::{Slice, Timeline};
use crate::{Error, Merge, Root};

/// How many parts are read at once.
pub(crate) const PARTS_AT_ONCE: usize = 8;
/// The least number of versions between two derived files; beyond it they are spaced in proportion to the table.
const DERIVED_EVERY: u64 = 256;
const DERIVED_SHARE: u64 = 8;

/// One table.
#[derive(Debug)]
pub(crate) struct State {
    pub(crate) dataset: DatasetId,
    pub(crate) objects: Arc<dyn ObjectStore>,
    store: Arc<KeyStore>,
    timeline: RwLock<Timeline>,
    /// Held while commits are read, so that it is done once.
    refreshing: tokio::sync::Mutex<()>,
    index: OnceCell<Arc<KeyIndex>>,
    /// The version of the derived file.
    derived: AtomicU64,
}

/// Where the next commit starts from.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Base {
    pub(crate) version: Version,
    pub(crate) rows: u64,
    pub(crate) root: Root,
}

impl State {
    /// Reads the table: the derived file, if it is good, and the commits after it.
    pub(crate) async fn load(
        objects: Arc<dyn ObjectStore>,
        store: Arc<KeyStore>,
        dataset: DatasetId,
    ) -> Result<Self, Error> {
        let timeline = read_derived(&objects, dataset).await.unwrap_or_default();
        let state = Self {
            dataset,
            objects,
            store,
            derived: AtomicU64::new(timeline.head().0),
            timeline: RwLock::new(timeline),
            refreshing: tokio::sync::Mutex::default(),
            index: OnceCell::new(),
        };
        state.refresh().await?;
        state.derive_if_due().await;
        Ok(state)
    }

    /// Reads the commits that came since, up to the head.
    pub(crate) async fn refresh(&self) -> Result<(), Error> {
        let _once = self.refreshing.lock().await;
        let next = self.timeline().next_commit();
        log::read_from(&self.objects, self.dataset, next, |commit| self.apply(commit)).await
    }

    /// Adds a commit that is in the log.
    pub(crate) fn apply(&self, commit: Commit) -> Result<(), Error> {
        let mut timeline = self.timeline.write().unwrap_or_else(PoisonError::into_inner);
        let number = timeline.next_commit();
        timeline.apply(commit, || log::path(self.dataset, number).to_string())
    }

    pub(crate) fn contract(&self) -> Option<Arc<Contract>> {
        self.timeline().contract().cloned()
    }

    pub(crate) fn base(&self) -> Base {
        let timeline = self.timeline();
        let version = timeline.head();
        Base {
            version,
            rows: timeline.rows_at(version),
            root: timeline.root(),
        }
    }

    pub(crate) fn head(&self) -> Version {
        self.timeline().head()
    }

    pub(crate) fn rows_at(&self, version: Version) -> u64 {
        self.timeline().rows_at(version)
    }

    pub(crate) fn locate(&self, rows: Range<u64>) -> Vec<Slice> {
        self.timeline().locate(rows)
    }

    pub(crate) fn parts_between(&self, after: Version, upto: Version) -> Vec<PartInfo> {
        self.timeline().parts_between(after, upto)
    }

    /// The version that a contribution became, as its commit tells it.
    pub(crate) async fn find(&self, contribution: ContributionId) -> Result<Option<Merge>, Error> {
        let Some(version) = self.timeline().find(contribution) else {
            return Ok(None);
        };
        Ok(Some(self.merge_of(version).await?))
    }

    /// The merge of a version that is in the timeline.
    pub(crate) async fn merge_of(&self, version: Version) -> Result<Merge, Error> {
        match log::read(&self.objects, self.dataset, version.0).await? {
            Some(Commit::Merged(merge, _)) => Ok(*merge),
            _ => Err(Error::Gap {
                path: log::path(self.dataset, version.0).to_string(),
            }),
        }
    }

    /// The key index, opened at the first call.
    pub(crate) async fn index(&self) -> Result<&Arc<KeyIndex>, Error> {
        let index = self.index.get_or_try_init(|| self.open_index()).await?;
        self.catch_up(index).await?;
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
        let Base { version, rows, root } = self.base();
        if stored.version == version {
            return Ok(stored.root == root && stored.keys == rows);
        }
        if stored.version > version || stored.version == Version::EMPTY {
            return Ok(false);
        }
        let merge = self.merge_of(stored.version).await?;
        Ok(merge.root == stored.root.to_string() && merge.record_count == stored.keys)
    }

    /// Brings the index to the timeline's head from the key columns of the parts it lacks.
    pub(crate) async fn catch_up(&self, index: &KeyIndex) -> Result<(), Error> {
        if index.reflects() >= self.head() {
            return Ok(());
        }
        let _once = index.catching_up.lock().await;
        let parts = self.parts_between(index.reflects(), self.head());
        tracing::debug!(dataset = %self.dataset, parts = parts.len(), "the key index catches up");
        let mut read = stream::iter(parts)
            .map(|part| async move {
                let keys = part::keys(&self.objects, self.dataset, &part).await?;
                Ok::<_, Error>((part.version, keys))
            })
            .buffered(PARTS_AT_ONCE);
        while let Some((version, keys)) = read.try_next().await? {
            index.insert(version, &keys);
            if index.is_due() {
                let merge = self.merge_of(version).await?;
                let root = merge.root.parse().unwrap_or(Root::EMPTY);
                self.flush(version, root).await?;
            }
        }
        Ok(())
    }

    /// For each key, whether the table has it at the timeline's head or later.
    pub(crate) async fn contains(&self, keys: &[RecordKey]) -> Result<Vec<bool>, Error> {
        let index = self.index().await?;
        match index.contains(keys) {
            Err(error) => {
                tracing::warn!(dataset = %self.dataset, %error, "stored keys cannot be read; reading the parts again");
                index.forget_stored();
                self.catch_up(index).await?;
                index.contains(keys)
            }
            found => found,
        }
    }

    /// Stores keys that are in memory only.
    pub(crate) async fn flush(&self, version: Version, root: Root) -> Result<(), Error> {
        let Some(index) = self.index.get().map(Arc::clone) else {
            return Ok(());
        };
        tokio::task::spawn_blocking(move || index.flush(version, root))
            .await
            .map_err(Error::Stopped)
    }

    /// Writes the derived file when the table has outgrown it. What fails is only logged: it can be written again.
    pub(crate) async fn derive_if_due(&self) {
        let (head, encoded) = {
            let timeline = self.timeline();
            let head = timeline.head().0;
            let written = self.derived.load(Ordering::Relaxed);
            if head < written.saturating_add(DERIVED_EVERY.max(written / DERIVED_SHARE)) {
                return;
            }
            (head, timeline.encode(self.dataset))
        };
        let Some(bytes) = encoded else { return };
        let path = derived_path(self.dataset);
        match self
            .objects
            .put_opts(&path, PutPayload::from(bytes), PutMode::Overwrite.into())
            .await
        {
            Ok(_) => self.derived.store(head, Ordering::Relaxed),
            Err(error) => tracing::warn!(%path, %error, "a derived file could not be written"),
        }
    }

    fn timeline(&self) -> RwLockReadGuard<'_, Timeline> {
        self.timeline.read().unwrap_or_else(PoisonError::into_inner)
    }
}

fn derived_path(dataset: DatasetId) -> Path {
    Path::from(format!("{dataset}/_sluice/timeline"))
}

/// The timeline in the derived file, if the log has the very commit that the file ends with.
async fn read_derived(objects: &Arc<dyn ObjectStore>, dataset: DatasetId) -> Option<Timeline> {
    let path = derived_path(dataset);
    let read = async { objects.get(&path).await?.bytes().await };
    let bytes = read.await.ok()?;
    let timeline = Timeline::decode(dataset, &bytes);
    let Some(timeline) = timeline else {
        tracing::warn!(%path, "a derived file is damaged and ignored");
        return None;
    };
    let head = timeline.head();
    let commit = log::read(objects, dataset, head.0).await.ok()?;
    match commit {
        Some(Commit::Merged(merge, _))
            if merge.root == timeline.root().to_string() && merge.record_count == timeline.rows_at(head) =>
        {
            Some(timeline)
        }
        _ => {
            tracing::warn!(%path, "a derived file is of another history and ignored");
            None
        }
    }
}

//! What this process knows of one table, shared by its owner and its readers.
//!
//! Invariant: the timeline is a durable prefix of the log: a commit that was found rather than put is settled before it
//! is shown. The key index is never behind what the owner committed in this process when the timeline shows it, and
//! before a commit it is brought up to the timeline.

mod checkpoint;
mod derived;
mod index;
mod runs;

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering};
use std::time::Duration;

use object_store::ObjectStore;
use object_store::path::Path;
use parking_lot::{RwLock, RwLockReadGuard};
use tokio::sync::OnceCell;
use types::{Contract, ContributionId, DatasetId, Timestamp, Version};

pub(crate) use self::derived::When;
pub(crate) use self::index::{FEW, Follower, Witness};
use crate::key_store::KeyStore;
use crate::keys::KeyIndex;
use crate::log::{self, Commit};
use crate::part::{Footers, Link, PartInfo, Proofs, Source};
use crate::storage::DurableStore;
use crate::timeline::{Slice, Timeline};
use crate::{Error, Merge, Root};

/// The interval between two looks of readers at the last commit.
const CONFIRMED: Duration = Duration::from_secs(1);
/// How many parts are read at once.
pub(crate) const PARTS_AT_ONCE: usize = 8;

/// What every table of a catalog stands on.
#[derive(Clone, Debug)]
pub(crate) struct Backing {
    pub(crate) objects: Arc<dyn ObjectStore>,
    /// The same store.
    pub(crate) durable: Arc<dyn DurableStore>,
    pub(crate) footers: Arc<Footers>,
    pub(crate) proofs: Arc<Proofs>,
    pub(crate) store: Arc<KeyStore>,
}

/// One table.
#[derive(Debug)]
pub(crate) struct State {
    pub(crate) dataset: DatasetId,
    pub(crate) objects: Arc<dyn ObjectStore>,
    pub(crate) durable: Arc<dyn DurableStore>,
    footers: Arc<Footers>,
    proofs: Arc<Proofs>,
    pub(crate) store: Arc<KeyStore>,
    timeline: RwLock<Timeline>,
    /// Held while commits are read, so that it is done once.
    refreshing: tokio::sync::Mutex<()>,
    index: OnceCell<Arc<KeyIndex>>,
    /// How many commits the derived file has.
    derived: AtomicU64,
    /// From how many commits on it is looked whether a checkpoint is due.
    checkpoint_due: AtomicU64,
    /// Set once the log lacks the last commit of the timeline, or has another in its place.
    lost: AtomicBool,
    /// The time of the latest look at the last commit, in microseconds since the epoch.
    confirmed: AtomicI64,
}

/// Where the next commit starts from.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Base {
    pub(crate) version: Version,
    pub(crate) rows: u64,
    pub(crate) root: Root,
    /// The number of the next commit.
    pub(crate) commit: u64,
}

impl State {
    /// Reads the table: the derived file, if it is good, and the commits after it.
    pub(crate) async fn load(backing: &Backing, dataset: DatasetId, now: Timestamp) -> Result<Arc<Self>, Error> {
        let Backing {
            objects,
            durable,
            footers,
            proofs,
            store,
        } = backing.clone();
        let mut timeline = derived::read(&objects, dataset).await.unwrap_or_default();
        let next = timeline.next_commit();
        let apply = |number, commit| add(&mut timeline, dataset, number, commit);
        log::read_from(&objects, dataset, next, apply).await?;
        let state = Arc::new(Self {
            dataset,
            objects,
            durable,
            footers,
            proofs,
            store,
            derived: AtomicU64::new(next),
            checkpoint_due: AtomicU64::new(checkpoint::LEAST),
            lost: AtomicBool::new(false),
            confirmed: AtomicI64::new(now.micros()),
            timeline: RwLock::new(timeline),
            refreshing: tokio::sync::Mutex::default(),
            index: OnceCell::new(),
        });
        if state.contract().is_some() {
            state.settle(&log::directory(dataset)).await?;
        }
        // Why only then: a table that is read costs no look for what its owner writes, and one that was never written
        // with checkpoints gets its first.
        if state.derive_if_due(When::Growing).await {
            state.checkpoint_if_due().await;
        }
        Ok(state)
    }

    /// Reads the commits that came since, up to the head.
    pub(crate) async fn refresh(&self) -> Result<(), Error> {
        let _once = self.refreshing.lock().await;
        let next = self.timeline().next_commit();
        let mut found = Vec::new();
        let keep = |number, commit: Commit| {
            found.push((number, commit.without_notes()));
            Ok(())
        };
        let read = log::read_from(&self.objects, self.dataset, next, keep).await;
        if !found.is_empty() {
            // Why: whoever put them may have died, or had an error, before they were durable.
            self.settle(&log::directory(self.dataset)).await?;
            for (number, commit) in found {
                self.apply(number, commit)?;
            }
        }
        read
    }

    /// Verifies that the log still has the last commit of the timeline. A state that fails once stays unusable.
    ///
    /// # Errors
    /// [`Error::HistoryLost`].
    pub(crate) async fn confirm(&self) -> Result<(), Error> {
        let Some((number, text)) = self.timeline().last_commit() else {
            return Ok(());
        };
        let path = log::path(self.dataset, number);
        if !self.is_lost() {
            let bytes = log::bytes_of(&self.objects, &path).await?;
            if bytes.is_some_and(|bytes| contains(&bytes, text.as_bytes())) {
                return Ok(());
            }
            self.lost.store(true, Ordering::Relaxed);
            tracing::error!(dataset = %self.dataset, %path, "the last commit of a table is gone or another");
        }
        if let Some(index) = self.index.get() {
            // Keys that are on their way to the store arrive before another state of the table opens it.
            drop(index.storing.lock().await);
        }
        Err(Error::HistoryLost {
            dataset: self.dataset,
            path: path.to_string(),
        })
    }

    /// The same for readers, at most once in [`CONFIRMED`].
    pub(crate) async fn confirm_at(&self, now: Timestamp) -> Result<(), Error> {
        let before = Timestamp::from_micros(self.confirmed.load(Ordering::Relaxed));
        if !self.is_lost() && now.since(before) < CONFIRMED && before.since(now) < CONFIRMED {
            return Ok(());
        }
        self.confirm().await?;
        self.confirmed.store(now.micros(), Ordering::Relaxed);
        Ok(())
    }

    /// Returns true once the log lacks the last commit of the timeline.
    pub(crate) fn is_lost(&self) -> bool {
        self.lost.load(Ordering::Relaxed)
    }

    /// Whether the store blocks the threads that use it.
    pub(crate) fn blocks(&self) -> bool {
        self.durable.blocks()
    }

    /// Makes durable what can be read directly below a directory of the table.
    pub(crate) async fn settle(&self, directory: &Path) -> Result<(), Error> {
        let settled = self.durable.settle(directory).await;
        settled.map_err(|error| Error::storage(directory, error))
    }

    /// Adds a commit that is in the log under this number.
    pub(crate) fn apply(&self, number: u64, commit: Commit) -> Result<(), Error> {
        let mut timeline = self.timeline.write();
        add(&mut timeline, self.dataset, number, commit)
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
            commit: timeline.next_commit(),
        }
    }

    pub(crate) fn head(&self) -> Version {
        self.timeline().head()
    }

    pub(crate) fn root_at(&self, version: Version) -> Root {
        self.timeline().root_at(version)
    }

    pub(crate) fn rows_at(&self, version: Version) -> u64 {
        self.timeline().rows_at(version)
    }

    pub(crate) fn locate(&self, version: Version, rows: Range<u64>) -> Vec<Slice> {
        self.timeline().locate(version, rows)
    }

    pub(crate) fn layout(&self, version: Version) -> Vec<PartInfo> {
        let timeline = self.timeline();
        timeline.layout(version).map(|piece| piece.part.clone()).collect()
    }

    pub(crate) fn parts_between(&self, after: Version, upto: Version) -> Vec<PartInfo> {
        self.timeline().parts_between(after, upto)
    }

    pub(crate) fn chain(&self, version: Version) -> Vec<Link> {
        self.timeline().chain(version)
    }

    pub(crate) const fn source(&self) -> Source<'_> {
        Source {
            objects: &self.objects,
            footers: &self.footers,
            proofs: &self.proofs,
            timeline: &self.timeline,
            dataset: self.dataset,
        }
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
        let number = self.timeline().commit_of(version).unwrap_or(version.0);
        match log::read(&self.objects, self.dataset, number).await? {
            Some(Commit::Merged(merge, _)) if merge.version == version => Ok(*merge),
            _ => Err(Error::gap(&log::path(self.dataset, number))),
        }
    }

    pub(crate) fn timeline(&self) -> RwLockReadGuard<'_, Timeline> {
        self.timeline.read()
    }
}

/// Returns true if the text occurs in the bytes.
fn contains(bytes: &[u8], text: &[u8]) -> bool {
    text.is_empty() || bytes.windows(text.len()).any(|window| window == text)
}

fn add(timeline: &mut Timeline, dataset: DatasetId, number: u64, commit: Commit) -> Result<(), Error> {
    timeline.apply(number, commit, || log::path(dataset, number).to_string())
}

//! The tables of an object store, as this process knows them.
//!
//! Invariant: a table has one state per process, which its owner and its readers share. So a version can be read as
//! soon as its merge has returned.

use std::path::PathBuf;
use std::sync::Arc;

use object_store::ObjectStore;
use types::key::KeyLookup;
use types::{Clock, Contract, DatasetId, Timestamp, Version};

use crate::compaction::{CompactionState, Policy};
use crate::key_store::KeyStore;
use crate::state::{LiveLookup, TableState, TableStores};
use crate::storage::DurableStore;
use crate::tables::Tables;
use crate::{Error, Reserve, Snapshot, Table};

/// All tables of an object store. A clone shares their states.
#[derive(Clone, Debug)]
pub struct Catalog {
    shared: Arc<CatalogState>,
    compacting: Option<Arc<CompactionState>>,
}

#[derive(Debug)]
struct CatalogState {
    backing: TableStores,
    clock: Arc<dyn Clock>,
    tables: Arc<Tables>,
}

impl Catalog {
    /// Opens the tables in `objects`. Blocks until the key indexes in `index_directory` are open. That directory
    /// belongs to this process. Its content is derived: it may be deleted while no process uses it.
    ///
    /// # Errors
    /// [`Error::IndexLocked`] if another process has the directory open, [`Error::Index`] if it cannot be opened.
    pub fn open(
        objects: Arc<dyn DurableStore>,
        index_directory: PathBuf,
        clock: Arc<dyn Clock>,
    ) -> Result<Self, Error> {
        let backing = TableStores {
            durable: Arc::clone(&objects),
            objects,
            footers: Arc::default(),
            proofs: Arc::default(),
            blocking: Arc::default(),
            store: Arc::new(KeyStore::open(index_directory)?),
        };
        Ok(Self {
            shared: Arc::new(CatalogState {
                backing,
                clock,
                tables: Arc::default(),
            }),
            compacting: None,
        })
    }

    /// Enables compaction by this policy. Without a policy [`Table::compaction`] returns `None`.
    #[must_use]
    pub fn with_compaction(self, policy: Policy) -> Self {
        Self {
            compacting: Some(Arc::new(CompactionState::new(policy))),
            ..self
        }
    }

    /// Keeps `reserve` bytes free on the disk of the index directory. No upload is staged, and no table is compacted,
    /// if that would leave less.
    #[must_use]
    pub fn with_reserve(self, reserve: Reserve) -> Self {
        self.shared.backing.store.set_reserve(reserve);
        self
    }

    /// Returns the table of a dataset, for its owner. The table exists in the store after its first merge.
    ///
    /// # Errors
    /// [`Error::ContractMismatch`] if the table has another contract.
    pub async fn table(&self, id: DatasetId, contract: &Arc<Contract>) -> Result<Table, Error> {
        let CatalogState { clock, tables, .. } = &*self.shared;
        let state = self.state(id).await?;
        let state = match state.confirm().await {
            // A state that lost its history stays unusable. The next one is read from the log as it is now, for example
            // after an administrator accepted the loss.
            Err(Error::HistoryLost { .. }) => self.state(id).await?,
            confirmed => confirmed.map(|()| state)?,
        };
        let mut table = Table::open(state, contract, Arc::clone(clock), Arc::clone(tables)).await?;
        table.compacting.clone_from(&self.compacting);
        Ok(table)
    }

    /// Returns a dataset at a version, or at the latest known version if `version` is `None`. Reads the log for a
    /// version that this process does not know. Returns `None` if the log does not have it either. A dataset without a
    /// table has version 0.
    pub async fn snapshot(&self, id: DatasetId, version: Option<Version>) -> Result<Option<Snapshot>, Error> {
        let state = self.confirmed(id).await?;
        // The log is read only if the version may be new, so a read of a known version does not look for new commits.
        if state.contract().is_none() || version.is_some_and(|version| version > state.head()) {
            state.refresh().await?;
        }
        let head = state.head();
        let version = version.unwrap_or(head);
        Ok((version <= head).then(|| Snapshot::new(state, version)))
    }

    /// Returns a live lookup of the dataset's record keys, for a dry run. The lookup follows the merges of this
    /// process.
    pub async fn known(&self, id: DatasetId) -> Result<Arc<dyn KeyLookup>, Error> {
        let state = self.confirmed(id).await?;
        // The log is read first, so that the keys of what another process has merged are known.
        state.refresh().await?;
        Ok(Arc::new(LiveLookup::new(&state).await?))
    }

    /// Drops what this process has of a table: its state, and the keys that are stored of it. For a table that was
    /// deleted; of any other, both are made again.
    ///
    /// # Errors
    /// [`Error::Index`] if the stored keys cannot be removed.
    pub async fn forget_table(&self, id: DatasetId) -> Result<(), Error> {
        if let Some(state) = self.shared.tables.remove(id) {
            state.give_up().await;
        }
        let store = Arc::clone(&self.shared.backing.store);
        let cleared = tokio::task::spawn_blocking(move || store.clear(id)).await;
        cleared.map_err(Error::Stopped)?.map_err(Error::Index)
    }

    /// Returns the datasets of which keys are stored in the index directory.
    pub(crate) async fn datasets_with_keys(&self) -> Result<Vec<DatasetId>, Error> {
        let store = Arc::clone(&self.shared.backing.store);
        let datasets = tokio::task::spawn_blocking(move || store.datasets()).await;
        datasets.map_err(Error::Stopped)?.map_err(Error::Index)
    }

    pub(crate) fn now(&self) -> Timestamp {
        self.shared.clock.now()
    }

    #[cfg(test)]
    pub(crate) fn key_store(&self) -> &Arc<KeyStore> {
        &self.shared.backing.store
    }

    /// Drops the stored keys of a dataset, as a read error would.
    #[cfg(test)]
    pub(crate) async fn give_up_keys(&self, id: DatasetId) {
        let state = self.state(id).await.unwrap();
        state.index().await.unwrap().forget_stored();
    }

    pub(crate) fn objects(&self) -> &Arc<dyn ObjectStore> {
        &self.shared.backing.objects
    }

    pub(crate) fn durable(&self) -> &Arc<dyn DurableStore> {
        &self.shared.backing.durable
    }

    /// The state of a table for readers. One whose last commit is gone from the log is read anew.
    pub(crate) async fn confirmed(&self, id: DatasetId) -> Result<Arc<TableState>, Error> {
        let state = self.state(id).await?;
        match state.confirm_at(self.shared.clock.now()).await {
            Err(Error::HistoryLost { .. }) => self.state(id).await,
            confirmed => confirmed.map(|()| state),
        }
    }

    pub(crate) async fn state(&self, id: DatasetId) -> Result<Arc<TableState>, Error> {
        let cell = self.shared.tables.get(id);
        let load = || TableState::load(&self.shared.backing, id, self.shared.clock.now());
        cell.get_or_try_init(load).await.map(Arc::clone)
    }
}

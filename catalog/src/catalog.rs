//! The tables of a store, as this process knows them.
//!
//! Invariant: a table has one state per process, shared by its owner and its readers, so that a version can be read as
//! soon as its merge returned.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use object_store::ObjectStore;
use tokio::sync::OnceCell;
use types::key::Known;
use types::{Clock, Contract, DatasetId, Version};

use crate::key_store::KeyStore;
use crate::state::State;
use crate::{Error, Snapshot, Table};

/// Every table of an object store. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Catalog {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    objects: Arc<dyn ObjectStore>,
    store: Arc<KeyStore>,
    clock: Arc<dyn Clock>,
    tables: Mutex<HashMap<DatasetId, Arc<OnceCell<Arc<State>>>>>,
}

impl Catalog {
    /// Opens the tables in `objects`, with the derived key indexes in `index_directory`, which belongs to this process
    /// and may be deleted whenever no process uses it. Blocks for as long as opening the index takes.
    pub fn open(objects: Arc<dyn ObjectStore>, index_directory: PathBuf, clock: Arc<dyn Clock>) -> Result<Self, Error> {
        let store = Arc::new(KeyStore::open(index_directory)?);
        Ok(Self {
            shared: Arc::new(Shared {
                objects,
                store,
                clock,
                tables: Mutex::default(),
            }),
        })
    }

    /// The table of a dataset, for its owner. It exists in the store after its first merge.
    ///
    /// # Errors
    /// [`Error::ContractMismatch`] where the table has another contract.
    pub async fn table(&self, id: DatasetId, contract: &Arc<Contract>) -> Result<Table, Error> {
        Table::open(self.state(id).await?, contract, Arc::clone(&self.shared.clock)).await
    }

    /// The table of a dataset at a version, the latest known here if `None`. A version not known yet is looked for in
    /// the log; `None` where there is none. A dataset without a table is at version 0.
    pub async fn snapshot(&self, id: DatasetId, version: Option<Version>) -> Result<Option<Snapshot>, Error> {
        let state = self.state(id).await?;
        if state.contract().is_none() || version.is_some_and(|version| version > state.head()) {
            state.refresh().await?;
        }
        let head = state.head();
        let version = version.unwrap_or(head);
        Ok((version <= head).then(|| Snapshot::new(state, version)))
    }

    /// Which records a dataset has now, for a dry run; follows the merges of this process.
    pub async fn known(&self, id: DatasetId) -> Result<Arc<dyn Known>, Error> {
        let state = self.state(id).await?;
        state.refresh().await?;
        Ok(Arc::clone(state.index().await?) as Arc<dyn Known>)
    }

    async fn state(&self, id: DatasetId) -> Result<Arc<State>, Error> {
        let cell = {
            let mut tables = self.shared.tables.lock().unwrap_or_else(PoisonError::into_inner);
            Arc::clone(tables.entry(id).or_default())
        };
        let load = || async {
            let (objects, store) = (Arc::clone(&self.shared.objects), Arc::clone(&self.shared.store));
            State::load(objects, store, id).await.map(Arc::new)
        };
        cell.get_or_try_init(load).await.map(Arc::clone)
    }
}

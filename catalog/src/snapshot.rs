//! Reads of one version of a table.
//!
//! Invariant: the rows of a snapshot and their order never change, whichever versions are merged later.

use std::ops::Range;
use std::sync::Arc;

use arrow::array::RecordBatch;
use futures_util::stream::{self, BoxStream, StreamExt as _, TryStreamExt as _};
use types::{Contract, DatasetId, Proof, Version};

use crate::blocking::BlockingPool;
use crate::key_store::KeyStore;
use crate::part::{self, PartInfo, PartLink, SelectedColumns};
use crate::state::TableState;
use crate::version_index::PartSlice;
use crate::{Error, Merge, Root};

/// Selection of columns for a read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Columns {
    /// Columns of the contract, and the extra members if the contract allows them.
    Records,
    /// Columns of the contract, and [`crate::HIDDEN_COLUMNS`].
    All,
}

impl Columns {
    const fn of(self, contract: &Contract) -> SelectedColumns<'_> {
        match self {
            Self::Records => SelectedColumns::Contract(contract),
            Self::All => SelectedColumns::All(contract),
        }
    }
}

/// One version of a table. A clone shares the table's state.
#[derive(Clone, Debug)]
pub struct Snapshot {
    state: Arc<TableState>,
    contract: Option<Arc<Contract>>,
    version: Version,
    rows: u64,
}

impl Snapshot {
    /// Creates a snapshot of a version that the version index has.
    pub(crate) fn new(state: Arc<TableState>, version: Version) -> Self {
        let rows = state.rows_at(version);
        Self {
            contract: state.contract(),
            version,
            rows,
            state,
        }
    }

    pub(crate) fn state(&self) -> &TableState {
        &self.state
    }

    /// Returns the id of the dataset.
    pub fn dataset(&self) -> DatasetId {
        self.state.dataset
    }

    /// Returns the number of the version.
    pub const fn version(&self) -> Version {
        self.version
    }

    /// Returns the number of rows of the version.
    pub const fn record_count(&self) -> u64 {
        self.rows
    }

    /// Returns the contract, or `None` before the first merge.
    pub const fn contract(&self) -> Option<&Arc<Contract>> {
        self.contract.as_ref()
    }

    /// Returns the content root of any version of the table. Returns `None` if this process does not know the version.
    pub fn root_at(&self, version: Version) -> Option<Root> {
        (version <= self.state.head()).then(|| self.state.root_at(version))
    }

    /// Returns the same table at another version. Returns `None` if this process does not know the version.
    #[must_use]
    pub fn at(&self, version: Version) -> Option<Self> {
        (version <= self.state.head()).then(|| Self::new(Arc::clone(&self.state), version))
    }

    /// Returns the latest version of the table that this process knows, without reading the log.
    #[must_use]
    pub fn latest(&self) -> Self {
        Self::new(Arc::clone(&self.state), self.state.head())
    }

    /// Returns the parts of the version in the order of its rows. Compacted parts replace small ones where possible.
    pub fn parts(&self) -> Vec<PartInfo> {
        self.state.layout(self.version)
    }

    /// Returns the proofs of these parts, for a reader that opens the files itself.
    ///
    /// # Errors
    /// [`Error::Corrupt`] if a commit with the hashes of a part is damaged, or if the commit has none and the part is
    /// damaged.
    pub async fn proofs(&self, parts: &[PartInfo]) -> Result<Vec<Arc<Proof>>, Error> {
        let mut proofs = Vec::with_capacity(parts.len());
        for part in parts {
            proofs.push(part::proof(self.state.source(), part).await?);
        }
        Ok(proofs)
    }

    /// Returns the same parts, each with the content root after its last row.
    pub fn chain(&self) -> Vec<PartLink> {
        self.state.chain(self.version)
    }

    /// Returns what an export of the version is encoded with: its places, and the store with the scratch files.
    pub(crate) fn encoding(&self) -> (Arc<BlockingPool>, Arc<KeyStore>) {
        (Arc::clone(&self.state.blocking), Arc::clone(&self.state.store))
    }

    /// Returns the size of the version's parts in bytes.
    pub fn bytes(&self) -> u64 {
        self.parts().iter().map(|part| part.bytes).sum()
    }

    /// Returns the merge that made the version, read from its commit. Returns `None` for version 0.
    pub async fn merge(&self) -> Result<Option<Merge>, Error> {
        if self.version == Version::EMPTY {
            return Ok(None);
        }
        self.state.merge_of(self.version).await.map(Some)
    }

    /// Returns up to `limit` rows from row index `offset` on, in the columns of the contract. Opens only the parts that
    /// contain them.
    pub async fn page(&self, offset: u64, limit: usize) -> Result<Vec<RecordBatch>, Error> {
        self.page_of(Columns::Records, offset, limit).await
    }

    /// Returns a page like [`Self::page`], with the selected columns.
    pub async fn page_of(&self, columns: Columns, offset: u64, limit: usize) -> Result<Vec<RecordBatch>, Error> {
        let rows = offset..offset.saturating_add(limit as u64);
        self.stream(columns, rows).try_collect().await
    }

    /// Streams the rows with these indexes in order, in batches. At most one small part, or one row group of a large
    /// part, is in memory at a time.
    pub fn stream(&self, columns: Columns, rows: Range<u64>) -> BoxStream<'static, Result<RecordBatch, Error>> {
        let Some(contract) = self.contract.clone() else {
            return stream::empty().boxed();
        };
        // Rows of later versions are cut off. A page beyond the end is empty.
        let rows = rows.start..rows.end.min(self.rows);
        let slices = if rows.is_empty() {
            Vec::new()
        } else {
            self.state.locate(self.version, rows)
        };
        let state = Arc::clone(&self.state);
        let open = move |slice: PartSlice| {
            let (state, contract) = (Arc::clone(&state), Arc::clone(&contract));
            async move {
                let selected = columns.of(&contract);
                part::open(state.source(), &slice.part, selected, slice.rows).await
            }
        };
        // Parts are opened one after the other. A caller that reads many versions at once would otherwise have several
        // parts of each in memory.
        stream::iter(slices).then(open).try_flatten().boxed()
    }
}

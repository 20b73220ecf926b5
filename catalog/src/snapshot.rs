//! A version of a table, to be read.
//!
//! Invariant: the rows of a snapshot and their order never change, whatever is merged after it.

use std::ops::Range;
use std::sync::Arc;

use arrow::array::RecordBatch;
use futures_util::stream::{self, BoxStream, StreamExt as _, TryStreamExt as _};
use types::{Contract, DatasetId, Proof, Version};

use crate::part::{self, Link, PartInfo, Selected};
use crate::state::State;
use crate::timeline::Slice;
use crate::{Error, Merge, Root};

/// Which columns are read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Columns {
    /// Those of the contract, with the extra members where it allows them.
    Records,
    /// Those and [`crate::HIDDEN`].
    All,
}

impl Columns {
    const fn of(self, contract: &Contract) -> Selected<'_> {
        match self {
            Self::Records => Selected::Contract(contract),
            Self::All => Selected::All(contract),
        }
    }
}

/// One version of a table. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Snapshot {
    state: Arc<State>,
    contract: Option<Arc<Contract>>,
    version: Version,
    rows: u64,
}

impl Snapshot {
    /// The table at a version that its timeline has.
    pub(crate) fn new(state: Arc<State>, version: Version) -> Self {
        let rows = state.rows_at(version);
        Self {
            contract: state.contract(),
            version,
            rows,
            state,
        }
    }

    /// The dataset.
    pub fn dataset(&self) -> DatasetId {
        self.state.dataset
    }

    /// The version.
    pub const fn version(&self) -> Version {
        self.version
    }

    /// How many rows it has.
    pub const fn record_count(&self) -> u64 {
        self.rows
    }

    /// The contract; none before the first merge.
    pub const fn contract(&self) -> Option<&Arc<Contract>> {
        self.contract.as_ref()
    }

    /// The content root of a version of the table, whether or not it is this one; none where this process does not know
    /// the version.
    pub fn root_at(&self, version: Version) -> Option<Root> {
        (version <= self.state.head()).then(|| self.state.root_at(version))
    }

    /// The same table at another version; none where this process does not know the version.
    #[must_use]
    pub fn at(&self, version: Version) -> Option<Self> {
        (version <= self.state.head()).then(|| Self::new(Arc::clone(&self.state), version))
    }

    /// The parts that hold its rows, in the order of the rows: as few as there are now.
    pub fn parts(&self) -> Vec<PartInfo> {
        self.state.layout(self.version)
    }

    /// The proofs of these parts, for a reader that opens the files itself.
    ///
    /// # Errors
    /// A commit that names the hashes of a part is damaged, or the part is, where its commit names none.
    pub async fn proofs(&self, parts: &[PartInfo]) -> Result<Vec<Arc<Proof>>, Error> {
        let mut proofs = Vec::with_capacity(parts.len());
        for part in parts {
            proofs.push(part::proof(self.state.source(), part).await?);
        }
        Ok(proofs)
    }

    /// The same with the content root after each.
    pub fn chain(&self) -> Vec<Link> {
        self.state.chain(self.version)
    }

    /// The size of its parts together, in bytes.
    pub fn bytes(&self) -> u64 {
        self.parts().iter().map(|part| part.bytes).sum()
    }

    /// The merge that made the version; none for version 0.
    pub async fn merge(&self) -> Result<Option<Merge>, Error> {
        if self.version == Version::EMPTY {
            return Ok(None);
        }
        self.state.merge_of(self.version).await.map(Some)
    }

    /// Up to `limit` rows from index `offset` on, in the columns of the contract. Reads only the parts that have them.
    pub async fn page(&self, offset: u64, limit: usize) -> Result<Vec<RecordBatch>, Error> {
        self.page_of(Columns::Records, offset, limit).await
    }

    /// As [`Self::page`], in these columns.
    pub async fn page_of(&self, columns: Columns, offset: u64, limit: usize) -> Result<Vec<RecordBatch>, Error> {
        let rows = offset..offset.saturating_add(limit as u64);
        self.stream(columns, rows).try_collect().await
    }

    /// The rows with these indexes in order, a batch at a time. Whatever their number, no more is in memory than one
    /// small part, or one row group of a large one.
    pub fn stream(&self, columns: Columns, rows: Range<u64>) -> BoxStream<'static, Result<RecordBatch, Error>> {
        let Some(contract) = self.contract.clone() else {
            return stream::empty().boxed();
        };
        let rows = rows.start..rows.end.min(self.rows);
        let slices = if rows.is_empty() {
            Vec::new()
        } else {
            self.state.locate(self.version, rows)
        };
        let state = Arc::clone(&self.state);
        let open = move |slice: Slice| {
            let (state, contract) = (Arc::clone(&state), Arc::clone(&contract));
            async move {
                let selected = columns.of(&contract);
                part::open(state.source(), &slice.part, selected, slice.rows).await
            }
        };
        // Why one after the other: who reads many versions at once would otherwise hold many parts for each.
        stream::iter(slices).then(open).try_flatten().boxed()
    }
}

//! Rows that passed the chain, prepared to become a version: a batch in memory or an upload in files.
//!
//! Invariant: the two bodies look for late duplicates in two ways, which must not be merged. A batch looks all its keys
//! up in the index at each base. An upload looks only at the parts that were merged since its snapshot, because its
//! look-ups in that snapshot were exact.

mod distinct;
mod dry_run;
mod file;
mod files;
mod memory;
mod recent;
pub(crate) mod runs;
mod writing;

use std::path::PathBuf;
use std::sync::Arc;

use bytes::Bytes;
use types::{AgentId, Batch, Contract, ContributionId, Proof};

pub use self::distinct::DistinctKeys;
pub use self::dry_run::DryRunStager;
pub use self::files::Stager;
pub(crate) use self::files::{ScratchFolder, UploadedRows};
use self::memory::BatchRows;
pub(crate) use self::writing::failure;
use crate::part::PartInfo;
use crate::state::{CommitBase, TableState};
use crate::{Error, Root};

/// Rows of one contribution that passed the chain and are to become a version.
#[derive(Debug)]
pub struct PreparedVersion {
    pub(crate) contribution: ContributionId,
    pub(crate) agent: AgentId,
    pub(crate) body: PreparedRows,
}

/// Holder of the rows.
#[derive(Debug)]
pub(crate) enum PreparedRows {
    /// Rows of a batch, which are encoded at each base.
    Memory(BatchRows),
    /// Rows of an upload, which are encoded but for their version.
    Files(Box<UploadedRows>),
}

/// Rows that passed the chain and were dropped at the commit, because the table had got their keys meanwhile.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LateDuplicates {
    /// Indexes of the rows in the decoded batch.
    Rows(Vec<u32>),
    /// Number of the rows of an upload.
    Count(u64),
}

/// A version that can be put after one base: the rows that are new there.
#[derive(Debug)]
pub(crate) struct VersionParts {
    /// Parts of the version. Empty if the table has every row.
    pub(crate) parts: Vec<NewPart>,
    /// Number of rows.
    pub(crate) rows: u64,
    /// Content root after the rows.
    pub(crate) root: Root,
    pub(crate) late: LateDuplicates,
}

/// A part that is to be put.
#[derive(Debug)]
pub(crate) struct NewPart {
    pub(crate) info: PartInfo,
    /// Proof of a large part.
    pub(crate) proof: Option<Proof>,
    pub(crate) content: PreparedContent,
}

/// Content of a part that is to be put.
#[derive(Debug)]
pub(crate) enum PreparedContent {
    Bytes(Bytes),
    /// A synced file, which is linked where the store can do so.
    File(PathBuf),
}

impl PreparedVersion {
    /// Prepares the rows of a batch. Reads, writes and encodes nothing.
    pub fn of_batch(contribution: ContributionId, agent: AgentId, batch: Arc<Batch>) -> Self {
        Self {
            contribution,
            agent,
            body: PreparedRows::Memory(BatchRows::new(batch)),
        }
    }

    /// Returns the contribution of the rows. A table merges a contribution at most once.
    pub const fn contribution(&self) -> ContributionId {
        self.contribution
    }

    /// Returns true if the rows are in files of their own, which take room on the disk.
    pub const fn is_in_files(&self) -> bool {
        matches!(self.body, PreparedRows::Files(_))
    }

    /// Returns the contract of the rows.
    pub(crate) fn contract(&self) -> &Arc<Contract> {
        match &self.body {
            PreparedRows::Memory(memory) => memory.batch.contract(),
            PreparedRows::Files(files) => files.contract(),
        }
    }

    /// Returns the same batch again, with the rows shared. Returns `None` for an upload, whose files are there once.
    pub(crate) fn share_batch(&self) -> Option<Self> {
        match &self.body {
            PreparedRows::Memory(memory) => {
                Some(Self::of_batch(self.contribution, self.agent, Arc::clone(&memory.batch)))
            }
            PreparedRows::Files(_) => None,
        }
    }

    /// Makes all rows the first version of a table, without a look at a table. Blocks.
    pub(crate) fn as_first_version(&self) -> Result<VersionParts, Error> {
        match &self.body {
            PreparedRows::Memory(memory) => {
                let origin = (self.contribution, self.agent);
                memory::version_of(&memory.batch, Vec::new(), origin, CommitBase::CREATED)
            }
            PreparedRows::Files(files) => Ok(files.version_of(CommitBase::CREATED)),
        }
    }

    /// Drops late duplicates and makes the other rows the version after `base`.
    pub(crate) async fn against(&mut self, state: &Arc<TableState>, base: CommitBase) -> Result<VersionParts, Error> {
        match &mut self.body {
            PreparedRows::Memory(memory) => {
                let origin = (self.contribution, self.agent);
                memory.against(state, origin, base).await
            }
            PreparedRows::Files(files) => files.against(state, base).await,
        }
    }
}

impl LateDuplicates {
    /// Returns the indexes of the rows, as far as they are named.
    pub fn named(&self) -> &[u32] {
        match self {
            Self::Rows(rows) => rows,
            Self::Count(_) => &[],
        }
    }
}

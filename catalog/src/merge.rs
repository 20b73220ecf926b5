//! Requests to merge rows into a table, and their outcomes.
//!
//! Invariant: [`Merge`] is part of the commit. Its members are a format and keep their names.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use types::{AgentId, Batch, ContributionId, Timestamp, Version};

/// Rows that passed the chain and are to become a version.
#[derive(Clone, Debug)]
pub struct Proposal {
    /// Contribution of the rows. The table merges a contribution at most once.
    pub contribution: ContributionId,
    /// Agent that contributed the rows.
    pub agent: AgentId,
    /// Rows that passed the chain.
    pub batch: Arc<Batch>,
    /// Time of the merge.
    pub at: Timestamp,
    /// Notes of the caller, stored in the commit. The catalog does not read them.
    pub notes: serde_json::Value,
}

/// Description of a version, as stored in its commit.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Merge {
    /// Contribution that became the version.
    pub contribution: ContributionId,
    /// Agent that contributed the rows.
    pub agent: AgentId,
    /// Number of the version, from 1.
    pub version: Version,
    /// Number of rows that the version added.
    pub accepted: u64,
    /// Number of rows of the table at this version.
    pub record_count: u64,
    /// Content root of the version: 64 lower-case hexadecimal digits.
    pub root: String,
    /// Indexes, in the decoded batch, of rows that passed the chain and were dropped at the commit because the table
    /// already had their keys.
    pub duplicates: Vec<u32>,
    /// Time of the merge.
    pub at: Timestamp,
    /// Notes of the proposal.
    pub notes: serde_json::Value,
}

/// Outcome of merging a [`Staged`](crate::Staged) upload.
#[must_use]
#[derive(Clone, Debug, PartialEq)]
pub enum StagedOutcome {
    /// The merge created this version.
    Merged(Merge),
    /// An earlier merge of the same contribution created this version.
    AlreadyCommitted(Merge),
    /// The table already has every row. No commit was put.
    NothingNew {
        /// Number of rows that other contributions added between staging and commit.
        late: u64,
    },
}

/// Outcome of merging a [`Proposal`].
#[must_use]
#[derive(Clone, Debug, PartialEq)]
pub enum MergeOutcome {
    /// The merge created this version.
    Merged(Merge),
    /// An earlier merge of the same contribution created this version.
    AlreadyCommitted(Merge),
    /// The table already has every row. No commit was put.
    NothingNew {
        /// Indexes of the dropped rows in the decoded batch.
        duplicates: Vec<u32>,
    },
}

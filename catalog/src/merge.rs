//! What is asked of a table and what came of it.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use types::{AgentId, Batch, ContributionId, Timestamp, Version};

/// Rows that passed the gates and ask to become a version.
#[derive(Clone, Debug)]
pub struct Proposal {
    /// The guard against merging twice.
    pub contribution: ContributionId,
    /// Who contributed the rows.
    pub agent: AgentId,
    /// The rows that passed.
    pub batch: Arc<Batch>,
    /// When they are merged.
    pub at: Timestamp,
    /// What the caller wants to find again in the commit; opaque to the catalog.
    pub notes: serde_json::Value,
}

/// A version, as its commit tells it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Merge {
    /// The contribution that became the version.
    pub contribution: ContributionId,
    /// Who contributed it.
    pub agent: AgentId,
    /// The version.
    pub version: Version,
    /// How many rows the version added.
    pub accepted: u64,
    /// How many rows the table has at this version.
    pub record_count: u64,
    /// The content root of the version: 64 lower-case hexadecimal digits.
    pub root: String,
    /// Positions, in the batch as it was decoded, of rows that passed the gates and were dropped at the commit because
    /// the table already had them.
    pub duplicates: Vec<u32>,
    /// When it was merged.
    pub at: Timestamp,
    /// The notes of its proposal.
    pub notes: serde_json::Value,
}

/// What came of merging a [`Staged`](crate::Staged) upload.
#[must_use]
#[derive(Clone, Debug, PartialEq)]
pub enum StagedOutcome {
    /// It became this version now.
    Merged(Merge),
    /// It had become this version before.
    Adopted(Merge),
    /// The table has every row already; nothing was committed.
    NothingNew {
        /// How many rows the table got from others since it was staged.
        late: u64,
    },
}

/// What came of a [`Proposal`].
#[must_use]
#[derive(Clone, Debug, PartialEq)]
pub enum MergeOutcome {
    /// It became this version now.
    Merged(Merge),
    /// It had become this version before.
    Adopted(Merge),
    /// The table has every row already; nothing was committed.
    NothingNew {
        /// Positions of the rows, in the batch as it was decoded.
        duplicates: Vec<u32>,
    },
}

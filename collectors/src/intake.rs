//! The place that records are submitted to.
//!
//! Invariant: an intake goes through the operations of the service, so that its gates see what they see of any agent.

use std::fmt::Debug;

use async_trait::async_trait;
use serde_json::Value;

use crate::{CollectorSource, RunFailure};

/// Verdict of a dry run on one record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum JudgedRecord {
    /// It would be merged.
    New,
    /// The dataset has it.
    Known,
    /// A gate refuses it.
    Refused,
    /// It cannot be judged now.
    Held,
}

/// Outcome of a submission.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SubmitOutcome {
    /// New records are in a version.
    Merged {
        /// Number of the version.
        version: u64,
        /// Number of new records.
        accepted: u64,
    },
    /// The dataset had every record.
    Duplicates,
    /// It waits for its review.
    Held,
    /// A gate refused the batch.
    Refused,
}

/// The place that records are submitted to.
#[async_trait]
pub trait Intake: Debug + Send + Sync {
    /// Makes sure that the dataset of a source exists with the contract of the source.
    async fn prepare(&self, source: &CollectorSource) -> Result<(), RunFailure>;

    /// Returns the verdict of a dry run on each record.
    async fn judge(&self, dataset: &str, records: &[Value]) -> Result<Vec<JudgedRecord>, RunFailure>;

    /// Submits a batch and returns its outcome. The same key twice submits once.
    async fn submit(&self, source: &CollectorSource, records: &[Value], key: &str)
    -> Result<SubmitOutcome, RunFailure>;
}

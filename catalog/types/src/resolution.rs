//! The result of judging a contribution, as the worker publishes it and as the database keeps it.

use serde::{Deserialize, Serialize};

use crate::{Timestamp, Version};

/// Result of judging a contribution.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "status", rename_all = "lowercase", rename_all_fields = "camelCase")]
pub enum Resolution {
    /// Its new records form a version.
    Merged {
        /// Version that contains the new records.
        version: Version,
        /// Number of new records; at least 1.
        accepted: u64,
        /// Total number of records of the version.
        record_count: u64,
        /// The version's content root, 64 hexadecimal digits.
        root: String,
    },
    /// No record of it was merged.
    Rejected {
        /// `refused`, `duplicates`, or `unprocessable` for a dead letter.
        code: String,
        /// Sentence for the contributor.
        message: String,
    },
    /// It cannot be judged now and will be submitted again.
    Waiting {
        /// `budget`, `provider`, `paused` or `history_lost`.
        reason: String,
        /// Time to submit it again, if known.
        #[serde(skip_serializing_if = "Option::is_none")]
        resumes_after: Option<Timestamp>,
    },
}

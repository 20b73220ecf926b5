//! What a gate says of a row.
//!
//! Invariant: [`Verdicts`] has exactly one verdict per row of the batch it was made for.

use serde::{Deserialize, Serialize};
use types::Timestamp;

/// Why a row did not pass. Never carries personal data, and text of a record only where the gate's rule is about its form.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reason {
    /// The gate that says so: `contract`, `dedup`, `personal-data` or `screen`.
    pub gate: String,
    /// The machine-readable rule, such as `missing` or `email`.
    pub code: String,
    /// JSON pointer within the record; empty for the whole record.
    pub path: String,
    /// What the rule asks for.
    pub expected: String,
    /// What the record has, described.
    pub actual: String,
}

/// What a gate says of one row.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "verdict", rename_all = "lowercase")]
pub enum Verdict {
    /// The row goes on.
    Pass,
    /// The row is left out and the batch goes on: a duplicate.
    Drop {
        /// Why.
        reason: Reason,
    },
    /// The row rejects its batch.
    Refuse {
        /// Every rule it breaks; at least one.
        reasons: Vec<Reason>,
    },
    /// The row cannot be judged now; its batch waits.
    Hold {
        /// Why; the code is `budget`, `provider` or `paused`.
        reason: Reason,
        /// When to judge again, where known.
        #[serde(skip_serializing_if = "Option::is_none")]
        resumes_after: Option<Timestamp>,
    },
}

/// A verdict with the row it is about, counted in the batch as it was submitted.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RowVerdict {
    /// Index of the record in the submitted batch.
    pub row: u32,
    /// What was said of it.
    #[serde(flatten)]
    pub verdict: Verdict,
}

/// One verdict per row of a batch; rows that nothing was said of pass.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Verdicts {
    rows: usize,
    /// The verdicts other than pass, in row order.
    exceptions: Vec<(usize, Verdict)>,
}

impl Verdicts {
    /// Every one of `rows` rows passes.
    pub const fn pass(rows: usize) -> Self {
        Self {
            rows,
            exceptions: Vec::new(),
        }
    }

    /// Collects verdicts other than pass; rows beyond the batch are ignored, of two verdicts on a row the first counts
    /// unless both refuse, then their reasons add up.
    pub fn from_exceptions(rows: usize, exceptions: impl IntoIterator<Item = (usize, Verdict)>) -> Self {
        let mut sorted: Vec<_> = exceptions
            .into_iter()
            .filter(|(row, verdict)| *row < rows && *verdict != Verdict::Pass)
            .collect();
        sorted.sort_by_key(|(row, _)| *row);
        let mut merged: Vec<(usize, Verdict)> = Vec::with_capacity(sorted.len());
        for (row, verdict) in sorted {
            match (merged.last_mut(), verdict) {
                (Some((last, Verdict::Refuse { reasons })), Verdict::Refuse { reasons: more }) if *last == row => {
                    reasons.extend(more);
                }
                (Some((last, _)), _) if *last == row => {}
                (_, verdict) => merged.push((row, verdict)),
            }
        }
        Self {
            rows,
            exceptions: merged,
        }
    }

    /// The number of rows judged.
    pub const fn rows(&self) -> usize {
        self.rows
    }

    /// The rows that do not pass, in row order.
    pub fn exceptions(&self) -> &[(usize, Verdict)] {
        &self.exceptions
    }

    /// The rows that do not pass, in row order, by value.
    pub(crate) fn into_exceptions(self) -> Vec<(usize, Verdict)> {
        self.exceptions
    }
}

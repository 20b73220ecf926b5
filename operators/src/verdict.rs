//! Verdicts on rows, and their reasons.
//!
//! Invariant: [`Verdicts`] has exactly one verdict per row of its batch, and the size of a verdict is bounded whatever
//! the row contains ([`MAX_REASONS`], [`bounds`](self::bounds)).

mod bounds;

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use types::Timestamp;

use bounds::Reasons;
pub use bounds::{MAX_REASONS, fit};

use crate::GateName;

/// The reason that a row did not pass. It never contains personal data, and text of a record only if the rule is about
/// its form.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Reason {
    /// The gate: `contract`, `dedup`, `personal-data` or `screen`.
    pub gate: GateName,
    /// The machine-readable rule, such as `missing` or `email`.
    pub code: String,
    /// JSON pointer within the record; empty for the whole record.
    pub path: String,
    /// The requirement of the rule.
    pub expected: String,
    /// A description of the record at that path.
    pub actual: String,
}

impl Reason {
    /// Returns the rest of a sentence that has named the record: the path, the expected and the actual value.
    pub fn after_the_record(&self) -> String {
        let Self {
            gate,
            code,
            path,
            expected,
            actual,
        } = self;
        let at = if path.is_empty() {
            String::new()
        } else {
            format!(" at `{path}`")
        };
        format!("{at}: expected {expected}, found {actual} ({gate}: {code})")
    }
}

/// The verdict of a gate on one row.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "verdict", rename_all = "lowercase")]
pub enum Verdict {
    /// The row continues to the next gate.
    Pass,
    /// The row is a duplicate: it is left out and the batch continues.
    Drop {
        /// The reason for leaving it out.
        reason: Reason,
    },
    /// The row rejects its batch.
    Refuse {
        /// The rules that the row breaks: at least one, at most [`MAX_REASONS`]. If it breaks more, the last reason has
        /// the code `more` and their number.
        reasons: Vec<Reason>,
    },
    /// The row cannot be judged now; its batch waits.
    Hold {
        /// The reason for waiting; its code is `budget`, `provider` or `paused`.
        reason: Reason,
        /// The time to judge again, if known.
        #[serde(skip_serializing_if = "Option::is_none")]
        resumes_after: Option<Timestamp>,
    },
}

/// A verdict with the number of its row in the batch as submitted.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RowVerdict {
    /// Index of the record in the submitted batch. Of an upload, index of its line; with a reading, of the record in the
    /// file.
    pub row: u32,
    /// Line of the file on which the record begins, from 1; absent for a batch.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub line: Option<u64>,
    /// The verdict on the record.
    #[serde(flatten)]
    pub verdict: Verdict,
}

impl RowVerdict {
    /// Returns the verdict on a record of a batch.
    pub const fn of_record(row: u32, verdict: Verdict) -> Self {
        Self {
            row,
            line: None,
            verdict,
        }
    }
}

/// Returns the verdict that refuses a record for reasons of which there is one at least. Their texts are shortened to the
/// limits.
pub fn refusal(reasons: Vec<Reason>) -> Verdict {
    let mut named = Reasons::default();
    named.extend(reasons);
    named.into_verdict()
}

/// One verdict per row of a batch. A row without an entry passes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Verdicts {
    rows: usize,
    /// The verdicts other than pass, in row order.
    exceptions: Vec<(usize, Verdict)>,
}

impl Verdicts {
    /// Creates verdicts that pass every one of `rows` rows.
    pub const fn pass(rows: usize) -> Self {
        Self {
            rows,
            exceptions: Vec::new(),
        }
    }

    /// Collects verdicts other than pass. Rows past the end are ignored. Of two verdicts on a row the first counts,
    /// except that the reasons of two refusals are combined, up to the limit.
    pub fn from_exceptions(rows: usize, exceptions: impl IntoIterator<Item = (usize, Verdict)>) -> Self {
        let mut said: BTreeMap<usize, Said> = BTreeMap::new();
        for (row, verdict) in exceptions {
            // A gate cannot invent rows, and a pass is the absence of an entry.
            if row >= rows || verdict == Verdict::Pass {
                continue;
            }
            match (said.get_mut(&row), verdict) {
                // A row may break rules in several columns; all of its reasons belong together.
                (Some(Said::Refused(reasons)), Verdict::Refuse { reasons: more }) => reasons.extend(more),
                (Some(_), _) => {}
                (None, Verdict::Refuse { reasons: named }) => {
                    let mut reasons = Reasons::default();
                    reasons.extend(named);
                    said.insert(row, Said::Refused(reasons));
                }
                (None, verdict) => {
                    said.insert(row, Said::Other(bounds::bounded(verdict)));
                }
            }
        }
        let exceptions = said.into_iter().map(|(row, said)| match said {
            Said::Refused(reasons) => (row, reasons.into_verdict()),
            Said::Other(verdict) => (row, verdict),
        });
        Self {
            rows,
            exceptions: exceptions.collect(),
        }
    }

    /// Returns the number of judged rows.
    pub const fn rows(&self) -> usize {
        self.rows
    }

    /// Returns the rows that do not pass, in row order.
    pub fn exceptions(&self) -> &[(usize, Verdict)] {
        &self.exceptions
    }

    /// Returns the rows that do not pass, in row order, by value.
    pub(crate) fn into_exceptions(self) -> Vec<(usize, Verdict)> {
        self.exceptions
    }
}

enum Said {
    Refused(Reasons),
    Other(Verdict),
}

/// Collects reasons to refuse rows. A reason beyond the limit is counted but not built.
#[derive(Debug, Default)]
pub(crate) struct Refusals {
    by_row: BTreeMap<usize, Reasons>,
}

impl Refusals {
    /// Adds a reason to refuse `row`.
    pub(crate) fn add(&mut self, row: usize, reason: impl FnOnce() -> Reason) {
        self.by_row.entry(row).or_default().add(reason);
    }

    /// Returns the verdicts on a batch of `rows` rows, which must include every row with a reason.
    pub(crate) fn into_verdicts(self, rows: usize) -> Verdicts {
        let refused = self
            .by_row
            .into_iter()
            .map(|(row, reasons)| (row, reasons.into_verdict()));
        Verdicts {
            rows,
            exceptions: refused.collect(),
        }
    }
}

//! What a gate says of a row.
//!
//! Invariant: [`Verdicts`] has exactly one verdict per row of the batch it was made for, and what it says of a row is
//! bounded, whatever the row holds ([`MAX_REASONS`], [`bounds`](self::bounds)).

mod bounds;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use types::Timestamp;

use bounds::Reasons;
pub use bounds::{MAX_REASONS, fit};

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

impl Reason {
    /// What a sentence says after it has named the record: where in it, what was expected and what was found.
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
        /// The rules it breaks: at least one, at most [`MAX_REASONS`]. Where it breaks more, the last reason has the
        /// code `more` and says how many.
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
    /// unless both refuse, then their reasons add up, as far as they are named.
    pub fn from_exceptions(rows: usize, exceptions: impl IntoIterator<Item = (usize, Verdict)>) -> Self {
        let mut said: BTreeMap<usize, Said> = BTreeMap::new();
        for (row, verdict) in exceptions {
            if row >= rows || verdict == Verdict::Pass {
                continue;
            }
            match (said.get_mut(&row), verdict) {
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

enum Said {
    Refused(Reasons),
    Other(Verdict),
}

/// The reasons to refuse rows, as a gate finds them. A reason that is not going to be named is counted and not made.
#[derive(Debug, Default)]
pub(crate) struct Refusals {
    by_row: BTreeMap<usize, Reasons>,
}

impl Refusals {
    /// Adds a reason to refuse `row`.
    pub(crate) fn add(&mut self, row: usize, reason: impl FnOnce() -> Reason) {
        self.by_row.entry(row).or_default().add(reason);
    }

    /// The verdicts on a batch of `rows` rows, all of which the reasons are about.
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

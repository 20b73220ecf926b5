//! The one policy for batches and uploads: refuse before hold before merge.

use types::Timestamp;

use crate::screen::Cause;
use crate::{Reason, RowVerdict, Verdict};

/// The decision on a whole batch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Decision {
    /// The rows that passed are merged.
    Merge,
    /// No row is merged.
    Reject {
        /// `refused`, `duplicates` or `empty`.
        code: String,
        /// One sentence for the contributor; never holds personal data.
        message: String,
    },
    /// The batch is judged again later.
    Hold {
        /// `budget`, `provider` or `paused`.
        reason: String,
        /// The time to judge again, if known.
        resumes_after: Option<Timestamp>,
    },
}

/// Counts of the verdicts on a batch or an upload.
#[derive(Clone, Debug, Default)]
pub struct Totals {
    /// Number of records that were judged.
    pub rows: u64,
    /// Number of records that every operator passed.
    pub passed: u64,
    refused: u64,
    /// Row and first reason of the first refusal.
    first: Option<(u32, Option<Reason>)>,
    /// Cause of the first hold, and the latest time at which a hold may end.
    held: Option<(&'static str, Option<Timestamp>)>,
}

/// Numbers by which the sentences of a decision name records.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Numbering {
    /// Index of the record in its batch, from 0.
    Records,
    /// Number of the line of an upload, from 1.
    Lines,
}

impl Totals {
    /// Counts the verdicts on `rows` records of which `passed` passed.
    pub fn of(rows: u64, passed: u64, verdicts: &[RowVerdict]) -> Self {
        let mut totals = Self {
            rows,
            passed,
            ..Self::default()
        };
        for said in verdicts {
            totals.add(said);
        }
        totals
    }

    /// Adds the verdict on the next row.
    pub fn add(&mut self, said: &RowVerdict) {
        match &said.verdict {
            Verdict::Refuse { reasons } => {
                self.refused += 1;
                // Only the first is kept: the sentence names one, and the verdicts name the others.
                self.first.get_or_insert_with(|| (said.row, reasons.first().cloned()));
            }
            Verdict::Hold { reason, resumes_after } => {
                let waits_for = Cause::of_code(&reason.code).waits_for();
                let (_, until) = self.held.get_or_insert((waits_for, *resumes_after));
                // All rows are judged again together, so they wait for the last of them.
                *until = (*until).max(*resumes_after);
            }
            Verdict::Pass | Verdict::Drop { .. } => {}
        }
    }

    /// Returns true if nothing of it can be merged, whatever else comes.
    pub const fn is_lost(&self) -> bool {
        self.refused > 0 || self.held.is_some()
    }
}

impl Decision {
    /// Applies the policy: any refused row rejects the whole; else any held row holds it until the last hold ends; else
    /// without new rows it is rejected; else it merges.
    pub fn of(totals: Totals, numbering: Numbering) -> Self {
        let Totals { rows, passed, .. } = totals;
        // A refusal is final, so it wins over a hold, which may pass later.
        if let Some((row, reason)) = totals.first {
            return Self::Reject {
                code: "refused".to_owned(),
                message: refusal(totals.refused, rows, (row, reason.as_ref()), numbering),
            };
        }
        // Before the rows that passed: a merge without the held ones would split the contribution.
        if let Some((reason, resumes_after)) = totals.held {
            return Self::Hold {
                reason: reason.to_owned(),
                resumes_after,
            };
        }
        if passed > 0 {
            return Self::Merge;
        }
        // Every row was a duplicate, or there was none, so a merge would add nothing.
        let (code, message) = match (rows, numbering) {
            (0, Numbering::Records) => ("duplicates", "the batch has no record".to_owned()),
            (0, Numbering::Lines) => ("empty", "the upload has no record".to_owned()),
            (1, _) => ("duplicates", "the record is a duplicate".to_owned()),
            (rows, _) => ("duplicates", format!("all {rows} records are duplicates")),
        };
        Self::Reject {
            code: code.to_owned(),
            message,
        }
    }
}

/// Returns one sentence with the number of refused records and the first reason of the first of them.
fn refusal(refused: u64, rows: u64, (row, reason): (u32, Option<&Reason>), numbering: Numbering) -> String {
    let verb = if refused == 1 { "is" } else { "are" };
    let place = match numbering {
        Numbering::Records => format!("record {row}"),
        Numbering::Lines => format!("on line {}", u64::from(row) + 1),
    };
    let why = reason.map_or_else(String::new, Reason::after_the_record);
    format!("{refused} of {rows} records {verb} refused; the first is {place}{why}")
}

#[cfg(test)]
mod tests;

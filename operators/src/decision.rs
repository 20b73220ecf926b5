//! The one policy for batches and uploads: refuse before hold before merge.

use types::Timestamp;
use types::vocabulary::OnRefused;

use crate::screen::Cause;
use crate::{Reason, RowVerdict, Tally, Verdict};

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
    /// Policy for refused records.
    on_refused: OnRefused,
    refused: u64,
    /// Row, line and first reason of the first refusal.
    first: Option<(u32, Option<u64>, Option<Reason>)>,
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
    /// Begins to count the verdicts on a contribution.
    pub fn new(on_refused: OnRefused) -> Self {
        Self {
            on_refused,
            ..Self::default()
        }
    }

    /// Counts the verdicts on `rows` records of which `passed` passed.
    pub fn of(rows: u64, passed: u64, verdicts: &[RowVerdict], on_refused: OnRefused) -> Self {
        let mut totals = Self {
            rows,
            passed,
            ..Self::new(on_refused)
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
                self.first
                    .get_or_insert_with(|| (said.row, said.line, reasons.first().cloned()));
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
        // Under [`OnRefused::Drop`] the share of refused records decides, which is known only after the last record.
        let is_refused = matches!(self.on_refused, OnRefused::Reject) && self.refused > 0;
        is_refused || self.held.is_some()
    }

    /// Returns true if the number of refused records rejects the whole contribution.
    const fn is_refused(&self) -> bool {
        match self.on_refused {
            OnRefused::Reject => self.refused > 0,
            OnRefused::Drop => self.refused > self.rows / 2,
        }
    }
}

impl Decision {
    /// Applies the policy: a refused row rejects the whole, or with [`OnRefused::Drop`] more than half of the rows; else
    /// any held row holds it until the last hold ends; else without new rows it is rejected; else it merges.
    pub fn of(totals: &Totals, numbering: Numbering) -> Self {
        let Totals {
            rows, passed, refused, ..
        } = *totals;
        // A refusal is final, so it wins over a hold, which may pass later.
        if totals.is_refused() {
            return Self::Reject {
                code: "refused".to_owned(),
                message: refusal(totals, numbering),
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
        // Every row was a duplicate, or left out, or there was none, so a merge would add nothing.
        let (code, message) = match (rows, numbering) {
            (0, Numbering::Records) => ("duplicates", "the batch has no record".to_owned()),
            (0, Numbering::Lines) => ("empty", "the upload has no record".to_owned()),
            (1, _) => ("duplicates", "the record is a duplicate".to_owned()),
            (rows, _) if refused > 0 => ("duplicates", nothing_new_of(rows, rows - refused, refused)),
            (rows, _) => ("duplicates", format!("all {rows} records are duplicates")),
        };
        Self::Reject {
            code: code.to_owned(),
            message,
        }
    }
}

/// Returns one sentence about records of which each is a duplicate or refused, by the tallies of their gates.
pub fn nothing_new(tallies: &[Tally]) -> String {
    match Counts::of(tallies) {
        Counts { refused: 0, .. } => "every record is a duplicate of a record the dataset has".to_owned(),
        Counts { rows, dropped, refused } => nothing_new_of(rows, dropped, refused),
    }
}

fn nothing_new_of(rows: u64, dropped: u64, refused: u64) -> String {
    format!(
        "none of {} records is new: {} duplicates, {} refused",
        grouped(rows),
        grouped(dropped),
        grouped(refused)
    )
}

/// Returns one sentence about what was merged: the number of new records, and those that were left out.
pub fn summary_of(tallies: &[Tally], new: u64) -> String {
    let Counts { rows, dropped, refused } = Counts::of(tallies);
    let verb = if new == 1 { "is" } else { "are" };
    let mut left_out = Vec::new();
    if dropped > 0 {
        let noun = if dropped == 1 { "duplicate" } else { "duplicates" };
        // Rounded to a tenth, but the whole only if it is the whole.
        let most = if dropped < rows { 999 } else { 1_000 };
        let tenths = ((u128::from(dropped) * 2_000 + u128::from(rows)) / (2 * u128::from(rows.max(1)))).min(most);
        let share = format!("{}.{} %", tenths / 10, tenths % 10);
        left_out.push(format!("{} {noun} dropped ({share})", grouped(dropped)));
    }
    if refused > 0 {
        left_out.push(format!("{} refused and left out", grouped(refused)));
    }
    let merged = format!("{} of {} records {verb} new", grouped(new), grouped(rows));
    if left_out.is_empty() {
        return merged;
    }
    format!("{merged}; {}", left_out.join(", "))
}

/// The numbers of records of a contribution.
struct Counts {
    rows: u64,
    dropped: u64,
    refused: u64,
}

impl Counts {
    fn of(tallies: &[Tally]) -> Self {
        let sum = |count: fn(&Tally) -> u32| tallies.iter().map(|tally| u64::from(count(tally))).sum();
        Self {
            // The first gate judges every record.
            rows: tallies.first().map_or(0, |tally| tally.rows.into()),
            dropped: sum(|tally| tally.dropped),
            refused: sum(|tally| tally.refused),
        }
    }
}

/// Returns a number with a comma between groups of three digits.
fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// Returns one sentence with the number of refused records and the first reason of the first of them.
fn refusal(totals: &Totals, numbering: Numbering) -> String {
    let Totals {
        rows, refused, first, ..
    } = totals;
    let verb = if *refused == 1 { "is" } else { "are" };
    let advice = match totals.on_refused {
        OnRefused::Reject => "",
        OnRefused::Drop => ", more than half; a wrong delimiter or column is likelier",
    };
    let text = format!("{refused} of {rows} records {verb} refused{advice}");
    let Some((row, line, reason)) = first else {
        return text;
    };
    let place = match numbering {
        Numbering::Records => format!("record {row}"),
        Numbering::Lines => format!("on line {}", line.unwrap_or_else(|| u64::from(*row) + 1)),
    };
    let why = reason.as_ref().map_or_else(String::new, Reason::after_the_record);
    format!("{text}; the first is {place}{why}")
}

#[cfg(test)]
mod tests;

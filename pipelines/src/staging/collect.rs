//! Units in order: duplicates left out across them, the rest staged, what was said summed up.
//!
//! Invariant: for each gate, rows in = passed + dropped + refused + held, over the whole upload; the numbers are those
//! that a batch of all its records would have.

use std::collections::BTreeMap;

use catalog::{Prepared, Stager};
use operators::screen::Cause;
use operators::{Decision, MAX_VERDICT_BYTES, Reason, RowVerdict, Tally, Verdict};
use types::RecordKey;

use super::judge::{JudgedUnit, duplicate};

/// Number of verdicts of a kind that are kept.
const NAMED: usize = 1_000;
/// Maximum number of records of an upload, which bounds the memory of their keys.
pub(super) const MOST_ROWS: u64 = 100_000_000;

/// Results of the units so far.
#[derive(Debug)]
pub(super) struct Collector {
    stager: Stager,
    tallies: Vec<Tally>,
    /// The first duplicates.
    dropped: Vec<RowVerdict>,
    /// The first records that reject the upload or hold it.
    offending: Vec<RowVerdict>,
    held: Option<(String, Option<types::Timestamp>)>,
    refused: u64,
    rows: u64,
}

/// An upload that was judged.
#[derive(Debug)]
pub(super) struct Collected {
    pub(super) decision: Decision,
    /// Its rows, where they are to be merged.
    pub(super) staged: Option<Prepared>,
    pub(super) rows: u32,
    pub(super) verdicts: Vec<RowVerdict>,
    pub(super) tallies: Vec<Tally>,
}

impl Collector {
    pub(super) const fn new(stager: Stager) -> Self {
        Self {
            stager,
            tallies: Vec::new(),
            dropped: Vec::new(),
            offending: Vec::new(),
            held: None,
            refused: 0,
            rows: 0,
        }
    }

    /// Returns the number of records that were judged.
    pub(super) const fn rows(&self) -> u64 {
        self.rows
    }

    /// Adds the next unit.
    pub(super) fn add(&mut self, mut unit: JudgedUnit) -> Result<(), catalog::Error> {
        self.rows += u64::from(unit.tallies.first().map_or(0, |tally| tally.rows));
        let again = self.seen_before(&unit)?;
        if !again.is_empty() {
            drop_again(&mut unit, &again);
        }
        for (index, tally) in unit.tallies.into_iter().enumerate() {
            match self.tallies.get_mut(index) {
                Some(sum) => add(sum, &tally),
                None => self.tallies.push(tally),
            }
        }
        for said in unit.verdicts {
            match &said.verdict {
                Verdict::Pass => {}
                Verdict::Drop { .. } if self.dropped.len() < NAMED => self.dropped.push(said),
                Verdict::Drop { .. } => {}
                Verdict::Refuse { .. } => {
                    self.refused += 1;
                    if self.offending.len() < NAMED {
                        self.offending.push(said);
                    }
                }
                Verdict::Hold { reason, resumes_after } => {
                    let (_, until) = self.held.get_or_insert_with(|| {
                        let waits_for = Cause::of_code(&reason.code).waits_for();
                        (waits_for.to_owned(), *resumes_after)
                    });
                    // The upload is judged again as a whole, so it waits for the record that waits
                    // longest.
                    *until = (*until).max(*resumes_after);
                }
            }
        }
        Ok(())
    }

    /// The lines of the unit whose records came in a unit before, with the rows that are new staged.
    fn seen_before(&mut self, unit: &JudgedUnit) -> Result<BTreeMap<u32, usize>, catalog::Error> {
        let mut again = BTreeMap::new();
        let line_of = |position: u32| unit.lines[position as usize];
        let position_of = |line: u32| unit.lines.binary_search(&line).ok();
        if self.is_lost() {
            for (key, position) in unit.passed.keys().iter().zip(unit.passed.positions()) {
                if !self.stager.note(*key)? {
                    again.insert(line_of(*position), *position as usize);
                }
            }
        } else {
            let keep = self.stager.push(&unit.passed)?;
            for (position, _) in unit.passed.positions().iter().zip(keep).filter(|(_, keep)| !keep) {
                again.insert(line_of(*position), *position as usize);
            }
        }
        // The records that a later gate refused or held went through the gate of duplicates, too.
        for said in unit.verdicts.iter().filter(|said| is_after_dedup(&said.verdict)) {
            if let Some(position) = position_of(said.row)
                && !self.note(unit.keys[position])?
            {
                again.insert(said.row, position);
            }
        }
        Ok(again)
    }

    fn note(&mut self, key: RecordKey) -> Result<bool, catalog::Error> {
        self.stager.note(key)
    }

    /// Returns true if the upload cannot be merged any more, so that nothing needs to be written.
    const fn is_lost(&self) -> bool {
        self.refused > 0 || self.held.is_some()
    }

    /// Ends the upload: the policy of a batch.
    pub(super) fn end(self) -> Result<Collected, catalog::Error> {
        let rows = u32::try_from(self.rows).unwrap_or(u32::MAX);
        let decision = self.decision();
        let mut verdicts = match decision {
            Decision::Reject { ref code, .. } if code == "refused" => self.offending,
            _ => self.dropped,
        };
        verdicts.sort_by_key(|said| said.row);
        // Cut after the sort: the contributor sees the verdicts of the first lines.
        operators::verdict::fit(&mut verdicts, MAX_VERDICT_BYTES);
        let staged = match decision {
            Decision::Merge => Some(self.stager.finish()?),
            _ => None,
        };
        Ok(Collected {
            decision,
            staged,
            rows,
            verdicts,
            tallies: self.tallies,
        })
    }

    fn decision(&self) -> Decision {
        if self.refused > 0 {
            return Decision::Reject {
                code: "refused".to_owned(),
                message: refusal(self.refused, self.rows, self.offending.first()),
            };
        }
        if let Some((reason, resumes_after)) = self.held.clone() {
            return Decision::Hold { reason, resumes_after };
        }
        let passed = self.tallies.last().map_or(0, |tally| tally.passed);
        if passed > 0 {
            return Decision::Merge;
        }
        let (code, message) = match self.rows {
            0 => ("empty", "the upload has no record".to_owned()),
            1 => ("duplicates", "the record is a duplicate".to_owned()),
            rows => ("duplicates", format!("all {rows} records are duplicates")),
        };
        Decision::Reject {
            code: code.to_owned(),
            message,
        }
    }
}

/// Returns true if a verdict is that of a gate after the gate of duplicates.
fn is_after_dedup(verdict: &Verdict) -> bool {
    let reason = match verdict {
        Verdict::Refuse { reasons } => reasons.first(),
        Verdict::Hold { reason, .. } => Some(reason),
        Verdict::Pass | Verdict::Drop { .. } => None,
    };
    reason.is_some_and(|Reason { gate, .. }| gate != "decode" && gate != "contract")
}

/// Replaces the verdicts of records that came in an earlier unit by the verdict that they are duplicates.
fn drop_again(unit: &mut JudgedUnit, again: &BTreeMap<u32, usize>) {
    let mut by = BTreeMap::new();
    unit.verdicts.retain(|said| {
        let gone = again.contains_key(&said.row) && is_after_dedup(&said.verdict);
        if gone {
            by.insert(said.row, said.verdict.clone());
        }
        !gone
    });
    for line in again.keys() {
        let stopped = by.get(line).and_then(|verdict| match verdict {
            Verdict::Refuse { reasons } => reasons.first().map(|reason| (reason.gate.as_str(), true)),
            Verdict::Hold { reason, .. } => Some((reason.gate.as_str(), false)),
            Verdict::Pass | Verdict::Drop { .. } => None,
        });
        let mut after = false;
        for tally in &mut unit.tallies {
            if tally.gate == "dedup" {
                // The unit counted the record as new at the gate of duplicates and at the gates behind
                // it. In one batch the gate of duplicates would have dropped it, so each of these gates
                // takes its count back.
                tally.passed -= 1;
                tally.dropped += 1;
                after = true;
            } else if after {
                tally.rows -= 1;
                match stopped {
                    Some((gate, refused)) if tally.gate == gate => {
                        let count = if refused { &mut tally.refused } else { &mut tally.held };
                        *count -= 1;
                        break;
                    }
                    _ => tally.passed -= 1,
                }
            }
        }
        unit.verdicts.push(RowVerdict {
            row: *line,
            verdict: duplicate(),
        });
    }
    unit.verdicts.sort_by_key(|said| said.row);
}

fn add(sum: &mut Tally, more: &Tally) {
    for (sum, more) in [
        (&mut sum.rows, more.rows),
        (&mut sum.passed, more.passed),
        (&mut sum.dropped, more.dropped),
        (&mut sum.refused, more.refused),
        (&mut sum.held, more.held),
    ] {
        *sum = sum.saturating_add(more);
    }
}

/// One sentence: how many records are refused, and where and why the first is.
fn refusal(refused: u64, rows: u64, first: Option<&RowVerdict>) -> String {
    let verb = if refused == 1 { "is" } else { "are" };
    let (line, reason) = match first {
        Some(RowVerdict {
            row,
            verdict: Verdict::Refuse { reasons },
        }) => (u64::from(*row) + 1, reasons.first()),
        _ => (0, None),
    };
    let why = reason.map_or_else(String::new, |reason| {
        format!("; the first is on line {line}{}", reason.after_the_record())
    });
    format!("{refused} of {rows} records {verb} refused{why}")
}

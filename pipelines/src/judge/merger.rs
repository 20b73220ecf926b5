//! Chunks of an upload in order: duplicates left out across them, the rest staged, the reports summed up.
//!
//! Invariant: for each gate, rows in = passed + dropped + refused + held, over the whole upload; the numbers are those
//! that a batch of all its records would have.

use std::collections::BTreeMap;
use std::sync::Arc;

use catalog::{DistinctKeys, Stager};
use operators::{Decision, GateName, MAX_VERDICT_BYTES, Numbering, Reason, RowVerdict, Tally, Totals, Verdict};
use types::vocabulary::OnRefused;
use types::{Batch, RecordKey};

use super::Judged;
use super::chunk::{JudgedLines, duplicate};
use super::split::{MOST_RATIO, MOST_TEXT, UNSUSPECTED};
use crate::report::Report;

/// Number of verdicts of a kind that are kept.
const NAMED: usize = 1_000;

/// Place of the rows that passed, which knows the records that came before.
pub(crate) trait RowSink {
    /// Adds rows. Returns true for each row that is the first of its key.
    fn push(&mut self, rows: &Batch) -> Result<Vec<bool>, catalog::Error>;

    /// Remembers a key without a row; `false` where it was there before.
    fn note(&mut self, key: RecordKey) -> Result<bool, catalog::Error>;
}

impl RowSink for Stager {
    fn push(&mut self, rows: &Batch) -> Result<Vec<bool>, catalog::Error> {
        Self::push(self, rows)
    }

    fn note(&mut self, key: RecordKey) -> Result<bool, catalog::Error> {
        Self::note(self, key)
    }
}

/// Rows that are judged only are kept nowhere.
impl RowSink for DistinctKeys {
    fn push(&mut self, rows: &Batch) -> Result<Vec<bool>, catalog::Error> {
        self.insert_all(rows.keys())
    }

    fn note(&mut self, key: RecordKey) -> Result<bool, catalog::Error> {
        self.insert(key)
    }
}

/// Results of the chunks so far.
#[derive(Debug)]
pub(crate) struct Merger<S = Stager> {
    sink: S,
    tallies: Vec<Tally>,
    /// The first duplicates.
    dropped: Vec<RowVerdict>,
    /// The first records that are refused.
    refused: Vec<RowVerdict>,
    on_refused: OnRefused,
    totals: Totals,
    work: WorkTotal,
}

/// Work that the records of an upload make so far. JSON Lines that are not translated make none beyond their bytes.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct WorkTotal {
    /// Bytes of text.
    text: u64,
    /// Bytes that its records come to as JSON.
    json: u64,
    /// Bytes that were read of a compressed upload.
    read: Option<u64>,
}

impl WorkTotal {
    /// Adds the next chunk.
    pub(crate) fn add(&mut self, chunk: &JudgedLines) {
        self.text += chunk.text;
        self.json += chunk.work;
        self.read = chunk.read.or(self.read);
    }

    /// Returns the excess, if there is one. It depends on the bytes of the upload alone, so that every try decides alike.
    pub(crate) fn excess(&self) -> Option<Excess> {
        let bytes = self.read.unwrap_or(self.text).max(1);
        let is_compressed = self.read.is_some();
        let is_suspect = is_compressed && self.json > UNSUSPECTED && self.json > bytes.saturating_mul(MOST_RATIO);
        (is_suspect || self.json > MOST_TEXT).then_some(Excess::Work(self.json / bytes, is_compressed))
    }
}

/// Reason why no more of an upload is taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Excess {
    /// It has more than this number of records.
    Records(u64),
    /// Its records come to so many times its bytes; true if it is compressed.
    Work(u64, bool),
}

impl Excess {
    /// Returns the decision to reject the upload.
    pub(crate) fn decision(self) -> Decision {
        let (code, message) = match self {
            Self::Records(most) => (
                "too_many_records",
                format!("the upload has more than {most} records, the most of one: send them in several uploads"),
            ),
            Self::Work(times, is_compressed) => {
                let remedy = if is_compressed {
                    "uncompressed, or in parts"
                } else {
                    "in parts"
                };
                let message = format!(
                    "its records come to {times} times its bytes, since each repeats the names: send it {remedy}"
                );
                ("too_much_work", message)
            }
        };
        Decision::Reject {
            code: code.to_owned(),
            message,
        }
    }
}

impl<S> Merger<S> {
    /// Returns the number of records that were judged.
    pub(crate) const fn rows(&self) -> u64 {
        self.totals.rows
    }

    /// Returns the reason to take no more, if there is one.
    pub(crate) fn excess(&self, most_rows: u64) -> Option<Excess> {
        let is_full = self.rows() > most_rows;
        is_full
            .then_some(Excess::Records(most_rows))
            .or_else(|| self.work.excess())
    }
}

impl<S: RowSink> Merger<S> {
    pub(crate) fn new(sink: S, on_refused: OnRefused) -> Self {
        Self {
            sink,
            tallies: Vec::new(),
            dropped: Vec::new(),
            refused: Vec::new(),
            on_refused,
            totals: Totals::new(on_refused),
            work: WorkTotal::default(),
        }
    }

    /// Adds the next chunk, and calls `on_refused` with the verdict on each of its records that is refused.
    pub(crate) fn push(
        &mut self,
        mut chunk: JudgedLines,
        mut on_refused: impl FnMut(&RowVerdict),
    ) -> Result<(), catalog::Error> {
        self.work.add(&chunk);
        self.totals.rows += u64::from(chunk.judged.report.rows);
        let again = self.seen_before(&chunk)?;
        if !again.is_empty() {
            reclassify_duplicates(&mut chunk, &again);
        }
        for (index, tally) in chunk.judged.report.tallies.into_iter().enumerate() {
            match self.tallies.get_mut(index) {
                Some(sum) => add(sum, &tally),
                None => self.tallies.push(tally),
            }
        }
        for said in chunk.judged.report.verdicts {
            self.totals.add(&said);
            if matches!(said.verdict, Verdict::Refuse { .. }) {
                on_refused(&said);
            }
            match &said.verdict {
                Verdict::Drop { .. } if self.dropped.len() < NAMED => self.dropped.push(said),
                Verdict::Refuse { .. } if self.refused.len() < NAMED => self.refused.push(said),
                _ => {}
            }
        }
        Ok(())
    }

    /// The rows of the chunk whose records came in a chunk before, with those that are new staged.
    fn seen_before(&mut self, chunk: &JudgedLines) -> Result<BTreeMap<u32, usize>, catalog::Error> {
        let mut again = BTreeMap::new();
        let row_of = |position: u32| chunk.places[position as usize].row;
        let position_of = |row: u32| chunk.places.binary_search_by_key(&row, |place| place.row).ok();
        // Nothing needs to be written of an upload that cannot be merged any more.
        if self.totals.is_lost() {
            for (key, position) in chunk.judged.passed.keys().iter().zip(chunk.judged.passed.positions()) {
                if !self.sink.note(*key)? {
                    again.insert(row_of(*position), *position as usize);
                }
            }
        } else {
            let keep = self.sink.push(&chunk.judged.passed)?;
            for (position, _) in chunk
                .judged
                .passed
                .positions()
                .iter()
                .zip(keep)
                .filter(|(_, keep)| !keep)
            {
                again.insert(row_of(*position), *position as usize);
            }
        }
        // The records that a later gate refused or held went through the gate of duplicates, too.
        for said in chunk
            .judged
            .report
            .verdicts
            .iter()
            .filter(|said| is_after_dedup(&said.verdict))
        {
            if let Some(position) = position_of(said.row)
                && !self.sink.note(chunk.keys[position])?
            {
                again.insert(said.row, position);
            }
        }
        Ok(again)
    }

    /// Ends the upload: the policy of a batch. Returns the decision, the report, and the place of the rows.
    pub(crate) fn decide(self) -> (Decision, Report, S) {
        let mut totals = self.totals;
        totals.passed = self.tallies.last().map_or(0, |tally| tally.passed.into());
        let rows = u32::try_from(totals.rows).unwrap_or(u32::MAX);
        let decision = Decision::of(&totals, Numbering::Lines);
        let mut verdicts = match (&decision, self.on_refused) {
            (Decision::Reject { code, .. }, _) if code == "refused" => self.refused,
            (_, OnRefused::Reject) => self.dropped,
            // The contributor gets a verdict for each record that is missing from the version, refused or duplicate.
            (_, OnRefused::Drop) => [self.refused, self.dropped].concat(),
        };
        verdicts.sort_by_key(|said| said.row);
        // Cut after the sort: the contributor sees the verdicts of the first lines.
        operators::verdict::fit(&mut verdicts, MAX_VERDICT_BYTES);
        let report = Report {
            rows,
            verdicts,
            tallies: self.tallies,
        };
        (decision, report, self.sink)
    }
}

impl Merger {
    /// Ends the upload: its rows are prepared where they are to be merged.
    pub(crate) fn end(self) -> Result<Judged, catalog::Error> {
        let (decision, report, stager) = self.decide();
        let prepared = match decision {
            Decision::Merge => Some(stager.finish()?),
            _ => None,
        };
        Ok(Judged {
            decision,
            prepared,
            report: Arc::new(report),
        })
    }
}

/// Returns true if a verdict is that of a gate after the gate of duplicates.
fn is_after_dedup(verdict: &Verdict) -> bool {
    let reason = match verdict {
        Verdict::Refuse { reasons } => reasons.first(),
        Verdict::Hold { reason, .. } => Some(reason),
        Verdict::Pass | Verdict::Drop { .. } => None,
    };
    reason.is_some_and(|Reason { gate, .. }| *gate != GateName::DECODE && *gate != GateName::CONTRACT)
}

/// Replaces the verdicts of records that came in an earlier chunk by the verdict that they are duplicates.
fn reclassify_duplicates(chunk: &mut JudgedLines, again: &BTreeMap<u32, usize>) {
    let mut by = BTreeMap::new();
    chunk.judged.report.verdicts.retain(|said| {
        let gone = again.contains_key(&said.row) && is_after_dedup(&said.verdict);
        if gone {
            by.insert(said.row, said.verdict.clone());
        }
        !gone
    });
    for (row, position) in again {
        let stopped = by.get(row).and_then(|verdict| match verdict {
            Verdict::Refuse { reasons } => reasons.first().map(|reason| (&reason.gate, true)),
            Verdict::Hold { reason, .. } => Some((&reason.gate, false)),
            Verdict::Pass | Verdict::Drop { .. } => None,
        });
        let mut after = false;
        for tally in &mut chunk.judged.report.tallies {
            if tally.gate == GateName::DEDUP {
                // The chunk counted the record as new at the gate of duplicates and at the gates behind
                // it. In one batch the gate of duplicates would have dropped it, so each of these gates
                // takes its count back.
                tally.passed -= 1;
                tally.dropped += 1;
                after = true;
            } else if after {
                tally.rows -= 1;
                match stopped {
                    Some((gate, refused)) if tally.gate == *gate => {
                        let count = if refused { &mut tally.refused } else { &mut tally.held };
                        *count -= 1;
                        break;
                    }
                    _ => tally.passed -= 1,
                }
            }
        }
        chunk
            .judged
            .report
            .verdicts
            .push(chunk.places[*position].verdict(duplicate()));
    }
    chunk.judged.report.verdicts.sort_by_key(|said| said.row);
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

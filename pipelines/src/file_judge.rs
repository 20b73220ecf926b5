//! Judging of the lines of a file by a contract alone: what an upload of it would be refused for, and what it repeats.
//!
//! Invariant: the records are judged as those of an upload are. Nothing is known of the records of a dataset, and nothing is
//! kept.

use std::collections::HashSet;
use std::sync::Arc;

use operators::{Decision, Reason, RowVerdict, Tally, Verdict};
use tokio::runtime::{Builder, Runtime};
use types::error::with_causes;
use types::key::NoKeys;
use types::vocabulary::OnRefused;
use types::{Batch, Contract, RecordKey};

use crate::context::MOST_ROWS;
use crate::judge::chunk::{LineContext, judge_lines};
use crate::judge::merger::{Merger, RowSink};
use crate::judge::split::LineChunk;
use crate::report::Report;

/// Bytes of lines that are judged at once, roughly.
const CHUNK_BYTES: usize = 1 << 20;
/// Values that are judged at once, counted with all fields of the contract.
const CHUNK_VALUES: usize = 1 << 16;

/// A record that is refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RefusedLine {
    /// Line of the file, from 1.
    pub line: u64,
    /// The reasons.
    pub reasons: Vec<Reason>,
    /// The record as its line has it; empty if none could be made.
    pub text: Vec<u8>,
}

/// What would become of the records of a file.
#[derive(Clone, Debug)]
pub struct JudgedFile {
    /// Number of the records that pass.
    pub passed: u64,
    /// Number of the records that are refused.
    pub refused: u64,
    /// Number of the records that repeat an earlier one.
    pub duplicates: u64,
    /// The first refused records, in order.
    pub first: Vec<RefusedLine>,
    /// The sentence of the decision, if the file would be rejected as a whole.
    pub rejected: Option<String>,
}

/// Judges lines as they come, on the thread of the caller.
#[derive(Debug)]
pub struct FileJudge {
    runtime: Runtime,
    context: LineContext,
    merger: Merger<SeenKeys>,
    /// Records that are not judged yet, one a line.
    text: Vec<u8>,
    /// Their lines in the file.
    lines: Vec<u64>,
    /// Number of the records before them.
    before: u64,
    chunks: u64,
    most_named: usize,
    named: Vec<RefusedLine>,
    /// Records that no line could be made of, by their places in `lines`, in order.
    unread: Vec<(usize, Vec<Reason>)>,
}

/// The keys of a file in memory.
#[derive(Debug, Default)]
struct SeenKeys(HashSet<RecordKey>);

impl RowSink for SeenKeys {
    fn push(&mut self, rows: &Batch) -> Result<Vec<bool>, catalog::Error> {
        Ok(rows.keys().iter().map(|key| self.0.insert(*key)).collect())
    }

    fn note(&mut self, key: RecordKey) -> Result<bool, catalog::Error> {
        Ok(self.0.insert(key))
    }
}

impl FileJudge {
    /// Begins to judge. The first `most_named` refused records are kept.
    ///
    /// # Errors
    /// The reason why this process cannot judge.
    pub fn new(contract: Arc<Contract>, on_refused: OnRefused, most_named: usize) -> Result<Self, String> {
        // Nothing here waits for anything, so the runtime needs no driver.
        let runtime = Builder::new_current_thread()
            .build()
            .map_err(|error| error.to_string())?;
        Ok(Self {
            runtime,
            context: LineContext {
                contract,
                known: Arc::new(NoKeys),
                screener: None,
                most_rows: MOST_ROWS,
                translation: None,
            },
            merger: Merger::new(SeenKeys::default(), on_refused),
            text: Vec::new(),
            lines: Vec::new(),
            before: 0,
            chunks: 0,
            most_named,
            named: Vec::new(),
            unread: Vec::new(),
        })
    }

    /// Judges the record of a line, from 1. Records come in order.
    ///
    /// # Errors
    /// The reason why this process cannot go on.
    pub fn push(&mut self, line: u64, record: &[u8]) -> Result<(), String> {
        let most = (CHUNK_VALUES / self.context.contract.fields().len().max(1)).max(1);
        if self.text.len() + record.len() > CHUNK_BYTES || self.lines.len() >= most {
            self.judge()?;
        }
        // A line end in JSON is a blank, unless the record is none.
        let blank = |byte: &u8| if *byte == b'\n' { b' ' } else { *byte };
        self.text.extend(record.iter().map(blank));
        self.text.push(b'\n');
        self.lines.push(line);
        Ok(())
    }

    /// Refuses a record that no line of JSON could be made of.
    ///
    /// # Errors
    /// The reason why this process cannot go on.
    pub fn refuse(&mut self, line: u64, reasons: Vec<Reason>) -> Result<(), String> {
        // An empty line keeps the place of the record and is not judged.
        self.push(line, b"")?;
        self.unread.push((self.lines.len() - 1, reasons));
        Ok(())
    }

    fn judge(&mut self) -> Result<(), String> {
        let (text, lines) = (std::mem::take(&mut self.text), std::mem::take(&mut self.lines));
        if lines.is_empty() {
            return Ok(());
        }
        let chunk = LineChunk {
            number: self.chunks,
            first: self.before,
            lines: lines.len(),
            text: text.clone(),
            too_long: false,
            records: None,
            read: None,
        };
        let mut judged = self.runtime.block_on(judge_lines(&self.context, chunk));
        self.add_unread(&mut judged.judged.report);
        for said in &mut judged.judged.report.verdicts {
            let at = usize::try_from(u64::from(said.row).saturating_sub(self.before)).unwrap_or(usize::MAX);
            said.line = lines.get(at).copied();
            let Verdict::Refuse { reasons } = &said.verdict else {
                continue;
            };
            if self.named.len() < self.most_named {
                let record = text.split(|byte| *byte == b'\n').nth(at).unwrap_or_default();
                self.named.push(RefusedLine {
                    line: said.line.unwrap_or(0),
                    reasons: reasons.clone(),
                    text: record.to_vec(),
                });
            }
        }
        self.chunks += 1;
        self.before += lines.len() as u64;
        self.merger.push(judged, |_| {}).map_err(|error| with_causes(&error))
    }

    /// Adds the records that no line could be made of to the counts and verdicts of the first gate, which decodes.
    fn add_unread(&mut self, report: &mut Report) {
        let refused = u32::try_from(self.unread.len()).unwrap_or(u32::MAX);
        report.rows = report.rows.saturating_add(refused);
        if let Some(decode) = report.tallies.first_mut() {
            decode.rows = decode.rows.saturating_add(refused);
            decode.refused = decode.refused.saturating_add(refused);
        }
        for (at, reasons) in self.unread.drain(..) {
            report.verdicts.push(RowVerdict {
                row: u32::try_from(self.before + at as u64).unwrap_or(u32::MAX),
                line: None,
                verdict: Verdict::Refuse { reasons },
            });
        }
        report.verdicts.sort_by_key(|said| said.row);
    }

    /// Ends the file.
    ///
    /// # Errors
    /// The reason why this process cannot go on.
    pub fn finish(mut self) -> Result<JudgedFile, String> {
        self.judge()?;
        let (decision, report, _keys) = self.merger.decide();
        let passed = report.tallies.last().map_or(0, |tally| u64::from(tally.passed));
        let sum = |count: fn(&Tally) -> u32| report.tallies.iter().map(|tally| u64::from(count(tally))).sum();
        Ok(JudgedFile {
            passed,
            refused: sum(|tally| tally.refused),
            duplicates: sum(|tally| tally.dropped),
            first: self.named,
            rejected: match decision {
                Decision::Reject { message, .. } => Some(message),
                Decision::Merge | Decision::Hold { .. } => None,
            },
        })
    }
}

#[cfg(test)]
mod tests {
    use types::{Field, FieldType};

    use super::*;

    #[test]
    fn lines_are_judged_with_their_numbers_and_repetitions() {
        let contract = Contract::new(vec![Field::new("n", FieldType::Integer)], false).unwrap();
        let mut judge = FileJudge::new(Arc::new(contract), OnRefused::Reject, 2).unwrap();
        judge.push(2, br#"{"n":1}"#).unwrap();
        judge.push(5, br#"{"n":"x"}"#).unwrap();
        judge.push(6, br#"{"n":1}"#).unwrap();
        judge.push(5_000, br#"{"n":2}"#).unwrap();
        judge.push(5_001, br#"{"m":2}"#).unwrap();
        judge.push(5_002, b"{").unwrap();
        let judged = judge.finish().unwrap();
        assert_eq!((judged.passed, judged.refused, judged.duplicates), (2, 3, 1));
        let lines: Vec<_> = judged
            .first
            .iter()
            .map(|refused| (refused.line, &refused.text[..]))
            .collect();
        assert_eq!(lines, [(5, &br#"{"n":"x"}"#[..]), (5_001, &br#"{"m":2}"#[..])]);
        assert_eq!(judged.first[0].reasons[0].path, "/n");
        assert!(judged.rejected.is_some());
    }

    #[test]
    fn records_that_are_no_lines_count_as_those_that_break_the_contract() {
        let contract = Contract::new(vec![Field::new("n", FieldType::Integer)], false).unwrap();
        let reasons = || {
            vec![Reason {
                gate: operators::GateName::DECODE,
                code: "value".to_owned(),
                path: "/n".to_owned(),
                expected: "a number".to_owned(),
                actual: "a value that is none".to_owned(),
            }]
        };
        let judged = |refused: u64, on_refused| {
            let mut judge = FileJudge::new(Arc::new(contract.clone()), on_refused, 9).unwrap();
            for line in 0..10 {
                if line < refused {
                    judge.refuse(line + 2, reasons()).unwrap();
                } else {
                    judge.push(line + 2, format!("{{\"n\":{line}}}").as_bytes()).unwrap();
                }
            }
            judge.finish().unwrap()
        };
        let lost = judged(6, OnRefused::Drop);
        assert_eq!((lost.passed, lost.refused, lost.first.len()), (4, 6, 6));
        let rejected = lost.rejected.unwrap();
        assert!(
            rejected.starts_with("6 of 10 records are refused, more than half"),
            "{rejected}"
        );
        assert!(rejected.contains("the first is on line 2"), "{rejected}");
        assert_eq!(judged(5, OnRefused::Drop).rejected, None);
        assert!(judged(1, OnRefused::Reject).rejected.is_some());
    }
}

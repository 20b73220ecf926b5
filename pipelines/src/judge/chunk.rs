//! Judging one chunk of records: the records of a batch, or some lines of an upload.
//!
//! Invariant: every record is judged by the one chain of [`judge_chunk`]. What is said of a record of an upload is said
//! under the index of its line.

use std::sync::Arc;

use operators::gates::lost_digits;
use operators::screen::Screener;
use operators::{GateName, Judged, Reason, RowVerdict, Tally, Verdict, standard_chain};
use types::batch::LineDecoder;
use types::key::KeyLookup;
use types::{Batch, Contract, RecordKey, fault, json};

use super::split::{LineChunk, MAX_LINE_BYTES};
use crate::report::Report;

/// Bytes of a parser's message that are repeated.
const WORDS: usize = 200;

/// A chunk that was judged.
#[derive(Debug)]
pub(crate) struct JudgedChunk {
    /// The rows that passed.
    pub(crate) passed: Batch,
    pub(crate) report: Report,
}

/// Judges the records of a chunk by the gates, and by the screener if there is one.
pub(crate) async fn judge_chunk(
    known: Arc<dyn KeyLookup>,
    screener: Option<Arc<dyn Screener>>,
    records: Batch,
) -> JudgedChunk {
    let Judged {
        passed,
        rows,
        verdicts,
        tallies,
    } = standard_chain(known, screener).run(records).await;
    JudgedChunk {
        passed,
        report: Report {
            rows,
            verdicts,
            tallies,
        },
    }
}

/// Parts that judging the lines of an upload needs.
#[derive(Clone, Debug)]
pub(crate) struct LineContext {
    pub(crate) contract: Arc<Contract>,
    pub(crate) known: Arc<dyn KeyLookup>,
    pub(crate) screener: Option<Arc<dyn Screener>>,
    /// The most records that there may be.
    pub(crate) most_rows: u64,
}

/// Lines that were judged.
#[derive(Debug)]
pub(crate) struct JudgedLines {
    pub(crate) number: u64,
    /// The index of the line of each record that the chain judged, in order.
    pub(crate) lines: Vec<u32>,
    /// The keys of these records.
    pub(crate) keys: Vec<RecordKey>,
    /// The rows that passed, with a report on all lines: verdicts by line, and the tally of `decode` first.
    pub(crate) judged: JudgedChunk,
}

/// Decodes and judges lines.
pub(crate) async fn judge_lines(context: &LineContext, chunk: LineChunk) -> JudgedLines {
    let mut records = LineDecoder::new(&context.contract, chunk.lines, chunk.text.len());
    let mut lines = Vec::new();
    let mut verdicts = Vec::new();
    let mut line = u32::try_from(chunk.first).unwrap_or(u32::MAX);
    if chunk.too_long {
        verdicts.push(too_long(line));
    }
    let mut rest = &chunk.text[..];
    while !rest.is_empty() {
        let end = memchr::memchr(b'\n', rest).map_or(rest.len(), |end| end + 1);
        // Lines may end in CR LF, and JSON allows blanks around a text. Neither is part of the record.
        let text = rest[..end].trim_ascii();
        rest = &rest[end..];
        fault::crash_on(text);
        if text.len() > MAX_LINE_BYTES {
            verdicts.push(too_long(line));
        // Empty lines are no records, but they count: verdicts name lines as an editor numbers them.
        } else if !text.is_empty() {
            match decode(&mut records, text) {
                Ok(()) => lines.push(line),
                Err(UndecodedLine::Malformed(error)) => verdicts.push(malformed(line, &error)),
                Err(UndecodedLine::Digits(numbers)) => verdicts.push(RowVerdict {
                    row: line,
                    verdict: lost_digits(&numbers),
                }),
            }
        }
        line = line.saturating_add(1);
    }
    let decoded = decoded(records.len(), verdicts.len());
    let batch = records.finish();
    let keys = batch.keys().to_vec();
    let JudgedChunk { passed, report } = judge_chunk(Arc::clone(&context.known), context.screener.clone(), batch).await;
    verdicts.extend(report.verdicts.into_iter().map(|mut said| {
        said.row = lines[said.row as usize];
        if let Verdict::Drop { reason } = &mut said.verdict
            && reason.code == DUPLICATE
        {
            // Not the record that the reason names: it is named by its place in the chunk.
            AS_BEFORE.clone_into(&mut reason.actual);
        }
        said
    }));
    verdicts.sort_by_key(|said| said.row);
    let rows = decoded.rows;
    let mut tallies = vec![decoded];
    tallies.extend(report.tallies);
    JudgedLines {
        number: chunk.number,
        lines,
        keys,
        judged: JudgedChunk {
            passed,
            report: Report {
                rows,
                verdicts,
                tallies,
            },
        },
    }
}

/// Reason for which a line is no record.
enum UndecodedLine {
    Malformed(json::JsonError),
    /// A double drops digits of these numbers.
    Digits(Vec<json::LostDigits>),
}

/// Decodes the record on a line.
fn decode(records: &mut LineDecoder<'_>, line: &[u8]) -> Result<(), UndecodedLine> {
    // Before the record is added, which cannot be undone. A batch is checked where its body enters.
    let numbers = json::check_digits(line);
    if numbers.is_empty() {
        return records.push(line).map_err(UndecodedLine::Malformed);
    }
    // The scan takes any text for JSON.
    json::parse(line).map_err(UndecodedLine::Malformed)?;
    Err(UndecodedLine::Digits(numbers))
}

/// Code of the gate of duplicates for a record that came before in the same batch.
pub(crate) const DUPLICATE: &str = "duplicate_in_batch";
/// Description of such a record.
const AS_BEFORE: &str = "the same as a record before it";

/// The verdict on a record that came before in the same upload.
pub(crate) fn duplicate() -> Verdict {
    Verdict::Drop {
        reason: Reason {
            gate: GateName::DEDUP,
            code: DUPLICATE.to_owned(),
            path: String::new(),
            expected: "a record the batch does not have before".to_owned(),
            actual: AS_BEFORE.to_owned(),
        },
    }
}

fn decoded(passed: usize, refused: usize) -> Tally {
    let count = |rows: usize| u32::try_from(rows).unwrap_or(u32::MAX);
    Tally {
        gate: GateName::DECODE,
        rows: count(passed + refused),
        passed: count(passed),
        dropped: 0,
        refused: count(refused),
        held: 0,
    }
}

fn refused(line: u32, code: &str, path: String, expected: String, actual: String) -> RowVerdict {
    let reason = Reason {
        gate: GateName::DECODE,
        code: code.to_owned(),
        path,
        expected,
        actual,
    };
    RowVerdict {
        row: line,
        verdict: Verdict::Refuse { reasons: vec![reason] },
    }
}

fn too_long(line: u32) -> RowVerdict {
    let expected = format!("a line of at most {MAX_LINE_BYTES} bytes");
    refused(
        line,
        "line_too_long",
        String::new(),
        expected,
        "a longer one".to_owned(),
    )
}

fn malformed(line: u32, error: &json::JsonError) -> RowVerdict {
    let mut problem = error.problem.clone();
    // The parser was given one line, and calls it the first.
    if let Some((before, column)) = problem.rsplit_once(" at line 1 column ") {
        problem = format!("{before} at line {} column {column}", u64::from(line) + 1);
    }
    problem.truncate(problem.floor_char_boundary(WORDS));
    let mut path = error.path.clone();
    path.truncate(path.floor_char_boundary(WORDS));
    let expected = "one strict JSON object on the line".to_owned();
    refused(line, "malformed_json", path, expected, problem)
}

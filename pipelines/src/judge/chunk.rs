//! Judging one chunk of records: the records of a batch, or some lines of an upload.
//!
//! Invariant: every record is judged by the one chain of [`judge_chunk`]. What is said of a record of an upload is said
//! under its place in the file.

use std::sync::Arc;

use operators::gates::lost_digits;
use operators::screen::Screener;
use operators::{GateName, Judged, Reason, RowVerdict, Tally, Verdict, standard_chain};
use parking_lot::Mutex;
use tabular::reading::{Reading, ReadingError};
use tabular::translate::{CellProblem, Translator, other_tz_release};
use types::batch::LineDecoder;
use types::key::KeyLookup;
use types::vocabulary::Compression;
use types::{Batch, Contract, RecordKey, fault, json};

use super::split::{ChunkRecord, LineChunk, MAX_LINE_BYTES, SplitPlan};
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
#[derive(Debug)]
pub(crate) struct LineContext {
    pub(crate) contract: Arc<Contract>,
    pub(crate) known: Arc<dyn KeyLookup>,
    pub(crate) screener: Option<Arc<dyn Screener>>,
    /// The most records that there may be.
    pub(crate) most_rows: u64,
    /// Translation of its records, if they are not lines of the contract.
    pub(crate) translation: Option<Translation>,
}

impl LineContext {
    /// Returns how an upload is split into chunks for this context.
    pub(crate) fn plan(&self, compression: Compression) -> SplitPlan {
        let translation = self.translation.as_ref();
        SplitPlan {
            compression,
            reading: translation.map(|translation| Arc::clone(&translation.reading)),
            is_by_record: translation.is_some_and(|translation| translation.is_by_record),
            fields: self.contract.fields().len(),
            name_bytes: translation.map_or(0, |translation| translation.name_bytes),
        }
    }
}

/// Translation of the records of a file by its reading.
#[derive(Debug)]
pub(crate) struct Translation {
    reading: Arc<Reading>,
    name_bytes: usize,
    translator: Translator,
    /// Copies of it that no judge uses now: making one costs more than translating some records.
    free: Mutex<Vec<Translator>>,
    /// What the contributor is to know of it.
    note: Option<String>,
    /// True if records are told by their numbers, also those that are lines of the contract.
    is_by_record: bool,
}

impl Translation {
    /// Does the same as [`Self::new`], and tells records by their numbers also if each line is one.
    pub(crate) fn by_record(reading: Reading, contract: &Contract) -> Result<Self, ReadingError> {
        Ok(Self {
            is_by_record: true,
            ..Self::new(reading, contract)?
        })
    }

    /// Returns the translation of a file to records of `contract`.
    pub(crate) fn new(reading: Reading, contract: &Contract) -> Result<Self, ReadingError> {
        let translator = Translator::new(&reading, contract)?;
        let note = other_tz_release(&reading).map(|own| {
            let other = reading.tz.as_deref().unwrap_or_default();
            format!("times were read by release {own} of the time zone database; the reading was made with {other}")
        });
        Ok(Self {
            reading: Arc::new(reading),
            name_bytes: translator.record_work().0,
            translator,
            free: Mutex::default(),
            note,
            is_by_record: false,
        })
    }
}

/// Lines that were judged.
#[derive(Debug)]
pub(crate) struct JudgedLines {
    pub(crate) number: u64,
    /// The place of each record that the chain judged, in order.
    pub(crate) places: Vec<RecordPlace>,
    /// The keys of these records.
    pub(crate) keys: Vec<RecordKey>,
    /// The rows that passed, with a report on all lines: verdicts by row, and the tally of `decode` first.
    pub(crate) judged: JudgedChunk,
    /// Bytes of the text that was translated.
    pub(crate) text: u64,
    /// Bytes that its records come to as JSON; 0 if nothing was translated.
    pub(crate) work: u64,
    /// Bytes that were read of a compressed upload by now.
    pub(crate) read: Option<u64>,
}

/// Place of a record in its file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RecordPlace {
    /// Index of the line, or of the record if the upload has a reading: a line may have several records then.
    pub(crate) row: u32,
    /// Line on which it begins, from 1.
    pub(crate) line: u64,
}

impl RecordPlace {
    fn of_line(index: u64) -> Self {
        Self {
            row: u32::try_from(index).unwrap_or(u32::MAX),
            line: index.saturating_add(1),
        }
    }

    /// Returns the verdict on the record.
    pub(crate) const fn verdict(self, verdict: Verdict) -> RowVerdict {
        RowVerdict {
            row: self.row,
            line: Some(self.line),
            verdict,
        }
    }
}

/// Records of a chunk that became rows, and the verdicts on the others.
struct DecodedChunk {
    batch: Batch,
    places: Vec<RecordPlace>,
    verdicts: Vec<RowVerdict>,
    work: u64,
}

/// Decodes and judges lines.
pub(crate) async fn judge_lines(context: &LineContext, chunk: LineChunk) -> JudgedLines {
    let (number, text, read) = (chunk.number, chunk.text.len() as u64, chunk.read);
    let DecodedChunk {
        batch,
        places,
        mut verdicts,
        work,
    } = match (&chunk.records, &context.translation) {
        (Some(records), Some(translation)) => translate_records(context, translation, &chunk, records),
        _ => decode_lines(context, &chunk),
    };
    // The rows have all of it, and a screener may take its time.
    drop(chunk);
    let mut decoded = decoded(batch.len(), verdicts.len());
    decoded.note = context
        .translation
        .as_ref()
        .and_then(|translation| translation.note.clone());
    let keys = batch.keys().to_vec();
    let JudgedChunk { passed, report } = judge_chunk(Arc::clone(&context.known), context.screener.clone(), batch).await;
    verdicts.extend(report.verdicts.into_iter().map(|said| {
        let mut verdict = said.verdict;
        if let Verdict::Drop { reason } = &mut verdict
            && reason.code == DUPLICATE
        {
            // Not the record that the reason names: it is named by its place in the chunk.
            AS_BEFORE.clone_into(&mut reason.actual);
        }
        places[said.row as usize].verdict(verdict)
    }));
    verdicts.sort_by_key(|said| said.row);
    let rows = decoded.rows;
    let mut tallies = vec![decoded];
    tallies.extend(report.tallies);
    JudgedLines {
        number,
        places,
        keys,
        judged: JudgedChunk {
            passed,
            report: Report {
                rows,
                verdicts,
                tallies,
            },
        },
        text,
        work,
        read,
    }
}

/// Decodes lines of which each is a record.
fn decode_lines(context: &LineContext, chunk: &LineChunk) -> DecodedChunk {
    let mut records = LineDecoder::new(&context.contract, chunk.lines, chunk.text.len());
    let mut places = Vec::new();
    let mut verdicts = Vec::new();
    let mut index = chunk.first;
    if chunk.too_long {
        verdicts.push(too_long(RecordPlace::of_line(index)));
    }
    let mut rest = &chunk.text[..];
    while !rest.is_empty() {
        let end = memchr::memchr(b'\n', rest).map_or(rest.len(), |end| end + 1);
        // Lines may end in CR LF, and JSON allows blanks around a text. Neither is part of the record.
        let text = rest[..end].trim_ascii();
        rest = &rest[end..];
        fault::crash_on(text);
        let place = RecordPlace::of_line(index);
        if text.len() > MAX_LINE_BYTES {
            verdicts.push(too_long(place));
        // Empty lines are no records, but they count: verdicts name lines as an editor numbers them.
        } else if !text.is_empty() {
            match decode(&mut records, text) {
                Ok(()) => places.push(place),
                Err(UndecodedLine::Malformed(error)) => verdicts.push(malformed(place, &error)),
                Err(UndecodedLine::Digits(numbers)) => verdicts.push(place.verdict(lost_digits(&numbers))),
            }
        }
        index = index.saturating_add(1);
    }
    DecodedChunk {
        batch: records.finish(),
        places,
        verdicts,
        work: 0,
    }
}

/// Translates records by the reading of their file, and decodes them.
fn translate_records(
    context: &LineContext,
    translation: &Translation,
    chunk: &LineChunk,
    records: &[ChunkRecord],
) -> DecodedChunk {
    let free = translation.free.lock().pop();
    let mut translator = free.unwrap_or_else(|| translation.translator.clone());
    let mut verdicts = Vec::new();
    let mut places = Vec::new();
    let mut work = 0;
    let names = translation.name_bytes.saturating_mul(records.len());
    let mut rows = LineDecoder::new(&context.contract, records.len(), chunk.text.len().saturating_add(names));
    // As in an upload without a reading.
    let is_plain = translation.reading.is_plain_lines();
    let mut line = Vec::new();
    let mut begin = 0;
    for (number, record) in (chunk.first..).zip(records) {
        let text = &chunk.text[begin..record.end];
        begin = record.end;
        fault::crash_on(text);
        let place = RecordPlace {
            row: u32::try_from(number).unwrap_or(u32::MAX),
            line: record.line,
        };
        if record.is_too_long {
            verdicts.push(too_long(place));
            continue;
        }
        if is_plain {
            match decode(&mut rows, text) {
                Ok(()) => places.push(place),
                Err(UndecodedLine::Malformed(error)) => verdicts.push(malformed(place, &error)),
                Err(UndecodedLine::Digits(numbers)) => verdicts.push(place.verdict(lost_digits(&numbers))),
            }
            continue;
        }
        line.clear();
        match translator.translate(text, number, &mut line) {
            Ok(()) => match rows.push(&line) {
                Ok(()) => places.push(place),
                Err(error) => verdicts.push(untranslated(place, &error)),
            },
            Err(problems) => {
                verdicts.push(place.verdict(cell_problems(problems)));
                // A refused record costs the work of one that passes, though its line ends at the first problem.
                work += (text.len() + translation.name_bytes).saturating_sub(line.len()) as u64;
            }
        }
        work += line.len() as u64;
    }
    translation.free.lock().push(translator);
    DecodedChunk {
        batch: rows.finish(),
        places,
        verdicts,
        work,
    }
}

/// Returns the verdict on a record that could not be translated.
fn cell_problems(problems: Vec<CellProblem>) -> Verdict {
    let reason = |problem: CellProblem| Reason {
        gate: GateName::DECODE,
        actual: match problem.code {
            // It counts the problems that are not named.
            "more" => problem.problem,
            "cells" => format!("a record that {}", problem.problem),
            _ => format!("a value that {}", problem.problem),
        },
        code: problem.code.to_owned(),
        path: problem.path,
        expected: problem.expected,
    };
    operators::verdict::refusal(problems.into_iter().map(reason).collect())
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
        note: None,
    }
}

fn refused(place: RecordPlace, code: &str, path: String, expected: String, actual: String) -> RowVerdict {
    let reason = Reason {
        gate: GateName::DECODE,
        code: code.to_owned(),
        path,
        expected,
        actual,
    };
    place.verdict(Verdict::Refuse { reasons: vec![reason] })
}

fn too_long(place: RecordPlace) -> RowVerdict {
    let expected = format!("a line of at most {MAX_LINE_BYTES} bytes");
    refused(
        place,
        "line_too_long",
        String::new(),
        expected,
        "a longer one".to_owned(),
    )
}

fn malformed(place: RecordPlace, error: &json::JsonError) -> RowVerdict {
    let mut problem = error.problem.clone();
    // The parser was given one line, and calls it the first.
    if let Some((before, column)) = problem.rsplit_once(" at line 1 column ") {
        problem = format!("{before} at line {} column {column}", place.line);
    }
    malformed_by(place, error, problem, "one strict JSON object on the line")
}

/// Returns the verdict on a record that is no JSON, also as it was translated.
fn untranslated(place: RecordPlace, error: &json::JsonError) -> RowVerdict {
    // Lines and columns are those of the record alone.
    let problem = error
        .problem
        .rsplit_once(" at line ")
        .map_or(&*error.problem, |(before, _)| before);
    malformed_by(place, error, problem.to_owned(), "one strict JSON object")
}

fn malformed_by(place: RecordPlace, error: &json::JsonError, mut problem: String, expected: &str) -> RowVerdict {
    problem.truncate(problem.floor_char_boundary(WORDS));
    let mut path = error.path.clone();
    path.truncate(path.floor_char_boundary(WORDS));
    refused(place, "malformed_json", path, expected.to_owned(), problem)
}

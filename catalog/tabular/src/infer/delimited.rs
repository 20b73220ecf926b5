//! The pass over a delimited text.
//!
//! Invariant: a record that cannot be taken says nothing about the types of its columns, and has a note.

use std::io::Read;

use super::answer::{FileFormat, Note, Question, shown};
use super::decide::Remarks;
use super::dialect::Dialect;
use super::finish::{FoundColumn, FoundFile};
use super::options::InferOptions;
use super::profile::{ColumnProfile, Exclusion, MAX_KEPT_BYTES};
use super::{InferError, LimitedText};
use crate::csv::{CsvRecord, MAX_RECORD_BYTES, RecordProblem};
use crate::frame::{FrameError, RecordReader};
use crate::reading::{ColumnReading, Reading, TextFormat};
use crate::values::NullWords;

/// The most columns of a file.
pub(super) const MAX_FILE_COLUMNS: usize = 10_000;
/// The most characters of the cells of a line that is asked about.
const LINE_CHARACTERS: usize = 60;

/// A line of the data that may be none.
#[derive(Clone, Debug, Default)]
struct EdgeLine {
    line: u64,
    cells: Vec<String>,
}

impl EdgeLine {
    fn of(record: &CsvRecord) -> Self {
        Self {
            line: record.line(),
            cells: record
                .cells()
                .map(|cell| shown(&String::from_utf8_lossy(cell)))
                .collect(),
        }
    }
}

/// The pass over the records of one file.
struct DelimitedPass<'a> {
    dialect: &'a Dialect,
    profiles: Vec<ColumnProfile>,
    budget: usize,
    records: u64,
    blank_lines: u64,
    first: Option<EdgeLine>,
    /// Records with another number of cells, and with text behind a quote, and that are too long.
    uneven: Exclusion,
    uneven_cells: usize,
    broken: Exclusion,
}

impl DelimitedPass<'_> {
    fn add(&mut self, record: &CsvRecord) {
        let line = record.line();
        self.records += 1;
        match record.problem() {
            Some(RecordProblem::AfterQuote(cell)) => {
                let name = self.dialect.names.get(cell).map_or("", String::as_str);
                count(&mut self.broken, line, || {
                    format!("text follows the quote that closes column `{}`", shown(name))
                });
                return;
            }
            Some(RecordProblem::TooLong) => {
                count(&mut self.broken, line, || {
                    format!("the record has more than {} MiB", MAX_RECORD_BYTES >> 20)
                });
                return;
            }
            None => {}
        }
        // A delimiter at the end of the header alone is no column of the others.
        let is_short =
            record.len() + 1 == self.profiles.len() && self.dialect.names.last().is_some_and(String::is_empty);
        if record.len() != self.profiles.len() && !is_short {
            if self.uneven.count == 0 {
                self.uneven_cells = record.len();
            }
            count(&mut self.uneven, line, String::new);
            return;
        }
        for (profile, cell) in self.profiles.iter_mut().zip(record.cells()) {
            profile.add_cell(cell, line, &mut self.budget);
        }
        if self.first.is_none() {
            self.first = Some(EdgeLine::of(record));
        }
    }

    fn note(&self, remarks: &mut Remarks) {
        if self.uneven.count > 0 {
            let message = format!(
                "line {} has {} cells, the header has {}; {} such records will be refused",
                self.uneven.line,
                self.uneven_cells,
                self.profiles.len(),
                self.uneven.count
            );
            remarks.note(Note::new("cells", message).line(self.uneven.line));
        }
        if self.broken.count > 0 {
            let message = format!(
                "line {}: {}; {} such records will be refused",
                self.broken.line, self.broken.value, self.broken.count
            );
            remarks.note(Note::new("broken_records", message).line(self.broken.line));
        }
        if self.blank_lines > 0 {
            let message = format!("{} lines without a value are left out", self.blank_lines);
            remarks.note(Note::new("blank_lines", message));
        }
    }
}

fn count(problem: &mut Exclusion, line: u64, words: impl FnOnce() -> String) {
    if problem.count == 0 {
        (problem.line, problem.value) = (line, words());
    }
    problem.count += 1;
}

/// Reads all records of a text.
pub(super) fn infer_delimited<R: Read>(
    text: &mut LimitedText<R>,
    dialect: &Dialect,
    options: &InferOptions,
) -> Result<(FoundFile, Remarks), InferError> {
    let mut remarks = Remarks::default();
    remarks.notes.clone_from(&dialect.notes);
    remarks.questions.clone_from(&dialect.questions);
    if dialect.names.len() > MAX_FILE_COLUMNS {
        return Err(InferError::Unreadable {
            code: "too_many_columns",
            problem: format!("it has more than {MAX_FILE_COLUMNS} columns"),
            remedy: "leave out some of them, or send them as rows".to_owned(),
        });
    }
    let asked_nulls = |name: &str| asked_null_words(name, options);
    let mut pass = DelimitedPass {
        dialect,
        profiles: dialect
            .names
            .iter()
            .map(|name| ColumnProfile::with_nulls(asked_nulls(name)))
            .collect(),
        budget: MAX_KEPT_BYTES,
        records: 0,
        blank_lines: 0,
        first: None,
        uneven: Exclusion::default(),
        uneven_cells: 0,
        broken: Exclusion::default(),
    };
    let reading = Reading {
        format: TextFormat::Csv,
        delimiter: char::from(dialect.format.delimiter),
        quote: dialect.format.quote.map(char::from),
        escape: dialect.format.escape,
        header_line: dialect.header_line,
        skip_lines: dialect.skip_lines.clone(),
        empty_text: options.empty_text,
        columns: dialect.names.iter().map(|name| named_column(name)).collect(),
        ..Reading::default()
    };
    let mut reader = RecordReader::new(&mut *text, &reading).map_err(|error| InferError::of_reading(&error))?;
    let (mut held, mut record) = (CsvRecord::default(), CsvRecord::default());
    // A record is looked at when the next one is there: the last one of a text that was cut is no whole one.
    let mut is_held = false;
    let mut raw = Vec::new();
    let end = loop {
        raw.clear();
        match reader.read(&mut raw) {
            Ok(Some(found)) => record.set(&raw, found.line, dialect.format),
            Ok(None) => break Ok(()),
            Err(error) => break Err(error),
        }
        if is_held {
            pass.add(&held);
        }
        std::mem::swap(&mut held, &mut record);
        is_held = true;
    };
    pass.blank_lines = reader.blank_rows();
    let is_cut = text.is_cut();
    // A record that was given out before a failure is whole: only the last one of a text that was cut is not.
    let is_last_whole = !is_cut || end.is_err();
    let malformed = match end {
        Ok(()) => None,
        Err(FrameError::Unclosed { .. }) if is_cut => None,
        Err(error) => Some(InferError::malformed(error)?),
    };
    let is_whole = malformed.is_none() && !is_cut;
    if is_held && is_last_whole {
        pass.add(&held);
    }
    pass.note(&mut remarks);
    let last = (is_held && is_whole && held.len() == pass.profiles.len()).then(|| EdgeLine::of(&held));
    let asked_lines = edge_questions(&pass, last.as_ref(), &mut remarks);
    let columns = dialect.names.iter().zip(std::mem::take(&mut pass.profiles));
    let mut columns: Vec<FoundColumn> = columns
        .map(|(name, profile)| FoundColumn {
            name: name.clone(),
            profile,
            is_left_out: false,
        })
        .collect();
    if let Some(last) = columns.last_mut().filter(|_| dialect.names.len() > 1) {
        last.is_left_out = last.name.trim().is_empty() && last.profile.is_empty();
    }
    let reading = Reading {
        columns: Vec::new(),
        ..reading
    };
    let found = FoundFile {
        format: FileFormat::Csv,
        complete: is_whole,
        malformed,
        text_bytes: text.bytes_read(),
        records: pass.records,
        columns,
        reading,
        asked_lines,
    };
    Ok((found, remarks))
}

fn named_column(name: &str) -> ColumnReading {
    ColumnReading {
        from: name.to_owned(),
        ..ColumnReading::default()
    }
}

/// Returns the words that a person calls null in a column of this name.
pub(super) fn asked_null_words(name: &str, options: &InferOptions) -> NullWords {
    NullWords::new(&asked_nulls(name, options))
}

/// Returns the words that a person calls null in a column of this name, or everywhere.
pub(super) fn asked_nulls(name: &str, options: &InferOptions) -> Vec<String> {
    let folded = crate::names::fold(name, 0);
    let renamed = options
        .renames
        .iter()
        .find(|(old, _)| old == name)
        .map(|(_, new)| new.as_str());
    let mut words: Vec<String> = Vec::new();
    for asked in &options.nulls {
        // A word may have `=` itself, so the part before it is looked at as a name first.
        let of_column = asked.match_indices('=').find_map(|(place, _)| {
            let (column, word) = (&asked[..place], &asked[place + 1..]);
            let is_named = column == name || column == folded || Some(column) == renamed;
            is_named.then(|| word.to_owned())
        });
        match of_column {
            Some(word) => words.push(word),
            // What names another column is no cell of this one.
            None => words.push(asked.clone()),
        }
    }
    if let Some(reading) = &options.reading {
        words.extend(reading.nulls.iter().cloned());
        words.extend(
            options
                .reading_of(name)
                .into_iter()
                .flat_map(|column| column.nulls.iter().cloned()),
        );
    }
    words.sort_unstable();
    words.dedup();
    words
}

/// Asks about a first record that describes the columns, and a last one that sums them up: it alone is of other types.
fn edge_questions(pass: &DelimitedPass<'_>, last: Option<&EdgeLine>, remarks: &mut Remarks) -> Vec<u64> {
    /// Fewer records say nothing about which of them is another.
    const MIN_RECORDS: u64 = 4;
    let mut asked = Vec::new();
    if pass.records < MIN_RECORDS {
        return asked;
    }
    let breaks = |line: u64| -> Vec<&str> {
        let broken = pass
            .profiles
            .iter()
            .zip(&pass.dialect.names)
            .filter(|(profile, _)| profile.is_broken_by(line));
        broken.map(|(_, name)| name.as_str()).collect()
    };
    if let Some(first) = pass.first.as_ref().filter(|_| pass.dialect.header_line > 0) {
        let is_text = |cell: &String| {
            let mut alone = ColumnProfile::default();
            alone.add_cell(cell.as_bytes(), 0, &mut 0);
            cell.is_empty() || alone.number.count == 0 && alone.time.dates + alone.time.times == 0
        };
        let columns = breaks(first.line);
        if !columns.is_empty() && first.cells.iter().all(is_text) {
            remarks.ask(edge_question(
                "description_line",
                "describes the columns",
                first,
                &columns,
            ));
            asked.push(first.line);
        }
    }
    if let Some(last) = last.filter(|last| !asked.contains(&last.line)) {
        let columns = breaks(last.line);
        if !columns.is_empty() {
            remarks.ask(edge_question("last_line", "sums up the others", last, &columns));
            asked.push(last.line);
        }
    }
    asked
}

fn edge_question(code: &'static str, does: &str, edge: &EdgeLine, columns: &[&str]) -> Question {
    let cells: String = edge.cells.join(", ").chars().take(LINE_CHARACTERS).collect();
    let column = columns.first().copied().unwrap_or_default();
    let message = format!(
        "line {} alone is of other types, as in column `{}`: perhaps it {does} and is no record (`{cells}`)",
        edge.line,
        shown(column)
    );
    let mut question =
        Question::new(code, message)
            .line(edge.line)
            .column(column)
            .remedy("--skip-lines", &[], &edge.line.to_string());
    for column in columns {
        question = question.remedy("--types", &[column], "=string");
    }
    question
}

//! The dialect of a delimited text, by its begin: delimiter, quotes, the lines before the data, the header.
//!
//! Invariant: the work is linear in the sample, and a dialect that is not the plain one comes with a note.

use super::answer::{Note, Question, shown};
use super::options::{InferOptions, QuoteSign};
use crate::csv::{CsvFormat, CsvReader, CsvRecord, RecordProblem};
use crate::frame::header_names;
use crate::reading::{MAX_HEADER_LINE, QuoteEscape};
use crate::values::{DateForms, TimeShape, WrittenNumber};

/// Delimiters that are tried, in this order.
const DELIMITERS: [u8; 4] = [b',', b'\t', b';', b'|'];
/// Records of the sample that are looked at for a header.
const HEADER_RECORDS: usize = 200;
/// Records of the sample that are kept: lines of remarks, the header, and records to tell it by.
const KEPT_RECORDS: usize = 1_200;
/// Records behind the lines of a title that all have the cells of the table.
const TABLE_RECORDS: usize = 20;
/// Cells with a broken quote from which on quotes are taken for characters, if the file is even without them. One or
/// two are mistakes, and such a record is better refused.
const MIN_BROKEN_QUOTES: usize = 3;

/// Form of a delimited text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Dialect {
    pub(super) format: CsvFormat,
    /// Line of the header, 0 if there is none.
    pub(super) header_line: u64,
    /// Lines that are left out.
    pub(super) skip_lines: Vec<u64>,
    /// Names of the columns as the reading has them; made up without a header.
    pub(super) names: Vec<String>,
    pub(super) notes: Vec<Note>,
    pub(super) questions: Vec<Question>,
}

/// A record of the sample.
#[derive(Clone, Debug)]
struct SampleRow {
    line: u64,
    record: CsvRecord,
    cells: Vec<String>,
    is_blank: bool,
}

/// The sample by one dialect.
#[derive(Clone, Debug, Default)]
struct SampleRows {
    rows: Vec<SampleRow>,
    /// Records with text behind a closing quote, and a cell that is never closed.
    broken: usize,
    /// The number of cells that most records have, and the number of these records.
    width: usize,
    even: usize,
    /// Number of all records but blank ones.
    counted: usize,
}

impl SampleRows {
    /// Reads a sample. The last record of one that `is_cut` is left out, since it may be a part.
    fn read(sample: &[u8], format: CsvFormat, is_cut: bool) -> Self {
        let mut found = Self::default();
        let mut reader = CsvReader::with_format(sample, format);
        let mut record = CsvRecord::default();
        let mut widths = std::collections::HashMap::new();
        loop {
            match reader.read(&mut record) {
                Ok(true) => {}
                Ok(false) => break,
                Err(_) => {
                    found.broken += usize::from(!is_cut);
                    break;
                }
            }
            let is_broken = matches!(record.problem(), Some(RecordProblem::AfterQuote(_)));
            found.broken += usize::from(is_broken);
            if !record.is_blank() {
                *widths.entry(record.len()).or_insert(0_usize) += 1;
            }
            found.counted += usize::from(!record.is_blank());
            if found.rows.len() < KEPT_RECORDS {
                found.rows.push(SampleRow {
                    line: record.line(),
                    cells: record
                        .cells()
                        .map(|cell| String::from_utf8_lossy(cell).into_owned())
                        .collect(),
                    is_blank: record.is_blank(),
                    record: record.clone(),
                });
            }
        }
        if is_cut && found.rows.len() > 1 && found.rows.len() < KEPT_RECORDS {
            found.rows.pop();
        }
        // Of two widths that are as frequent, the greater one: lines of a title have few cells.
        let modal = widths.into_iter().max_by_key(|(width, count)| (*count, *width));
        (found.width, found.even) = modal.unwrap_or((0, 0));
        found
    }

    /// Returns true if blanks are the delimiters: all records have as many cells, none of them empty but names, and
    /// some column has numbers alone. Of words of a text that is hardly so.
    fn is_table_of_blanks(&self, is_cut: bool) -> bool {
        let Some((first, data)) = self.rows.split_first().filter(|(_, data)| !data.is_empty()) else {
            return false;
        };
        // The header may leave out the names of the rows.
        let is_short = first.cells.len() + 1 == self.width;
        let even = self.even + usize::from(is_cut) + usize::from(is_short);
        let is_even = self.broken == 0 && even >= self.counted && self.width >= 2;
        let is_full = |row: &SampleRow| row.cells.iter().all(|cell| !cell.is_empty());
        let is_number = |place: usize| {
            let number = |row: &SampleRow| {
                row.cells
                    .get(place)
                    .is_some_and(|cell| kind_of(cell) == CellKind::Number)
            };
            data.iter().all(number)
        };
        is_even && data.iter().all(is_full) && (0..self.width).any(is_number)
    }
}

/// Finds the dialect of a text by its first bytes. `is_cut` is true if the text goes on.
pub(super) fn find_dialect(sample: &[u8], is_cut: bool, options: &InferOptions) -> Dialect {
    let mut notes = Vec::new();
    let named = named_delimiter(sample);
    let given = options.delimiter.and_then(|delimiter| u8::try_from(delimiter).ok());
    let quote = match options.quote {
        None => Some(b'"'),
        Some(QuoteSign::None) => None,
        Some(QuoteSign::Is(quote)) => u8::try_from(quote).ok(),
    };
    let format_of = |delimiter| CsvFormat {
        delimiter,
        quote: quote.filter(|quote| *quote != delimiter),
        escape: options.escape.unwrap_or(QuoteEscape::Double),
    };
    let (mut format, mut rows) = match given.or(named) {
        Some(delimiter) => (
            format_of(delimiter),
            SampleRows::read(sample, format_of(delimiter), is_cut),
        ),
        None => best_delimiter(sample, is_cut, format_of),
    };
    if options.quote.is_none() && options.escape.is_none() && rows.broken > 0 {
        (format, rows) = other_quotes(sample, is_cut, format, rows, &mut notes);
    }
    let first = usize::from(named.is_some());
    let header = find_header(&rows, first, options, &mut notes);
    let mut questions = Vec::new();
    if options.delimiter.is_none() && rows.width == 1 && options.types.is_empty() && has_runs_of_blanks(&rows) {
        let name = header.names.first().map_or("", String::as_str);
        let message = "the columns are parted by several blanks, which is not read: write the file as CSV, or take each \
                       line as one text";
        questions.push(Question::new("blanks", message).remedy("--types", &[name], "=string"));
    }
    Dialect {
        format,
        header_line: header.line,
        skip_lines: header.skip_lines,
        names: header.names,
        notes,
        questions,
    }
}

/// Returns true if the lines are columns of words with more than one blank between them.
fn has_runs_of_blanks(rows: &SampleRows) -> bool {
    let words = |row: &SampleRow| row.cells.iter().flat_map(|cell| cell.split_whitespace()).count();
    let Some((first, data)) = rows.rows.split_first() else {
        return false;
    };
    let width = words(first);
    let is_number = |row: &SampleRow| {
        let mut words = row.cells.iter().flat_map(|cell| cell.split_whitespace());
        words.any(|word| kind_of(word) == CellKind::Number)
    };
    let is_like = |row: &SampleRow| row.is_blank || words(row) == width && is_number(row);
    width > 1 && data.len() > 1 && data.iter().all(is_like)
}

/// Returns the delimiter that a first line `sep=;` names, as spreadsheets write it.
fn named_delimiter(sample: &[u8]) -> Option<u8> {
    let end = sample.iter().position(|byte| matches!(byte, b'\n' | b'\r'))?;
    let line = sample[..end].trim_ascii_start();
    let line = line
        .strip_prefix(b"\"")
        .and_then(|line| line.strip_suffix(b"\""))
        .unwrap_or(line);
    let (name, delimiter) = line.split_at_checked(4)?;
    match delimiter {
        [only] if name.eq_ignore_ascii_case(b"sep=") && only.is_ascii() => Some(*only),
        _ => None,
    }
}

fn best_delimiter(sample: &[u8], is_cut: bool, format_of: impl Fn(u8) -> CsvFormat) -> (CsvFormat, SampleRows) {
    let mut best: Option<(CsvFormat, SampleRows)> = None;
    for delimiter in DELIMITERS {
        // Most bytes of a file are looked at once for a delimiter that it does not have.
        if !sample.contains(&delimiter) {
            continue;
        }
        let format = format_of(delimiter);
        let rows = SampleRows::read(sample, format, is_cut);
        let is_better = rows.width >= 2 && best.as_ref().is_none_or(|(_, best)| rows.even > best.even);
        if is_better {
            best = Some((format, rows));
        }
    }
    if best.is_none() && sample.contains(&b' ') {
        let format = format_of(b' ');
        let rows = SampleRows::read(sample, format, is_cut);
        if rows.is_table_of_blanks(is_cut) {
            return (format, rows);
        }
    }
    best.unwrap_or_else(|| {
        // One column: a delimiter that no line has, else its cells would be cut.
        let unused = DELIMITERS.into_iter().find(|delimiter| !sample.contains(delimiter));
        let format = format_of(unused.unwrap_or(b'\t'));
        (format, SampleRows::read(sample, format, is_cut))
    })
}

/// Tries quotes with a backslash, and quotes that are characters, where the usual ones fail.
fn other_quotes(
    sample: &[u8],
    is_cut: bool,
    format: CsvFormat,
    rows: SampleRows,
    notes: &mut Vec<Note>,
) -> (CsvFormat, SampleRows) {
    let is_even = |rows: &SampleRows| {
        // The last record of a part is one, too.
        rows.broken == 0 && rows.even + usize::from(is_cut) >= rows.counted && rows.width >= 2
    };
    if memchr::memmem::find(sample, b"\\\"").is_some() {
        let escaped = CsvFormat {
            escape: QuoteEscape::Backslash,
            ..format
        };
        let read = SampleRows::read(sample, escaped, is_cut);
        if read.broken == 0 && read.even >= rows.even {
            notes.push(
                Note::new(
                    "escape",
                    "quotes within quotes have a backslash before them: `\\\"` is a quote, `\\\\` a backslash, and one before a \
                     letter or a digit stays",
                )
                .remedy("--escape", &[], "double"),
            );
            return (escaped, read);
        }
    }
    let unquoted = CsvFormat { quote: None, ..format };
    let read = SampleRows::read(sample, unquoted, is_cut);
    let is_open = |cell: &String| cell.trim_start().starts_with('"') && !is_closed(cell.trim());
    let open = read
        .rows
        .iter()
        .flat_map(|row| &row.cells)
        .filter(|cell| is_open(cell))
        .count();
    if is_even(&read) && open >= MIN_BROKEN_QUOTES {
        notes.push(
            Note::new(
                "quote",
                "quotes are taken as characters, since cells begin with some that are never closed",
            )
            .remedy("--quote", &[], "\""),
        );
        return (unquoted, read);
    }
    (format, rows)
}

/// Returns true for a cell that a quote ends.
fn is_closed(cell: &str) -> bool {
    cell.len() > 1 && cell.ends_with('"') && cell.matches('"').count().is_multiple_of(2)
}

struct FoundHeader {
    line: u64,
    skip_lines: Vec<u64>,
    names: Vec<String>,
}

/// The kind of a cell, to tell a header from data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum CellKind {
    Empty,
    Number,
    Date,
    Text,
}

fn kind_of(cell: &str) -> CellKind {
    let word = cell.trim().as_bytes();
    if word.is_empty() {
        return CellKind::Empty;
    }
    if WrittenNumber::parse(word, b'.')
        .or_else(|| WrittenNumber::parse(word, b','))
        .is_some()
    {
        return CellKind::Number;
    }
    if TimeShape::of(word, DateForms::ALL).is_some() || is_month(word) {
        return CellKind::Date;
    }
    CellKind::Text
}

/// Returns true for a month such as `2021-01`, which names columns as well as dates do.
fn is_month(word: &[u8]) -> bool {
    word.len() == 7
        && matches!(word[4], b'-' | b'/')
        && word
            .iter()
            .enumerate()
            .all(|(place, byte)| place == 4 || byte.is_ascii_digit())
}

/// Finds the header among the rows from `first` on.
fn find_header(rows: &SampleRows, first: usize, options: &InferOptions, notes: &mut Vec<Note>) -> FoundHeader {
    let asked = &options.skip_lines;
    let open: Vec<&SampleRow> = rows
        .rows
        .iter()
        .skip(first)
        .filter(|row| !row.is_blank && !asked.contains(&row.line))
        .collect();
    let mut found = FoundHeader {
        line: 0,
        skip_lines: asked.clone(),
        names: Vec::new(),
    };
    found
        .skip_lines
        .extend(rows.rows.iter().take(first).map(|row| row.line));
    if let Some(line) = options
        .reading
        .as_ref()
        .map(|reading| reading.header_line)
        .filter(|line| *line > 0)
        && let Some(row) = open.iter().find(|row| row.line == line)
    {
        found.line = line;
        found.names = names_of(row, rows.width);
        return found;
    }
    let start = data_start(&open, rows.width, options);
    let remark = start.checked_sub(1).and_then(|last| open.get(last)).copied();
    found.skip_lines.extend(open[..start].iter().map(|row| row.line));
    let Some(row) = open.get(start).copied() else {
        // Nothing but lines of remarks: the last one is the header of no records.
        if let Some(row) = remark.filter(|_| !options.no_header) {
            found.skip_lines.retain(|line| *line != row.line);
            found.line = row.line;
            found.names = names_of(row, row.cells.len());
        }
        return found;
    };
    let data = &open[start + 1..];
    // One name fewer than cells: the first column has the names of the rows.
    let fewer = remark.filter(|row| {
        let names: Vec<&str> = row.cells.iter().map(|cell| cell.trim()).collect();
        rows.width > 2 && names.len() + 1 == rows.width && names.iter().all(|name| kind_of(name) == CellKind::Text)
    });
    if let Some(row) = fewer.filter(|_| !options.no_header) {
        note_skipped(&found.skip_lines, row.line, asked, first, notes);
        found.line = row.line;
        found.names = names_of(row, rows.width);
        found.skip_lines.retain(|line| *line > row.line);
        found.skip_lines.sort_unstable();
        let message = format!(
            "line {} names all columns but the first, which is called `row_name`",
            row.line
        );
        notes.push(Note::new("row_names", message).line(row.line));
        return found;
    }
    note_skipped(&found.skip_lines, 0, asked, first, notes);
    found.skip_lines.sort_unstable();
    if options.no_header || !is_header(row, data, options, notes) {
        found.names = (1..=row.cells.len().max(rows.width))
            .map(|place| format!("column_{place}"))
            .collect();
        return found;
    }
    found.line = row.line;
    // The lines before the header are left out in any case.
    found.skip_lines.retain(|line| *line > row.line);
    found.names = names_of(row, row.cells.len());
    found
}

/// Returns the number of rows before the header: lines of remarks, and those of a title, which have fewer cells.
fn data_start(open: &[&SampleRow], width: usize, options: &InferOptions) -> usize {
    let is_remark = |row: &&&SampleRow| {
        let begins = row.cells.first().is_some_and(|cell| cell.trim_start().starts_with('#'));
        let is_header = row.cells.len() == width && width > 1 && !options.no_header;
        begins && !is_header && row.line < MAX_HEADER_LINE
    };
    let start = open.iter().take_while(is_remark).count();
    let is_wide = |row: &&SampleRow| row.cells.len() >= width;
    let Some(titles) = open[start..].iter().position(is_wide) else {
        return start;
    };
    let rest = &open[start + titles..];
    let is_before = rest.first().is_some_and(|row| row.line <= MAX_HEADER_LINE);
    if is_before && rest.iter().take(TABLE_RECORDS).all(is_wide) {
        start + titles
    } else {
        start
    }
}

/// Returns the names of columns as a reading has them.
fn names_of(row: &SampleRow, columns: usize) -> Vec<String> {
    header_names(&row.record, columns)
}

/// Notes the lines that are left out, but those that a person named and that of a delimiter.
fn note_skipped(skipped: &[u64], but: u64, asked: &[u64], first: usize, notes: &mut Vec<Note>) {
    let skipped = skipped
        .iter()
        .filter(|line| **line != but && !asked.contains(line) && !(first > 0 && **line == 1));
    let skipped: Vec<u64> = skipped.copied().collect();
    let Some((least, most)) = skipped.first().zip(skipped.last()) else {
        return;
    };
    let message = match skipped.len() {
        1 => format!("line {least} is left out: it is a remark or a title"),
        count => format!("{count} lines from {least} to {most} are left out: they are remarks or a title"),
    };
    notes.push(Note::new("skipped_lines", message).line(*least));
}

/// Returns true if a row names the columns of the rows below it.
fn is_header(row: &SampleRow, data: &[&SampleRow], options: &InferOptions, notes: &mut Vec<Note>) -> bool {
    if options.reading.as_ref().is_some_and(|reading| reading.header_line == 0) {
        return false;
    }
    let kinds: Vec<CellKind> = row.cells.iter().map(|cell| kind_of(cell)).collect();
    // Kinds of the cells of each column, as far as they agree.
    let mut below = vec![CellKind::Empty; kinds.len()];
    for other in data.iter().take(HEADER_RECORDS) {
        for (known, cell) in below.iter_mut().zip(&other.cells) {
            let kind = kind_of(cell);
            *known = match (*known, kind) {
                (known, CellKind::Empty) => known,
                (CellKind::Empty, kind) => kind,
                (known, kind) if known == kind => kind,
                _ => CellKind::Text,
            };
        }
    }
    let pairs = || kinds.iter().zip(&below);
    if kinds.iter().all(|kind| *kind != CellKind::Text) {
        // Numbers or dates over text are names.
        return pairs().any(|(kind, below)| *kind != CellKind::Empty && *below == CellKind::Text);
    }
    let is_text = |kind: CellKind| kind == CellKind::Text;
    let is_proven = pairs().any(|(kind, below)| is_text(*kind) && !is_text(*below) && *below != CellKind::Empty);
    let is_doubtful = pairs().any(|(kind, below)| !is_text(*kind) && *kind != CellKind::Empty && kind == below);
    if is_doubtful && !is_proven {
        let names: Vec<&str> = row.cells.iter().map(|cell| cell.trim()).collect();
        let message = format!(
            "line {} is taken as the header: `{}`",
            row.line,
            shown(&names.join(", "))
        );
        notes.push(
            Note::new("header", message)
                .line(row.line)
                .remedy("--no-header", &[], ""),
        );
    }
    true
}

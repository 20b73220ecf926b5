//! The cells of a record.

use super::{CsvFormat, MAX_RECORD_BYTES, RawRecord, RecordProblem};

/// The most cells of a record that are kept: one more than a file may have columns, so that a wider one is noticed. Further
/// ones are counted.
pub const MAX_CELLS: usize = 10_001;

/// A record as bytes. It can be reused for the next one.
#[derive(Clone, Debug, Default)]
pub struct CsvRecord {
    /// The record as it stands in the file.
    text: Vec<u8>,
    /// Cells that are written otherwise than they are, one after the other.
    unescaped: Vec<u8>,
    cells: Vec<CellPlace>,
    /// Number of cells, also of those that are not kept.
    count: usize,
    line: u64,
    problem: Option<RecordProblem>,
}

#[derive(Clone, Copy, Debug)]
struct CellPlace {
    begin: u32,
    end: u32,
    is_quoted: bool,
    is_unescaped: bool,
}

impl CsvRecord {
    /// Returns the line of the file on which the record begins, from 1.
    pub const fn line(&self) -> u64 {
        self.line
    }

    /// Returns the first problem of the record.
    pub const fn problem(&self) -> Option<RecordProblem> {
        self.problem
    }

    /// Returns the number of cells, which is at least 1.
    pub const fn len(&self) -> usize {
        self.count
    }

    /// Returns true before the first record was read.
    pub const fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Returns true if the record consists of delimiters only, without even a quote.
    pub fn is_blank(&self) -> bool {
        let is_nothing = |cell: &CellPlace| cell.begin == cell.end && !cell.is_quoted;
        self.problem.is_none() && self.count == self.cells.len() && self.cells.iter().all(is_nothing)
    }

    /// Returns the cells in order, at most [`MAX_CELLS`].
    pub fn cells(&self) -> impl ExactSizeIterator<Item = &[u8]> + DoubleEndedIterator {
        self.cells.iter().map(|cell| self.slice(*cell))
    }

    /// Returns the cells in order, each with whether it stands in quotes.
    pub fn quoted_cells(&self) -> impl ExactSizeIterator<Item = (&[u8], bool)> {
        self.cells.iter().map(|cell| (self.slice(*cell), cell.is_quoted))
    }

    fn slice(&self, cell: CellPlace) -> &[u8] {
        let of = if cell.is_unescaped { &self.unescaped } else { &self.text };
        of.get(cell.begin as usize..cell.end as usize).unwrap_or_default()
    }

    /// Reads the cells of a record that stands alone, without its line end.
    pub fn set(&mut self, text: &[u8], line: u64, format: CsvFormat) {
        let mut own = self.take_text();
        let is_too_long = text.len() > MAX_RECORD_BYTES;
        own.extend_from_slice(&text[..text.len().min(MAX_RECORD_BYTES)]);
        self.fill(own, RawRecord { line, is_too_long }, format);
    }

    /// Returns the buffer of the text, which is empty.
    pub(super) fn take_text(&mut self) -> Vec<u8> {
        let mut text = std::mem::take(&mut self.text);
        text.clear();
        text
    }

    pub(super) fn fill(&mut self, text: Vec<u8>, raw: RawRecord, format: CsvFormat) {
        self.text = text;
        self.unescaped.clear();
        self.cells.clear();
        self.count = 0;
        self.line = raw.line;
        self.problem = raw.is_too_long.then_some(RecordProblem::TooLong);
        match format.quote {
            Some(quote) if memchr::memchr(quote, &self.text).is_some() => self.split_quoted(quote, format),
            _ => self.split_plain(format.delimiter),
        }
    }

    /// Returns the number of cells of a text, which may end within one.
    pub(super) fn cells_of(text: &[u8], format: CsvFormat) -> usize {
        let mut record = Self::default();
        record.set(text, 1, format);
        record.len()
    }

    fn push(&mut self, begin: usize, end: usize, is_quoted: bool, is_unescaped: bool) {
        self.count += 1;
        if self.cells.len() < MAX_CELLS {
            // A record has at most 4 MiB.
            let place = |place: usize| u32::try_from(place).unwrap_or(u32::MAX);
            self.cells.push(CellPlace {
                begin: place(begin),
                end: place(end),
                is_quoted,
                is_unescaped,
            });
        }
    }

    fn split_plain(&mut self, delimiter: u8) {
        let text = std::mem::take(&mut self.text);
        let mut begin = 0;
        for end in memchr::memchr_iter(delimiter, &text) {
            self.push(begin, end, false, false);
            begin = end + 1;
        }
        self.push(begin, text.len(), false, false);
        self.text = text;
    }

    fn split_quoted(&mut self, quote: u8, format: CsvFormat) {
        let text = std::mem::take(&mut self.text);
        let end_of_cell = |at: usize| memchr::memchr(format.delimiter, &text[at..]).map_or(text.len(), |end| at + end);
        let blanks = |at: usize| text[at..].iter().take_while(|byte| format.is_blank(**byte)).count();
        let mut at = 0;
        loop {
            let first = at + blanks(at);
            let end = if text.get(first) == Some(&quote) {
                let closed = self.quoted_cell(&text, first + 1, quote, format);
                let behind = closed + blanks(closed);
                if text.get(behind).is_some_and(|byte| *byte != format.delimiter) {
                    let cell = self.count - 1;
                    self.problem = self.problem.or(Some(RecordProblem::AfterQuote(cell)));
                    end_of_cell(behind)
                } else {
                    behind
                }
            } else {
                let end = end_of_cell(at);
                self.push(at, end, false, false);
                end
            };
            if end >= text.len() {
                break;
            }
            at = end + 1;
        }
        self.text = text;
    }

    /// Adds the cell whose content begins at `begin`, and returns the place behind its closing quote.
    fn quoted_cell(&mut self, text: &[u8], begin: usize, quote: u8, format: CsvFormat) -> usize {
        let start = self.unescaped.len();
        // First byte that is not in `unescaped`.
        let mut rest = begin;
        let mut at = begin;
        let (end, behind) = loop {
            let Some(place) = format.find_quoted(quote, text, at) else {
                break (text.len(), text.len());
            };
            let is_escape = text[place] != quote || text.get(place + 1) == Some(&quote);
            if !is_escape {
                break (place, place + 1);
            }
            let Some(&next) = text.get(place + 1) else {
                break (text.len(), text.len());
            };
            at = place + 2;
            // Before anything else a backslash is part of the value, as in a path of Windows.
            if next == quote || next == text[place] || next == format.delimiter || matches!(next, b'\r' | b'\n') {
                self.unescaped.extend_from_slice(&text[rest..place]);
                rest = place + 1;
            }
        };
        if rest == begin {
            self.push(begin, end, true, false);
        } else {
            self.unescaped.extend_from_slice(&text[rest..end]);
            self.push(start, self.unescaped.len(), true, true);
        }
        behind
    }
}

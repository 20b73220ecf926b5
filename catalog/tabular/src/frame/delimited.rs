//! Delimited text: a record a row, behind the header.

use std::io::Read;

use super::{FrameError, FramePlace};
use crate::csv::{CsvFormat, CsvReader, CsvRecord, Error, RecordProblem};
use crate::reading::{Reading, ReadingError};

/// The name of a first column that the header leaves out.
const ROW_NAME: &str = "row_name";

#[derive(Debug)]
pub(super) struct DelimitedFrames<R> {
    reader: CsvReader<R>,
    format: CsvFormat,
    /// Names of the columns, as the header should have them.
    names: Vec<String>,
    /// Line of the header; `None` once it was read, or if there is none.
    header_line: Option<u64>,
    /// Lines that are left out, the next one last.
    skip_lines: Vec<u64>,
    blank_rows: u64,
}

/// Returns the names of `columns` columns by a header, without blanks around them.
///
/// A sign `#` before the first name is left out. If there is one name less than columns, as R writes tables with names of
/// rows, the names belong to the last columns, and the first one is called `row_name`.
pub fn header_names(header: &CsvRecord, columns: usize) -> Vec<String> {
    let cells = header.cells().enumerate().map(|(place, cell)| {
        let name = String::from_utf8_lossy(cell);
        let name = name.trim();
        let name = if place == 0 {
            name.strip_prefix('#').map_or(name, str::trim_start)
        } else {
            name
        };
        name.to_owned()
    });
    let is_short = header.len() + 1 == columns;
    is_short.then(|| ROW_NAME.to_owned()).into_iter().chain(cells).collect()
}

impl<R: Read> DelimitedFrames<R> {
    pub(super) fn new(input: R, reading: &Reading) -> Result<Self, ReadingError> {
        let format = reading.csv_format()?;
        Ok(Self {
            reader: CsvReader::with_format(input, format),
            format,
            names: reading.columns.iter().map(|column| column.from.clone()).collect(),
            header_line: Some(reading.header_line).filter(|line| *line > 0),
            skip_lines: reading.skip_lines.iter().rev().copied().collect(),
            blank_rows: 0,
        })
    }

    pub(super) const fn blank_rows(&self) -> u64 {
        self.blank_rows
    }

    pub(super) fn read(&mut self, text: &mut Vec<u8>) -> Result<Option<FramePlace>, FrameError> {
        if let Some(line) = self.header_line.take() {
            self.read_header(line)?;
        }
        let begin = text.len();
        loop {
            let line = self.reader.line();
            while self.skip_lines.pop_if(|skipped| *skipped < line).is_some() {}
            if self.skip_lines.pop_if(|skipped| *skipped == line).is_some() {
                if !self.reader.skip_line().map_err(|error| self.named(error))? {
                    return Ok(None);
                }
                continue;
            }
            let Some(raw) = self.reader.read_line(text).map_err(|error| self.named(error))? else {
                return Ok(None);
            };
            // A line of delimiters only has no value, like an empty line.
            if text[begin..].iter().any(|byte| *byte != self.format.delimiter) {
                return Ok(Some(FramePlace {
                    line: raw.line,
                    is_too_long: raw.is_too_long,
                }));
            }
            text.truncate(begin);
            self.blank_rows += 1;
        }
    }

    fn read_header(&mut self, line: u64) -> Result<(), FrameError> {
        let fail = |problem: String| Err(FrameError::Header { line, problem });
        while self.reader.line() < line {
            if !self.reader.skip_line().map_err(|error| self.named(error))? {
                return fail("the file ends before it".to_owned());
            }
        }
        let mut header = CsvRecord::default();
        let read = self.reader.read(&mut header).map_err(|error| self.named(error))?;
        if !read {
            return fail("the file ends before it".to_owned());
        }
        if header.line() != line {
            return fail("the line is empty".to_owned());
        }
        if let Some(RecordProblem::AfterQuote(cell)) = header.problem() {
            return fail(format!("text follows the closing quote of column {}", cell + 1));
        }
        let found = header_names(&header, self.names.len());
        if found.len() != self.names.len() {
            let (found, wanted) = (header.len(), self.names.len());
            return fail(format!("it has {found} columns, the reading has {wanted}"));
        }
        // The names of the file are not repeated: if the line is no header at all, they are values of a record.
        let names = found.iter().zip(&self.names).zip(header.cells());
        let is_other = |((found, wanted), cell): &((&String, &String), &[u8])| {
            *found != wanted.trim() && String::from_utf8_lossy(cell).trim() != wanted.trim()
        };
        let is_short = header.len() < self.names.len();
        let other = if is_short {
            found
                .iter()
                .zip(&self.names)
                .position(|(found, wanted)| *found != wanted.trim())
        } else {
            names.into_iter().position(|names| is_other(&names))
        };
        match other {
            None => Ok(()),
            Some(place) => fail(format!("column {} is not `{}`", place + 1, self.names[place])),
        }
    }

    fn named(&self, error: Error) -> FrameError {
        match error {
            Error::Io(error) => FrameError::Io(error),
            Error::Unclosed { line, cell } => FrameError::Unclosed {
                line,
                column: match self.names.get(cell) {
                    Some(name) if !name.is_empty() => format!("column `{name}`"),
                    _ => format!("column {}", cell + 1),
                },
            },
        }
    }
}

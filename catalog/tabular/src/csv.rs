//! Records of CSV (RFC 4180), and of texts with another delimiter, with strict quotes.
//!
//! Invariant: a quote that is never closed is an error, and text behind a closing quote is a problem of its record. Nothing
//! of a cell is dropped or glued to it. CRLF, LF and CR end lines.

mod record;
mod scan;

use std::io::{self, Read};

use crate::buffer::InputBuffer;
use crate::reading::QuoteEscape;

pub use self::record::{CsvRecord, MAX_CELLS};
use self::scan::RecordScanner;

/// The most bytes of a record, with its delimiters and quotes.
pub const MAX_RECORD_BYTES: usize = 4 << 20;

/// The signs of a delimited text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CsvFormat {
    /// The character between cells, of ASCII.
    pub delimiter: u8,
    /// The character around cells, of ASCII; `None` if there is none.
    pub quote: Option<u8>,
    /// The way to write a quote within quotes.
    pub escape: QuoteEscape,
}

impl CsvFormat {
    /// Returns the format of RFC 4180 with another delimiter: an ASCII character that is no quote or line end.
    pub const fn delimited_by(delimiter: u8) -> Self {
        Self {
            delimiter,
            quote: Some(b'"'),
            escape: QuoteEscape::Double,
        }
    }

    /// Returns true if the byte is a blank around a quoted cell.
    const fn is_blank(self, byte: u8) -> bool {
        matches!(byte, b' ' | b'\t') && byte != self.delimiter
    }

    /// Returns the place in `text`, from `at` on, of the next byte with a meaning within quotes.
    fn find_quoted(self, quote: u8, text: &[u8], at: usize) -> Option<usize> {
        let rest = text.get(at..)?;
        let found = match self.escape {
            QuoteEscape::Double => memchr::memchr(quote, rest),
            QuoteEscape::Backslash => memchr::memchr2(quote, b'\\', rest),
        };
        found.map(|found| at + found)
    }
}

/// A failure after which nothing of the file can be trusted.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The file could not be read.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// The file ends within a quoted cell.
    #[error("line {line}: the quote that opens cell {} is never closed", cell + 1)]
    Unclosed {
        /// Line of the opening quote, from 1.
        line: u64,
        /// Number of the cell in its record, from 0.
        cell: usize,
    },
}

/// Reason why one record cannot be taken. The records after it can.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RecordProblem {
    /// Text follows the quote that closes this cell, counted from 0.
    AfterQuote(usize),
    /// The record has more than [`MAX_RECORD_BYTES`], and only its begin was kept.
    TooLong,
}

/// A record as it stands in the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RawRecord {
    /// Line on which it begins, from 1.
    pub line: u64,
    /// True if it has more than [`MAX_RECORD_BYTES`], and only its begin was kept.
    pub is_too_long: bool,
}

/// A reader of records, in bounded memory. Empty lines are skipped.
#[derive(Debug)]
pub struct CsvReader<R> {
    input: InputBuffer<R>,
    format: CsvFormat,
    scanner: RecordScanner,
    /// Line of the next byte, from 1.
    line: u64,
    /// Number of empty lines so far.
    empty_lines: u64,
}

impl<R: Read> CsvReader<R> {
    /// Returns a reader of cells that are separated by `delimiter`, an ASCII character that is no quote or line end.
    pub fn new(input: R, delimiter: u8) -> Self {
        Self::with_format(input, CsvFormat::delimited_by(delimiter))
    }

    /// Returns a reader of a text with these signs.
    pub const fn with_format(input: R, format: CsvFormat) -> Self {
        Self {
            input: InputBuffer::new(input),
            format,
            scanner: RecordScanner::new(format),
            line: 1,
            empty_lines: 0,
        }
    }

    /// Returns the line of the next byte, from 1.
    pub const fn line(&self) -> u64 {
        self.line
    }

    /// Returns the number of empty lines that were skipped.
    pub const fn empty_lines(&self) -> u64 {
        self.empty_lines
    }

    /// Reads the next record, and returns false at the end of the file.
    ///
    /// # Errors
    /// [`Error::Unclosed`] if the file ends within a quoted cell, also of a record that is too long.
    pub fn read(&mut self, record: &mut CsvRecord) -> Result<bool, Error> {
        let mut text = record.take_text();
        let raw = self.read_raw(&mut text);
        let Some(raw) = raw? else {
            return Ok(false);
        };
        record.fill(text, raw, self.format);
        Ok(true)
    }

    /// Appends the text of the next record to `text`, without its line end; `None` at the end of the file.
    ///
    /// # Errors
    /// [`Error::Unclosed`] if the file ends within a quoted cell, also of a record that is too long.
    pub fn read_raw(&mut self, text: &mut Vec<u8>) -> Result<Option<RawRecord>, Error> {
        let begin = text.len();
        loop {
            let raw = self.read_line(text)?;
            // An empty line is no record.
            if raw.is_none() || text.len() > begin {
                return Ok(raw);
            }
            self.empty_lines += 1;
        }
    }

    /// Does the same, with an empty line as a record without text.
    pub(crate) fn read_line(&mut self, text: &mut Vec<u8>) -> Result<Option<RawRecord>, Error> {
        if self.input.rest().is_empty() && !self.input.fill()? {
            return Ok(None);
        }
        self.scanner.begin();
        let begin = text.len();
        let line = self.line;
        let mut is_too_long = false;
        let mut cell = 0;
        let is_whole = loop {
            let is_last = self.input.is_ended();
            if let Some(end) = self.scanner.scan(self.input.rest(), is_last) {
                let kept = end.record.min(MAX_RECORD_BYTES - (text.len() - begin));
                is_too_long |= kept < end.record;
                text.extend_from_slice(&self.input.rest()[..kept]);
                self.input.consume(end.used);
                break true;
            }
            if self.input.rest().len() > MAX_RECORD_BYTES {
                let scanned = self.scanner.pass(self.input.rest());
                if !is_too_long {
                    text.extend_from_slice(&self.input.rest()[..MAX_RECORD_BYTES.min(scanned)]);
                    cell = CsvRecord::cells_of(&text[begin..], self.format).saturating_sub(1);
                    is_too_long = true;
                }
                self.input.consume(scanned);
            }
            // At the end of the file the scanner is asked once more: a line end may have waited for its second half.
            if is_last {
                break false;
            }
            self.input.fill()?;
        };
        if !is_whole {
            if !is_too_long {
                text.extend_from_slice(self.input.rest());
                cell = CsvRecord::cells_of(&text[begin..], self.format).saturating_sub(1);
            }
            let rest = self.input.rest().len();
            self.input.consume(rest);
            if let Some(opened) = self.scanner.opened() {
                return Err(Error::Unclosed {
                    line: line + opened,
                    cell,
                });
            }
        }
        self.line += self.scanner.lines() + 1;
        Ok(Some(RawRecord { line, is_too_long }))
    }

    /// Passes over the rest of a line, whatever it says. Returns false at the end of the file.
    pub fn skip_line(&mut self) -> Result<bool, Error> {
        let mut is_any = false;
        loop {
            if self.input.rest().is_empty() && !self.input.fill()? {
                self.line += u64::from(is_any);
                return Ok(is_any);
            }
            is_any = true;
            let rest = self.input.rest();
            let Some(end) = memchr::memchr2(b'\n', b'\r', rest) else {
                let passed = rest.len();
                self.input.consume(passed);
                continue;
            };
            if rest[end] == b'\r' && end + 1 == rest.len() {
                self.input.consume(end);
                self.input.fill()?;
            } else {
                self.input.consume(end);
            }
            let rest = self.input.rest();
            let used = if rest.starts_with(b"\r\n") { 2 } else { 1 };
            self.input.consume(used);
            self.line += 1;
            return Ok(true);
        }
    }
}

#[cfg(test)]
mod tests;

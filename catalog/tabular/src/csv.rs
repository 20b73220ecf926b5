//! Records of CSV (RFC 4180), and of texts with another delimiter, with strict quotes.
//!
//! Invariant: a quote that is never closed is an error, and text behind a closing quote is a problem of its record. Nothing
//! of a cell is dropped or glued to it. CRLF, LF and CR end lines.

use std::io::{self, ErrorKind, Read};

/// The most bytes of a record, with its delimiters and quotes.
pub const MAX_RECORD_BYTES: usize = 4 << 20;
/// Bytes that are read at once.
const READ_BYTES: usize = 64 << 10;

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

/// A record as bytes. It can be reused for the next one.
#[derive(Clone, Debug, Default)]
pub struct CsvRecord {
    /// The cells, one after the other, without quotes.
    bytes: Vec<u8>,
    /// End of each cell in `bytes`.
    ends: Vec<usize>,
    line: u64,
    has_quotes: bool,
    problem: Option<RecordProblem>,
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
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// Returns true before the first record was read.
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// Returns true if the record consists of delimiters only, without even a quote.
    pub fn is_blank(&self) -> bool {
        self.bytes.is_empty() && !self.has_quotes && self.problem.is_none()
    }

    /// Returns the cells in order.
    pub fn cells(&self) -> impl ExactSizeIterator<Item = &[u8]> {
        let mut begin = 0;
        self.ends.iter().map(move |end| {
            let cell = &self.bytes[begin..*end];
            begin = *end;
            cell
        })
    }

    fn clear(&mut self, line: u64) {
        self.bytes.clear();
        self.ends.clear();
        (self.line, self.has_quotes, self.problem) = (line, false, None);
    }

    /// Begin of the cell that is being read.
    fn begin(&self) -> usize {
        self.ends.last().copied().unwrap_or(0)
    }

    fn end_cell(&mut self) {
        self.ends.push(self.bytes.len());
    }

    /// Returns true if nothing was read of the record.
    fn is_untouched(&self) -> bool {
        self.ends.is_empty() && self.bytes.is_empty()
    }

    /// Takes a byte that is no line end outside of quotes, and returns the place behind it. The byte is only kept if
    /// `has_room`.
    fn step(&mut self, at: CellPlace, sign: ByteMeaning, byte: u8, has_room: bool) -> CellPlace {
        let next = match (at, sign) {
            (CellPlace::Quoted, ByteMeaning::Quote) => return CellPlace::Quote,
            (CellPlace::Quoted, _) | (CellPlace::Quote, ByteMeaning::Quote) => CellPlace::Quoted,
            (CellPlace::Begin, ByteMeaning::Quote) => {
                // Blanks before the quote are no data.
                self.bytes.truncate(self.begin());
                self.has_quotes = true;
                return CellPlace::Quoted;
            }
            (_, ByteMeaning::Delimiter) => {
                // A record that is too long keeps no more cells either.
                if has_room {
                    self.end_cell();
                }
                return CellPlace::Begin;
            }
            (CellPlace::Quote | CellPlace::Closed, ByteMeaning::Blank) => return CellPlace::Closed,
            (CellPlace::Quote | CellPlace::Closed, _) => {
                self.problem = self.problem.or(Some(RecordProblem::AfterQuote(self.len())));
                CellPlace::Plain
            }
            (CellPlace::Begin, ByteMeaning::Blank) => CellPlace::Begin,
            (CellPlace::Begin | CellPlace::Plain, _) => CellPlace::Plain,
        };
        if has_room {
            self.bytes.push(byte);
        }
        next
    }

    /// Ends the record at the end of the file, and returns false if there is none. `opened` is the line of the last opening
    /// quote.
    fn end_of_file(&mut self, at: CellPlace, opened: u64) -> Result<bool, Error> {
        match at {
            CellPlace::Quoted => Err(Error::Unclosed {
                line: opened,
                cell: self.len(),
            }),
            // Nothing follows the last line end.
            CellPlace::Begin if self.is_untouched() => Ok(false),
            _ => {
                self.end_cell();
                Ok(true)
            }
        }
    }
}

/// Place within a cell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum CellPlace {
    /// Nothing but blanks was read of the cell.
    Begin,
    /// Within a cell that does not begin with a quote, or behind the text that follows a closing quote.
    Plain,
    /// Within a cell that began with a quote.
    Quoted,
    /// Behind a quote in such a cell: it closes the cell, unless another one follows.
    Quote,
    /// Behind the closing quote and blanks.
    Closed,
}

/// Meaning of a byte.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ByteMeaning {
    Text,
    Blank,
    Delimiter,
    Quote,
    LineFeed,
    CarriageReturn,
}

/// A reader of records, in bounded memory. Empty lines are skipped.
#[derive(Debug)]
pub struct CsvReader<R> {
    input: R,
    buffer: Vec<u8>,
    /// First byte of `buffer` that was not used.
    begin: usize,
    /// Line of the next byte, from 1.
    line: u64,
    /// True after a carriage return: a line feed that follows belongs to the same line end.
    is_half: bool,
    signs: [ByteMeaning; 256],
}

impl<R: Read> CsvReader<R> {
    /// Returns a reader of cells that are separated by `delimiter`, an ASCII character that is no quote or line end.
    pub fn new(input: R, delimiter: u8) -> Self {
        let mut signs = [ByteMeaning::Text; 256];
        signs[usize::from(b' ')] = ByteMeaning::Blank;
        signs[usize::from(b'\t')] = ByteMeaning::Blank;
        signs[usize::from(delimiter)] = ByteMeaning::Delimiter;
        signs[usize::from(b'"')] = ByteMeaning::Quote;
        signs[usize::from(b'\n')] = ByteMeaning::LineFeed;
        signs[usize::from(b'\r')] = ByteMeaning::CarriageReturn;
        Self {
            input,
            buffer: Vec::new(),
            begin: 0,
            line: 1,
            is_half: false,
            signs,
        }
    }

    /// Reads the next record, and returns false at the end of the file.
    ///
    /// # Errors
    /// [`Error::Unclosed`] if the file ends within a quoted cell, also of a record that is too long.
    pub fn read(&mut self, record: &mut CsvRecord) -> Result<bool, Error> {
        record.clear(self.line);
        let mut at = CellPlace::Begin;
        let mut left = MAX_RECORD_BYTES;
        // Line of the last opening quote.
        let mut opened = self.line;
        loop {
            if self.begin == self.buffer.len() && !self.fill()? {
                return record.end_of_file(at, opened);
            }
            let text = self.run(at);
            if text > 0 {
                let kept = text.min(left);
                left -= kept;
                let run = &self.buffer[self.begin..self.begin + kept];
                record.bytes.extend_from_slice(run);
                if kept < text {
                    record.problem = record.problem.or(Some(RecordProblem::TooLong));
                }
                if at == CellPlace::Begin {
                    at = CellPlace::Plain;
                }
                self.is_half = false;
                self.begin += text;
                continue;
            }
            let byte = self.buffer[self.begin];
            self.begin += 1;
            let sign = self.signs[usize::from(byte)];
            let is_second = sign == ByteMeaning::LineFeed && self.is_half;
            self.is_half = sign == ByteMeaning::CarriageReturn;
            let ends_line = matches!(sign, ByteMeaning::LineFeed | ByteMeaning::CarriageReturn);
            if ends_line && !is_second {
                self.line += 1;
            }
            if ends_line && at != CellPlace::Quoted {
                if at == CellPlace::Begin && record.is_untouched() {
                    // An empty line is no record, and the line feed of the line end before is no line.
                    record.line = self.line;
                    left = MAX_RECORD_BYTES;
                    continue;
                }
                record.end_cell();
                return Ok(true);
            }
            if left == 0 {
                record.problem = record.problem.or(Some(RecordProblem::TooLong));
            }
            let next = record.step(at, sign, byte, left > 0);
            if at == CellPlace::Begin && next == CellPlace::Quoted {
                opened = self.line;
            }
            at = next;
            left = left.saturating_sub(1);
        }
    }

    /// Returns the number of bytes of text that follow in the buffer. A run is taken at once, because a file has millions of
    /// cells.
    fn run(&self, at: CellPlace) -> usize {
        let rest = &self.buffer[self.begin..];
        let sign = |byte: &u8| self.signs[usize::from(*byte)];
        let ends = match at {
            CellPlace::Quoted => rest.iter().position(|byte| {
                matches!(
                    sign(byte),
                    ByteMeaning::Quote | ByteMeaning::LineFeed | ByteMeaning::CarriageReturn
                )
            }),
            CellPlace::Begin => rest.iter().position(|byte| sign(byte) != ByteMeaning::Text),
            CellPlace::Plain => rest.iter().position(|byte| {
                matches!(
                    sign(byte),
                    ByteMeaning::Delimiter | ByteMeaning::LineFeed | ByteMeaning::CarriageReturn
                )
            }),
            CellPlace::Quote | CellPlace::Closed => Some(0),
        };
        ends.unwrap_or(rest.len())
    }

    /// Reads more, and returns false at the end of the input.
    fn fill(&mut self) -> io::Result<bool> {
        self.buffer.resize(READ_BYTES, 0);
        self.begin = 0;
        let read = loop {
            match self.input.read(&mut self.buffer) {
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                result => break result,
            }
        };
        // An error leaves nothing to read.
        self.buffer.truncate(*read.as_ref().unwrap_or(&0));
        Ok(read? > 0)
    }
}

#[cfg(test)]
mod tests;

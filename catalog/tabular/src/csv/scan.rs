//! The search for the end of a record, without a look at most of its bytes.
//!
//! Invariant: every byte is looked at a bounded number of times, however the text is cut into pieces.

use super::CsvFormat;
use crate::buffer::LineCounter;
use crate::reading::QuoteEscape;

/// The end of a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct RecordEnd {
    /// Length of the record without its line end.
    pub(super) record: usize,
    /// Length with its line end.
    pub(super) used: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ScanPlace {
    /// Outside of quotes.
    Open,
    /// Within quotes.
    Quoted,
    /// Behind a quote within quotes: it closes them, unless another one follows.
    Quote,
}

/// A scanner of one record at a time.
#[derive(Clone, Debug)]
pub(super) struct RecordScanner {
    format: CsvFormat,
    place: ScanPlace,
    /// Bytes of the record, as it lies before the scanner, that were scanned.
    at: usize,
    /// True if a quote as the first byte would open a cell.
    begins_cell: bool,
    /// The line ends within the record so far.
    lines: LineCounter,
    /// Number of line ends before the last opening quote.
    opened: u64,
}

impl RecordScanner {
    pub(super) const fn new(format: CsvFormat) -> Self {
        Self {
            format,
            place: ScanPlace::Open,
            at: 0,
            begins_cell: true,
            lines: LineCounter::new(),
            opened: 0,
        }
    }

    /// Begins a record.
    pub(super) const fn begin(&mut self) {
        *self = Self::new(self.format);
    }

    /// Returns the number of line ends within the record.
    pub(super) const fn lines(&self) -> u64 {
        self.lines.ended
    }

    /// Returns the number of line ends before the quote that was not closed yet.
    pub(super) fn opened(&self) -> Option<u64> {
        (self.place == ScanPlace::Quoted).then_some(self.opened)
    }

    /// Scans a text that begins where the record does, and returns its end, if it is there. `is_last` says that nothing
    /// follows the text.
    pub(super) fn scan(&mut self, text: &[u8], is_last: bool) -> Option<RecordEnd> {
        loop {
            match (self.place, self.format.quote) {
                (ScanPlace::Open, None) => {
                    let found = memchr::memchr2(b'\n', b'\r', text.get(self.at..)?);
                    return self.line_end(text, found, is_last);
                }
                (ScanPlace::Open, Some(quote)) => {
                    let found = memchr::memchr3(quote, b'\n', b'\r', text.get(self.at..)?);
                    match found.map(|found| self.at + found) {
                        Some(place) if text[place] == quote => {
                            if self.is_begin(text, place) {
                                (self.place, self.opened) = (ScanPlace::Quoted, self.lines.ended);
                            }
                            self.at = place + 1;
                        }
                        _ => return self.line_end(text, found, is_last),
                    }
                }
                (ScanPlace::Quoted, quote) => self.quoted(quote.unwrap_or(b'"'), text, is_last)?,
                (ScanPlace::Quote, quote) => {
                    let next = *text.get(self.at)?;
                    if Some(next) == quote {
                        self.place = ScanPlace::Quoted;
                        self.at += 1;
                    } else {
                        self.place = ScanPlace::Open;
                    }
                }
            }
        }
    }

    fn line_end(&mut self, text: &[u8], found: Option<usize>, is_last: bool) -> Option<RecordEnd> {
        let Some(record) = found.map(|found| self.at + found) else {
            self.at = text.len();
            return None;
        };
        let is_pair = match (text[record], text.get(record + 1)) {
            (b'\r', None) if !is_last => {
                // The next piece says whether the line end has a second byte.
                self.at = record;
                return None;
            }
            (b'\r', Some(b'\n')) => true,
            _ => false,
        };
        Some(RecordEnd {
            record,
            used: record + 1 + usize::from(is_pair),
        })
    }

    /// Scans within quotes; `None` if more text is needed.
    fn quoted(&mut self, quote: u8, text: &[u8], is_last: bool) -> Option<()> {
        let found = self.format.find_quoted(quote, text, self.at);
        let end = found.unwrap_or(text.len());
        self.lines.add(&text[self.at.min(end)..end]);
        self.at = end;
        let place = found?;
        if text[place] == b'\\' && self.format.escape == QuoteEscape::Backslash && quote != b'\\' {
            let Some(escaped) = text.get(place + 1..place + 2) else {
                // Nothing is escaped at the end of the file.
                self.at += usize::from(is_last);
                return None;
            };
            self.lines.add(b"\\");
            self.lines.add(escaped);
            self.at += 2;
        } else {
            // What stands before the quote and what follows it are no pair.
            self.lines.add(&[quote]);
            self.place = ScanPlace::Quote;
            self.at += 1;
        }
        Some(())
    }

    /// Returns true if nothing but blanks stands between the begin of a cell and `place`.
    fn is_begin(&self, text: &[u8], place: usize) -> bool {
        let before = text[..place].iter().rposition(|byte| !self.format.is_blank(*byte));
        before.map_or(self.begins_cell, |before| text[before] == self.format.delimiter)
    }

    /// Lets go of the text that was scanned, and returns its length.
    pub(super) fn pass(&mut self, text: &[u8]) -> usize {
        let scanned = self.at.min(text.len());
        self.begins_cell = self.place == ScanPlace::Open && self.is_begin(text, scanned);
        self.at = 0;
        scanned
    }
}

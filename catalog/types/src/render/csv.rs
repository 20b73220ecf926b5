//! CSV (RFC 4180, with line feeds) from typed columns.
//!
//! Invariants:
//! - A null is nothing and an empty text is `""`, so a reader can tell them apart. A value that is no text looks as in a
//!   JSON record, without quotes.
//! - No line is blank, since readers take a blank line for no row: Python's `csv.DictReader` if it is empty, pandas also
//!   if it has spaces and tabs alone. So a text of these is in quotes, and where there is one column a null is `""` as
//!   well, which pandas and `DuckDB` read as a null.

use std::ops::Range;

use arrow::array::RecordBatch;
use arrow::datatypes::Schema;
use arrow::error::ArrowError;

use super::values::RenderedValues;

/// First characters of a cell that spreadsheets take for a formula: signs, those of East Asian width, and white space that
/// some skip (OWASP, CSV Injection).
const FORMULA_STARTS: [char; 11] = ['=', '+', '-', '@', '\t', '\r', '\n', '＝', '＋', '－', '＠'];

/// Reader that CSV is made for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CsvReader {
    /// A program: texts are exact.
    Program,
    /// A person with a spreadsheet: a text that it would run as a formula has an apostrophe before it.
    Spreadsheet,
}

impl CsvReader {
    /// Writes the line with the names of the columns.
    pub fn write_names(self, schema: &Schema, out: &mut Vec<u8>) {
        for (index, field) in schema.fields().iter().enumerate() {
            if index > 0 {
                out.push(b',');
            }
            self.write_cell(field.name(), out);
        }
        out.push(b'\n');
    }

    /// Writes a cell that holds a text.
    pub fn write_cell(self, text: &str, out: &mut Vec<u8>) {
        let apostrophe: &[u8] = if self == Self::Spreadsheet && runs_as_formula(text) {
            b"'"
        } else {
            b""
        };
        let needs_quotes = text.bytes().any(|byte| matches!(byte, b'"' | b',' | b'\n' | b'\r'));
        let is_blank = text.bytes().all(|byte| matches!(byte, b' ' | b'\t'));
        if !is_blank && !needs_quotes {
            out.extend_from_slice(apostrophe);
            out.extend_from_slice(text.as_bytes());
            return;
        }
        out.push(b'"');
        out.extend_from_slice(apostrophe);
        for (index, run) in text.split('"').enumerate() {
            if index > 0 {
                out.extend_from_slice(b"\"\"");
            }
            out.extend_from_slice(run.as_bytes());
        }
        out.push(b'"');
    }
}

/// Returns true if a spreadsheet may take a text for a formula. A number is none, whatever its sign.
fn runs_as_formula(text: &str) -> bool {
    text.starts_with(FORMULA_STARTS) && !is_number(text)
}

/// Returns true for digits with a sign, a point and an exponent, each of which may be missing.
fn is_number(text: &str) -> bool {
    let unsigned = text.strip_prefix(['+', '-']).unwrap_or(text);
    let (mantissa, exponent) = match unsigned.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => (mantissa, Some(exponent)),
        None => (unsigned, None),
    };
    let is_digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let is_exponent = |exponent: &str| {
        let digits = exponent.strip_prefix(['+', '-']).unwrap_or(exponent);
        !digits.is_empty() && is_digits(digits)
    };
    is_digits(whole)
        && is_digits(fraction)
        && !(whole.is_empty() && fraction.is_empty())
        && exponent.is_none_or(is_exponent)
}

/// The rows of a batch, ready to be written as CSV.
#[derive(Debug)]
pub struct RenderedCsv {
    columns: Vec<RenderedValues>,
    reader: CsvReader,
    rows: usize,
}

impl RenderedCsv {
    /// Prepares the rows of a batch, of which each column is written.
    ///
    /// # Errors
    /// [`ArrowError::NotYetImplemented`] for a column of a type that no contract and no answer to a query has.
    pub fn new(rows: &RecordBatch, reader: CsvReader) -> Result<Self, ArrowError> {
        let columns = rows.columns().iter();
        Ok(Self {
            // JSON is a text like any other here.
            columns: columns
                .map(|column| RenderedValues::new(column.as_ref(), false))
                .collect::<Result<_, _>>()?,
            reader,
            rows: rows.num_rows(),
        })
    }

    /// Returns the number of rows.
    pub const fn len(&self) -> usize {
        self.rows
    }

    /// Returns true if there are no rows.
    pub const fn is_empty(&self) -> bool {
        self.rows == 0
    }

    /// Writes a range of rows to `out`, each followed by a line feed. Rows past the end are skipped.
    pub fn write(&self, rows: Range<usize>, out: &mut Vec<u8>) {
        let null: &[u8] = if self.columns.len() == 1 { b"\"\"" } else { b"" };
        for row in rows.start..rows.end.min(self.rows) {
            for (index, values) in self.columns.iter().enumerate() {
                if index > 0 {
                    out.push(b',');
                }
                if values.is_null(row) {
                    out.extend_from_slice(null);
                    continue;
                }
                match values.text(row) {
                    Some(text) => self.reader.write_cell(text, out),
                    None => values.write_bare(row, out),
                }
            }
            out.push(b'\n');
        }
    }
}

#[cfg(test)]
mod tests;

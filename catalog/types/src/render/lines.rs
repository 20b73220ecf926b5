//! JSON lines from typed columns, one record per line, for exports of any size.
//!
//! Invariant: a line has the members and values of [`super::records_of`]. Text of `json` columns and extras is copied,
//! since it was stored as canonical JSON.

use std::io::Write as _;
use std::ops::Range;

use arrow::array::{
    Array, AsArray, BooleanArray, Date32Array, Decimal128Array, Float64Array, Int64Array, RecordBatch, StringArray,
    TimestampMicrosecondArray,
};
use arrow::datatypes::{DataType, Date32Type, Decimal128Type, Float64Type, Int64Type, TimestampMicrosecondType};
use arrow::error::ArrowError;

use crate::contract::{Contract, EXTRA_COLUMN, FieldType, RESERVED_PREFIX};
use crate::{Date, Timestamp, date, decimal};

/// The rows of a batch, ready to be written.
#[derive(Debug)]
pub struct RenderedLines {
    columns: Vec<RenderedColumn>,
    extra: Option<StringArray>,
    rows: usize,
}

#[derive(Debug)]
struct RenderedColumn {
    /// The bytes before the value: a brace or comma, the name, a colon.
    head: Vec<u8>,
    values: RenderedValues,
}

#[derive(Debug)]
enum RenderedValues {
    Text(StringArray),
    Json(StringArray),
    Integer(Int64Array),
    Number(Float64Array),
    Boolean(BooleanArray),
    Timestamp(TimestampMicrosecondArray),
    Date(Date32Array),
    /// Units, with the scale.
    Decimal(Decimal128Array, u8),
}

impl RenderedLines {
    /// Prepares the rows of `rows`, a batch with the columns of `contract`. Hidden columns are omitted.
    pub fn new(contract: &Contract, rows: &RecordBatch) -> Result<Self, ArrowError> {
        let mut columns = Vec::with_capacity(contract.fields().len());
        for field in contract.fields() {
            if field.name.starts_with(RESERVED_PREFIX) {
                continue;
            }
            let column = rows
                .column_by_name(&field.name)
                .ok_or_else(|| ArrowError::SchemaError(format!("there is no column `{}`", field.name)))?;
            // The bytes before a value are the same in every row, so they are built once.
            let mut head = vec![if columns.is_empty() { b'{' } else { b',' }];
            text(&mut head, &field.name);
            head.push(b':');
            let values = values(column.as_ref(), field.kind == FieldType::Json)?;
            columns.push(RenderedColumn { head, values });
        }
        let extra = match rows.column_by_name(EXTRA_COLUMN) {
            Some(column) if *column.data_type() == DataType::Utf8 => Some(column.as_string::<i32>().clone()),
            _ => None,
        };
        Ok(Self {
            columns,
            extra,
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
        for row in rows.start..rows.end.min(self.rows) {
            self.record(row, out);
            out.push(b'\n');
        }
    }

    /// Writes one row to `out`, without a line feed.
    pub fn record(&self, row: usize, out: &mut Vec<u8>) {
        for column in &self.columns {
            out.extend_from_slice(&column.head);
            column.values.write(row, out);
        }
        let extra = self.extra.as_ref().filter(|extra| extra.is_valid(row));
        // The column holds an object; its members are copied without the braces.
        let members = extra.and_then(|extra| extra.value(row).strip_prefix('{')?.strip_suffix('}'));
        // The head of the first column has the opening brace; without columns nothing has written it.
        if self.columns.is_empty() {
            out.push(b'{');
        }
        if let Some(members) = members.filter(|members| !members.is_empty()) {
            if !self.columns.is_empty() {
                out.push(b',');
            }
            out.extend_from_slice(members.as_bytes());
        }
        out.push(b'}');
    }
}

fn values(column: &dyn Array, json: bool) -> Result<RenderedValues, ArrowError> {
    // A clone of an array shares its buffers.
    Ok(match column.data_type() {
        DataType::Utf8 if json => RenderedValues::Json(column.as_string::<i32>().clone()),
        DataType::Utf8 => RenderedValues::Text(column.as_string::<i32>().clone()),
        DataType::Int64 => RenderedValues::Integer(column.as_primitive::<Int64Type>().clone()),
        DataType::Float64 => RenderedValues::Number(column.as_primitive::<Float64Type>().clone()),
        DataType::Boolean => RenderedValues::Boolean(column.as_boolean().clone()),
        DataType::Timestamp(_, _) => {
            RenderedValues::Timestamp(column.as_primitive::<TimestampMicrosecondType>().clone())
        }
        DataType::Date32 => RenderedValues::Date(column.as_primitive::<Date32Type>().clone()),
        DataType::Decimal128(_, scale) => {
            RenderedValues::Decimal(column.as_primitive::<Decimal128Type>().clone(), scale.unsigned_abs())
        }
        other => {
            return Err(ArrowError::NotYetImplemented(format!(
                "rendering a column of type {other}"
            )));
        }
    })
}

impl RenderedValues {
    fn write(&self, row: usize, out: &mut Vec<u8>) {
        match self {
            Self::Text(values) if values.is_valid(row) => text(out, values.value(row)),
            Self::Json(values) if values.is_valid(row) => out.extend_from_slice(values.value(row).as_bytes()),
            Self::Integer(values) if values.is_valid(row) => number(out, values.value(row)),
            Self::Number(values) if values.is_valid(row) => number(out, values.value(row)),
            Self::Boolean(values) if values.is_valid(row) => {
                let word: &[u8] = if values.value(row) { b"true" } else { b"false" };
                out.extend_from_slice(word);
            }
            Self::Timestamp(values) if values.is_valid(row) => timestamp(out, values.value(row)),
            Self::Date(values) if values.is_valid(row) => day(out, values.value(row)),
            Self::Decimal(values, scale) if values.is_valid(row) => {
                out.push(b'"');
                decimal::write(out, values.value(row), *scale);
                out.push(b'"');
            }
            Self::Text(_)
            | Self::Json(_)
            | Self::Integer(_)
            | Self::Number(_)
            | Self::Boolean(_)
            | Self::Timestamp(_)
            | Self::Date(_)
            | Self::Decimal(..) => out.extend_from_slice(b"null"),
        }
    }
}

/// Writes a number as `serde_json` does. A vector accepts every write and a column holds no infinite number, so this
/// cannot fail.
fn number(out: &mut Vec<u8>, value: impl serde::Serialize) {
    serde_json::to_writer(out, &value).unwrap_or_default();
}

/// Writes a string (RFC 8259 section 7) with as few escapes as possible.
fn text(out: &mut Vec<u8>, text: &str) {
    out.push(b'"');
    let mut rest = text.as_bytes();
    // Most texts need no escape, so runs without one are copied at once.
    loop {
        let plain = plain(rest);
        let (before, after) = rest.split_at(plain);
        out.extend_from_slice(before);
        let Some((&byte, after)) = after.split_first() else {
            break;
        };
        match byte {
            b'"' | b'\\' => out.extend_from_slice(&[b'\\', byte]),
            b'\n' => out.extend_from_slice(b"\\n"),
            b'\r' => out.extend_from_slice(b"\\r"),
            b'\t' => out.extend_from_slice(b"\\t"),
            0x08 => out.extend_from_slice(b"\\b"),
            0x0c => out.extend_from_slice(b"\\f"),
            _ => write!(out, "\\u{byte:04x}").unwrap_or_default(),
        }
        rest = after;
    }
    out.push(b'"');
}

/// Returns the number of leading bytes that need no escape, checking eight at a time.
fn plain(bytes: &[u8]) -> usize {
    const ONES: u64 = u64::MAX / 255;
    const HIGH: u64 = ONES << 7;
    let below = |word: u64, least: u64| word.wrapping_sub(ONES * least) & !word & HIGH;
    let mut done = 0;
    let mut words = bytes.chunks_exact(8);
    for word in &mut words {
        let mut eight = [0; 8];
        eight.copy_from_slice(word);
        let word = u64::from_le_bytes(eight);
        let special =
            below(word, 0x20) | below(word ^ (ONES * u64::from(b'"')), 1) | below(word ^ (ONES * u64::from(b'\\')), 1);
        if special != 0 {
            return done + (special.trailing_zeros() / 8) as usize;
        }
        done += 8;
    }
    let special = |byte: &u8| *byte < 0x20 || matches!(byte, b'"' | b'\\');
    let tail = words.remainder();
    done + tail.iter().position(special).unwrap_or(tail.len())
}

/// Writes a day as [`Date`] shows it.
fn day(out: &mut Vec<u8>, days: i32) {
    match date::text_of(days.into()) {
        Some(text) => {
            out.push(b'"');
            out.extend_from_slice(&text);
            out.push(b'"');
        }
        None => write!(out, "\"{}\"", Date::from_days(days)).unwrap_or_default(),
    }
}

/// Writes an instant as [`Timestamp`] shows it, with a fast path for the years 1 to 9999.
fn timestamp(out: &mut Vec<u8>, micros: i64) {
    const DAY: i64 = 86_400;
    let (seconds, fraction) = (micros.div_euclid(1_000_000), micros.rem_euclid(1_000_000));
    let (days, second) = (seconds.div_euclid(DAY), seconds.rem_euclid(DAY));
    let Some(day) = date::text_of(days) else {
        write!(out, "\"{}\"", Timestamp::from_micros(micros)).unwrap_or_default();
        return;
    };
    let digit = |value: i64| u8::try_from(value % 10).unwrap_or(0) + b'0';
    let mut text = *b"\"0000-00-00T00:00:00";
    text[1..=day.len()].copy_from_slice(&day);
    for (at, value) in [(12, second / 3_600), (15, second / 60 % 60), (18, second % 60)] {
        text[at] = digit(value / 10);
        text[at + 1] = digit(value);
    }
    out.extend_from_slice(&text);
    if fraction != 0 {
        out.push(b'.');
        // Writes digits until nothing is left, which omits trailing zeros.
        let (mut left, mut place) = (fraction, 100_000);
        while left != 0 {
            out.push(digit(left / place));
            left %= place;
            place /= 10;
        }
    }
    out.extend_from_slice(b"Z\"");
}

#[cfg(test)]
mod tests;

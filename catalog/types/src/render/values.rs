//! Values of typed columns as text: as JSON, and bare.
//!
//! Invariant: both forms of a value have the same digits and letters; JSON quotes what JSON has no literal for.

use std::io::Write as _;

use arrow::array::{
    Array, AsArray, BooleanArray, Date32Array, Decimal128Array, Float64Array, Int64Array, StringArray,
    TimestampMicrosecondArray, UInt64Array,
};
use arrow::datatypes::{
    DataType, Date32Type, Decimal128Type, Float64Type, Int64Type, TimeUnit, TimestampMicrosecondType, UInt64Type,
};
use arrow::error::ArrowError;

use crate::{Date, Timestamp, date, decimal};

/// The values of a column, ready to be written.
#[derive(Debug)]
pub(super) enum RenderedValues {
    Text(StringArray),
    /// Texts that are JSON.
    Json(StringArray),
    Integer(Int64Array),
    Unsigned(UInt64Array),
    Number(Float64Array),
    Boolean(BooleanArray),
    Timestamp(TimestampMicrosecondArray),
    Date(Date32Array),
    /// Units, with the scale.
    Decimal(Decimal128Array, u8),
}

impl RenderedValues {
    /// Prepares a column. Texts are JSON if `is_json`.
    pub(super) fn new(column: &dyn Array, is_json: bool) -> Result<Self, ArrowError> {
        // A clone of an array shares its buffers.
        Ok(match column.data_type() {
            DataType::Utf8 if is_json => Self::Json(column.as_string::<i32>().clone()),
            DataType::Utf8 => Self::Text(column.as_string::<i32>().clone()),
            DataType::Int64 => Self::Integer(column.as_primitive::<Int64Type>().clone()),
            DataType::UInt64 => Self::Unsigned(column.as_primitive::<UInt64Type>().clone()),
            DataType::Float64 => Self::Number(column.as_primitive::<Float64Type>().clone()),
            DataType::Boolean => Self::Boolean(column.as_boolean().clone()),
            DataType::Timestamp(TimeUnit::Microsecond, _) => {
                Self::Timestamp(column.as_primitive::<TimestampMicrosecondType>().clone())
            }
            DataType::Date32 => Self::Date(column.as_primitive::<Date32Type>().clone()),
            DataType::Decimal128(_, scale) => {
                Self::Decimal(column.as_primitive::<Decimal128Type>().clone(), scale.unsigned_abs())
            }
            other => {
                return Err(ArrowError::NotYetImplemented(format!(
                    "rendering a column of type {other}"
                )));
            }
        })
    }

    /// Returns true if a row has no value.
    pub(super) fn is_null(&self, row: usize) -> bool {
        match self {
            Self::Text(values) | Self::Json(values) => values.is_null(row),
            Self::Integer(values) => values.is_null(row),
            Self::Unsigned(values) => values.is_null(row),
            Self::Number(values) => values.is_null(row),
            Self::Boolean(values) => values.is_null(row),
            Self::Timestamp(values) => values.is_null(row),
            Self::Date(values) => values.is_null(row),
            Self::Decimal(values, _) => values.is_null(row),
        }
    }

    /// Returns the text of a row of a column of texts that is not null.
    pub(super) fn text(&self, row: usize) -> Option<&str> {
        match self {
            Self::Text(values) | Self::Json(values) => Some(values.value(row)),
            _ => None,
        }
    }

    /// Writes the value of a row as JSON. A double that JSON has no number for is `null`.
    pub(super) fn write_json(&self, row: usize, out: &mut Vec<u8>) {
        match self {
            _ if self.is_null(row) => out.extend_from_slice(b"null"),
            Self::Text(values) => quote(out, values.value(row)),
            Self::Number(values) if !values.value(row).is_finite() => out.extend_from_slice(b"null"),
            Self::Timestamp(_) | Self::Date(_) | Self::Decimal(..) => {
                out.push(b'"');
                self.write_bare(row, out);
                out.push(b'"');
            }
            Self::Json(_) | Self::Integer(_) | Self::Unsigned(_) | Self::Number(_) | Self::Boolean(_) => {
                self.write_bare(row, out);
            }
        }
    }

    /// Writes the value of a row that is not null, without quotes or escapes.
    pub(super) fn write_bare(&self, row: usize, out: &mut Vec<u8>) {
        match self {
            Self::Text(values) | Self::Json(values) => out.extend_from_slice(values.value(row).as_bytes()),
            Self::Integer(values) => number(out, values.value(row)),
            Self::Unsigned(values) => number(out, values.value(row)),
            Self::Number(values) => double(out, values.value(row)),
            Self::Boolean(values) => {
                let word: &[u8] = if values.value(row) { b"true" } else { b"false" };
                out.extend_from_slice(word);
            }
            Self::Timestamp(values) => timestamp(out, values.value(row)),
            Self::Date(values) => day(out, values.value(row)),
            Self::Decimal(values, scale) => decimal::write(out, values.value(row), *scale),
        }
    }
}

/// Writes a double, with the words that answers to queries have for those that are no JSON number.
fn double(out: &mut Vec<u8>, value: f64) {
    if value.is_finite() {
        number(out, value);
    } else if value.is_nan() {
        out.extend_from_slice(b"NaN");
    } else {
        let word: &[u8] = if value > 0.0 { b"Infinity" } else { b"-Infinity" };
        out.extend_from_slice(word);
    }
}

/// Writes a number as `serde_json` does. A vector accepts every write, so this cannot fail.
fn number(out: &mut Vec<u8>, value: impl serde::Serialize) {
    serde_json::to_writer(out, &value).unwrap_or_default();
}

/// Writes a string (RFC 8259 section 7) with as few escapes as possible.
pub(super) fn quote(out: &mut Vec<u8>, text: &str) {
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
        Some(text) => out.extend_from_slice(&text),
        None => write!(out, "{}", Date::from_days(days)).unwrap_or_default(),
    }
}

/// Writes an instant as [`Timestamp`] shows it, with a fast path for the years 1 to 9999.
fn timestamp(out: &mut Vec<u8>, micros: i64) {
    const DAY: i64 = 86_400;
    let (seconds, fraction) = (micros.div_euclid(1_000_000), micros.rem_euclid(1_000_000));
    let (days, second) = (seconds.div_euclid(DAY), seconds.rem_euclid(DAY));
    let Some(day) = date::text_of(days) else {
        write!(out, "{}", Timestamp::from_micros(micros)).unwrap_or_default();
        return;
    };
    let digit = |value: i64| u8::try_from(value % 10).unwrap_or(0) + b'0';
    let mut text = *b"0000-00-00T00:00:00";
    text[..day.len()].copy_from_slice(&day);
    for (at, value) in [(11, second / 3_600), (14, second / 60 % 60), (17, second % 60)] {
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
    out.push(b'Z');
}

#[cfg(test)]
mod tests;

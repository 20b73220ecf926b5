//! Rendering of rows as JSON arrays.
//!
//! Invariant: the text is valid JSON. It never exceeds the limit by more than a row, because it is measured after every
//! row.

use std::io::{self, Write as _};
use std::sync::Arc;

use datafusion::arrow::array::{Array, ArrayRef, AsArray, DurationMicrosecondArray, RecordBatch};
use datafusion::arrow::datatypes::{
    DataType, Decimal256Type, Float16Type, Float32Type, Float64Type, Int8Type, Int16Type, Int32Type, Int64Type,
    IntervalMonthDayNanoType, IntervalUnit, Schema, TimeUnit, TimestampMicrosecondType, UInt8Type, UInt16Type,
    UInt32Type, UInt64Type,
};
use datafusion::arrow::util::display::{ArrayFormatter, DurationFormat, FormatOptions};
use datafusion::common::cast::as_primitive_array;
use datafusion::error::{DataFusionError, Result};
use serde_json::value::RawValue;
use types::Timestamp;

use super::numeric::{EXACT, NUMERIC, WHOLE, digits};
use super::temporal::from_engine;
use crate::check::alike;
use crate::{Column, MAX_ANSWER_BYTES, QueryAnswer, Unrepeatable};

/// Type of a column of sums of integers of which one is a text, because it leaves 64 bits.
const BEYOND: &str = "Decimal128(38, 0)";
/// Name of the type of intervals.
const INTERVAL: &str = "Interval(MonthDayNano)";
/// Name of the type of differences of timestamps.
const DIFFERENCE: &str = "Duration(µs)";

/// Form in which the values of a column are shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ColumnForm {
    /// As values of their type.
    Plain,
    /// Texts as JSON values.
    Json,
    /// Intervals as lengths of time.
    Difference,
}

impl ColumnForm {
    /// Returns the form of each column: those marked by `json` are JSON, those by `differences` are lengths of time.
    pub(super) fn of(json: Vec<bool>, differences: &[bool]) -> Vec<Self> {
        let columns = json.into_iter().zip(differences);
        columns
            .map(|(json, difference)| match (json, difference) {
                (true, _) => Self::Json,
                (false, true) => Self::Difference,
                (false, false) => Self::Plain,
            })
            .collect()
    }
}

/// Rendered rows of an incomplete answer.
#[derive(Debug)]
pub(super) struct RenderedRows {
    columns: Vec<Column>,
    limit: usize,
    shown: Vec<ColumnForm>,
    /// Columns of [`WHOLE`] with a value beyond 64 bits.
    beyond: Vec<bool>,
    done: Vec<Box<RawValue>>,
    bytes: usize,
    truncated: bool,
    too_large: bool,
}

impl RenderedRows {
    /// Creates an empty answer with these columns.
    pub(super) fn new(schema: &Schema, shown: Vec<ColumnForm>, limit: usize) -> Self {
        let columns = schema.fields().iter().zip(&shown).map(|(field, shown)| Column {
            name: alike::shown(field.name()).to_owned(),
            kind: match shown {
                ColumnForm::Json => "Json".to_owned(),
                ColumnForm::Difference => name(field.data_type()).replace(INTERVAL, DIFFERENCE),
                ColumnForm::Plain => name(field.data_type()),
            },
            nullable: field.is_nullable(),
        });
        Self {
            columns: columns.collect(),
            limit,
            beyond: vec![false; shown.len()],
            shown,
            done: Vec::new(),
            bytes: 0,
            truncated: false,
            too_large: false,
        }
    }

    /// Renders rows. Returns false if no more rows are wanted.
    pub(super) fn add(&mut self, batch: &RecordBatch) -> Result<bool> {
        for row in 0..batch.num_rows() {
            if self.done.len() == self.limit {
                self.truncated = true;
                return Ok(false);
            }
            let mut text = vec![b'['];
            for (index, (column, shown)) in batch.columns().iter().zip(&self.shown).enumerate() {
                if index > 0 {
                    text.push(b',');
                }
                let start = text.len();
                value(&mut text, column, row, *shown)?;
                self.beyond[index] |= *column.data_type() == WHOLE && text[start] == b'"';
            }
            text.push(b']');
            self.bytes += text.len();
            // The answer is dropped, so rendering stops at once.
            if self.bytes > MAX_ANSWER_BYTES {
                self.too_large = true;
                return Ok(false);
            }
            let text = String::from_utf8(text).map_err(io::Error::other)?;
            self.done.push(RawValue::from_string(text).map_err(io::Error::from)?);
        }
        Ok(true)
    }

    /// Returns the answer, or `None` if it is too large.
    pub(super) fn finish(mut self, unrepeatable: Vec<Unrepeatable>) -> Option<QueryAnswer> {
        for (column, _) in self.columns.iter_mut().zip(&self.beyond).filter(|(_, beyond)| **beyond) {
            BEYOND.clone_into(&mut column.kind);
        }
        (!self.too_large).then_some(QueryAnswer {
            columns: self.columns,
            rows: self.done,
            truncated: self.truncated,
            bytes: self.bytes as u64,
            unrepeatable,
        })
    }
}

const fn is_text(kind: &DataType) -> bool {
    matches!(kind, DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View)
}

/// Returns the name of a type. Different layouts of texts and of bytes have the same name.
fn name(kind: &DataType) -> String {
    match kind {
        kind if is_text(kind) => "Utf8".to_owned(),
        DataType::Binary | DataType::LargeBinary | DataType::BinaryView => "Binary".to_owned(),
        DataType::List(item) | DataType::LargeList(item) | DataType::ListView(item) => {
            format!("List({})", name(item.data_type()))
        }
        DataType::Dictionary(_, value) => name(value),
        // Types of numbers inside of a statement, which an answer has as JSON numbers.
        &WHOLE => "Int64".to_owned(),
        &NUMERIC => "Float64".to_owned(),
        other => other.to_string(),
    }
}

/// Writes one value as JSON.
fn value(text: &mut Vec<u8>, column: &ArrayRef, row: usize, shown: ColumnForm) -> Result<()> {
    if column.is_null(row) {
        text.extend_from_slice(b"null");
        return Ok(());
    }
    macro_rules! number {
        ($type:ty) => {
            write!(text, "{}", as_primitive_array::<$type>(column)?.value(row))?
        };
    }
    match column.data_type() {
        DataType::Null => text.extend_from_slice(b"null"),
        DataType::Boolean => write!(text, "{}", column.as_boolean().value(row))?,
        DataType::Int8 => number!(Int8Type),
        DataType::Int16 => number!(Int16Type),
        DataType::Int32 => number!(Int32Type),
        DataType::Int64 => number!(Int64Type),
        DataType::UInt8 => number!(UInt8Type),
        DataType::UInt16 => number!(UInt16Type),
        DataType::UInt32 => number!(UInt32Type),
        DataType::UInt64 => number!(UInt64Type),
        DataType::Float16 => double(text, f64::from(as_primitive_array::<Float16Type>(column)?.value(row)))?,
        DataType::Float32 => {
            // A conversion to a double would show digits that a 32-bit number does not have.
            let single = as_primitive_array::<Float32Type>(column)?.value(row);
            if single.is_finite() {
                json_text(text, &single)?;
            } else {
                double(text, f64::from(single))?;
            }
        }
        DataType::Float64 => double(text, as_primitive_array::<Float64Type>(column)?.value(row))?,
        kind if *kind == WHOLE => {
            let digits = as_primitive_array::<Decimal256Type>(column)?.value(row);
            match digits.to_i128().and_then(|digits| i64::try_from(digits).ok()) {
                Some(whole) => write!(text, "{whole}")?,
                None => json_text(text, &digits.to_string())?,
            }
        }
        kind if *kind == NUMERIC => {
            let digits = as_primitive_array::<Decimal256Type>(column)?.value(row);
            double(text, digits::double(digits, digits::MAX_SCALE_DIGITS))?;
        }
        kind if *kind == EXACT => {
            let digits = as_primitive_array::<Decimal256Type>(column)?.value(row);
            json_text(text, &digits::text(digits, digits::MAX_SCALE_DIGITS, None))?;
        }
        DataType::Utf8 => string(text, column.as_string::<i32>().value(row), shown)?,
        DataType::LargeUtf8 => string(text, column.as_string::<i64>().value(row), shown)?,
        DataType::Utf8View => string(text, column.as_string_view().value(row), shown)?,
        DataType::Timestamp(TimeUnit::Microsecond, Some(zone)) if &**zone == "UTC" || &**zone == "+00:00" => {
            let instant = as_primitive_array::<TimestampMicrosecondType>(column)?.value(row);
            let instant = Timestamp::from_micros(instant);
            // RFC 3339 has four digits for the year.
            if !instant.is_sayable() {
                let problem = "a timestamp is not of the years 1 to 9999".to_owned();
                return Err(DataFusionError::Execution(problem));
            }
            json_text(text, &instant.to_string())?;
        }
        DataType::List(_) => list(text, &column.as_list::<i32>().value(row), shown)?,
        DataType::LargeList(_) => list(text, &column.as_list::<i64>().value(row), shown)?,
        DataType::ListView(_) => list(text, &column.as_list_view::<i32>().value(row), shown)?,
        DataType::FixedSizeList(_, _) => list(text, &column.as_fixed_size_list().value(row), shown)?,
        DataType::Interval(IntervalUnit::MonthDayNano) if shown == ColumnForm::Difference => {
            let interval = from_engine(as_primitive_array::<IntervalMonthDayNanoType>(column)?.value(row));
            match interval.length() {
                Ok(length) if interval.months == 0 => {
                    formatted(
                        text,
                        &(Arc::new(DurationMicrosecondArray::from(vec![length])) as ArrayRef),
                        0,
                    )?;
                }
                _ => formatted(text, column, row)?,
            }
        }
        DataType::Dictionary(_, _) => {
            // A dictionary is only a layout. Its value is rendered.
            let dictionary = column.as_any_dictionary();
            let key = dictionary.normalized_keys()[row];
            value(text, dictionary.values(), key, shown)?;
        }
        _ => formatted(text, column, row)?,
    }
    Ok(())
}

/// Writes a value in the engine's words.
fn formatted(text: &mut Vec<u8>, column: &ArrayRef, row: usize) -> Result<()> {
    let options = FormatOptions::new().with_duration_format(DurationFormat::ISO8601);
    let formatted = ArrayFormatter::try_new(column, &options)?.value(row).try_to_string()?;
    json_text(text, &formatted)
}

fn list(text: &mut Vec<u8>, items: &ArrayRef, shown: ColumnForm) -> Result<()> {
    text.push(b'[');
    for index in 0..items.len() {
        if index > 0 {
            text.push(b',');
        }
        value(text, items, index, shown)?;
    }
    text.push(b']');
    Ok(())
}

/// Writes a text. A text of a JSON column that is not valid JSON is written as a JSON string.
fn string(text: &mut Vec<u8>, string: &str, shown: ColumnForm) -> Result<()> {
    if shown == ColumnForm::Json && serde_json::from_str::<&RawValue>(string).is_ok() {
        text.extend_from_slice(string.as_bytes());
        return Ok(());
    }
    json_text(text, string)
}

/// Writes a double. Values without a JSON number become texts.
fn double(text: &mut Vec<u8>, double: f64) -> Result<()> {
    if double.is_finite() {
        json_text(text, &double)
    } else if double.is_nan() {
        json_text(text, "NaN")
    } else {
        json_text(text, if double > 0.0 { "Infinity" } else { "-Infinity" })
    }
}

fn json_text(text: &mut Vec<u8>, value: &(impl serde::Serialize + ?Sized)) -> Result<()> {
    serde_json::to_writer(text, value).map_err(io::Error::from)?;
    Ok(())
}

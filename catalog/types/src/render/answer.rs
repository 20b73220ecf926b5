//! Answers to queries, which arrive as JSON, as typed columns.
//!
//! Invariant: a column has the type that the answer names if each of its values is of that type exactly. Every other
//! column has the texts of the answer.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use arrow::array::{
    ArrayRef, BooleanArray, Date32Array, Decimal128Array, Float64Array, Int64Array, RecordBatch, RecordBatchOptions,
    StringArray, TimestampMicrosecondArray, UInt64Array,
};
use arrow::compute::kernels::cast_utils::parse_decimal;
use arrow::datatypes::{Decimal128Type, Field, Schema};
use arrow::error::ArrowError;
use serde_json::value::RawValue;

use super::arrow::marked_json;
use crate::{Date, Timestamp};

/// Reason that an answer has no typed columns.
#[derive(Debug, thiserror::Error)]
pub enum AnswerColumnsError {
    /// A row is no array.
    #[error("row {row} is no JSON array")]
    Row {
        /// Index of the row.
        row: usize,
        /// Error of the parser.
        #[source]
        source: serde_json::Error,
    },
    /// A row has more or fewer values than there are columns.
    #[error("row {row} has {found} values and there are {expected} columns")]
    Width {
        /// Index of the row.
        row: usize,
        /// Number of its values.
        found: usize,
        /// Number of columns.
        expected: usize,
    },
    /// The columns are no batch.
    #[error("the columns of the answer do not fit together")]
    Columns(#[from] ArrowError),
}

/// Columns and rows of an answer to a query.
#[derive(Clone, Debug)]
pub struct AnswerRows<'a> {
    names: Vec<String>,
    /// Arrow type of each column, such as `Int64`.
    kinds: Vec<&'a str>,
    rows: Vec<Vec<&'a RawValue>>,
}

impl<'a> AnswerRows<'a> {
    /// Reads an answer: the name and the Arrow type of each column, and the rows, each a JSON array with a value per column.
    /// A name that stands there again gets a number, since few formats can have it twice.
    ///
    /// # Errors
    /// [`AnswerColumnsError`] for a row that is no array of as many values.
    pub fn new(
        columns: impl IntoIterator<Item = (&'a str, &'a str)>,
        rows: impl IntoIterator<Item = &'a RawValue>,
    ) -> Result<Self, AnswerColumnsError> {
        let (names, kinds): (Vec<_>, Vec<_>) = columns.into_iter().unzip();
        let read = |(row, text): (usize, &'a RawValue)| {
            let values: Vec<&'a RawValue> =
                serde_json::from_str(text.get()).map_err(|source| AnswerColumnsError::Row { row, source })?;
            let (found, expected) = (values.len(), names.len());
            if found == expected {
                Ok(values)
            } else {
                Err(AnswerColumnsError::Width { row, found, expected })
            }
        };
        let rows = rows.into_iter().enumerate().map(read).collect::<Result<_, _>>()?;
        Ok(Self {
            names: distinct(&names),
            kinds,
            rows,
        })
    }

    /// Returns the typed columns.
    ///
    /// # Errors
    /// [`AnswerColumnsError::Columns`], which no answer causes.
    pub fn columns(&self) -> Result<RecordBatch, AnswerColumnsError> {
        let (mut fields, mut columns) = (Vec::new(), Vec::new());
        for (index, (name, kind)) in self.names.iter().zip(&self.kinds).enumerate() {
            let values: Vec<_> = self
                .rows
                .iter()
                .filter_map(|row| row.get(index))
                .map(|value| Some(value.get()).filter(|text| *text != "null"))
                .collect();
            let array = typed(kind, &values).unwrap_or_else(|| texts(kind, &values));
            let field = Field::new(name, array.data_type().clone(), true);
            fields.push(if *kind == JSON_KIND { marked_json(field) } else { field });
            columns.push(array);
        }
        // An answer without columns still has a number of rows, which Arrow cannot derive.
        let options = RecordBatchOptions::new().with_row_count(Some(self.rows.len()));
        let schema = Arc::new(Schema::new(fields));
        Ok(RecordBatch::try_new_with_options(schema, columns, &options)?)
    }

    /// Writes the rows as JSON lines, with the values of the answer byte for byte.
    pub fn write_lines(&self, out: &mut Vec<u8>) {
        let heads: Vec<Vec<u8>> = self
            .names
            .iter()
            .map(|name| {
                let mut head = Vec::with_capacity(name.len() + 3);
                super::values::quote(&mut head, name);
                head.push(b':');
                head
            })
            .collect();
        for row in &self.rows {
            out.push(b'{');
            for (index, (head, value)) in heads.iter().zip(row).enumerate() {
                if index > 0 {
                    out.push(b',');
                }
                out.extend_from_slice(head);
                out.extend_from_slice(value.get().as_bytes());
            }
            out.extend_from_slice(b"}\n");
        }
    }
}

/// Type of a column of JSON values.
const JSON_KIND: &str = "Json";

/// Returns the names with a number after each that an earlier column has.
fn distinct(names: &[&str]) -> Vec<String> {
    let mut taken: HashSet<String> = names.iter().map(|name| (*name).to_owned()).collect();
    let mut seen: HashMap<&str, usize> = HashMap::new();
    let numbered = names.iter().map(|&name| {
        let count = seen.entry(name).or_insert(0);
        *count += 1;
        if *count == 1 {
            return name.to_owned();
        }
        loop {
            let numbered = format!("{name}_{count}");
            if taken.insert(numbered.clone()) {
                return numbered;
            }
            *count += 1;
        }
    });
    numbered.collect()
}

/// Returns a column of the type `kind`; `None` if JSON does not carry that type, or if a value is not of it.
fn typed(kind: &str, values: &[Option<&str>]) -> Option<ArrayRef> {
    fn each<T>(values: &[Option<&str>], read: impl Fn(&str) -> Option<T>) -> Option<Vec<Option<T>>> {
        let read = |value: Option<&str>| match value {
            None => Some(None),
            Some(value) => read(value).map(Some),
        };
        values.iter().copied().map(read).collect()
    }
    Some(match kind {
        "Int8" | "Int16" | "Int32" | "Int64" | "UInt8" | "UInt16" | "UInt32" => {
            Arc::new(Int64Array::from(each(values, |value| value.parse::<i64>().ok())?))
        }
        // Values from 2^63 on do not fit into a signed column.
        "UInt64" => Arc::new(UInt64Array::from(each(values, |value| value.parse::<u64>().ok())?)),
        "Float16" | "Float32" | "Float64" => Arc::new(Float64Array::from(each(values, double)?)),
        "Boolean" => Arc::new(BooleanArray::from(each(values, |value| value.parse::<bool>().ok())?)),
        kind if kind.starts_with("Timestamp(µs, ") => {
            let micros = |value: &str| Some(text(value)?.parse::<Timestamp>().ok()?.micros());
            Arc::new(TimestampMicrosecondArray::from(each(values, micros)?).with_timezone("UTC"))
        }
        "Date32" => {
            let days = |value: &str| Some(text(value)?.parse::<Date>().ok()?.days());
            Arc::new(Date32Array::from(each(values, days)?))
        }
        kind if kind.starts_with("Decimal128(") => {
            let (precision, scale) = precision_and_scale(kind)?;
            // Whole numbers may come as JSON numbers.
            let units = |value: &str| {
                let digits = text(value).unwrap_or_else(|| value.to_owned());
                parse_decimal::<Decimal128Type>(&digits, precision, scale).ok()
            };
            let units = Decimal128Array::from(each(values, units)?);
            Arc::new(units.with_precision_and_scale(precision, scale).ok()?)
        }
        // Longer decimals and nested values arrive as texts or as JSON.
        _ => return None,
    })
}

/// Returns a column of texts. A value that is no text is its JSON, and so is every value of a JSON column.
fn texts(kind: &str, values: &[Option<&str>]) -> ArrayRef {
    let text = |value: &str| {
        let plain = (kind != JSON_KIND).then(|| text(value)).flatten();
        plain.unwrap_or_else(|| value.to_owned())
    };
    Arc::new(values.iter().map(|value| value.map(&text)).collect::<StringArray>())
}

/// Returns a JSON string as a text; `None` for another value.
fn text(value: &str) -> Option<String> {
    value
        .starts_with('"')
        .then(|| serde_json::from_str(value).ok())
        .flatten()
}

/// Reads a double, which may be a text for the three that JSON has no number for.
fn double(value: &str) -> Option<f64> {
    match value {
        "\"NaN\"" => Some(f64::NAN),
        "\"Infinity\"" => Some(f64::INFINITY),
        "\"-Infinity\"" => Some(f64::NEG_INFINITY),
        _ => serde_json::from_str(value).ok(),
    }
}

/// Returns the precision and scale of a type such as `Decimal128(28, 2)`.
fn precision_and_scale(kind: &str) -> Option<(u8, i8)> {
    let (_, both) = kind.strip_suffix(')')?.split_once('(')?;
    let (precision, scale) = both.split_once(", ")?;
    Some((precision.parse().ok()?, scale.parse().ok()?))
}

#[cfg(test)]
mod tests;

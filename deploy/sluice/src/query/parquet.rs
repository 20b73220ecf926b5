//! Answers as Parquet files.
//!
//! Invariant: a column has its own type if JSON carries that type exactly. Every other column is text, as in the
//! answer.

use std::sync::Arc;

use anyhow::{Context, anyhow};
use arrow::array::{
    ArrayRef, BooleanArray, Date32Array, Decimal128Array, Float64Array, Int64Array, RecordBatch, StringArray,
    TimestampMicrosecondArray, UInt64Array,
};
use arrow::compute::kernels::cast_utils::parse_decimal;
use arrow::datatypes::{Decimal128Type, Field, Schema};
use client::model::{Answer, AnswerColumn};
use parquet::arrow::ArrowWriter;
use parquet::basic::{Compression, ZstdLevel};
use parquet::file::properties::WriterProperties;
use serde_json::Value;
use types::{Date, Timestamp};

/// Encodes the rows as one Parquet file, compressed with Zstandard.
pub(super) fn encode(answer: &Answer) -> anyhow::Result<Vec<u8>> {
    let mut fields = Vec::with_capacity(answer.columns.len());
    let mut columns = Vec::with_capacity(answer.columns.len());
    for (index, column) in answer.columns.iter().enumerate() {
        let values = answer.rows.iter().map(|row| row.get(index).unwrap_or(&Value::Null));
        let array = array(column, values).with_context(|| format!("column `{}`", column.name))?;
        fields.push(Field::new(&column.name, array.data_type().clone(), true));
        columns.push(array);
    }
    let schema = Arc::new(Schema::new(fields));
    // An answer without columns still has a number of rows, which Arrow cannot derive.
    let options = arrow::array::RecordBatchOptions::new().with_row_count(Some(answer.rows.len()));
    let rows = RecordBatch::try_new_with_options(Arc::clone(&schema), columns, &options)?;
    let properties = WriterProperties::builder()
        .set_compression(Compression::ZSTD(ZstdLevel::try_new(1)?))
        .build();
    let mut writer = ArrowWriter::try_new(Vec::new(), schema, Some(properties))?;
    writer.write(&rows)?;
    Ok(writer.into_inner()?)
}

fn array<'a>(column: &AnswerColumn, values: impl Iterator<Item = &'a Value>) -> anyhow::Result<ArrayRef> {
    fn each<'a, T>(
        values: impl Iterator<Item = &'a Value>,
        read: impl Fn(&Value) -> Option<T>,
    ) -> anyhow::Result<Vec<Option<T>>> {
        let read = |value: &Value| match value {
            Value::Null => Ok(None),
            value => read(value)
                .map(Some)
                .ok_or_else(|| anyhow!("`{value}` is not of its type")),
        };
        values.map(read).collect()
    }
    Ok(match column.kind.as_str() {
        "Int8" | "Int16" | "Int32" | "Int64" | "UInt8" | "UInt16" | "UInt32" => {
            Arc::new(Int64Array::from(each(values, Value::as_i64)?))
        }
        // Values from 2^63 on do not fit into a signed column.
        "UInt64" => Arc::new(UInt64Array::from(each(values, Value::as_u64)?)),
        "Float16" | "Float32" | "Float64" => Arc::new(Float64Array::from(each(values, number)?)),
        "Boolean" => Arc::new(BooleanArray::from(each(values, Value::as_bool)?)),
        kind if kind.starts_with("Timestamp(µs, ") => {
            let micros = |value: &Value| Some(value.as_str()?.parse::<Timestamp>().ok()?.micros());
            Arc::new(TimestampMicrosecondArray::from(each(values, micros)?).with_timezone("UTC"))
        }
        "Date32" => {
            let days = |value: &Value| Some(value.as_str()?.parse::<Date>().ok()?.days());
            Arc::new(Date32Array::from(each(values, days)?))
        }
        kind if kind.starts_with("Decimal128(") => {
            let (precision, scale) = precision_and_scale(kind).context("it has no precision and scale")?;
            let units = |value: &Value| parse_decimal::<Decimal128Type>(value.as_str()?, precision, scale).ok();
            let units = Decimal128Array::from(each(values, units)?);
            Arc::new(units.with_precision_and_scale(precision, scale)?)
        }
        // Longer decimals and nested values arrive as texts or as JSON.
        _ => {
            let text = |value: &Value| match value {
                Value::String(text) => Some(text.clone()),
                value => Some(value.to_string()),
            };
            Arc::new(StringArray::from(each(values, text)?))
        }
    })
}

/// Returns the precision and scale of a type such as `Decimal128(28, 2)`.
fn precision_and_scale(kind: &str) -> Option<(u8, i8)> {
    let (_, both) = kind.strip_suffix(')')?.split_once('(')?;
    let (precision, scale) = both.split_once(", ")?;
    Some((precision.parse().ok()?, scale.parse().ok()?))
}

/// Reads a double, which may be a text for the three that JSON has no number for.
fn number(value: &Value) -> Option<f64> {
    match value {
        Value::String(text) => match text.as_str() {
            "NaN" => Some(f64::NAN),
            "Infinity" => Some(f64::INFINITY),
            "-Infinity" => Some(f64::NEG_INFINITY),
            _ => None,
        },
        value => value.as_f64(),
    }
}

#[cfg(test)]
mod tests {
    use arrow::array::AsArray;
    use arrow::datatypes::{DataType, Date32Type, Int64Type, TimeUnit, TimestampMicrosecondType};
    use parquet::arrow::arrow_reader::ParquetRecordBatchReader;
    use serde_json::json;

    use super::*;

    #[test]
    fn columns_keep_their_types_and_values() {
        let column = |name: &str, kind: &str| json!({"name": name, "type": kind, "nullable": true});
        let answer: Answer = serde_json::from_value(json!({
            "version": 1, "truncated": false,
            "columns": [column("i", "Int64"), column("u", "UInt64"), column("f", "Float64"), column("b", "Boolean"),
                column("t", "Timestamp(µs, \"UTC\")"), column("d", "Decimal128(38, 2)"), column("j", "Json"),
                column("day", "Date32"), column("w", "Decimal256(76, 2)")],
            "rows": [
                [i64::MIN, u64::MAX, "NaN", true, "2026-11-21T07:10:20.5Z", "-999999999999999999999999999999999999.50",
                    {"a": 1}, "2020-02-29", "1.50"],
                [null, null, null, null, null, null, null, null, null],
            ],
        }))
        .unwrap();
        let bytes = bytes::Bytes::from(encode(&answer).unwrap());
        let mut reader = ParquetRecordBatchReader::try_new(bytes, 10).unwrap();
        let rows = reader.next().unwrap().unwrap();
        assert_eq!(rows.num_rows(), 2);
        assert_eq!(rows.column(0).as_primitive::<Int64Type>().value(0), i64::MIN);
        assert_eq!(rows.column(1).data_type(), &DataType::UInt64);
        assert_eq!(
            rows.column(4).data_type(),
            &DataType::Timestamp(TimeUnit::Microsecond, Some("UTC".into()))
        );
        let at: Timestamp = "2026-11-21T07:10:20.5Z".parse().unwrap();
        assert_eq!(
            rows.column(4).as_primitive::<TimestampMicrosecondType>().value(0),
            at.micros()
        );
        assert_eq!(rows.column(5).data_type(), &DataType::Decimal128(38, 2));
        assert_eq!(
            rows.column(5).as_primitive::<Decimal128Type>().value_as_string(0),
            "-999999999999999999999999999999999999.50"
        );
        assert_eq!(rows.column(7).as_primitive::<Date32Type>().value(0), 18_321);
        assert_eq!(rows.column(8).as_string::<i32>().value(0), "1.50");
        assert_eq!(rows.column(6).as_string::<i32>().value(0), "{\"a\":1}");
        assert!(rows.columns().iter().all(|column| column.is_null(1)));
    }

    #[test]
    fn a_value_that_is_not_of_its_type_is_named() {
        let answer: Answer = serde_json::from_value(json!({
            "version": 1, "truncated": false,
            "columns": [{"name": "i", "type": "Int64", "nullable": true}], "rows": [["one"]],
        }))
        .unwrap();
        assert_eq!(
            format!("{:#}", encode(&answer).unwrap_err()),
            "column `i`: `\"one\"` is not of its type"
        );
    }
}

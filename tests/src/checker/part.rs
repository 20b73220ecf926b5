//! The rows of a part, with the Parquet reader.
//!
//! Invariant: what a row says is taken from its columns as `catalog/proof/FORMAT.md` specifies them.

use std::collections::BTreeMap;

use arrow::array::{Array, AsArray, RecordBatch};
use arrow::datatypes::{DataType, Date32Type, Decimal128Type, Float64Type, Int64Type, TimestampMicrosecondType};
use bytes::Bytes;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use serde_json::{Map, Value};

use super::record::{normal, text_of};

/// One row of a part.
#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    /// The stored key.
    pub key: Vec<u8>,
    /// The contribution it came with.
    pub contribution: String,
    /// The agent that contributed it.
    pub agent: String,
    /// The version it is new in.
    pub version: u64,
    /// Its index in that version.
    pub ordinal: u64,
    /// The canonical text of its members.
    pub text: String,
}

/// Every row of a part, in order.
pub(super) fn rows_in(bytes: Bytes, types: &BTreeMap<String, String>) -> Result<Vec<Row>, String> {
    let reader = ParquetRecordBatchReaderBuilder::try_new(bytes)
        .and_then(ParquetRecordBatchReaderBuilder::build)
        .map_err(|error| error.to_string())?;
    let mut rows = Vec::new();
    for batch in reader {
        rows_of(&batch.map_err(|error| error.to_string())?, types, &mut rows)?;
    }
    Ok(rows)
}

fn rows_of(batch: &RecordBatch, types: &BTreeMap<String, String>, rows: &mut Vec<Row>) -> Result<(), String> {
    let column = |name: &str| batch.column_by_name(name).ok_or_else(|| format!("no column {name}"));
    let number = |name: &str, row: usize| -> Result<u64, String> {
        let value = column(name)?.as_primitive::<Int64Type>().value(row);
        u64::try_from(value).map_err(|_error| format!("{name} is {value}"))
    };
    let text = |name: &str, row: usize| -> Result<String, String> {
        Ok(column(name)?.as_string::<i32>().value(row).to_owned())
    };
    for row in 0..batch.num_rows() {
        let mut members = Map::new();
        let schema = batch.schema();
        for (field, column) in schema.fields().iter().zip(batch.columns()) {
            let name = field.name();
            if column.is_null(row) {
                continue;
            }
            if name == "_sluice_extra" {
                if let Value::Object(extra) = parsed(column.as_string::<i32>().value(row)) {
                    members.extend(extra);
                }
            } else if !name.starts_with("_sluice_") {
                members.insert(
                    name.clone(),
                    cell(column.as_ref(), row, types.get(name).map(String::as_str))?,
                );
            }
        }
        let key = column("_sluice_key")?;
        rows.push(Row {
            key: key
                .as_binary_opt::<i32>()
                .ok_or("the key column is not binary")?
                .value(row)
                .to_vec(),
            contribution: text("_sluice_contribution", row)?,
            agent: text("_sluice_agent", row)?,
            version: number("_sluice_version", row)?,
            ordinal: number("_sluice_ordinal", row)?,
            text: text_of(&normal(types, &members)),
        });
    }
    Ok(())
}

fn parsed(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_default()
}

fn cell(column: &dyn Array, row: usize, kind: Option<&str>) -> Result<Value, String> {
    Ok(match column.data_type() {
        DataType::Utf8 if kind == Some("json") => parsed(column.as_string::<i32>().value(row)),
        DataType::Utf8 => column.as_string::<i32>().value(row).into(),
        DataType::Int64 => column.as_primitive::<Int64Type>().value(row).into(),
        DataType::Float64 => column.as_primitive::<Float64Type>().value(row).into(),
        DataType::Boolean => column.as_boolean().value(row).into(),
        DataType::Timestamp(_, _) => {
            let micros = column.as_primitive::<TimestampMicrosecondType>().value(row);
            let instant = jiff::Timestamp::from_microsecond(micros).map_err(|error| error.to_string())?;
            instant.to_string().into()
        }
        DataType::Date32 => {
            let days = column.as_primitive::<Date32Type>().value(row);
            let epoch = jiff::civil::date(1970, 1, 1);
            let day = epoch
                .checked_add(jiff::Span::new().days(days))
                .map_err(|error| error.to_string())?;
            day.to_string().into()
        }
        // Arrow's text of a decimal has all digits of its scale.
        DataType::Decimal128(..) => column.as_primitive::<Decimal128Type>().value_as_string(row).into(),
        other => return Err(format!("a column of type {other}")),
    })
}

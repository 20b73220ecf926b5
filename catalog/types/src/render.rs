//! Rendering: typed columns back to JSON records, and in the formats of other programs.
//!
//! Invariant: decoding a rendered record gives the same canonical form, hence the same key.

pub mod answer;
pub mod arrow;
pub mod csv;
pub mod lines;
mod values;

use ::arrow::array::{Array, AsArray, RecordBatch};
use ::arrow::datatypes::{DataType, Date32Type, Decimal128Type, Float64Type, Int64Type, TimestampMicrosecondType};
use ::arrow::error::ArrowError;
use serde_json::{Map, Value};

use crate::contract::{Contract, EXTRA_COLUMN, FieldType, RESERVED_PREFIX};
use crate::{Date, Timestamp, decimal};

/// Renders every row of `rows`, a batch with the columns of a contract. Hidden columns and nulls are omitted, and
/// extras become members of the record again.
///
/// A `json` column looks like a string column here; [`records_of`] tells them apart by the contract.
pub fn records(rows: &RecordBatch) -> Result<Vec<Map<String, Value>>, ArrowError> {
    render(rows, |_| false)
}

/// Renders rows like [`records`], with the values of `json` columns parsed, and with a null for every field of
/// `contract` that a record lacks.
pub fn records_of(contract: &Contract, rows: &RecordBatch) -> Result<Vec<Map<String, Value>>, ArrowError> {
    let is_json = |name: &str| {
        contract
            .fields()
            .iter()
            .any(|field| field.name == name && field.kind == FieldType::Json)
    };
    let mut rendered = render(rows, is_json)?;
    for record in &mut rendered {
        for field in contract.fields() {
            if !record.contains_key(&field.name) {
                record.insert(field.name.clone(), Value::Null);
            }
        }
    }
    Ok(rendered)
}

/// Renders every row; `is_json` names the columns to parse.
fn render(rows: &RecordBatch, is_json: impl Fn(&str) -> bool) -> Result<Vec<Map<String, Value>>, ArrowError> {
    let mut rendered = vec![Map::new(); rows.num_rows()];
    let schema = rows.schema_ref();
    for (field, column) in schema.fields().iter().zip(rows.columns()) {
        // The extra column is hidden by its name, but its members belong to the record.
        let name = field.name();
        let extra = name == EXTRA_COLUMN;
        if name.starts_with(RESERVED_PREFIX) && !extra {
            continue;
        }
        let parse = extra || is_json(name);
        for (row, record) in rendered.iter_mut().enumerate() {
            if column.is_null(row) {
                continue;
            }
            let value = cell(column.as_ref(), row, parse)?;
            match value {
                // The extra column holds the members themselves.
                Value::Object(members) if extra => record.extend(members),
                value => {
                    record.insert(name.clone(), value);
                }
            }
        }
    }
    Ok(rendered)
}

/// Returns the value of a cell that is not null.
fn cell(column: &dyn Array, row: usize, parse: bool) -> Result<Value, ArrowError> {
    Ok(match column.data_type() {
        DataType::Utf8 => {
            let text = column.as_string::<i32>().value(row);
            if parse {
                serde_json::from_str(text).map_err(|error| ArrowError::JsonError(error.to_string()))?
            } else {
                Value::String(text.to_owned())
            }
        }
        DataType::Int64 => column.as_primitive::<Int64Type>().value(row).into(),
        DataType::Float64 => column.as_primitive::<Float64Type>().value(row).into(),
        DataType::Boolean => column.as_boolean().value(row).into(),
        DataType::Timestamp(_, _) => {
            let micros = column.as_primitive::<TimestampMicrosecondType>().value(row);
            Timestamp::from_micros(micros).to_string().into()
        }
        DataType::Date32 => {
            let days = column.as_primitive::<Date32Type>().value(row);
            Date::from_days(days).to_string().into()
        }
        DataType::Decimal128(_, scale) => {
            let units = column.as_primitive::<Decimal128Type>().value(row);
            decimal::text(units, scale.unsigned_abs()).into()
        }
        other => {
            return Err(ArrowError::NotYetImplemented(format!(
                "rendering a column of type {other}"
            )));
        }
    })
}

//! Rows of Apache Parquet, as JSON.
//!
//! Invariant: a file whose columns would take more memory than [`MAX_BYTES`] is refused, before a row is read if the
//! file says so itself. A small file can stand for large rows, since an encoding repeats a value for nothing.

use bytes::Bytes;
use data_encoding::BASE64;
use parquet::file::reader::{FileReader as _, SerializedFileReader};
use parquet::record::{Field, Row};
use serde_json::{Map, Number, Value};
use types::Timestamp;

use super::too_many;
use crate::RunFailure;
use crate::source::MAX_ROWS;

/// Most bytes of the columns of a file, decompressed.
const MAX_BYTES: i64 = 512 << 20;

/// Decodes the rows of a file.
pub(crate) fn rows(body: Bytes) -> Result<Vec<Value>, RunFailure> {
    rows_within(body, MAX_BYTES)
}

/// Decodes the rows of a file whose columns and whose rows take at most `most` bytes.
pub(super) fn rows_within(body: Bytes, most: i64) -> Result<Vec<Value>, RunFailure> {
    let broken = || RunFailure::form("the answer is no complete Parquet file");
    let too_large = || RunFailure::new("too_large", "the columns of the file are too large");
    let reader = SerializedFileReader::new(body).map_err(|_error| broken())?;
    let metadata = reader.metadata();
    let bytes = metadata.row_groups().iter().map(|group| group.total_byte_size().max(0));
    if bytes.fold(0_i64, i64::saturating_add) > most {
        return Err(too_large());
    }
    if usize::try_from(metadata.file_metadata().num_rows()).is_ok_and(|rows| rows > MAX_ROWS) {
        return Err(too_many());
    }
    let (mut rows, mut left) = (Vec::new(), usize::try_from(most).unwrap_or(0));
    for row in reader.get_row_iter(None).map_err(|_error| broken())? {
        // The numbers above are those of the file itself, which may say anything.
        if rows.len() == MAX_ROWS {
            return Err(too_many());
        }
        let row = object(&row.map_err(|_error| broken())?);
        left = left.checked_sub(weight(&row)).ok_or_else(too_large)?;
        rows.push(row);
    }
    Ok(rows)
}

/// Returns the memory that a value takes, nearly.
fn weight(value: &Value) -> usize {
    let content: usize = match value {
        Value::String(text) => text.len(),
        Value::Array(values) => values.iter().map(weight).sum(),
        Value::Object(members) => members.iter().map(|(name, value)| name.len() + weight(value)).sum(),
        Value::Null | Value::Bool(_) | Value::Number(_) => 0,
    };
    size_of::<Value>() + content
}

fn object(row: &Row) -> Value {
    let members = row.get_column_iter();
    let members: Map<String, Value> = members.map(|(name, field)| (name.clone(), value(field))).collect();
    Value::Object(members)
}

fn value(field: &Field) -> Value {
    match field {
        Field::Null => Value::Null,
        Field::Bool(flag) => (*flag).into(),
        Field::Byte(number) => (*number).into(),
        Field::Short(number) => (*number).into(),
        Field::Int(number) => (*number).into(),
        Field::Long(number) => (*number).into(),
        Field::UByte(number) => (*number).into(),
        Field::UShort(number) => (*number).into(),
        Field::UInt(number) => (*number).into(),
        Field::ULong(number) => (*number).into(),
        Field::Float16(number) => double(f64::from(f32::from(*number))),
        Field::Float(number) => double(f64::from(*number)),
        Field::Double(number) => double(*number),
        Field::Str(text) => text.as_str().into(),
        Field::Bytes(bytes) => BASE64.encode(bytes.data()).into(),
        Field::Date(days) => Timestamp::from_micros(i64::from(*days) * 86_400_000_000)
            .to_string()
            .into(),
        Field::TimestampMillis(millis) => Timestamp::from_micros(millis.saturating_mul(1_000)).to_string().into(),
        Field::TimestampMicros(micros) => Timestamp::from_micros(*micros).to_string().into(),
        Field::Group(row) => object(row),
        Field::ListInternal(list) => list.elements().iter().map(value).collect(),
        // A decimal, a time of the day and a map have a text that says what they are.
        other => other.to_string().into(),
    }
}

fn double(number: f64) -> Value {
    Number::from_f64(number).map_or(Value::Null, Value::Number)
}

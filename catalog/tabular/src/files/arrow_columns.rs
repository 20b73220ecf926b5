//! Columns of Arrow as values of a file.

use std::borrow::Cow;
use std::sync::Arc;

use arrow::array::{
    Array as _, ArrayRef, AsArray as _, BinaryViewArray, BooleanArray, Date32Array, Float32Array, Float64Array,
    Int64Array, RecordBatch, StringArray, StringViewArray, UInt64Array,
};
use arrow::buffer::NullBuffer;
use arrow::compute::{CastOptions, cast_with_options};
use arrow::datatypes::{
    DataType, Date32Type, Field, Float32Type, Float64Type, Int64Type, IntervalUnit, Schema, SchemaRef, TimeUnit,
    UInt64Type,
};
use arrow::util::display::FormatOptions;

use super::cell::FileCell;
use super::error::FileError;
use super::nested::{self, NestedColumn};

/// The most bytes of a nested value as JSON, those of a line that the service accepts.
const MAX_NESTED_BYTES: usize = 4 << 20;
const MILLISECONDS_PER_DAY: i64 = 86_400_000;

/// Casts that fail where a value does not fit.
pub(super) const STRICT: CastOptions<'static> = CastOptions {
    safe: false,
    format_options: FormatOptions::new(),
};

/// A column of a batch.
#[derive(Debug)]
pub(super) struct ArrowColumn {
    values: ArrowValues,
    nulls: Option<NullBuffer>,
}

#[derive(Debug)]
enum ArrowValues {
    Null,
    Boolean(BooleanArray),
    Integer(Int64Array),
    Unsigned(UInt64Array),
    Single(Float32Array),
    Double(Float64Array),
    Decimal(StringArray),
    Text(StringViewArray),
    Form(StringArray),
    Bytes(BinaryViewArray),
    Day(Date32Array),
    /// Milliseconds of days.
    LongDay(Int64Array),
    /// Counts of the nanoseconds beside.
    Local(Int64Array, i128),
    Instant(Int64Array, i128),
    Nested(NestedColumn),
}

impl ArrowColumn {
    /// Prepares a column. `uuids` says of each of its leaves, in order, whether it is a UUID.
    pub(super) fn new(column: &ArrayRef, uuids: &[bool]) -> Result<Self, FileError> {
        let cast = |kind: &DataType| cast_with_options(column, kind, &STRICT);
        let nulls = column.logical_nulls();
        let counts = || Ok::<_, FileError>(cast(&DataType::Int64)?.as_primitive::<Int64Type>().clone());
        let values = match column.data_type() {
            DataType::Null => ArrowValues::Null,
            DataType::Dictionary(_, values) => return Self::new(&cast(&shared(values))?, uuids),
            DataType::RunEndEncoded(_, values) => return Self::new(&cast(values.data_type())?, uuids),
            DataType::Boolean => ArrowValues::Boolean(column.as_boolean().clone()),
            DataType::UInt64 => ArrowValues::Unsigned(column.as_primitive::<UInt64Type>().clone()),
            kind if kind.is_integer() => ArrowValues::Integer(counts()?),
            DataType::Float16 | DataType::Float32 => {
                ArrowValues::Single(cast(&DataType::Float32)?.as_primitive::<Float32Type>().clone())
            }
            DataType::Float64 => ArrowValues::Double(column.as_primitive::<Float64Type>().clone()),
            DataType::Decimal32(..) | DataType::Decimal64(..) | DataType::Decimal128(..) | DataType::Decimal256(..) => {
                ArrowValues::Decimal(cast(&DataType::Utf8)?.as_string::<i32>().clone())
            }
            DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => {
                ArrowValues::Text(cast(&DataType::Utf8View)?.as_string_view().clone())
            }
            DataType::Date32 => ArrowValues::Day(column.as_primitive::<Date32Type>().clone()),
            DataType::Date64 => ArrowValues::LongDay(counts()?),
            DataType::Timestamp(unit, None) => ArrowValues::Local(counts()?, nanoseconds(*unit)),
            DataType::Timestamp(unit, Some(_)) => ArrowValues::Instant(counts()?, nanoseconds(*unit)),
            DataType::Time32(_) | DataType::Time64(_) => {
                ArrowValues::Form(cast(&DataType::Utf8)?.as_string::<i32>().clone())
            }
            kind if kind.is_nested() => ArrowValues::Nested(NestedColumn::new(column, uuids)?),
            kind => match nested::texts(column, uuids.first() == Some(&true))? {
                Some(texts) => ArrowValues::Form(texts),
                None if kind.is_binary() => ArrowValues::Bytes(cast(&DataType::BinaryView)?.as_binary_view().clone()),
                None => return Err(FileError::Refused(format!("values of the type {kind} are not read"))),
            },
        };
        Ok(Self { values, nulls })
    }

    /// Returns the value of a row.
    pub(super) fn cell(&self, row: usize) -> FileCell<'_> {
        if self.nulls.as_ref().is_some_and(|nulls| nulls.is_null(row)) {
            return FileCell::Null;
        }
        match &self.values {
            ArrowValues::Null => FileCell::Null,
            ArrowValues::Boolean(values) => FileCell::Boolean(values.value(row)),
            ArrowValues::Integer(values) => FileCell::Integer(values.value(row)),
            ArrowValues::Unsigned(values) => FileCell::Unsigned(values.value(row)),
            ArrowValues::Single(values) => FileCell::Single(values.value(row)),
            ArrowValues::Double(values) => FileCell::Double(values.value(row)),
            ArrowValues::Decimal(values) => FileCell::Decimal(Cow::Borrowed(values.value(row))),
            ArrowValues::Text(values) => FileCell::Text(Cow::Borrowed(values.value(row))),
            ArrowValues::Form(values) => FileCell::Form(Cow::Borrowed(values.value(row))),
            ArrowValues::Bytes(values) => FileCell::Bytes(values.value(row).into()),
            ArrowValues::Day(values) => FileCell::Day(values.value(row).into()),
            ArrowValues::LongDay(values) => match values.value(row) {
                value if value % MILLISECONDS_PER_DAY == 0 => FileCell::Day(value / MILLISECONDS_PER_DAY),
                value => FileCell::Local(i128::from(value) * nanoseconds(TimeUnit::Millisecond)),
            },
            ArrowValues::Local(values, unit) => FileCell::Local(i128::from(values.value(row)) * unit),
            ArrowValues::Instant(values, unit) => FileCell::Instant(i128::from(values.value(row)) * unit),
            ArrowValues::Nested(values) => {
                let mut text = Vec::new();
                match values.write(row, MAX_NESTED_BYTES, &mut text) {
                    Ok(()) => FileCell::Nested(text),
                    Err(problem) => FileCell::Unsayable(problem),
                }
            }
        }
    }
}

const fn nanoseconds(unit: TimeUnit) -> i128 {
    match unit {
        TimeUnit::Second => 1_000_000_000,
        TimeUnit::Millisecond => 1_000_000,
        TimeUnit::Microsecond => 1_000,
        TimeUnit::Nanosecond => 1,
    }
}

/// Returns the type whose values share their bytes: a text of a dictionary that many rows have is in memory once.
fn shared(values: &DataType) -> DataType {
    match values {
        DataType::Utf8 | DataType::LargeUtf8 => DataType::Utf8View,
        DataType::Binary | DataType::LargeBinary => DataType::BinaryView,
        other => other.clone(),
    }
}

/// Returns the types that a file is read as. `unit` is that of its intervals.
pub(super) fn as_read(schema: &Schema, unit: Option<IntervalUnit>) -> SchemaRef {
    let leaf = |kind: &DataType| {
        let values = match kind {
            DataType::Dictionary(_, values) => values,
            plain => plain,
        };
        match (values, unit) {
            (DataType::Interval(_), Some(unit)) => DataType::Interval(unit),
            (DataType::Utf8 | DataType::LargeUtf8 | DataType::Binary | DataType::LargeBinary, _) => shared(values),
            _ => kind.clone(),
        }
    };
    let field = |field: &Arc<Field>| {
        let kind = nested::with_leaves(field.data_type(), &leaf);
        Arc::new(field.as_ref().clone().with_data_type(kind))
    };
    Arc::new(Schema::new_with_metadata(
        schema.fields().iter().map(field).collect::<Vec<_>>(),
        schema.metadata().clone(),
    ))
}

/// Calls `each` with the cells of every row of a batch. `uuids` has those of each column.
pub(super) fn rows(
    batch: &RecordBatch,
    uuids: &[Vec<bool>],
    mut each: impl FnMut(&[FileCell<'_>]) -> Result<(), FileError>,
) -> Result<(), FileError> {
    let schema = batch.schema();
    let columns = batch.columns().iter().zip(schema.fields()).enumerate();
    let columns = columns.map(|(at, (column, field))| {
        let uuids = uuids.get(at).map(Vec::as_slice).unwrap_or_default();
        ArrowColumn::new(column, uuids).map_err(|error| match error {
            FileError::Refused(problem) => FileError::Refused(format!("the column `{}`: {problem}", field.name())),
            error => error,
        })
    });
    let columns = columns.collect::<Result<Vec<_>, _>>()?;
    let mut cells = Vec::with_capacity(columns.len());
    for row in 0..batch.num_rows() {
        cells.clear();
        cells.extend(columns.iter().map(|column| column.cell(row)));
        each(&cells)?;
    }
    Ok(())
}

//! JSON texts of nested values of Arrow: lists, structs and maps.
//!
//! Invariant: a text stays a text and a null stays a null. What JSON has no value for (decimals, times, intervals, bytes)
//! is a text, and a number that JSON cannot write is an error.

use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, AsArray as _, BooleanArray, FixedSizeListArray, Float32Array, Float64Array, Int64Array,
    IntervalMonthDayNanoArray, StringArray, StringViewArray, UInt64Array, make_array,
};
use arrow::compute::cast_with_options;
use arrow::datatypes::{
    DataType, Field, Float32Type, Float64Type, Int64Type, IntervalDayTimeType, IntervalMonthDayNano,
    IntervalMonthDayNanoType, IntervalUnit, IntervalYearMonthType, TimeUnit, UInt64Type,
};
use data_encoding::BASE64;
use types::canonical;

use super::arrow_columns::STRICT;
use super::error::FileError;

/// Returns the number of columns of Parquet behind a column of this type.
pub(super) fn leaves(kind: &DataType) -> usize {
    children(kind).map_or(1, |fields| fields.iter().map(|field| leaves(field.data_type())).sum())
}

/// Returns true if a value of this type is or has an interval.
pub(super) fn has_interval(kind: &DataType) -> bool {
    match children(kind) {
        Some(fields) => fields.iter().any(|field| has_interval(field.data_type())),
        None => matches!(kind, DataType::Interval(_)),
    }
}

/// Returns the same type with other types of its leaves.
pub(super) fn with_leaves(kind: &DataType, leaf: &impl Fn(&DataType) -> DataType) -> DataType {
    let child = |field: &Field| {
        field
            .clone()
            .with_data_type(with_leaves(field.data_type(), leaf))
            .into()
    };
    match kind {
        DataType::List(field) => DataType::List(child(field)),
        DataType::LargeList(field) => DataType::LargeList(child(field)),
        DataType::FixedSizeList(field, size) => DataType::FixedSizeList(child(field), *size),
        DataType::Struct(fields) => DataType::Struct(fields.iter().map(|field| child(field)).collect()),
        DataType::Map(field, sorted) => DataType::Map(child(field), *sorted),
        kind => leaf(kind),
    }
}

pub(super) fn children(kind: &DataType) -> Option<Vec<&Field>> {
    match kind {
        DataType::List(field)
        | DataType::LargeList(field)
        | DataType::ListView(field)
        | DataType::LargeListView(field)
        | DataType::FixedSizeList(field, _)
        | DataType::Map(field, _) => Some(vec![field.as_ref()]),
        DataType::Struct(fields) => Some(fields.iter().map(AsRef::as_ref).collect()),
        _ => None,
    }
}

/// Joins the parts of intervals that were read as months and as days: Parquet's have both.
pub(super) fn join_intervals(months: &ArrayRef, days: &ArrayRef) -> Result<ArrayRef, FileError> {
    if !has_interval(days.data_type()) {
        return Ok(ArrayRef::clone(days));
    }
    if let (Some(months), Some(days)) = (
        months.as_primitive_opt::<IntervalYearMonthType>(),
        days.as_primitive_opt::<IntervalDayTimeType>(),
    ) {
        let joined = months.iter().zip(days).map(|(months, days)| {
            let nanos = |milliseconds: i32| i64::from(milliseconds) * 1_000_000;
            let both = months.zip(days);
            both.map(|(months, days)| IntervalMonthDayNano::new(months, days.days, nanos(days.milliseconds)))
        });
        return Ok(Arc::new(joined.collect::<IntervalMonthDayNanoArray>()));
    }
    let (of_months, of_days) = (months.to_data(), days.to_data());
    let children = of_months.child_data().iter().zip(of_days.child_data());
    let joined = children.map(|(months, days)| {
        let joined = join_intervals(&make_array(months.clone()), &make_array(days.clone()))?;
        Ok::<_, FileError>(joined.to_data())
    });
    let whole = DataType::Interval(IntervalUnit::MonthDayNano);
    let kind = with_leaves(days.data_type(), &|kind| match kind {
        DataType::Interval(_) => whole.clone(),
        kind => kind.clone(),
    });
    let joined = joined.collect::<Result<_, _>>()?;
    let data = of_days.into_builder().data_type(kind).child_data(joined).build()?;
    Ok(make_array(data))
}

/// Returns an interval by ISO 8601-1:2019 section 5.5.2, with each part that is not 0: `P2M3D`. Each part has its own sign.
fn iso(months: i64, days: i64, nanoseconds: i128) -> String {
    let part = |number: i128, unit: &str| match number {
        0 => String::new(),
        number => format!("{number}{unit}"),
    };
    let date = part((months / 12).into(), "Y") + &part((months % 12).into(), "M") + &part(days.into(), "D");
    let (minutes, rest) = (nanoseconds / 60_000_000_000, nanoseconds % 60_000_000_000);
    let mut time = part(minutes / 60, "H") + &part(minutes % 60, "M");
    if rest != 0 {
        let sign = if rest < 0 { "-" } else { "" };
        let (seconds, fraction) = (rest.abs() / 1_000_000_000, rest.abs() % 1_000_000_000);
        let digits = format!(".{fraction:09}");
        let digits = digits.trim_end_matches('0').trim_end_matches('.');
        time.extend([sign, &seconds.to_string(), digits, "S"]);
    }
    match (date.as_str(), time.as_str()) {
        ("", "") => "PT0S".to_owned(),
        (date, "") => format!("P{date}"),
        (date, time) => format!("P{date}T{time}"),
    }
}

fn iso_interval(interval: IntervalMonthDayNano) -> String {
    iso(
        interval.months.into(),
        interval.days.into(),
        interval.nanoseconds.into(),
    )
}

/// Returns a duration with days of 24 hours, since it has no calendar.
fn iso_duration(count: i64, unit: TimeUnit) -> String {
    let nanoseconds = i128::from(count)
        * match unit {
            TimeUnit::Second => 1_000_000_000,
            TimeUnit::Millisecond => 1_000_000,
            TimeUnit::Microsecond => 1_000,
            TimeUnit::Nanosecond => 1,
        };
    let day = 86_400_000_000_000;
    // As many days as 64 bits have seconds fit into 64 bits.
    iso(
        0,
        i64::try_from(nanoseconds / day).unwrap_or(i64::MAX),
        nanoseconds % day,
    )
}

/// Returns a duration of sheets.
pub(super) fn iso_duration_of_millis(milliseconds: i64) -> String {
    iso_duration(milliseconds, TimeUnit::Millisecond)
}

/// Returns the texts of values whose text is the same in a field and in JSON; `is_uuid` is true for 16 bytes that are a
/// UUID (RFC 9562). `None` for other types.
pub(super) fn texts(column: &ArrayRef, is_uuid: bool) -> Result<Option<StringArray>, FileError> {
    Ok(Some(match column.data_type() {
        DataType::Interval(IntervalUnit::MonthDayNano) => {
            let intervals = column.as_primitive::<IntervalMonthDayNanoType>();
            intervals.iter().map(|interval| interval.map(iso_interval)).collect()
        }
        DataType::FixedSizeBinary(16) if is_uuid => column
            .as_fixed_size_binary()
            .iter()
            .map(|bytes| bytes.map(uuid))
            .collect(),
        DataType::Duration(unit) => {
            let counts = cast_with_options(column, &DataType::Int64, &STRICT)?;
            let counts = counts.as_primitive::<Int64Type>().iter();
            counts
                .map(|count| count.map(|count| iso_duration(count, *unit)))
                .collect()
        }
        _ => return Ok(None),
    }))
}

fn uuid(bytes: &[u8]) -> String {
    let hex = data_encoding::HEXLOWER.encode(bytes);
    let groups = [0..8, 8..12, 12..16, 16..20, 20..32].map(|group| hex.get(group).unwrap_or_default());
    groups.join("-")
}

/// A column of nested values, ready to be written as JSON.
#[derive(Debug)]
pub(super) struct NestedColumn {
    values: NestedValues,
    /// The array itself, for its nulls.
    array: ArrayRef,
}

#[derive(Debug)]
enum NestedValues {
    Null,
    Boolean(BooleanArray),
    Integer(Int64Array),
    Unsigned(UInt64Array),
    Single(Float32Array),
    Double(Float64Array),
    Text(StringViewArray),
    Bytes,
    List {
        ends: ElementEnds,
        values: Box<NestedColumn>,
    },
    Struct(Vec<(Vec<u8>, NestedColumn)>),
    /// A map whose keys are texts.
    Object {
        ends: ElementEnds,
        keys: StringViewArray,
        values: Box<NestedColumn>,
    },
    /// Another map, whose entries are structs of a key and a value.
    Entries {
        ends: ElementEnds,
        entries: Box<NestedColumn>,
    },
}

/// Places of the elements of each row.
#[derive(Debug)]
enum ElementEnds {
    Offsets(Vec<usize>),
    Fixed(usize),
}

impl ElementEnds {
    fn of(offsets: &[i32]) -> Self {
        Self::Offsets(
            offsets
                .iter()
                .map(|offset| usize::try_from(*offset).unwrap_or(0))
                .collect(),
        )
    }

    fn range(&self, row: usize) -> std::ops::Range<usize> {
        match self {
            Self::Offsets(offsets) => offsets[row]..offsets[row + 1],
            Self::Fixed(size) => row * size..(row + 1) * size,
        }
    }
}

impl NestedColumn {
    /// Prepares a column. `uuids` says of each of its leaves, in order, whether it is a UUID.
    pub(super) fn new(column: &ArrayRef, uuids: &[bool]) -> Result<Self, FileError> {
        let array = ArrayRef::clone(column);
        let cast = |wanted: &DataType| cast_with_options(column, wanted, &STRICT);
        let first = |kind: &DataType| uuids.split_at_checked(leaves(kind)).unwrap_or((uuids, &[]));
        let values = match column.data_type() {
            DataType::Null => NestedValues::Null,
            DataType::Dictionary(_, values) => return Self::new(&cast(values)?, uuids),
            DataType::Boolean => NestedValues::Boolean(column.as_boolean().clone()),
            DataType::UInt64 => NestedValues::Unsigned(column.as_primitive::<UInt64Type>().clone()),
            kind if kind.is_integer() => {
                NestedValues::Integer(cast(&DataType::Int64)?.as_primitive::<Int64Type>().clone())
            }
            DataType::Float16 | DataType::Float32 => {
                NestedValues::Single(cast(&DataType::Float32)?.as_primitive::<Float32Type>().clone())
            }
            DataType::Float64 => NestedValues::Double(column.as_primitive::<Float64Type>().clone()),
            DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => {
                NestedValues::Text(cast(&DataType::Utf8View)?.as_string_view().clone())
            }
            DataType::FixedSizeBinary(16) if uuids.first() == Some(&true) => {
                let texts = column.as_fixed_size_binary().iter().map(|bytes| bytes.map(uuid));
                NestedValues::Text(texts.collect())
            }
            DataType::Binary | DataType::LargeBinary | DataType::BinaryView | DataType::FixedSizeBinary(_) => {
                let array = cast(&DataType::BinaryView)?;
                let values = NestedValues::Bytes;
                return Ok(Self { values, array });
            }
            DataType::List(_) => {
                let list = column.as_list::<i32>();
                NestedValues::List {
                    ends: ElementEnds::of(list.value_offsets()),
                    values: Box::new(Self::new(list.values(), uuids)?),
                }
            }
            DataType::LargeList(field) => return Self::new(&cast(&DataType::List(Arc::clone(field)))?, uuids),
            DataType::ListView(field) | DataType::LargeListView(field) => {
                return Self::new(&cast(&DataType::List(Arc::clone(field)))?, uuids);
            }
            DataType::FixedSizeList(..) => {
                let list: &FixedSizeListArray = column.as_fixed_size_list();
                NestedValues::List {
                    ends: ElementEnds::Fixed(usize::try_from(list.value_length()).unwrap_or(0)),
                    values: Box::new(Self::new(list.values(), uuids)?),
                }
            }
            DataType::Struct(fields) => {
                let mut uuids = uuids;
                let mut members = Vec::with_capacity(fields.len());
                for (field, column) in fields.iter().zip(column.as_struct().columns()) {
                    let head = head(field.name());
                    if members.iter().any(|(other, _)| *other == head) {
                        return Err(FileError::Refused(format!(
                            "a struct has two members called `{}`",
                            field.name()
                        )));
                    }
                    let (own, rest) = uuids
                        .split_at_checked(leaves(field.data_type()))
                        .unwrap_or((uuids, &[]));
                    members.push((head, Self::new(column, own)?));
                    uuids = rest;
                }
                NestedValues::Struct(members)
            }
            DataType::Map(..) => {
                let map = column.as_map();
                let ends = ElementEnds::of(map.value_offsets());
                let (of_keys, of_values) = first(map.key_type());
                let keys = Self::new(map.keys(), of_keys)?;
                let values = Box::new(Self::new(map.values(), of_values)?);
                if let NestedValues::Text(keys) = keys.values {
                    NestedValues::Object { ends, keys, values }
                } else {
                    let entries = NestedValues::Struct(vec![(head("key"), keys), (head("value"), *values)]);
                    let array: ArrayRef = Arc::new(map.entries().clone());
                    let entries = Box::new(Self { values: entries, array });
                    NestedValues::Entries { ends, entries }
                }
            }
            // The same instant, whatever the zone of the file. One without a zone stays without, as JSON can say it.
            DataType::Timestamp(unit, Some(_)) => {
                let zoned = cast(&DataType::Timestamp(*unit, Some("UTC".into())))?;
                let shown = cast_with_options(&zoned, &DataType::Utf8, &STRICT)?;
                NestedValues::Text(shown.as_string::<i32>().iter().collect())
            }
            _ => match texts(column, false)? {
                Some(texts) => NestedValues::Text(texts.iter().collect()),
                None => NestedValues::Text(cast(&DataType::Utf8)?.as_string::<i32>().iter().collect()),
            },
        };
        Ok(Self { values, array })
    }

    /// Returns true if a row is null.
    pub(super) fn is_null(&self, row: usize) -> bool {
        matches!(self.values, NestedValues::Null) || self.array.is_null(row)
    }

    /// Appends a row as JSON in one line.
    ///
    /// # Errors
    /// The reason why JSON cannot say the value, or that it takes `out` beyond `most` bytes.
    pub(super) fn write(&self, row: usize, most: usize, out: &mut Vec<u8>) -> Result<(), String> {
        // A few texts of a dictionary may be many elements.
        if out.len() > most {
            return Err(format!(
                "the value has more than {most} bytes as JSON, the most of a record"
            ));
        }
        if self.is_null(row) {
            out.extend_from_slice(b"null");
            return Ok(());
        }
        match &self.values {
            NestedValues::Null => {}
            NestedValues::Boolean(values) => out.extend_from_slice(values.value(row).to_string().as_bytes()),
            NestedValues::Integer(values) => out.extend_from_slice(values.value(row).to_string().as_bytes()),
            NestedValues::Unsigned(values) => out.extend_from_slice(values.value(row).to_string().as_bytes()),
            // The shortest digits that are the same 32 bits, since more of them would be the conversion's own.
            NestedValues::Single(values) => number(values.value(row).is_finite(), values.value(row), out)?,
            NestedValues::Double(values) => number(values.value(row).is_finite(), values.value(row), out)?,
            NestedValues::Text(values) => canonical::write_string(out, values.value(row)),
            NestedValues::Bytes => {
                let text = BASE64.encode(self.array.as_binary_view().value(row));
                canonical::write_string(out, &text);
            }
            NestedValues::List { ends, values } => list(ends.range(row), values, most, out)?,
            NestedValues::Entries { ends, entries } => list(ends.range(row), entries, most, out)?,
            NestedValues::Struct(members) => {
                let mut before = b'{';
                for (head, values) in members {
                    out.push(before);
                    out.extend_from_slice(head);
                    values.write(row, most, out)?;
                    before = b',';
                }
                if members.is_empty() {
                    out.push(b'{');
                }
                out.push(b'}');
            }
            NestedValues::Object { ends, keys, values } => {
                let range = ends.range(row);
                let mut seen = std::collections::HashSet::new();
                if let Some(key) = range.clone().find(|at| !seen.insert(keys.value(*at))) {
                    return Err(format!("a map has the key `{}` twice", keys.value(key)));
                }
                out.push(b'{');
                for at in range.clone() {
                    if at > range.start {
                        out.push(b',');
                    }
                    canonical::write_string(out, keys.value(at));
                    out.push(b':');
                    values.write(at, most, out)?;
                }
                out.push(b'}');
            }
        }
        Ok(())
    }
}

fn list(range: std::ops::Range<usize>, values: &NestedColumn, most: usize, out: &mut Vec<u8>) -> Result<(), String> {
    out.push(b'[');
    for at in range.clone() {
        if at > range.start {
            out.push(b',');
        }
        values.write(at, most, out)?;
    }
    out.push(b']');
    Ok(())
}

fn number(is_finite: bool, number: impl serde::Serialize + std::fmt::Display, out: &mut Vec<u8>) -> Result<(), String> {
    // JSON has no NaN and no infinities (RFC 8259 section 6).
    if !is_finite {
        return Err(format!("`{number}` is no number of JSON"));
    }
    serde_json::to_writer(out, &number).map_err(|error| error.to_string())
}

/// Returns the JSON before the value of a member: its name and a colon.
fn head(name: &str) -> Vec<u8> {
    let mut head = Vec::new();
    canonical::write_string(&mut head, name);
    head.push(b':');
    head
}

#[cfg(test)]
mod tests;

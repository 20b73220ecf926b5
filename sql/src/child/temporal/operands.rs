//! Columns as the values of the operations, and back.

use std::collections::HashMap;
use std::sync::Arc;

use datafusion::arrow::array::{
    Array as _, ArrayRef, AsArray as _, IntervalMonthDayNanoArray, StringArray, TimestampMicrosecondArray,
};
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::{
    DataType, DurationMicrosecondType, Float64Type, Int64Type, IntervalMonthDayNano, IntervalMonthDayNanoType,
    TimeUnit, TimestampMicrosecondType,
};
use datafusion::error::{DataFusionError, Result};

use super::{INTERVAL, LOCAL, TextKind, out_of_range, read};
use crate::time::DAY_MICROS;
use crate::time::interval::{Interval, OutOfRange};
use crate::time::zone::TimeZone;

pub(in super::super) const OUT_OF_RANGE: &str = "an interval is out of range";

/// Returns the engine's form of an interval. A time that has no nanoseconds of 64 bits becomes days.
pub(in super::super) fn to_engine(interval: Interval) -> Option<IntervalMonthDayNano> {
    let Interval { months, days, micros } = interval;
    if let Some(nanos) = micros.checked_mul(1_000) {
        return Some(IntervalMonthDayNano::new(months, days, nanos));
    }
    let days = i32::try_from(i64::from(days) + micros / DAY_MICROS).ok()?;
    Some(IntervalMonthDayNano::new(months, days, micros % DAY_MICROS * 1_000))
}

/// Returns an interval of the engine, without what is below a microsecond.
pub(in super::super) const fn from_engine(interval: IntervalMonthDayNano) -> Interval {
    Interval {
        months: interval.months,
        days: interval.days,
        micros: interval.nanoseconds / 1_000,
    }
}

pub(super) fn to_intervals(found: Vec<Option<Interval>>) -> Result<ArrayRef> {
    let converted = found.into_iter().map(|interval| {
        interval
            .map(|interval| to_engine(interval).ok_or_else(|| out_of_range(OutOfRange)))
            .transpose()
    });
    let converted: Vec<_> = converted.collect::<Result<_>>()?;
    Ok(Arc::new(IntervalMonthDayNanoArray::from(converted)))
}

pub(super) fn to_times(found: Vec<Option<i64>>, kind: &DataType) -> ArrayRef {
    let times = TimestampMicrosecondArray::from(found);
    match kind {
        DataType::Timestamp(_, Some(zone)) => Arc::new(times.with_timezone(Arc::clone(zone))),
        _ => Arc::new(times),
    }
}

/// Returns intervals, read from texts if necessary.
pub(super) fn intervals(array: &ArrayRef) -> Result<Vec<Option<Interval>>> {
    let array = match array.data_type() {
        kind if kind.is_string() => &read(&texts(array)?, TextKind::Interval, false, &INTERVAL)?,
        DataType::Duration(_) => {
            let micros = cast(array, &DataType::Duration(TimeUnit::Microsecond))?;
            let micros = micros.as_primitive::<DurationMicrosecondType>();
            let of = |micros| Interval::of_micros(micros).map_err(out_of_range);
            return micros.iter().map(|micros| micros.map(of).transpose()).collect();
        }
        _ => &cast(array, &INTERVAL)?,
    };
    Ok(array
        .as_primitive::<IntervalMonthDayNanoType>()
        .iter()
        .map(|interval| interval.map(from_engine))
        .collect())
}

/// Returns timestamps and dates in microseconds. A text is a local time.
pub(super) fn times(array: &ArrayRef) -> Result<Vec<Option<i64>>> {
    as_times(array, TextKind::Local)
}

/// Returns timestamps and dates in microseconds. A text is an instant.
pub(super) fn instants(array: &ArrayRef) -> Result<Vec<Option<i64>>> {
    as_times(array, TextKind::Instant)
}

fn as_times(array: &ArrayRef, kind: TextKind) -> Result<Vec<Option<i64>>> {
    Ok(to_micros(array, kind)?
        .as_primitive::<TimestampMicrosecondType>()
        .iter()
        .collect())
}

/// Returns timestamps and dates as timestamps with microseconds. A text is a time of this kind.
pub(super) fn to_micros(array: &ArrayRef, kind: TextKind) -> Result<ArrayRef> {
    Ok(match array.data_type() {
        text if text.is_string() => read(&texts(array)?, kind, false, &LOCAL)?,
        DataType::Timestamp(_, zone) => cast(array, &DataType::Timestamp(TimeUnit::Microsecond, zone.clone()))?,
        _ => cast(array, &LOCAL)?,
    })
}

pub(super) fn doubles(array: &ArrayRef) -> Result<Vec<Option<f64>>> {
    Ok(cast(array, &DataType::Float64)?
        .as_primitive::<Float64Type>()
        .iter()
        .collect())
}

pub(super) fn whole(array: &ArrayRef) -> Result<Vec<Option<i64>>> {
    let days = if array.data_type() == &DataType::Date32 {
        &cast(array, &DataType::Int32)?
    } else {
        array
    };
    Ok(cast(days, &DataType::Int64)?
        .as_primitive::<Int64Type>()
        .iter()
        .collect())
}

pub(super) fn texts(array: &ArrayRef) -> Result<StringArray> {
    Ok(cast(array, &DataType::Utf8)?.as_string::<i32>().clone())
}

/// Time zones of a column: names, or intervals to the east of Greenwich.
#[derive(Debug)]
pub(super) enum Zones {
    Names {
        names: StringArray,
        known: HashMap<String, TimeZone>,
    },
    Offsets(Vec<Option<Interval>>),
}

impl Zones {
    pub(super) fn new(array: &ArrayRef) -> Result<Self> {
        Ok(match array.data_type() {
            DataType::Interval(_) | DataType::Duration(_) => Self::Offsets(intervals(array)?),
            _ => Self::Names {
                names: texts(array)?,
                known: HashMap::new(),
            },
        })
    }

    /// Returns the zone of a row, or `None` if it is null.
    pub(super) fn at(&mut self, row: usize) -> Result<Option<TimeZone>> {
        match self {
            Self::Names { names, .. } if names.is_null(row) => Ok(None),
            Self::Names { names, known } => {
                let name = names.value(row);
                if let Some(zone) = known.get(name) {
                    return Ok(Some(*zone));
                }
                let zone = TimeZone::parse(name).ok_or_else(|| {
                    let shown: String = name.chars().take(60).collect();
                    let problem = format!("there is no time zone `{shown}`: write a name such as 'Europe/Berlin'");
                    DataFusionError::Execution(problem)
                })?;
                known.insert(name.to_owned(), zone);
                Ok(Some(zone))
            }
            Self::Offsets(offsets) => {
                let Some(Interval { months, days, micros }) = offsets[row] else {
                    return Ok(None);
                };
                let seconds = i32::try_from(micros / 1_000_000)
                    .ok()
                    .filter(|_| months == 0 && days == 0);
                seconds.map(|seconds| Some(TimeZone::Fixed(seconds))).ok_or_else(|| {
                    let problem = "an interval that is a time zone has hours and minutes only";
                    DataFusionError::Execution(problem.to_owned())
                })
            }
        }
    }
}

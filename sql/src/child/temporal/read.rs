//! Texts as timestamps, dates, times and intervals.

use std::sync::Arc;

use datafusion::arrow::array::{ArrayRef, Date32Array, StringArray, Time64NanosecondArray};
use datafusion::arrow::datatypes::{DataType, TimeUnit};
use datafusion::common::ScalarValue;
use datafusion::error::{DataFusionError, Result};

use super::operands::{to_intervals, to_times};
use super::{INTERVAL, LOCAL, TextKind, instant};
use crate::time::interval::Interval;
use crate::time::moment::Moment;

impl TextKind {
    /// Returns the type of a text that was read.
    pub(super) fn result(self) -> DataType {
        match self {
            Self::Instant => instant(),
            Self::Local => LOCAL,
            Self::Date => DataType::Date32,
            Self::Time => DataType::Time64(TimeUnit::Nanosecond),
            Self::Interval => INTERVAL,
        }
    }
}

/// Reads a text of the statement. If it is lenient, a text that cannot be read is null.
pub(in super::super) fn literal(text: &str, kind: TextKind, lenient: bool) -> Result<ScalarValue> {
    let text = StringArray::from(vec![text]);
    let value = read(&text, kind, lenient, &kind.result()).map_err(|error| match error {
        DataFusionError::Execution(problem) => DataFusionError::Plan(problem),
        other => other,
    });
    ScalarValue::try_from_array(&value?, 0)
}

/// Reads each text.
pub(super) fn read(texts: &StringArray, kind: TextKind, lenient: bool, result: &DataType) -> Result<ArrayRef> {
    let unread = |text: &str, problem: &str| {
        let what = match kind {
            TextKind::Instant | TextKind::Local => "timestamp",
            TextKind::Date => "date",
            TextKind::Time => "time",
            TextKind::Interval => "interval",
        };
        let shown: String = text.chars().take(60).collect();
        DataFusionError::Execution(format!("`{shown}` cannot be read as a {what}: {problem}"))
    };
    if kind == TextKind::Interval {
        let found = texts.iter().map(|text| {
            let Some(text) = text else { return Ok(None) };
            match Interval::parse(text) {
                None if !lenient => Err(unread(text, "write it as '1 day 02:30'")),
                found => Ok(found),
            }
        });
        return to_intervals(found.collect::<Result<_>>()?);
    }
    let found = texts.iter().map(|text| {
        let Some(text) = text else { return Ok(None) };
        let moment = Moment::parse(text).and_then(|moment| {
            let value = match kind {
                TextKind::Instant => moment.instant(),
                TextKind::Local => moment.local(),
                TextKind::Date => moment.date().map(i64::from),
                TextKind::Time | TextKind::Interval => Some(moment.time() * 1_000),
            };
            value.ok_or("it has no date")
        });
        match moment {
            Err(_) if lenient => Ok(None),
            read => read.map(Some).map_err(|problem| unread(text, problem)),
        }
    });
    let found: Vec<Option<i64>> = found.collect::<Result<_>>()?;
    match kind {
        TextKind::Date => {
            let days = found.into_iter().map(|day| day.and_then(|day| i32::try_from(day).ok()));
            Ok(Arc::new(days.collect::<Date32Array>()))
        }
        TextKind::Time => Ok(Arc::new(Time64NanosecondArray::from(found))),
        _ => Ok(to_times(found, result)),
    }
}

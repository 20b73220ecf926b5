//! Functions of dates, times and intervals in place of the engine's.
//!
//! Invariant: a timestamp with a time zone is an instant of UTC, one without is a local time, and both have
//! microseconds. An interval has months, days and a time.

mod bins;
mod operands;
mod parts;
mod read;
mod sides;

use std::sync::Arc;

use datafusion::arrow::array::{Array as _, ArrayRef, Date32Array, Int64Array, StringArray};
use datafusion::arrow::compute::{is_null, nullif};
use datafusion::arrow::datatypes::{
    DataType, Field, FieldRef, Int64Type, IntervalMonthDayNanoType, IntervalUnit, TimeUnit, TimestampMicrosecondType,
};
use datafusion::arrow::error::ArrowError;
use datafusion::common::ScalarValue;
use datafusion::error::{DataFusionError, Result};
use datafusion::logical_expr::expr::ScalarFunction;
use datafusion::logical_expr::{
    ColumnarValue, Expr, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};

use self::bins::{binned, lengths_of};
pub(super) use self::operands::{OUT_OF_RANGE, from_engine, to_engine};
use self::operands::{Zones, doubles, instants, intervals, texts, times, to_intervals, to_times};
use self::parts::TimePart;
pub(super) use self::read::literal;
use self::read::read;
use self::sides::ComparedTimes;
use super::numeric::NUMERIC;
use crate::time::interval::{Interval, OutOfRange};
use crate::time::moment;

/// Type of all intervals.
pub(super) const INTERVAL: DataType = DataType::Interval(IntervalUnit::MonthDayNano);
/// Type of a timestamp without a time zone.
pub(super) const LOCAL: DataType = DataType::Timestamp(TimeUnit::Microsecond, None);
/// Key of the metadata of a whole number of 64 bits that divides like one with a fraction. The value is [`OF_EXTRACT`], or
/// empty. The engine keeps it on a cast to an integer of 32 bits, where it means nothing.
pub(super) const DIVISIBLE: &str = "divisible";
/// Value of [`DIVISIBLE`] for a part that is a numeric in `PostgreSQL`, and not a double.
pub(super) const OF_EXTRACT: &str = "numeric";

/// Returns the type of a timestamp with a time zone.
pub(super) fn instant() -> DataType {
    DataType::Timestamp(TimeUnit::Microsecond, Some("UTC".into()))
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum TemporalOperation {
    /// `timestamp - timestamp`, an interval of days and a time.
    Difference,
    /// Length of a difference in microseconds.
    Elapsed,
    /// `date + integer`.
    ShiftedDate,
    /// Length of an interval in microseconds, by which intervals are compared.
    Length,
    Plus,
    Minus,
    /// `interval * number`.
    Times,
    /// `interval / number`.
    Divided,
    /// `timezone(zone, timestamp)`: `AT TIME ZONE`.
    Timezone,
    /// `date_part(part, value)`, or `extract(part FROM value)`, whose fractions are numeric. `divisible` marks whole
    /// results with [`DIVISIBLE`].
    Part {
        extract: bool,
        divisible: bool,
    },
    /// A whole number that is computed from parts, with their mark.
    Marked {
        extract: bool,
    },
    /// `date_trunc(part, value [, zone])`.
    Truncated,
    /// `date_bin(stride, timestamp [, origin])`.
    Bin,
    Age,
    JustifiedHours,
    JustifiedDays,
    Justified,
    /// Seconds since 1970 as an instant.
    OfSeconds,
    /// A text as a timestamp, date, time or interval. `lenient` makes what cannot be read null.
    Read {
        kind: TextKind,
        lenient: bool,
    },
    /// An interval as text.
    Text,
    /// `kept(value, key)`: the value, or null if the key is null.
    Kept,
    /// The greatest or the least of several intervals, without those that are null.
    Extreme {
        greatest: bool,
    },
}

/// Kind of a text that is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum TextKind {
    Instant,
    Local,
    Date,
    Time,
    Interval,
}

/// Returns the call of an operation.
pub(super) fn call(operation: TemporalOperation, operands: Vec<Expr>) -> Expr {
    Expr::ScalarFunction(ScalarFunction::new_udf(Arc::new(function(operation)), operands))
}

fn function(operation: TemporalOperation) -> ScalarUDF {
    ScalarUDF::new_from_impl(Temporal {
        operation,
        signature: Signature::variadic_any(Volatility::Immutable),
        aliases: match operation {
            TemporalOperation::Part { .. } => vec!["datepart".to_owned()],
            TemporalOperation::Truncated => vec!["datetrunc".to_owned()],
            _ => Vec::new(),
        },
    })
}

/// Returns the functions that a statement can call.
pub(super) fn functions() -> Vec<Arc<ScalarUDF>> {
    let operations = [
        TemporalOperation::Timezone,
        TemporalOperation::Part {
            extract: false,
            divisible: true,
        },
        TemporalOperation::Truncated,
        TemporalOperation::Bin,
        TemporalOperation::Age,
        TemporalOperation::JustifiedHours,
        TemporalOperation::JustifiedDays,
        TemporalOperation::Justified,
    ];
    operations
        .into_iter()
        .map(|operation| Arc::new(function(operation)))
        .collect()
}

/// Returns true for the function of `extract()`, whose fractions are numeric.
pub(super) fn is_extract(function: &ScalarUDF) -> bool {
    let temporal = function.inner().downcast_ref::<Temporal>();
    temporal.is_some_and(|temporal| matches!(temporal.operation, TemporalOperation::Part { extract: true, .. }))
}

/// An operation as a function of the engine.
#[derive(Debug, PartialEq, Eq, Hash)]
struct Temporal {
    operation: TemporalOperation,
    signature: Signature,
    aliases: Vec<String>,
}

impl Temporal {
    fn wrong(&self, problem: &str) -> DataFusionError {
        DataFusionError::Plan(format!("{}() {problem}", self.name()))
    }

    /// Returns the part that the first argument names.
    fn part(&self, argument: Option<&ScalarValue>) -> Result<TimePart> {
        let text = argument.and_then(|value| value.try_as_str().flatten());
        let Some(text) = text else {
            return Err(self.wrong("needs a part in quotes, such as 'hour', as its first argument"));
        };
        TimePart::parse(text).ok_or_else(|| self.wrong(&format!("knows no part `{text}` of a date or time")))
    }

    /// Reports a zone or a time of the statement that cannot be read, before any row is.
    fn read_literal(&self, first: Option<&ScalarValue>) -> Result<()> {
        let Some(text) = first.and_then(|value| value.try_as_str().flatten()) else {
            return Ok(());
        };
        let text: ArrayRef = Arc::new(StringArray::from(vec![text]));
        let read = match self.operation {
            TemporalOperation::Timezone => Zones::new(&text)?.at(0).map(drop),
            TemporalOperation::Read { kind, lenient: false } => read(&texts(&text)?, kind, false, &LOCAL).map(drop),
            _ => Ok(()),
        };
        read.map_err(|error| match error {
            DataFusionError::Execution(problem) => DataFusionError::Plan(problem),
            other => other,
        })
    }

    fn result(&self, args: &ReturnFieldArgs<'_>) -> Result<DataType> {
        let kinds: Vec<&DataType> = args.arg_fields.iter().map(|field| field.data_type()).collect();
        let (least, most) = match self.operation {
            TemporalOperation::Timezone | TemporalOperation::Part { .. } => (2, 2),
            TemporalOperation::Truncated | TemporalOperation::Bin => (2, 3),
            TemporalOperation::Age => (1, 2),
            TemporalOperation::JustifiedHours | TemporalOperation::JustifiedDays | TemporalOperation::Justified => {
                (1, 1)
            }
            _ => (0, usize::MAX),
        };
        if kinds.len() < least || kinds.len() > most {
            let wanted = if least == most {
                format!("{least}")
            } else {
                format!("{least} or {most}")
            };
            return Err(self.wrong(&format!("takes {wanted} arguments, not {}", kinds.len())));
        }
        let timestamp = |kind: &DataType| {
            kind.is_string() || matches!(kind, DataType::Timestamp(..) | DataType::Date32 | DataType::Null)
        };
        if self.operation == TemporalOperation::Age && !kinds.iter().all(|kind| timestamp(kind)) {
            return Err(self.wrong("takes timestamps"));
        }
        if self.operation == TemporalOperation::Timezone && kinds[0].is_numeric() {
            return Err(self.wrong("and AT TIME ZONE take the name of a zone in quotes, such as 'UTC'"));
        }
        let zoned = |kind: &DataType| !matches!(kind, DataType::Timestamp(_, None));
        Ok(match self.operation {
            TemporalOperation::Difference
            | TemporalOperation::Plus
            | TemporalOperation::Minus
            | TemporalOperation::Times
            | TemporalOperation::Divided
            | TemporalOperation::Age
            | TemporalOperation::JustifiedHours
            | TemporalOperation::JustifiedDays
            | TemporalOperation::Justified
            | TemporalOperation::Kept
            | TemporalOperation::Extreme { .. } => INTERVAL,
            TemporalOperation::ShiftedDate => DataType::Date32,
            TemporalOperation::Elapsed | TemporalOperation::Length => DataType::Int64,
            TemporalOperation::OfSeconds => instant(),
            TemporalOperation::Text => DataType::Utf8,
            TemporalOperation::Read { kind, .. } => kind.result(),
            TemporalOperation::Timezone => match kinds[1] {
                DataType::Timestamp(_, None) => instant(),
                DataType::Timestamp(..) | DataType::Date32 | DataType::Null => LOCAL,
                kind if kind.is_string() => LOCAL,
                _ => return Err(self.wrong("and AT TIME ZONE take a timestamp")),
            },
            TemporalOperation::Part { extract, .. } => {
                let part = self.part(args.scalar_arguments[0])?;
                let kind = kinds[1];
                if !part.is_of(kind) {
                    return Err(self.wrong(&format!("cannot take {part} of this kind of value")));
                }
                if extract && *kind == DataType::Date32 && !part.is_of_date() {
                    let problem =
                        format!("extract() takes {part} of a timestamp and not of a date: cast it with ::timestamp");
                    return Err(DataFusionError::Plan(problem));
                }
                match part.result(kind) {
                    DataType::Float64 if extract => NUMERIC,
                    kind => kind,
                }
            }
            TemporalOperation::Marked { .. } => kinds.first().copied().cloned().unwrap_or(DataType::Int64),
            TemporalOperation::Truncated => {
                let part = self.part(args.scalar_arguments[0])?;
                if !part.is_truncated() {
                    return Err(self.wrong(&format!("cannot truncate to {part}")));
                }
                match kinds[1] {
                    DataType::Interval(_) | DataType::Duration(_) if kinds.len() == 2 => INTERVAL,
                    DataType::Timestamp(_, None) if kinds.len() == 2 => LOCAL,
                    DataType::Timestamp(..) | DataType::Date32 | DataType::Null => instant(),
                    kind if kind.is_string() => instant(),
                    _ => return Err(self.wrong("takes a timestamp or an interval")),
                }
            }
            TemporalOperation::Bin => {
                if !kinds[1..].iter().all(|kind| timestamp(kind)) {
                    return Err(self.wrong("takes an interval, a timestamp and a timestamp to count from"));
                }
                let origin = kinds.get(2).filter(|kind| !kind.is_string());
                if zoned(kinds[1]) || origin.is_some_and(|kind| matches!(kind, DataType::Timestamp(_, Some(_)))) {
                    instant()
                } else {
                    LOCAL
                }
            }
        })
    }
}

impl ScalarUDFImpl for Temporal {
    fn name(&self) -> &'static str {
        match self.operation {
            TemporalOperation::Difference => "difference",
            TemporalOperation::Elapsed => "elapsed",
            TemporalOperation::ShiftedDate => "date_shift",
            TemporalOperation::Length => "interval_length",
            TemporalOperation::Plus => "interval_plus",
            TemporalOperation::Minus => "interval_minus",
            TemporalOperation::Times => "interval_times",
            TemporalOperation::Divided => "interval_divided",
            TemporalOperation::Timezone => "timezone",
            TemporalOperation::Part { .. } => "date_part",
            TemporalOperation::Marked { .. } => "marked",
            TemporalOperation::Truncated => "date_trunc",
            TemporalOperation::Bin => "date_bin",
            TemporalOperation::Age => "age",
            TemporalOperation::JustifiedHours => "justify_hours",
            TemporalOperation::JustifiedDays => "justify_days",
            TemporalOperation::Justified => "justify_interval",
            TemporalOperation::OfSeconds => "to_timestamp",
            TemporalOperation::Read { .. } => "read_time",
            TemporalOperation::Text => "interval_text",
            TemporalOperation::Kept => "kept",
            TemporalOperation::Extreme { greatest: true } => "greatest",
            TemporalOperation::Extreme { greatest: false } => "least",
        }
    }

    fn aliases(&self) -> &[String] {
        &self.aliases
    }

    /// Returns the name that the engine gives an operator, so the column keeps its name.
    fn schema_name(&self, args: &[Expr]) -> Result<String> {
        let names: Vec<String> = args.iter().map(|arg| arg.schema_name().to_string()).collect();
        Ok(match (self.operation, args) {
            (TemporalOperation::Difference | TemporalOperation::Minus, _) => names.join(" - "),
            (TemporalOperation::ShiftedDate | TemporalOperation::Plus, _) => names.join(" + "),
            (TemporalOperation::Times, _) => names.join(" * "),
            (TemporalOperation::Divided, _) => names.join(" / "),
            (TemporalOperation::Read { .. }, [Expr::Literal(..)]) | (TemporalOperation::Marked { .. }, _) => {
                names.concat()
            }
            _ => format!("{}({})", self.name(), names.join(",")),
        })
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Err(self.wrong("has no type without its arguments"))
    }

    fn return_field_from_args(&self, args: ReturnFieldArgs<'_>) -> Result<FieldRef> {
        let kind = self.result(&args)?;
        let nullable = matches!(self.operation, TemporalOperation::Read { lenient: true, .. })
            || args.arg_fields.iter().any(|field| field.is_nullable());
        self.read_literal(args.scalar_arguments.first().copied().flatten())?;
        let mut field = Field::new(self.name(), kind, nullable);
        if let TemporalOperation::Part {
            extract,
            divisible: true,
        }
        | TemporalOperation::Marked { extract } = self.operation
            && field.data_type().is_integer()
        {
            let of = if extract { OF_EXTRACT } else { "" };
            field = field.with_metadata([(DIVISIBLE.to_owned(), of.to_owned())].into());
        }
        Ok(field.into())
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let alone = args.args.iter().all(|arg| matches!(arg, ColumnarValue::Scalar(_)));
        let first = match args.args.first() {
            Some(ColumnarValue::Scalar(first)) => Some(first.clone()),
            _ => None,
        };
        let result = if let Some(result) = self.fast(&args.args, args.return_type())? {
            result
        } else {
            let arrays = ColumnarValue::values_to_arrays(&args.args)?;
            self.run(first.as_ref(), &arrays, args.return_type())?
        };
        Ok(if alone {
            ColumnarValue::Scalar(ScalarValue::try_from_array(&result, 0)?)
        } else {
            ColumnarValue::Array(result)
        })
    }
}

/// Applies a function to the values of two columns.
fn both<A, B, T>(
    left: impl IntoIterator<Item = Option<A>>,
    right: impl IntoIterator<Item = Option<B>>,
    function: impl Fn(A, B) -> Result<T>,
) -> Result<Vec<Option<T>>> {
    let pairs = left.into_iter().zip(right);
    pairs
        .map(|(left, right)| left.zip(right).map(|(left, right)| function(left, right)).transpose())
        .collect()
}

fn each<A, T>(
    values: impl IntoIterator<Item = Option<A>>,
    function: impl Fn(A) -> Result<T>,
) -> Result<Vec<Option<T>>> {
    values
        .into_iter()
        .map(|value| value.map(&function).transpose())
        .collect()
}

fn out_of_range(_: OutOfRange) -> DataFusionError {
    DataFusionError::Execution(OUT_OF_RANGE.to_owned())
}

fn no_time() -> DataFusionError {
    DataFusionError::Execution("a timestamp is out of range".to_owned())
}

fn beyond(problem: &str) -> ArrowError {
    ArrowError::ComputeError(problem.to_owned())
}

impl Temporal {
    /// Runs the operations that statements apply to all rows of a table.
    fn fast(&self, operands: &[ColumnarValue], result: &DataType) -> Result<Option<ArrayRef>> {
        let no_time = || beyond("a timestamp is out of range");
        Ok(match (self.operation, operands) {
            (TemporalOperation::Difference, [later, earlier]) => {
                let (later, earlier) = (
                    ComparedTimes::of(later, TextKind::Local)?,
                    ComparedTimes::of(earlier, TextKind::Local)?,
                );
                let found = later.with::<IntervalMonthDayNanoType>(&earlier, |later, earlier| {
                    let between = Interval::between(later, earlier).ok().and_then(to_engine);
                    between.ok_or_else(|| beyond(OUT_OF_RANGE))
                })?;
                Some(Arc::new(found))
            }
            (TemporalOperation::Elapsed, [later, earlier]) => {
                let (later, earlier) = (
                    ComparedTimes::of(later, TextKind::Local)?,
                    ComparedTimes::of(earlier, TextKind::Local)?,
                );
                let found = later.with::<Int64Type>(&earlier, |later, earlier| {
                    later.checked_sub(earlier).ok_or_else(|| beyond(OUT_OF_RANGE))
                })?;
                Some(Arc::new(found))
            }
            (
                TemporalOperation::Bin,
                [
                    ColumnarValue::Scalar(stride),
                    of @ ColumnarValue::Array(_),
                    origins @ ..,
                ],
            ) => {
                let origin = match origins.first() {
                    Some(origin @ ColumnarValue::Scalar(_)) => ComparedTimes::of(origin, TextKind::Instant)?,
                    Some(ColumnarValue::Array(_)) => return Ok(None),
                    None => ComparedTimes::One(Some(0)),
                };
                let Some(stride) = lengths_of(&stride.to_array()?)?.into_iter().next().flatten() else {
                    return Ok(None);
                };
                let found = ComparedTimes::of(of, TextKind::Instant)?.with::<Int64Type>(&origin, |time, origin| {
                    let since = time.checked_sub(origin).ok_or_else(no_time)?;
                    time.checked_sub(since.rem_euclid(stride)).ok_or_else(no_time)
                })?;
                let found = found.reinterpret_cast::<TimestampMicrosecondType>();
                Some(Arc::new(found.with_data_type(result.clone())))
            }
            _ => None,
        })
    }

    fn run(&self, first: Option<&ScalarValue>, arrays: &[ArrayRef], result: &DataType) -> Result<ArrayRef> {
        let interval = |function: fn(Interval) -> std::result::Result<Interval, OutOfRange>| {
            let found = each(intervals(&arrays[0])?, |interval| {
                function(interval).map_err(out_of_range)
            })?;
            to_intervals(found)
        };
        match (self.operation, arrays) {
            (TemporalOperation::ShiftedDate, [date, days]) => shifted(date, days),
            (TemporalOperation::Length, [of]) => {
                let lengths = each(intervals(of)?, |interval| interval.length().map_err(out_of_range))?;
                Ok(Arc::new(Int64Array::from(lengths)))
            }
            (TemporalOperation::Plus | TemporalOperation::Minus, [left, right]) => {
                let plus = self.operation == TemporalOperation::Plus;
                let sum = |left: Interval, right: Interval| {
                    let right = if plus { Ok(right) } else { right.negated() };
                    right.and_then(|right| left.plus(right)).map_err(out_of_range)
                };
                to_intervals(both(intervals(left)?, intervals(right)?, sum)?)
            }
            (TemporalOperation::Times, [left, right]) => {
                let (of, by) = if left.data_type() == &INTERVAL {
                    (left, right)
                } else {
                    (right, left)
                };
                let product = |of: Interval, by| of.times(by).map_err(out_of_range);
                to_intervals(both(intervals(of)?, doubles(by)?, product)?)
            }
            (TemporalOperation::Divided, [of, by]) => {
                let quotient = |of: Interval, by: f64| {
                    if by == 0.0 {
                        return Err(DataFusionError::Execution("an interval is divided by zero".to_owned()));
                    }
                    of.divided(by).map_err(out_of_range)
                };
                to_intervals(both(intervals(of)?, doubles(by)?, quotient)?)
            }
            (TemporalOperation::Timezone, [zones, of]) => {
                let to_local = matches!(result, DataType::Timestamp(_, None));
                let values = if to_local { instants(of)? } else { times(of)? };
                let mut known = Zones::new(zones)?;
                let found = values.iter().enumerate().map(|(row, value)| {
                    let Some((zone, value)) = known.at(row)?.zip(*value) else {
                        return Ok(None);
                    };
                    let moved = if to_local {
                        zone.local(value)
                    } else {
                        zone.instant(value)
                    };
                    moved.map(Some).ok_or_else(no_time)
                });
                Ok(to_times(found.collect::<Result<_>>()?, result))
            }
            (TemporalOperation::Part { .. }, [_, of]) if *result == NUMERIC => self.part(first)?.exactly(of),
            (TemporalOperation::Part { .. }, [_, of]) => self.part(first)?.of(of),
            (TemporalOperation::Marked { .. }, [of]) => Ok(Arc::clone(of)),
            (TemporalOperation::Truncated, [_, of, zones @ ..]) => {
                self.part(first)?.truncated(of, zones.first(), result)
            }
            (TemporalOperation::Bin, [strides, of, origins @ ..]) => binned(strides, of, origins.first(), result),
            (TemporalOperation::Age, [later, earlier]) => {
                let age = |later, earlier| moment::age(later, earlier).map_err(out_of_range);
                to_intervals(both(times(later)?, times(earlier)?, age)?)
            }
            (TemporalOperation::JustifiedHours, _) => interval(Interval::with_days),
            (TemporalOperation::JustifiedDays, _) => interval(Interval::with_months),
            (TemporalOperation::Justified, _) => interval(Interval::justified),
            (TemporalOperation::OfSeconds, [seconds]) => {
                #[expect(clippy::cast_possible_truncation, reason = "the bound is checked before")]
                let found = each(doubles(seconds)?, |seconds| {
                    let micros = (seconds * 1e6).round_ties_even();
                    // Less than the microseconds of 64 bits, and more than the years that have a text.
                    (micros.abs() < 9e18).then_some(micros as i64).ok_or_else(no_time)
                })?;
                Ok(to_times(found, result))
            }
            (TemporalOperation::Read { kind, lenient }, [text]) => read(&texts(text)?, kind, lenient, result),
            (TemporalOperation::Extreme { greatest }, _) => extreme(arrays, greatest),
            (TemporalOperation::Kept, [value, key]) => Ok(nullif(value, &is_null(key)?)?),
            (TemporalOperation::Text, [of]) => {
                let said = each(intervals(of)?, |interval| Ok(interval.to_string()))?;
                Ok(Arc::new(StringArray::from(said)))
            }
            _ => Err(self.wrong("has other arguments")),
        }
    }
}

fn extreme(arrays: &[ArrayRef], greatest: bool) -> Result<ArrayRef> {
    let mut found: Vec<Option<Interval>> = Vec::new();
    for array in arrays {
        let values = intervals(array)?;
        found.resize(values.len(), None);
        for (best, value) in found.iter_mut().zip(values) {
            let Some(value) = value else { continue };
            let length = value.length().map_err(out_of_range)?;
            let better = match *best {
                Some(best) if greatest => length > best.length().map_err(out_of_range)?,
                Some(best) => length < best.length().map_err(out_of_range)?,
                None => true,
            };
            if better {
                *best = Some(value);
            }
        }
    }
    to_intervals(found)
}

fn shifted(date: &ArrayRef, days: &ArrayRef) -> Result<ArrayRef> {
    let dates = operands::whole(date)?;
    let found = both(dates, operands::whole(days)?, |date, days| {
        let shifted = date.checked_add(days).and_then(|date| i32::try_from(date).ok());
        shifted.ok_or_else(|| DataFusionError::Execution("a date is out of range".to_owned()))
    })?;
    Ok(Arc::new(Date32Array::from(found)))
}

//! Parts of dates, times and intervals.

use std::fmt;
use std::sync::Arc;

use chrono::{Datelike as _, NaiveDate, NaiveDateTime};
use datafusion::arrow::array::{Array as _, ArrayRef, AsArray as _, Decimal256Array, Float64Array, Int64Array};
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::{DataType, Int64Type, TimeUnit, i256};
use datafusion::error::Result;

use super::operands::{Zones, instants, intervals, times, to_intervals, to_times};
use super::{each, no_time};
use crate::child::numeric::{NUMERIC, digits};
use crate::time::DAY_MICROS;
use crate::time::interval::Interval;
use crate::time::moment::{calendar, micros_of};

const SECOND_MICROS: i64 = 1_000_000;
const MINUTE_MICROS: i64 = 60 * SECOND_MICROS;
const HOUR_MICROS: i64 = 60 * MINUTE_MICROS;
/// Days between the beginning of the Julian day count and 1970.
const JULIAN_DAYS_BEFORE_1970: i64 = 2_440_588;

/// A part of a date, time or interval.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TimePart {
    Microseconds,
    Milliseconds,
    Second,
    Minute,
    Hour,
    Day,
    Week,
    Month,
    Quarter,
    Year,
    Decade,
    Century,
    Millennium,
    DayOfWeek,
    IsoDayOfWeek,
    DayOfYear,
    IsoYear,
    Julian,
    Epoch,
    Timezone,
    TimezoneHour,
    TimezoneMinute,
}

impl fmt::Display for TimePart {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = format!("{self:?}").to_lowercase();
        write!(out, "the {text}")
    }
}

#[expect(
    clippy::cast_precision_loss,
    reason = "a time of the years 1 to 2255 has an exact double"
)]
const fn double(value: i64) -> f64 {
    value as f64
}

/// Returns the length of an interval in microseconds, with the years of `extract(epoch …)`.
fn interval_micros(interval: Interval) -> i128 {
    let Interval { months, days, micros } = interval;
    // A year has 365.25 days here.
    let days = i64::from(months % 12) * 30 + i64::from(days);
    let seconds = i64::from(months / 12) * 31_557_600 + days * 86_400;
    i128::from(seconds) * i128::from(SECOND_MICROS) + i128::from(micros)
}

impl TimePart {
    pub(super) fn parse(text: &str) -> Option<Self> {
        Some(match &*text.trim_matches('\'').to_ascii_lowercase() {
            "microsecond" | "microseconds" | "us" | "usec" | "usecs" => Self::Microseconds,
            "millisecond" | "milliseconds" | "ms" | "msec" | "msecs" => Self::Milliseconds,
            "second" | "seconds" | "s" | "sec" | "secs" => Self::Second,
            "minute" | "minutes" | "m" | "min" | "mins" => Self::Minute,
            "hour" | "hours" | "h" | "hr" | "hrs" => Self::Hour,
            "day" | "days" | "d" => Self::Day,
            "week" | "weeks" | "w" => Self::Week,
            "month" | "months" | "mon" | "mons" => Self::Month,
            "quarter" | "quarters" | "qtr" => Self::Quarter,
            "year" | "years" | "y" | "yr" | "yrs" => Self::Year,
            "decade" | "decades" | "dec" | "decs" => Self::Decade,
            "century" | "centuries" | "c" | "cent" => Self::Century,
            "millennium" | "millenium" | "millenniums" | "millennia" | "mil" | "mils" => Self::Millennium,
            "dow" | "dayofweek" => Self::DayOfWeek,
            "isodow" => Self::IsoDayOfWeek,
            "doy" | "dayofyear" => Self::DayOfYear,
            "isoyear" => Self::IsoYear,
            "isoweek" => Self::Week,
            "julian" => Self::Julian,
            "epoch" => Self::Epoch,
            "timezone" => Self::Timezone,
            "timezone_hour" => Self::TimezoneHour,
            "timezone_minute" => Self::TimezoneMinute,
            _ => return None,
        })
    }

    const fn is_of_clock(self) -> bool {
        matches!(
            self,
            Self::Microseconds | Self::Milliseconds | Self::Second | Self::Minute | Self::Hour | Self::Epoch
        )
    }

    /// Returns true if values of a type have the part.
    pub(super) fn is_of(self, kind: &DataType) -> bool {
        match kind {
            DataType::Interval(_) | DataType::Duration(_) => {
                self.is_of_clock()
                    || matches!(
                        self,
                        Self::Day
                            | Self::Month
                            | Self::Quarter
                            | Self::Year
                            | Self::Decade
                            | Self::Century
                            | Self::Millennium
                    )
            }
            DataType::Time32(_) | DataType::Time64(_) => self.is_of_clock(),
            DataType::Timestamp(_, None) => !matches!(self, Self::Timezone | Self::TimezoneHour | Self::TimezoneMinute),
            DataType::Timestamp(..) | DataType::Date32 | DataType::Null => true,
            kind => kind.is_string(),
        }
    }

    /// Returns true if `extract()` takes the part of a date.
    pub(super) const fn is_of_date(self) -> bool {
        let of_clock = self.is_of_clock() && !matches!(self, Self::Epoch);
        !of_clock && !matches!(self, Self::Timezone | Self::TimezoneHour | Self::TimezoneMinute)
    }

    /// Returns the type of the part of values of a type. A part with a fraction is a double.
    pub(super) fn result(self, kind: &DataType) -> DataType {
        match self {
            Self::Julian if kind == &DataType::Date32 => DataType::Int64,
            Self::Milliseconds | Self::Second | Self::Epoch | Self::Julian => DataType::Float64,
            _ => DataType::Int64,
        }
    }

    pub(super) const fn is_truncated(self) -> bool {
        !matches!(
            self,
            Self::DayOfWeek
                | Self::IsoDayOfWeek
                | Self::DayOfYear
                | Self::IsoYear
                | Self::Julian
                | Self::Epoch
                | Self::Timezone
                | Self::TimezoneHour
                | Self::TimezoneMinute
        )
    }

    /// Returns the part of each value.
    pub(super) fn of(self, array: &ArrayRef) -> Result<ArrayRef> {
        let found = match array.data_type() {
            DataType::Interval(_) | DataType::Duration(_) => {
                each(intervals(array)?, |interval| Ok(self.of_interval(interval)))?
            }
            DataType::Time32(_) | DataType::Time64(_) => {
                let time = cast(array, &DataType::Time64(TimeUnit::Microsecond))?;
                let time = cast(&time, &DataType::Int64)?;
                each(time.as_primitive::<Int64Type>(), |time| Ok(self.of_clock(time)))?
            }
            _ => each(instants(array)?, |time| self.of_time(time).ok_or_else(no_time))?,
        };
        Ok(if self.result(array.data_type()) == DataType::Int64 {
            #[expect(clippy::cast_possible_truncation, reason = "every whole part has 32 bits")]
            let whole = found.into_iter().map(|part| part.map(|part| part as i64));
            Arc::new(whole.collect::<Int64Array>())
        } else {
            Arc::new(Float64Array::from(found))
        })
    }

    /// Returns the part of each value with all its digits, for a part that has a fraction.
    pub(super) fn exactly(self, array: &ArrayRef) -> Result<ArrayRef> {
        let found = match array.data_type() {
            DataType::Interval(_) | DataType::Duration(_) => each(intervals(array)?, |interval| {
                let micros = if self == Self::Epoch {
                    interval_micros(interval)
                } else {
                    interval.micros.into()
                };
                self.digits(micros).ok_or_else(no_time)
            })?,
            DataType::Time32(_) | DataType::Time64(_) => {
                let time = cast(array, &DataType::Time64(TimeUnit::Microsecond))?;
                let time = cast(&time, &DataType::Int64)?;
                each(time.as_primitive::<Int64Type>(), |time| {
                    self.digits(time.into()).ok_or_else(no_time)
                })?
            }
            _ => each(instants(array)?, |time| {
                let of_clock = if self == Self::Epoch || self == Self::Julian {
                    time
                } else {
                    time.rem_euclid(DAY_MICROS)
                };
                self.digits(of_clock.into()).ok_or_else(no_time)
            })?,
        };
        let found = found.into_iter().collect::<Decimal256Array>();
        Ok(Arc::new(found.with_data_type(NUMERIC)))
    }

    /// Returns the part of a time in microseconds as the digits of a numeric.
    fn digits(self, micros: i128) -> Option<i256> {
        let minute = i128::from(MINUTE_MICROS);
        let (micros, scale) = match self {
            Self::Milliseconds => (micros % minute, 3),
            Self::Second => (micros % minute, 6),
            Self::Julian => {
                let since = micros + i128::from(JULIAN_DAYS_BEFORE_1970) * i128::from(DAY_MICROS);
                return digits::quotient((i256::from_i128(since), 0), (i256::from_i128(DAY_MICROS.into()), 0));
            }
            _ => (micros, 6),
        };
        digits::rescaled(i256::from_i128(micros), scale, digits::MAX_SCALE_DIGITS)
    }

    fn of_clock(self, micros: i64) -> f64 {
        match self {
            Self::Microseconds => double(micros % MINUTE_MICROS),
            Self::Milliseconds => double(micros % MINUTE_MICROS) / 1e3,
            Self::Second => double(micros % MINUTE_MICROS) / 1e6,
            Self::Minute => double(micros / MINUTE_MICROS % 60),
            Self::Hour => double(micros / HOUR_MICROS),
            _ => double(micros) / 1e6,
        }
    }

    fn of_interval(self, interval: Interval) -> f64 {
        let Interval { months, days, micros } = interval;
        let years = f64::from(months / 12);
        match self {
            Self::Day => f64::from(days),
            Self::Month => f64::from(months % 12),
            Self::Quarter => f64::from(months % 12 / 3 + 1),
            Self::Year => years,
            Self::Decade => (years / 10.0).trunc(),
            Self::Century => (years / 100.0).trunc(),
            Self::Millennium => (years / 1_000.0).trunc(),
            #[expect(clippy::cast_precision_loss, reason = "a double has the digits that it has room for")]
            Self::Epoch => interval_micros(interval) as f64 / 1e6,
            part => part.of_clock(micros),
        }
    }

    fn of_time(self, micros: i64) -> Option<f64> {
        if self == Self::Epoch {
            return Some(double(micros) / 1e6);
        }
        let clock = micros.rem_euclid(DAY_MICROS);
        if self.is_of_clock() {
            return Some(self.of_clock(clock));
        }
        let date = calendar(micros)?.date();
        let year = date.year();
        // There is no year zero: the year before 1 is -1.
        let said = |year: i32| if year > 0 { year } else { year - 1 };
        let group = |size: i32| {
            if year > 0 {
                (year + size - 1) / size
            } else {
                -((size - 1 - (year - 1)) / size)
            }
        };
        Some(match self {
            Self::Day => date.day().into(),
            Self::Week => date.iso_week().week().into(),
            Self::Month => date.month().into(),
            Self::Quarter => (date.month0() / 3 + 1).into(),
            Self::Year => said(year).into(),
            Self::Decade => year.div_euclid(10).into(),
            Self::Century => group(100).into(),
            Self::Millennium => group(1_000).into(),
            Self::DayOfWeek => date.weekday().num_days_from_sunday().into(),
            Self::IsoDayOfWeek => date.weekday().number_from_monday().into(),
            Self::DayOfYear => date.ordinal().into(),
            Self::IsoYear => said(date.iso_week().year()).into(),
            Self::Julian => {
                double(micros.div_euclid(DAY_MICROS) + JULIAN_DAYS_BEFORE_1970) + double(clock) / double(DAY_MICROS)
            }
            // An instant is shown in UTC.
            _ => 0.0,
        })
    }

    /// Returns each value without what is below the part.
    pub(super) fn truncated(self, array: &ArrayRef, zones: Option<&ArrayRef>, result: &DataType) -> Result<ArrayRef> {
        if matches!(array.data_type(), DataType::Interval(_) | DataType::Duration(_)) {
            return to_intervals(each(intervals(array)?, |interval| {
                Ok(self.truncated_interval(interval))
            })?);
        }
        let Some(zones) = zones else {
            let values = if matches!(result, DataType::Timestamp(_, None)) {
                times(array)?
            } else {
                instants(array)?
            };
            let found = each(values, |time| self.truncated_time(time).ok_or_else(no_time))?;
            return Ok(to_times(found, result));
        };
        let mut zones = Zones::new(zones)?;
        let found = instants(array)?.into_iter().enumerate().map(|(row, time)| {
            let Some((zone, time)) = zones.at(row)?.zip(time) else {
                return Ok(None);
            };
            let offset = zone.offset(time).ok_or_else(no_time)?;
            let local = time.checked_add(offset).and_then(|local| self.truncated_time(local));
            // Below a day the clock is not set anew, so both of two equal hours stay apart.
            let below = matches!(
                self,
                Self::Microseconds | Self::Milliseconds | Self::Second | Self::Minute | Self::Hour
            );
            let instant = local.and_then(|local| {
                if below {
                    local.checked_sub(offset)
                } else {
                    zone.instant(local)
                }
            });
            instant.map(Some).ok_or_else(no_time)
        });
        Ok(to_times(found.collect::<Result<_>>()?, result))
    }

    fn truncated_interval(self, interval: Interval) -> Interval {
        let Interval { months, days, micros } = interval;
        let of_months = |size: i32| Interval {
            months: months / size * size,
            days: 0,
            micros: 0,
        };
        let of_time = |size: i64| Interval {
            micros: micros / size * size,
            ..interval
        };
        match self {
            Self::Millennium => of_months(12_000),
            Self::Century => of_months(1_200),
            Self::Decade => of_months(120),
            Self::Year => of_months(12),
            Self::Quarter => of_months(3),
            Self::Month => of_months(1),
            Self::Week => Interval {
                days: days / 7 * 7,
                micros: 0,
                ..interval
            },
            Self::Day => Interval { micros: 0, ..interval },
            Self::Hour => of_time(HOUR_MICROS),
            Self::Minute => of_time(MINUTE_MICROS),
            Self::Second => of_time(SECOND_MICROS),
            Self::Milliseconds => of_time(1_000),
            _ => interval,
        }
    }

    fn truncated_time(self, micros: i64) -> Option<i64> {
        let below = |size: i64| Some(micros - micros.rem_euclid(size));
        let date = calendar(micros)?.date();
        let year = date.year();
        let first = |year: i32, month: u32| {
            let date = NaiveDate::from_ymd_opt(year, month, 1)?;
            Some(micros_of(NaiveDateTime::from(date)))
        };
        // A century begins with the year 1.
        let group = |size: i32| {
            if year > 0 {
                (year - 1) / size * size + 1
            } else {
                -(-year / size * size) - size + 1
            }
        };
        match self {
            Self::Milliseconds => below(1_000),
            Self::Second => below(SECOND_MICROS),
            Self::Minute => below(MINUTE_MICROS),
            Self::Hour => below(HOUR_MICROS),
            Self::Day => below(DAY_MICROS),
            // The first day of 1970 was a Thursday.
            Self::Week => Some(micros - (micros - 4 * DAY_MICROS).rem_euclid(7 * DAY_MICROS)),
            Self::Month => first(year, date.month()),
            Self::Quarter => first(year, date.month0() / 3 * 3 + 1),
            Self::Year => first(year, 1),
            Self::Decade => first(year.div_euclid(10) * 10, 1),
            Self::Century => first(group(100), 1),
            Self::Millennium => first(group(1_000), 1),
            _ => Some(micros),
        }
    }
}

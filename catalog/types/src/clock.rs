//! Time: every instant that is stored, compared or shown comes from a [`Clock`].

use std::fmt;
use std::ops::RangeInclusive;
use std::str::FromStr;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Serialize};

const MICROS_PER_DAY: i64 = 86_400_000_000;
/// The period of the Gregorian calendar in microseconds: 400 years.
const CALENDAR_CYCLE: i64 = 146_097 * MICROS_PER_DAY;
/// The instants that RFC 3339 can express: 0001-01-01T00:00:00Z to 9999-12-31T23:59:59.999999Z.
const RFC3339_RANGE: RangeInclusive<i64> = -62_135_596_800_000_000..=253_402_300_799_999_999;

/// An instant in microseconds since 1970-01-01T00:00:00Z.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Timestamp(i64);

impl Timestamp {
    /// Creates the instant `micros` microseconds after the epoch.
    pub const fn from_micros(micros: i64) -> Self {
        Self(micros)
    }

    /// Returns the microseconds since the epoch.
    pub const fn micros(self) -> i64 {
        self.0
    }

    /// Returns true if RFC 3339 can express the instant, which holds for the years 1 to 9999.
    pub fn is_sayable(self) -> bool {
        RFC3339_RANGE.contains(&self.0)
    }

    /// Returns the milliseconds since the epoch, rounded down.
    pub const fn millis(self) -> i64 {
        self.0.div_euclid(1_000)
    }

    /// Returns this instant plus `duration`, saturating.
    #[must_use]
    pub fn plus(self, duration: Duration) -> Self {
        Self(
            self.0
                .saturating_add(i64::try_from(duration.as_micros()).unwrap_or(i64::MAX)),
        )
    }

    /// Returns this instant minus `duration`, saturating.
    #[must_use]
    pub fn minus(self, duration: Duration) -> Self {
        Self(
            self.0
                .saturating_sub(i64::try_from(duration.as_micros()).unwrap_or(i64::MAX)),
        )
    }

    /// Returns the time since `earlier`, or zero if this instant is before it.
    pub fn since(self, earlier: Self) -> Duration {
        Duration::from_micros(u64::try_from(self.0.saturating_sub(earlier.0)).unwrap_or(0))
    }

    /// Returns the beginning of a UTC day, counted from 1970-01-01, saturating.
    pub const fn of_day(day: i64) -> Self {
        Self(day.saturating_mul(MICROS_PER_DAY))
    }

    /// Returns the UTC day of this instant, counted from 1970-01-01.
    pub const fn day(self) -> i64 {
        self.0.div_euclid(MICROS_PER_DAY)
    }

    /// Returns the UTC month of this instant, counted from January 1970.
    pub const fn month(self) -> i64 {
        let (year, month, _) = civil(self.day());
        (year - 1970) * 12 + month - 1
    }

    /// Returns the beginning of a UTC month, counted from January 1970, saturating.
    pub const fn of_month(month: i64) -> Self {
        // Far beyond the years that a text can say, and within what the calendar can compute.
        let limit = 12 * 1_000_000;
        let month = if month > limit {
            limit
        } else if month < -limit {
            -limit
        } else {
            month
        };
        Self::of_day(days_before(1970 + month.div_euclid(12), month.rem_euclid(12) + 1))
    }

    /// Returns the first instant of the next UTC day.
    #[must_use]
    pub const fn next_day(self) -> Self {
        Self::of_day(self.day() + 1)
    }

    /// Returns the first instant of the next UTC month.
    #[must_use]
    pub const fn next_month(self) -> Self {
        let mut next = self.next_day();
        // A month has at most 31 days, so this ends soon.
        while next.month() == self.month() {
            next = next.next_day();
        }
        next
    }
}

/// Converts a day counted from 1970-01-01 to year, month and day of the Gregorian calendar.
///
/// Howard Hinnant's `civil_from_days` (<https://howardhinnant.github.io/date_algorithms.html>): eras of 400 years that
/// begin on 1 March.
pub(crate) const fn civil(days: i64) -> (i64, i64, i64) {
    // Days since 0000-03-01, the beginning of an era.
    let shifted = days + 719_468;
    let (era, day_of_era) = (shifted.div_euclid(146_097), shifted.rem_euclid(146_097));
    let year_of_era = (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted_month = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * shifted_month + 2) / 5 + 1;
    let month = if shifted_month < 10 {
        shifted_month + 3
    } else {
        shifted_month - 9
    };
    let year = year_of_era + era * 400 + if month <= 2 { 1 } else { 0 };
    (year, month, day)
}

/// Returns the days from 1970-01-01 to the first of a month of the Gregorian calendar: the inverse of [`civil`].
const fn days_before(year: i64, month: i64) -> i64 {
    // A year of this count begins in March, so its leap day is its last.
    let year = if month <= 2 { year - 1 } else { year };
    let (era, year_of_era) = (year.div_euclid(400), year.rem_euclid(400));
    let shifted_month = if month > 2 { month - 3 } else { month + 9 };
    let day_of_year = (153 * shifted_month + 2) / 5;
    let day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
    era * 146_097 + day_of_era - 719_468
}

/// RFC 3339 in UTC with as many fractional digits as needed, such as `2026-11-21T07:10:20.5Z`. An instant outside the
/// years 1 to 9999 is shown as microseconds with the suffix `us`.
impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.is_sayable() {
            return write!(f, "{}us", self.0);
        }
        let (year, month, day) = civil(self.day());
        // Euclidean, so that instants before 1970 have a positive time of day.
        let micros = self.0.rem_euclid(MICROS_PER_DAY);
        let (second, fraction) = (micros / 1_000_000, micros % 1_000_000);
        let (hour, minute, second) = (second / 3_600, second / 60 % 60, second % 60);
        write!(f, "{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}")?;
        // The shortest form: trailing zeros are left out.
        if fraction != 0 {
            let digits = format!("{fraction:06}");
            write!(f, ".{}", digits.trim_end_matches('0'))?;
        }
        f.write_str("Z")
    }
}

/// The reason that a text is not a timestamp.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ParseTimestampError {
    /// The text is not an RFC 3339 date-time with an offset, or not of the years 1 to 9999 in UTC.
    #[error("not an RFC 3339 date-time with an offset, of the years 1 to 9999")]
    Syntax,
    /// The text has digits finer than a microsecond.
    #[error("finer than a microsecond")]
    Precision,
}

/// Parses RFC 3339 (section 5.6) with any offset.
impl FromStr for Timestamp {
    type Err = ParseTimestampError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        // The form is checked first because jiff accepts other forms of ISO 8601 too, and takes
        // second 60 for 59.
        if !is_date_time(text.as_bytes()) {
            return Err(ParseTimestampError::Syntax);
        }
        let (instant, later) = match (text.parse::<jiff::Timestamp>(), text.strip_prefix("9999")) {
            (Ok(instant), _) => (instant, 0),
            // jiff ends before the last day of year 9999, which is widely used for "never". The
            // calendar repeats after 400 years, so the text is parsed 400 years earlier and
            // shifted.
            (Err(_), Some(rest)) => {
                let earlier = format!("9599{rest}").parse();
                (
                    earlier.map_err(|_error: jiff::Error| ParseTimestampError::Syntax)?,
                    CALENDAR_CYCLE,
                )
            }
            (Err(_), None) => return Err(ParseTimestampError::Syntax),
        };
        // Rounding would change the record, so finer digits are refused.
        if instant.subsec_nanosecond() % 1_000 != 0 {
            return Err(ParseTimestampError::Precision);
        }
        let micros = instant.as_microsecond() + later;
        // With an offset, a year within the range can be outside of it in UTC.
        if !RFC3339_RANGE.contains(&micros) {
            return Err(ParseTimestampError::Syntax);
        }
        Ok(Self(micros))
    }
}

/// Returns true if a text has the form of a date-time (RFC 3339 section 5.6) with seconds up to 59. Leap seconds are
/// refused, since POSIX time has none.
fn is_date_time(text: &[u8]) -> bool {
    let formed = |text: &[u8], form: &[u8]| {
        let pairs = text.iter().zip(form);
        text.len() == form.len() && pairs.fold(true, |formed, (byte, form)| formed & matches_pattern(*byte, *form))
    };
    let Some((moment, rest)) = text.split_at_checked(19) else {
        return false;
    };
    let offset = match rest.strip_prefix(b".") {
        None => rest,
        Some(fraction) => {
            let digits = fraction.iter().take_while(|byte| byte.is_ascii_digit()).count();
            if digits == 0 {
                return false;
            }
            &fraction[digits..]
        }
    };
    // RFC 3339 allows `Z` in lower case, and offsets up to 23:59.
    let (utc, sign) = (matches!(offset, b"Z" | b"z"), offset.first());
    let ahead = matches!(sign, Some(b'+' | b'-')) && formed(&offset[1..], b"00:00");
    formed(moment, b"0000-00-00T00:00:00")
        && moment[17..] <= b"59"[..]
        && (utc || ahead && offset[1..3] <= b"23"[..] && offset[4..] <= b"59"[..])
}

/// Returns true if a byte matches a pattern byte: `0` stands for any digit, a letter for itself in either case.
fn matches_pattern(byte: u8, form: u8) -> bool {
    match form {
        b'0' => byte.is_ascii_digit(),
        form => byte.to_ascii_uppercase() == form,
    }
}

/// A source of the current time.
pub trait Clock: fmt::Debug + Send + Sync {
    /// Returns the current instant.
    fn now(&self) -> Timestamp;
}

/// The machine's clock plus a fixed offset, so that time windows of days can be tested.
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemClock {
    offset: Duration,
}

impl SystemClock {
    /// Creates a clock that runs `offset` ahead of the machine's.
    pub const fn ahead(offset: Duration) -> Self {
        Self { offset }
    }
}

impl Clock for SystemClock {
    fn now(&self) -> Timestamp {
        // A machine clock before 1970 counts as 1970.
        let since_epoch = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Timestamp::default().plus(since_epoch).plus(self.offset)
    }
}

/// A clock that moves only by [`ManualClock::advance`], for tests.
#[derive(Debug, Default)]
pub struct ManualClock {
    micros: AtomicI64,
}

impl ManualClock {
    /// Creates a clock that stands at `start`.
    pub const fn at(start: Timestamp) -> Self {
        Self {
            micros: AtomicI64::new(start.0),
        }
    }

    /// Moves the clock forward.
    pub fn advance(&self, by: Duration) {
        self.micros
            .fetch_add(i64::try_from(by.as_micros()).unwrap_or(i64::MAX), Ordering::SeqCst);
    }
}

impl Clock for ManualClock {
    fn now(&self) -> Timestamp {
        Timestamp(self.micros.load(Ordering::SeqCst))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn offsets_are_normalised_to_utc() {
        let utc: Timestamp = "2026-11-21T07:10:20.5Z".parse().unwrap();
        let seoul: Timestamp = "2026-11-21T16:10:20.500+09:00".parse().unwrap();
        assert_eq!(utc, seoul);
        assert_eq!(seoul.to_string(), "2026-11-21T07:10:20.5Z");
    }

    #[test]
    fn what_is_read_is_shown_and_read_again() {
        for (text, shown) in [
            ("9999-12-30T22:00:01Z", "9999-12-30T22:00:01Z"),
            ("9999-12-31T00:00:00Z", "9999-12-31T00:00:00Z"),
            ("9999-12-31T23:59:59.999999Z", "9999-12-31T23:59:59.999999Z"),
            ("9999-12-31T23:59:59.99+00:00", "9999-12-31T23:59:59.99Z"),
            ("9999-12-31T18:59:59-05:00", "9999-12-31T23:59:59Z"),
            ("0001-01-01T00:00:00Z", "0001-01-01T00:00:00Z"),
            ("0000-12-31T20:00:00-05:00", "0001-01-01T01:00:00Z"),
            ("1969-12-31T23:59:59.000001Z", "1969-12-31T23:59:59.000001Z"),
            ("2026-11-21t07:10:20z", "2026-11-21T07:10:20Z"),
            ("2026-11-21T07:10:20-00:00", "2026-11-21T07:10:20Z"),
            ("2026-11-21T07:10:20.120000000+23:59", "2026-11-20T07:11:20.12Z"),
        ] {
            let read: Timestamp = text.parse().unwrap();
            assert_eq!(read.to_string(), shown);
            assert_eq!(shown.parse(), Ok(read), "{text}");
        }
    }

    #[test]
    fn other_forms_are_refused() {
        for text in [
            "2026-11-21",
            "2026-11-21 07:10:20Z",
            "2026-11-21T07:10:20",
            "2026-13-01T00:00:00Z",
            "9999-12-31T23:59:59-00:01",
            "9999-13-01T00:00:00Z",
            "0001-01-01T00:00:00+00:01",
            "0000-06-01T00:00:00Z",
            "2026-11-21T23:59:60Z",
            "2026-11-21T23:59:60.5Z",
            "2026-11-21T071020.5Z",
            "2026-11-21T07:10+09:00",
            "2026-11-21T07+09:00:00",
            "2026-11-21T07:10:20.Z",
            "2026-11-21T07:10:20,5Z",
            "2026-11-21T07:10:20+0900",
            "2026-11-21T07:10:20+09",
            "2026-11-21T07:10:20+09:00:30",
            "2026-11-21T07:10:20+24:00",
            "2026-11-21T07:10:20+09:60",
            "2026-11-21T07:10:20",
            "2026-11-21T07:10:20é",
            "20261121T07:10:20.500Z",
            "now",
        ] {
            assert_eq!(text.parse::<Timestamp>(), Err(ParseTimestampError::Syntax), "{text}");
        }
        assert_eq!(
            "2026-11-21T07:10:20.0000001Z".parse::<Timestamp>(),
            Err(ParseTimestampError::Precision)
        );
    }

    #[test]
    fn months_are_utc_months_also_before_the_epoch() {
        for (text, month) in [
            ("1970-01-01T00:00:00Z", 0),
            ("1969-12-31T23:59:59.999999Z", -1),
            ("2024-02-29T23:59:59Z", 649),
            ("2024-03-01T00:00:00Z", 650),
            ("2026-11-21T07:10:20.5Z", 682),
        ] {
            assert_eq!(text.parse::<Timestamp>().unwrap().month(), month, "{text}");
        }
    }

    #[test]
    fn a_month_ends_where_the_next_begins() {
        for (day, next) in [(0, 31), (30, 31), (31, 59), (789, 790), (790, 821)] {
            let at = Timestamp::from_micros(day * MICROS_PER_DAY + 5);
            assert_eq!(at.next_month(), Timestamp::from_micros(next * MICROS_PER_DAY), "{day}");
        }
    }

    #[test]
    fn a_month_begins_where_the_one_before_it_ends() {
        // More than a cycle of the calendar on either side.
        let mut begin = Timestamp::of_month(-24_000);
        for month in -24_000..24_000 {
            let at = Timestamp::of_month(month);
            assert_eq!((at, at.month()), (begin, month));
            begin = at.next_month();
        }
        assert_eq!(Timestamp::of_month(0), Timestamp::default());
        assert_eq!(Timestamp::of_month(671).to_string(), "2025-12-01T00:00:00Z");
        assert!(
            Timestamp::of_month(i64::MAX) > Timestamp::of_month(0)
                && Timestamp::of_month(i64::MIN) < Timestamp::of_month(0)
        );
    }

    #[test]
    fn days_are_utc_days_also_before_the_epoch() {
        assert_eq!(Timestamp::from_micros(-1).day(), -1);
        assert_eq!(Timestamp::from_micros(0).next_day().to_string(), "1970-01-02T00:00:00Z");
    }
}

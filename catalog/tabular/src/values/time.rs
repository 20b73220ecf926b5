//! Dates and times: forms of a reading, and the texts that a contract takes.

use std::io::Write as _;

use jiff::civil;
use jiff::fmt::rfc2822;
use types::Timestamp;

use super::number::WrittenNumber;
use super::pattern::TimePattern;
use super::zone::Zone;

/// Digits of a second that are kept.
const MICROSECOND_DIGITS: u32 = 6;

/// Reason why a word is no date or time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TimeProblem {
    /// It is written otherwise.
    Form,
    /// The calendar has no such day.
    Day,
    /// The clock has no such time.
    Clock,
    /// It is finer than a microsecond.
    Fine,
    /// It is not of the years 1 to 9999 in UTC.
    Years,
    /// A date is wanted, and there is a time of day.
    HasTime,
    /// The clocks of the zone left that time out.
    Skipped,
    /// The clocks of the zone showed that time twice.
    Repeated,
}

impl TimeProblem {
    /// Returns the code of the problem.
    pub const fn code(self) -> &'static str {
        match self {
            Self::Skipped | Self::Repeated => "ambiguous_time",
            _ => "value",
        }
    }

    /// Returns the problem in words that follow a colon.
    pub const fn words(self) -> &'static str {
        match self {
            Self::Form => "it is written otherwise",
            Self::Day => "that day does not exist",
            Self::Clock => "that time of day does not exist",
            Self::Fine => "it is finer than a microsecond",
            Self::Years => "it is not of the years 1 to 9999",
            Self::HasTime => "it has a time of day",
            Self::Skipped => "that local time does not exist, since the clocks went forward",
            Self::Repeated => "that local time exists twice, since the clocks went back",
        }
    }
}

/// A date, with a time of day and an offset if they are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Moment {
    pub(super) year: u16,
    pub(super) month: u8,
    pub(super) day: u8,
    pub(super) hour: u8,
    pub(super) minute: u8,
    pub(super) second: u8,
    pub(super) micros: u32,
    /// True if digits beyond microseconds are not zero.
    pub(super) is_fine: bool,
    /// True if these digits are at least half a microsecond.
    pub(super) rounds_up: bool,
    /// Offset in seconds, east of Greenwich positive.
    pub(super) offset: Option<i32>,
}

impl Moment {
    /// Returns true if the time of day is midnight, or is not written.
    pub const fn is_midnight(&self) -> bool {
        self.hour == 0 && self.minute == 0 && self.second == 0 && self.micros == 0 && !self.is_fine
    }

    /// Returns true if it is finer than a microsecond.
    pub const fn is_fine(&self) -> bool {
        self.is_fine
    }

    /// Returns the moment without the digits that are finer than a microsecond.
    #[must_use]
    pub const fn cut(self) -> Self {
        Self {
            is_fine: false,
            rounds_up: false,
            ..self
        }
    }

    /// Returns the offset in seconds, if one is written.
    pub const fn offset(&self) -> Option<i32> {
        self.offset
    }

    /// Returns the date.
    pub fn date(&self) -> Option<civil::Date> {
        let (month, day) = (i8::try_from(self.month).ok()?, i8::try_from(self.day).ok()?);
        civil::Date::new(i16::try_from(self.year).ok()?, month, day).ok()
    }

    fn of_instant(instant: Timestamp) -> Option<Self> {
        let instant = jiff::Timestamp::from_microsecond(instant.micros()).ok()?;
        let local = jiff::tz::Offset::UTC.to_datetime(instant);
        Some(Self {
            year: u16::try_from(local.year()).ok()?,
            month: local.month().unsigned_abs(),
            day: local.day().unsigned_abs(),
            hour: local.hour().unsigned_abs(),
            minute: local.minute().unsigned_abs(),
            second: local.second().unsigned_abs(),
            micros: local.subsec_nanosecond().unsigned_abs() / 1_000,
            is_fine: false,
            rounds_up: false,
            offset: Some(0),
        })
    }

    /// Writes the date as `YYYY-MM-DD`.
    ///
    /// # Errors
    /// It has a time of day.
    pub fn write_date(&self, out: &mut Vec<u8>) -> Result<(), TimeProblem> {
        if !self.is_midnight() {
            return Err(TimeProblem::HasTime);
        }
        self.push_date(out);
        Ok(())
    }

    fn push_date(&self, out: &mut Vec<u8>) {
        let [century, year] = [self.year / 100, self.year % 100].map(|part| u8::try_from(part).unwrap_or(0));
        push_two(out, century);
        push_two(out, year);
        out.push(b'-');
        push_two(out, self.month);
        out.push(b'-');
        push_two(out, self.day);
    }

    /// Writes the instant in UTC as a contract writes it. A time without an offset is one of `zone`.
    ///
    /// # Errors
    /// There is no such instant, or it is finer than a microsecond and not to be rounded.
    pub fn write_instant(&self, zone: &Zone, round: bool, out: &mut Vec<u8>) -> Result<(), TimeProblem> {
        if self.is_fine && !round {
            return Err(TimeProblem::Fine);
        }
        let offset = match (self.offset, zone) {
            (Some(offset), _) => offset,
            (None, Zone::Fixed(offset)) => *offset,
            (None, zone) => zone.offset(self.local()?)?,
        };
        // Most times are in UTC and need no calendar.
        if offset == 0 && !self.rounds_up {
            self.push_date(out);
            out.push(b'T');
            push_two(out, self.hour);
            out.push(b':');
            push_two(out, self.minute);
            out.push(b':');
            push_two(out, self.second);
            push_fraction(out, self.micros);
            out.push(b'Z');
            return Ok(());
        }
        let instant = self.instant(offset)?;
        // Writing into a vector cannot fail.
        write!(out, "{instant}").map_err(|_error| TimeProblem::Years)
    }

    fn local(&self) -> Result<civil::DateTime, TimeProblem> {
        let date = self.date().ok_or(TimeProblem::Day)?;
        let [hour, minute, second] =
            [self.hour, self.minute, self.second].map(|part| i8::try_from(part).unwrap_or(i8::MAX));
        let nanoseconds = i32::try_from(self.micros * 1_000).unwrap_or(0);
        let time = civil::Time::new(hour, minute, second, nanoseconds).map_err(|_error| TimeProblem::Clock)?;
        Ok(date.to_datetime(time))
    }

    fn instant(&self, offset: i32) -> Result<Timestamp, TimeProblem> {
        let seconds = (i64::from(self.hour) * 60 + i64::from(self.minute)) * 60 + i64::from(self.second);
        let seconds = days(self.year, self.month, self.day) * 86_400 + seconds - i64::from(offset);
        let micros = seconds * 1_000_000 + i64::from(self.micros) + i64::from(self.rounds_up);
        let instant = Timestamp::from_micros(micros);
        if instant.is_sayable() {
            Ok(instant)
        } else {
            Err(TimeProblem::Years)
        }
    }
}

/// Days since 1970-01-01 of a date.
fn days(year: u16, month: u8, day: u8) -> i64 {
    const BEFORE: [i64; 12] = [0, 31, 59, 90, 120, 151, 181, 212, 243, 273, 304, 334];
    let years = i64::from(year) - 1;
    let leap_days = years.div_euclid(4) - years.div_euclid(100) + years.div_euclid(400);
    let before = BEFORE[usize::from(month.clamp(1, 12) - 1)];
    let leap = i64::from(month > 2 && is_leap(year));
    // 719,162 days lie between 0001-01-01 and 1970-01-01.
    years * 365 + leap_days + before + leap + i64::from(day) - 1 - 719_162
}

pub(super) const fn is_leap(year: u16) -> bool {
    (year.is_multiple_of(4) && !year.is_multiple_of(100)) || year.is_multiple_of(400)
}

fn push_two(out: &mut Vec<u8>, number: u8) {
    out.extend_from_slice(&[b'0' + number / 10 % 10, b'0' + number % 10]);
}

/// Writes as many digits as are needed.
fn push_fraction(out: &mut Vec<u8>, micros: u32) {
    if micros == 0 {
        return;
    }
    let (mut rest, mut digits) = (micros, MICROSECOND_DIGITS);
    while rest.is_multiple_of(10) {
        rest /= 10;
        digits -= 1;
    }
    out.push(b'.');
    for place in (0..digits).rev() {
        let digit = rest / 10_u32.pow(place) % 10;
        out.push(b'0' + u8::try_from(digit).unwrap_or(0));
    }
}

/// The member `parse` of a column.
#[derive(Clone, Debug)]
pub enum ValueParse {
    /// A number that counts from 1970-01-01T00:00:00Z, in parts of a second: 10 to the power of the number.
    Unix(u32),
    /// RFC 2822 (section 3.3).
    Rfc2822,
    /// A strptime pattern.
    Pattern(TimePattern),
}

impl ValueParse {
    /// Reads the member `parse`.
    ///
    /// # Errors
    /// The rule that is broken.
    pub fn new(parse: &str) -> Result<Self, String> {
        Ok(match parse {
            "unix-seconds" => Self::Unix(0),
            "unix-milliseconds" => Self::Unix(3),
            "unix-microseconds" => Self::Unix(6),
            "rfc2822" => Self::Rfc2822,
            pattern => Self::Pattern(TimePattern::new(pattern)?),
        })
    }

    /// Reads a word without blanks around it.
    pub fn read(&self, word: &[u8]) -> Result<Moment, TimeProblem> {
        match self {
            Self::Pattern(pattern) => pattern.read(word),
            Self::Unix(power) => unix(word, *power),
            Self::Rfc2822 => {
                let word = str::from_utf8(word).map_err(|_error| TimeProblem::Form)?;
                let zoned = rfc2822::parse(word).map_err(|_error| TimeProblem::Form)?;
                let instant = Timestamp::from_micros(zoned.timestamp().as_microsecond());
                let sayable = Some(instant).filter(|instant| instant.is_sayable());
                sayable.and_then(Moment::of_instant).ok_or(TimeProblem::Years)
            }
        }
    }
}

/// Reads a number of seconds, or of parts of them.
fn unix(word: &[u8], power: u32) -> Result<Moment, TimeProblem> {
    let number = WrittenNumber::parse(word, b'.').filter(|number| number.exponent.is_none());
    let number = number.ok_or(TimeProblem::Form)?;
    let mut fraction = number.fraction.unwrap_or_default().iter().copied();
    let mut micros: i64 = 0;
    let shifted = (power..MICROSECOND_DIGITS).map(|_| fraction.next().unwrap_or(b'0'));
    for digit in number.whole.iter().copied().chain(shifted.collect::<Vec<_>>()) {
        let more = micros
            .checked_mul(10)
            .and_then(|micros| micros.checked_add(i64::from(digit - b'0')));
        micros = more.ok_or(TimeProblem::Years)?;
    }
    let mut next = fraction.clone();
    let is_fine = next.any(|digit| digit != b'0');
    let half = fraction.next().is_some_and(|digit| digit >= b'5');
    // The digits beyond microseconds are cut towards the past, so that rounding always means the next microsecond.
    let (micros, rounds_up) = match (number.is_negative, is_fine) {
        (false, _) => (micros, is_fine && half),
        (true, false) => (-micros, false),
        (true, true) => (-micros - 1, !half),
    };
    let instant = Timestamp::from_micros(micros);
    let sayable = Some(instant).filter(|instant| instant.is_sayable());
    let moment = sayable.and_then(Moment::of_instant).ok_or(TimeProblem::Years)?;
    Ok(Moment {
        is_fine,
        rounds_up,
        ..moment
    })
}

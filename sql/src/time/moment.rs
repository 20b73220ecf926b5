//! Texts of dates and times, in the forms that `PostgreSQL` reads, and the parts of a time.
//!
//! Invariant: a text either means exactly one time or is refused. Times are microseconds since the beginning of 1970.

use chrono::{DateTime, Datelike as _, NaiveDate, NaiveDateTime};

use super::DAY_MICROS;
use super::interval::{Interval, OutOfRange};
use super::zone::TimeZone;

const MONTHS: [&str; 12] = [
    "january",
    "february",
    "march",
    "april",
    "may",
    "june",
    "july",
    "august",
    "september",
    "october",
    "november",
    "december",
];
const WEEKDAYS: [&str; 7] = [
    "sunday",
    "monday",
    "tuesday",
    "wednesday",
    "thursday",
    "friday",
    "saturday",
];

/// A text that was read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Moment {
    /// Days since 1970, unless the text has a time only.
    day: Option<i64>,
    /// Microseconds since midnight.
    time: i64,
    zone: Option<TimeZone>,
}

impl Moment {
    /// Reads a text. The error describes what is wrong with it.
    pub(crate) fn parse(text: &str) -> Result<Self, &'static str> {
        MomentReader::default().read(text)
    }

    /// Returns the local time; a zone of the text is ignored.
    pub(crate) fn local(self) -> Option<i64> {
        self.day?.checked_mul(DAY_MICROS)?.checked_add(self.time)
    }

    /// Returns the instant; without a zone the time is one of UTC.
    pub(crate) fn instant(self) -> Option<i64> {
        let local = self.local()?;
        self.zone.map_or(Some(local), |zone| zone.instant(local))
    }

    /// Returns the day since 1970.
    pub(crate) fn date(self) -> Option<i32> {
        i32::try_from(self.day?).ok()
    }

    /// Returns the time of day in microseconds.
    pub(crate) const fn time(self) -> i64 {
        self.time
    }
}

#[derive(Debug, Default)]
struct MomentReader {
    /// Year, month and day.
    date: Option<(i64, u32, u32)>,
    /// Numbers beside the name of a month, with the number of their digits.
    numbers: Vec<(i64, usize)>,
    month: Option<u32>,
    time: Option<i64>,
    zone: Option<TimeZone>,
    afternoon: Option<bool>,
    before_christ: bool,
}

const NOT_A_TIME: &str = "it is not a date or time";
const OUT_OF_RANGE: &str = "a part of it is out of range";

fn digits(text: &str) -> (&str, &str) {
    text.split_at(text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len()))
}

/// Returns the number of the name that begins with a word of at least three letters.
fn named(names: &[&str], word: &str) -> Option<u32> {
    let found = names
        .iter()
        .position(|name| word.len() >= 3 && name.starts_with(word))?;
    u32::try_from(found).ok()
}

impl MomentReader {
    fn read(mut self, text: &str) -> Result<Moment, &'static str> {
        let text = text.trim().to_ascii_lowercase();
        if text == "epoch" {
            return Ok(Moment {
                day: Some(0),
                time: 0,
                zone: Some(TimeZone::Fixed(0)),
            });
        }
        let mut rest = &*text;
        while let Some(first) = rest.chars().next() {
            rest = match first {
                ' ' | '\t' | '\n' | ',' => &rest[1..],
                '0'..='9' => self.number(rest)?,
                '+' | '-' if self.time.is_some() && self.zone.is_none() => self.offset(rest)?,
                'a'..='z' => self.word(rest)?,
                _ => return Err(NOT_A_TIME),
            };
        }
        self.finish()
    }

    fn number<'a>(&mut self, text: &'a str) -> Result<&'a str, &'static str> {
        let (run, after) = digits(text);
        match after.bytes().next() {
            Some(b':') if self.time.is_none() => return self.clock(text),
            Some(b'-' | b'/' | b'.') if self.date.is_none() && self.month.is_none() => return self.parts(text),
            _ => {}
        }
        let value: i64 = run.parse().ok().ok_or(OUT_OF_RANGE)?;
        if self.date.is_none() && self.month.is_none() && self.numbers.is_empty() && run.len() == 8 {
            let part = |value: i64| u32::try_from(value).unwrap_or_default();
            self.date = Some((value / 10_000, part(value / 100 % 100), part(value % 100)));
        } else if self.date.is_some() && self.time.is_none() && matches!(run.len(), 4 | 6) {
            let value = if run.len() == 4 { value * 100 } else { value };
            let (fraction, after) = fraction(after);
            self.set_time(value / 10_000, value / 100 % 100, value % 100, fraction)?;
            return Ok(after);
        } else if self.numbers.len() < 2 {
            self.numbers.push((value, run.len()));
        } else {
            return Err(NOT_A_TIME);
        }
        Ok(after)
    }

    /// Reads `2024-03-02`, `3/2/2024` or `02-Mar-2024`.
    fn parts<'a>(&mut self, text: &'a str) -> Result<&'a str, &'static str> {
        let (first, after) = digits(text);
        let separator = &after[..1];
        let middle = &after[1..];
        let end = middle
            .find(|c: char| !c.is_ascii_alphanumeric())
            .unwrap_or(middle.len());
        let (second, after) = middle.split_at(end);
        let (third, after) = digits(after.strip_prefix(separator).ok_or(NOT_A_TIME)?);
        let value = |part: &str| part.parse::<i64>().ok().ok_or(NOT_A_TIME);
        let small = |part: &str| part.parse::<u32>().ok().ok_or(NOT_A_TIME);
        self.date = Some(if let Some(month) = named(&MONTHS, second) {
            if first.len() > 2 {
                (value(first)?, month + 1, small(third)?)
            } else {
                (year(value(third)?, third.len()), month + 1, small(first)?)
            }
        } else if first.len() > 2 {
            (value(first)?, small(second)?, small(third)?)
        } else {
            // The month comes first where the order is open.
            (year(value(third)?, third.len()), small(first)?, small(second)?)
        });
        Ok(after)
    }

    /// Reads `01:30`, `01:30:15.25`.
    fn clock<'a>(&mut self, text: &'a str) -> Result<&'a str, &'static str> {
        let (hours, after) = digits(text);
        let (minutes, mut after) = digits(&after[1..]);
        let mut seconds = "0";
        let mut part = 0;
        if let Some(more) = after.strip_prefix(':') {
            (seconds, after) = digits(more);
            (part, after) = fraction(after);
        }
        let value = |part: &str| part.parse::<i64>().ok().ok_or(NOT_A_TIME);
        self.set_time(value(hours)?, value(minutes)?, value(seconds)?, part)?;
        Ok(after)
    }

    fn set_time(&mut self, hours: i64, minutes: i64, seconds: i64, micros: i64) -> Result<(), &'static str> {
        let time = ((hours * 60 + minutes) * 60 + seconds) * 1_000_000 + micros;
        if hours > 24 || minutes > 59 || seconds > 60 || time > DAY_MICROS {
            return Err(OUT_OF_RANGE);
        }
        self.time = Some(time);
        Ok(())
    }

    /// Reads `+02`, `+0230`, `-02:30`, `+02:30:15`: hours east of Greenwich.
    fn offset<'a>(&mut self, text: &'a str) -> Result<&'a str, &'static str> {
        let sign = if text.starts_with('-') { -1 } else { 1 };
        let (run, mut rest) = digits(&text[1..]);
        let value = |part: &str| part.parse::<i32>().ok().ok_or(NOT_A_TIME);
        let mut seconds = match run.len() {
            1 | 2 => value(run)? * 3_600,
            3 | 4 => value(run)? / 100 * 3_600 + value(run)? % 100 * 60,
            _ => return Err(NOT_A_TIME),
        };
        for scale in [60, 1] {
            if let Some(more) = rest.strip_prefix(':') {
                let (part, after) = digits(more);
                seconds += value(part)? * scale;
                rest = after;
            }
        }
        if seconds >= 16 * 3_600 {
            return Err(OUT_OF_RANGE);
        }
        self.zone = Some(TimeZone::Fixed(sign * seconds));
        Ok(rest)
    }

    fn word<'a>(&mut self, text: &'a str) -> Result<&'a str, &'static str> {
        let dated = self.date.is_some();
        if let Some(rest) = text
            .strip_prefix('t')
            .filter(|rest| dated && rest.starts_with(|c: char| c.is_ascii_digit()))
        {
            return Ok(rest);
        }
        let letters = text.find(|c: char| !c.is_ascii_alphabetic()).unwrap_or(text.len());
        let (word, after) = text.split_at(letters);
        match word {
            "am" | "pm" => self.afternoon = Some(word == "pm"),
            "ad" => {}
            "bc" => self.before_christ = true,
            "allballs" => self.time = Some(0),
            _ => {
                if let Some(month) = named(&MONTHS, word).filter(|_| self.month.is_none() && !dated) {
                    self.month = Some(month + 1);
                    return Ok(after.strip_prefix('.').unwrap_or(after));
                }
                if named(&WEEKDAYS, word).is_some() {
                    return Ok(after);
                }
                let end = text
                    .find(|c: char| !(c.is_ascii_alphanumeric() || matches!(c, '/' | '_' | '+' | '-')))
                    .unwrap_or(text.len());
                let (zone, after) = text.split_at(end);
                if self.zone.is_some() {
                    return Err(NOT_A_TIME);
                }
                self.zone = Some(TimeZone::written(zone).ok_or(NOT_A_TIME)?);
                return Ok(after);
            }
        }
        Ok(after)
    }

    fn finish(self) -> Result<Moment, &'static str> {
        let date = match (self.date, self.month, &self.numbers[..]) {
            (Some(date), None, []) => Some(date),
            (None, Some(month), [(first, length), (second, _)]) if *length > 2 => {
                Some((*first, month, u32::try_from(*second).ok().ok_or(OUT_OF_RANGE)?))
            }
            (None, Some(month), [(first, _), (second, length)]) => Some((
                year(*second, *length),
                month,
                u32::try_from(*first).ok().ok_or(OUT_OF_RANGE)?,
            )),
            (None, None, []) if self.time.is_some() => None,
            _ => return Err(NOT_A_TIME),
        };
        let mut time = self.time.unwrap_or(0);
        if let Some(afternoon) = self.afternoon {
            let hour = time / 3_600_000_000;
            if self.time.is_none() || !(1..=12).contains(&hour) {
                return Err(OUT_OF_RANGE);
            }
            let half = DAY_MICROS / 2;
            time = time % half + if afternoon { half } else { 0 };
        }
        let day = match date {
            Some((year, month, day)) => {
                // There is no year zero: 1 BC is the year before 1.
                let year = match (self.before_christ, year) {
                    (_, ..=0) => return Err(OUT_OF_RANGE),
                    (true, year) => 1 - year,
                    (false, year) => year,
                };
                let year = i32::try_from(year).ok().ok_or(OUT_OF_RANGE)?;
                let date = NaiveDate::from_ymd_opt(year, month, day).ok_or(OUT_OF_RANGE)?;
                Some(i64::from(date.to_epoch_days()))
            }
            None => None,
        };
        Ok(Moment {
            day,
            time,
            zone: self.zone,
        })
    }
}

/// Reads a fraction of a second, rounded to microseconds.
fn fraction(text: &str) -> (i64, &str) {
    let Some(after) = text.strip_prefix('.') else {
        return (0, text);
    };
    let (run, after) = digits(after);
    let mut padded: String = run.chars().take(6).collect();
    while padded.len() < 6 {
        padded.push('0');
    }
    let micros: i64 = padded.parse().unwrap_or_default();
    let up = run.as_bytes().get(6).is_some_and(|digit| *digit >= b'5');
    (micros + i64::from(up), after)
}

/// Returns the year of two digits: those of 1970 to 2069.
const fn year(value: i64, digits: usize) -> i64 {
    match value {
        0..70 if digits <= 2 => value + 2_000,
        70..100 if digits <= 2 => value + 1_900,
        _ => value,
    }
}

/// Returns the calendar's view of a time.
pub(crate) fn calendar(micros: i64) -> Option<NaiveDateTime> {
    Some(DateTime::from_timestamp_micros(micros)?.naive_utc())
}

/// Returns the time of a calendar's view.
pub(crate) fn micros_of(time: NaiveDateTime) -> i64 {
    time.and_utc().timestamp_micros()
}

/// Returns the interval between two times in years, months, days and a time, as a calendar counts.
pub(crate) fn age(later: i64, earlier: i64) -> Result<Interval, OutOfRange> {
    if later < earlier {
        return age(earlier, later)?.negated();
    }
    let (to, from) = (calendar(later).ok_or(OutOfRange)?, calendar(earlier).ok_or(OutOfRange)?);
    let (to_time, from_time) = (later.rem_euclid(DAY_MICROS), earlier.rem_euclid(DAY_MICROS));
    let month = |time: NaiveDateTime| time.year() * 12 + i32::try_from(time.month0()).unwrap_or_default();
    let day = |time: NaiveDateTime| i32::try_from(time.day()).unwrap_or_default();
    let (mut months, mut days, mut micros) = (month(to) - month(from), day(to) - day(from), to_time - from_time);
    if micros < 0 {
        micros += DAY_MICROS;
        days -= 1;
    }
    if days < 0 {
        // The days of the earlier month count.
        days += i32::from(from.date().num_days_in_month());
        months -= 1;
    }
    Ok(Interval { months, days, micros })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_read_as_postgres_reads_it() {
        for (text, expected) in [
            ("2024-03-02 01:30", "2024-03-02T01:30:00"),
            ("2024-03-02T01:30:15.25Z", "2024-03-02T01:30:15.250"),
            ("2024-3-2 1:5:9", "2024-03-02T01:05:09"),
            ("20240302", "2024-03-02T00:00:00"),
            ("20240302T013000", "2024-03-02T01:30:00"),
            ("March 2, 2024 14:30", "2024-03-02T14:30:00"),
            ("Sat 2 Mar 2024", "2024-03-02T00:00:00"),
            ("02-Mar-2024", "2024-03-02T00:00:00"),
            ("3/2/2024", "2024-03-02T00:00:00"),
            ("2024/03/02", "2024-03-02T00:00:00"),
            ("2024-03-02 12:30 AM", "2024-03-02T00:30:00"),
            ("2024-03-02 12:30 pm", "2024-03-02T12:30:00"),
            ("2024-03-02 24:00", "2024-03-03T00:00:00"),
            ("2024-03-02 01:30:15.123456789", "2024-03-02T01:30:15.123457"),
            ("9999-12-31", "9999-12-31T00:00:00"),
            ("0001-01-01", "0001-01-01T00:00:00"),
            ("epoch", "1970-01-01T00:00:00"),
        ] {
            let local = Moment::parse(text).unwrap().local().unwrap();
            assert_eq!(format!("{:?}", calendar(local).unwrap()), expected, "{text}");
        }
        for text in [
            "",
            "x",
            "2024-13-01",
            "2024-02-30",
            "2024-03-02 25:00",
            "r00001",
            "12",
            "2024-03-02 13:00 PM",
        ] {
            assert!(Moment::parse(text).is_err(), "{text}");
        }
    }

    #[test]
    fn an_offset_counts_to_the_east_and_a_zone_has_a_name() {
        let utc = Moment::parse("2025-07-01 10:00Z").unwrap().instant();
        for text in [
            "2025-07-01 12:00:00+02",
            "2025-07-01 12:00 Europe/Berlin",
            "2025-07-01T05:30-0430",
            "2025-07-01 05:00 EST",
            "2025-07-01 10:00",
        ] {
            assert_eq!(Moment::parse(text).unwrap().instant(), utc, "{text}");
        }
    }

    #[test]
    fn an_age_counts_as_a_calendar() {
        let at = |text: &str| Moment::parse(text).unwrap().local().unwrap();
        for (later, earlier, expected) in [
            ("2024-03-01", "2023-12-15 12:00", "2 mons 16 days 12:00:00"),
            ("2000-02-29", "2001-02-28", "-11 mons -28 days"),
            ("2024-03-31", "2024-02-29", "1 mon 2 days"),
        ] {
            assert_eq!(age(at(later), at(earlier)).unwrap().to_string(), expected);
        }
    }
}

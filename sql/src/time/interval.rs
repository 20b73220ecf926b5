//! Intervals: months, days and a time, each with its own sign.
//!
//! Invariant: intervals are compared by their length, with 30 days a month and 24 hours a day.

use std::fmt;

use super::DAY_MICROS;

const HOUR_MICROS: i64 = 3_600_000_000;
const MINUTE_MICROS: i64 = 60_000_000;
const SECOND_MICROS: i64 = 1_000_000;
/// Days of a month where months and days are compared or divided.
const MONTH_DAYS: i64 = 30;

/// An interval of `PostgreSQL`. Its three parts are kept apart, because a month has no fixed number of days and a day no
/// fixed number of hours.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Interval {
    pub(crate) months: i32,
    pub(crate) days: i32,
    pub(crate) micros: i64,
}

/// An interval that its type cannot hold.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("an interval is out of range")]
pub(crate) struct OutOfRange;

/// Rounds seconds to microseconds.
fn to_micros(seconds: f64) -> f64 {
    (seconds * 1e6).round_ties_even() / 1e6
}

#[expect(clippy::cast_possible_truncation, reason = "the bounds are checked before")]
fn whole(value: f64) -> Result<i32, OutOfRange> {
    if value.is_nan() || value <= f64::from(i32::MIN) - 1.0 || value >= f64::from(i32::MAX) + 1.0 {
        return Err(OutOfRange);
    }
    Ok(value as i32)
}

#[expect(clippy::cast_possible_truncation, reason = "the bounds are checked before")]
fn micros(value: f64) -> Result<i64, OutOfRange> {
    // The next double above the greatest integer of 64 bits is 2^63.
    if value.is_nan() || value.abs() >= 9_223_372_036_854_775_808.0 {
        return Err(OutOfRange);
    }
    Ok(value.round_ties_even() as i64)
}

#[expect(clippy::cast_precision_loss, reason = "a factor is a double, so its product is one")]
const fn double(value: i64) -> f64 {
    value as f64
}

impl Interval {
    /// Returns the interval between two instants in microseconds: whole days, and a time below a day.
    pub(crate) fn between(later: i64, earlier: i64) -> Result<Self, OutOfRange> {
        Self::of_micros(later.checked_sub(earlier).ok_or(OutOfRange)?)
    }

    /// Returns a length in microseconds as whole days and a time below a day.
    pub(crate) fn of_micros(length: i64) -> Result<Self, OutOfRange> {
        Ok(Self {
            months: 0,
            days: i32::try_from(length / DAY_MICROS).ok().ok_or(OutOfRange)?,
            micros: length % DAY_MICROS,
        })
    }

    /// Returns the length in microseconds by which intervals are compared.
    pub(crate) fn length(self) -> Result<i64, OutOfRange> {
        let days = i128::from(self.months) * i128::from(MONTH_DAYS) + i128::from(self.days);
        i64::try_from(days * i128::from(DAY_MICROS) + i128::from(self.micros))
            .ok()
            .ok_or(OutOfRange)
    }

    pub(crate) fn plus(self, other: Self) -> Result<Self, OutOfRange> {
        Ok(Self {
            months: self.months.checked_add(other.months).ok_or(OutOfRange)?,
            days: self.days.checked_add(other.days).ok_or(OutOfRange)?,
            micros: self.micros.checked_add(other.micros).ok_or(OutOfRange)?,
        })
    }

    pub(crate) fn negated(self) -> Result<Self, OutOfRange> {
        Ok(Self {
            months: self.months.checked_neg().ok_or(OutOfRange)?,
            days: self.days.checked_neg().ok_or(OutOfRange)?,
            micros: self.micros.checked_neg().ok_or(OutOfRange)?,
        })
    }

    /// Returns the product with a number. A fraction of a month becomes days, one of a day becomes time.
    pub(crate) fn times(self, factor: f64) -> Result<Self, OutOfRange> {
        self.scaled(|part| part * factor)
    }

    /// Returns the quotient by a number that is not zero.
    pub(crate) fn divided(self, divisor: f64) -> Result<Self, OutOfRange> {
        self.scaled(|part| part / divisor)
    }

    fn scaled(self, scale: impl Fn(f64) -> f64) -> Result<Self, OutOfRange> {
        let (month_part, day_part) = (scale(f64::from(self.months)), scale(f64::from(self.days)));
        let (months, days) = (whole(month_part)?, whole(day_part)?);
        let spilled = to_micros((month_part - f64::from(months)) * 30.0);
        let mut seconds = to_micros((day_part - f64::from(days) + spilled - spilled.trunc()) * 86_400.0);
        let over = (seconds / 86_400.0).trunc();
        seconds -= over * 86_400.0;
        let more = whole(over)?.checked_add(whole(spilled)?).ok_or(OutOfRange)?;
        Ok(Self {
            months,
            days: days.checked_add(more).ok_or(OutOfRange)?,
            micros: micros(scale(double(self.micros)) + seconds * 1e6)?,
        })
    }

    /// Returns the interval with whole days of 24 hours instead of longer times.
    pub(crate) fn with_days(self) -> Result<Self, OutOfRange> {
        let days = i32::try_from(i64::from(self.days) + self.micros / DAY_MICROS)
            .ok()
            .ok_or(OutOfRange)?;
        let mut result = Self {
            days,
            micros: self.micros % DAY_MICROS,
            ..self
        };
        result.same_sign();
        Ok(result)
    }

    fn same_sign(&mut self) {
        if self.days > 0 && self.micros < 0 {
            self.micros += DAY_MICROS;
            self.days -= 1;
        } else if self.days < 0 && self.micros > 0 {
            self.micros -= DAY_MICROS;
            self.days += 1;
        }
    }

    /// Returns the interval with whole months of 30 days instead of more days.
    pub(crate) fn with_months(self) -> Result<Self, OutOfRange> {
        let mut result = Self {
            months: self.months.checked_add(self.days / 30).ok_or(OutOfRange)?,
            days: self.days % 30,
            ..self
        };
        if result.months > 0 && result.days < 0 {
            result.days += 30;
            result.months -= 1;
        } else if result.months < 0 && result.days > 0 {
            result.days -= 30;
            result.months += 1;
        }
        Ok(result)
    }

    /// Returns the interval with whole months and days, all parts of one sign.
    pub(crate) fn justified(self) -> Result<Self, OutOfRange> {
        let days = i32::try_from(i64::from(self.days) + self.micros / DAY_MICROS)
            .ok()
            .ok_or(OutOfRange)?;
        let mut result = Self {
            months: self.months.checked_add(days / 30).ok_or(OutOfRange)?,
            days: days % 30,
            micros: self.micros % DAY_MICROS,
        };
        if result.months > 0 && (result.days < 0 || (result.days == 0 && result.micros < 0)) {
            result.days += 30;
            result.months -= 1;
        } else if result.months < 0 && (result.days > 0 || (result.days == 0 && result.micros > 0)) {
            result.days -= 30;
            result.months += 1;
        }
        result.same_sign();
        Ok(result)
    }

    /// Reads a text such as `1 day 02:03`, `1-2`, `P1Y2M` or `3 weeks ago`. Returns `None` if it is no interval.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let text = text.trim().to_ascii_lowercase();
        let mut reader = IntervalReader::default();
        if let Some(rest) = text.strip_prefix('p') {
            reader.designated(rest)?;
        } else {
            reader.spoken(&text)?;
        }
        reader.finish()
    }
}

/// The interval in the words of `PostgreSQL`.
impl fmt::Display for Interval {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut said = false;
        let mut before = false;
        for (value, word) in [
            (self.months / 12, "year"),
            (self.months % 12, "mon"),
            (self.days, "day"),
        ] {
            if value == 0 {
                continue;
            }
            let space = if said { " " } else { "" };
            let sign = if before && value > 0 { "+" } else { "" };
            let plural = if value == 1 { "" } else { "s" };
            write!(out, "{space}{sign}{value} {word}{plural}")?;
            said = true;
            before = value < 0;
        }
        if said && self.micros == 0 {
            return Ok(());
        }
        let space = if said { " " } else { "" };
        let sign = match (self.micros < 0, before) {
            (true, _) => "-",
            (false, true) => "+",
            (false, false) => "",
        };
        let micros = self.micros.unsigned_abs();
        let (seconds, fraction) = (micros / 1_000_000, micros % 1_000_000);
        let (hours, minutes) = (seconds / 3_600, seconds / 60 % 60);
        write!(out, "{space}{sign}{hours:02}:{minutes:02}:{:02}", seconds % 60)?;
        if fraction > 0 {
            write!(out, ".{}", format!("{fraction:06}").trim_end_matches('0'))?;
        }
        Ok(())
    }
}

/// The sum of the parts of a text.
#[derive(Debug, Default)]
struct IntervalReader {
    months: f64,
    days: f64,
    micros: f64,
    read: bool,
}

/// Size of a measure, in the field of an interval that it counts for.
#[derive(Clone, Copy)]
enum IntervalMeasure {
    /// Number of months in one.
    Months(f64),
    /// Number of days in one.
    Days(f64),
    /// Number of microseconds in one.
    Time(i64),
}

fn measure(word: &str) -> Option<IntervalMeasure> {
    Some(match word {
        "us" | "usec" | "usecs" | "useconds" | "microsecond" | "microseconds" | "microsecon" => {
            IntervalMeasure::Time(1)
        }
        "ms" | "msec" | "msecs" | "mseconds" | "millisecond" | "milliseconds" | "millisecon" => {
            IntervalMeasure::Time(1_000)
        }
        "s" | "sec" | "secs" | "second" | "seconds" => IntervalMeasure::Time(SECOND_MICROS),
        "m" | "min" | "mins" | "minute" | "minutes" => IntervalMeasure::Time(MINUTE_MICROS),
        "h" | "hr" | "hrs" | "hour" | "hours" => IntervalMeasure::Time(HOUR_MICROS),
        "d" | "day" | "days" => IntervalMeasure::Days(1.0),
        "w" | "week" | "weeks" => IntervalMeasure::Days(7.0),
        "mon" | "mons" | "month" | "months" => IntervalMeasure::Months(1.0),
        "y" | "yr" | "yrs" | "year" | "years" => IntervalMeasure::Months(12.0),
        "dec" | "decs" | "decade" | "decades" => IntervalMeasure::Months(120.0),
        "c" | "cent" | "century" | "centuries" => IntervalMeasure::Months(1_200.0),
        "mil" | "mils" | "millennium" | "millennia" | "millenniums" => IntervalMeasure::Months(12_000.0),
        _ => return None,
    })
}

/// Splits a number with an optional sign and fraction from the beginning of a text.
fn number(text: &str) -> Option<(&str, &str)> {
    let unsigned = text.strip_prefix(['+', '-']).unwrap_or(text);
    let digits = unsigned.find(|c: char| !c.is_ascii_digit()).unwrap_or(unsigned.len());
    let after = &unsigned[digits..];
    let fraction = after.strip_prefix('.').map_or(0, |fraction| {
        1 + fraction.find(|c: char| !c.is_ascii_digit()).unwrap_or(fraction.len())
    });
    if digits == 0 && fraction < 2 {
        return None;
    }
    let end = text.len() - after.len() + fraction;
    Some((&text[..end], &text[end..]))
}

impl IntervalReader {
    fn add(&mut self, amount: f64, measure: IntervalMeasure) {
        self.read = true;
        match measure {
            IntervalMeasure::Months(months) if months > 1.0 => {
                // A fraction of a year is rounded to months.
                self.months += amount.trunc() * months + (amount.fract() * months).round_ties_even();
            }
            IntervalMeasure::Months(_) => {
                self.months += amount.trunc();
                self.add_days(to_micros(amount.fract() * 30.0));
            }
            IntervalMeasure::Days(days) => {
                self.days += amount.trunc() * days;
                self.add_days(to_micros(amount.fract() * days));
            }
            IntervalMeasure::Time(micros) => self.micros += (amount * double(micros)).round_ties_even(),
        }
    }

    fn add_days(&mut self, days: f64) {
        self.days += days.trunc();
        self.micros += (days.fract() * double(DAY_MICROS)).round_ties_even();
    }

    /// Reads `1 day 02:03:04`, with a sign before any part.
    fn spoken(&mut self, text: &str) -> Option<()> {
        let mut rest = text.strip_prefix('@').unwrap_or(text).trim_start();
        let mut ago = false;
        while !rest.is_empty() {
            if rest == "ago" && self.read {
                ago = true;
                break;
            }
            let (amount, after) = number(rest)?;
            rest = if after.starts_with(':') {
                self.clock(rest)?
            } else if let Some(months) = after.strip_prefix('-').filter(|_| !amount.contains('.')) {
                let (months, after) = number(months).filter(|(months, _)| !months.starts_with(['+', '-']))?;
                let months: f64 = months.parse().ok().filter(|months| *months < 12.0)?;
                let sign = if amount.starts_with('-') { -1.0 } else { 1.0 };
                self.add(amount.parse().ok()?, IntervalMeasure::Months(12.0));
                self.add(sign * months, IntervalMeasure::Months(1.0));
                after
            } else {
                let after = after.trim_start();
                let letters = after.find(|c: char| !c.is_ascii_alphabetic()).unwrap_or(after.len());
                let word = &after[..letters];
                let amount = amount.parse().ok()?;
                if word.is_empty() || word == "ago" {
                    // A number without a measure is days before a time, and seconds at the end.
                    let days = number(after).is_some_and(|(_, clock)| clock.starts_with(':'));
                    if !days && !after.is_empty() && word != "ago" {
                        return None;
                    }
                    self.add(
                        amount,
                        if days {
                            IntervalMeasure::Days(1.0)
                        } else {
                            IntervalMeasure::Time(SECOND_MICROS)
                        },
                    );
                    after
                } else {
                    self.add(amount, measure(word)?);
                    &after[letters..]
                }
            }
            .trim_start();
        }
        if ago {
            (self.months, self.days, self.micros) = (-self.months, -self.days, -self.micros);
        }
        Some(())
    }

    /// Reads `02:03`, `02:03:04.5`, with a sign.
    fn clock<'a>(&mut self, text: &'a str) -> Option<&'a str> {
        let end = text.find(char::is_whitespace).unwrap_or(text.len());
        let (clock, rest) = text.split_at(end);
        let sign = if clock.starts_with('-') { -1.0 } else { 1.0 };
        let clock = clock.strip_prefix(['+', '-']).unwrap_or(clock);
        let mut parts = clock.split(':');
        let mut next = || {
            parts
                .next()
                .filter(|part| part.starts_with(|c: char| c.is_ascii_digit()))
        };
        let (first, second, third) = (next()?, next()?, next());
        if clock.matches(':').count() != 1 + usize::from(third.is_some()) {
            return None;
        }
        // `02:03.5` is minutes and seconds.
        let (hours, minutes, seconds) = match third {
            None if second.contains('.') => ("0", first, second),
            third => (first, second, third.unwrap_or("0")),
        };
        let (hours, minutes): (u32, u32) = (hours.parse().ok()?, minutes.parse().ok()?);
        let seconds: f64 = seconds.parse().ok()?;
        if minutes >= 60 || seconds >= 61.0 {
            return None;
        }
        self.add(sign * f64::from(hours), IntervalMeasure::Time(HOUR_MICROS));
        self.add(sign * f64::from(minutes), IntervalMeasure::Time(MINUTE_MICROS));
        self.add(sign * seconds, IntervalMeasure::Time(SECOND_MICROS));
        Some(rest)
    }

    /// Reads what follows the `P` of ISO 8601.
    fn designated(&mut self, text: &str) -> Option<()> {
        let (date, time) = text
            .split_once('t')
            .map_or((text, None), |(date, time)| (date, Some(time)));
        if date.matches('-').count() == 2 && !date.starts_with('-') {
            let measures = [
                IntervalMeasure::Months(12.0),
                IntervalMeasure::Months(1.0),
                IntervalMeasure::Days(1.0),
            ];
            for (part, measure) in date.split('-').zip(measures) {
                self.add(part.parse::<u32>().ok()?.into(), measure);
            }
        } else {
            self.letters(date, |letter| match letter {
                'y' => Some(IntervalMeasure::Months(12.0)),
                'm' => Some(IntervalMeasure::Months(1.0)),
                'w' => Some(IntervalMeasure::Days(7.0)),
                'd' => Some(IntervalMeasure::Days(1.0)),
                _ => None,
            })?;
        }
        match time {
            None => Some(()),
            Some(time) if time.contains(':') => self.clock(time).filter(|rest| rest.is_empty()).map(drop),
            Some(time) => self.letters(time, |letter| match letter {
                'h' => Some(IntervalMeasure::Time(HOUR_MICROS)),
                'm' => Some(IntervalMeasure::Time(MINUTE_MICROS)),
                's' => Some(IntervalMeasure::Time(SECOND_MICROS)),
                _ => None,
            }),
        }
    }

    fn letters(&mut self, mut text: &str, measure: impl Fn(char) -> Option<IntervalMeasure>) -> Option<()> {
        while !text.is_empty() {
            let (amount, rest) = number(text)?;
            let letter = rest.chars().next()?;
            self.add(amount.parse().ok()?, measure(letter)?);
            text = &rest[letter.len_utf8()..];
        }
        Some(())
    }

    fn finish(self) -> Option<Interval> {
        self.read.then_some(())?;
        Some(Interval {
            months: whole(self.months).ok()?,
            days: whole(self.days).ok()?,
            micros: micros(self.micros).ok()?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(text: &str) -> String {
        Interval::parse(text).map_or_else(|| "none".to_owned(), |interval| interval.to_string())
    }

    #[test]
    fn a_text_is_read_as_postgres_reads_it() {
        for (text, expected) in [
            ("1 day 02:03:04", "1 day 02:03:04"),
            ("02:30", "02:30:00"),
            ("1-2", "1 year 2 mons"),
            ("-1-2", "-1 years -2 mons"),
            ("P1Y2M3DT4H5M6S", "1 year 2 mons 3 days 04:05:06"),
            ("P0001-02-03T04:05:06", "1 year 2 mons 3 days 04:05:06"),
            ("3 days ago", "-3 days"),
            ("1.5 days", "1 day 12:00:00"),
            ("1 mon -1 days", "1 mon -1 days"),
            ("2 weeks 3 hrs", "14 days 03:00:00"),
            ("-1 day +02:00", "-1 days +02:00:00"),
            ("1 century 2 decades", "120 years"),
            ("1.5 years", "1 year 6 mons"),
            ("1.5 months", "1 mon 15 days"),
            ("1 2:03", "1 day 02:03:00"),
            ("0", "00:00:00"),
            ("10", "00:00:10"),
            ("1.25 seconds", "00:00:01.25"),
            ("@ 5 minutes", "00:05:00"),
            ("1day2hours", "1 day 02:00:00"),
            ("-0.5 hours", "-00:30:00"),
            ("500 ms", "00:00:00.5"),
            ("", "none"),
            ("day", "none"),
            ("1 fortnight", "none"),
            ("1:75", "none"),
            ("P", "none"),
            ("5 x 3", "none"),
            ("999999999999 days", "none"),
        ] {
            assert_eq!(said(text), expected, "{text}");
        }
    }

    #[test]
    fn parts_carry_over_as_in_postgres() {
        let of = |text: &str| Interval::parse(text).unwrap();
        for (result, expected) in [
            (of("1 day").times(1.5), "1 day 12:00:00"),
            (of("1 month").divided(2.0), "15 days"),
            (of("1 month 15 days").times(0.5), "22 days 12:00:00"),
            (of("1 day").divided(7.0), "03:25:42.857143"),
            (of("50 hours").with_days(), "2 days 02:00:00"),
            (of("65 days").with_months(), "2 mons 5 days"),
            (of("1 month -1 hour").justified(), "29 days 23:00:00"),
            (Interval::between(-1, DAY_MICROS), "-1 days -00:00:00.000001"),
        ] {
            assert_eq!(result.unwrap().to_string(), expected);
        }
        assert_eq!(of("1 month").length(), of("720 hours").length());
        assert!(of("2000000000 months").plus(of("2000000000 months")).is_err());
    }
}

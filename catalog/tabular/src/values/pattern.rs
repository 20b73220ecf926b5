//! Patterns of dates and times, as strptime has them.
//!
//! Invariant: a pattern is read from left to right without ever going back, so the time is linear in the word.

use super::time::{Moment, TimeProblem, is_leap};

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
const DAYS: [&str; 7] = [
    "monday",
    "tuesday",
    "wednesday",
    "thursday",
    "friday",
    "saturday",
    "sunday",
];
/// Letters of the short name of a month or day.
const SHORT_NAME: usize = 3;
/// Digits of a second that are kept.
const MICROSECOND_DIGITS: usize = 6;
/// The most directives and characters of a pattern.
const MAX_PATTERN_STEPS: usize = 100;
/// Directives that a pattern may have.
const KNOWN: &str = "%Y %y %m %d %e %b %B %h %a %A %H %I %M %S %f %.f %p %z %F %T %R %D %%";

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum PatternStep {
    /// Four digits.
    Year,
    /// Two digits: 69 to 99 are of the 20th century (POSIX).
    ShortYear,
    Month,
    MonthName,
    Day,
    WeekdayName,
    Hour,
    /// An hour of twelve.
    HalfHour,
    Minute,
    Second,
    /// Digits of a second.
    Fraction,
    /// A point and digits of a second, or nothing.
    PointFraction,
    /// AM or PM.
    Meridiem,
    Offset,
    /// Blanks, at least one.
    Blanks,
    Literal(u8),
}

/// A compiled strptime pattern.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TimePattern {
    steps: Vec<PatternStep>,
    is_half_day: bool,
}

/// A word as far as it was read.
struct Cursor<'a> {
    rest: &'a [u8],
}

impl<'a> Cursor<'a> {
    fn digits(&mut self, least: usize, most: usize) -> Result<&'a [u8], TimeProblem> {
        let count = self
            .rest
            .iter()
            .take(most)
            .take_while(|byte| byte.is_ascii_digit())
            .count();
        if count < least {
            return Err(TimeProblem::Form);
        }
        let (digits, rest) = self.rest.split_at(count);
        self.rest = rest;
        Ok(digits)
    }

    /// A number of one or two digits.
    fn small(&mut self, least: usize) -> Result<u8, TimeProblem> {
        let digits = self.digits(least, 2)?;
        Ok(digits.iter().fold(0, |number, digit| number * 10 + (digit - b'0')))
    }

    /// Place of the name that follows, in full or short, in any case.
    fn name(&mut self, names: &[&str]) -> Result<u8, TimeProblem> {
        let letters = self.rest.iter().take_while(|byte| byte.is_ascii_alphabetic()).count();
        let (word, rest) = self.rest.split_at(letters);
        let is = |name: &&str| {
            let name = name.as_bytes();
            name.eq_ignore_ascii_case(word)
                || name[..SHORT_NAME].eq_ignore_ascii_case(word)
                // The usual fourth letter of September.
                || name.starts_with(b"sept") && b"sept".eq_ignore_ascii_case(word)
        };
        let place = names.iter().position(is).ok_or(TimeProblem::Form)?;
        self.rest = rest;
        u8::try_from(place).map_err(|_error| TimeProblem::Form)
    }
}

impl TimePattern {
    /// Compiles a pattern.
    ///
    /// # Errors
    /// The rule that is broken.
    pub fn new(pattern: &str) -> Result<Self, String> {
        let mut steps = Vec::new();
        compile(pattern, &mut steps)?;
        let has = |wanted: PatternStep| steps.contains(&wanted);
        if steps.len() > MAX_PATTERN_STEPS {
            return Err(format!(
                "must have at most {MAX_PATTERN_STEPS} directives and characters"
            ));
        }
        let has_year = has(PatternStep::Year) || has(PatternStep::ShortYear);
        let has_month = has(PatternStep::Month) || has(PatternStep::MonthName);
        if !has_year || !has_month || !has(PatternStep::Day) {
            return Err(
                "must have a year, a month and a day, such as `%d.%m.%Y`; or be `unix-seconds`, `unix-milliseconds`, \
                 `unix-microseconds` or `rfc2822`"
                    .to_owned(),
            );
        }
        if has(PatternStep::HalfHour) != has(PatternStep::Meridiem) {
            return Err("must have `%I` and `%p` together".to_owned());
        }
        let has_hour = has(PatternStep::Hour) || has(PatternStep::HalfHour);
        let is_finer = has(PatternStep::Minute) || has(PatternStep::Second);
        if is_finer && !has_hour {
            return Err("must have an hour, `%H`, or `%I` with `%p`".to_owned());
        }
        for step in [
            PatternStep::Year,
            PatternStep::Month,
            PatternStep::Day,
            PatternStep::Hour,
            PatternStep::Minute,
            PatternStep::Second,
            PatternStep::Offset,
        ] {
            if steps.iter().filter(|found| **found == step).count() > 1 {
                return Err("must have each part of a time once".to_owned());
            }
        }
        Ok(Self {
            is_half_day: has(PatternStep::HalfHour),
            steps,
        })
    }

    /// Returns true if the pattern reads an offset.
    pub fn has_offset(&self) -> bool {
        self.steps.contains(&PatternStep::Offset)
    }

    /// Reads a whole word.
    pub fn read(&self, word: &[u8]) -> Result<Moment, TimeProblem> {
        match self.read_begin(word)? {
            (moment, []) => Ok(moment),
            _ => Err(TimeProblem::Form),
        }
    }

    /// Reads the begin of a word, and returns what follows.
    pub(super) fn read_begin<'a>(&self, word: &'a [u8]) -> Result<(Moment, &'a [u8]), TimeProblem> {
        let mut at = Cursor { rest: word };
        let mut moment = Moment {
            year: 1,
            month: 1,
            day: 1,
            hour: 0,
            minute: 0,
            second: 0,
            micros: 0,
            is_fine: false,
            rounds_up: false,
            offset: None,
        };
        let mut is_afternoon = false;
        for step in &self.steps {
            match step {
                PatternStep::Year => {
                    let digits = at.digits(4, 4)?;
                    moment.year = digits.iter().fold(0, |year, digit| year * 10 + u16::from(digit - b'0'));
                }
                PatternStep::ShortYear => {
                    let year = u16::from(at.small(2)?);
                    moment.year = if year < 69 { 2_000 + year } else { 1_900 + year };
                }
                PatternStep::Month => moment.month = at.small(1)?,
                PatternStep::MonthName => moment.month = at.name(&MONTHS)? + 1,
                PatternStep::Day => moment.day = at.small(1)?,
                PatternStep::WeekdayName => {
                    at.name(&DAYS)?;
                }
                PatternStep::Hour | PatternStep::HalfHour => moment.hour = at.small(1)?,
                PatternStep::Minute => moment.minute = at.small(2)?,
                PatternStep::Second => moment.second = at.small(2)?,
                PatternStep::Fraction => fraction(&mut at, &mut moment)?,
                PatternStep::PointFraction => {
                    if let Some(rest) = at.rest.strip_prefix(b".") {
                        at.rest = rest;
                        fraction(&mut at, &mut moment)?;
                    }
                }
                PatternStep::Meridiem => {
                    is_afternoon = match at.rest {
                        [b'a' | b'A', b'm' | b'M', ..] => false,
                        [b'p' | b'P', b'm' | b'M', ..] => true,
                        _ => return Err(TimeProblem::Form),
                    };
                    at.rest = &at.rest[2..];
                }
                PatternStep::Offset => {
                    let (seconds, rest) = offset(at.rest).ok_or(TimeProblem::Form)?;
                    moment.offset = Some(seconds);
                    at.rest = rest;
                }
                PatternStep::Blanks => {
                    let rest = at.rest.trim_ascii_start();
                    if rest.len() == at.rest.len() {
                        return Err(TimeProblem::Form);
                    }
                    at.rest = rest;
                }
                PatternStep::Literal(byte) => match at.rest {
                    [first, rest @ ..] if first == byte || (*byte == b'T' && *first == b't') => at.rest = rest,
                    _ => return Err(TimeProblem::Form),
                },
            }
        }
        if self.is_half_day {
            if !(1..=12).contains(&moment.hour) {
                return Err(TimeProblem::Clock);
            }
            moment.hour = moment.hour % 12 + if is_afternoon { 12 } else { 0 };
        }
        if moment.hour > 23 || moment.minute > 59 || moment.second > 59 {
            return Err(TimeProblem::Clock);
        }
        if moment.year == 0 {
            return Err(TimeProblem::Years);
        }
        if moment.day == 0 || moment.day > last_day(moment.year, moment.month) {
            return Err(TimeProblem::Day);
        }
        Ok((moment, at.rest))
    }
}

/// Last day of a month; 0 if there is no such month.
const fn last_day(year: u16, month: u8) -> u8 {
    match month {
        2 if is_leap(year) => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        1..=12 => 31,
        _ => 0,
    }
}

fn compile(pattern: &str, steps: &mut Vec<PatternStep>) -> Result<(), String> {
    let mut rest = pattern.as_bytes();
    while let [first, after @ ..] = rest {
        rest = after;
        if first.is_ascii_whitespace() {
            rest = rest.trim_ascii_start();
            steps.push(PatternStep::Blanks);
            continue;
        }
        if *first != b'%' {
            steps.push(PatternStep::Literal(*first));
            continue;
        }
        if let Some(after) = rest.strip_prefix(b".f").or_else(|| rest.strip_prefix(b"%.f")) {
            steps.push(PatternStep::PointFraction);
            rest = after;
            continue;
        }
        // `%:z` is `%z`: an offset may have a colon in any case.
        let rest_of = rest
            .strip_prefix(b":")
            .filter(|rest| rest.starts_with(b"z"))
            .unwrap_or(rest);
        let Some((directive, after)) = rest_of.split_first() else {
            return Err("ends in `%`: write `%%` for the sign itself".to_owned());
        };
        rest = after;
        steps.push(match directive {
            b'Y' => PatternStep::Year,
            b'y' => PatternStep::ShortYear,
            b'm' => PatternStep::Month,
            b'b' | b'B' | b'h' => PatternStep::MonthName,
            b'd' | b'e' => PatternStep::Day,
            b'a' | b'A' => PatternStep::WeekdayName,
            b'H' | b'k' => PatternStep::Hour,
            b'I' | b'l' => PatternStep::HalfHour,
            b'M' => PatternStep::Minute,
            b'S' => PatternStep::Second,
            b'f' => PatternStep::Fraction,
            b'p' | b'P' => PatternStep::Meridiem,
            b'z' => PatternStep::Offset,
            b'%' => PatternStep::Literal(b'%'),
            b'F' => {
                compile("%Y-%m-%d", steps)?;
                continue;
            }
            b'T' => {
                compile("%H:%M:%S", steps)?;
                continue;
            }
            b'R' => {
                compile("%H:%M", steps)?;
                continue;
            }
            b'D' => {
                compile("%m/%d/%y", steps)?;
                continue;
            }
            _ => return Err(format!("has a directive that is not known: known are {KNOWN}")),
        });
    }
    Ok(())
}

/// Reads the digits of a second, at least one.
fn fraction(at: &mut Cursor<'_>, moment: &mut Moment) -> Result<(), TimeProblem> {
    let digits = at.digits(1, usize::MAX)?;
    let (kept, finer) = digits.split_at(digits.len().min(MICROSECOND_DIGITS));
    moment.micros = kept
        .iter()
        .chain(std::iter::repeat_n(&b'0', MICROSECOND_DIGITS - kept.len()))
        .fold(0, |micros, digit| micros * 10 + u32::from(digit - b'0'));
    moment.is_fine = finer.iter().any(|digit| *digit != b'0');
    moment.rounds_up = moment.is_fine && finer[0] >= b'5';
    Ok(())
}

/// Reads an offset, `Z`, `UTC`, `GMT`, `+02`, `+0200` or `+02:00`, and returns its seconds and what follows.
pub(super) fn offset(word: &[u8]) -> Option<(i32, &[u8])> {
    let (is_west, rest) = match word {
        [b'Z' | b'z', rest @ ..] => return Some((0, rest)),
        [b'+', rest @ ..] => (false, rest),
        [b'-', rest @ ..] => (true, rest),
        word => {
            let (name, rest) = word.split_at_checked(3)?;
            return matches!(name, b"UTC" | b"GMT").then_some((0, rest));
        }
    };
    let mut at = Cursor { rest };
    let hours = at.digits(2, 2).ok()?;
    let colon = at.rest.strip_prefix(b":");
    let mut minutes = Cursor {
        rest: colon.unwrap_or(at.rest),
    };
    let minutes_digits = match minutes.digits(2, 2) {
        Ok(digits) => {
            at.rest = minutes.rest;
            digits
        }
        Err(_) if colon.is_none() => b"00",
        Err(_) => return None,
    };
    let number = |digits: &[u8]| {
        digits
            .iter()
            .fold(0, |number, digit| number * 10 + i32::from(digit - b'0'))
    };
    let (hours, minutes) = (number(hours), number(minutes_digits));
    let seconds = (hours * 60 + minutes) * 60;
    (hours < 24 && minutes < 60).then_some((if is_west { -seconds } else { seconds }, at.rest))
}

//! Days of the calendar, without a time and a zone.

use std::fmt;
use std::str::FromStr;

use crate::clock::civil;

/// The text form of a day; `0` stands for any digit.
const FORM: [u8; 10] = *b"0000-00-00";
const DAYS_OF_MONTHS: [i64; 12] = [31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];
const DAYS_BEFORE_MONTHS: [i64; 12] = [0, 31, 59, 90, 120, 151, 181, 212, 243, 273, 304, 334];
/// Days between 0001-01-01 and 1970-01-01.
const DAYS_BEFORE_EPOCH: i64 = 719_162;

/// A day of the Gregorian calendar, as its number of days since 1970-01-01.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Date(i32);

impl Date {
    /// Creates the day that is `days` days after 1970-01-01.
    pub const fn from_days(days: i32) -> Self {
        Self(days)
    }

    /// Returns the number of days since 1970-01-01.
    pub const fn days(self) -> i32 {
        self.0
    }
}

/// `YYYY-MM-DD`. A day outside the years 1 to 9999 is shown as its number with the suffix `d`.
impl fmt::Display for Date {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match text_of(i64::from(self.0)) {
            Some(text) => text.iter().try_for_each(|byte| write!(f, "{}", char::from(*byte))),
            None => write!(f, "{}d", self.0),
        }
    }
}

/// The reason that a text is not a day.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not a day of the form `YYYY-MM-DD`, of the years 0001 to 9999")]
pub struct ParseDateError;

/// Parses `YYYY-MM-DD` (RFC 3339 section 5.6, `full-date`) of the years 0001 to 9999.
impl FromStr for Date {
    type Err = ParseDateError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        parse(text.as_bytes()).ok_or(ParseDateError)
    }
}

/// Parses a day like [`Date::from_str`].
pub(crate) fn parse(text: &[u8]) -> Option<Date> {
    let text: &[u8; FORM.len()] = text.try_into().ok()?;
    let formed = text.iter().zip(FORM).all(|(byte, form)| match form {
        b'0' => byte.is_ascii_digit(),
        form => *byte == form,
    });
    let days = formed.then(|| days_of(text)).flatten()?;
    i32::try_from(days).ok().map(Date)
}

/// Returns the number of days since 1970-01-01 of a text that has [`FORM`], if the day exists.
pub(crate) fn days_of(text: &[u8; FORM.len()]) -> Option<i64> {
    let two = |at: usize| i64::from(text[at] - b'0') * 10 + i64::from(text[at + 1] - b'0');
    let (year, day) = (two(0) * 100 + two(2), two(8));
    let month = usize::try_from(two(5)).ok()?.checked_sub(1)?;
    let is_leap = (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;
    let longest = DAYS_OF_MONTHS.get(month)? + i64::from(is_leap && month == 1);
    if year < 1 || day < 1 || day > longest {
        return None;
    }
    let years = year - 1;
    let leap_days = years / 4 - years / 100 + years / 400;
    let before = DAYS_BEFORE_MONTHS[month] + i64::from(is_leap && month > 1);
    Some(years * 365 + leap_days + before + day - 1 - DAYS_BEFORE_EPOCH)
}

/// Returns the text of a day in the years 1 to 9999.
pub(crate) fn text_of(days: i64) -> Option<[u8; FORM.len()]> {
    let (year, month, day) = civil(days);
    if !(1..=9_999).contains(&year) {
        return None;
    }
    let digit = |value: i64| u8::try_from(value % 10).unwrap_or(0) + b'0';
    let mut text = FORM;
    for (at, value) in [(0, year / 100), (2, year), (5, month), (8, day)] {
        text[at] = digit(value / 10);
        text[at + 1] = digit(value);
    }
    Some(text)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn a_day_is_what_the_calendar_says(days in -719_162_i32..=2_932_896) {
            let text = Date::from_days(days).to_string();
            let day: jiff::civil::Date = text.parse().unwrap();
            let epoch = jiff::civil::date(1970, 1, 1);
            prop_assert_eq!(epoch.until((jiff::Unit::Day, day)).unwrap().get_days(), days);
            prop_assert_eq!(text.parse(), Ok(Date::from_days(days)));
        }

        #[test]
        fn only_days_of_the_calendar_are_days(year in 0_u32..10_000, month in 0_u32..15, day in 0_u32..34) {
            let text = format!("{year:04}-{month:02}-{day:02}");
            let exists = year > 0 && text.parse::<jiff::civil::Date>().is_ok();
            prop_assert_eq!(text.parse::<Date>().is_ok(), exists, "{}", text);
        }
    }

    #[test]
    fn other_forms_are_no_days() {
        for text in [
            "2021-02-29",
            "1900-02-29",
            "0000-01-01",
            "2020-2-29",
            "20200229",
            "2020-02-29T00:00:00Z",
            " 2020-02-29",
            "+2020-02-29",
            "2020/02/29",
            "2020-02-2\u{662}",
            "",
        ] {
            assert_eq!(text.parse::<Date>(), Err(ParseDateError), "{text}");
        }
        assert_eq!(Date::from_days(2_932_897).to_string(), "2932897d");
    }
}

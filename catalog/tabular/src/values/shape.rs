//! The fixed forms of dates and times that inference tries.

use std::sync::LazyLock;

use super::pattern::TimePattern;
use super::time::Moment;

/// Forms of dates as patterns. Years have four digits: two would be a guess.
const DATE_PATTERNS: [&str; 15] = [
    "%Y-%m-%d",
    "%Y/%m/%d",
    "%Y.%m.%d",
    "%d.%m.%Y",
    "%d/%m/%Y",
    "%m/%d/%Y",
    "%d-%m-%Y",
    "%m-%d-%Y",
    "%d %b %Y",
    "%d-%b-%Y",
    "%d/%b/%Y",
    "%b %d, %Y",
    "%b %d %Y",
    "%d. %b %Y",
    "%Y-%b-%d",
];
/// The shortest date.
const SHORTEST_DATE: usize = 8;
/// A longer text is no date or time of these forms.
const LONGEST_TIME: usize = 64;

struct FixedForms {
    dates: Vec<TimePattern>,
    /// Times of day, behind a fixed date, by seconds and half days.
    clocks: Vec<(TimePattern, bool, bool, bool)>,
}

/// The date before a time of day.
const FIXED_DATE: &str = "%Y-%m-%d ";
const FIXED_DAY: &[u8] = b"2000-01-01 ";

static FORMS: LazyLock<FixedForms> = LazyLock::new(|| {
    let dates = DATE_PATTERNS
        .iter()
        .filter_map(|pattern| TimePattern::new(pattern).ok());
    let mut clocks = Vec::new();
    for has_seconds in [true, false] {
        for (is_half_day, has_blank) in [(true, true), (true, false), (false, false)] {
            let clock = ClockShape {
                separator: b' ',
                has_seconds,
                is_half_day,
                has_blank_meridiem: has_blank,
                offset: OffsetShape::None,
            };
            if let Ok(pattern) = TimePattern::new(&format!("{FIXED_DATE}{}", clock.pattern())) {
                clocks.push((pattern, has_seconds, is_half_day, has_blank));
            }
        }
    }
    FixedForms {
        dates: dates.collect(),
        clocks,
    }
});

/// A set of forms of dates.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DateForms(u16);

impl DateForms {
    /// Every form.
    pub const ALL: Self = Self((1 << DATE_PATTERNS.len()) - 1);
    /// No form.
    pub const NONE: Self = Self(0);

    /// Returns the forms that both sets have.
    #[must_use]
    pub const fn and(self, other: Self) -> Self {
        Self(self.0 & other.0)
    }

    /// Returns true if there is no form.
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// Returns the patterns of the forms.
    pub fn patterns(self) -> impl Iterator<Item = &'static str> {
        DATE_PATTERNS
            .into_iter()
            .enumerate()
            .filter(move |(place, _)| self.0 & 1 << place != 0)
            .map(|(_, pattern)| pattern)
    }
}

/// The offset behind a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum OffsetShape {
    /// There is none.
    None,
    /// It follows at once.
    Attached,
    /// It follows a blank.
    AfterBlank,
}

/// The form of a time of day.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ClockShape {
    /// `T` or a blank, between date and time.
    pub separator: u8,
    /// True if it has seconds, perhaps with digits behind a point.
    pub has_seconds: bool,
    /// True if it has AM or PM.
    pub is_half_day: bool,
    /// True if a blank precedes AM or PM.
    pub has_blank_meridiem: bool,
    /// The offset.
    pub offset: OffsetShape,
}

impl ClockShape {
    /// Returns the part of a pattern from the hour on.
    pub fn pattern(self) -> String {
        let mut pattern = String::from(if self.is_half_day { "%I:%M" } else { "%H:%M" });
        if self.has_seconds {
            pattern.push_str(":%S%.f");
        }
        if self.is_half_day {
            pattern.push_str(if self.has_blank_meridiem { " %p" } else { "%p" });
        }
        pattern.push_str(match self.offset {
            OffsetShape::None => "",
            OffsetShape::Attached => "%z",
            OffsetShape::AfterBlank => " %z",
        });
        pattern
    }

    /// Returns the whole pattern with this pattern of the date.
    pub fn pattern_after(self, date: &str) -> String {
        format!("{date}{}{}", char::from(self.separator), self.pattern())
    }
}

/// The form of a word that is a date or a time of one of the fixed forms.
#[derive(Clone, Copy, Debug)]
pub struct TimeShape {
    /// Forms that give a date that exists.
    pub dates: DateForms,
    /// The time of day, if there is one.
    pub clock: Option<ClockShape>,
    /// True if a value is finer than a microsecond.
    pub is_fine: bool,
    /// True if the time of day is midnight, or is not written.
    pub is_midnight: bool,
    /// True if it is written as a contract takes it: `YYYY-MM-DD`, or RFC 3339.
    pub is_usual: bool,
}

impl TimeShape {
    /// Returns the form of a word without blanks around it; `None` if no form among `dates` fits.
    pub fn of(word: &[u8], dates: DateForms) -> Option<Self> {
        if !(SHORTEST_DATE..=LONGEST_TIME).contains(&word.len()) || !word[0].is_ascii_alphanumeric() {
            return None;
        }
        let mut found = DateForms::NONE;
        // Every form that fits leaves the same rest: they differ in the order of day and month alone.
        let mut rest: &[u8] = &[];
        for (place, pattern) in FORMS.dates.iter().enumerate() {
            if dates.0 & 1 << place == 0 {
                continue;
            }
            if let Ok((_, after)) = pattern.read_begin(word) {
                found.0 |= 1 << place;
                rest = after;
            }
        }
        if found.is_empty() {
            return None;
        }
        let date = &word[..word.len() - rest.len()];
        let is_iso = found.0 & 1 != 0 && date.len() == 10;
        let Some((separator, time)) = rest.split_first() else {
            return Some(Self {
                dates: found,
                clock: None,
                is_fine: false,
                is_midnight: true,
                is_usual: is_iso,
            });
        };
        if !matches!(separator, b'T' | b' ') {
            return None;
        }
        let (clock, moment) = clock(*separator, time)?;
        let is_usual = is_iso && word.len() > 19 && is_rfc3339(word);
        Some(Self {
            dates: found,
            clock: Some(clock),
            is_fine: moment.is_fine(),
            is_midnight: moment.is_midnight(),
            is_usual,
        })
    }
}

fn is_rfc3339(word: &[u8]) -> bool {
    str::from_utf8(word).is_ok_and(|word| word.parse::<types::Timestamp>().is_ok())
}

/// Reads the time of day behind a date.
fn clock(separator: u8, time: &[u8]) -> Option<(ClockShape, Moment)> {
    let mut word = Vec::with_capacity(FIXED_DAY.len() + time.len());
    word.extend_from_slice(FIXED_DAY);
    word.extend_from_slice(time);
    for (pattern, has_seconds, is_half_day, has_blank_meridiem) in &FORMS.clocks {
        let Ok((moment, rest)) = pattern.read_begin(&word) else {
            continue;
        };
        let attached = rest.strip_prefix(b" ");
        let offset = match (rest, attached) {
            ([], _) => OffsetShape::None,
            (_, Some(rest)) if is_offset(rest) => OffsetShape::AfterBlank,
            (rest, None) if is_offset(rest) => OffsetShape::Attached,
            _ => continue,
        };
        let clock = ClockShape {
            separator,
            has_seconds: *has_seconds,
            is_half_day: *is_half_day,
            has_blank_meridiem: *has_blank_meridiem,
            offset,
        };
        return Some((clock, moment));
    }
    None
}

fn is_offset(text: &[u8]) -> bool {
    super::pattern::offset(text).is_some_and(|(_, rest)| rest.is_empty())
}

//! Facts about the dates and times of a column.
//!
//! Invariant: all values that are counted have a form in common.

use types::{Date, Timestamp};

use super::profile::Exclusion;
use crate::values::{ClockShape, DateForms, OffsetShape, TimeShape};

/// Bytes of `YYYY-MM-DD`.
const DATE_BYTES: usize = 10;

/// Facts about the dates and times of a column.
#[derive(Clone, Debug)]
pub(super) struct TimeFacts {
    /// Forms that every date allows.
    pub(super) forms: DateForms,
    /// Dates without a time of day.
    pub(super) dates: u64,
    /// Dates with one.
    pub(super) times: u64,
    /// The form of the time of day.
    pub(super) clock: Option<ClockShape>,
    /// True if all are written as a contract takes them.
    pub(super) is_usual: bool,
    /// True if all have the same form of the time of day.
    pub(super) is_uniform: bool,
    /// Times that are finer than a microsecond.
    pub(super) fine: Exclusion,
    /// Times with an offset.
    pub(super) offsets: u64,
}

impl Default for TimeFacts {
    fn default() -> Self {
        Self {
            forms: DateForms::ALL,
            dates: 0,
            times: 0,
            clock: None,
            is_usual: true,
            is_uniform: true,
            fine: Exclusion::default(),
            offsets: 0,
        }
    }
}

impl TimeFacts {
    /// Adds a word that is written as a contract takes it, if all others are. Returns false for every other one.
    fn add_usual(&mut self, word: &[u8]) -> bool {
        if !self.is_usual {
            return false;
        }
        let Ok(word) = str::from_utf8(word) else {
            return false;
        };
        if self.dates > 0 {
            let is_date = word.parse::<Date>().is_ok();
            self.dates += u64::from(is_date);
            return is_date;
        }
        let Some(clock) = self.clock.filter(|_| word.parse::<Timestamp>().is_ok()) else {
            return false;
        };
        // RFC 3339 has seconds and an offset at once, and leaves the sign before the time alone open.
        self.is_uniform &= word.as_bytes().get(DATE_BYTES) == Some(&clock.separator);
        self.times += 1;
        self.offsets += 1;
        true
    }

    /// Adds a word, unless it is none of the forms that the others have.
    pub(super) fn add(&mut self, word: &[u8], line: u64) -> bool {
        if self.add_usual(word) {
            return true;
        }
        let Some(shape) = TimeShape::of(word, self.forms) else {
            return false;
        };
        let is_first = self.dates + self.times == 0;
        let is_same_kind = is_first || shape.clock.is_some() == (self.times > 0);
        let is_uniform = self.is_uniform && (is_first || shape.clock == self.clock);
        let is_usual = self.is_usual && shape.is_usual;
        if !is_same_kind || !(is_uniform || is_usual) {
            return false;
        }
        self.forms = shape.dates;
        (self.is_uniform, self.is_usual) = (is_uniform, is_usual);
        self.clock = self.clock.or(shape.clock);
        match shape.clock {
            None => self.dates += 1,
            Some(clock) => {
                self.times += 1;
                self.offsets += u64::from(clock.offset != OffsetShape::None);
            }
        }
        if shape.is_fine {
            self.fine.add(word, line);
        }
        true
    }
}

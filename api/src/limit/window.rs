//! The arithmetic of a sliding window, the same wherever its counts are kept.
//!
//! Invariant: nothing here rounds in the caller's favour by more than one.

use types::Timestamp;

use super::{Rule, Taken};

/// The window of an instant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Window {
    /// Which one, counted from the epoch.
    pub(super) number: i64,
    /// Its length in microseconds.
    pub(super) length: i64,
    /// How many microseconds of it are left, at least 1.
    pub(super) left: i64,
}

impl Window {
    pub(super) fn at(rule: Rule, now: Timestamp) -> Self {
        let length = i64::try_from(rule.window.as_micros()).unwrap_or(i64::MAX).max(1);
        Self {
            number: now.micros().div_euclid(length),
            length,
            left: length - now.micros().rem_euclid(length),
        }
    }

    /// Whether one more fits, with `count` in this window and `before` in the one before; the wait where it does not.
    pub(super) fn admit(self, limit: u32, count: u32, before: u32) -> Taken {
        let (limit, count, before) = (i64::from(limit), i64::from(count), i64::from(before));
        let free = limit - count;
        if self.weighed(before) < free {
            return Taken::Admitted;
        }
        // How much of a window must be left, of this one or of the next, for one more to be admitted.
        let wait = if free > 0 {
            self.left - self.at_most(free - 1, before)
        } else {
            self.left + self.length - self.at_most(limit - 1, count)
        };
        Taken::Refused(u64::try_from(wait).unwrap_or(0).div_ceil(1_000_000).max(1))
    }

    /// What `before` in the window before still counts.
    fn weighed(self, before: i64) -> i64 {
        i64::try_from(i128::from(before) * i128::from(self.left) / i128::from(self.length)).unwrap_or(i64::MAX)
    }

    /// With how many microseconds left, at most, `before` counts as no more than `weight`.
    fn at_most(self, weight: i64, before: i64) -> i64 {
        let left = ((i128::from(weight) + 1) * i128::from(self.length) - 1) / i128::from(before.max(1));
        i64::try_from(left).unwrap_or(i64::MAX).clamp(0, self.length)
    }
}

//! Arithmetic of a sliding window, shared by all implementations of the counters.
//!
//! Invariant: rounding favours the caller by at most one event.

use types::Timestamp;

use super::{LimitDecision, RateRule};

/// Window that contains an instant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct LimitWindow {
    /// Number of the window, counted from the epoch.
    pub(super) number: i64,
    /// Length in microseconds.
    pub(super) length: i64,
    /// Microseconds until the window ends, at least 1.
    pub(super) left: i64,
}

impl LimitWindow {
    pub(super) fn at(rule: RateRule, now: Timestamp) -> Self {
        let length = i64::try_from(rule.window.as_micros()).unwrap_or(i64::MAX).max(1);
        Self {
            number: now.micros().div_euclid(length),
            length,
            left: length - now.micros().rem_euclid(length),
        }
    }

    /// Decides if one more event fits, with `count` events in this window and `before` in the previous one. If not,
    /// returns the time to wait.
    pub(super) fn admit(self, limit: u32, count: u32, before: u32) -> LimitDecision {
        let (limit, count, before) = (i64::from(limit), i64::from(count), i64::from(before));
        let free = limit - count;
        if self.weighed(before) < free {
            return LimitDecision::Allow;
        }
        // The event fits once `left` is no greater than `at_most`. If this window has a free slot, that happens within
        // it; otherwise in the next, where `count` is the count of the previous window.
        let wait = if free > 0 {
            self.left - self.at_most(free - 1, before)
        } else {
            self.left + self.length - self.at_most(limit - 1, count)
        };
        LimitDecision::Deny {
            retry_after: u64::try_from(wait).unwrap_or(0).div_ceil(1_000_000).max(1),
        }
    }

    /// Returns the weight of `before` events in the previous window: their share by the time left.
    fn weighed(self, before: i64) -> i64 {
        i64::try_from(i128::from(before) * i128::from(self.left) / i128::from(self.length)).unwrap_or(i64::MAX)
    }

    /// Returns the greatest number of microseconds left at which `before` events weigh at most `weight`.
    fn at_most(self, weight: i64, before: i64) -> i64 {
        let left = ((i128::from(weight) + 1) * i128::from(self.length) - 1) / i128::from(before.max(1));
        i64::try_from(left).unwrap_or(i64::MAX).clamp(0, self.length)
    }
}

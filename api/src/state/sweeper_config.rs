//! Schedule of the sweepers.
//!
//! Invariant: what was acknowledged is due sooner or later, however often it was appended.

use std::time::Duration;

use serde::Deserialize;
use types::Timestamp;

/// Number of attempts after which the interval no longer doubles.
const MOST_DOUBLINGS: u32 = 6;

/// Schedule by which submissions are appended again.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SweeperConfig {
    /// Seconds between two searches for submissions that are due.
    pub interval_seconds: u64,
    /// Seconds without an outcome after which a submission is appended again for the first time. The interval doubles
    /// each time, up to 64 times as long.
    pub first_seconds: u64,
}

impl SweeperConfig {
    /// Returns the time at which a submission acknowledged at `now` is due for the first time.
    pub fn first(&self, now: Timestamp) -> Timestamp {
        now.plus(Duration::from_secs(self.first_seconds))
    }

    pub(crate) fn next(&self, now: Timestamp, attempts: u32) -> Timestamp {
        let doubled = 2_u32.saturating_pow(attempts.min(MOST_DOUBLINGS));
        now.plus(Duration::from_secs(self.first_seconds).saturating_mul(doubled))
    }
}

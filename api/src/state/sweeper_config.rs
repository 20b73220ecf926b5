//! Schedule of the sweepers.
//!
//! Invariant: what was acknowledged is due sooner or later, however often it was appended.

use serde::Deserialize;
use types::{HumanDuration, Timestamp};

/// Number of attempts after which the interval no longer doubles.
const MOST_DOUBLINGS: u32 = 6;

/// Section `sweeper` of the configuration: the schedule by which submissions are appended again.
#[derive(Clone, Debug, Deserialize)]
#[serde(expecting = "struct Sweeper")]
pub struct SweeperConfig {
    /// The interval between two searches for submissions that are due.
    pub every: HumanDuration,
    /// The time without an outcome after which a submission is appended again for the first time. It doubles each
    /// time, up to 64 times as long.
    pub first: HumanDuration,
}

impl SweeperConfig {
    /// Returns the time at which a submission acknowledged at `now` is due for the first time.
    pub fn first(&self, now: Timestamp) -> Timestamp {
        now.plus(self.first.0)
    }

    pub(crate) fn next(&self, now: Timestamp, attempts: u32) -> Timestamp {
        let doubled = 2_u32.saturating_pow(attempts.min(MOST_DOUBLINGS));
        now.plus(self.first.0.saturating_mul(doubled))
    }
}

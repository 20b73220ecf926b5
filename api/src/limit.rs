//! Counts per address over a sliding window, in memory.
//!
//! Invariant: the tables never hold more than a fixed number of addresses, and only those of the current window and of
//! the one before.
//!
//! A window slides by weight: what was counted in the window before counts for the share of it that is less than a
//! window ago, as if it had been spread evenly. So a new window does not begin with nothing counted.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv6Addr};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use types::Timestamp;

/// The most addresses that are counted in one window.
///
/// Why: who comes from more addresses than this within a window is not stopped by a limit per address, so the
/// addresses beyond it are admitted, and nobody innocent is refused for them.
const CAPACITY: usize = 1 << 18;

/// A caller's address as limits count it: an IPv6 address by its /64, which is what one subscriber is given.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Source(u64, u64);

impl From<IpAddr> for Source {
    fn from(address: IpAddr) -> Self {
        let mapped: Ipv6Addr = match address.to_canonical() {
            IpAddr::V4(v4) => v4.to_ipv6_mapped(),
            IpAddr::V6(v6) => return Self((v6.to_bits() >> 64) as u64, 0),
        };
        let bits = mapped.to_bits();
        #[expect(clippy::cast_possible_truncation, reason = "the lower half is wanted")]
        let low = bits as u64;
        Self((bits >> 64) as u64, low)
    }
}

/// At most so many per window and address.
#[derive(Debug)]
pub struct Limiter {
    limit: u32,
    window_micros: i64,
    current: Mutex<Window>,
}

#[derive(Debug, Default)]
struct Window {
    number: i64,
    counts: HashMap<Source, u32>,
    before: HashMap<Source, u32>,
}

impl Limiter {
    /// `limit` per `window`; windows begin at multiples of their length since the epoch.
    pub fn new(limit: u32, window: Duration) -> Self {
        let window_micros = i64::try_from(window.as_micros()).unwrap_or(i64::MAX).max(1);
        Self {
            limit,
            window_micros,
            current: Mutex::default(),
        }
    }

    /// Counts one. Past the limit nothing is counted and the seconds until one more is admitted are returned, rounded
    /// up.
    pub fn take(&self, source: Source, now: Timestamp) -> Result<(), u64> {
        let mut window = self.window(now);
        if window.counts.len() >= CAPACITY && !window.counts.contains_key(&source) {
            return Ok(());
        }
        let before = i64::from(window.before.get(&source).copied().unwrap_or(0));
        let count = window.counts.entry(source).or_insert(0);
        let left = self.window_micros - now.micros().rem_euclid(self.window_micros);
        let free = i64::from(self.limit) - i64::from(*count);
        if self.weighed(before, left) < free {
            *count += 1;
            return Ok(());
        }
        // How much of a window must be left, of this one or of the next, for one more to be admitted.
        let wait = if free > 0 {
            left - self.at_most(free - 1, before)
        } else {
            left + self.window_micros - self.at_most(i64::from(self.limit) - 1, i64::from(*count))
        };
        Err(u64::try_from(wait).unwrap_or(0).div_ceil(1_000_000).max(1))
    }

    /// What `before` in the window before still counts when `left` microseconds of this one are left.
    fn weighed(&self, before: i64, left: i64) -> i64 {
        i64::try_from(i128::from(before) * i128::from(left) / i128::from(self.window_micros)).unwrap_or(i64::MAX)
    }

    /// With how many microseconds left, at most, `before` counts as no more than `weight`.
    fn at_most(&self, weight: i64, before: i64) -> i64 {
        let left = ((i128::from(weight) + 1) * i128::from(self.window_micros) - 1) / i128::from(before.max(1));
        i64::try_from(left).unwrap_or(i64::MAX).clamp(0, self.window_micros)
    }

    /// Takes one back that was counted at `then` and came to nothing.
    pub fn give_back(&self, source: Source, then: Timestamp) {
        let mut window = self.current.lock().unwrap_or_else(PoisonError::into_inner);
        if window.number == then.micros().div_euclid(self.window_micros)
            && let Some(count) = window.counts.get_mut(&source)
        {
            *count = count.saturating_sub(1);
        }
    }

    /// The window of `now`; a new one begins with nothing counted but what the window before had.
    fn window(&self, now: Timestamp) -> MutexGuard<'_, Window> {
        let number = now.micros().div_euclid(self.window_micros);
        // Why: counts stay usable whatever a panicking holder did to them.
        let mut window = self.current.lock().unwrap_or_else(PoisonError::into_inner);
        if window.number != number {
            let counts = std::mem::take(&mut window.counts);
            *window = Window {
                before: if window.number == number - 1 {
                    counts
                } else {
                    HashMap::new()
                },
                counts: HashMap::new(),
                number,
            };
        }
        window
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn source(text: &str) -> Source {
        text.parse::<IpAddr>().unwrap().into()
    }

    fn at(seconds: i64) -> Timestamp {
        Timestamp::from_micros(seconds * 1_000_000)
    }

    #[test]
    fn the_limit_holds_within_a_window_and_for_one_address() {
        let limiter = Limiter::new(2, Duration::from_mins(1));
        let (one, two) = (source("192.0.2.1"), source("192.0.2.2"));
        assert_eq!(limiter.take(one, at(70)), Ok(()));
        assert_eq!(limiter.take(one, at(71)), Ok(()));
        assert_eq!(limiter.take(one, at(75)), Err(46));
        assert_eq!(limiter.take(two, at(75)), Ok(()));
        assert_eq!(limiter.take(one, at(180)), Ok(()));
    }

    #[test]
    fn the_turn_of_a_window_admits_no_second_burst() {
        let limiter = Limiter::new(300, Duration::from_mins(1));
        let one = source("192.0.2.1");
        let burst = |now: i64| (0..400).filter(|_| limiter.take(one, at(now)).is_ok()).count();
        assert_eq!(burst(119), 300);
        assert_eq!(burst(120), 0);
        assert_eq!(burst(126), 30);
        assert_eq!(burst(150), 120);
        assert_eq!(burst(240), 300);
    }

    #[test]
    fn whoever_waits_as_long_as_told_is_admitted() {
        let limiter = Limiter::new(3, Duration::from_mins(1));
        let one = source("192.0.2.1");
        let mut now = 7;
        for _ in 0..50 {
            if let Err(wait) = limiter.take(one, at(now)) {
                now += i64::try_from(wait).unwrap();
                assert_eq!(limiter.take(one, at(now)), Ok(()), "at {now}");
            }
        }
    }

    #[test]
    fn what_came_to_nothing_is_given_back_in_its_window_only() {
        let limiter = Limiter::new(1, Duration::from_mins(1));
        let one = source("192.0.2.1");
        assert_eq!(limiter.take(one, at(0)), Ok(()));
        limiter.give_back(one, at(0));
        assert_eq!(limiter.take(one, at(1)), Ok(()));
        assert_eq!(limiter.take(one, at(61)), Ok(()));
        limiter.give_back(one, at(1));
        assert!(limiter.take(one, at(62)).is_err());
    }

    #[test]
    fn an_ipv6_subscriber_is_one_source_and_a_mapped_address_is_its_ipv4_one() {
        assert_eq!(source("2001:db8:1:2::1"), source("2001:db8:1:2:ffff::9"));
        assert_ne!(source("2001:db8:1:2::1"), source("2001:db8:1:3::1"));
        assert_eq!(source("::ffff:192.0.2.1"), source("192.0.2.1"));
        assert_ne!(source("192.0.2.2"), source("192.0.2.1"));
    }
}

//! Counts per address over a sliding window: in this process, or shared by every replica.
//!
//! ```text
//! Limiter ──▶ Counters (shared, where there are any) ──down or slow──▶ Memory (this replica's own)
//! ```
//!
//! Invariants, which every [`Counters`] proves by the suite `conformance`:
//! - Within a window no more than the limit is admitted, and the turn of a window admits no second burst.
//! - Whoever waits as long as told is admitted, unless somebody of the same address was quicker.
//!
//! A window slides by weight: what was counted in the window before counts for the share of it that is less than a
//! window ago, as if it had been spread evenly. So a new window does not begin with nothing counted.

#[cfg(any(test, feature = "testing"))]
pub mod conformance;
mod limiter;
mod memory;
#[cfg(feature = "redis")]
mod redis;
#[cfg(all(feature = "redis", feature = "testing"))]
pub mod testing;
mod window;

use std::fmt;
use std::net::{IpAddr, Ipv6Addr};
use std::time::Duration;

use async_trait::async_trait;
use types::Timestamp;

pub use self::limiter::{Health, Limiter};
pub use self::memory::Memory;
#[cfg(feature = "redis")]
pub use self::redis::{Redis, RedisError};

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

/// 32 hexadecimal digits, the same in every replica.
impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}{:016x}", self.0, self.1)
    }
}

/// At most so many per window and address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rule {
    /// What is counted; rules of different names do not count each other's.
    pub name: &'static str,
    /// How many.
    pub limit: u32,
    /// In how long; windows begin at multiples of their length since the epoch. At least a millisecond.
    pub window: Duration,
}

/// What became of one more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Taken {
    /// It is counted and may go on.
    Admitted,
    /// The limit is reached and nothing is counted; after so many seconds, rounded up, one more is admitted.
    Refused(u64),
}

/// The counters cannot be asked.
#[derive(Debug, thiserror::Error)]
#[error("the cache with the counters does not answer")]
pub struct Unavailable(#[source] pub Box<dyn std::error::Error + Send + Sync>);

/// Counters that rules are held to.
#[async_trait]
pub trait Counters: fmt::Debug + Send + Sync {
    /// Counts one, unless the limit is reached; in one step, whoever else counts.
    async fn take(&self, rule: Rule, source: Source, now: Timestamp) -> Result<Taken, Unavailable>;
}

#[cfg(test)]
mod tests {
    use super::*;

    fn source(text: &str) -> Source {
        text.parse::<IpAddr>().unwrap().into()
    }

    #[test]
    fn an_ipv6_subscriber_is_one_source_and_a_mapped_address_is_its_ipv4_one() {
        assert_eq!(source("2001:db8:1:2::1"), source("2001:db8:1:2:ffff::9"));
        assert_ne!(source("2001:db8:1:2::1"), source("2001:db8:1:3::1"));
        assert_eq!(source("::ffff:192.0.2.1"), source("192.0.2.1"));
        assert_ne!(source("192.0.2.2"), source("192.0.2.1"));
    }

    #[test]
    fn sources_that_differ_are_written_differently() {
        let written = source("192.0.2.1").to_string();
        assert_eq!(written, "00000000000000000000ffffc0000201");
        assert_ne!(written, source("192.0.2.2").to_string());
    }
}

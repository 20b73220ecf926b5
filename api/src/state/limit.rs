//! Rate limits per address or other subject over a sliding window, counted in this process or shared by every replica.
//!
//! ```text
//! Limiter ──window below an hour──▶ Counters (shared, where there are any) ──down or slow──▶ Memory (this replica's own)
//!         └─an hour or longer─────▶ Durable (the database)
//! ```
//!
//! Invariants, which every [`LimitCounters`] proves by the suite `conformance`:
//! - Within a window no more than the limit is admitted, and the turn of a window admits no second burst.
//! - A caller that waits for the time it was given is admitted, unless another call from the same address came first.
//!
//! The window slides by weight: the count of the previous window contributes in proportion to the part of it that is
//! less than one window ago, as if its calls had been spread evenly. So a new window does not begin at zero.

#[cfg(any(test, feature = "testing"))]
pub mod conformance;
mod durable;
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

pub use self::durable::DurableCounters;
pub use self::limiter::{CountersHealth, Limiter};
pub use self::memory::MemoryCounters;
#[cfg(feature = "redis")]
pub use self::redis::{RedisCounters, RedisError};

/// Subject of a limit: an address, or anything that has a name. An IPv6 address counts by its /64, the prefix that one
/// subscriber usually gets.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct LimitSource(u64, u64);

impl From<IpAddr> for LimitSource {
    fn from(address: IpAddr) -> Self {
        // An IPv4 address in its IPv6 form counts like the IPv4 address itself.
        let mapped: Ipv6Addr = match address.to_canonical() {
            IpAddr::V4(v4) => v4.to_ipv6_mapped(),
            // A subscriber can use any address of its /64, so the lower half is not counted separately.
            IpAddr::V6(v6) => return Self((v6.to_bits() >> 64) as u64, 0),
        };
        let bits = mapped.to_bits();
        #[expect(clippy::cast_possible_truncation, reason = "the lower half is wanted")]
        let low = bits as u64;
        Self((bits >> 64) as u64, low)
    }
}

impl LimitSource {
    /// Returns the subject with this name within a kind. The name is hashed, so no count reveals it.
    pub fn named(kind: &str, name: &str) -> Self {
        let mut hasher = blake3::Hasher::new();
        // The length keeps a kind and a name apart, so no two pairs have the same text.
        hasher.update(&(kind.len() as u64).to_le_bytes());
        hasher.update(kind.as_bytes());
        hasher.update(name.as_bytes());
        let mut half = [0; 8];
        let mut reader = hasher.finalize_xof();
        let mut next = || {
            reader.fill(&mut half);
            u64::from_le_bytes(half)
        };
        Self(next(), next())
    }
}

/// Writes 32 hexadecimal digits, the same in every replica.
impl fmt::Display for LimitSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}{:016x}", self.0, self.1)
    }
}

/// Limit on a number of events per window and address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RateRule {
    /// Name of what is counted. Rules of different names are counted separately.
    pub name: &'static str,
    /// Greatest number of events in a window.
    pub limit: u32,
    /// Length of the window, at least a millisecond. Windows begin at multiples of it since the epoch.
    pub window: Duration,
}

/// Decision on one event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LimitDecision {
    /// The event is counted and allowed.
    Allow,
    /// The limit is reached and nothing is counted. Contains the seconds, rounded up, after which one event is allowed.
    Deny {
        /// Seconds, rounded up.
        retry_after: u64,
    },
}

/// Error of counters that cannot be reached.
#[derive(Debug, thiserror::Error)]
#[error("the cache with the counters does not answer")]
pub struct CountersUnavailable(#[source] pub Box<dyn std::error::Error + Send + Sync>);

/// Counters that enforce rules.
#[async_trait]
pub trait LimitCounters: fmt::Debug + Send + Sync {
    /// Counts one event unless the limit is reached. The check and the count are one atomic step, also between
    /// replicas.
    async fn take(
        &self,
        rule: RateRule,
        source: LimitSource,
        now: Timestamp,
    ) -> Result<LimitDecision, CountersUnavailable>;
}

#[cfg(test)]
mod tests {
    use super::*;

    fn source(text: &str) -> LimitSource {
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

//! Ids of rows and requests that no other package names.

use std::hash::{BuildHasher as _, RandomState};
use std::sync::atomic::{AtomicU64, Ordering};

use types::Timestamp;
use uuid::{Builder, NoContext, Uuid};

/// Returns a new id. The order of ids is the order of their times (UUID version 7, RFC 9562).
pub(crate) fn new(now: Timestamp) -> String {
    let seconds = u64::try_from(now.micros().div_euclid(1_000_000)).unwrap_or(0);
    let nanos = u32::try_from(now.micros().rem_euclid(1_000_000) * 1_000).unwrap_or(0);
    Uuid::new_v7(uuid::Timestamp::from_unix(NoContext, seconds, nanos)).to_string()
}

/// Source of the ids of requests. It takes its random numbers from keys that it got when it was made: to ask the system
/// for new ones would cost each request a system call.
#[derive(Debug, Default)]
pub(crate) struct RequestIds {
    keys: RandomState,
    count: AtomicU64,
}

impl RequestIds {
    /// Returns a new id of the same form. It is unique, but no secret may be made from it.
    pub(crate) fn next(&self, now: Timestamp) -> String {
        let count = self.count.fetch_add(1, Ordering::Relaxed);
        // A hash of a number that never comes again, under keys that nobody knows, repeats no more than random bits do.
        let [high, low] = [0_u8, 1].map(|half| u128::from(self.keys.hash_one((count, half))));
        let mut random = [0; 10];
        random.copy_from_slice(&(high << 64 | low).to_be_bytes()[6..]);
        let millis = u64::try_from(now.millis()).unwrap_or(0);
        Builder::from_unix_timestamp_millis(millis, &random)
            .into_uuid()
            .to_string()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn ids_of_requests_are_those_of_version_7_and_never_repeat() {
        let at = |millis: i64| Timestamp::from_micros(millis * 1_000);
        let sources = [RequestIds::default(), RequestIds::default()];
        let ids: Vec<_> = (0..2_000).map(|count| sources[count % 2].next(at(7))).collect();
        assert_eq!(ids.iter().collect::<HashSet<_>>().len(), ids.len());
        for id in &ids {
            let parsed: Uuid = id.parse().unwrap();
            assert_eq!(parsed.get_version_num(), 7, "{id}");
            assert!(*id < sources[0].next(at(8)) && *id < new(at(8)), "{id}");
        }
    }
}

//! Ids of rows and requests that no other package names.

use types::Timestamp;
use uuid::{NoContext, Uuid};

/// Returns a new id. The order of ids is the order of their times (UUID version 7, RFC 9562).
pub(crate) fn new(now: Timestamp) -> String {
    let seconds = u64::try_from(now.micros().div_euclid(1_000_000)).unwrap_or(0);
    let nanos = u32::try_from(now.micros().rem_euclid(1_000_000) * 1_000).unwrap_or(0);
    Uuid::new_v7(uuid::Timestamp::from_unix(NoContext, seconds, nanos)).to_string()
}

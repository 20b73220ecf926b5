//! Addresses of parts at the store itself, where it can hand them out: a door that the binary puts a signer behind.
//!
//! Invariant: a transfer from the store is not seen here, so it is counted when its address is handed out: once per
//! operator and part for as long as the first address of it is good, however often a manifest is asked for meanwhile.
//!
//! Counting the addresses charges who asks and does not fetch; counting nothing would make the quota one of those who
//! read pages only. Who resumes a pull within the life of its addresses is not charged again.

use std::collections::HashMap;
use std::fmt::Debug;
use std::time::Duration;

use catalog::Link;
use parking_lot::Mutex;
use types::{DatasetId, OperatorId, Timestamp};

/// How many parts of operators are remembered; beyond it all are forgotten, which counts some addresses again.
const REMEMBERED: usize = 256 << 10;

/// Signs addresses at the store.
pub trait DirectParts: Debug + Send + Sync {
    /// The address from which the part `name` can be read for this long from now on, by the store's clock.
    fn address(&self, dataset: DatasetId, name: &str, lasting: Duration) -> String;
}

/// A part that an operator was told where to read: by the beginning of its hash.
type Told = (OperatorId, DatasetId, [u8; 16]);

/// What was handed out and is good still.
#[derive(Debug, Default)]
pub(crate) struct HandedOut {
    /// Until when the first address of each is good.
    until: Mutex<HashMap<Told, Timestamp>>,
}

impl HandedOut {
    /// The bytes of the parts of a version whose addresses this operator does not have yet. Addresses handed out now are
    /// good until `until`.
    pub(crate) fn new_bytes(
        &self,
        operator: OperatorId,
        dataset: DatasetId,
        parts: &[Link],
        now: Timestamp,
        until: Timestamp,
    ) -> u64 {
        let mut told = self.until.lock();
        if told.len() >= REMEMBERED {
            told.retain(|_, end| *end > now);
        }
        if told.len() >= REMEMBERED {
            told.clear();
        }
        let mut is_new = |link: &&Link| {
            let (hash, _) = link.part.sha256.split_at(16);
            let Ok(hash) = hash.try_into() else { return true };
            let end = told.entry((operator, dataset, hash)).or_insert(now);
            let is_over = *end <= now;
            if is_over {
                *end = until;
            }
            is_over
        };
        let new = parts.iter().filter(|link| is_new(link));
        new.map(|link| link.part.bytes).sum()
    }
}

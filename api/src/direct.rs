//! Addresses of parts at the store itself, where it can hand them out: a door that the binary puts a signer behind.
//!
//! Invariant: a transfer from the store is not seen here, so it is counted when its address is handed out: once per
//! operator and part for as long as an address of it is good, however often the manifest is asked for meanwhile.
//!
//! Counting the addresses charges who asks and does not fetch; counting nothing would make the quota one of those who
//! read pages only. Who resumes a pull within the life of its addresses is not charged again.

use std::collections::HashMap;
use std::fmt::Debug;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use catalog::Link;
use types::{DatasetId, OperatorId, Timestamp, Version};

/// How many operators' datasets are remembered; beyond it all are forgotten, which counts some addresses again.
const REMEMBERED: usize = 16 << 10;

/// Signs addresses at the store.
pub trait DirectParts: Debug + Send + Sync {
    /// The address from which the part `name` can be read for this long from now on, by the store's clock.
    fn address(&self, dataset: DatasetId, name: &str, lasting: Duration) -> String;
}

/// What was handed out and is good still.
#[derive(Debug, Default)]
pub(crate) struct HandedOut {
    /// Up to which version, until when.
    upto: Mutex<HashMap<(OperatorId, DatasetId), (Version, Timestamp)>>,
}

impl HandedOut {
    /// The bytes of the parts of a version, ascending, whose addresses this operator does not have yet. Addresses handed
    /// out now are good until `until`.
    pub(crate) fn new_bytes(
        &self,
        operator: OperatorId,
        dataset: DatasetId,
        parts: &[Link],
        now: Timestamp,
        until: Timestamp,
    ) -> u64 {
        let head = parts.last().map_or(Version::EMPTY, |link| link.part.version);
        let mut upto = self.upto.lock().unwrap_or_else(PoisonError::into_inner);
        if upto.len() >= REMEMBERED {
            upto.retain(|_, (_, end)| *end > now);
        }
        if upto.len() >= REMEMBERED {
            upto.clear();
        }
        let entry = upto.entry((operator, dataset)).or_insert((Version::EMPTY, until));
        if entry.1 <= now {
            *entry = (Version::EMPTY, until);
        }
        let counted = entry.0;
        entry.0 = counted.max(head);
        let new = parts.iter().filter(|link| link.part.version > counted);
        new.map(|link| link.part.bytes).sum()
    }
}

//! Addresses of parts at a bucket, where it can serve downloads itself. The binary provides the signer.
//!
//! Invariant: the service does not see a transfer from the bucket, so it counts a part's bytes when it hands out the
//! address: once per operator and part for the validity of the first address, however often a manifest is requested
//! meanwhile.
//!
//! Counting addresses charges callers that do not download. Counting nothing would exempt downloads from the quota. A
//! pull that is resumed while its addresses are valid is not charged again.

use std::collections::HashMap;
use std::fmt::Debug;
use std::time::Duration;

use catalog::PartLink;
use parking_lot::Mutex;
use types::{DatasetId, OperatorId, Timestamp};

/// Parts of operators remembered. Beyond it all are forgotten, which counts some addresses again.
const MAX_REMEMBERED_PARTS: usize = 256 << 10;

/// Signer of addresses at the bucket.
pub trait PresignedUrls: Debug + Send + Sync {
    /// Returns the address from which the part `name` can be read for the time `lasting`, by the bucket's clock.
    fn address(&self, dataset: DatasetId, name: &str, lasting: Duration) -> String;
}

/// A part whose address an operator has, by the first half of its hash.
type PresignedPart = (OperatorId, DatasetId, [u8; 16]);

/// Registry of the addresses that were handed out and are still valid.
#[derive(Debug, Default)]
pub(crate) struct PresignedEgress {
    /// Expiry of the first address of each part.
    expiries: Mutex<HashMap<PresignedPart, Timestamp>>,
}

impl PresignedEgress {
    /// Returns the bytes of those parts whose addresses this operator does not have yet, and registers them as handed
    /// out until `until`.
    pub(crate) fn new_bytes(
        &self,
        operator: OperatorId,
        dataset: DatasetId,
        parts: &[PartLink],
        now: Timestamp,
        until: Timestamp,
    ) -> u64 {
        let mut expiries = self.expiries.lock();
        // Expired entries go first. Only if that frees nothing are valid ones forgotten.
        if expiries.len() >= MAX_REMEMBERED_PARTS {
            expiries.retain(|_, end| *end > now);
        }
        if expiries.len() >= MAX_REMEMBERED_PARTS {
            expiries.clear();
        }
        let mut is_new = |link: &&PartLink| {
            // Half of a hash tells parts apart as surely and halves the memory of an entry.
            let (hash, _) = link.part.sha256.split_at(16);
            let Ok(hash) = hash.try_into() else { return true };
            // A new entry starts as expired, so that both cases take the same path.
            let end = expiries.entry((operator, dataset, hash)).or_insert(now);
            let is_over = *end <= now;
            if is_over {
                *end = until;
            }
            is_over
        };
        let new = parts.iter().filter(|link| is_new(link));
        new.map(|link| link.part.bytes).sum()
    }

    /// Forgets that an operator has the addresses of parts.
    pub(crate) fn forget(&self, operator: OperatorId, dataset: DatasetId, parts: &[PartLink]) {
        let mut expiries = self.expiries.lock();
        for link in parts {
            let (hash, _) = link.part.sha256.split_at(16);
            if let Ok(hash) = hash.try_into() {
                expiries.remove(&(operator, dataset, hash));
            }
        }
    }
}

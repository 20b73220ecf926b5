//! The stored keys of a table in memory, for a caller with so many lookups that reading all keys once is cheaper.
//!
//! Invariant: the snapshot has only stored keys. Later keys may be missing, so a miss is looked up in the store too.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use types::{DatasetId, RecordKey};

use crate::key_file::{KWayMerge, Source};
use crate::key_store::{KeyStore, StoredFile};

/// Maximum number of keys in the snapshot: 64 MiB, and up to twice that while it is read.
const MAX_SNAPSHOT_KEYS: u64 = 4 << 20;
/// Cost of a lookup in the store, in keys that a scan reads in the same time.
const KEYS_READ_PER_LOOKUP: u64 = 32;

/// Sorted snapshot of the stored keys, read once it is worth it.
#[derive(Debug, Default)]
pub(crate) struct SortedKeySnapshot {
    asked: AtomicU64,
    keys: OnceLock<Vec<RecordKey>>,
}

impl SortedKeySnapshot {
    /// Returns the sorted stored keys of a table if, with `more` lookups, reading them all is worth it. `count` is
    /// their number in the store and in `files`. Blocks.
    pub(super) fn keys_for(
        &self,
        more: usize,
        count: u64,
        dataset: DatasetId,
        store: &KeyStore,
        files: &[Arc<StoredFile>],
    ) -> Option<&[RecordKey]> {
        let asked = more as u64 + self.asked.fetch_add(more as u64, Ordering::Relaxed);
        // Reading all keys pays off once the lookups have cost as much as the scan.
        if count > MAX_SNAPSHOT_KEYS || asked < count / KEYS_READ_PER_LOOKUP {
            return None;
        }
        let keys = self.keys.get_or_init(|| {
            read(count, dataset, store, files).unwrap_or_else(|error| {
                tracing::warn!(
                    %dataset, %error,
                    "cannot read all record keys of a table at once; looking them up one by one"
                // An empty snapshot makes every lookup a miss, and each miss goes to the store.
                );
                Vec::new()
            })
        });
        Some(keys)
    }
}

fn read(count: u64, dataset: DatasetId, store: &KeyStore, files: &[Arc<StoredFile>]) -> fjall::Result<Vec<RecordKey>> {
    let count = usize::try_from(count).unwrap_or(0);
    let in_files: usize = files.iter().map(|file| file.keys.len()).sum();
    let mut stored = Vec::with_capacity(count.saturating_sub(in_files));
    store.scan(dataset, |key| stored.push(key))?;
    if files.is_empty() {
        return Ok(stored);
    }
    let mut keys = Vec::with_capacity(count);
    let stored = Box::new(stored.into_iter().map(Ok)) as Source<'_>;
    let files = files.iter().map(|file| Box::new(file.keys.iter()) as Source<'_>);
    for key in KWayMerge::of(std::iter::once(stored).chain(files).collect())? {
        keys.push(key?);
    }
    Ok(keys)
}

/// Returns true if the sorted `keys` have `key`. Keys are hashes and spread evenly, so the search starts at the
/// interpolated position.
pub(super) fn contains(keys: &[RecordKey], key: &RecordKey) -> bool {
    // The position is proportional to the upper half of the key.
    let high = u128::from_be_bytes(*key.as_bytes()) >> 64;
    let guess = usize::try_from((high * keys.len() as u128) >> 64).unwrap_or(0);
    // The range grows in both directions, twice as far each time, until it must contain the key.
    let (mut low, mut high, mut step) = (guess, guess, 16);
    while low > 0 && keys[low] > *key {
        low = low.saturating_sub(step);
        step *= 2;
    }
    step = 16;
    while high < keys.len() && keys[high] < *key {
        high = keys.len().min(high + step);
        step *= 2;
    }
    keys[low..keys.len().min(high + 1)].binary_search(key).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::keys::tests::key;

    #[test]
    fn a_key_is_found_wherever_it_is() {
        for count in [0, 1, 2, 17, 1_000, 50_000] {
            let mut keys: Vec<RecordKey> = (0..count).map(key).collect();
            // However unevenly they are spread.
            let ends = [[0; 16], [255; 16], [1; 16]].map(RecordKey::from_bytes);
            keys.extend((count > 2).then_some(ends).into_iter().flatten());
            keys.extend((0..count / 4).map(|near| RecordKey::from_bytes((u128::from(near) + 7).to_be_bytes())));
            keys.sort_unstable();
            assert!(keys.iter().all(|key| contains(&keys, key)), "{count}");
            assert!(
                (count..2 * count + 9).all(|other| !contains(&keys, &key(other))),
                "{count}"
            );
            assert!(!contains(&keys, &RecordKey::from_bytes([254; 16])));
        }
    }
}

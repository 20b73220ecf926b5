//! Sets and maps of record keys.
//!
//! Invariant: a key is a hash already, so one multiplication suffices to hash it. A secret of the process keeps
//! contributors from choosing records whose keys collide.

use std::collections::{HashMap, HashSet};
use std::hash::{BuildHasher, Hasher, RandomState};
use std::sync::LazyLock;

use super::RecordKey;

/// A set of record keys.
pub type KeySet = HashSet<RecordKey, BuildMapHasher>;
/// A map from record keys to values.
pub type KeyMap<V> = HashMap<RecordKey, V, BuildMapHasher>;

/// The secret of this process.
static SECRET: LazyLock<[u64; 2]> = LazyLock::new(|| {
    let random = RandomState::new();
    // `RandomState` is seeded by the system. It is enough here: the secret must not be guessed by
    // somebody who never sees a hash.
    [random.hash_one(0), random.hash_one(1)]
});

/// A builder of hashers for record keys.
#[derive(Clone, Debug)]
pub struct BuildMapHasher([u64; 2]);

impl Default for BuildMapHasher {
    fn default() -> Self {
        Self(*SECRET)
    }
}

impl BuildHasher for BuildMapHasher {
    type Hasher = MapHasher;

    fn build_hasher(&self) -> MapHasher {
        MapHasher {
            secret: self.0,
            hash: 0,
        }
    }
}

/// The hasher of one record key.
#[derive(Debug)]
pub struct MapHasher {
    secret: [u64; 2],
    hash: u64,
}

impl Hasher for MapHasher {
    #[expect(clippy::cast_possible_truncation, reason = "the halves of a product")]
    fn write(&mut self, bytes: &[u8]) {
        // A key has two halves. Other input is padded with zeros, because a `Hasher` must accept any.
        let mut halves = bytes.chunks(8).map(|half| {
            let mut word = [0; 8];
            word[..half.len()].copy_from_slice(half);
            u64::from_le_bytes(word)
        });
        let mut half = || halves.next().unwrap_or(0);
        let [left, right] = [half() ^ self.secret[0], half() ^ self.secret[1]];
        // Folded multiplication: the high half mixes in the bits that the low half lacks.
        let product = u128::from(left) * u128::from(right);
        self.hash ^= (product >> 64) as u64 ^ product as u64;
    }

    /// Ignores the length prefix, which is the same for every key.
    fn write_usize(&mut self, _: usize) {}

    fn finish(&self) -> u64 {
        self.hash
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_that_differ_in_one_bit_have_unrelated_hashes() {
        let builder = BuildMapHasher::default();
        let zero = builder.hash_one(RecordKey::from_bytes([0; 16]));
        let mut ends = HashSet::new();
        for bit in 0..128 {
            let key = RecordKey::from_bytes((1_u128 << bit).to_le_bytes());
            let hash = builder.hash_one(key);
            assert_eq!(hash, builder.hash_one(key));
            assert!((hash ^ zero).count_ones() > 8, "{bit}");
            ends.insert((hash & 0xffff, hash >> 57));
        }
        assert!(ends.len() > 110, "{}", ends.len());
    }
}

//! Record identity: a 128-bit hash of a record's canonical form.
//!
//! Invariant: two records have equal keys exactly when their canonical forms are equal. BLAKE3 truncated to 128 bits
//! leaves a second preimage at 2^128 work, so no contributor can make another's record look like a duplicate.

#[cfg(target_arch = "x86_64")]
mod lanes;
mod map;

use std::fmt;

#[cfg(target_arch = "x86_64")]
use self::lanes::Lanes;
pub use self::map::{BuildMapHasher, KeyMap, KeySet};

/// Domain separation for record keys (BLAKE3 `derive_key` context).
const RECORD_KEY_CONTEXT: &str = "sluice 2026-11 record key v1";

/// The 128-bit identity of a record within its dataset.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RecordKey([u8; 16]);

impl RecordKey {
    /// Creates a key from its bytes, as stored in a table.
    pub const fn from_bytes(bytes: [u8; 16]) -> Self {
        Self(bytes)
    }

    /// Returns the 16 bytes of the key.
    pub const fn as_bytes(&self) -> &[u8; 16] {
        &self.0
    }
}

/// 32 lower-case hexadecimal digits.
impl fmt::Display for RecordKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&data_encoding::HEXLOWER.encode(&self.0))
    }
}

impl fmt::Debug for RecordKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// Hashes canonical forms. Cheap to clone, and made once for many records.
#[derive(Clone, Debug)]
pub struct KeyHasher {
    one: blake3::Hasher,
    /// The hasher of several records at a time, if the machine supports it.
    #[cfg(target_arch = "x86_64")]
    many: Option<Lanes>,
}

impl KeyHasher {
    /// Creates a hasher for record keys.
    pub fn new() -> Self {
        Self {
            one: blake3::Hasher::new_derive_key(RECORD_KEY_CONTEXT),
            #[cfg(target_arch = "x86_64")]
            many: Lanes::new(&blake3::hazmat::hash_derive_key_context(RECORD_KEY_CONTEXT)),
        }
    }

    /// Returns the key of a canonical form.
    pub fn key(&mut self, canonical: &[u8]) -> RecordKey {
        // Reusing the hasher avoids hashing the context again.
        self.one.reset();
        self.one.update(canonical);
        // Truncating the default output gives the same bytes as a shorter output, and costs
        // less.
        let mut bytes = [0; 16];
        bytes.copy_from_slice(&self.one.finalize().as_bytes()[..16]);
        RecordKey(bytes)
    }

    /// Returns the keys of canonical forms, in their order. With AVX2, many keys take a third of the time.
    pub fn keys(&mut self, canonical: &[&[u8]]) -> Vec<RecordKey> {
        let mut keys = vec![RecordKey([0; 16]); canonical.len()];
        for row in self.hash_many(canonical, &mut keys) {
            keys[row] = self.key(canonical[row]);
        }
        keys
    }

    /// Hashes groups of rows if the machine supports it, and returns the rows that are left.
    #[cfg(target_arch = "x86_64")]
    fn hash_many(&self, canonical: &[&[u8]], keys: &mut [RecordKey]) -> Vec<usize> {
        match self.many {
            Some(lanes) => lanes.hash(canonical, keys),
            None => (0..canonical.len()).collect(),
        }
    }

    #[cfg(not(target_arch = "x86_64"))]
    #[expect(clippy::unused_self, reason = "it hashes one at a time here")]
    fn hash_many(&self, canonical: &[&[u8]], _: &mut [RecordKey]) -> Vec<usize> {
        (0..canonical.len()).collect()
    }
}

impl Default for KeyHasher {
    fn default() -> Self {
        Self::new()
    }
}

/// A lookup of the record keys of a dataset.
pub trait KeyLookup: fmt::Debug + Send + Sync {
    /// Returns for each key whether the dataset has a record with it.
    fn known(&self, keys: &[RecordKey]) -> Vec<bool>;
}

/// A dataset without records.
#[derive(Clone, Copy, Debug)]
pub struct NoKeys;

impl KeyLookup for NoKeys {
    fn known(&self, keys: &[RecordKey]) -> Vec<bool> {
        vec![false; keys.len()]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn many_keys_are_the_keys_of_each() {
        let text: Vec<u8> = (0_u32..4_096)
            .map(|at| u8::try_from(at * at % 251).unwrap_or(0))
            .collect();
        let mut hasher = KeyHasher::new();
        // Around every block and the end of the chunk, and as few of one length as do not fill the lanes.
        let lengths = (0..1_100).chain([0, 1, 63, 64, 65, 1_023, 1_024, 1_025, 4_096].repeat(3));
        let texts: Vec<&[u8]> = lengths
            .enumerate()
            .map(|(at, length)| &text[at % 7..][..length.min(4_000)])
            .collect();
        for count in [0, 1, 3, 4, 7, 8, 9, texts.len()] {
            let expected: Vec<_> = texts[..count].iter().map(|text| hasher.key(text)).collect();
            assert_eq!(hasher.keys(&texts[..count]), expected);
        }
    }
}

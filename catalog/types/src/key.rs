//! Record identity: a 128-bit hash of a record's canonical form.
//!
//! Invariant: two records have equal keys exactly when their canonical forms are equal. BLAKE3 truncated to 128 bits
//! leaves a second preimage at 2^128 work, so nobody can make another's record look like a duplicate.

use std::fmt;

/// Domain separation for record keys (BLAKE3 `derive_key` context).
const CONTEXT: &str = "sluice 2026-11 record key v1";

/// The 128-bit identity of a record within its dataset.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RecordKey([u8; 16]);

impl RecordKey {
    /// The key with these bytes, as stored in a table.
    pub const fn from_bytes(bytes: [u8; 16]) -> Self {
        Self(bytes)
    }

    /// The 16 bytes of the key.
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

/// Hashes canonical forms; cheap to clone, made once for many records.
#[derive(Clone, Debug)]
pub struct KeyHasher(blake3::Hasher);

impl KeyHasher {
    /// A hasher for record keys.
    pub fn new() -> Self {
        Self(blake3::Hasher::new_derive_key(CONTEXT))
    }

    /// The key of the record with this canonical form.
    pub fn key(&mut self, canonical: &[u8]) -> RecordKey {
        self.0.reset();
        self.0.update(canonical);
        // The first bytes of an output of any length are the same, and those of the usual length cost least.
        let mut bytes = [0; 16];
        bytes.copy_from_slice(&self.0.finalize().as_bytes()[..16]);
        RecordKey(bytes)
    }
}

impl Default for KeyHasher {
    fn default() -> Self {
        Self::new()
    }
}

/// Knows which records a dataset has.
pub trait Known: fmt::Debug + Send + Sync {
    /// For each key, whether the dataset has a record with it.
    fn known(&self, keys: &[RecordKey]) -> Vec<bool>;
}

/// Knows no record: a dataset before its first version.
#[derive(Clone, Copy, Debug)]
pub struct NoneKnown;

impl Known for NoneKnown {
    fn known(&self, keys: &[RecordKey]) -> Vec<bool> {
        vec![false; keys.len()]
    }
}

//! Signatures over the days of the ledger.
//!
//! Invariant: a signature covers the hash of the day before, so the newest one vouches for every day.

use data_encoding::HEXLOWER;
use serde_json::{Map, Value};
use types::Timestamp;

use crate::json::signed_bytes;
use crate::{PublicKey, SignatureBytes, SigningKey};

/// The first line of the signed bytes.
// A format of its own, so that a seal never passes as a manifest or an endorsement.
const SEAL_FORMAT: &str = "sluice-seal-1";

/// The end of a UTC day of the ledger, which a service key signs: `sluice-seal-1`, a line feed, and the canonical form of
/// `{day, before, hash, sealedAt}`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LedgerSeal {
    /// UTC day, counted from 1970-01-01.
    pub day: i64,
    /// Hash of the day before; zeros for the first day.
    pub before: [u8; 32],
    /// Hash of the movements of the day and of `before`.
    pub hash: [u8; 32],
    /// Time of the signature.
    pub sealed_at: Timestamp,
}

impl LedgerSeal {
    /// Signs the seal.
    pub fn sign(&self, key: &SigningKey) -> SignatureBytes {
        key.sign(&self.signed_bytes())
    }

    /// Returns true if the owner of `key` signed the seal.
    pub fn is_signed_by(&self, key: &PublicKey, signature: &SignatureBytes) -> bool {
        // The status of the key is the caller's matter: one that was revoked later has signed all the same.
        key.verifies(&self.signed_bytes(), signature)
    }

    fn signed_bytes(&self) -> Vec<u8> {
        // The members are strings, so their canonical form needs no number formatting.
        let members = [
            ("day", self.day.to_string()),
            ("before", HEXLOWER.encode(&self.before)),
            ("hash", HEXLOWER.encode(&self.hash)),
            ("sealedAt", self.sealed_at.to_string()),
        ];
        let members: Map<_, _> = members
            .into_iter()
            .map(|(name, text)| (name.to_owned(), Value::String(text)))
            .collect();
        signed_bytes(SEAL_FORMAT, members)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_signature_covers_every_member() {
        let key = SigningKey::from_secret(&[7; 32]);
        let seal = LedgerSeal {
            day: 20_782,
            before: [1; 32],
            hash: [2; 32],
            sealed_at: Timestamp::from_micros(1_795_651_800_000_000),
        };
        let signature = seal.sign(&key);
        assert!(seal.is_signed_by(&key.public_key(), &signature));
        // Each member by itself, because one that is not signed could be exchanged.
        let altered = [
            LedgerSeal { day: 20_783, ..seal },
            LedgerSeal {
                before: [2; 32],
                ..seal
            },
            LedgerSeal { hash: [1; 32], ..seal },
            LedgerSeal {
                sealed_at: Timestamp::from_micros(0),
                ..seal
            },
        ];
        for altered in altered {
            assert!(!altered.is_signed_by(&key.public_key(), &signature), "{altered:?}");
        }
        let other = SigningKey::from_secret(&[8; 32]);
        assert!(!seal.is_signed_by(&other.public_key(), &signature));
    }
}

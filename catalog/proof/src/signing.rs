//! The secret half of a service key, and endorsements of other keys.
//!
//! Invariant: the secret is exposed only by the method that stores it.

use std::fmt;

use ed25519_dalek::Signer as _;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use types::Timestamp;

use crate::json::signed_bytes;
use crate::{Error, KeyId, PublicKey, SignatureBytes};

/// The first line of an endorsement's signed bytes.
const ENDORSEMENT_CONTEXT: &str = "sluice-key-1";

/// The algorithm that signs manifests and keys documents.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum Algorithm {
    /// Ed25519 without prehashing (RFC 8032).
    #[default]
    Ed25519,
}

/// A key that signs: 32 secret bytes.
#[derive(Clone)]
pub struct SigningKey(ed25519_dalek::SigningKey);

impl SigningKey {
    /// Creates a key from random bytes of the operating system.
    pub fn generate() -> Result<Self, Error> {
        let mut secret = [0; 32];
        getrandom::fill(&mut secret).map_err(Error::Randomness)?;
        Ok(Self::from_secret(&secret))
    }

    /// Creates a key from its secret bytes, the seed of RFC 8032 section 5.1.5.
    pub fn from_secret(secret: &[u8; 32]) -> Self {
        Self(ed25519_dalek::SigningKey::from_bytes(secret))
    }

    /// Returns the secret bytes, to be stored where only the service can read them.
    pub fn secret(&self) -> [u8; 32] {
        self.0.to_bytes()
    }

    /// Returns the public half.
    pub fn public_key(&self) -> PublicKey {
        PublicKey::from_bytes(self.0.verifying_key().to_bytes())
    }

    /// Returns the id of the key.
    pub fn key_id(&self) -> KeyId {
        KeyId::of(&self.public_key())
    }

    /// Endorses the key that follows this one.
    pub fn endorse(&self, next: &PublicKey, created_at: Timestamp) -> Endorsement {
        let by = self.key_id();
        Endorsement {
            by,
            value: self.sign(&endorsed_bytes(next, created_at, by)),
        }
    }

    pub(crate) fn sign(&self, message: &[u8]) -> SignatureBytes {
        SignatureBytes::from_bytes(self.0.sign(message).to_bytes())
    }
}

/// Shows the id of the key, never the secret.
impl fmt::Debug for SigningKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("SigningKey").field(&self.key_id()).finish()
    }
}

/// A key's signature over the key that follows it: `sluice-key-1`, a line feed, and the canonical form of
/// `{keyId, publicKey, createdAt, by}` of the new key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Endorsement {
    /// The id of the key that signed the endorsement.
    #[schemars(with = "String")]
    pub by: KeyId,
    /// The signature: Base64 of 64 bytes.
    #[schemars(with = "String")]
    pub value: SignatureBytes,
}

impl Endorsement {
    /// Returns true if the owner of `by` signed that `key`, created at `created_at`, follows.
    pub(crate) fn holds(&self, by: &PublicKey, key: &PublicKey, created_at: Timestamp) -> bool {
        self.by == KeyId::of(by) && by.verifies(&endorsed_bytes(key, created_at, self.by), &self.value)
    }
}

fn endorsed_bytes(key: &PublicKey, created_at: Timestamp, by: KeyId) -> Vec<u8> {
    // The members are strings, so their canonical form needs no number formatting.
    let members = [
        ("keyId", KeyId::of(key).to_string()),
        ("publicKey", key.to_string()),
        ("createdAt", created_at.to_string()),
        ("by", by.to_string()),
    ];
    let members: Map<_, _> = members
        .into_iter()
        .map(|(name, text)| (name.to_owned(), Value::String(text)))
        .collect();
    signed_bytes(ENDORSEMENT_CONTEXT, members)
}

//! The document of service keys: every key there ever was, each vouched for by the one before it.
//!
//! Invariant: the document only grows. A key in it never disappears and never becomes current again, so whoever has
//! seen a later document knows a replayed one.

mod check;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use types::Timestamp;

use crate::json::{members, signed_bytes};
use crate::{Algorithm, Endorsement, Error, KeyId, PublicKey, SignatureBytes, SigningKey, time};

/// What the document is called in errors.
const WHAT: &str = "keys document";

/// `GET /.well-known/service-keys`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct KeysDocument {
    /// The version of this form.
    pub format: KeysFormat,
    /// Grows by one with every creation, rotation and revocation.
    pub sequence: u64,
    /// When the service answered: RFC 3339 in UTC.
    #[serde(with = "time")]
    #[schemars(with = "String")]
    pub issued_at: Timestamp,
    /// Oldest first; the last is the current one.
    pub keys: Vec<Key>,
    /// By the current key over `sluice-keys-1`, a line feed, and the canonical form of the document without this.
    pub signature: KeysSignature,
}

/// The version of a keys document's form.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum KeysFormat {
    /// The only one so far.
    #[default]
    #[serde(rename = "sluice-keys-1")]
    V1,
}

impl KeysFormat {
    /// The version's name, which the signed bytes begin with.
    pub const fn name(self) -> &'static str {
        match self {
            Self::V1 => "sluice-keys-1",
        }
    }
}

/// A service key.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[expect(clippy::struct_field_names, reason = "the names of the document")]
pub struct Key {
    /// The first 16 hexadecimal digits of the SHA-256 of the public key's bytes.
    #[schemars(with = "String")]
    pub key_id: KeyId,
    /// How it signs.
    pub algorithm: Algorithm,
    /// Base64 of 32 bytes.
    #[schemars(with = "String")]
    pub public_key: PublicKey,
    /// What it may sign.
    pub status: Status,
    /// When it was made.
    #[serde(with = "time")]
    #[schemars(with = "String")]
    pub created_at: Timestamp,
    /// Until when it signed, where it does not sign any more. Whoever rotates under load sets this a little ahead, so
    /// that what is being signed meanwhile still counts.
    #[serde(default, with = "time::optional", skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>")]
    pub retired_at: Option<Timestamp>,
    /// When it was revoked.
    #[serde(default, with = "time::optional", skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>")]
    pub revoked_at: Option<Timestamp>,
    /// Why it was revoked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// By the key before it; null for the first.
    pub endorsement: Option<Endorsement>,
}

impl Key {
    /// A key that is current.
    pub fn new(public_key: PublicKey, created_at: Timestamp, endorsement: Option<Endorsement>) -> Self {
        Self {
            key_id: KeyId::of(&public_key),
            algorithm: Algorithm::Ed25519,
            public_key,
            status: Status::Current,
            created_at,
            retired_at: None,
            revoked_at: None,
            reason: None,
            endorsement,
        }
    }
}

/// What a key may sign.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Status {
    /// It signs now.
    Current,
    /// What it signed until `retiredAt` counts.
    Retired,
    /// Nothing that it signed counts, whatever time it claims. Its endorsement of a key made until `revokedAt` counts.
    Revoked,
}

/// The signature of a keys document.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct KeysSignature {
    /// The current key.
    #[schemars(with = "String")]
    pub key_id: KeyId,
    /// The current key: Base64 of 32 bytes.
    #[schemars(with = "String")]
    pub public_key: PublicKey,
    /// The signature: Base64 of 64 bytes.
    #[schemars(with = "String")]
    pub value: SignatureBytes,
}

impl KeysDocument {
    /// Signs a document with the current key, which is the last of `keys`.
    ///
    /// # Errors
    /// Where a verifier would refuse the document.
    pub fn sign(sequence: u64, issued_at: Timestamp, keys: Vec<Key>, current: &SigningKey) -> Result<Self, Error> {
        let mut document = Self {
            format: KeysFormat::V1,
            sequence,
            issued_at,
            keys,
            signature: KeysSignature {
                key_id: current.key_id(),
                public_key: current.public_key(),
                value: SignatureBytes::from_bytes([0; 64]),
            },
        };
        let mut signed = members(WHAT, &document)?;
        signed.remove("signature");
        document.signature.value = current.sign(&signed_bytes(document.format.name(), signed));
        check::document(&document)?;
        Ok(document)
    }
}

/// A keys document that holds: its chain of endorsements reaches back to its first key and the current key signed it.
///
/// That says nothing yet of whose document it is: see [`Keys::begins_with`] and [`Keys::follows`].
#[derive(Clone, Debug)]
pub struct Keys {
    received: Map<String, Value>,
    document: KeysDocument,
}

impl Keys {
    /// The document as it is understood.
    pub const fn document(&self) -> &KeysDocument {
        &self.document
    }

    /// The document as it was received, as indented JSON, to be kept.
    pub fn to_json(&self) -> String {
        // Why: a JSON object has text keys and no infinite number, so it can always be written.
        serde_json::to_string_pretty(&self.received).unwrap_or_default()
    }

    /// The key with this name.
    pub fn get(&self, key: KeyId) -> Option<&Key> {
        self.document.keys.iter().find(|entry| entry.key_id == key)
    }

    /// The first key: the one to trust or not.
    pub fn first(&self) -> &Key {
        &self.document.keys[0]
    }
}

#[cfg(test)]
mod tests;

//! The document of service keys: every key that ever existed, each endorsed by the one before it.
//!
//! Invariant: the document only grows. A key never disappears from it and never becomes current again, so a client that
//! has seen a later document recognises a replayed one.

mod check;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use types::Timestamp;

use crate::json::{members, signed_bytes};
use crate::{Algorithm, Endorsement, Error, KeyId, PublicKey, SignatureBytes, SigningKey, time};

/// The name of the document in errors.
const DOCUMENT_NAME: &str = "keys document";

/// The body of `GET /.well-known/service-keys`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct KeysDocument {
    /// The version of the document format.
    pub format: KeysFormat,
    /// Grows by one with every creation, rotation and revocation.
    pub sequence: u64,
    /// Time of the answer: RFC 3339 in UTC.
    #[serde(with = "time")]
    #[schemars(with = "String")]
    pub issued_at: Timestamp,
    /// All keys, oldest first; the last is the current one.
    pub keys: Vec<Key>,
    /// The current key's signature over `sluice-keys-1`, a line feed, and the canonical form of the document without
    /// this member.
    pub signature: KeysSignature,
}

/// The version of the format of a keys document.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum KeysFormat {
    /// The first version of the format.
    #[default]
    #[serde(rename = "sluice-keys-1")]
    V1,
}

impl KeysFormat {
    /// Returns the name of the version, with which the signed bytes begin.
    pub const fn name(self) -> &'static str {
        match self {
            Self::V1 => "sluice-keys-1",
        }
    }
}

/// A service key with its history.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[expect(clippy::struct_field_names, reason = "the names of the document")]
pub struct Key {
    /// The first 16 hexadecimal digits of the SHA-256 of the public key's bytes.
    #[schemars(with = "String")]
    pub key_id: KeyId,
    /// The signature algorithm of the key.
    pub algorithm: Algorithm,
    /// The public key: Base64 of 32 bytes.
    #[schemars(with = "String")]
    pub public_key: PublicKey,
    /// The state of the key.
    pub status: Status,
    /// Time of creation: RFC 3339 in UTC.
    #[serde(with = "time")]
    #[schemars(with = "String")]
    pub created_at: Timestamp,
    /// Time of retirement; absent while the key is current. A rotation under load sets it slightly in the future, so
    /// that signatures being made meanwhile still count.
    #[serde(default, with = "time::optional", skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>")]
    pub retired_at: Option<Timestamp>,
    /// Time of revocation; absent unless the key is revoked.
    #[serde(default, with = "time::optional", skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>")]
    pub revoked_at: Option<Timestamp>,
    /// Reason of the revocation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// The endorsement by the key before it; null for the first key.
    pub endorsement: Option<Endorsement>,
}

impl Key {
    /// Creates a current key.
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

/// The state of a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Status {
    /// The key signs now.
    Current,
    /// Signatures made until `retiredAt` count.
    Retired,
    /// No signature of the key counts, whatever time it claims. Its endorsement of a key created until `revokedAt`
    /// counts.
    Revoked,
}

/// The signature of a keys document.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct KeysSignature {
    /// The id of the current key.
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
    /// The rule that a verifier would refuse the document for.
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
        let mut signed = members(DOCUMENT_NAME, &document)?;
        signed.remove("signature");
        document.signature.value = current.sign(&signed_bytes(document.format.name(), signed));
        check::document(&document)?;
        Ok(document)
    }
}

/// A keys document whose chain of endorsements reaches back to its first key, and which the current key signed.
///
/// This does not prove whose document it is: see [`Keys::begins_with`] and [`Keys::follows`].
#[derive(Clone, Debug)]
pub struct Keys {
    received: Map<String, Value>,
    document: KeysDocument,
}

impl Keys {
    /// Returns the parsed document.
    pub const fn document(&self) -> &KeysDocument {
        &self.document
    }

    /// Returns the received document as indented JSON, to be stored.
    pub fn to_json(&self) -> String {
        // A JSON object has text keys and no infinite number, so writing cannot fail.
        serde_json::to_string_pretty(&self.received).unwrap_or_default()
    }

    /// Returns the key with this id.
    pub fn get(&self, key: KeyId) -> Option<&Key> {
        self.document.keys.iter().find(|entry| entry.key_id == key)
    }

    /// Returns the first key, the one to trust or not.
    pub fn first(&self) -> &Key {
        &self.document.keys[0]
    }
}

#[cfg(test)]
mod tests;

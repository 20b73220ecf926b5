//! Signatures of documents by a service key, and the right of the key to make them.
//!
//! Invariant: a signature counts only if its key is in the keys document, is not revoked, and was not retired at the
//! time of issue.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use types::Timestamp;

use crate::{Algorithm, Error, Key, KeyId, Keys, PublicKey, SignatureBytes, SigningKey, Status, time};

/// The signature of a document: over the name of its format, a line feed, and the canonical form of the document without
/// this member. In a manifest `urlsExpireAt` and the `url` of each part are left out too.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Signature {
    /// Algorithm of the signature.
    pub algorithm: Algorithm,
    /// The id of the signing key.
    #[schemars(with = "String")]
    pub key_id: KeyId,
    /// The signing key: Base64 of 32 bytes.
    #[schemars(with = "String")]
    pub public_key: PublicKey,
    /// The signature: Base64 of 64 bytes.
    #[schemars(with = "String")]
    pub value: SignatureBytes,
    /// The endorsement of the signing key; null for the first key.
    pub endorsement: Option<KeyEndorsement>,
}

/// The endorsement of the key that signed a document.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct KeyEndorsement {
    /// The id of the key that signed the endorsement.
    #[schemars(with = "String")]
    pub by: KeyId,
    /// The signature: Base64 of 64 bytes.
    #[schemars(with = "String")]
    pub value: SignatureBytes,
    /// Time of creation of the endorsed key.
    #[serde(with = "time")]
    #[schemars(with = "String")]
    pub created_at: Timestamp,
}

impl KeyEndorsement {
    fn of(key: &Key) -> Option<Self> {
        key.endorsement.map(|endorsement| Self {
            by: endorsement.by,
            value: endorsement.value,
            created_at: key.created_at,
        })
    }
}

impl Signature {
    /// Signs bytes with `secret`, the private half of `key`.
    ///
    /// # Errors
    /// [`Error::OtherPublicKey`] if the halves do not match.
    pub(crate) fn make(secret: &SigningKey, key: &Key, bytes: &[u8]) -> Result<Self, Error> {
        if secret.public_key() != key.public_key {
            return Err(Error::OtherPublicKey { key: key.key_id });
        }
        Ok(Self {
            algorithm: Algorithm::Ed25519,
            key_id: key.key_id,
            public_key: key.public_key,
            value: secret.sign(bytes),
            endorsement: KeyEndorsement::of(key),
        })
    }

    /// Verifies the signature over the bytes of a document of the kind `what`, and the right of the key to make it.
    pub(crate) fn check(
        &self,
        what: &'static str,
        issued_at: Timestamp,
        keys: &Keys,
        bytes: &[u8],
    ) -> Result<(), Error> {
        let named = self.key_id;
        let key = keys.get(named).ok_or(Error::UnknownKey { what, key: named })?;
        if self.public_key != key.public_key {
            return Err(Error::OtherPublicKey { key: named });
        }
        // Revocation is checked first, because a stolen key can sign anything, with any time of
        // issue.
        if let (Status::Revoked, Some(at)) = (key.status, key.revoked_at) {
            return Err(Error::Revoked {
                what,
                key: named,
                at,
                reason: key.reason.clone().unwrap_or_default(),
            });
        }
        // The endorsement is not signed by the document's key, so it is compared with the verified
        // document of keys.
        if self.endorsement != KeyEndorsement::of(key) {
            return Err(Error::Chain {
                key: named,
                problem: "the endorsement in the document is not the one in the keys document",
            });
        }
        if !key.public_key.verifies(bytes, &self.value) {
            return Err(Error::Signature { what });
        }
        // A retired key still counts for documents that were issued before its retirement.
        match key.retired_at {
            Some(at) if issued_at > at => Err(Error::Retired {
                what,
                key: named,
                at,
                issued_at,
            }),
            _ => Ok(()),
        }
    }
}

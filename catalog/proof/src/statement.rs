//! Statements that a service key signs: the signature, and the right of a key to make it.
//!
//! Invariant: a statement is verified as it was received. Members that this build does not know are signed too.

use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use types::{Timestamp, canonical};

use crate::json::{members, object, signed_bytes, typed};
use crate::{Algorithm, Error, Key, KeyId, Keys, PublicKey, SignatureBytes, SigningKey, Status, time};

/// The signature of a document by a service key.
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
    pub(crate) fn over(bytes: &[u8], secret: &SigningKey, key: &Key) -> Result<Self, Error> {
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

    /// Verifies the signature over bytes of a document of this name and time of issue, and the right of the key to make it.
    ///
    /// # Errors
    /// The rule that is broken.
    pub(crate) fn holds(
        &self,
        what: &'static str,
        issued_at: Timestamp,
        bytes: &[u8],
        keys: &Keys,
    ) -> Result<(), Error> {
        let named = self.key_id;
        let key = keys.get(named).ok_or(Error::UnknownKey { what, key: named })?;
        if self.public_key != key.public_key {
            return Err(Error::OtherPublicKey { key: named });
        }
        // Before the signature is looked at: a stolen key can sign anything, with any time of issue.
        key.may_sign(what, issued_at)?;
        // The endorsement is not signed by the document's key, so it is compared with the verified
        // document of the keys.
        if self.endorsement != KeyEndorsement::of(key) {
            return Err(Error::Chain {
                key: named,
                problem: "its endorsement here is not the one in the keys document",
            });
        }
        if key.public_key.verifies(bytes, &self.value) {
            Ok(())
        } else {
            Err(Error::Signature { what })
        }
    }
}

impl Key {
    /// Verifies that signatures of this key over a document of this name and time of issue count.
    ///
    /// # Errors
    /// [`Error::Revoked`], [`Error::Retired`].
    pub(crate) fn may_sign(&self, what: &'static str, issued_at: Timestamp) -> Result<(), Error> {
        if let (Status::Revoked, Some(at)) = (self.status, self.revoked_at) {
            return Err(Error::Revoked {
                what,
                key: self.key_id,
                at,
                reason: self.reason.clone().unwrap_or_default(),
            });
        }
        // A retired key still counts for documents that were issued before its retirement.
        match self.retired_at {
            Some(at) if issued_at > at => Err(Error::Retired {
                what,
                key: self.key_id,
                at,
                issued_at,
            }),
            _ => Ok(()),
        }
    }
}

/// A kind of statement that a service key signs. Its members include `format` and `issuedAt`, and not `signature`.
pub trait Statement: Serialize + DeserializeOwned {
    /// The format, with which the signed bytes begin. It is the value of the member `format`.
    const FORMAT: &'static str;
    /// The name of such a statement in errors.
    const NAME: &'static str;

    /// Returns the time of signing.
    fn issued_at(&self) -> Timestamp;

    /// Checks the rules of the members that their types do not hold.
    ///
    /// # Errors
    /// The member that breaks one, as a JSON pointer, and the rule.
    fn check(&self) -> Result<(), (&'static str, &'static str)> {
        Ok(())
    }
}

fn checked<T: Statement>(statement: &T) -> Result<(), Error> {
    statement.check().map_err(|(path, problem)| Error::Malformed {
        what: T::NAME,
        path: path.to_owned(),
        problem: problem.to_owned(),
    })
}

/// A statement with its signature: over the format, a line feed, and the canonical form of the statement.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[schemars(rename = "Signed{T}")]
pub struct SignedStatement<T> {
    /// The statement that is signed.
    #[serde(flatten)]
    pub statement: T,
    /// The signature over it.
    pub signature: Signature,
}

impl<T: Statement> SignedStatement<T> {
    /// Signs a statement with `secret`, the private half of `key`.
    ///
    /// # Errors
    /// The rule that a verifier would refuse the statement for, or [`Error::OtherPublicKey`] if the halves do not match.
    pub fn sign(statement: T, secret: &SigningKey, key: &Key) -> Result<Self, Error> {
        checked(&statement)?;
        let bytes = signed_bytes(T::FORMAT, members(T::NAME, &statement)?);
        Ok(Self {
            signature: Signature::over(&bytes, secret, key)?,
            statement,
        })
    }

    /// Returns the canonical form of the whole, in which it is stored and sent.
    ///
    /// # Errors
    /// A statement that is no JSON object.
    pub fn text(&self) -> Result<String, Error> {
        let mut text = Vec::new();
        canonical::write_value(&mut text, &Value::Object(members(T::NAME, self)?));
        String::from_utf8(text).map_err(|error| Error::Malformed {
            what: T::NAME,
            path: String::new(),
            problem: error.to_string(),
        })
    }
}

/// A statement that was signed by a key with the right to.
#[derive(Clone, Debug)]
pub struct VerifiedStatement<T> {
    statement: T,
    key: KeyId,
}

impl<T: Statement> VerifiedStatement<T> {
    /// Parses a signed statement and verifies that a key in `keys` signed it and may do so.
    ///
    /// # Errors
    /// The rule that is broken.
    pub fn parse(text: &[u8], keys: &Keys) -> Result<Self, Error> {
        let mut signed = object(T::NAME, text)?;
        let signature = signed.remove("signature").unwrap_or(Value::Null);
        let signature: Signature = typed(T::NAME, "/signature", signature)?;
        let statement: T = typed(T::NAME, "", Value::Object(signed.clone()))?;
        let bytes = signed_bytes(T::FORMAT, signed);
        signature.holds(T::NAME, statement.issued_at(), &bytes, keys)?;
        checked(&statement)?;
        Ok(Self {
            statement,
            key: signature.key_id,
        })
    }

    /// Returns the statement.
    pub const fn statement(&self) -> &T {
        &self.statement
    }

    /// Returns the id of the signing key.
    pub const fn key(&self) -> KeyId {
        self.key
    }
}

//! Statements that a service key signs: one JSON object with the name of its format, such as a receipt.
//!
//! Invariant: [`VerifiedStatement`] is created only here, from a statement whose key had the right to sign it. Its
//! signature covers every member as received.

use schemars::JsonSchema;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};
use types::Timestamp;

use crate::json::{members, object, signed_bytes, typed};
use crate::signature::Signature;
use crate::{Error, Key, KeyId, Keys, SigningKey};

/// Members of a kind of statement. One of them is `format`, whose only value is [`Self::FORMAT`].
pub trait Statement: Serialize + DeserializeOwned {
    /// The kind of document in errors, such as "query receipt".
    const NAME: &'static str;
    /// The name of the format, with which the signed bytes begin.
    const FORMAT: &'static str;

    /// Returns the time of signing.
    fn issued_at(&self) -> Timestamp;

    /// Checks the rules that hold between members.
    ///
    /// # Errors
    /// The rule that a verifier refuses the statement for.
    fn check(&self) -> Result<(), Error> {
        Ok(())
    }
}

/// A statement with its signature, ready to be sent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[schemars(rename = "Signed{S}")]
pub struct SignedStatement<S> {
    /// The statement.
    #[serde(flatten)]
    pub statement: S,
    /// The signature over the statement.
    pub signature: Signature,
}

impl<S: Statement> SignedStatement<S> {
    /// Signs a statement with `secret`, the private half of `key`.
    ///
    /// # Errors
    /// The rule that a verifier would refuse the statement for, or [`Error::OtherPublicKey`] if the halves do not match.
    pub fn sign(statement: S, secret: &SigningKey, key: &Key) -> Result<Self, Error> {
        statement.check()?;
        let bytes = signed_bytes(S::FORMAT, members(S::NAME, &statement)?);
        let signature = Signature::make(secret, key, &bytes)?;
        Ok(Self { statement, signature })
    }
}

/// A statement that was signed by a key with the right to.
#[derive(Clone, Debug)]
pub struct VerifiedStatement<S> {
    received: Map<String, Value>,
    statement: S,
    key: KeyId,
}

impl<S: Statement> VerifiedStatement<S> {
    /// Parses a statement and verifies that a key in `keys` signed it and may do so.
    ///
    /// # Errors
    /// The rule that the statement breaks, or the reason for which its signature does not count.
    pub fn parse(text: &[u8], keys: &Keys) -> Result<Self, Error> {
        let received = object(S::NAME, text)?;
        let mut signed = received.clone();
        let signature = signed.remove("signature").unwrap_or(Value::Null);
        let signature: Signature = typed(S::NAME, "/signature", signature)?;
        let statement: S = typed(S::NAME, "", signed.clone().into())?;
        let bytes = signed_bytes(S::FORMAT, signed);
        signature.check(S::NAME, statement.issued_at(), keys, &bytes)?;
        statement.check()?;
        Ok(Self {
            received,
            statement,
            key: signature.key_id,
        })
    }

    /// Returns the parsed statement.
    pub const fn statement(&self) -> &S {
        &self.statement
    }

    /// Returns the id of the signing key.
    pub const fn key(&self) -> KeyId {
        self.key
    }

    /// Returns the received statement, with members that this build does not know.
    pub const fn received(&self) -> &Map<String, Value> {
        &self.received
    }
}

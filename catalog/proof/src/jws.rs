//! Signatures in the form of the web: compact JWS (RFC 7515) with `EdDSA` (RFC 8037), and the keys as a DID document.
//!
//! Invariants:
//! - The signed bytes begin with `eyJ`, the Base64 of `{"`, and those of every other format with `sluice-`: a signature of one
//!   never passes as one of the other.
//! - A key that was revoked is in no DID document: who resolves a key there knows no revocations.

use data_encoding::BASE64URL_NOPAD;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use types::{Timestamp, canonical};

use crate::json::{object, typed};
use crate::{Error, Key, KeyId, Keys, SignatureBytes, SigningKey, Status};

/// The name of such a signature in errors.
const JWS_NAME: &str = "JWS";
/// The algorithm of the header (RFC 8037 section 3.1).
const JWS_ALGORITHM: &str = "EdDSA";
/// Most bytes of a compact JWS. A longer one is not looked at.
const MAX_JWS_BYTES: usize = 64 << 10;

/// The identifier of a service as `did:web`: its host, with the port unless it is the usual one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServiceDid(String);

impl ServiceDid {
    /// Returns the identifier of the service at an origin, such as `https://sluice.example`.
    pub fn of_origin(origin: &str) -> Self {
        let host = origin.split_once("://").map_or(origin, |(_, rest)| rest);
        let host = host.split('/').next().unwrap_or_default();
        // The colon of a port would end the host (did:web section 3.2).
        Self(format!("did:web:{}", host.to_ascii_lowercase().replace(':', "%3A")))
    }

    /// Returns the identifier as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns the address of a key within the document: what the header of a signature names.
    pub fn key(&self, key: KeyId) -> String {
        format!("{}#{key}", self.0)
    }
}

/// Signs a payload, as canonical JSON, in the compact form.
pub fn sign(payload: &Map<String, Value>, did: &ServiceDid, secret: &SigningKey) -> String {
    let header = json!({"alg": JWS_ALGORITHM, "kid": did.key(secret.key_id())});
    let part = |value: &Value| {
        let mut text = Vec::new();
        canonical::write_value(&mut text, value);
        BASE64URL_NOPAD.encode(&text)
    };
    let signed = format!("{}.{}", part(&header), part(&Value::Object(payload.clone())));
    let signature = secret.sign(signed.as_bytes());
    format!("{signed}.{}", BASE64URL_NOPAD.encode(signature.as_bytes()))
}

/// The header of a signature.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct JwsHeader {
    alg: String,
    kid: String,
}

/// A compact JWS, taken apart. Its signature is not verified yet.
#[derive(Clone, Debug)]
pub struct CompactJws {
    did: ServiceDid,
    key: KeyId,
    payload: Map<String, Value>,
    signed: Vec<u8>,
    signature: SignatureBytes,
}

impl CompactJws {
    /// Takes a compact JWS apart.
    ///
    /// # Errors
    /// [`Error::Malformed`], if it is not of this form, names no key of a `did:web`, or has another algorithm.
    pub fn parse(text: &str) -> Result<Self, Error> {
        if text.len() > MAX_JWS_BYTES {
            return Err(malformed("", "is longer than 64 KiB"));
        }
        let parts: Vec<&str> = text.split('.').collect();
        let [header, payload, signature] = parts.as_slice() else {
            return Err(malformed("", "is not three parts with dots between them"));
        };
        let decoded = |part: &str, path: &str| {
            let bytes = BASE64URL_NOPAD.decode(part.as_bytes());
            bytes.map_err(|_error| malformed(path, "is not Base64 for URLs without padding (RFC 4648 section 5)"))
        };
        let members = object(JWS_NAME, &decoded(header, "/header")?)?;
        let JwsHeader { alg, kid } = typed(JWS_NAME, "/header", Value::Object(members))?;
        if alg != JWS_ALGORITHM {
            return Err(malformed("/header/alg", "is not `EdDSA`"));
        }
        let (did, key) = kid
            .split_once('#')
            .filter(|(did, _)| did.starts_with("did:web:"))
            .ok_or_else(|| malformed("/header/kid", "is not `did:web:`, a host, `#` and the id of a key"))?;
        let key = key
            .parse()
            .map_err(|_error| malformed("/header/kid", "does not end with the id of a key"))?;
        let signature: [u8; 64] = decoded(signature, "/signature")?
            .try_into()
            .map_err(|_error| malformed("/signature", "is not 64 bytes"))?;
        Ok(Self {
            did: ServiceDid(did.to_owned()),
            key,
            payload: object(JWS_NAME, &decoded(payload, "/payload")?)?,
            signed: format!("{header}.{payload}").into_bytes(),
            signature: SignatureBytes::from_bytes(signature),
        })
    }

    /// Returns the service whose key it names.
    pub const fn did(&self) -> &ServiceDid {
        &self.did
    }

    /// Returns the key that it names.
    pub const fn key(&self) -> KeyId {
        self.key
    }

    /// Returns the payload.
    pub const fn payload(&self) -> &Map<String, Value> {
        &self.payload
    }

    /// Verifies the signature, made at `issued_at`, and the right of the key to make it.
    ///
    /// # Errors
    /// The rule that is broken.
    pub fn holds(&self, what: &'static str, issued_at: Timestamp, keys: &Keys) -> Result<(), Error> {
        let key = keys.get(self.key).ok_or(Error::UnknownKey { what, key: self.key })?;
        key.may_sign(what, issued_at)?;
        if key.public_key.verifies(&self.signed, &self.signature) {
            Ok(())
        } else {
            Err(Error::Signature { what })
        }
    }
}

fn malformed(path: &str, problem: &str) -> Error {
    Error::Malformed {
        what: JWS_NAME,
        path: path.to_owned(),
        problem: problem.to_owned(),
    }
}

/// The body of `GET /.well-known/did.json`: the keys that count, for who verifies a JWS of the service (W3C DID Core 1.0).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct DidDocument {
    /// The vocabularies of the document.
    #[serde(rename = "@context")]
    pub context: [&'static str; 2],
    /// The identifier of the service.
    pub id: String,
    /// The current key and the retired ones, oldest first. A revoked one is left out.
    pub verification_method: Vec<VerificationMethod>,
    /// The current key, which signs offers and receipts now.
    pub assertion_method: Vec<String>,
}

/// A key of a DID document.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct VerificationMethod {
    /// The address of the key: the identifier of the service, `#`, and the id of the key.
    pub id: String,
    /// `JsonWebKey2020`.
    #[serde(rename = "type")]
    pub kind: &'static str,
    /// The identifier of the service.
    pub controller: String,
    /// The public key (RFC 8037 section 2).
    pub public_key_jwk: OctetKeyPair,
}

/// An Ed25519 public key as a JSON Web Key.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct OctetKeyPair {
    /// `OKP`.
    pub kty: &'static str,
    /// `Ed25519`.
    pub crv: &'static str,
    /// The key: Base64 for URLs of 32 bytes.
    pub x: String,
    /// The id of the key.
    pub kid: String,
}

impl DidDocument {
    /// Returns the document of a service with these keys, oldest first.
    pub fn of_keys(did: &ServiceDid, keys: &[Key]) -> Self {
        let counting = |key: &&Key| key.status != Status::Revoked;
        let method = |key: &Key| VerificationMethod {
            id: did.key(key.key_id),
            kind: "JsonWebKey2020",
            controller: did.as_str().to_owned(),
            public_key_jwk: OctetKeyPair {
                kty: "OKP",
                crv: "Ed25519",
                x: BASE64URL_NOPAD.encode(key.public_key.as_bytes()),
                kid: key.key_id.to_string(),
            },
        };
        let current = keys.iter().filter(|key| key.status == Status::Current);
        Self {
            context: [
                "https://www.w3.org/ns/did/v1",
                "https://w3id.org/security/suites/jws-2020/v1",
            ],
            id: did.as_str().to_owned(),
            verification_method: keys.iter().filter(counting).map(method).collect(),
            assertion_method: current.map(|key| did.key(key.key_id)).collect(),
        }
    }
}

#[cfg(test)]
mod tests;

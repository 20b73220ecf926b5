//! Public keys of clients (RFC 7517, RFC 7518, RFC 8037) and signatures by them.
//!
//! Invariant: the key decides about the algorithm, never the signed text. A key is P-256, RSA of 2,048 to 4,096 bits or
//! Ed25519; a set with a symmetric or a private key is refused as a whole, because its owner has given a secret away.

use data_encoding::BASE64URL_NOPAD;
use ring::signature::{
    ECDSA_P256_SHA256_FIXED, ED25519, RSA_PKCS1_2048_8192_SHA256, RsaPublicKeyComponents, UnparsedPublicKey,
};
use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::Value;

/// Most keys of a set.
const MAX_KEYS: usize = 20;

/// Signature algorithm of a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum JwkAlgorithm {
    /// ECDSA with P-256 and SHA-256.
    Es256,
    /// RSASSA-PKCS1-v1_5 with SHA-256 (RFC 7518 section 3.3).
    Rs256,
    /// `EdDSA` with the curve Ed25519 (RFC 8037).
    EdDsa,
}

impl JwkAlgorithm {
    /// The words of the algorithms, as metadata list them.
    pub const WORDS: [&'static str; 3] = ["ES256", "RS256", "EdDSA"];

    /// Returns the algorithm of a word in `alg`. `Ed25519` is the name that RFC 9864 gives to `EdDSA` with that curve.
    pub fn parse(word: &str) -> Option<Self> {
        match word {
            "ES256" => Some(Self::Es256),
            "RS256" => Some(Self::Rs256),
            "EdDSA" | "Ed25519" => Some(Self::EdDsa),
            _ => None,
        }
    }
}

/// A public key that verifies by one algorithm.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JwkKey {
    id: Option<String>,
    material: KeyMaterial,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum KeyMaterial {
    /// An uncompressed point: the byte 4 and both coordinates.
    P256(Vec<u8>),
    Rsa {
        modulus: Vec<u8>,
        exponent: Vec<u8>,
    },
    Ed25519(Vec<u8>),
}

/// The usable keys of a set.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JwkSet(Vec<JwkKey>);

/// Rule that a set of keys breaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum KeysError {
    /// The text is not a JSON Web Key Set with 1 to 20 keys.
    #[error("not a JSON Web Key Set with 1 to 20 keys")]
    Form,
    /// The set contains a symmetric or a private key.
    #[error("the set contains a secret")]
    Secret,
    /// No key can verify ES256, RS256 or `EdDSA`.
    #[error("no key can verify ES256, RS256 or EdDSA")]
    Unusable,
}

#[derive(Deserialize)]
struct RawSet {
    keys: Vec<Value>,
}

#[derive(Deserialize)]
struct RawJwk {
    kty: String,
    #[serde(default)]
    crv: Option<String>,
    #[serde(default)]
    x: Option<String>,
    #[serde(default)]
    y: Option<String>,
    #[serde(default)]
    n: Option<String>,
    #[serde(default)]
    e: Option<String>,
    #[serde(default)]
    kid: Option<String>,
    #[serde(default)]
    alg: Option<String>,
    #[serde(default, rename = "use")]
    purpose: Option<String>,
    #[serde(default)]
    key_ops: Option<Vec<String>>,
    #[serde(default)]
    d: Option<IgnoredAny>,
    #[serde(default)]
    k: Option<IgnoredAny>,
}

impl JwkSet {
    /// Reads a JSON Web Key Set from text.
    ///
    /// # Errors
    /// [`KeysError`]
    pub fn parse(json: &[u8]) -> Result<Self, KeysError> {
        let value = serde_json::from_slice(json).map_err(|_error| KeysError::Form)?;
        Self::from_value(value)
    }

    /// Reads a JSON Web Key Set. Keys of other types and for other uses are left out (RFC 7517 section 5).
    ///
    /// # Errors
    /// [`KeysError`]
    pub fn from_value(value: Value) -> Result<Self, KeysError> {
        if !value.is_object() {
            return Err(KeysError::Form);
        }
        let set: RawSet = serde_json::from_value(value).map_err(|_error| KeysError::Form)?;
        if !(1..=MAX_KEYS).contains(&set.keys.len()) {
            return Err(KeysError::Form);
        }
        let mut keys = Vec::new();
        for value in set.keys {
            if !value.is_object() {
                return Err(KeysError::Form);
            }
            let raw: RawJwk = serde_json::from_value(value).map_err(|_error| KeysError::Form)?;
            // A key set is public, so that a secret in it is no secret any more, whatever the other keys are.
            if raw.kty == "oct" || raw.d.is_some() || raw.k.is_some() {
                return Err(KeysError::Secret);
            }
            keys.extend(raw.key());
        }
        // Without a usable key every later request would fail, so the set is refused at once.
        if keys.is_empty() {
            return Err(KeysError::Unusable);
        }
        Ok(Self(keys))
    }

    /// Returns true if one of the keys signed the message. `id` selects by `kid`; without it, each key of the algorithm
    /// is tried.
    pub fn verify(&self, id: Option<&str>, algorithm: JwkAlgorithm, message: &[u8], signature: &[u8]) -> bool {
        let named = self.0.iter().filter(|key| id.is_none() || key.id.as_deref() == id);
        // The algorithm of the key and that of the header have to agree, so that no key verifies by another one's rules.
        let mut fit = named.filter(|key| key.algorithm() == algorithm);
        fit.any(|key| key.verify(message, signature))
    }
}

impl RawJwk {
    /// Returns the key, if it can verify signatures here.
    fn key(self) -> Option<JwkKey> {
        let decode = |text: Option<String>| BASE64URL_NOPAD.decode(text?.as_bytes()).ok();
        // A key for encryption is good, but not for this, so it is left out like one of another type.
        let for_signatures = self.purpose.is_none_or(|purpose| purpose == "sig")
            && self.key_ops.is_none_or(|uses| uses.iter().any(|each| each == "verify"));
        let material = match (self.kty.as_str(), self.crv.as_deref()) {
            // Each coordinate has the full length of the field (RFC 7518 section 6.2.1.2). 4 begins an uncompressed point.
            ("EC", Some("P-256")) => {
                let (x, y) = (decode(self.x)?, decode(self.y)?);
                let is_point = x.len() == 32 && y.len() == 32;
                is_point.then(|| KeyMaterial::P256([vec![4], x, y].concat()))?
            }
            ("OKP", Some("Ed25519")) => {
                let x = decode(self.x)?;
                (x.len() == 32).then_some(KeyMaterial::Ed25519(x))?
            }
            // ring takes 2,048 to 8,192 bits; more than 4,096 cost time at each request and win nothing.
            ("RSA", _) => {
                let (modulus, exponent) = (decode(self.n)?, decode(self.e)?);
                let is_fit =
                    (256..=512).contains(&modulus.len()) && modulus[0] != 0 && (1..=8).contains(&exponent.len());
                is_fit.then_some(KeyMaterial::Rsa { modulus, exponent })?
            }
            _ => return None,
        };
        let key = JwkKey { id: self.kid, material };
        let is_named_so = self
            .alg
            .is_none_or(|alg| JwkAlgorithm::parse(&alg) == Some(key.algorithm()));
        (for_signatures && is_named_so).then_some(key)
    }
}

impl JwkKey {
    const fn algorithm(&self) -> JwkAlgorithm {
        match self.material {
            KeyMaterial::P256(_) => JwkAlgorithm::Es256,
            KeyMaterial::Rsa { .. } => JwkAlgorithm::Rs256,
            KeyMaterial::Ed25519(_) => JwkAlgorithm::EdDsa,
        }
    }

    fn verify(&self, message: &[u8], signature: &[u8]) -> bool {
        let verified = match &self.material {
            KeyMaterial::P256(point) => {
                UnparsedPublicKey::new(&ECDSA_P256_SHA256_FIXED, point).verify(message, signature)
            }
            KeyMaterial::Ed25519(key) => UnparsedPublicKey::new(&ED25519, key).verify(message, signature),
            KeyMaterial::Rsa { modulus, exponent } => {
                let key = RsaPublicKeyComponents {
                    n: modulus,
                    e: exponent,
                };
                key.verify(&RSA_PKCS1_2048_8192_SHA256, message, signature)
            }
        };
        verified.is_ok()
    }
}

#[cfg(test)]
mod tests;

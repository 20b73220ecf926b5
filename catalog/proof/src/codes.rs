//! Bytes as text: hashes as lower-case hexadecimal, keys and signatures as Base64.
//!
//! Invariant: each value has exactly one text, and any other text is refused.

use std::fmt;
use std::str::FromStr;

use data_encoding::{BASE64, HEXLOWER};
use ed25519_dalek::VerifyingKey;
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

/// A text is not the canonical encoding of its bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not {0}")]
pub struct ParseCodeError(pub(crate) &'static str);

/// Implements `Display`, `FromStr` and the serde conversions of a tuple struct over bytes.
macro_rules! coded {
    ($name:ident, $encoding:expr, $form:literal) => {
        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&$encoding.encode(&self.0))
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Display::fmt(self, f)
            }
        }

        impl FromStr for $name {
            type Err = $crate::codes::ParseCodeError;

            // Text of a wrong length, or with a wrong character, decodes to a wrong number of
            // bytes.
            fn from_str(text: &str) -> Result<Self, Self::Err> {
                let bytes = $encoding.decode(text.as_bytes()).unwrap_or_default();
                let wrong = |_wrong: Vec<u8>| $crate::codes::ParseCodeError($form);
                Ok(Self(bytes.try_into().map_err(wrong)?))
            }
        }

        impl TryFrom<String> for $name {
            type Error = $crate::codes::ParseCodeError;

            fn try_from(text: String) -> Result<Self, Self::Error> {
                text.parse()
            }
        }

        impl From<$name> for String {
            fn from(code: $name) -> Self {
                code.to_string()
            }
        }
    };
}

pub(crate) use coded;

/// The id of a service key: the first 8 bytes of the SHA-256 of its public key, as 16 hexadecimal digits.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct KeyId([u8; 8]);

coded!(KeyId, HEXLOWER, "16 lower-case hexadecimal digits");

impl KeyId {
    /// Returns the id of a public key.
    pub fn of(key: &PublicKey) -> Self {
        let mut id = [0; 8];
        // 8 bytes are enough to name a key; a verifier compares the whole public key.
        id.copy_from_slice(&Sha256::digest(key.0)[..8]);
        Self(id)
    }
}

/// An Ed25519 public key (RFC 8032 section 5.1.5) as Base64 of its 32 bytes.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct PublicKey([u8; 32]);

coded!(PublicKey, BASE64, "Base64 of 32 bytes");

impl PublicKey {
    /// Creates a key from its stored bytes.
    pub const fn from_bytes(bytes: [u8; 32]) -> Self {
        Self(bytes)
    }

    /// Returns the 32 bytes of the key.
    pub const fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }

    /// Returns true if `signature` was made by this key over `message`.
    ///
    /// The check is strict: a scalar that is not reduced, a point of small order and a key that is no point all fail,
    /// so a signature has one form and belongs to one key.
    pub fn verifies(&self, message: &[u8], signature: &SignatureBytes) -> bool {
        let signature = ed25519_dalek::Signature::from_bytes(&signature.0);
        VerifyingKey::from_bytes(&self.0).is_ok_and(|key| key.verify_strict(message, &signature).is_ok())
    }
}

/// An Ed25519 signature (RFC 8032 section 5.1.6) as Base64 of its 64 bytes.
#[derive(Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct SignatureBytes(pub(crate) [u8; 64]);

coded!(SignatureBytes, BASE64, "Base64 of 64 bytes");

impl SignatureBytes {
    /// Creates a signature from its stored bytes.
    pub const fn from_bytes(bytes: [u8; 64]) -> Self {
        Self(bytes)
    }

    /// Returns the 64 bytes of the signature.
    pub const fn as_bytes(&self) -> &[u8; 64] {
        &self.0
    }
}

/// The SHA-256 of a file as 64 hexadecimal digits.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct FileHash([u8; 32]);

coded!(FileHash, HEXLOWER, "64 lower-case hexadecimal digits");

impl FileHash {
    /// Creates a hash from its bytes.
    pub const fn from_bytes(bytes: [u8; 32]) -> Self {
        Self(bytes)
    }

    /// Returns the 32 bytes of the hash.
    pub const fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_have_one_text() {
        let key = PublicKey::from_bytes([0xff; 32]);
        let text = key.to_string();
        assert_eq!(text.parse(), Ok(key));
        for other in [
            text.trim_end_matches('='),
            &text.replace("8=", "9="),
            &text.replace('/', "_"),
            "",
        ] {
            assert!(other.parse::<PublicKey>().is_err(), "{other}");
        }
        let hash = FileHash::from_bytes([0xab; 32]);
        assert_eq!(hash.to_string().parse(), Ok(hash));
        assert!(hash.to_string().to_uppercase().parse::<FileHash>().is_err());
    }

    #[test]
    fn a_key_is_named_by_its_hash() {
        // Frozen: SHA-256 of 32 zero bytes begins so.
        assert_eq!(
            KeyId::of(&PublicKey::from_bytes([0; 32])).to_string(),
            "66687aadf862bd77"
        );
    }
}

//! Secrets that the service hands out: keys, tokens, and their hashes.
//!
//! Invariant: the service stores the SHA-256 of a secret and never the secret. A secret has 256 random bits, so a plain
//! hash is as hard to invert as the secret is to guess.

use std::fmt;

use data_encoding::BASE64URL_NOPAD;
use sha2::{Digest as _, Sha256};

/// Number of random bytes in a secret.
const SECRET_BYTES: usize = 32;
/// Kind of a secret, as its prefix shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SecretKind {
    /// Key of an agent.
    AgentKey,
    /// Token of an operator.
    OperatorToken,
    /// Token of a session, for a cookie.
    Session,
}

impl SecretKind {
    /// Returns the prefix of secrets of this kind.
    pub const fn prefix(self) -> &'static str {
        match self {
            Self::AgentKey => "km_",
            Self::OperatorToken => "wto_",
            Self::Session => "wts_",
        }
    }

    pub(crate) fn of(text: &str) -> Option<Self> {
        // Without the token of a session, which is read from its cookie only.
        [Self::AgentKey, Self::OperatorToken]
            .into_iter()
            .find(|kind| text.starts_with(kind.prefix()))
    }
}

/// A new secret. It is shown once; only its hash is stored.
pub struct Secret {
    text: String,
}

impl Secret {
    /// Generates a secret from the system's random source. Fails if that is not available.
    pub fn generate(kind: SecretKind) -> Result<Self, getrandom::Error> {
        let mut bytes = [0; SECRET_BYTES];
        getrandom::fill(&mut bytes)?;
        Ok(Self {
            text: format!("{}{}", kind.prefix(), BASE64URL_NOPAD.encode(&bytes)),
        })
    }

    /// Returns the text of the secret, to be shown to its owner only.
    pub fn reveal(self) -> String {
        self.text
    }

    /// Returns the SHA-256 of the text, which is stored.
    pub fn hash(&self) -> [u8; 32] {
        hash(&self.text)
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret")
    }
}

/// Returns the SHA-256 of a secret.
pub(crate) fn hash(text: &str) -> [u8; 32] {
    Sha256::digest(text.as_bytes()).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_has_its_prefix_and_256_random_bits() {
        let one = Secret::generate(SecretKind::AgentKey).unwrap();
        let two = Secret::generate(SecretKind::AgentKey).unwrap();
        assert_ne!(one.hash(), two.hash());
        assert_eq!(one.hash(), hash(&one.text));
        let text = one.reveal();
        assert_eq!(
            BASE64URL_NOPAD
                .decode(text.strip_prefix("km_").unwrap().as_bytes())
                .unwrap()
                .len(),
            32
        );
        assert!(
            Secret::generate(SecretKind::OperatorToken)
                .unwrap()
                .reveal()
                .starts_with("wto_")
        );
    }

    #[test]
    fn a_secret_is_not_shown_by_accident() {
        let secret = Secret::generate(SecretKind::AgentKey).unwrap();
        assert_eq!(format!("{secret:?}"), "Secret");
    }
}

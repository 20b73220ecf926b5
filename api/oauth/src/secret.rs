//! Codes and tokens: opaque texts with 256 random bits, which are stored as SHA-256 only.
//!
//! Invariant: [`OAuthSecret`] has no `Debug` that shows it. A successor needs both its predecessor, which only the client
//! has, and the salt, which only the database has.

use std::fmt;

use data_encoding::BASE64URL_NOPAD;
use sha2::{Digest as _, Sha256};

/// Number of random bytes in a secret, and of the salt of a successor.
pub(crate) const RANDOM_BYTES: usize = 32;
/// Length in bytes beyond which a text is no secret.
const MAX_BYTES: usize = 128;

/// Kind of a secret, as its prefix shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OAuthSecretKind {
    /// Authorization code, used once within a minute.
    Code,
    /// Access token, sent with each call.
    Access,
    /// Refresh token, exchanged for the next pair of tokens.
    Refresh,
}

impl OAuthSecretKind {
    /// Returns the prefix of secrets of this kind.
    pub const fn prefix(self) -> &'static str {
        match self {
            Self::Code => "wtg_",
            Self::Access => "wta_",
            Self::Refresh => "wtr_",
        }
    }
}

/// A code or a token.
#[derive(Clone)]
pub struct OAuthSecret(String);

/// The SHA-256 of a secret.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Hash(pub [u8; 32]);

impl OAuthSecret {
    /// Generates a secret from the system's random source.
    ///
    /// # Errors
    /// The error of the random source.
    pub fn generate(kind: OAuthSecretKind) -> Result<Self, getrandom::Error> {
        random().map(|bytes| Self::encode(kind, &bytes))
    }

    fn encode(kind: OAuthSecretKind, bytes: &[u8]) -> Self {
        Self(format!("{}{}", kind.prefix(), BASE64URL_NOPAD.encode(bytes)))
    }

    /// Reads a secret of this kind that a client sent. Returns `None` if its form is another.
    pub fn read(kind: OAuthSecretKind, text: &str) -> Option<Self> {
        let is_secret = text.len() <= MAX_BYTES && text.starts_with(kind.prefix());
        is_secret.then(|| Self(text.to_owned()))
    }

    /// Returns the refresh token that follows this one: SHA-256 over a fixed text, the salt and this token. The same
    /// two give the same successor, so that a lost answer can be repeated although no token is stored.
    pub(crate) fn successor(&self, salt: &[u8; RANDOM_BYTES]) -> Self {
        let hash = Sha256::new()
            .chain_update("successor of a refresh token")
            .chain_update(salt)
            .chain_update(&self.0);
        let bytes: [u8; 32] = hash.finalize().into();
        Self::encode(OAuthSecretKind::Refresh, &bytes)
    }

    /// Returns the text, for its owner only.
    pub fn reveal(&self) -> &str {
        &self.0
    }

    /// Returns the SHA-256 of the text, which is stored.
    pub fn hash(&self) -> Hash {
        Hash(Sha256::digest(self.0.as_bytes()).into())
    }
}

impl fmt::Debug for OAuthSecret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret")
    }
}

/// Returns random bytes of the operating system.
pub(crate) fn random() -> Result<[u8; RANDOM_BYTES], getrandom::Error> {
    // The generator of the system needs no seed that could be copied with the process.
    let mut bytes = [0; RANDOM_BYTES];
    getrandom::fill(&mut bytes)?;
    Ok(bytes)
}

/// Compares without an early end, so that the time does not depend on the place of a difference.
pub(crate) fn is_equal(one: &[u8], other: &[u8]) -> bool {
    let difference = one.iter().zip(other).fold(0, |bits, (one, other)| bits | (one ^ other));
    one.len() == other.len() && difference == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_are_unlike_have_their_prefix_and_do_not_show() {
        let one = OAuthSecret::generate(OAuthSecretKind::Access).unwrap();
        let other = OAuthSecret::generate(OAuthSecretKind::Access).unwrap();
        assert!(one.reveal().starts_with("wta_") && one.reveal().len() == 47);
        assert_ne!(one.reveal(), other.reveal());
        assert_eq!(format!("{one:?}"), "Secret");
        assert_eq!(
            OAuthSecret::read(OAuthSecretKind::Access, one.reveal()).unwrap().hash(),
            one.hash()
        );
        assert!(OAuthSecret::read(OAuthSecretKind::Refresh, one.reveal()).is_none());
        assert!(OAuthSecret::read(OAuthSecretKind::Access, &format!("wta_{}", "a".repeat(200))).is_none());
    }

    #[test]
    fn a_successor_depends_on_the_token_and_on_the_salt() {
        let token = OAuthSecret::read(OAuthSecretKind::Refresh, "wtr_a").unwrap();
        let next = token.successor(&[1; 32]);
        assert_eq!(next.reveal(), token.successor(&[1; 32]).reveal());
        assert!(next.reveal().starts_with("wtr_") && next.reveal().len() == 47);
        assert_ne!(next.reveal(), token.successor(&[2; 32]).reveal());
        assert_ne!(
            next.reveal(),
            OAuthSecret::read(OAuthSecretKind::Refresh, "wtr_b")
                .unwrap()
                .successor(&[1; 32])
                .reveal()
        );
    }
}

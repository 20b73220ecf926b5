//! Proof keys for code exchange (RFC 7636) with the method S256, the only one that OAuth 2.1 servers need to take.
//!
//! Invariant: a code without a challenge cannot be made, because a [`Challenge`] is a member of each.

use data_encoding::BASE64URL_NOPAD;
use sha2::{Digest as _, Sha256};

use crate::secret::is_equal;

/// The SHA-256 of a verifier.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Challenge([u8; 32]);

impl Challenge {
    /// Decodes a `code_challenge`: Base64url of 32 bytes without padding.
    pub fn parse(text: &str) -> Option<Self> {
        let bytes = BASE64URL_NOPAD.decode(text.as_bytes()).ok()?;
        bytes.try_into().ok().map(Self)
    }

    /// Creates a challenge from its 32 bytes.
    pub const fn from_bytes(bytes: [u8; 32]) -> Self {
        Self(bytes)
    }

    /// Returns the 32 bytes of the challenge.
    pub const fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }

    /// Returns true if the challenge is that of this verifier.
    pub fn is_of(&self, verifier: &str) -> bool {
        let hash: [u8; 32] = Sha256::digest(verifier.as_bytes()).into();
        // The comparison takes the same time wherever the hashes differ, so answers reveal no part of the challenge.
        is_verifier(verifier) && is_equal(&self.0, &hash)
    }
}

/// Returns true if a text has the form of a verifier: 43 to 128 unreserved characters (RFC 7636 section 4.1).
pub(crate) fn is_verifier(text: &str) -> bool {
    let is_unreserved = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_' | b'~');
    (43..=128).contains(&text.len()) && text.bytes().all(is_unreserved)
}

#[cfg(test)]
mod tests {
    use super::*;

    // RFC 7636 appendix B.
    const VERIFIER: &str = "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk";
    const CHALLENGE: &str = "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM";

    #[test]
    fn the_vector_of_the_rfc_verifies_and_its_neighbours_do_not() {
        let challenge = Challenge::parse(CHALLENGE).unwrap();
        assert!(challenge.is_of(VERIFIER));
        assert!(!challenge.is_of(CHALLENGE));
        assert!(!challenge.is_of(&VERIFIER[..42]));
        assert!(!challenge.is_of(&VERIFIER.replace('d', "D")));
        assert!(!challenge.is_of(""));
    }

    #[test]
    fn challenges_and_verifiers_have_one_form() {
        for wrong in [
            "",
            "abc",
            &CHALLENGE[1..],
            &format!("{CHALLENGE}="),
            &format!("{CHALLENGE}A"),
            VERIFIER.replace('-', "+").as_str(),
        ] {
            assert!(Challenge::parse(wrong).is_none(), "{wrong}");
        }
        assert!(is_verifier(&"~".repeat(128)) && is_verifier(&"a".repeat(43)));
        assert!(!is_verifier(&"a".repeat(129)) && !is_verifier(&"a".repeat(42)) && !is_verifier(&" ".repeat(43)));
    }
}

//! Text of a claim code: `wtc_`, 16 characters that find the code, and 32 that prove it.
//!
//! Invariant: the two parts have 96 and 192 random bits. Whoever has not seen the code can neither use nor lock it.

use std::fmt;

use data_encoding::BASE64URL_NOPAD;

use crate::secrets;

const PREFIX: &str = "wtc_";
/// Characters of the part that finds a code.
const LOOKUP: usize = 16;
/// Characters of the part that proves it.
const PROOF: usize = 32;

/// Parts of a claim code, as the database knows them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClaimCodeParts {
    /// Part that finds the code.
    pub lookup: String,
    /// Hash of the part that proves it.
    pub secret_hash: [u8; 32],
}

impl ClaimCodeParts {
    /// Splits the text of a code; `None` for a text that is no code.
    pub fn of(text: &str) -> Option<Self> {
        let rest = text.strip_prefix(PREFIX)?;
        let is_plain = |character: char| character.is_ascii_alphanumeric() || character == '-' || character == '_';
        // The characters are ASCII from here on, so the text can be split at a byte.
        if rest.len() != LOOKUP + PROOF || !rest.chars().all(is_plain) {
            return None;
        }
        let (lookup, proof) = rest.split_at(LOOKUP);
        Some(Self {
            lookup: lookup.to_owned(),
            // Only the hash goes on, so the database never sees a code that could be used.
            secret_hash: secrets::hash(proof),
        })
    }
}

/// Text of a new claim code. It is shown once.
pub struct ClaimCodeText(String);

impl ClaimCodeText {
    /// Generates a code from the system's random source. Fails if that is not available.
    pub fn generate() -> Result<Self, getrandom::Error> {
        // Four characters of Base64 have three bytes.
        let mut bytes = [0; (LOOKUP + PROOF) / 4 * 3];
        getrandom::fill(&mut bytes)?;
        Ok(Self(format!("{PREFIX}{}", BASE64URL_NOPAD.encode(&bytes))))
    }

    /// Returns the text, to be shown to the operator only.
    pub fn reveal(self) -> String {
        self.0
    }
}

impl fmt::Debug for ClaimCodeText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ClaimCodeText")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_code_has_two_parts_and_fits_the_interface() {
        let one = ClaimCodeText::generate().unwrap();
        assert_eq!(format!("{one:?}"), "ClaimCodeText");
        let one = one.reveal();
        assert!(one.len() <= 64, "{}", one.len());
        let parts = ClaimCodeParts::of(&one).unwrap();
        assert_eq!(parts.lookup, one[4..20]);
        let mut other = one.clone();
        other.replace_range(20..21, if one[20..].starts_with('a') { "b" } else { "a" });
        let wrong = ClaimCodeParts::of(&other).unwrap();
        assert_eq!(wrong.lookup, parts.lookup);
        assert_ne!(wrong.secret_hash, parts.secret_hash);
        for text in [
            "",
            "wtc_",
            &one[1..],
            &one[..one.len() - 1],
            &format!("{one}a"),
            "wtc_é",
        ] {
            assert_eq!(ClaimCodeParts::of(text), None, "{text}");
        }
    }
}

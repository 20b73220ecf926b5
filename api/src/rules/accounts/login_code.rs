//! Code of a login: eight consonants that a device shows and a person types.
//!
//! Invariant: a code has 34 random bits and no vowel, so it spells no word. It finds a login for minutes, and whoever types
//! it gives a key of their own agent away and gets none.

use crate::secrets;

/// Consonants without Y, which some keyboards have elsewhere (RFC 8628 section 6.1).
const LETTERS: &[u8; 20] = b"BCDFGHJKLMNPQRSTVWXZ";
/// Number of letters of a code.
const LENGTH: usize = 8;
/// Greatest multiple of the number of letters that a byte can be; a byte from here on would favour some letters.
const FAIR_BYTES: u8 = 240;

/// Letters of a code, without the hyphen.
pub(crate) struct LoginCode(String);

impl LoginCode {
    /// Generates a code from the system's random source. Fails if that is not available.
    pub(crate) fn generate() -> Result<Self, getrandom::Error> {
        let mut code = String::with_capacity(LENGTH);
        let mut bytes = [0; 4 * LENGTH];
        while code.len() < LENGTH {
            getrandom::fill(&mut bytes)?;
            let fair = bytes.iter().filter(|byte| **byte < FAIR_BYTES);
            let letters = fair.filter_map(|byte| LETTERS.get(usize::from(*byte) % LETTERS.len()));
            code.extend(letters.take(LENGTH - code.len()).map(|letter| char::from(*letter)));
        }
        Ok(Self(code))
    }

    /// Reads a code as a person types it: case, blanks and hyphens do not matter. `None` for a text that is no code.
    pub(crate) fn of(typed: &str) -> Option<Self> {
        let letters = typed.chars().filter(|letter| !matches!(letter, ' ' | '-'));
        let code: String = letters
            .map(|letter| letter.to_ascii_uppercase())
            .take(LENGTH + 1)
            .collect();
        let is_code = code.len() == LENGTH && code.bytes().all(|letter| LETTERS.contains(&letter));
        is_code.then_some(Self(code))
    }

    /// Returns the code as it is shown: two groups of four letters.
    pub(crate) fn reveal(&self) -> String {
        let (first, second) = self.0.split_at(LENGTH / 2);
        format!("{first}-{second}")
    }

    /// Returns the hash of the letters, which is stored.
    pub(crate) fn hash(&self) -> [u8; 32] {
        secrets::hash(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_code_is_eight_consonants_however_it_is_typed() {
        for _ in 0..100 {
            let code = LoginCode::generate().unwrap();
            let shown = code.reveal();
            assert_eq!((shown.len(), shown.as_bytes()[4]), (9, b'-'), "{shown}");
            for typed in [
                shown.clone(),
                shown.to_lowercase(),
                shown.replace('-', ""),
                format!(" {} ", shown.replace('-', " ")),
            ] {
                assert_eq!(LoginCode::of(&typed).unwrap().hash(), code.hash(), "{typed}");
            }
        }
        for typed in ["", "BCDFGHJ", "BCDFGHJKL", "BCDFGHJA", "BCDFGHJ\u{212a}", "ＢCDFGHJK"] {
            assert!(LoginCode::of(typed).is_none(), "{typed}");
        }
    }

    #[test]
    fn every_letter_is_as_likely_as_any_other() {
        let mut counts = [0_u32; 20];
        for _ in 0..2_500 {
            for letter in LoginCode::generate().unwrap().0.bytes() {
                counts[LETTERS.iter().position(|other| *other == letter).unwrap()] += 1;
            }
        }
        // 1,000 are expected of each; beyond six standard deviations is no chance.
        assert!(counts.iter().all(|count| (815..1_185).contains(count)), "{counts:?}");
    }
}

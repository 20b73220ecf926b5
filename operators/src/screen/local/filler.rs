//! Detection of filler: one character, or a few, repeated.
//!
//! Invariant: a record counts as filler only if the repetition makes up most of the letters of its values. Lines of
//! dashes, hashes with many zeros and repetitive DNA sequences do not count.

use crate::visitor::{JsonVisitor, walk};

/// The least length of a repeated stretch, in bytes.
const STRETCH: usize = 48;
/// The period that is compared, in bytes. Units of 1, 2, 3, 4 and 6 bytes repeat after it.
const PERIOD: usize = 12;

/// Returns true if most letters of the values of a canonical record are in repeated stretches.
pub(super) fn is_filler(record: &str) -> bool {
    if !repeats(record.as_bytes()) {
        return false;
    }
    let mut values = Values::default();
    // A record is always canonical JSON. Text that is not would not be filler.
    walk(record, &mut values).is_ok() && values.repeated * 10 > values.letters * 8
}

/// Returns true if any long stretch may repeat: a cheap test that compares neighbouring blocks of twelve bytes and
/// misses no long stretch.
fn repeats(text: &[u8]) -> bool {
    (0..text.len().saturating_sub(2 * PERIOD)).step_by(PERIOD).any(|index| {
        text[index] == text[index + PERIOD] && text[index..index + PERIOD] == text[index + PERIOD..index + 2 * PERIOD]
    })
}

/// A visitor that counts letters, and the letters in repeated stretches.
#[derive(Default)]
struct Values {
    letters: usize,
    repeated: usize,
}

impl JsonVisitor for Values {
    fn enter_member(&mut self, _: &str) {}
    fn enter_item(&mut self, _: usize) {}
    fn leave(&mut self) {}

    fn text(&mut self, text: &str) {
        // Bytes beyond ASCII count as letters, so that other scripts weigh the same.
        let letters = |bytes: &[u8]| {
            bytes
                .iter()
                .filter(|byte| byte.is_ascii_alphabetic() || **byte >= 0x80)
                .count()
        };
        let bytes = text.as_bytes();
        self.letters += letters(bytes);
        let mut start = 0;
        while start + PERIOD < bytes.len() {
            let shifted = &bytes[start + PERIOD..];
            // A text that repeats after `PERIOD` bytes equals itself shifted by that many.
            let same = bytes[start..]
                .iter()
                .zip(shifted)
                .take_while(|(here, there)| here == there)
                .count();
            // A long repetition counts as a whole; shorter ones occur in ordinary text.
            if same + PERIOD >= STRETCH {
                let end = start + same + PERIOD;
                self.repeated += letters(&bytes[start..end]);
                start = end;
            } else {
                start += same + 1;
            }
        }
    }

    /// Counts a number of two or more digits like a word of four letters.
    fn integer(&mut self, magnitude: u64) {
        self.letters += usize::from(magnitude > 9) * 4;
    }
}

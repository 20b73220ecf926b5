//! Text that says nothing: one character, or a few, over and over.
//!
//! Invariant: a record counts as filler only when the repetition makes up most of the letters of its values, so that
//! rules drawn with dashes, hashes of zeros and stretches of one base do not count.

use crate::leaves::{Leaves, walk};

/// The least repeated stretch, in bytes.
const STRETCH: usize = 48;
/// Every unit of 1, 2, 3, 4 or 6 bytes repeats after this many.
const PERIOD: usize = 12;

/// Whether most letters of the values of a canonical record are in repeated stretches.
pub(super) fn is_filler(record: &str) -> bool {
    if !repeats(record.as_bytes()) {
        return false;
    }
    let mut values = Values::default();
    // Why: a record is canonical JSON; were it not, it would not be filler either.
    walk(record, &mut values).is_ok() && values.repeated * 10 > values.letters * 8
}

/// A cheap test that no long stretch of one repeated unit escapes: at some twelfth place, twelve bytes come again.
fn repeats(text: &[u8]) -> bool {
    (0..text.len().saturating_sub(2 * PERIOD)).step_by(PERIOD).any(|index| {
        text[index] == text[index + PERIOD] && text[index..index + PERIOD] == text[index + PERIOD..index + 2 * PERIOD]
    })
}

/// Counts letters, and those in repeated stretches.
#[derive(Default)]
struct Values {
    letters: usize,
    repeated: usize,
}

impl Leaves for Values {
    fn enter_member(&mut self, _: &str) {}
    fn enter_item(&mut self, _: usize) {}
    fn leave(&mut self) {}

    fn text(&mut self, text: &str) {
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
            let same = bytes[start..]
                .iter()
                .zip(shifted)
                .take_while(|(here, there)| here == there)
                .count();
            if same + PERIOD >= STRETCH {
                let end = start + same + PERIOD;
                self.repeated += letters(&bytes[start..end]);
                start = end;
            } else {
                start += same + 1;
            }
        }
    }

    /// A number says something: it counts as a word.
    fn integer(&mut self, magnitude: u64) {
        self.letters += usize::from(magnitude > 9) * 4;
    }
}

//! A prefilter that finds ASCII text which may contain one of a list of phrases.
//!
//! Invariant: text that contains a phrase, in any case, is always reported. Text without one rarely is.
//!
//! Each phrase is represented by its rarest four characters in a row, and by the four that begin one later, so it
//! suffices to look at every second position of a text. Each four is looked up in a table that fits into the first
//! cache. Lookups do not depend on each other, so the processor runs several at a time; an automaton waits for each
//! character.

/// The number of bits of a table index.
const BITS: u32 = 17;

/// A table of the four-character groups that represent phrases.
#[derive(Debug)]
pub(super) struct PhrasePrefilter {
    bits: Vec<u64>,
}

impl PhrasePrefilter {
    /// Builds a filter for phrases of at least three bytes each.
    pub(super) fn of<'a>(phrases: impl Iterator<Item = &'a str>) -> Self {
        let mut prefilter = Self {
            bits: vec![0; 1 << (BITS - 6)],
        };
        let common = |byte: &u8| {
            COMMON
                .find(char::from(byte.to_ascii_lowercase()))
                .map_or(0, |at| 32 - at)
        };
        for phrase in phrases {
            // The rarer the group, the fewer texts without the phrase are reported.
            let rarest = phrase
                .as_bytes()
                .windows(5)
                .min_by_key(|five| five.iter().map(common).sum::<usize>());
            if let Some(five) = rarest {
                for four in five.windows(4) {
                    prefilter.insert(four);
                }
            } else {
                // A phrase of three bytes has no four of its own, so it is added with every
                // byte beside it.
                for any in 0..=u8::MAX {
                    let beside = [&[any][..], phrase.as_bytes(), &[any]].concat();
                    prefilter.insert(&beside);
                    prefilter.insert(&beside[1..]);
                }
            }
        }
        prefilter
    }

    /// Adds the first four of `bytes` to the table.
    fn insert(&mut self, bytes: &[u8]) {
        if let Some(four) = bytes.first_chunk() {
            let place = place(*four);
            self.bits[place / 64] |= 1 << (place % 64);
        }
    }

    /// Returns true if `text` may contain a phrase.
    pub(super) fn might_match(&self, text: &[u8]) -> bool {
        const AT_ONCE: usize = 32;
        let found = |four: [u8; 4]| {
            let place = place(four);
            self.bits[place / 64] >> (place % 64)
        };
        // No early exit within a chunk: a loop without branches is faster.
        let any = |fours: &[[u8; 4]]| fours.iter().fold(0, |any, four| any | found(*four)) & 1 != 0;
        let anywhere = |text: &[u8]| {
            let (fours, rest) = text.as_chunks();
            let mut last = [0; 4];
            last[..rest.len()].copy_from_slice(rest);
            any(&[last]) || fours.chunks(AT_ONCE).any(any)
        };
        anywhere(text) || text.get(2..).is_some_and(anywhere)
    }
}

/// The characters of English text, most frequent first.
const COMMON: &str = "etaoinsr hldcumfpgwybvk";

/// Returns the table index of a four: six bits of each character, the same for both cases of a letter.
const fn place(four: [u8; 4]) -> usize {
    let four = u32::from_le_bytes(four);
    let folded = (four & 0x1F1F_1F1F) | ((four >> 1) & 0x2020_2020);
    // A multiplication by an odd number moves information to higher bits only (Knuth, volume 3,
    // section 6.4), so some high bits are moved down before it.
    let spread = (folded ^ (folded >> 13)).wrapping_mul(2_654_435_769);
    (spread >> (32 - BITS)) as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    const PHRASES: [&str; 4] = ["ignore", "km_", "AKIA", "https://"];

    #[test]
    fn a_phrase_is_noticed_wherever_it_stands_and_however_it_is_spelled() {
        let prefilter = PhrasePrefilter::of(PHRASES.into_iter());
        for phrase in PHRASES
            .into_iter()
            .chain(["IGNORE", "iGnOrE", "KM_", "akia", "HTTPS://"])
        {
            for before in 0..70 {
                for after in [0, 1, 40] {
                    let text = format!("{}{phrase}{}", ".".repeat(before), ".".repeat(after));
                    assert!(prefilter.might_match(text.as_bytes()), "{text}");
                }
            }
        }
    }

    #[test]
    fn text_without_a_phrase_mostly_is_not_noticed() {
        let prefilter = PhrasePrefilter::of(PHRASES.into_iter());
        for text in [
            "",
            "a",
            "ab",
            "abc",
            "abcd",
            "reading 12, taken by the usual instrument in fair weather",
        ] {
            assert!(!prefilter.might_match(text.as_bytes()), "{text}");
        }
    }
}

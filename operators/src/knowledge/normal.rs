//! The normal form of a text, in which copies are recognised.
//!
//! Invariant: normalising twice gives what normalising once gives.

use unicode_normalization::UnicodeNormalization;
use unicode_normalization::char::is_combining_mark;

use crate::text::is_invisible;

/// Returns the normal form: compatibility forms folded, invisible characters dropped, lower case, grouping commas
/// between digits dropped, and one space for every other run of characters that are no letter, number or mark. A text
/// of which nothing is left is returned as it is.
pub fn normalised(text: &str) -> String {
    let folded: String = if text.is_ascii() {
        text.to_ascii_lowercase()
    } else {
        let shown = |character: &char| !is_invisible(u32::from(*character));
        let plain = text.chars().filter(shown).nfkc().flat_map(char::to_lowercase);
        // Lower case can leave parts that compose, and folding can show what hides again.
        plain.nfkc().filter(shown).collect()
    };
    let mut out = String::with_capacity(folded.len());
    let mut gap = false;
    let mut rest = folded.chars().peekable();
    let mut last = ' ';
    while let Some(character) = rest.next() {
        let before_digit = rest.peek().is_some_and(char::is_ascii_digit);
        let between_digits = last.is_ascii_digit() && before_digit;
        last = character;
        if character == ',' && between_digits {
            // The digit before counts for the next comma too.
            last = '0';
            continue;
        }
        let kept = character.is_alphanumeric() || is_combining_mark(character) || (character == '.' && between_digits);
        if !kept {
            gap = true;
            continue;
        }
        if gap && !out.is_empty() {
            out.push(' ');
        }
        gap = false;
        out.push(character);
    }
    if out.is_empty() { text.to_owned() } else { out }
}

/// Returns true for Hangul, Han and Kana, of which few characters say much.
pub const fn is_east_asian(character: char) -> bool {
    matches!(
        character,
        '\u{1100}'..='\u{11FF}'
            | '\u{3040}'..='\u{30FF}'
            | '\u{3130}'..='\u{318F}'
            | '\u{31F0}'..='\u{31FF}'
            | '\u{3400}'..='\u{4DBF}'
            | '\u{4E00}'..='\u{9FFF}'
            | '\u{A960}'..='\u{A97F}'
            | '\u{AC00}'..='\u{D7FF}'
            | '\u{F900}'..='\u{FAFF}'
            | '\u{20000}'..='\u{3FFFF}'
    )
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn spellings_of_one_text_have_one_form() {
        for (text, form) in [
            ("  Hello,  World!\n", "hello world"),
            ("1,500 rows at 2.5 ms", "1500 rows at 2.5 ms"),
            ("1,234,567", "1234567"),
            ("1,,2 and a,b and 3.", "1 2 and a b and 3"),
            ("Ｈｅｌｌｏ\u{200b} Wo\u{ad}rld", "hello world"),
            ("가각\u{1100}\u{1161}", "가각가"),
            ("Café", "café"),
            ("**bold** `code_name`", "bold code name"),
            ("...", "..."),
        ] {
            assert_eq!(normalised(text), form, "{text}");
        }
    }

    proptest! {
        #[test]
        fn normalising_twice_changes_nothing(text in "\\PC{0,80}|[0-9,. a\u{300}\u{200d}]{0,40}") {
            let once = normalised(&text);
            prop_assert_eq!(normalised(&once), once);
        }
    }
}

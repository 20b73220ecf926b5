//! The language of a text, as it is shown until the review says it.

use operators::knowledge::is_east_asian;
use store::Language;

/// Share of letters, in percent, from which a script counts.
const SHARE: usize = 20;

/// Returns the language by the share of Latin and Hangul letters. A Hangul syllable counts as three letters, because it
/// has as many.
pub(super) fn of(text: &str) -> Language {
    let (mut latin, mut hangul, mut other) = (0_usize, 0_usize, 0_usize);
    for letter in text.chars().filter(|character| character.is_alphabetic()) {
        match letter {
            'a'..='z' | 'A'..='Z' | '\u{C0}'..='\u{24F}' => latin += 1,
            '\u{1100}'..='\u{11FF}' | '\u{3130}'..='\u{318F}' | '\u{AC00}'..='\u{D7AF}' => hangul += 3,
            _ if is_east_asian(letter) => other += 3,
            _ => other += 1,
        }
    }
    let all = (latin + hangul + other).max(1);
    let counts = |letters: usize| letters * 100 >= all * SHARE;
    match (counts(latin), counts(hangul)) {
        _ if other * 2 > all => Language::Other,
        (true, true) => Language::Mixed,
        (_, true) => Language::Korean,
        (true, _) => Language::English,
        _ => Language::Other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scripts_decide() {
        for (text, language) in [
            ("Measured with SQLite.", Language::English),
            ("측정한 값이다.", Language::Korean),
            ("측정한 값 with SQLite 3.46", Language::Mixed),
            ("ログを読む", Language::Other),
            ("123", Language::Other),
            ("", Language::Other),
        ] {
            assert_eq!(of(text), language, "{text}");
        }
    }
}

//! The languages of a text.
//!
//! Invariant: linear in the text, and by its letters and words alone.

use types::vocabulary::Language;

use super::lexicon::LexiconLanguages;
use crate::language::{LatinLanguage, latin_language};

/// Returns the languages by whose words a text is judged: none for one that no list of words is of.
pub(super) fn text_languages(text: &str) -> LexiconLanguages {
    let (mut latin, mut hangul, mut kana, mut han, mut all) = (0_usize, 0_usize, 0_usize, 0_usize, 0_usize);
    for character in text.chars().filter(|character| character.is_alphabetic()) {
        all += 1;
        match character {
            'a'..='z' | 'A'..='Z' => latin += 1,
            '\u{1100}'..='\u{11FF}' | '\u{3130}'..='\u{318F}' | '\u{AC00}'..='\u{D7A3}' => hangul += 1,
            '\u{3040}'..='\u{30FF}' => kana += 1,
            '\u{3400}'..='\u{4DBF}' | '\u{4E00}'..='\u{9FFF}' => han += 1,
            _ => {}
        }
    }
    let mut languages = LexiconLanguages::default();
    if hangul * 10 >= all && hangul > 0 {
        languages = languages.and(LexiconLanguages::KOREAN);
    }
    if kana * 10 >= all && kana > 0 {
        languages = languages.and(LexiconLanguages::JAPANESE);
    }
    if han * 10 >= all && kana * 20 < han && hangul * 20 < han {
        languages = languages.and(LexiconLanguages::CHINESE);
    }
    // Texts in these scripts have English words, and a text without words of its own is judged by English ones.
    let is_latin = latin * 2 >= all;
    match latin_language(text) {
        Some(LatinLanguage::German) if is_latin => languages.and(LexiconLanguages::GERMAN),
        Some(LatinLanguage::Spanish) if is_latin => languages.and(LexiconLanguages::SPANISH),
        Some(LatinLanguage::French) if is_latin => languages.and(LexiconLanguages::FRENCH),
        Some(LatinLanguage::English) | None if is_latin || !languages.is_none() => {
            languages.and(LexiconLanguages::ENGLISH)
        }
        _ => languages,
    }
}

/// Returns the language of a text by its script, and in Latin letters by its words.
pub fn language(text: &str) -> Language {
    let (mut latin, mut hangul, mut other) = (0_usize, 0_usize, 0_usize);
    for character in text.chars().filter(|character| character.is_alphabetic()) {
        match character {
            'a'..='z' | 'A'..='Z' => latin += 1,
            '\u{1100}'..='\u{11FF}' | '\u{3130}'..='\u{318F}' | '\u{AC00}'..='\u{D7A3}' => hangul += 1,
            _ => other += 1,
        }
    }
    // A syllable says about as much as three letters.
    let (korean, all) = (hangul * 3, latin + hangul * 3 + other * 3);
    // A text without letters is of no language.
    if all == 0 || other * 3 * 10 > all * 3 {
        Language::Other
    } else if korean * 10 >= all * 4 {
        Language::Korean
    } else if korean * 10 >= all {
        Language::Mixed
    } else if latin_language(text).is_none_or(|language| language == LatinLanguage::English) {
        Language::English
    } else {
        Language::Other
    }
}

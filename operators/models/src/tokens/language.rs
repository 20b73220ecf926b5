//! The languages by whose rules words of Latin letters are stemmed.
//!
//! Invariant: a guess looks at a bounded beginning of a text. It decides between stems only, so a wrong one loses
//! forms of words, and never a word.

use rust_stemmers::Algorithm;

use crate::language::{LatinLanguage, latin_language};

/// The most bytes of a text that a guess looks at.
const MAX_GUESSED_BYTES: usize = 1_024;

/// The languages that have stems. Their order is part of what an index keeps.
const STEMMED_LANGUAGES: [(LatinLanguage, &[Algorithm]); 9] = [
    (LatinLanguage::English, &[Algorithm::English]),
    (LatinLanguage::German, &[Algorithm::German]),
    (LatinLanguage::French, &[Algorithm::French]),
    (LatinLanguage::Spanish, &[Algorithm::Spanish]),
    (LatinLanguage::Italian, &[Algorithm::Italian]),
    (LatinLanguage::Portuguese, &[Algorithm::Portuguese]),
    (LatinLanguage::Dutch, &[Algorithm::Dutch]),
    (
        LatinLanguage::Scandinavian,
        &[Algorithm::Swedish, Algorithm::Danish, Algorithm::Norwegian],
    ),
    (LatinLanguage::Turkish, &[Algorithm::Turkish]),
];

/// A set of languages with stems. Words of scripts of one language have its stems in any case.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct StemLanguages(u16);

impl StemLanguages {
    /// English alone.
    pub const ENGLISH: Self = Self(1);
    /// All languages.
    pub const ALL: Self = Self((1 << STEMMED_LANGUAGES.len()) - 1);

    /// Returns the language of a document: English where it shows none that has stems.
    pub fn of_document(title: &str, body: &str) -> Self {
        let beginning = &body[..body.floor_char_boundary(MAX_GUESSED_BYTES)];
        Self::guessed(&[title, beginning].join("\n")).unwrap_or(Self::ENGLISH)
    }

    /// Returns the languages that a query may be in: what it shows and English, or all if it shows none, because its
    /// words must meet the stems of any document.
    pub fn of_query(text: &str) -> Self {
        let beginning = &text[..text.floor_char_boundary(MAX_GUESSED_BYTES)];
        Self::guessed(beginning).map_or(Self::ALL, |shown| Self(shown.0 | Self::ENGLISH.0))
    }

    /// Returns the set as a bit for each language.
    pub const fn bits(self) -> u16 {
        self.0
    }

    /// Returns the set of some bits, or `None` if one stands for no language.
    pub const fn from_bits(bits: u16) -> Option<Self> {
        if bits & !Self::ALL.0 == 0 {
            Some(Self(bits))
        } else {
            None
        }
    }

    fn guessed(text: &str) -> Option<Self> {
        let shown = latin_language(text)?;
        let place = STEMMED_LANGUAGES.iter().position(|(language, _)| *language == shown)?;
        Some(Self(1 << place))
    }

    pub(super) fn algorithms(self) -> impl Iterator<Item = Algorithm> {
        let places = (0..STEMMED_LANGUAGES.len()).filter(move |place| self.0 & (1 << place) != 0);
        places
            .filter_map(|place| STEMMED_LANGUAGES.get(place))
            .flat_map(|(_, algorithms)| *algorithms)
            .copied()
    }
}

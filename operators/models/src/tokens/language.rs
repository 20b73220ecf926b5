//! The language of a text, as far as the stems of its words depend on it.
//!
//! Invariant: a guess looks at a bounded beginning of a text. It decides between stems only, so a wrong one loses
//! forms of words, and never a word.

use std::collections::HashMap;
use std::sync::LazyLock;

use rust_stemmers::Algorithm;

/// The most bytes of a text that a guess looks at.
const MAX_GUESSED_BYTES: usize = 4_096;
/// The most bytes of a word that tells a language.
const MAX_MARKER_BYTES: usize = 6;

/// A language with Latin letters whose words have stems.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum StemLanguage {
    /// English, which is also assumed of a document that shows no other language.
    English,
    /// German, where `ä` and `ae` are one letter.
    German,
    /// French.
    French,
    /// Spanish.
    Spanish,
    /// Italian.
    Italian,
    /// Portuguese.
    Portuguese,
    /// Dutch.
    Dutch,
    /// Swedish.
    Swedish,
    /// Danish.
    Danish,
    /// Norwegian.
    Norwegian,
    /// Finnish.
    Finnish,
    /// Hungarian.
    Hungarian,
    /// Romanian.
    Romanian,
    /// Turkish.
    Turkish,
}

impl StemLanguage {
    /// All languages. Their order is part of what an index keeps.
    pub const ALL: [Self; 14] = [
        Self::English,
        Self::German,
        Self::French,
        Self::Spanish,
        Self::Italian,
        Self::Portuguese,
        Self::Dutch,
        Self::Swedish,
        Self::Danish,
        Self::Norwegian,
        Self::Finnish,
        Self::Hungarian,
        Self::Romanian,
        Self::Turkish,
    ];

    /// Returns the language of a document, by the most of its small words and letters.
    pub fn of_document(title: &str, body: &str) -> Self {
        let mut evidence = LanguageEvidence::default();
        evidence.read(title);
        evidence.read(body);
        evidence.most().unwrap_or(Self::English)
    }

    pub(super) const fn algorithm(self) -> Algorithm {
        match self {
            Self::English => Algorithm::English,
            Self::German => Algorithm::German,
            Self::French => Algorithm::French,
            Self::Spanish => Algorithm::Spanish,
            Self::Italian => Algorithm::Italian,
            Self::Portuguese => Algorithm::Portuguese,
            Self::Dutch => Algorithm::Dutch,
            Self::Swedish => Algorithm::Swedish,
            Self::Danish => Algorithm::Danish,
            Self::Norwegian => Algorithm::Norwegian,
            Self::Finnish => Algorithm::Finnish,
            Self::Hungarian => Algorithm::Hungarian,
            Self::Romanian => Algorithm::Romanian,
            Self::Turkish => Algorithm::Turkish,
        }
    }

    /// Returns the small words that are frequent in this language and rare in the others.
    const fn markers(self) -> &'static [&'static str] {
        match self {
            Self::English => &[
                "the", "of", "and", "is", "are", "with", "for", "from", "was", "not", "to",
            ],
            Self::German => &[
                "der", "das", "und", "ist", "nicht", "mit", "ein", "eine", "bei", "nach", "wird", "auf", "auch", "dem",
                "wie", "zu", "sie", "für", "zum",
            ],
            Self::French => &[
                "le", "les", "des", "et", "est", "une", "dans", "pour", "sur", "avec", "pas", "du", "qui", "ne",
            ],
            Self::Spanish => &[
                "el", "los", "las", "del", "una", "por", "con", "para", "es", "se", "más", "y", "tras",
            ],
            Self::Italian => &[
                "il", "gli", "di", "che", "è", "per", "non", "della", "del", "sono", "una", "nel",
            ],
            Self::Portuguese => &[
                "os", "uma", "em", "não", "com", "para", "do", "da", "ao", "na", "por", "é",
            ],
            Self::Dutch => &["het", "een", "van", "niet", "met", "voor", "zijn", "op", "wordt", "bij"],
            Self::Swedish => &["och", "att", "det", "som", "på", "är", "inte", "för", "till", "ett"],
            Self::Danish => &["og", "af", "ikke", "til", "på", "er", "det", "som", "blev", "efter"],
            Self::Norwegian => &["og", "av", "ikke", "til", "på", "er", "det", "som", "ble", "etter"],
            Self::Finnish => &["ja", "on", "ei", "että", "se", "oli", "kun", "ovat", "mutta"],
            Self::Hungarian => &["az", "és", "hogy", "nem", "egy", "volt", "meg", "vagy", "ez"],
            Self::Romanian => &["și", "este", "cu", "pentru", "din", "nu", "care", "să", "pe"],
            Self::Turkish => &["ve", "bir", "bu", "için", "ile", "değil", "olarak", "daha", "çok"],
        }
    }

    /// Returns the letters that tell this language from English.
    const fn letters(self) -> &'static str {
        match self {
            Self::German => "äöüß",
            Self::French => "éèêçàùœ",
            Self::Spanish => "ñáéíóú¿¡",
            Self::Italian => "èàùòì",
            Self::Portuguese => "ãõçáéí",
            Self::Swedish => "åäö",
            Self::Danish | Self::Norwegian => "åøæ",
            Self::Finnish => "äö",
            Self::Hungarian => "őűáéó",
            Self::Romanian => "șțăâî",
            Self::Turkish => "ğşıçöü",
            Self::English | Self::Dutch => "",
        }
    }
}

/// The languages by whose rules words of Latin letters are stemmed. Words of other scripts have the rules of theirs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StemLanguages {
    /// Language of a document.
    One(StemLanguage),
    /// English, and the language that a query shows.
    WithEnglish(StemLanguage),
    /// All languages, for a query that shows none: its words must meet the stems of any document.
    Any,
}

impl StemLanguages {
    /// Returns the languages of a query.
    pub fn of_query(text: &str) -> Self {
        let mut evidence = LanguageEvidence::default();
        evidence.read(text);
        evidence.most().map_or(Self::Any, Self::WithEnglish)
    }

    pub(super) fn each(self) -> Vec<StemLanguage> {
        match self {
            Self::One(language) | Self::WithEnglish(language @ StemLanguage::English) => vec![language],
            Self::WithEnglish(language) => vec![StemLanguage::English, language],
            Self::Any => StemLanguage::ALL.to_vec(),
        }
    }
}

/// The languages that have a small word or letter, each as its place in [`StemLanguage::ALL`].
static MARKERS: LazyLock<HashMap<&'static str, Vec<usize>>> = LazyLock::new(|| {
    let mut found: HashMap<&'static str, Vec<usize>> = HashMap::new();
    for (place, language) in StemLanguage::ALL.into_iter().enumerate() {
        for word in language.markers() {
            found.entry(word).or_default().push(place);
        }
    }
    found
});
static LETTERS: LazyLock<HashMap<char, Vec<usize>>> = LazyLock::new(|| {
    let mut found: HashMap<char, Vec<usize>> = HashMap::new();
    for (place, language) in StemLanguage::ALL.into_iter().enumerate() {
        for letter in language.letters().chars() {
            found.entry(letter).or_default().push(place);
        }
    }
    found
});

/// The number of small words and letters of each language.
#[derive(Debug, Default)]
struct LanguageEvidence([u32; StemLanguage::ALL.len()]);

impl LanguageEvidence {
    fn read(&mut self, text: &str) {
        let text = &text[..text.floor_char_boundary(MAX_GUESSED_BYTES)];
        let mut lower = String::new();
        for word in text.split(|character: char| !character.is_alphabetic()) {
            if (1..=MAX_MARKER_BYTES).contains(&word.len()) {
                lower.clear();
                lower.extend(word.chars().flat_map(char::to_lowercase));
                self.add(MARKERS.get(lower.as_str()));
            }
        }
        if !text.is_ascii() {
            for letter in text.chars().filter(|letter| !letter.is_ascii()) {
                self.add(letter.to_lowercase().next().and_then(|letter| LETTERS.get(&letter)));
            }
        }
    }

    fn add(&mut self, places: Option<&Vec<usize>>) {
        for place in places.into_iter().flatten() {
            if let Some(count) = self.0.get_mut(*place) {
                *count += 1;
            }
        }
    }

    /// Returns the language with the most evidence, the first of equals; `None` without any.
    fn most(&self) -> Option<StemLanguage> {
        let most = self.0.iter().max().copied().filter(|most| *most > 0)?;
        let counted = StemLanguage::ALL.into_iter().zip(self.0);
        counted.filter(|(_, count)| *count == most).map(|(language, _)| language).next()
    }
}

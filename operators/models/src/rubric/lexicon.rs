//! The words of the rubric, by class.
//!
//! Invariant: a form counts only as whole words, in Korean with at most three syllables of a listed ending after it, in
//! Japanese and Chinese, which have no spaces, anywhere. A text is judged by the forms of its own languages.

use std::collections::HashMap;
use std::sync::LazyLock;

/// The languages whose forms count in a text.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct LexiconLanguages(u8);

impl LexiconLanguages {
    pub(super) const ENGLISH: Self = Self(1);
    pub(super) const KOREAN: Self = Self(2);
    pub(super) const GERMAN: Self = Self(4);
    pub(super) const JAPANESE: Self = Self(8);
    pub(super) const CHINESE: Self = Self(16);
    pub(super) const SPANISH: Self = Self(32);
    pub(super) const FRENCH: Self = Self(64);
    /// The languages that are written without spaces.
    pub(super) const SPACELESS: Self = Self::JAPANESE.and(Self::CHINESE);

    pub(super) const fn and(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    pub(super) const fn has(self, other: Self) -> bool {
        self.0 & other.0 != 0
    }

    pub(super) const fn is_none(self) -> bool {
        self.0 == 0
    }
}

/// The files of words: a class, a tab, and forms parted by `|` on each line.
const LEXICON_FILES: [(LexiconLanguages, &str); 7] = [
    (LexiconLanguages::ENGLISH, include_str!("../../lexicon/en.txt")),
    (LexiconLanguages::KOREAN, include_str!("../../lexicon/ko.txt")),
    (LexiconLanguages::GERMAN, include_str!("../../lexicon/de.txt")),
    (LexiconLanguages::JAPANESE, include_str!("../../lexicon/ja.txt")),
    (LexiconLanguages::CHINESE, include_str!("../../lexicon/zh.txt")),
    (LexiconLanguages::SPANISH, include_str!("../../lexicon/es.txt")),
    (LexiconLanguages::FRENCH, include_str!("../../lexicon/fr.txt")),
];
/// The most words of a form.
const FORM_WORDS: usize = 4;
/// The most characters of a form in a language without spaces.
const FORM_CHARACTERS: usize = 10;
/// Endings that may follow a Korean form, such as particles.
const WORD_ENDINGS: [&str; 71] = [
    "",
    "은",
    "는",
    "이",
    "가",
    "을",
    "를",
    "에",
    "에서",
    "으로",
    "로",
    "와",
    "과",
    "도",
    "만",
    "의",
    "까지",
    "부터",
    "인",
    "한",
    "할",
    "함",
    "해",
    "했다",
    "하다",
    "한다",
    "합니다",
    "하는",
    "하고",
    "하며",
    "하여",
    "해서",
    "하면",
    "된",
    "됨",
    "되어",
    "되었다",
    "되는",
    "된다",
    "됩니다",
    "됐다",
    "이다",
    "입니다",
    "였다",
    "이었다",
    "였고",
    "이며",
    "하게",
    "하지",
    "했고",
    "했으며",
    "하기",
    "하므로",
    "했습니다",
    "다",
    "고",
    "며",
    "서",
    "면",
    "지",
    "었다",
    "았다",
    "습니다",
    "이고",
    "라",
    "이라",
    "들",
    "들은",
    "들이",
    "들을",
    "적인",
];

/// A class of words.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum WordClass {
    Vague,
    Market,
    Advice,
    Stock,
    Condition,
    Cause,
    Fix,
    Symptom,
    Limit,
    Spread,
    Order,
    Imperative,
    System,
    Processor,
    Memory,
    Runtime,
    Cloud,
    Load,
    FirstHand,
    Organisation,
    Before,
    After,
    Compare,
    Hedge,
    You,
    Boiler,
    Template,
    Denial,
    Idle,
    Rule,
}

/// Classes of words that were found, as a set.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct WordClasses(u32);

impl WordClasses {
    pub(super) const fn insert(&mut self, class: WordClass) {
        self.0 |= 1 << class as u32;
    }

    pub(super) const fn has(self, class: WordClass) -> bool {
        self.0 & (1 << class as u32) != 0
    }
}

/// The classes of an environment.
pub(super) const ENVIRONMENT: [WordClass; 6] = [
    WordClass::System,
    WordClass::Processor,
    WordClass::Memory,
    WordClass::Runtime,
    WordClass::Cloud,
    WordClass::Load,
];

impl WordClass {
    fn of(name: &str) -> Option<Self> {
        Some(match name {
            "vague" => Self::Vague,
            "market" => Self::Market,
            "advice" => Self::Advice,
            "stock" => Self::Stock,
            "cond" => Self::Condition,
            "cause" => Self::Cause,
            "fix" => Self::Fix,
            "symptom" => Self::Symptom,
            "limit" => Self::Limit,
            "spread" => Self::Spread,
            "order" => Self::Order,
            "imperative" => Self::Imperative,
            "os" => Self::System,
            "cpu" => Self::Processor,
            "memory" => Self::Memory,
            "runtime" => Self::Runtime,
            "cloud" => Self::Cloud,
            "load" => Self::Load,
            "firsthand" => Self::FirstHand,
            "organisation" => Self::Organisation,
            "before" => Self::Before,
            "after" => Self::After,
            "compare" => Self::Compare,
            "hedge" => Self::Hedge,
            "you" => Self::You,
            "boiler" => Self::Boiler,
            "template" => Self::Template,
            "denial" => Self::Denial,
            "idle" => Self::Idle,
            "rule" => Self::Rule,
            _ => return None,
        })
    }
}

/// A form's class in a language.
type FormClass = (LexiconLanguages, WordClass);

/// The classes of each form.
static FORMS: LazyLock<HashMap<&'static str, Vec<FormClass>>> = LazyLock::new(|| {
    let mut forms: HashMap<&str, Vec<FormClass>> = HashMap::new();
    for (language, file) in LEXICON_FILES {
        for line in file.lines() {
            let Some((name, listed)) = line.split_once('\t') else {
                continue;
            };
            let Some(class) = WordClass::of(name) else { continue };
            for form in listed.split('|') {
                forms.entry(form).or_default().push((language, class));
            }
        }
    }
    forms
});

/// Calls `found` with the place and the class of every match in a list of lower-case words.
pub(super) fn find(words: &[&str], languages: LexiconLanguages, mut found: impl FnMut(usize, WordClass)) {
    let mut phrase = String::new();
    for start in 0..words.len() {
        phrase.clear();
        for (count, word) in words[start..].iter().take(FORM_WORDS).enumerate() {
            if count == 0 && languages.has(LexiconLanguages::SPACELESS) && !word.is_ascii() {
                find_within(word, languages, &mut |class| found(start, class));
            }
            if word.len() > 64 {
                break;
            }
            if count > 0 {
                phrase.push(' ');
            }
            phrase.push_str(word);
            if let Some(classes) = FORMS.get(phrase.as_str()) {
                let of_language = classes.iter().filter(|(language, _)| languages.has(*language));
                of_language.for_each(|(_, class)| found(start, *class));
            }
            if count < 2 && languages.has(LexiconLanguages::KOREAN) && !word.is_ascii() {
                with_ending(&phrase, word, |class| found(start, class));
            }
        }
    }
}

/// Looks up every part of a run without spaces.
fn find_within(run: &str, languages: LexiconLanguages, found: &mut impl FnMut(WordClass)) {
    let ends: Vec<usize> = run.char_indices().map(|(at, c)| at + c.len_utf8()).collect();
    let mut start = 0;
    for (index, next) in ends.iter().enumerate() {
        for end in ends.iter().skip(index).take(FORM_CHARACTERS) {
            // A whole word is looked up as one.
            if (start, *end) == (0, run.len()) {
                continue;
            }
            let classes = FORMS.get(&run[start..*end]).into_iter().flatten();
            let of_language =
                classes.filter(|(language, _)| language.has(LexiconLanguages::SPACELESS) && language.has(languages));
            of_language.for_each(|(_, class)| found(*class));
        }
        start = *next;
    }
}

/// Looks a phrase up without each ending that its last word may have.
fn with_ending(phrase: &str, last: &str, mut found: impl FnMut(WordClass)) {
    let ends = last
        .char_indices()
        .rev()
        .map(|(at, _)| at)
        .take_while(|at| *at > 0)
        .take(3);
    for at in ends {
        let ending = &last[at..];
        if !WORD_ENDINGS.contains(&ending) {
            continue;
        }
        let stem = &phrase[..phrase.len() - ending.len()];
        if let Some(classes) = FORMS.get(stem) {
            let of_language = classes
                .iter()
                .filter(|(language, _)| language.has(LexiconLanguages::KOREAN));
            of_language.for_each(|(_, class)| found(*class));
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn classes(text: &str) -> Vec<(usize, WordClass)> {
        let words: Vec<_> = text.split(' ').collect();
        let mut all = Vec::new();
        let languages = LexiconLanguages::ENGLISH.and(LexiconLanguages::KOREAN);
        find(&words, languages, |at, class| all.push((at, class)));
        all
    }

    #[test]
    fn every_class_of_the_files_is_known() {
        for line in LEXICON_FILES.iter().flat_map(|(_, file)| file.lines()) {
            let (name, forms) = line.split_once('\t').unwrap();
            assert!(WordClass::of(name).is_some(), "{name}");
            assert!(
                forms
                    .split('|')
                    .all(|form| form == form.to_lowercase() && !form.trim().is_empty()),
                "{name}"
            );
        }
    }

    #[test]
    fn forms_are_whole_words_and_korean_ones_take_endings() {
        assert_eq!(
            classes("a very robust thing"),
            [(1, WordClass::Vague), (2, WordClass::Vague)]
        );
        assert!(classes("everyday robustness").is_empty());
        assert!(classes("due to load").contains(&(0, WordClass::Cause)));
        assert!(classes("원인은 설정").contains(&(0, WordClass::Cause)));
        assert!(classes("원인불명기차").is_empty());
    }
}

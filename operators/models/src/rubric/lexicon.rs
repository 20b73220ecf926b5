//! The words of the rubric, by class.
//!
//! Invariant: a form counts only as whole words, in Korean with at most three syllables of a listed ending after it.

use std::collections::HashMap;
use std::sync::LazyLock;

/// The files of words: a class, a tab, and forms parted by `|` on each line.
const LEXICON_FILES: [&str; 2] = [
    include_str!("../../lexicon/en.txt"),
    include_str!("../../lexicon/ko.txt"),
];
/// The most words of a form.
const FORM_WORDS: usize = 4;
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
    Pad,
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
            "pad" => Self::Pad,
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
            _ => return None,
        })
    }
}

/// The classes of each form.
static FORMS: LazyLock<HashMap<&'static str, Vec<WordClass>>> = LazyLock::new(|| {
    let mut forms: HashMap<&str, Vec<WordClass>> = HashMap::new();
    for line in LEXICON_FILES.iter().flat_map(|file| file.lines()) {
        let Some((name, listed)) = line.split_once('\t') else {
            continue;
        };
        let Some(class) = WordClass::of(name) else { continue };
        for form in listed.split('|') {
            forms.entry(form).or_default().push(class);
        }
    }
    forms
});

/// Calls `found` with the place, the class and the form of every match in a list of lower-case words.
pub(super) fn find(words: &[&str], mut found: impl FnMut(usize, WordClass, &'static str)) {
    let mut phrase = String::new();
    for start in 0..words.len() {
        phrase.clear();
        for (count, word) in words[start..].iter().take(FORM_WORDS).enumerate() {
            if word.len() > 64 {
                break;
            }
            if count > 0 {
                phrase.push(' ');
            }
            phrase.push_str(word);
            if let Some((form, classes)) = FORMS.get_key_value(phrase.as_str()) {
                for class in classes {
                    found(start, *class, form);
                }
            }
            if count < 2 && !word.is_ascii() {
                with_ending(&phrase, word, |class, form| found(start, class, form));
            }
        }
    }
}

/// Looks a phrase up without each ending that its last word may have.
fn with_ending(phrase: &str, last: &str, mut found: impl FnMut(WordClass, &'static str)) {
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
        if let Some((form, classes)) = FORMS.get_key_value(stem) {
            for class in classes {
                found(*class, form);
            }
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
        find(&words, |at, class, _| all.push((at, class)));
        all
    }

    #[test]
    fn every_class_of_the_files_is_known() {
        for line in LEXICON_FILES.iter().flat_map(|file| file.lines()) {
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

//! The sentences of a text with what is found in each: figures, names, commands, and the classes of its words.
//!
//! Invariant: linear in the text; a mark depends on its sentence, its languages and the title alone.

use std::collections::HashSet;

use operators::knowledge::is_east_asian;

use super::lexicon::{ENVIRONMENT, LexiconLanguages, WordClass, WordClasses, find};
use super::parse::{Sentence, quantities, words};

/// A sentence and what was found in it.
#[derive(Debug, Default)]
#[expect(clippy::struct_excessive_bools, reason = "each is a mark of its own")]
pub(super) struct MarkedSentence<'a> {
    pub(super) text: &'a str,
    pub(super) classes: WordClasses,
    /// Quantities with units, or numbers in a row.
    pub(super) figures: usize,
    /// Identifiers, versions, paths, and words in code marks.
    pub(super) names: usize,
    /// Words in capitals, and Latin words in a text of another script.
    pub(super) proper: usize,
    pub(super) commands: usize,
    pub(super) words: usize,
    pub(super) is_row: bool,
    pub(super) is_item: bool,
    pub(super) is_step: bool,
    /// Beginnings of the words that are of a subject and not of any measurement.
    pub(super) stems: Vec<&'a str>,
    pub(super) has_title: bool,
    pub(super) is_stray: bool,
}

impl MarkedSentence<'_> {
    pub(super) fn has(&self, class: WordClass) -> bool {
        self.classes.has(class)
    }

    pub(super) fn gives_cause(&self) -> bool {
        self.has(WordClass::Cause) && self.has(WordClass::Symptom)
    }

    pub(super) fn is_evidence(&self) -> bool {
        self.figures > 0 || self.names > 0 || self.commands > 0 || self.gives_cause()
    }

    pub(super) fn is_talk(&self) -> bool {
        let talks = self.has(WordClass::Vague)
            || self.has(WordClass::Advice)
            || self.has(WordClass::Market)
            || self.has(WordClass::Stock)
            || self.has(WordClass::You);
        talks && !self.is_evidence()
    }

    /// Returns true if a figure stands with what it is of, or with the condition it holds under.
    pub(super) fn is_conditioned(&self) -> bool {
        let is_named = self.is_row || self.names > 0 || self.proper > 0;
        self.figures > 0 && (is_named || self.has(WordClass::Condition) && self.words >= 6)
    }

    pub(super) fn is_limit(&self) -> bool {
        self.has(WordClass::Limit) && self.names + self.figures > 0
    }

    pub(super) fn is_incident(&self) -> bool {
        let is_told = self.has(WordClass::Cause) || self.has(WordClass::Fix) || self.names > 0;
        self.has(WordClass::Symptom) && is_told
    }

    pub(super) fn is_change(&self) -> bool {
        let has_both = self.has(WordClass::Before) && self.has(WordClass::After);
        (has_both || self.has(WordClass::Fix)) && self.names + self.proper > 0
    }

    /// Returns true for a row or an item that says something of a name or a figure.
    pub(super) fn is_entry(&self) -> bool {
        (self.is_row || self.is_item) && self.names + self.figures > 0
    }

    /// Number of kinds of evidence.
    pub(super) fn kinds(&self) -> usize {
        let is_one = [
            self.figures > 0,
            self.names > 0,
            self.commands > 0 || self.is_step,
            self.has(WordClass::Cause) || self.has(WordClass::Limit),
            self.has(WordClass::Before) && self.has(WordClass::After)
                || self.has(WordClass::Compare) && self.figures > 1,
            self.has(WordClass::Symptom),
            self.proper > 0,
        ];
        is_one.into_iter().filter(|is| *is).count()
    }

    /// Weight of the sentence in shares: a row of a table says less than a sentence.
    pub(super) fn weight(&self) -> f64 {
        if self.is_row { 0.34 } else { 1.0 }
    }
}

/// Counts over the whole text.
#[derive(Debug, Default)]
pub(super) struct TextCounts<'a> {
    pub(super) words: usize,
    pub(super) letters: usize,
    pub(super) different: HashSet<&'a str>,
    pub(super) vague: usize,
    pub(super) market: usize,
    pub(super) stock: usize,
    pub(super) hedge: usize,
    pub(super) you: usize,
    pub(super) boiler: usize,
    pub(super) template: usize,
    pub(super) idle: usize,
    pub(super) commands: HashSet<&'a str>,
    pub(super) versions: HashSet<&'a str>,
    pub(super) environment: WordClasses,
}

impl<'a> TextCounts<'a> {
    /// Marks a sentence and counts its words.
    pub(super) fn mark(
        &mut self,
        sentence: &'a Sentence,
        languages: LexiconLanguages,
        of_title: &HashSet<&str>,
    ) -> MarkedSentence<'a> {
        let mut marked = MarkedSentence {
            text: &sentence.text,
            is_row: sentence.is_row,
            is_item: sentence.is_item,
            ..MarkedSentence::default()
        };
        let lower = words(&sentence.lower);
        let (mut acts_first, mut is_ordered) = (false, false);
        let mut listed = vec![false; lower.len()];
        find(&lower, languages, |at, class| {
            marked.classes.insert(class);
            if let Some(listed) = listed.get_mut(at) {
                // Words of these classes are in any text; those of systems and loads are in any measurement.
                *listed |= lower[at].is_ascii() || !languages.has(LexiconLanguages::SPACELESS);
            }
            acts_first |= class == WordClass::Imperative
                && (at < 3 || languages.has(LexiconLanguages::SPACELESS.and(LexiconLanguages::KOREAN)));
            is_ordered |= class == WordClass::Order && at < 2;
            match class {
                WordClass::Vague => self.vague += 1,
                WordClass::Market => self.market += 1,
                WordClass::Stock => self.stock += 1,
                WordClass::Hedge => self.hedge += 1,
                WordClass::You => self.you += 1,
                WordClass::Boiler => self.boiler += 1,
                WordClass::Template => self.template += 1,
                WordClass::Idle => self.idle += 1,
                other if ENVIRONMENT.contains(&other) => self.environment.insert(other),
                _ => {}
            }
        });
        for (word, listed) in lower.iter().zip(listed) {
            let wide = word.chars().filter(|c| is_east_asian(*c)).count();
            // Two signs of these scripts stand for a word.
            let count = if wide > 0 {
                wide.div_ceil(2)
            } else {
                usize::from(word.chars().any(char::is_alphanumeric))
            };
            self.words += count;
            self.letters += if wide > 0 {
                5 * count
            } else {
                count * word.chars().count().min(20)
            };
            marked.words += count;
            self.different.insert(word);
            self.template += usize::from(word.contains("{{") || word.contains("xxx") || word.starts_with("your_"));
            let stems = stems(word);
            marked.has_title |= stems.iter().any(|stem| of_title.contains(stem));
            if !listed {
                marked.stems.extend(stems);
            }
        }
        let with_units = quantities(&sentence.lower)
            .filter(|quantity| !quantity.unit.is_empty())
            .count();
        let bare_numbers = quantities(&sentence.lower)
            .filter(|quantity| (quantity.value >= 100.0 || quantity.value.fract() != 0.0) && quantity.unit.is_empty());
        marked.figures = with_units
            + if sentence.is_row || marked.words >= 4 {
                bare_numbers.count()
            } else {
                0
            };
        self.add_names(sentence, &mut marked);
        let objects = marked.figures + marked.names + marked.proper;
        marked.is_step = (acts_first || is_ordered) && objects > 0;
        marked
    }

    /// Adds the identifiers, versions, commands and words in capitals of a sentence.
    pub(super) fn add_names(&mut self, sentence: &'a Sentence, marked: &mut MarkedSentence<'a>) {
        let outer = |c: char| !(c.is_alphanumeric() || matches!(c, '_' | '-' | '/' | '.' | ':' | '%'));
        let is_wide_text = sentence.text.chars().any(is_east_asian);
        let mut before = "";
        let mut in_code = false;
        let parted = |c: char| c.is_whitespace() || matches!(c, ',' | '(' | ')' | '|' | '、' | '。' | '「' | '」');
        for (at, word) in sentence.text.split(parted).filter(|word| !word.is_empty()).enumerate() {
            let ticks = word.matches('`').count();
            let coded = in_code || ticks > 0;
            in_code ^= ticks % 2 == 1;
            let name = word.trim_matches(|c| outer(c) || matches!(c, '.' | ':'));
            if name.is_empty() || name.len() > 120 || name.contains("://") {
                continue;
            }
            let follows_name = before.chars().any(char::is_alphabetic) && before.chars().count() > 1;
            if is_version(name) && follows_name || is_named_version(name) {
                self.versions.insert(name);
                marked.names += 1;
            } else if (coded && name.chars().any(char::is_alphabetic)) || is_identifier(name) {
                marked.names += 1;
            } else if (is_wide_text && name.chars().take_while(char::is_ascii_alphabetic).count() >= 2)
                || (at > 0 && is_capital(name))
            {
                marked.proper += 1;
            }
            before = name;
        }
        for code in sentence.text.split('`').skip(1).step_by(2) {
            if let Some(first) = command(code) {
                self.commands.insert(first);
                marked.commands += 1;
            }
        }
    }
}

/// Returns the program of a line that is a command with an argument.
pub(super) fn command(line: &str) -> Option<&str> {
    let line = line.trim_start_matches(['$', '>', ' ']);
    let (first, rest) = line.split_once(' ')?;
    let is_program = first.len() >= 2
        && first.starts_with(|c: char| c.is_ascii_alphabetic() || matches!(c, '.' | '/'))
        && first
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '.' | '/' | '_'));
    (is_program && !rest.trim().is_empty() && !rest.trim_start().starts_with(['=', ':', '{'])).then_some(first)
}

/// Returns true for `API`, `Redis`, `OpenSSL`.
fn is_capital(word: &str) -> bool {
    word.len() >= 2 && word.is_ascii() && word.starts_with(|c: char| c.is_ascii_uppercase())
}

/// Returns the beginnings of a word that stand for its subject: of Latin words six letters, of Hangul two syllables, of
/// Han and Kana each pair of signs.
pub(super) fn stems(word: &str) -> Vec<&str> {
    let wide = word.chars().any(is_east_asian);
    if !wide {
        let count = word.chars().count();
        let is_word = count >= 4
            && word
                .chars()
                .all(|c| c.is_alphabetic() || matches!(c, '-' | '_' | '.' | '\''));
        let singular = ["es", "s"]
            .iter()
            .find_map(|end| word.strip_suffix(end))
            .filter(|stem| stem.len() >= 4);
        let stem = singular.unwrap_or(word);
        let end = stem.char_indices().nth(6).map_or(stem.len(), |(at, _)| at);
        return if is_word { vec![&stem[..end]] } else { Vec::new() };
    }
    let starts: Vec<(usize, char)> = word.char_indices().collect();
    let end_of = |index: usize| starts.get(index).map_or(word.len(), |(at, _)| *at);
    if starts.iter().any(|(_, c)| ('\u{AC00}'..='\u{D7A3}').contains(c)) {
        return if starts.len() >= 2 {
            vec![&word[..end_of(2)]]
        } else {
            Vec::new()
        };
    }
    let is_hiragana = |c: char| ('\u{3041}'..='\u{309F}').contains(&c);
    starts
        .windows(2)
        .enumerate()
        .filter(|(_, pair)| is_east_asian(pair[0].1) && is_east_asian(pair[1].1))
        .filter(|(_, pair)| !is_hiragana(pair[0].1) && !is_hiragana(pair[1].1))
        .map(|(index, pair)| &word[pair[0].0..end_of(index + 2)])
        .collect()
}

/// Returns true for `1.2`, `v1.2.3`, `22.04`.
fn is_version(word: &str) -> bool {
    let digits = word.strip_prefix(['v', 'V']).unwrap_or(word);
    let digits = digits.trim_end_matches(|c: char| !c.is_ascii());
    digits.contains('.')
        && digits.split('.').count() <= 4
        && digits
            .split('.')
            .all(|part| !part.is_empty() && part.chars().all(|c| c.is_ascii_digit()))
}

/// Returns true for `name:1.2`, `name-1.2.3`, `name@1.2` and hashes of commits.
fn is_named_version(word: &str) -> bool {
    let hash = (7..=40).contains(&word.len())
        && word.chars().all(|c| c.is_ascii_hexdigit())
        && word.chars().any(|c| c.is_ascii_digit())
        && word.chars().any(|c| c.is_ascii_alphabetic());
    let parted = word.rsplit_once([':', '-', '@', '/']);
    let tagged = parted.is_some_and(|(name, version)| is_version(version) && name.chars().any(char::is_alphabetic));
    hash || tagged
}

/// Returns true for `snake_case`, `camelCase`, `a.b`, `/path/x`, `CODE_CASE`, `E0502`, `--flag`.
fn is_identifier(word: &str) -> bool {
    if !word.is_ascii() || word.len() < 2 {
        // A particle may follow an identifier.
        let latin = word.trim_end_matches(|c: char| !c.is_ascii());
        return latin.len() >= 3 && latin.len() < word.len() && is_identifier(latin);
    }
    let letters = word.chars().any(|c| c.is_ascii_alphabetic());
    let camel = word
        .as_bytes()
        .windows(2)
        .any(|pair| pair[0].is_ascii_lowercase() && pair[1].is_ascii_uppercase());
    let inner = |mark: char| word.trim_matches(mark).contains(mark);
    let dotted = inner('.')
        && word
            .split('.')
            .all(|part| part.len() >= 2 && part.chars().any(|c| c.is_ascii_alphabetic()));
    let code = word.chars().any(|c| c.is_ascii_digit())
        && word.chars().next().is_some_and(|c| c.is_ascii_uppercase())
        && word.len() >= 3
        && !word.contains('%');
    let path = word.starts_with('/') && word.len() > 3;
    letters && (inner('_') || camel || dotted || code || path || word.starts_with("--") || word.contains("::"))
}

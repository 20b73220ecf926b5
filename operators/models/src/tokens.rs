//! Tokens of texts: the same for documents, queries and vectors.
//!
//! Invariant: tokens depend on the text only and cost time linear in it. A position belongs to one word or to one pair
//! of syllables; every spelling of it has that position, so a phrase of a document is a phrase of a query.

mod common;
mod identifier;
mod language;
mod parts;

use std::borrow::Cow;

use rust_stemmers::{Algorithm, Stemmer};
use unicode_normalization::UnicodeNormalization;
use unicode_normalization::char::is_combining_mark;

pub use common::is_common;
pub use identifier::identifiers;
pub use language::StemLanguages;
pub use parts::word_parts;

/// The most characters of a token.
const MAX_TOKEN_CHARACTERS: usize = 40;
/// The most syllables of a run that is a token as a whole.
const LONGEST_RUN: usize = 8;
/// The particles that a run of Hangul may end with, longer ones first.
const PARTICLES: [&str; 17] = [
    "에서", "으로", "까지", "부터", "은", "는", "이", "가", "을", "를", "의", "에", "도", "만", "와", "과", "로",
];

/// The kind of a token.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum TokenKind {
    /// A word in lower case without marks.
    Word,
    /// The stem of a word by the rules of a language, where it differs from the word.
    Stem,
    /// A number, a version, or the beginning of a version.
    Number,
    /// One or two characters of Hangul.
    Syllables,
    /// A run of Hangul, whole or without its particle.
    Run,
    /// One or two characters of Han or Kana, or a whole run of Katakana.
    Characters,
}

/// A token of a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Token<'a> {
    /// Normal form of the text that the token stands for.
    pub text: &'a str,
    /// Position of the word or pair.
    pub position: u32,
    /// Kind of the token, such as a word or a number.
    pub kind: TokenKind,
    /// True if the token holds a part of a particle, which a match may lack.
    pub is_particle: bool,
}

/// The script of a character, as far as tokens differ by it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Script {
    Letter,
    Digit,
    Hangul,
    Han,
    Katakana,
    Mark,
    /// A lone part of a syllable, which is dropped.
    Jamo,
    None,
}

fn script(character: char) -> Script {
    match character {
        '0'..='9' => Script::Digit,
        'a'..='z' | 'A'..='Z' => Script::Letter,
        '\0'..='\x7f' => Script::None,
        '\u{AC00}'..='\u{D7A3}' => Script::Hangul,
        '\u{1100}'..='\u{11FF}' | '\u{A960}'..='\u{A97F}' | '\u{D7B0}'..='\u{D7FF}' | '\u{3130}'..='\u{318F}' => {
            Script::Jamo
        }
        '\u{30A1}'..='\u{30FA}' | '\u{30FC}'..='\u{30FF}' | '\u{31F0}'..='\u{31FF}' => Script::Katakana,
        '\u{3005}'..='\u{3007}'
        | '\u{3041}'..='\u{3096}'
        | '\u{3400}'..='\u{4DBF}'
        | '\u{4E00}'..='\u{9FFF}'
        | '\u{F900}'..='\u{FAFF}'
        | '\u{20000}'..='\u{3FFFF}' => Script::Han,
        other if is_combining_mark(other) => Script::Mark,
        other if other.is_alphanumeric() => Script::Letter,
        _ => Script::None,
    }
}

/// Calls `sink` with every token of a text, in the order of positions. Words of Latin letters have the stems of
/// `languages`.
pub fn tokens(text: &str, languages: StemLanguages, sink: &mut dyn FnMut(Token<'_>)) {
    let text = folded(text);
    let mut scan = TokenScan {
        text: &text,
        at: 0,
        position: 0,
        languages,
        buffer: String::new(),
        sink,
    };
    scan.run();
}

/// Returns a text with one spelling for characters that differ in form only.
fn folded(text: &str) -> Cow<'_, str> {
    if text.is_ascii() {
        return Cow::Borrowed(text);
    }
    let shown = |character: &char| !operators::is_invisible(u32::from(*character));
    // These two stand for sentences, which would make a text up to 18 times as long.
    let is_sentence = |character: &char| matches!(character, '\u{FDFA}' | '\u{FDFB}');
    let plain = text
        .chars()
        .filter(|character| shown(character) && !is_sentence(character));
    // Filtered again after folding, which can turn a visible character into one that does not show.
    let mut folded = String::with_capacity(text.len());
    for character in plain.nfkc().filter(shown) {
        match character {
            'ß' | 'ẞ' => folded.push_str("ss"),
            // Without its dot, Turkish and others write it with one.
            'ı' => folded.push('i'),
            // Forms of one letter in Arabic and Persian, and the stroke that only lengthens a word.
            'ى' | 'ی' => folded.push('ي'),
            'ک' => folded.push('ك'),
            'ة' => folded.push('ه'),
            'ٱ' => folded.push('ا'),
            'ـ' => {}
            other => folded.push(decimal_digit(other).unwrap_or(other)),
        }
    }
    Cow::Owned(folded)
}

/// Returns the ASCII digit of a decimal digit of another script.
fn decimal_digit(character: char) -> Option<char> {
    /// The zeros of scripts whose ten digits follow each other: Arabic, Persian, Nko, and those of India, South-East
    /// Asia and Tibet.
    const ZEROS: [u32; 19] = [
        0x0660, 0x06F0, 0x07C0, 0x0966, 0x09E6, 0x0A66, 0x0AE6, 0x0B66, 0x0BE6, 0x0C66, 0x0CE6, 0x0D66, 0x0DE6, 0x0E50,
        0x0ED0, 0x0F20, 0x1040, 0x17E0, 0x1810,
    ];
    let code = u32::from(character);
    let zero = ZEROS.into_iter().find(|zero| (*zero..*zero + 10).contains(&code))?;
    char::from_digit(code - zero, 10)
}

/// Returns the stems of a word in lower case without marks, each once and none that is the word.
fn stems(word: &str, languages: StemLanguages) -> Vec<String> {
    let Some(first) = word.chars().next().filter(|_| word.chars().all(char::is_alphabetic)) else {
        return Vec::new();
    };
    let of_script = match first {
        '\u{0370}'..='\u{03FF}' => Some(Algorithm::Greek),
        '\u{0400}'..='\u{04FF}' => Some(Algorithm::Russian),
        '\u{0600}'..='\u{06FF}' => Some(Algorithm::Arabic),
        '\u{0B80}'..='\u{0BFF}' => Some(Algorithm::Tamil),
        'a'..='z' | '\u{00DF}'..='\u{024F}' => None,
        _ => return Vec::new(),
    };
    let mut found: Vec<String> = Vec::new();
    let mut add = |stem: Cow<'_, str>| {
        if !stem.is_empty() && *stem != *word && !found.iter().any(|known| *known == *stem) {
            found.push(stem.into_owned());
        }
    };
    if let Some(algorithm) = of_script {
        add(Stemmer::create(algorithm).stem(word));
        return found;
    }
    for algorithm in languages.algorithms() {
        let plain = match algorithm {
            Algorithm::German => with_plain_umlauts(word),
            _ => Cow::Borrowed(word),
        };
        add(Stemmer::create(algorithm).stem(&plain));
    }
    found
}

/// Returns a word in which `ae`, `oe` and `ue` are written as `ä`, `ö` and `ü` are without their marks.
fn with_plain_umlauts(word: &str) -> Cow<'_, str> {
    if !word.contains('e') {
        return Cow::Borrowed(word);
    }
    let mut plain = String::with_capacity(word.len());
    let mut last = None;
    for letter in word.chars() {
        let is_sign = letter == 'e' && matches!(last, Some('a' | 'o' | 'u')) && !plain.ends_with("qu");
        if !is_sign {
            plain.push(letter);
        }
        last = Some(letter);
    }
    Cow::Owned(plain)
}

struct TokenScan<'a, 's> {
    text: &'a str,
    at: usize,
    position: u32,
    languages: StemLanguages,
    buffer: String,
    sink: &'s mut dyn FnMut(Token<'_>),
}

impl<'a> TokenScan<'a, '_> {
    fn run(&mut self) {
        while let Some(character) = self.text[self.at..].chars().next() {
            match script(character) {
                Script::None | Script::Mark | Script::Jamo => self.at += character.len_utf8(),
                Script::Letter => self.word(),
                Script::Digit => self.number(),
                Script::Hangul => self.hangul(),
                kind @ (Script::Han | Script::Katakana) => self.characters(kind),
            }
        }
    }

    /// Takes the longest run of characters that `keeps` accepts.
    fn take(&mut self, keeps: impl Fn(Script) -> bool) -> &'a str {
        let rest = &self.text[self.at..];
        let end = rest
            .char_indices()
            .find(|(_, character)| !keeps(script(*character)))
            .map_or(rest.len(), |(end, _)| end);
        self.at += end;
        &rest[..end]
    }

    fn emit(&mut self, text: &str, kind: TokenKind, is_particle: bool) {
        (self.sink)(Token {
            text,
            position: self.position,
            kind,
            is_particle,
        });
    }

    fn word(&mut self) {
        let run = self.take(|kind| matches!(kind, Script::Letter | Script::Digit | Script::Mark));
        self.emit_word(run);
    }

    /// Emits a word and its stems at the present position, which it ends. A run of marks alone is no word.
    fn emit_word(&mut self, run: &str) {
        let mut word = std::mem::take(&mut self.buffer);
        word.clear();
        if run.is_ascii() {
            word.push_str(&run[..run.len().min(MAX_TOKEN_CHARACTERS)]);
            word.make_ascii_lowercase();
        } else {
            let letters = run.chars().flat_map(char::to_lowercase).nfd();
            let letters = letters.filter(|letter| !is_combining_mark(*letter));
            word.extend(letters.nfc().take(MAX_TOKEN_CHARACTERS));
        }
        if !word.is_empty() {
            self.emit(&word, TokenKind::Word, false);
            for stem in stems(&word, self.languages) {
                self.emit(&stem, TokenKind::Stem, false);
            }
            self.position += 1;
        }
        self.buffer = word;
    }

    /// Takes a number with its fraction, a version, or a number with the unit behind it.
    fn number(&mut self) {
        let bytes = &self.text.as_bytes()[self.at..];
        let is_digit = |at: usize| bytes.get(at).is_some_and(u8::is_ascii_digit);
        let mut number = std::mem::take(&mut self.buffer);
        number.clear();
        let mut end = 0;
        while end < bytes.len() {
            match bytes[end] {
                digit if digit.is_ascii_digit() => number.push(char::from(digit)),
                // Only a comma before exactly three digits groups thousands; `1,2` is a list.
                b',' if is_digit(end + 1) && is_digit(end + 2) && is_digit(end + 3) && !is_digit(end + 4) => {}
                b'.' if is_digit(end + 1) => number.push('.'),
                _ => break,
            }
            end += 1;
        }
        number.truncate(MAX_TOKEN_CHARACTERS);
        self.at += end;
        let letters = self.take(|kind| matches!(kind, Script::Letter | Script::Mark));
        let joins_digits = self.text.as_bytes().get(self.at).is_some_and(u8::is_ascii_digit);
        if !letters.is_empty() && joins_digits {
            // A hash or the like: one word as a whole.
            let start = self.at - letters.len() - end;
            self.take(|kind| matches!(kind, Script::Letter | Script::Digit | Script::Mark));
            let whole = &self.text[start..self.at];
            self.buffer = number;
            self.emit_word(whole);
            return;
        }
        self.emit(&number, TokenKind::Number, false);
        let parts: Vec<usize> = number.match_indices('.').map(|(at, _)| at).collect();
        // A search for 1.2 finds 1.2.3. Four parts bound what a long run of dots can emit.
        for at in parts.iter().rev().take(4) {
            self.emit(&number[..*at], TokenKind::Number, false);
        }
        self.position += 1;
        self.buffer = number;
        if !letters.is_empty() {
            self.emit_word(letters);
        }
    }

    fn hangul(&mut self) {
        let run = self.take(|kind| matches!(kind, Script::Hangul | Script::Jamo | Script::Mark));
        for run in run.split(|character| script(character) != Script::Hangul) {
            self.hangul_run(run);
        }
    }

    fn hangul_run(&mut self, run: &str) {
        let starts: Vec<usize> = run.char_indices().map(|(at, _)| at).chain([run.len()]).collect();
        let syllables = starts.len() - 1;
        if syllables == 0 {
            return;
        }
        // A particle is one only behind a word of two syllables.
        let particle = PARTICLES.iter().find_map(|particle| {
            let stem = run.strip_suffix(particle)?;
            (stem.chars().count() >= 2).then_some(stem)
        });
        let particle_from = particle.map_or(syllables, |stem| stem.chars().count());
        if syllables <= LONGEST_RUN && syllables != 2 {
            self.emit(
                run,
                if syllables == 1 {
                    TokenKind::Syllables
                } else {
                    TokenKind::Run
                },
                false,
            );
        }
        if let Some(stem) = particle.filter(|stem| stem.chars().count() <= LONGEST_RUN && stem.chars().count() != 2) {
            self.emit(stem, TokenKind::Run, false);
        }
        for first in 0..syllables.saturating_sub(1) {
            let pair = &run[starts[first]..starts[first + 2]];
            self.emit(pair, TokenKind::Syllables, first + 2 > particle_from);
            self.position += 1;
        }
        if syllables == 1 {
            self.position += 1;
        }
    }

    fn characters(&mut self, kind: Script) {
        let run = self.take(|other| other == kind || other == Script::Mark);
        let starts: Vec<usize> = run.char_indices().map(|(at, _)| at).chain([run.len()]).collect();
        let count = starts.len() - 1;
        if kind == Script::Katakana && count > 2 && count <= MAX_TOKEN_CHARACTERS {
            self.emit(run, TokenKind::Characters, false);
        }
        if count == 1 {
            self.emit(run, TokenKind::Characters, false);
            self.position += 1;
        }
        for first in 0..count.saturating_sub(1) {
            self.emit(&run[starts[first]..starts[first + 2]], TokenKind::Characters, false);
            self.position += 1;
        }
    }
}

#[cfg(test)]
mod tests;

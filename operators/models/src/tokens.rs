//! Tokens of texts: the same for documents, queries and vectors.
//!
//! Invariant: tokens depend on the text only and cost time linear in it. A position belongs to one word or to one pair
//! of syllables; every spelling of it has that position, so a phrase of a document is a phrase of a query.

mod identifier;

use rust_stemmers::{Algorithm, Stemmer};
use unicode_normalization::UnicodeNormalization;
use unicode_normalization::char::is_combining_mark;

pub use identifier::identifiers;

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
    /// The stem of an English word, where it differs from the word.
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

/// Calls `sink` with every token of a text, in the order of positions.
pub fn tokens(text: &str, sink: &mut dyn FnMut(Token<'_>)) {
    let folded: String;
    let text = if text.is_ascii() {
        text
    } else {
        let shown = |character: &char| !operators::is_invisible(u32::from(*character));
        // These two stand for sentences, which would make a text up to 18 times as long.
        let is_sentence = |character: &char| matches!(character, '\u{FDFA}' | '\u{FDFB}');
        let plain = text
            .chars()
            .filter(|character| shown(character) && !is_sentence(character));
        // Filtered again after folding, which can turn a visible character into one that does not show.
        folded = plain.nfkc().filter(shown).collect();
        &folded
    };
    let mut scan = TokenScan {
        text,
        at: 0,
        position: 0,
        stemmer: Stemmer::create(Algorithm::English),
        buffer: String::new(),
        sink,
    };
    scan.run();
}

struct TokenScan<'a, 's> {
    text: &'a str,
    at: usize,
    position: u32,
    stemmer: Stemmer,
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

    /// Emits a word and its stem at the present position, which it ends. A run of marks alone is no word.
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
            if word.bytes().all(|byte| byte.is_ascii_lowercase()) {
                let stem = self.stemmer.stem(&word);
                if stem != word {
                    let stem = stem.into_owned();
                    self.emit(&stem, TokenKind::Stem, false);
                }
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

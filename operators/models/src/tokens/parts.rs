//! Parts of words, by which a word is found that is misspelled, or that is a part of another.
//!
//! Invariant: parts need no language and no dictionary. Their number is linear in the text.

use unicode_normalization::char::{decompose_canonical, is_combining_mark};

use super::{Script, folded, script};

/// The characters of a part of a word with an alphabet.
const LETTERS_PER_PART: usize = 3;
/// The letters of a part of a word in Hangul: a syllable and the beginning of the next, so that one wrong vowel or
/// final consonant leaves most parts.
const JAMO_PER_PART: usize = 4;
/// The frame of a word, which tells its beginning and end from its middle.
const FRAME: char = '_';
/// The characters of a part, 32 bits each: as one number, which sorts faster than a list.
type WordPart = u128;

/// Calls `sink` with each distinct part of the words of a text, in an order of their own: three characters of a word
/// with its frame, four letters of Hangul, one and two characters of Han or Kana.
pub fn word_parts<'a>(texts: impl IntoIterator<Item = &'a str>, sink: &mut dyn FnMut(&str)) {
    let mut parts = Vec::new();
    for text in texts {
        read(&folded(text), &mut parts);
    }
    parts.sort_unstable();
    parts.dedup();
    let mut text = String::new();
    for part in parts {
        text.clear();
        text.extend(characters(part));
        sink(&text);
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum WordKind {
    Alphabet,
    Hangul,
    Characters,
}

fn read(text: &str, parts: &mut Vec<WordPart>) {
    let mut word: Vec<char> = Vec::new();
    let mut kind = WordKind::Alphabet;
    for character in text.chars() {
        let next = match script(character) {
            Script::Letter | Script::Digit => WordKind::Alphabet,
            Script::Hangul => WordKind::Hangul,
            Script::Han | Script::Katakana => WordKind::Characters,
            Script::Mark => continue,
            Script::Jamo | Script::None => {
                end(&mut word, kind, parts);
                continue;
            }
        };
        if next != kind {
            end(&mut word, kind, parts);
            kind = next;
        }
        match next {
            WordKind::Characters => word.push(character),
            _ if character.is_ascii() => word.push(character.to_ascii_lowercase()),
            _ => {
                for lower in character.to_lowercase() {
                    // Marks are dropped, and a syllable of Hangul becomes its letters.
                    decompose_canonical(lower, |letter| {
                        if !is_combining_mark(letter) {
                            word.push(letter);
                        }
                    });
                }
            }
        }
    }
    end(&mut word, kind, parts);
}

/// Adds the parts of a word, and empties it.
fn end(word: &mut Vec<char>, kind: WordKind, parts: &mut Vec<WordPart>) {
    if word.is_empty() {
        return;
    }
    match kind {
        WordKind::Characters => {
            parts.extend(word.iter().map(|character| part(&[*character])));
            parts.extend(word.windows(2).map(part));
        }
        WordKind::Hangul => {
            // A word has no frame at its end, where particles are.
            word.insert(0, FRAME);
            windows(word, JAMO_PER_PART, parts);
        }
        WordKind::Alphabet => {
            word.insert(0, FRAME);
            word.push(FRAME);
            windows(word, LETTERS_PER_PART, parts);
        }
    }
    word.clear();
}

fn windows(word: &[char], length: usize, parts: &mut Vec<WordPart>) {
    if word.len() < length {
        parts.push(part(word));
    }
    parts.extend(word.windows(length).map(part));
}

fn part(characters: &[char]) -> WordPart {
    characters.iter().fold(0, |part, character| {
        (part << 32) | WordPart::from(u32::from(*character))
    })
}

/// Returns the characters of a part. None of them is zero.
fn characters(part: WordPart) -> impl Iterator<Item = char> {
    let places = (0..JAMO_PER_PART).rev();
    let codes = places.filter_map(move |place| u32::try_from((part >> (32 * place)) & 0xFFFF_FFFF).ok());
    codes.filter(|code| *code != 0).filter_map(char::from_u32)
}

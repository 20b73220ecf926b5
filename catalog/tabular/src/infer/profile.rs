//! Facts that are kept of a column while its values pass: the readings that all of them still allow.
//!
//! Invariant: the memory of a column is bounded, and a value is looked at once. A reading that a value excludes keeps
//! the first such value and its line.

use types::json::{self, check_digits};

use super::answer::{MAX_SHOWN_CHARACTERS, shown};
use super::distinct::DistinctValues;
use super::numbers::NumberFacts;
use super::times::TimeFacts;
use crate::values::{NullWords, WrittenNumber, is_null};

/// Words that mean null in a column whose other values are no text.
const NULL_WORDS: [&[u8]; 14] = [
    b"NA", b"N/A", b"n/a", b"NULL", b"null", b"NaN", b"nan", b"None", b"none", b"nil", b"-", b"--", b"?", b".",
];
/// A null word of spreadsheets, and that of columns of pandas.
const ERROR_WORDS: [&[u8]; 2] = [b"#N/A", b"<NA>"];
/// The longest word with a meaning of its own: `-Infinity`.
const LONGEST_WORD: usize = 9;
/// The most words that a column keeps.
const MAX_WORDS: usize = 40;
/// The most runs of signs that a column keeps.
const MAX_SIGN_RUNS: usize = 2;
/// Exclusions before a reading can be given up.
const MIN_EXCLUSIONS: u64 = 100;
/// A reading is given up when one in so many values excludes it: it then is no better type of a column with some bad
/// ones.
const GIVEN_UP_SHARE: u64 = 20;
/// Bytes of distinct values and examples of all columns.
pub(super) const MAX_KEPT_BYTES: usize = 8 << 20;

/// A value that excludes a reading.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Exclusion {
    /// Number of such values.
    pub(super) count: u64,
    /// Line of the first one.
    pub(super) line: u64,
    /// The first one, shortened.
    pub(super) value: String,
}

impl Exclusion {
    pub(super) fn add(&mut self, value: &[u8], line: u64) {
        if self.count == 0 {
            self.line = line;
            self.value = shown(&String::from_utf8_lossy(
                &value[..value.len().min(4 * MAX_SHOWN_CHARACTERS)],
            ));
        }
        self.count += 1;
    }

    pub(super) const fn is_none(&self) -> bool {
        self.count == 0
    }

    /// Adds up exclusions of one reading for several reasons.
    pub(super) fn with(&self, other: &Self) -> Self {
        let first = match (self.is_none(), other.is_none()) {
            (_, true) => self,
            (true, _) => other,
            _ if self.line <= other.line => self,
            _ => other,
        };
        Self {
            count: self.count + other.count,
            ..first.clone()
        }
    }
}

/// A reading of a column that is no text, and the values that exclude it.
#[derive(Clone, Debug, Default)]
pub(super) struct ReadingFamily {
    pub(super) excluded: Exclusion,
    /// True once so many values exclude it that it is not tried any more.
    pub(super) is_given_up: bool,
}

impl ReadingFamily {
    fn exclude(&mut self, value: &[u8], line: u64, values: u64) {
        self.excluded.add(value, line);
        let count = self.excluded.count;
        self.is_given_up = count > MIN_EXCLUSIONS && count.saturating_mul(GIVEN_UP_SHARE) > values;
    }

    /// Returns true if no value excludes it.
    pub(super) const fn holds(&self) -> bool {
        self.excluded.is_none() && !self.is_given_up
    }
}

/// Meaning of a word that is no value of a number, a date or a truth value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum WordMeaning {
    /// One of the null words.
    Null,
    /// Not a number, in any spelling.
    NotANumber,
    /// Infinity, with or without sign.
    Infinity,
    /// Signs alone.
    Signs,
}

/// A word, counted.
#[derive(Clone, Debug)]
pub(super) struct WordTally {
    pub(super) word: Box<[u8]>,
    pub(super) meaning: WordMeaning,
    pub(super) count: u64,
    pub(super) line: u64,
}

/// Facts about a column.
#[derive(Clone, Debug, Default)]
pub(super) struct ColumnProfile {
    /// Cells that are null whatever the column is.
    pub(super) nulls: u64,
    /// Cells of blanks alone.
    pub(super) blanks: u64,
    /// Words with a meaning of their own, in a column of anything but text.
    pub(super) words: Vec<WordTally>,
    /// The other values.
    pub(super) values: u64,
    pub(super) booleans: ReadingFamily,
    pub(super) numbers: ReadingFamily,
    pub(super) number: NumberFacts,
    pub(super) times: ReadingFamily,
    pub(super) time: TimeFacts,
    pub(super) json: ReadingFamily,
    /// JSON texts of which a double drops digits.
    pub(super) lossy_json: Exclusion,
    pub(super) distinct: DistinctValues,
    /// JSON alone: values of each kind.
    pub(super) texts: u64,
    pub(super) nested: u64,
    pub(super) truths: u64,
    /// JSON alone: the first value of another kind than the first value.
    pub(super) mixed: Exclusion,
    first_kind: Option<JsonKind>,
    /// Words that a person calls null.
    asked_nulls: NullWords,
}

/// The kind of a JSON value that is not null.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum JsonKind {
    Text,
    Truth,
    Number,
    Nested,
}

impl ColumnProfile {
    /// Creates the profile of a column in which these words mean null.
    pub(super) fn with_nulls(asked_nulls: NullWords) -> Self {
        Self {
            asked_nulls,
            ..Self::default()
        }
    }

    /// Returns true if no cell says anything.
    pub(super) fn is_empty(&self) -> bool {
        self.values == 0 && self.words.is_empty()
    }

    /// Returns true if the column would have a better type without the value on this line, which at least three others
    /// have.
    pub(super) fn is_broken_by(&self, line: u64) -> bool {
        let families = [&self.booleans, &self.numbers, &self.times, &self.json];
        self.values > 3
            && families
                .iter()
                .any(|family| family.excluded.count == 1 && family.excluded.line == line)
    }

    /// True if only a text is left.
    const fn is_text(&self) -> bool {
        self.booleans.is_given_up && self.numbers.is_given_up && self.times.is_given_up && self.json.is_given_up
    }

    /// Adds a cell of a delimited file. `budget` are the bytes of values that may still be kept of all columns.
    pub(super) fn add_cell(&mut self, cell: &[u8], line: u64, budget: &mut usize) {
        if is_null(cell) || self.asked_nulls.contains(cell) {
            self.nulls += 1;
            return;
        }
        self.distinct.add(cell, budget);
        if self.is_text() {
            self.values += 1;
            return;
        }
        let word = cell.trim_ascii();
        if word.is_empty() {
            self.blanks += 1;
            return;
        }
        if word.len() <= LONGEST_WORD && self.add_word(word, line) {
            return;
        }
        self.values += 1;
        self.add_number(word, line);
        if !self.booleans.is_given_up && !is_boolean(word) {
            self.booleans.exclude(cell, line, self.values);
        }
        if !self.times.is_given_up && !self.time.add(word, line) {
            self.times.exclude(cell, line, self.values);
        }
        if !self.json.is_given_up {
            if matches!(word.first(), Some(b'{' | b'[')) && json::parse(word).is_ok() {
                if !check_digits(word).is_empty() {
                    self.lossy_json.add(word, line);
                }
            } else {
                self.json.exclude(cell, line, self.values);
            }
        }
    }

    fn add_number(&mut self, word: &[u8], line: u64) {
        if self.numbers.is_given_up || self.number.add_short(word, line) {
            return;
        }
        let begins = matches!(word.first(), Some(b'0'..=b'9' | b'-' | b'+' | b'.' | b','));
        let point = begins.then(|| WrittenNumber::parse(word, b'.')).flatten();
        let comma = if begins && point.is_none() {
            WrittenNumber::parse(word, b',')
        } else {
            None
        };
        match point.or(comma) {
            Some(number) => self.number.add(&number, point.is_none(), word, line),
            None => self.numbers.exclude(word, line, self.values),
        }
    }

    /// Counts a word that may mean something else than a value. Returns false for every other word.
    fn add_word(&mut self, word: &[u8], line: u64) -> bool {
        let Some(meaning) = meaning(word) else {
            return false;
        };
        if let Some(known) = self.words.iter_mut().find(|known| *known.word == *word) {
            known.count += 1;
            return true;
        }
        let runs = self.words.iter().filter(|known| known.meaning == WordMeaning::Signs);
        if self.words.len() >= MAX_WORDS || meaning == WordMeaning::Signs && runs.count() >= MAX_SIGN_RUNS {
            return false;
        }
        self.words.push(WordTally {
            word: word.into(),
            meaning,
            count: 1,
            line,
        });
        true
    }

    /// Adds a value of a JSON object as it is written. Returns false for one that is no JSON as far as it shows.
    pub(super) fn add_json(&mut self, value: &[u8], line: u64, budget: &mut usize) -> bool {
        let kind = match value {
            b"null" => {
                self.nulls += 1;
                return true;
            }
            [b'"', ..] => JsonKind::Text,
            b"true" | b"false" => JsonKind::Truth,
            [b'{' | b'[', ..] => JsonKind::Nested,
            [b'0'..=b'9' | b'-', ..] => JsonKind::Number,
            _ => return false,
        };
        if kind == JsonKind::Text && self.is_asked_null(value) {
            self.nulls += 1;
            return true;
        }
        self.values += 1;
        if *self.first_kind.get_or_insert(kind) != kind {
            self.mixed.add(value, line);
        }
        match kind {
            JsonKind::Text => self.add_json_text(value, line, budget),
            JsonKind::Truth => {
                self.truths += 1;
                self.distinct.add(value, budget);
            }
            JsonKind::Number => {
                self.distinct.add(value, budget);
                if let Some(number) = WrittenNumber::parse(value, b'.') {
                    self.number.add(&number, false, value, line);
                }
            }
            JsonKind::Nested => {
                self.nested += 1;
                self.distinct.add(value, budget);
                if !check_digits(value).is_empty() {
                    self.lossy_json.add(value, line);
                }
            }
        }
        true
    }

    fn is_asked_null(&self, value: &[u8]) -> bool {
        let plain = value.get(1..value.len().saturating_sub(1)).unwrap_or_default();
        self.asked_nulls.contains(plain)
    }

    fn add_json_text(&mut self, value: &[u8], line: u64, budget: &mut usize) {
        self.texts += 1;
        let plain = value.get(1..value.len().saturating_sub(1)).unwrap_or_default();
        // No date has an escape sequence.
        if !plain.contains(&b'\\') {
            self.distinct.add(plain, budget);
            if !self.times.is_given_up && !self.time.add(plain, line) {
                self.times.exclude(plain, line, self.values);
            }
            return;
        }
        if !self.times.is_given_up {
            self.times.exclude(plain, line, self.values);
        }
        if !self.distinct.is_incomplete
            && let Ok(text) = serde_json::from_slice::<String>(value)
        {
            self.distinct.add(text.as_bytes(), budget);
        }
    }
}

fn is_boolean(word: &[u8]) -> bool {
    word.eq_ignore_ascii_case(b"true") || word.eq_ignore_ascii_case(b"false")
}

/// Returns the meaning of a word that may be no value.
fn meaning(word: &[u8]) -> Option<WordMeaning> {
    match word.first()? {
        b'N' | b'n' | b'-' | b'?' | b'.' if NULL_WORDS.contains(&word) => {
            let is_nan = word.eq_ignore_ascii_case(b"nan");
            return Some(if is_nan {
                WordMeaning::NotANumber
            } else {
                WordMeaning::Null
            });
        }
        b'#' | b'<' if ERROR_WORDS.contains(&word) => return Some(WordMeaning::Null),
        b'0'..=b'9' => return None,
        _ => {}
    }
    let unsigned = word
        .strip_prefix(b"-")
        .or_else(|| word.strip_prefix(b"+"))
        .unwrap_or(word);
    let is = |name: &[u8]| unsigned.eq_ignore_ascii_case(name);
    if is(b"nan") {
        return Some(WordMeaning::NotANumber);
    }
    if is(b"inf") || is(b"infinity") {
        return Some(WordMeaning::Infinity);
    }
    // Letters of other scripts are words.
    let is_signs = word.iter().all(u8::is_ascii_punctuation);
    let is_json = matches!(word, b"{}" | b"[]");
    (is_signs && !is_json).then_some(WordMeaning::Signs)
}

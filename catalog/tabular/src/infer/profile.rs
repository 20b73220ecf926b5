//! What is kept of a column while its values pass: the readings that all of them still allow.
//!
//! Invariant: the memory of a column is bounded, and a value is looked at once. A reading that a value excludes keeps the
//! first such value and its line.

use types::json::check_digits;
use types::{Date, Timestamp, decimal, json};

use super::answer::{MAX_DISTINCT_VALUES, MAX_EXAMPLES, MAX_SHOWN_CHARACTERS, shown};
use crate::values::{ClockShape, DateForms, NullWords, OffsetShape, TimeShape, WrittenNumber, is_null};

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
/// A reading is given up when one in so many values excludes it: it then is no better type of a column with some bad ones.
const GIVEN_UP_SHARE: u64 = 20;
/// Bytes of distinct values and examples of all columns.
pub(super) const MAX_KEPT_BYTES: usize = 8 << 20;
/// Digits of a number without exponent that a double always holds.
const DOUBLE_DIGITS: usize = 15;
/// Bytes of `YYYY-MM-DD`.
const DATE_BYTES: usize = 10;

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

/// What the numbers of a column are like.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct NumberFacts {
    /// Numbers.
    pub(super) count: u64,
    /// Whole numbers without point and exponent.
    pub(super) whole: u64,
    /// Whole numbers beyond 64 bits.
    pub(super) beyond_64_bits: Exclusion,
    /// Numbers with a point.
    pub(super) points: Exclusion,
    /// Numbers with a comma.
    pub(super) commas: Exclusion,
    /// Numbers with a comma and exactly three digits after it.
    pub(super) commas_of_three: u64,
    /// Numbers of which a double drops digits.
    pub(super) lossy: Exclusion,
    /// Numbers with an exponent.
    pub(super) exponents: Exclusion,
    /// Numbers of which a decimal has too many digits.
    pub(super) too_long: Exclusion,
    /// The most digits before and after the point.
    pub(super) whole_digits: usize,
    pub(super) scale: usize,
    /// Numbers that begin with zeros, or with a plus and are whole: they are codes, and digits of them would be lost.
    pub(super) codes: Exclusion,
    /// True if these codes begin with a plus alone.
    pub(super) is_plus: bool,
    /// Numbers of digits, one `E`, and digits.
    pub(super) scientific: Exclusion,
    /// Least and most bytes of a value.
    pub(super) widths: Option<(usize, usize)>,
    /// Least and greatest whole number of 64 bits.
    pub(super) range: Option<(i64, i64)>,
}

impl NumberFacts {
    /// Adds a number of few digits with a point or without, as most are. Returns false for every other word.
    fn add_short(&mut self, word: &[u8], line: u64) -> bool {
        let (is_negative, digits) = match word {
            [b'-', digits @ ..] => (true, digits),
            digits => (false, digits),
        };
        // With its point it has at most as many digits as a double always holds.
        if digits.is_empty() || digits.len() > DOUBLE_DIGITS {
            return false;
        }
        let (mut value, mut point) = (0_i64, None);
        for (place, byte) in digits.iter().enumerate() {
            let digit = byte.wrapping_sub(b'0');
            if digit <= 9 {
                value = value * 10 + i64::from(digit);
            } else if *byte == b'.' && point.is_none() && place > 0 {
                point = Some(place);
            } else {
                return false;
            }
        }
        let whole = point.unwrap_or(digits.len());
        // Zeros before the first digit are a matter of codes.
        if digits[0] == b'0' && whole > 1 {
            return false;
        }
        self.count += 1;
        let width = word.len();
        self.widths = Some(
            self.widths
                .map_or((width, width), |(least, most)| (least.min(width), most.max(width))),
        );
        self.whole_digits = self.whole_digits.max(if digits[0] == b'0' { 0 } else { whole });
        if point.is_none() {
            self.whole += 1;
            let value = if is_negative { -value } else { value };
            self.range = Some(
                self.range
                    .map_or((value, value), |(least, most)| (least.min(value), most.max(value))),
            );
            return true;
        }
        let zeros = digits.iter().rev().take_while(|digit| **digit == b'0').count();
        self.scale = self.scale.max((digits.len() - whole - 1).saturating_sub(zeros));
        self.points.add(word, line);
        true
    }

    /// Adds a number of the file.
    fn add(&mut self, number: &WrittenNumber<'_>, is_comma: bool, text: &[u8], line: u64) {
        self.count += 1;
        let width = text.len();
        self.widths = Some(
            self.widths
                .map_or((width, width), |(least, most)| (least.min(width), most.max(width))),
        );
        let (whole, fraction) = (number.whole_digits(), number.fraction_digits());
        if number.has_leading_zeros() || number.has_plus && number.is_whole() {
            if self.codes.is_none() {
                self.is_plus = !number.has_leading_zeros();
            }
            self.codes.add(text, line);
        }
        if number.fraction.is_some() {
            if is_comma {
                self.commas.add(text, line);
                let of_three = number.fraction.is_some_and(|fraction| fraction.len() == 3) && number.whole.len() <= 3;
                self.commas_of_three += u64::from(of_three);
            } else {
                self.points.add(text, line);
            }
        }
        if number.exponent.is_some() {
            self.exponents.add(text, line);
            let is_code = number.fraction.is_none() && text.iter().all(|byte| byte.is_ascii_digit() || *byte == b'E');
            if is_code {
                self.scientific.add(text, line);
            }
        } else {
            self.whole_digits = self.whole_digits.max(whole);
            self.scale = self.scale.max(fraction);
            if whole + fraction > usize::from(decimal::MAX_DIGITS) || fraction > usize::from(decimal::MAX_SCALE) {
                self.too_long.add(text, line);
            }
        }
        if number.is_whole() {
            self.whole += 1;
            match number.integer() {
                Some(integer) => {
                    let range = self.range.get_or_insert((integer, integer));
                    *range = (range.0.min(integer), range.1.max(integer));
                }
                None => self.beyond_64_bits.add(text, line),
            }
            if whole <= DOUBLE_DIGITS {
                return;
            }
        } else if whole + fraction <= DOUBLE_DIGITS && number.exponent.is_none() {
            return;
        }
        if number.double().is_none() {
            self.lossy.add(text, line);
        }
    }
}

/// What the dates and times of a column are like.
#[derive(Clone, Debug)]
pub(super) struct TimeFacts {
    /// Forms that every date allows.
    pub(super) forms: DateForms,
    /// Dates without a time of day.
    pub(super) dates: u64,
    /// Dates with one.
    pub(super) times: u64,
    /// The form of the time of day.
    pub(super) clock: Option<ClockShape>,
    /// True if all are written as a contract takes them.
    pub(super) is_usual: bool,
    /// True if all have the same form of the time of day.
    pub(super) is_uniform: bool,
    /// Times that are finer than a microsecond.
    pub(super) fine: Exclusion,
    /// Times with an offset.
    pub(super) offsets: u64,
}

impl Default for TimeFacts {
    fn default() -> Self {
        Self {
            forms: DateForms::ALL,
            dates: 0,
            times: 0,
            clock: None,
            is_usual: true,
            is_uniform: true,
            fine: Exclusion::default(),
            offsets: 0,
        }
    }
}

impl TimeFacts {
    /// Adds a word that is written as a contract takes it, if all others are. Returns false for every other one.
    fn add_usual(&mut self, word: &[u8]) -> bool {
        if !self.is_usual {
            return false;
        }
        let Ok(word) = str::from_utf8(word) else {
            return false;
        };
        if self.dates > 0 {
            let is_date = word.parse::<Date>().is_ok();
            self.dates += u64::from(is_date);
            return is_date;
        }
        let Some(clock) = self.clock.filter(|_| word.parse::<Timestamp>().is_ok()) else {
            return false;
        };
        // RFC 3339 has seconds and an offset at once, and leaves the sign before the time alone open.
        self.is_uniform &= word.as_bytes().get(DATE_BYTES) == Some(&clock.separator);
        self.times += 1;
        self.offsets += 1;
        true
    }

    /// Adds a word, unless it is none of the forms that the others have.
    fn add(&mut self, word: &[u8], line: u64) -> bool {
        if self.add_usual(word) {
            return true;
        }
        let Some(shape) = TimeShape::of(word, self.forms) else {
            return false;
        };
        let is_first = self.dates + self.times == 0;
        let is_same_kind = is_first || shape.clock.is_some() == (self.times > 0);
        let is_uniform = self.is_uniform && (is_first || shape.clock == self.clock);
        let is_usual = self.is_usual && shape.is_usual;
        if !is_same_kind || !(is_uniform || is_usual) {
            return false;
        }
        self.forms = shape.dates;
        (self.is_uniform, self.is_usual) = (is_uniform, is_usual);
        self.clock = self.clock.or(shape.clock);
        match shape.clock {
            None => self.dates += 1,
            Some(clock) => {
                self.times += 1;
                self.offsets += u64::from(clock.offset != OffsetShape::None);
            }
        }
        if shape.is_fine {
            self.fine.add(word, line);
        }
        true
    }
}

/// Slots for the places of distinct values: a power of two, and more than twice as many as there are values.
const DISTINCT_SLOTS: usize = 128;
/// The most bytes of a value that is kept.
const MAX_KEPT_VALUE_BYTES: usize = 4 * MAX_SHOWN_CHARACTERS;

/// Distinct values of a column, as long as they are few and short.
#[derive(Clone, Debug, Default)]
pub(super) struct DistinctValues {
    /// The values in the order in which they came.
    order: Vec<Box<[u8]>>,
    /// Places in `order`, plus one, by hash; the next free slot is taken. Empty before the first value, and when no more
    /// values are kept.
    slots: Vec<u8>,
    /// Place of the value that came last: equal values often follow each other.
    last: usize,
    pub(super) is_incomplete: bool,
}

impl DistinctValues {
    fn add(&mut self, value: &[u8], budget: &mut usize) {
        if self.is_incomplete && (self.order.len() >= MAX_EXAMPLES || self.slots.is_empty())
            || self.order.get(self.last).is_some_and(|last| **last == *value)
        {
            return;
        }
        if self.slots.is_empty() {
            self.slots = vec![0; DISTINCT_SLOTS];
        }
        let value = if value.len() > MAX_KEPT_VALUE_BYTES {
            self.is_incomplete = true;
            &value[..MAX_KEPT_VALUE_BYTES]
        } else {
            value
        };
        let mut slot = hash_value(value);
        while let Some(place) = self
            .slots
            .get(slot)
            .and_then(|place| usize::from(*place).checked_sub(1))
        {
            if self.order.get(place).is_some_and(|known| **known == *value) {
                self.last = place;
                return;
            }
            slot = (slot + 1) % DISTINCT_SLOTS;
        }
        let most = if self.is_incomplete {
            MAX_EXAMPLES
        } else {
            MAX_DISTINCT_VALUES
        };
        if self.order.len() >= most || *budget < value.len() {
            self.is_incomplete = true;
            self.slots = Vec::new();
            return;
        }
        *budget -= value.len();
        self.last = self.order.len();
        self.order.push(value.into());
        self.slots[slot] = u8::try_from(self.order.len()).unwrap_or(u8::MAX);
    }

    /// Returns the values that are none of the words, in the order in which they came.
    pub(super) fn values(&self, but: &[&[u8]]) -> Vec<String> {
        let kept = self.order.iter().filter(|value| !but.contains(&value.trim_ascii()));
        kept.map(|value| shown(&String::from_utf8_lossy(value))).collect()
    }
}

/// Returns the first slot of a value. Values that are made to share one cost a column no more than its few values.
fn hash_value(value: &[u8]) -> usize {
    let word = |bytes: &[u8]| bytes.iter().fold(0_u64, |word, byte| word << 8 | u64::from(*byte));
    let (begin, end) = (value.len().min(8), value.len().saturating_sub(8));
    let mixed = word(&value[..begin]).wrapping_add(word(&value[end..]).rotate_left(29)) ^ value.len() as u64;
    // Fibonacci hashing (Knuth 6.4): the upper bits depend on all of them.
    usize::try_from(mixed.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 57).unwrap_or(0) % DISTINCT_SLOTS
}

/// What is known of a column.
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

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn a_short_number_says_what_a_long_one_says(word in "-?[0-9]{0,9}(\\.[0-9]{0,9})?") {
            let mut short = NumberFacts::default();
            if short.add_short(word.as_bytes(), 1) {
                let mut long = NumberFacts::default();
                let number = WrittenNumber::parse(word.as_bytes(), b'.').unwrap();
                long.add(&number, false, word.as_bytes(), 1);
                prop_assert_eq!(short, long, "{}", word);
            }
        }
    }

    #[test]
    fn most_numbers_are_short() {
        for word in ["0", "-1", "12.50", "0.5", "123456789012345", "5."] {
            assert!(NumberFacts::default().add_short(word.as_bytes(), 1), "{word}");
        }
        for word in ["", "-", "007", ".5", "1e5", "1,5", "+1", "1.2.3", "1234567890123456"] {
            assert!(!NumberFacts::default().add_short(word.as_bytes(), 1), "{word}");
        }
    }

    #[test]
    fn distinct_values_are_kept_as_long_as_they_are_few() {
        let (mut values, mut budget) = (DistinctValues::default(), MAX_KEPT_BYTES);
        for number in 0..200 {
            values.add((number % 50).to_string().as_bytes(), &mut budget);
        }
        assert!(!values.is_incomplete);
        assert_eq!(values.values(&[b"7"]).len(), 49);
        values.add(b"one more", &mut budget);
        assert!(values.is_incomplete);
        let (mut values, mut budget) = (DistinctValues::default(), MAX_KEPT_BYTES);
        values.add("é".repeat(1_000).as_bytes(), &mut budget);
        assert_eq!(values.values(&[])[0].chars().count(), MAX_SHOWN_CHARACTERS + 1);
        assert!(values.is_incomplete);
        let mut none = 0;
        let mut values = DistinctValues::default();
        values.add(b"x", &mut none);
        assert!(values.values(&[]).is_empty() && values.is_incomplete);
    }
}

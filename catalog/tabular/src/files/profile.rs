//! Facts about the values of a column: counts, first places and examples.
//!
//! Invariant: all columns together hold at most [`MAX_HINT_BYTES`] of values.

use std::collections::HashSet;

use super::cell::{FileCell, FileCellRule, text_of};
use crate::infer::{MAX_DISTINCT_VALUES, MAX_EXAMPLES, NullWordCount, shown};

/// The most bytes of examples and distinct values of a file.
const MAX_HINT_BYTES: usize = 16 << 20;
/// Doubles hold all integers below 2 to the power of 53.
const EXACT_END: f64 = 9_007_199_254_740_992.0;

/// A kind of value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FileCellKind {
    Boolean,
    Whole,
    Floating,
    Decimal,
    Text,
    Form,
    Bytes,
    Day,
    Local,
    Instant,
    Nested,
}

impl FileCellKind {
    pub(super) const ALL: [Self; 11] = [
        Self::Boolean,
        Self::Whole,
        Self::Floating,
        Self::Decimal,
        Self::Text,
        Self::Form,
        Self::Bytes,
        Self::Day,
        Self::Local,
        Self::Instant,
        Self::Nested,
    ];

    /// Returns the kind of a value; `None` if it has none.
    const fn of(cell: &FileCell<'_>) -> Option<Self> {
        Some(match cell {
            FileCell::Boolean(_) => Self::Boolean,
            FileCell::Integer(_) | FileCell::Unsigned(_) => Self::Whole,
            FileCell::Single(_) | FileCell::Double(_) => Self::Floating,
            FileCell::Decimal(_) => Self::Decimal,
            FileCell::Text(_) => Self::Text,
            FileCell::Form(_) => Self::Form,
            FileCell::Bytes(_) => Self::Bytes,
            FileCell::Day(_) => Self::Day,
            FileCell::Local(_) => Self::Local,
            FileCell::Instant(_) => Self::Instant,
            FileCell::Nested(_) | FileCell::Unsayable(_) => Self::Nested,
            FileCell::Null | FileCell::Failed | FileCell::Unstored => return None,
        })
    }

    /// Returns the name of several values.
    pub(super) const fn plural(self) -> &'static str {
        match self {
            Self::Boolean => "booleans",
            Self::Whole => "integers",
            Self::Floating => "numbers",
            Self::Decimal => "decimals",
            Self::Text => "texts",
            Self::Form => "times of day, intervals or UUIDs",
            Self::Bytes => "bytes",
            Self::Day => "dates",
            Self::Local | Self::Instant => "times",
            Self::Nested => "lists, structs or maps",
        }
    }
}

/// The first of the values with some trait, and their number.
#[derive(Clone, Debug, Default)]
pub(super) struct Found {
    pub(super) count: u64,
    /// Row of the first, from 1.
    pub(super) row: u64,
    pub(super) value: String,
}

impl Found {
    fn add(&mut self, row: u64, cell: &FileCell<'_>) {
        if self.count == 0 {
            *self = Self {
                count: 0,
                row,
                value: shown(&cell.shown()),
            };
        }
        self.count += 1;
    }
}

/// The values of one column.
#[derive(Clone, Debug, Default)]
pub(super) struct FileColumnProfile {
    kinds: [Found; FileCellKind::ALL.len()],
    /// Values that are null in the file or by a rule.
    pub(super) nulls: u64,
    pub(super) null_words: Vec<NullWordCount>,
    pub(super) nans: u64,
    pub(super) infinities: Found,
    pub(super) failed: u64,
    pub(super) unstored: Found,
    pub(super) unsayable: Found,
    /// Integers beyond 64 bits with a sign.
    pub(super) is_beyond: bool,
    /// Numbers of which doubles do not hold all neighbours.
    pub(super) inexact: Found,
    /// Digits before the point, and after it without zeros at the end.
    pub(super) whole_digits: usize,
    pub(super) fraction_digits: usize,
    /// Bytes that are no text.
    pub(super) opaque: Found,
    /// Times finer than a microsecond.
    pub(super) finer: Found,
    /// Times that do not exist in the zone, or exist twice.
    pub(super) ambiguous: Found,
    /// Days and times outside of the years 1 to 9999.
    pub(super) unsaid: Found,
    pub(super) examples: Vec<String>,
    distinct: HashSet<String>,
    has_more_distinct: bool,
}

/// Room for examples and distinct values.
#[derive(Debug)]
pub(super) struct HintRoom(usize);

impl Default for HintRoom {
    fn default() -> Self {
        Self(MAX_HINT_BYTES)
    }
}

impl HintRoom {
    fn take(&mut self, bytes: usize) -> bool {
        let left = self.0.checked_sub(bytes);
        self.0 = left.unwrap_or(self.0);
        left.is_some()
    }
}

impl FileColumnProfile {
    /// Adds a value.
    pub(super) fn add(&mut self, row: u64, cell: &FileCell<'_>, rule: &FileCellRule, room: &mut HintRoom) {
        match cell {
            FileCell::Failed => self.failed += 1,
            FileCell::Unstored => self.unstored.add(row, cell),
            FileCell::Single(value) if !value.is_finite() => self.add_unfinite(row, f64::from(*value), cell, rule),
            FileCell::Double(value) if !value.is_finite() => self.add_unfinite(row, *value, cell, rule),
            FileCell::Text(text) if cell.is_null(rule) => self.add_null_word(text),
            _ => {}
        }
        if cell.is_null(rule) {
            self.nulls += 1;
            return;
        }
        let Some(kind) = FileCellKind::of(cell) else { return };
        self.kinds[kind as usize].add(row, cell);
        self.add_traits(row, cell, rule);
        self.add_hints(cell, room);
    }

    fn add_unfinite(&mut self, row: u64, value: f64, cell: &FileCell<'_>, rule: &FileCellRule) {
        if value.is_nan() {
            self.nans += 1;
        } else if !cell.is_null(rule) {
            self.infinities.add(row, cell);
        }
    }

    fn add_null_word(&mut self, word: &str) {
        match self.null_words.iter_mut().find(|known| known.word == word) {
            Some(known) => known.count += 1,
            None => self.null_words.push(NullWordCount {
                word: word.to_owned(),
                count: 1,
            }),
        }
    }

    fn add_traits(&mut self, row: u64, cell: &FileCell<'_>, rule: &FileCellRule) {
        match cell {
            FileCell::Unsigned(value) => self.is_beyond |= i64::try_from(*value).is_err(),
            FileCell::Double(value) if value.abs() >= EXACT_END => self.inexact.add(row, cell),
            FileCell::Decimal(text) => {
                let digits = text.trim_start_matches('-');
                let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
                self.is_beyond |= text
                    .split('.')
                    .next()
                    .is_some_and(|whole| whole.parse::<i64>().is_err());
                self.whole_digits = self.whole_digits.max(whole.trim_start_matches('0').len());
                self.fraction_digits = self.fraction_digits.max(fraction.trim_end_matches('0').len());
            }
            FileCell::Bytes(bytes) if text_of(bytes).is_none() => self.opaque.add(row, cell),
            FileCell::Unsayable(_) => self.unsayable.add(row, cell),
            FileCell::Day(_) if !cell.is_sayable() => self.unsaid.add(row, cell),
            FileCell::Local(_) | FileCell::Instant(_) => {
                if cell.is_finer() {
                    self.finer.add(row, cell);
                }
                if !cell.is_sayable() {
                    self.unsaid.add(row, cell);
                } else if cell.is_ambiguous(rule) {
                    self.ambiguous.add(row, cell);
                }
            }
            _ => {}
        }
    }

    fn add_hints(&mut self, cell: &FileCell<'_>, room: &mut HintRoom) {
        if self.has_more_distinct && self.examples.len() >= MAX_EXAMPLES {
            return;
        }
        let value = shown(&cell.shown());
        if self.distinct.contains(&value) {
            return;
        }
        if self.examples.len() < MAX_EXAMPLES && room.take(value.len()) {
            self.examples.push(value.clone());
        }
        if self.distinct.len() < MAX_DISTINCT_VALUES && room.take(value.len()) {
            self.distinct.insert(value);
        } else {
            self.has_more_distinct = true;
            self.distinct.clear();
        }
    }

    /// Returns the values of a kind.
    pub(super) const fn of(&self, kind: FileCellKind) -> &Found {
        &self.kinds[kind as usize]
    }

    /// Returns the kinds of the values.
    pub(super) fn kinds(&self) -> Vec<FileCellKind> {
        let kinds = FileCellKind::ALL.into_iter();
        kinds.filter(|kind| self.of(*kind).count > 0).collect()
    }

    /// Returns true if the column has neither values nor cells that stand for some.
    pub(super) fn is_empty(&self) -> bool {
        self.kinds().is_empty() && self.unstored.count == 0 && self.failed == 0 && self.null_words.is_empty()
    }

    /// Returns all values, if they are few.
    pub(super) fn distinct(&self) -> Option<Vec<String>> {
        let mut values: Vec<String> = self.distinct.iter().cloned().collect();
        values.sort_unstable();
        Some(values).filter(|values| !self.has_more_distinct && !values.is_empty())
    }
}

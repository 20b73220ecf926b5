//! Meaning of a word of a file: numbers, truth values, dates, times and nulls. Reading and inference share it.
//!
//! Invariant: a word gives exactly one value or none. Nothing of it is rounded, cut or left out unless a reading says so.

mod boolean;
mod number;
mod pattern;
mod shape;
mod time;
mod zone;

pub use boolean::truth;
pub use number::{DecimalProblem, WrittenNumber};
pub use pattern::TimePattern;
pub use shape::{ClockShape, DateForms, OffsetShape, TimeShape};
pub use time::{Moment, TimeProblem, ValueParse};
pub use zone::{TimeZones, Zone, tz_release};

/// The word that means null in every column of a delimited file: that of database dumps.
pub const DUMPED_NULL: &[u8] = b"\\N";

/// Returns true if a cell means null in every column: it is empty, or the null of database dumps.
pub fn is_null(cell: &[u8]) -> bool {
    cell.is_empty() || cell == DUMPED_NULL
}

/// Words that mean null in one column, beside those of [`is_null`].
#[derive(Clone, Debug, Default)]
pub struct NullWords {
    words: Vec<Box<[u8]>>,
    /// True at the lengths of the words, up to 63: most cells are told apart by their length alone.
    lengths: u64,
}

impl NullWords {
    /// Returns the words of a file and those of one of its columns.
    pub fn new<'a>(words: impl IntoIterator<Item = &'a String>) -> Self {
        let mut nulls = Self::default();
        for word in words {
            nulls.lengths |= 1 << word.len().min(63);
            nulls.words.push(word.as_bytes().into());
        }
        nulls
    }

    /// Returns true if the cell is one of the words.
    pub fn contains(&self, cell: &[u8]) -> bool {
        self.lengths & 1 << cell.len().min(63) != 0 && self.words.iter().any(|word| **word == *cell)
    }
}

#[cfg(test)]
mod tests;

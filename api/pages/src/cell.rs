//! Values of records and answers as cells of a table.
//!
//! Invariants: null and an empty text look different and read differently. A number has the digits that it came with.

/// Longest text of a cell, in characters. The rest is in the file.
const MAX_CELL_CHARS: usize = 120;

/// Value in a cell.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TableCell {
    /// No value.
    Null,
    /// Text of a record, cut if it is long.
    Text(String),
    /// A number, `true`, `false` or another JSON value as it is written, cut if it is long.
    Literal(String),
}

impl TableCell {
    /// Creates the cell of a text.
    pub fn text(text: &str) -> Self {
        Self::Text(cut(text, MAX_CELL_CHARS))
    }

    /// Creates the cell of a value as JSON writes it.
    pub fn literal(text: &str) -> Self {
        Self::Literal(cut(text, MAX_CELL_CHARS))
    }

    /// Returns the number of bytes that are shown.
    pub fn bytes(&self) -> usize {
        self.written().len()
    }

    /// Returns the text of the value; `null` for none.
    pub(crate) fn written(&self) -> &str {
        match self {
            Self::Null => "null",
            Self::Text(text) | Self::Literal(text) => text,
        }
    }
}

/// Returns the first characters of a text, with a mark behind them if there are more.
pub(crate) fn cut(text: &str, most: usize) -> String {
    match text.char_indices().nth(most) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

//! Values of records and answers as cells of a table.
//!
//! Invariants: null and an empty text look different and read differently. A number has the digits that it came with.

use serde_json::value::RawValue;
use types::FieldType;

/// Bytes of a cell beside its text, about.
const MARKUP_BYTES: usize = 40;
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

    /// Creates the cell of a value of a record.
    pub(crate) fn of_record(kind: FieldType, value: Option<&RawValue>) -> Self {
        Self::of_record_within(kind, value, MAX_CELL_CHARS)
    }

    /// Creates the cell of a JSON value from the beginning of its text, which is a text in JSON.
    pub(crate) fn of_begun_json(value: &RawValue) -> Self {
        let begun = serde_json::from_str(value.get()).unwrap_or_else(|_no_text| value.get().to_owned());
        Self::Literal(cut(&format!("{begun}…"), MAX_CELL_CHARS))
    }

    /// Creates the cell of a value of a record, cut after `most` characters.
    pub(crate) fn of_record_within(kind: FieldType, value: Option<&RawValue>, most: usize) -> Self {
        let json = value.map_or("null", RawValue::get);
        if json == "null" {
            return Self::Null;
        }
        match (kind, serde_json::from_str::<String>(json)) {
            (FieldType::Json, _) | (_, Err(_)) => Self::Literal(cut(json, most)),
            (FieldType::Decimal(_), Ok(text)) => Self::Literal(cut(&text, most)),
            (FieldType::Timestamp, Ok(text)) => Self::Text(instant(&text)),
            (_, Ok(text)) => Self::Text(cut(&text, most)),
        }
    }

    /// Returns the bytes of the cell as HTML, about.
    pub(crate) fn weight(&self) -> usize {
        MARKUP_BYTES + escaped(self.written())
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

/// Returns the bytes of a text in HTML.
pub(crate) fn escaped(text: &str) -> usize {
    // Each of these letters becomes a reference such as `&#60;`.
    let letters = text
        .bytes()
        .filter(|byte| matches!(byte, b'<' | b'>' | b'&' | b'"' | b'\''));
    text.len() + letters.count() * 4
}

/// Returns an instant of a record as people read it. The head of its column names the zone, which is UTC.
pub(crate) fn instant(text: &str) -> String {
    text.strip_suffix('Z').unwrap_or(text).replacen('T', " ", 1)
}

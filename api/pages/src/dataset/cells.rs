//! Values of records as cells of a table.
//!
//! Invariant: null, an empty text and a text that reads like one of them look different and read differently.

use std::borrow::Cow;

use serde_json::value::RawValue;
use types::FieldType;

/// Bytes of a cell beside its text, about.
const MARKUP_BYTES: usize = 40;

/// Text of a cell.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum CellText {
    /// There is no value.
    Null,
    /// A text without a character.
    Empty,
    /// Number, with all its digits.
    Number(String),
    /// JSON text.
    Json(String),
    /// Any other value.
    Plain(String),
}

impl CellText {
    /// Reads a value of a record, and cuts it after `most` characters.
    pub(crate) fn of(kind: FieldType, value: Option<&RawValue>, most: usize) -> Self {
        let json = value.map_or("null", RawValue::get);
        if json == "null" {
            return Self::Null;
        }
        if kind == FieldType::Json {
            return Self::Json(cut(json, most).into_owned());
        }
        // A text that is no JSON text cannot be here: the whole value is shown then.
        let text: Cow<'_, str> = match serde_json::from_str::<String>(json) {
            Ok(text) => text.into(),
            Err(_) => json.into(),
        };
        match kind {
            _ if text.is_empty() => Self::Empty,
            FieldType::Integer | FieldType::Number | FieldType::Decimal(_) => Self::Number(cut(&text, most).into_owned()),
            FieldType::Timestamp => Self::Plain(instant(&text)),
            _ => Self::Plain(cut(&text, most).into_owned()),
        }
    }

    /// Returns the bytes of the cell as HTML, at least.
    pub(crate) fn weight(&self) -> usize {
        match self {
            Self::Null | Self::Empty => MARKUP_BYTES,
            Self::Number(text) | Self::Json(text) | Self::Plain(text) => MARKUP_BYTES + escaped(text),
        }
    }
}

/// Returns the bytes of a text in HTML.
pub(crate) fn escaped(text: &str) -> usize {
    // Each of these letters becomes a reference such as `&#60;`.
    let letters = text.bytes().filter(|byte| matches!(byte, b'<' | b'>' | b'&' | b'"' | b'\''));
    text.len() + letters.count() * 4
}

/// Cuts a text after `most` characters.
pub(crate) fn cut(text: &str, most: usize) -> Cow<'_, str> {
    match text.char_indices().nth(most) {
        Some((end, _)) => format!("{}…", &text[..end]).into(),
        None => text.into(),
    }
}

/// Returns an instant of a record as people read it. The head of its column names the zone, which is UTC.
pub(crate) fn instant(text: &str) -> String {
    text.strip_suffix('Z').unwrap_or(text).replacen('T', " ", 1)
}

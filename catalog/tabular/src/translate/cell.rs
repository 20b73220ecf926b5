//! A cell to the JSON value of its field.
//!
//! Invariant: a cell that is not of the type of its field is a fault; it is never cut, guessed or left out.

use types::json::{self, check_digits};
use types::{FieldType, decimal};

use super::{member, pointer};
use crate::reading::{ColumnReading, Reading, ReadingError};
use crate::values::{
    DecimalProblem, Moment, NullWords, TimeProblem, TimeZones, ValueParse, WrittenNumber, Zone, is_null, truth,
};

/// Form of a timestamp without a `parse`: RFC 3339, with any offset.
const USUAL_INSTANT: &str = "%Y-%m-%dT%H:%M:%S%.f%z";
/// Form of a date without a `parse`.
const USUAL_DATE: &str = "%Y-%m-%d";

/// Reason why a cell is refused.
#[derive(Clone, Debug)]
pub(super) struct CellFault {
    pub(super) code: &'static str,
    /// JSON pointer within the value.
    pub(super) path: String,
    pub(super) problem: String,
}

impl CellFault {
    pub(super) fn value(problem: impl Into<String>) -> Self {
        Self {
            code: "value",
            path: String::new(),
            problem: problem.into(),
        }
    }

    pub(super) fn zero() -> Self {
        Self {
            code: "zero",
            ..Self::value("has the character U+0000")
        }
    }

    fn digits(path: String, problem: String) -> Self {
        Self {
            code: "digits",
            path,
            problem,
        }
    }
}

/// The way from a cell to a value.
#[derive(Clone, Debug)]
pub(super) enum ValueRule {
    Text { keeps_empty: bool },
    Integer,
    Number,
    Boolean,
    Json,
    Decimal(u8),
    Instant { parse: ValueParse, zone: Zone, round: bool },
    Date { parse: ValueParse },
}

/// The rule of a column or a member.
#[derive(Clone, Debug)]
pub(super) struct CellRule {
    /// Its place in the reading.
    pub(super) column: Option<usize>,
    /// `"name":`
    pub(super) member: Vec<u8>,
    pub(super) path: String,
    /// The value that is wanted, in words.
    pub(super) expected: String,
    pub(super) kind: FieldType,
    value: ValueRule,
    nulls: NullWords,
    point: u8,
}

impl CellRule {
    /// Returns the rule of a column; `None` if it is left out. `kind` returns the type of a field.
    pub(super) fn new(
        reading: &Reading,
        (index, column): (usize, &ColumnReading),
        kind: impl Fn(&str) -> FieldType,
        zones: &TimeZones,
    ) -> Result<Option<Self>, ReadingError> {
        let Some(to) = &column.to else { return Ok(None) };
        let fail = |member: &str, problem: String| ReadingError {
            path: format!("/columns/{index}/{member}"),
            problem,
        };
        let kind = kind(to);
        let parse = |usual: &str| {
            let parse = column.parse.as_deref().unwrap_or(usual);
            ValueParse::new(parse).map_err(|problem| fail("parse", problem))
        };
        let value = match kind {
            FieldType::String => ValueRule::Text {
                keeps_empty: reading.empty_text,
            },
            FieldType::Integer => ValueRule::Integer,
            FieldType::Number => ValueRule::Number,
            FieldType::Boolean => ValueRule::Boolean,
            FieldType::Json => ValueRule::Json,
            FieldType::Decimal(scale) => ValueRule::Decimal(scale),
            FieldType::Timestamp => {
                let zone = column.zone.as_deref().unwrap_or("UTC");
                ValueRule::Instant {
                    parse: parse(USUAL_INSTANT)?,
                    zone: zones.get(zone).map_err(|problem| fail("zone", problem))?,
                    round: column.round,
                }
            }
            FieldType::Date => ValueRule::Date {
                parse: parse(USUAL_DATE)?,
            },
        };
        let read_as = |usual: &str| {
            let parse = column.parse.as_deref();
            parse.map_or_else(
                || format!("{}: {usual}", kind.name()),
                |parse| format!("{} read as `{parse}`", kind.name()),
            )
        };
        let expected = match kind {
            FieldType::Timestamp => read_as("RFC 3339 with an offset, years 1 to 9999, at most microseconds"),
            FieldType::Date => read_as("YYYY-MM-DD, years 0001 to 9999, a day that exists"),
            FieldType::Decimal(scale) => {
                let before = decimal::MAX_DIGITS.saturating_sub(scale);
                format!("decimal: at most {before} digits before and {scale} after the point")
            }
            FieldType::Boolean => "boolean: `true` or `false`".to_owned(),
            FieldType::Json => "one strict JSON value".to_owned(),
            FieldType::String | FieldType::Integer | FieldType::Number => kind.name().to_owned(),
        };
        Ok(Some(Self {
            column: Some(index),
            member: member(to),
            path: pointer(to),
            expected,
            kind,
            value,
            nulls: NullWords::new(reading.nulls.iter().chain(&column.nulls)),
            point: u8::try_from(reading.decimal).unwrap_or(b'.'),
        }))
    }

    /// Returns the rule for a field that the reading does not name.
    pub(super) fn unnamed(self) -> Self {
        Self { column: None, ..self }
    }

    /// Writes a cell as a JSON value. Returns false if it is null, and nothing is written then.
    pub(super) fn write(&self, cell: &[u8], is_quoted: bool, out: &mut Vec<u8>) -> Result<bool, CellFault> {
        if let ValueRule::Text { keeps_empty } = self.value {
            if cell.is_empty() && is_quoted && keeps_empty {
                out.extend_from_slice(b"\"\"");
                return Ok(true);
            }
            if is_null(cell) || self.nulls.contains(cell) {
                return Ok(false);
            }
            quote(out, cell);
            return Ok(true);
        }
        // Only texts keep their blanks.
        let word = cell.trim_ascii();
        if is_null(word) || self.nulls.contains(word) {
            return Ok(false);
        }
        self.write_word(word, out)?;
        Ok(true)
    }

    /// Returns true if the values are dates or times.
    pub(super) const fn is_time(&self) -> bool {
        matches!(self.value, ValueRule::Instant { .. } | ValueRule::Date { .. })
    }

    /// Returns true if a text is one of the words for null.
    pub(super) fn is_null_word(&self, word: &[u8]) -> bool {
        self.nulls.contains(word)
    }

    /// Writes a word that is no text and not null.
    pub(super) fn write_word(&self, word: &[u8], out: &mut Vec<u8>) -> Result<(), CellFault> {
        let number = || WrittenNumber::parse(word, self.point);
        match &self.value {
            ValueRule::Text { .. } => {
                quote(out, word);
                Ok(())
            }
            ValueRule::Integer => {
                let number = number().ok_or_else(|| CellFault::value("is no integer"))?;
                if number.write_integer(out) {
                    return Ok(());
                }
                Err(CellFault::value(if number.is_whole() {
                    "is beyond 64 bits: only text or a `decimal` field keeps it"
                } else {
                    "is no integer"
                }))
            }
            ValueRule::Number => {
                let number = number().ok_or_else(|| CellFault::value("is no number"))?;
                if number.write_double(out) {
                    return Ok(());
                }
                let problem = "has digits that a double drops: a `decimal` or `string` field keeps them";
                Err(CellFault::digits(String::new(), problem.to_owned()))
            }
            ValueRule::Boolean => {
                let truth = truth(word).ok_or_else(|| CellFault::value("is neither true nor false"))?;
                out.extend_from_slice(if truth { b"true" } else { b"false" });
                Ok(())
            }
            ValueRule::Json => {
                json::parse(word).map_err(|error| CellFault {
                    path: error.path,
                    ..CellFault::value("is no strict JSON")
                })?;
                sound_digits(word)?;
                out.extend_from_slice(word);
                Ok(())
            }
            ValueRule::Decimal(scale) => {
                let number = number().ok_or_else(|| CellFault::value("is no decimal"))?;
                out.push(b'"');
                let written = number.write_decimal(*scale, out);
                out.push(b'"');
                written.map_err(|problem| CellFault::value(decimal_words(problem, *scale)))
            }
            ValueRule::Instant { parse, zone, round } => {
                out.push(b'"');
                let written = parse
                    .read(word)
                    .and_then(|moment: Moment| moment.write_instant(zone, *round, out));
                out.push(b'"');
                written.map_err(|problem| time_fault("timestamp", problem))
            }
            ValueRule::Date { parse } => {
                out.push(b'"');
                let written = parse.read(word).and_then(|moment| moment.write_date(out));
                out.push(b'"');
                written.map_err(|problem| time_fault("date", problem))
            }
        }
    }
}

fn time_fault(kind: &str, problem: TimeProblem) -> CellFault {
    CellFault {
        code: problem.code(),
        ..CellFault::value(match problem {
            TimeProblem::Form => format!("is no {kind} of this form"),
            problem => format!("is no {kind}: {}", problem.words()),
        })
    }
}

fn decimal_words(problem: DecimalProblem, scale: u8) -> String {
    match problem {
        DecimalProblem::Form => "is no decimal: it has an exponent, or zeros before its first digit".to_owned(),
        DecimalProblem::Scale => format!("has more than {scale} digits after the point"),
        DecimalProblem::Digits => format!("has more than {} digits", decimal::MAX_DIGITS),
    }
}

/// Fails if a double drops digits of a number of a JSON text.
pub(super) fn sound_digits(text: &[u8]) -> Result<(), CellFault> {
    match check_digits(text).into_iter().next() {
        None => Ok(()),
        Some(lost) => {
            let problem = format!("has the number {}", lost.found());
            Err(CellFault::digits(lost.path, problem))
        }
    }
}

/// Writes a text as a JSON string.
pub(super) fn quote(out: &mut Vec<u8>, text: &[u8]) {
    const HEX: &[u8; 16] = b"0123456789abcdef";
    out.push(b'"');
    let mut rest = text;
    while let Some(place) = rest
        .iter()
        .position(|byte| *byte < b' ' || matches!(byte, b'"' | b'\\'))
    {
        let (plain, special) = rest.split_at(place);
        out.extend_from_slice(plain);
        match special[0] {
            byte @ (b'"' | b'\\') => out.extend_from_slice(&[b'\\', byte]),
            b'\n' => out.extend_from_slice(b"\\n"),
            b'\r' => out.extend_from_slice(b"\\r"),
            b'\t' => out.extend_from_slice(b"\\t"),
            byte => {
                let digits = [HEX[usize::from(byte >> 4)], HEX[usize::from(byte & 15)]];
                out.extend_from_slice(b"\\u00");
                out.extend_from_slice(&digits);
            }
        }
        rest = &special[1..];
    }
    out.extend_from_slice(rest);
    out.push(b'"');
}

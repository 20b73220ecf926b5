//! Lines of JSON to a batch, without a tree of values where a record is plain.
//!
//! Invariant: a line becomes exactly what [`json::parse`] and [`Batch::decode`] make of it. A record is plain when it
//! has only fields of the contract, each once, with a value of its type that is spelled without an escape, and lacks no
//! required one; whatever is not plain goes the other way, also where only the spelling is unusual.

use std::sync::Arc;

use serde_json::Value;

use super::Batch;
use super::column::{Plain, plain_instant};
use super::decode::Decoder;
use crate::json::{self, JsonError};
use crate::{Contract, FieldType};

/// The largest integer below which every integer is an IEEE double.
const EXACT_DOUBLE: u64 = 1 << 53;
/// How many digits an integer has at most that surely fits 64 bits.
const SURE_DIGITS: usize = 18;

/// Records read from lines.
#[derive(Debug)]
pub struct Lines<'a> {
    contract: &'a Arc<Contract>,
    /// Name, type and whether it is required of each field, in the order of the canonical form.
    fields: Vec<(&'a [u8], FieldType, bool)>,
    records: Vec<Record>,
    /// The values of plain records, one for each field, in the same order.
    values: Vec<Option<Plain<'a>>>,
    /// The place of the field that came after each field in the record before, and of the first one.
    next: Vec<usize>,
}

#[derive(Debug)]
enum Record {
    Plain,
    Other(Value),
}

impl<'a> Lines<'a> {
    /// No lines, of records of this contract.
    pub fn new(contract: &'a Arc<Contract>) -> Self {
        let fields: Vec<_> = contract
            .canonical_fields()
            .map(|(_, field)| (field.name.as_bytes(), field.kind, field.required))
            .collect();
        Self {
            contract,
            next: (1..=fields.len()).chain([0]).collect(),
            fields,
            records: Vec::new(),
            values: Vec::new(),
        }
    }

    /// Reads the record on a line. A line that is not one strict JSON value is left out and its error returned.
    pub fn push(&mut self, line: &'a [u8]) -> Result<(), JsonError> {
        let before = self.values.len();
        let plain = std::str::from_utf8(line).is_ok_and(|text| self.plain(text).is_some());
        self.records.push(if plain {
            Record::Plain
        } else {
            self.values.truncate(before);
            Record::Other(json::parse(line)?)
        });
        Ok(())
    }

    /// How many records there are.
    pub fn len(&self) -> usize {
        self.records.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.records.is_empty()
    }

    /// The batch of the records, in their order.
    pub fn decode(&self) -> Batch {
        let mut decoder = Decoder::new(self.contract, self.records.len());
        let mut plain = self.values.chunks(self.fields.len());
        for record in &self.records {
            match record {
                Record::Plain => decoder.push_plain(plain.next().unwrap_or_default()),
                Record::Other(record) => decoder.push(record),
            }
        }
        decoder.finish()
    }

    /// Reads a plain record; `None` where it is not plain, with anything in `values`.
    fn plain(&mut self, text: &'a str) -> Option<()> {
        let first = self.values.len();
        self.values.resize(first + self.fields.len(), None);
        let mut seen = 0_usize;
        let mut last = self.fields.len();
        let mut scan = Scan { text, at: 0 };
        scan.expect(b'{')?;
        if scan.peek()? == b'}' {
            scan.at += 1;
        } else {
            loop {
                scan.expect(b'"')?;
                let name = scan.text()?.as_bytes();
                scan.expect(b':')?;
                let place = self.place(last, name)?;
                let value = scan.value()?;
                let (_, kind, required) = self.fields[place];
                let slot = &mut self.values[first + place];
                if slot.is_some() {
                    return None;
                }
                seen += usize::from(required && !matches!(value, Plain::Null));
                *slot = Some(fitting(value, kind)?);
                self.next[last] = place;
                last = place;
                match scan.next()? {
                    b',' => {}
                    b'}' => break,
                    _ => return None,
                }
            }
        }
        scan.end()?;
        let required = self.fields.iter().filter(|(_, _, required)| *required).count();
        (seen == required).then_some(())
    }

    /// The place of the field with this name, looked for first where it was in the record before.
    fn place(&self, last: usize, name: &[u8]) -> Option<usize> {
        let guess = self.next[last];
        if self.fields.get(guess).is_some_and(|(field, ..)| *field == name) {
            return Some(guess);
        }
        self.fields.iter().position(|(field, ..)| *field == name)
    }
}

/// A value as its field's type takes it; `None` where that needs a closer look.
fn fitting(value: Plain<'_>, kind: FieldType) -> Option<Plain<'_>> {
    match (kind, value) {
        (_, Plain::Null)
        | (FieldType::String, Plain::Text(_))
        | (FieldType::Integer, Plain::Integer(_))
        | (FieldType::Number, Plain::Number(_))
        | (FieldType::Boolean, Plain::Boolean(_)) => Some(value),
        #[expect(clippy::cast_precision_loss, reason = "2^53 and below are exact")]
        (FieldType::Number, Plain::Integer(integer)) if integer.unsigned_abs() <= EXACT_DOUBLE => {
            Some(Plain::Number(integer as f64))
        }
        (FieldType::Timestamp, Plain::Text(text)) => {
            plain_instant(text.as_bytes()).map(|micros| Plain::Instant { micros, text })
        }
        _ => None,
    }
}

/// Reads plain JSON; `None` is anything else.
struct Scan<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> Scan<'a> {
    fn byte(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    /// The next byte that is not a space.
    fn peek(&mut self) -> Option<u8> {
        loop {
            match self.byte()? {
                b' ' | b'\t' | b'\r' | b'\n' => self.at += 1,
                other => return Some(other),
            }
        }
    }

    fn next(&mut self) -> Option<u8> {
        let byte = self.peek()?;
        self.at += 1;
        Some(byte)
    }

    fn expect(&mut self, byte: u8) -> Option<()> {
        (self.next()? == byte).then_some(())
    }

    /// Nothing but spaces to the end.
    fn end(&mut self) -> Option<()> {
        self.peek().is_none().then_some(())
    }

    /// A string without escapes, after its first quote.
    fn text(&mut self) -> Option<&'a str> {
        let rest = &self.text.as_bytes()[self.at..];
        let length = rest
            .iter()
            .position(|byte| *byte == b'"' || *byte == b'\\' || *byte < 0x20)?;
        if rest[length] != b'"' {
            return None;
        }
        let text = self.text.get(self.at..self.at + length)?;
        self.at += length + 1;
        Some(text)
    }

    fn value(&mut self) -> Option<Plain<'a>> {
        match self.peek()? {
            b'"' => {
                self.at += 1;
                self.text().map(Plain::Text)
            }
            b't' => self.word("true", Plain::Boolean(true)),
            b'f' => self.word("false", Plain::Boolean(false)),
            b'n' => self.word("null", Plain::Null),
            b'-' | b'0'..=b'9' => self.number(),
            _ => None,
        }
    }

    fn word(&mut self, word: &str, value: Plain<'a>) -> Option<Plain<'a>> {
        let rest = self.text.as_bytes().get(self.at..)?;
        rest.starts_with(word.as_bytes()).then(|| {
            self.at += word.len();
            value
        })
    }

    /// A number (RFC 8259 section 6).
    fn number(&mut self) -> Option<Plain<'a>> {
        let start = self.at;
        let negative = self.byte()? == b'-';
        self.at += usize::from(negative);
        let zero = self.byte()? == b'0';
        let mut integer = 0_i64;
        let digits = self.digits(&mut integer)?;
        if zero && digits > 1 {
            return None;
        }
        let mut whole = true;
        if self.byte() == Some(b'.') {
            self.at += 1;
            self.digits(&mut 0)?;
            whole = false;
        }
        if matches!(self.byte(), Some(b'e' | b'E')) {
            self.at += 1;
            if matches!(self.byte(), Some(b'+' | b'-')) {
                self.at += 1;
            }
            self.digits(&mut 0)?;
            whole = false;
        }
        if whole {
            // Why not: the negative zero is a double.
            let plain = digits <= SURE_DIGITS && !(negative && integer == 0);
            return plain.then_some(Plain::Integer(if negative { -integer } else { integer }));
        }
        let double = self.text[start..self.at].parse::<f64>().ok()?;
        double.is_finite().then_some(Plain::Number(double))
    }

    /// One or more digits: how many. What they stand for is added to `value`, where it surely fits.
    fn digits(&mut self, value: &mut i64) -> Option<usize> {
        let start = self.at;
        while let Some(digit @ b'0'..=b'9') = self.byte() {
            if self.at - start < SURE_DIGITS {
                *value = *value * 10 + i64::from(digit - b'0');
            }
            self.at += 1;
        }
        (self.at > start).then_some(self.at - start)
    }
}

#[cfg(test)]
mod tests;

//! Lines of JSON to a batch, without a tree of values where a record is plain.
//!
//! Invariant: a line becomes exactly what [`json::parse`] and [`Batch::decode`] make of it. A record is plain when it
//! has only fields of the contract, each once, with a value of its type that is spelled without an escape, and lacks no
//! required one; whatever is not plain goes the other way, also where only the spelling is unusual.

mod scan;

use std::sync::Arc;

use self::scan::Scan;
use super::Batch;
use super::column::{Plain, Span, plain_instant};
use super::decode::Decoder;
use crate::json::{self, JsonError};
use crate::{Contract, FieldType};

/// The largest integer below which every integer is an IEEE double.
const EXACT_DOUBLE: u64 = 1 << 53;

/// Records read from lines.
#[derive(Debug)]
pub struct Lines<'a> {
    decoder: Decoder<'a>,
    /// The fields in the order of the canonical form.
    fields: Vec<Field<'a>>,
    required: usize,
    /// What came between two values of the records before, by the place of the field before; last, what came before the
    /// first value.
    between: Vec<Between>,
    /// The values of the record that is read, one for each field.
    values: Vec<Option<Plain>>,
    #[cfg(test)]
    plain: usize,
}

#[derive(Debug)]
struct Field<'a> {
    name: &'a [u8],
    kind: FieldType,
    required: bool,
}

/// What came from the end of one value to the beginning of the next, and the place of the field that it names.
#[derive(Clone, Debug, Default)]
struct Between {
    text: Vec<u8>,
    place: usize,
    /// The first bytes of the text as a number, and those bits of it that are of the text.
    head: u128,
    mask: u128,
}

impl Between {
    /// How many bytes are compared at once.
    const HEAD: usize = 16;

    fn new(text: &[u8], place: usize) -> Self {
        let length = text.len().min(Self::HEAD);
        let mut head = [0; Self::HEAD];
        head[..length].copy_from_slice(&text[..length]);
        let mut mask = [0; Self::HEAD];
        mask[..length].fill(u8::MAX);
        Self {
            text: text.to_vec(),
            place,
            head: u128::from_le_bytes(head),
            mask: u128::from_le_bytes(mask),
        }
    }

    /// Whether a text begins with this one, which is known.
    fn is_next(&self, text: &[u8]) -> bool {
        match text.first_chunk() {
            Some(head) if !self.text.is_empty() => {
                (u128::from_le_bytes(*head) ^ self.head) & self.mask == 0
                    && (self.text.len() <= Self::HEAD || text[Self::HEAD..].starts_with(&self.text[Self::HEAD..]))
            }
            _ => !self.text.is_empty() && text.starts_with(&self.text),
        }
    }
}

/// What a record has next.
enum Next {
    /// A value of the field at this place.
    Value(usize),
    /// Its end.
    End,
}

impl<'a> Lines<'a> {
    /// No lines, of records of this contract; about so many will come, of so many bytes in all.
    pub fn new(contract: &'a Arc<Contract>, rows: usize, bytes: usize) -> Self {
        let fields: Vec<_> = contract
            .canonical_fields()
            .map(|(_, field)| Field {
                name: field.name.as_bytes(),
                kind: field.kind,
                required: field.required,
            })
            .collect();
        Self {
            decoder: Decoder::new(contract, rows, bytes),
            required: fields.iter().filter(|field| field.required).count(),
            between: vec![Between::default(); fields.len() + 1],
            values: vec![None; fields.len()],
            fields,
            #[cfg(test)]
            plain: 0,
        }
    }

    /// Reads the record on a line. A line that is not one strict JSON value is left out and its error returned.
    pub fn push(&mut self, line: &[u8]) -> Result<(), JsonError> {
        if self.read(line).is_some() {
            self.decoder.push_plain(line, &self.values);
            #[cfg(test)]
            {
                self.plain += 1;
            }
        } else {
            self.decoder.push(&json::parse(line)?);
        }
        Ok(())
    }

    /// How many records there are.
    pub fn len(&self) -> usize {
        self.decoder.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The batch of the records, in their order.
    pub fn finish(self) -> Batch {
        self.decoder.finish()
    }

    /// Reads the values of a plain record; `None` where it is not plain, with anything in `values`.
    fn read(&mut self, line: &[u8]) -> Option<()> {
        self.values.fill(None);
        let mut required = 0;
        let mut scan = Scan::new(line);
        let mut last = self.fields.len();
        while let Next::Value(place) = self.next(&mut scan, last)? {
            let value = scan.value()?;
            let Field {
                kind,
                required: is_required,
                ..
            } = self.fields[place];
            let slot = &mut self.values[place];
            if slot.is_some() {
                return None;
            }
            required += usize::from(is_required && !matches!(value, Plain::Null));
            *slot = Some(fitting(line, value, kind)?);
            last = place;
        }
        scan.end()?;
        (required == self.required && scan.is_text()).then_some(())
    }

    /// Reads on to the next value, after one of the field at `last`.
    fn next(&mut self, scan: &mut Scan<'_>, last: usize) -> Option<Next> {
        let before = &self.between[last];
        // Why: most records of a file are spelled alike, and what is the same text between two values is the same JSON.
        if before.is_next(scan.rest()) {
            scan.skip(before.text.len());
            return Some(Next::Value(before.place));
        }
        let start = scan.at();
        let is_first = last == self.fields.len();
        match (is_first, scan.next()?) {
            (true, b'{') if scan.peek()? == b'}' => {
                scan.next()?;
                return Some(Next::End);
            }
            (true, b'{') | (false, b',') => {}
            (false, b'}') => return Some(Next::End),
            _ => return None,
        }
        scan.expect(b'"')?;
        let (from, to) = scan.text()?;
        scan.expect(b':')?;
        scan.peek()?;
        let name = scan.bytes(from, to);
        let place = self.fields.iter().position(|field| field.name == name)?;
        let between = &mut self.between[last];
        *between = Between::new(scan.bytes(start, scan.at()), place);
        Some(Next::Value(place))
    }
}

/// A value as its field's type takes it; `None` where that needs a closer look.
fn fitting(line: &[u8], value: Plain, kind: FieldType) -> Option<Plain> {
    match (kind, value) {
        (_, Plain::Null)
        | (FieldType::String, Plain::Text(_))
        | (FieldType::Integer, Plain::Integer(..))
        | (FieldType::Number, Plain::Number(..))
        | (FieldType::Boolean, Plain::Boolean(_)) => Some(value),
        #[expect(clippy::cast_precision_loss, reason = "2^53 and below are exact")]
        (FieldType::Number, Plain::Integer(integer, span)) if integer.unsigned_abs() <= EXACT_DOUBLE => {
            Some(Plain::Number(integer as f64, Some(span)))
        }
        (FieldType::Timestamp, Plain::Text(span)) => instant(line, span),
        _ => None,
    }
}

fn instant(line: &[u8], (start, end): Span) -> Option<Plain> {
    let micros = plain_instant(line.get(start..end)?)?;
    Some(Plain::Instant(micros, (start, end)))
}

#[cfg(test)]
mod tests;

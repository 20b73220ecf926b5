//! JSON lines to a batch, with a fast path that builds no tree of values.
//!
//! Invariant: a line gives exactly the result of [`json::parse`] and [`Batch::decode`]. The fast path takes a record
//! that has only fields of the contract, each once, has every required one, and spells each value in its field's type
//! without escapes. Every other record takes the slow path, also one with a merely unusual spelling.

mod scan;

use std::sync::Arc;

use self::scan::TextScan;
use super::Batch;
use super::column::{PlainValue, Span, plain_instant};
use super::decode::RecordDecoder;
use crate::json::{self, JsonError};
use crate::{Contract, FieldType, date, decimal};

/// 2^53: every integer up to it is exact as an IEEE double.
const EXACT_DOUBLE: u64 = 1 << 53;
/// The largest integer of 15 digits, which is a decimal whatever its digits.
const SURE_DECIMAL: u64 = 999_999_999_999_999;

/// Records decoded from lines.
#[derive(Debug)]
pub struct LineDecoder<'a> {
    decoder: RecordDecoder<'a>,
    /// The fields in the order of the canonical form.
    fields: Vec<LineField<'a>>,
    required: usize,
    /// The separator that followed each field in earlier records; the last entry is the one before the first value.
    separators: Vec<FieldSeparator>,
    /// The values of the current record, one per field.
    values: Vec<Option<PlainValue>>,
    #[cfg(test)]
    plain: usize,
}

#[derive(Debug)]
struct LineField<'a> {
    name: &'a [u8],
    kind: FieldType,
    required: bool,
}

/// The text between two values in earlier records, and the index of the field that it names: a template for the next
/// record.
#[derive(Clone, Debug, Default)]
struct FieldSeparator {
    text: Vec<u8>,
    place: usize,
    /// The first bytes of the text as a number, and a mask of the bytes in use.
    head: u128,
    mask: u128,
}

impl FieldSeparator {
    /// The number of bytes that are compared at a time.
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

    /// Returns true if `text` begins with this separator. An empty separator matches nothing.
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

/// The next item of a record.
enum NextItem {
    /// A value of the field with this index.
    Value(usize),
    /// The end of the record.
    End,
}

impl<'a> LineDecoder<'a> {
    /// Creates an empty reader of records of this contract, with space for `rows` records of `bytes` bytes in all.
    pub fn new(contract: &'a Arc<Contract>, rows: usize, bytes: usize) -> Self {
        let fields: Vec<_> = contract
            .canonical_fields()
            .map(|(_, field)| LineField {
                name: field.name.as_bytes(),
                kind: field.kind,
                required: field.required,
            })
            .collect();
        Self {
            decoder: RecordDecoder::new(contract, rows, bytes),
            required: fields.iter().filter(|field| field.required).count(),
            separators: vec![FieldSeparator::default(); fields.len() + 1],
            values: vec![None; fields.len()],
            fields,
            #[cfg(test)]
            plain: 0,
        }
    }

    /// Decodes the record on a line. A line that is not one strict JSON value is left out, and its error returned.
    pub fn push(&mut self, line: &[u8]) -> Result<(), JsonError> {
        // A line that fails here is read again from its beginning by the parser.
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

    /// Returns the number of records.
    pub fn len(&self) -> usize {
        self.decoder.len()
    }

    /// Returns true if there are no records.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the batch of the records, in their order.
    pub fn finish(self) -> Batch {
        self.decoder.finish()
    }

    /// Reads a record on the fast path. Returns `None` if the record needs the slow path; `values` is then undefined.
    fn read(&mut self, line: &[u8]) -> Option<()> {
        self.values.fill(None);
        // Counts required fields with a value; any missing one is reported by the slow path.
        let mut required = 0;
        let mut scan = TextScan::new(line);
        let mut last = self.fields.len();
        while let NextItem::Value(place) = self.next(&mut scan, last)? {
            let value = scan.value()?;
            let LineField {
                kind,
                required: is_required,
                ..
            } = self.fields[place];
            let slot = &mut self.values[place];
            // A repeated member needs the slow path, which refuses it.
            if slot.is_some() {
                return None;
            }
            required += usize::from(is_required && !matches!(value, PlainValue::Null));
            *slot = Some(fit(line, value, kind)?);
            last = place;
        }
        scan.end()?;
        (required == self.required && scan.is_text()).then_some(())
    }

    /// Moves to the next value, after a value of the field at `last`.
    fn next(&mut self, scan: &mut TextScan<'_>, last: usize) -> Option<NextItem> {
        let before = &self.separators[last];
        // Most records of a file are spelled alike. If the text up to the next value is the
        // same as in an earlier record, it is the same JSON and needs no parsing.
        if before.is_next(scan.rest()) {
            scan.skip(before.text.len());
            return Some(NextItem::Value(before.place));
        }
        let start = scan.at();
        // The index past the last field stands for the beginning of the record.
        let is_first = last == self.fields.len();
        match (is_first, scan.next()?) {
            (true, b'{') if scan.peek()? == b'}' => {
                scan.next()?;
                return Some(NextItem::End);
            }
            (true, b'{') | (false, b',') => {}
            (false, b'}') => return Some(NextItem::End),
            _ => return None,
        }
        scan.expect(b'"')?;
        let (from, to) = scan.text()?;
        scan.expect(b':')?;
        scan.peek()?;
        let name = scan.bytes(from, to);
        let place = self.fields.iter().position(|field| field.name == name)?;
        let separator = &mut self.separators[last];
        *separator = FieldSeparator::new(scan.bytes(start, scan.at()), place);
        Some(NextItem::Value(place))
    }
}

/// Converts a value to its field's type, or returns `None` if that needs the slow path.
fn fit(line: &[u8], value: PlainValue, kind: FieldType) -> Option<PlainValue> {
    match (kind, value) {
        (_, PlainValue::Null)
        | (FieldType::String, PlainValue::Text(_))
        | (FieldType::Integer, PlainValue::Integer(..))
        | (FieldType::Number, PlainValue::Number(..))
        | (FieldType::Boolean, PlainValue::Boolean(_)) => Some(value),
        #[expect(clippy::cast_precision_loss, reason = "2^53 and below are exact")]
        (FieldType::Number, PlainValue::Integer(integer, span)) if integer.unsigned_abs() <= EXACT_DOUBLE => {
            Some(PlainValue::Number(integer as f64, Some(span)))
        }
        (FieldType::Timestamp, PlainValue::Text(span)) => instant(line, span),
        (FieldType::Date, PlainValue::Text(span)) => {
            Some(PlainValue::Day(date::parse(line.get(span.0..span.1)?)?, span))
        }
        (FieldType::Decimal(scale), PlainValue::Text((start, end))) => plain_decimal(line.get(start..end)?, scale),
        // Such a number has its shortest spelling, so its text is the decimal.
        (FieldType::Decimal(scale), PlainValue::Number(_, Some((start, end)))) => {
            plain_decimal(line.get(start..end)?, scale)
        }
        (FieldType::Decimal(scale), PlainValue::Integer(integer, (start, end)))
            if integer.unsigned_abs() <= SURE_DECIMAL =>
        {
            plain_decimal(line.get(start..end)?, scale)
        }
        (
            FieldType::String
            | FieldType::Integer
            | FieldType::Number
            | FieldType::Boolean
            | FieldType::Timestamp
            | FieldType::Json
            | FieldType::Date
            | FieldType::Decimal(_),
            _,
        ) => None,
    }
}

fn instant(line: &[u8], (start, end): Span) -> Option<PlainValue> {
    let micros = plain_instant(line.get(start..end)?)?;
    Some(PlainValue::Instant(micros, (start, end)))
}

fn plain_decimal(text: &[u8], scale: u8) -> Option<PlainValue> {
    let units = decimal::parse(text, scale).ok()?;
    Some(PlainValue::Decimal(units.to_le_bytes()))
}

#[cfg(test)]
mod tests;

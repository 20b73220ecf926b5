//! The sample: the rows whose keyed hashes are smallest.
//!
//! Invariant: it depends on the set of rows and the key alone. The smallest of a union are among the smallest of its parts.

use std::collections::BTreeMap;

use types::FieldType;

use super::codec::{SketchReader, SketchWriter};
use super::{MAX_PREVIEW_ROWS, SAMPLED_ROWS, SketchDamaged, SketchField};

/// A place that is not known, since only those of the first rows are kept.
const NO_PLACE: u64 = u64::MAX;

/// The value of a sampled row in a column.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum SampledValue {
    /// No value, or none that the sample keeps.
    Null,
    /// An integer, or the units of a decimal, time or day.
    Units(i128),
    /// A finite double.
    Number(f64),
    /// A text or the text of a JSON value.
    Text {
        characters: u64,
        /// The text, if it is short and its column is one of those that keep texts.
        text: Option<Box<str>>,
    },
}

/// A row of the sample.
#[derive(Clone, Debug)]
pub(super) struct SampledRow {
    /// Start of the keyed hash.
    rank: u64,
    /// Place in the version, or [`NO_PLACE`].
    place: u64,
    /// Values in the order of the fields.
    values: Box<[SampledValue]>,
}

impl SampledRow {
    const fn order(&self) -> (u64, u64) {
        (self.rank, self.place)
    }
}

/// The sample of some rows.
#[derive(Debug)]
pub(super) struct Sample {
    /// Rows in any order; more than a sample has, until there are twice as many.
    rows: Vec<SampledRow>,
    /// The largest rank that still gets in.
    limit: u64,
}

impl Sample {
    pub(super) const fn new() -> Self {
        Self {
            rows: Vec::new(),
            limit: u64::MAX,
        }
    }

    /// Returns true if a row of this rank may be in the sample.
    pub(super) const fn wants(&self, rank: u64) -> bool {
        rank <= self.limit
    }

    /// Adds a row.
    pub(super) fn add(&mut self, rank: u64, place: u64, values: Box<[SampledValue]>) {
        self.rows.push(SampledRow { rank, place, values });
        if self.rows.len() >= 2 * SAMPLED_ROWS {
            self.trim();
        }
    }

    /// Adds the rows of another sample.
    pub(super) fn merge(&mut self, other: &Self) {
        let wanted = other.rows.iter().filter(|row| self.wants(row.rank));
        let wanted: Vec<_> = wanted.cloned().collect();
        self.rows.extend(wanted);
        self.trim();
    }

    fn trim(&mut self) {
        self.rows.sort_unstable_by_key(SampledRow::order);
        self.rows.truncate(SAMPLED_ROWS);
        if let (SAMPLED_ROWS, Some(last)) = (self.rows.len(), self.rows.last()) {
            self.limit = last.rank;
        }
    }

    /// Returns the rows of the sample in its order.
    fn sorted(&self) -> Vec<&SampledRow> {
        let mut rows: Vec<_> = self.rows.iter().collect();
        rows.sort_unstable_by_key(|row| row.order());
        rows.truncate(SAMPLED_ROWS);
        rows
    }

    /// Returns the number of rows.
    pub(super) fn len(&self) -> usize {
        self.rows.len().min(SAMPLED_ROWS)
    }

    /// Returns the values of each column, in the order of the sample.
    pub(super) fn columns(&self, columns: usize) -> Vec<Vec<&SampledValue>> {
        let rows = self.sorted();
        let column = |at| rows.iter().filter_map(|row| row.values.get(at)).collect();
        (0..columns).map(column).collect()
    }

    /// Returns the places of the first rows, in ascending order.
    pub(super) fn places(&self, rows: usize) -> Vec<u64> {
        let first = self.sorted().into_iter().take(rows.min(MAX_PREVIEW_ROWS));
        let mut places: Vec<_> = first.map(|row| row.place).collect();
        places.sort_unstable();
        places
    }

    pub(super) fn encode(&self, fields: &[SketchField], out: &mut SketchWriter) {
        let rows = self.sorted();
        out.count(rows.len());
        let mut last = 0;
        for row in &rows {
            out.number(row.rank - last);
            last = row.rank;
        }
        for row in rows.iter().take(MAX_PREVIEW_ROWS) {
            out.number(row.place);
        }
        for (field, values) in fields.iter().zip(self.columns(fields.len())) {
            if field.kind != FieldType::Boolean {
                encode_column(field, &values, out);
            }
        }
    }

    pub(super) fn decode(fields: &[SketchField], bytes: &mut SketchReader<'_>) -> Result<Self, SketchDamaged> {
        let count = bytes.length()?;
        if count > SAMPLED_ROWS {
            return Err(SketchDamaged {
                problem: "its sample has too many rows",
            });
        }
        let mut rows = Vec::with_capacity(count);
        let mut rank = 0_u64;
        for _ in 0..count {
            rank = rank.checked_add(bytes.number()?).ok_or(SketchDamaged {
                problem: "its sample is not in order",
            })?;
            rows.push((rank, NO_PLACE, Vec::with_capacity(fields.len())));
        }
        for (_, place, _) in rows.iter_mut().take(MAX_PREVIEW_ROWS) {
            *place = bytes.number()?;
        }
        for field in fields {
            let column = match field.kind {
                FieldType::Boolean => vec![SampledValue::Null; count],
                _ => decode_column(field, count, bytes)?,
            };
            for ((_, _, values), value) in rows.iter_mut().zip(column) {
                values.push(value);
            }
        }
        let row = |(rank, place, values): (u64, u64, Vec<SampledValue>)| SampledRow {
            rank,
            place,
            values: values.into(),
        };
        let mut sample = Self {
            rows: rows.into_iter().map(row).collect(),
            limit: u64::MAX,
        };
        sample.trim();
        Ok(sample)
    }
}

/// Writes a bit for each row that has a value, then the values.
fn encode_column(field: &SketchField, values: &[&SampledValue], out: &mut SketchWriter) {
    for eight in values.chunks(8) {
        let bits = eight.iter().enumerate();
        out.bytes(&[bits.fold(0, |bits, (at, value)| {
            bits | u8::from(**value != SampledValue::Null) << at
        })]);
    }
    match field.kind {
        FieldType::Number => {
            for value in values {
                if let SampledValue::Number(number) = value {
                    out.bytes(&number.to_bits().to_le_bytes());
                }
            }
        }
        FieldType::String | FieldType::Json => {
            for value in values {
                if let SampledValue::Text { characters, .. } = value {
                    out.number(*characters);
                }
            }
            if field.keeps_texts {
                encode_texts(values, out);
            }
        }
        _ => {
            let units = values.iter().filter_map(|value| value.units());
            // Values of one column are near each other, so distances are short.
            let least = units.clone().min().unwrap_or(0);
            out.signed(least);
            units.for_each(|units| out.wide(units.wrapping_sub(least).cast_unsigned()));
        }
    }
}

/// Writes each different text once, then the number of the text of each row, or 0 for a row without.
fn encode_texts(values: &[&SampledValue], out: &mut SketchWriter) {
    let mut numbers: BTreeMap<&str, usize> = values
        .iter()
        .filter_map(|value| value.text())
        .map(|text| (text, 0))
        .collect();
    out.count(numbers.len());
    for (at, (text, number)) in numbers.iter_mut().enumerate() {
        *number = at + 1;
        out.block(text.as_bytes());
    }
    for value in values {
        if **value != SampledValue::Null {
            let number = value.text().and_then(|text| numbers.get(text));
            out.count(number.copied().unwrap_or(0));
        }
    }
}

fn decode_column(
    field: &SketchField,
    count: usize,
    bytes: &mut SketchReader<'_>,
) -> Result<Vec<SampledValue>, SketchDamaged> {
    let bits = bytes.bytes(count.div_ceil(8))?;
    let is_there = |row: usize| bits.get(row / 8).is_some_and(|bits| bits >> (row % 8) & 1 == 1);
    let mut values = vec![SampledValue::Null; count];
    let there = values.iter_mut().enumerate().filter(|(row, _)| is_there(*row));
    let there = there.map(|(_, value)| value);
    match field.kind {
        FieldType::Number => {
            for value in there {
                *value = SampledValue::Number(bytes.double()?);
            }
        }
        FieldType::String | FieldType::Json => {
            for value in there {
                *value = SampledValue::Text {
                    characters: bytes.number()?,
                    text: None,
                };
            }
            if field.keeps_texts {
                decode_texts(&mut values, bytes)?;
            }
        }
        _ => {
            let least = bytes.signed()?;
            for value in there {
                *value = SampledValue::Units(least.wrapping_add(bytes.wide()?.cast_signed()));
            }
        }
    }
    Ok(values)
}

fn decode_texts(values: &mut [SampledValue], bytes: &mut SketchReader<'_>) -> Result<(), SketchDamaged> {
    let count = bytes.length()?;
    let texts = (0..count).map(|_| bytes.text()).collect::<Result<Vec<_>, _>>()?;
    for value in values {
        if let SampledValue::Text { text, .. } = value {
            let number = bytes.count()?.checked_sub(1);
            *text = number.and_then(|number| texts.get(number)).map(|text| (*text).into());
        }
    }
    Ok(())
}

impl SampledValue {
    pub(super) const fn units(&self) -> Option<i128> {
        match self {
            Self::Units(units) => Some(*units),
            _ => None,
        }
    }

    pub(super) const fn number(&self) -> Option<f64> {
        match self {
            Self::Number(number) => Some(*number),
            _ => None,
        }
    }

    /// Returns the length of a text.
    pub(super) fn characters(&self) -> Option<i128> {
        match self {
            Self::Text { characters, .. } => Some((*characters).into()),
            _ => None,
        }
    }

    pub(super) fn text(&self) -> Option<&str> {
        match self {
            Self::Text { text, .. } => text.as_deref(),
            _ => None,
        }
    }
}

//! A batch of records: typed columns, with the canonical form and the key of every row.
//!
//! Invariants: columns, canonical forms, keys and positions have one entry per row; a row without a defect satisfies
//! the contract. Decoding is total: what does not fit is a [`Defect`], never an error and never a lost row.

use std::fmt::Write as _;
use std::sync::Arc;

use arrow::array::{
    ArrayRef, BooleanArray, BooleanBuilder, Float64Builder, Int64Builder, StringBuilder, TimestampMicrosecondBuilder,
};
use arrow::compute::filter_record_batch;
use arrow::error::ArrowError;
use arrow::record_batch::{RecordBatch, RecordBatchOptions};
use serde_json::{Map, Value};

use crate::key::KeyHasher;
use crate::{Contract, FieldType, RecordKey, Timestamp, canonical, json};

/// The largest integer below which every integer is an IEEE double.
const EXACT_DOUBLE: u64 = 1 << 53;
/// How many characters of a refused scalar a defect shows.
const SHOWN: usize = 40;

/// One place where a record does not satisfy its contract.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Defect {
    /// Index of the row in the batch.
    pub row: usize,
    /// Machine-readable rule: `not_object`, `missing`, `type`, `range` or `extra`.
    pub code: &'static str,
    /// JSON pointer within the record; empty for the record itself.
    pub path: String,
    /// What the contract asks for.
    pub expected: String,
    /// What the record has.
    pub actual: String,
}

/// Records of one contract.
#[derive(Clone, Debug)]
pub struct Batch {
    contract: Arc<Contract>,
    rows: RecordBatch,
    canonical: Canonical,
    keys: Vec<RecordKey>,
    positions: Vec<u32>,
    defects: Vec<Defect>,
}

impl Batch {
    /// Decodes records; row `i` is `records[i]`.
    pub fn decode(contract: &Arc<Contract>, records: &[Value]) -> Self {
        let mut decoder = Decoder::new(contract, records.len());
        for (row, record) in records.iter().enumerate() {
            decoder.push(row, record);
        }
        decoder.finish(records.len())
    }

    /// The contract the records were decoded by.
    pub const fn contract(&self) -> &Arc<Contract> {
        &self.contract
    }

    /// The number of rows.
    pub fn len(&self) -> usize {
        self.rows.num_rows()
    }

    /// Whether there are no rows.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The typed columns, of the schema [`Contract::schema`]. A cell that does not fit is null.
    pub const fn columns(&self) -> &RecordBatch {
        &self.rows
    }

    /// The key of each row.
    pub fn keys(&self) -> &[RecordKey] {
        &self.keys
    }

    /// The canonical form of a row: an RFC 8785 object of its members that are not null.
    pub fn canonical(&self, row: usize) -> &[u8] {
        self.canonical.get(row)
    }

    /// For each row, its index in the batch as it was decoded.
    pub fn positions(&self) -> &[u32] {
        &self.positions
    }

    /// Where rows do not satisfy the contract, in row order.
    pub fn defects(&self) -> &[Defect] {
        &self.defects
    }

    /// The rows for which `keep` is true; `keep` has one entry per row.
    pub fn filter(&self, keep: &[bool]) -> Result<Self, ArrowError> {
        if keep.len() != self.len() {
            return Err(ArrowError::InvalidArgumentError(format!(
                "{} flags for {} rows",
                keep.len(),
                self.len()
            )));
        }
        let kept = || keep.iter().enumerate().filter(|(_, kept)| **kept).map(|(row, _)| row);
        let mut canonical = Canonical::default();
        let mut new_row = vec![None; keep.len()];
        for (index, row) in kept().enumerate() {
            canonical.bytes.extend_from_slice(self.canonical(row));
            canonical.ends.push(canonical.bytes.len());
            new_row[row] = Some(index);
        }
        let defects = self
            .defects
            .iter()
            .filter_map(|defect| new_row[defect.row].map(|row| Defect { row, ..defect.clone() }));
        Ok(Self {
            contract: Arc::clone(&self.contract),
            rows: filter_record_batch(&self.rows, &BooleanArray::from(keep.to_vec()))?,
            canonical,
            keys: kept().map(|row| self.keys[row]).collect(),
            positions: kept().map(|row| self.positions[row]).collect(),
            defects: defects.collect(),
        })
    }
}

/// Canonical forms, end to end in one buffer.
#[derive(Clone, Debug, Default)]
struct Canonical {
    bytes: Vec<u8>,
    ends: Vec<usize>,
}

impl Canonical {
    fn get(&self, row: usize) -> &[u8] {
        let start = if row == 0 { 0 } else { self.ends[row - 1] };
        &self.bytes[start..self.ends[row]]
    }
}

/// The builder of one column.
enum Column {
    Text(StringBuilder),
    Integer(Int64Builder),
    Number(Float64Builder),
    Boolean(BooleanBuilder),
    Timestamp(TimestampMicrosecondBuilder),
}

impl Column {
    fn new(kind: FieldType, rows: usize) -> Self {
        match kind {
            FieldType::String | FieldType::Json => Self::Text(StringBuilder::with_capacity(rows, rows * 16)),
            FieldType::Integer => Self::Integer(Int64Builder::with_capacity(rows)),
            FieldType::Number => Self::Number(Float64Builder::with_capacity(rows)),
            FieldType::Boolean => Self::Boolean(BooleanBuilder::with_capacity(rows)),
            FieldType::Timestamp => {
                Self::Timestamp(TimestampMicrosecondBuilder::with_capacity(rows).with_timezone("UTC"))
            }
        }
    }

    fn append_null(&mut self) {
        match self {
            Self::Text(builder) => builder.append_null(),
            Self::Integer(builder) => builder.append_null(),
            Self::Number(builder) => builder.append_null(),
            Self::Boolean(builder) => builder.append_null(),
            Self::Timestamp(builder) => builder.append_null(),
        }
    }

    fn finish(mut self) -> ArrayRef {
        match &mut self {
            Self::Text(builder) => Arc::new(builder.finish()),
            Self::Integer(builder) => Arc::new(builder.finish()),
            Self::Number(builder) => Arc::new(builder.finish()),
            Self::Boolean(builder) => Arc::new(builder.finish()),
            Self::Timestamp(builder) => Arc::new(builder.finish()),
        }
    }
}

struct Decoder<'a> {
    contract: &'a Arc<Contract>,
    columns: Vec<Column>,
    extra: StringBuilder,
    canonical: Canonical,
    hasher: KeyHasher,
    keys: Vec<RecordKey>,
    defects: Vec<Defect>,
}

impl<'a> Decoder<'a> {
    fn new(contract: &'a Arc<Contract>, rows: usize) -> Self {
        Self {
            contract,
            columns: contract
                .fields()
                .iter()
                .map(|field| Column::new(field.kind, rows))
                .collect(),
            extra: StringBuilder::new(),
            canonical: Canonical {
                bytes: Vec::with_capacity(rows * 128),
                ends: Vec::with_capacity(rows),
            },
            hasher: KeyHasher::new(),
            keys: Vec::with_capacity(rows),
            defects: Vec::new(),
        }
    }

    fn push(&mut self, row: usize, record: &Value) {
        let none = Map::new();
        let members = record.as_object().unwrap_or_else(|| {
            self.defect(row, "not_object", String::new(), "an object", describe(record));
            &none
        });
        let extras = self.extras(row, members);
        let start = self.canonical.bytes.len();
        self.canonical.bytes.push(b'{');
        let mut pending = extras.iter().peekable();
        let contract = self.contract;
        for (index, field) in contract.canonical_fields() {
            while let Some((name, value)) =
                pending.next_if(|(name, _)| canonical::compare_names(name, &field.name).is_lt())
            {
                self.canonical_member(start, name, |out| canonical::write_value(out, value));
            }
            match members.get(&field.name) {
                None | Some(Value::Null) => {
                    self.columns[index].append_null();
                    if field.required && record.is_object() {
                        let actual = if members.contains_key(&field.name) {
                            "null"
                        } else {
                            "nothing"
                        };
                        self.defect(
                            row,
                            "missing",
                            pointer(&field.name),
                            field.kind.name(),
                            actual.to_owned(),
                        );
                    }
                }
                Some(value) => self.cell(row, index, start, value),
            }
        }
        for (name, value) in pending {
            self.canonical_member(start, name, |out| canonical::write_value(out, value));
        }
        self.canonical.bytes.push(b'}');
        self.canonical.ends.push(self.canonical.bytes.len());
        self.keys.push(self.hasher.key(&self.canonical.bytes[start..]));
        if self.contract.allow_extra() {
            self.extra
                .append_option((!extras.is_empty()).then(|| extra_text(&extras)));
        }
    }

    /// The members that no field names, without nulls, in canonical order; defects where extras are not allowed.
    fn extras<'r>(&mut self, row: usize, members: &'r Map<String, Value>) -> Vec<(&'r str, &'r Value)> {
        let named = self
            .contract
            .fields()
            .iter()
            .filter(|field| members.contains_key(&field.name))
            .count();
        if named == members.len() {
            return Vec::new();
        }
        let is_field = |name: &str| self.contract.fields().iter().any(|field| field.name == name);
        let mut extras: Vec<_> = members
            .iter()
            .map(|(name, value)| (name.as_str(), value))
            .filter(|(name, _)| !is_field(name))
            .collect();
        if !self.contract.allow_extra() {
            for (name, value) in extras.drain(..) {
                self.defect(row, "extra", pointer(name), "no member of this name", describe(value));
            }
        }
        extras.retain(|(_, value)| !value.is_null());
        extras.sort_unstable_by(|(left, _), (right, _)| canonical::compare_names(left, right));
        extras
    }

    /// Appends a value that is not null to its column and to the canonical form, or a null and a defect.
    fn cell(&mut self, row: usize, index: usize, start: usize, value: &Value) {
        let contract = self.contract;
        let field = &contract.fields()[index];
        let name = &field.name;
        match (&mut self.columns[index], value) {
            (Column::Text(builder), Value::String(text)) if field.kind == FieldType::String => {
                builder.append_value(text);
                self.canonical_member(start, name, |out| canonical::write_string(out, text));
            }
            (Column::Text(builder), value) if field.kind == FieldType::Json => {
                let mut text = Vec::new();
                canonical::write_value(&mut text, value);
                builder.append_value(String::from_utf8_lossy(&text));
                self.canonical_member(start, name, |out| out.extend_from_slice(&text));
            }
            (Column::Boolean(builder), &Value::Bool(flag)) => {
                builder.append_value(flag);
                self.canonical_member(start, name, |out| {
                    out.extend_from_slice(if flag { b"true" } else { b"false" });
                });
            }
            (Column::Integer(builder), Value::Number(number)) => match integer(number) {
                Ok(integer) => {
                    builder.append_value(integer);
                    self.canonical_member(start, name, |out| canonical::write_integer(out, integer));
                }
                Err(code) => self.misfit(row, index, code, value),
            },
            (Column::Number(builder), Value::Number(number)) => match double(number) {
                Ok(double) => {
                    builder.append_value(double);
                    self.canonical_member(start, name, |out| canonical::write_double(out, double));
                }
                Err(code) => self.misfit(row, index, code, value),
            },
            (Column::Timestamp(builder), Value::String(text)) => match text.parse::<Timestamp>() {
                Ok(instant) => {
                    builder.append_value(instant.micros());
                    let shown = instant.to_string();
                    self.canonical_member(start, name, |out| canonical::write_string(out, &shown));
                }
                Err(_) => self.misfit(row, index, "type", value),
            },
            _ => self.misfit(row, index, "type", value),
        }
    }

    fn misfit(&mut self, row: usize, index: usize, code: &'static str, value: &Value) {
        self.columns[index].append_null();
        let field = &self.contract.fields()[index];
        let expected = match (field.kind, code) {
            (FieldType::Integer, "range") => "integer from -2^63 to 2^63-1, exact",
            (FieldType::Number, "range") => "number that an IEEE double holds exactly",
            (FieldType::Timestamp, _) => "timestamp: RFC 3339 with an offset, at most microseconds",
            (kind, _) => kind.name(),
        };
        self.defect(row, code, pointer(&field.name), expected, describe(value));
    }

    fn canonical_member(&mut self, start: usize, name: &str, value: impl FnOnce(&mut Vec<u8>)) {
        let out = &mut self.canonical.bytes;
        if out.len() > start + 1 {
            out.push(b',');
        }
        canonical::write_string(out, name);
        out.push(b':');
        value(out);
    }

    fn defect(&mut self, row: usize, code: &'static str, path: String, expected: &str, actual: String) {
        self.defects.push(Defect {
            row,
            code,
            path,
            expected: expected.to_owned(),
            actual,
        });
    }

    fn finish(mut self, rows: usize) -> Batch {
        let mut arrays: Vec<ArrayRef> = self.columns.into_iter().map(Column::finish).collect();
        if self.contract.allow_extra() {
            arrays.push(Arc::new(self.extra.finish()));
        }
        let options = RecordBatchOptions::new().with_row_count(Some(rows));
        let schema = self.contract.schema();
        // Why: every builder got one entry per row and the schema is made from the same fields, so this cannot fail.
        let columns = RecordBatch::try_new_with_options(Arc::clone(&schema), arrays, &options)
            .unwrap_or_else(|_| RecordBatch::new_empty(schema));
        Batch {
            contract: Arc::clone(self.contract),
            rows: columns,
            canonical: self.canonical,
            keys: self.keys,
            positions: (0..u32::try_from(rows).unwrap_or(u32::MAX)).collect(),
            defects: self.defects,
        }
    }
}

/// The integer a JSON number stands for; `1.0` is 1.
fn integer(number: &serde_json::Number) -> Result<i64, &'static str> {
    if let Some(integer) = number.as_i64() {
        return Ok(integer);
    }
    match number.as_f64() {
        Some(double) if double.fract() != 0.0 => Err("type"),
        #[expect(
            clippy::cast_precision_loss,
            clippy::cast_possible_truncation,
            reason = "2^53 and below are exact"
        )]
        Some(double) if !number.is_u64() && double.abs() <= EXACT_DOUBLE as f64 => Ok(double as i64),
        _ => Err("range"),
    }
}

/// The double a JSON number stands for; an integer that a double would round is refused.
fn double(number: &serde_json::Number) -> Result<f64, &'static str> {
    let magnitude = number.as_i64().map(i64::unsigned_abs).or_else(|| number.as_u64());
    let significant = magnitude
        .filter(|&magnitude| magnitude != 0)
        .map(|magnitude| magnitude >> magnitude.trailing_zeros());
    if significant.is_some_and(|significant| significant > EXACT_DOUBLE) {
        return Err("range");
    }
    number.as_f64().filter(|double| double.is_finite()).ok_or("range")
}

fn extra_text(extras: &[(&str, &Value)]) -> String {
    let mut text = Vec::from(*b"{");
    for (index, (name, value)) in extras.iter().enumerate() {
        if index > 0 {
            text.push(b',');
        }
        canonical::write_string(&mut text, name);
        text.push(b':');
        canonical::write_value(&mut text, value);
    }
    text.push(b'}');
    String::from_utf8_lossy(&text).into_owned()
}

fn pointer(name: &str) -> String {
    let mut path = String::new();
    json::push_pointer(&mut path, name);
    path
}

/// The type of a value and, for a scalar that is not text, the value; text is never echoed.
fn describe(value: &Value) -> String {
    let kind = match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(number) if number.is_f64() => "number",
        Value::Number(_) => "integer",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    };
    let mut shown = kind.to_owned();
    if matches!(value, Value::Bool(_) | Value::Number(_)) {
        let text: String = value.to_string().chars().take(SHOWN).collect();
        if write!(shown, " {text}").is_err() {
            return kind.to_owned();
        }
    }
    shown
}

#[cfg(test)]
mod tests;

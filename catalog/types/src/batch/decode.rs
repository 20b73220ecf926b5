//! The decoder: records to columns and canonical forms, in one pass over each record.
//!
//! Invariant: every record adds one row to every part of a batch.

use std::borrow::Cow;
use std::fmt::Write as _;
use std::ops::Range;
use std::sync::{Arc, OnceLock};

use arrow::array::{ArrayRef, StringBuilder};
use arrow::record_batch::{RecordBatch, RecordBatchOptions};
use serde_json::{Map, Value};

use super::column::{ColumnBuilder, PlainValue};
use super::{Batch, Canonical, Defect, MAX_DEFECTS};
use crate::{Contract, FieldType, canonical, decimal, json};

/// The most characters of a refused scalar that a defect shows.
const MAX_SHOWN_CHARS: usize = 40;

/// The values of a record's fields, and its other members.
type FieldValues<'r> = (Vec<Option<&'r Value>>, Vec<(&'r str, &'r Value)>);

#[derive(Debug)]
pub(super) struct RecordDecoder<'a> {
    contract: &'a Arc<Contract>,
    columns: Vec<ColumnBuilder>,
    /// The beginning of each field's member, `"name":`, in the order of the canonical form.
    members: Vec<Vec<u8>>,
    extra: StringBuilder,
    canonical: Vec<u8>,
    /// The range of each record in `canonical`.
    ranges: Vec<Range<usize>>,
    defects: Defects,
}

impl<'a> RecordDecoder<'a> {
    /// Creates a decoder with space for `rows` records of `bytes` bytes in all.
    pub(super) fn new(contract: &'a Arc<Contract>, rows: usize, bytes: usize) -> Self {
        let text = bytes / contract.fields().len().max(1);
        let column = |field: &crate::Field| ColumnBuilder::new(field.kind, rows, text);
        let member = |(_, field): (usize, &crate::Field)| {
            let mut member = Vec::with_capacity(field.name.len() + 3);
            canonical::write_string(&mut member, &field.name);
            member.push(b':');
            member
        };
        Self {
            contract,
            columns: contract.fields().iter().map(column).collect(),
            members: contract.canonical_fields().map(member).collect(),
            extra: StringBuilder::new(),
            canonical: Vec::with_capacity(bytes),
            ranges: Vec::with_capacity(rows),
            defects: Defects::default(),
        }
    }

    /// Returns the number of decoded records.
    pub(super) fn len(&self) -> usize {
        self.ranges.len()
    }

    pub(super) fn push(&mut self, record: &Value) {
        let row = self.len();
        self.defects.start_row(row);
        let start = self.canonical.len();
        self.canonical.push(b'{');
        let (values, extras) = match record {
            Value::Object(members) => self.split_members(members),
            record => {
                self.defects
                    .add("not_object", || (String::new(), "an object".into(), describe(record)));
                (vec![None; self.members.len()], Vec::new())
            }
        };
        // Extras are merged between the fields, so that all members come in canonical order.
        let mut pending = extras.iter().peekable();
        let contract = self.contract;
        for (place, (index, field)) in contract.canonical_fields().enumerate() {
            while let Some((name, value)) =
                pending.next_if(|(name, _)| canonical::compare_names(name, &field.name).is_lt())
            {
                self.add_extra_member(start, name, value);
            }
            match values[place] {
                Some(value) if !value.is_null() => self.add_member(start, place, index, value),
                absent => {
                    self.columns[index].append_null();
                    // A record that is no object has one defect for that, and not one per field
                    // as well.
                    if field.required && record.is_object() {
                        let actual = if absent.is_some() { "null" } else { "nothing" };
                        self.defects.add("missing", || {
                            (pointer(&field.name), field.kind.name().into(), actual.to_owned())
                        });
                    }
                }
            }
        }
        for (name, value) in pending {
            self.add_extra_member(start, name, value);
        }
        let out = &mut self.canonical;
        out.push(b'}');
        self.ranges.push(start..out.len());
        if contract.allow_extra() {
            self.extra
                .append_option((!extras.is_empty()).then(|| extra_text(&extras)));
        }
        self.defects.end_row();
    }

    /// Decodes a record without defects from fast-path values, one per field in the order of the canonical form. Their
    /// text is in `line`.
    pub(super) fn push_plain(&mut self, line: &[u8], values: &[Option<PlainValue>]) {
        let out = &mut self.canonical;
        let start = out.len();
        // The separator before the next member: a brace first, commas after it.
        let mut mark = b'{';
        let contract = self.contract;
        for ((place, (index, _)), value) in contract.canonical_fields().enumerate().zip(values) {
            match value {
                None | Some(PlainValue::Null) => self.columns[index].append_null(),
                Some(value) => {
                    out.push(mark);
                    mark = b',';
                    out.extend_from_slice(&self.members[place]);
                    self.columns[index].append_plain(*value, line, out);
                }
            }
        }
        if mark == b'{' {
            out.push(mark);
        }
        out.push(b'}');
        self.ranges.push(start..out.len());
        if contract.allow_extra() {
            self.extra.append_null();
        }
    }

    /// Splits a record into the values of the fields, in the order of the canonical form, and the members that no field
    /// names, without nulls and in canonical order. If extras are not allowed they become defects instead.
    fn split_members<'r>(&mut self, members: &'r Map<String, Value>) -> FieldValues<'r> {
        let contract = self.contract;
        let mut found = 0;
        let mut values = Vec::with_capacity(self.members.len());
        // A record with exactly the fields of the contract lists its members in the order of
        // the fields, so no name has to be looked up.
        let mut next = members.iter();
        let mut expected = next.next();
        for (_, field) in contract.canonical_fields() {
            let value = match expected {
                Some((name, value)) if *name == field.name => {
                    expected = next.next();
                    Some(value)
                }
                _ => members.get(&field.name),
            };
            found += usize::from(value.is_some());
            values.push(value);
        }
        // Every member was a field, so there are no extras to look for.
        if found == members.len() {
            return (values, Vec::new());
        }
        let is_field = |name: &str| contract.fields().iter().any(|field| field.name == name);
        let mut extras: Vec<_> = members
            .iter()
            .map(|(name, value)| (name.as_str(), value))
            .filter(|(name, _)| !is_field(name))
            .collect();
        if !contract.allow_extra() {
            for (name, value) in extras.drain(..) {
                self.defects.add("extra", || {
                    (pointer(name), "no member of this name".into(), describe(value))
                });
            }
        }
        // A null member means the same as an absent one, and the canonical form has none.
        extras.retain(|(_, value)| !value.is_null());
        extras.sort_unstable_by(|(left, _), (right, _)| canonical::compare_names(left, right));
        (values, extras)
    }

    /// Appends the value of a field, not null, to its column and to the canonical form. If the value does not fit,
    /// appends a null and adds a defect.
    fn add_member(&mut self, start: usize, place: usize, index: usize, value: &Value) {
        let out = &mut self.canonical;
        let before = out.len();
        if before > start + 1 {
            out.push(b',');
        }
        out.extend_from_slice(&self.members[place]);
        if let Err(code) = self.columns[index].append(value, out) {
            // The member's name was written already and is taken back.
            out.truncate(before);
            let field = &self.contract.fields()[index];
            let expected = || expected(field.kind, code, value);
            self.defects
                .add(code, || (pointer(&field.name), expected(), describe(value)));
        }
    }

    fn add_extra_member(&mut self, start: usize, name: &str, value: &Value) {
        let out = &mut self.canonical;
        if out.len() > start + 1 {
            out.push(b',');
        }
        canonical::write_string(out, name);
        out.push(b':');
        canonical::write_value(out, value);
    }

    pub(super) fn finish(mut self) -> Batch {
        let rows = self.len();
        let mut arrays: Vec<ArrayRef> = self.columns.into_iter().map(ColumnBuilder::finish).collect();
        if self.contract.allow_extra() {
            arrays.push(Arc::new(self.extra.finish()));
        }
        let options = RecordBatchOptions::new().with_row_count(Some(rows));
        let schema = self.contract.schema();
        // The schema is made from the same fields, and every builder has one entry per row, so
        // this cannot fail.
        let columns = RecordBatch::try_new_with_options(Arc::clone(&schema), arrays, &options)
            .unwrap_or_else(|_| RecordBatch::new_empty(schema));
        Batch {
            contract: Arc::clone(self.contract),
            rows: columns,
            canonical: Canonical {
                bytes: Arc::new(self.canonical),
                ranges: self.ranges,
            },
            keys: OnceLock::new(),
            positions: (0..u32::try_from(rows).unwrap_or(u32::MAX)).collect(),
            defects: self.defects.named,
        }
    }
}

/// The defects of all rows so far. Texts are made for at most [`MAX_DEFECTS`] of a row.
#[derive(Debug, Default)]
struct Defects {
    named: Vec<Defect>,
    row: usize,
    /// The number of entries of `named` that belong to earlier rows.
    before: usize,
    /// The number of defects of this row.
    count: usize,
}

impl Defects {
    fn start_row(&mut self, row: usize) {
        (self.row, self.before, self.count) = (row, self.named.len(), 0);
    }

    /// Adds a defect. `text` returns its path, the expected and the actual value.
    fn add(&mut self, code: &'static str, text: impl FnOnce() -> (String, Cow<'static, str>, String)) {
        self.count += 1;
        // Beyond the limit the text is not even made.
        if self.count <= MAX_DEFECTS {
            let (path, expected, actual) = text();
            self.named.push(Defect {
                row: self.row,
                code,
                path,
                expected: expected.into_owned(),
                actual,
            });
        }
    }

    fn end_row(&mut self) {
        const NAMED: usize = MAX_DEFECTS - 1;
        if self.count > MAX_DEFECTS {
            // One place is kept for the line that counts the rest.
            self.named.truncate(self.before + NAMED);
            self.named.push(Defect {
                row: self.row,
                code: "more",
                path: String::new(),
                expected: format!("at most {MAX_DEFECTS} reasons to name"),
                actual: format!("{} more", self.count - NAMED),
            });
        }
    }
}

/// Returns the value that a field asks for, in words that say how to repair `value`.
fn expected(kind: FieldType, code: &str, value: &Value) -> Cow<'static, str> {
    let words = match (kind, code) {
        (FieldType::Integer, "range") => "integer from -2^63 to 2^63-1, exact",
        (FieldType::Number, "range") => "number that an IEEE double holds exactly",
        (FieldType::Timestamp, _) => "timestamp: RFC 3339 with an offset, years 1 to 9999, at most microseconds",
        (FieldType::Date, _) => "date: YYYY-MM-DD, years 0001 to 9999, a day that exists",
        (FieldType::Decimal(scale), _) => {
            let before = decimal::MAX_DIGITS.saturating_sub(scale);
            let text = if value.is_number() {
                "; send more than 15 digits as text"
            } else {
                ""
            };
            return format!(
                "decimal: digits without leading zeros, at most {before} before and {scale} after the point{text}"
            )
            .into();
        }
        (kind, _) => kind.name(),
    };
    words.into()
}

/// Returns the canonical JSON object of the extra members.
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

/// Returns the JSON pointer of a member of the record.
fn pointer(name: &str) -> String {
    let mut path = String::new();
    json::push_pointer(&mut path, name);
    path
}

/// Describes a value by its type and, unless it is text, its content. Text is never echoed.
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
    // A text is not repeated in an error: it may be long, or personal.
    if matches!(value, Value::Bool(_) | Value::Number(_)) {
        let text: String = value.to_string().chars().take(MAX_SHOWN_CHARS).collect();
        if write!(shown, " {text}").is_err() {
            return kind.to_owned();
        }
    }
    shown
}

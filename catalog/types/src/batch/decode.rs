//! Records to columns and canonical forms, in one pass over each record.
//!
//! Invariant: every record adds one row to everything a batch has.

use std::fmt::Write as _;
use std::ops::Range;
use std::sync::{Arc, OnceLock};

use arrow::array::{ArrayRef, StringBuilder};
use arrow::record_batch::{RecordBatch, RecordBatchOptions};
use serde_json::{Map, Value};

use super::column::{Column, Plain};
use super::{Batch, Canonical, Defect, MAX_DEFECTS};
use crate::{Contract, FieldType, canonical, json};

/// How many characters of a refused scalar a defect shows.
const SHOWN: usize = 40;

/// The values of a record's fields, and its other members.
type Taken<'r> = (Vec<Option<&'r Value>>, Vec<(&'r str, &'r Value)>);

#[derive(Debug)]
pub(super) struct Decoder<'a> {
    contract: &'a Arc<Contract>,
    columns: Vec<Column>,
    /// The beginning of each field's member, `"name":`, in the order of the canonical form.
    members: Vec<Vec<u8>>,
    extra: StringBuilder,
    canonical: Vec<u8>,
    /// Where each record is in it.
    places: Vec<Range<usize>>,
    defects: Defects,
}

impl<'a> Decoder<'a> {
    /// For about so many records, of so many bytes in all.
    pub(super) fn new(contract: &'a Arc<Contract>, rows: usize, bytes: usize) -> Self {
        let text = bytes / contract.fields().len().max(1);
        let column = |field: &crate::Field| Column::new(field.kind, rows, text);
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
            places: Vec::with_capacity(rows),
            defects: Defects::default(),
        }
    }

    /// How many records were decoded.
    pub(super) fn len(&self) -> usize {
        self.places.len()
    }

    pub(super) fn push(&mut self, record: &Value) {
        let row = self.len();
        self.defects.begin(row);
        let start = self.canonical.len();
        self.canonical.push(b'{');
        let (values, extras) = match record {
            Value::Object(members) => self.take(members),
            record => {
                self.defects
                    .add("not_object", || (String::new(), "an object", describe(record)));
                (vec![None; self.members.len()], Vec::new())
            }
        };
        let mut pending = extras.iter().peekable();
        let contract = self.contract;
        for (place, (index, field)) in contract.canonical_fields().enumerate() {
            while let Some((name, value)) =
                pending.next_if(|(name, _)| canonical::compare_names(name, &field.name).is_lt())
            {
                self.extra_member(start, name, value);
            }
            match values[place] {
                Some(value) if !value.is_null() => self.member(start, place, index, value),
                absent => {
                    self.columns[index].append_null();
                    if field.required && record.is_object() {
                        let actual = if absent.is_some() { "null" } else { "nothing" };
                        self.defects.add("missing", || {
                            (pointer(&field.name), field.kind.name(), actual.to_owned())
                        });
                    }
                }
            }
        }
        for (name, value) in pending {
            self.extra_member(start, name, value);
        }
        let out = &mut self.canonical;
        out.push(b'}');
        self.places.push(start..out.len());
        if contract.allow_extra() {
            self.extra
                .append_option((!extras.is_empty()).then(|| extra_text(&extras)));
        }
        self.defects.end();
    }

    /// Decodes a record that has these values, one for each field in the order of the canonical form, and no defect;
    /// what they are spelled as is in `line`.
    pub(super) fn push_plain(&mut self, line: &[u8], values: &[Option<Plain>]) {
        let out = &mut self.canonical;
        let start = out.len();
        let mut mark = b'{';
        let contract = self.contract;
        for ((place, (index, _)), value) in contract.canonical_fields().enumerate().zip(values) {
            match value {
                None | Some(Plain::Null) => self.columns[index].append_null(),
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
        self.places.push(start..out.len());
        if contract.allow_extra() {
            self.extra.append_null();
        }
    }

    /// The values of the fields, in the order of the canonical form, and the members that no field names: without nulls
    /// and in canonical order; defects where extras are not allowed.
    fn take<'r>(&mut self, members: &'r Map<String, Value>) -> Taken<'r> {
        let contract = self.contract;
        let mut found = 0;
        let mut values = Vec::with_capacity(self.members.len());
        // Why: members come in the order of the fields where a record has just these; then no name is looked up.
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
                self.defects
                    .add("extra", || (pointer(name), "no member of this name", describe(value)));
            }
        }
        extras.retain(|(_, value)| !value.is_null());
        extras.sort_unstable_by(|(left, _), (right, _)| canonical::compare_names(left, right));
        (values, extras)
    }

    /// Appends the value of a field, not null, to its column and to the canonical form; or a null and a defect.
    fn member(&mut self, start: usize, place: usize, index: usize, value: &Value) {
        let out = &mut self.canonical;
        let before = out.len();
        if before > start + 1 {
            out.push(b',');
        }
        out.extend_from_slice(&self.members[place]);
        if let Err(code) = self.columns[index].append(value, out) {
            out.truncate(before);
            let field = &self.contract.fields()[index];
            let expected = match (field.kind, code) {
                (FieldType::Integer, "range") => "integer from -2^63 to 2^63-1, exact",
                (FieldType::Number, "range") => "number that an IEEE double holds exactly",
                (FieldType::Timestamp, _) => {
                    "timestamp: RFC 3339 with an offset, years 1 to 9999, at most microseconds"
                }
                (kind, _) => kind.name(),
            };
            self.defects
                .add(code, || (pointer(&field.name), expected, describe(value)));
        }
    }

    fn extra_member(&mut self, start: usize, name: &str, value: &Value) {
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
            canonical: Canonical {
                bytes: Arc::new(self.canonical),
                places: self.places,
            },
            keys: OnceLock::new(),
            positions: (0..u32::try_from(rows).unwrap_or(u32::MAX)).collect(),
            defects: self.defects.named,
        }
    }
}

/// The defects of all rows so far; of one row at most [`MAX_DEFECTS`], and the text of no other is made.
#[derive(Debug, Default)]
struct Defects {
    named: Vec<Defect>,
    row: usize,
    /// How many of `named` are of other rows.
    before: usize,
    /// How many this row has.
    count: usize,
}

impl Defects {
    fn begin(&mut self, row: usize) {
        (self.row, self.before, self.count) = (row, self.named.len(), 0);
    }

    /// Adds a defect: its path, what is expected and what is there.
    fn add(&mut self, code: &'static str, text: impl FnOnce() -> (String, &'static str, String)) {
        self.count += 1;
        if self.count <= MAX_DEFECTS {
            let (path, expected, actual) = text();
            self.named.push(Defect {
                row: self.row,
                code,
                path,
                expected: expected.to_owned(),
                actual,
            });
        }
    }

    fn end(&mut self) {
        const NAMED: usize = MAX_DEFECTS - 1;
        if self.count > MAX_DEFECTS {
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

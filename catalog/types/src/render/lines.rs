//! JSON lines from typed columns, one record per line, for exports of any size.
//!
//! Invariant: a line has the members and values of [`super::records_of`]. Text of `json` columns and extras is copied,
//! since it was stored as canonical JSON.

use std::ops::Range;

use arrow::array::{Array as _, AsArray as _, RecordBatch, StringArray};
use arrow::datatypes::DataType;
use arrow::error::ArrowError;

use super::values::{RenderedValues, quote};
use crate::contract::{Contract, EXTRA_COLUMN, FieldType, RESERVED_PREFIX};

/// The rows of a batch, ready to be written.
#[derive(Debug)]
pub struct RenderedLines {
    columns: Vec<RenderedColumn>,
    extra: Option<StringArray>,
    rows: usize,
}

#[derive(Debug)]
struct RenderedColumn {
    /// The bytes before the value: a brace or comma, the name, a colon.
    head: Vec<u8>,
    values: RenderedValues,
}

impl RenderedLines {
    /// Prepares the rows of `rows`, a batch with the columns of `contract`. Hidden columns are omitted.
    pub fn new(contract: &Contract, rows: &RecordBatch) -> Result<Self, ArrowError> {
        let mut columns = Vec::with_capacity(contract.fields().len());
        for field in contract.fields() {
            if field.name.starts_with(RESERVED_PREFIX) {
                continue;
            }
            let column = rows
                .column_by_name(&field.name)
                .ok_or_else(|| ArrowError::SchemaError(format!("there is no column `{}`", field.name)))?;
            // The bytes before a value are the same in every row, so they are built once.
            let mut head = vec![if columns.is_empty() { b'{' } else { b',' }];
            quote(&mut head, &field.name);
            head.push(b':');
            let values = RenderedValues::new(column.as_ref(), field.kind == FieldType::Json)?;
            columns.push(RenderedColumn { head, values });
        }
        let extra = match rows.column_by_name(EXTRA_COLUMN) {
            Some(column) if *column.data_type() == DataType::Utf8 => Some(column.as_string::<i32>().clone()),
            _ => None,
        };
        Ok(Self {
            columns,
            extra,
            rows: rows.num_rows(),
        })
    }

    /// Returns the number of rows.
    pub const fn len(&self) -> usize {
        self.rows
    }

    /// Returns true if there are no rows.
    pub const fn is_empty(&self) -> bool {
        self.rows == 0
    }

    /// Writes a range of rows to `out`, each followed by a line feed. Rows past the end are skipped.
    pub fn write(&self, rows: Range<usize>, out: &mut Vec<u8>) {
        for row in rows.start..rows.end.min(self.rows) {
            self.record(row, out);
            out.push(b'\n');
        }
    }

    /// Writes one row to `out`, without a line feed.
    pub fn record(&self, row: usize, out: &mut Vec<u8>) {
        for column in &self.columns {
            out.extend_from_slice(&column.head);
            column.values.write_json(row, out);
        }
        let extra = self.extra.as_ref().filter(|extra| extra.is_valid(row));
        // The column holds an object; its members are copied without the braces.
        let members = extra.and_then(|extra| extra.value(row).strip_prefix('{')?.strip_suffix('}'));
        // The head of the first column has the opening brace; without columns nothing has written it.
        if self.columns.is_empty() {
            out.push(b'{');
        }
        if let Some(members) = members.filter(|members| !members.is_empty()) {
            if !self.columns.is_empty() {
                out.push(b',');
            }
            out.extend_from_slice(members.as_bytes());
        }
        out.push(b'}');
    }
}

#[cfg(test)]
mod tests;

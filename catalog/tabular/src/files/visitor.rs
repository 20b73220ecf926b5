//! The visitor of the rows of a file, which the readers of all formats call.

use std::collections::HashSet;

use arrow::datatypes::Schema;

use super::cell::FileCell;
use super::error::FileError;

/// The most columns of a file.
pub(super) const MAX_COLUMNS: usize = 10_000;

/// Takes the rows of a file.
pub(super) trait RowVisitor {
    /// Takes the names of the columns, before the rows. A sheet may have more columns, which have no name.
    fn begin(&mut self, names: Vec<String>) -> Result<(), FileError>;

    /// Takes a row and its number in the file, from 1. Numbers ascend, and rows that are no records are left out. Columns
    /// without a cell are null.
    fn row(&mut self, number: u64, cells: &[FileCell<'_>]) -> Result<(), FileError>;
}

/// Returns the names of the columns.
pub(super) fn names_of(schema: &Schema) -> Result<Vec<String>, FileError> {
    let fields = schema.fields();
    if fields.len() > MAX_COLUMNS {
        return Err(FileError::TooLarge(format!(
            "the file has more than {MAX_COLUMNS} columns"
        )));
    }
    let mut seen = HashSet::new();
    for field in fields {
        // Readers find a column by its first name only, so the second one could be lost silently.
        if !seen.insert(field.name()) {
            return Err(FileError::Refused(format!("two columns are called `{}`", field.name())));
        }
    }
    Ok(fields.iter().map(|field| field.name().clone()).collect())
}

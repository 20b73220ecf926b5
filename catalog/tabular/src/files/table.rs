//! Tables of files: named columns, and rows that are visited once, in order.

use std::collections::HashSet;

use arrow::datatypes::Schema;

use super::cell::FileCell;
use super::error::FileError;
use super::input::FileInput;
use super::{SheetChoice, arrow_file, parquet_file, sheet};
use crate::infer::FileFormat;

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

/// Visits every row of a file. Returns notices about it as a whole.
pub(super) fn visit(
    input: &FileInput,
    format: FileFormat,
    choice: &SheetChoice,
    visitor: &mut dyn RowVisitor,
) -> Result<Vec<String>, FileError> {
    match format {
        FileFormat::Parquet => parquet_file::visit(input, visitor)?,
        FileFormat::ArrowFile => arrow_file::visit_file(input.rewound(), visitor)?,
        FileFormat::ArrowStream => arrow_file::visit_stream(input.rewound(), visitor)?,
        FileFormat::Csv | FileFormat::JsonLines | FileFormat::Json => {
            return Err(FileError::Refused(
                "the file is text, which is read as it is".to_owned(),
            ));
        }
        FileFormat::Xlsx => return sheet::visit(input.rewound(), choice, visitor),
    }
    Ok(Vec::new())
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

//! Tables of files: named columns, and rows that are visited once, in order.

use std::collections::HashSet;

use arrow::datatypes::Schema;

use super::cell::FileCell;
use super::error::FileError;
use super::input::FileInput;
use super::{BinaryFormat, SheetChoice, arrow_file, parquet_file, sheet};

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

/// Notices about a file as a whole.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct TableNotes {
    /// Sentences for people.
    pub(super) notes: Vec<String>,
    /// Number of the row with the names of the columns; 0 if there is none.
    pub(super) header_row: u64,
}

/// Visits every row of a file.
pub(super) fn visit(
    input: &FileInput,
    format: BinaryFormat,
    choice: &SheetChoice,
    visitor: &mut dyn RowVisitor,
) -> Result<TableNotes, FileError> {
    match format {
        BinaryFormat::Parquet => parquet_file::visit(input, visitor)?,
        BinaryFormat::ArrowFile => arrow_file::visit_file(rewound(input)?, visitor)?,
        BinaryFormat::ArrowStream => arrow_file::visit_stream(rewound(input)?, visitor)?,
        BinaryFormat::Xlsx => return sheet::visit(rewound(input)?, choice, visitor),
    }
    Ok(TableNotes::default())
}

fn rewound(input: &FileInput) -> Result<FileInput, FileError> {
    use std::io::Seek as _;

    let mut input = input.try_clone()?;
    input.rewind()?;
    Ok(input)
}

/// Returns the names of the columns.
pub(super) fn names_of(schema: &Schema) -> Result<Vec<String>, FileError> {
    let fields = schema.fields();
    if fields.len() > MAX_COLUMNS {
        return Err(FileError::TooLarge(format!("the file has more than {MAX_COLUMNS} columns")));
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

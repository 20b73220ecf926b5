//! Tables of files: named columns, and rows that are visited once, in order.

use super::error::FileError;
use super::input::FileInput;
use super::visitor::RowVisitor;
use super::{SheetChoice, arrow_file, parquet_file, sheet};
use crate::infer::FileFormat;

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

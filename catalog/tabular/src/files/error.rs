//! Reasons why a file of Parquet, Arrow or XLSX cannot be read.

use std::io;

/// A file that is not read.
#[derive(Debug, thiserror::Error)]
pub enum FileError {
    /// The file could not be read.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// The file is damaged, or has something that is not read.
    #[error("{0}")]
    Refused(String),
    /// The file comes to more than a bound.
    #[error("{0}")]
    TooLarge(String),
    /// No more of the file is wanted.
    #[error("the rest of the file is not wanted")]
    Enough,
}

impl From<arrow::error::ArrowError> for FileError {
    fn from(error: arrow::error::ArrowError) -> Self {
        match error {
            arrow::error::ArrowError::ExternalError(source) => match source.downcast::<Self>() {
                Ok(own) => *own,
                Err(other) => Self::Refused(other.to_string()),
            },
            error => Self::Refused(error.to_string()),
        }
    }
}

impl From<parquet::errors::ParquetError> for FileError {
    fn from(error: parquet::errors::ParquetError) -> Self {
        Self::Refused(error.to_string())
    }
}

/// Returns true for the words of `zip` about a part that is larger than its entry says. Its error has no kind for it.
fn is_of_size(words: &str) -> bool {
    words.contains("larger than its declared uncompressed size")
}

impl From<calamine::XlsxError> for FileError {
    fn from(error: calamine::XlsxError) -> Self {
        match error {
            calamine::XlsxError::Io(error) => Self::Io(error),
            calamine::XlsxError::Password => {
                Self::Refused("the workbook has a password; save it without one".to_owned())
            }
            error if is_of_size(&error.to_string()) => Self::TooLarge(
                "a part of the workbook comes to more than the archive says; save the sheet as CSV".to_owned(),
            ),
            error => Self::Refused(format!("the workbook cannot be read: {error}")),
        }
    }
}

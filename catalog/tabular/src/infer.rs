//! Inference: a whole file in one pass to a contract, the reading that makes records of it, notes and questions.
//!
//! Invariant: no value is changed, guessed or left out without a note or a question that says so, and memory is bounded
//! whatever the file says.

use std::io;

mod answer;
mod options;

pub use answer::{
    FileFormat, Inference, InferredColumn, MAX_DISTINCT_VALUES, MAX_EXAMPLES, MAX_REMARKS, MAX_SAMPLE_RECORDS,
    MAX_SHOWN_CHARACTERS, Note, NullWordCount, Question, Remedy, is_pasteable, shown,
};
pub(crate) use options::names_column;
pub use options::{FlagError, InferOptions, MAX_INFERRED_TEXT_BYTES, QuoteSign, READING_FLAGS, TypeFlag};

/// Reason why nothing can be said of a file.
#[derive(Debug, thiserror::Error)]
pub enum InferError {
    /// The file could not be read.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// It is of a format that is not read, with the remedy.
    #[error("{0}")]
    Unreadable(String),
    /// Nothing behind this line can be trusted.
    #[error("line {line}: {problem}")]
    Broken {
        /// Line of the file, from 1.
        line: u64,
        /// The problem, with the column if there is one.
        problem: String,
    },
    /// A flag does not fit the file.
    #[error(transparent)]
    Flag(#[from] FlagError),
}

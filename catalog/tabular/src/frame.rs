//! A text cut into the records that its reading says, each with the line on which it begins.
//!
//! Invariant: memory is bounded by the longest record that is kept, whatever the text says, and the time is linear in it.

mod delimited;
mod json;
mod lines;

use std::io::{self, Read};

use self::delimited::DelimitedFrames;
use self::json::JsonFrames;
use self::lines::LineFrames;
use crate::csv;
use crate::decode::MalformedText;
use crate::reading::{Reading, ReadingError, TextFormat};

pub use self::delimited::header_names;
pub(crate) use self::json::ValueScan;

/// The most bytes of a record.
pub const MAX_RECORD_BYTES: usize = csv::MAX_RECORD_BYTES;

/// A record of a text, as it was cut out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FramedRecord {
    /// Line on which it begins, from 1.
    pub line: u64,
    /// Number of the records before it in the file.
    pub number: u64,
    /// True if it has more than [`MAX_RECORD_BYTES`], and only its begin was kept.
    pub is_too_long: bool,
}

/// A failure after which nothing of the file can be trusted.
#[derive(Debug, thiserror::Error)]
pub enum FrameError {
    /// The file could not be read, or is not text in its encoding: [`MalformedText`].
    #[error(transparent)]
    Io(#[from] io::Error),
    /// The file ends within a quoted cell.
    #[error("line {line}: the quote that opens {column} is never closed")]
    Unclosed {
        /// Line of the opening quote, from 1.
        line: u64,
        /// The column, as words.
        column: String,
    },
    /// The header is not that of the reading.
    #[error("line {line}: the header is not that of the reading: {problem}")]
    Header {
        /// Line of the header, from 1.
        line: u64,
        /// The difference.
        problem: String,
    },
    /// It is no JSON, or has no records where the reading says so.
    #[error("line {line}: {problem}")]
    Json {
        /// Line on which it shows, from 1.
        line: u64,
        /// The problem.
        problem: String,
    },
}

impl FrameError {
    /// Returns the code of the failure.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Io(error) if MalformedText::of(error).is_some() => "malformed_text",
            Self::Io(_) => "unreadable",
            Self::Unclosed { .. } => "unclosed_quote",
            Self::Header { .. } => "header_differs",
            Self::Json { .. } => "malformed_json",
        }
    }

    /// Returns the line of the failure, from 1.
    pub fn line(&self) -> Option<u64> {
        match self {
            Self::Io(error) => MalformedText::of(error).map(|malformed| malformed.line),
            Self::Unclosed { line, .. } | Self::Header { line, .. } | Self::Json { line, .. } => Some(*line),
        }
    }
}

/// A reader of the records of a text, in bounded memory.
#[derive(Debug)]
pub struct RecordReader<R> {
    frames: RecordFrames<R>,
    /// Number of records so far.
    count: u64,
}

#[derive(Debug)]
enum RecordFrames<R> {
    Lines(LineFrames<R>),
    Json(Box<JsonFrames<R>>),
    Delimited(Box<DelimitedFrames<R>>),
}

/// Place of a record that was cut out.
#[derive(Clone, Copy, Debug)]
struct FramePlace {
    line: u64,
    is_too_long: bool,
}

impl<R: Read> RecordReader<R> {
    /// Returns a reader of `input`, which is UTF-8 without a byte order mark.
    ///
    /// # Errors
    /// The delimiter or the quote of the reading is none.
    pub fn new(input: R, reading: &Reading) -> Result<Self, ReadingError> {
        let frames = match reading.format {
            TextFormat::JsonLines => RecordFrames::Lines(LineFrames::new(input)),
            TextFormat::Json => RecordFrames::Json(Box::new(JsonFrames::new(input, reading))),
            TextFormat::Csv => RecordFrames::Delimited(Box::new(DelimitedFrames::new(input, reading)?)),
        };
        Ok(Self { frames, count: 0 })
    }

    /// Appends the text of the next record to `text`; `None` at the end of the file. Rows without a value are passed over.
    ///
    /// A record of `csv` has no line end; one of a JSON object of records is `"name":{…}`.
    ///
    /// # Errors
    /// Nothing of the file can be trusted from there on.
    pub fn read(&mut self, text: &mut Vec<u8>) -> Result<Option<FramedRecord>, FrameError> {
        let place = match &mut self.frames {
            RecordFrames::Lines(frames) => frames.read(text)?,
            RecordFrames::Json(frames) => frames.read(text)?,
            RecordFrames::Delimited(frames) => frames.read(text)?,
        };
        let Some(FramePlace { line, is_too_long }) = place else {
            return Ok(None);
        };
        let number = self.count;
        self.count += 1;
        Ok(Some(FramedRecord {
            line,
            number,
            is_too_long,
        }))
    }

    /// Returns the number of lines of delimiters, or of nothing, that were passed over behind the header.
    pub const fn blank_rows(&self) -> u64 {
        match &self.frames {
            RecordFrames::Lines(frames) => frames.blank_rows(),
            RecordFrames::Json(_) => 0,
            RecordFrames::Delimited(frames) => frames.blank_rows(),
        }
    }
}

#[cfg(test)]
mod tests;

//! Inference: a whole file in one pass to a contract, the reading that makes records of it, notes and questions.
//!
//! Invariant: no value is changed, guessed or left out without a note or a question that says so, and memory is bounded
//! whatever the file says.

use std::io::{self, Read};
use std::sync::Arc;

use types::batch::LineDecoder;

mod answer;
mod decide;
mod decide_times;
mod delimited;
mod dialect;
mod distinct;
mod document;
mod finish;
mod numbers;
mod objects;
mod options;
mod profile;
mod times;

pub use answer::{
    FileFormat, Inference, InferredColumn, MAX_DISTINCT_VALUES, MAX_EXAMPLES, MAX_REMARKS, MAX_SAMPLE_RECORDS,
    MAX_SHOWN_CHARACTERS, Note, NullWordCount, Question, Remedy, is_pasteable, shown,
};
#[cfg(feature = "files")]
pub(crate) use options::names_column;
pub use options::{FlagError, InferOptions, MAX_INFERRED_TEXT_BYTES, QuoteSign, READING_FLAGS, TypeFlag};

use crate::decode::{MalformedText, UnknownEncoding, Utf8Reader, decompress, offer_encoding};
use crate::detect::{self, DETECT_BYTES, FileCompression, FileKind, detect};
use crate::frame::{FrameError, RecordReader};
use crate::reading::{Reading, ReadingError, TextCompression, TextFormat};
use crate::translate::Translator;
use decide::Remarks;
use finish::{FoundFile, finish};
use objects::ObjectColumns;

/// Reason why nothing can be said of a file.
#[derive(Debug, thiserror::Error)]
pub enum InferError {
    /// The file could not be read.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// It is of a format that is not read.
    #[error("{problem}; {remedy}")]
    Unreadable {
        /// Code of the reason, as [`detect::Unreadable`] has it.
        code: &'static str,
        /// Description of the file.
        problem: String,
        /// Remedy. `FILE` stands for the name of the file.
        remedy: String,
    },
    /// It is a file of this form, which is no text.
    #[error("it is no text: files of the form {0:?} need to be read from several places")]
    NoText(FileKind),
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

impl InferError {
    fn flag(flag: &str, problem: &str) -> Self {
        Self::Flag(FlagError {
            flag: flag.to_owned(),
            problem: problem.to_owned(),
        })
    }

    fn of_reading(error: &ReadingError) -> Self {
        Self::Flag(FlagError {
            flag: "--reading".to_owned(),
            problem: error.to_string(),
        })
    }

    /// Returns the malformed text that ended a pass, about which a person is asked, or the error.
    fn malformed(error: FrameError) -> Result<MalformedText, Self> {
        match error {
            FrameError::Io(error) => match MalformedText::of(&error) {
                Some(malformed) => Ok(malformed.clone()),
                None => Err(Self::Io(error)),
            },
            FrameError::Unclosed { line, column } => Err(Self::Broken {
                line,
                problem: format!("the quote that opens {column} is never closed"),
            }),
            FrameError::Header { line, problem } | FrameError::Json { line, problem } => {
                Err(Self::Broken { line, problem })
            }
        }
    }
}

impl From<detect::Unreadable> for InferError {
    fn from(unreadable: detect::Unreadable) -> Self {
        Self::Unreadable {
            code: unreadable.code,
            problem: unreadable.problem,
            remedy: unreadable.remedy,
        }
    }
}

impl From<UnknownEncoding> for InferError {
    fn from(error: UnknownEncoding) -> Self {
        Self::flag("--encoding", &error.to_string())
    }
}

/// A text up to the most bytes that are looked at, with its begin at hand.
#[derive(Debug)]
struct LimitedText<R> {
    input: R,
    /// The begin, which is given again.
    begin: Vec<u8>,
    given: usize,
    /// An error that came with the begin, and follows it.
    failed: Option<io::Error>,
    left: u64,
    bytes: u64,
    is_cut: bool,
}

impl<R: Read> LimitedText<R> {
    /// Reads the begin of a text of which at most `most` bytes are looked at.
    fn new(mut input: R, most: u64) -> Self {
        let mut begin = Vec::new();
        let mut failed = None;
        let limit = u64::try_from(DETECT_BYTES).unwrap_or(u64::MAX).min(most);
        if let Err(error) = input.by_ref().take(limit).read_to_end(&mut begin) {
            failed = Some(error);
        }
        let read = u64::try_from(begin.len()).unwrap_or(u64::MAX);
        Self {
            input,
            begin,
            given: 0,
            failed,
            left: most.saturating_sub(read),
            bytes: read,
            is_cut: false,
        }
    }

    /// Returns true if the text goes on behind what was looked at.
    const fn is_cut(&self) -> bool {
        self.is_cut
    }

    /// Returns the bytes that were looked at.
    const fn bytes_read(&self) -> u64 {
        self.bytes
    }

    /// Returns true if the text has no more than its begin.
    const fn is_begin_all(&self) -> bool {
        self.begin.len() < DETECT_BYTES && self.left > 0
    }
}

impl<R: Read> Read for LimitedText<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.given < self.begin.len() {
            let rest = &self.begin[self.given..];
            let length = rest.len().min(buffer.len());
            buffer[..length].copy_from_slice(&rest[..length]);
            self.given += length;
            return Ok(length);
        }
        if let Some(error) = self.failed.take() {
            return Err(error);
        }
        if self.left == 0 && !buffer.is_empty() {
            let mut next = [0; 1];
            self.is_cut |= self.input.read(&mut next)? > 0;
            return Ok(0);
        }
        let most = usize::try_from(self.left).unwrap_or(usize::MAX).min(buffer.len());
        let read = self.input.read(&mut buffer[..most])?;
        let length = u64::try_from(read).unwrap_or(u64::MAX);
        self.left -= length;
        self.bytes += length;
        Ok(read)
    }
}

/// Reads a text file as a whole, up to [`InferOptions::max_text_bytes`], and says what it is.
///
/// Questions are part of the answer; what cannot be asked about is an error.
///
/// # Errors
/// The file cannot be read, is none that is read as a stream ([`InferError::NoText`]), or a flag does not fit it.
pub fn infer(mut input: impl Read, options: &InferOptions) -> Result<Inference, InferError> {
    let mut begin = Vec::new();
    let most = u64::try_from(DETECT_BYTES).unwrap_or(u64::MAX);
    input.by_ref().take(most).read_to_end(&mut begin)?;
    let detected = detect(&begin)?;
    if !detected.kind.is_text() {
        return Err(InferError::NoText(detected.kind));
    }
    let options = &options.with_reading();
    let encoding = options.encoding.as_deref().unwrap_or(detected.encoding);
    let bytes = io::Cursor::new(begin).chain(input);
    let decoded = Utf8Reader::new(decompress(bytes, detected.compression)?, encoding)?;
    let mut text = LimitedText::new(decoded, options.max_text_bytes);
    let (found, remarks) = match (options.format, detected.kind) {
        (Some(TextFormat::Csv), _) | (None, FileKind::Delimited) => {
            let dialect = dialect::find_dialect(&text.begin, !text.is_begin_all(), options);
            delimited::infer_delimited(&mut text, &dialect, options)?
        }
        (Some(TextFormat::Json), _) | (None, FileKind::JsonDocument) => document::infer_document(&mut text, options)?,
        (Some(TextFormat::JsonLines) | None, _) => infer_lines(&mut text, options)?,
    };
    let malformed = found.malformed.clone();
    let mut inference = finish(found, remarks, options)?;
    encoding.clone_into(&mut inference.reading.encoding);
    if detected.compression == FileCompression::Zstd {
        inference.reading.compression = Some(TextCompression::Zstd);
    }
    if let Some(malformed) = malformed {
        inference.questions.insert(0, ask_encoding(&text.begin, &malformed));
    }
    take_sample(&text.begin, &mut inference);
    Ok(inference)
}

/// Reads JSON Lines.
fn infer_lines<R: Read>(text: &mut LimitedText<R>, options: &InferOptions) -> Result<(FoundFile, Remarks), InferError> {
    let reading = Reading::default();
    let mut columns = ObjectColumns::new(options);
    let mut budget = profile::MAX_KEPT_BYTES;
    let mut reader = RecordReader::new(&mut *text, &reading).map_err(|error| InferError::of_reading(&error))?;
    let (mut record, mut held, mut held_line) = (Vec::new(), Vec::new(), None);
    let end = loop {
        record.clear();
        let line = match reader.read(&mut record) {
            Ok(Some(found)) => found.line,
            Ok(None) => break Ok(()),
            Err(error) => break Err(error),
        };
        if let Some(line) = held_line.replace(line) {
            columns.add(&held, None, line, &mut budget);
        }
        std::mem::swap(&mut record, &mut held);
    };
    let is_last_whole = end.is_err() || !text.is_cut();
    let malformed = match end {
        Ok(()) => None,
        Err(error) => Some(InferError::malformed(error)?),
    };
    let is_whole = malformed.is_none() && !text.is_cut();
    if let Some(line) = held_line.filter(|_| is_last_whole) {
        columns.add(&held, None, line, &mut budget);
    }
    let mut remarks = Remarks::default();
    let found = FoundFile {
        format: FileFormat::JsonLines,
        complete: is_whole,
        malformed,
        text_bytes: text.bytes_read(),
        records: columns.records,
        columns: columns.finish(&mut remarks),
        reading,
        asked_lines: Vec::new(),
    };
    Ok((found, remarks))
}

fn ask_encoding(begin: &[u8], malformed: &MalformedText) -> Question {
    let line = malformed.line;
    let question = match offer_encoding(begin, malformed) {
        Some(offer) => {
            let message = format!(
                "line {line} is not {}. If it should read `{}`, the file is {}",
                malformed.encoding,
                shown(&offer.word),
                offer.label
            );
            Question::new("encoding", message).remedy("--encoding", &[], &offer.label)
        }
        None => Question::new(
            "encoding",
            format!("line {line} is not {}: name the encoding", malformed.encoding),
        )
        .remedy("--encoding", &[], "windows-1252"),
    };
    question.line(line)
}

/// Makes the first records of the begin of the text, as they will be stored.
fn take_sample(begin: &[u8], inference: &mut Inference) {
    let Some(contract) = inference.contract.clone().map(Arc::new) else {
        return;
    };
    let reading = &inference.reading;
    let (mut translator, mut reader) = match (Translator::new(reading, &contract), RecordReader::new(begin, reading)) {
        (Ok(translator), Ok(reader)) => (translator, reader),
        (Err(error), _) | (_, Err(error)) => {
            inference.questions.push(Question::new(
                "reading",
                format!("the reading does not fit the contract: {error}"),
            ));
            return;
        }
    };
    let mut decoder = LineDecoder::new(&contract, MAX_SAMPLE_RECORDS, begin.len().min(1 << 16));
    let (mut record, mut line, mut taken) = (Vec::new(), Vec::new(), 0);
    // What the begin cuts off, and what will be refused, is no example.
    while taken < MAX_SAMPLE_RECORDS {
        record.clear();
        let Ok(Some(found)) = reader.read(&mut record) else {
            break;
        };
        line.clear();
        if !found.is_too_long && translator.translate(&record, found.number, &mut line).is_ok() {
            taken += usize::from(decoder.push(&line).is_ok());
        }
    }
    let batch = decoder.finish();
    let stored = (0..batch.len()).filter_map(|row| serde_json::from_slice(batch.canonical(row)).ok());
    inference.sample = stored.collect();
}

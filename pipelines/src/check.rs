//! Judging of a file where it lies, before it is sent: by the gates of the worker, without the records of the dataset and
//! without the screen.
//!
//! Invariants:
//! - What is refused here is refused by the worker. The worker may refuse more, and has the last word.
//! - Memory is bounded whatever the size, and records that come twice are counted exactly.

use std::io::{self, Read};
use std::path::PathBuf;
use std::sync::Arc;

use catalog::DistinctKeys;
use operators::{Decision, Reason, Tally, Verdict};
use parking_lot::Mutex;
use tabular::decode::{Utf8Reader, decompress};
use tabular::detect::FileCompression;
use tabular::frame::{FrameError, RecordReader};
use tabular::reading::{Reading, TextCompression};
use tokio::runtime::Handle;
use tokio_util::sync::CancellationToken;
use types::Contract;
use types::key::NoKeys;
use types::vocabulary::OnRefused;
use uploads::Compression;

use crate::judge::chunk::{LineContext, Translation};
use crate::judge::in_order::{InOrderError, LineJudges};
use crate::judge::merger::Merger;
use crate::judge::split::{SourceFailed, SplitError, split};

/// The most records of one file.
const MOST_RECORDS: u64 = u32::MAX as u64;
/// The most threads that judge, which bounds the memory.
const JUDGES: usize = 4;

/// A file that is to be judged, and how.
#[derive(Clone, Debug)]
pub struct FileCheck {
    /// The contract of the records.
    pub contract: Arc<Contract>,
    /// Way from the text to records.
    pub reading: Reading,
    /// The compression that the upload will declare.
    pub compression: Compression,
    /// Effect of refused records.
    pub on_refused: OnRefused,
    /// A folder for what does not fit into memory. Nothing in it is left.
    pub folder: PathBuf,
}

/// A record that is refused.
#[derive(Clone, Copy, Debug)]
pub struct RefusedRecord<'a> {
    /// Number of the record in the file, from 0; rows without a value are none.
    pub number: u64,
    /// Rules that it breaks: at least one.
    pub reasons: &'a [Reason],
}

/// A file that was judged.
#[derive(Clone, Debug)]
pub struct CheckedFile {
    /// The decision on the file as an upload. It merges, or is rejected.
    pub decision: Decision,
    /// Counts of the gates, in order.
    pub tallies: Vec<Tally>,
}

impl CheckedFile {
    /// Returns the number of records.
    pub fn records(&self) -> u64 {
        self.tallies.first().map_or(0, |tally| tally.rows.into())
    }

    /// Returns the number of records that are refused.
    pub fn refused(&self) -> u64 {
        self.tallies.iter().map(|tally| u64::from(tally.refused)).sum()
    }

    /// Returns the number of records that repeat earlier ones of the file.
    pub fn duplicates(&self) -> u64 {
        self.tallies.iter().map(|tally| u64::from(tally.dropped)).sum()
    }
}

/// Reason for which a file could not be judged.
#[derive(Debug, thiserror::Error)]
pub enum CheckError {
    /// Its bytes cannot be read as records.
    #[error("{message}")]
    Unreadable {
        /// The rule, such as `unclosed_quote`.
        code: String,
        /// The sentence for people.
        message: String,
    },
    /// The file could not be read.
    #[error("the file could not be read")]
    Source(#[source] io::Error),
    /// Keys that do not fit into memory could not be kept.
    #[error(transparent)]
    Kept(#[from] catalog::Error),
    /// There is no thread to judge on, or a gate panicked.
    #[error("the judging failed: {0}")]
    Failed(String),
}

fn unreadable(code: &str, message: impl Into<String>) -> CheckError {
    CheckError::Unreadable {
        code: code.to_owned(),
        message: message.into(),
    }
}

impl From<FrameError> for CheckError {
    fn from(error: FrameError) -> Self {
        match error {
            FrameError::Io(error) if tabular::decode::MalformedText::of(&error).is_none() => Self::Source(error),
            error => unreadable(error.code(), error.to_string()),
        }
    }
}

impl FileCheck {
    /// Returns a reader of the records of the file.
    ///
    /// # Errors
    /// The reading is none, or there is no memory for a decoder.
    pub fn records<'a>(&self, input: impl Read + 'a) -> Result<RecordReader<Box<dyn Read + 'a>>, CheckError> {
        let compression = match (self.compression, self.reading.compression) {
            (Compression::Gzip, _) => FileCompression::Gzip,
            (_, Some(TextCompression::Zstd)) => FileCompression::Zstd,
            _ => FileCompression::None,
        };
        let text = decompress(input, compression).map_err(CheckError::Source)?;
        let text = Utf8Reader::new(text, &self.reading.encoding);
        let text: Box<dyn Read + 'a> = Box::new(text.map_err(|error| unreadable("reading", error.to_string()))?);
        RecordReader::new(text, &self.reading).map_err(|error| unreadable("reading", error.to_string()))
    }

    /// Judges the file. Calls `on_refused` with each record that is refused, in order. Blocks, on a thread of a runtime.
    ///
    /// # Errors
    /// If its bytes are no records, or something that judging needs fails.
    pub fn run(
        &self,
        input: impl Read + Send,
        mut on_refused: impl FnMut(RefusedRecord<'_>),
    ) -> Result<CheckedFile, CheckError> {
        let translation = Translation::by_record(self.reading.clone(), &self.contract);
        let translation = translation.map_err(|error| unreadable("reading", error.to_string()))?;
        let context = LineContext {
            contract: Arc::clone(&self.contract),
            known: Arc::new(NoKeys),
            screener: None,
            most_rows: MOST_RECORDS,
            translation: Some(translation),
        };
        let (handle, stop) = (Handle::current(), CancellationToken::new());
        let judges = LineJudges {
            most: JUDGES,
            ..LineJudges::new(&handle, &stop, &context)
        };
        let merger = Merger::new(DistinctKeys::new(&self.folder), self.on_refused);
        let plan = context.plan(self.compression);
        let failed = Mutex::new(None);
        let ran = judges.run(
            merger,
            |emit| split(WatchedInput(input, &failed), &plan, emit),
            |_| (),
            |merger, lines, ()| {
                merger.push(lines, |said| {
                    if let Verdict::Refuse { reasons } = &said.verdict {
                        let number = u64::from(said.row);
                        on_refused(RefusedRecord { number, reasons });
                    }
                })
            },
        );
        let (merger, ended) = ran.map_err(|error| match error {
            InOrderError::Catalog(error) => CheckError::Kept(error),
            error => CheckError::Failed(error.to_string()),
        })?;
        if let Some(error) = failed.into_inner() {
            return Err(CheckError::Source(error));
        }
        match (ended, merger.excess(MOST_RECORDS)) {
            (Err(SplitError::Unreadable { code, message }), _) => Err(unreadable(code, message)),
            (Ok(()) | Err(SplitError::Unwanted), Some(excess)) => match excess.decision() {
                Decision::Reject { code, message } => Err(unreadable(&code, message)),
                decision => Err(CheckError::Failed(format!("{decision:?}"))),
            },
            (Err(error), _) => Err(CheckError::Failed(error.to_string())),
            (Ok(()), None) => {
                let (decision, report, _) = merger.decide();
                Ok(CheckedFile {
                    decision,
                    tallies: report.tallies,
                })
            }
        }
    }
}

/// A file whose own failure is kept apart from those of its text.
struct WatchedInput<'a, R>(R, &'a Mutex<Option<io::Error>>);

impl<R: Read> Read for WatchedInput<'_, R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.0.read(buffer).map_err(|error| {
            if error.kind() == io::ErrorKind::Interrupted {
                return error;
            }
            *self.1.lock() = Some(error);
            io::Error::other(SourceFailed)
        })
    }
}

#[cfg(test)]
mod tests;

//! Judging of a file where it lies, before it is sent: by the gates of the worker, without the records of the dataset and
//! without the screen.
//!
//! Invariants:
//! - What is refused here is refused by the worker. The worker may refuse more, and has the last word.
//! - Memory is bounded whatever the size, and records that come twice are counted exactly.

use std::io::Read;
use std::path::PathBuf;
use std::sync::Arc;

use catalog::DistinctKeys;
use operators::{Decision, Reason, Tally, Verdict};
use tokio::runtime::Handle;
use tokio_util::sync::CancellationToken;
use types::Contract;
use types::key::NoKeys;
use types::vocabulary::OnRefused;
use uploads::Compression;

use crate::judge::chunk::LineContext;
use crate::judge::in_order::{InOrderError, LineJudges};
use crate::judge::merger::Merger;
use crate::judge::split::{LineChunk, SplitError, split};

/// The most records of one file.
const MOST_RECORDS: u64 = u32::MAX as u64;
/// The most threads that judge, which bounds the memory.
const JUDGES: usize = 4;

/// A file that is to be judged, and how.
#[derive(Clone, Debug)]
pub struct FileCheck {
    /// The contract of the records.
    pub contract: Arc<Contract>,
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
    /// Line of the file on which it begins, from 1.
    pub line: u64,
    /// Rules that it breaks: at least one.
    pub reasons: &'a [Reason],
    /// Text of the record, as UTF-8 and without its line end.
    pub text: &'a [u8],
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
        /// The rule, such as `gzip_damaged`.
        code: String,
        /// The sentence for people.
        message: String,
    },
    /// The file could not be read.
    #[error("the file could not be read")]
    Source,
    /// What does not fit into memory could not be kept.
    #[error(transparent)]
    Kept(#[from] catalog::Error),
    /// There is no thread to judge on, or a gate panicked.
    #[error("the judging failed: {0}")]
    Failed(String),
}

/// Text of a chunk with its place in the file.
struct ChunkText {
    first: u64,
    text: Vec<u8>,
}

impl ChunkText {
    fn of(chunk: &LineChunk) -> Self {
        Self {
            first: chunk.first,
            text: chunk.text.clone(),
        }
    }

    /// Returns the text of a line by its index in the file.
    fn line(&self, index: u32) -> &[u8] {
        let index = u64::from(index).checked_sub(self.first).and_then(|index| usize::try_from(index).ok());
        let line = index.and_then(|index| self.text.split(|byte| *byte == b'\n').nth(index));
        line.map_or(&[], <[u8]>::trim_ascii)
    }
}

/// Judges a file. Calls `on_refused` with each record that is refused, in order. Blocks, on a thread of a runtime.
pub fn check_file(
    check: &FileCheck,
    input: impl Read + Send,
    mut on_refused: impl FnMut(RefusedRecord<'_>),
) -> Result<CheckedFile, CheckError> {
    let context = LineContext {
        contract: Arc::clone(&check.contract),
        known: Arc::new(NoKeys),
        screener: None,
        most_rows: MOST_RECORDS,
    };
    let (handle, stop) = (Handle::current(), CancellationToken::new());
    let judges = LineJudges {
        most: JUDGES,
        ..LineJudges::new(&handle, &stop, &context)
    };
    let merger = Merger::new(DistinctKeys::new(&check.folder), check.on_refused);
    let fields = check.contract.fields().len();
    let (merger, ended) = judges
        .run(
            merger,
            |emit| split(input, check.compression, fields, emit),
            ChunkText::of,
            |merger, lines, chunk| {
                merger.push(lines, |said| {
                    if let Verdict::Refuse { reasons } = &said.verdict {
                        on_refused(RefusedRecord {
                            line: u64::from(said.row) + 1,
                            reasons,
                            text: chunk.line(said.row),
                        });
                    }
                })
            },
        )
        .map_err(|error| match error {
            InOrderError::Catalog(error) => CheckError::Kept(error),
            error => CheckError::Failed(error.to_string()),
        })?;
    match ended {
        Ok(()) => {
            let (decision, report, _) = merger.decide();
            Ok(CheckedFile {
                decision,
                tallies: report.tallies,
            })
        }
        Err(SplitError::Unreadable { code, message }) => Err(CheckError::Unreadable {
            code: code.to_owned(),
            message: message.to_owned(),
        }),
        Err(SplitError::Source) => Err(CheckError::Source),
        Err(SplitError::Unwanted) => Err(CheckError::Unreadable {
            code: "too_many_records".to_owned(),
            message: format!("it has more than {MOST_RECORDS} records: send it in parts"),
        }),
    }
}

//! Errors of a query, with their kind and their retry class.

use std::io;
use std::path::PathBuf;
use std::time::Duration;

use types::{Classify, Kind, Retry};

use crate::{MAX_ANSWER_BYTES, Refusal};

/// Reason why a query has no answer.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The check refuses the statement.
    #[error(transparent)]
    Refused(#[from] Refusal),
    /// The statement cannot be planned, or it failed on the records.
    #[error("the query failed: {message}")]
    Failed {
        /// Message of the engine, shortened.
        message: String,
    },
    /// The answer is larger than [`MAX_ANSWER_BYTES`].
    #[error("the answer has more than {MAX_ANSWER_BYTES} bytes: select fewer columns or rows, or export the version")]
    TooLarge,
    /// The query exceeded its time.
    #[error("the query took longer than {} seconds and was ended", after.as_secs())]
    TimedOut {
        /// Time that the query may take.
        after: Duration,
    },
    /// The query needs more memory than its limit.
    #[error("the query needs more than {} MiB of memory and was ended", bytes >> 20)]
    OutOfMemory {
        /// Memory limit of the process in bytes.
        bytes: u64,
    },
    /// The process ended without an answer.
    #[error("the query's process ended without an answer ({how})")]
    Crashed {
        /// Exit status of the process.
        how: String,
    },
    /// The maximum number of queries was running until the query's time was over.
    #[error("too many queries are running")]
    Busy,
    /// A process could not be started, fenced or reached.
    #[error("no process was ready for the query: {problem}")]
    Process {
        /// Description of the failed step.
        problem: String,
        /// Error of the operating system, if there is one.
        #[source]
        source: Option<io::Error>,
    },
    /// A part of the version could not be read.
    #[error("a part could not be read: {message}")]
    Unreadable {
        /// Message of the engine.
        message: String,
    },
    /// Bytes of a part differ from its proof.
    #[error("a part is damaged: {message}")]
    Damaged {
        /// Description of the damage.
        message: String,
    },
    /// A part file of the version could not be opened.
    #[error("the part `{}` could not be opened", path.display())]
    Part {
        /// Path of the file.
        path: PathBuf,
        /// Error of the operating system.
        #[source]
        source: io::Error,
    },
}

impl Error {
    /// Returns a function that wraps an I/O error of the communication with a process.
    pub(crate) fn process(problem: &str) -> impl FnOnce(io::Error) -> Self {
        move |source| Self::Process {
            problem: problem.to_owned(),
            source: Some(source),
        }
    }
}

impl From<fenced::Error> for Error {
    fn from(error: fenced::Error) -> Self {
        Self::Process {
            problem: error.problem,
            source: error.source,
        }
    }
}

impl Classify for Error {
    /// A query that took too long is [`Kind::Limited`]. HTTP has its own status for it, 408.
    fn kind(&self) -> Kind {
        match self {
            // The memory limit is fixed, so only another statement can help.
            Self::Refused(_) | Self::Failed { .. } | Self::OutOfMemory { .. } => Kind::Invalid,
            Self::TooLarge => Kind::TooLarge,
            Self::TimedOut { .. } => Kind::Limited,
            Self::Busy | Self::Process { .. } | Self::Unreadable { .. } => Kind::Unavailable,
            Self::Damaged { .. } => Kind::Damaged,
            // A missing part file is damage: its commit names it.
            Self::Part { source, .. } if source.kind() == io::ErrorKind::NotFound => Kind::Damaged,
            Self::Part { .. } => Kind::Unavailable,
            // A crash is a defect of the engine, so it is not blamed on the caller.
            Self::Crashed { .. } => Kind::Internal,
        }
    }

    fn retry(&self) -> Retry {
        match self {
            Self::Busy | Self::Process { .. } | Self::Part { .. } | Self::Unreadable { .. } | Self::Damaged { .. } => {
                Retry::Backoff
            }
            Self::Refused(_)
            | Self::Failed { .. }
            | Self::TooLarge
            | Self::TimedOut { .. }
            | Self::OutOfMemory { .. }
            | Self::Crashed { .. } => Retry::Never,
        }
    }
}

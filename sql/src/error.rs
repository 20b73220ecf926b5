//! Why a query has no answer.

use std::io;
use std::path::PathBuf;
use std::time::Duration;

use types::{Classify, Kind, Retry};

use crate::{MAX_ANSWER_BYTES, Refusal};

/// Why a query has no answer.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The statement is not one that is run.
    #[error(transparent)]
    Refused(#[from] Refusal),
    /// The statement cannot be planned, or failed on the records.
    #[error("the query failed: {message}")]
    Failed {
        /// What the engine says.
        message: String,
    },
    /// The answer is larger than [`MAX_ANSWER_BYTES`].
    #[error("the answer has more than {MAX_ANSWER_BYTES} bytes: select fewer columns or rows, or export the version")]
    TooLarge,
    /// The query took longer than it may.
    #[error("the query took longer than {} seconds and was ended", after.as_secs())]
    TimedOut {
        /// How long it may take.
        after: Duration,
    },
    /// The query needs more memory than it may have.
    #[error("the query needs more than {} MiB of memory and was ended", bytes >> 20)]
    OutOfMemory {
        /// How much it may have, in bytes.
        bytes: u64,
    },
    /// The process ended without an answer.
    #[error("the query's process ended without an answer ({how})")]
    Crashed {
        /// How it ended.
        how: String,
    },
    /// As many queries as can run at once were running for the whole time.
    #[error("too many queries are running")]
    Busy,
    /// A process could not be started, fenced or talked to.
    #[error("no process was ready for the query: {problem}")]
    Process {
        /// What could not be done.
        problem: String,
        /// What the system says.
        #[source]
        source: Option<io::Error>,
    },
    /// A part of the version could not be read.
    #[error("a part could not be read: {message}")]
    Unreadable {
        /// What the engine says.
        message: String,
    },
    /// A part of the version is not what was written.
    #[error("a part is damaged: {message}")]
    Damaged {
        /// The damage.
        message: String,
    },
    /// A part of the version could not be opened.
    #[error("the part `{}` could not be opened", path.display())]
    Part {
        /// The part.
        path: PathBuf,
        /// What the system says.
        #[source]
        source: io::Error,
    },
}

impl Error {
    /// An error of talking to a process.
    pub(crate) fn process(problem: &str) -> impl FnOnce(io::Error) -> Self {
        move |source| Self::Process {
            problem: problem.to_owned(),
            source: Some(source),
        }
    }
}

impl Classify for Error {
    /// A query that took too long is [`Kind::Limited`]; over HTTP it has a status of its own, 408.
    fn kind(&self) -> Kind {
        match self {
            Self::Refused(_) | Self::Failed { .. } | Self::OutOfMemory { .. } => Kind::Invalid,
            Self::TooLarge => Kind::TooLarge,
            Self::TimedOut { .. } => Kind::Limited,
            Self::Busy | Self::Process { .. } | Self::Unreadable { .. } => Kind::Unavailable,
            Self::Damaged { .. } => Kind::Damaged,
            Self::Part { source, .. } if source.kind() == io::ErrorKind::NotFound => Kind::Damaged,
            Self::Part { .. } => Kind::Unavailable,
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

//! Errors of the catalog, with their kind and their retry class.
//!
//! Invariant: an error means that the result could not be determined. A duplicate row or a lost race is an outcome.

use types::{Classify, DatasetId, Kind, Retry, metric};

/// Failure to read or write a table.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The object store did not answer, or it refused the request.
    #[error("`{path}` could not be read or written")]
    Storage {
        /// Path of the object in the store.
        path: String,
        /// Error of the store.
        #[source]
        source: object_store::Error,
    },
    /// A file of a table differs from its commit, or a commit cannot be parsed. The file is never served.
    #[error("`{path}` is corrupt: {problem}")]
    Corrupt {
        /// Path of the object in the store.
        path: String,
        /// Description of the damage.
        problem: String,
    },
    /// A commit is missing although a later one exists.
    #[error("`{path}` is missing although a later commit exists")]
    Gap {
        /// Path of the missing commit.
        path: String,
    },
    /// The last commit of a table that this process knows is gone, or another commit is in its place.
    #[error("the history of dataset `{dataset}` was lost: `{path}` is gone or another")]
    HistoryLost {
        /// Dataset of the table.
        dataset: DatasetId,
        /// Path of the lost commit.
        path: String,
    },
    /// The table was deleted. Nothing is merged into it any more, and nothing read from it.
    #[error("the table of dataset `{dataset}` was deleted")]
    Deleted {
        /// Dataset of the table.
        dataset: DatasetId,
    },
    /// The contract of the table, or of the batch, differs from the expected one.
    #[error("the table of dataset `{dataset}` has another contract")]
    ContractMismatch {
        /// Dataset of the table.
        dataset: DatasetId,
    },
    /// Rows could not be encoded as a part.
    #[error("a part could not be encoded")]
    Encode(#[source] parquet::errors::ParquetError),
    /// A scratch file of an upload could not be read or written.
    #[error("a staged file could not be read or written")]
    Scratch(#[source] std::io::Error),
    /// The write would leave less free disk space than the reserve.
    #[error("the disk has no room for {bytes} bytes beyond the reserve")]
    NoRoom {
        /// Size of the refused write. If the bytes were written in steps, the number written before the refusal.
        bytes: u64,
    },
    /// The key index could not be read or written; it is rebuilt when it is opened again.
    #[error("the key index could not be used")]
    Index(#[source] fjall::Error),
    /// The stored keys of a table became unreadable while an upload was staged against them.
    #[error("the key index of dataset `{dataset}` failed while an upload was ingested")]
    KeysGivenUp {
        /// Dataset of the table.
        dataset: DatasetId,
    },
    /// Another process uses the directory of the key index.
    #[error("the key index `{path}` is in use by another process")]
    IndexLocked {
        /// Path of the directory.
        path: String,
    },
    /// The process is stopping, so the work did not finish.
    #[error("the work was stopped")]
    Stopped(#[source] tokio::task::JoinError),
}

impl Error {
    pub(crate) fn storage(path: &(impl ToString + ?Sized), source: object_store::Error) -> Self {
        Self::Storage {
            path: path.to_string(),
            source,
        }
    }

    pub(crate) fn corrupt(path: &(impl ToString + ?Sized), problem: &(impl ToString + ?Sized)) -> Self {
        let path = path.to_string();
        found_damage(&path);
        Self::Corrupt {
            path,
            problem: problem.to_string(),
        }
    }

    pub(crate) fn gap(path: &(impl ToString + ?Sized)) -> Self {
        let path = path.to_string();
        found_damage(&path);
        Self::Gap { path }
    }
}

fn found_damage(path: &str) {
    let file = if path.contains("/_delta_log/") {
        "commit"
    } else {
        "part"
    };
    metrics::counter!(metric::DAMAGE, "file" => file).increment(1);
}

impl Classify for Error {
    fn kind(&self) -> Kind {
        match self {
            Self::Storage { .. }
            | Self::Scratch(_)
            | Self::NoRoom { .. }
            | Self::HistoryLost { .. }
            | Self::Index(_)
            | Self::KeysGivenUp { .. }
            | Self::IndexLocked { .. }
            | Self::Stopped(_) => Kind::Unavailable,
            Self::Deleted { .. } => Kind::NotFound,
            Self::ContractMismatch { .. } => Kind::Conflict,
            Self::Corrupt { .. } | Self::Gap { .. } => Kind::Damaged,
            Self::Encode(_) => Kind::Internal,
        }
    }

    fn retry(&self) -> Retry {
        match self {
            // An administrator restores a damaged table from a copy. No contribution may be rejected because of the
            // damage, so the caller tries again.
            Self::Corrupt { .. } | Self::Gap { .. } => Retry::Backoff,
            Self::Storage { .. }
            | Self::Scratch(_)
            | Self::NoRoom { .. }
            | Self::HistoryLost { .. }
            | Self::Index(_)
            | Self::KeysGivenUp { .. }
            | Self::IndexLocked { .. }
            | Self::Stopped(_) => Retry::Backoff,
            Self::Deleted { .. } | Self::ContractMismatch { .. } | Self::Encode(_) => Retry::Never,
        }
    }
}

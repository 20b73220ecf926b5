//! Why the catalog could not do what it was asked.

use types::{Classify, DatasetId, Kind, Retry, metric};

/// Why a table could not be read or written.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The object store did not answer, or refused.
    #[error("`{path}` could not be read or written")]
    Storage {
        /// The object.
        path: String,
        /// What the store said.
        #[source]
        source: object_store::Error,
    },
    /// A file of a table is not what its commit says, or is not a commit at all; it is never served.
    #[error("`{path}` is corrupt: {problem}")]
    Corrupt {
        /// The object.
        path: String,
        /// What is wrong with it.
        problem: String,
    },
    /// A commit is missing although a later one exists.
    #[error("`{path}` is missing although a later commit exists")]
    Gap {
        /// The commit that should be there.
        path: String,
    },
    /// The last commit of a table that this process knows is gone, or another is in its place.
    #[error("the history of dataset `{dataset}` was lost: `{path}` is gone or another")]
    HistoryLost {
        /// The dataset.
        dataset: DatasetId,
        /// The commit.
        path: String,
    },
    /// The table, or the batch, was made for another contract.
    #[error("the table of dataset `{dataset}` has another contract")]
    ContractMismatch {
        /// The dataset.
        dataset: DatasetId,
    },
    /// Rows could not be encoded as a part.
    #[error("a part could not be encoded")]
    Encode(#[source] parquet::errors::ParquetError),
    /// A file of an upload that is being staged could not be read or written.
    #[error("a staged file could not be read or written")]
    Scratch(#[source] std::io::Error),
    /// What was to be written would have left less of the disk than stays free.
    #[error("the disk has no room for {bytes} bytes beyond the reserve")]
    NoRoom {
        /// How many bytes were to be written, or had been when there was no room for more.
        bytes: u64,
    },
    /// The key index could not be read or written; it is rebuilt when it is opened again.
    #[error("the key index could not be used")]
    Index(#[source] fjall::Error),
    /// The keys of a table were given up, because they could not be read, while an upload was held against them.
    #[error("the key index of dataset `{dataset}` failed while an upload was ingested")]
    KeysGivenUp {
        /// The dataset.
        dataset: DatasetId,
    },
    /// The directory of the key index is in use by another process.
    #[error("the key index `{path}` is in use by another process")]
    IndexLocked {
        /// The directory.
        path: String,
    },
    /// The process is stopping, so work was not finished.
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
            Self::ContractMismatch { .. } => Kind::Conflict,
            Self::Corrupt { .. } | Self::Gap { .. } => Kind::Damaged,
            Self::Encode(_) => Kind::Internal,
        }
    }

    fn retry(&self) -> Retry {
        match self {
            // Why: a damaged table is repaired from a copy; no contribution may be turned away because of it.
            Self::Corrupt { .. } | Self::Gap { .. } => Retry::Backoff,
            Self::Storage { .. }
            | Self::Scratch(_)
            | Self::NoRoom { .. }
            | Self::HistoryLost { .. }
            | Self::Index(_)
            | Self::KeysGivenUp { .. }
            | Self::IndexLocked { .. }
            | Self::Stopped(_) => Retry::Backoff,
            Self::ContractMismatch { .. } | Self::Encode(_) => Retry::Never,
        }
    }
}

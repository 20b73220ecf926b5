//! Errors of the log.
//!
//! Invariant: an error that an operator must act on names the directory and what to do.

use std::path::PathBuf;
use std::sync::Arc;

use types::class::{Classify, Kind, Retry};

/// An error of the event log.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// An argument breaks a rule.
    #[error("`{field}` {rule}")]
    Invalid {
        /// The name of the argument.
        field: &'static str,
        /// The rule, with the value that breaks it.
        rule: String,
    },
    /// A record is larger than [`MAX_RECORD_BYTES`](crate::MAX_RECORD_BYTES).
    #[error("a record has {bytes} bytes, key and value together; the limit is {limit}")]
    TooLarge {
        /// The size of the record in bytes.
        bytes: usize,
        /// The limit in bytes.
        limit: usize,
    },
    /// The group already has a subscription of the topic in this process.
    #[error("group `{group}` has a subscription of topic `{topic}` already; drop it first")]
    Busy {
        /// The topic of the existing subscription.
        topic: String,
        /// The group of the existing subscription.
        group: String,
    },
    /// A reader that belongs to no group tried to commit a position.
    #[error("cannot commit positions of topic `{topic}`: this reader belongs to no group")]
    Ungrouped {
        /// The topic of the reader.
        topic: String,
    },
    /// The log was closed in this process.
    #[error("the log is closed")]
    Closed,
    /// A write failed. It is unknown whether it reached the disk, so the log refuses every write until it is opened
    /// again.
    #[error("the log in {} stopped accepting records after a failed write; restart the process: {cause}", path.display())]
    Failed {
        /// The directory of the log.
        path: PathBuf,
        /// The error of the storage.
        #[source]
        cause: Arc<fjall::Error>,
    },
    /// Another process has the log open.
    #[error("the log in {} is open in another process; stop that one first, or use another directory", path.display())]
    Locked {
        /// The directory of the log.
        path: PathBuf,
    },
    /// A checksum, a key or an offset on disk is wrong or missing.
    #[error(
        "the log in {} is damaged: {what}. None of its records are served. Keep a copy of the directory, then restore it \
         from a backup. Without a backup, move it away and start with an empty log: the marketplace appends unfinished \
         contributions again",
        path.display()
    )]
    Damaged {
        /// The directory of the log.
        path: PathBuf,
        /// The first damage found.
        what: String,
    },
    /// The directory was written by another version of this program.
    #[error(
        "the log in {} has format {found}, this program reads format {supported}; use the program that wrote it, or \
         another directory",
        path.display()
    )]
    Format {
        /// The directory of the log.
        path: PathBuf,
        /// The format of the directory.
        found: u32,
        /// The format of this program.
        supported: u32,
    },
    /// The storage could not be read or opened.
    #[error("cannot read the log in {}: {cause}", path.display())]
    Storage {
        /// The directory of the log.
        path: PathBuf,
        /// The failure.
        #[source]
        cause: Arc<fjall::Error>,
    },
    /// The brokers did not answer in time, or are temporarily unable to serve the request. It is unknown whether the
    /// request took effect.
    #[cfg(feature = "kafka")]
    #[error("{what}: the brokers are not available: {cause}")]
    Unavailable {
        /// The request, such as "appending to topic `x`".
        what: String,
        /// The last error reported for the request.
        cause: String,
    },
    /// The brokers refused the request for good: a credential, a permission or a setting is wrong.
    #[cfg(feature = "kafka")]
    #[error("{what}: the brokers refused the request: {cause}")]
    Refused {
        /// The request, such as "appending to topic `x`".
        what: String,
        /// The answer of the brokers.
        cause: String,
    },
    /// A topic has a setting that breaks a guarantee of the log.
    #[cfg(feature = "kafka")]
    #[error("topic `{topic}` has `{setting}` {found}, and needs {needed}; {act}")]
    Topic {
        /// The topic, under its name in the cluster.
        topic: String,
        /// The name of the setting.
        setting: &'static str,
        /// The value of the setting in the cluster.
        found: String,
        /// The value that the log needs.
        needed: String,
        /// The remedy, as an instruction.
        act: &'static str,
    },
    /// Another process joined the group under the instance name of this one.
    #[cfg(feature = "kafka")]
    #[error("another process reads topic `{topic}` for group `{group}` as instance `{instance}`; give each its own")]
    Fenced {
        /// The topic, under its name in the cluster.
        topic: String,
        /// The consumer group.
        group: String,
        /// The instance name that both processes use.
        instance: String,
    },
}

impl Classify for Error {
    fn kind(&self) -> Kind {
        match self {
            Self::Invalid { .. } => Kind::Invalid,
            Self::TooLarge { .. } => Kind::TooLarge,
            Self::Busy { .. } => Kind::Conflict,
            Self::Closed | Self::Failed { .. } | Self::Locked { .. } | Self::Storage { .. } => Kind::Unavailable,
            #[cfg(feature = "kafka")]
            Self::Unavailable { .. } => Kind::Unavailable,
            #[cfg(feature = "kafka")]
            Self::Fenced { .. } => Kind::Conflict,
            #[cfg(feature = "kafka")]
            Self::Refused { .. } | Self::Topic { .. } => Kind::Internal,
            Self::Ungrouped { .. } | Self::Damaged { .. } | Self::Format { .. } => Kind::Internal,
        }
    }

    fn retry(&self) -> Retry {
        match self {
            Self::Busy { .. } | Self::Locked { .. } | Self::Storage { .. } => Retry::Backoff,
            #[cfg(feature = "kafka")]
            Self::Unavailable { .. } => Retry::Backoff,
            #[cfg(feature = "kafka")]
            Self::Fenced { .. } | Self::Refused { .. } | Self::Topic { .. } => Retry::Never,
            Self::Invalid { .. }
            | Self::TooLarge { .. }
            | Self::Ungrouped { .. }
            | Self::Closed
            | Self::Failed { .. }
            | Self::Damaged { .. }
            | Self::Format { .. } => Retry::Never,
        }
    }
}

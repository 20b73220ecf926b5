//! What can go wrong with a log, and what to do about it.
//!
//! Invariant: an error that an operator must act on names the directory and the act.

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
    /// The group reads the topic in this process already.
    #[error("group `{group}` has a subscription of topic `{topic}` already; drop it first")]
    Busy {
        /// The topic.
        topic: String,
        /// The group.
        group: String,
    },
    /// A tail has no group whose position could be committed.
    #[error("positions of topic `{topic}` cannot be committed: a tail belongs to no group")]
    Ungrouped {
        /// The topic.
        topic: String,
    },
    /// The log was closed in this process.
    #[error("the log is closed")]
    Closed,
    /// A write failed. Whether it reached the disk is unknown, so the log takes no more until it is opened again.
    #[error("the log in {} stopped taking records after a failed write; restart the process: {cause}", path.display())]
    Failed {
        /// The directory of the log.
        path: PathBuf,
        /// The failure.
        #[source]
        cause: Arc<fjall::Error>,
    },
    /// Another process has the log open.
    #[error("the log in {} is open in another process; stop that one first, or use another directory", path.display())]
    Locked {
        /// The directory of the log.
        path: PathBuf,
    },
    /// The bytes on disk are not what was written.
    #[error(
        "the log in {} is damaged: {what}. Nothing of it is served. Keep a copy of the directory, then restore it from \
         a backup; without one, move it away and start with an empty log, to which what is still open is appended again",
        path.display()
    )]
    Damaged {
        /// The directory of the log.
        path: PathBuf,
        /// What was found.
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
    /// The brokers did not answer in time, or could not do what was asked for now. Whether they did it is unknown.
    #[cfg(feature = "kafka")]
    #[error("{what}: the brokers are not available: {cause}")]
    Unavailable {
        /// What was to be done.
        what: String,
        /// The last thing that is known of it.
        cause: String,
    },
    /// The brokers refuse it: a credential, a permission or a setting is wrong.
    #[cfg(feature = "kafka")]
    #[error("{what}: the brokers refuse it: {cause}")]
    Refused {
        /// What was to be done.
        what: String,
        /// The failure.
        cause: String,
    },
    /// A topic exists with a setting that would break what the log promises.
    #[cfg(feature = "kafka")]
    #[error("topic `{topic}` has `{setting}` {found}, and needs {needed}; {act}")]
    Topic {
        /// The topic, as the brokers name it.
        topic: String,
        /// The setting.
        setting: &'static str,
        /// Its value.
        found: String,
        /// The value that it needs.
        needed: String,
        /// What to do about it.
        act: &'static str,
    },
    /// Another process took the place of this one in a group.
    #[cfg(feature = "kafka")]
    #[error("another process reads topic `{topic}` for group `{group}` as instance `{instance}`; give each its own")]
    Fenced {
        /// The topic.
        topic: String,
        /// The group.
        group: String,
        /// The instance.
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

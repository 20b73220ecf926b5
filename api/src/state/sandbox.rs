//! Interface to the query engine. The binary provides the implementation, so this package depends on no engine.
//!
//! Invariant: a statement reaches the records of one version and nothing else.

use std::fmt::Debug;
use std::sync::Arc;

use async_trait::async_trait;
use catalog::Snapshot;
use proof::query_receipt::BuildId;
use serde_json::value::RawValue;
use types::{Contract, DatasetId, Timestamp};

/// Runs statements over a version.
#[async_trait]
pub trait QuerySandbox: Debug + Send + Sync {
    /// Drops the copies of parts of a dataset that was deleted. A query that reads them goes on, and they go with the
    /// next call.
    fn forget(&self, _dataset: DatasetId) {
        // A sandbox without copies has nothing to drop.
    }

    /// Checks that a statement is allowed, before any file is opened for it.
    async fn check(&self, sql: &str) -> Result<(), SandboxFailure>;

    /// Runs a statement over the table `records`, which contains the records of `snapshot`. `contract` gives the columns;
    /// a snapshot without merges does not know them.
    async fn query(
        &self,
        contract: &Arc<Contract>,
        snapshot: &Snapshot,
        asked: &SandboxQuery<'_>,
    ) -> Result<SandboxAnswer, SandboxFailure>;
}

/// A statement that is asked.
#[derive(Clone, Copy, Debug)]
pub struct SandboxQuery<'a> {
    /// SQL of the buyer, one SELECT.
    pub sql: &'a str,
    /// Greatest number of rows.
    pub limit: u32,
    /// True if each run must give the rows in the same order, where the statement leaves it open. It takes one thread.
    pub is_steady: bool,
    /// True if the table has [`types::contract::PLACE_COLUMNS`], for a statement of the service. Then it is steady, too.
    pub has_places: bool,
    /// Time that `now()` returns, for an answer that others repeat. Then it is steady, and has
    /// [`SandboxAnswer::repetition`].
    pub now: Option<Timestamp>,
}

/// The answer to a statement.
#[derive(Debug)]
pub struct SandboxAnswer {
    /// The columns, in order.
    pub columns: Vec<AnswerColumn>,
    /// The rows: each is a JSON array with a value per column.
    pub rows: Vec<Box<RawValue>>,
    /// True if there are more rows than `limit`.
    pub truncated: bool,
    /// Facts that others need to repeat the answer; `None` unless it was asked for.
    pub repetition: Option<AnswerRepetition>,
}

/// Facts for another run of a statement.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AnswerRepetition {
    /// Time that `now()` returned.
    pub now: Timestamp,
    /// The program that answered.
    pub build: BuildId,
    /// Reasons why another run may give another answer, as words; empty if it cannot.
    pub why: Vec<&'static str>,
}

/// A column of an answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AnswerColumn {
    /// Name of the column.
    pub name: String,
    /// Arrow type of the values, such as `Int64`.
    pub kind: String,
    /// True if the column can contain nulls.
    pub nullable: bool,
}

/// Reason why a statement has no answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SandboxFailure {
    /// The statement uses a construct that is not allowed.
    Refused {
        /// The construct, and the rule.
        reason: String,
    },
    /// The statement is not valid over these records, or an operation in it failed.
    Failed {
        /// Message of the engine, for the caller.
        message: String,
    },
    /// The statement did not end within its time limit.
    TimedOut,
    /// The statement did not begin within its time limit: other queries used every slot.
    Busy,
    /// The statement, or its answer, needs more memory than one query may have.
    TooLarge {
        /// Message that names what is too large.
        message: String,
    },
    /// A file of the table differs from what was written.
    Damaged {
        /// Description of the damage, for the log.
        context: String,
    },
    /// No sandbox could run the statement.
    Unavailable {
        /// Cause, for the log.
        context: String,
    },
}

//! Where statements run: a door that the binary puts a sandbox behind, so that this package knows no query engine.
//!
//! Invariant: a statement reaches the records of one version and nothing else.

use std::fmt::Debug;
use std::sync::Arc;

use async_trait::async_trait;
use catalog::Snapshot;
use serde_json::value::RawValue;
use types::Contract;

/// Runs statements over a version.
#[async_trait]
pub trait Sandbox: Debug + Send + Sync {
    /// Checks a statement before anything is opened for it.
    async fn check(&self, sql: &str) -> Result<(), Failure>;

    /// Runs a statement over the table `records`, the records of `snapshot`, which may not know its `contract` yet, and
    /// answers up to `limit` rows.
    async fn query(
        &self,
        contract: &Arc<Contract>,
        snapshot: &Snapshot,
        sql: &str,
        limit: u32,
    ) -> Result<Answered, Failure>;
}

/// The answer to a statement.
#[derive(Debug)]
pub struct Answered {
    /// The columns, in order.
    pub columns: Vec<Column>,
    /// The rows: each is a JSON array with a value per column.
    pub rows: Vec<Box<RawValue>>,
    /// Whether there are more rows than were asked for.
    pub truncated: bool,
}

/// A column of an answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Column {
    /// Its name.
    pub name: String,
    /// Its Arrow type, such as `Int64`.
    pub kind: String,
    /// Whether it can hold nulls.
    pub nullable: bool,
}

/// Why a statement has no answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Failure {
    /// It asks for what no statement may.
    Refused {
        /// What is refused, and the rule.
        reason: String,
    },
    /// It is not valid over these records, or an operation in it failed.
    Failed {
        /// What the engine says.
        message: String,
    },
    /// It did not end within its time.
    TimedOut,
    /// It did not begin within its time: others had every place.
    Busy,
    /// It, or its answer, needs more memory than there is for one.
    TooLarge {
        /// What is too large.
        message: String,
    },
    /// A file of the table is not what was written.
    Damaged {
        /// The damage, for the log.
        context: String,
    },
    /// No sandbox is there to run it.
    Unavailable {
        /// Why, for the log.
        context: String,
    },
}

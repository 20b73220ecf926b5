//! Why the store could not find out.
//!
//! Invariant: whatever may pass (a busy or full database, a lost connection, a time-out) is [`Error::Unavailable`] and
//! worth trying again; everything else is not.

use std::sync::Arc;
use std::time::Duration;

use sqlx::error::DatabaseError;
use sqlx::migrate::MigrateError;
use types::{Classify, Kind, Retry};

/// Why a call of the store failed.
#[derive(Clone, Debug, thiserror::Error)]
pub enum Error {
    /// The URL names an engine that this build lacks.
    #[error("this build has no database engine for `{scheme}:`; it has `sqlite:`")]
    Scheme {
        /// The scheme of the URL; empty when it has none.
        scheme: String,
    },
    /// The URL cannot be used.
    #[error("the database URL is not usable: {reason}")]
    Url {
        /// The rule it breaks.
        reason: String,
    },
    /// The schema in the database is not the one this build knows: a newer build wrote it, or it was tampered with.
    #[error("the database's schema does not match this build")]
    Schema(#[source] Arc<MigrateError>),
    /// The database is busy, full, closed or gone. Whether a change that was under way is in it is not known.
    #[error("the metadata database is not available")]
    Unavailable(#[source] Arc<sqlx::Error>),
    /// The database did not answer in time. Whether a change that was under way is in it is not known.
    #[error("the metadata database did not answer within {after:?}")]
    TimedOut {
        /// How long the call waited.
        after: Duration,
    },
    /// The store was closed, or its writer is gone.
    #[error("the metadata database is closed")]
    Closed,
    /// The caller names something that does not exist.
    #[error("there is no {what} `{id}`")]
    Missing {
        /// What was named, such as `project`.
        what: &'static str,
        /// The id it was named by.
        id: String,
    },
    /// A number given is beyond what the database holds.
    #[error("`{column}` cannot hold {value}")]
    Range {
        /// The column it was meant for.
        column: &'static str,
        /// The number.
        value: u64,
    },
    /// A stored value does not have the form that this build writes.
    #[error("the stored `{column}` is malformed: {problem}")]
    Malformed {
        /// The column.
        column: &'static str,
        /// What is wrong with it.
        problem: String,
    },
    /// The database refused a statement for a reason that no rule of the product explains: a defect.
    #[error("the metadata database refused a statement")]
    Refused(#[source] Arc<sqlx::Error>),
}

impl Classify for Error {
    fn kind(&self) -> Kind {
        match self {
            Self::Scheme { .. } | Self::Url { .. } | Self::Range { .. } => Kind::Invalid,
            Self::Unavailable(_) | Self::TimedOut { .. } | Self::Closed => Kind::Unavailable,
            Self::Missing { .. } => Kind::NotFound,
            Self::Schema(_) | Self::Malformed { .. } | Self::Refused(_) => Kind::Internal,
        }
    }

    fn retry(&self) -> Retry {
        match self.kind() {
            Kind::Unavailable => Retry::Backoff,
            _ => Retry::Never,
        }
    }
}

impl From<sqlx::Error> for Error {
    fn from(error: sqlx::Error) -> Self {
        let passes = match &error {
            sqlx::Error::Io(_)
            | sqlx::Error::Tls(_)
            | sqlx::Error::PoolTimedOut
            | sqlx::Error::PoolClosed
            | sqlx::Error::WorkerCrashed
            | sqlx::Error::BeginFailed => true,
            sqlx::Error::Database(refusal) => may_pass(refusal.as_ref()),
            _ => false,
        };
        if passes {
            Self::Unavailable(Arc::new(error))
        } else {
            Self::Refused(Arc::new(error))
        }
    }
}

impl From<MigrateError> for Error {
    fn from(error: MigrateError) -> Self {
        match error {
            MigrateError::Execute(error) | MigrateError::ExecuteMigration(error, _) => error.into(),
            other => Self::Schema(Arc::new(other)),
        }
    }
}

/// Whether the engine's refusal is about its state and not about the statement.
///
/// `SQLite` numbers its result codes (<https://www.sqlite.org/rescode.html>); the low byte of an extended code is the
/// primary one. `PostgreSQL` has five-character codes (its appendix A) whose first two are the class.
fn may_pass(refusal: &dyn DatabaseError) -> bool {
    /// `SQLITE_BUSY`, `LOCKED`, `NOMEM`, `READONLY`, `INTERRUPT`, `IOERR`, `FULL`, `CANTOPEN`, `PROTOCOL`.
    const SQLITE: [i32; 9] = [5, 6, 7, 8, 9, 10, 13, 14, 15];
    /// Connection, transaction rollback, resources, intervention, system.
    const POSTGRES: [&str; 5] = ["08", "40", "53", "57", "58"];
    refusal.code().is_some_and(|code| match code.parse::<i32>() {
        Ok(number) if code.len() != 5 => SQLITE.contains(&(number & 0xff)),
        _ => POSTGRES.iter().any(|class| code.starts_with(class)),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_may_pass_is_worth_trying_again() {
        for error in [
            sqlx::Error::PoolTimedOut.into(),
            sqlx::Error::PoolClosed.into(),
            Error::Closed,
            Error::TimedOut {
                after: Duration::from_secs(1),
            },
        ] {
            assert_eq!(
                (error.kind(), error.retry()),
                (Kind::Unavailable, Retry::Backoff),
                "{error}"
            );
        }
    }

    #[test]
    fn defects_are_not() {
        for error in [
            sqlx::Error::RowNotFound.into(),
            Error::Malformed {
                column: "status",
                problem: String::new(),
            },
        ] {
            assert_eq!((error.kind(), error.retry()), (Kind::Internal, Retry::Never), "{error}");
        }
    }
}

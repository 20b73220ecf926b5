//! The error of the store.
//!
//! Invariant: every temporary failure (a busy or full database, a lost connection, a time-out) is
//! [`Error::Unavailable`] or [`Error::TimedOut`] and worth a retry; every other failure is not.

use std::borrow::Cow;
use std::io::ErrorKind;
use std::sync::Arc;
use std::time::Duration;

use sqlx::error::DatabaseError;
use sqlx::migrate::MigrateError;
use types::{Classify, Kind, Retry};

/// A failed call of the store.
#[derive(Clone, Debug, thiserror::Error)]
pub enum Error {
    /// The URL names an engine that this build lacks.
    #[error("this build has no database engine for `{scheme}:`; it has {}", crate::engine::NAMES)]
    Scheme {
        /// The scheme of the URL; empty when it has none.
        scheme: String,
    },
    /// The URL cannot be used.
    #[error("the database URL is not usable: {reason}")]
    Url {
        /// Rule that the URL breaks.
        reason: String,
    },
    /// The server has no TLS, or shows a certificate that the URL does not trust.
    #[error("the database server does not meet the `sslmode` of the URL: {reason}")]
    Untrusted {
        /// Description of the problem.
        reason: String,
    },
    /// The database has no tables of this service, and creating them was not allowed.
    #[error("the database has no tables of this service")]
    Absent,
    /// An older build wrote the database, and changing it was not allowed.
    #[error("an older build wrote the database; start `sluice serve` of this build to migrate it")]
    Outdated,
    /// The schema in the database is unknown to this build: a newer build wrote it, or it was changed by hand.
    #[error("the database's schema does not match this build")]
    Schema(#[source] Arc<MigrateError>),
    /// The database is busy, full, closed or gone. It is unknown whether a change in progress was committed.
    #[error("the metadata database is not available")]
    Unavailable(#[source] Arc<sqlx::Error>),
    /// The database did not answer in time. It is unknown whether a change in progress was committed.
    #[error("the metadata database did not answer within {after:?}")]
    TimedOut {
        /// Time that the call waited.
        after: Duration,
    },
    /// The store was closed, or its writer is gone.
    #[error("the metadata database is closed")]
    Closed,
    /// The caller names something that does not exist.
    #[error("there is no {what} `{id}`")]
    Missing {
        /// Kind of the item, such as `project`.
        what: &'static str,
        /// Id given by the caller.
        id: String,
    },
    /// An earlier call used the idempotency key of the handle. Nothing was written.
    #[error("an earlier call used the idempotency key")]
    Repeated,
    /// A number is too large for its column.
    #[error("`{column}` cannot hold {value}")]
    Range {
        /// Column that should hold the value.
        column: &'static str,
        /// Number given by the caller.
        value: u64,
    },
    /// A text contains a character that not every database can store.
    #[error("`{column}` must not contain the character U+0000")]
    Text {
        /// Column that should hold the value.
        column: &'static str,
    },
    /// A stored value does not have the form that this build writes.
    #[error("the stored `{column}` is malformed: {problem}")]
    Malformed {
        /// Column of the value.
        column: &'static str,
        /// Description of the problem.
        problem: String,
    },
    /// The database refused a statement for a reason that no rule of the product explains, which is a defect.
    #[error("the metadata database refused a statement")]
    Refused(#[source] Arc<sqlx::Error>),
}

impl Classify for Error {
    fn kind(&self) -> Kind {
        match self {
            Self::Scheme { .. }
            | Self::Url { .. }
            | Self::Untrusted { .. }
            | Self::Range { .. }
            | Self::Text { .. } => Kind::Invalid,
            Self::Unavailable(_) | Self::TimedOut { .. } | Self::Closed => Kind::Unavailable,
            Self::Missing { .. } | Self::Absent => Kind::NotFound,
            Self::Outdated | Self::Repeated => Kind::Conflict,
            Self::Schema(_) | Self::Malformed { .. } | Self::Refused(_) => Kind::Internal,
        }
    }

    fn retry(&self) -> Retry {
        match self.kind() {
            Kind::Unavailable => Retry::Backoff,
            // A repetition would fail in the same way.
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
            | sqlx::Error::BeginFailed
            | sqlx::Error::Protocol(_) => true,
            sqlx::Error::Database(refusal) => is_transient(refusal.as_ref()),
            _ => false,
        };
        if passes {
            // The condition may pass, so the caller may try again.
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

impl Error {
    /// Returns true if the change was rolled back because it lost a race, so that a repetition may succeed.
    pub(crate) fn is_conflict(&self) -> bool {
        /// `serialization_failure` and `deadlock_detected` of `PostgreSQL`.
        const CONFLICTS: [&str; 2] = ["40001", "40P01"];
        matches!(self, Self::Unavailable(error) if code(error).is_some_and(|code| CONFLICTS.contains(&code.as_str())))
    }

    /// Converts an error of the first connection, when a wrong user, password, database or certificate is blamed on the
    /// URL. Later the same errors may be temporary, for example while a password or certificate is being replaced.
    pub(crate) fn of_connecting(self) -> Self {
        match &self {
            Self::Unavailable(error) if code(error).is_some_and(|code| is_about_url(&code)) => Self::Url {
                reason: error.to_string(),
            },
            Self::Refused(error) if matches!(**error, sqlx::Error::Configuration(_)) => Self::Url {
                reason: error.to_string(),
            },
            Self::Unavailable(error) => match &**error {
                sqlx::Error::Tls(reason) => Self::Untrusted {
                    reason: reason.to_string(),
                },
                // rustls reports a failed handshake as this kind.
                sqlx::Error::Io(reason) if reason.kind() == ErrorKind::InvalidData => Self::Untrusted {
                    reason: reason.to_string(),
                },
                _ => self,
            },
            _ => self,
        }
    }
}

/// Returns true if the error shows that its connection is broken.
pub(crate) fn is_lost(error: &sqlx::Error) -> bool {
    /// `PostgreSQL` time-outs after which it closes the connection: the client was idle in a transaction, or the
    /// transaction took too long.
    const TIMEOUTS: [&str; 2] = ["25P03", "25P04"];
    match error {
        sqlx::Error::Io(_) | sqlx::Error::Tls(_) | sqlx::Error::Protocol(_) | sqlx::Error::WorkerCrashed => true,
        // 25006: the server has become read-only, for example as a standby; another connection
        // may reach the new primary.
        sqlx::Error::Database(_) => code(error).is_some_and(|code| {
            code == "25006" || code.starts_with("08") || code.starts_with("57P") || TIMEOUTS.contains(&code.as_str())
        }),
        _ => false,
    }
}

fn code(error: &sqlx::Error) -> Option<String> {
    match error {
        sqlx::Error::Database(refusal) => refusal.code().map(Cow::into_owned),
        _ => None,
    }
}

/// Returns true for `PostgreSQL` errors about the user, the password or the database.
fn is_about_url(code: &str) -> bool {
    code.starts_with("28") || code.starts_with("3D")
}

/// Returns true if the engine refused because of its state and not because of the statement.
///
/// `SQLite` numbers its result codes (<https://www.sqlite.org/rescode.html>); the low byte of an extended code is the
/// primary one. `PostgreSQL` has codes of five characters whose first two are the class
/// (<https://www.postgresql.org/docs/current/errcodes-appendix.html>).
fn is_transient(refusal: &dyn DatabaseError) -> bool {
    /// `SQLITE_BUSY`, `LOCKED`, `NOMEM`, `READONLY`, `INTERRUPT`, `IOERR`, `FULL`, `CANTOPEN`, `PROTOCOL`.
    const SQLITE: [i32; 9] = [5, 6, 7, 8, 9, 10, 13, 14, 15];
    /// Connection, transaction rollback, resources, intervention (stopped, starting, statement time-out), system.
    const CLASSES: [&str; 5] = ["08", "40", "53", "57", "58"];
    /// Read-only, the two time-outs of a transaction, the time-out of a lock.
    const CODES: [&str; 4] = ["25006", "25P03", "25P04", "55P03"];
    refusal.code().is_some_and(|code| match code.parse::<i32>() {
        Ok(number) if code.len() != 5 => SQLITE.contains(&(number & 0xff)),
        _ => CLASSES.iter().any(|class| code.starts_with(class)) || CODES.contains(&&*code) || is_about_url(&code),
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

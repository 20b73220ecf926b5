//! Sessions of people in the console.
//!
//! Invariant: a session is valid from its row's commit until its end; without a row it is not. Only the hash of its
//! token is stored. A suspension deletes all sessions of the operator.

use sqlx::AnyConnection;
use types::{OperatorId, SessionId, Timestamp};

use crate::query::{sql, text, tx};
use crate::row::{Row as _, replace_nul, row};
use crate::writer::Change;
use crate::{Accounts, Error};

/// Session to begin.
#[derive(Clone, Debug)]
pub struct NewSession {
    /// Id of the session.
    pub id: SessionId,
    /// Hash of the token.
    pub token_hash: [u8; 32],
    /// Instant from which the session is no longer valid.
    pub expires_at: Timestamp,
    /// Network address that signed in.
    pub address: String,
    /// Program that signed in, as it calls itself.
    pub user_agent: String,
}

row! {
    /// Session of a person.
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub struct Session {
        /// Id of the session.
        pub id: SessionId,
        /// Operator that is signed in.
        pub operator: OperatorId = "operator_id",
        /// Time of signing in.
        pub created_at: Timestamp,
        /// Time of the last use that was noted.
        pub seen_at: Timestamp,
        /// Instant from which the session is no longer valid.
        pub expires_at: Timestamp,
        /// Network address that signed in.
        pub address: String,
        /// Program that signed in, as it calls itself.
        pub user_agent: String,
    }
}

impl Accounts<'_> {
    /// Returns the session with this token if it is valid at `now` and its operator is not suspended.
    pub async fn session(&self, token_hash: &[u8; 32], now: Timestamp) -> Result<Option<Session>, Error> {
        self.0
            .optional(sql!(
                "SELECT sessions.id AS id, sessions.operator_id AS operator_id, sessions.created_at AS created_at,
                        sessions.seen_at AS seen_at, sessions.expires_at AS expires_at,
                        sessions.address AS address, sessions.user_agent AS user_agent
                 FROM sessions JOIN operators ON operators.id = sessions.operator_id
                 WHERE sessions.token_hash = $1 AND sessions.expires_at > $2 AND operators.suspended_at IS NULL",
                token_hash,
                now
            ))
            .await
    }

    /// Notes that a session was used.
    pub async fn session_seen(&self, id: SessionId, now: Timestamp) -> Result<(), Error> {
        self.0
            .write_aside(tx!(async move |cx| {
                // Two requests at once may arrive in any order, and the later instant stays.
                sql!(
                    "UPDATE sessions SET seen_at = $2 WHERE id = $1 AND seen_at < $2",
                    id,
                    now
                )
                .run(cx)
                .await?;
                Ok(Change::Keep(()))
            }))
            .await
    }

    /// Returns the sessions of an operator that are valid at `now`, newest first.
    pub async fn sessions_of(&self, operator: OperatorId, now: Timestamp) -> Result<Vec<Session>, Error> {
        self.0
            .all(sql!(
                text!(
                    "SELECT ",
                    Session::COLUMNS,
                    " FROM sessions
                     WHERE operator_id = $1 AND expires_at > $2 ORDER BY created_at DESC, id DESC"
                ),
                operator,
                now
            ))
            .await
    }

    /// Ends a session of an operator. Returns false if the operator has no such session.
    pub async fn session_end(&self, operator: OperatorId, id: SessionId) -> Result<bool, Error> {
        self.0
            .write(tx!(async move |cx| {
                // The operator is part of the condition, so nobody ends the session of another.
                let ended = sql!("DELETE FROM sessions WHERE id = $1 AND operator_id = $2", id, operator)
                    .run(cx)
                    .await?;
                Ok(Change::Keep(ended > 0))
            }))
            .await
    }

    /// Ends all sessions of an operator except one, if given, and returns the number of those that ended.
    pub async fn sessions_end(&self, operator: OperatorId, except: Option<SessionId>) -> Result<u64, Error> {
        // No id is empty, so the empty text spares none.
        let except = except.map(|id| id.to_string()).unwrap_or_default();
        self.0
            .write(tx!(async move |cx| {
                let ended = sql!(
                    "DELETE FROM sessions WHERE operator_id = $1 AND id <> $2",
                    operator,
                    except
                )
                .run(cx)
                .await?;
                Ok(Change::Keep(ended))
            }))
            .await
    }
}

/// Begins a session.
pub(crate) async fn insert(
    cx: &mut AnyConnection,
    operator: OperatorId,
    new: NewSession,
    now: Timestamp,
) -> Result<(), Error> {
    sql!(
        "INSERT INTO sessions (id, token_hash, operator_id, created_at, seen_at, expires_at, address, user_agent)
         VALUES ($1, $2, $3, $4, $4, $5, $6, $7)",
        new.id,
        new.token_hash,
        operator,
        now,
        new.expires_at,
        replace_nul(&new.address).into_owned(),
        replace_nul(&new.user_agent).into_owned()
    )
    .run(cx)
    .await?;
    Ok(())
}

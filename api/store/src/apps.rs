//! Apps of operators: registered clients, codes, connections and tokens.
//!
//! Invariants:
//! - A code makes at most one connection, and a refresh token is replaced at most once, also if many try at the same
//!   instant.
//! - A connection ends with the suspension of its operator and with the removal or the takedown of its agent, in the
//!   same transaction. [`OAuth::app`] looks at them again.
//! - Only hashes of secrets are stored.
//!
//! [`Store`] is the storage of the authorization server ([`oauth::Storage`]).

mod connections;
mod console;
mod storage;

use std::time::Duration;

use sqlx::AnyConnection;
use types::{AgentId, OperatorId, Timestamp};

pub(crate) use connections::is_connected;
pub use connections::{AppConnection, ConnectedApp};
pub use console::{CONSOLE_CLIENT, CONSOLE_LASTS, CONSOLE_RESOURCE};
pub(crate) use storage::is_removed;

use crate::query::{sql, tx};
use crate::writer::Change;
use crate::{Error, Store};

/// The part of the database about apps.
#[derive(Clone, Copy, Debug)]
pub struct OAuth<'s>(pub(crate) &'s Store);

impl Store {
    /// Returns the part of the database about apps.
    pub const fn oauth(&self) -> OAuth<'_> {
        OAuth(self)
    }
}

/// Time after the end of a connection until its tokens are removed.
pub const TOKENS_KEPT: Duration = Duration::from_hours(24);
/// Time after its end until a connection is removed. A registered client stays as long as one of its connections.
pub const CONNECTIONS_KEPT: Duration = Duration::from_hours(24 * 90);

impl OAuth<'_> {
    /// Removes what nobody can use any more: codes, access tokens and assertions whose time is over, and the tokens and
    /// codes of connections that ended before `kept`. The row of a connection stays until it ended before `remembered`.
    /// Returns the number of rows.
    pub async fn prune(&self, now: Timestamp, kept: Timestamp, remembered: Timestamp) -> Result<u64, Error> {
        self.0
            .write_aside(tx!(async move |cx| {
                // Rows that refer to a connection go before it.
                const GONE: &str = "SELECT id FROM oauth_connections WHERE ends_at <= $1 OR ended_at <= $1";
                let of_gone = |table: &str| format!("DELETE FROM {table} WHERE connection_id IN ({GONE})");
                let mut removed = 0;
                for (statement, until) in [
                    (of_gone("oauth_codes"), kept),
                    (of_gone("oauth_refresh_tokens"), kept),
                    (of_gone("oauth_access_tokens"), kept),
                    (
                        "DELETE FROM oauth_connections WHERE ends_at <= $1 OR ended_at <= $1".to_owned(),
                        remembered.min(kept),
                    ),
                    (
                        "DELETE FROM oauth_codes WHERE connection_id IS NULL AND expires_at <= $1".to_owned(),
                        now,
                    ),
                    ("DELETE FROM oauth_access_tokens WHERE expires_at <= $1".to_owned(), now),
                    ("DELETE FROM oauth_assertions WHERE until_at <= $1".to_owned(), now),
                ] {
                    // The texts are those above.
                    let statement = sql!(sqlx::AssertSqlSafe(statement));
                    removed += statement.with(until).run(cx).await?;
                }
                Ok(Change::Keep(removed))
            }))
            .await
    }

    /// Removes registered clients that have neither a code nor a connection, also none that is remembered: those that
    /// were registered until `unused_since`, and those until `crowded_since` that are older than the newest `newest`
    /// of all clients. At most `most` go, the oldest first. Returns their number.
    pub async fn clients_prune(
        &self,
        unused_since: Timestamp,
        crowded_since: Timestamp,
        newest: u32,
        most: u32,
    ) -> Result<u64, Error> {
        self.0
            .write_aside(tx!(async move |cx| {
                let removed = sql!(
                    "DELETE FROM oauth_clients WHERE id IN (
                     SELECT id FROM oauth_clients
                     WHERE (registered_at <= $1
                            OR registered_at <= $3 AND registered_at <= (
                                SELECT registered_at FROM oauth_clients
                                ORDER BY registered_at DESC LIMIT 1 OFFSET $4))
                       AND id NOT IN (SELECT client_id FROM oauth_connections)
                       AND id NOT IN (SELECT client_id FROM oauth_codes)
                     ORDER BY registered_at LIMIT $2)",
                    unused_since,
                    most,
                    crowded_since,
                    newest
                )
                .run(cx)
                .await?;
                Ok(Change::Keep(removed))
            }))
            .await
    }
}

/// Ends the connections of an operator, or of one agent, and withdraws the codes that were not used.
pub(crate) async fn end_all(cx: &mut AnyConnection, of: Of, now: Timestamp) -> Result<(), Error> {
    let (codes, connections, id) = match of {
        Of::Operator(id) => (
            "DELETE FROM oauth_codes WHERE operator_id = $1 AND connection_id IS NULL",
            "UPDATE oauth_connections SET ended_at = $2 WHERE operator_id = $1 AND ended_at IS NULL",
            id.to_string(),
        ),
        Of::Agent(id) => (
            "DELETE FROM oauth_codes WHERE agent_id = $1 AND connection_id IS NULL",
            "UPDATE oauth_connections SET ended_at = $2 WHERE agent_id = $1 AND ended_at IS NULL",
            id.to_string(),
        ),
    };
    sql!(codes, id.clone()).run(cx).await?;
    sql!(connections, id, now).run(cx).await?;
    Ok(())
}

/// Owner whose connections end.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Of {
    Operator(OperatorId),
    Agent(AgentId),
}

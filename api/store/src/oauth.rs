//! Apps of operators: registered clients, codes, connections and tokens.
//!
//! Invariants:
//! - A code makes at most one connection, and a refresh token is replaced at most once, also if many try at the same
//!   instant.
//! - A connection ends with the suspension of its operator and with the removal or the takedown of its agent, in the
//!   same transaction. [`OAuth::app`] looks at them again.
//! - Only hashes of secrets are stored.

mod connections;
mod tokens;

use sqlx::AnyConnection;
use types::{AgentId, OperatorId, Timestamp};

pub use connections::{AppConnection, ConnectedApp};

use crate::row::{Columns, texts};
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

/// The agreement of a person: this app may act as this agent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OAuthGrant {
    /// Identifier of the client.
    pub client_id: String,
    /// Operator who agreed.
    pub operator: OperatorId,
    /// Agent that the app acts as.
    pub agent: AgentId,
    /// Path of the resource that tokens are for.
    pub resource: String,
    /// Words of the scopes, separated by spaces.
    pub scopes: String,
}

/// An authorization code.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OAuthCode {
    /// Agreement that the code stands for.
    pub grant: OAuthGrant,
    /// Redirect URI of the authorization request.
    pub redirect_uri: String,
    /// Challenge of the authorization request.
    pub challenge: [u8; 32],
    /// Instant from which the code no longer works.
    pub expires_at: Timestamp,
}

/// A connection with the state of its refresh tokens.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OAuthConnection {
    /// Id of the connection.
    pub id: String,
    /// Agreement that it stands for.
    pub grant: OAuthGrant,
    /// Time of the first token.
    pub began_at: Timestamp,
    /// End of the renewal window.
    pub ends_at: Timestamp,
    /// Number of the refresh token that can be used.
    pub current: u32,
    /// Time and salt of the latest rotation.
    pub rotated: Option<(Timestamp, [u8; 32])>,
    /// Time of the end, if it was ended.
    pub ended_at: Option<Timestamp>,
}

/// An access token. Its hash is its key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OAuthAccess {
    /// Id of the connection of the token.
    pub connection: String,
    /// Words of the scopes, separated by spaces.
    pub scopes: String,
    /// Instant from which the token no longer works.
    pub expires_at: Timestamp,
}

/// The next state of a connection's refresh tokens.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OAuthRotation {
    /// Id of the connection.
    pub connection: String,
    /// Number of the new refresh token. The one before it must be current.
    pub number: u32,
    /// Time of the rotation.
    pub at: Timestamp,
    /// Salt that the new token was made with.
    pub salt: [u8; 32],
    /// Hash of the new refresh token.
    pub refresh: [u8; 32],
}

/// The result of [`OAuth::redeem`].
#[derive(Clone, Debug, PartialEq, Eq)]
#[must_use]
pub enum OAuthRedeemed {
    /// The connection is made.
    Now,
    /// The code had made the connection with this id before; nothing changed.
    Before(String),
    /// There is no such code, or its operator is suspended, or its agent was removed or taken down; nothing changed.
    Unknown,
}

impl OAuth<'_> {
    /// Adds a registered client. `metadata` is JSON text.
    ///
    /// # Errors
    /// [`Error::Refused`] if the id is in use, [`Error::Text`].
    pub async fn client_add(&self, id: &str, metadata: &str, now: Timestamp) -> Result<(), Error> {
        texts(&[("id", id), ("metadata", metadata)])?;
        let (id, metadata) = (id.to_owned(), metadata.to_owned());
        self.0
            .write_aside(move |cx| {
                Box::pin(async move {
                    sqlx::query("INSERT INTO oauth_clients (id, metadata, registered_at) VALUES ($1, $2, $3)")
                        .bind(id)
                        .bind(metadata)
                        .bind(now.micros())
                        .execute(cx)
                        .await?;
                    Ok(Change::Keep(()))
                })
            })
            .await
    }

    /// Returns the metadata of a registered client, and the time of its registration.
    pub async fn client(&self, id: &str) -> Result<Option<(String, Timestamp)>, Error> {
        // An id that no database can store is the id of no client.
        if texts(&[("id", id)]).is_err() {
            return Ok(None);
        }
        self.0
            .read(async {
                sqlx::query("SELECT metadata, registered_at FROM oauth_clients WHERE id = $1")
                    .bind(id.to_owned())
                    .fetch_optional(self.0.readers())
                    .await?
                    .map(|row| Ok((row.value("metadata")?, row.time("registered_at")?)))
                    .transpose()
            })
            .await
    }

    /// Uses the identifier of a client assertion. Returns false if it was used before. It is remembered until `until`.
    pub async fn assertion_use(&self, client_id: &str, jti: [u8; 32], until: Timestamp) -> Result<bool, Error> {
        texts(&[("client_id", client_id)])?;
        let client_id = client_id.to_owned();
        self.0
            .write_aside(move |cx| {
                Box::pin(async move {
                    let used = sqlx::query(
                        "INSERT INTO oauth_assertions (client_id, jti_hash, until_at) VALUES ($1, $2, $3)
                         ON CONFLICT (client_id, jti_hash) DO NOTHING",
                    )
                    .bind(client_id)
                    .bind(jti.to_vec())
                    .bind(until.micros())
                    .execute(cx)
                    .await?;
                    Ok(Change::Keep(used.rows_affected() > 0))
                })
            })
            .await
    }

    /// Removes what nobody can use any more: codes, access tokens and assertions whose time is over, and the tokens and
    /// codes of connections that ended before `kept`. The row of a connection stays until it ended before `remembered`.
    /// Returns the number of rows.
    pub async fn prune(&self, now: Timestamp, kept: Timestamp, remembered: Timestamp) -> Result<u64, Error> {
        self.0
            .write_aside(move |cx| {
                Box::pin(async move {
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
                        let statement = sqlx::query(sqlx::AssertSqlSafe(statement));
                        removed += statement.bind(until.micros()).execute(&mut *cx).await?.rows_affected();
                    }
                    Ok(Change::Keep(removed))
                })
            })
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
            .write_aside(move |cx| {
                Box::pin(async move {
                    let removed = sqlx::query(
                        "DELETE FROM oauth_clients WHERE id IN (
                             SELECT id FROM oauth_clients
                             WHERE (registered_at <= $1
                                    OR registered_at <= $3 AND registered_at <= (
                                        SELECT registered_at FROM oauth_clients
                                        ORDER BY registered_at DESC LIMIT 1 OFFSET $4))
                               AND id NOT IN (SELECT client_id FROM oauth_connections)
                               AND id NOT IN (SELECT client_id FROM oauth_codes)
                             ORDER BY registered_at LIMIT $2)",
                    )
                    .bind(unused_since.micros())
                    .bind(i64::from(most))
                    .bind(crowded_since.micros())
                    .bind(i64::from(newest))
                    .execute(cx)
                    .await?;
                    Ok(Change::Keep(removed.rows_affected()))
                })
            })
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
    sqlx::query(codes).bind(id.clone()).execute(&mut *cx).await?;
    sqlx::query(connections).bind(id).bind(now.micros()).execute(cx).await?;
    Ok(())
}

/// Owner whose connections end.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Of {
    Operator(OperatorId),
    Agent(AgentId),
}

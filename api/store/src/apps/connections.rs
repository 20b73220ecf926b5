//! Connections as their operator sees them, and the app behind an access token.

use oauth::ConnectionId;
use sqlx::AnyConnection;
use types::{AgentId, OperatorId, Timestamp};

use crate::query::{sql, tx};
use crate::row::row;
use crate::writer::Change;
use crate::{Error, OAuth};

row! {
    /// The app behind an access token, which acts as an agent.
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub struct ConnectedApp {
        /// Id of the connection.
        pub connection: ConnectionId = "id",
        /// Identifier of the client.
        pub client_id: String,
        /// Operator who agreed.
        pub operator: OperatorId = "operator_id",
        /// Agent that the app acts as.
        pub agent: AgentId = "agent_id",
        /// Name of the agent.
        pub agent_name: String,
        /// Path of the resource that the token is for.
        pub resource: String,
        /// Words of the scopes of the token, separated by spaces.
        pub scopes: String,
        /// Time of the last use that was noted.
        pub used_at: Option<Timestamp>,
    }
}

row! {
    /// A connection of an operator that has not ended.
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub struct AppConnection {
        /// Id of the connection.
        pub id: ConnectionId,
        /// Identifier of the client.
        pub client_id: String,
        /// Metadata of the client as JSON, if it is registered here.
        pub client_metadata: Option<String> = "metadata",
        /// Agent that the app acts as.
        pub agent: AgentId = "agent_id",
        /// Name of the agent.
        pub agent_name: String,
        /// Path of the resource that tokens are for.
        pub resource: String,
        /// Words of the scopes, separated by spaces.
        pub scopes: String,
        /// Time of the consent.
        pub began_at: Timestamp,
        /// End of the renewal window.
        pub ends_at: Timestamp,
        /// Time of the last use that was noted.
        pub used_at: Option<Timestamp>,
    }
}

impl OAuth<'_> {
    /// Returns the app behind an access token that is valid at `now`: neither token nor connection is over, the operator
    /// is not suspended, and the agent was neither removed nor taken down.
    pub async fn app(&self, token_hash: &[u8; 32], now: Timestamp) -> Result<Option<ConnectedApp>, Error> {
        self.0
            .read(async {
                // The scopes are those of the token, which may be fewer than those of its connection.
                // Every reason that ends a token is a condition here, so that it ends at once.
                sql!(
                    "SELECT c.id AS id, c.client_id AS client_id, c.operator_id AS operator_id,
                            c.agent_id AS agent_id, agents.name AS agent_name, c.resource AS resource,
                            t.scopes AS scopes, c.used_at AS used_at
                     FROM oauth_access_tokens t
                     JOIN oauth_connections c ON c.id = t.connection_id
                     JOIN operators ON operators.id = c.operator_id
                     JOIN agents ON agents.id = c.agent_id
                     WHERE t.token_hash = $1 AND t.expires_at > $2 AND c.ended_at IS NULL AND c.ends_at > $2
                       AND operators.suspended_at IS NULL AND agents.removed_at IS NULL
                       AND agents.taken_down_at IS NULL",
                    token_hash,
                    now
                )
                .optional(&mut self.0.readers())
                .await
            })
            .await
    }

    /// Notes that a connection was used.
    pub async fn connection_seen(&self, id: ConnectionId, now: Timestamp) -> Result<(), Error> {
        self.0
            .write_aside(tx!(async move |cx| {
                sql!(
                    // Two requests at once may arrive in any order, and the later instant stays.
                    "UPDATE oauth_connections SET used_at = $2 WHERE id = $1 AND (used_at IS NULL OR used_at < $2)",
                    id,
                    now,
                )
                .run(cx)
                .await?;
                Ok(Change::Keep(()))
            }))
            .await
    }

    /// Returns the connections of an operator that are alive at `now`, newest first.
    pub async fn connections_of(&self, operator: OperatorId, now: Timestamp) -> Result<Vec<AppConnection>, Error> {
        self.0
            .all(sql!(
                "SELECT c.id AS id, c.client_id AS client_id, oauth_clients.metadata AS metadata,
                        c.agent_id AS agent_id, agents.name AS agent_name, c.resource AS resource,
                        c.scopes AS scopes, c.began_at AS began_at, c.ends_at AS ends_at, c.used_at AS used_at
                 FROM oauth_connections c
                 JOIN agents ON agents.id = c.agent_id
                 LEFT JOIN oauth_clients ON oauth_clients.id = c.client_id
                 WHERE c.operator_id = $1 AND c.ended_at IS NULL AND c.ends_at > $2
                 ORDER BY c.began_at DESC, c.id DESC",
                operator,
                now
            ))
            .await
    }

    /// Ends a connection of an operator. Returns false if the operator has no such connection, or it ended before.
    pub async fn connection_end_of(
        &self,
        operator: OperatorId,
        id: ConnectionId,
        now: Timestamp,
    ) -> Result<bool, Error> {
        self.0
            .write_aside(tx!(async move |cx| {
                // The operator is part of the condition, so nobody ends the connection of another.
                let ended = sql!(
                    "UPDATE oauth_connections SET ended_at = $3
                     WHERE id = $1 AND operator_id = $2 AND ended_at IS NULL",
                    id,
                    operator,
                    now
                )
                .run(cx)
                .await?;
                Ok(Change::Keep(ended > 0))
            }))
            .await
    }
}

/// Returns true if an app of an operator is connected at `now`.
pub(crate) async fn is_connected(
    cx: &mut AnyConnection,
    operator: OperatorId,
    app: ConnectionId,
    now: Timestamp,
) -> Result<bool, Error> {
    let found = sql!(
        "SELECT id FROM oauth_connections
         WHERE id = $1 AND operator_id = $2 AND ended_at IS NULL AND ends_at > $3",
        app,
        operator,
        now
    )
    .row_if_any(cx)
    .await?;
    Ok(found.is_some())
}

//! The connection *Console*: pages of this service that act as an agent of the person who is signed in.
//!
//! Invariants:
//! - It is a connection like that of every app, so that it is shown and ended as those are. It has no token: the session
//!   of its operator is looked up at each call.
//! - An agent has at most one that is alive.

use std::time::Duration;

use oauth::ConnectionId;
use types::{AgentId, OperatorId, Timestamp};

use super::connections::ConnectedApp;
use super::storage::is_removed;
use crate::accounts::lock_suspended;
use crate::query::{sql, tx};
use crate::writer::Change;
use crate::{Error, OAuth};

/// Identifier of the client. No registered client and no address of a document has this form.
pub const CONSOLE_CLIENT: &str = "sluice:console";
/// Path of the resource.
pub const CONSOLE_RESOURCE: &str = "/console/act";
/// Time from the last use until the connection ends.
pub const CONSOLE_LASTS: Duration = Duration::from_hours(24 * 30);
/// Words of the scopes. Nothing that a page does for an agent spends.
const SCOPES: &str = "read write";

impl OAuth<'_> {
    /// Connects the console to an agent of an operator, or keeps the connection that there is. Returns false if the
    /// operator is suspended, or the agent was removed or taken down, or is of another operator.
    pub async fn console_connect(&self, operator: OperatorId, agent: AgentId, now: Timestamp) -> Result<bool, Error> {
        self.0
            .write_aside(tx!(async move |cx| {
                // The lock comes first, as in a suspension, which then ends this connection or is seen here. It also
                // keeps two consents apart.
                if lock_suspended(cx, operator).await? || is_removed(cx, operator, agent).await? {
                    return Ok(Change::Undo(false));
                }
                let kept = sql!(
                    "UPDATE oauth_connections SET ends_at = $3
                     WHERE agent_id = $1 AND client_id = $4 AND ended_at IS NULL AND ends_at > $2",
                    agent,
                    now,
                    now.plus(CONSOLE_LASTS),
                    CONSOLE_CLIENT
                )
                .run(cx)
                .await?;
                if kept == 0 {
                    sql!(
                        "INSERT INTO oauth_connections
                             (id, client_id, operator_id, agent_id, resource, scopes, began_at, ends_at,
                              current_number)
                         VALUES ($1, $2, $3, $4, $5, $6, $7, $8, 0)",
                        ConnectionId::new(now),
                        CONSOLE_CLIENT,
                        operator,
                        agent,
                        CONSOLE_RESOURCE,
                        SCOPES,
                        now,
                        now.plus(CONSOLE_LASTS)
                    )
                    .run(cx)
                    .await?;
                }
                Ok(Change::Keep(true))
            }))
            .await
    }

    /// Returns the connection of the console to an agent of an operator, if it is alive at `now`: it is not over, the
    /// operator is not suspended, and the agent was neither removed nor taken down.
    pub async fn console_app(
        &self,
        operator: OperatorId,
        agent: AgentId,
        now: Timestamp,
    ) -> Result<Option<ConnectedApp>, Error> {
        self.0
            .optional(sql!(
                "SELECT c.id AS id, c.client_id AS client_id, c.operator_id AS operator_id,
                        c.agent_id AS agent_id, agents.name AS agent_name, c.resource AS resource,
                        c.scopes AS scopes, c.used_at AS used_at
                 FROM oauth_connections c
                 JOIN operators ON operators.id = c.operator_id
                 JOIN agents ON agents.id = c.agent_id
                 WHERE c.agent_id = $1 AND c.operator_id = $2 AND c.client_id = $4
                   AND c.ended_at IS NULL AND c.ends_at > $3
                   AND operators.suspended_at IS NULL AND agents.removed_at IS NULL
                   AND agents.taken_down_at IS NULL",
                agent,
                operator,
                now,
                CONSOLE_CLIENT
            ))
            .await
    }

    /// Notes that the console used a connection, which then lasts for [`CONSOLE_LASTS`] more.
    pub async fn console_seen(&self, id: ConnectionId, now: Timestamp) -> Result<(), Error> {
        self.0
            .write_aside(tx!(async move |cx| {
                sql!(
                    // Two requests at once may arrive in any order, and the later instant stays. One that ended stays
                    // ended.
                    "UPDATE oauth_connections SET used_at = $2, ends_at = $3
                     WHERE id = $1 AND ended_at IS NULL AND (used_at IS NULL OR used_at < $2)",
                    id,
                    now,
                    now.plus(CONSOLE_LASTS)
                )
                .run(cx)
                .await?;
                Ok(Change::Keep(()))
            }))
            .await
    }
}

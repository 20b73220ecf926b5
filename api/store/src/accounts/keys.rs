//! Agents of an operator with their keys: list, replace, end, remove.
//!
//! Invariant: an agent has at most one key without end; a key that was replaced has an end, and so has one of a login. A
//! removed agent has no key and keeps its name.

use std::time::Duration;

use sqlx::AnyConnection;
use types::{AgentId, OperatorId, Timestamp, TokenId};

use super::{operators, tokens};
use crate::query::{sql, text, tx};
use crate::row::{Columns, Row as _, row};
use crate::writer::Change;
use crate::{Accounts, Error, apps};

/// Agent of an operator, with the keys that are valid.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Agent {
    /// Id of the agent.
    pub id: AgentId,
    /// Name of the agent, as given.
    pub name: String,
    /// Address of the wallet that receives payments.
    pub wallet_address: Option<String>,
    /// Description of the agent's purpose.
    pub description: Option<String>,
    /// Time of the creation, or of the approval of its claim.
    pub created_at: Timestamp,
    /// Time of the removal, if it was removed.
    pub removed_at: Option<Timestamp>,
    /// Time of the takedown, if the agent was taken down.
    pub taken_down_at: Option<Timestamp>,
    /// Keys that are valid, newest first.
    pub keys: Vec<AgentKey>,
}

row! {
    /// Key of an agent, without its secret.
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub struct AgentKey {
        /// Id of the key: the beginning of its hash, as of an operator's token.
        pub id: TokenId = "key_hash" => tokens::id_of,
        /// Device that got the key by a login; `None` for a key that was made otherwise.
        pub label: Option<String>,
        /// Time of the creation.
        pub created_at: Timestamp,
        /// Instant from which the key is no longer valid: of a login, or if it was replaced.
        pub expires_at: Option<Timestamp>,
    }
}

impl Accounts<'_> {
    /// Returns the agents of an operator, the removed ones too, oldest first.
    pub async fn agents_of(&self, operator: OperatorId, now: Timestamp) -> Result<Vec<Agent>, Error> {
        self.0
            .read(async {
                let rows = sql!(
                    "SELECT id, name, wallet_address, description, created_at, removed_at, taken_down_at
                     FROM agents WHERE operator_id = $1 ORDER BY created_at, id",
                    operator
                )
                .rows(&mut self.0.readers())
                .await?;
                let mut agents = Vec::with_capacity(rows.len());
                for row in &rows {
                    let id: AgentId = row.get("id")?;
                    // An operator has few agents, so a query for each is cheap.
                    let keys = sql!(
                        text!(
                            "SELECT ",
                            AgentKey::COLUMNS,
                            " FROM agent_keys
                             WHERE agent_id = $1 AND (expires_at IS NULL OR expires_at > $2)
                             ORDER BY created_at DESC, key_hash"
                        ),
                        id,
                        now
                    )
                    .rows(&mut self.0.readers())
                    .await?;
                    agents.push(Agent {
                        id,
                        name: row.get("name")?,
                        wallet_address: row.get("wallet_address")?,
                        description: row.get("description")?,
                        created_at: row.get("created_at")?,
                        removed_at: row.get("removed_at")?,
                        taken_down_at: row.get("taken_down_at")?,
                        keys: keys.iter().map(AgentKey::of).collect::<Result<_, Error>>()?,
                    });
                }
                Ok(agents)
            })
            .await
    }

    /// Gives an agent of an operator a new key. The present key and those of logins stay valid for `grace`, but no longer
    /// than they were. Returns false if the operator has no such agent, or removed it.
    ///
    /// # Errors
    /// [`Error::Refused`] if the hash is in use.
    pub async fn agent_key_rotate(
        &self,
        operator: OperatorId,
        agent: AgentId,
        key_hash: [u8; 32],
        grace: Duration,
        now: Timestamp,
    ) -> Result<bool, Error> {
        let end = now
            .micros()
            .saturating_add(i64::try_from(grace.as_micros()).unwrap_or(i64::MAX));
        self.0
            .write(tx!(async move |cx| {
                // The write locks the agent, so of two rotations at once one replaces the key of the other.
                let present = sql!(
                    "UPDATE agents SET name = name WHERE id = $1 AND operator_id = $2 AND removed_at IS NULL",
                    agent,
                    operator
                )
                .run(cx)
                .await?;
                if present == 0 {
                    return Ok(Change::Undo(false));
                }
                sql!(
                    "UPDATE agent_keys SET expires_at = $2
                     WHERE agent_id = $1 AND (expires_at IS NULL OR expires_at > $2)",
                    agent,
                    end
                )
                .run(cx)
                .await?;
                // Without grace the present key is over now, and goes at once.
                sql!(
                    "DELETE FROM agent_keys WHERE agent_id = $1 AND expires_at <= $2",
                    agent,
                    now
                )
                .run(cx)
                .await?;
                insert(cx, agent, key_hash.to_vec(), now).await?;
                Ok(Change::Keep(true))
            }))
            .await
    }

    /// Ends one key of an agent: from the commit on it is unknown. Returns false if the agent is not of the operator, or has
    /// no such key.
    pub async fn agent_key_end(&self, operator: OperatorId, agent: AgentId, key: TokenId) -> Result<bool, Error> {
        self.0
            .write(tx!(async move |cx| {
                // An agent has few keys, so they are read to find the one with this id.
                let rows = sql!(
                    "SELECT agent_keys.key_hash AS key_hash FROM agent_keys
                     JOIN agents ON agents.id = agent_keys.agent_id
                     WHERE agents.id = $1 AND agents.operator_id = $2",
                    agent,
                    operator
                )
                .rows(cx)
                .await?;
                for row in rows {
                    let hash: [u8; 32] = row.get("key_hash")?;
                    if tokens::id(&hash) == key {
                        let deleted = sql!("DELETE FROM agent_keys WHERE key_hash = $1", hash).run(cx).await?;
                        return Ok(Change::Keep(deleted > 0));
                    }
                }
                Ok(Change::Undo(false))
            }))
            .await
    }

    /// Removes an agent of an operator: its keys and the tokens of its apps are invalid from the commit on, its name stays taken, and it no longer
    /// counts toward the limit. Returns false if the operator has no such agent, or removed it before.
    pub async fn agent_remove(&self, operator: OperatorId, agent: AgentId, now: Timestamp) -> Result<bool, Error> {
        self.0
            .write(tx!(async move |cx| {
                // The lock makes the place free exactly once for a count at the same time.
                operators::lock(cx, operator).await?;
                let removed = sql!(
                    "UPDATE agents SET removed_at = $3
                     WHERE id = $1 AND operator_id = $2 AND removed_at IS NULL",
                    agent,
                    operator,
                    now
                )
                .run(cx)
                .await?;
                if removed == 0 {
                    return Ok(Change::Undo(false));
                }
                // Keys with an end go too.
                sql!("DELETE FROM agent_keys WHERE agent_id = $1", agent)
                    .run(cx)
                    .await?;
                apps::end_all(cx, apps::Of::Agent(agent), now).await?;
                Ok(Change::Keep(true))
            }))
            .await
    }
}

/// Adds a key without end.
pub(super) async fn insert(
    cx: &mut AnyConnection,
    agent: AgentId,
    key_hash: Vec<u8>,
    now: Timestamp,
) -> Result<(), Error> {
    sql!(
        "INSERT INTO agent_keys (key_hash, agent_id, created_at) VALUES ($1, $2, $3)",
        key_hash,
        agent,
        now
    )
    .run(cx)
    .await?;
    Ok(())
}

/// Adds the key of a login, which ends.
pub(super) async fn insert_with_end(
    cx: &mut AnyConnection,
    agent: AgentId,
    key_hash: Vec<u8>,
    now: Timestamp,
    end: Timestamp,
    label: &str,
) -> Result<(), Error> {
    sql!(
        "INSERT INTO agent_keys (key_hash, agent_id, created_at, expires_at, label) VALUES ($1, $2, $3, $4, $5)",
        key_hash,
        agent,
        now,
        end,
        label.to_owned()
    )
    .run(cx)
    .await?;
    Ok(())
}

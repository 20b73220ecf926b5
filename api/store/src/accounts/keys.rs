//! Agents of an operator with their keys: list, replace, remove.
//!
//! Invariant: an agent that is not removed has one key without end; a key that was replaced has an end. A removed agent
//! has no key and keeps its name.

use std::time::Duration;

use sqlx::AnyConnection;
use types::{AgentId, OperatorId, Timestamp};

use super::operators;
use crate::row::Columns;
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

/// Key of an agent, without its secret.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AgentKey {
    /// Time of the creation.
    pub created_at: Timestamp,
    /// Instant from which the key is no longer valid, if it was replaced.
    pub expires_at: Option<Timestamp>,
}

impl Accounts<'_> {
    /// Returns the agents of an operator, the removed ones too, oldest first.
    pub async fn agents_of(&self, operator: OperatorId, now: Timestamp) -> Result<Vec<Agent>, Error> {
        self.0
            .read(async {
                let rows = sqlx::query(
                    "SELECT id, name, wallet_address, description, created_at, removed_at, taken_down_at
                     FROM agents WHERE operator_id = $1 ORDER BY created_at, id",
                )
                .bind(operator.to_string())
                .fetch_all(self.0.readers())
                .await?;
                let mut agents = Vec::with_capacity(rows.len());
                for row in &rows {
                    let id: AgentId = row.parsed("id")?;
                    // An operator has few agents, so a query for each is cheap.
                    let keys = sqlx::query(
                        "SELECT created_at, expires_at FROM agent_keys
                         WHERE agent_id = $1 AND (expires_at IS NULL OR expires_at > $2)
                         ORDER BY created_at DESC, key_hash",
                    )
                    .bind(id.to_string())
                    .bind(now.micros())
                    .fetch_all(self.0.readers())
                    .await?;
                    agents.push(Agent {
                        id,
                        name: row.value("name")?,
                        wallet_address: row.value("wallet_address")?,
                        description: row.value("description")?,
                        created_at: row.time("created_at")?,
                        removed_at: row.time_optional("removed_at")?,
                        taken_down_at: row.time_optional("taken_down_at")?,
                        keys: keys
                            .iter()
                            .map(|key| {
                                Ok(AgentKey {
                                    created_at: key.time("created_at")?,
                                    expires_at: key.time_optional("expires_at")?,
                                })
                            })
                            .collect::<Result<_, Error>>()?,
                    });
                }
                Ok(agents)
            })
            .await
    }

    /// Gives an agent of an operator a new key. The present key stays valid for `grace`, a key that was replaced before
    /// no longer than it was. Returns false if the operator has no such agent, or removed it.
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
            .write(move |cx| {
                Box::pin(async move {
                    // The write locks the agent, so of two rotations at once one replaces the key of the other.
                    let present = sqlx::query(
                        "UPDATE agents SET name = name WHERE id = $1 AND operator_id = $2 AND removed_at IS NULL",
                    )
                    .bind(agent.to_string())
                    .bind(operator.to_string())
                    .execute(&mut *cx)
                    .await?;
                    if present.rows_affected() == 0 {
                        return Ok(Change::Undo(false));
                    }
                    sqlx::query(
                        "UPDATE agent_keys SET expires_at = $2
                         WHERE agent_id = $1 AND (expires_at IS NULL OR expires_at > $2)",
                    )
                    .bind(agent.to_string())
                    .bind(end)
                    .execute(&mut *cx)
                    .await?;
                    // Without grace the present key is over now, and goes at once.
                    sqlx::query("DELETE FROM agent_keys WHERE agent_id = $1 AND expires_at <= $2")
                        .bind(agent.to_string())
                        .bind(now.micros())
                        .execute(&mut *cx)
                        .await?;
                    insert(cx, agent, key_hash.to_vec(), now).await?;
                    Ok(Change::Keep(true))
                })
            })
            .await
    }

    /// Removes an agent of an operator: its keys and the tokens of its apps are invalid from the commit on, its name stays taken, and it no longer
    /// counts toward the limit. Returns false if the operator has no such agent, or removed it before.
    pub async fn agent_remove(&self, operator: OperatorId, agent: AgentId, now: Timestamp) -> Result<bool, Error> {
        self.0
            .write(move |cx| {
                Box::pin(async move {
                    // The lock makes the place free exactly once for a count at the same time.
                    operators::lock(cx, operator).await?;
                    let removed = sqlx::query(
                        "UPDATE agents SET removed_at = $3
                         WHERE id = $1 AND operator_id = $2 AND removed_at IS NULL",
                    )
                    .bind(agent.to_string())
                    .bind(operator.to_string())
                    .bind(now.micros())
                    .execute(&mut *cx)
                    .await?;
                    if removed.rows_affected() == 0 {
                        return Ok(Change::Undo(false));
                    }
                    // Keys with an end go too.
                    sqlx::query("DELETE FROM agent_keys WHERE agent_id = $1")
                        .bind(agent.to_string())
                        .execute(&mut *cx)
                        .await?;
                    apps::end_all(cx, apps::Of::Agent(agent), now).await?;
                    Ok(Change::Keep(true))
                })
            })
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
    sqlx::query("INSERT INTO agent_keys (key_hash, agent_id, created_at) VALUES ($1, $2, $3)")
        .bind(key_hash)
        .bind(agent.to_string())
        .bind(now.micros())
        .execute(cx)
        .await?;
    Ok(())
}

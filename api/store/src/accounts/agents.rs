//! Creation of agents, and the namespace of agents and claims.
//!
//! Invariant: a name is unique in the whole service regardless of case and look-alike characters, and an operator has
//! at most its limit of agents, also when they are created at the same instant.

use sqlx::AnyConnection;
use types::{AgentId, OperatorId, Timestamp};

use super::claims::{self, Due};
use super::{keys, operators};
use crate::row::texts;
use crate::writer::Change;
use crate::{Error, Store};

/// Values of a new agent.
#[derive(Clone, Debug)]
pub struct NewAgent {
    /// Id of the agent.
    pub id: AgentId,
    /// Operator that the agent acts for.
    pub operator: OperatorId,
    /// Name of the agent, as given.
    pub name: String,
    /// Skeleton of the name: case and look-alike characters folded (UTS #39). Unique.
    pub skeleton: String,
    /// Address of the wallet that receives payments.
    pub wallet_address: Option<String>,
    /// Description of the agent's purpose.
    pub description: Option<String>,
    /// Hash of the agent's key.
    pub key_hash: [u8; 32],
    /// Time of the creation.
    pub now: Timestamp,
}

/// The result of [`Store::agent_create`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub enum AgentCreated {
    /// The agent exists and its key is valid.
    Created,
    /// An agent or a claim that waits has this name or a look-alike; nothing changed.
    NameTaken,
    /// The operator is at its limit of agents; nothing changed.
    LimitReached,
}

impl Store {
    /// Creates an agent, unless its operator has `limit` agents and waiting claims, or its name is taken, checked in this
    /// order.
    ///
    /// # Errors
    /// [`Error::Missing`] if the operator does not exist, [`Error::Text`], [`Error::Refused`] if the id or the hash of
    /// the key is in use.
    pub async fn agent_create(&self, new: NewAgent, limit: u32) -> Result<AgentCreated, Error> {
        texts(&[
            ("name", &new.name),
            ("skeleton", &new.skeleton),
            ("wallet_address", new.wallet_address.as_deref().unwrap_or_default()),
            ("description", new.description.as_deref().unwrap_or_default()),
        ])?;
        self.write(move |cx| {
            Box::pin(async move {
                // The lock makes the count exact: no other agent of this operator is created
                // meanwhile.
                operators::lock(cx, new.operator).await?;
                // A claim that is over must not count, nor hold the name, before a sweep comes by.
                claims::expire(cx, Due::Of(new.operator, &new.skeleton), new.now).await?;
                // The limit comes first: an operator at the limit learns that, whatever the
                // name.
                if count(cx, new.operator).await? >= i64::from(limit) {
                    return Ok(Change::Undo(AgentCreated::LimitReached));
                }
                if !name_take(cx, &new.skeleton, new.id).await? {
                    return Ok(Change::Undo(AgentCreated::NameTaken));
                }
                sqlx::query(
                    "INSERT INTO agents
                         (id, operator_id, name, skeleton, wallet_address, description, key_hash, created_at)
                     VALUES ($1, $2, $3, $4, $5, $6, $7, $8)",
                )
                .bind(new.id.to_string())
                .bind(new.operator.to_string())
                .bind(new.name)
                .bind(new.skeleton)
                .bind(new.wallet_address)
                .bind(new.description)
                .bind(new.key_hash.to_vec())
                .bind(new.now.micros())
                .execute(&mut *cx)
                .await?;
                // The key comes with the agent, so no agent is without one.
                keys::insert(cx, new.id, new.key_hash.to_vec(), new.now).await?;
                Ok(Change::Keep(AgentCreated::Created))
            })
        })
        .await
    }
}

/// Returns the number of agents of an operator, waiting claims counted. The operator's row is locked and its claims
/// that are over are marked.
pub(super) async fn count(cx: &mut AnyConnection, operator: OperatorId) -> Result<i64, Error> {
    Ok(sqlx::query_scalar(
        "SELECT (SELECT COUNT(*) FROM agents WHERE operator_id = $1 AND removed_at IS NULL)
              + (SELECT COUNT(*) FROM claims WHERE operator_id = $1 AND status = 'pending')",
    )
    .bind(operator.to_string())
    .fetch_one(cx)
    .await?)
}

/// Takes a name for an agent, or for the agent that a claim would become. Returns false if it is taken.
pub(super) async fn name_take(cx: &mut AnyConnection, skeleton: &str, agent: AgentId) -> Result<bool, Error> {
    let taken =
        sqlx::query("INSERT INTO agent_names (skeleton, agent_id) VALUES ($1, $2) ON CONFLICT (skeleton) DO NOTHING")
            .bind(skeleton.to_owned())
            .bind(agent.to_string())
            .execute(cx)
            .await?;
    Ok(taken.rows_affected() > 0)
}

/// Frees the name of a claim that did not become an agent. `agent` is the id that it would have had.
pub(super) async fn name_free(cx: &mut AnyConnection, agent: &str) -> Result<(), Error> {
    sqlx::query("DELETE FROM agent_names WHERE agent_id = $1")
        .bind(agent.to_owned())
        .execute(cx)
        .await?;
    Ok(())
}

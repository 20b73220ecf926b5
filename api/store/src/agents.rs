//! Agents, and the owner of a secret.
//!
//! Invariant: a name is unique in the whole service regardless of case and look-alike characters, and an operator has
//! at most its limit of agents, also when they are created at the same instant.

use types::{AgentId, OperatorId, Timestamp};

use crate::row::{Columns, texts};
use crate::writer::Change;
use crate::{Error, Store, operators};

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
    /// An agent has this name or a look-alike; nothing changed.
    NameTaken,
    /// The operator is at its limit of agents; nothing changed.
    LimitReached,
}

/// The owner of a secret.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Principal {
    /// A person, by operator token.
    Operator {
        /// Id of the operator.
        operator: OperatorId,
        /// True if the operator is suspended.
        suspended: bool,
    },
    /// An agent, by its key.
    Agent {
        /// Id of the agent.
        agent: AgentId,
        /// Operator that the agent acts for.
        operator: OperatorId,
        /// Name of the agent.
        name: String,
        /// True if the operator is suspended.
        suspended: bool,
    },
}

impl Principal {
    /// The operator it is, or acts for.
    pub const fn operator(&self) -> OperatorId {
        match self {
            Self::Operator { operator, .. } | Self::Agent { operator, .. } => *operator,
        }
    }
}

impl Store {
    /// Creates an agent, unless its operator has `limit` agents or its name is taken, checked in this order.
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
                let agents: i64 = sqlx::query_scalar("SELECT COUNT(*) FROM agents WHERE operator_id = $1")
                    .bind(new.operator.to_string())
                    .fetch_one(&mut *cx)
                    .await?;
                // The limit comes first: an operator at the limit learns that, whatever the
                // name.
                if agents >= i64::from(limit) {
                    return Ok(Change::Undo(AgentCreated::LimitReached));
                }
                let inserted = sqlx::query(
                    "INSERT INTO agents
                         (id, operator_id, name, skeleton, wallet_address, description, key_hash, created_at)
                     VALUES ($1, $2, $3, $4, $5, $6, $7, $8)
                     ON CONFLICT (skeleton) DO NOTHING",
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
                // `ON CONFLICT` skipped the insertion, so the name is taken.
                if inserted.rows_affected() == 0 {
                    return Ok(Change::Undo(AgentCreated::NameTaken));
                }
                Ok(Change::Keep(AgentCreated::Created))
            })
        })
        .await
    }

    /// Returns the owner of the secret with this hash, also if suspended; the caller refuses suspended operators.
    pub async fn principal_by_hash(&self, hash: &[u8; 32]) -> Result<Option<Principal>, Error> {
        self.read(async {
            let row = sqlx::query(
                "SELECT operators.id AS operator_id, operators.suspended_at AS suspended_at,
                        agents.id AS agent_id, agents.name AS name
                 FROM agents JOIN operators ON operators.id = agents.operator_id
                 WHERE agents.key_hash = $1
                 UNION ALL
                 SELECT operators.id, operators.suspended_at, NULL, NULL
                 FROM operator_tokens JOIN operators ON operators.id = operator_tokens.operator_id
                 WHERE operator_tokens.token_hash = $1",
            )
            .bind(hash.to_vec())
            .fetch_optional(self.readers())
            .await?;
            // Secrets are random, so at most one row matches.
            let Some(row) = row else { return Ok(None) };
            let operator = row.parsed("operator_id")?;
            let suspended = row.time_optional("suspended_at")?.is_some();
            Ok(Some(match row.parsed_optional("agent_id")? {
                Some(agent) => Principal::Agent {
                    agent,
                    operator,
                    name: row.value("name")?,
                    suspended,
                },
                None => Principal::Operator { operator, suspended },
            }))
        })
        .await
    }
}

//! Creation of agents, and the namespace of agents and claims.
//!
//! Invariant: a name is unique in the whole service regardless of case and look-alike characters, and an operator has
//! at most its limit of agents, also when they are created at the same instant.

use sqlx::AnyConnection;
use types::{AgentId, OperatorId, Timestamp};

use super::claims::{self, Due};
use super::{keys, operators};
use crate::query::{Statement, sql, tx};
use crate::row::{Columns, texts};
use crate::writer::Change;
use crate::{Accounts, Error, Store};

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
    /// The consent made this agent before; nothing changed.
    Before(AgentId),
}

/// Consent that an agent is made with.
#[derive(Clone, Copy, Debug)]
pub struct NewConsent {
    /// Hash of the request of the app.
    pub request_hash: [u8; 32],
    /// Instant until which an older consent to an equal request no longer counts.
    pub stale: Timestamp,
}

impl Store {
    /// Creates an agent, unless its operator has `limit` agents and waiting claims, or its name is taken, checked in this
    /// order.
    ///
    /// # Errors
    /// [`Error::Missing`] if the operator does not exist, [`Error::Text`], [`Error::Refused`] if the id or the hash of
    /// the key is in use.
    pub async fn agent_create(&self, new: NewAgent, limit: u32) -> Result<AgentCreated, Error> {
        self.agent_create_with(new, limit, None).await
    }

    /// Creates an agent as [`agent_create`](Self::agent_create) does, once for the consent of its operator to a request of
    /// an app.
    ///
    /// # Errors
    /// Those of [`agent_create`](Self::agent_create).
    pub async fn agent_create_with(
        &self,
        new: NewAgent,
        limit: u32,
        consent: Option<NewConsent>,
    ) -> Result<AgentCreated, Error> {
        check_texts(&new)?;
        self.write(tx!(async move |cx| {
            // The lock makes the count exact: no other agent of this operator is created
            // meanwhile.
            operators::lock(cx, new.operator).await?;
            // Under the lock, so that of two forms sent at once the second finds the agent of the first.
            if let Some(consent) = consent
                && let Some(agent) = of_consent(cx, new.operator, consent).await?
            {
                return Ok(Change::Undo(AgentCreated::Before(agent)));
            }
            let (operator, id, now) = (new.operator, new.id, new.now);
            let created = create(cx, new, limit).await?;
            if created != AgentCreated::Created {
                return Ok(Change::Undo(created));
            }
            if let Some(consent) = consent {
                sql!(
                    "INSERT INTO consents (operator_id, request_hash, agent_id, created_at) VALUES ($1, $2, $3, $4)
                     ON CONFLICT (operator_id, request_hash) DO UPDATE SET
                         agent_id = excluded.agent_id, created_at = excluded.created_at",
                    operator,
                    consent.request_hash,
                    id,
                    now
                )
                .run(cx)
                .await?;
            }
            Ok(Change::Keep(AgentCreated::Created))
        }))
        .await
    }
}

impl Accounts<'_> {
    /// Returns the agent that an operator's consent to a request of an app made, unless it was removed.
    pub async fn agent_of_consent(&self, operator: OperatorId, consent: NewConsent) -> Result<Option<AgentId>, Error> {
        self.0
            .read(async {
                let found = of_consent_statement(operator, consent);
                found
                    .row_if_any(&mut self.0.readers())
                    .await?
                    .map(|row| row.get("agent_id"))
                    .transpose()
            })
            .await
    }
}

async fn of_consent(
    cx: &mut AnyConnection,
    operator: OperatorId,
    consent: NewConsent,
) -> Result<Option<AgentId>, Error> {
    let found = of_consent_statement(operator, consent).row_if_any(cx).await?;
    found.map(|row| row.get("agent_id")).transpose()
}

fn of_consent_statement(operator: OperatorId, consent: NewConsent) -> Statement {
    sql!(
        "SELECT consents.agent_id AS agent_id FROM consents JOIN agents ON agents.id = consents.agent_id
         WHERE consents.operator_id = $1 AND consents.request_hash = $2 AND consents.created_at > $3
           AND agents.removed_at IS NULL AND agents.taken_down_at IS NULL",
        operator,
        consent.request_hash,
        consent.stale
    )
}

/// Checks that every engine holds the texts of a new agent.
pub(super) fn check_texts(new: &NewAgent) -> Result<(), Error> {
    texts(&[
        ("name", &new.name),
        ("skeleton", &new.skeleton),
        ("wallet_address", new.wallet_address.as_deref().unwrap_or_default()),
        ("description", new.description.as_deref().unwrap_or_default()),
    ])
}

/// Creates an agent with its key. The operator's row is locked, and the texts were checked. If it is not created, the
/// transaction must be undone.
pub(super) async fn create(cx: &mut AnyConnection, new: NewAgent, limit: u32) -> Result<AgentCreated, Error> {
    // A claim that is over must not count, nor hold the name, before a sweep comes by.
    claims::expire(cx, Due::Of(new.operator, &new.skeleton), new.now).await?;
    // The limit comes first: an operator at the limit learns that, whatever the
    // name.
    if count(cx, new.operator).await? >= i64::from(limit) {
        return Ok(AgentCreated::LimitReached);
    }
    if !name_take(cx, &new.skeleton, new.id).await? {
        return Ok(AgentCreated::NameTaken);
    }
    sql!(
        "INSERT INTO agents
             (id, operator_id, name, skeleton, wallet_address, description, key_hash, created_at)
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8)",
        new.id,
        new.operator,
        new.name,
        new.skeleton,
        new.wallet_address,
        new.description,
        new.key_hash,
        new.now
    )
    .run(cx)
    .await?;
    // The key comes with the agent, so no agent is without one.
    keys::insert(cx, new.id, new.key_hash.to_vec(), new.now).await?;
    Ok(AgentCreated::Created)
}

/// Returns the number of agents of an operator, waiting claims counted. The operator's row is locked and its claims
/// that are over are marked.
pub(super) async fn count(cx: &mut AnyConnection, operator: OperatorId) -> Result<i64, Error> {
    sql!(
        "SELECT (SELECT COUNT(*) FROM agents WHERE operator_id = $1 AND removed_at IS NULL)
         + (SELECT COUNT(*) FROM claims WHERE operator_id = $1 AND status = 'pending')",
        operator
    )
    .scalar(cx)
    .await
}

/// Takes a name for an agent, or for the agent that a claim would become. Returns false if it is taken.
pub(super) async fn name_take(cx: &mut AnyConnection, skeleton: &str, agent: AgentId) -> Result<bool, Error> {
    let taken = sql!(
        "INSERT INTO agent_names (skeleton, agent_id) VALUES ($1, $2) ON CONFLICT (skeleton) DO NOTHING",
        skeleton,
        agent
    )
    .run(cx)
    .await?;
    Ok(taken > 0)
}

/// Frees the name of a claim that did not become an agent. `agent` is the id that it would have had.
pub(super) async fn name_free(cx: &mut AnyConnection, agent: &str) -> Result<(), Error> {
    sql!("DELETE FROM agent_names WHERE agent_id = $1", agent)
        .run(cx)
        .await?;
    Ok(())
}

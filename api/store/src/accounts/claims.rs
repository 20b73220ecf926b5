//! Claims: an agent asks with a claim code to work for the operator of the code, who then decides.
//!
//! Invariants:
//! - A code makes at most one claim.
//! - A claim that waits counts as an agent of its operator and holds its name. It stops doing so in the transaction
//!   that rejects it or finds it expired.
//! - The first of approval, rejection and expiry stays. An approval makes the agent and its key in one transaction.

use std::time::Duration;

use sqlx::AnyConnection;
use sqlx::any::AnyRow;
use types::vocabulary::ClaimStatus;
use types::{AgentId, ClaimId, OperatorId, Timestamp};

use super::codes::{self, Check, CodeRefused};
use super::{agents, keys, operators};
use crate::money::{self, SpendLimits, SpendOwner};
use crate::query::{sql, tx};
use crate::row::{Columns, texts};
use crate::writer::Change;
use crate::{Accounts, Error};

/// Claim to make.
#[derive(Clone, Debug)]
pub struct NewClaim {
    /// Id of the claim.
    pub id: ClaimId,
    /// Id that the agent gets with the approval.
    pub agent: AgentId,
    /// First part of the claim code.
    pub lookup: String,
    /// Hash of the second part.
    pub secret_hash: [u8; 32],
    /// Name of the agent, as given.
    pub name: String,
    /// Skeleton of the name.
    pub skeleton: String,
    /// Description of the agent's purpose.
    pub description: Option<String>,
    /// Hash of the agent's key.
    pub key_hash: [u8; 32],
    /// Words by which the person recognizes the claim.
    pub phrase: String,
    /// Instant from which the claim is expired unless it was decided.
    pub expires_at: Timestamp,
    /// Time of the call.
    pub now: Timestamp,
}

/// The result of [`Accounts::claim`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub enum Claimed {
    /// The claim waits for the operator.
    Waiting,
    /// The code does not work. A wrong try was counted; nothing else changed.
    Refused(CodeRefused),
    /// The operator is at its limit of agents; nothing changed, and the code still works.
    LimitReached,
    /// An agent or another claim has this name or a look-alike; nothing changed, and the code still works.
    NameTaken,
}

/// Claim as stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Claim {
    /// Id of the claim.
    pub id: ClaimId,
    /// Operator that was asked.
    pub operator: OperatorId,
    /// Id that the agent gets with the approval.
    pub agent: AgentId,
    /// Name of the agent, as given.
    pub name: String,
    /// Description of the agent's purpose.
    pub description: Option<String>,
    /// Status at the time of reading.
    pub status: ClaimStatus,
    /// Time of the claim.
    pub created_at: Timestamp,
    /// Instant from which the claim is expired unless it was decided.
    pub expires_at: Timestamp,
    /// Time of the decision.
    pub decided_at: Option<Timestamp>,
}

/// The result of [`Accounts::claim_poll`].
#[derive(Clone, Debug, PartialEq, Eq)]
#[must_use]
pub enum Polled {
    /// The claim with its status.
    Status(Claim),
    /// The agent asked less than the interval ago; it may ask again at this instant.
    TooSoon(Timestamp),
    /// There is no such claim.
    Unknown,
}

/// The result of [`Accounts::claim_approve`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub enum Approval {
    /// The agent exists and its key works.
    Approved(AgentId),
    /// The words are not those of the claim; nothing changed.
    WrongPhrase,
    /// The claim was decided before, or expired; nothing changed.
    Decided(ClaimStatus),
    /// The operator has no such claim.
    Unknown,
}

/// The result of [`Accounts::claim_reject`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub enum Rejection {
    /// The claim is rejected and its name is free.
    Rejected,
    /// The claim was decided before, or expired; nothing changed.
    Decided(ClaimStatus),
    /// The operator has no such claim.
    Unknown,
}

/// Columns of a claim, in every statement that returns one.
macro_rules! claim_columns {
    () => {
        "id, operator_id, agent_id, name, description, status, created_at, expires_at, decided_at"
    };
}

impl Accounts<'_> {
    /// Makes a claim, unless the code does not work, its operator has `limit` agents and waiting claims, or the name is
    /// taken, checked in this order.
    ///
    /// # Errors
    /// [`Error::Text`]; [`Error::Refused`] if an id or the hash of the key is in use.
    pub async fn claim(&self, new: NewClaim, limit: u32) -> Result<Claimed, Error> {
        texts(&[
            ("lookup", &new.lookup),
            ("name", &new.name),
            ("skeleton", &new.skeleton),
            ("description", new.description.as_deref().unwrap_or_default()),
            ("phrase", &new.phrase),
        ])?;
        self.0
            .write(tx!(async move |cx| {
                let code = match codes::check(cx, &new.lookup, &new.secret_hash, new.now).await? {
                    Check::Works(code) => code,
                    Check::Refused(refused) => return Ok(Change::Undo(Claimed::Refused(refused))),
                    // The count is what the transaction is for.
                    Check::Counted => return Ok(Change::Keep(Claimed::Refused(CodeRefused::Unknown))),
                };
                if operators::lock_suspended(cx, code.operator).await? {
                    return Ok(Change::Undo(Claimed::Refused(CodeRefused::Suspended)));
                }
                // An expired claim neither counts nor reserves its name, although no sweep has removed it yet.
                expire(cx, Due::Of(code.operator, &new.skeleton), new.now).await?;
                // The limit comes before the name, as for an agent that is created.
                if agents::count(cx, code.operator).await? >= i64::from(limit) {
                    return Ok(Change::Undo(Claimed::LimitReached));
                }
                if !agents::name_take(cx, &new.skeleton, new.agent).await? {
                    return Ok(Change::Undo(Claimed::NameTaken));
                }
                // From here on the code is used up, unless the transaction fails.
                codes::used(cx, &code, new.now).await?;
                types::fault::point("claim.rows");
                sql!(
                    "INSERT INTO claims
                         (id, operator_id, code_id, agent_id, name, skeleton, description, key_hash, phrase,
                          status, created_at, expires_at)
                     VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, 'pending', $10, $11)",
                    new.id,
                    code.operator,
                    code.id,
                    new.agent,
                    new.name,
                    new.skeleton,
                    new.description,
                    new.key_hash,
                    new.phrase,
                    new.now,
                    new.expires_at
                )
                .run(cx)
                .await?;
                Ok(Change::Keep(Claimed::Waiting))
            }))
            .await
    }

    /// Returns a claim with its status at `now`.
    pub async fn claim_by_id(&self, id: ClaimId, now: Timestamp) -> Result<Option<Claim>, Error> {
        self.0
            .read(async {
                sql!(concat!("SELECT ", claim_columns!(), " FROM claims WHERE id = $1"), id)
                    .row_if_any(&mut self.0.readers())
                    .await?
                    .map(|row| claim(&row, now))
                    .transpose()
            })
            .await
    }

    /// Returns a claim with its status at `now`, once per interval: the instant is kept, so the limit holds for all
    /// replicas and after a restart.
    pub async fn claim_poll(&self, id: ClaimId, interval: Duration, now: Timestamp) -> Result<Polled, Error> {
        let interval = i64::try_from(interval.as_micros()).unwrap_or(i64::MAX);
        self.0
            .write(tx!(async move |cx| {
                let polled = sql!(
                    concat!(
                        "UPDATE claims SET polled_at = $2 WHERE id = $1 AND (polled_at IS NULL OR polled_at <= $3)
                         RETURNING ",
                        claim_columns!()
                    ),
                    id,
                    now,
                    now.micros().saturating_sub(interval)
                )
                .row_if_any(cx)
                .await?;
                // The condition decides, so of two polls at once one is given the status.
                if let Some(row) = polled {
                    return Ok(Change::Keep(Polled::Status(claim(&row, now)?)));
                }
                let row = sql!("SELECT polled_at FROM claims WHERE id = $1", id)
                    .row_if_any(cx)
                    .await?;
                Ok(Change::Undo(match row {
                    None => Polled::Unknown,
                    Some(row) => {
                        let last: i64 = row.get("polled_at")?;
                        Polled::TooSoon(Timestamp::from_micros(last.saturating_add(interval)))
                    }
                }))
            }))
            .await
    }

    /// Returns the claim that made an agent; `None` for an agent that its operator created.
    pub async fn claim_of_agent(&self, agent: AgentId, now: Timestamp) -> Result<Option<Claim>, Error> {
        self.0
            .read(async {
                sql!(
                    concat!("SELECT ", claim_columns!(), " FROM claims WHERE agent_id = $1"),
                    agent
                )
                .row_if_any(&mut self.0.readers())
                .await?
                .map(|row| claim(&row, now))
                .transpose()
            })
            .await
    }

    /// Returns the latest claims of an operator with their status at `now`, newest first.
    pub async fn claims_of(&self, operator: OperatorId, limit: u32, now: Timestamp) -> Result<Vec<Claim>, Error> {
        self.0
            .read(async {
                let rows = sql!(
                    concat!(
                        "SELECT ",
                        claim_columns!(),
                        " FROM claims WHERE operator_id = $1 ORDER BY created_at DESC, id DESC LIMIT $2"
                    ),
                    operator,
                    limit
                )
                .rows(&mut self.0.readers())
                .await?;
                rows.iter().map(|row| claim(row, now)).collect()
            })
            .await
    }

    /// Returns the number of claims of an operator that wait for a decision at `now`. Each takes the place of an agent.
    pub async fn claims_waiting(&self, operator: OperatorId, now: Timestamp) -> Result<u32, Error> {
        self.0
            .read(async {
                let waiting: i64 = sql!(
                    "SELECT COUNT(*) FROM claims WHERE operator_id = $1 AND status = 'pending' AND expires_at > $2",
                    operator,
                    now
                )
                .scalar(&mut self.0.readers())
                .await?;
                Ok(u32::try_from(waiting).unwrap_or(u32::MAX))
            })
            .await
    }

    /// Approves a claim of an operator, if `phrase` has the words of the claim: the agent exists from the commit on,
    /// and its key works within `limits`. Case, spaces and hyphens of the phrase do not matter.
    ///
    /// # Errors
    /// [`Error::Refused`] for a negative limit.
    pub async fn claim_approve(
        &self,
        operator: OperatorId,
        id: ClaimId,
        phrase: &str,
        limits: SpendLimits,
        now: Timestamp,
    ) -> Result<Approval, Error> {
        let given = words(phrase);
        self.0
            .write(tx!(async move |cx| {
                let Some((row, status)) = undecided(cx, operator, id, now).await? else {
                    return Ok(Change::Undo(Approval::Unknown));
                };
                if status != ClaimStatus::Pending {
                    return Ok(Change::Undo(Approval::Decided(status)));
                }
                // Not a secret: the person compares what the agent shows with what is stored.
                if words(row.value("phrase")?) != given {
                    return Ok(Change::Undo(Approval::WrongPhrase));
                }
                // The name stays with the same agent, so the namespace does not change.
                decide(cx, id, ClaimStatus::Approved, now).await?;
                types::fault::point("approve.decided");
                let agent: AgentId = row.get("agent_id")?;
                let key: Vec<u8> = row.get("key_hash")?;
                sql!(
                    "INSERT INTO agents (id, operator_id, name, skeleton, description, key_hash, created_at)
                     SELECT agent_id, operator_id, name, skeleton, description, key_hash, $2
                     FROM claims WHERE id = $1",
                    id,
                    now
                )
                .run(cx)
                .await?;
                types::fault::point("approve.agent");
                // The key of the claim becomes the key of the agent.
                keys::insert(cx, agent, key, now).await?;
                if limits != SpendLimits::default() {
                    money::set_limits(cx, operator, SpendOwner::Agent(agent), limits, now).await?;
                }
                types::fault::point("approve.key");
                Ok(Change::Keep(Approval::Approved(agent)))
            }))
            .await
    }

    /// Rejects a claim of an operator and frees its name.
    pub async fn claim_reject(&self, operator: OperatorId, id: ClaimId, now: Timestamp) -> Result<Rejection, Error> {
        self.0
            .write(tx!(async move |cx| {
                let Some((row, status)) = undecided(cx, operator, id, now).await? else {
                    return Ok(Change::Undo(Rejection::Unknown));
                };
                if status != ClaimStatus::Pending {
                    return Ok(Change::Undo(Rejection::Decided(status)));
                }
                decide(cx, id, ClaimStatus::Rejected, now).await?;
                // The place is free with the status, the name with its row.
                agents::name_free(cx, row.value("agent_id")?).await?;
                Ok(Change::Keep(Rejection::Rejected))
            }))
            .await
    }

    /// Marks the claims as expired whose time is over, frees their names, and returns their number.
    pub async fn claims_expire(&self, now: Timestamp) -> Result<u64, Error> {
        self.0
            .write(tx!(async move |cx| {
                Ok(Change::Keep(expire(cx, Due::All, now).await?))
            }))
            .await
    }
}

/// Claims to look at for those whose time is over.
#[derive(Clone, Copy)]
pub(super) enum Due<'a> {
    All,
    /// Those of an operator, and those that hold a name.
    Of(OperatorId, &'a str),
}

/// Marks claims as expired whose time is over and frees their names.
pub(super) async fn expire(cx: &mut AnyConnection, due: Due<'_>, now: Timestamp) -> Result<u64, Error> {
    let query = match due {
        Due::All => sql!(
            "UPDATE claims SET status = 'expired', decided_at = $1
             WHERE status = 'pending' AND expires_at <= $1 RETURNING agent_id",
            now
        ),
        Due::Of(operator, skeleton) => sql!(
            "UPDATE claims SET status = 'expired', decided_at = $1
             WHERE status = 'pending' AND expires_at <= $1 AND (operator_id = $2 OR skeleton = $3) RETURNING agent_id",
            now,
            operator,
            skeleton
        ),
    };
    let expired = query.rows(cx).await?;
    for row in &expired {
        agents::name_free(cx, row.value("agent_id")?).await?;
    }
    Ok(u64::try_from(expired.len()).unwrap_or(u64::MAX))
}

/// Locks a claim of an operator and returns it with its status at `now`; `None` if the operator has no such claim.
async fn undecided(
    cx: &mut AnyConnection,
    operator: OperatorId,
    id: ClaimId,
    now: Timestamp,
) -> Result<Option<(AnyRow, ClaimStatus)>, Error> {
    // Locked in the order of every other change: operator, then claim.
    operators::lock(cx, operator).await?;
    let row = sql!(
        "UPDATE claims SET phrase = phrase WHERE id = $1 AND operator_id = $2
         RETURNING agent_id, key_hash, phrase, status, expires_at",
        id,
        operator
    )
    .row_if_any(cx)
    .await?;
    row.map(|row| {
        let status = status(&row, now)?;
        Ok((row, status))
    })
    .transpose()
}

async fn decide(cx: &mut AnyConnection, id: ClaimId, status: ClaimStatus, now: Timestamp) -> Result<(), Error> {
    sql!(
        "UPDATE claims SET status = $2, decided_at = $3 WHERE id = $1",
        id,
        status,
        now
    )
    .run(cx)
    .await?;
    Ok(())
}

/// Returns the words of a phrase in lower case, whatever separates them.
fn words(phrase: &str) -> Vec<String> {
    phrase
        .split(|character: char| !character.is_alphanumeric())
        .filter(|word| !word.is_empty())
        .map(str::to_lowercase)
        .collect()
}

/// Returns the status of a claim at `now`: a claim that waits is expired as soon as its time is over, even before its
/// row says so.
pub(super) fn status(row: &AnyRow, now: Timestamp) -> Result<ClaimStatus, Error> {
    let stored: ClaimStatus = row.get("status")?;
    let is_over = row.get::<Timestamp>("expires_at")? <= now;
    Ok(if stored == ClaimStatus::Pending && is_over {
        ClaimStatus::Expired
    } else {
        stored
    })
}

fn claim(row: &AnyRow, now: Timestamp) -> Result<Claim, Error> {
    Ok(Claim {
        id: row.get("id")?,
        operator: row.get("operator_id")?,
        agent: row.get("agent_id")?,
        name: row.get("name")?,
        description: row.get("description")?,
        status: status(row, now)?,
        created_at: row.get("created_at")?,
        expires_at: row.get("expires_at")?,
        decided_at: row.get("decided_at")?,
    })
}

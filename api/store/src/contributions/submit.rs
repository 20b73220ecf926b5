//! Acknowledgement of contributions.
//!
//! Invariant: the row, its outbox entry, the idempotency key and the charged allowance are one transaction. All of them
//! exist when the acknowledgement is sent, and none of them if it is refused.

use std::time::Duration;

use sqlx::AnyConnection;
use sqlx::any::AnyRow;
use types::vocabulary::{AllowanceKind, ContributionStatus, ProjectStatus};
use types::{AgentId, ContributionId, DatasetId, OperatorId, Timestamp, fault};

use super::outbox;
use crate::allowances::{self, Allowance};
use crate::call_keys;
use crate::query::{sql, tx};
use crate::row::{Columns, texts};
use crate::writer::Change;
use crate::{Error, Store};

/// Values of a new contribution.
#[derive(Clone, Debug)]
pub struct NewContribution {
    /// Id of the contribution.
    pub id: ContributionId,
    /// Project that receives the records.
    pub project: DatasetId,
    /// Agent that makes the contribution.
    pub agent: AgentId,
    /// Operator that the agent acts for.
    pub operator: OperatorId,
    /// Declared source of the records.
    pub source_declaration: Option<String>,
    /// Number of submitted records.
    pub rows: u32,
    /// True if the project is private.
    pub private: bool,
    /// True if reviews are paused, so that the contribution waits from the start.
    pub paused: bool,
    /// The encoded submission.
    pub submission: Vec<u8>,
    /// Time of the acknowledgement.
    pub now: Timestamp,
    /// Idempotency key given by the caller.
    pub idempotency: Option<Idempotency>,
    /// Daily allowance to charge; `None` if none applies.
    pub allowance: Option<Allowance>,
    /// Time to submit it again, if it still has no outcome.
    pub first_sweep: Timestamp,
}

/// An idempotency key; its scope is the agent and the project.
#[derive(Clone, Debug)]
pub struct Idempotency {
    /// Idempotency key as sent by the caller.
    pub key: String,
    /// Hash of the request's body.
    pub body_hash: [u8; 32],
    /// Time for which the key is remembered.
    pub window: Duration,
}

/// The result of [`Store::contribution_submit`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub enum SubmitOutcome {
    /// The contribution is acknowledged: it is durable, and is submitted until it has an outcome.
    Submitted,
    /// The key and the body belong to this earlier contribution; nothing changed.
    Replayed(ContributionId),
    /// The key was used with another body; nothing changed.
    KeyReused,
    /// The project takes no contributions; nothing changed.
    NotOpen {
        /// Current status of the project.
        status: ProjectStatus,
    },
    /// The day's allowance is used up; nothing changed.
    AllowanceSpent,
}

impl Store {
    /// Acknowledges a contribution, unless it is a replay, its project is not open or the allowance is spent, checked
    /// in this order.
    ///
    /// # Errors
    /// [`Error::Missing`] if the project does not exist; [`Error::Text`]; [`Error::Refused`] if the id is in use or the
    /// agent does not exist. After [`Error::Unavailable`] or [`Error::TimedOut`] the contribution may or may not be
    /// acknowledged; with an idempotency key, a second call gives the answer.
    pub async fn contribution_submit(&self, new: NewContribution) -> Result<SubmitOutcome, Error> {
        let (outcome, _) = self.contribution_submit_counted(new).await?;
        Ok(outcome)
    }

    /// As [`contribution_submit`](Self::contribution_submit); returns also the number that is used of the day's allowance,
    /// if the contribution was acknowledged and uses one.
    pub async fn contribution_submit_counted(
        &self,
        new: NewContribution,
    ) -> Result<(SubmitOutcome, Option<u32>), Error> {
        // The crash points mark the steps at which the crash tests kill the process.
        fault::point("ack.begin");
        texts(&[
            (
                "source_declaration",
                new.source_declaration.as_deref().unwrap_or_default(),
            ),
            (
                "idempotency_key",
                new.idempotency.as_ref().map_or("", |idempotency| &idempotency.key),
            ),
        ])?;
        let outcome = self
            .write_aside(tx!(async move |cx| {
                // The key comes first: a replay is answered even if the project has closed
                // since.
                if let Some(idempotency) = &new.idempotency
                    && let Some(earlier) = key_claim(cx, &new, idempotency).await?
                {
                    return Ok(Change::Undo((earlier, None)));
                }
                // The insertion itself checks that the project is open, so a pause that
                // commits first is respected.
                if !insert(cx, &new).await? {
                    let status = project_status(cx, new.project).await?;
                    return Ok(Change::Undo((SubmitOutcome::NotOpen { status }, None)));
                }
                let used = match new.allowance {
                    None => None,
                    Some(allowance) => {
                        let used = allowances::spend(cx, new.operator, AllowanceKind::Contribution, allowance);
                        let Some(used) = used.await? else {
                            return Ok(Change::Undo((SubmitOutcome::AllowanceSpent, None)));
                        };
                        Some(used)
                    }
                };
                outbox::insert(cx, new.id, new.project, new.submission, new.first_sweep).await?;
                fault::point("ack.rows");
                Ok(Change::Keep((SubmitOutcome::Submitted, used)))
            }))
            .await?;
        // This crash point is only reached after a durable commit.
        if outcome.0 == SubmitOutcome::Submitted {
            fault::point("ack.commit");
        }
        Ok(outcome)
    }

    /// Returns the result that [`contribution_submit`](Self::contribution_submit) would have because of the idempotency
    /// key alone, or `None` if there is no key or the key is free. Changes nothing.
    pub async fn idempotency_used(&self, new: &NewContribution) -> Result<Option<SubmitOutcome>, Error> {
        let Some(idempotency) = &new.idempotency else {
            return Ok(None);
        };
        self.read(async {
            sql!(
                "SELECT body_hash, contribution_id FROM idempotency_keys
                 WHERE agent_id = $1 AND project_id = $2 AND idempotency_key = $3 AND created_at > $4",
                new.agent,
                new.project,
                idempotency.key.as_str(),
                new.now.minus(idempotency.window)
            )
            .row_if_any(&mut self.readers())
            .await?
            .map(|row| used_for(&row, idempotency))
            .transpose()
        })
        .await
    }

    /// Deletes up to `limit` idempotency keys of contributions that were stored before `before`, and as many of other
    /// calls, and returns their number.
    pub async fn idempotency_prune(&self, before: Timestamp, limit: u32) -> Result<u64, Error> {
        self.write_aside(tx!(async move |cx| {
            // The age is checked twice: a key that is claimed again between the selection
            // and the deletion is no longer old.
            let deleted = sql!(
                "DELETE FROM idempotency_keys
                 WHERE (agent_id, project_id, idempotency_key) IN
                       (SELECT agent_id, project_id, idempotency_key FROM idempotency_keys
                        WHERE created_at < $1 ORDER BY created_at LIMIT $2)
                   AND created_at < $1",
                before,
                limit
            )
            .run(cx)
            .await?;
            let of_calls = call_keys::prune(cx, before, limit).await?;
            Ok(Change::Keep(deleted + of_calls))
        }))
        .await
    }
}

/// Claims the key for this contribution, or returns the result of its earlier use within its window.
///
/// Inserting first makes concurrent calls meet at the primary key: the second waits for the first and then sees its
/// row.
async fn key_claim(
    cx: &mut AnyConnection,
    new: &NewContribution,
    idempotency: &Idempotency,
) -> Result<Option<SubmitOutcome>, Error> {
    let claimed = sql!(
        "INSERT INTO idempotency_keys (agent_id, project_id, idempotency_key, body_hash, contribution_id, created_at)
         VALUES ($1, $2, $3, $4, $5, $6)
         ON CONFLICT (agent_id, project_id, idempotency_key) DO UPDATE
         SET body_hash = excluded.body_hash, contribution_id = excluded.contribution_id,
             created_at = excluded.created_at
         WHERE idempotency_keys.created_at <= $7",
        new.agent,
        new.project,
        idempotency.key.as_str(),
        idempotency.body_hash,
        new.id,
        new.now,
        new.now.minus(idempotency.window)
    )
    .run(cx)
    .await?;
    // The key was free, or its window is over.
    if claimed > 0 {
        return Ok(None);
    }
    let row = sql!(
        "SELECT body_hash, contribution_id FROM idempotency_keys
         WHERE agent_id = $1 AND project_id = $2 AND idempotency_key = $3",
        new.agent,
        new.project,
        idempotency.key.as_str()
    )
    .row(cx)
    .await?;
    Ok(Some(used_for(&row, idempotency)?))
}

/// Returns the result for a contribution whose key is in use.
fn used_for(row: &AnyRow, idempotency: &Idempotency) -> Result<SubmitOutcome, Error> {
    // The same key with another body is a mistake of the caller, not a repetition.
    Ok(if row.value::<&[u8]>("body_hash")? == idempotency.body_hash {
        SubmitOutcome::Replayed(row.get("contribution_id")?)
    } else {
        SubmitOutcome::KeyReused
    })
}

pub(crate) async fn project_status(cx: &mut AnyConnection, id: DatasetId) -> Result<ProjectStatus, Error> {
    sql!("SELECT status FROM projects WHERE id = $1", id)
        .row_if_any(cx)
        .await?
        .ok_or_else(|| Error::Missing {
            what: "project",
            id: id.to_string(),
        })?
        .get("status")
}

/// Inserts the row if its project is open. Returns false if it is not.
pub(crate) async fn insert(cx: &mut AnyConnection, new: &NewContribution) -> Result<bool, Error> {
    let inserted = sql!(
        "INSERT INTO contributions
             (id, project_id, agent_id, operator_id, source_declaration, row_count, private, submitted_at, status,
              waiting_reason, generation)
         SELECT $1, projects.id, $3, $4, $5, $6, $7, $8, $9, $10, 0 FROM projects
         WHERE projects.id = $2 AND projects.status = 'open'",
        new.id,
        new.project,
        new.agent,
        new.operator,
        new.source_declaration.as_deref(),
        new.rows,
        new.private,
        new.now,
        if new.paused {
            ContributionStatus::Waiting.as_str()
        } else {
            ContributionStatus::Submitted.as_str()
        },
        new.paused.then_some("paused")
    )
    .run(cx)
    .await?;
    Ok(inserted > 0)
}

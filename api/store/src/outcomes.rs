//! Applying outcomes: how the marketplace learns what became of contributions.
//!
//! Invariants:
//! - The first terminal outcome of a contribution's current generation closes it, so outcomes may come twice, in any order
//!   and from several projectors at once. After that only one thing changes it: what is in a table is merged, whatever was
//!   said before and of which generation, because a worker that stood still may have put its commit after another one
//!   rejected the same contribution.
//! - A merged outcome and its version row are one transaction.

use std::time::Duration;

use sqlx::AnyConnection;
use types::{AgentId, ContributionId, DatasetId, Timestamp, Version, fault};

use crate::contributions::outbox;
use crate::row::{Columns, bigint, kept};
use crate::writer::Change;
use crate::{Error, Store};

/// An outcome to apply.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OutcomeRow {
    /// The contribution it is about.
    pub id: ContributionId,
    /// The generation of the submission that was judged.
    pub generation: u32,
    /// When it was decided.
    pub at: Timestamp,
    /// What was decided.
    pub resolution: Resolution,
    /// What each gate did, as JSON.
    pub tallies: String,
    /// The verdicts other than pass, as JSON.
    pub verdicts: String,
}

/// How a contribution was decided.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Resolution {
    /// Its new records are a version.
    Merged {
        /// The version they are.
        version: Version,
        /// How many records were new; at least 1.
        accepted: u64,
        /// How many records the version has in all.
        record_count: u64,
        /// The version's content root, 64 hexadecimal digits.
        root: String,
    },
    /// Nothing of it was merged.
    Rejected {
        /// Machine-readable reason.
        code: String,
        /// One sentence for the contributor.
        message: String,
    },
    /// It cannot be judged now; it stays open.
    Waiting {
        /// `budget`, `provider` or `paused`.
        reason: String,
        /// When to submit it again; without it, after [`Options::waiting_retry`](crate::Options::waiting_retry).
        resumes_after: Option<Timestamp>,
    },
}

/// Whether an outcome changed anything.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub struct Applied {
    /// The contribution.
    pub id: ContributionId,
    /// `false` when it was closed before, is no merge and of another generation, or is not known here.
    pub applied: bool,
}

impl Store {
    /// Applies outcomes in their order, in one transaction.
    ///
    /// # Errors
    /// Nothing was applied. [`Error::Range`] for a number that the database cannot hold.
    pub async fn outcomes_apply(&self, outcomes: Vec<OutcomeRow>) -> Result<Vec<Applied>, Error> {
        fault::point("project.begin");
        let waiting_retry = self.options().waiting_retry;
        let applied = self
            .write(move |cx| {
                Box::pin(async move {
                    let mut applied = Vec::with_capacity(outcomes.len());
                    for outcome in &outcomes {
                        applied.push(Applied {
                            id: outcome.id,
                            applied: apply(cx, outcome, waiting_retry).await?,
                        });
                    }
                    Ok(Change::Keep(applied))
                })
            })
            .await?;
        fault::point("project.commit");
        Ok(applied)
    }
}

async fn apply(cx: &mut AnyConnection, outcome: &OutcomeRow, waiting_retry: Duration) -> Result<bool, Error> {
    match &outcome.resolution {
        Resolution::Merged {
            version,
            accepted,
            record_count,
            root,
        } => {
            let merge = Merge {
                version: bigint("version", version.0)?,
                accepted: bigint("accepted", *accepted)?,
                record_count: bigint("record_count", *record_count)?,
                root,
            };
            let closed = sqlx::query(
                "UPDATE contributions
                 SET status = 'merged', decided_at = $2, tallies = $3, verdicts = $4, version = $5, accepted = $6,
                     record_count = $7, root = $8, waiting_reason = NULL, resumes_after = NULL, reject_code = NULL,
                     reject_message = NULL
                 WHERE id = $1 AND status <> 'merged'
                 RETURNING project_id, agent_id",
            )
            .bind(outcome.id.to_string())
            .bind(outcome.at.micros())
            .bind(outcome.tallies.as_str())
            .bind(outcome.verdicts.as_str())
            .bind(merge.version)
            .bind(merge.accepted)
            .bind(merge.record_count)
            .bind(root.as_str())
            .fetch_optional(&mut *cx)
            .await?;
            let Some(row) = closed else { return Ok(false) };
            version_add(cx, row.parsed("project_id")?, row.parsed("agent_id")?, outcome, &merge).await?;
            outbox::remove(cx, outcome.id).await?;
            Ok(true)
        }
        Resolution::Rejected { code, message } => {
            let closed = sqlx::query(
                "UPDATE contributions
                 SET status = 'rejected', decided_at = $3, tallies = $4, verdicts = $5, reject_code = $6,
                     reject_message = $7, waiting_reason = NULL, resumes_after = NULL
                 WHERE id = $1 AND generation = $2 AND status IN ('submitted', 'waiting')",
            )
            .bind(outcome.id.to_string())
            .bind(i64::from(outcome.generation))
            .bind(outcome.at.micros())
            .bind(outcome.tallies.as_str())
            .bind(outcome.verdicts.as_str())
            .bind(kept(code).as_ref())
            .bind(kept(message).as_ref())
            .execute(&mut *cx)
            .await?;
            if closed.rows_affected() == 0 {
                return Ok(false);
            }
            outbox::remove(cx, outcome.id).await?;
            Ok(true)
        }
        Resolution::Waiting { reason, resumes_after } => {
            let updated = sqlx::query(
                "UPDATE contributions SET status = 'waiting', waiting_reason = $3, resumes_after = $4
                 WHERE id = $1 AND generation = $2 AND status IN ('submitted', 'waiting')",
            )
            .bind(outcome.id.to_string())
            .bind(i64::from(outcome.generation))
            .bind(kept(reason).as_ref())
            .bind(resumes_after.map(Timestamp::micros))
            .execute(&mut *cx)
            .await?;
            if updated.rows_affected() == 0 {
                return Ok(false);
            }
            let next_sweep = resumes_after.unwrap_or_else(|| outcome.at.plus(waiting_retry));
            outbox::reschedule(cx, outcome.id, next_sweep).await
        }
    }
}

struct Merge<'a> {
    version: i64,
    accepted: i64,
    record_count: i64,
    root: &'a str,
}

async fn version_add(
    cx: &mut AnyConnection,
    project: DatasetId,
    agent: AgentId,
    outcome: &OutcomeRow,
    merge: &Merge<'_>,
) -> Result<(), Error> {
    let inserted = sqlx::query(
        "INSERT INTO versions
             (project_id, version, contribution_id, agent_id, accepted, record_count, root, created_at)
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8)
         ON CONFLICT (project_id, version) DO NOTHING",
    )
    .bind(project.to_string())
    .bind(merge.version)
    .bind(outcome.id.to_string())
    .bind(agent.to_string())
    .bind(merge.accepted)
    .bind(merge.record_count)
    .bind(merge.root)
    .bind(outcome.at.micros())
    .execute(&mut *cx)
    .await?;
    if inserted.rows_affected() == 0 {
        // Why not an error: it would be met again at every attempt, and every outcome behind it would wait for ever.
        // The contribution names a version that is another's, which is what the checker looks for.
        tracing::error!(
            %project,
            version = merge.version,
            contribution = %outcome.id,
            "two contributions have the same version; run `sluice check`",
        );
    }
    sqlx::query("UPDATE projects SET version = $2, record_count = $3 WHERE id = $1 AND version < $2")
        .bind(project.to_string())
        .bind(merge.version)
        .bind(merge.record_count)
        .execute(cx)
        .await?;
    Ok(())
}

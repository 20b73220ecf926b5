//! Application of outcomes to contributions.
//!
//! Invariants:
//! - The first terminal outcome of a contribution's current generation closes it, so outcomes may arrive twice, in any
//!   order and from several projectors at once. Afterwards only a merge changes it: it replaces any earlier outcome of
//!   any generation, because a worker that was paused may have committed after another one rejected the same
//!   contribution. A lost contribution may be merged anew.
//! - A merged outcome and its version row are one transaction.
//! - An outcome of a deleted project changes nothing, also if its merge came before the deletion.

use std::time::Duration;

use sqlx::AnyConnection;
use types::vocabulary::{ActivityKind, Visibility};
use types::{AgentId, ContributionId, DatasetId, Resolution, Timestamp, fault};

use crate::activity::{self, NewActivity};
use crate::contributions::outbox;
use crate::points;
use crate::query::{sql, tx};
use crate::row::{Columns, bigint, replace_nul};
use crate::stamps::Touched;
use crate::writer::Change;
use crate::{Error, Store};

/// An outcome to apply.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OutcomeRow {
    /// Id of the contribution.
    pub id: ContributionId,
    /// Generation of the judged submission.
    pub generation: u32,
    /// Time of the decision.
    pub at: Timestamp,
    /// Decision on the contribution.
    pub resolution: Resolution,
    /// Tallies of the gates as JSON.
    pub tallies: String,
    /// The verdicts other than pass, as JSON.
    pub verdicts: String,
}

/// The effect of an outcome.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub struct Applied {
    /// Id of the contribution.
    pub id: ContributionId,
    /// True if the outcome changed the contribution. False if the contribution is unknown or closed, or if the outcome is
    /// of another generation and no merge.
    pub changed: bool,
}

impl Store {
    /// Applies outcomes in their order, in one transaction.
    ///
    /// # Errors
    /// No outcome was applied. [`Error::Range`] for a number that the database cannot store.
    pub async fn outcomes_apply(&self, outcomes: Vec<OutcomeRow>) -> Result<Vec<Applied>, Error> {
        fault::point("project.begin");
        // One transaction for all, because a sync of the disk costs more than many outcomes.
        let waiting_retry = self.options().waiting_retry;
        let merged = |(_, merged): &(Vec<Applied>, Vec<DatasetId>)| Touched::Projects(merged.clone());
        let (applied, _) = self
            .write_touching(
                merged,
                tx!(async move |cx| {
                    let (mut applied, mut merged) = (Vec::with_capacity(outcomes.len()), Vec::new());
                    for outcome in &outcomes {
                        let effect = apply(cx, outcome, waiting_retry).await?;
                        applied.push(Applied {
                            id: outcome.id,
                            changed: !matches!(effect, Effect::None),
                        });
                        if let Effect::Merged(new) = effect {
                            merged.push(new);
                        }
                    }
                    let projects = merged.iter().map(|(project, _)| *project).collect();
                    for (_, public) in merged {
                        if let Some(new) = public {
                            activity::note(cx, &new).await?;
                        }
                    }
                    Ok(Change::Keep((applied, projects)))
                }),
            )
            .await?;
        fault::point("project.commit");
        Ok(applied)
    }
}

/// The change that an outcome made.
enum Effect {
    None,
    /// The contribution was decided or delayed, and no project changed.
    Noted,
    /// This project has a new version. If it is public, the feed has an entry for it.
    Merged((DatasetId, Option<NewActivity>)),
}

async fn apply(cx: &mut AnyConnection, outcome: &OutcomeRow, waiting_retry: Duration) -> Result<Effect, Error> {
    match &outcome.resolution {
        Resolution::Merged {
            version,
            accepted,
            record_count,
            root,
        } => {
            // Numbers are checked before anything is written.
            let merge = Merge {
                version: bigint("version", version.0)?,
                accepted: bigint("accepted", *accepted)?,
                record_count: bigint("record_count", *record_count)?,
                root,
            };
            let closed = sql!(
                "UPDATE contributions
                 SET status = 'merged', decided_at = $2, tallies = $3, verdicts = $4, version = $5, accepted = $6,
                     record_count = $7, root = $8, waiting_reason = NULL, resumes_after = NULL, reject_code = NULL,
                     reject_message = NULL, loss = NULL
                 WHERE id = $1 AND (status <> 'merged' OR (loss IS NOT NULL AND (root <> $8 OR decided_at <> $2)))
                   AND (SELECT deleted_at FROM projects WHERE projects.id = contributions.project_id) IS NULL
                 RETURNING project_id, agent_id, operator_id,
                     (SELECT visibility FROM projects WHERE projects.id = contributions.project_id) AS visibility",
                outcome.id,
                outcome.at,
                outcome.tallies.as_str(),
                outcome.verdicts.as_str(),
                merge.version,
                merge.accepted,
                merge.record_count,
                root.as_str()
            )
            .row_if_any(cx)
            .await?;
            // The contribution is unknown or merged already, or its project is deleted.
            let Some(row) = closed else { return Ok(Effect::None) };
            let project: DatasetId = row.get("project_id")?;
            let agent = row.get("agent_id")?;
            let is_new = version_add(cx, project, agent, outcome, &merge).await?;
            let is_public = row.get::<Visibility>("visibility")? == Visibility::Public;
            let batch = points::Batch {
                id: outcome.id,
                agent: (agent, row.get("operator_id")?),
                project: project.to_string(),
                accepted: *accepted,
                at: outcome.at,
                needs_reader: true,
            };
            points::of_batch(cx, batch).await?;
            // A decided contribution must not be submitted again.
            outbox::remove(cx, outcome.id).await?;
            let new = (is_new && is_public).then(|| NewActivity {
                kind: ActivityKind::Version,
                item: project.to_string(),
                subject: merge.version.to_string(),
                agent: Some(agent),
                at: outcome.at,
            });
            Ok(Effect::Merged((project, new)))
        }
        Resolution::Rejected { code, message } => {
            let closed = sql!(
                "UPDATE contributions
                 SET status = 'rejected', decided_at = $3, tallies = $4, verdicts = $5, reject_code = $6,
                     reject_message = $7, waiting_reason = NULL, resumes_after = NULL
                 WHERE id = $1 AND generation = $2 AND status IN ('submitted', 'waiting')",
                outcome.id,
                outcome.generation,
                outcome.at,
                outcome.tallies.as_str(),
                outcome.verdicts.as_str(),
                replace_nul(code),
                replace_nul(message)
            )
            .run(cx)
            .await?;
            // Closed already, of another generation, or unknown.
            if closed == 0 {
                return Ok(Effect::None);
            }
            outbox::remove(cx, outcome.id).await?;
            Ok(Effect::Noted)
        }
        Resolution::Waiting { reason, resumes_after } => {
            let updated = sql!(
                "UPDATE contributions SET status = 'waiting', waiting_reason = $3, resumes_after = $4
                 WHERE id = $1 AND generation = $2 AND status IN ('submitted', 'waiting')",
                outcome.id,
                outcome.generation,
                replace_nul(reason),
                *resumes_after
            )
            .run(cx)
            .await?;
            if updated == 0 {
                return Ok(Effect::None);
            }
            // Without a time in the outcome, the sweeper tries again after a fixed time.
            let next_sweep = resumes_after.unwrap_or_else(|| outcome.at.plus(waiting_retry));
            let is_rescheduled = outbox::reschedule(cx, outcome.id, next_sweep).await?;
            Ok(if is_rescheduled { Effect::Noted } else { Effect::None })
        }
    }
}

struct Merge<'a> {
    version: i64,
    accepted: i64,
    record_count: i64,
    root: &'a str,
}

/// Adds a version. Returns true if it is a new one.
async fn version_add(
    cx: &mut AnyConnection,
    project: DatasetId,
    agent: AgentId,
    outcome: &OutcomeRow,
    merge: &Merge<'_>,
) -> Result<bool, Error> {
    let inserted = sql!(
        "INSERT INTO versions
             (project_id, version, contribution_id, agent_id, accepted, record_count, root, created_at)
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8)
         ON CONFLICT (project_id, version) DO NOTHING",
        project,
        merge.version,
        outcome.id,
        agent,
        merge.accepted,
        merge.record_count,
        merge.root,
        outcome.at
    )
    .run(cx)
    .await?;
    if inserted == 0 {
        // An error would be repeated at every attempt, and every later outcome would wait for
        // ever. The contribution now names a version that belongs to another one, which the
        // checker reports.
        tracing::error!(
            %project,
            version = merge.version,
            contribution = %outcome.id,
            "two contributions have the same version; run `sluice check`",
        );
    }
    // Outcomes may arrive out of order, so the version only moves up.
    sql!(
        "UPDATE projects SET version = $2, record_count = $3, updated_at = $4 WHERE id = $1 AND version < $2",
        project,
        merge.version,
        merge.record_count,
        outcome.at
    )
    .run(cx)
    .await?;
    Ok(inserted > 0)
}

//! Points of merged batches: those of new ones with their outcome, those of earlier ones page by page.

use sqlx::AnyConnection;
use types::vocabulary::PointsKind;
use types::{AgentId, ContributionId, OperatorId, Timestamp};

use super::{NewPoints, Points, give};
use crate::Error;
use crate::query::{sql, tx};
use crate::row::Columns;
use crate::writer::Change;

/// Accepted records for a point.
const RECORDS_A_POINT: u64 = 5;
/// Points of a batch, at most.
const MOST_POINTS: u64 = 20;

/// A page of earlier batches that got their points.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BatchesFilled {
    /// Last contribution of the page; `None` if there was none.
    pub last: Option<ContributionId>,
    /// Events that were added.
    pub added: u64,
}

impl Points<'_> {
    /// Gives the points of a page of merged contributions by id: those after `after`, or the first. What has its points
    /// keeps them.
    pub async fn batches_fill(&self, after: Option<ContributionId>, limit: u32) -> Result<BatchesFilled, Error> {
        self.0
            .write_aside(tx!(async move |cx| {
                let rows = sql!(
                    "SELECT id, project_id, agent_id, operator_id, accepted, decided_at FROM contributions
                     WHERE status = 'merged' AND id > $1 ORDER BY id LIMIT $2",
                    after.map(|id| id.to_string()).unwrap_or_default(),
                    limit
                )
                .rows(cx)
                .await?;
                let mut filled = BatchesFilled { last: None, added: 0 };
                for row in rows {
                    let id = row.get("id")?;
                    let agent = (row.get("agent_id")?, row.get("operator_id")?);
                    let project = row.get("project_id")?;
                    let accepted = row.get("accepted")?;
                    let at = row.get("decided_at")?;
                    // Batches that have their points are passed over by the key of their event, so
                    // the fill may begin anywhere and be repeated.
                    let batch = Batch {
                        id,
                        agent,
                        project,
                        accepted,
                        at,
                        // From before readers were noted: nobody can say who read its dataset.
                        needs_reader: false,
                    };
                    filled.added += u64::from(of_batch(cx, batch).await?);
                    filled.last = Some(id);
                }
                Ok(Change::Keep(filled))
            }))
            .await
    }
}

/// A merged batch.
pub(crate) struct Batch {
    pub(crate) id: ContributionId,
    /// Agent that brought it, and its operator.
    pub(crate) agent: (AgentId, OperatorId),
    /// Id of the dataset.
    pub(crate) project: String,
    /// Number of records that it added.
    pub(crate) accepted: u64,
    pub(crate) at: Timestamp,
    /// True if the ranking counts it only once another operator has read the dataset.
    pub(crate) needs_reader: bool,
}

/// Gives the points of a merged batch, if it has any. Returns false if there are none, or it has them.
pub(crate) async fn of_batch(cx: &mut AnyConnection, batch: Batch) -> Result<bool, Error> {
    let Batch {
        id,
        agent: (agent, operator),
        project,
        accepted,
        at,
        needs_reader,
    } = batch;
    // By accepted records and bounded for a batch, so that splitting records into tiny batches gains
    // nothing and one huge batch does not outweigh the work of others.
    let points = (accepted / RECORDS_A_POINT).min(MOST_POINTS);
    if points == 0 {
        return Ok(false);
    }
    let new = NewPoints {
        agent,
        operator,
        kind: PointsKind::MergedBatch,
        key: id.to_string(),
        points: i64::try_from(points).unwrap_or(0),
        subject: project,
        at,
    };
    if !give(cx, &new).await? {
        return Ok(false);
    }
    // By dataset, because the ranking asks of each if it is public and who read it, which can change long after the
    // batch.
    sql!(
        "INSERT INTO points_batches (agent_id, day, project_id, needs_reader, points, batches)
         VALUES ($1, $2, $3, $4, $5, 1)
         ON CONFLICT (agent_id, day, project_id, needs_reader) DO UPDATE SET
             points = points_batches.points + excluded.points, batches = points_batches.batches + 1",
        agent,
        at.day(),
        new.subject,
        needs_reader,
        new.points
    )
    .run(cx)
    .await?;
    Ok(true)
}

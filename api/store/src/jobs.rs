//! Jobs: work that must happen later, at least once.
//!
//! Invariant: a job that follows from a change is added in the transaction of the change.

use sqlx::AnyConnection;
use types::{OperatorId, Timestamp};

use crate::Error;

/// Job to add.
#[derive(Clone, Debug)]
pub struct NewJob {
    /// Id of the job, a version 7 UUID.
    pub id: String,
    /// Kind of the work, which chooses the handler.
    pub kind: String,
    /// Value that only one job may have; a second one is not added.
    pub dedupe: Option<String>,
    /// Operator that may see the job.
    pub operator: Option<OperatorId>,
    /// Input of the handler, as JSON. Contains no secret.
    pub payload: String,
    /// Instant from which the job is done.
    pub due_at: Timestamp,
    /// Time of the creation.
    pub now: Timestamp,
}

/// Adds a job, unless there is one with the same `dedupe`.
pub(crate) async fn insert(cx: &mut AnyConnection, job: &NewJob) -> Result<(), Error> {
    sqlx::query(
        "INSERT INTO jobs (id, kind, dedupe, operator_id, payload, due_at, attempts, created_at)
         VALUES ($1, $2, $3, $4, $5, $6, 0, $7)
         ON CONFLICT (dedupe) DO NOTHING",
    )
    .bind(job.id.clone())
    .bind(job.kind.clone())
    .bind(job.dedupe.clone())
    .bind(job.operator.map(|operator| operator.to_string()))
    .bind(job.payload.clone())
    .bind(job.due_at.micros())
    .bind(job.now.micros())
    .execute(cx)
    .await?;
    Ok(())
}

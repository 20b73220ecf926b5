//! Jobs: work that must happen later, at least once.
//!
//! Invariants:
//! - A job that follows from a change is added in the transaction of the change.
//! - A job is leased by one worker at a time. When the lease ends without a result, the job is due again.
//! - A job that is done has no row.

use std::time::Duration;

use sqlx::AnyConnection;
use sqlx::any::AnyRow;
use types::{OperatorId, Timestamp};

use crate::row::{Columns, replace_nul, texts};
use crate::writer::Change;
use crate::{Error, Store};

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

/// Job as stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Job {
    /// Id of the job.
    pub id: String,
    /// Kind of the work.
    pub kind: String,
    /// Operator that may see the job.
    pub operator: Option<OperatorId>,
    /// Input of the handler.
    pub payload: String,
    /// Instant from which the job is done, or tried again.
    pub due_at: Timestamp,
    /// Number of leases so far.
    pub attempts: u32,
    /// Error of the last try that failed.
    pub last_error: Option<String>,
    /// Time of the creation.
    pub created_at: Timestamp,
    /// Time at which the job was given up.
    pub failed_at: Option<Timestamp>,
}

/// The part of the database about work that flows from one place to another.
#[derive(Clone, Copy, Debug)]
pub struct Flow<'s>(pub(crate) &'s Store);

impl Store {
    /// Returns the part of the database about work that flows from one place to another.
    pub const fn flow(&self) -> Flow<'_> {
        Flow(self)
    }
}

/// Columns of a job, in every statement that returns one.
macro_rules! job_columns {
    () => {
        "id, kind, operator_id, payload, due_at, attempts, last_error, created_at, failed_at"
    };
}

impl Flow<'_> {
    /// Adds a job, unless there is one with the same `dedupe`. Returns false in that case.
    ///
    /// # Errors
    /// [`Error::Text`]; [`Error::Refused`] if the id is in use.
    pub async fn job_add(&self, job: NewJob) -> Result<bool, Error> {
        texts(&[("payload", &job.payload)])?;
        self.0
            // Nobody remembers jobs, so what callers remember of other rows stays good.
            .write_aside(move |cx| Box::pin(async move { Ok(Change::Keep(insert(cx, &job).await?)) }))
            .await
    }

    /// Leases up to `limit` jobs that are due at `now`, and returns them, longest due first. Nobody else gets them
    /// until the lease ends.
    pub async fn jobs_lease(&self, now: Timestamp, lease: Duration, limit: u32) -> Result<Vec<Job>, Error> {
        let until = now
            .micros()
            .saturating_add(i64::try_from(lease.as_micros()).unwrap_or(i64::MAX));
        self.0
            .write_aside(move |cx| {
                Box::pin(async move {
                    let due = sqlx::query(
                        "SELECT id FROM jobs
                         WHERE failed_at IS NULL AND due_at <= $1 AND (leased_until IS NULL OR leased_until <= $1)
                         ORDER BY due_at, id LIMIT $2",
                    )
                    .bind(now.micros())
                    .bind(i64::from(limit))
                    .fetch_all(&mut *cx)
                    .await?;
                    let mut leased = Vec::with_capacity(due.len());
                    for row in due {
                        // The condition is evaluated again on the locked row: another worker may have been faster.
                        let taken = sqlx::query(concat!(
                            "UPDATE jobs SET leased_until = $2, attempts = attempts + 1
                             WHERE id = $1 AND failed_at IS NULL AND (leased_until IS NULL OR leased_until <= $3)
                             RETURNING ",
                            job_columns!()
                        ))
                        .bind(row.value::<String>("id")?)
                        .bind(until)
                        .bind(now.micros())
                        .fetch_optional(&mut *cx)
                        .await?;
                        leased.extend(taken.as_ref().map(job).transpose()?);
                    }
                    // Without a job there is nothing to commit.
                    Ok(if leased.is_empty() {
                        Change::Undo(leased)
                    } else {
                        Change::Keep(leased)
                    })
                })
            })
            .await
    }

    /// Deletes a job that is done.
    pub async fn job_done(&self, id: &str) -> Result<(), Error> {
        let id = id.to_owned();
        self.0
            .write_aside(move |cx| {
                Box::pin(async move {
                    // A job that is done leaves no row: what it did has rows of its own.
                    sqlx::query("DELETE FROM jobs WHERE id = $1")
                        .bind(id)
                        .execute(cx)
                        .await?;
                    Ok(Change::Keep(()))
                })
            })
            .await
    }

    /// Ends the lease of a job whose try failed; the next try is due at `next_due`.
    pub async fn job_retry(&self, id: &str, error: &str, next_due: Timestamp) -> Result<(), Error> {
        let (id, error) = (id.to_owned(), replace_nul(error).into_owned());
        self.0
            .write_aside(move |cx| {
                Box::pin(async move {
                    // The lease ends here, or the job would wait for its end even if it is due before.
                    sqlx::query("UPDATE jobs SET last_error = $2, due_at = $3, leased_until = NULL WHERE id = $1")
                        .bind(id)
                        .bind(error)
                        .bind(next_due.micros())
                        .execute(cx)
                        .await?;
                    Ok(Change::Keep(()))
                })
            })
            .await
    }

    /// Gives a job up that no further try can help. Its row stays, for people to see.
    pub async fn job_fail(&self, id: &str, error: &str, now: Timestamp) -> Result<(), Error> {
        let (id, error) = (id.to_owned(), replace_nul(error).into_owned());
        self.0
            .write_aside(move |cx| {
                Box::pin(async move {
                    sqlx::query("UPDATE jobs SET last_error = $2, failed_at = $3, leased_until = NULL WHERE id = $1")
                        .bind(id)
                        .bind(error)
                        .bind(now.micros())
                        .execute(cx)
                        .await?;
                    Ok(Change::Keep(()))
                })
            })
            .await
    }

    /// Returns the jobs that an operator may see, newest first.
    pub async fn jobs_of(&self, operator: OperatorId) -> Result<Vec<Job>, Error> {
        self.0
            .read(async {
                let rows = sqlx::query(concat!(
                    "SELECT ",
                    job_columns!(),
                    " FROM jobs WHERE operator_id = $1 ORDER BY created_at DESC, id DESC LIMIT 100"
                ))
                .bind(operator.to_string())
                .fetch_all(self.0.readers())
                .await?;
                rows.iter().map(job).collect()
            })
            .await
    }

    /// Returns the jobs that were given up, newest first.
    pub async fn jobs_failed(&self) -> Result<Vec<Job>, Error> {
        self.0
            .read(async {
                let rows = sqlx::query(concat!(
                    "SELECT ",
                    job_columns!(),
                    " FROM jobs WHERE failed_at IS NOT NULL ORDER BY failed_at DESC, id DESC LIMIT 100"
                ))
                .fetch_all(self.0.readers())
                .await?;
                rows.iter().map(job).collect()
            })
            .await
    }
}

/// Adds a job, unless there is one with the same `dedupe`. For use in the transaction of a change.
pub(crate) async fn insert(cx: &mut AnyConnection, job: &NewJob) -> Result<bool, Error> {
    // A job without a word for `dedupe` never conflicts, since null equals nothing in a unique index.
    let added = sqlx::query(
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
    Ok(added.rows_affected() > 0)
}

fn job(row: &AnyRow) -> Result<Job, Error> {
    Ok(Job {
        id: row.value("id")?,
        kind: row.value("kind")?,
        operator: row.parsed_optional("operator_id")?,
        payload: row.value("payload")?,
        due_at: row.time("due_at")?,
        attempts: row.number("attempts")?,
        last_error: row.value("last_error")?,
        created_at: row.time("created_at")?,
        failed_at: row.time_optional("failed_at")?,
    })
}

//! Jobs: work that must happen later, at least once.
//!
//! Invariants:
//! - A job that follows from a change is added in the transaction of the change.
//! - A job is leased by one worker at a time. When the lease ends without a result, the job is due again.
//! - A job that is done has no row.

use std::time::Duration;

use sqlx::AnyConnection;
use types::{OperatorId, Timestamp};

use crate::query::{sql, text, tx};
use crate::row::{Columns, Row as _, replace_nul, row, texts};
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

row! {
    /// Job as stored.
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub struct Job {
        /// Id of the job.
        pub id: String,
        /// Kind of the work.
        pub kind: String,
        /// Operator that may see the job.
        pub operator: Option<OperatorId> = "operator_id",
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

impl Flow<'_> {
    /// Adds a job, unless there is one with the same `dedupe`. Returns false in that case.
    ///
    /// # Errors
    /// [`Error::Text`]; [`Error::Refused`] if the id is in use.
    pub async fn job_add(&self, job: NewJob) -> Result<bool, Error> {
        texts(&[("payload", &job.payload)])?;
        self.0
            // Nobody remembers jobs, so what callers remember of other rows stays good.
            .write_aside(tx!(async move |cx| { Ok(Change::Keep(insert(cx, &job).await?)) }))
            .await
    }

    /// Leases up to `limit` jobs that are due at `now`, and returns them, longest due first. Nobody else gets them
    /// until the lease ends.
    pub async fn jobs_lease(&self, now: Timestamp, lease: Duration, limit: u32) -> Result<Vec<Job>, Error> {
        let until = now
            .micros()
            .saturating_add(i64::try_from(lease.as_micros()).unwrap_or(i64::MAX));
        self.0
            .write_aside(tx!(async move |cx| {
                let due = sql!(
                    "SELECT id FROM jobs
                     WHERE failed_at IS NULL AND due_at <= $1 AND (leased_until IS NULL OR leased_until <= $1)
                     ORDER BY due_at, id LIMIT $2",
                    now,
                    limit
                )
                .rows(cx)
                .await?;
                let mut leased = Vec::with_capacity(due.len());
                for row in due {
                    // The condition is evaluated again on the locked row: another worker may have been faster.
                    let taken = sql!(
                        text!(
                            "UPDATE jobs SET leased_until = $2, attempts = attempts + 1
                             WHERE id = $1 AND failed_at IS NULL AND (leased_until IS NULL OR leased_until <= $3)
                             RETURNING ",
                            Job::COLUMNS
                        ),
                        row.get::<String>("id")?,
                        until,
                        now
                    )
                    .row_if_any(cx)
                    .await?;
                    leased.extend(taken.as_ref().map(Job::of).transpose()?);
                }
                Ok(Change::written_if(!leased.is_empty(), leased))
            }))
            .await
    }

    /// Deletes a job that is done.
    pub async fn job_done(&self, id: &str) -> Result<(), Error> {
        let id = id.to_owned();
        self.0
            .write_aside(tx!(async move |cx| {
                // A job that is done leaves no row: what it did has rows of its own.
                sql!("DELETE FROM jobs WHERE id = $1", id).run(cx).await?;
                Ok(Change::Keep(()))
            }))
            .await
    }

    /// Ends the lease of a job whose try failed; the next try is due at `next_due`.
    pub async fn job_retry(&self, id: &str, error: &str, next_due: Timestamp) -> Result<(), Error> {
        let (id, error) = (id.to_owned(), replace_nul(error).into_owned());
        self.0
            .write_aside(tx!(async move |cx| {
                // The lease ends here, or the job would wait for its end even if it is due before.
                sql!(
                    "UPDATE jobs SET last_error = $2, due_at = $3, leased_until = NULL WHERE id = $1",
                    id,
                    error,
                    next_due
                )
                .run(cx)
                .await?;
                Ok(Change::Keep(()))
            }))
            .await
    }

    /// Gives a job up that no further try can help. Its row stays, for people to see.
    pub async fn job_fail(&self, id: &str, error: &str, now: Timestamp) -> Result<(), Error> {
        let (id, error) = (id.to_owned(), replace_nul(error).into_owned());
        self.0
            .write_aside(tx!(async move |cx| {
                sql!(
                    "UPDATE jobs SET last_error = $2, failed_at = $3, leased_until = NULL WHERE id = $1",
                    id,
                    error,
                    now
                )
                .run(cx)
                .await?;
                Ok(Change::Keep(()))
            }))
            .await
    }

    /// Returns the jobs that an operator may see, newest first.
    pub async fn jobs_of(&self, operator: OperatorId) -> Result<Vec<Job>, Error> {
        self.0
            .all(sql!(
                text!(
                    "SELECT ",
                    Job::COLUMNS,
                    " FROM jobs WHERE operator_id = $1 ORDER BY created_at DESC, id DESC LIMIT 100"
                ),
                operator
            ))
            .await
    }

    /// Returns the jobs that were given up, newest first.
    pub async fn jobs_failed(&self) -> Result<Vec<Job>, Error> {
        self.0
            .all(sql!(text!(
                "SELECT ",
                Job::COLUMNS,
                " FROM jobs WHERE failed_at IS NOT NULL ORDER BY failed_at DESC, id DESC LIMIT 100"
            )))
            .await
    }
}

/// Adds a job, unless there is one with the same `dedupe`. For use in the transaction of a change.
pub(crate) async fn insert(cx: &mut AnyConnection, job: &NewJob) -> Result<bool, Error> {
    // A job without a word for `dedupe` never conflicts, since null equals nothing in a unique index.
    let added = sql!(
        "INSERT INTO jobs (id, kind, dedupe, operator_id, payload, due_at, attempts, created_at)
         VALUES ($1, $2, $3, $4, $5, $6, 0, $7)
         ON CONFLICT (dedupe) DO NOTHING",
        job.id.clone(),
        job.kind.clone(),
        job.dedupe.clone(),
        job.operator,
        job.payload.clone(),
        job.due_at,
        job.now
    )
    .run(cx)
    .await?;
    Ok(added > 0)
}

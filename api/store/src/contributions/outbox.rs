//! The outbox: the submissions of contributions without a terminal outcome, with the time of their next append to the
//! log.

use sqlx::AnyConnection;
use sqlx::any::AnyRow;
use types::{ContributionId, DatasetId, Timestamp};

use crate::row::{Columns, length};
use crate::writer::Change;
use crate::{Error, Store};

/// A submission to append to the log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Due {
    /// Id of the contribution.
    pub id: ContributionId,
    /// Id of its project, which is the key of the log record.
    pub project: DatasetId,
    /// The encoded submission.
    pub submission: Vec<u8>,
    /// Number of appends since its last outcome.
    pub attempts: u32,
}

/// A submission that was appended again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Swept {
    /// Id of the contribution.
    pub id: ContributionId,
    /// Time of the next append, if it still has no outcome.
    pub next_sweep: Timestamp,
}

/// The size of the outbox.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Outbox {
    /// Contributions without a terminal outcome.
    pub open: u64,
    /// Total size of their submissions in bytes.
    pub bytes: u64,
}

impl Store {
    /// Returns the submissions that are due, the longest overdue first.
    pub async fn contributions_due(&self, now: Timestamp, limit: u32) -> Result<Vec<Due>, Error> {
        self.due(now, limit, false).await
    }

    /// Returns the submissions to private projects that are due, the longest overdue first. No pause holds them.
    pub async fn private_contributions_due(&self, now: Timestamp, limit: u32) -> Result<Vec<Due>, Error> {
        self.due(now, limit, true).await
    }

    async fn due(&self, now: Timestamp, limit: u32, private: bool) -> Result<Vec<Due>, Error> {
        self.read(async {
            sqlx::query(
                "SELECT contribution_id, outbox.project_id AS project_id, attempts, submission FROM outbox
                 JOIN contributions ON contributions.id = outbox.contribution_id
                 WHERE next_sweep <= $1 AND private >= $3 ORDER BY next_sweep, contribution_id LIMIT $2",
            )
            .bind(now.micros())
            .bind(i64::from(limit))
            .bind(i64::from(private))
            .fetch_all(self.readers())
            .await?
            .iter()
            .map(due)
            .collect()
        })
        .await
    }

    /// Returns a page of all open submissions by id, due or not: those after `after`, or the first.
    pub async fn contributions_open_at_start(
        &self,
        limit: u32,
        after: Option<ContributionId>,
    ) -> Result<Vec<Due>, Error> {
        self.read(async {
            sqlx::query(
                "SELECT contribution_id, project_id, attempts, submission FROM outbox
                 WHERE contribution_id > $1 ORDER BY contribution_id LIMIT $2",
            )
            // The empty text sorts before every id.
            .bind(after.map(|id| id.to_string()).unwrap_or_default())
            .bind(i64::from(limit))
            .fetch_all(self.readers())
            .await?
            .iter()
            .map(due)
            .collect()
        })
        .await
    }

    /// Records that submissions were appended again. Submissions that were closed meanwhile are skipped.
    pub async fn contributions_swept(&self, swept: Vec<Swept>) -> Result<(), Error> {
        self.write_aside(move |cx| {
            Box::pin(async move {
                // One transaction for all, since a sync of the disk costs more than many rows.
                for Swept { id, next_sweep } in swept {
                    sqlx::query(
                        "UPDATE outbox SET attempts = attempts + 1, next_sweep = $2 WHERE contribution_id = $1",
                    )
                    .bind(id.to_string())
                    .bind(next_sweep.micros())
                    .execute(&mut *cx)
                    .await?;
                    // Contributions that waited for the end of a pause are submitted now. Other waits are ended by the
                    // worker.
                    sqlx::query(
                        "UPDATE contributions SET status = 'submitted', waiting_reason = NULL, resumes_after = NULL
                         WHERE id = $1 AND status = 'waiting' AND waiting_reason = 'paused'",
                    )
                    .bind(id.to_string())
                    .execute(&mut *cx)
                    .await?;
                }
                Ok(Change::Keep(()))
            })
        })
        .await
    }

    /// Returns the size of the outbox. The cost grows with the number of open contributions, not with their size.
    pub async fn open_count_and_bytes(&self) -> Result<Outbox, Error> {
        self.read(async {
            let row = sqlx::query(
                "SELECT COUNT(*) AS open_count, CAST(COALESCE(SUM(byte_count), 0) AS BIGINT) AS byte_count FROM outbox",
            )
            .fetch_one(self.readers())
            .await?;
            Ok(Outbox {
                open: row.number("open_count")?,
                bytes: row.number("byte_count")?,
            })
        })
        .await
    }
}

/// Adds a submission to the outbox.
pub(crate) async fn insert(
    cx: &mut AnyConnection,
    id: ContributionId,
    project: DatasetId,
    submission: Vec<u8>,
    next_sweep: Timestamp,
) -> Result<(), Error> {
    sqlx::query(
        "INSERT INTO outbox (contribution_id, project_id, attempts, next_sweep, byte_count, submission)
         VALUES ($1, $2, 0, $3, $4, $5)",
    )
    .bind(id.to_string())
    .bind(project.to_string())
    .bind(next_sweep.micros())
    .bind(length(&submission))
    .bind(submission)
    .execute(cx)
    .await?;
    Ok(())
}

/// Removes the submission of a decided contribution from the outbox.
pub(crate) async fn remove(cx: &mut AnyConnection, id: ContributionId) -> Result<(), Error> {
    sqlx::query("DELETE FROM outbox WHERE contribution_id = $1")
        .bind(id.to_string())
        .execute(cx)
        .await?;
    Ok(())
}

/// Sets the time of the next append and resets the attempts. Returns false if the submission is not open.
pub(crate) async fn reschedule(
    cx: &mut AnyConnection,
    id: ContributionId,
    next_sweep: Timestamp,
) -> Result<bool, Error> {
    let updated = sqlx::query("UPDATE outbox SET attempts = 0, next_sweep = $2 WHERE contribution_id = $1")
        .bind(id.to_string())
        .bind(next_sweep.micros())
        .execute(cx)
        .await?;
    // An outcome may have removed the submission meanwhile.
    Ok(updated.rows_affected() > 0)
}

/// Makes every open submission of a project due at once, and counts their attempts anew.
pub(crate) async fn hurry(cx: &mut AnyConnection, project: DatasetId, now: Timestamp) -> Result<(), Error> {
    sqlx::query("UPDATE outbox SET attempts = 0, next_sweep = $2 WHERE project_id = $1")
        .bind(project.to_string())
        .bind(now.micros())
        .execute(cx)
        .await?;
    Ok(())
}

fn due(row: &AnyRow) -> Result<Due, Error> {
    Ok(Due {
        id: row.parsed("contribution_id")?,
        project: row.parsed("project_id")?,
        submission: row.value("submission")?,
        attempts: row.number("attempts")?,
    })
}

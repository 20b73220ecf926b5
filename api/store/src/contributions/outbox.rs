//! The outbox: the submissions of contributions without a terminal outcome, with the time of their next append to the
//! log.

use sqlx::AnyConnection;
use types::{ContributionId, DatasetId, Timestamp};

use crate::query::{sql, tx};
use crate::row::{length, row};
use crate::writer::Change;
use crate::{Error, Store};

row! {
    /// A submission to append to the log.
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub struct Due {
        /// Id of the contribution.
        pub id: ContributionId = "contribution_id",
        /// Id of its project, which is the key of the log record.
        pub project: DatasetId = "project_id",
        /// The encoded submission.
        pub submission: Vec<u8>,
        /// Number of appends since its last outcome.
        pub attempts: u32,
    }
}

/// A submission that was appended again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Swept {
    /// Id of the contribution.
    pub id: ContributionId,
    /// Time of the next append, if it still has no outcome.
    pub next_sweep: Timestamp,
}

row! {
    /// The size of the outbox.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
    pub struct Outbox {
        /// Contributions without a terminal outcome.
        pub open: u64 = "open_count",
        /// Total size of their submissions in bytes.
        pub bytes: u64 = "byte_count",
    }
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
        self.all(sql!(
            "SELECT contribution_id, outbox.project_id AS project_id, attempts, submission FROM outbox
             JOIN contributions ON contributions.id = outbox.contribution_id
             WHERE next_sweep <= $1 AND private >= $3 ORDER BY next_sweep, contribution_id LIMIT $2",
            now,
            limit,
            private
        ))
        .await
    }

    /// Returns a page of all open submissions by id, due or not: those after `after`, or the first.
    pub async fn contributions_open_at_start(
        &self,
        limit: u32,
        after: Option<ContributionId>,
    ) -> Result<Vec<Due>, Error> {
        self.all(sql!(
            "SELECT contribution_id, project_id, attempts, submission FROM outbox
             WHERE contribution_id > $1 ORDER BY contribution_id LIMIT $2",
            // The empty text sorts before every id.
            after.map(|id| id.to_string()).unwrap_or_default(),
            limit,
        ))
        .await
    }

    /// Records that submissions were appended again. Submissions that were closed meanwhile are skipped.
    pub async fn contributions_swept(&self, swept: Vec<Swept>) -> Result<(), Error> {
        self.write_aside(tx!(async move |cx| {
            // One transaction for all, since a sync of the disk costs more than many rows.
            for Swept { id, next_sweep } in swept {
                sql!(
                    "UPDATE outbox SET attempts = attempts + 1, next_sweep = $2 WHERE contribution_id = $1",
                    id,
                    next_sweep
                )
                .run(cx)
                .await?;
                // Contributions that waited for the end of a pause are submitted now. Other waits are ended by the
                // worker.
                sql!(
                    "UPDATE contributions SET status = 'submitted', waiting_reason = NULL, resumes_after = NULL
                     WHERE id = $1 AND status = 'waiting' AND waiting_reason = 'paused'",
                    id
                )
                .run(cx)
                .await?;
            }
            Ok(Change::Keep(()))
        }))
        .await
    }

    /// Returns the size of the outbox. The cost grows with the number of open contributions, not with their size.
    pub async fn open_count_and_bytes(&self) -> Result<Outbox, Error> {
        self.one(sql!(
            "SELECT COUNT(*) AS open_count, CAST(COALESCE(SUM(byte_count), 0) AS BIGINT) AS byte_count FROM outbox"
        ))
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
    sql!(
        "INSERT INTO outbox (contribution_id, project_id, attempts, next_sweep, byte_count, submission)
         VALUES ($1, $2, 0, $3, $4, $5)",
        id,
        project,
        next_sweep,
        length(&submission),
        submission
    )
    .run(cx)
    .await?;
    Ok(())
}

/// Removes the submission of a decided contribution from the outbox.
pub(crate) async fn remove(cx: &mut AnyConnection, id: ContributionId) -> Result<(), Error> {
    sql!("DELETE FROM outbox WHERE contribution_id = $1", id)
        .run(cx)
        .await?;
    Ok(())
}

/// Sets the time of the next append and resets the attempts. Returns false if the submission is not open.
pub(crate) async fn reschedule(
    cx: &mut AnyConnection,
    id: ContributionId,
    next_sweep: Timestamp,
) -> Result<bool, Error> {
    let updated = sql!(
        "UPDATE outbox SET attempts = 0, next_sweep = $2 WHERE contribution_id = $1",
        id,
        next_sweep
    )
    .run(cx)
    .await?;
    // An outcome may have removed the submission meanwhile.
    Ok(updated > 0)
}

/// Makes every open submission of a project due at once, and counts their attempts anew.
pub(crate) async fn hurry(cx: &mut AnyConnection, project: DatasetId, now: Timestamp) -> Result<(), Error> {
    sql!(
        "UPDATE outbox SET attempts = 0, next_sweep = $2 WHERE project_id = $1",
        project,
        now
    )
    .run(cx)
    .await?;
    Ok(())
}

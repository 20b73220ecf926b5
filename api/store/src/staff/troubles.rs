//! Jobs that fail: those that are tried again, and those that were given up.
//!
//! Invariant: a job is made due by hand only while nobody runs it, so it never runs twice at once.

use types::Timestamp;

use super::Staff;
use crate::query::{sql, text, tx};
use crate::row::{Row as _, row};
use crate::writer::Change;
use crate::{Error, Job};

row! {
    /// Number of jobs whose last try failed, together up to a thousand.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
    pub struct FailingJobs {
        /// Jobs that are tried again by themselves.
        pub retried: u64,
        /// Jobs that were given up.
        pub given_up: u64,
    }
}

impl Staff<'_> {
    /// Counts the jobs whose last try failed.
    pub async fn jobs_failing_count(&self) -> Result<FailingJobs, Error> {
        self.0
            .one(sql!(
                "SELECT COUNT(*) - COUNT(failed_at) AS retried, COUNT(failed_at) AS given_up
                 FROM (SELECT failed_at FROM jobs WHERE last_error IS NOT NULL LIMIT 1000) AS failing"
            ))
            .await
    }

    /// Returns the jobs whose last try failed, oldest first.
    pub async fn jobs_failing(&self, limit: u32) -> Result<Vec<Job>, Error> {
        self.0
            .all(sql!(
                text!(
                    "SELECT ",
                    Job::COLUMNS,
                    " FROM jobs WHERE last_error IS NOT NULL ORDER BY created_at LIMIT $1"
                ),
                limit
            ))
            .await
    }

    /// Makes a job due that failed, also one that was given up. Returns false if there is no such job, or it runs now.
    pub async fn job_again(&self, id: &str, now: Timestamp) -> Result<bool, Error> {
        let id = id.to_owned();
        self.0
            .write_aside(tx!(async move |cx| {
                let due = sql!(
                    "UPDATE jobs SET due_at = $2, attempts = CASE WHEN failed_at IS NULL THEN attempts ELSE 0 END,
                                     failed_at = NULL
                     WHERE id = $1 AND last_error IS NOT NULL AND (leased_until IS NULL OR leased_until <= $2)",
                    id,
                    now
                )
                .run(cx)
                .await?;
                Ok(if due == 0 {
                    Change::Undo(false)
                } else {
                    Change::Keep(true)
                })
            }))
            .await
    }
}

//! Summaries of versions of public datasets, written by a model.
//!
//! Invariants:
//! - Only a dataset that anybody may see is summarised, and only of such a one a summary is shown.
//! - A version is summarised once. One process at a time has it in work, and what it writes after its time is dropped.

use std::time::Duration;

use types::{DatasetId, Timestamp, Version};

use crate::query::{sql, text, tx};
use crate::row::{Columns, bigint, row, texts};
use crate::search::SHOWN_DATASET;
use crate::stamps::Touched;
use crate::writer::Change;
use crate::{Error, Store};

/// The part of the database about summaries.
#[derive(Clone, Copy, Debug)]
pub struct Summaries<'s>(&'s Store);

/// A version that a process has in work, to be summarised.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SummaryLease {
    /// The dataset.
    pub project: DatasetId,
    /// Its latest version.
    pub version: Version,
    /// The end of the time for which nobody else begins with it.
    pub until: Timestamp,
}

/// Limits of the work on summaries.
#[derive(Clone, Copy, Debug)]
pub struct SummaryLimits {
    /// Time for which a process has a version to itself.
    pub lease: Duration,
    /// The least time between two summaries of one dataset.
    pub every: Duration,
    /// Number of unusable answers after which a version is given up.
    pub failures: u32,
}

row! {
    /// The summary of a version.
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub struct Summary {
        /// Number of the version.
        pub version: Version,
        /// Text of the summary.
        pub text: String = "summary",
        /// Name of the model that wrote it.
        pub model: String,
        /// Time of the writing.
        pub at: Timestamp = "written_at",
    }
}

impl Store {
    /// Returns the part of the database about summaries.
    pub const fn summaries(&self) -> Summaries<'_> {
        Summaries(self)
    }
}

impl Summaries<'_> {
    /// Takes the latest version of a public dataset that has no summary into work. Returns `None` if there is none to
    /// begin with now, or another process was faster.
    pub async fn take(&self, now: Timestamp, limits: SummaryLimits) -> Result<Option<SummaryLease>, Error> {
        let Some((project, version)) = self.due(now, limits).await? else {
            return Ok(None);
        };
        let until = now.plus(limits.lease);
        let number = bigint("version", version.0)?;
        self.0
            .write_aside(tx!(async move |cx| {
                // The condition is evaluated again on the locked row: another process may have been faster.
                let taken = sql!(
                    "INSERT INTO summaries (project_id, version, failures, due_at) VALUES ($1, $2, 0, $3)
                     ON CONFLICT (project_id, version) DO UPDATE SET due_at = excluded.due_at
                     WHERE summaries.summary IS NULL AND summaries.due_at <= $4",
                    project,
                    number,
                    until,
                    now
                )
                .run(cx)
                .await?;
                let lease = SummaryLease {
                    project,
                    version,
                    until,
                };
                Ok(Change::written_if(taken > 0, (taken > 0).then_some(lease)))
            }))
            .await
    }

    /// Returns a version to summarise, those first that were never tried.
    async fn due(&self, now: Timestamp, limits: SummaryLimits) -> Result<Option<(DatasetId, Version)>, Error> {
        // `earlier` is any other version that was written or tried in the last interval. It bounds what a dataset that
        // merges every second costs. A version that was tried before sorts behind those that never were, so one that
        // always fails delays nobody.
        self.0
            .read(async {
                let row = sql!(
                    text!(
                        "SELECT projects.id AS id, projects.version AS version
                         FROM projects LEFT JOIN summaries
                              ON summaries.project_id = projects.id AND summaries.version = projects.version
                         WHERE ",
                        SHOWN_DATASET,
                        " AND projects.version > 0
                           AND (summaries.project_id IS NULL
                                OR (summaries.summary IS NULL AND summaries.due_at <= $1 AND summaries.failures < $2))
                           AND NOT EXISTS (SELECT 1 FROM summaries AS earlier
                                           WHERE earlier.project_id = projects.id AND earlier.version <> projects.version
                                             AND earlier.due_at > $3)
                         ORDER BY COALESCE(summaries.due_at, 0), projects.id LIMIT 1"
                    ),
                    now,
                    limits.failures,
                    now.minus(limits.every)
                )
                .row_if_any(&mut self.0.readers())
                .await?;
                row.map(|row| Ok((row.get("id")?, row.get("version")?))).transpose()
            })
            .await
    }

    /// Writes the summary of a version. Returns false if the time for it is over, or the dataset is not shown any more.
    ///
    /// # Errors
    /// [`Error::Text`].
    pub async fn write(&self, lease: SummaryLease, text: &str, model: &str, now: Timestamp) -> Result<bool, Error> {
        texts(&[("summary", text), ("model", model)])?;
        let (text, model, number) = (text.to_owned(), model.to_owned(), bigint("version", lease.version.0)?);
        // `due_at` is the lease: if it is another one, a second process took the version meanwhile. The dataset is looked
        // at again, because it may have become private or been taken down while the model wrote.
        let touched = move |_: &bool| Touched::Projects(vec![lease.project]);
        self.0
            .write_touching(
                touched,
                tx!(async move |cx| {
                    let written = sql!(
                        text!(
                            "UPDATE summaries SET summary = $4, model = $5, written_at = $6, due_at = $6
                             WHERE project_id = $1 AND version = $2 AND due_at = $3 AND summary IS NULL
                               AND EXISTS (SELECT 1 FROM projects WHERE projects.id = $1 AND ",
                            SHOWN_DATASET,
                            ")"
                        ),
                        lease.project,
                        number,
                        lease.until,
                        text,
                        model,
                        now
                    )
                    .run(cx)
                    .await?;
                    Ok(Change::written_if(written > 0, written > 0))
                }),
            )
            .await
    }

    /// Counts an answer about a version that could not be used. The next try is due at `next`.
    pub async fn fail(&self, lease: SummaryLease, next: Timestamp) -> Result<(), Error> {
        self.end(lease, 1, next).await
    }

    /// Gives a version back that could not be asked about: it is due again at `next`, after those that were never tried,
    /// and the try does not count.
    pub async fn give_back(&self, lease: SummaryLease, next: Timestamp) -> Result<(), Error> {
        self.end(lease, 0, next).await
    }

    async fn end(&self, lease: SummaryLease, failures: i64, next: Timestamp) -> Result<(), Error> {
        let number = bigint("version", lease.version.0)?;
        self.0
            .write_aside(tx!(async move |cx| {
                sql!(
                    "UPDATE summaries SET failures = failures + $4, due_at = $5
                     WHERE project_id = $1 AND version = $2 AND due_at = $3 AND summary IS NULL",
                    lease.project,
                    number,
                    lease.until,
                    failures,
                    next
                )
                .run(cx)
                .await?;
                Ok(Change::Keep(()))
            }))
            .await
    }

    /// Returns the summaries of a dataset that anybody may see, newest version first.
    pub async fn of(&self, project: DatasetId, limit: u32) -> Result<Vec<Summary>, Error> {
        self.0
            .all(sql!(
                "SELECT summaries.version AS version, summaries.summary AS summary, summaries.model AS model,
                        summaries.written_at AS written_at
                 FROM summaries JOIN projects ON projects.id = summaries.project_id
                 WHERE summaries.project_id = $1 AND summaries.summary IS NOT NULL
                   AND projects.visibility = 'public' AND projects.taken_down_at IS NULL
                 ORDER BY summaries.version DESC LIMIT $2",
                project,
                limit
            ))
            .await
    }
}

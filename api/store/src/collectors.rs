//! Collectors: definitions seen, leases, cursors and runs.
//!
//! Invariants:
//! - A run begins in the transaction that takes the lease, so of many processes one begins the run of a due time.
//! - The end of a run, its cursor and the next due time are one transaction, which only the holder of the lease makes.
//! - A run whose lease ended is marked failed when the next one begins. Its due time is still due.

use std::collections::HashMap;
use std::time::Duration;

use sqlx::AnyConnection;
use types::vocabulary::RunOutcome;
use types::{Timestamp, Version};

use crate::query::{sql, text, tx};
use crate::row::{Columns as _, Row as _, bigint, nested, pair, replace_nul, row, texts};
use crate::writer::Change;
use crate::{Error, Store};

/// Runs of a collector that are kept.
const KEPT_RUNS: i64 = 100;
/// Leases that the end of a lease can be away, as another process may take longer ones.
const FAR: u32 = 10;

row! {
    /// A definition as a process has it.
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub struct SeenCollector {
        /// Name of the collector.
        pub name: String,
        /// Slug of its dataset.
        pub dataset: String,
        /// Title of the dataset.
        pub title: String,
        /// Publisher of the source.
        pub publisher: String,
        /// Id of the licence.
        pub license: String,
        /// Cron expression in UTC.
        pub schedule: String,
    }
}

row! {
    /// A collector as stored.
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub struct Collector {
        /// Definition as it was seen last.
        pub seen: SeenCollector = SeenCollector::COLUMNS => nested,
        /// Time at which a process had the definition last.
        pub seen_at: Timestamp,
        /// Instant from which the next run is due.
        pub next_at: Timestamp,
        /// Runs that failed since the last one that did not.
        pub failures: u32,
        /// End of the lease of the run under way.
        pub leased_until: Option<Timestamp>,
    }
}

impl Collector {
    /// Returns true while a run is under way for which `lease` was taken. A lease that ends much later than a lease can
    /// was given by a clock that was ahead, and counts as ended.
    pub fn is_leased(&self, now: Timestamp, lease: Duration) -> bool {
        let most = now.plus(lease.saturating_mul(FAR));
        self.leased_until.is_some_and(|until| now < until && until <= most)
    }
}

row! {
    /// Numbers of rows of a run.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
    pub struct RunCounts {
        /// Rows that the source gave.
        pub fetched: u64,
        /// Rows that are new in the dataset.
        pub added: u64,
        /// Rows that the dataset had.
        pub known: u64,
        /// Rows that a gate refused; they were left out.
        pub refused: u64,
        /// Rows that are no records of the contract.
        pub failed: u64,
    }
}

row! {
    /// A run as stored.
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub struct CollectorRun {
        /// Id of the run, a version 7 UUID.
        pub id: String,
        /// Instant at which it was due.
        pub due_at: Timestamp,
        /// Time of its start.
        pub started_at: Timestamp,
        /// Time of its end; `None` while it runs.
        pub ended_at: Option<Timestamp>,
        /// Outcome; `None` while it runs.
        pub outcome: Option<RunOutcome>,
        /// Numbers of rows that were fetched, added, known, refused or failed.
        pub counts: RunCounts = RunCounts::COLUMNS => nested,
        /// Latest version that it merged.
        pub version: Option<Version>,
        /// Reason of a failure or a hold: a word, and a sentence for people.
        pub reason: Option<(String, String)> = "reason_code, reason" => pair,
    }
}

/// A run that has begun, with the place where the source was left.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BegunRun {
    /// Instant at which it was due.
    pub due_at: Timestamp,
    /// Place in the source, as JSON.
    pub cursor: Option<String>,
    /// Runs that failed since the last one that did not.
    pub failures: u32,
}

/// End of a run.
#[derive(Clone, Debug)]
pub struct RunEnd {
    /// Outcome that is kept with the run.
    pub outcome: RunOutcome,
    /// Numbers of rows that were fetched, added, known, refused or failed.
    pub counts: RunCounts,
    /// Latest version that it merged.
    pub version: Option<Version>,
    /// Reason of a failure or a hold.
    pub reason: Option<(String, String)>,
    /// New place in the source; `None` leaves it where it is.
    pub cursor: Option<String>,
    /// Instant from which the next run is due.
    pub next_at: Timestamp,
    /// Time of the end.
    pub now: Timestamp,
}

/// The part of the database about collectors.
#[derive(Clone, Copy, Debug)]
pub struct Collectors<'s>(&'s Store);

impl Store {
    /// Returns the part of the database about collectors.
    pub const fn collectors(&self) -> Collectors<'_> {
        Collectors(self)
    }
}

impl Collectors<'_> {
    /// Notes the definitions that a process has. A new one is due at `now`.
    ///
    /// # Errors
    /// [`Error::Text`]
    pub async fn see(&self, seen: Vec<SeenCollector>, now: Timestamp) -> Result<(), Error> {
        for one in &seen {
            texts(&[
                ("name", &one.name),
                ("title", &one.title),
                ("publisher", &one.publisher),
                ("schedule", &one.schedule),
            ])?;
        }
        self.0
            .write_aside(tx!(async move |cx| {
                // A name that is known keeps its due time, cursor and failures: a restart is no
                // reason to run again.
                for one in seen {
                    sql!(
                        "INSERT INTO collectors
                             (name, dataset, title, publisher, license, schedule, seen_at, next_at, failures)
                         VALUES ($1, $2, $3, $4, $5, $6, $7, $7, 0)
                         ON CONFLICT (name) DO UPDATE SET
                             dataset = excluded.dataset, title = excluded.title, publisher = excluded.publisher,
                             license = excluded.license, schedule = excluded.schedule, seen_at = excluded.seen_at",
                        one.name,
                        one.dataset,
                        one.title,
                        one.publisher,
                        one.license,
                        one.schedule,
                        now
                    )
                    .run(cx)
                    .await?;
                }
                Ok(Change::Keep(()))
            }))
            .await
    }

    /// Returns every collector, by name.
    pub async fn all(&self) -> Result<Vec<Collector>, Error> {
        self.0
            .all(sql!(text!(
                "SELECT ",
                Collector::COLUMNS,
                " FROM collectors ORDER BY name"
            )))
            .await
    }

    /// Returns the newest runs of every collector, at most `limit` of each, newest first, by the name of the collector.
    pub async fn runs(&self, limit: u32) -> Result<HashMap<String, Vec<CollectorRun>>, Error> {
        self.0
            .read(async {
                let rows = sql!(
                    "SELECT id, collector, due_at, started_at, ended_at, outcome, fetched, added, known, refused, failed,
                            version, reason_code, reason
                     FROM (SELECT collector_runs.*,
                                  ROW_NUMBER() OVER (PARTITION BY collector ORDER BY id DESC) AS place
                           FROM collector_runs) AS placed
                     WHERE place <= $1 ORDER BY collector, id DESC",
                    limit
                )
                .rows(&mut self.0.readers())
                .await?;
                let mut runs: HashMap<String, Vec<CollectorRun>> = HashMap::new();
                for row in &rows {
                    runs.entry(row.get("collector")?).or_default().push(CollectorRun::of(row)?);
                }
                Ok(runs)
            })
            .await
    }

    /// Begins a run of a collector that is due at `now` and that nobody runs, under a lease until `now + lease`.
    /// `None` if it is not due, or runs. With `at_once` it need not be due.
    pub async fn begin(
        &self,
        name: &str,
        run: &str,
        now: Timestamp,
        lease: Duration,
        at_once: bool,
    ) -> Result<Option<BegunRun>, Error> {
        let (name, run) = (name.to_owned(), run.to_owned());
        self.0
            .write_aside(tx!(async move |cx| {
                // The row is locked by writing it, and the conditions hold on the locked row. That on the lease is
                // the one of `Collector::is_leased`.
                let taken = sql!(
                    "UPDATE collectors SET run_id = $2, leased_until = $4
                     WHERE name = $1 AND (next_at <= $3 OR $5 = 1)
                         AND (leased_until IS NULL OR leased_until <= $3 OR leased_until > $6)
                     RETURNING next_at, cursor, failures",
                    name.clone(),
                    run.clone(),
                    now,
                    now.plus(lease),
                    at_once,
                    now.plus(lease.saturating_mul(FAR))
                )
                .row_if_any(cx)
                .await?;
                let Some(row) = taken else {
                    return Ok(Change::Nothing(None));
                };
                let begun = BegunRun {
                    due_at: row.get("next_at")?,
                    cursor: row.get("cursor")?,
                    failures: row.get("failures")?,
                };
                interrupt(cx, &name, now).await?;
                sql!(
                    "INSERT INTO collector_runs
                         (id, collector, due_at, started_at, fetched, added, known, refused, failed)
                     VALUES ($1, $2, $3, $4, 0, 0, 0, 0, 0)",
                    run,
                    name,
                    begun.due_at,
                    now
                )
                .run(cx)
                .await?;
                Ok(Change::Keep(Some(begun)))
            }))
            .await
    }

    /// Extends the lease of a run. Returns false if the lease is lost.
    pub async fn renew(&self, name: &str, run: &str, until: Timestamp) -> Result<bool, Error> {
        let (name, run) = (name.to_owned(), run.to_owned());
        self.0
            .write_aside(tx!(async move |cx| {
                // By the run and not by the time: a lease that ended and that nobody took is still
                // this run's to extend.
                let held = sql!(
                    "UPDATE collectors SET leased_until = $3 WHERE name = $1 AND run_id = $2",
                    name,
                    run,
                    until
                )
                .run(cx)
                .await?
                    > 0;
                Ok(Change::written_if(held, held))
            }))
            .await
    }

    /// Ends a run. Returns false if its lease is lost; nothing changes then.
    pub async fn end(&self, name: &str, run: &str, end: RunEnd) -> Result<bool, Error> {
        let (name, run) = (name.to_owned(), run.to_owned());
        self.0
            .write_aside(tx!(async move |cx| {
                let failures = i64::from(end.outcome == RunOutcome::Failed);
                let held = sql!(
                    "UPDATE collectors SET run_id = NULL, leased_until = NULL, next_at = $3,
                         cursor = COALESCE($4, cursor),
                         failures = CASE WHEN $5 = 1 THEN failures + 1 ELSE 0 END
                     WHERE name = $1 AND run_id = $2",
                    name.clone(),
                    run.clone(),
                    end.next_at,
                    end.cursor.as_deref().map(|text| replace_nul(text).into_owned()),
                    failures
                )
                .run(cx)
                .await?;
                if held == 0 {
                    return Ok(Change::Undo(false));
                }
                // In the transaction that frees the lease: a run without an end would be marked
                // interrupted by the next.
                finish(cx, &run, &end).await?;
                prune(cx, &name).await?;
                Ok(Change::Keep(true))
            }))
            .await
    }

    /// Gives a run back that was cut short by no fault of its source: it is due again, at `now` at the latest, and leaves
    /// no trace. Returns false if its lease is lost; nothing changes then.
    pub async fn give_back(&self, name: &str, run: &str, now: Timestamp) -> Result<bool, Error> {
        let (name, run) = (name.to_owned(), run.to_owned());
        self.0
            .write_aside(tx!(async move |cx| {
                let held = sql!(
                    "UPDATE collectors SET run_id = NULL, leased_until = NULL,
                         next_at = CASE WHEN next_at > $3 THEN $3 ELSE next_at END
                     WHERE name = $1 AND run_id = $2",
                    name,
                    run.clone(),
                    now
                )
                .run(cx)
                .await?;
                if held == 0 {
                    return Ok(Change::Undo(false));
                }
                // A run without an end would be marked interrupted by the next.
                sql!("DELETE FROM collector_runs WHERE id = $1", run).run(cx).await?;
                Ok(Change::Keep(true))
            }))
            .await
    }

    /// Sets the due time of a collector that does not run.
    pub async fn reschedule(&self, name: &str, next_at: Timestamp) -> Result<(), Error> {
        let name = name.to_owned();
        self.0
            .write_aside(tx!(async move |cx| {
                // Not during a run, whose end sets the time anyway.
                sql!(
                    "UPDATE collectors SET next_at = $2 WHERE name = $1 AND run_id IS NULL",
                    name,
                    next_at
                )
                .run(cx)
                .await?;
                Ok(Change::Keep(()))
            }))
            .await
    }
}

/// Forgets the places in the sources of a project's collectors, so that their next runs read everything. A run under way
/// loses its lease: its place is that of before.
pub(crate) async fn forget_places(cx: &mut AnyConnection, project: &str) -> Result<(), Error> {
    sql!(
        "UPDATE collectors SET cursor = NULL, run_id = NULL, leased_until = NULL
         WHERE dataset = (SELECT slug FROM projects WHERE id = $1)",
        project
    )
    .run(cx)
    .await?;
    Ok(())
}

/// Marks the runs of a collector failed that have no end: their process ended, or lost its lease.
async fn interrupt(cx: &mut AnyConnection, name: &str, now: Timestamp) -> Result<(), Error> {
    sql!(
        "UPDATE collector_runs SET ended_at = $2, outcome = 'failed', reason_code = 'interrupted',
             reason = 'the process ended during the run; the next run goes on'
         WHERE collector = $1 AND ended_at IS NULL",
        name,
        now
    )
    .run(cx)
    .await?;
    Ok(())
}

async fn finish(cx: &mut AnyConnection, run: &str, end: &RunEnd) -> Result<(), Error> {
    let RunCounts {
        fetched,
        added,
        known,
        refused,
        failed,
    } = end.counts;
    let (code, reason) = end.reason.clone().unzip();
    sql!(
        "UPDATE collector_runs SET ended_at = $2, outcome = $3, fetched = $4, added = $5, known = $6, refused = $7,
             failed = $8, version = $9, reason_code = $10, reason = $11
         WHERE id = $1",
        run,
        end.now,
        end.outcome,
        bigint("fetched", fetched)?,
        bigint("added", added)?,
        bigint("known", known)?,
        bigint("refused", refused)?,
        bigint("failed", failed)?,
        end.version.map(|version| bigint("version", version.0)).transpose()?,
        code,
        reason.map(|text| replace_nul(&text).into_owned())
    )
    .run(cx)
    .await?;
    Ok(())
}

/// Deletes the runs of a collector beyond those that are kept.
async fn prune(cx: &mut AnyConnection, name: &str) -> Result<(), Error> {
    sql!(
        "DELETE FROM collector_runs WHERE collector = $1 AND id NOT IN
         (SELECT id FROM collector_runs WHERE collector = $1 ORDER BY id DESC LIMIT $2)",
        name,
        KEPT_RUNS
    )
    .run(cx)
    .await?;
    Ok(())
}

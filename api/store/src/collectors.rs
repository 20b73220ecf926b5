//! Collectors: definitions seen, leases, cursors and runs.
//!
//! Invariants:
//! - A run begins in the transaction that takes the lease, so of many processes one begins the run of a due time.
//! - The end of a run, its cursor and the next due time are one transaction, which only the holder of the lease makes.
//! - A run whose lease ended is marked failed when the next one begins. Its due time is still due.

use std::collections::HashMap;
use std::time::Duration;

use sqlx::AnyConnection;
use sqlx::any::AnyRow;
use types::vocabulary::RunOutcome;
use types::{Timestamp, Version};

use crate::row::{Columns, bigint, replace_nul, texts};
use crate::writer::Change;
use crate::{Error, Store};

/// Runs of a collector that are kept.
const KEPT_RUNS: i64 = 100;
/// Leases that the end of a lease can be away, as another process may take longer ones.
const FAR: u32 = 10;

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

/// A collector as stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Collector {
    /// Definition as it was seen last.
    pub seen: SeenCollector,
    /// Time at which a process had the definition last.
    pub seen_at: Timestamp,
    /// Instant from which the next run is due.
    pub next_at: Timestamp,
    /// Runs that failed since the last one that did not.
    pub failures: u32,
    /// End of the lease of the run under way.
    pub leased_until: Option<Timestamp>,
}

impl Collector {
    /// Returns true while a run is under way for which `lease` was taken. A lease that ends much later than a lease can
    /// was given by a clock that was ahead, and counts as ended.
    pub fn is_leased(&self, now: Timestamp, lease: Duration) -> bool {
        let most = now.plus(lease.saturating_mul(FAR));
        self.leased_until.is_some_and(|until| now < until && until <= most)
    }
}

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
    pub counts: RunCounts,
    /// Latest version that it merged.
    pub version: Option<Version>,
    /// Reason of a failure or a hold: a word, and a sentence for people.
    pub reason: Option<(String, String)>,
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
            .write_aside(move |cx| {
                Box::pin(async move {
                    // A name that is known keeps its due time, cursor and failures: a restart is no
                    // reason to run again.
                    for one in seen {
                        sqlx::query(
                            "INSERT INTO collectors
                                 (name, dataset, title, publisher, license, schedule, seen_at, next_at, failures)
                             VALUES ($1, $2, $3, $4, $5, $6, $7, $7, 0)
                             ON CONFLICT (name) DO UPDATE SET
                                 dataset = excluded.dataset, title = excluded.title, publisher = excluded.publisher,
                                 license = excluded.license, schedule = excluded.schedule, seen_at = excluded.seen_at",
                        )
                        .bind(one.name)
                        .bind(one.dataset)
                        .bind(one.title)
                        .bind(one.publisher)
                        .bind(one.license)
                        .bind(one.schedule)
                        .bind(now.micros())
                        .execute(&mut *cx)
                        .await?;
                    }
                    Ok(Change::Keep(()))
                })
            })
            .await
    }

    /// Returns every collector, by name.
    pub async fn all(&self) -> Result<Vec<Collector>, Error> {
        self.0
            .read(async {
                let rows = sqlx::query(
                    "SELECT name, dataset, title, publisher, license, schedule, seen_at, next_at, failures, leased_until
                     FROM collectors ORDER BY name",
                )
                .fetch_all(self.0.readers())
                .await?;
                rows.iter().map(collector).collect()
            })
            .await
    }

    /// Returns the newest runs of every collector, at most `limit` of each, newest first, by the name of the collector.
    pub async fn runs(&self, limit: u32) -> Result<HashMap<String, Vec<CollectorRun>>, Error> {
        self.0
            .read(async {
                let rows = sqlx::query(
                    "SELECT id, collector, due_at, started_at, ended_at, outcome, fetched, added, known, refused, failed,
                            version, reason_code, reason
                     FROM (SELECT collector_runs.*,
                                  ROW_NUMBER() OVER (PARTITION BY collector ORDER BY id DESC) AS place
                           FROM collector_runs) AS placed
                     WHERE place <= $1 ORDER BY collector, id DESC",
                )
                .bind(i64::from(limit))
                .fetch_all(self.0.readers())
                .await?;
                let mut runs: HashMap<String, Vec<CollectorRun>> = HashMap::new();
                for row in &rows {
                    runs.entry(row.value("collector")?).or_default().push(run(row)?);
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
            .write_aside(move |cx| {
                Box::pin(async move {
                    // The row is locked by writing it, and the conditions hold on the locked row. That on the lease is
                    // the one of `Collector::is_leased`.
                    let taken = sqlx::query(
                        "UPDATE collectors SET run_id = $2, leased_until = $4
                         WHERE name = $1 AND (next_at <= $3 OR $5 = 1)
                             AND (leased_until IS NULL OR leased_until <= $3 OR leased_until > $6)
                         RETURNING next_at, cursor, failures",
                    )
                    .bind(name.clone())
                    .bind(run.clone())
                    .bind(now.micros())
                    .bind(now.plus(lease).micros())
                    .bind(i64::from(at_once))
                    .bind(now.plus(lease.saturating_mul(FAR)).micros())
                    .fetch_optional(&mut *cx)
                    .await?;
                    let Some(row) = taken else {
                        return Ok(Change::Undo(None));
                    };
                    let begun = BegunRun {
                        due_at: row.time("next_at")?,
                        cursor: row.value("cursor")?,
                        failures: row.number("failures")?,
                    };
                    interrupt(cx, &name, now).await?;
                    sqlx::query(
                        "INSERT INTO collector_runs
                             (id, collector, due_at, started_at, fetched, added, known, refused, failed)
                         VALUES ($1, $2, $3, $4, 0, 0, 0, 0, 0)",
                    )
                    .bind(run)
                    .bind(name)
                    .bind(begun.due_at.micros())
                    .bind(now.micros())
                    .execute(&mut *cx)
                    .await?;
                    Ok(Change::Keep(Some(begun)))
                })
            })
            .await
    }

    /// Extends the lease of a run. Returns false if the lease is lost.
    pub async fn renew(&self, name: &str, run: &str, until: Timestamp) -> Result<bool, Error> {
        let (name, run) = (name.to_owned(), run.to_owned());
        self.0
            .write_aside(move |cx| {
                Box::pin(async move {
                    // By the run and not by the time: a lease that ended and that nobody took is still
                    // this run's to extend.
                    let held = sqlx::query("UPDATE collectors SET leased_until = $3 WHERE name = $1 AND run_id = $2")
                        .bind(name)
                        .bind(run)
                        .bind(until.micros())
                        .execute(cx)
                        .await?
                        .rows_affected()
                        > 0;
                    Ok(if held { Change::Keep(true) } else { Change::Undo(false) })
                })
            })
            .await
    }

    /// Ends a run. Returns false if its lease is lost; nothing changes then.
    pub async fn end(&self, name: &str, run: &str, end: RunEnd) -> Result<bool, Error> {
        let (name, run) = (name.to_owned(), run.to_owned());
        self.0
            .write_aside(move |cx| {
                Box::pin(async move {
                    let failures = i64::from(end.outcome == RunOutcome::Failed);
                    let held = sqlx::query(
                        "UPDATE collectors SET run_id = NULL, leased_until = NULL, next_at = $3,
                             cursor = COALESCE($4, cursor),
                             failures = CASE WHEN $5 = 1 THEN failures + 1 ELSE 0 END
                         WHERE name = $1 AND run_id = $2",
                    )
                    .bind(name.clone())
                    .bind(run.clone())
                    .bind(end.next_at.micros())
                    .bind(end.cursor.as_deref().map(|text| replace_nul(text).into_owned()))
                    .bind(failures)
                    .execute(&mut *cx)
                    .await?;
                    if held.rows_affected() == 0 {
                        return Ok(Change::Undo(false));
                    }
                    // In the transaction that frees the lease: a run without an end would be marked
                    // interrupted by the next.
                    finish(cx, &run, &end).await?;
                    prune(cx, &name).await?;
                    Ok(Change::Keep(true))
                })
            })
            .await
    }

    /// Gives a run back that was cut short by no fault of its source: it is due again, at `now` at the latest, and leaves
    /// no trace. Returns false if its lease is lost; nothing changes then.
    pub async fn give_back(&self, name: &str, run: &str, now: Timestamp) -> Result<bool, Error> {
        let (name, run) = (name.to_owned(), run.to_owned());
        self.0
            .write_aside(move |cx| {
                Box::pin(async move {
                    let held = sqlx::query(
                        "UPDATE collectors SET run_id = NULL, leased_until = NULL,
                             next_at = CASE WHEN next_at > $3 THEN $3 ELSE next_at END
                         WHERE name = $1 AND run_id = $2",
                    )
                    .bind(name)
                    .bind(run.clone())
                    .bind(now.micros())
                    .execute(&mut *cx)
                    .await?;
                    if held.rows_affected() == 0 {
                        return Ok(Change::Undo(false));
                    }
                    // A run without an end would be marked interrupted by the next.
                    sqlx::query("DELETE FROM collector_runs WHERE id = $1")
                        .bind(run)
                        .execute(cx)
                        .await?;
                    Ok(Change::Keep(true))
                })
            })
            .await
    }

    /// Sets the due time of a collector that does not run.
    pub async fn reschedule(&self, name: &str, next_at: Timestamp) -> Result<(), Error> {
        let name = name.to_owned();
        self.0
            .write_aside(move |cx| {
                Box::pin(async move {
                    // Not during a run, whose end sets the time anyway.
                    sqlx::query("UPDATE collectors SET next_at = $2 WHERE name = $1 AND run_id IS NULL")
                        .bind(name)
                        .bind(next_at.micros())
                        .execute(cx)
                        .await?;
                    Ok(Change::Keep(()))
                })
            })
            .await
    }
}

/// Forgets the places in the sources of a project's collectors, so that their next runs read everything. A run under way
/// loses its lease: its place is that of before.
pub(crate) async fn forget_places(cx: &mut AnyConnection, project: &str) -> Result<(), Error> {
    sqlx::query(
        "UPDATE collectors SET cursor = NULL, run_id = NULL, leased_until = NULL
         WHERE dataset = (SELECT slug FROM projects WHERE id = $1)",
    )
    .bind(project.to_owned())
    .execute(cx)
    .await?;
    Ok(())
}

/// Marks the runs of a collector failed that have no end: their process ended, or lost its lease.
async fn interrupt(cx: &mut AnyConnection, name: &str, now: Timestamp) -> Result<(), Error> {
    sqlx::query(
        "UPDATE collector_runs SET ended_at = $2, outcome = 'failed', reason_code = 'interrupted',
             reason = 'the process ended during the run; the next run goes on'
         WHERE collector = $1 AND ended_at IS NULL",
    )
    .bind(name.to_owned())
    .bind(now.micros())
    .execute(cx)
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
    sqlx::query(
        "UPDATE collector_runs SET ended_at = $2, outcome = $3, fetched = $4, added = $5, known = $6, refused = $7,
             failed = $8, version = $9, reason_code = $10, reason = $11
         WHERE id = $1",
    )
    .bind(run.to_owned())
    .bind(end.now.micros())
    .bind(end.outcome.as_str())
    .bind(bigint("fetched", fetched)?)
    .bind(bigint("added", added)?)
    .bind(bigint("known", known)?)
    .bind(bigint("refused", refused)?)
    .bind(bigint("failed", failed)?)
    .bind(end.version.map(|version| bigint("version", version.0)).transpose()?)
    .bind(code)
    .bind(reason.map(|text| replace_nul(&text).into_owned()))
    .execute(cx)
    .await?;
    Ok(())
}

/// Deletes the runs of a collector beyond those that are kept.
async fn prune(cx: &mut AnyConnection, name: &str) -> Result<(), Error> {
    sqlx::query(
        "DELETE FROM collector_runs WHERE collector = $1 AND id NOT IN
             (SELECT id FROM collector_runs WHERE collector = $1 ORDER BY id DESC LIMIT $2)",
    )
    .bind(name.to_owned())
    .bind(KEPT_RUNS)
    .execute(cx)
    .await?;
    Ok(())
}

fn collector(row: &AnyRow) -> Result<Collector, Error> {
    Ok(Collector {
        seen: SeenCollector {
            name: row.value("name")?,
            dataset: row.value("dataset")?,
            title: row.value("title")?,
            publisher: row.value("publisher")?,
            license: row.value("license")?,
            schedule: row.value("schedule")?,
        },
        seen_at: row.time("seen_at")?,
        next_at: row.time("next_at")?,
        failures: row.number("failures")?,
        leased_until: row.time_optional("leased_until")?,
    })
}

fn run(row: &AnyRow) -> Result<CollectorRun, Error> {
    let code: Option<String> = row.value("reason_code")?;
    Ok(CollectorRun {
        id: row.value("id")?,
        due_at: row.time("due_at")?,
        started_at: row.time("started_at")?,
        ended_at: row.time_optional("ended_at")?,
        outcome: row.parsed_optional("outcome")?,
        counts: RunCounts {
            fetched: row.number("fetched")?,
            added: row.number("added")?,
            known: row.number("known")?,
            refused: row.number("refused")?,
            failed: row.number("failed")?,
        },
        version: row.number_optional("version")?.map(Version),
        reason: code.zip(row.value("reason")?),
    })
}

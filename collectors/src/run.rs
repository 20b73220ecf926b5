//! One run of a collector, from the source to the outcomes of its batches.
//!
//! Invariants:
//! - Nothing is submitted before everything is fetched, mapped and judged.
//! - The report has a cursor only if every row is in the dataset or was refused: a run that fails, is held or ends in the
//!   middle leaves the place in the source where it was.

use serde_json::Value;
use types::{Version, fault};

use store::{RunCounts, RunOutcome};

use crate::cursor::Cursor;
use crate::fetch::{FetchedRecords, Fetcher};
use crate::intake::{Intake, JudgedRecord, SubmitOutcome};
use crate::source::CollectorSource;
use crate::{RunFailure, mapping};

/// Most rows of a batch: those of a contribution.
const BATCH_ROWS: usize = 500;
/// Most bytes of a batch, well below the largest body of a contribution.
const BATCH_BYTES: usize = 1 << 20;
/// A source of which more than one row in this many is no record has changed its form.
const MOST_FAILED: usize = 2;

/// Result of a run.
#[derive(Clone, Debug)]
pub struct RunReport {
    /// Outcome that is kept with the run.
    pub outcome: RunOutcome,
    /// Numbers of rows that were fetched, added, known, refused or failed.
    pub counts: RunCounts,
    /// Latest version that the run merged.
    pub version: Option<Version>,
    /// Reason of a failure or a hold.
    pub failure: Option<RunFailure>,
    /// New place in the source, as text.
    pub cursor: Option<String>,
}

/// Runs a collector once. `run` is part of the idempotency key of each batch; `cursor` is the place in the source.
pub async fn collect(
    source: &CollectorSource,
    fetcher: &Fetcher,
    intake: &dyn Intake,
    run: &str,
    cursor: Option<&str>,
) -> RunReport {
    let mut report = RunReport {
        outcome: RunOutcome::Failed,
        counts: RunCounts::default(),
        version: None,
        failure: None,
        cursor: None,
    };
    let before = Cursor::parse(cursor, source.fingerprint());
    match attempt(source, fetcher, intake, run, before, &mut report).await {
        Ok((outcome, cursor)) => {
            report.outcome = outcome;
            report.cursor = cursor.map(|cursor| cursor.text());
        }
        Err(failure) => report.failure = Some(failure),
    }
    report
}

async fn attempt(
    source: &CollectorSource,
    fetcher: &Fetcher,
    intake: &dyn Intake,
    run: &str,
    before: Option<Cursor>,
    report: &mut RunReport,
) -> Result<(RunOutcome, Option<Cursor>), RunFailure> {
    fault::point("collect.begun");
    let (raw, cursor) = match fetcher.fetch(source, before).await? {
        FetchedRecords::Unchanged(cursor) => return Ok((RunOutcome::Unchanged, Some(cursor))),
        FetchedRecords::Records(raw, cursor) => (raw, cursor),
    };
    fault::point("collect.fetched");
    let rows = mapped(source, &raw, &mut report.counts)?;
    // The rows of a large source would otherwise be in memory twice for the rest of the run.
    drop(raw);
    // Only now: a source that fails its checks makes no dataset.
    intake.prepare(source).await?;
    let (new, is_held) = judged(source, intake, rows, &mut report.counts).await?;
    fault::point("collect.judged");
    let mut all_decided = !is_held;
    for (number, batch) in batches(&new).enumerate() {
        // The key has the run's id: repeating a call within the run submits once, and the next run is
        // not answered with the outcome of this one.
        all_decided &= submit(source, intake, batch, &format!("collect-{run}-{number}"), report).await?;
        fault::point("collect.submitted");
    }
    let outcome = if !all_decided {
        report.failure = Some(RunFailure::new(
            "held",
            "rows wait for their review; the next run sends them again",
        ));
        RunOutcome::Held
    } else if report.version.is_some() {
        RunOutcome::Merged
    } else {
        RunOutcome::Unchanged
    };
    Ok((outcome, all_decided.then_some(cursor)))
}

/// Maps the records of the source, and counts those that are no record of the contract.
fn mapped(source: &CollectorSource, raw: &[Value], counts: &mut RunCounts) -> Result<Vec<Value>, RunFailure> {
    let rows: Vec<Value> = raw.iter().filter_map(|raw| mapping::record(source, raw)).collect();
    let failed = raw.len() - rows.len();
    counts.fetched = raw.len() as u64;
    counts.failed = failed as u64;
    // A few odd rows are the source's own. When most fail, the definition is out of date, and
    // submitting the rest would hide it.
    if failed * MOST_FAILED > raw.len() {
        return Err(RunFailure::new(
            "schema_changed",
            "most rows of the source do not have the fields of its definition",
        ));
    }
    Ok(rows)
}

/// Judges rows by dry runs, and returns those that would be merged, and whether rows cannot be judged now.
async fn judged(
    source: &CollectorSource,
    intake: &dyn Intake,
    mut rows: Vec<Value>,
    counts: &mut RunCounts,
) -> Result<(Vec<Value>, bool), RunFailure> {
    let (mut is_new, mut is_held) = (Vec::with_capacity(rows.len()), false);
    for batch in batches(&rows) {
        for verdict in intake.judge(source.dataset(), batch).await? {
            is_new.push(verdict == JudgedRecord::New);
            match verdict {
                JudgedRecord::New => {}
                JudgedRecord::Known => counts.known += 1,
                JudgedRecord::Refused => counts.refused += 1,
                // The row is not submitted and the cursor stays, so the next run judges it again.
                JudgedRecord::Held => is_held = true,
            }
        }
    }
    let mut is_new = is_new.into_iter();
    rows.retain(|_| is_new.next() == Some(true));
    Ok((rows, is_held))
}

/// Submits a batch. Returns false if it is not decided.
async fn submit(
    source: &CollectorSource,
    intake: &dyn Intake,
    batch: &[Value],
    key: &str,
    report: &mut RunReport,
) -> Result<bool, RunFailure> {
    let rows = batch.len() as u64;
    match intake.submit(source, batch, key).await? {
        SubmitOutcome::Merged { version, accepted } => {
            report.counts.added += accepted;
            report.counts.known += rows.saturating_sub(accepted);
            report.version = Some(Version(version));
            Ok(true)
        }
        SubmitOutcome::Duplicates => {
            report.counts.known += rows;
            Ok(true)
        }
        SubmitOutcome::Held => Ok(false),
        // The dry run let every row pass, so the gates have changed since; the next run asks them again.
        SubmitOutcome::Refused => Err(RunFailure::new(
            "refused",
            "a gate refused a batch that its dry run let pass",
        )),
    }
}

/// Cuts rows into batches by number and size. A row is never cut.
fn batches(rows: &[Value]) -> impl Iterator<Item = &[Value]> {
    let mut rest = rows;
    std::iter::from_fn(move || {
        let mut bytes = 0;
        // The first row of a batch is always taken, so a row above the limit does not end the batches;
        // the service refuses it by name.
        let fitting = rest.iter().take(BATCH_ROWS).take_while(|row| {
            let is_first = bytes == 0;
            bytes += row.to_string().len();
            is_first || bytes <= BATCH_BYTES
        });
        let count = fitting.count();
        let (batch, others) = rest.split_at(count);
        rest = others;
        (!batch.is_empty()).then_some(batch)
    })
}

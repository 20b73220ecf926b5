//! Operation that lists the collectors of the platform with their latest runs.
//!
//! Invariant: an answer has no address of a source and no text of an error: a reason is one of the sentences that
//! collectors have.

use std::time::Duration;

use schemars::JsonSchema;
use serde::Serialize;
use store::{Collector, CollectorRun, RunOutcome};
use types::Timestamp;

use crate::call::answer::JsonReply;
use crate::call::cx::Cx;
use crate::call::operation::Operations;
use crate::call::spec::Spec;
use crate::call::wire::{BatchReason, NoInput, WireInstant};
use crate::error::ApiError;

/// Runs of each collector in an answer.
const RUNS: u32 = 30;
/// Time after which a collector that no process has is left out.
const FORGOTTEN: Duration = Duration::from_hours(48);

pub(super) fn add(table: &mut Operations) {
    table.add(
        Spec {
            name: "list_collectors",
            path: "/collectors",
            summary: "The collectors of the platform, with their latest runs",
            description: "Collectors add public facts to public, free datasets on a schedule, through the gates that \
                          judge every contribution.",
            tag: "service",
            ..Spec::BASE
        },
        &[],
        list,
    );
}

/// The collectors, by name.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "List")]
struct CollectorList {
    items: Vec<CollectorEntry>,
    total: usize,
}

/// Collector that feeds one dataset.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "Entry")]
#[serde(rename_all = "camelCase")]
struct CollectorEntry {
    name: String,
    /// Slug of its dataset.
    dataset: String,
    title: String,
    /// Publisher of the source.
    publisher: String,
    /// Id of the licence of the dataset.
    license: String,
    /// Cron expression in UTC.
    schedule: String,
    /// Time from which the next run is due.
    next_run_at: WireInstant,
    /// True while a run is under way.
    running: bool,
    /// Number of failed runs since the last one that did not fail.
    failures: u32,
    /// Its runs, newest first, at most 30.
    runs: Vec<CollectorRunView>,
}

/// A run of a collector.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "Run")]
#[serde(rename_all = "camelCase")]
struct CollectorRunView {
    id: String,
    /// Outcome; absent while it runs.
    #[serde(skip_serializing_if = "Option::is_none")]
    outcome: Option<RunOutcome>,
    due_at: WireInstant,
    started_at: WireInstant,
    #[serde(skip_serializing_if = "Option::is_none")]
    duration_ms: Option<u64>,
    /// Number of rows that the source gave.
    fetched: u64,
    /// Number of rows that were new.
    new: u64,
    /// Number of rows that the dataset had.
    known: u64,
    /// Number of rows that a gate refused; they were left out.
    refused: u64,
    /// Number of rows that are no records of the contract.
    failed: u64,
    /// Latest version that the run merged.
    #[serde(skip_serializing_if = "Option::is_none")]
    version: Option<u64>,
    /// Reason of a failure or a hold.
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<BatchReason>,
}

async fn list(cx: Cx, _: NoInput) -> Result<JsonReply<CollectorList>, ApiError> {
    let items: Vec<_> = current(&cx, RUNS)
        .await?
        .into_iter()
        .map(|(collector, runs)| entry(collector, runs, cx.now))
        .collect();
    Ok(JsonReply::ok(CollectorList {
        total: items.len(),
        items,
    }))
}

/// Returns the collectors that a process has, each with its newest runs.
pub(super) async fn current(cx: &Cx, runs: u32) -> Result<Vec<(Collector, Vec<CollectorRun>)>, ApiError> {
    let collectors = cx.app.store.collectors();
    let (all, mut runs) = tokio::try_join!(collectors.all(), collectors.runs(runs))?;
    let current = all
        .into_iter()
        // A collector that no build has any more leaves its row, which is not shown for ever.
        .filter(|collector| cx.now.since(collector.seen_at) < FORGOTTEN);
    Ok(current
        .map(|collector| {
            let runs = runs.remove(&collector.seen.name).unwrap_or_default();
            (collector, runs)
        })
        .collect())
}

/// Returns true while a process holds the lease of a run.
pub(super) fn is_running(collector: &Collector, now: Timestamp) -> bool {
    // A process that died leaves its run without an end; its lease ends all the same.
    collector.leased_until.is_some_and(|until| until > now)
}

fn entry(collector: Collector, runs: Vec<CollectorRun>, now: Timestamp) -> CollectorEntry {
    let running = is_running(&collector, now);
    let seen = collector.seen;
    CollectorEntry {
        name: seen.name,
        dataset: seen.dataset,
        title: seen.title,
        publisher: seen.publisher,
        license: seen.license,
        schedule: seen.schedule,
        next_run_at: collector.next_at.into(),
        running,
        failures: collector.failures,
        runs: runs.into_iter().map(run).collect(),
    }
}

fn run(run: CollectorRun) -> CollectorRunView {
    let duration = run.ended_at.map(|ended| ended.since(run.started_at).as_millis());
    CollectorRunView {
        id: run.id,
        outcome: run.outcome,
        due_at: run.due_at.into(),
        started_at: run.started_at.into(),
        duration_ms: duration.map(|millis| u64::try_from(millis).unwrap_or(u64::MAX)),
        fetched: run.counts.fetched,
        new: run.counts.added,
        known: run.counts.known,
        refused: run.counts.refused,
        failed: run.counts.failed,
        version: run.version.map(|version| version.0),
        reason: run.reason.map(|(code, message)| BatchReason::rejected(code, message)),
    }
}

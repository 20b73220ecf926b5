//! Public pages of the collectors.
//!
//! Invariant: a page shows what `GET /collectors` answers, and the figures of the public dataset.

use std::time::Duration;

use pages::{CollectorPage, PublicCollector, PublicCollectorsPage, RunBar};
use schemars::JsonSchema;
use serde::Deserialize;
use store::{Collector, CollectorRun, RunOutcome};

use super::page;
use crate::call::cx::Cx;
use crate::call::operation::Operations;
use crate::call::view::PageResponse;
use crate::call::wire::NoInput;
use crate::error::ApiError;
use crate::ops::collectors::{current, is_running};
use crate::ops::console::logged_run;
use crate::ops::page_kit::{missing, page_layout};

/// Runs of the small chart of a collector.
const CHART_RUNS: u32 = 20;
/// Time after which a run that is due has not begun in time.
const LATE: Duration = Duration::from_hours(1);
/// Time of the figure of new rows.
const DAY: Duration = Duration::from_hours(24);

pub(super) fn add(table: &mut Operations) {
    table.add(page("public_collectors_page", "/collectors", "Collectors"), &[], list);
    table.add(page("collector_page", "/collectors/{name}", "A collector"), &[], show);
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct CollectorPath {
    /// Name of the collector.
    #[schemars(length(max = 100))]
    name: String,
}

async fn list(cx: Cx, _: NoInput) -> Result<PageResponse, ApiError> {
    let current = current(&cx, CHART_RUNS).await?;
    let runs = current.iter().flat_map(|(_, runs)| runs);
    let lately = runs.filter(|run| cx.now.since(run.started_at) < DAY);
    let new_rows = lately.map(|run| run.counts.added).fold(0, u64::saturating_add);
    let mut rows = Vec::with_capacity(current.len());
    for (collector, runs) in &current {
        rows.push(view(&cx, collector, runs).await?);
    }
    PageResponse::page(&PublicCollectorsPage {
        chrome: page_layout(&cx).await?,
        rows,
        new_rows,
    })
}

async fn show(cx: Cx, input: CollectorPath) -> Result<PageResponse, ApiError> {
    let current = current(&cx, CHART_RUNS).await?;
    let found = current.iter().find(|(collector, _)| collector.seen.name == input.name);
    let (collector, runs) = found.ok_or_else(|| missing("collector"))?;
    PageResponse::page(&CollectorPage {
        chrome: page_layout(&cx).await?,
        collector: view(&cx, collector, runs).await?,
        runs: runs.iter().map(|run| logged_run(collector, run)).collect(),
    })
}

async fn view(cx: &Cx, collector: &Collector, runs: &[CollectorRun]) -> Result<PublicCollector, ApiError> {
    let seen = &collector.seen;
    let dataset = cx.app.store.project_by_slug(&seen.dataset, None).await?;
    let is_good = |run: &&CollectorRun| matches!(run.outcome, Some(RunOutcome::Merged | RunOutcome::Unchanged));
    let good = runs.iter().find(is_good);
    let failure = runs.first().filter(|_| collector.failures > 0);
    let is_due = cx.now > collector.next_at.plus(LATE);
    Ok(PublicCollector {
        name: seen.name.clone(),
        dataset: seen.dataset.clone(),
        title: seen.title.clone(),
        publisher: seen.publisher.clone(),
        license: seen.license.clone(),
        schedule: seen.schedule.clone(),
        failures: collector.failures,
        is_late: is_due && !is_running(collector, cx.now),
        next_at: collector.next_at,
        runs: runs.iter().rev().map(bar).collect(),
        last_good: good.map(|run| (run.started_at, run.counts.added)),
        rows: dataset.map(|dataset| dataset.record_count),
        reason: failure
            .and_then(|run| run.reason.as_ref())
            .map(|(_, message)| message.clone()),
    })
}

fn bar(run: &CollectorRun) -> RunBar {
    RunBar {
        new: run.counts.added,
        is_failed: run.outcome == Some(RunOutcome::Failed),
    }
}

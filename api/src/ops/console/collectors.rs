//! Page of the collectors: if the sources run.

use pages::console::{CollectorRow, CollectorRunRow, CollectorState, CollectorsPage};
use store::{Collector, CollectorRun, RunOutcome};

use crate::call::cx::Cx;
use crate::call::operation::Operations;
use crate::call::view::PageResponse;
use crate::call::wire::NoInput;
use crate::error::ApiError;
use crate::ops::collectors::{current, is_running};
use crate::ops::page_kit::{instant, page, page_layout};

/// Runs of the small chart of a collector.
const CHART_RUNS: u32 = 30;
/// Runs of the log below.
const LOG_RUNS: usize = 20;

pub(super) fn add(table: &mut Operations) {
    table.add(page("collectors_page", "/console/collectors", "Collectors"), &[], show);
}

async fn show(cx: Cx, _: NoInput) -> Result<PageResponse, ApiError> {
    let current = current(&cx, CHART_RUNS).await?;
    let log = current
        .iter()
        .flat_map(|(collector, runs)| runs.iter().map(move |run| (collector, run)));
    let mut log: Vec<_> = log.collect();
    log.sort_by_key(|(_, run)| std::cmp::Reverse(run.started_at));
    log.truncate(LOG_RUNS);
    let log = log.into_iter().map(|(collector, run)| logged(collector, run)).collect();
    PageResponse::page(&CollectorsPage {
        chrome: page_layout(&cx).await?,
        rows: current
            .iter()
            .map(|(collector, runs)| row(&cx, collector, runs))
            .collect(),
        log,
    })
}

const fn state(outcome: Option<RunOutcome>) -> CollectorState {
    match outcome {
        None => CollectorState::Running,
        Some(RunOutcome::Merged) => CollectorState::Merged,
        Some(RunOutcome::Unchanged) => CollectorState::Unchanged,
        Some(RunOutcome::Held) => CollectorState::Held,
        Some(RunOutcome::Failed) => CollectorState::Failed,
    }
}

fn row(cx: &Cx, collector: &Collector, runs: &[CollectorRun]) -> CollectorRow {
    // A run whose process died has no end yet and does not run.
    let is_over = |run: &&CollectorRun| run.ended_at.is_some() || is_running(collector, cx.now);
    let last = runs.iter().find(is_over);
    CollectorRow {
        name: collector.seen.name.clone(),
        dataset: collector.seen.dataset.clone(),
        title: collector.seen.title.clone(),
        schedule: collector.seen.schedule.clone(),
        failures: collector.failures,
        next_at: instant(collector.next_at),
        version: runs.iter().find_map(|run| run.version).map(|version| version.0),
        news: runs.iter().rev().map(|run| run.counts.added).collect(),
        last: last.map(|run| logged(collector, run)),
    }
}

/// Returns a run as the pages of collectors show it.
pub(in crate::ops) fn logged(collector: &Collector, run: &CollectorRun) -> CollectorRunRow {
    let millis = run.ended_at.map(|ended| ended.since(run.started_at).as_millis());
    CollectorRunRow {
        collector: collector.seen.name.clone(),
        state: state(run.outcome),
        at: instant(run.started_at),
        millis: millis.map(|millis| u64::try_from(millis).unwrap_or(u64::MAX)),
        fetched: run.counts.fetched,
        new: run.counts.added,
        known: run.counts.known,
        refused: run.counts.refused.saturating_add(run.counts.failed),
        version: run.version.map(|version| version.0),
        reason: run.reason.as_ref().map(|(_, message)| message.clone()),
    }
}

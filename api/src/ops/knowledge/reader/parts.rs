//! Parts of the page of a unit: facts, scores, steps of the review, marks, versions, and what is about the same.
//!
//! Invariant: nothing that somebody else may not know is in a part for everybody: no unit of another in a step, no words on
//! what was run for who may not read the text.

use std::collections::HashMap;

use pages::{NearItem, ScoreView, UnitFacts, UnitMark, UnitPrice, UnitStep, UnitVersion};
use search::{SearchFilter, SearchMode, SearchOrder, SearchQuery};
use store::{Project, Unit, VersionLine, WrittenMark};
use types::UnitId;
use types::unit::{Judge, ReviewEntry, UnitScores};
use types::vocabulary::{ItemKind, JudgeKind, ReviewStep, StepOutcome};

use super::super::page::{reason, state, version_state};
use super::super::view::is_locked;
use crate::call::cx::Cx;
use crate::error::ApiError;
use crate::ops::page_kit::instant;
use crate::ops::site::price as dataset_price;
use crate::rules::entitlement::units::{self, ShownStatus};

/// Items that are about the same.
const NEAR: usize = 5;
/// Hits that are looked at for them: some are hidden by now, and one is the unit itself.
const HITS: usize = 16;

/// Returns the price of a unit as pages show it.
fn price(price_micro: Option<i64>) -> UnitPrice {
    let price = units::price_of(price_micro);
    match price_micro {
        None => UnitPrice::WithAccount(price),
        Some(0) => UnitPrice::Free,
        Some(_) => UnitPrice::Priced(price),
    }
}

/// Returns the facts of a unit.
pub(super) fn facts(unit: &Unit, is_own: bool) -> UnitFacts {
    let (shown, chain) = (ShownStatus::of(unit), &unit.chain);
    let latest = chain
        .latest
        .filter(|latest| shown == ShownStatus::Superseded && *latest != unit.id);
    let is_published = matches!(shown, ShownStatus::Published | ShownStatus::Superseded);
    UnitFacts {
        id: unit.id.to_string(),
        title: unit.title.clone(),
        category: unit.category.clone(),
        license: chain.license.clone(),
        agent: unit.agent_name.clone(),
        version: unit.number.map(Into::into),
        state: state(shown),
        // What is said of a takedown is for the owner; a buyer who keeps reading is told only that.
        reason: if is_own || shown != ShownStatus::TakenDown {
            reason(unit)
        } else {
            Some("It was taken down after a report. You bought it, and keep reading it.".to_owned())
        },
        newer: latest.map(|latest| format!("/units/{latest}")),
        price: price(chain.price_micro),
        is_on_sale: is_published && is_locked(chain.price_micro),
        takes_trial_credit: chain.trial_sale,
        sold: chain.sold_count,
        readers: chain.readers,
        confirmed: chain.marks.confirmed,
        doubted: chain.marks.flagged(),
        confirmed_at: chain.marks.confirmed_at.map(instant),
        length: unit.length,
        at: instant(unit.published_at.unwrap_or(unit.submitted_at)),
        is_own,
    }
}

/// Returns the scores with their judge.
pub(super) fn score((scores, judge): &(UnitScores, Judge)) -> ScoreView {
    ScoreView {
        scores: *scores,
        judge: judge.name.clone(),
        is_heuristic: judge.kind == JudgeKind::Heuristic,
    }
}

/// Returns a version of the list.
pub(super) fn line(line: &VersionLine, here: UnitId) -> UnitVersion {
    let state = version_state(line.status);
    UnitVersion {
        href: format!("/units/{}", line.id),
        version: line.number.map(Into::into),
        is_here: line.id == here,
        state,
        total: line.total.map(Into::into),
        at: instant(line.decided_at.unwrap_or(line.submitted_at)),
    }
}

/// Returns a step of the review. Others than the owner see only a step that passed, without words about other units
/// or from the text.
pub(super) fn step(entry: ReviewEntry, is_own: bool) -> Option<UnitStep> {
    if !is_own && entry.outcome != StepOutcome::Passed {
        return None;
    }
    let total = entry.scores.map(|scores| scores.total);
    let detail = match entry.step {
        _ if is_own => entry.detail,
        ReviewStep::Embedding => entry.similar.map_or_else(String::new, |similar| {
            format!(
                "The nearest published text is {:.0} % alike in meaning.",
                similar.similarity * 100.0
            )
        }),
        // The words of a judge may tell what the text says.
        ReviewStep::Score => String::new(),
        _ => entry.detail,
    };
    Some(UnitStep {
        step: entry.step,
        outcome: entry.outcome,
        total,
        detail,
        judge: entry.judge.map(|judge| judge.name),
        at: instant(entry.at),
    })
}

/// Returns a mark, with what was run for who may read the text.
pub(super) fn mark(mark: WrittenMark, is_open: bool) -> UnitMark {
    UnitMark {
        agent: mark.agent_name,
        mark: mark.mark,
        ran: is_open.then_some(mark.ran),
        version: mark.version.map(Into::into),
        counts: mark.counts,
        at: instant(mark.at),
    }
}

/// Returns published items that the words of the title find, those that fit best first; none while there is no index.
pub(super) async fn near(cx: &Cx, unit: &Unit) -> Result<Vec<NearItem>, ApiError> {
    let is_published = matches!(ShownStatus::of(unit), ShownStatus::Published | ShownStatus::Superseded);
    // The page stands without this list.
    let Ok(index) = cx.app.process.searching.index() else {
        return Ok(Vec::new());
    };
    if !is_published {
        return Ok(Vec::new());
    }
    let query = SearchQuery {
        // A quote would begin a phrase, which must occur.
        text: unit.title.replace('"', " "),
        vector: None,
        mode: SearchMode::Keyword,
        filter: SearchFilter::default(),
        order: SearchOrder::default(),
        offset: 0,
        limit: HITS,
    };
    let now = cx.now;
    let found = tokio::task::spawn_blocking(move || index.search(&query, now))
        .await
        .map_err(ApiError::internal)?;
    let Ok(found) = found else {
        return Ok(Vec::new());
    };
    let own = unit.chain.id.to_string();
    let ids = |kind: ItemKind| -> Vec<String> {
        let of_kind = found.hits.iter().filter(|key| key.kind == kind && key.id != own);
        of_kind.map(|key| key.id.clone()).collect()
    };
    let (units, datasets) = (ids(ItemKind::Unit), ids(ItemKind::Dataset));
    let searching = cx.app.store.searching();
    let (units, datasets) = tokio::try_join!(searching.units(&units), searching.datasets(&datasets))?;
    let units = units
        .into_iter()
        .map(|unit| (unit.chain.id.to_string(), near_unit(&unit)));
    let datasets = datasets
        .into_iter()
        .map(|project| (project.id.to_string(), near_dataset(project)));
    let mut items: HashMap<String, NearItem> = units.chain(datasets).collect();
    let in_order = found.hits.iter().filter_map(|key| items.remove(&key.id));
    Ok(in_order.take(NEAR).collect())
}

fn near_unit(unit: &Unit) -> NearItem {
    let (count, sum) = (unit.chain.rating_count, unit.chain.rating_sum);
    NearItem {
        href: format!("/units/{}", unit.id),
        title: unit.title.clone(),
        dataset: None,
        scores: unit.scores.as_ref().map(|(scores, _)| *scores),
        rating: (count > 0).then(|| sum * 10 / count),
        price: price(unit.chain.price_micro),
    }
}

fn near_dataset(project: Project) -> NearItem {
    let price = dataset_price(project.access, project.price_micro);
    let rows = project.record_count;
    NearItem {
        href: format!("/projects/{}", project.slug),
        title: project.title,
        dataset: Some(format!("dataset, {rows} {}", if rows == 1 { "row" } else { "rows" })),
        scores: None,
        rating: None,
        price: price.map_or(UnitPrice::Free, UnitPrice::Priced),
    }
}

//! Evidence about a report, as a page shows it.
//!
//! Invariant: it is made for the staff only. Texts are compared among a bounded number of units.

use std::collections::HashSet;

use pages::console::{CaseBuyers, CaseOutcome, CaseOwner, HistoryLine, OverlapRow, ReportCase, reason_words};
use search::{SearchFilter, SearchMode, SearchOrder, SearchQuery};
use store::{Evidence, EvidenceBuyers, Report, ReportStatus, Unit};
use types::vocabulary::{Discussed, ItemKind, ReportKind, TakedownReason};
use types::{ReportId, UnitId};

use super::overlap::{Sentences, marked};
use crate::call::cx::Cx;
use crate::error::ApiError;
use crate::ops::page_kit::instant;

/// Characters of a text that are shown.
const MAX_SHOWN_CHARS: usize = 12_000;
/// Units that a text is compared with.
const MAX_COMPARED: usize = 12;
/// Items of the overlap that are shown, and the least share of one.
const MAX_OVERLAPS: usize = 3;
const MIN_OVERLAP_PERCENT: u32 = 5;
/// Earlier reports of the item that the history tells.
const MAX_HISTORY: u32 = 20;
/// Characters of a text that similar ones are searched by.
const SEARCHED_CHARS: usize = 300;

/// Returns a report with its evidence; `None` if there is no such report.
pub(super) async fn of(cx: &Cx, id: ReportId) -> Result<Option<ReportCase>, ApiError> {
    let store = &cx.app.store;
    let moderation = store.moderation();
    // Nobody judges an own item, or reads who reported it.
    let by = cx.operator();
    let found = moderation.report_of(id).await?;
    let Some(report) = found.filter(|report| report.owner.is_none() || report.owner != by) else {
        return Ok(None);
    };
    let (evidence, buyers, record, history) = tokio::try_join!(
        moderation.evidence(report.kind, &report.item),
        moderation.buyers_of(report.kind, &report.item),
        moderation.record_of(&report.reporter),
        moderation.reports_of_item(report.kind, &report.item, MAX_HISTORY)
    )?;
    let owner = match evidence.as_ref().map(|evidence| evidence.operator).or(report.owner) {
        Some(owner) => store.staff().account(owner).await?,
        None => None,
    };
    let reporter = match report.agent {
        Some(agent) => moderation.agent_name(agent).await?,
        None => None,
    };
    let outcome = outcome(cx, &report).await?;
    let history = told(cx, &history, evidence.as_ref()).await?;
    let text = evidence.as_ref().map_or("", |evidence| evidence.text.as_str());
    let (overlaps, closest) = overlaps(cx, &report).await?;
    let (text, more) = marked(text, closest.as_ref(), MAX_SHOWN_CHARS);
    let title = evidence.as_ref().map(|evidence| evidence.title.clone());
    Ok(Some(ReportCase {
        id,
        kind: report.kind,
        title: title
            .filter(|title| !title.is_empty())
            .unwrap_or_else(|| report.named.clone()),
        reason: report.reason,
        at: instant(report.created_at),
        href: evidence.as_ref().map(|evidence| href(report.kind, evidence)),
        detail: report.detail,
        reporter,
        email: report.email,
        decided_before: record.decided,
        right_before: record.upheld,
        text,
        more,
        agent: evidence.and_then(|evidence| evidence.agent_name),
        overlaps,
        owner: owner.map(|owner| CaseOwner {
            id: owner.id,
            name: owner.display_name,
            since: instant(owner.created_at),
            is_suspended: owner.suspended.is_some(),
            agents: owner.agents,
            units: owner.units,
            rejected: owner.rejected,
            datasets: owner.datasets,
            takedowns: owner.takedowns,
            reports: owner.reports,
        }),
        buyers: shown_buyers(&buyers),
        is_kept: TakedownReason::from(report.reason).is_kept(),
        history,
        outcome,
    }))
}

/// Returns the buyers of an item as pages show them.
pub(super) const fn shown_buyers(found: &EvidenceBuyers) -> CaseBuyers {
    CaseBuyers {
        accounts: found.accounts,
        wallets: found.wallets,
        paid: found.paid.0,
        held: found.held,
    }
}

/// Returns what became of a report.
async fn outcome(cx: &Cx, report: &Report) -> Result<Option<CaseOutcome>, ApiError> {
    let Some(at) = report.decided_at else { return Ok(None) };
    let note = match report.takedown {
        Some(takedown) => {
            let takedown = cx.app.store.moderation().takedown(takedown).await?;
            takedown.and_then(|takedown| takedown.note)
        }
        None => report.note.clone(),
    };
    Ok(Some(CaseOutcome {
        is_down: report.status == ReportStatus::Upheld,
        at: instant(at),
        note,
    }))
}

/// Returns the address of the page on which an item is seen.
fn href(kind: ReportKind, evidence: &Evidence) -> String {
    let place = &evidence.place;
    match (kind, evidence.on) {
        (ReportKind::Unit, _) | (_, Some(Discussed::Unit)) => format!("/units/{place}"),
        (ReportKind::Dataset, _) | (_, Some(Discussed::Dataset)) => format!("/projects/{place}"),
        (ReportKind::Agent, _) => format!("/agents/{place}"),
        (ReportKind::Topic | ReportKind::Comment | ReportKind::Review, _) => format!("/requests/{place}"),
    }
}

/// Returns what happened to an item, oldest first.
async fn told(cx: &Cx, reports: &[Report], evidence: Option<&Evidence>) -> Result<Vec<HistoryLine>, ApiError> {
    let moderation = cx.app.store.moderation();
    let line = |at, what: String, said: Option<String>| HistoryLine {
        at: instant(at),
        what,
        said,
    };
    let mut lines: Vec<_> = evidence
        .iter()
        .map(|evidence| line(evidence.made_at, "published".to_owned(), None))
        .collect();
    let mut seen = HashSet::new();
    for report in reports {
        let by = if report.agent.is_some() {
            "by an agent"
        } else {
            "without a key"
        };
        let what = format!("reported as: {}, {by}", reason_words(report.reason));
        lines.push(line(report.created_at, what, None));
        match (report.takedown, report.decided_at) {
            // Several reports of one item end in one takedown.
            (Some(takedown), Some(at)) if seen.insert(takedown) => {
                let takedown = moderation.takedown(takedown).await?;
                let note = takedown.as_ref().and_then(|takedown| takedown.note.clone());
                lines.push(line(
                    at,
                    format!("taken down for {}", reason_words(report.reason)),
                    note,
                ));
                if let Some(takedown) = takedown {
                    if let Some((at, answer)) = takedown.answer {
                        lines.push(line(at, "the owner answered".to_owned(), Some(answer)));
                    }
                    if let Some(at) = takedown.restored_at {
                        lines.push(line(at, "shown again".to_owned(), takedown.restored_note));
                    }
                }
            }
            (None, Some(at)) => lines.push(line(at, "left up".to_owned(), report.note.clone())),
            _ => {}
        }
    }
    lines.sort_by_key(|line| line.at);
    Ok(lines)
}

/// Returns the units that have sentences of a reported one, most first, with the sentences of the first.
async fn overlaps(cx: &Cx, report: &Report) -> Result<(Vec<OverlapRow>, Option<Sentences>), ApiError> {
    let none = (Vec::new(), None);
    if report.kind != ReportKind::Unit {
        return Ok(none);
    }
    let Ok(chain) = report.item.parse::<UnitId>() else {
        return Ok(none);
    };
    let Some(unit) = latest(cx, chain).await? else {
        return Ok(none);
    };
    let mut found: Vec<_> = candidates(cx, &unit, &report.detail)
        .await?
        .into_iter()
        .map(|other| {
            let sentences = Sentences::of(&other.body);
            (Sentences::of(&unit.body).shared_with(&sentences), other, sentences)
        })
        .filter(|(percent, ..)| *percent >= MIN_OVERLAP_PERCENT)
        .collect();
    found.sort_by_key(|(percent, ..)| std::cmp::Reverse(*percent));
    found.truncate(MAX_OVERLAPS);
    let mut rows = Vec::with_capacity(found.len());
    let mut closest = None;
    for (percent, other, sentences) in found {
        let owner = cx.app.store.operator(other.chain.operator).await?;
        let published_at = other.published_at.unwrap_or(other.submitted_at);
        rows.push(OverlapRow {
            title: other.title,
            href: format!("/units/{}", other.id),
            owner: owner.map(|owner| owner.display_name).unwrap_or_default(),
            is_same_owner: other.chain.operator == unit.chain.operator,
            published_at: instant(published_at),
            is_earlier: published_at < unit.published_at.unwrap_or(unit.submitted_at),
            percent,
        });
        closest.get_or_insert(sentences);
    }
    Ok((rows, closest))
}

/// Returns the latest version of a unit.
async fn latest(cx: &Cx, chain: UnitId) -> Result<Option<Unit>, ApiError> {
    let knowledge = cx.app.store.knowledge();
    let first = knowledge.unit(chain).await?;
    Ok(match first.as_ref().and_then(|first| first.chain.latest) {
        Some(latest) if latest != chain => knowledge.unit(latest).await?,
        _ => first,
    })
}

/// Returns units that a text may be a copy of: those that its review names, those that the report names, and those that a
/// search by its words finds.
async fn candidates(cx: &Cx, unit: &Unit, detail: &str) -> Result<Vec<Unit>, ApiError> {
    let store = &cx.app.store;
    let knowledge = store.knowledge();
    let entries = knowledge.entries(unit.id).await?;
    let similar = entries
        .into_iter()
        .filter_map(|entry| entry.similar.map(|similar| similar.unit_id));
    // An id has letters, digits and hyphens, wherever it stands in a sentence or an address.
    let named = detail
        .split(|letter: char| !(letter.is_ascii_alphanumeric() || letter == '-'))
        .filter_map(|word| word.parse::<UnitId>().ok());
    let ids: Vec<UnitId> = unit
        .near
        .into_iter()
        .chain(similar)
        .chain(named)
        .take(MAX_COMPARED)
        .collect();
    let mut units = Vec::new();
    for id in ids {
        if let Some(named) = knowledge.unit(id).await? {
            units.extend(latest(cx, named.chain.id).await?);
        }
    }
    let hits = found(cx, unit).await;
    units.extend(store.searching().units(&hits).await?);
    let mut seen = HashSet::from([unit.chain.id]);
    units.retain(|other| seen.insert(other.chain.id));
    units.truncate(MAX_COMPARED);
    Ok(units)
}

/// Returns the chains of units that a search by the words of a unit finds; none while the index is being built.
async fn found(cx: &Cx, unit: &Unit) -> Vec<String> {
    let Ok(index) = cx.app.process.searching.index() else {
        return Vec::new();
    };
    let words = format!("{} {}", unit.title, unit.body);
    // Words in quotes would have to occur.
    let words: String = words
        .chars()
        .filter(|letter| *letter != '"')
        .take(SEARCHED_CHARS)
        .collect();
    let vector = cx.app.process.searching.vector(&words).await.map(|(vector, _)| vector);
    let query = SearchQuery {
        text: words,
        vector,
        mode: SearchMode::Auto,
        order: SearchOrder::default(),
        filter: SearchFilter {
            kind: Some(ItemKind::Unit),
            ..SearchFilter::default()
        },
        offset: 0,
        limit: MAX_COMPARED,
    };
    let now = cx.now;
    // The scan takes milliseconds of a processor, which would hold up other requests of a thread.
    match tokio::task::spawn_blocking(move || index.search(&query, now)).await {
        Ok(Ok(result)) => result.hits.into_iter().map(|key| key.id).collect(),
        // The evidence is shown without what the search would add.
        Ok(Err(_)) | Err(_) => Vec::new(),
    }
}

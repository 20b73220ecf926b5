//! The page of a unit, and the console's list of submissions.
//!
//! Invariant: a visitor sees the preview, and the whole text only of what is free; a person whose account bought the unit
//! sees it whole, and the owner the own versions with what their reviews said. What a visitor may not know of is a 404, like a missing unit.

use pages::console::{StateMark, UnitRow, UnitsPage};
use pages::{Discussion, SaidEntry, ScoreView, UnitFacts, UnitPage, UnitPurchase, UnitStep, UnitVersion};
use schemars::JsonSchema;
use serde::Deserialize;
use store::{MarkCounts, Unit, UnitStatus, VersionLine};
use types::UnitId;
use types::unit::ReviewEntry;
use types::vocabulary::{ItemKind, JudgeKind, StepOutcome};

use super::ratings;
use super::view::is_locked;
use crate::call::cx::Cx;
use crate::call::operation::Operations;
use crate::call::spec::Spec;
use crate::call::view::PageResponse;
use crate::call::wire::BatchReason;
use crate::error::ApiError;
use crate::ops::community::{DiscussionPlaces, discussion};
use crate::ops::page_kit::{PAGE_ROWS, id, instant, page, page_layout};
use crate::ops::paging::take_page;
use crate::rules::entitlement::units::{self, FullRead, ShownStatus, UnitRelation};
use crate::rules::previews::preview;

pub(super) const LIST: &str = "/console/knowledge";
/// Versions and ratings on a page.
const SHOWN: u32 = 50;

pub(super) fn add(table: &mut Operations) {
    table.add(
        Spec {
            name: "unit_page",
            path: "/units/{id}",
            summary: "A knowledge unit",
            ..Spec::PAGE
        },
        &[],
        show,
    );
    table.add(page("units_page", LIST, "Submitted units"), &[], list);
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct UnitPagePath {
    /// Id of the version.
    #[schemars(length(max = 64))]
    id: String,
    /// Number of the page of reviews; 1 where not given.
    #[schemars(range(min = 1, max = 1_000))]
    reviews: Option<u32>,
    /// Last comment of the page before.
    #[schemars(regex(pattern = "^[0-9]{1,18}$"))]
    comments: Option<String>,
    /// Last rating of the page before.
    #[schemars(regex(pattern = ratings::CURSOR_PATTERN))]
    ratings: Option<String>,
}

async fn show(cx: Cx, input: UnitPagePath) -> Result<PageResponse, ApiError> {
    let unit = units::find(&cx.app, &input.id).await?;
    let is_own = cx.operator() == Some(unit.chain.operator);
    // An agent of the account bought it, and its person reads what the agents may read. No read is recorded: that is an
    // agent's, with its points and its right to rate.
    let bought = match cx.operator() {
        Some(operator) if !is_own => {
            let chain = unit.chain.id.to_string();
            cx.app
                .store
                .money()
                .purchase_of(operator, ItemKind::Unit, &chain)
                .await?
        }
        _ => None,
    };
    let relation = UnitRelation {
        owns: is_own,
        has_bought: bought.is_some(),
        ..UnitRelation::default()
    };
    let is_priced = is_locked(unit.chain.price_micro);
    let (markdown, source) = match units::full_read(&unit, relation) {
        FullRead::Open | FullRead::Permitted | FullRead::Recorded => {
            (unit.body.clone(), Some(unit.source_declaration.clone()))
        }
        FullRead::Priced { .. } => (preview(&unit.body, is_priced), None),
        // It is taken down: its owner sees that and why, as its agents do, and not the text.
        FullRead::Hidden if is_own => (String::new(), None),
        FullRead::Hidden => return Err(ApiError::no_unit()),
    };
    let knowledge = cx.app.store.knowledge();
    let chain = unit.chain.id;
    let is_down = ShownStatus::of(&unit) == ShownStatus::TakenDown;
    let path = format!("/units/{}", unit.id);
    let after = input.ratings.as_deref().map(ratings::cursor).transpose()?;
    let (versions, mut given) = tokio::try_join!(
        knowledge.versions(chain, SHOWN),
        knowledge.ratings(chain, after, SHOWN + 1)
    )?;
    let next = take_page(&mut given.items, SHOWN).map(ratings::cursor_of);
    // A discussion is closed for everybody while its item is down.
    let discussion = if is_down {
        Discussion::default()
    } else {
        let places = DiscussionPlaces::new(path.clone(), input.reviews, input.comments.as_deref());
        discussion(&cx, ItemKind::Unit, &chain.to_string(), unit.chain.operator, &places).await?
    };
    let steps = if is_own {
        knowledge.entries(unit.id).await?
    } else {
        Vec::new()
    };
    let base = &cx.app.config.public_url;
    let count = unit.chain.rating_count;
    let call = format!(
        "curl -s {base}/knowledge/{}/full \\\n  -H \"Authorization: Bearer $SLUICE_KEY\"",
        unit.id
    );
    let scores = unit.scores.as_ref().map(|(scores, judge)| ScoreView {
        total: scores.total.into(),
        axes: [
            ("Accuracy", scores.accuracy.into()),
            ("Novelty", scores.novelty.into()),
            ("Reproducibility", scores.reproducibility.into()),
            ("Specificity", scores.specificity.into()),
        ],
        judge: judge.name.clone(),
        is_heuristic: judge.kind == JudgeKind::Heuristic,
    });
    let rating = (count > 0 && !is_down).then(|| (unit.chain.rating_sum * 10 / count, count));
    let mut page = UnitPage::new(page_layout(&cx).await?, facts(unit, is_own), &markdown);
    page.source = source;
    page.is_for_sale = is_priced && !is_down;
    page.purchase = bought.map(|bought| UnitPurchase {
        sale: bought.sale.id,
        agent: bought.agent_name,
        price: bought.sale.price,
        at: instant(bought.sale.sold_at),
    });
    page.scores = scores;
    page.rating = rating;
    if is_down {
        page.hidden = 0;
    } else {
        page.request = call;
    }
    // A visitor learns nothing of what was not published.
    let lines = versions.iter().filter(|line| is_own || line.number.is_some());
    page.versions = lines.map(version).collect();
    page.steps = steps.into_iter().map(step).collect();
    let ratings = given.items.into_iter().map(|rating| SaidEntry {
        agent: rating.agent_name,
        note: Some(format!("{} of 5", rating.stars)),
        text: rating.comment.unwrap_or_default(),
        at: instant(rating.at),
    });
    page.ratings = ratings.collect();
    page.ratings_first = after.map(|_| format!("{path}#h-r"));
    page.ratings_next = next.map(|next| format!("{path}?ratings={next}#h-r"));
    page.discussion = discussion;
    PageResponse::page(&page)
}

/// Returns the facts of a unit.
fn facts(unit: Unit, is_own: bool) -> UnitFacts {
    let shown = ShownStatus::of(&unit);
    let price = units::price_of(unit.chain.price_micro);
    let (price, price_note) = match unit.chain.price_micro {
        Some(0) => ("Free".to_owned(), "Anybody reads it."),
        None => (
            format!("${price}"),
            "Free for agents with a key; without one at this price.",
        ),
        Some(_) => (
            format!("${price}"),
            "Priced by the seller. It covers every version, also later ones.",
        ),
    };
    let latest = unit
        .chain
        .latest
        .filter(|latest| shown == ShownStatus::Superseded && *latest != unit.id);
    UnitFacts {
        reason: reason(&unit),
        id: unit.id.to_string(),
        title: unit.title,
        category: unit.category,
        license: unit.chain.license,
        agent: unit.agent_name,
        version: unit.number.map(Into::into),
        state: state(shown),
        newer: latest.map(|latest| format!("/units/{latest}")),
        price,
        price_note: price_note.to_owned(),
        sold: unit.chain.sold_count,
        readers: unit.chain.readers,
        marks: marks(&unit.chain.marks),
        length: unit.length,
        at: instant(unit.published_at.unwrap_or(unit.submitted_at)),
        is_own,
    }
}

/// Returns what readers found who tried a unit, in words.
fn marks(counts: &MarkCounts) -> Option<String> {
    let said = [
        (counts.confirmed, ["confirms it", "confirm it"]),
        (counts.stale, ["calls it stale", "call it stale"]),
        (counts.incorrect, ["calls it incorrect", "call it incorrect"]),
    ];
    let said: Vec<_> = said
        .into_iter()
        .filter(|(count, _)| *count > 0)
        .map(|(count, [one, many])| format!("{count} {}", if count == 1 { one } else { many }))
        .collect();
    (!said.is_empty()).then(|| said.join(", "))
}

/// Returns the sentence about a rejection, a wait or a takedown.
fn reason(unit: &Unit) -> Option<String> {
    if let (ShownStatus::TakenDown, Some((_, reason))) = (ShownStatus::of(unit), unit.chain.taken_down) {
        return Some(format!(
            "Hidden after a report: {reason}. You answer it in the console under Reports."
        ));
    }
    let waiting = unit
        .waiting_reason
        .as_deref()
        .map(|reason| BatchReason::held(reason).message);
    unit.reject_message.clone().or(waiting)
}

/// Returns the word and the mark of a state.
pub(super) const fn state(shown: ShownStatus) -> (&'static str, StateMark) {
    match shown {
        ShownStatus::Queued => ("queued", StateMark::Live),
        ShownStatus::Waiting => ("waiting", StateMark::Hold),
        ShownStatus::Rejected => ("rejected", StateMark::Bad),
        ShownStatus::Published => ("published", StateMark::Ok),
        ShownStatus::Superseded => ("superseded", StateMark::Off),
        ShownStatus::Retired => ("retired", StateMark::Off),
        ShownStatus::TakenDown => ("taken down", StateMark::Bad),
    }
}

/// Returns the word and the mark of a version in a list.
pub(super) const fn version_state(status: UnitStatus) -> (&'static str, StateMark) {
    match status {
        UnitStatus::Queued => state(ShownStatus::Queued),
        UnitStatus::Waiting => state(ShownStatus::Waiting),
        UnitStatus::Rejected => state(ShownStatus::Rejected),
        UnitStatus::Published => state(ShownStatus::Published),
        UnitStatus::Superseded => state(ShownStatus::Superseded),
    }
}

fn version(line: &VersionLine) -> UnitVersion {
    let state = version_state(line.status);
    UnitVersion {
        href: format!("/units/{}", line.id),
        version: line.number.map(Into::into),
        state,
        total: line.total.map(Into::into),
        at: instant(line.decided_at.unwrap_or(line.submitted_at)),
    }
}

fn step(entry: ReviewEntry) -> UnitStep {
    let mark = match entry.outcome {
        StepOutcome::Passed => StateMark::Ok,
        StepOutcome::Refused => StateMark::Bad,
        StepOutcome::Held => StateMark::Hold,
    };
    UnitStep {
        step: entry.step.as_str().to_owned(),
        outcome: (entry.outcome.as_str().to_owned(), mark),
        detail: entry.detail,
        judge: entry.judge.map(|judge| judge.name),
        at: instant(entry.at),
    }
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct ListUnitsQuery {
    /// Id of the last submission of the page before.
    #[schemars(length(max = 64))]
    before: Option<String>,
}

async fn list(cx: Cx, input: ListUnitsQuery) -> Result<PageResponse, ApiError> {
    let before: Option<UnitId> = input.before.map(|text| id(&text, "page")).transpose()?;
    let knowledge = cx.app.store.knowledge();
    let mut found = knowledge
        .submissions_of(cx.the_operator()?, before, PAGE_ROWS + 1)
        .await?;
    let next = take_page(&mut found, PAGE_ROWS).map(|unit| format!("{LIST}?before={}", unit.id));
    PageResponse::page(&UnitsPage {
        chrome: page_layout(&cx).await?,
        rows: found
            .into_iter()
            .map(|unit| UnitRow {
                id: unit.id.to_string(),
                state: state(ShownStatus::of(&unit)),
                total: unit.scores.as_ref().map(|(scores, _)| scores.total.into()),
                reason: reason(&unit),
                title: unit.title,
                agent: unit.agent_name,
                at: instant(unit.submitted_at),
            })
            .collect(),
        next,
        is_later: before.is_some(),
    })
}

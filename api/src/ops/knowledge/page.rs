//! The console's list of submissions.
//!
//! Invariant: an operator sees its own submissions only.

use pages::console::{StateMark, UnitRow, UnitsPage};
use schemars::JsonSchema;
use serde::Deserialize;
use store::{Unit, UnitStatus};
use types::UnitId;

use crate::call::cx::Cx;
use crate::call::operation::Operations;
use crate::call::view::PageResponse;
use crate::call::wire::BatchReason;
use crate::error::ApiError;
use crate::ops::page_kit::{PAGE_ROWS, id, instant, page, page_layout};
use crate::ops::paging::take_page;
use crate::rules::entitlement::units::ShownStatus;

pub(super) const LIST: &str = "/console/knowledge";

pub(super) fn add(table: &mut Operations) {
    table.add(page("units_page", LIST, "Submitted units"), &[], list);
}

/// Returns the sentence about a rejection, a wait or a takedown.
pub(super) fn reason(unit: &Unit) -> Option<String> {
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

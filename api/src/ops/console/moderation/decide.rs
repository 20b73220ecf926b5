//! Decisions of the staff: asked, confirmed, and taken back.
//!
//! Invariant: a form that is sent twice by the same person ends where the first ended.

use pages::console::{DecisionPage, ReportDecision, ReportDecisionForm, RestorePage};
use schemars::JsonSchema;
use serde::Deserialize;
use store::{Decided, DecisionLetters, Report, ReportStatus, Takedown, UNDO_LASTS, Undone, Uphold};
use types::vocabulary::TakedownReason;
use types::{OperatorId, ReportId, TakedownId};

use super::case::shown_buyers;
use super::{AskedReport, PATH, decided_before, down, reports};
use crate::call::cx::Cx;
use crate::call::operation::Operations;
use crate::call::schema::TEXT;
use crate::call::view::PageResponse;
use crate::codes::ErrorCode;
use crate::error::ApiError;
use crate::ops::console::staff::{decision_reason, staff};
use crate::ops::page_kit::{form, form_page, id, missing, page, page_layout, repairable};
use crate::rules::letters::{self, LetterPayload};

/// Page that a decision leads to.
const DECIDED: &str = "/console/moderation?tab=decided";
const RESTORE: &str = "/console/takedowns/{id}/restore";

pub(super) fn add(table: &mut Operations) {
    table.add(
        page(
            "confirm_decision_page",
            "/console/reports/{id}/confirm",
            "Ask before a decision about a report",
        ),
        &[],
        confirm,
    );
    table.add(
        form("decide_report_form", "/console/reports/{id}", "Decide about a report"),
        &[],
        decide,
    );
    table.add(
        form(
            "reopen_report_form",
            "/console/reports/{id}/reopen",
            "Open a report again that was dismissed just now",
        ),
        &[],
        reopen,
    );
    table.add(
        form(
            "undo_takedown_form",
            "/console/takedowns/{id}/undo",
            "Take a takedown back of which nobody was told",
        ),
        &[],
        undo,
    );
    table.add(
        page("restore_item_page", RESTORE, "Weigh the answer to a takedown"),
        &[],
        weigh,
    );
    table.add(form("restore_item_form", RESTORE, "Show an item again"), &[], restore);
}

/// Decision of a moderator.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum ModeratorDecision {
    Uphold,
    Dismiss,
}

impl From<ModeratorDecision> for ReportDecision {
    fn from(decision: ModeratorDecision) -> Self {
        match decision {
            ModeratorDecision::Uphold => Self::Uphold,
            ModeratorDecision::Dismiss => Self::Dismiss,
        }
    }
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct DecideReportForm {
    /// Id of the report.
    id: String,
    /// `uphold` takes the item down, `dismiss` leaves it.
    decision: ModeratorDecision,
    /// Reason: of a takedown for the owner, otherwise for the staff.
    #[serde(default)]
    #[schemars(length(max = 4_000), regex(pattern = TEXT))]
    note: String,
}

/// Returns a report that a person may decide: nobody judges an own item.
async fn the_report(cx: &Cx, report: ReportId, by: OperatorId) -> Result<Report, ApiError> {
    let found = cx.app.store.moderation().report_of(report).await?;
    found
        .filter(|report| report.owner != Some(by))
        .ok_or_else(|| missing("report"))
}

/// Returns a takedown that a person may end, of an item that is not its own.
async fn the_takedown(cx: &Cx, takedown: TakedownId, by: OperatorId) -> Result<Takedown, ApiError> {
    let found = cx.app.store.moderation().takedown(takedown).await?;
    found
        .filter(|takedown| takedown.owner != by)
        .ok_or_else(|| missing("takedown"))
}

/// Returns the page of a report with the decision as it was typed and what is wrong about it.
async fn again(cx: &Cx, report: ReportId, input: DecideReportForm, error: ApiError) -> Result<PageResponse, ApiError> {
    let form = ReportDecisionForm {
        decision: input.decision.into(),
        note: input.note,
        errors: repairable(error)?,
    };
    form_page(&reports(cx, AskedReport::One(report), form).await?, true)
}

async fn confirm(cx: Cx, input: DecideReportForm) -> Result<PageResponse, ApiError> {
    // Before the id is parsed: to anybody else, a good id and a bad one must look alike.
    let (by, _) = staff(&cx).await?;
    let report: ReportId = id(&input.id, "report")?;
    let found = the_report(&cx, report, by).await?;
    // Who comes back by the button of the browser sees what became of the report.
    if found.status != ReportStatus::Open {
        return PageResponse::see(&format!("{PATH}?report={report}"));
    }
    let note = match decision_reason("/note", &input.note) {
        Ok(note) => note,
        Err(error) => return again(&cx, report, input, error).await,
    };
    let moderation = cx.app.store.moderation();
    let (evidence, buyers) = tokio::try_join!(
        moderation.evidence(found.kind, &found.item),
        moderation.buyers_of(found.kind, &found.item)
    )?;
    let owner = match evidence.as_ref().map(|evidence| evidence.operator).or(found.owner) {
        Some(owner) => cx.app.store.operator(owner).await?,
        None => None,
    };
    let title = evidence
        .map(|evidence| evidence.title)
        .filter(|title| !title.is_empty());
    PageResponse::page(&DecisionPage {
        chrome: page_layout(&cx).await?,
        id: report,
        kind: found.kind,
        title: title.unwrap_or(found.named),
        reason: found.reason,
        decision: input.decision.into(),
        note,
        owner: owner.map(|owner| owner.display_name),
        buyers: shown_buyers(&buyers),
        is_kept: TakedownReason::from(found.reason).is_kept(),
    })
}

async fn decide(cx: Cx, input: DecideReportForm) -> Result<PageResponse, ApiError> {
    let (by, _) = staff(&cx).await?;
    let report: ReportId = id(&input.id, "report")?;
    the_report(&cx, report, by).await?;
    let note = match decision_reason("/note", &input.note) {
        Ok(note) => note,
        Err(error) => return again(&cx, report, input, error).await,
    };
    let moderation = cx.app.store.moderation();
    let is_done = match input.decision {
        ModeratorDecision::Dismiss => {
            let dismissed = moderation.dismiss(report, Some(by), Some(note), cx.now).await?;
            dismissed.ok_or_else(|| missing("report"))?
        }
        ModeratorDecision::Uphold => {
            let takedown = TakedownId::new(cx.now);
            let new = Uphold {
                report,
                takedown,
                note: Some(note),
                by: Some(by),
                letters: DecisionLetters {
                    // Nobody is told before the decision stands.
                    wait: UNDO_LASTS,
                    ..letters::decision(takedown)
                },
                now: cx.now,
            };
            match moderation.uphold(new).await? {
                Decided::Done(_) => true,
                Decided::Unknown => return Err(missing("report")),
                Decided::Before | Decided::Gone => false,
            }
        }
    };
    if is_done || decided_so(&cx, by, report, input.decision).await? {
        return PageResponse::see(DECIDED);
    }
    Err(decided_before("report"))
}

/// Returns true if the operator has decided a report so before: its form was sent twice.
async fn decided_so(cx: &Cx, by: OperatorId, report: ReportId, decision: ModeratorDecision) -> Result<bool, ApiError> {
    let moderation = cx.app.store.moderation();
    let Some(found) = moderation.report_of(report).await? else {
        return Ok(false);
    };
    Ok(match decision {
        ModeratorDecision::Dismiss => found.status == ReportStatus::Dismissed && found.decided_by == Some(by),
        ModeratorDecision::Uphold => match found.takedown {
            Some(takedown) => {
                let takedown = moderation.takedown(takedown).await?;
                takedown.is_some_and(|takedown| takedown.decided_by == Some(by))
            }
            None => false,
        },
    })
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct ModeratedReportPath {
    /// Id of the report or takedown.
    id: String,
}

async fn reopen(cx: Cx, input: ModeratedReportPath) -> Result<PageResponse, ApiError> {
    let (by, _) = staff(&cx).await?;
    let report: ReportId = id(&input.id, "report")?;
    the_report(&cx, report, by).await?;
    let moderation = cx.app.store.moderation();
    let opened = moderation.reopen(report, cx.now).await?;
    let opened = opened.ok_or_else(|| missing("report"))?;
    // The form was sent twice, and the first one opened it.
    let is_open = async || {
        let found = moderation.report_of(report).await?;
        Ok::<_, ApiError>(found.is_some_and(|found| found.status == ReportStatus::Open))
    };
    if opened || is_open().await? {
        return PageResponse::see(&format!("{PATH}?report={report}"));
    }
    Err(too_late(
        "ten minutes are over; a new report of the item can be decided anew",
    ))
}

async fn undo(cx: Cx, input: ModeratedReportPath) -> Result<PageResponse, ApiError> {
    let (by, _) = staff(&cx).await?;
    let takedown: TakedownId = id(&input.id, "takedown")?;
    // Of a form that was sent twice, the second finds nothing: the takedown left no trace.
    if cx.app.store.moderation().takedown(takedown).await?.is_none() {
        return PageResponse::see(PATH);
    }
    the_takedown(&cx, takedown, by).await?;
    match cx.app.store.moderation().undo(takedown, cx.now).await? {
        Undone::Done(_) | Undone::Unknown => PageResponse::see(PATH),
        Undone::Late => Err(too_late(
            "the e-mails have left, so the takedown cannot be taken back as if it had not been made; show the item again \
             instead",
        )),
    }
}

fn too_late(message: &str) -> ApiError {
    ApiError::new(ErrorCode::DecidedBefore, message)
}

async fn weigh(cx: Cx, input: ModeratedReportPath) -> Result<PageResponse, ApiError> {
    let (by, _) = staff(&cx).await?;
    let takedown: TakedownId = id(&input.id, "takedown")?;
    the_takedown(&cx, takedown, by).await?;
    PageResponse::page(&restore_page(&cx, takedown, String::new()).await?)
}

/// Returns the page that asks before an item is shown again.
async fn restore_page(cx: &Cx, takedown: TakedownId, note: String) -> Result<RestorePage, ApiError> {
    let moderation = cx.app.store.moderation();
    let found = moderation.takedown_titled(takedown).await?;
    let found = found.ok_or_else(|| missing("takedown"))?;
    if found.takedown.restored_at.is_some() {
        return Err(decided_before("takedown"));
    }
    let report = moderation.report_behind(&found.takedown).await?;
    Ok(RestorePage {
        chrome: page_layout(cx).await?,
        row: down(found),
        detail: report.map(|report| report.detail),
        note,
        errors: Vec::new(),
    })
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct RestoreItemForm {
    /// Id of the takedown.
    id: String,
    /// Reason, for the owner.
    #[serde(default)]
    #[schemars(length(max = 4_000), regex(pattern = TEXT))]
    note: String,
}

async fn restore(cx: Cx, input: RestoreItemForm) -> Result<PageResponse, ApiError> {
    let (by, _) = staff(&cx).await?;
    let takedown: TakedownId = id(&input.id, "takedown")?;
    the_takedown(&cx, takedown, by).await?;
    let note = match decision_reason("/note", &input.note) {
        Ok(note) => Some(note),
        Err(error) => {
            let page = RestorePage {
                errors: repairable(error)?,
                ..restore_page(&cx, takedown, input.note).await?
            };
            return form_page(&page, true);
        }
    };
    let letter = (
        letters::KIND.to_owned(),
        letters::input(&LetterPayload::ItemRestored { takedown }),
    );
    let moderation = cx.app.store.moderation();
    match moderation.restore(takedown, Some(by), note, letter, cx.now).await? {
        Decided::Done(_) => PageResponse::see(DECIDED),
        Decided::Unknown => Err(missing("takedown")),
        Decided::Before | Decided::Gone => {
            let found = moderation.takedown(takedown).await?;
            if found.is_some_and(|takedown| takedown.restored_by == Some(by)) {
                return PageResponse::see(DECIDED);
            }
            Err(decided_before("takedown"))
        }
    }
}

//! Page of takedowns: an owner answers, a moderator decides.
//!
//! Invariant: the queue and its forms exist for moderators only; to others they are like nothing.

use pages::console::{ModerationPage, ReportQueue, ReportRow, TakedownRow};
use schemars::JsonSchema;
use serde::Deserialize;
use store::{Decided, Report, ReportKind, ReportStatus, Takedown, Uphold};
use types::{OperatorId, ReportId, TakedownId};

use crate::call::cx::Cx;
use crate::call::operation::Operations;
use crate::call::schema::TEXT;
use crate::call::view::PageResponse;
use crate::call::wire::NoInput;
use crate::codes::ErrorCode;
use crate::error::ApiError;
use crate::ops::page_kit::{PAGE_ROWS, form, id, instant, missing, page, page_layout};
use crate::rules::letters::{self, LetterPayload};

const PATH: &str = "/console/moderation";

pub(super) fn add(table: &mut Operations) {
    table.add(page("moderation_page", PATH, "Reports and takedowns"), &[], show);
    table.add(
        form("decide_report_form", "/console/reports/{id}", "Decide about a report"),
        &[],
        decide,
    );
    table.add(
        form(
            "restore_item_form",
            "/console/takedowns/{id}/restore",
            "Show an item again",
        ),
        &[],
        restore,
    );
    table.add(
        form(
            "answer_takedown_form",
            "/console/takedowns/{id}/answer",
            "Answer a takedown",
        ),
        &[],
        answer,
    );
}

async fn show(cx: Cx, _: NoInput) -> Result<PageResponse, ApiError> {
    let operator = cx.the_operator()?;
    let moderation = cx.app.store.moderation();
    let own = moderation.takedowns(Some(operator), None, PAGE_ROWS).await?;
    let queue = if moderation.is_moderator(operator).await? {
        let (reports, takedowns) = tokio::try_join!(
            moderation.reports(Some(ReportStatus::Open), None, PAGE_ROWS),
            moderation.takedowns(None, None, PAGE_ROWS)
        )?;
        Some(ReportQueue {
            reports: reports.into_iter().map(report).collect(),
            takedowns: takedowns.into_iter().map(takedown).collect(),
        })
    } else {
        None
    };
    PageResponse::page(&ModerationPage {
        chrome: page_layout(&cx).await?,
        own: own.into_iter().map(takedown).collect(),
        queue,
    })
}

fn report(report: Report) -> ReportRow {
    let url = match report.kind {
        ReportKind::Dataset => Some(format!("/projects/{}", report.named)),
        _ => None,
    };
    ReportRow {
        id: report.id.to_string(),
        kind: report.kind.to_string(),
        item: report.named,
        url,
        reason: report.reason.to_string(),
        detail: report.detail,
        reporter: if report.agent.is_some() {
            "by an agent"
        } else {
            "without a key"
        }
        .to_owned(),
        email: report.email,
        at: instant(report.created_at),
    }
}

fn takedown(takedown: Takedown) -> TakedownRow {
    TakedownRow {
        id: takedown.id.to_string(),
        kind: takedown.kind.to_string(),
        item: takedown.named,
        reason: takedown.reason.to_string(),
        note: takedown.note,
        at: instant(takedown.at),
        answer: takedown.answer.map(|(_, answer)| answer),
        restored_at: takedown.restored_at.map(instant),
    }
}

/// Returns the operator if it is a moderator; to others a form of moderators is a thing that does not exist.
async fn moderator(cx: &Cx, what: &str) -> Result<OperatorId, ApiError> {
    let operator = cx.the_operator()?;
    if cx.app.store.moderation().is_moderator(operator).await? {
        Ok(operator)
    } else {
        Err(missing(what))
    }
}

/// Decision of a moderator.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum ModeratorDecision {
    Uphold,
    Dismiss,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct DecideReportForm {
    /// Id of the report.
    id: String,
    /// `uphold` takes the item down, `dismiss` leaves it.
    decision: ModeratorDecision,
    /// Words for the owner.
    #[schemars(length(max = 2_000), regex(pattern = TEXT))]
    note: Option<String>,
}

async fn decide(cx: Cx, input: DecideReportForm) -> Result<PageResponse, ApiError> {
    // Before the id is parsed: to anybody else, a good id and a bad one must look alike.
    let by = moderator(&cx, "report").await?;
    let report: ReportId = id(&input.id, "report")?;
    let moderation = cx.app.store.moderation();
    let (is_found, is_done) = match input.decision {
        ModeratorDecision::Dismiss => {
            let dismissed = moderation.dismiss(report, cx.now).await?;
            (dismissed.is_some(), dismissed == Some(true))
        }
        ModeratorDecision::Uphold => {
            let takedown = TakedownId::new(cx.now);
            let new = Uphold {
                report,
                takedown,
                note: input.note.filter(|note| !note.trim().is_empty()),
                by: Some(by),
                letters: letters::decision(takedown),
                now: cx.now,
            };
            let decided = moderation.uphold(new).await?;
            (decided != Decided::Unknown, matches!(decided, Decided::Done(_)))
        }
    };
    answered(is_found, is_done, "report")
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct ModeratedReportPath {
    /// Id of the takedown.
    id: String,
}

async fn restore(cx: Cx, input: ModeratedReportPath) -> Result<PageResponse, ApiError> {
    let by = moderator(&cx, "takedown").await?;
    let takedown: TakedownId = id(&input.id, "takedown")?;
    let letter = (
        letters::KIND.to_owned(),
        letters::input(&LetterPayload::ItemRestored { takedown }),
    );
    let moderation = cx.app.store.moderation();
    let decided = moderation.restore(takedown, Some(by), letter, cx.now).await?;
    answered(
        decided != Decided::Unknown,
        matches!(decided, Decided::Done(_)),
        "takedown",
    )
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct ModerationAnswer {
    /// Id of the takedown.
    id: String,
    /// Words of the owner.
    #[schemars(length(min = 1, max = 4_000), regex(pattern = TEXT))]
    answer: String,
}

async fn answer(cx: Cx, input: ModerationAnswer) -> Result<PageResponse, ApiError> {
    let owner = cx.the_operator()?;
    let takedown: TakedownId = id(&input.id, "takedown")?;
    let moderation = cx.app.store.moderation();
    let letter = letters::digest(cx.now);
    let kept = moderation.answer(owner, takedown, input.answer, letter, cx.now).await?;
    // A takedown of another's item is missing here, so nobody learns of one.
    answered(kept, kept, "takedown")
}

/// Returns the answer to a decision: the page again, or the reason for which nothing changed.
fn answered(is_found: bool, is_done: bool, what: &str) -> Result<PageResponse, ApiError> {
    if !is_found {
        return Err(missing(what));
    }
    if !is_done {
        return Err(ApiError::new(
            ErrorCode::DecidedBefore,
            format!("the {what} was decided before, or its item is gone"),
        ));
    }
    PageResponse::see(PATH)
}

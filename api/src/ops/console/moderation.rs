//! Pages of reports and takedowns: an owner answers, the staff decides.
//!
//! Invariant: the desk and its forms exist for the staff only; to others they are like nothing.

mod case;
mod decide;
mod overlap;

use pages::console::{
    DecidedPage, DecidedRow, DownPage, DownRow, ModerationPage, ModerationTab, ModerationTabs, OwnTakedown,
    QueuedReport, ReportDecisionForm, ReportsPage,
};
use schemars::JsonSchema;
use serde::Deserialize;
use store::{DecidedFilter, DecidedReport, Desk, ReportStatus, TitledTakedown, UNDO_LASTS, WaitingReport};
use types::{OperatorId, ReportId, TakedownId, Timestamp};

use crate::call::cx::Cx;
use crate::call::operation::Operations;
use crate::call::schema::TEXT;
use crate::call::view::PageResponse;
use crate::codes::ErrorCode;
use crate::error::ApiError;
use crate::ops::page_kit::{PAGE_ROWS, form, id, instant, missing, page, page_layout};
use crate::rules::letters;

const PATH: &str = "/console/moderation";

pub(super) fn add(table: &mut Operations) {
    table.add(page("moderation_page", PATH, "Reports and takedowns"), &[], show);
    table.add(
        form(
            "answer_takedown_form",
            "/console/takedowns/{id}/answer",
            "Answer a takedown",
        ),
        &[],
        answer,
    );
    decide::add(table);
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct ModerationQuery {
    /// List that is open: `open`, `answers`, `down`, `decided` or `own`.
    #[schemars(length(max = 20))]
    tab: Option<String>,
    /// Id of the report that is looked at.
    #[schemars(length(max = 40))]
    report: Option<String>,
    /// Outcome of the decided reports: `upheld` or `dismissed`.
    #[schemars(length(max = 20))]
    outcome: Option<String>,
    /// Place in the decided reports.
    #[schemars(length(max = 80))]
    before: Option<String>,
}

async fn show(cx: Cx, input: ModerationQuery) -> Result<PageResponse, ApiError> {
    let operator = cx.the_operator()?;
    let moderation = cx.app.store.moderation();
    if moderation.role_of(operator).await?.is_none() {
        return own(&cx, operator, None).await;
    }
    let here = ModerationTab::of(input.tab.as_deref().unwrap_or_default());
    match here {
        ModerationTab::Open => {
            let asked = match input.report.as_deref().map(str::parse::<ReportId>) {
                None => AskedReport::First,
                Some(Ok(report)) => AskedReport::One(report),
                // A text that is no id names no report, and the page says so.
                Some(Err(_)) => AskedReport::Unknown,
            };
            PageResponse::page(&reports(&cx, asked, ReportDecisionForm::default()).await?)
        }
        ModerationTab::Answers | ModerationTab::Down => {
            let rows = moderation
                .takedowns_down(here == ModerationTab::Answers, PAGE_ROWS)
                .await?;
            PageResponse::page(&DownPage {
                tabs: tabs(moderation.desk().await?, here),
                chrome: page_layout(&cx).await?,
                rows: rows.into_iter().map(down).collect(),
            })
        }
        ModerationTab::Decided => {
            let page = decided(&cx, operator, input.outcome.as_deref(), input.before.as_deref()).await?;
            PageResponse::page(&page)
        }
        ModerationTab::Own => own(&cx, operator, Some(tabs(moderation.desk().await?, here))).await,
    }
}

const fn tabs(desk: Desk, here: ModerationTab) -> ModerationTabs {
    ModerationTabs {
        here,
        open: desk.open,
        answers: desk.answered,
        down: desk.down,
        decided: desk.decided,
    }
}

/// Returns the page of an owner.
async fn own(cx: &Cx, operator: OperatorId, tabs: Option<ModerationTabs>) -> Result<PageResponse, ApiError> {
    let found = cx.app.store.moderation().takedowns_of(operator, PAGE_ROWS).await?;
    let (over, down): (Vec<_>, Vec<_>) = found
        .into_iter()
        .map(own_takedown)
        .partition(|takedown| takedown.restored.is_some());
    PageResponse::page(&ModerationPage {
        chrome: page_layout(cx).await?,
        tabs,
        down,
        over,
    })
}

fn own_takedown(TitledTakedown { takedown, title }: TitledTakedown) -> OwnTakedown {
    let restored_note = takedown.restored_note;
    OwnTakedown {
        id: takedown.id,
        kind: takedown.kind,
        title: title.unwrap_or(takedown.named),
        reason: takedown.reason,
        note: takedown.note,
        at: instant(takedown.at),
        answer: takedown.answer.map(|(at, answer)| (instant(at), answer)),
        restored: takedown.restored_at.map(|at| (instant(at), restored_note)),
    }
}

fn down(TitledTakedown { takedown, title }: TitledTakedown) -> DownRow {
    DownRow {
        id: takedown.id,
        kind: takedown.kind,
        title: title.unwrap_or(takedown.named),
        reason: takedown.reason,
        note: takedown.note,
        answer: takedown.answer.map(|(at, answer)| (instant(at), answer)),
        at: instant(takedown.at),
        owner: takedown.owner,
    }
}

/// Report that is asked for.
#[derive(Clone, Copy, Debug)]
enum AskedReport {
    /// The one that is looked at first.
    First,
    /// A certain one.
    One(ReportId),
    /// One that cannot exist.
    Unknown,
}

/// Returns the queue with the report that is asked for.
async fn reports(cx: &Cx, asked: AskedReport, form: ReportDecisionForm) -> Result<ReportsPage, ApiError> {
    let moderation = cx.app.store.moderation();
    let (desk, queue) = tokio::try_join!(moderation.desk(), moderation.reports_waiting(PAGE_ROWS))?;
    let here = match asked {
        AskedReport::First => queue.first().map(|row| row.report.id),
        AskedReport::One(report) => Some(report),
        AskedReport::Unknown => None,
    };
    let case = match here {
        Some(report) => case::of(cx, report).await?,
        None => None,
    };
    Ok(ReportsPage {
        chrome: page_layout(cx).await?,
        tabs: tabs(desk, ModerationTab::Open),
        queue: queue.into_iter().map(|row| queued(row, here)).collect(),
        case,
        form,
    })
}

fn queued(WaitingReport { report, title }: WaitingReport, here: Option<ReportId>) -> QueuedReport {
    QueuedReport {
        id: report.id,
        kind: report.kind,
        title: title.unwrap_or(report.named),
        reason: report.reason,
        is_by_agent: report.agent.is_some(),
        at: instant(report.created_at),
        here: here == Some(report.id),
    }
}

/// Returns the decided reports of an outcome.
async fn decided(
    cx: &Cx,
    operator: OperatorId,
    outcome: Option<&str>,
    before: Option<&str>,
) -> Result<DecidedPage, ApiError> {
    let (filter, outcome) = match outcome {
        Some("upheld") => (DecidedFilter::Upheld, "upheld"),
        Some("dismissed") => (DecidedFilter::Dismissed, "dismissed"),
        _ => (DecidedFilter::All, ""),
    };
    let moderation = cx.app.store.moderation();
    let place = before.map(place).transpose()?;
    let (desk, mut rows) = tokio::try_join!(moderation.desk(), moderation.decided(filter, place, PAGE_ROWS + 1))?;
    let more = rows.len() > usize::try_from(PAGE_ROWS).unwrap_or(usize::MAX);
    rows.truncate(usize::try_from(PAGE_ROWS).unwrap_or(usize::MAX));
    let first = format!("{PATH}?tab=decided&outcome={outcome}");
    let last = rows.last().filter(|_| more);
    let next = last.and_then(|row| {
        let at = row.report.decided_at?;
        Some(format!("{first}&before={}.{}", at.micros(), row.report.id))
    });
    Ok(DecidedPage {
        chrome: page_layout(cx).await?,
        tabs: tabs(desk, ModerationTab::Decided),
        outcome,
        rows: rows.into_iter().map(|row| decided_row(row, operator, cx.now)).collect(),
        next,
        first: before.is_some().then_some(first),
    })
}

/// Reads a place in the decided reports: the time of a decision and the report.
fn place(text: &str) -> Result<(Timestamp, ReportId), ApiError> {
    let parsed = text.split_once('.').and_then(|(at, report)| {
        let at: i64 = at.parse().ok()?;
        Some((Timestamp::from_micros(at), report.parse().ok()?))
    });
    parsed.ok_or_else(|| missing("page"))
}

fn decided_row(row: DecidedReport, operator: OperatorId, now: Timestamp) -> DecidedRow {
    let report = row.report;
    let at = report.decided_at.unwrap_or(report.created_at);
    let until = at.plus(UNDO_LASTS);
    // What was decided at the command line was told at once.
    let is_open = row.by.is_some() && row.restored_at.is_none() && now < until;
    let is_down = report.status == ReportStatus::Upheld;
    DecidedRow {
        id: report.id,
        kind: report.kind,
        title: row.title.unwrap_or(report.named),
        reason: report.reason,
        takedown: report.takedown,
        at: instant(at),
        by: row.decider,
        is_own: row.by == Some(operator),
        note: if is_down { row.takedown_note } else { report.note },
        is_answered: row.answered_at.is_some(),
        restored_at: row.restored_at.map(instant),
        undo_until: is_open.then(|| instant(until)),
    }
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
    if !kept {
        return Err(missing("takedown"));
    }
    PageResponse::see(&format!("{PATH}?tab={}", ModerationTab::Own.word()))
}

/// Returns the 409 for what was decided before.
fn decided_before(what: &str) -> ApiError {
    ApiError::new(
        ErrorCode::DecidedBefore,
        format!("the {what} was decided before, or its item is gone"),
    )
}

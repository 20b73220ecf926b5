//! Pages of a report: its form, and what became of it.

use http::{Method, StatusCode};
use pages::{FieldError, ReportOutcomePage, ReportPage, ReportState};
use schemars::JsonSchema;
use serde::Deserialize;
use store::{ReportKind, ReportReason, ReportStatus};

use super::page;
use crate::call::cx::Cx;
use crate::call::operation::Operations;
use crate::call::schema::{LINE, TEXT};
use crate::call::spec::{Effect, Scope, Spec};
use crate::call::view::PageResponse;
use crate::error::ApiError;
use crate::ops::page_kit::{instant, page_layout};
use crate::ops::reports::{REPORTS, SentReport, found, send};

const PATH: &str = "/report";
/// Least and most characters of an explanation.
const DETAIL: std::ops::RangeInclusive<usize> = 10..=4_000;

pub(super) fn add(table: &mut Operations) {
    table.add(page("report_page", PATH, "Report an item"), &[], blank);
    let form = Spec {
        method: Method::POST,
        scope: Scope::Write,
        effect: Effect::Write,
        limits: REPORTS,
        ..page("report_form", PATH, "Report an item")
    };
    table.add(form, &[], sent);
    table.add(
        page("report_outcome_page", "/reports/{id}", "What became of a report"),
        &[],
        outcome,
    );
}

/// Item that the form begins with.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct BlankReportForm {
    /// Kind of the item.
    #[schemars(length(max = 20), regex(pattern = LINE))]
    kind: Option<String>,
    /// Id or name of the item.
    #[schemars(length(max = 80), regex(pattern = LINE))]
    id: Option<String>,
}

async fn blank(cx: Cx, input: BlankReportForm) -> Result<PageResponse, ApiError> {
    let page = form(&cx, input.kind.unwrap_or_default(), input.id.unwrap_or_default()).await?;
    PageResponse::page(&page)
}

async fn form(cx: &Cx, kind: String, id: String) -> Result<ReportPage, ApiError> {
    Ok(ReportPage {
        chrome: page_layout(cx).await?,
        kinds: ReportKind::WORDS,
        reasons: ReportReason::WORDS,
        kind: if kind.is_empty() { "dataset".to_owned() } else { kind },
        item: id,
        reason: ReportReason::Copyright.as_str().to_owned(),
        detail: String::new(),
        email: String::new(),
        errors: Vec::new(),
    })
}

/// Form as the person filled it in.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct FilledReportForm {
    /// Kind of the item.
    #[schemars(length(max = 20), regex(pattern = LINE))]
    kind: String,
    /// Id or name of the item.
    #[schemars(length(max = 80), regex(pattern = LINE))]
    id: String,
    /// Reason as the form sent it.
    #[schemars(length(max = 20), regex(pattern = LINE))]
    reason: String,
    /// Explanation as the form sent it.
    #[schemars(length(max = 5_000), regex(pattern = TEXT))]
    detail: String,
    /// Address for questions; an empty text is none.
    #[schemars(length(max = 320), regex(pattern = LINE))]
    email: Option<String>,
}

async fn sent(cx: Cx, input: FilledReportForm) -> Result<PageResponse, ApiError> {
    let mut errors = Vec::new();
    let mut error = |field: &str, message: &str| errors.push(FieldError::new(field, message));
    let (kind, reason) = (input.kind.parse(), input.reason.parse());
    if kind.is_err() {
        error("kind", "Choose a kind");
    }
    if reason.is_err() {
        error("", "Choose a reason");
    }
    if input.id.trim().is_empty() {
        error("id", "Name the item");
    }
    if !DETAIL.contains(&input.detail.chars().count()) {
        error("detail", "Write 10 to 4,000 characters");
    }
    if let (Ok(kind), Ok(reason), true) = (kind, reason, errors.is_empty()) {
        let report = SentReport {
            kind,
            id: input.id.trim().to_owned(),
            reason,
            detail: input.detail.clone(),
            email: input.email.clone(),
        };
        match send(&cx, report).await {
            Ok((_, shown)) => {
                let base = &cx.app.config.public_url;
                return PageResponse::see(shown.outcome.strip_prefix(base.as_str()).unwrap_or(&shown.outcome));
            }
            Err(error) => match error.status() {
                // Kind, reason, name and explanation were checked above, so only the address is left to
                // be wrong.
                StatusCode::BAD_REQUEST => errors.push(FieldError::new(
                    "email",
                    "Write an e-mail address; for copyright and personal-data it is needed",
                )),
                StatusCode::NOT_FOUND => errors.push(FieldError::new("id", "There is no such item that you may see")),
                _ => return Err(error),
            },
        }
    }
    let page = ReportPage {
        reason: input.reason,
        detail: input.detail,
        email: input.email.unwrap_or_default(),
        errors,
        ..form(&cx, input.kind, input.id).await?
    };
    Ok(PageResponse::page(&page)?.with_status(StatusCode::BAD_REQUEST))
}

/// Report whose outcome is asked.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct ReportPagePath {
    /// Id of the report.
    #[schemars(length(max = 64))]
    id: String,
    /// Token of the address that the reporter was given.
    #[schemars(length(max = 100))]
    token: Option<String>,
}

async fn outcome(cx: Cx, input: ReportPagePath) -> Result<PageResponse, ApiError> {
    let (report, takedown) = found(&cx, &input.id, input.token.as_deref()).await?;
    let restored = takedown.and_then(|takedown| takedown.restored_at);
    PageResponse::page(&ReportOutcomePage {
        chrome: page_layout(&cx).await?,
        kind: report.kind.to_string(),
        item: report.named,
        reason: report.reason.to_string(),
        at: instant(report.created_at),
        state: match (report.status, restored) {
            (ReportStatus::Open, _) => ReportState::Open,
            (ReportStatus::Dismissed, _) => ReportState::Dismissed,
            (ReportStatus::Upheld, None) => ReportState::Down,
            (ReportStatus::Upheld, Some(_)) => ReportState::Restored,
        },
        decided_at: report.decided_at.map(instant),
    })
}

//! Operation that takes a report.

use http::StatusCode;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use store::{NewReport, Report, ReportKind, ReportReason, ReportStatus, Reported};
use types::ReportId;

use super::find;
use crate::call::answer::JsonReply;
use crate::call::cx::Cx;
use crate::call::schema::{LINE, TEXT};
use crate::call::wire::WireInstant;
use crate::error::ApiError;
use crate::rules::letters::{self, LetterPayload};
use crate::state::limit::LimitSource;

/// Report of an item to moderators.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(in crate::ops) struct SentReport {
    /// Kind of the item.
    pub(in crate::ops) kind: ReportKind,
    /// Id of the unit or request, slug of the dataset, name of the agent, number of the comment or review. The words beside
    /// a rating are a `review` named by the id of the unit, `/` and the name of the agent.
    #[schemars(length(min = 1, max = 80), regex(pattern = LINE))]
    pub(in crate::ops) id: String,
    /// Reason for which it is reported.
    pub(in crate::ops) reason: ReportReason,
    /// Explanation: the fault, and how it can be seen.
    #[schemars(length(min = 10, max = 4_000), regex(pattern = TEXT))]
    pub(in crate::ops) detail: String,
    /// Address for questions. Needed for `copyright` and `personal-data` without a key.
    #[schemars(length(max = 320), regex(pattern = LINE))]
    pub(in crate::ops) email: Option<String>,
}

/// Report with its status and decision.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "Shown")]
#[serde(rename_all = "camelCase")]
pub(in crate::ops) struct ShownReport {
    id: String,
    kind: ReportKind,
    /// The item, as it was named.
    item: String,
    reason: ReportReason,
    status: ReportStatus,
    at: WireInstant,
    /// Time of the decision.
    #[serde(skip_serializing_if = "Option::is_none")]
    decided_at: Option<WireInstant>,
    /// Time at which an item that was taken down was shown again.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) restored_at: Option<WireInstant>,
    /// Address of the outcome. Without a key it is the only way to it.
    pub(in crate::ops) outcome: String,
}

impl ShownReport {
    /// Returns a report as answers show it.
    pub(super) fn of(report: Report, outcome: String) -> Self {
        Self {
            id: report.id.to_string(),
            kind: report.kind,
            item: report.named,
            reason: report.reason,
            status: report.status,
            at: report.created_at.into(),
            decided_at: report.decided_at.map(Into::into),
            restored_at: None,
            outcome,
        }
    }
}

pub(super) async fn report(cx: Cx, input: SentReport) -> Result<JsonReply<ShownReport>, ApiError> {
    let (status, shown) = send(&cx, input).await?;
    Ok(JsonReply { status, body: shown })
}

/// Keeps a report of the caller.
pub(in crate::ops) async fn send(cx: &Cx, input: SentReport) -> Result<(StatusCode, ShownReport), ApiError> {
    let agent = cx.agent();
    let email = input.email.as_deref().map(str::trim).filter(|email| !email.is_empty());
    if let Some(email) = email
        && !mail::is_address(email)
    {
        return Err(ApiError::invalid("/email", "must be an e-mail address"));
    }
    let needs_email = matches!(input.reason, ReportReason::Copyright | ReportReason::PersonalData);
    if needs_email && agent.is_none() && email.is_none() {
        let problem = "is required for `copyright` and `personal-data` without the key of an agent";
        return Err(ApiError::invalid("/email", problem));
    }
    // Only what the caller may see: a report would otherwise tell which private items exist.
    let item = find::stored(cx, input.kind, &input.id).await?;
    let signer = cx.app.process.links.signer(&cx.app.store, cx.now).await?;
    let reporter = match agent {
        Some(agent) => agent.to_string(),
        // The hash needs the secret, so that nobody finds addresses in it by trying them.
        None => signer.reporter(&format!(
            "{:?} {}",
            LimitSource::from(cx.client),
            email.unwrap_or_default()
        )),
    };
    let id = ReportId::new(cx.now);
    // An agent reads the outcome with its key. A stranger chose the address, so the letter counts
    // toward those for strangers.
    let letter = email.filter(|_| agent.is_none()).map(|_| {
        let budget = Some(letters::for_strangers(cx.app.config.mails_per_day));
        letters::mail(&LetterPayload::Reported { report: id }, None, budget, cx.now)
    });
    let new = NewReport {
        id,
        kind: input.kind,
        item,
        named: input.id.clone(),
        reason: input.reason,
        detail: input.detail,
        reporter,
        agent,
        email: email.map(str::to_owned),
        digest: letters::digest(cx.now),
        letter,
        now: cx.now,
    };
    // A repeated report is answered with the first one, so that moderators see it once.
    let (status, report) = match cx.app.store.moderation().report(new).await? {
        Reported::New(report) => (StatusCode::CREATED, report),
        Reported::Before(report) => (StatusCode::OK, report),
    };
    let base = &cx.app.config.public_url;
    let id = report.id;
    let outcome = if report.agent.is_some() {
        format!("{base}/reports/{id}")
    } else {
        format!("{base}/reports/{id}?token={}", signer.report_token(id))
    };
    Ok((status, ShownReport::of(report, outcome)))
}

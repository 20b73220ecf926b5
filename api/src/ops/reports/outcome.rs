//! Operation that says what became of a report.

use schemars::JsonSchema;
use serde::Deserialize;
use store::{Report, Takedown};
use types::ReportId;

use super::send::ShownReport;
use crate::call::answer::JsonReply;
use crate::call::cx::Cx;
use crate::error::ApiError;

/// Report whose outcome is asked.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct ReportPath {
    /// Id of the report.
    #[schemars(extend("format" = "uuid"))]
    id: String,
    /// Token of the address that the reporter was given; not needed with the key of the agent that reported.
    #[schemars(length(max = 100))]
    token: Option<String>,
}

pub(super) async fn outcome(cx: Cx, input: ReportPath) -> Result<JsonReply<ShownReport>, ApiError> {
    let token = input.token.as_deref();
    let (report, takedown) = found(&cx, &input.id, token).await?;
    let base = &cx.app.config.public_url;
    let query = token.map_or_else(String::new, |token| format!("?token={token}"));
    let outcome = format!("{base}/reports/{}{query}", report.id);
    let mut shown = ShownReport::of(report, outcome);
    shown.restored_at = takedown.and_then(|takedown| takedown.restored_at).map(Into::into);
    Ok(JsonReply::ok(shown))
}

/// Returns a report, with the takedown that it led to, to who knows its token and to its agent.
pub(in crate::ops) async fn found(
    cx: &Cx,
    id: &str,
    token: Option<&str>,
) -> Result<(Report, Option<Takedown>), ApiError> {
    // A wrong token, the report of another and no report at all get the same answer, so ids cannot be
    // probed.
    let missing = || ApiError::not_found("there is no such report of the caller");
    let id: ReportId = id.parse().map_err(|_error| missing())?;
    let signer = cx.app.process.links.signer(&cx.app.store, cx.now).await?;
    // A token that is sent must be right, also with the key of the agent.
    let knows = token.is_some_and(|token| signer.is_report_token(id, token));
    let moderation = cx.app.store.moderation();
    let report = moderation.report_of(id).await?;
    let is_own = |report: &Report| token.is_none() && report.agent.is_some() && report.agent == cx.agent();
    let report = report.filter(|report| knows || is_own(report)).ok_or_else(missing)?;
    let takedown = match report.takedown {
        Some(takedown) => moderation.takedown(takedown).await?,
        None => None,
    };
    Ok((report, takedown))
}

//! The contributions of the caller's operator.

use schemars::JsonSchema;
use serde::Serialize;
use store::{ContributionStatus, ListedContribution, Selection};
use types::ContributionId;

use super::{ListQuery, OwnListQuery};
use crate::call::answer::JsonReply;
use crate::call::cx::Cx;
use crate::call::wire::{BatchReason, WireInstant};
use crate::error::ApiError;
use crate::ops::console::records;
use crate::ops::paging::take_page;

/// A contribution in a list.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct MyContribution {
    id: String,
    /// Slug of the project.
    project: String,
    /// Name of the agent that contributed.
    agent: String,
    status: ContributionStatus,
    /// Number of records submitted; for an upload, 0 until it is decided.
    submitted_count: u64,
    submitted_at: WireInstant,
    /// Version that it became, when merged.
    #[serde(skip_serializing_if = "Option::is_none")]
    merged_version: Option<u64>,
    /// Number of its records that are new in that version, when merged.
    #[serde(skip_serializing_if = "Option::is_none")]
    accepted_count: Option<u64>,
    /// Reason of a rejection or a wait.
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<BatchReason>,
    /// Time at which a waiting contribution is judged again, where known.
    #[serde(skip_serializing_if = "Option::is_none")]
    resumes_after: Option<WireInstant>,
    /// Address of the contribution with its outcome.
    url: String,
}

pub(super) async fn list(cx: Cx, input: ListQuery) -> Result<JsonReply<OwnListQuery<MyContribution>>, ApiError> {
    let (before, limit) = input.read::<ContributionId>()?;
    let console = cx.app.store.console();
    let mut found = console
        .contributions_of(cx.the_operator()?, Selection::All, before, limit + 1)
        .await?;
    let next_cursor = take_page(&mut found, limit).map(|last| last.id.to_string());
    Ok(JsonReply::ok(OwnListQuery {
        items: found.into_iter().map(|one| line(&cx, one)).collect(),
        next_cursor,
    }))
}

fn line(cx: &Cx, one: ListedContribution) -> MyContribution {
    let rejected = one.reject_code.zip(one.reject_message);
    let rejected = rejected.map(|(code, message)| BatchReason::rejected(code, message));
    MyContribution {
        url: format!(
            "{}/projects/{}/contributions/{}",
            cx.app.config.public_url, one.slug, one.id
        ),
        id: one.id.to_string(),
        project: one.slug,
        agent: one.agent_name,
        status: one.status,
        submitted_count: records(one.rows, one.tallies.as_deref()),
        submitted_at: one.submitted_at.into(),
        merged_version: one.version.map(|version| version.0),
        accepted_count: one.accepted,
        reason: rejected.or_else(|| one.waiting_reason.as_deref().map(BatchReason::held)),
        resumes_after: one.resumes_after.map(Into::into),
    }
}

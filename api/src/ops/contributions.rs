//! Operations that return the status and the verdicts of a contribution.

use std::time::Duration;

use schemars::JsonSchema;
use serde::Deserialize;
use store::Contribution;
use types::ContributionId;

use crate::call::answer::{JsonReply, NdjsonAnswer};
use crate::call::cx::Cx;
use crate::call::operation::Operations;
use crate::call::schema::SchemaBound;
use crate::call::spec::{GuardedItem, KEY, Spec};
use crate::call::wire::VerdictLine;
use crate::codes::ErrorCode;
use crate::config::Limits;
use crate::error::ApiError;
use crate::rules::entitlement;

mod view;

pub(super) use view::{ContributionView, left, stored_left_out, verdicts as stored_verdicts};

pub(super) fn add(table: &mut Operations, limits: &Limits) {
    table.add(
        Spec {
            name: "contribution_status",
            path: "/projects/{slug}/contributions/{id}",
            summary: "Where a contribution stands",
            description: "For the operator that contributed and the one that maintains the project. Where it waits, \
                          `reason.code` is `budget`, `provider` or `paused`.",
            tag: "datasets",
            accepts: KEY,
            item: GuardedItem::Project,
            success: &[(200, "The contribution: submitted, waiting, merged or rejected.")],
            failure: &[(404, "There is no such contribution that the caller may see.")],
            ..Spec::BASE
        },
        &[wait_bound(limits)],
        status,
    );
    table.add(
        Spec {
            name: "contribution_verdicts",
            path: "/projects/{slug}/contributions/{id}/verdicts",
            summary: "What the gates said of each record of a contribution",
            description: "One line per submitted record, in order, those that passed included; of an upload the first 1000 \
                          that did not pass (with `onRefused: drop` 1000 refused ones and 1000 duplicates), `row` \
                          counted in lines from 0; none of a batch that the service could not \
                          process. For the operator that contributed and the one that maintains the project.",
            tag: "datasets",
            accepts: KEY,
            item: GuardedItem::Project,
            success: &[(200, "One verdict a line.")],
            failure: &[
                (404, "There is no such contribution that the caller may see."),
                (409, "The contribution is not decided yet."),
            ],
            ..Spec::BASE
        },
        &[],
        verdicts,
    );
}

/// Returns the bound on `wait`, from the configuration.
pub(super) fn wait_bound(limits: &Limits) -> SchemaBound {
    SchemaBound {
        at: "/properties/wait",
        keyword: "maximum",
        value: limits.wait.seconds().into(),
        asserted: true,
    }
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct ContributionStatusInput {
    /// Slug of the project.
    slug: String,
    /// Id of the contribution.
    #[schemars(extend("format" = "uuid"))]
    id: String,
    /// Seconds to wait for the outcome.
    #[serde(default)]
    #[schemars(range(min = 0, max = 20))]
    wait: u32,
}

async fn status(cx: Cx, input: ContributionStatusInput) -> Result<JsonReply<ContributionView>, ApiError> {
    let mut row = find(&cx, &input.slug, &input.id).await?;
    // A decided contribution is answered at once, whatever `wait` is.
    if input.wait > 0 && !row.status.is_terminal() {
        let wait = Duration::from_secs(input.wait.into());
        if let Some(later) = cx.app.waiters.outcome(&cx.app.store, row.id, wait).await? {
            row = later;
        }
    }
    Ok(JsonReply::ok(ContributionView::of(&cx, &input.slug, row).await?))
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct ContributionPath {
    /// Slug of the project.
    slug: String,
    /// Id of the contribution.
    #[schemars(extend("format" = "uuid"))]
    id: String,
}

async fn verdicts(cx: Cx, input: ContributionPath) -> Result<NdjsonAnswer<VerdictLine>, ApiError> {
    let row = find(&cx, &input.slug, &input.id).await?;
    if !row.status.is_terminal() {
        let message = format!("the contribution is {} and has no verdicts yet", row.status);
        return Err(ApiError::new(ErrorCode::Undecided, message).field("status", row.status.as_str()));
    }
    // Only the first verdicts of an upload are stored, and a submission that could not be processed has none. So the
    // stored lines are all.
    if row.rows == 0 || row.reject_code.as_deref() == Some("unprocessable") {
        let verdicts = view::verdicts(&cx, row.id).await?;
        return Ok(NdjsonAnswer(verdicts.into_iter().map(VerdictLine::from).collect()));
    }
    // Only verdicts other than `pass` are stored. The other rows of a batch passed.
    let mut lines: Vec<VerdictLine> = (0..row.rows).map(VerdictLine::pass).collect();
    for verdict in view::verdicts(&cx, row.id).await? {
        if let Some(line) = lines.get_mut(verdict.row as usize) {
            *line = verdict.into();
        }
    }
    Ok(NdjsonAnswer(lines))
}

/// Returns a contribution to a project if the caller's operator contributed it or maintains the project, otherwise a
/// 404.
async fn find(cx: &Cx, slug: &str, id: &str) -> Result<Contribution, ApiError> {
    // Buyers of a dataset that is taken down keep its rows only.
    let project = entitlement::current(cx, slug).await?;
    let missing = || ApiError::not_found(format!("there is no contribution `{id}` to `{slug}`"));
    let parsed: ContributionId = id.parse().map_err(|_error| missing())?;
    let caller = cx.the_operator()?;
    let row = cx.app.store.contribution(parsed).await?;
    row.filter(|row| row.project == project.id && (row.operator == caller || project.operator == caller))
        .ok_or_else(missing)
}

#[cfg(test)]
mod tests;

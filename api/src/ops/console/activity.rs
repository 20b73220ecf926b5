//! Page of the trail: who changed what, and the work that happens later.

use pages::console::{ActivityPage, ActivityRow, ChangeActor, JobRow};
use schemars::JsonSchema;
use serde::Deserialize;
use store::AuditEntry;
use types::OperatorId;
use types::vocabulary::ActorKind;

use crate::call::cx::Cx;
use crate::call::operation::Operations;
use crate::call::view::PageResponse;
use crate::error::ApiError;
use crate::ops::page_kit::{PAGE_ROWS, instant, page, page_layout};
use crate::ops::paging::take_page;

const PATH: &str = "/console/activity";

pub(super) fn add(table: &mut Operations) {
    table.add(page("activity_page", PATH, "Activity"), &[], show);
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct ActivityPageQuery {
    /// Id of the last row of the page before.
    #[schemars(length(max = 64))]
    before: Option<String>,
}

async fn show(cx: Cx, input: ActivityPageQuery) -> Result<PageResponse, ApiError> {
    let operator = cx.the_operator()?;
    let flow = cx.app.store.flow();
    let mut entries = flow.audit_of(operator, input.before.as_deref(), PAGE_ROWS + 1).await?;
    let next = take_page(&mut entries, PAGE_ROWS).map(|entry| format!("{PATH}?before={}", entry.id));
    let jobs = flow.jobs_of(operator).await?;
    PageResponse::page(&ActivityPage {
        chrome: page_layout(&cx).await?,
        rows: named(&cx, operator, entries).await?,
        next,
        is_later: input.before.is_some(),
        jobs: jobs
            .into_iter()
            .map(|job| JobRow {
                kind: job.kind,
                due_at: instant(job.due_at),
                attempts: job.attempts,
                last_error: job.last_error,
                failed_at: job.failed_at.map(instant),
            })
            .collect(),
    })
}

/// Returns the latest rows of the trail that an operator may read, newest first.
pub(super) async fn rows(cx: &Cx, operator: OperatorId, limit: u32) -> Result<Vec<ActivityRow>, ApiError> {
    let entries = cx.app.store.flow().audit_of(operator, None, limit).await?;
    named(cx, operator, entries).await
}

/// Returns rows of the trail with the names of the agents.
async fn named(cx: &Cx, operator: OperatorId, entries: Vec<AuditEntry>) -> Result<Vec<ActivityRow>, ApiError> {
    let agents = cx.app.store.accounts().agents_of(operator, cx.now).await?;
    let name = |id: &str| {
        let found = agents.iter().find(|agent| agent.id.to_string() == id);
        found.map_or_else(|| id.to_owned(), |agent| agent.name.clone())
    };
    let row = |entry: AuditEntry| ActivityRow {
        at: instant(entry.at),
        actor: match entry.actor_kind {
            ActorKind::Agent => ChangeActor::Agent(entry.actor.as_deref().map(name).unwrap_or_default()),
            ActorKind::Person => match entry.actor.as_deref() {
                Some(agent) => ChangeActor::PersonAs(name(agent)),
                None => ChangeActor::Person,
            },
            ActorKind::Anonymous => ChangeActor::Anonymous,
        },
        // A form does the same as the operation for programs, so it has the same words.
        operation: entry.operation.trim_end_matches("_form").to_owned(),
        subject: entry.subject,
        request_id: entry.request_id,
    };
    Ok(entries.into_iter().map(row).collect())
}

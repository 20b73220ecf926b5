//! Operations about the caller: who it is, what it may do and has left, and lists of what is its operator's.
//!
//! Invariant: each list shows rows of the caller's operator only, whichever of its agents made them.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use store::{ListedProject, ProjectStatus, Visibility};
use types::AgentId;

use super::quota::{self, OperatorQuota};
use crate::call::answer::JsonReply;
use crate::call::caller::CallerKind;
use crate::call::cx::Cx;
use crate::call::operation::Operations;
use crate::call::spec::{Credential, KEY_OPERATOR_OR_APP, Scope, Spec};
use crate::call::wire::{NoInput, WireInstant};
use crate::error::ApiError;
use crate::ops::paging::{NOT_A_NEXT_CURSOR, read_cursor};

mod contributions;
mod purchases;
mod requests;
mod units;

/// Items on a page when the caller gives no `limit`.
const DEFAULT_LIMIT: u32 = 50;
/// Active projects that are looked at. The platform's own operator has more than any limit.
const MAX_PROJECTS: u32 = 1_000;
/// Headers of the refusal of an app's token.
const LACKS_SCOPE: &[(&[u16], &str, &str)] =
    &[(&[403], "WWW-Authenticate", "`Bearer`, with the scope that is needed.")];
/// Refusal of an app's token.
const NO_SCOPE: (u16, &str) = (403, "The token of an app lacks the scope `read`.");

/// Returns the fields that the entries of this folder share.
fn base() -> Spec {
    Spec {
        tag: "accounts",
        accepts: KEY_OPERATOR_OR_APP,
        failure: &[NO_SCOPE],
        answer_headers: LACKS_SCOPE,
        ..Spec::BASE
    }
}

pub(super) fn add(table: &mut Operations) {
    table.add(
        Spec {
            name: "me",
            path: "/me",
            summary: "The caller: name, operator, scopes, limits left, active projects and their limit",
            description: "For an agent key, an operator token, and the token of an app for `/mcp` with any scope.",
            any_scope: true,
            failure: &[],
            answer_headers: &[],
            ..base()
        },
        &[],
        me,
    );
    table.add(
        Spec {
            name: "my_units",
            path: "/me/knowledge",
            summary: "Units and revisions that agents of the operator submitted, newest first, whatever became of them",
            ..base()
        },
        &[],
        units::list,
    );
    table.add(
        Spec {
            name: "my_contributions",
            path: "/me/contributions",
            summary: "Contributions of the operator's agents to any dataset, newest first",
            ..base()
        },
        &[],
        contributions::list,
    );
    table.add(
        Spec {
            name: "my_requests",
            path: "/me/requests",
            summary: "Requests of the operator's agents on the board, newest first",
            ..base()
        },
        &[],
        requests::list,
    );
    table.add(
        Spec {
            name: "my_purchases",
            path: "/me/purchases",
            summary: "Items that the operator bought, newest first",
            description: "With credits, and by x402 from its proved payout wallet.",
            ..base()
        },
        &[],
        purchases::list,
    );
}

/// Page of a list that is asked for.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct ListQuery {
    /// The `nextCursor` of the page before.
    #[schemars(extend("format" = "uuid"))]
    cursor: Option<String>,
    /// Greatest number of items on the page; 50 where not given.
    #[schemars(range(min = 1, max = 100))]
    limit: Option<u32>,
}

impl ListQuery {
    /// Returns the id of the last item of the page before, and the length of the page.
    fn read<T: std::str::FromStr>(&self) -> Result<(Option<T>, u32), ApiError> {
        let cursor = read_cursor(self.cursor.as_deref(), NOT_A_NEXT_CURSOR)?;
        Ok((cursor, self.limit.unwrap_or(DEFAULT_LIMIT)))
    }
}

/// Page of a list.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "Page")]
#[serde(rename_all = "camelCase")]
struct OwnListQuery<T> {
    items: Vec<T>,
    /// Cursor of the next page; absent on the last.
    #[serde(skip_serializing_if = "Option::is_none")]
    next_cursor: Option<String>,
}

/// The caller, as the service knows it.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "Me")]
#[serde(rename_all = "camelCase")]
struct CallerView {
    /// Name of the agent that acts; of an operator token the display name of the operator.
    name: String,
    /// Id of the agent that acts; absent for an operator token.
    #[serde(skip_serializing_if = "Option::is_none")]
    agent_id: Option<String>,
    operator: MyOperator,
    /// Kind of the credential: `agent_key`, `operator_token` or `app_token`.
    credential: &'static str,
    /// Instant from which the key of an agent no longer works; absent for one without end.
    #[serde(skip_serializing_if = "Option::is_none")]
    expires_at: Option<WireInstant>,
    /// Scopes of the credential: `read`, `write`, `spend`.
    scopes: Vec<&'static str>,
    limits: MyLimits,
    projects: MyProjects,
}

/// Operator of the caller.
#[derive(Debug, Serialize, JsonSchema)]
struct MyOperator {
    id: String,
    /// Display name of the operator.
    name: String,
}

/// Limits of the operator: what is used, and what is allowed.
#[derive(Debug, Serialize, JsonSchema)]
struct MyLimits {
    #[serde(flatten)]
    quota: OperatorQuota,
    /// Uploads that are open.
    uploads: LimitUse,
    /// Agents, waiting claims counted.
    agents: LimitUse,
}

/// Used and allowed number.
#[derive(Debug, Serialize, JsonSchema)]
struct LimitUse {
    used: u32,
    allowed: u32,
}

impl LimitUse {
    fn of(used: usize, allowed: u32) -> Self {
        Self {
            used: u32::try_from(used).unwrap_or(u32::MAX),
            allowed,
        }
    }
}

/// Projects of the operator that are not archived.
#[derive(Debug, Serialize, JsonSchema)]
struct MyProjects {
    /// The projects, the latest merge first.
    active: Vec<ActiveProject>,
    /// Number that may be active at once.
    limit: u32,
    /// Number that can still be made before one is archived.
    remaining: u32,
}

/// A project that is not archived.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct ActiveProject {
    slug: String,
    title: String,
    status: ProjectStatus,
    visibility: Visibility,
    /// Latest version; 0 before the first.
    version: u64,
    record_count: u64,
}

async fn me(cx: Cx, _: NoInput) -> Result<JsonReply<CallerView>, ApiError> {
    let (operator, store, limits) = (cx.the_operator()?, &cx.app.store, &cx.app.limits);
    let (accounts, console) = (store.accounts(), store.console());
    let (owner, agents, waiting, uploads, projects) = tokio::try_join!(
        store.operator(operator),
        accounts.agents_of(operator, cx.now),
        accounts.claims_waiting(operator, cx.now),
        store.uploads_open(operator, cx.now),
        console.active_projects_of(operator, MAX_PROJECTS),
    )?;
    let owner = owner.ok_or_else(|| ApiError::internal("the operator of a caller is not in the database"))?;
    let caller = cx
        .caller
        .as_ref()
        .ok_or_else(|| ApiError::internal("a caller without credential"))?;
    let (name, agent): (&str, Option<AgentId>) = match &caller.actor {
        CallerKind::Agent { id, name } => (name.as_str(), Some(*id)),
        CallerKind::Person | CallerKind::SignedIn { .. } | CallerKind::Claimant { .. } => {
            (owner.display_name.as_str(), None)
        }
    };
    let agents = agents.iter().filter(|agent| agent.removed_at.is_none()).count();
    let limit = limits.active_projects_per_operator;
    Ok(JsonReply::ok(CallerView {
        name: name.to_owned(),
        agent_id: agent.map(|id| id.to_string()),
        credential: match caller.credential {
            Credential::AgentKey => "agent_key",
            Credential::AppToken => "app_token",
            Credential::OperatorToken => "operator_token",
            Credential::Session | Credential::ClaimedKey | Credential::Anonymous => {
                return Err(ApiError::internal("the table of operations lets no such credential in"));
            }
        },
        expires_at: caller.expires_at.map(Into::into),
        scopes: [Scope::Read, Scope::Write, Scope::Spend]
            .into_iter()
            .filter(|scope| caller.scopes.allow(*scope))
            .map(|scope| crate::rules::auth::apps::of(scope).word())
            .collect(),
        limits: MyLimits {
            quota: quota::of(&cx).await?,
            uploads: LimitUse::of(uploads.len(), limits.open_uploads),
            agents: LimitUse::of(agents.saturating_add(waiting as usize), limits.agents_per_operator),
        },
        projects: MyProjects {
            limit,
            remaining: limit.saturating_sub(u32::try_from(projects.len()).unwrap_or(u32::MAX)),
            active: projects.into_iter().map(ActiveProject::from).collect(),
        },
        operator: MyOperator {
            id: operator.to_string(),
            name: owner.display_name,
        },
    }))
}

impl From<ListedProject> for ActiveProject {
    fn from(project: ListedProject) -> Self {
        Self {
            slug: project.slug,
            title: project.title,
            status: project.status,
            visibility: project.visibility,
            version: project.version.0,
            record_count: project.record_count,
        }
    }
}

#[cfg(test)]
mod tests;

//! Forms of the limits on what an agent or an app spends.
//!
//! Invariant: only the person of the owner's operator sets them.

use oauth::ConnectionId;
use pages::SpendOwnerName;
use pages::console::{LimitsForm, LimitsPage};
use schemars::JsonSchema;
use serde::Deserialize;
use store::{SpendLimits, SpendOwner};
use types::AgentId;

use crate::call::cx::Cx;
use crate::call::operation::Operations;
use crate::call::spec::Spec;
use crate::call::view::PageResponse;
use crate::error::ApiError;
use crate::ops::page_kit::{form, form_page, id, missing, page, page_layout, repairable};
use crate::ops::spend_lines::{self, limit, may_act};
use crate::rules::spending;

const AGENT: &str = "/console/agents/{id}/limits";
const APP: &str = "/console/apps/{id}/limits";
/// Place of all limits, which comes again.
const ALL: &str = "/console/money#limits";

pub(super) fn add(table: &mut Operations) {
    let set = |name, path, summary| Spec {
        names_origin: true,
        ..form(name, path, summary)
    };
    table.add(page("agent_limits_page", AGENT, "What an agent may spend"), &[], agent);
    let agent_form = set("agent_limits_form", AGENT, "Sets what an agent may spend");
    table.add(agent_form, &[], set_agent);
    table.add(page("app_limits_page", APP, "What an app may spend"), &[], app);
    let app_form = set("app_limits_form", APP, "Sets what an app may spend");
    table.add(app_form, &[], set_app);
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct LimitsPath {
    /// Id of the agent or the connection.
    #[schemars(length(max = 64))]
    id: String,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct SpendLimitsForm {
    /// Id of the agent or the connection.
    #[schemars(length(max = 64))]
    id: String,
    /// Greatest price of a purchase, in dollars; empty for none.
    #[serde(default)]
    #[schemars(length(max = 20))]
    per_purchase: String,
    /// Most of a UTC day.
    #[serde(default)]
    #[schemars(length(max = 20))]
    per_day: String,
    /// Most of a UTC month.
    #[serde(default)]
    #[schemars(length(max = 20))]
    per_month: String,
    /// Price above which the person is asked.
    #[serde(default)]
    #[schemars(length(max = 20))]
    approve_above: String,
}

impl SpendLimitsForm {
    /// Returns the limits.
    fn limits(&self) -> Result<SpendLimits, ApiError> {
        Ok(SpendLimits {
            per_purchase: limit(&self.per_purchase, "/per_purchase")?,
            per_day: limit(&self.per_day, "/per_day")?,
            per_month: limit(&self.per_month, "/per_month")?,
            approve_above: limit(&self.approve_above, "/approve_above")?,
        })
    }
}

/// Finds an agent of the person.
async fn find_agent(cx: &Cx, text: &str) -> Result<(SpendOwner, SpendOwnerName), ApiError> {
    let agent: AgentId = id(text, "agent")?;
    let agents = cx.app.store.accounts().agents_of(cx.the_operator()?, cx.now).await?;
    let found = agents.into_iter().find(|other| other.id == agent && may_act(other));
    let found = found.ok_or_else(|| missing("agent"))?;
    let name = SpendOwnerName::Agent {
        id: found.id.to_string(),
        name: found.name,
    };
    Ok((SpendOwner::Agent(agent), name))
}

/// Finds an app that is connected to an agent of the person.
async fn find_app(cx: &Cx, text: &str) -> Result<(SpendOwner, SpendOwnerName), ApiError> {
    let connection: ConnectionId = id(text, "connection")?;
    let apps = cx.app.store.oauth().connections_of(cx.the_operator()?, cx.now).await?;
    let found = apps.iter().find(|app| app.id == connection);
    let found = found.ok_or_else(|| missing("connection"))?;
    let name = SpendOwnerName::App {
        id: found.id.to_string(),
        client: super::apps::name(found),
        agent: found.agent_name.clone(),
    };
    Ok((SpendOwner::App(connection), name))
}

async fn agent(cx: Cx, input: LimitsPath) -> Result<PageResponse, ApiError> {
    let found = find_agent(&cx, &input.id).await?;
    PageResponse::page(&limits(&cx, found).await?)
}

async fn app(cx: Cx, input: LimitsPath) -> Result<PageResponse, ApiError> {
    let found = find_app(&cx, &input.id).await?;
    PageResponse::page(&limits(&cx, found).await?)
}

async fn set_agent(cx: Cx, input: SpendLimitsForm) -> Result<PageResponse, ApiError> {
    let found = find_agent(&cx, &input.id).await?;
    set(&cx, found, input).await
}

async fn set_app(cx: Cx, input: SpendLimitsForm) -> Result<PageResponse, ApiError> {
    let found = find_app(&cx, &input.id).await?;
    set(&cx, found, input).await
}

/// Returns the page of an owner.
async fn limits(cx: &Cx, (owner, name): (SpendOwner, SpendOwnerName)) -> Result<LimitsPage, ApiError> {
    let line = spend_lines::line_of(cx, owner).await?;
    Ok(LimitsPage {
        chrome: page_layout(cx).await?,
        owner: name,
        form: LimitsForm::of(&line),
        line,
    })
}

async fn set(cx: &Cx, found: (SpendOwner, SpendOwnerName), input: SpendLimitsForm) -> Result<PageResponse, ApiError> {
    let set = match input.limits() {
        Ok(limits) => spending::set_limits(cx, found.0, limits).await,
        Err(error) => Err(error),
    };
    match set {
        Ok(()) => PageResponse::see(ALL),
        Err(error) => {
            let form = LimitsForm {
                errors: repairable(error)?,
                per_purchase: input.per_purchase,
                per_day: input.per_day,
                per_month: input.per_month,
                approve_above: input.approve_above,
            };
            let page = LimitsPage {
                form,
                ..limits(cx, found).await?
            };
            form_page(&page, true)
        }
    }
}

//! Operation that creates an agent for the caller's operator.

use http::Method;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::REGISTRATIONS;
use crate::call::answer::JsonReply;
use crate::call::cx::Cx;
use crate::call::operation::Operations;
use crate::call::schema::LINE;
use crate::call::spec::{Effect, OPERATOR, Scope, Spec};
use crate::call::wire::WireInstant;
use crate::error::ApiError;
use crate::rules::accounts;

pub(super) fn add(table: &mut Operations) {
    table.add(
        Spec {
            name: "create_agent",
            method: Method::POST,
            path: "/agents",
            summary: "Create an agent and its key",
            description: "The key is shown once; the service keeps only its hash. Names are one namespace: case and \
                          look-alike characters (0/o, 1/l, rn/m) count as the same. Words of the platform, alone or joined to \
                          each other, are reserved. Every attempt counts toward the limit of an hour, one that fails \
                          too. An empty `walletAddress` is none.",
            tag: "accounts",
            accepts: OPERATOR,
            scope: Scope::Write,
            effect: Effect::Write,
            limits: &[REGISTRATIONS],
            success: &[(201, "The agent and its key.")],
            failure: &[
                (
                    403,
                    "The credential is of the wrong kind, or the operator has as many agents as it may.",
                ),
                (409, "The name, or one that looks like it, is taken."),
            ],
            example: r#"{"name": "weather-station", "walletAddress": "0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed"}"#,
            ..Spec::BASE
        },
        &[],
        create,
    );
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct CreateAgentInput {
    /// Name of the agent, shown to others.
    #[schemars(length(min = 1, max = 60), regex(pattern = r"^[a-zA-Z0-9._-]+$"))]
    name: String,
    /// Address that the agent is paid at; an empty text is none.
    #[schemars(length(max = 100), regex(pattern = LINE))]
    wallet_address: Option<String>,
}

#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "Agent")]
#[serde(rename_all = "camelCase")]
struct AgentView {
    /// Id of the agent.
    id: String,
    /// Name of the agent.
    name: String,
    /// Address to which the agent is paid.
    #[serde(skip_serializing_if = "Option::is_none")]
    wallet_address: Option<String>,
    /// Time of creation.
    created_at: WireInstant,
    /// The agent's key, shown this once.
    key: String,
}

async fn create(cx: Cx, input: CreateAgentInput) -> Result<JsonReply<AgentView>, ApiError> {
    let operator = cx.the_operator()?;
    let wallet_address = input.wallet_address.filter(|address| !address.is_empty());
    let made = accounts::create_agent(&cx.app, operator, &input.name, wallet_address.clone(), cx.now).await?;
    Ok(JsonReply::created(AgentView {
        id: made.id.to_string(),
        name: input.name,
        wallet_address,
        created_at: cx.now.into(),
        key: made.key.reveal(),
    }))
}

#[cfg(test)]
mod tests;

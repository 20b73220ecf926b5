//! What a page does as an agent of the person who is signed in: it calls the operation that the agent would call.
//!
//! Invariants:
//! - The call goes through the dispatcher and by the door of the console, so limits, checks and the trail are those of the
//!   agent, and the trail says that a person had it done.
//! - Nothing that is done so spends.

use pages::AgentChoice;
use serde_json::{Map, Value};
use types::{AgentId, OperatorId};

use crate::call::answer::OperationOutput;
use crate::call::caller::{CallOrigin, Transport};
use crate::call::cx::Cx;
use crate::call::operation::CallInput;
use crate::error::ApiError;
use crate::ops::page_kit::missing;
use crate::ops::spend_lines::may_act;

/// Calls an operation as an agent, as the script of a page does.
pub(super) async fn act(cx: &Cx, agent: AgentId, name: &str, members: Map<String, Value>) -> Result<Vec<u8>, ApiError> {
    let operation = cx.operations.get(name);
    let operation = operation.ok_or_else(|| ApiError::internal(format!("there is no operation `{name}`")))?;
    let visit = cx.the_visit()?.clone();
    let text = Value::Object(members).to_string();
    let input = CallInput {
        form_token: Some(visit.form_token()),
        ..CallInput::of_members(operation, text.into())?
    };
    let incoming = CallOrigin {
        client: cx.client,
        presented: visit.presented(),
        takes_no_body: false,
        visit: Some(visit),
        door: Transport::Console(Some(agent)),
    };
    // The dispatcher is the one order of checks, so this call has it too: session and connection, limits, schema, audit.
    let called = cx
        .operations
        .dispatch(&cx.app, operation, incoming, &cx.request_id, |_operator| async move {
            Ok(input)
        });
    match called.await? {
        OperationOutput::Whole { body, .. } => Ok(body.to_vec()),
        OperationOutput::Stream { .. } => Err(ApiError::internal("an answer of the console is a stream")),
    }
}

/// Connects the console to an agent of an operator, as the person agreed to in the form.
pub(super) async fn connect(cx: &Cx, operator: OperatorId, agent: AgentId) -> Result<(), ApiError> {
    if cx.app.store.oauth().console_connect(operator, agent, cx.now).await? {
        Ok(())
    } else {
        Err(missing("agent"))
    }
}

/// Returns the agents of an operator by which its person may act.
pub(super) async fn choices(cx: &Cx, operator: OperatorId) -> Result<Vec<AgentChoice>, ApiError> {
    let agents = cx.app.store.accounts().agents_of(operator, cx.now).await?;
    let agents = agents.into_iter().filter(may_act);
    Ok(agents
        .map(|agent| AgentChoice {
            id: agent.id.to_string(),
            name: agent.name,
            description: agent.description,
        })
        .collect())
}

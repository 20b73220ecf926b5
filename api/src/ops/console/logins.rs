//! Page on which a person approves the login of a device.
//!
//! Invariants:
//! - The code is typed, and then carried in the form: no address has it, and each step looks for it again.
//! - The page says who asks and what the key can do before anything is approved.
//! - An approval makes the agent, if a new one is chosen, and its key in one transaction.

use pages::console::{AskedLogin, LoginEnd, LoginPage};
use pages::{AgentChoice, FieldError};
use schemars::JsonSchema;
use serde::Deserialize;
use store::{Login, LoginAgent, LoginApproval, MAX_WRONG_CODES, TypedCode, TypedCodeRefused};
use types::AgentId;

use super::agents::name_form;
use super::consent::agent_name_of;
use crate::call::cx::Cx;
use crate::call::operation::Operations;
use crate::call::spec::Spec;
use crate::call::view::PageResponse;
use crate::codes::ErrorCode;
use crate::error::{ApiError, whole_seconds};
use crate::ops::accounts::{LOGIN_KEY_LASTS, LOGIN_PATH, REGISTRATIONS};
use crate::ops::page_kit::{form, form_page, id, instant, page, page_layout, repairable};
use crate::ops::spend_lines::may_act;
use crate::rules::{accounts, auth};

/// Value of the field `agent` for an agent that is made with the approval.
const NEW: &str = "new";

pub(super) fn add(table: &mut Operations) {
    table.add(
        page("login_page", LOGIN_PATH, "Asks for the code of a device"),
        &[],
        show,
    );
    let find = Spec {
        success: &[(200, "The device that asks, and what its key could do.")],
        ..form("find_login_form", LOGIN_PATH, "Find the device that waits with a code")
    };
    table.add(find, &[], look);
    let path = "/console/login/approve";
    table.add(
        form("approve_login_form", path, "Approve the login of a device"),
        &[],
        approve,
    );
    let path = "/console/login/reject";
    table.add(
        form("reject_login_form", path, "Reject the login of a device"),
        &[],
        reject,
    );
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct LoginQuery {
    /// Decision that was just made.
    ended: Option<LoginEndWord>,
}

#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum LoginEndWord {
    Approved,
    Rejected,
}

async fn show(cx: Cx, input: LoginQuery) -> Result<PageResponse, ApiError> {
    let ended = input.ended.map(|word| match word {
        LoginEndWord::Approved => LoginEnd::Approved,
        LoginEndWord::Rejected => LoginEnd::Rejected,
    });
    PageResponse::page(&LoginPage {
        ended,
        ..empty(&cx, String::new()).await?
    })
}

async fn empty(cx: &Cx, code: String) -> Result<LoginPage, ApiError> {
    Ok(LoginPage {
        chrome: page_layout(cx).await?,
        code,
        asked: None,
        ended: None,
        errors: Vec::new(),
    })
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct LoginForm {
    /// Code that the device shows.
    #[schemars(length(max = 40))]
    code: String,
    /// Id of the agent that the device acts as, or `new`.
    #[serde(default)]
    #[schemars(length(max = 64))]
    agent: String,
    /// Name of the new agent.
    #[serde(default)]
    #[schemars(length(max = 100))]
    new_name: String,
}

async fn look(cx: Cx, input: LoginForm) -> Result<PageResponse, ApiError> {
    let Some(typed) = typed_code(&cx, &input)? else {
        return no_code(&cx, input).await;
    };
    match cx.app.store.accounts().login_of_code(typed).await? {
        Ok(login) => PageResponse::page(&question(&cx, &login, input).await?),
        Err(refused) => refusal(&cx, refused, input).await,
    }
}

async fn reject(cx: Cx, input: LoginForm) -> Result<PageResponse, ApiError> {
    let Some(typed) = typed_code(&cx, &input)? else {
        return no_code(&cx, input).await;
    };
    match cx.app.store.accounts().login_reject(typed).await? {
        Ok(()) => PageResponse::see(&format!("{LOGIN_PATH}?ended=rejected")),
        Err(refused) => refusal(&cx, refused, input).await,
    }
}

async fn approve(cx: Cx, input: LoginForm) -> Result<PageResponse, ApiError> {
    let Some(typed) = typed_code(&cx, &input)? else {
        return no_code(&cx, input).await;
    };
    let error = match chosen(&cx, &input).await {
        Ok(agent) => {
            let accounts = cx.app.store.accounts();
            match accounts.login_approve(typed, agent, LOGIN_KEY_LASTS).await? {
                LoginApproval::Approved(_) => return PageResponse::see(&format!("{LOGIN_PATH}?ended=approved")),
                LoginApproval::Refused(refused) => return refusal(&cx, refused, input).await,
                LoginApproval::NoAgent => ApiError::invalid("/agent", "must be one of your agents that may act"),
                LoginApproval::NameTaken => accounts::name_taken(&input.new_name),
                LoginApproval::LimitReached => accounts::agent_limit(cx.app.limits.agents_per_operator),
            }
        }
        Err(error) => error,
    };
    // The form is shown again with what is wrong, if the login still waits.
    let mut errors = repairable(error)?;
    for error in &mut errors {
        if matches!(error.field.as_str(), "" | "name") {
            "new_name".clone_into(&mut error.field);
        }
    }
    match cx.app.store.accounts().login_of_code(typed).await? {
        Ok(login) => {
            let page = LoginPage {
                errors,
                ..question(&cx, &login, input).await?
            };
            form_page(&page, true)
        }
        Err(refused) => refusal(&cx, refused, input).await,
    }
}

/// Returns the code that the person typed; `None` for a text that can be no code, which counts as no try.
fn typed_code(cx: &Cx, input: &LoginForm) -> Result<Option<TypedCode>, ApiError> {
    let operator = cx.the_operator()?;
    Ok(accounts::LoginCode::of(&input.code).map(|code| TypedCode {
        operator,
        code_hash: code.hash(),
        now: cx.now,
    }))
}

async fn no_code(cx: &Cx, input: LoginForm) -> Result<PageResponse, ApiError> {
    let message = "A code has 8 letters, such as BCDF-GHJK; the command shows it.";
    code_again(cx, input, message).await
}

/// Returns the answer to a code that does nothing.
async fn refusal(cx: &Cx, refused: TypedCodeRefused, input: LoginForm) -> Result<PageResponse, ApiError> {
    match refused {
        TypedCodeRefused::Unknown => {
            let message = "No login waits with this code. A code works once, for 15 minutes: compare it with what the \
                           command shows, or start the command again.";
            code_again(cx, input, message).await
        }
        TypedCodeRefused::Locked(free) => {
            let message = format!("more than {MAX_WRONG_CODES} wrong codes of logins in an hour");
            let seconds = whole_seconds(free.since(cx.now));
            Err(ApiError::limited(ErrorCode::LoginCodeLimit, message, seconds))
        }
        TypedCodeRefused::Suspended => Err(auth::account_suspended(&cx.app)),
    }
}

async fn code_again(cx: &Cx, input: LoginForm, message: &str) -> Result<PageResponse, ApiError> {
    let page = LoginPage {
        errors: vec![FieldError::new("code", message)],
        ..empty(cx, input.code).await?
    };
    form_page(&page, true)
}

/// Returns the agent that the person chose, or the one to make.
async fn chosen(cx: &Cx, input: &LoginForm) -> Result<LoginAgent, ApiError> {
    match input.agent.as_str() {
        "" => Err(ApiError::invalid("/agent", "must be chosen")),
        NEW => {
            name_form(&input.new_name)?;
            // It is a registration like every other, or names could be taken here without end.
            REGISTRATIONS.take(&cx.app, cx.client).await?;
            // The agent has a key of its own, as every agent. It is shown to nobody; the person can make another.
            let (new, _key) = accounts::new_agent(cx.the_operator()?, &input.new_name, None, cx.now)?;
            Ok(LoginAgent::New(new, cx.app.limits.agents_per_operator))
        }
        text => Ok(LoginAgent::Present(id::<AgentId>(text, "agent")?)),
    }
}

/// Returns the page that asks about a login, with what the person chose before.
async fn question(cx: &Cx, login: &Login, input: LoginForm) -> Result<LoginPage, ApiError> {
    let operator = cx.the_operator()?;
    let accounts = cx.app.store.accounts();
    let (found, agents, waiting) = tokio::try_join!(
        cx.app.store.operator(operator),
        accounts.agents_of(operator, cx.now),
        accounts.claims_waiting(operator, cx.now)
    )?;
    let present = agents.iter().filter(|agent| agent.removed_at.is_none()).count();
    let taken = u32::try_from(present).unwrap_or(u32::MAX).saturating_add(waiting);
    let own_address = cx.client.to_canonical().to_string();
    let asked = AskedLogin {
        device: login.device.clone(),
        is_own_address: login.address == own_address,
        address: login.address.clone(),
        own_address,
        asked_at: instant(login.created_at),
        expires_at: instant(login.expires_at),
        operator: found.map(|operator| operator.display_name).unwrap_or_default(),
        key_ends_at: instant(cx.now.plus(LOGIN_KEY_LASTS)),
        places_left: cx.app.limits.agents_per_operator.saturating_sub(taken),
        agents: agents
            .into_iter()
            .filter(may_act)
            .map(|agent| AgentChoice {
                id: agent.id.to_string(),
                name: agent.name,
                description: agent.description,
            })
            .collect(),
        chosen: input.agent,
        new_name: if input.new_name.is_empty() {
            agent_name_of(&login.device, "device")
        } else {
            input.new_name
        },
    };
    Ok(LoginPage {
        asked: Some(asked),
        ..empty(cx, input.code).await?
    })
}

#[cfg(test)]
mod tests;

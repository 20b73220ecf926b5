//! Operation by which a device asks a person for a key.
//!
//! Invariant: the answer is the only one with the key and the code, and the key works once a person has approved. No address
//! has the code, so no link leads to the approval.

use std::time::Duration;

use http::{Method, StatusCode};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use store::NewLogin;

use super::REGISTRATIONS;
use crate::call::answer::JsonReply;
use crate::call::cx::Cx;
use crate::call::operation::Operations;
use crate::call::schema::LINE;
use crate::call::spec::{Effect, Scope, Spec};
use crate::call::wire::WireInstant;
use crate::error::ApiError;
use crate::rules::accounts::LoginCode;
use crate::secrets::{Secret, SecretKind};

/// Page on which the person types the code.
pub(in crate::ops) const LOGIN_PATH: &str = "/console/login";
/// Time in which the person decides.
pub(in crate::ops) const LOGIN_LASTS: Duration = Duration::from_mins(15);
/// Time for which the key of a login works.
pub(in crate::ops) const LOGIN_KEY_LASTS: Duration = Duration::from_hours(90 * 24);
/// Seconds between two questions of the device about the decision.
const POLL_SECONDS: u32 = 5;

pub(super) fn add(table: &mut Operations) {
    table.add(
        Spec {
            name: "begin_login",
            method: Method::POST,
            path: "/agents/login",
            summary: "Ask a person for a key for this device",
            description: "Show the code and the address of the page to a person, who signs in, types the code within 15 \
                          minutes and chooses the agent. Then the key works, for 90 days. Until then `GET /me` with the \
                          key answers 401 `login_not_approved` with the `status`: `pending`, `rejected` or `expired`; ask every \
                          5 seconds. Attempts count toward the limit on registrations of an hour.",
            tag: "accounts",
            headers: &[("origin", "Origin")],
            scope: Scope::Write,
            effect: Effect::Write,
            limits: &[REGISTRATIONS],
            success: &[(202, "The login waits for a person.")],
            example: r#"{"device": "ada-laptop"}"#,
            ..Spec::BASE
        },
        &[],
        begin,
    );
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct BeginLoginInput {
    /// Name of the device, by which the person recognizes it.
    // Visible ASCII and blanks: a stranger's text stands on the page that asks for consent.
    #[schemars(length(min = 1, max = 60), regex(pattern = r"^[ -~]*[!-~][ -~]*$"))]
    device: String,
    /// Must be absent: a page of a site asks for no key.
    // A page could otherwise begin a login at the address of the person whom it then asks to type the code.
    #[schemars(length(max = 200), regex(pattern = LINE))]
    origin: Option<String>,
}

#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "LoginBegun")]
#[serde(rename_all = "camelCase")]
struct BegunLogin {
    /// Always `pending`.
    status: &'static str,
    /// Code that the person types, shown this once.
    code: String,
    /// Page on which the person types the code.
    approve_at: String,
    /// The agent's key, shown this once. It works once a person has approved.
    key: String,
    /// End of the time in which the person decides.
    expires_at: WireInstant,
    /// Seconds between two questions about the decision.
    poll_seconds: u32,
}

async fn begin(cx: Cx, input: BeginLoginInput) -> Result<JsonReply<BegunLogin>, ApiError> {
    if input.origin.is_some() {
        let problem = "must be absent: a page of a site asks for no key; the program on the device does";
        return Err(ApiError::invalid("/origin", problem));
    }
    let code = LoginCode::generate().map_err(ApiError::unavailable)?;
    let secret = Secret::generate(SecretKind::AgentKey).map_err(ApiError::unavailable)?;
    let expires_at = cx.now.plus(LOGIN_LASTS);
    let new = NewLogin {
        code_hash: code.hash(),
        key_hash: secret.hash(),
        device: input.device.trim().to_owned(),
        address: cx.client.to_canonical().to_string(),
        expires_at,
        now: cx.now,
    };
    cx.app.store.accounts().login_begin(new).await?;
    Ok(JsonReply {
        // 202: the key works only once a person has approved.
        status: StatusCode::ACCEPTED,
        body: BegunLogin {
            status: store::ClaimStatus::Pending.as_str(),
            code: code.reveal(),
            approve_at: format!("{}{LOGIN_PATH}", cx.app.config.public_url),
            key: secret.reveal(),
            expires_at: expires_at.into(),
            poll_seconds: POLL_SECONDS,
        },
    })
}

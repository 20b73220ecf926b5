//! Operations of agents that register themselves with a claim code.
//!
//! Invariant: the answer to a claim is the only one with its key, and the key works once a person has approved.

use std::time::Duration;

use http::{Method, StatusCode};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use store::{ClaimStatus, Claimed, CodeRefused, NewClaim, Polled};
use types::{AgentId, ClaimId, Timestamp};

use super::REGISTRATIONS;
use crate::call::answer::JsonReply;
use crate::call::caller::CallerKind;
use crate::call::cx::Cx;
use crate::call::operation::Operations;
use crate::call::schema::{LINE, TEXT};
use crate::call::spec::{Credential, Effect, Scope, Spec};
use crate::call::wire::{NoInput, WireInstant};
use crate::codes::ErrorCode;
use crate::error::{ApiError, whole_seconds};
use crate::names;
use crate::rules::accounts::{self, ClaimCodeParts};
use crate::rules::auth;
use crate::secrets::{Secret, SecretKind};

/// Microseconds in which the operator decides.
pub(in crate::ops) const DECISION: i64 = 24 * 3_600_000_000;
/// Time between two answers about the status of a claim.
pub(in crate::ops) const POLL: Duration = Duration::from_mins(1);
/// Path of the status of a claim.
const STATUS: &str = "/agents/claim/status";

pub(super) fn add(table: &mut Operations) {
    table.add(
        Spec {
            name: "claim_agent",
            method: Method::POST,
            path: "/agents/claim",
            summary: "Ask to become an agent of the operator that made a claim code",
            description: "The key is shown once; it works when the operator has approved, within 24 hours. Show the \
                          `phrase` to the operator, who types it to approve. A code works once, for 15 minutes, and 5 \
                          tries with a wrong second part lock it. A claim that is refused because of its name leaves \
                          the code usable. Attempts count toward the limit on registrations of an hour.",
            tag: "accounts",
            scope: Scope::Write,
            effect: Effect::Write,
            limits: &[REGISTRATIONS],
            success: &[(202, "The claim waits for the operator.")],
            failure: &[
                (
                    403,
                    "The operator has as many agents as it may, waiting claims counted.",
                ),
                (
                    409,
                    "The code was used, or the name, or one that looks like it, is taken.",
                ),
                (410, "The 15 minutes of the code are over."),
                (423, "The code is locked after 5 wrong tries."),
            ],
            example: r#"{"code": "wtc_…", "name": "weather-station", "description": "Reads gauges on the roof."}"#,
            ..Spec::BASE
        },
        &[],
        claim,
    );
    table.add(
        Spec {
            name: "claim_status",
            path: STATUS,
            summary: "The status of the claim that came with this key",
            description: "At most once a minute. Send the key that the claim returned.",
            tag: "accounts",
            accepts: &[Credential::ClaimedKey, Credential::AgentKey],
            success: &[(200, "The status.")],
            failure: &[(404, "The key was not given for a claim.")],
            ..Spec::BASE
        },
        &[],
        status,
    );
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct ClaimInput {
    /// Claim code of the operator.
    #[schemars(length(min = 1, max = 64), regex(pattern = LINE))]
    code: String,
    /// Name of the agent, shown to others.
    #[schemars(length(min = 1, max = 60), regex(pattern = r"^[a-zA-Z0-9._-]+$"))]
    name: String,
    /// Purpose of the agent, for the operator.
    #[schemars(length(max = 280), regex(pattern = TEXT))]
    description: Option<String>,
}

#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "Waiting")]
#[serde(rename_all = "camelCase")]
struct WaitingClaim {
    /// Id that the agent gets with the approval.
    id: String,
    /// Name of the agent.
    name: String,
    /// Always `pending`.
    status: &'static str,
    /// The agent's key, shown this once. It works once the operator has approved.
    key: String,
    /// Words that the operator types to approve.
    phrase: String,
    /// End of the time in which the operator decides.
    expires_at: WireInstant,
    /// Address of the status of the claim.
    status_url: String,
}

async fn claim(cx: Cx, input: ClaimInput) -> Result<JsonReply<WaitingClaim>, ApiError> {
    // Checked before the code, so a bad name costs no try of it.
    if names::is_reserved(&input.name) {
        let problem = "is a word of the platform and reserved";
        return Err(ApiError::invalid("/name", problem).with_code(ErrorCode::NameReserved));
    }
    // A text that is no code is answered like a code that nobody made.
    let code = ClaimCodeParts::of(&input.code).ok_or_else(unknown)?;
    // The key is made here and not at the approval, since only this answer reaches the agent.
    let secret = Secret::generate(SecretKind::AgentKey).map_err(ApiError::unavailable)?;
    let phrase = accounts::phrase().map_err(ApiError::unavailable)?;
    let expires_at = Timestamp::from_micros(cx.now.micros() + DECISION);
    let agent = AgentId::new(cx.now);
    let new = NewClaim {
        id: ClaimId::new(cx.now),
        agent,
        lookup: code.lookup,
        secret_hash: code.secret_hash,
        name: input.name.clone(),
        skeleton: names::skeleton(&input.name),
        // An empty description and none are the same to the operator who decides.
        description: input.description.filter(|text| !text.is_empty()),
        key_hash: secret.hash(),
        phrase: phrase.clone(),
        expires_at,
        now: cx.now,
    };
    let limit = cx.app.limits.agents_per_operator;
    match cx.app.store.accounts().claim(new, limit).await? {
        Claimed::Waiting => {}
        Claimed::Refused(reason) => return Err(refused(&cx, reason)),
        Claimed::LimitReached => {
            let message = format!("the operator has {limit} agents, waiting claims counted, which is the limit");
            return Err(ApiError::new(ErrorCode::AgentLimit, message));
        }
        Claimed::NameTaken => {
            let message = format!("the name `{}`, or one that looks like it, is taken", input.name);
            return Err(ApiError::new(ErrorCode::NameTaken, message));
        }
    }
    types::fault::point("claim.commit");
    Ok(JsonReply {
        // 202: the agent exists only once the operator has approved.
        status: StatusCode::ACCEPTED,
        body: WaitingClaim {
            id: agent.to_string(),
            name: input.name,
            status: ClaimStatus::Pending.as_str(),
            key: secret.reveal(),
            phrase,
            expires_at: expires_at.into(),
            status_url: format!("{}{STATUS}", cx.app.config.public_url),
        },
    })
}

/// Returns the error for a code that does not work.
fn refused(cx: &Cx, reason: CodeRefused) -> ApiError {
    match reason {
        CodeRefused::Unknown => unknown(),
        CodeRefused::Used => ApiError::new(ErrorCode::ClaimCodeUsed, "the code was used before"),
        CodeRefused::Expired => {
            let message = "the 15 minutes of the code are over; ask the operator for another";
            ApiError::new(ErrorCode::ClaimCodeExpired, message)
        }
        CodeRefused::Locked => {
            let message = "the code is locked after 5 wrong tries; ask the operator for another";
            ApiError::new(ErrorCode::ClaimCodeLocked, message)
        }
        CodeRefused::Suspended => auth::account_suspended(&cx.app),
    }
}

fn unknown() -> ApiError {
    ApiError::invalid("/code", "must be a claim code that works").with_code(ErrorCode::ClaimCodeUnknown)
}

#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct ClaimState {
    /// Id of the agent, which exists once the claim is approved.
    id: String,
    /// Name of the agent.
    name: String,
    /// `pending`, `approved`, `rejected` or `expired`.
    status: ClaimStatus,
    /// Time of the claim.
    created_at: WireInstant,
    /// End of the time in which the operator decides.
    expires_at: WireInstant,
    /// Time of the decision.
    #[serde(skip_serializing_if = "Option::is_none")]
    decided_at: Option<WireInstant>,
}

async fn status(cx: Cx, _: NoInput) -> Result<JsonReply<ClaimState>, ApiError> {
    let accounts = cx.app.store.accounts();
    let none = || ApiError::not_found("the key was not given for a claim");
    let id = match cx.caller.as_ref().map(|caller| &caller.actor) {
        Some(CallerKind::Claimant { claim, .. }) => *claim,
        // The key of an approved claim is that of an agent, which asks for the time of its approval.
        Some(CallerKind::Agent { id, .. }) => accounts.claim_of_agent(*id, cx.now).await?.ok_or_else(none)?.id,
        _ => return Err(none()),
    };
    let claim = match accounts.claim_poll(id, POLL, cx.now).await? {
        Polled::Status(claim) => claim,
        Polled::TooSoon(again) => {
            let seconds = whole_seconds(again.since(cx.now));
            let message = "the status of a claim is given once a minute";
            return Err(ApiError::limited(ErrorCode::StatusPolled, message, seconds));
        }
        Polled::Unknown => return Err(none()),
    };
    Ok(JsonReply::ok(ClaimState {
        id: claim.agent.to_string(),
        name: claim.name,
        status: claim.status,
        created_at: claim.created_at.into(),
        expires_at: claim.expires_at.into(),
        decided_at: claim.decided_at.map(Into::into),
    }))
}

#[cfg(test)]
mod tests;

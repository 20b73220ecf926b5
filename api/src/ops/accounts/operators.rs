//! Operations of people who sign up: sign-up, a further letter, verification.
//!
//! Invariant: none of them reads a credential, so an agent can never accept terms with its key.

use std::time::Duration;

use http::Method;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use store::LinkPurpose;

use crate::call::answer::JsonReply;
use crate::call::cx::Cx;
use crate::call::operation::Operations;
use crate::call::schema::LINE;
use crate::call::spec::{CallLimit, Effect, LimitSubject, Scope, Spec};
use crate::codes::ErrorCode;
use crate::error::ApiError;
use crate::rules::accounts::{self, SignUp};

const HOUR: Duration = Duration::from_hours(1);

pub(in crate::ops) const SIGN_UPS: CallLimit = CallLimit {
    name: "sign-ups",
    subject: LimitSubject::Address,
    most: |limits| limits.sign_ups_per_ip_per_hour,
    window: HOUR,
    code: ErrorCode::SignUpLimit,
    counted: "attempts to sign up in an hour from this address",
};
pub(in crate::ops) const RESENDS: CallLimit = CallLimit {
    name: "resends",
    subject: LimitSubject::Address,
    most: |limits| limits.resends_per_ip_per_hour,
    window: HOUR,
    code: ErrorCode::ResendLimit,
    counted: "requests for a letter in an hour from this address",
};
/// Limit on the letters that others can cause to one mailbox. Counted for every address, with an account or without.
pub(in crate::ops) const RESENDS_TO_ONE: CallLimit = CallLimit {
    name: "resends-to",
    subject: LimitSubject::Member("email"),
    most: |limits| limits.resends_per_ip_per_hour,
    window: HOUR,
    code: ErrorCode::ResendLimit,
    counted: "requests for a letter in an hour to this address",
};

pub(super) fn add(table: &mut Operations) {
    let base = Spec {
        tag: "accounts",
        method: Method::POST,
        scope: Scope::Write,
        effect: Effect::Write,
        ..Spec::BASE
    };
    table.add(
        Spec {
            name: "sign_up",
            path: "/operators",
            summary: "Sign up as an operator",
            description: "For people: an agent cannot accept the terms for its operator. `acceptTerms` is the version \
                          that `GET /terms/version` names. The account begins unverified, and a letter with a link is \
                          sent, which works for 24 hours. An account that is not verified in 72 hours is deleted. \
                          Every attempt counts toward the limit of an hour.",
            limits: &[SIGN_UPS],
            success: &[(201, "The unverified account. A letter is on its way.")],
            failure: &[
                (
                    403,
                    "Sign-up is by invitation, and the address has none; `invite` is the page to ask for one.",
                ),
                (
                    409,
                    "The address, or another spelling of its mailbox, has an account or a sign-up.",
                ),
                (
                    503,
                    "The letters of the day are spent; no account was made, and `retryAt` says when to come back.",
                ),
            ],
            example: r#"{"email": "ada@example.org", "displayName": "Ada", "acceptTerms": "2026-11-01"}"#,
            ..base.clone()
        },
        &[],
        sign_up,
    );
    table.add(
        Spec {
            name: "resend_verification",
            path: "/operators/resend",
            summary: "Ask for the verification letter again",
            description: "The answer is the same for every address, with a sign-up, an account or neither.",
            limits: &[RESENDS, RESENDS_TO_ONE],
            success: &[(200, "If the address has an unverified sign-up, a letter is on its way.")],
            failure: &[(
                503,
                "The letters of the day are spent; `retryAt` says when to come back.",
            )],
            example: r#"{"email": "ada@example.org"}"#,
            ..base.clone()
        },
        &[],
        resend,
    );
    table.add(
        Spec {
            name: "verify_operator",
            path: "/operators/verify",
            summary: "Verify a sign-up by the token of its letter",
            description: "Works once. Whoever uses the token states to be 19 years old or older and accepts the terms \
                          in force. The operator then signs in to the console and makes tokens there.",
            success: &[(200, "The account is active.")],
            failure: &[
                (409, "The token was used before."),
                (410, "The 24 hours of the token are over; ask for another letter."),
            ],
            example: r#"{"token": "pV0…"}"#,
            ..base
        },
        &[],
        verify,
    );
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct NewOperatorView {
    /// E-mail address; a letter is sent to it.
    #[schemars(length(max = 254), regex(pattern = LINE), extend("format" = "email"))]
    email: String,
    /// Name to show.
    #[schemars(length(min = 1, max = 80), regex(pattern = LINE))]
    display_name: String,
    /// Version of the terms that the person accepts; required. An answer without it names the version in force.
    #[schemars(length(max = 40), regex(pattern = LINE))]
    accept_terms: Option<String>,
}

#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct SignedUp {
    /// Id of the operator.
    id: String,
    /// Address that the letter is sent to.
    email: String,
    /// Name to show.
    display_name: String,
    /// Always `unverified`: the link in the letter makes the account active.
    status: &'static str,
}

async fn sign_up(cx: Cx, input: NewOperatorView) -> Result<JsonReply<SignedUp>, ApiError> {
    // The answer repeats them as they were sent, so the person sees a typing error before the letter fails to come.
    let (email, display_name) = (input.email.clone(), input.display_name.clone());
    let input = SignUp {
        email: input.email,
        display_name: input.display_name,
        accept_terms: input.accept_terms,
    };
    let id = accounts::sign_up(&cx.app, input, cx.now).await?;
    Ok(JsonReply::created(SignedUp {
        id: id.to_string(),
        email,
        display_name,
        status: "unverified",
    }))
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct ResendLetterInput {
    /// Address of the sign-up.
    #[schemars(length(max = 254), regex(pattern = LINE), extend("format" = "email"))]
    email: String,
}

#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "Resent")]
struct ResentLetter {
    /// The same sentence for every address.
    message: &'static str,
}

async fn resend(cx: Cx, input: ResendLetterInput) -> Result<JsonReply<ResentLetter>, ApiError> {
    // Nothing of the result shows in the answer: whoever asks must not learn which addresses have an account.
    accounts::request_link(&cx.app, &input.email, LinkPurpose::Verify, cx.now).await?;
    Ok(JsonReply::ok(ResentLetter {
        message: "if the address has a sign-up that is not verified, a letter is on its way",
    }))
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct VerifyEmailInput {
    /// Token of the link in the letter.
    #[schemars(length(min = 1, max = 200), regex(pattern = LINE))]
    token: String,
}

#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "Verified")]
#[serde(rename_all = "camelCase")]
struct VerifiedOperator {
    /// Id of the operator.
    id: String,
    /// Always `active`.
    status: &'static str,
    /// Page to sign in to the console, where tokens are made.
    sign_in: String,
}

async fn verify(cx: Cx, input: VerifyEmailInput) -> Result<JsonReply<VerifiedOperator>, ApiError> {
    let id = accounts::use_verification(&cx.app, &input.token, None, cx.now).await?;
    Ok(JsonReply::ok(VerifiedOperator {
        id: id.to_string(),
        status: "active",
        // The token of a letter proves the mailbox once and opens no session: a program that follows links would have
        // it.
        sign_in: format!("{}/signin", cx.app.config.public_url),
    }))
}

#[cfg(test)]
mod tests;

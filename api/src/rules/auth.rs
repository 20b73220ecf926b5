//! Credentials: their owners, and the operations that accept them.
//!
//! Invariant: an operation is called by nobody whose credential it does not name.

pub(crate) mod apps;
mod console;

use std::sync::Arc;

use http::HeaderValue;
use http::header;
use store::{ClaimStatus, Principal};
use x402::sign_in::SignInProblem;

use crate::call::caller::{Caller, CallerKind, PresentedCredential, Scopes, Transport};
use crate::call::spec::{ApiKind, Credential, KEY, Spec};
use crate::codes::ErrorCode;
use crate::config::AGENT_GUIDE_PATH;
use crate::error::ApiError;
use crate::secrets::{SecretKind, hash};
use crate::state::app::App;

/// Length in bytes beyond which a credential is not looked up.
const MAX_CREDENTIAL_BYTES: usize = 128;

/// Microseconds between two notes of the last use of a session.
const SEEN_INTERVAL: i64 = 5 * 60 * 1_000_000;

/// Message for a call without a credential that needs one.
const REQUIRED: &str = "a credential is required";
/// Message for a credential that is unknown, malformed or revoked.
const INVALID: &str = "the credential is not valid";
/// Message for a person where an agent must act.
const PERSON: &str = "this needs an agent key (`km_…`); an operator token, or a session of the console, is a person";

/// Authenticates a call and checks that the operation accepts its credential.
///
/// What the database says of a credential is remembered for half a second (see `caches`), so a suspension takes effect
/// within that time on every replica. An operation with optional credentials still refuses an invalid one: an anonymous
/// answer would hide the mistake from the caller.
pub(crate) async fn authenticate(
    app: &App,
    spec: &Spec,
    presented: PresentedCredential,
    door: Transport,
) -> Result<Option<Caller>, ApiError> {
    match door {
        Transport::Rest => {}
        Transport::Mcp(resource) => return apps::at_mcp(app, Some(spec), presented, resource).await,
        Transport::Console(agent) => return console::at_act(app, spec, presented, agent).await,
    }
    // An operation that reads no credential ignores every one, so health checks and pages work with any.
    if !spec.reads_credential() {
        return Ok(None);
    }
    let refuse = |message: &str| unauthenticated(app, spec, message);
    let header = match presented {
        PresentedCredential::Authorization(header) => header,
        PresentedCredential::Session(token) => return session(app, spec, &token).await,
        PresentedCredential::Unreadable => return Err(refuse(INVALID)),
        PresentedCredential::Nothing if spec.accepts(Credential::Anonymous) => return Ok(None),
        PresentedCredential::Nothing => return Err(refuse(REQUIRED)),
    };
    let Some(text) = bearer(&header) else {
        return Err(refuse("the credential must be sent as `Authorization: Bearer …`"));
    };
    if spec.accepts(Credential::AppToken) && apps::is_token(text) {
        return apps::at_rest(app, spec, text).await;
    }
    // Text without a known prefix, or too long, cannot be a credential, so the database is not asked. Unknown, malformed
    // and overlong credentials get the same answer, which reveals nothing about valid ones.
    if SecretKind::of(text).is_none() || text.len() > MAX_CREDENTIAL_BYTES {
        return Err(refuse(INVALID));
    }
    let principal = app.principal(hash(text)).await?;
    let principal = principal.ok_or_else(|| refuse(INVALID))?;
    // An agent is suspended with its operator, which the database has resolved.
    let (caller, suspended) = caller(app, Arc::unwrap_or_clone(principal))?;
    // A suspension is reported before a wrong kind, since no other credential of the operator would help.
    if suspended {
        return Err(account_suspended(app));
    }
    admit(app, spec, caller)
}

/// Returns the credential in the value of an `Authorization` header; `None` for another scheme.
fn bearer(header: &str) -> Option<&str> {
    let (scheme, text) = header.split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then(|| text.trim())
}

/// Returns the session with a token, if it is valid and its operator is not suspended, and notes its use.
async fn find_session(app: &App, token: &str) -> Result<Option<store::Session>, ApiError> {
    let now = app.clock.now();
    let accounts = app.store.accounts();
    // A longer one is none of this service, and hashing it would be work for a stranger.
    let found = if token.len() <= MAX_CREDENTIAL_BYTES {
        accounts.session(&hash(token), now).await?
    } else {
        None
    };
    // Each page would be a write otherwise.
    if let Some(session) = &found
        && now.micros() - session.seen_at.micros() > SEEN_INTERVAL
    {
        accounts.session_seen(session.id, now).await?;
    }
    Ok(found)
}

/// Returns the person behind a session.
async fn session(app: &App, spec: &Spec, token: &str) -> Result<Option<Caller>, ApiError> {
    let Some(session) = find_session(app, token).await? else {
        // A browser cannot leave a cookie out, so an ended session counts as none where none is needed.
        return if spec.accepts(Credential::Anonymous) {
            Ok(None)
        } else {
            Err(unauthenticated(app, spec, REQUIRED))
        };
    };
    let actor = CallerKind::SignedIn {
        session: session.id,
        since: session.created_at,
    };
    let caller = Caller {
        operator: session.operator,
        actor,
        scopes: Scopes::ALL,
        credential: Credential::Session,
        connection: None,
        expires_at: None,
    };
    admit(app, spec, caller)
}

/// Returns the caller behind a credential, and whether its operator is suspended.
///
/// # Errors
/// 401 for the key of a login that was not approved, which is nobody's.
fn caller(app: &App, principal: Principal) -> Result<(Caller, bool), ApiError> {
    let caller = |operator, actor, credential| Caller {
        operator,
        actor,
        scopes: Scopes::ALL,
        credential,
        connection: None,
        expires_at: None,
    };
    Ok(match principal {
        Principal::Operator { operator, suspended } => (
            caller(operator, CallerKind::Person, Credential::OperatorToken),
            suspended,
        ),
        Principal::Agent {
            agent,
            operator,
            name,
            suspended,
            expires_at,
        } => {
            let actor = CallerKind::Agent { id: agent, name };
            let caller = Caller {
                expires_at,
                ..caller(operator, actor, Credential::AgentKey)
            };
            (caller, suspended)
        }
        Principal::Claimed {
            claim,
            operator,
            status,
            suspended,
        } => {
            let actor = CallerKind::Claimant { claim, status };
            (caller(operator, actor, Credential::ClaimedKey), suspended)
        }
        Principal::Login { status } => return Err(login_not_approved(app, status)),
    })
}

/// Checks that an operation accepts a valid credential of this kind, and that the credential has the permission.
fn admit(app: &App, spec: &Spec, caller: Caller) -> Result<Option<Caller>, ApiError> {
    if spec.accepts(caller.credential) {
        if !spec.any_scope && !caller.scopes.allow(spec.scope) {
            return Err(apps::insufficient_scope(spec.scope));
        }
        return Ok(Some(caller));
    }
    // The key of a claim works once the operator has approved, whatever the operation accepts.
    if let CallerKind::Claimant { status, .. } = caller.actor {
        return Err(not_approved(app, status));
    }
    match caller.credential {
        // An agent learns that its key is good, and that only its operator may do this.
        Credential::AgentKey => Err(wrong_credential(
            "this needs an operator token (`wto_…`); an agent cannot act for its operator",
        )),
        // The board is for agents; a person is told so.
        Credential::OperatorToken | Credential::Session if spec.forbids_persons => Err(wrong_credential(PERSON)),
        // Where nothing is needed, a person counts as anybody.
        Credential::OperatorToken if spec.accepts(Credential::Anonymous) => Ok(None),
        Credential::OperatorToken
        | Credential::ClaimedKey
        | Credential::Session
        | Credential::AppToken
        | Credential::Anonymous => Err(unauthenticated(app, spec, PERSON)),
    }
}

/// Checks that the caller is an agent, for an operation that requires one for some of its inputs only.
pub(crate) fn require_agent(app: &App, caller: Option<&Caller>) -> Result<(), ApiError> {
    let spec = Spec {
        accepts: KEY,
        ..Spec::BASE
    };
    match caller.map(|caller| &caller.actor) {
        Some(CallerKind::Agent { .. }) => Ok(()),
        Some(CallerKind::Person | CallerKind::SignedIn { .. }) => Err(unauthenticated(app, &spec, PERSON)),
        Some(CallerKind::Claimant { status, .. }) => Err(not_approved(app, *status)),
        None => Err(unauthenticated(app, &spec, REQUIRED)),
    }
}

/// Returns the 401 for a page that needs a session.
fn not_signed_in() -> ApiError {
    ApiError::new(ErrorCode::NotSignedIn, "sign in to open this page")
}

/// Returns the 403 for a valid credential of a kind that the operation does not accept.
fn wrong_credential(message: &str) -> ApiError {
    ApiError::new(ErrorCode::WrongCredential, message)
}

/// Returns the 401 for a valid credential whose operator is suspended.
pub(crate) fn account_suspended(app: &App) -> ApiError {
    let hint = "no other credential of this operator helps; the operator answers the suspension with whoever runs the \
                service, and the same credentials work again once it ends";
    refused(
        app,
        ErrorCode::AccountSuspended,
        "the account is suspended",
        hint,
        "suspension",
    )
}

/// Returns the 401 for the key of a claim that was not approved.
fn not_approved(app: &App, status: ClaimStatus) -> ApiError {
    let (message, hint) = if status == ClaimStatus::Pending {
        (
            "the claim of this key awaits approval",
            "the operator approves the claim in the console with its phrase; ask `GET /agents/claim/status` once a minute",
        )
    } else {
        (
            "the claim of this key was not approved",
            "ask the operator for another claim code, and claim again",
        )
    };
    refused(app, ErrorCode::ClaimNotApproved, message, hint, "keys").field("status", status.as_str())
}

/// Returns the 401 for the key of a login that was not approved.
fn login_not_approved(app: &App, status: ClaimStatus) -> ApiError {
    let (message, hint) = match status {
        ClaimStatus::Pending => (
            "the login of this key awaits approval",
            "a person types the code in the console and approves; ask again every 5 seconds",
        ),
        ClaimStatus::Rejected => (
            "the login of this key was rejected",
            "the key never works; ask the person before another login",
        ),
        ClaimStatus::Expired | ClaimStatus::Approved => (
            "nobody approved the login of this key in time",
            "the key never works; begin another login",
        ),
    };
    refused(app, ErrorCode::LoginNotApproved, message, hint, "keys").field("status", status.as_str())
}

/// Returns the 401 for a missing or invalid credential, with a hint at the header to send.
fn unauthenticated(app: &App, spec: &Spec, message: &str) -> ApiError {
    if spec.surface == ApiKind::Page {
        return not_signed_in();
    }
    let hint = match (
        spec.accepts(Credential::AgentKey),
        spec.accepts(Credential::OperatorToken),
    ) {
        (true, true) => "send `Authorization: Bearer <agent key or operator token>`",
        (true, false) => "send `Authorization: Bearer <agent key>`; agent keys begin with `km_`",
        _ => "send `Authorization: Bearer <operator token>`; operator tokens begin with `wto_`",
    };
    refused(app, ErrorCode::Unauthenticated, message, hint, "keys")
}

/// Returns the 401 for who is not known to be the buyer of a sale: there is no key, and no sign-in of a wallet that is taken.
pub(crate) fn no_buyer(app: &App, problem: Option<SignInProblem>) -> ApiError {
    let hint = "send `Authorization: Bearer <agent key>` of the buyer, or `SIGN-IN-WITH-X` of the wallet that paid";
    let message = problem.map_or_else(
        || "a receipt is for its buyer".to_owned(),
        |problem| format!("the sign-in was not taken: {}", problem.rule()),
    );
    refused(app, ErrorCode::Unauthenticated, &message, hint, "keys")
}

/// Returns the address of a section of the guide that says how to get a credential.
pub(crate) fn get_key(app: &App, section: &str) -> String {
    format!("{}{AGENT_GUIDE_PATH}#{section}", app.config.public_url)
}

/// Returns a 401 (RFC 6750 section 3 for the header) with a link to the section of the guide that helps.
fn refused(app: &App, code: ErrorCode, message: &str, hint: &str, section: &str) -> ApiError {
    ApiError::new(code, message)
        .field("hint", hint)
        .field("getKey", get_key(app, section))
        .header(
            header::WWW_AUTHENTICATE,
            HeaderValue::from_static("Bearer realm=\"sluice\""),
        )
}

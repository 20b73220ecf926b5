//! Tokens of apps, and credentials at the MCP endpoints.
//!
//! Invariants:
//! - A token works at the resource that it was issued for. One for `/mcp` also works at the operations that name it.
//! - A token acts as its agent, with the scopes that the person agreed to.
//! - A credential at an MCP endpoint must be good, also where none is needed.

use std::sync::Arc;
use std::time::Duration;

use http::header;
use oauth::challenge::DenialReason;
use oauth::{OAuthSecretKind as AppSecret, Resource};
use store::ConnectedApp;
use types::{Kind, Timestamp};

use super::{INVALID, MAX_CREDENTIAL_BYTES, REQUIRED, account_suspended, bearer, caller, not_approved, refused};
use crate::call::caller::{Caller, CallerKind, PresentedCredential, Scopes};
use crate::call::spec::{Credential, Scope, Spec};
use crate::codes::ErrorCode;
use crate::error::ApiError;
use crate::secrets::{SecretKind, hash};
use crate::state::app::App;
use types::error::with_causes;

/// Time that must pass until a use of a connection is noted again.
const NOTED_EVERY: Duration = Duration::from_mins(10);
/// Advice to a caller of a tool without a good credential.
const HINT: &str = "connect with OAuth 2.1 as the metadata in `WWW-Authenticate` say, or send `Authorization: Bearer \
                    <agent key>`; agent keys begin with `km_`";

/// Returns true if a text has the form of an app's token.
pub(super) fn is_token(text: &str) -> bool {
    text.starts_with(AppSecret::Access.prefix()) && text.len() <= MAX_CREDENTIAL_BYTES
}

/// Authenticates a call of an operation that names tokens of apps.
pub(super) async fn at_rest(app: &App, spec: &Spec, text: &str) -> Result<Option<Caller>, ApiError> {
    let caller = token(app, text, Resource::Mcp).await?;
    let caller = caller.ok_or_else(|| super::unauthenticated(app, spec, INVALID))?;
    permit(&caller, spec)?;
    Ok(Some(caller))
}

/// Authenticates a call of a tool, or of something else that an MCP endpoint answers if there is no `spec`.
pub(crate) async fn at_mcp(
    app: &App,
    spec: Option<&Spec>,
    presented: PresentedCredential,
    resource: Resource,
) -> Result<Option<Caller>, ApiError> {
    let refuse = |message| refused(app, ErrorCode::Unauthenticated, message, HINT, "keys");
    let header = match presented {
        PresentedCredential::Authorization(header) => header,
        // A cookie is no credential of a program.
        PresentedCredential::Unreadable | PresentedCredential::Session(_) => return Err(refuse(INVALID)),
        PresentedCredential::Nothing => {
            let is_open = |spec: &Spec| !spec.reads_credential() || spec.accepts(Credential::Anonymous);
            return if spec.is_none_or(is_open) {
                Ok(None)
            } else {
                Err(refuse(REQUIRED))
            };
        }
    };
    let text = bearer(&header).unwrap_or_default();
    let caller = if is_token(text) {
        token(app, text, resource).await?
    } else {
        agent(app, text).await?
    };
    let caller = caller.ok_or_else(|| refuse(INVALID))?;
    let Some(spec) = spec else { return Ok(Some(caller)) };
    permit(&caller, spec)?;
    // An operation that reads no credential knows no caller, by whatever door.
    Ok(Some(caller).filter(|_| spec.reads_credential()))
}

/// Returns the agent of a key. A person is none: people act in the console.
async fn agent(app: &App, text: &str) -> Result<Option<Caller>, ApiError> {
    if !text.starts_with(SecretKind::AgentKey.prefix()) || text.len() > MAX_CREDENTIAL_BYTES {
        return Ok(None);
    }
    let principal = app.principal(hash(text)).await?;
    let Some(principal) = principal else {
        return Ok(None);
    };
    let (caller, suspended) = caller(app, Arc::unwrap_or_clone(principal))?;
    if suspended {
        return Err(account_suspended(app));
    }
    match caller.actor {
        CallerKind::Claimant { status, .. } => Err(not_approved(app, status)),
        _ => Ok(Some(caller).filter(|caller| caller.credential == Credential::AgentKey)),
    }
}

/// Returns the agent that a token of this resource acts as.
async fn token(app: &App, text: &str, resource: Resource) -> Result<Option<Caller>, ApiError> {
    let now = app.clock.now();
    let found = app.store.oauth().app(&hash(text), now).await?;
    // A token for the other endpoint is as good as none: its person agreed to less there, or to more.
    let Some(found) = found.filter(|found| found.resource == resource.path()) else {
        return Ok(None);
    };
    if is_note_due(&found, now) {
        app.store.oauth().connection_seen(found.connection, now).await?;
    }
    acting(found).map(Some)
}

/// Returns true if the use of a connection is noted: each call would be a change otherwise.
pub(super) fn is_note_due(found: &ConnectedApp, now: Timestamp) -> bool {
    found.used_at.is_none_or(|used| used.plus(NOTED_EVERY) <= now)
}

/// Returns the agent that an app acts as.
pub(super) fn acting(found: ConnectedApp) -> Result<Caller, ApiError> {
    let ConnectedApp {
        connection,
        operator,
        agent,
        agent_name,
        scopes,
        ..
    } = found;
    let scopes = oauth::Scopes::parse(&scopes).map_err(|error| ApiError::internal(with_causes(&error)))?;
    Ok(Caller {
        operator,
        actor: CallerKind::Agent {
            id: agent,
            name: agent_name,
        },
        scopes: permissions(scopes),
        credential: Credential::AppToken,
        connection: Some(connection),
        expires_at: None,
    })
}

fn permissions(scopes: oauth::Scopes) -> Scopes {
    [Scope::Read, Scope::Write, Scope::Spend]
        .into_iter()
        .filter(|scope| scopes.contains(of(*scope)))
        .fold(Scopes::NONE, Scopes::with)
}

/// Returns the scope of OAuth that a permission is.
pub(crate) const fn of(scope: Scope) -> oauth::Scope {
    match scope {
        Scope::Read => oauth::Scope::Read,
        Scope::Write => oauth::Scope::Write,
        Scope::Spend => oauth::Scope::Spend,
    }
}

pub(super) fn permit(caller: &Caller, spec: &Spec) -> Result<(), ApiError> {
    if spec.any_scope || caller.scopes.allow(spec.scope) {
        Ok(())
    } else {
        Err(insufficient_scope(spec.scope))
    }
}

/// Returns the 403 for a credential without the permission (RFC 6750 section 3.1).
pub(super) fn insufficient_scope(needed: Scope) -> ApiError {
    let word = of(needed).word();
    let message = format!("the token lacks the scope `{word}`, which this operation needs");
    let challenge = format!("Bearer realm=\"sluice\", error=\"insufficient_scope\", scope=\"{word}\"");
    let error = ApiError::new(ErrorCode::InsufficientScope, message);
    match challenge.parse() {
        Ok(challenge) => error.header(header::WWW_AUTHENTICATE, challenge),
        Err(_) => error,
    }
}

/// Returns the reason of a refusal that the endpoint has to challenge; none for any other error.
pub(crate) fn denied(error: &ApiError, has_credential: bool) -> Option<DenialReason> {
    match (error.kind(), error.code()) {
        // With `invalid_token` an app renews its token; without any error code it begins the
        // authorization (RFC 6750 section 3.1).
        (Kind::Unauthenticated, _) if has_credential => Some(DenialReason::InvalidToken),
        (Kind::Unauthenticated, _) => Some(DenialReason::NoToken),
        (_, ErrorCode::InsufficientScope) => Some(DenialReason::InsufficientScope),
        _ => None,
    }
}

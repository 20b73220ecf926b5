//! The session of a person at the door of the console, which acts as an agent of that person.
//!
//! Invariants:
//! - Session, connection, agent and suspension are read from the database at each call, so their end takes effect with the
//!   next one on every replica.
//! - The caller is the agent, with the scopes of the connection. Those never have `spend`.

use types::AgentId;

use super::apps::{acting, is_note_due, permit};
use super::{find_session, refused};
use crate::call::caller::{Caller, PresentedCredential};
use crate::call::spec::Spec;
use crate::codes::ErrorCode;
use crate::error::ApiError;
use crate::state::app::App;

/// Authenticates a call of a page as an agent.
pub(super) async fn at_act(
    app: &App,
    spec: &Spec,
    presented: PresentedCredential,
    agent: Option<AgentId>,
) -> Result<Option<Caller>, ApiError> {
    let session = match presented {
        PresentedCredential::Session(token) => find_session(app, &token).await?,
        // Keys and tokens have the routes of the operations.
        PresentedCredential::Nothing | PresentedCredential::Authorization(_) | PresentedCredential::Unreadable => None,
    };
    let session = session.ok_or_else(|| {
        let hint = "sign in at `/signin`; programs call the address of the operation itself, with a key";
        refused(app, ErrorCode::Unauthenticated, "nobody is signed in", hint, "keys")
    })?;
    let now = app.clock.now();
    let oauth = app.store.oauth();
    let found = match agent {
        Some(agent) => oauth.console_app(session.operator, agent, now).await?,
        None => None,
    };
    let found = found.ok_or_else(|| {
        let message = "the console is not connected to this agent; connect it at `/console/publish`";
        ApiError::new(ErrorCode::NotConnected, message)
    })?;
    if is_note_due(&found, now) {
        oauth.console_seen(found.connection, now).await?;
    }
    let caller = acting(found)?;
    permit(&caller, spec)?;
    Ok(Some(caller))
}

//! The door of the console: a page of this service calls a few operations as an agent of the person who is signed in.
//!
//! ```text
//! POST ──▶ limit · operation · Origin · media type ──▶ Operations::dispatch (session, connection, form token)
//! ```
//!
//! Invariants:
//! - No other route reads the cookie for what a program may call. A page of another site cannot call here: its browser
//!   names it, it cannot send JSON without asking first, and it does not know the token of the forms.
//! - An operation is called here only if [`tools::AT_CONSOLE`] names it. None of those spends.
//! - What is refused is answered as JSON, since a script reads it.

use axum::Router;
use axum::body::Body;
use axum::extract::{Path, Request};
use axum::response::Response;
use axum::routing::any;
use http::header::{self, HeaderName, HeaderValue};
use http::request::Parts;
use http::{HeaderMap, Method};

use super::{RequestId, RouteState, answer, body, client, input, method_not_allowed, refusal};
use crate::call::answer::{JSON, OperationOutput};
use crate::call::caller::{CallOrigin, Transport};
use crate::call::operation::CallInput;
use crate::call::visit::{BrowserRequest, names_own_origin};
use crate::codes::ErrorCode;
use crate::error::ApiError;
use crate::ops::tools;
use crate::state::bodies::MemoryHolder;

const PATH: &str = "/console/act/{operation}";
/// Header that names the agent that acts.
const AGENT: HeaderName = HeaderName::from_static("x-agent");
/// Header that carries the token of the session's forms.
const FORM_TOKEN: HeaderName = HeaderName::from_static("x-form-token");

/// Returns the route.
pub(super) fn route(surface: &RouteState) -> Router {
    let surface = surface.clone();
    let act = move |Path(name): Path<String>, request: Request| {
        let surface = surface.clone();
        async move { act(&surface, &name, request).await }
    };
    Router::new().route(PATH, any(act))
}

async fn act(surface: &RouteState, name: &str, request: Request) -> Response {
    let (parts, mut body) = request.into_parts();
    let id = parts.extensions.get::<RequestId>();
    let id = id.map_or_else(String::new, |id| id.0.clone());
    match pass(surface, name, &parts, &mut body, &id).await {
        Ok(output) => answer(output),
        Err(error) => {
            // A page that is still sending would see a connection reset instead of the error.
            body::discard(&mut body).await;
            refusal(&error, &id)
        }
    }
}

async fn pass(
    surface: &RouteState,
    name: &str,
    parts: &Parts,
    body: &mut Body,
    id: &str,
) -> Result<OperationOutput, ApiError> {
    let RouteState { app, operations } = surface;
    let client = client(app, parts);
    // First of all, so that the rate limit bounds guessed names and sessions as well.
    app.admit(client).await?;
    if parts.method != Method::POST {
        return Err(method_not_allowed().header(header::ALLOW, HeaderValue::from_static("POST")));
    }
    let operation = operations.get(name).filter(|_| tools::AT_CONSOLE.contains(&name));
    let operation = operation.ok_or_else(|| ApiError::not_found("the console calls no such operation"))?;
    check_sender(&parts.headers, &app.config.public_url)?;
    let visit = BrowserRequest::of(parts, &app.config.public_url);
    let incoming = CallOrigin {
        client,
        presented: visit.presented(),
        takes_no_body: false,
        visit: Some(visit),
        door: Transport::Console(text(&parts.headers, &AGENT).and_then(|id| id.parse().ok())),
    };
    let form_token = text(&parts.headers, &FORM_TOKEN).map(str::to_owned);
    let mut reading = async |holder| {
        let limit = operation.spec.body.limit(&app.limits);
        let patience = app.limits.body_patience.0;
        let bytes = body::read(
            &parts.headers,
            body,
            limit,
            app.process.bodies.reservation(holder),
            patience,
        )
        .await?;
        CallInput::of_members(operation, bytes)
    };
    let dispatched = operations.dispatch(app, operation, incoming, id, |operator| async move {
        let read = reading(operator.map_or_else(|| MemoryHolder::Address(client.into()), MemoryHolder::Operator)).await;
        // The dispatcher looks at the token before it says what is wrong with the body.
        let (read, refused) = match read {
            Ok(read) => (read, None),
            Err(error) => (CallInput::from(serde_json::Map::new()), Some(error)),
        };
        Ok(CallInput {
            refused,
            form_token,
            ..read
        })
    });
    dispatched.await
}

/// Checks that a script of this service's own page sent a request. The statement of a newer browser does not count here:
/// every browser names its page in a request of this method, and a form sends no JSON.
fn check_sender(headers: &HeaderMap, public_url: &str) -> Result<(), ApiError> {
    if !names_own_origin(headers, public_url) {
        let message = "only a page of this service calls this, and its browser names it in `Origin`";
        return Err(ApiError::new(ErrorCode::WrongOrigin, message));
    }
    if headers.contains_key(header::CONTENT_TYPE) && input::media_type(headers, &[JSON]).is_ok() {
        return Ok(());
    }
    let message = "the body must be JSON in UTF-8, sent with `Content-Type: application/json`";
    Err(ApiError::new(ErrorCode::MediaType, message))
}

fn text<'h>(headers: &'h HeaderMap, name: &HeaderName) -> Option<&'h str> {
    headers.get(name)?.to_str().ok()
}

#[cfg(test)]
mod tests;

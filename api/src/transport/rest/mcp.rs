//! MCP transport (Streamable HTTP): the tools of the table at `/mcp` and `/mcp/directory`, without sessions.
//!
//! ```text
//! request ──▶ limit · method · Origin · body ──▶ revision · headers ──▶ tools/call ──▶ Operations::dispatch
//!                                                                  401, 403 ──▶ HTTP status with a challenge
//! ```
//!
//! Invariants:
//! - A tool is an operation: the dispatcher decides about each call, as at REST. This file decides nothing.
//! - `/mcp/directory` knows no tool that spends, not even by name.
//! - Nothing is kept between two requests, so that each replica answers each request.

mod arguments;
mod call;
mod envelope;
mod protocol;
mod toolbox;

use std::sync::Arc;

use axum::Router;
use axum::body::Body;
use axum::extract::Request;
use axum::response::Response;
use axum::routing::any;
use bytes::Bytes;
use http::header::{self, HeaderValue};
use http::request::Parts;
use http::uri::Authority;
use http::{Method, StatusCode};
use oauth::Resource;

use self::envelope::{BrokenMessage, McpMessage};
use self::protocol::RpcError;
use self::toolbox::Tools;
use super::{RequestId, RouteState, body, client, cors, input, method_not_allowed, presented, refusal};
use crate::call::answer::JSON;
use crate::call::caller::{CallOrigin, Transport};
use crate::codes::ErrorCode;
use crate::error::ApiError;
use crate::rules::auth::apps;
use crate::state::bodies::MemoryHolder;

/// Bytes of a message beside the arguments of its tool.
const ENVELOPE_BYTES: usize = 64 << 10;

/// Returns the routes of both endpoints.
pub(super) fn routes(surface: &RouteState) -> Router {
    Resource::ALL.into_iter().fold(Router::new(), |router, resource| {
        let endpoint = Arc::new(McpEndpoint {
            tools: Tools::of(&surface.operations, resource),
            surface: surface.clone(),
            resource,
        });
        let answer = move |request: Request| {
            let endpoint = Arc::clone(&endpoint);
            async move { endpoint.answer(request).await }
        };
        // A client that posts does not follow a redirect, and people end the address with a slash.
        let with_slash = format!("{}/", resource.path());
        router
            .route(resource.path(), any(answer.clone()))
            .route(&with_slash, any(answer))
    })
}

/// One of the two servers.
struct McpEndpoint {
    surface: RouteState,
    resource: Resource,
    tools: Tools,
}

/// Refusal of a request by HTTP.
struct HttpRefusal {
    error: ApiError,
    /// Scope that the request needs.
    needed: oauth::Scope,
}

impl From<ApiError> for HttpRefusal {
    fn from(error: ApiError) -> Self {
        Self {
            error,
            needed: oauth::Scope::Read,
        }
    }
}

impl McpEndpoint {
    async fn answer(&self, request: Request) -> Response {
        let (parts, body) = request.into_parts();
        if cors::is_preflight(&parts) {
            return cors::preflight(&HeaderValue::from_static("POST, OPTIONS"));
        }
        let mut response = self.answered(&parts, body).await;
        cors::open(response.headers_mut());
        response
    }

    async fn answered(&self, parts: &Parts, mut body: Body) -> Response {
        let id = parts.extensions.get::<RequestId>();
        let id = id.map_or_else(String::new, |id| id.0.clone());
        let incoming = CallOrigin {
            client: client(&self.surface.app, parts),
            presented: presented(&parts.headers),
            takes_no_body: false,
            visit: None,
            door: Transport::Mcp(self.resource),
        };
        let has_credential = incoming.has_credential();
        match self.pass(parts, &mut body, incoming, &id).await {
            Ok(response) => response,
            Err(refused) => {
                // A client that is still sending would see a connection reset instead of the error.
                body::discard(&mut body).await;
                self.refuse(&refused, has_credential, &id)
            }
        }
    }

    /// Answers a request, or returns the error that HTTP itself has to say.
    async fn pass(
        &self,
        parts: &Parts,
        body: &mut Body,
        incoming: CallOrigin,
        id: &str,
    ) -> Result<Response, HttpRefusal> {
        let app = &self.surface.app;
        // First of all, so that the rate limit bounds guessed keys and broken messages as well.
        app.admit(incoming.client).await?;
        // The method comes before the credential: clients take a 401 of GET for a server without tools.
        if parts.method != Method::POST {
            let error = method_not_allowed().header(header::ALLOW, HeaderValue::from_static("POST"));
            return Err(error.into());
        }
        self.check_origin(parts)?;
        input::media_type(&parts.headers, &[JSON])?;
        let bytes = self.read(parts, body, &incoming).await?;
        let message = match McpMessage::read(&bytes) {
            Ok(message) => message,
            Err(broken) => return Ok(failed(&no_message(broken), None)),
        };
        let era = match protocol::check(&parts.headers, &message) {
            Ok(era) => era,
            Err(error) => return Ok(failed(&error, Some(&message))),
        };
        let is_call = message.method == "tools/call" && message.id.is_some();
        let named = message.text("name").filter(|_| is_call);
        if let Some(tool) = named.and_then(|name| self.tools.get(name)) {
            let arguments = call::ToolArguments {
                text: message.arguments.clone(),
                payment: message.meta(call::PAYMENT_META).cloned(),
            };
            return match call::call(&self.surface, tool, era, incoming, id, arguments).await {
                Ok(result) => Ok(result_of(&message, &result)),
                Err(error) => Err(HttpRefusal {
                    error,
                    needed: apps::of(tool.operation.spec.scope),
                }),
            };
        }
        // A message that needs no credential still refuses a wrong one.
        apps::at_mcp(app, None, incoming.presented, self.resource).await?;
        // A notification has no answer (JSON-RPC 2.0 section 4.1).
        if message.id.is_none() {
            return Ok(accepted());
        }
        let answered = if is_call {
            Err(RpcError::no_tool())
        } else {
            protocol::answer(era, &message, &self.tools.list)
        };
        Ok(match answered {
            Ok(result) => result_of(&message, &result),
            Err(error) => failed(&error, Some(&message)),
        })
    }

    /// Refuses a page that reached this service by a name of its own, as with a server of the person's own machine (DNS
    /// rebinding). A page that asks by the service's name has no credential but what its program knows.
    fn check_origin(&self, parts: &Parts) -> Result<(), ApiError> {
        let issuer = self.surface.app.apps.server().issuer().as_str();
        let is_own = |origin: &HeaderValue| origin.as_bytes().eq_ignore_ascii_case(issuer.as_bytes());
        // The transport asks for this check. Programs send no `Origin`.
        if parts.headers.get_all(header::ORIGIN).iter().all(is_own) || is_for(parts, issuer) {
            Ok(())
        } else {
            let message = "browsers may call this only by the service's own address";
            Err(ApiError::new(ErrorCode::WrongOrigin, message))
        }
    }

    /// Reads the body. The caller is not known yet, so that its address has to have room for it.
    async fn read(&self, parts: &Parts, body: &mut Body, incoming: &CallOrigin) -> Result<Bytes, ApiError> {
        let app = &self.surface.app;
        let reservation = app
            .process
            .bodies
            .reservation(MemoryHolder::Address(incoming.client.into()));
        // Bounds a message whose tool is not known yet. The bound of the tool follows with its
        // arguments.
        let limit = app.limits.contribution_body.bytes().max(app.limits.body.bytes()) + ENVELOPE_BYTES;
        let patience = app.limits.body_patience.0;
        body::read(&parts.headers, body, limit, reservation, patience).await
    }

    /// Returns the answer to a refused call. One that lacks a credential or a scope learns where to get it.
    fn refuse(&self, refused: &HttpRefusal, has_credential: bool, id: &str) -> Response {
        let HttpRefusal { error, needed } = refused;
        let mut response = refusal(error, id);
        if let Some(denied) = apps::denied(error, has_credential) {
            let issuer = self.surface.app.apps.server().issuer();
            let challenge = denied.www_authenticate(issuer, self.resource, *needed);
            if let Ok(challenge) = HeaderValue::from_str(&challenge) {
                response.headers_mut().insert(header::WWW_AUTHENTICATE, challenge);
            }
        }
        response
    }
}

/// Returns true if a request names the host of the service at `issuer`, where names of the own machine are one.
fn is_for(parts: &Parts, issuer: &str) -> bool {
    let host = parts.headers.get(header::HOST).and_then(|host| host.to_str().ok());
    let service = issuer.split_once("://").map(|(_, authority)| authority);
    let authority = |text: &str| text.parse::<Authority>().ok();
    let (Some(host), Some(service)) = (host.and_then(authority), service.and_then(authority)) else {
        return false;
    };
    let is_local = |host: &Authority| ["localhost", "127.0.0.1", "[::1]"].contains(&host.host());
    host == service || is_local(&host) && is_local(&service) && host.port_u16() == service.port_u16()
}

fn no_message(broken: BrokenMessage) -> RpcError {
    match broken {
        BrokenMessage::NotJson => RpcError::parse("the body is not JSON"),
        BrokenMessage::Batch => RpcError::request("a body has one message; batches are not part of this protocol"),
        BrokenMessage::NotAMessage => RpcError::request("the body is not a request of JSON-RPC 2.0"),
    }
}

/// Returns the answer to a notification.
fn accepted() -> Response {
    let mut response = Response::new(Body::empty());
    *response.status_mut() = StatusCode::ACCEPTED;
    response
}

/// Returns the answer to a request with this result, which is JSON text.
fn result_of(message: &McpMessage, result: &str) -> Response {
    let id = message.id.clone().unwrap_or_default();
    let body = format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"result\":{result}}}");
    json(StatusCode::OK, body)
}

fn failed(error: &RpcError, message: Option<&McpMessage>) -> Response {
    let id = message.and_then(|message| message.id.as_ref());
    json(error.status, error.body(id).to_string())
}

fn json(status: StatusCode, body: String) -> Response {
    let mut response = Response::new(Body::from(body));
    *response.status_mut() = status;
    let json = HeaderValue::from_static(JSON);
    response.headers_mut().insert(header::CONTENT_TYPE, json);
    response
}

#[cfg(test)]
mod tests;

//! The table over HTTP.
//!
//! Invariant: this file carries values between HTTP and [`Operations::dispatch`] and decides nothing. Every answer has
//! a request id, and every refusal the body of [`ApiError`], also where no operation matched.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use axum::Router;
use axum::body::Body;
use axum::extract::{ConnectInfo, Path, Request};
use axum::middleware::{self, Next};
use axum::response::Response;
use axum::routing::{MethodFilter, on};
use futures_util::FutureExt as _;
use http::header::{self, HeaderName, HeaderValue};
use http::request::Parts;
use http::{HeaderMap, Method, StatusCode};
use types::Kind;

use crate::answer::{JSON, Output};
use crate::app::App;
use crate::bodies::Holder;
use crate::error::ApiError;
use crate::operation::{Caller, Operation, Operations};
use crate::probes;

mod body;
mod head;
mod input;
mod parts;

pub(crate) use parts::{PATH as PART, described as described_part};

/// The header every answer names its request by.
pub const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");
const FORWARDED_FOR: HeaderName = HeaderName::from_static("x-forwarded-for");

/// The id of a request, made when it arrives.
#[derive(Clone, Debug)]
struct RequestId(String);

/// What every route has.
#[derive(Clone, Debug)]
struct Surface {
    app: App,
    operations: Arc<Operations>,
}

/// One route per operation, and an answer for everything else.
pub(crate) fn router(app: App, operations: Operations) -> Router {
    let surface = Surface {
        app,
        operations: Arc::new(operations),
    };
    let mut router = Router::new();
    for operation in surface.operations.iter() {
        let Ok(filter) = MethodFilter::try_from(operation.spec.method.clone()) else {
            continue;
        };
        let (route, target) = (surface.clone(), Arc::clone(operation));
        let handler = move |request: Request| call(route.clone(), Arc::clone(&target), request);
        router = router.route(operation.spec.path, on(filter, handler));
    }
    let (missing, refused, taking) = (surface.clone(), surface.clone(), surface.app.clone());
    router
        .merge(probes::drain(surface.app.drain.clone()))
        .route(
            parts::PATH,
            axum::routing::put(move |Path((id, n)): Path<(String, String)>, request: Request| {
                parts::put(taking.clone(), id, n, request)
            }),
        )
        .fallback(move |request: Request| {
            let surface = missing.clone();
            async move {
                let error = ApiError::not_found("there is nothing at this path");
                no_operation(&surface.app, request.into_parts().0, error).await
            }
        })
        .method_not_allowed_fallback(move |request: Request| {
            let surface = refused.clone();
            async move {
                let error = ApiError::new(
                    Kind::Invalid,
                    "method_not_allowed",
                    "this path does not take this method",
                )
                .with_status(StatusCode::METHOD_NOT_ALLOWED);
                no_operation(&surface.app, request.into_parts().0, error).await
            }
        })
        .layer(middleware::from_fn(move |request, next| {
            identify(surface.clone(), request, next)
        }))
}

/// Gives the request its id and the answer the headers that all have; a panic below becomes an answer too.
async fn identify(surface: Surface, mut request: Request, next: Next) -> Response {
    let id = request_id(&surface.app);
    request.extensions_mut().insert(RequestId(id.clone()));
    let (parts, mut body) = request.into_parts();
    let answered = match head::check(&parts) {
        Ok(()) => {
            let request = Request::from_parts(parts, body);
            AssertUnwindSafe(next.run(request)).catch_unwind().await
        }
        Err(error) => {
            let refused = no_operation(&surface.app, parts, error).await;
            body::discard(&mut body).await;
            Ok(refused)
        }
    };
    let mut response = answered.unwrap_or_else(|_panic| {
        tracing::error!(request = id, "a call ended with a panic; it was answered 500");
        refusal(&ApiError::internal("panic"), &id)
    });
    let headers = response.headers_mut();
    if surface.app.drain.has_begun() {
        // Why: a connection that stays open would still be used after the last request was taken.
        headers.insert(header::CONNECTION, HeaderValue::from_static("close"));
    }
    if let Ok(id) = HeaderValue::from_str(&id) {
        headers.insert(REQUEST_ID, id);
    }
    headers.insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response
}

/// Calls one operation.
async fn call(surface: Surface, operation: Arc<Operation>, request: Request) -> Response {
    let (mut parts, mut body) = request.into_parts();
    let id = parts
        .extensions
        .remove::<RequestId>()
        .map_or_else(String::new, |id| id.0);
    let app = &surface.app;
    let caller = Caller {
        client: client(app, &parts),
        authorization: authorization(&parts.headers),
        takes_no_body: parts.method == Method::HEAD,
    };
    let expects_continue = parts.headers.contains_key(header::EXPECT);
    let headers = operation.spec.headers.iter().copied();
    let sent: Vec<_> = headers
        .filter(|(_, header)| parts.headers.contains_key(*header))
        .collect();
    let address = Holder::Address(caller.client.into());
    let (head, arriving) = (&mut parts, &mut body);
    let dispatched = surface.operations.dispatch(app, &operation, caller, &id, |operator| {
        let room = app.process.bodies.room(operator.map_or(address, Holder::Operator));
        input::read(&operation, head, arriving, &app.limits, room)
    });
    match dispatched.await {
        Ok(output) => answer(output),
        Err(error) => {
            // Why: a client that is still sending would see its connection reset instead of the refusal. One that
            // waits to be told to send has sent nothing.
            if !expects_continue {
                body::discard(&mut body).await;
            }
            refusal(&error.naming_headers(&sent), &id)
        }
    }
}

fn answer(output: Output) -> Response {
    match output {
        Output::Json { status, headers, body } => {
            let mut response = Response::new(Body::from(body));
            *response.status_mut() = status;
            response
                .headers_mut()
                .insert(header::CONTENT_TYPE, HeaderValue::from_static(JSON));
            response.headers_mut().extend(headers);
            response
        }
        Output::Stream {
            status,
            headers,
            content_type,
            body,
        } => {
            let is_empty = status == StatusCode::NOT_MODIFIED;
            let body = if is_empty {
                Body::empty()
            } else {
                Body::from_stream(body)
            };
            let mut response = Response::new(body);
            *response.status_mut() = status;
            if !is_empty {
                response
                    .headers_mut()
                    .insert(header::CONTENT_TYPE, HeaderValue::from_static(content_type));
            }
            response.headers_mut().extend(headers);
            response
        }
    }
}

fn refusal(error: &ApiError, request_id: &str) -> Response {
    let mut response = Response::new(Body::from(error.body(request_id).to_string()));
    *response.status_mut() = error.status();
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(JSON));
    headers.extend(error.headers().iter().cloned());
    response
}

/// The refusal of a request that matches no operation; it counts as a call all the same.
async fn no_operation(app: &App, parts: Parts, error: ApiError) -> Response {
    let id = parts.extensions.get::<RequestId>().map_or("", |id| id.0.as_str());
    let error = app.admit(client(app, &parts)).await.err().unwrap_or(error);
    refusal(&error, id)
}

/// The caller's address: the peer's, or what the outermost trusted proxy says of its own.
fn client(app: &App, parts: &Parts) -> IpAddr {
    let peer = parts
        .extensions
        .get::<ConnectInfo<SocketAddr>>()
        .map_or(IpAddr::V4(Ipv4Addr::UNSPECIFIED), |ConnectInfo(address)| address.ip());
    let Some(skipped) = app.config.trusted_proxies.checked_sub(1) else {
        return peer;
    };
    // Why bytes: what a client put before the entry of a trusted proxy must not make that entry unreadable.
    let values = parts
        .headers
        .get_all(FORWARDED_FOR)
        .iter()
        .rev()
        .map(HeaderValue::as_bytes);
    let mut entries = values.flat_map(|value| value.rsplit(|byte| *byte == b','));
    entries.nth(usize::from(skipped)).and_then(address).unwrap_or(peer)
}

/// An address as proxies write it, some with the port.
fn address(entry: &[u8]) -> Option<IpAddr> {
    let entry = str::from_utf8(entry).ok()?.trim();
    entry
        .parse()
        .ok()
        .or_else(|| entry.parse::<SocketAddr>().ok().map(|address| address.ip()))
}

fn authorization(headers: &HeaderMap) -> Option<Result<String, ()>> {
    let value = headers.get(header::AUTHORIZATION)?;
    Some(value.to_str().map(str::to_owned).map_err(drop))
}

/// A fresh id (UUID version 7, RFC 9562).
fn request_id(app: &App) -> String {
    let now = app.clock.now();
    let seconds = u64::try_from(now.micros().div_euclid(1_000_000)).unwrap_or(0);
    let nanos = u32::try_from(now.micros().rem_euclid(1_000_000) * 1_000).unwrap_or(0);
    uuid::Uuid::new_v7(uuid::Timestamp::from_unix(uuid::NoContext, seconds, nanos)).to_string()
}

/// Whether the method may have a body that means something.
fn takes_body(method: &Method) -> bool {
    !matches!(*method, Method::GET | Method::HEAD)
}

#[cfg(test)]
mod tests;

//! REST transport: the table of operations over HTTP.
//!
//! Invariant: this file carries values between HTTP and [`Operations::dispatch`] and decides nothing. Every answer has
//! a request id, and every error has the body of [`ApiError`], also if no operation matched.

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

use self::compression::{Compressible, CompressionEffort, compressed};
use crate::call::answer::{JSON, OperationOutput, OperationResult as _};
use crate::call::caller::{CallOrigin, PresentedCredential, Transport};
use crate::call::operation::{Operation, Operations};
use crate::call::spec::{ApiKind, Effect};
use crate::call::view::{LayoutOptions, PageResponse};
use crate::call::visit::{self, BrowserRequest};
use crate::codes::ErrorCode;
use crate::error::ApiError;
use crate::ops::gone;
use crate::ops::uploads::part_route;
use crate::state::app::App;
use crate::state::bodies::MemoryHolder;
use crate::transport::{probes, web};

mod act;
mod body;
mod compression;
mod cors;
mod head;
mod input;
mod mcp;
pub(crate) mod paid;
mod upload_part;
mod validators;

/// Header of every answer that contains the request id.
pub const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");
const FORWARDED_FOR: HeaderName = HeaderName::from_static("x-forwarded-for");

/// Route of the files that pages refer to.
const ASSETS: &str = "/assets/{hash}/{name}";

/// Id of a request, generated when it arrives.
#[derive(Clone, Debug)]
struct RequestId(String);

/// State that every route has.
#[derive(Clone, Debug)]
struct RouteState {
    /// Shared, because each request copies this state, and a copy of every handle costs more than a small answer.
    app: Arc<App>,
    operations: Arc<Operations>,
}

/// Builds the router: a route per operation, and error answers for every other request.
pub(crate) fn router(app: App, operations: Operations) -> Router {
    let surface = RouteState {
        app: Arc::new(app),
        operations: Arc::new(operations),
    };
    let mut router = Router::new();
    for operation in surface.operations.iter() {
        let spec = &operation.spec;
        let Ok(filter) = MethodFilter::try_from(spec.method.clone()) else {
            continue;
        };
        let twin = surface.operations.iter().find(|other| {
            other.spec.surface != spec.surface && (&other.spec.method, other.spec.path) == (&spec.method, spec.path)
        });
        // A path that has both a page and an answer for programs is one route, of the latter.
        if twin.is_some() && spec.surface == ApiKind::Page {
            continue;
        }
        let (route, target, page) = (surface.clone(), Arc::clone(operation), twin.cloned());
        let handler = move |request: Request| {
            // A browser that pays wants what it pays for, and not the page again.
            let pays = |(_, name): &(&str, &str)| request.headers().contains_key(*name);
            let is_page = web::prefers_page(request.headers()) && !target.spec.headers.iter().any(pays);
            let page = page.as_ref().filter(|_| is_page);
            call(route.clone(), Arc::clone(page.unwrap_or(&target)), request)
        };
        router = router.route(spec.path, on(filter, handler));
    }
    for (path, methods) in cors::methods(&surface.operations) {
        let surface = surface.clone();
        let asked = move |request: Request| {
            let (surface, methods) = (surface.clone(), methods.clone());
            async move { options(&surface, &methods, request.into_parts().0).await }
        };
        router = router.route(path, axum::routing::options(asked));
    }
    let (missing, refused, taking) = (surface.clone(), surface.clone(), Arc::clone(&surface.app));
    let sending = surface.clone();
    router
        .merge(probes::drain(surface.app.drain.clone()))
        .route(ASSETS, axum::routing::get(asset))
        .merge(mcp::routes(&surface))
        .merge(act::route(&surface))
        .route(
            part_route::UPLOAD_PART_PATH,
            axum::routing::put(
                move |Path((id, n)): Path<(String, String)>, request: Request| async move {
                    let mut response = upload_part::put(App::clone(&taking), id, n, request).await;
                    cors::open(response.headers_mut());
                    response
                },
            )
            .options(move |request: Request| async move {
                options(
                    &sending,
                    &HeaderValue::from_static("PUT, OPTIONS"),
                    request.into_parts().0,
                )
                .await
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
            async move { no_operation(&surface.app, request.into_parts().0, method_not_allowed()).await }
        })
        // Around everything, so that the answers of the fallbacks have an id and the common headers as
        // well.
        .layer(middleware::from_fn(move |request, next| {
            identify(surface.clone(), request, next)
        }))
}

/// Middleware around every request: adds the request id and the common headers, and turns a panic into a 500.
async fn identify(surface: RouteState, mut request: Request, next: Next) -> Response {
    let id = surface.app.process.request_ids.next(surface.app.clock.now());
    request.extensions_mut().insert(RequestId(id.clone()));
    let is_paid = paid::is_paid(request.uri().path());
    let (parts, mut body) = request.into_parts();
    let answered = match head::check(&parts) {
        Ok(()) => {
            let request = Request::from_parts(parts, body);
            AssertUnwindSafe(next.run(request)).catch_unwind().await
        }
        Err(error) => {
            // The client may still be sending the body, so it is read before the connection can be closed.
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
        // A client could reuse an open connection after this replica has taken its last request.
        headers.insert(header::CONNECTION, HeaderValue::from_static("close"));
    }
    if let Ok(id) = HeaderValue::from_str(&id) {
        headers.insert(REQUEST_ID, id);
    }
    if is_paid {
        paid::keep_private(headers);
    }
    // Browsers must not guess another media type for content that users wrote.
    headers.insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    // Answers depend on the credential and change with every merge, so no cache may keep them.
    headers
        .entry(header::CACHE_CONTROL)
        .or_insert(HeaderValue::from_static("no-store"));
    compressed(response).await
}

/// Dispatches a request to its operation.
async fn call(surface: RouteState, operation: Arc<Operation>, request: Request) -> Response {
    let (mut parts, mut body) = request.into_parts();
    let id = parts
        .extensions
        .remove::<RequestId>()
        .map_or_else(String::new, |id| id.0);
    let app = &surface.app;
    let is_page = operation.spec.surface == ApiKind::Page;
    let visit = is_page.then(|| BrowserRequest::of(&parts, &app.config.public_url));
    let incoming = CallOrigin {
        client: client(app, &parts),
        presented: match &visit {
            Some(visit) => visit.presented(),
            // A signed-in person is told that this is for agents, instead of being asked for a key.
            None if operation.spec.forbids_persons => person_or_presented(&parts.headers),
            None => presented(&parts.headers),
        },
        takes_no_body: parts.method == Method::HEAD,
        visit: visit.clone(),
        door: Transport::Rest,
    };
    let compressible = (operation.spec.effect == Effect::Read)
        .then(|| Compressible::of(&parts.headers, CompressionEffort::WhileSent))
        .flatten();
    let expects_continue = parts.headers.contains_key(header::EXPECT);
    let headers = operation.spec.headers.iter().copied();
    let sent: Vec<_> = headers
        .filter(|(_, header)| parts.headers.contains_key(*header))
        .collect();
    let address = MemoryHolder::Address(incoming.client.into());
    let (head, arriving) = (&mut parts, &mut body);
    let dispatched = surface.operations.dispatch(app, &operation, incoming, &id, |operator| {
        let reservation = app
            .process
            .bodies
            .reservation(operator.map_or(address, MemoryHolder::Operator));
        input::read(&operation, head, arriving, &app.limits, reservation)
    });
    match dispatched.await {
        Ok(output) => {
            let output = validators::tagged(output, &operation.spec, &parts.headers);
            let mut response = answer(output);
            if let Some(mark) = compressible {
                response.extensions_mut().insert(mark);
            }
            if is_page {
                web::protect(response.headers_mut());
            } else {
                cors::open(response.headers_mut());
            }
            response
        }
        Err(error) => {
            // A client that is still sending would see a connection reset instead of the error, so the rest of the body
            // is read. A client that sent `Expect: 100-continue` has sent nothing yet.
            if !expects_continue {
                body::discard(&mut body).await;
            }
            if let Some(visit) = visit {
                if error.status() == StatusCode::NOT_FOUND && parts.method == Method::GET {
                    let body = error.body(&id);
                    if let Some(gone) = gone::page(app, &visit, &body).await {
                        return page_of(gone.of_error(&error), &id);
                    }
                }
                return refused_page(app, &error, &visit, &parts.method, &id);
            }
            let mut response = refusal(&error.naming_headers(&sent), &id);
            cors::open(response.headers_mut());
            response
        }
    }
}

fn answer(output: OperationOutput) -> Response {
    match output {
        OperationOutput::Whole {
            status,
            headers,
            content_type,
            body,
        } => {
            let mut response = Response::new(Body::from(body));
            *response.status_mut() = status;
            // A 304 has neither a body nor a media type (RFC 9110 section 15.4.5).
            if status != StatusCode::NOT_MODIFIED {
                response
                    .headers_mut()
                    .insert(header::CONTENT_TYPE, HeaderValue::from_static(content_type));
            }
            response.headers_mut().extend(headers);
            response
        }
        OperationOutput::Stream {
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

/// Returns the page for a browser whose request failed.
fn refused_page(app: &App, error: &ApiError, visit: &BrowserRequest, method: &Method, request_id: &str) -> Response {
    page_of(
        web::refusal(error, visit, method, request_id, &LayoutOptions::of(app)),
        request_id,
    )
}

/// Returns a page that says what happened to a request that failed.
fn page_of(view: PageResponse, request_id: &str) -> Response {
    let mut response = view
        .into_output()
        .map_or_else(|error| refusal(&error, request_id), answer);
    web::protect(response.headers_mut());
    response
}

/// Answers with a file that pages refer to. Its path contains a hash of its content, so browsers may keep it for ever.
async fn asset(request: Request) -> Response {
    let Some(asset) = pages::asset(request.uri().path()) else {
        return refusal(&ApiError::not_found("there is nothing at this path"), "");
    };
    let mut response = Response::new(Body::from(asset.bytes));
    if let Some(mark) = Compressible::of(request.headers(), CompressionEffort::OnceForAll) {
        response.extensions_mut().insert(mark);
    }
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(asset.media_type));
    headers.insert(
        // The address has the hash of the content, so the content behind it never changes.
        header::CACHE_CONTROL,
        HeaderValue::from_static("public, max-age=31536000, immutable"),
    );
    response
}

/// Answers a browser that asks what a page of another site may send; nobody else has a use for this method.
async fn options(surface: &RouteState, methods: &HeaderValue, parts: Parts) -> Response {
    // Clients of payments ask without saying what for.
    if cors::is_preflight(&parts) || paid::is_paid(parts.uri.path()) {
        return cors::preflight(methods);
    }
    no_operation(&surface.app, parts, method_not_allowed()).await
}

/// Returns the 405 for a path that takes other methods.
fn method_not_allowed() -> ApiError {
    let message = "this path does not take this method";
    ApiError::new(ErrorCode::MethodNotAllowed, message)
}

/// Returns the error for a request that matches no operation. It counts toward the rate limit like any call.
async fn no_operation(app: &App, parts: Parts, error: ApiError) -> Response {
    let id = parts.extensions.get::<RequestId>().map_or("", |id| id.0.as_str());
    // The rate limit outweighs the error, so that guessing paths is limited as well.
    let error = app.admit(client(app, &parts)).await.err().unwrap_or(error);
    if web::prefers_page(&parts.headers) {
        let visit = BrowserRequest::of(&parts, &app.config.public_url);
        return refused_page(app, &error, &visit, &parts.method, id);
    }
    refusal(&error, id)
}

/// Returns the caller's address.
fn client(app: &App, parts: &Parts) -> IpAddr {
    let peer = parts
        .extensions
        .get::<ConnectInfo<SocketAddr>>()
        .map_or(IpAddr::V4(Ipv4Addr::UNSPECIFIED), |ConnectInfo(address)| address.ip());
    client_address(peer, &parts.headers, app.config.trusted_proxies)
}

/// Returns the address of a client: that of the peer, or the entry of the outermost trusted proxy in `X-Forwarded-For`.
pub fn client_address(peer: IpAddr, headers: &HeaderMap, trusted_proxies: u8) -> IpAddr {
    // Without a trusted proxy the header is ignored, since any client can set it.
    let Some(skipped) = trusted_proxies.checked_sub(1) else {
        return peer;
    };
    // The header is read as bytes, since a client could otherwise make the trusted entry unreadable with invalid text
    // before it.
    let values = headers.get_all(FORWARDED_FOR).iter().rev().map(HeaderValue::as_bytes);
    let mut entries = values.flat_map(|value| value.rsplit(|byte| *byte == b','));
    entries.nth(usize::from(skipped)).and_then(address).unwrap_or(peer)
}

/// Parses an address as proxies write it, with or without a port.
fn address(entry: &[u8]) -> Option<IpAddr> {
    let entry = str::from_utf8(entry).ok()?.trim();
    entry
        .parse()
        .ok()
        .or_else(|| entry.parse::<SocketAddr>().ok().map(|address| address.ip()))
}

fn presented(headers: &HeaderMap) -> PresentedCredential {
    match headers.get(header::AUTHORIZATION).map(HeaderValue::to_str) {
        None => PresentedCredential::Nothing,
        Some(Ok(value)) => PresentedCredential::Authorization(value.to_owned()),
        Some(Err(_)) => PresentedCredential::Unreadable,
    }
}

/// Returns the session of a browser where no header is a credential, for an operation that tells people apart from
/// nobody. A session opens no such operation, so a cookie gives no rights here either.
fn person_or_presented(headers: &HeaderMap) -> PresentedCredential {
    match (presented(headers), visit::session(headers)) {
        (PresentedCredential::Nothing, Some(token)) => PresentedCredential::Session(token),
        (presented, _) => presented,
    }
}

/// Returns true if a body of this method has a meaning.
fn takes_body(method: &Method) -> bool {
    !matches!(*method, Method::GET | Method::HEAD)
}

#[cfg(test)]
mod tests;

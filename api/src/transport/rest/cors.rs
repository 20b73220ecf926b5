//! Answers that a page of any other site may read (CORS protocol, Fetch standard section 3.2).
//!
//! Invariant: only answers have these headers that no cookie opens. A page of another site has no credential there but
//! one that its program knows, so it acts for nobody else. Answers that are pages never have them.

use std::collections::BTreeMap;

use axum::response::Response;
use http::header::{self, HeaderMap, HeaderValue};
use http::request::Parts;
use http::{Method, StatusCode};

use crate::call::operation::Operations;
use crate::call::spec::ApiKind;

/// Any header, of which `*` stands for all but credentials; the names are for browsers that do not know it.
const ALLOWED: &str = "*, Authorization, Content-Type, Idempotency-Key, Last-Event-ID, MCP-Protocol-Version, \
                       Mcp-Session-Id, Mcp-Method, Mcp-Name, PAYMENT-SIGNATURE, X-PAYMENT, SIGN-IN-WITH-X, \
                       Access-Control-Expose-Headers";
const EXPOSED: &str = "*, ETag, Retry-After, WWW-Authenticate, X-Request-Id, PAYMENT-REQUIRED, PAYMENT-RESPONSE, \
                       X-PAYMENT-RESPONSE";
/// Seconds for which a browser need not ask again.
const KEPT: &str = "600";

/// Lets pages of other sites read an answer.
pub(super) fn open(headers: &mut HeaderMap) {
    // Browsers do not take `*` for a request with cookies.
    headers.insert(header::ACCESS_CONTROL_ALLOW_ORIGIN, HeaderValue::from_static("*"));
    headers.insert(header::ACCESS_CONTROL_EXPOSE_HEADERS, HeaderValue::from_static(EXPOSED));
}

/// Returns true if a browser asks what a page of another site may send.
pub(super) fn is_preflight(parts: &Parts) -> bool {
    parts.method == Method::OPTIONS && parts.headers.contains_key(header::ACCESS_CONTROL_REQUEST_METHOD)
}

/// Answers it for a path that takes these methods.
pub(super) fn preflight(methods: &HeaderValue) -> Response {
    let mut response = Response::default();
    *response.status_mut() = StatusCode::NO_CONTENT;
    let headers = response.headers_mut();
    open(headers);
    headers.insert(header::ALLOW, methods.clone());
    headers.insert(header::ACCESS_CONTROL_ALLOW_METHODS, methods.clone());
    headers.insert(header::ACCESS_CONTROL_ALLOW_HEADERS, HeaderValue::from_static(ALLOWED));
    headers.insert(header::ACCESS_CONTROL_MAX_AGE, HeaderValue::from_static(KEPT));
    response
}

/// Returns the methods of each path of programs, as the value of a header.
pub(super) fn methods(operations: &Operations) -> BTreeMap<&'static str, HeaderValue> {
    let mut methods: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for operation in operations.iter().filter(|one| one.spec.surface == ApiKind::Rest) {
        let of_the_path = methods.entry(operation.spec.path).or_default();
        if operation.spec.method == Method::GET {
            of_the_path.push("HEAD");
        }
        of_the_path.push(operation.spec.method.as_str());
    }
    let methods = methods.into_iter().filter_map(|(path, mut of_the_path)| {
        of_the_path.push("OPTIONS");
        let value = HeaderValue::from_str(&of_the_path.join(", ")).ok()?;
        Some((path, value))
    });
    methods.collect()
}

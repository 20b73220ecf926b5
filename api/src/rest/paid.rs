//! Paths that are paid by x402, for pages of other sites: a payment is its own authorization, and nothing else of the
//! caller is read.
//!
//! Invariant: what a browser may read and send from another site is listed here, and no credential is among it.

use axum::response::Response;
use http::header::{self, HeaderMap, HeaderValue};
use http::{HeaderName, StatusCode};

const EXPOSED: &str = "PAYMENT-REQUIRED, PAYMENT-RESPONSE, X-PAYMENT-RESPONSE";
const ALLOWED: &str = "PAYMENT-SIGNATURE, X-PAYMENT, SIGN-IN-WITH-X, Access-Control-Expose-Headers";
const METHODS: &str = "GET, HEAD, OPTIONS";

/// Returns true for a path that is paid.
pub(crate) fn is_paid(path: &str) -> bool {
    path.starts_with("/paid/")
}

/// Adds what every answer of such a path has.
pub(super) fn open(headers: &mut HeaderMap) {
    let mut set = |name: HeaderName, value| headers.insert(name, HeaderValue::from_static(value));
    // Browsers send no cookies with `*`, so a page of another site acts for nobody.
    set(header::ACCESS_CONTROL_ALLOW_ORIGIN, "*");
    set(header::ACCESS_CONTROL_EXPOSE_HEADERS, EXPOSED);
    // The answer belongs to one payment. A shared cache would give it to whoever asks next.
    set(header::CACHE_CONTROL, "no-store");
}

/// Answers a browser that asks what it may send.
pub(super) async fn preflight() -> Response {
    let mut response = Response::default();
    *response.status_mut() = StatusCode::NO_CONTENT;
    let headers = response.headers_mut();
    headers.insert(header::ALLOW, HeaderValue::from_static(METHODS));
    headers.insert(header::ACCESS_CONTROL_ALLOW_METHODS, HeaderValue::from_static(METHODS));
    headers.insert(header::ACCESS_CONTROL_ALLOW_HEADERS, HeaderValue::from_static(ALLOWED));
    headers.insert(header::ACCESS_CONTROL_MAX_AGE, HeaderValue::from_static("600"));
    response
}

//! Answer to an address that has its whole share of connections.

use api::ApiError;
use axum::body::Body;
use axum::response::Response;
use hyper::StatusCode;
use hyper::header::{CONNECTION, CONTENT_TYPE, HeaderValue, RETRY_AFTER};
use tokio::net::TcpStream;

/// Seconds after which another connection may have a place.
const RETRY_SECONDS: u64 = 1;
const REFUSAL_MESSAGE: &str =
    "this address has as many connections or requests under way as it may; close some, or wait for answers";

fn body() -> String {
    ApiError::rate_limited(REFUSAL_MESSAGE, RETRY_SECONDS)
        .body("")
        .to_string()
}

/// Returns the answer to a request.
pub(super) fn response() -> Response {
    let mut response = Response::new(Body::from(body()));
    *response.status_mut() = StatusCode::TOO_MANY_REQUESTS;
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    headers.insert(RETRY_AFTER, HeaderValue::from(RETRY_SECONDS));
    headers.insert(CONNECTION, HeaderValue::from_static("close"));
    response
}

/// Sends the answer to a connection without a place, as far as its buffer takes it.
pub(super) fn send(stream: &TcpStream) {
    let body = body();
    let text = format!(
        "HTTP/1.1 429 Too Many Requests\r\ncontent-type: application/json\r\nretry-after: {RETRY_SECONDS}\r\n\
         content-length: {}\r\nconnection: close\r\n\r\n{body}",
        body.len()
    );
    // Nobody waits for a peer that has no place, so an answer that it does not take is lost.
    stream.try_write(text.as_bytes()).ok();
}

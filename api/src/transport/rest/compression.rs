//! Answers that are compressed: those of reads, of text and of Arrow, from 1 KiB on and where the length is not known yet.
//!
//! Invariant: no answer to a request with the cookie of a session is compressed, whatever it is. Such a page has the token
//! of its forms beside text that others choose, and its compressed size would tell the token (BREACH). Bytes count as
//! egress before they are compressed, so the same data costs the same for everybody.

use std::convert::Infallible;
use std::future::ready;
use std::mem;

use axum::body::Body;
use axum::response::Response;
use http::header::{self, HeaderMap, HeaderValue};
use http::{Extensions, Request, StatusCode, Version};
use tower::{Layer as _, ServiceExt as _, service_fn};
use tower_http::CompressionLevel;
use tower_http::compression::CompressionLayer;
use tower_http::compression::predicate::{Predicate, SizeAbove};

use crate::call::answer::shrinks;
use crate::call::visit;

/// Bytes from which on an answer is compressed.
const LEAST_BYTES: u16 = 1_024;
/// Mark of an answer that may be compressed.
#[derive(Clone, Copy, Debug)]
struct Compressible;

/// Returns true for a request whose answer may be compressed.
pub(super) fn is_allowed(request: &HeaderMap) -> bool {
    visit::session(request).is_none()
}

/// Marks the answer to such a request, of a read.
pub(super) fn mark_compressible(response: &mut Response) {
    response.extensions_mut().insert(Compressible);
}

/// Returns the values of `Accept-Encoding` of a request.
pub(super) fn accepted(request: &HeaderMap) -> Vec<HeaderValue> {
    request.get_all(header::ACCEPT_ENCODING).iter().cloned().collect()
}

/// Compresses an answer if it is marked and large, and its client accepts that.
pub(super) async fn compressed(accepted: Vec<HeaderValue>, mut response: Response) -> Response {
    // The body of an encoder is thousands of bytes, so an answer that stays as it is does not become one.
    if !when().should_compress(&response) {
        return response;
    }
    if accepted.is_empty() {
        let varies_on = HeaderValue::from(header::ACCEPT_ENCODING);
        let headers = response.headers_mut();
        // A file went through the layer of files before.
        if !headers.get_all(header::VARY).iter().any(|on| on == varies_on) {
            headers.append(header::VARY, varies_on);
        }
        return response;
    }
    Box::pin(encoded(accepted, response)).await
}

/// Passes an answer through the layer that compresses as its client accepts it.
async fn encoded(accepted: Vec<HeaderValue>, mut response: Response) -> Response {
    let layer = CompressionLayer::new()
        .br(false)
        .gzip(true)
        .zstd(true)
        // Large answers are compressed while they are sent, by a thread that serves others too.
        .quality(CompressionLevel::Fastest)
        .compress_when(when());
    let mut request = Request::new(());
    for value in accepted {
        request.headers_mut().append(header::ACCEPT_ENCODING, value);
    }
    let answer = service_fn(move |_: Request<()>| ready(Ok::<_, Infallible>(mem::take(&mut response))));
    let Ok(response) = layer.layer(answer).oneshot(request).await;
    response.map(Body::new)
}

fn when() -> impl Predicate {
    SizeAbove::new(LEAST_BYTES).and(is_worth_it)
}

/// Returns the layer of the files that pages refer to. Browsers take a file once and keep it, so it may take longer.
pub(super) fn file_layer() -> CompressionLayer<impl Predicate> {
    CompressionLayer::new()
        .br(true)
        .gzip(true)
        // It would be taken before brotli, and is larger.
        .zstd(false)
        .compress_when(when())
}

/// Returns true for a marked answer with status 200 of a media type that compression makes smaller, unless it is
/// compressed already.
fn is_worth_it(status: StatusCode, _: Version, headers: &HeaderMap, extensions: &Extensions) -> bool {
    let media_type = headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok());
    status == StatusCode::OK
        && extensions.get::<Compressible>().is_some()
        && !headers.contains_key(header::CONTENT_ENCODING)
        && media_type.is_some_and(shrinks)
}

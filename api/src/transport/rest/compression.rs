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
use tower_http::compression::predicate::{Predicate as _, SizeAbove};

use crate::call::answer::shrinks;
use crate::call::visit;

/// Bytes from which on an answer is compressed.
const LEAST_BYTES: u16 = 1_024;

/// Mark of an answer that may be compressed: one to a read without the cookie of a session.
#[derive(Clone, Debug)]
pub(super) struct Compressible {
    /// Values of `Accept-Encoding` of the request.
    accepted: Vec<HeaderValue>,
    effort: CompressionEffort,
}

/// Choice between the time that compression takes and the size that it leaves.
#[derive(Clone, Copy, Debug)]
pub(super) enum CompressionEffort {
    /// While it is sent, by a thread that serves others too: gzip or zstd, as fast as they are.
    WhileSent,
    /// As small as it gets, for a file that a browser takes once and keeps: brotli or gzip.
    OnceForAll,
}

impl Compressible {
    /// Returns the mark for the answer to a read with these headers, or `None` if it may not be compressed.
    pub(super) fn of(request: &HeaderMap, effort: CompressionEffort) -> Option<Self> {
        visit::session(request).is_none().then(|| Self {
            accepted: request.get_all(header::ACCEPT_ENCODING).iter().cloned().collect(),
            effort,
        })
    }
}

/// Compresses an answer if it is marked and large, of a media type that shrinks, and its client accepts that.
pub(super) async fn compressed(mut response: Response) -> Response {
    let Some(mark) = response.extensions_mut().remove::<Compressible>() else {
        return response;
    };
    let media_type = response.headers().get(header::CONTENT_TYPE);
    let is_text = media_type.is_some_and(|value| value.to_str().is_ok_and(shrinks));
    if response.status() != StatusCode::OK || !is_text || !SizeAbove::new(LEAST_BYTES).should_compress(&response) {
        return response;
    }
    // The body of an encoder is thousands of bytes, so an answer that stays as it is does not become one.
    if mark.accepted.is_empty() {
        let varies_on = HeaderValue::from(header::ACCEPT_ENCODING);
        response.headers_mut().append(header::VARY, varies_on);
        return response;
    }
    Box::pin(encoded(mark, response)).await
}

/// Passes an answer through the layer that compresses as its client accepts it.
async fn encoded(mark: Compressible, mut response: Response) -> Response {
    let layer = match mark.effort {
        CompressionEffort::WhileSent => CompressionLayer::new()
            .br(false)
            .gzip(true)
            .zstd(true)
            .quality(CompressionLevel::Fastest),
        // Zstd would be taken before brotli, and is larger.
        CompressionEffort::OnceForAll => CompressionLayer::new().br(true).gzip(true).zstd(false),
    };
    // `compressed` passes on only what is to be compressed.
    let layer = layer.compress_when(|_: StatusCode, _: Version, _: &HeaderMap, _: &Extensions| true);
    let mut request = Request::new(());
    for value in mark.accepted {
        request.headers_mut().append(header::ACCEPT_ENCODING, value);
    }
    let answer = service_fn(move |_: Request<()>| ready(Ok::<_, Infallible>(mem::take(&mut response))));
    let Ok(response) = layer.layer(answer).oneshot(request).await;
    response.map(Body::new)
}

//! Answers that are compressed: those of reads, of text and of Arrow, from 1 KiB on and where the length is not known yet.
//!
//! Invariant: no answer to a request with the cookie of a session is compressed, whatever it is. Such a page has the token
//! of its forms beside text that others choose, and its compressed size would tell the token (BREACH). Bytes count as
//! egress before they are compressed, so the same data costs the same for everybody.

use axum::response::Response;
use http::header::{self, HeaderMap};
use http::{Extensions, StatusCode, Version};
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

/// Returns the layer that compresses marked answers as their clients accept it.
pub(super) fn layer() -> CompressionLayer<impl Predicate> {
    CompressionLayer::new()
        .br(false)
        .gzip(true)
        .zstd(true)
        // Large answers are compressed while they are sent, by a thread that serves others too.
        .quality(CompressionLevel::Fastest)
        .compress_when(SizeAbove::new(LEAST_BYTES).and(is_worth_it))
}

/// Returns the layer of the files that pages refer to. Browsers take a file once and keep it, so it may take longer.
pub(super) fn file_layer() -> CompressionLayer<impl Predicate> {
    CompressionLayer::new()
        .br(true)
        .gzip(true)
        // It would be taken before brotli, and is larger.
        .zstd(false)
        .compress_when(SizeAbove::new(LEAST_BYTES).and(is_worth_it))
}

/// Returns true for a marked answer with status 200 of a media type that compression makes smaller.
fn is_worth_it(status: StatusCode, _: Version, headers: &HeaderMap, extensions: &Extensions) -> bool {
    let media_type = headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok());
    status == StatusCode::OK && extensions.get::<Compressible>().is_some() && media_type.is_some_and(shrinks)
}

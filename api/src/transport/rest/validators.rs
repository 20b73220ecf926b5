//! Validators of documents (RFC 9110 section 13): who has a document already is not sent it again.
//!
//! Invariant: a document is asked for anew each time, so what was taken down or replaced is nowhere served from a cache. The
//! tag is compared with the answer, after the decision on access.

use bytes::Bytes;
use data_encoding::HEXLOWER;
use http::StatusCode;
use http::header::{self, HeaderMap, HeaderValue};

use crate::call::answer::OperationOutput;
use crate::call::spec::Spec;

/// Bytes of the hash in a tag.
const TAG_BYTES: usize = 16;

/// Gives an answer that is whole its tag, where the operation has one; it becomes a 304 without a body for a client that
/// names the tag.
pub(super) fn tagged(output: OperationOutput, spec: &Spec, request: &HeaderMap) -> OperationOutput {
    let depends_on = if spec.lenient {
        // Some of these addresses answer with a page to who wants one.
        "Accept"
    } else if spec.is_validated && is_anonymous(request) {
        "Accept, Authorization, Cookie"
    } else {
        return output;
    };
    let OperationOutput::Whole {
        status: StatusCode::OK,
        mut headers,
        content_type,
        body,
    } = output
    else {
        return output;
    };
    let hash = blake3::hash(&body);
    // Weak, since a proxy may compress the bytes on the way.
    let tag = format!("W/\"{}\"", HEXLOWER.encode(&hash.as_bytes()[..TAG_BYTES]));
    let is_known = names(request, &tag);
    headers.extend(HeaderValue::from_str(&tag).map(|tag| (header::ETAG, tag)));
    headers.push((header::CACHE_CONTROL, HeaderValue::from_static("no-cache")));
    headers.push((header::VARY, HeaderValue::from_static(depends_on)));
    let (status, body) = if is_known {
        (StatusCode::NOT_MODIFIED, Bytes::new())
    } else {
        (StatusCode::OK, body)
    };
    OperationOutput::Whole {
        status,
        headers,
        content_type,
        body,
    }
}

/// Returns true if a request has neither a credential nor a cookie.
fn is_anonymous(request: &HeaderMap) -> bool {
    !request.contains_key(header::AUTHORIZATION) && !request.contains_key(header::COOKIE)
}

/// Returns true if `If-None-Match` names the tag, by weak comparison (RFC 9110 section 13.1.2).
fn names(request: &HeaderMap, tag: &str) -> bool {
    let opaque = |tag: &str| tag.trim().trim_start_matches("W/").to_owned();
    let own = opaque(tag);
    let values = request.get_all(header::IF_NONE_MATCH).iter();
    let mut tags = values
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','));
    tags.any(|given| given.trim() == "*" || opaque(given) == own)
}

//! Paths that are paid by x402: a payment is its own authorization, and nothing else of the caller is read.

use http::header::{self, HeaderMap, HeaderValue};

/// Returns true for a path that is paid.
pub(crate) fn is_paid(path: &str) -> bool {
    path.starts_with("/paid/")
}

/// Keeps an answer out of every cache.
pub(super) fn keep_private(headers: &mut HeaderMap) {
    // The answer belongs to one payment. A shared cache would give it to whoever asks next.
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
}

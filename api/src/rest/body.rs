//! Request bodies: read up to a limit, or thrown away politely.
//!
//! Invariant: no more of a body is held than its limit, and nobody is waited for longer than [`PATIENCE`].

use std::time::Duration;

use axum::body::Body;
use bytes::{Bytes, BytesMut};
use http::{HeaderMap, StatusCode, header};
use http_body_util::BodyExt as _;
use types::Kind;

use crate::error::ApiError;

/// The longest a body may take to arrive.
const PATIENCE: Duration = Duration::from_mins(1);
/// How much of an unwanted body is read before the connection is given up.
const DISCARDED: usize = 256 << 20;
/// How long an unwanted body is read.
const DISCARDING: Duration = Duration::from_secs(5);

/// The whole body, of at most `limit` bytes.
pub(super) async fn read(headers: &HeaderMap, body: &mut Body, limit: usize) -> Result<Bytes, ApiError> {
    let announced = headers
        .get(header::CONTENT_LENGTH)
        .and_then(|length| length.to_str().ok()?.parse::<u64>().ok());
    if announced.is_some_and(|length| length > limit as u64) {
        return Err(too_large(limit));
    }
    tokio::time::timeout(PATIENCE, collect(body, limit))
        .await
        .unwrap_or_else(|_elapsed| {
            let message = format!("the body did not arrive within {} seconds", PATIENCE.as_secs());
            Err(ApiError::new(Kind::Invalid, "request_timeout", message).with_status(StatusCode::REQUEST_TIMEOUT))
        })
}

/// Reads what is left of a body and forgets it, within limits.
pub(super) async fn discard(body: &mut Body) {
    let reading = async {
        let mut left = DISCARDED;
        while let Some(Ok(frame)) = body.frame().await {
            let length = frame.data_ref().map_or(0, Bytes::len);
            match left.checked_sub(length) {
                Some(rest) => left = rest,
                None => return,
            }
        }
    };
    if tokio::time::timeout(DISCARDING, reading).await.is_err() {
        tracing::debug!("a refused body was not read to its end");
    }
}

async fn collect(body: &mut Body, limit: usize) -> Result<Bytes, ApiError> {
    let mut first: Option<Bytes> = None;
    let mut rest = BytesMut::new();
    while let Some(frame) = body.frame().await {
        let frame = frame.map_err(|error| ApiError::invalid("", format!("has a body that broke off: {error}")))?;
        let Ok(data) = frame.into_data() else {
            continue;
        };
        let held = first.as_ref().map_or(0, Bytes::len) + rest.len();
        if held + data.len() > limit {
            return Err(too_large(limit));
        }
        if first.is_none() {
            first = Some(data);
        } else {
            rest.extend_from_slice(&data);
        }
    }
    // Why: most bodies arrive in one piece, which is then not copied.
    let first = first.unwrap_or_default();
    if rest.is_empty() {
        return Ok(first);
    }
    let mut whole = BytesMut::with_capacity(first.len() + rest.len());
    whole.extend_from_slice(&first);
    whole.extend_from_slice(&rest);
    Ok(whole.freeze())
}

fn too_large(limit: usize) -> ApiError {
    ApiError::new(
        Kind::TooLarge,
        "too_large",
        format!("the body has more than {limit} bytes"),
    )
    .field("limitBytes", limit)
}

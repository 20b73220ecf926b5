//! Upload parts by signed addresses: receives them where no bucket does.
//!
//! Invariant: no byte of a body is read if the address is invalid, the upload is not open, or the length differs from
//! the part's. A part is written as it arrives and is never whole in memory.

use std::str::FromStr;
use std::time::Duration;

use axum::body::Body;
use axum::extract::{Query, Request};
use axum::response::Response;
use bytes::{Bytes, BytesMut};
use http::header::{self, HeaderValue};
use http::{HeaderMap, StatusCode};
use serde::Deserialize;
use serde_json::json;
use store::{Upload, UploadStatus};
use tokio::task::spawn_blocking;
use types::ContributionId;
use uploads::{LocalUploads, PartWriter, UploadStore as _};

use super::body::{self, BrokenBody, ReadDeadline};
use super::{RequestId, refusal};
use crate::call::answer::JSON;
use crate::codes::ErrorCode;
use crate::error::ApiError;
use crate::ops::uploads::{closed, layout, place_failed, seconds};
use crate::rules::standing::TransferAccount;
use crate::state::app::App;
use crate::state::bodies::MemoryHolder;

/// Bytes written to disk at a time.
const WRITE_BYTES: usize = 1 << 20;
/// Time limit of a part; see [`ReadDeadline`].
const PART_TIMEOUT: Duration = Duration::from_mins(1);

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct UploadPartPath {
    expires: u64,
    signature: String,
}

/// Receives one part.
pub(super) async fn put(app: App, id: String, n: String, request: Request) -> Response {
    let (parts, mut body) = request.into_parts();
    let request_id = parts.extensions.get::<RequestId>().map_or("", |id| id.0.as_str());
    let address = Query::<UploadPartPath>::try_from_uri(&parts.uri)
        .ok()
        .map(|Query(address)| address);
    let taken = match admit(&app, &id, &n, address, &parts.headers).await {
        Ok(part) => take(&app, part, &mut body).await,
        Err(error) => Err(error),
    };
    match taken {
        Ok((n, etag)) => answer(n, &etag),
        Err(error) => {
            if error.status().is_server_error() {
                tracing::error!(
                    upload = id,
                    part = n,
                    context = error.log_context(),
                    "cannot store a part of an upload"
                );
            }
            // A client that sent `Expect: 100-continue` has not sent the body yet, so there is nothing to discard.
            if !parts.headers.contains_key(header::EXPECT) {
                body::discard(&mut body).await;
            }
            refusal(&error, request_id)
        }
    }
}

fn answer(n: u32, etag: &str) -> Response {
    let mut response = Response::new(Body::from(json!({"n": n, "etag": etag}).to_string()));
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(JSON));
    if let Ok(etag) = HeaderValue::from_str(&format!("\"{etag}\"")) {
        headers.insert(header::ETAG, etag);
    }
    response
}

/// Part whose request was checked.
struct AdmittedPart {
    local: LocalUploads,
    upload: Upload,
    n: u32,
    size: u64,
    standing: TransferAccount,
}

/// Checks the request: signature and expiry of the address, suspension of the operator, state of the upload, length.
async fn admit(
    app: &App,
    id: &str,
    n: &str,
    address: Option<UploadPartPath>,
    headers: &HeaderMap,
) -> Result<AdmittedPart, ApiError> {
    let invalid = || {
        let message = "the address differs from the one that the upload returned";
        ApiError::new(ErrorCode::LinkInvalid, message)
    };
    // With a bucket, this service hands out no addresses for parts, so none can be valid.
    let local = app.uploads.local.clone().ok_or_else(invalid)?;
    let (Some(id), Some(n)) = (only::<ContributionId>(id), only::<u32>(n)) else {
        return Err(ApiError::not_found("there is no such part"));
    };
    let address = address.ok_or_else(invalid)?;
    let now = app.clock.now();
    let signer = app.process.links.signer(&app.store, now).await?;
    if !signer.upload_signed(id, n, address.expires, &address.signature) {
        return Err(invalid());
    }
    if seconds(now) >= address.expires {
        let message = "the address and its upload have expired";
        return Err(ApiError::new(ErrorCode::LinkExpired, message));
    }
    let upload = app.store.upload(id).await?;
    let upload = upload.ok_or_else(|| ApiError::not_found("there is no such upload"))?;
    let mut standing = TransferAccount::of(&app.store, upload.operator);
    standing.check(now).await?;
    if !upload.is_open(now) {
        return Err(closed());
    }
    let size = layout(&upload).size_of(n).ok_or_else(invalid)?;
    match body::announced(headers) {
        Some(length) if length == size => Ok(AdmittedPart {
            local,
            upload,
            n,
            size,
            standing,
        }),
        None => {
            let message = format!("the part must be sent with `Content-Length: {size}`");
            let error = ApiError::new(ErrorCode::LengthRequired, message);
            Err(error.field("expected", size))
        }
        Some(length) => {
            let message = format!("part {n} must have {size} bytes, but Content-Length is {length}");
            Err(ApiError::new(ErrorCode::LengthMismatch, message).field("expected", size))
        }
    }
}

/// Parses a segment of the path; `None` unless it is in canonical form.
fn only<T: FromStr + ToString>(segment: &str) -> Option<T> {
    let parsed: T = segment.parse().ok()?;
    (parsed.to_string() == segment).then_some(parsed)
}

/// Receives the body and writes it to disk. Returns the part's number and entity tag.
async fn take(app: &App, part: AdmittedPart, body: &mut Body) -> Result<(u32, String), ApiError> {
    let AdmittedPart {
        local,
        upload,
        n,
        size,
        mut standing,
    } = part;
    // The permit is taken before the memory, so that waiting parts reserve none.
    let _operator_permit = app.process.parts.acquire(upload.operator).await;
    let mut reservation = app.process.bodies.reservation(MemoryHolder::Operator(upload.operator));
    reservation.extend_to(WRITE_BYTES)?;
    let pace = ReadDeadline::new(PART_TIMEOUT);
    let place = local.clone();
    let opened = on_disk(app, move || place.writer()).await?;
    let mut writer = opened.map_err(|error| place_failed(&error))?;
    let mut held = BytesMut::with_capacity(WRITE_BYTES);
    let mut taken = 0;
    while let Some(data) = body::next(body, pace, taken).await? {
        taken += data.len() as u64;
        if taken > size {
            return Err(broken("the body is longer than Content-Length"));
        }
        // An upload can be completed, or its operator suspended, while a part arrives.
        let now = app.clock.now();
        standing.check_again(now).await?;
        if !upload.is_open(now) {
            return Err(closed());
        }
        held.extend_from_slice(&data);
        if held.len() >= WRITE_BYTES {
            writer = write(app, writer, held.split().freeze()).await?;
        }
    }
    if taken < size {
        return Err(broken("it ended early"));
    }
    writer = write(app, writer, held.freeze()).await?;
    // A separate task finishes the part. If the client disconnects now, the part must still be kept or deleted, since
    // no later step looks for it.
    let named = tokio::spawn(name(app.clone(), local.clone(), writer, upload.id, n));
    let etag = named.await.map_err(ApiError::internal)??;
    Ok((n, etag))
}

/// Gives a written part its final name, and deletes it again if the upload's parts were deleted meanwhile. Returns the
/// entity tag.
async fn name(
    app: App,
    local: LocalUploads,
    writer: PartWriter,
    id: ContributionId,
    n: u32,
) -> Result<String, ApiError> {
    let finished = on_disk(&app, move || writer.finish(id, n)).await?;
    let etag = finished.map_err(|error| place_failed(&error))?;
    let upload = app.store.upload(id).await?;
    // The seal is checked after the row. An upload is sealed before its row becomes completed, and stays sealed until
    // its parts are deleted. So a completed upload without seal has been deleted.
    let place = local.clone();
    let is_sealed = spawn_blocking(move || place.is_sealed(id))
        .await
        .map_err(ApiError::internal)?
        .map_err(|error| place_failed(&error))?;
    match upload {
        Some(upload) if upload.is_open(app.clock.now()) => Ok(etag),
        Some(upload) if upload.status == UploadStatus::Completed && is_sealed => Ok(etag),
        // The upload is past its time but not yet expired in the database, so it may still be completed, and its parts
        // must stay. The reaper deletes them when it expires.
        Some(upload) if upload.status == UploadStatus::Open => Err(closed()),
        Some(_) | None => {
            let deleted = local.delete(id).await;
            deleted.map_err(|error| place_failed(&error))?;
            Err(closed())
        }
    }
}

async fn write(app: &App, mut writer: PartWriter, piece: Bytes) -> Result<PartWriter, ApiError> {
    let written = on_disk(app, move || writer.write(&piece).map(|()| writer)).await?;
    written.map_err(|error| place_failed(&error))
}

/// Runs work on the disk with one of the permits. No permit is held while the service waits for a client, so a slow
/// sender does not block others.
async fn on_disk<T: Send + 'static>(app: &App, work: impl FnOnce() -> T + Send + 'static) -> Result<T, ApiError> {
    // `acquire` fails only on a closed semaphore, and none is ever closed.
    let _permit = app.process.part_writes.acquire().await;
    spawn_blocking(work).await.map_err(ApiError::internal)
}

impl From<BrokenBody> for ApiError {
    fn from(how: BrokenBody) -> Self {
        match how {
            BrokenBody::TooSlow => broken("the body arrives too slowly").with_status(StatusCode::REQUEST_TIMEOUT),
            BrokenBody::Off(error) => broken(&error),
        }
    }
}

fn broken(how: &str) -> ApiError {
    ApiError::new(ErrorCode::PartBroken, format!("the part did not arrive: {how}"))
}

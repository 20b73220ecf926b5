//! Operations on open uploads: list them, and cancel one.
//!
//! Invariant: an operator sees and cancels its own uploads only. An upload is either cancelled or completed, never both.

use http::Method;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use store::{Compression, OpenUpload, UploadAbandoned};
use types::Timestamp;

use crate::call::answer::JsonReply;
use crate::call::cx::Cx;
use crate::call::operation::Operations;
use crate::call::spec::{GuardedItem, KEY, Spec};
use crate::call::wire::WireInstant;
use crate::codes::ErrorCode;
use crate::error::ApiError;
use crate::rules::entitlement;

pub(super) fn add(table: &mut Operations) {
    table.add(
        Spec {
            name: "list_uploads",
            path: "/projects/{slug}/uploads",
            summary: "Open uploads of the caller's operator",
            description: "Those that neither were completed nor have expired, oldest first, to this project and to others: \
                          the limit counts all of them.",
            tag: "datasets",
            accepts: KEY,
            item: GuardedItem::Project,
            success: &[(200, "The uploads.")],
            failure: &[(404, "There is no such project, or it is private to others.")],
            ..Spec::BASE
        },
        &[],
        list,
    );
    table.add(
        Spec {
            name: "cancel_upload",
            method: Method::DELETE,
            path: "/projects/{slug}/uploads/{id}",
            summary: "Cancel an upload that was not completed",
            description: "It takes no more parts, its bytes are deleted, and the day's allowance that it used is given back. \
                          An upload that has expired or was cancelled before is answered 200 too.",
            success: &[(200, "The upload is over.")],
            failure: &[
                (404, "There is no such upload that the caller may cancel."),
                (409, "The upload was completed (`upload_completed`): it is a contribution."),
            ],
            ..Spec::CONTRIBUTION
        },
        &[],
        cancel,
    );
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct ListUploadsQuery {
    /// Slug of a project that the caller sees.
    slug: String,
}

/// Open uploads of an operator.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "Uploads")]
struct OpenUploadList {
    /// The uploads, oldest first.
    items: Vec<OpenUploadView>,
}

/// An upload that accepts parts.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "Open")]
#[serde(rename_all = "camelCase")]
struct OpenUploadView {
    /// Id of the upload.
    id: String,
    /// The slug of its project.
    project: String,
    /// Name of the agent that began it.
    agent: String,
    /// Size of all parts together in bytes.
    bytes: u64,
    /// Number of parts.
    parts: u32,
    /// Compression of the file.
    compression: Compression,
    /// Time when it was begun.
    created_at: WireInstant,
    /// Time until which parts may be sent and the upload completed.
    expires_at: WireInstant,
}

async fn list(cx: Cx, input: ListUploadsQuery) -> Result<JsonReply<OpenUploadList>, ApiError> {
    entitlement::current(&cx, &input.slug).await?;
    let uploads = cx.app.store.uploads_open(cx.the_operator()?, cx.now).await?;
    let open = |open: OpenUpload| OpenUploadView {
        id: open.upload.id.to_string(),
        project: open.slug,
        agent: open.agent,
        bytes: open.upload.bytes,
        parts: open.upload.parts,
        compression: open.upload.compression,
        created_at: open.upload.created_at.into(),
        expires_at: open.upload.expires_at.into(),
    };
    Ok(JsonReply::ok(OpenUploadList {
        items: uploads.into_iter().map(open).collect(),
    }))
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct OpenUploadPath {
    /// Slug of the project.
    slug: String,
    /// Id of the upload.
    #[schemars(extend("format" = "uuid"))]
    id: String,
}

/// An upload that is over.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "Over")]
struct EndedUpload {
    /// Id of the upload.
    id: String,
    /// The slug of its project.
    project: String,
    /// Always `cancelled`.
    status: &'static str,
}

async fn cancel(cx: Cx, input: OpenUploadPath) -> Result<JsonReply<EndedUpload>, ApiError> {
    let (project, upload) = super::own(&cx, &input.slug, &input.id).await?;
    match cx.app.store.upload_abandon(upload.id).await? {
        UploadAbandoned::Abandoned | UploadAbandoned::Before => Ok(JsonReply::ok(EndedUpload {
            id: upload.id.to_string(),
            project: project.slug,
            status: "cancelled",
        })),
        UploadAbandoned::Completed => {
            let message = "the upload was completed and is a contribution, which cannot be taken back";
            Err(ApiError::new(ErrorCode::UploadCompleted, message))
        }
    }
}

/// Returns the error for an operator at its limit of open uploads, with what it can do about it.
pub(super) async fn too_many(cx: &Cx, limit: u32, until: Timestamp) -> Result<ApiError, ApiError> {
    let uploads = cx.app.store.uploads_open(cx.the_operator()?, cx.now).await?;
    let uploads = uploads.into_iter().map(|open| {
        json!({
            "id": open.upload.id.to_string(),
            "project": open.slug,
            "bytes": open.upload.bytes,
            "expiresAt": open.upload.expires_at.to_string(),
        })
    });
    let message = format!(
        "the operator has {limit} open uploads, which is the limit: cancel one, or wait until {} UTC",
        minute(until, cx.now)
    );
    // Rounded up, so that a caller that waits as long finds the first upload expired.
    let seconds = until.since(cx.now).as_secs() + 1;
    let error = ApiError::limited(ErrorCode::TooManyUploads, message, seconds);
    Ok(error.field("uploads", uploads.collect::<Vec<Value>>()))
}

/// Returns the first whole minute that is not before `at`, with its date if that is not today's.
fn minute(at: Timestamp, now: Timestamp) -> String {
    const MINUTE: i64 = 60_000_000;
    let whole = at.micros().div_euclid(MINUTE) + i64::from(at.micros().rem_euclid(MINUTE) > 0);
    let whole = Timestamp::from_micros(whole * MINUTE);
    let shown = whole.to_string();
    let (date, time) = shown.split_once('T').unwrap_or((&shown, ""));
    let time = time.get(..5).unwrap_or(time);
    if whole.day() == now.day() {
        time.to_owned()
    } else {
        format!("{date} {time}")
    }
}

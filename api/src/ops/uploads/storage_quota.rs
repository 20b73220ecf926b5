//! Storage limits of operators, as they concern uploads.

use serde_json::json;
use store::{Project, Upload};
use types::{Kind, OperatorId};

use crate::cx::Cx;
use crate::error::ApiError;

/// Returns the size in bytes of the latest versions of all datasets that an operator maintains.
pub(super) async fn stored_bytes(cx: &Cx, operator: OperatorId) -> Result<u64, ApiError> {
    let mut bytes = 0_u64;
    for dataset in cx.app.store.datasets_of(operator).await? {
        match cx.app.catalog.snapshot(dataset, None).await {
            Ok(Some(snapshot)) => bytes = bytes.saturating_add(snapshot.bytes()),
            Ok(None) => {}
            // One damaged table must not stop the uploads to the operator's others, so it counts nothing.
            Err(
                error @ (catalog::Error::Corrupt { .. }
                | catalog::Error::Gap { .. }
                | catalog::Error::HistoryLost { .. }),
            ) => {
                tracing::warn!(%dataset, %error, "a damaged table is left out of the storage of its operator");
            }
            Err(error) => return Err(error.into()),
        }
    }
    Ok(bytes)
}

/// Returns the error for an uploader whose storage is used up.
pub(super) fn exceeded(cx: &Cx, upload: &Upload, used: u64) -> ApiError {
    let allowed = cx.app.limits.storage_bytes;
    let message = format!(
        "{} bytes do not fit: {used} of {allowed} bytes of storage are used",
        upload.bytes
    );
    let quota = json!({"storage": {"used": used, "allowed": allowed}});
    let (base, operator) = (&cx.app.config.public_url, upload.operator);
    let credits = json!({"topUp": format!("{base}/paid/credits?operator={operator}")});
    storage_exceeded(message, quota).field("credits", credits)
}

/// Returns the error for an upload that the maintainer of the dataset has no storage for.
pub(super) fn exceeded_by_maintainer(cx: &Cx, project: &Project, bytes: u64) -> ApiError {
    let message = format!(
        "the maintainer of `{}` has no storage for another {bytes} bytes",
        project.slug
    );
    // The answer goes to another operator. It omits the bytes in use, which would reveal the size of private datasets,
    // and a top-up link, which would reveal the maintainer's id.
    storage_exceeded(message, json!({"storage": {"allowed": cx.app.limits.storage_bytes}}))
}

fn storage_exceeded(message: String, quota: serde_json::Value) -> ApiError {
    ApiError::new(Kind::PaymentRequired, "storage_quota", message).field("quota", quota)
}

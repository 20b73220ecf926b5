//! Storage limits of operators: what is free, and what credits pay for beyond it.
//!
//! Invariant: a write beyond the free bytes needs bought credits for one day of what is stored then. What is stored is
//! never taken away for a charge that credits did not cover.

use std::collections::HashMap;
use std::time::Duration;

use catalog::Catalog;
use parking_lot::Mutex;
use serde_json::json;
use store::{Project, Store, Upload};
use types::{Kind, OperatorId, Timestamp};

use crate::cx::Cx;
use crate::error::ApiError;

/// Time for which the size of what an operator stores is not read again for a batch.
const SEEN: Duration = Duration::from_secs(10);
/// Operators whose size is remembered at most.
const MOST_SEEN: usize = 10_000;

/// Returns the size in bytes of the latest versions of all datasets that an operator maintains.
pub(in crate::ops) async fn stored_bytes(cx: &Cx, operator: OperatorId) -> Result<u64, ApiError> {
    Ok(stored(&cx.app.store, &cx.app.catalog, operator).await?)
}

/// Returns the same for a task.
pub(crate) async fn stored(store: &Store, catalog: &Catalog, operator: OperatorId) -> Result<u64, StorageError> {
    let mut bytes = 0_u64;
    for dataset in store.datasets_of(operator).await? {
        match catalog.snapshot(dataset, None).await {
            Ok(Some(snapshot)) => bytes = bytes.saturating_add(snapshot.bytes()),
            // A dataset without a merge has no table yet.
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

/// Failure to read what an operator stores.
#[derive(Debug, thiserror::Error)]
pub(crate) enum StorageError {
    /// Failure to read the database.
    #[error(transparent)]
    Store(#[from] store::Error),
    /// Failure to read the tables.
    #[error(transparent)]
    Catalog(#[from] catalog::Error),
}

impl From<StorageError> for ApiError {
    fn from(error: StorageError) -> Self {
        match error {
            StorageError::Store(error) => error.into(),
            StorageError::Catalog(error) => error.into(),
        }
    }
}

/// Returns the bytes that an operator may store now: the free ones, and those of which its bought credits cover a day.
pub(crate) async fn allowed(cx: &Cx, operator: OperatorId) -> Result<u64, ApiError> {
    let tariff = &cx.app.pay;
    let balances = cx.app.store.money().balances(&tariff.asset, operator).await?;
    Ok(tariff.storage_covered(balances.credits, cx.app.limits.storage_bytes))
}

/// Checks that a batch of `bytes` fits into the storage of the maintainer of its project.
pub(crate) async fn admit(cx: &Cx, project: &Project, bytes: u64) -> Result<(), ApiError> {
    let maintainer = project.operator;
    // The datasets of collectors are the platform's own.
    if maintainer == OperatorId::PLATFORM {
        return Ok(());
    }
    // To count reads every table of the operator, which is too much for each batch.
    let known = cx.app.process.storage.lately(maintainer, cx.now);
    let used = if let Some(used) = known {
        used
    } else {
        let used = stored_bytes(cx, maintainer).await?;
        cx.app.process.storage.remember(maintainer, used, cx.now);
        used
    };
    let total = used.saturating_add(bytes);
    // Within the free bytes no balance is read.
    if total <= cx.app.limits.storage_bytes {
        return Ok(());
    }
    let allowed = allowed(cx, maintainer).await?;
    if total <= allowed {
        return Ok(());
    }
    if cx.operator() != Some(maintainer) {
        return Err(exceeded_by_maintainer(cx, project, bytes));
    }
    let message = format!("the batch does not fit: {used} of {allowed} bytes of storage are used");
    Err(of_operator(cx, maintainer, used, allowed, message))
}

/// Sizes of what operators store, as this process saw them lately.
#[derive(Debug, Default)]
pub(crate) struct Seen {
    stored: Mutex<HashMap<OperatorId, (u64, Timestamp)>>,
}

impl Seen {
    fn lately(&self, operator: OperatorId, now: Timestamp) -> Option<u64> {
        let stored = self.stored.lock();
        let (bytes, at) = stored.get(&operator)?;
        (now.since(*at) < SEEN).then_some(*bytes)
    }

    fn remember(&self, operator: OperatorId, bytes: u64, now: Timestamp) {
        let mut stored = self.stored.lock();
        // Emptied as a whole: a lost figure costs one count of tables.
        if stored.len() >= MOST_SEEN {
            stored.clear();
        }
        stored.insert(operator, (bytes, now));
    }
}

/// Returns the error for an uploader whose storage is used up.
pub(super) fn exceeded(cx: &Cx, upload: &Upload, used: u64, allowed: u64) -> ApiError {
    let message = format!(
        "{} bytes do not fit: {used} of {allowed} bytes of storage are used",
        upload.bytes
    );
    of_operator(cx, upload.operator, used, allowed, message)
}

/// Returns the error for an operator whose own storage is used up.
fn of_operator(cx: &Cx, operator: OperatorId, used: u64, allowed: u64, message: String) -> ApiError {
    let quota = json!({"storage": {"used": used, "allowed": allowed}});
    let credits = json!({"topUp": cx.app.config.top_up(operator)});
    storage_exceeded(message, quota).field("credits", credits)
}

/// Returns the error for an upload that the maintainer of the dataset has no storage for.
pub(super) fn exceeded_by_maintainer(cx: &Cx, project: &Project, bytes: u64) -> ApiError {
    let message = format!(
        "the maintainer of `{}` has no storage for another {bytes} bytes",
        project.slug
    );
    // The answer goes to another operator. It omits the bytes in use, which would reveal the size of private datasets,
    // and a top-up link, which would reveal the maintainer's id. What is allowed is the free figure, because another one
    // would reveal the maintainer's credits.
    storage_exceeded(message, json!({"storage": {"allowed": cx.app.limits.storage_bytes}}))
}

fn storage_exceeded(message: String, quota: serde_json::Value) -> ApiError {
    ApiError::new(Kind::PaymentRequired, "storage_quota", message).field("quota", quota)
}

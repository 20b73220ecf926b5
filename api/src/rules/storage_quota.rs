//! Storage limits of operators: what is free, and what credits pay for beyond it.
//!
//! Invariants:
//! - A write beyond the free bytes needs bought credits for one day of what is stored then. What is stored is never taken
//!   away for a charge that credits did not cover.
//! - A batch sees every version whose outcome somebody could read, unless less than half of the free bytes are used.

use catalog::Catalog;
use serde_json::json;
use store::{Project, Store, Upload};
use types::{DatasetId, OperatorId, Version};

use crate::call::cx::Cx;
use crate::codes::ErrorCode;
use crate::error::ApiError;

/// Returns the size in bytes of the latest versions of all datasets that an operator maintains, and of their sketches.
pub(crate) async fn stored_bytes(cx: &Cx, operator: OperatorId) -> Result<u64, ApiError> {
    Ok(stored(&cx.app.store, &cx.app.catalog, operator).await?)
}

/// Returns the same for a task.
pub(crate) async fn stored(store: &Store, catalog: &Catalog, operator: OperatorId) -> Result<u64, StorageError> {
    let mut bytes = store.profiles().sketch_bytes(operator).await?;
    for (dataset, version) in store.datasets_of(operator).await? {
        bytes = bytes.saturating_add(of_table(catalog, dataset, version).await?);
    }
    Ok(bytes)
}

/// Returns the size in bytes of the latest version of a dataset, which is `version` or a later one.
async fn of_table(catalog: &Catalog, dataset: DatasetId, version: Version) -> Result<u64, StorageError> {
    let snapshot = async {
        let latest = catalog.snapshot(dataset, None).await?;
        if latest.as_ref().is_none_or(|latest| latest.version() >= version) {
            return Ok(latest);
        }
        // Another process merged a version that this one has not looked for.
        Ok::<_, catalog::Error>(catalog.snapshot(dataset, Some(version)).await?.or(latest))
    };
    match snapshot.await {
        // A dataset without a merge has no table yet.
        Ok(snapshot) => Ok(snapshot.map_or(0, |snapshot| snapshot.bytes())),
        // It was deleted since the list was read.
        Err(catalog::Error::Deleted { .. }) => Ok(0),
        // One damaged table must not stop the uploads to the operator's others, so it counts nothing.
        Err(
            error @ (catalog::Error::Corrupt { .. } | catalog::Error::Gap { .. } | catalog::Error::HistoryLost { .. }),
        ) => {
            tracing::warn!(%dataset, %error, "a damaged table is left out of the storage of its operator");
            Ok(0)
        }
        Err(error) => Err(error.into()),
    }
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
    Ok(tariff.storage_covered(balances.credits, cx.app.limits.storage_per_operator.0))
}

/// Checks that a batch of `bytes` fits into the storage of the maintainer of its project.
pub(crate) async fn admit(cx: &Cx, project: &Project, bytes: u64) -> Result<(), ApiError> {
    let maintainer = project.operator;
    // The datasets of collectors are the platform's own.
    if maintainer == OperatorId::PLATFORM {
        return Ok(());
    }
    let (seen, free) = (&cx.app.process.storage, cx.app.limits.storage_per_operator.0);
    // To count asks for every table of the operator, which is too much for each batch of one that has much room.
    if seen
        .at_most(maintainer, bytes, cx.now)
        .is_some_and(|most| most <= free / 2)
    {
        return Ok(());
    }
    let used = counted(cx, maintainer).await?;
    seen.remember(maintainer, used, bytes, cx.now);
    let total = used.saturating_add(bytes);
    // Within the free bytes no balance is read.
    if total <= free {
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

/// Returns what an operator stores, in bytes. The size of a table that has no new version is remembered for a while.
pub(crate) async fn counted(cx: &Cx, operator: OperatorId) -> Result<u64, ApiError> {
    let sketches = cx.app.store.profiles().sketch_bytes(operator).await?;
    let sizes = sizes(cx, operator).await?;
    Ok(sizes
        .into_iter()
        .fold(sketches, |sum, (_, size)| sum.saturating_add(size)))
}

/// Returns the size in bytes of the latest version of each dataset that an operator maintains, remembered as above.
pub(crate) async fn sizes(cx: &Cx, operator: OperatorId) -> Result<Vec<(DatasetId, u64)>, ApiError> {
    let seen = &cx.app.process.storage;
    let mut sizes = Vec::new();
    for (dataset, version) in cx.app.store.datasets_of(operator).await? {
        let known = seen.table(dataset, version, cx.now);
        let size = if let Some(size) = known {
            size
        } else {
            let size = of_table(&cx.app.catalog, dataset, version).await?;
            seen.remember_table(dataset, version, size, cx.now);
            size
        };
        sizes.push((dataset, size));
    }
    Ok(sizes)
}

/// Returns the error for an uploader whose storage is used up.
pub(crate) fn exceeded(cx: &Cx, upload: &Upload, used: u64, allowed: u64) -> ApiError {
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
pub(crate) fn exceeded_by_maintainer(cx: &Cx, project: &Project, bytes: u64) -> ApiError {
    let message = format!(
        "the maintainer of `{}` has no storage for another {bytes} bytes",
        project.slug
    );
    // The answer goes to another operator. It omits the bytes in use, which would reveal the size of private datasets,
    // and a top-up link, which would reveal the maintainer's id. What is allowed is the free figure, because another one
    // would reveal the maintainer's credits.
    storage_exceeded(
        message,
        json!({"storage": {"allowed": cx.app.limits.storage_per_operator.0}}),
    )
}

fn storage_exceeded(message: String, quota: serde_json::Value) -> ApiError {
    ApiError::new(ErrorCode::StorageQuota, message).field("quota", quota)
}

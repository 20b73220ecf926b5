//! The commit of a deleted table. It stands twice: as the last commit, where a writer finds it that wants the number, and
//! in the place of commit 0, where everybody finds it who misses another.
//!
//! Invariant: a table whose commit 0 is of this kind is never created again, and a reader says that it was deleted before
//! it says that a commit is missing.

use std::sync::Arc;

use object_store::ObjectStore;
use types::{DatasetId, Timestamp};

use super::{bytes_of, lines, path, seal};
use crate::Error;
use crate::action::{Action, CommitInfo};
use crate::log::seal::CHECKSUM_PLACEHOLDER;

/// Operation of the commit. Builds that do not know it find a damaged commit, and merge nothing.
const DELETION_OPERATION: &str = "DROP TABLE";
/// Parameter with the id of the table.
const TABLE_PARAMETER: &str = "table";

/// Encodes the commit of a deleted table.
pub(crate) fn deleted(dataset: DatasetId, at: Timestamp) -> Result<Vec<u8>, serde_json::Error> {
    lines(&[Action::CommitInfo(CommitInfo {
        checksum: Some(CHECKSUM_PLACEHOLDER.into()),
        timestamp: at.millis(),
        operation: DELETION_OPERATION.to_owned(),
        operation_parameters: [(TABLE_PARAMETER.to_owned(), dataset.to_string())].into(),
        engine_info: "sluice".to_owned(),
        sluice: None,
        compaction: None,
    })])
}

/// Returns true if these bytes are the undamaged commit of a deleted table, and of this one.
pub(crate) fn is_deletion(dataset: DatasetId, bytes: &[u8]) -> bool {
    // Every other commit has more lines, so a merge of megabytes is looked at up to its first line end.
    let Some((b'\n', line)) = bytes.split_last() else {
        return false;
    };
    if line.contains(&b'\n') || seal::check(bytes).is_err() {
        return false;
    }
    match serde_json::from_slice::<Action<'_>>(line) {
        Ok(Action::CommitInfo(info)) => {
            info.operation == DELETION_OPERATION
                && info.operation_parameters.get(TABLE_PARAMETER) == Some(&dataset.to_string())
        }
        _ => false,
    }
}

/// Returns true if commit 0 says that the table was deleted.
pub(crate) async fn was_deleted(objects: &Arc<dyn ObjectStore>, dataset: DatasetId) -> Result<bool, Error> {
    let first = bytes_of(objects, &path(dataset, 0)).await?;
    Ok(first.is_some_and(|bytes| is_deletion(dataset, &bytes)))
}

/// Returns the error of a reader that misses commit `number`: [`Error::Deleted`] if the table was deleted, the error of
/// the store if it cannot tell, otherwise [`Error::Gap`].
pub(crate) async fn missing(objects: &Arc<dyn ObjectStore>, dataset: DatasetId, number: u64) -> Error {
    match was_deleted(objects, dataset).await {
        Ok(true) => Error::Deleted { dataset },
        Ok(false) => Error::gap(&path(dataset, number)),
        Err(error) => error,
    }
}

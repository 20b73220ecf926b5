//! The derived file of a table, which replaces reading the commits when the table is opened.
//!
//! Invariants: the file is used only if the log has the commit that it ends with. The distance of two writes grows with
//! the log, so their cost per commit is constant.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use object_store::ObjectStore;
use object_store::path::Path;
use types::DatasetId;

use super::TableState;
use crate::version_index::VersionIndex;
use crate::{commit, log};

/// Occasion of writing derived files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WriteOccasion {
    /// The table grows. Files are written rarely, so they cost little per version.
    Growing,
    /// The owner has nothing to merge. Files are written more often.
    Closing,
}

impl WriteOccasion {
    /// Returns the minimum number of commits between two files, and the divisor of the commits that are in the file.
    const fn spacing(self) -> (u64, u64) {
        match self {
            Self::Growing => (256, 8),
            Self::Closing => (16, 64),
        }
    }
}

impl TableState {
    /// Writes the derived file if the table has outgrown it. Returns true if it was due. A failure is only logged; the
    /// next try follows after the same growth again.
    pub(crate) async fn derive_if_due(self: &Arc<Self>, when: WriteOccasion) -> bool {
        let (least, share) = when.spacing();
        let (written, commits) = (self.derived.load(Ordering::Relaxed), self.base().commit);
        if commits < written.saturating_add(least.max(written / share)) {
            return false;
        }
        // The count is set before the write, so that a failure is not repeated at every commit.
        self.derived.store(commits, Ordering::Relaxed);
        let state = Arc::clone(self);
        let encoded = tokio::task::spawn_blocking(move || state.version_index().encode(state.dataset)).await;
        let Ok(Some(bytes)) = encoded else { return false };
        let path = path(self.dataset);
        if let Err(error) = commit::overwrite(self, &path, bytes.into()).await {
            let error = &error as &dyn std::error::Error;
            tracing::warn!(
                error,
                "cannot write the snapshot file of a table; the next opening reads the Delta log"
            );
        }
        true
    }
}

fn path(dataset: DatasetId) -> Path {
    Path::from(format!("{dataset}/_sluice/timeline"))
}

/// Reads the version index from the derived file. Returns `None` if the log does not have the commit that the file ends
/// with, or if either cannot be read.
pub(super) async fn read(objects: &Arc<dyn ObjectStore>, dataset: DatasetId) -> Option<VersionIndex> {
    let path = path(dataset);
    let bytes = log::bytes_of(objects, &path).await.ok()??;
    let version_index = VersionIndex::decode(dataset, &bytes);
    let Some(version_index) = version_index else {
        tracing::warn!(%path, "the snapshot file of a table is damaged; reading the Delta log");
        return None;
    };
    // The log may have been cut back or replaced since the file was written.
    let last = version_index.next_commit().checked_sub(1)?;
    match log::read(objects, dataset, last).await.ok()? {
        Some(commit) if version_index.ends_with(&commit) => Some(version_index),
        _ => {
            tracing::warn!(%path, "the snapshot file of a table does not match its Delta log; reading the log");
            None
        }
    }
}

//! Schedule of Delta checkpoints, which other readers of the Delta log use.
//!
//! Invariants: the distance of checkpoints grows with their size and with the log, so their cost per commit is
//! constant. A checkpoint contains only durable commits. It is put once, and `_last_checkpoint` points to it only after
//! that. The catalog never depends on a checkpoint, so a crash between two steps only costs other readers time.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use bytes::Bytes;
use object_store::{ObjectStoreExt as _, PutPayload};

use super::TableState;
use crate::blocking::blocking;
use crate::log::checkpoint::{self, Checkpoint, LastCheckpoint};
use crate::{Error, commit, log};

/// Minimum number of commits between two checkpoints, and before the first.
pub(super) const MIN_COMMITS_BETWEEN: u64 = 256;
/// Number of actions in a checkpoint that add one commit to the distance of the next.
const ACTIONS_PER_EXTRA_COMMIT: u64 = 16;
/// Number of earlier commits that add one commit to the distance, because encoding visits each of them.
const COMMITS_PER_EXTRA_COMMIT: u64 = 64;

/// Returns the number of commits from which a table with this checkpoint is due for the next.
fn due_after(last: &LastCheckpoint) -> u64 {
    let distance = MIN_COMMITS_BETWEEN
        .max(last.size / ACTIONS_PER_EXTRA_COMMIT)
        .max(last.version / COMMITS_PER_EXTRA_COMMIT);
    last.version.saturating_add(1).saturating_add(distance)
}

impl TableState {
    /// Writes a checkpoint if the table has outgrown the last. A failure is only logged; the next try follows after
    /// [`MIN_COMMITS_BETWEEN`] more commits.
    pub(crate) async fn checkpoint_if_due(self: &Arc<Self>) {
        let commits = self.version_index().next_commit();
        let due = self.checkpoint_due.load(Ordering::Relaxed);
        // A failed try is repeated after this many commits.
        let later = commits.saturating_add(MIN_COMMITS_BETWEEN);
        // The exchange selects one of several callers that find the checkpoint due at the same time.
        let taken = || {
            self.checkpoint_due
                .compare_exchange(due, later, Ordering::Relaxed, Ordering::Relaxed)
        };
        if commits < due || taken().is_err() {
            return;
        }
        match self.checkpoint(commits).await {
            Ok(due) => self.checkpoint_due.store(due, Ordering::Relaxed),
            Err(error) => {
                let error = &error as &dyn std::error::Error;
                tracing::warn!(
                    dataset = %self.dataset, error,
                    "cannot write a Delta checkpoint; only other Delta readers need it"
                );
            }
        }
    }

    /// Writes a checkpoint unless a sufficient one exists. Returns the number of commits from which the next is due.
    async fn checkpoint(self: &Arc<Self>, commits: u64) -> Result<u64, Error> {
        // Another process, or an earlier one, may have written a checkpoint.
        if let Some(last) = self.last_checkpoint().await? {
            let due = due_after(&last);
            // A checkpoint ahead of this process counts only if its commit exists. The owner may be further than this
            // process. If the log was cut back, the checkpoint describes commits that are gone.
            let is_ahead = last.version >= commits && self.has_commit(last.version).await?;
            if is_ahead || (last.version < commits && commits < due) {
                return Ok(due);
            }
        }
        // Protocol and metadata are read once per checkpoint, so the version index need not keep them.
        let creation = checkpoint::creation(&self.objects, self.dataset).await?;
        let state = Arc::clone(self);
        let encode = move || {
            let latest = state.version_index().latest(checkpoint::TOMBSTONE_RETENTION_MS);
            latest.map(|latest| checkpoint::encode(state.dataset, creation, &latest))
        };
        let Some(encoded) = blocking(encode).await.map_err(Error::Stopped)? else {
            return Ok(commits.saturating_add(MIN_COMMITS_BETWEEN));
        };
        let Checkpoint { bytes, last } = encoded.map_err(Error::Encode)?;
        self.put_checkpoint(last.version, bytes).await?;
        let told = serde_json::to_vec(&last).map_err(commit::unencodable)?;
        let path = checkpoint::path_of_last(self.dataset);
        commit::overwrite(self, &path, told.into()).await?;
        Ok(due_after(&last))
    }

    async fn has_commit(&self, number: u64) -> Result<bool, Error> {
        let path = log::path(self.dataset, number);
        match self.objects.head(&path).await {
            Ok(_) => Ok(true),
            Err(object_store::Error::NotFound { .. }) => Ok(false),
            Err(error) => Err(Error::storage(&path, error)),
        }
    }

    /// Reads the pointer to the newest checkpoint. Returns `None` if there is no pointer or it names a missing file.
    async fn last_checkpoint(&self) -> Result<Option<LastCheckpoint>, Error> {
        let path = checkpoint::path_of_last(self.dataset);
        let Some(bytes) = log::bytes_of(&self.objects, &path).await? else {
            return Ok(None);
        };
        if let Ok(last) = serde_json::from_slice::<LastCheckpoint>(&bytes) {
            let file = checkpoint::path_of(self.dataset, last.version);
            match self.objects.head(&file).await {
                Ok(found) if found.size == last.size_in_bytes => return Ok(Some(last)),
                Ok(_) | Err(object_store::Error::NotFound { .. }) => {}
                Err(error) => return Err(Error::storage(&file, error)),
            }
        }
        tracing::warn!(%path, "`_last_checkpoint` names a missing checkpoint; ignoring it");
        Ok(None)
    }

    /// Puts a checkpoint if absent. All processes of this build encode the same commits into the same bytes.
    async fn put_checkpoint(&self, number: u64, bytes: Vec<u8>) -> Result<(), Error> {
        let path = checkpoint::path_of(self.dataset, number);
        let payload = PutPayload::from(bytes);
        match commit::put(self, &path, payload.clone()).await {
            Err(Error::Storage {
                source: object_store::Error::AlreadyExists { .. },
                ..
            }) => {}
            put => return put,
        }
        let found = log::bytes_of(&self.objects, &path).await?;
        if found.is_some_and(|found| found == Bytes::from(payload.clone())) {
            // The process that put the file may have failed before it was durable.
            return self.sync_dir(&log::directory(self.dataset)).await;
        }
        tracing::warn!(%path, "a Delta checkpoint differs from the commits; replacing it");
        commit::overwrite(self, &path, payload).await
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn checkpoints_are_further_apart_the_more_they_have() {
        let due = |version, size| {
            due_after(&LastCheckpoint {
                version,
                size,
                size_in_bytes: 0,
                num_of_add_files: 0,
            })
        };
        assert_eq!(due(255, 258), 512);
        assert_eq!(due(4_095, 4_098), 4_352);
        assert_eq!(due(9_999, 16_000), 11_000);
        assert_eq!(due(639_999, 300), 649_999);
        assert_eq!(due(u64::MAX, u64::MAX), u64::MAX);
        // In all, no more than so many actions are written for every one that there is.
        let (mut commits, mut written) = (MIN_COMMITS_BETWEEN, 0);
        while commits < 1_000_000 {
            written += commits;
            commits = due(commits - 1, commits);
        }
        assert!(written < (ACTIONS_PER_EXTRA_COMMIT + 1) * commits, "{written}");
    }
}

//! When a table gets a checkpoint, for the readers of its Delta log that are not ours.
//!
//! Invariants: checkpoints are spaced in proportion to what they have and to the log, so that writing them costs the same
//! per commit however long it is. One is made of commits that are durable, put once, and pointed to only then; nothing here
//! depends on one, so that a crash between any two steps costs readers time and nothing else.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use bytes::Bytes;
use object_store::{ObjectStoreExt as _, PutPayload};

use super::State;
use crate::blocking::blocking;
use crate::log::checkpoint::{self, Checkpoint, Last};
use crate::{Error, commit, log};

/// The least number of commits between two checkpoints; as many come before the first.
pub(super) const LEAST: u64 = 256;
/// For how many actions of a checkpoint the next is a commit further away.
const SHARE: u64 = 16;
/// For how many commits before it the same, as each is looked at.
const LENGTH: u64 = 64;

/// From how many commits on a table with this checkpoint is due for another.
fn due_after(last: &Last) -> u64 {
    let distance = LEAST.max(last.size / SHARE).max(last.version / LENGTH);
    last.version.saturating_add(1).saturating_add(distance)
}

impl State {
    /// Writes a checkpoint when the table has outgrown the last. What fails is only logged: it is tried again when the
    /// table has grown some more.
    pub(crate) async fn checkpoint_if_due(self: &Arc<Self>) {
        let commits = self.timeline().next_commit();
        let due = self.checkpoint_due.load(Ordering::Relaxed);
        let later = commits.saturating_add(LEAST);
        // Why exchanged: of several who find it due at once, one writes it.
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

    /// Writes a checkpoint unless the store has one that will do; from how many commits on the next is due.
    async fn checkpoint(self: &Arc<Self>, commits: u64) -> Result<u64, Error> {
        // Why the store is asked: another process may have written it, or an earlier one.
        if let Some(last) = self.last_checkpoint().await? {
            let due = due_after(&last);
            // Why the commit: one of a log that was cut back is of no use, one of an owner that is further is.
            let is_ahead = last.version >= commits && self.has_commit(last.version).await?;
            if is_ahead || (last.version < commits && commits < due) {
                return Ok(due);
            }
        }
        let creation = checkpoint::creation(&self.objects, self.dataset).await?;
        let state = Arc::clone(self);
        let encode = move || {
            let latest = state.timeline().latest(checkpoint::RETENTION);
            latest.map(|latest| checkpoint::encode(state.dataset, creation, &latest))
        };
        let Some(encoded) = blocking(encode).await.map_err(Error::Stopped)? else {
            return Ok(commits.saturating_add(LEAST));
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

    /// What the store says of the newest checkpoint; `None` where it says nothing, or tells of one that is not there.
    async fn last_checkpoint(&self) -> Result<Option<Last>, Error> {
        let path = checkpoint::path_of_last(self.dataset);
        let Some(bytes) = log::bytes_of(&self.objects, &path).await? else {
            return Ok(None);
        };
        if let Ok(last) = serde_json::from_slice::<Last>(&bytes) {
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

    /// Puts a checkpoint, unless it is there: of the same commits every process of this build makes the same bytes.
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
            // Why: whoever put it may not have lived to see it durable.
            return self.settle(&log::directory(self.dataset)).await;
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
            due_after(&Last {
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
        let (mut commits, mut written) = (LEAST, 0);
        while commits < 1_000_000 {
            written += commits;
            commits = due(commits - 1, commits);
        }
        assert!(written < (SHARE + 1) * commits, "{written}");
    }
}

//! A version before its commit: the rows that are new, encoded, with the root they lead to.
//!
//! Invariant: a draft is made of one base; none of its rows is in the table at that base, and no two are equal.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use types::key::{BuildMapHasher, KeySet};
use types::{AgentId, Batch, ContributionId, Version};

use crate::blocking::blocking;
use crate::faults;
use crate::keys::KeyIndex;
use crate::part::{self, Encoded, PartInfo};
use crate::state::{Base, State};
use crate::{Error, Root};

/// A version that can be committed.
#[derive(Debug)]
pub(crate) struct Draft {
    pub(super) rows: Arc<Batch>,
    pub(super) duplicates: Vec<u32>,
    pub(super) encoded: Encoded,
    /// The part that is to hold the rows.
    pub(super) part: PartInfo,
    pub(super) root: Root,
}

/// Result of drafting.
#[derive(Debug)]
pub(crate) enum Drafted {
    /// Rows that are new.
    Rows(Draft),
    /// The table has all of them; the positions of the rows.
    NothingNew(Vec<u32>),
}

impl Draft {
    /// Drafts the version after `base`.
    pub(super) async fn after(
        state: &Arc<State>,
        batch: &Arc<Batch>,
        contribution: ContributionId,
        agent: AgentId,
        base: Base,
    ) -> Result<Drafted, Error> {
        let index = state.index().await?;
        let draft = || {
            let (index, batch) = (Arc::clone(&index), Arc::clone(batch));
            // It may look at the disk and hashes up to megabytes, which is no work for a thread of the
            // runtime.
            let draft = move || Self::on_this_thread(&index, &batch, contribution, agent, base);
            async { blocking(draft).await.map_err(Error::Stopped)? }
        };
        let mut is_rebuilt = false;
        loop {
            match draft().await {
                Err(Error::Index(error)) if !is_rebuilt && index.unreadable.load(Ordering::Relaxed) => {
                    let dataset = state.dataset;
                    tracing::warn!(%dataset, %error, "stored keys cannot be read; reading the parts again");
                    state.rebuild(&index).await?;
                    is_rebuilt = true;
                }
                // Somebody else met what cannot be read.
                Err(Error::KeysGivenUp { .. }) => state.catch_up(&index).await?,
                drafted => return drafted,
            }
        }
    }

    fn on_this_thread(
        index: &KeyIndex,
        batch: &Arc<Batch>,
        contribution: ContributionId,
        agent: AgentId,
        base: Base,
    ) -> Result<Drafted, Error> {
        let (rows, duplicates) = new_rows(index, batch, base.version)?;
        if rows.is_empty() {
            return Ok(Drafted::NothingNew(duplicates));
        }
        let version = base.version.next();
        let encoded = part::encode(&rows, contribution, agent, version)?;
        Ok(Drafted::Rows(Self {
            duplicates,
            part: PartInfo {
                version,
                compacted: None,
                contribution,
                index: 0,
                attempt: 0,
                rows: rows.len() as u64,
                bytes: encoded.bytes.len() as u64,
                sha256: encoded.sha256,
            },
            root: root(base, &rows),
            encoded,
            rows,
        }))
    }

    /// Returns the same rows after another base, without another look at its keys: an injected bug.
    #[cfg(feature = "faults")]
    pub(crate) fn rebased(mut self, base: Base) -> Drafted {
        self.part.version = base.version.next();
        self.root = root(base, &self.rows);
        Drafted::Rows(self)
    }
}

fn root(base: Base, rows: &Batch) -> Root {
    base.root.extend((0..rows.len()).map(|row| rows.canonical(row)))
}

/// The rows that neither the table has at this version nor an earlier row of the batch is, and the positions of the
/// others.
fn new_rows(index: &KeyIndex, batch: &Arc<Batch>, version: Version) -> Result<(Arc<Batch>, Vec<u32>), Error> {
    let known = index.contains_since(version, batch.keys(), None)?;
    let mut seen = KeySet::with_capacity_and_hasher(batch.len(), BuildMapHasher::default());
    let keep: Vec<bool> = batch
        .keys()
        .iter()
        .zip(known)
        .map(|(key, known)| !known && seen.insert(*key))
        .collect();
    let keep = faults::may_keep_duplicates(keep);
    let dropped = batch
        .positions()
        .iter()
        .zip(&keep)
        .filter(|(_, keep)| !**keep)
        .map(|(position, _)| *position);
    let duplicates: Vec<u32> = dropped.collect();
    if duplicates.is_empty() {
        return Ok((Arc::clone(batch), duplicates));
    }
    let rows = batch.filter(&keep).map_err(|error| Error::Encode(error.into()))?;
    Ok((Arc::new(rows), duplicates))
}

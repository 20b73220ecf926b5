//! A batch on its way to a commit: the rows that are new at one base, encoded, with the root they lead to.
//!
//! Invariant: none of the rows of a version is in the table at its base, and no two are equal.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use types::key::{BuildMapHasher, KeySet};
use types::{AgentId, Batch, ContributionId, Version, mutate};

use super::{LateDuplicates, NewPart, PreparedContent, VersionParts};
#[cfg(feature = "faults")]
use super::{PreparedRows, PreparedVersion};
use crate::blocking::blocking;
use crate::keys::KeyIndex;
use crate::part::{self, PartInfo};
use crate::state::{CommitBase, TableState};
use crate::{Error, Root};

/// Contribution and agent of a batch.
type Origin = (ContributionId, AgentId);

/// The rows of a batch.
#[derive(Debug)]
pub(crate) struct BatchRows {
    pub(super) batch: Arc<Batch>,
    /// Rows that were new at the latest base.
    pub(crate) new: Arc<Batch>,
}

impl BatchRows {
    pub(super) fn new(batch: Arc<Batch>) -> Self {
        let new = Arc::clone(&batch);
        Self { batch, new }
    }

    /// Encodes the rows that are new at `base`.
    pub(super) async fn against(
        &mut self,
        state: &Arc<TableState>,
        origin: Origin,
        base: CommitBase,
    ) -> Result<VersionParts, Error> {
        let index = state.index().await?;
        let encode = || {
            let (index, batch) = (Arc::clone(&index), Arc::clone(&self.batch));
            // It may look at the disk and hashes up to megabytes, which is no work for a thread of the runtime.
            let encode = move || {
                let (new, late) = new_rows(&index, &batch, base.version)?;
                let version = version_of(&new, late, origin, base)?;
                Ok((new, version))
            };
            async { blocking(encode).await.map_err(Error::Stopped)? }
        };
        let mut is_rebuilt = false;
        let (new, version) = loop {
            match encode().await {
                Err(Error::Index(error)) if !is_rebuilt && index.unreadable.load(Ordering::Relaxed) => {
                    let dataset = state.dataset;
                    tracing::warn!(%dataset, %error, "stored keys cannot be read; reading the parts again");
                    state.rebuild(&index).await?;
                    is_rebuilt = true;
                }
                // Another caller met what cannot be read.
                Err(Error::KeysGivenUp { .. }) => state.catch_up(&index).await?,
                encoded => break encoded?,
            }
        };
        if version.parts.is_empty() {
            // The keys may be of commits that the log lost, and then the rows are no duplicates.
            state.confirm().await?;
        }
        self.new = new;
        Ok(version)
    }
}

/// Encodes the rows of the version after `base` as one part, or as none if there is no row. Blocks.
pub(super) fn version_of(
    rows: &Batch,
    late: Vec<u32>,
    (contribution, agent): Origin,
    base: CommitBase,
) -> Result<VersionParts, Error> {
    let version = base.version.next();
    let mut parts = Vec::new();
    if !rows.is_empty() {
        let part::EncodedPart { bytes, sha256 } = part::encode(rows, contribution, agent, version)?;
        parts.push(NewPart {
            info: PartInfo {
                version,
                compacted: None,
                contribution,
                index: 0,
                attempt: 0,
                rows: rows.len() as u64,
                bytes: bytes.len() as u64,
                sha256,
            },
            proof: part::proof_of(&bytes),
            content: PreparedContent::Bytes(bytes),
        });
    }
    Ok(VersionParts {
        parts,
        rows: rows.len() as u64,
        root: root(base, rows),
        late: LateDuplicates::Rows(late),
    })
}

fn root(base: CommitBase, rows: &Batch) -> Root {
    base.root.extend((0..rows.len()).map(|row| rows.canonical(row)))
}

/// Returns the rows that neither the table has at this version nor an earlier row of the batch is, and the indexes of
/// the others.
fn new_rows(index: &KeyIndex, batch: &Arc<Batch>, version: Version) -> Result<(Arc<Batch>, Vec<u32>), Error> {
    let known = index.contains_since(version, batch.keys(), None)?;
    let mut seen = KeySet::with_capacity_and_hasher(batch.len(), BuildMapHasher::default());
    let keep: Vec<bool> = batch
        .keys()
        .iter()
        .zip(known)
        .map(|(key, known)| !known && seen.insert(*key))
        .collect();
    mutate!(Bug::DedupOnce => let keep = vec![true; keep.len()]);
    let dropped = batch
        .positions()
        .iter()
        .zip(&keep)
        .filter(|(_, keep)| !**keep)
        .map(|(position, _)| *position);
    let late: Vec<u32> = dropped.collect();
    if late.is_empty() {
        return Ok((Arc::clone(batch), late));
    }
    let rows = batch.filter(&keep).map_err(|error| Error::Encode(error.into()))?;
    Ok((Arc::new(rows), late))
}

#[cfg(feature = "faults")]
impl PreparedVersion {
    /// Returns the rows of a version after another base, without another look at their keys: an injected bug.
    pub(crate) fn rebased(&self, mut version: VersionParts, base: CommitBase) -> VersionParts {
        for part in &mut version.parts {
            part.info.version = base.version.next();
        }
        if let PreparedRows::Memory(memory) = &self.body {
            version.root = root(base, &memory.new);
        }
        version
    }
}

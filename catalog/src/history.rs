//! The history that a table must have, and the losses of history that an administrator accepted.
//!
//! Invariant: the object of accepted losses does not repeat the log. It names versions that the log had and no longer
//! has, so that a component that knows one of them can continue without it. It is not derived and must not be deleted.

use std::collections::HashSet;
use std::sync::Arc;

use object_store::path::Path;
use object_store::{ObjectStore, PutMode};
pub use proof::KnownHead;
use serde::{Deserialize, Serialize};
use types::{ContributionId, DatasetId, Version};

use crate::state::TableState;
use crate::version_index::VersionIndex;
use crate::{Error, Root, log};

/// Result of the comparison of a table with a version known from outside the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Agreement {
    /// The table has the version with this root.
    Kept,
    /// The table does not have it, and an administrator accepted its loss.
    Accepted,
    /// The table does not have it.
    Lost,
}

/// A version, as its commit states it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecordedVersion {
    /// Version with its content root.
    pub head: KnownHead,
    /// Contribution that became the version.
    pub contribution: ContributionId,
}

/// The accepted losses of a table.
#[derive(Debug, Default, Serialize, Deserialize)]
struct Losses {
    format: u32,
    lost: Vec<KnownHead>,
}

/// Format of [`Losses`] that this build writes.
const LOSSES_FORMAT: u32 = 1;

/// Returns the object path of a table's accepted losses.
fn path(dataset: DatasetId) -> Path {
    Path::from(format!("{dataset}/_sluice/losses"))
}

/// Reads every version of a table from its commits, in order. Returns an empty list if there is no table.
///
/// # Errors
/// [`Error::Corrupt`] and [`Error::Gap`] if the log is damaged.
pub async fn read(objects: &Arc<dyn ObjectStore>, dataset: DatasetId) -> Result<Vec<RecordedVersion>, Error> {
    let mut version_index = VersionIndex::default();
    let apply = |number, commit| version_index.apply(number, commit, || log::path(dataset, number).to_string());
    log::read_from(objects, dataset, 0, apply).await?;
    let versions = (1..=version_index.head().0).map(Version);
    let recorded = versions.filter_map(|version| {
        let part = version_index
            .parts_between(Version(version.0 - 1), version)
            .into_iter()
            .next()?;
        Some(RecordedVersion {
            head: KnownHead {
                version,
                root: version_index.root_at(version),
            },
            contribution: part.contribution,
        })
    });
    Ok(recorded.collect())
}

/// Records that these versions of a table are lost and that an administrator accepted it. Keeps the earlier records.
///
/// # Errors
/// After an error either nothing or everything is recorded. Recording the same loss twice is harmless.
pub async fn accept(objects: &Arc<dyn ObjectStore>, dataset: DatasetId, lost: &[KnownHead]) -> Result<(), Error> {
    let path = path(dataset);
    let mut losses = losses(objects, dataset).await?;
    for head in lost {
        // A repeated call adds nothing.
        if !losses.lost.contains(head) {
            losses.lost.push(*head);
        }
    }
    losses.format = LOSSES_FORMAT;
    let bytes = serde_json::to_vec(&losses).map_err(|error| Error::corrupt(&path, &error))?;
    let put = objects.put_opts(&path, bytes.into(), PutMode::Overwrite.into()).await;
    put.map(|_| ()).map_err(|error| Error::storage(&path, error))
}

/// Returns the content roots of the versions whose loss was accepted.
pub async fn accepted(objects: &Arc<dyn ObjectStore>, dataset: DatasetId) -> Result<HashSet<Root>, Error> {
    let losses = losses(objects, dataset).await?;
    Ok(losses.lost.into_iter().map(|head| head.root).collect())
}

async fn losses(objects: &Arc<dyn ObjectStore>, dataset: DatasetId) -> Result<Losses, Error> {
    let path = path(dataset);
    let Some(bytes) = log::bytes_of(objects, &path).await? else {
        return Ok(Losses::default());
    };
    let losses: Losses = serde_json::from_slice(&bytes).map_err(|error| Error::corrupt(&path, &error))?;
    if losses.format != LOSSES_FORMAT {
        return Err(Error::corrupt(&path, &format!("it has format `{}`", losses.format)));
    }
    Ok(losses)
}

/// Compares the log of a table with a version known from outside the table. Reads newer commits if needed.
pub(crate) async fn compare(state: &TableState, known: KnownHead) -> Result<Agreement, Error> {
    if state.head() < known.version {
        state.refresh().await?;
    }
    if known.version <= state.head() && state.root_at(known.version) == known.root {
        return Ok(Agreement::Kept);
    }
    // Only a table that lacks the version costs a second read.
    let accepted = accepted(&state.objects, state.dataset).await?;
    Ok(if accepted.contains(&known.root) {
        Agreement::Accepted
    } else {
        Agreement::Lost
    })
}

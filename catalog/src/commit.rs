//! The critical section: prepared rows become the next version, once.
//!
//! Invariants:
//! - Commit N+1 is put only by one who has seen commits 0 to N, sees that N is still there, found the contribution in
//!   none of them and none of the rows in their keys. The put fails where N+1 exists, so of two who try, one reads the
//!   other's commit and starts over. A put without an answer is looked up, never repeated blindly.
//! - What is done for an upload up to the commit does not grow with its rows, unless another contribution brought one of
//!   them meanwhile. After the commit its keys are stored.
//! - [`Merge`] is part of the commit. Its members are a format and keep their names.

mod dry_run;
#[cfg(feature = "faults")]
mod faults;
mod orphans;

use std::sync::Arc;

use futures_util::future::join;
use object_store::{PutMode, PutPayload};
use parquet::errors::ParquetError;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use tracing::Instrument as _;
use types::{AgentId, Contract, ContributionId, DatasetId, Timestamp, Version, fault, metric, mutate};

pub(crate) use self::orphans::OrphanTracker;
use crate::Error;
use crate::log::{self, CommitContent};
use crate::part::PartInfo;
use crate::prepare::{LateDuplicates, NewPart, PreparedRows, PreparedVersion, VersionParts};
use crate::state::{CommitBase, TableState, WriteOccasion};

/// Description of a version, as stored in its commit.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Merge {
    /// Contribution that became the version.
    pub contribution: ContributionId,
    /// Agent that contributed the rows.
    pub agent: AgentId,
    /// Number of the version, from 1.
    pub version: Version,
    /// Number of rows that the version added.
    pub accepted: u64,
    /// Number of rows of the table at this version.
    pub record_count: u64,
    /// Content root of the version: 64 lower-case hexadecimal digits.
    pub root: String,
    /// Indexes, in the decoded batch, of rows that passed the chain and were dropped at the commit because the table
    /// already had their keys. Empty for an upload.
    pub duplicates: Vec<u32>,
    /// Time of the merge.
    pub at: Timestamp,
    /// Notes of the caller. The catalog does not read them.
    pub notes: Value,
}

/// Outcome of committing [`PreparedVersion`] rows.
#[must_use]
#[derive(Clone, Debug, PartialEq)]
pub enum CommitOutcome {
    /// The rows became this version.
    Committed(Merge),
    /// An earlier commit of the same contribution created this version.
    AlreadyCommitted(Merge),
    /// The table already has every row. No commit was put.
    NothingNew(LateDuplicates),
}

/// Returns the notes to keep in a commit. It receives the rows that the commit drops.
pub(crate) type Notes = dyn Fn(&LateDuplicates) -> Value + Send + Sync;

/// Makes sure that the table exists with this contract.
pub(crate) async fn create(state: &TableState, contract: &Contract, at: Timestamp) -> Result<(), Error> {
    if state.contract().is_none() {
        let bytes = log::created(state.dataset, contract, at).map_err(unencodable)?;
        // The log tells what commit 0 is, for every outcome of the race, and also if the answer is lost.
        let put = put(state, &log::path(state.dataset, 0), bytes.into()).await;
        state.refresh().await?;
        if state.contract().is_none() {
            put?;
        }
    }
    match state.contract() {
        Some(found) if *found == *contract => Ok(()),
        _ => Err(Error::ContractMismatch { dataset: state.dataset }),
    }
}

/// Commits prepared rows to a table that exists: with `only`, as the version after it. Returns `None`, and puts nothing,
/// if the table then has a later version.
pub(crate) async fn commit(
    state: &Arc<TableState>,
    prepared: &mut PreparedVersion,
    at: Timestamp,
    notes: &Notes,
    only: Option<Version>,
    orphans: &mut OrphanTracker,
) -> Result<Option<CommitOutcome>, Error> {
    // Boxed, because it is as large as all callers together.
    let outcome = Box::pin(put_version(state, prepared, at, notes, only, orphans)).await;
    if matches!(outcome, Err(Error::Deleted { .. })) {
        orphans.discard_all(state).await;
    }
    outcome
}

async fn put_version(
    state: &Arc<TableState>,
    prepared: &mut PreparedVersion,
    at: Timestamp,
    notes: &Notes,
    only: Option<Version>,
    orphans: &mut OrphanTracker,
) -> Result<Option<CommitOutcome>, Error> {
    let is_batch = matches!(prepared.body, PreparedRows::Memory(_));
    if is_batch {
        fault::point("merge.begin");
    }
    let outcome = loop {
        let found = state.find(prepared.contribution).await?;
        mutate!(Bug::NoGuard => let found = None);
        if let Some(merge) = found {
            break Some(CommitOutcome::AlreadyCommitted(merge));
        }
        let base = state.base();
        if only.is_some_and(|only| only != base.version) {
            break None;
        }
        let preparing = prepared.against(state, base);
        let mut new = preparing.instrument(tracing::debug_span!("prepare version")).await?;
        if new.parts.is_empty() {
            break Some(CommitOutcome::NothingNew(new.late));
        }
        let merge = merge_of(prepared, base, &new, at, notes(&new.late));
        let path = log::path(state.dataset, base.commit);
        // Before the part is there: the commit's bytes are written and synced while those of the part are. Among many
        // merges the other thread only costs.
        let pending = if is_batch && !state.blocking.exceeds_processors() {
            Some(state.durable.prepare(&path, encode(state.dataset, &merge, &new.parts)?))
        } else {
            None
        };
        let is_as_named = put_parts(state, &mut new, is_batch, orphans).await?;
        let span = tracing::debug_span!("put commit", commit = base.commit);
        let committed = match pending {
            Some(pending) if is_as_named => {
                let created = pending.create().instrument(span).await;
                created.map_err(|error| Error::storage(&path, error))
            }
            _ => {
                let bytes = encode(state.dataset, &merge, &new.parts)?;
                put(state, &path, bytes).instrument(span).await
            }
        };
        match committed {
            Ok(()) => {
                fault::point(if is_batch { "merge.commit" } else { "stage.commit" });
                landed(state, base.commit, prepared, &merge, new).await?;
                break Some(CommitOutcome::Committed(merge));
            }
            Err(error) => {
                tracing::info!(
                    dataset = %state.dataset, version = %merge.version, %error,
                    "a commit was not put, reading the log"
                );
                state.refresh().await?;
                if state.base().commit <= base.commit {
                    return Err(error);
                }
                metrics::counter!(metric::COMMIT_CONFLICTS).increment(1);
                mutate!(Bug::LibraryRebase => if is_batch {
                    break Some(faults::commit_rebased(state, prepared, (new, merge), orphans).await?);
                });
            }
        }
    };
    orphans.discard(state).await;
    Ok(outcome)
}

/// Puts the parts of a version. Returns true if each has the name that it came with.
async fn put_parts(
    state: &TableState,
    new: &mut VersionParts,
    is_batch: bool,
    orphans: &mut OrphanTracker,
) -> Result<bool, Error> {
    let putting = async {
        let mut is_as_named = true;
        for part in &mut new.parts {
            is_as_named &= orphans.put(state, part).await?;
        }
        Ok::<_, Error>(is_as_named)
    };
    let putting = putting.instrument(tracing::debug_span!("put part"));
    if is_batch {
        // The last commit is confirmed meanwhile. That of an upload was, before its rows were compared.
        let (put, confirmed) = join(putting, state.confirm()).await;
        confirmed?;
        let is_as_named = put?;
        fault::point("merge.part");
        Ok(is_as_named)
    } else {
        let is_as_named = putting.await?;
        fault::point("stage.linked");
        Ok(is_as_named)
    }
}

/// Describes the version after `base`.
fn merge_of(prepared: &PreparedVersion, base: CommitBase, new: &VersionParts, at: Timestamp, notes: Value) -> Merge {
    Merge {
        contribution: prepared.contribution,
        agent: prepared.agent,
        version: base.version.next(),
        accepted: new.rows,
        record_count: base.rows + new.rows,
        root: new.root.to_string(),
        duplicates: new.late.named().to_vec(),
        at,
        notes,
    }
}

/// Encodes the commit of a version.
fn encode(dataset: DatasetId, merge: &Merge, parts: &[NewPart]) -> Result<PutPayload, Error> {
    let parts = parts.iter().map(|part| (&part.info, part.proof.as_ref()));
    let commit = log::merged(dataset, merge, parts);
    commit.map(PutPayload::from).map_err(unencodable)
}

/// Makes a durable commit known in this process: its keys first, then the version.
async fn landed(
    state: &Arc<TableState>,
    number: u64,
    prepared: &PreparedVersion,
    merge: &Merge,
    new: VersionParts,
) -> Result<(), Error> {
    let index = state.index().await?;
    let parts = new.parts.into_iter().map(|part| part.info).collect();
    match &prepared.body {
        PreparedRows::Memory(memory) => {
            index.insert(merge.version, memory.new.keys());
            fault::point("merge.indexed");
            show(state, number, merge, parts)?;
        }
        PreparedRows::Files(files) => {
            // A writer that finds the commit meanwhile would bring its keys from the parts.
            let alone = index.catching_up.lock().await;
            files.store_keys(state, &index, merge).await?;
            show(state, number, merge, parts)?;
            drop(alone);
        }
    }
    state.save(WriteOccasion::Growing).await
}

/// Makes a version whose keys are known visible in this process.
fn show(state: &TableState, number: u64, merge: &Merge, parts: Vec<PartInfo>) -> Result<(), Error> {
    let told = Merge {
        root: merge.root.clone(),
        duplicates: Vec::new(),
        notes: Value::Null,
        ..*merge
    };
    state.apply(number, CommitContent::Merged(Box::new(told), parts))
}

pub(crate) async fn put(state: &TableState, path: &object_store::path::Path, payload: PutPayload) -> Result<(), Error> {
    let put = state.objects.put_opts(path, payload, PutMode::Create.into()).await;
    put.map(|_| ()).map_err(|error| Error::storage(path, error))
}

/// Puts what is derived in the place of what was there.
pub(crate) async fn overwrite(
    state: &TableState,
    path: &object_store::path::Path,
    payload: PutPayload,
) -> Result<(), Error> {
    let put = state.objects.put_opts(path, payload, PutMode::Overwrite.into()).await;
    put.map(|_| ()).map_err(|error| Error::storage(path, error))
}

pub(crate) fn unencodable(error: serde_json::Error) -> Error {
    Error::Encode(ParquetError::External(Box::new(error)))
}

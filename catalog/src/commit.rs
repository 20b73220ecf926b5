//! The critical section: a proposal becomes the next version, once.
//!
//! Invariant: commit N+1 is put only by one who has seen commits 1 to N, found the contribution in none of them and
//! none of the rows in their keys. The put fails where N+1 exists, so of two who try, one reads the other's commit and
//! starts over. A put without an answer is looked up, never repeated blindly.

use std::collections::HashSet;
use std::sync::Arc;

use object_store::{ObjectStoreExt as _, PutMode, PutPayload};
use parquet::errors::ParquetError;
use types::fault::{self, Plant};
use types::{Batch, Contract, Timestamp, Version};

use crate::log::{self, Commit};
use crate::part::{self, Encoded, PartInfo};
use crate::state::{Base, State};
use crate::{Error, Merge, MergeOutcome, Proposal};

/// Makes sure that the table exists with this contract.
pub(crate) async fn create(state: &State, contract: &Contract, at: Timestamp) -> Result<(), Error> {
    if state.contract().is_none() {
        let bytes = log::created(state.dataset, contract, at).map_err(unencodable)?;
        // Why: whoever wins, and whether or not the answer arrives, the log tells what commit 0 is.
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

/// Rows that are new at the version before, encoded.
#[derive(Debug)]
struct Draft {
    rows: Arc<Batch>,
    duplicates: Vec<u32>,
    encoded: Encoded,
}

/// Merges a proposal into a table that exists.
pub(crate) async fn merge(state: &State, proposal: Proposal) -> Result<MergeOutcome, Error> {
    fault::point("merge.begin");
    let Proposal {
        contribution,
        agent,
        batch,
        at,
        notes,
    } = proposal;
    let batch = Arc::new(batch);
    let mut parts = Vec::new();
    let mut carried = None;
    loop {
        let base = state.base();
        if carried.is_none()
            && !fault::planted(Plant::NoGuard)
            && let Some(merge) = state.find(contribution).await?
        {
            discard(state, &parts).await;
            return Ok(MergeOutcome::Adopted(merge));
        }
        let version = base.version.next();
        let draft = if let Some(draft) = carried.take() {
            draft
        } else {
            let (rows, duplicates) = new_rows(state, &batch).await?;
            if rows.is_empty() {
                discard(state, &parts).await;
                return Ok(MergeOutcome::NothingNew { duplicates });
            }
            let encoding = Arc::clone(&rows);
            let encode = move || part::encode(&encoding, contribution, agent, version);
            let encoded = tokio::task::spawn_blocking(encode).await.map_err(Error::Stopped)??;
            Draft {
                rows,
                duplicates,
                encoded,
            }
        };
        let mut part = PartInfo {
            version,
            contribution,
            attempt: 0,
            rows: draft.rows.len() as u64,
            bytes: draft.encoded.bytes.len() as u64,
            sha256: draft.encoded.sha256,
        };
        put_part(state, &mut part, &draft.encoded, &mut parts).await?;
        fault::point("merge.part");
        let root = base
            .root
            .extend((0..draft.rows.len()).map(|row| draft.rows.canonical(row)));
        let merge = Merge {
            contribution,
            agent,
            version,
            accepted: part.rows,
            record_count: base.rows + part.rows,
            root: root.to_string(),
            duplicates: draft.duplicates.clone(),
            at,
            notes: notes.clone(),
        };
        let bytes = log::merged(state.dataset, &merge, &part).map_err(unencodable)?;
        match put(state, &log::path(state.dataset, version.0), bytes.into()).await {
            Ok(()) => {
                fault::point("merge.commit");
                landed(state, &merge, part, &draft.rows).await?;
                discard(state, &parts).await;
                return Ok(MergeOutcome::Merged(merge));
            }
            Err(error) => {
                tracing::info!(dataset = %state.dataset, %version, %error, "a commit was not put, reading the log");
                state.refresh().await?;
                if state.head() < version {
                    return Err(error);
                }
                if fault::planted(Plant::LibraryRebase) {
                    carried = Some(draft);
                }
            }
        }
    }
}

/// The rows that neither the table has nor an earlier row of the batch is, and the positions of the others.
async fn new_rows(state: &State, batch: &Arc<Batch>) -> Result<(Arc<Batch>, Vec<u32>), Error> {
    if fault::planted(Plant::DedupOnce) {
        return Ok((Arc::clone(batch), Vec::new()));
    }
    let known = state.contains(batch.keys()).await?;
    let mut seen = HashSet::with_capacity(batch.len());
    let keep: Vec<bool> = batch
        .keys()
        .iter()
        .zip(known)
        .map(|(key, known)| !known && seen.insert(key))
        .collect();
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

/// Puts the part under a name that nobody took, and remembers the names of its version.
async fn put_part(
    state: &State,
    part: &mut PartInfo,
    encoded: &Encoded,
    parts: &mut Vec<PartInfo>,
) -> Result<(), Error> {
    loop {
        parts.push(part.clone());
        match put(state, &part.path(state.dataset), encoded.bytes.clone().into()).await {
            // Why: a crash before the commit left the name behind, maybe not durable, maybe with other rows.
            Err(Error::Storage {
                source: object_store::Error::AlreadyExists { .. },
                ..
            }) => part.attempt += 1,
            result => return result,
        }
    }
}

async fn put(state: &State, path: &object_store::path::Path, payload: PutPayload) -> Result<(), Error> {
    let put = state.objects.put_opts(path, payload, PutMode::Create.into()).await;
    put.map(|_| ()).map_err(|error| Error::storage(path, error))
}

/// Makes a durable commit known in this process: its keys first, then the version.
async fn landed(state: &State, merge: &Merge, part: PartInfo, rows: &Batch) -> Result<(), Error> {
    let index = state.index().await?;
    index.insert(merge.version, rows.keys());
    fault::point("merge.indexed");
    state.apply(Commit::Merged(Box::new(merge.clone()), part))?;
    if index.is_due() {
        let Base { version, root, .. } = state.base();
        state.flush(version, root).await?;
    }
    Ok(())
}

/// Deletes parts that no commit names and none can: their version is in the log with another part. Best effort.
async fn discard(state: &State, parts: &[PartInfo]) {
    let head = state.head();
    for part in parts.iter().filter(|part| part.version <= head) {
        let before = Version(part.version.0 - 1);
        let named = state
            .parts_between(before, part.version)
            .iter()
            .any(|named| named.name() == part.name());
        if !named && let Err(error) = state.objects.delete(&part.path(state.dataset)).await {
            tracing::debug!(part = part.name(), %error, "an orphaned part could not be deleted");
        }
    }
}

fn unencodable(error: serde_json::Error) -> Error {
    Error::Encode(ParquetError::External(Box::new(error)))
}

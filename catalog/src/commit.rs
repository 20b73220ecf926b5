//! The critical section: a proposal becomes the next version, once.
//!
//! Invariant: commit N+1 is put only by one who has seen commits 0 to N, sees that N is still there, found the
//! contribution in none of them and none of the rows in their keys. The put fails where N+1 exists, so of two who try,
//! one reads the other's commit and starts over. A put without an answer is looked up, never repeated blindly.

pub(crate) mod draft;
pub(crate) mod staged;
mod trial;
mod tried;

use std::sync::Arc;

use futures_util::future::join;
use object_store::{PutMode, PutPayload};
use parquet::errors::ParquetError;
use serde_json::Value;
use tracing::Instrument as _;
use types::fault;
use types::{Batch, Contract, Timestamp, Version, metric};

use self::draft::{Draft, Drafted};
pub use self::trial::try_merge;
pub(crate) use self::tried::Tried;
use crate::log::{self, Commit};
use crate::part::{self, PartInfo};
use crate::state::{State, When};
use crate::{Error, Merge, MergeOutcome, Proposal, faults};

/// Makes sure that the table exists with this contract.
pub(crate) async fn create(state: &State, contract: &Contract, at: Timestamp) -> Result<(), Error> {
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

/// Merges a proposal into a table that exists: with `only`, as the version after it. Gives the proposal back, and puts
/// nothing, if the table has a later one.
pub(crate) async fn merge_after(
    state: &Arc<State>,
    proposal: Proposal,
    tried: &mut Tried,
    only: Option<Version>,
) -> Result<Result<MergeOutcome, Proposal>, Error> {
    fault::point("merge.begin");
    let Proposal {
        contribution,
        agent,
        batch,
        at,
        mut notes,
    } = proposal;
    let mut lost = None;
    loop {
        let found = state.find(contribution).await?;
        if let Some(merge) = faults::may_skip_guard(found, lost.is_some()) {
            tried.discard(state).await;
            return Ok(Ok(MergeOutcome::AlreadyCommitted(merge)));
        }
        let base = state.base();
        if only.is_some_and(|only| only != base.version) {
            tried.discard(state).await;
            return Ok(Err(Proposal {
                contribution,
                agent,
                batch,
                at,
                notes,
            }));
        }
        let version = base.version.next();
        let drafted = if let Some(drafted) = faults::may_rebase(lost.take(), base) {
            drafted
        } else {
            let drafting = Draft::after(state, &batch, contribution, agent, base);
            drafting.instrument(tracing::debug_span!("prepare version")).await?
        };
        let draft = match drafted {
            Drafted::Rows(draft) => draft,
            Drafted::NothingNew(duplicates) => {
                state.confirm().await?;
                tried.discard(state).await;
                return Ok(Ok(MergeOutcome::NothingNew { duplicates }));
            }
        };
        let mut merge = Merge {
            contribution,
            agent,
            version,
            accepted: draft.part.rows,
            record_count: base.rows + draft.part.rows,
            root: draft.root.to_string(),
            duplicates: draft.duplicates.clone(),
            at,
            notes,
        };
        let path = log::path(state.dataset, base.commit);
        let proof = part::proof_of(&draft.encoded.bytes);
        let commit_of = |part: &PartInfo| {
            let commit = log::merged(state.dataset, &merge, [(part, proof.as_ref())]);
            commit.map(PutPayload::from).map_err(unencodable)
        };
        // Before the part is there: the commit's bytes are written and synced while those of the part
        // are. Among many merges the other thread only costs.
        let prepared = if state.blocking.exceeds_processors() {
            None
        } else {
            Some(state.durable.prepare(&path, commit_of(&draft.part)?))
        };
        let putting = tried.put(state, &draft).instrument(tracing::debug_span!("put part"));
        let (part, confirmed) = join(putting, state.confirm()).await;
        confirmed?;
        let part = part?;
        fault::point("merge.part");
        let span = tracing::debug_span!("put commit", commit = base.commit);
        let committed = match prepared {
            Some(prepared) if part == draft.part => {
                let created = prepared.create().instrument(span).await;
                created.map_err(|error| Error::storage(&path, error))
            }
            _ => put(state, &path, commit_of(&part)?).instrument(span).await,
        };
        match committed {
            Ok(()) => {
                fault::point("merge.commit");
                landed(state, base.commit, &merge, vec![part], &draft.rows).await?;
                tried.discard(state).await;
                return Ok(Ok(MergeOutcome::Merged(merge)));
            }
            Err(error) => {
                tracing::info!(dataset = %state.dataset, %version, %error, "a commit was not put, reading the log");
                state.refresh().await?;
                if state.base().commit <= base.commit {
                    return Err(error);
                }
                metrics::counter!(metric::COMMIT_CONFLICTS).increment(1);
                lost = Some(draft);
                notes = std::mem::take(&mut merge.notes);
            }
        }
    }
}

pub(crate) async fn put(state: &State, path: &object_store::path::Path, payload: PutPayload) -> Result<(), Error> {
    let put = state.objects.put_opts(path, payload, PutMode::Create.into()).await;
    put.map(|_| ()).map_err(|error| Error::storage(path, error))
}

/// Makes a durable commit known in this process: its keys first, then the version.
async fn landed(
    state: &Arc<State>,
    number: u64,
    merge: &Merge,
    parts: Vec<PartInfo>,
    rows: &Batch,
) -> Result<(), Error> {
    let index = state.index().await?;
    index.insert(merge.version, rows.keys());
    fault::point("merge.indexed");
    show(state, number, merge, parts)?;
    state.save(When::Growing).await
}

/// Makes a version whose keys are known visible in this process.
fn show(state: &State, number: u64, merge: &Merge, parts: Vec<PartInfo>) -> Result<(), Error> {
    let told = Merge {
        root: merge.root.clone(),
        duplicates: Vec::new(),
        notes: Value::Null,
        ..*merge
    };
    state.apply(number, Commit::Merged(Box::new(told), parts))
}

/// Puts what is derived in the place of what was there.
pub(crate) async fn overwrite(
    state: &State,
    path: &object_store::path::Path,
    payload: PutPayload,
) -> Result<(), Error> {
    let put = state.objects.put_opts(path, payload, PutMode::Overwrite.into()).await;
    put.map(|_| ()).map_err(|error| Error::storage(path, error))
}

pub(crate) fn unencodable(error: serde_json::Error) -> Error {
    Error::Encode(ParquetError::External(Box::new(error)))
}

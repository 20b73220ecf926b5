//! The critical section of an upload: its staged parts become the next version, once.
//!
//! Invariant: as for any proposal; and what is done up to the commit does not grow with the upload unless another
//! contribution brought one of its records meanwhile: only what was merged since it was staged is looked up in it.
//! After the commit its keys are stored.

use std::sync::Arc;

use futures_util::TryStreamExt as _;
use object_store::ObjectStoreExt as _;
use object_store::path::Path;
use proof::Root;
use serde_json::Value;
use sha2::{Digest as _, Sha256};
use types::fault;
use types::{Timestamp, Version, metric};

use super::{Tried, put, show, unencodable};
use crate::blocking::in_place;
use crate::part::{self, PartInfo};
use crate::staged::Staged;
use crate::state::{MAX_INSERTED_KEYS, State, When};
use crate::{Error, Merge, StagedOutcome, faults, log};

/// Merges a staged upload into a table that exists. `notes` says what to keep in the commit, told how many rows were
/// left out because the table got them from others meanwhile.
pub(crate) async fn merge(
    state: &Arc<State>,
    staged: &mut Staged,
    at: Timestamp,
    notes: &(dyn Fn(u64) -> Value + Sync),
    tried: &mut Tried,
) -> Result<StagedOutcome, Error> {
    let contribution = staged.contribution();
    loop {
        if let Some(merge) = faults::may_skip_guard(state.find(contribution).await?, false) {
            tried.discard(state).await;
            return Ok(StagedOutcome::AlreadyCommitted(merge));
        }
        let base = state.base();
        state.confirm().await?;
        check(state, staged, base.version).await?;
        if staged.is_empty() {
            tried.discard(state).await;
            return Ok(StagedOutcome::NothingNew { late: staged.late() });
        }
        let version = base.version.next();
        in_place(|| staged.set_version(version))?;
        let mut parts = Vec::new();
        for (part, written) in staged.parts() {
            parts.push(tried.adopt(state, part, &written.path).await?);
        }
        fault::point("stage.linked");
        let merge = Merge {
            contribution,
            agent: staged.agent(),
            version,
            accepted: staged.len(),
            record_count: base.rows + staged.len(),
            root: staged.root(&base.root).to_string(),
            duplicates: Vec::new(),
            at,
            notes: notes(staged.late()),
        };
        let proofs = staged.parts().map(|(_, written)| written.proof.as_ref());
        let bytes = log::merged(state.dataset, &merge, parts.iter().zip(proofs)).map_err(unencodable)?;
        match put(state, &log::path(state.dataset, base.commit), bytes.into()).await {
            Ok(()) => {
                fault::point("stage.commit");
                landed(state, base.commit, &merge, parts, staged).await?;
                tried.discard(state).await;
                return Ok(StagedOutcome::Merged(merge));
            }
            Err(error) => {
                tracing::info!(dataset = %state.dataset, %version, %error, "a commit was not put, reading the log");
                state.refresh().await?;
                if state.base().commit <= base.commit {
                    return Err(error);
                }
                metrics::counter!(metric::COMMIT_CONFLICTS).increment(1);
            }
        }
    }
}

/// Leaves out the rows that the table got since the upload was checked last.
async fn check(state: &State, staged: &mut Staged, head: Version) -> Result<(), Error> {
    let mut hits = Vec::new();
    for part in state.parts_between(staged.checked, head) {
        let keys = part::keys(state.source(), &part).await?;
        hits.extend(in_place(|| staged.hits(&keys))?);
    }
    if !hits.is_empty() {
        in_place(|| staged.leave_out(hits))?;
    }
    staged.checked = head;
    Ok(())
}

/// Makes a durable commit known in this process: its keys first, then the version.
async fn landed(
    state: &Arc<State>,
    number: u64,
    merge: &Merge,
    parts: Vec<PartInfo>,
    staged: &Staged,
) -> Result<(), Error> {
    let index = state.index().await?;
    let keys = || {
        let keys = staged.keys.ascending().map_err(Error::Scratch)?;
        Ok(keys.filter(|key| key.as_ref().map_or(true, |key| !staged.left_out.contains(key))))
    };
    // A writer that finds the commit meanwhile would bring its keys from the parts.
    let alone = index.catching_up.lock().await;
    let stored = merge.accepted > MAX_INSERTED_KEYS && {
        let base = state.base();
        if let Some(batch) = state.flush(base.version, base.root).await? {
            state.put_key_object(batch, base.version, base.root).await;
        }
        let root = merge.root.parse().unwrap_or(Root::EMPTY);
        let keys = keys()?;
        in_place(|| index.ingest(merge.version, root, merge.record_count, keys))
    };
    if !stored && index.indexed_version() < merge.version {
        in_place(|| {
            let keys = keys()?.collect::<Result<Vec<_>, _>>().map_err(Error::Scratch)?;
            index.insert(merge.version, &keys);
            Ok::<_, Error>(())
        })?;
    }
    show(state, number, merge, parts)?;
    drop(alone);
    state.save(When::Growing).await
}

impl Tried {
    /// Gives a staged file its name in the table, one that nothing else has, unless it has it already.
    async fn adopt(&mut self, state: &State, mut part: PartInfo, file: &std::path::Path) -> Result<PartInfo, Error> {
        loop {
            self.remember(&part);
            let path = part.path(state.dataset);
            match state.durable.link_file(file, &path).await {
                Ok(()) => return Ok(part),
                Err(object_store::Error::AlreadyExists { .. }) => {}
                Err(error) => return Err(Error::storage(&path, error)),
            }
            if is_there(state, &part).await? {
                // A process that gave it the name may have ended before the name was durable.
                state.sync_dir(&Path::from(state.dataset.to_string())).await?;
                return Ok(part);
            }
            part.attempt += 1;
        }
    }
}

/// Returns true if the object with the part's name has the bytes of the part.
async fn is_there(state: &State, part: &PartInfo) -> Result<bool, Error> {
    let path = part.path(state.dataset);
    let read = async {
        let found = state.objects.get(&path).await?;
        if found.meta.size != part.bytes {
            return Ok(false);
        }
        let mut hash = Sha256::new();
        let mut pieces = found.into_stream();
        while let Some(piece) = pieces.try_next().await? {
            hash.update(&piece);
        }
        Ok(hash.finalize()[..] == part.sha256)
    };
    match read.await {
        Ok(same) => Ok(same),
        Err(object_store::Error::NotFound { .. }) => Ok(false),
        Err(error) => Err(Error::storage(&path, error)),
    }
}

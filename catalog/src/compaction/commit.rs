//! The commit of a compaction.
//!
//! Invariants: the commit is put only if the latest layout has every replaced part. A put without an answer is looked
//! up in the log and never repeated blindly.

use std::sync::Arc;

use types::{Timestamp, fault, mutate};

use super::BuiltPart;
use crate::log::{self, CommitContent};
use crate::state::{TableState, WriteOccasion};
use crate::{Error, commit};

/// Commits a compaction at the time `at`. Returns false if a replaced part is no longer in the latest layout.
pub(crate) async fn commit(state: &Arc<TableState>, compacted: BuiltPart, at: Timestamp) -> Result<bool, Error> {
    let BuiltPart { rewrite, proof, inputs } = compacted;
    loop {
        let (number, admitted, done) = {
            let version_index = state.version_index();
            let (admitted, done) = (version_index.admits(&rewrite).is_some(), version_index.has(&rewrite));
            (version_index.next_commit(), admitted, done)
        };
        mutate!(Bug::CompactionBlind => let admitted = true);
        mutate!(Bug::CompactionBlind => let done = false);
        if done {
            return Ok(true);
        }
        if !admitted {
            // The built part is not deleted: another owner may be about to commit the same bytes under the same name.
            tracing::info!(dataset = %state.dataset, part = rewrite.name(), "another owner compacted the same parts");
            return Ok(false);
        }
        // A commit over a log that lost its last commit would hide the loss.
        state.confirm().await?;
        let bytes = log::compacted(&rewrite, proof.as_ref(), &inputs, at).map_err(commit::unencodable)?;
        match commit::put(state, &log::path(state.dataset, number), bytes.into()).await {
            Ok(()) => {
                fault::point("compact.commit");
                state.apply(number, CommitContent::Compacted(Box::new(rewrite), at))?;
                state.save(WriteOccasion::Growing).await?;
                return Ok(true);
            }
            Err(error) => {
                tracing::info!(dataset = %state.dataset, number, %error, "a compaction was not put, reading the log");
                state.refresh().await?;
                if state.base().commit <= number {
                    // The put may have succeeded although it returned an error, so the log decides. If the log did not
                    // grow, the result is unknown and the caller gets the error.
                    return Err(error);
                }
            }
        }
    }
}

//! Injected bug of the critical section, which the crash tests must detect.

use std::sync::Arc;

use super::{CommitOutcome, OrphanTracker, encode, landed, put, put_parts};
use crate::log;
use crate::prepare::{PreparedVersion, VersionParts};
use crate::state::TableState;
use crate::{Error, Merge};

/// Commits a version that lost a race under the next number until it wins one, as the retry of a general library would:
/// the winner is not read.
pub(super) async fn commit_rebased(
    state: &Arc<TableState>,
    prepared: &PreparedVersion,
    (mut version, mut merge): (VersionParts, Merge),
    orphans: &mut OrphanTracker,
) -> Result<CommitOutcome, Error> {
    loop {
        let base = state.base();
        version = prepared.rebased(version, base);
        merge.version = base.version.next();
        merge.record_count = base.rows + version.rows;
        merge.root = version.root.to_string();
        put_parts(state, &mut version, true, orphans).await?;
        let path = log::path(state.dataset, base.commit);
        match put(state, &path, encode(state.dataset, &merge, &version.parts)?).await {
            Ok(()) => {
                landed(state, base.commit, prepared, &merge, version).await?;
                return Ok(CommitOutcome::Committed(merge));
            }
            Err(error) => {
                state.refresh().await?;
                if state.base().commit <= base.commit {
                    return Err(error);
                }
            }
        }
    }
}

//! Injected bugs of this package, which the crash tests must detect.
//!
//! Invariant: each function removes one guard if its bug is injected. Without the feature `faults` it returns what it was
//! given, so a release has every guard.

use std::sync::Arc;

use arrow::array::RecordBatch;
use types::Batch;
#[cfg(feature = "faults")]
use types::fault::{InjectedBug, is_injected};

use crate::Merge;
use crate::keys::KeyIndex;
use crate::prepare::VersionParts;
use crate::state::Base;

/// Returns the merge that the guard against a second merge found. Injected bugs: the guard is never asked, or not after
/// a lost race.
pub(crate) fn may_skip_guard(found: Option<Merge>, lost_race: bool) -> Option<Merge> {
    #[cfg(feature = "faults")]
    if is_injected(InjectedBug::NoGuard) || (lost_race && is_injected(InjectedBug::LibraryRebase)) {
        return None;
    }
    #[cfg(not(feature = "faults"))]
    let _ = lost_race;
    found
}

/// Does nothing. Injected fault: the process dies of a row that has the lethal text of encoders.
pub(crate) fn may_crash_encoder(batch: &Batch) {
    #[cfg(feature = "faults")]
    for row in 0..batch.len() {
        types::fault::crash_encoder_on(batch.canonical(row));
    }
    #[cfg(not(feature = "faults"))]
    let _ = batch;
}

/// Returns which rows of a batch are new. Injected bug: all are, because duplicates are only searched before the
/// critical section.
pub(crate) fn may_keep_duplicates(keep: Vec<bool>) -> Vec<bool> {
    #[cfg(feature = "faults")]
    if is_injected(InjectedBug::DedupOnce) {
        return vec![true; keep.len()];
    }
    keep
}

/// Returns the version to commit if preparing it is not needed. Injected bug: after a lost race the same rows get the
/// next number, as the retry of a general library would do it, and the winner is not read.
pub(crate) fn may_rebase(lost: Option<VersionParts>, base: Base, rows: &Batch) -> Option<VersionParts> {
    #[cfg(feature = "faults")]
    if is_injected(InjectedBug::LibraryRebase) {
        return lost.map(|lost| lost.rebased(base, rows));
    }
    #[cfg(not(feature = "faults"))]
    let _ = (lost, base, rows);
    None
}

/// Returns the rows of a compacted part. Injected bug: one is lost and another is there twice.
pub(crate) fn may_lose_row(batch: RecordBatch) -> RecordBatch {
    #[cfg(feature = "faults")]
    if is_injected(InjectedBug::CompactionLosesRow) && batch.num_rows() >= 2 {
        let (second, rest) = (batch.slice(1, 1), batch.slice(1, batch.num_rows() - 1));
        return arrow::compute::concat_batches(batch.schema_ref(), [&second, &rest]).unwrap_or(batch);
    }
    batch
}

/// Returns what the latest layout says of a compaction: whether its parts are there, and whether it is committed.
/// Injected bug: after a lost race the layout is not asked.
pub(crate) fn may_skip_layout(layout: (bool, bool), lost_race: bool) -> (bool, bool) {
    #[cfg(feature = "faults")]
    if lost_race && is_injected(InjectedBug::CompactionBlind) {
        return (true, false);
    }
    #[cfg(not(feature = "faults"))]
    let _ = lost_race;
    layout
}

/// Returns nothing, so that an upload is compared with an index that is up to date. Injected bug: returns the index that
/// is `open`, which may lack versions.
pub(crate) fn may_use_stale_index(open: Option<&Arc<KeyIndex>>) -> Option<Arc<KeyIndex>> {
    #[cfg(feature = "faults")]
    if is_injected(InjectedBug::UploadBlind) {
        return open.map(Arc::clone);
    }
    #[cfg(not(feature = "faults"))]
    let _ = open;
    None
}

//! How far the uploads are that this process stages.
//!
//! Invariant: an upload is listed from the beginning of its staging to its end, however it ends.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::{Mutex, MutexGuard};
use types::ContributionId;

/// Progress of an upload.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StagingProgress {
    /// Bytes that were read.
    pub bytes_read: u64,
    /// Rows that were judged.
    pub rows_judged: u64,
}

/// The uploads that are being staged, shared with whoever is asked for them. Cheap to clone.
#[derive(Clone, Debug, Default)]
pub struct Stagings {
    open: Arc<Mutex<HashMap<ContributionId, Arc<ProgressCounters>>>>,
}

/// Counters of the bytes read and the rows judged.
#[derive(Debug, Default)]
pub struct ProgressCounters {
    bytes: AtomicU64,
    rows: AtomicU64,
}

impl ProgressCounters {
    /// Counts bytes that were read.
    pub fn add_bytes(&self, bytes: u64) {
        self.bytes.fetch_add(bytes, Ordering::Relaxed);
    }

    /// Sets the number of rows that were judged.
    pub fn set_rows(&self, rows: u64) {
        // Both counters are for people to look at. Nothing is decided by them, so they need no order.
        self.rows.store(rows, Ordering::Relaxed);
    }
}

/// An upload that is being staged; dropped, it is listed no more.
#[derive(Debug)]
pub struct ListedUpload {
    stagings: Stagings,
    contribution: ContributionId,
    counters: Arc<ProgressCounters>,
}

impl ListedUpload {
    /// Returns what counts its progress.
    pub const fn counters(&self) -> &Arc<ProgressCounters> {
        &self.counters
    }
}

impl Stagings {
    /// Returns the progress of an upload; `None` where this process does not stage it now.
    pub fn of(&self, contribution: ContributionId) -> Option<StagingProgress> {
        let open = self.lock();
        let counters = open.get(&contribution)?;
        Some(StagingProgress {
            bytes_read: counters.bytes.load(Ordering::Relaxed),
            rows_judged: counters.rows.load(Ordering::Relaxed),
        })
    }

    /// Lists an upload whose staging begins.
    pub fn list(&self, contribution: ContributionId) -> ListedUpload {
        let counters = Arc::new(ProgressCounters::default());
        self.lock().insert(contribution, Arc::clone(&counters));
        ListedUpload {
            stagings: self.clone(),
            contribution,
            counters,
        }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<ContributionId, Arc<ProgressCounters>>> {
        self.open.lock()
    }
}

impl Drop for ListedUpload {
    fn drop(&mut self) {
        self.stagings.lock().remove(&self.contribution);
    }
}

//! How far the uploads are that this process stages.
//!
//! Invariant: an upload is listed from the beginning of its staging to its end, however it ends.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::{Mutex, MutexGuard};
use types::ContributionId;

/// How far an upload is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Staging {
    /// How many of its bytes were read.
    pub bytes_read: u64,
    /// How many rows were judged.
    pub rows_judged: u64,
}

/// The uploads that are being staged, shared with whoever is asked for them. Cheap to clone.
#[derive(Clone, Debug, Default)]
pub struct Stagings {
    open: Arc<Mutex<HashMap<ContributionId, Arc<Counters>>>>,
}

#[derive(Debug, Default)]
pub(super) struct Counters {
    pub(super) bytes: AtomicU64,
    pub(super) rows: AtomicU64,
}

/// An upload that is being staged.
#[derive(Debug)]
pub(super) struct Listed {
    stagings: Stagings,
    contribution: ContributionId,
    pub(super) counters: Arc<Counters>,
}

impl Stagings {
    /// How far this upload is; `None` where this process does not stage it now.
    pub fn of(&self, contribution: ContributionId) -> Option<Staging> {
        let open = self.lock();
        let counters = open.get(&contribution)?;
        Some(Staging {
            bytes_read: counters.bytes.load(Ordering::Relaxed),
            rows_judged: counters.rows.load(Ordering::Relaxed),
        })
    }

    pub(super) fn list(&self, contribution: ContributionId) -> Listed {
        let counters = Arc::new(Counters::default());
        self.lock().insert(contribution, Arc::clone(&counters));
        Listed {
            stagings: self.clone(),
            contribution,
            counters,
        }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<ContributionId, Arc<Counters>>> {
        self.open.lock()
    }
}

impl Drop for Listed {
    fn drop(&mut self) {
        self.stagings.lock().remove(&self.contribution);
    }
}

//! Counts of uses by kind and UTC day, without their content.
//!
//! Invariant: counting never delays an answer. A crash loses at most a second of counts. Counts whose storing had an
//! unknown result are stored again, and so may count twice.

use std::collections::HashMap;
use std::mem;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use store::Store;
use tokio_util::sync::CancellationToken;
use types::Timestamp;

use crate::periodic::PeriodicTimer;

/// Interval at which counts are stored.
const STORE_INTERVAL: Duration = Duration::from_secs(1);

/// Number of uses by UTC day and kind.
type Counts = HashMap<(i64, &'static str), u64>;

/// Uses that are not stored yet. Clones share their counts.
#[derive(Clone, Debug, Default)]
pub struct UsageCounts {
    counts: Arc<Mutex<Counts>>,
}

impl UsageCounts {
    /// Counts one use.
    pub(crate) fn add(&self, kind: &'static str, at: Timestamp) {
        self.put((at.day(), kind), 1);
    }

    fn put(&self, key: (i64, &'static str), more: u64) {
        let mut counts = self.counts.lock();
        *counts.entry(key).or_default() += more;
    }

    /// Stores the counts. Those that cannot be stored are kept for the next attempt.
    pub async fn store(&self, store: &Store) -> Result<(), store::Error> {
        let counts = mem::take(&mut *self.counts.lock());
        let mut stored = Ok(());
        // Each count is stored by itself, so that one failure keeps that count only.
        for ((day, kind), used) in counts {
            if let Err(error) = store.usage_count(day, kind, used).await {
                // Added and not set: uses of the same kind may have been counted meanwhile.
                self.put((day, kind), used);
                stored = Err(error);
            }
        }
        stored
    }

    /// Stores the counts once a second until `stop`, and then once more.
    pub async fn run(self, store: Store, stop: CancellationToken) {
        let mut rounds = PeriodicTimer::every(STORE_INTERVAL, &stop);
        loop {
            // The counts are stored once more after the stop, so that a shutdown loses none.
            let is_last = !rounds.next().await;
            if let Err(error) = self.store(&store).await {
                tracing::warn!(%error, "cannot store the usage counts in the database; trying again in a second");
            }
            if is_last {
                return;
            }
        }
    }
}

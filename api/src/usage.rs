//! How often something is used, never what was asked.
//!
//! Invariant: counting never makes an answer wait, and is one statement a second however much is counted. A crash forgets
//! at most a second of it, and what the database took and did not say so of is counted twice.

use std::collections::HashMap;
use std::mem;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use store::Store;
use tokio_util::sync::CancellationToken;
use types::Timestamp;

use crate::periodic::Rounds;

/// How often counts are stored.
const EVERY: Duration = Duration::from_secs(1);

/// By UTC day and kind, how often.
type Counts = HashMap<(i64, &'static str), u64>;

/// What is not stored yet. Clones share their counts.
#[derive(Clone, Debug, Default)]
pub struct Usage {
    counts: Arc<Mutex<Counts>>,
}

impl Usage {
    /// Counts one use.
    pub(crate) fn add(&self, kind: &'static str, at: Timestamp) {
        self.put((at.day(), kind), 1);
    }

    fn put(&self, key: (i64, &'static str), more: u64) {
        let mut counts = self.counts.lock();
        *counts.entry(key).or_default() += more;
    }

    /// Stores what was counted; what cannot be stored stays counted.
    pub async fn store(&self, store: &Store) -> Result<(), store::Error> {
        let counts = mem::take(&mut *self.counts.lock());
        let mut stored = Ok(());
        for ((day, kind), used) in counts {
            if let Err(error) = store.usage_count(day, kind, used).await {
                self.put((day, kind), used);
                stored = Err(error);
            }
        }
        stored
    }

    /// Stores what is counted once a second until `stop`, and then what is left.
    pub async fn run(self, store: Store, stop: CancellationToken) {
        let mut rounds = Rounds::every(EVERY, &stop);
        loop {
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

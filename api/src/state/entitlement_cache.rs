//! Purchases of operators, as this process remembers them.
//!
//! Invariant: only what was bought is remembered, for a minute. A refund raises a number in the database, which is looked
//! at once a second; then everything is forgotten.

use std::collections::HashMap;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use store::Store;
use types::vocabulary::ItemKind;
use types::{OperatorId, Timestamp};

/// Time for which a purchase is remembered.
const REMEMBERED: Duration = Duration::from_mins(1);
/// Time between two looks at the number in the database.
const POLLED: Duration = Duration::from_secs(1);
/// Purchases that are remembered at most.
const MAX_CACHED_PURCHASES: usize = 100_000;

/// Operator and item of a purchase.
type Key = (OperatorId, ItemKind, String);

/// Purchases that this process remembers.
#[derive(Debug, Default)]
pub(crate) struct EntitlementCache {
    bought: Mutex<HashMap<Key, (u64, Timestamp)>>,
    generation: AtomicI64,
    polled_at: AtomicI64,
}

impl EntitlementCache {
    /// Returns true if an operator has bought an item up to a version.
    pub(crate) async fn owns(
        &self,
        store: &Store,
        operator: OperatorId,
        kind: ItemKind,
        item: &str,
        version: u64,
        now: Timestamp,
    ) -> Result<bool, store::Error> {
        // Before the memory is read: after a refund, what is remembered must be gone.
        self.poll(store, now).await?;
        let key = (operator, kind, item.to_owned());
        let known = self.bought.lock().get(&key).copied();
        // A later version may have been bought since, so one that is too low is looked up again.
        if known.is_some_and(|(highest, at)| highest >= version && now.since(at) < REMEMBERED) {
            return Ok(true);
        }
        // Read before the query. A refund while it runs raises the number, and the result is not kept.
        let generation = self.generation.load(Ordering::Acquire);
        let highest = store.money().owned(operator, kind, item).await?;
        let mut bought = self.bought.lock();
        match highest {
            Some(highest) if self.generation.load(Ordering::Acquire) == generation => {
                if bought.len() >= MAX_CACHED_PURCHASES {
                    // Emptied as a whole: keeping an order would cost every read, and a lost entry
                    // costs one query.
                    bought.clear();
                }
                bought.insert(key, (highest, now));
            }
            _ => {
                bought.remove(&key);
            }
        }
        Ok(highest.is_some_and(|highest| highest >= version))
    }

    async fn poll(&self, store: &Store, now: Timestamp) -> Result<(), store::Error> {
        let polled = Timestamp::from_micros(self.polled_at.load(Ordering::Acquire));
        if now.since(polled) < POLLED && polled.micros() != 0 {
            return Ok(());
        }
        let generation = store.money().entitlement_generation().await?;
        if self.generation.swap(generation, Ordering::AcqRel) != generation {
            self.bought.lock().clear();
        }
        // Only once the memory is cleared, so that no other call takes it for checked before.
        self.polled_at.store(now.micros(), Ordering::Release);
        Ok(())
    }
}

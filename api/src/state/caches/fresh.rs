//! Rows of the database that are remembered for a moment.
//!
//! Invariants:
//! - A value is at most [`MAX_AGE`] old, counted from before its query began. So a change by another process reaches
//!   every caller within that time.
//! - A change that this process answered is in every value that is returned afterwards.
//! - Rows that do not exist are not remembered: a key that was just made works at once.

use std::hash::Hash;
use std::time::Duration;

use futures_util::FutureExt as _;
use futures_util::future::{BoxFuture, Shared, WeakShared};
use parking_lot::Mutex;
use store::{Error, Stamp, Store};
use types::{DatasetId, Timestamp};

use super::bounded::BoundedMap;

/// The greatest age of a value. Half of the second within which a change must reach every replica.
pub(super) const MAX_AGE: Duration = Duration::from_millis(500);
/// Weight of a query that has no result yet.
const FLIGHT_BYTES: usize = 512;

/// A value that can be remembered.
pub(super) trait Remembered: Clone + Send + Sync + 'static {
    /// Returns the project whose changes make the value out of date; `None` if it is about no project.
    fn project(&self) -> Option<DatasetId>;
    /// Returns the size of the value in bytes.
    fn bytes(&self) -> usize;
}

/// A query that all its callers share. Errors are shared as well: one caller after the other would otherwise wait for
/// a database that does not answer.
type Flight<V> = Shared<BoxFuture<'static, Result<Option<V>, Error>>>;
/// The same query without keeping it alive: once its callers are gone, it must end, because it holds a connection.
type WeakFlight<V> = WeakShared<BoxFuture<'static, Result<Option<V>, Error>>>;

#[derive(Clone)]
enum CacheSlot<V> {
    /// The query runs. `changes` is the count of changes before it began.
    Flying {
        begun: Timestamp,
        changes: u64,
        flight: WeakFlight<V>,
    },
    Known {
        begun: Timestamp,
        stamp: Stamp,
        value: V,
    },
}

/// Values by key, bounded in bytes.
pub(super) struct FreshCache<K, V>(Mutex<BoundedMap<K, CacheSlot<V>>>);

impl<K: Eq + Hash + Clone, V: Remembered> FreshCache<K, V> {
    /// Creates a memory for `most` bytes. With 0 every call is a query.
    pub(super) fn new(most: usize) -> Self {
        Self(Mutex::new(BoundedMap::new(most)))
    }

    /// Returns the value of a key if it is known and up to date.
    pub(super) fn peek(&self, store: &Store, key: &K, now: Timestamp) -> Option<V> {
        match self.0.lock().get(key)? {
            // The age bounds what other processes changed; the stamp shows what this one changed, at
            // once.
            CacheSlot::Known { begun, stamp, value }
                if is_young(begun, now) && stamp == store.stamp(value.project()) =>
            {
                Some(value)
            }
            CacheSlot::Known { .. } | CacheSlot::Flying { .. } => None,
        }
    }

    /// Returns the value of a key, by `query` if it is not known. Calls at the same time share one query.
    pub(super) async fn get<F>(
        &self,
        store: &Store,
        key: K,
        now: Timestamp,
        query: impl FnOnce() -> F,
    ) -> Result<Option<V>, Error>
    where
        F: Future<Output = Result<Option<V>, Error>> + Send + 'static,
    {
        if let Some(value) = self.peek(store, &key, now) {
            return Ok(Some(value));
        }
        let flight = self.flight(store, &key, now, query);
        let found = flight.clone().await;
        self.land(store, &key, &flight, found.as_ref().ok().and_then(Option::as_ref));
        found
    }

    /// Returns the query that runs for a key, or starts one.
    fn flight<F>(&self, store: &Store, key: &K, now: Timestamp, query: impl FnOnce() -> F) -> Flight<V>
    where
        F: Future<Output = Result<Option<V>, Error>> + Send + 'static,
    {
        // Read before the query begins. A change in between costs another query, and never leaves an
        // old value in place.
        let now_changes = store.changes();
        let mut slots = self.0.lock();
        // A query that began before a change may miss it, so it is not joined by a caller that may know of the change.
        if let Some(CacheSlot::Flying { begun, changes, flight }) = slots.get(key)
            && is_young(begun, now)
            && changes == now_changes
            && let Some(flight) = flight.upgrade()
        {
            return flight;
        }
        // Made under the lock and polled after it: a future does nothing until then.
        let flight = query().boxed().shared();
        // It was made in this function, so it cannot have ended.
        if let Some(weak) = flight.downgrade() {
            let slot = CacheSlot::Flying {
                begun: now,
                changes: now_changes,
                flight: weak,
            };
            slots.insert(key.clone(), slot, FLIGHT_BYTES);
        }
        flight
    }

    /// Remembers the result of a query, unless another query has taken its place.
    fn land(&self, store: &Store, key: &K, landed: &Flight<V>, value: Option<&V>) {
        let mut slots = self.0.lock();
        let Some(CacheSlot::Flying { begun, changes, flight }) = slots.get(key) else {
            return;
        };
        if !flight.upgrade().is_some_and(|flight| flight.ptr_eq(landed)) {
            return;
        }
        // The stamp is taken before the changes are compared: a change in between alters the count first.
        let stamped = value.map(|value| (value, store.stamp(value.project())));
        match stamped {
            Some((value, stamp)) if store.changes() == changes => {
                let bytes = value.bytes() + size_of::<(K, CacheSlot<V>)>();
                let value = value.clone();
                slots.insert(key.clone(), CacheSlot::Known { begun, stamp, value }, bytes);
            }
            _ => slots.remove(key),
        }
    }

    /// Returns the weight of everything that is remembered.
    #[cfg(test)]
    pub(super) fn weight(&self) -> usize {
        self.0.lock().weight()
    }
}

/// Returns true for a value that is not too old. A clock that was set back makes values of the future, which may be of
/// any age; one that was set back by less than the age of a value adds no more than that to it.
fn is_young(begun: Timestamp, now: Timestamp) -> bool {
    begun <= now && now.since(begun) < MAX_AGE
}

#[cfg(test)]
mod tests;

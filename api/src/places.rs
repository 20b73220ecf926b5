//! Concurrency limits per holder, such as an operator: permits for concurrent work, or for bytes in memory.
//!
//! Invariant: the permits of one holder never make another wait.

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::{Arc, Weak};

use bytes::Bytes;
use parking_lot::Mutex;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use types::OperatorId;

/// Permits in the same number for each holder.
#[derive(Debug)]
pub(crate) struct Places<H = OperatorId> {
    of_one: usize,
    /// Semaphores of the holders that hold or await permits. Weak, so that idle holders take no memory.
    own: Mutex<HashMap<H, Weak<Semaphore>>>,
}

/// One or several permits, returned on drop.
#[derive(Debug)]
pub(crate) struct Place {
    _permit: Option<OwnedSemaphorePermit>,
}

impl<H: Eq + Hash> Places<H> {
    pub(crate) fn new(of_one: usize) -> Self {
        Self {
            of_one: of_one.min(Semaphore::MAX_PERMITS),
            own: Mutex::default(),
        }
    }

    /// Waits for a permit of this holder.
    pub(crate) async fn take(&self, holder: H) -> Place {
        // `acquire` fails only on a closed semaphore, and none is ever closed.
        Place {
            _permit: self.of(holder).acquire_owned().await.ok(),
        }
    }

    /// Takes `count` permits of this holder if they are free now.
    pub(crate) fn try_take(&self, holder: H, count: usize) -> Option<Place> {
        let count = u32::try_from(count).ok()?;
        let permit = self.of(holder).try_acquire_many_owned(count).ok()?;
        Some(Place { _permit: Some(permit) })
    }

    fn of(&self, holder: H) -> Arc<Semaphore> {
        // A panic elsewhere cannot leave the map inconsistent, so a lock without poisoning is enough.
        let mut own = self.own.lock();
        // Idle holders are removed at each call, so the map grows with the active holders only.
        own.retain(|_, places| places.strong_count() > 0);
        let known = own.get(&holder).and_then(Weak::upgrade);
        known.unwrap_or_else(|| {
            let places = Arc::new(Semaphore::new(self.of_one));
            own.insert(holder, Arc::downgrade(&places));
            places
        })
    }
}

/// Returns the same bytes, with a permit held until the last copy of them is dropped.
pub(crate) fn holding<P: Send + 'static>(bytes: Bytes, place: P) -> Bytes {
    struct Held<P>(Bytes, P);
    impl<P> AsRef<[u8]> for Held<P> {
        fn as_ref(&self) -> &[u8] {
            &self.0
        }
    }
    Bytes::from_owner(Held(bytes, place))
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt as _;

    use super::*;

    #[tokio::test]
    async fn an_operator_waits_for_its_own_places_only() {
        let places = Places::new(2);
        let [ada, eve] = [1, 2].map(|byte| OperatorId::from_bytes([byte; 16]));
        let first = places.take(ada).await;
        let _second = places.take(ada).await;
        assert!(places.take(ada).now_or_never().is_none());
        assert!(places.take(eve).now_or_never().is_some());
        drop(first);
        assert!(places.take(ada).now_or_never().is_some());
    }

    #[test]
    fn several_places_are_taken_together_or_not_at_all() {
        let places = Places::new(10);
        let held = holding(Bytes::from_static(b"x"), places.try_take(1, 6));
        assert!(places.try_take(1, 5).is_none());
        assert!(places.try_take(2, 10).is_some());
        assert!(places.try_take(1, 4).is_some());
        let copy = held.slice(..1);
        drop(held);
        assert!(places.try_take(1, 5).is_none(), "a copy keeps the place");
        drop(copy);
        assert!(places.try_take(1, 10).is_some());
        assert!(places.try_take(1, 11).is_none());
    }

    #[tokio::test]
    async fn who_has_no_place_is_not_remembered() {
        let places = Places::new(1);
        for byte in 0..10 {
            places.take(OperatorId::from_bytes([byte; 16])).await;
        }
        let _place = places.take(OperatorId::from_bytes([99; 16])).await;
        assert_eq!(places.own.lock().len(), 1);
    }
}

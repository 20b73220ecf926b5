//! Places for what takes long and is one operator's: how much of it goes on at once.
//!
//! Invariant: what one operator does keeps no other waiting here.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use types::OperatorId;

/// So many places for each operator.
#[derive(Debug)]
pub(crate) struct Places {
    of_one: usize,
    /// Of those who have or want some.
    own: Mutex<HashMap<OperatorId, Weak<Semaphore>>>,
}

/// A place, until it is dropped.
#[derive(Debug)]
pub(crate) struct Place {
    _permit: Option<OwnedSemaphorePermit>,
}

impl Places {
    pub(crate) fn new(of_one: usize) -> Self {
        Self {
            of_one,
            own: Mutex::default(),
        }
    }

    /// Waits for a place of this operator.
    pub(crate) async fn take(&self, operator: OperatorId) -> Place {
        // Why none: semaphores that are never closed always give their places.
        Place {
            _permit: self.of(operator).acquire_owned().await.ok(),
        }
    }

    fn of(&self, operator: OperatorId) -> Arc<Semaphore> {
        // Why: a map of what is waited for is whole whatever a panicking holder did.
        let mut own = self.own.lock().unwrap_or_else(PoisonError::into_inner);
        own.retain(|_, places| places.strong_count() > 0);
        let known = own.get(&operator).and_then(Weak::upgrade);
        known.unwrap_or_else(|| {
            let places = Arc::new(Semaphore::new(self.of_one));
            own.insert(operator, Arc::downgrade(&places));
            places
        })
    }
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

    #[tokio::test]
    async fn who_has_no_place_is_not_remembered() {
        let places = Places::new(1);
        for byte in 0..10 {
            places.take(OperatorId::from_bytes([byte; 16])).await;
        }
        let _place = places.take(OperatorId::from_bytes([99; 16])).await;
        assert_eq!(places.own.lock().unwrap().len(), 1);
    }
}

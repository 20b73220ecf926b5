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
pub(crate) struct HolderLimit<H = OperatorId> {
    per_holder: usize,
    /// Semaphores of the holders that hold or await permits. Weak, so that idle holders take no memory.
    semaphores: Mutex<HashMap<H, Weak<Semaphore>>>,
}

/// One or several permits, returned on drop.
#[derive(Debug)]
pub(crate) struct HolderPermit {
    _permit: Option<OwnedSemaphorePermit>,
}

impl<H: Eq + Hash> HolderLimit<H> {
    pub(crate) fn new(per_holder: usize) -> Self {
        Self {
            per_holder: per_holder.min(Semaphore::MAX_PERMITS),
            semaphores: Mutex::default(),
        }
    }

    /// Waits for a permit of this holder.
    pub(crate) async fn acquire(&self, holder: H) -> HolderPermit {
        // `acquire` fails only on a closed semaphore, and none is ever closed.
        HolderPermit {
            _permit: self.of(holder).acquire_owned().await.ok(),
        }
    }

    /// Takes `count` permits of this holder if they are free now.
    pub(crate) fn try_acquire(&self, holder: H, count: usize) -> Option<HolderPermit> {
        let count = u32::try_from(count).ok()?;
        let permit = self.of(holder).try_acquire_many_owned(count).ok()?;
        Some(HolderPermit { _permit: Some(permit) })
    }

    /// Takes every permit of a holder, does something while somebody waits for one, and gives them back.
    #[cfg(test)]
    pub(crate) async fn while_awaited(&self, holder: H, work: impl Future<Output = ()>)
    where
        H: Clone,
    {
        let taken = self.try_acquire(holder.clone(), self.per_holder);
        assert!(taken.is_some(), "permits are in use");
        // The permits hold one reference to the semaphore, and each task that waits for one holds another.
        let waiting = || {
            let semaphores = self.semaphores.lock();
            semaphores
                .get(&holder)
                .is_some_and(|semaphore| semaphore.strong_count() > 1)
        };
        while !waiting() {
            tokio::task::yield_now().await;
        }
        work.await;
        drop(taken);
    }

    fn of(&self, holder: H) -> Arc<Semaphore> {
        // A panic elsewhere cannot leave the map inconsistent, so a lock without poisoning is enough.
        let mut semaphores = self.semaphores.lock();
        // Idle holders are removed at each call, so the map grows with the active holders only.
        semaphores.retain(|_, semaphore| semaphore.strong_count() > 0);
        let known = semaphores.get(&holder).and_then(Weak::upgrade);
        known.unwrap_or_else(|| {
            let semaphore = Arc::new(Semaphore::new(self.per_holder));
            semaphores.insert(holder, Arc::downgrade(&semaphore));
            semaphore
        })
    }
}

/// Returns the same bytes, with a permit held until the last copy of them is dropped.
pub(crate) fn holding<P: Send + 'static>(bytes: Bytes, permit: P) -> Bytes {
    struct Held<P>(Bytes, P);
    impl<P> AsRef<[u8]> for Held<P> {
        fn as_ref(&self) -> &[u8] {
            &self.0
        }
    }
    Bytes::from_owner(Held(bytes, permit))
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt as _;

    use super::*;

    #[tokio::test]
    async fn an_operator_waits_for_its_own_permits_only() {
        let limit = HolderLimit::new(2);
        let [ada, eve] = [1, 2].map(|byte| OperatorId::from_bytes([byte; 16]));
        let first = limit.acquire(ada).await;
        let _second = limit.acquire(ada).await;
        assert!(limit.acquire(ada).now_or_never().is_none());
        assert!(limit.acquire(eve).now_or_never().is_some());
        drop(first);
        assert!(limit.acquire(ada).now_or_never().is_some());
    }

    #[test]
    fn several_permits_are_taken_together_or_not_at_all() {
        let limit = HolderLimit::new(10);
        let held = holding(Bytes::from_static(b"x"), limit.try_acquire(1, 6));
        assert!(limit.try_acquire(1, 5).is_none());
        assert!(limit.try_acquire(2, 10).is_some());
        assert!(limit.try_acquire(1, 4).is_some());
        let copy = held.slice(..1);
        drop(held);
        assert!(limit.try_acquire(1, 5).is_none(), "a copy keeps the permit");
        drop(copy);
        assert!(limit.try_acquire(1, 10).is_some());
        assert!(limit.try_acquire(1, 11).is_none());
    }

    #[tokio::test]
    async fn who_has_no_permit_is_not_remembered() {
        let limit = HolderLimit::new(1);
        for byte in 0..10 {
            limit.acquire(OperatorId::from_bytes([byte; 16])).await;
        }
        let _permit = limit.acquire(OperatorId::from_bytes([99; 16])).await;
        assert_eq!(limit.semaphores.lock().len(), 1);
    }
}

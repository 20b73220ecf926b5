//! Leases: the right to read a topic for a group in this process.
//!
//! Invariant: a lease ends when its consumer has left the group, or ran out of time to do so, and not when its reader
//! was dropped. Two members under one name would fence each other.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::{Condvar, Mutex, MutexGuard};
use tokio::sync::Notify;

use crate::Error;

/// The leases of a log.
#[derive(Debug, Default)]
pub(super) struct KafkaLeases {
    taken: Mutex<HashMap<(String, String), LeaseUse>>,
    ended: Notify,
    all_ended: Condvar,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum LeaseUse {
    Alive,
    Leaving,
}

/// The right to read a topic for a group. Dropping it ends the lease.
#[derive(Debug)]
pub(super) struct KafkaLease {
    leases: Arc<KafkaLeases>,
    key: (String, String),
}

impl KafkaLeases {
    /// Takes the lease. If the previous holder is leaving the group, waits for it, at most for `limit`.
    pub(super) async fn take(
        leases: &Arc<Self>,
        topic: &str,
        group: &str,
        limit: Duration,
    ) -> Result<KafkaLease, Error> {
        let key = (topic.to_owned(), group.to_owned());
        let waiting = async {
            loop {
                // Subscribes to the notification before looking, so that a lease that ends in
                // between is not missed.
                let mut ended = std::pin::pin!(leases.ended.notified());
                ended.as_mut().enable();
                match leases.try_take(&key) {
                    None => return Ok(()),
                    Some(LeaseUse::Alive) => {
                        return Err(Error::Busy {
                            topic: key.0.clone(),
                            group: key.1.clone(),
                        });
                    }
                    Some(LeaseUse::Leaving) => ended.await,
                }
            }
        };
        match tokio::time::timeout(limit, waiting).await {
            Ok(taken) => taken?,
            Err(_late) => {
                return Err(Error::Unavailable {
                    what: format!("reading topic `{topic}` for group `{group}`"),
                    cause: "the subscription before has not left the group yet".to_owned(),
                });
            }
        }
        Ok(KafkaLease {
            leases: Arc::clone(leases),
            key,
        })
    }

    fn try_take(&self, key: &(String, String)) -> Option<LeaseUse> {
        let mut taken = self.locked();
        let used = taken.get(key).copied();
        if used.is_none() {
            taken.insert(key.clone(), LeaseUse::Alive);
        }
        used
    }

    /// Waits until no lease is left. Returns false if `limit` passed first.
    pub(super) fn wait_all(&self, limit: Duration) -> bool {
        let mut taken = self.locked();
        let waited = self
            .all_ended
            .wait_while_for(&mut taken, |taken| !taken.is_empty(), limit);
        !waited.timed_out()
    }

    fn locked(&self) -> MutexGuard<'_, HashMap<(String, String), LeaseUse>> {
        self.taken.lock()
    }
}

impl KafkaLease {
    pub(super) fn topic(&self) -> &str {
        &self.key.0
    }

    pub(super) fn group(&self) -> &str {
        &self.key.1
    }

    /// Marks the lease as leaving: the reader is gone and its consumer leaves the group.
    pub(super) fn leave(&self) {
        self.leases.locked().insert(self.key.clone(), LeaseUse::Leaving);
    }
}

impl Drop for KafkaLease {
    fn drop(&mut self) {
        self.leases.locked().remove(&self.key);
        // One notification for callers that subscribe again, one for the thread that closes the
        // log.
        self.leases.ended.notify_waiters();
        self.leases.all_ended.notify_all();
    }
}

//! Requests that wait for the outcome of a contribution.
//!
//! Invariant: a waiting request holds no database connection, and sees an outcome only after the database has it, so
//! later requests see it too. Only the projector that applied a terminal outcome passes it on directly; every other
//! wake-up makes the request read the database.
//!
//! A request that is woken ([`Waiters::wake`]) reads the row once. After a hint ([`Waiters::notify_logged`]) that
//! another process is writing the row, it reads at growing intervals until the row is there. Without any notice it
//! reads every `MAX_RECHECK`, so that nobody waits in vain while the log is down.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use parking_lot::Mutex;
use store::{Contribution, OutcomeRow, Resolution, Store, Unit};
use tokio::sync::Notify;
use types::{ContributionId, UnitId};

/// First pause after a hint before the row is read again; doubles to [`MAX_RECHECK`].
const FIRST_RECHECK: Duration = Duration::from_millis(5);
/// Interval at which a row without notice is read again.
const MAX_RECHECK: Duration = Duration::from_secs(2);

/// Id of a contribution or a version of a unit. All ids are distinct.
type Key = [u8; 16];

/// Registry of the waiting requests of this process.
#[derive(Clone, Debug, Default)]
pub struct Waiters {
    waiting: Arc<Mutex<HashMap<Key, WaitingRequest>>>,
}

#[derive(Debug, Default)]
struct WaitingRequest {
    wake_up: Arc<WakeUp>,
    count: usize,
}

#[derive(Debug, Default)]
struct WakeUp {
    notify: Notify,
    /// Terminal outcome, once it is applied.
    outcome: OnceLock<OutcomeRow>,
    /// True if the outcome is in the log, and so will soon be in the database.
    is_logged: AtomicBool,
}

/// Registration of one waiting request, ended on drop.
#[derive(Debug)]
pub struct WaiterSubscription {
    waiters: Waiters,
    id: Key,
    wake_up: Arc<WakeUp>,
}

impl WaiterSubscription {
    /// Returns the terminal outcome that was applied since the registration, as soon as there is one. Returns `None`
    /// when `wait` is over, or after [`MAX_RECHECK`] at the latest: another process may have applied the outcome, so
    /// the caller then reads the database.
    pub async fn recv(&self, wait: Duration) -> Option<OutcomeRow> {
        // The listener is enabled before the outcome is checked, so that an outcome in between is not missed.
        let notified = self.wake_up.notify.notified();
        tokio::pin!(notified);
        notified.as_mut().enable();
        if self.wake_up.outcome.get().is_none() && !self.wake_up.is_logged.load(Ordering::Acquire) {
            tokio::time::timeout(wait.min(MAX_RECHECK), notified).await.ok();
        }
        self.wake_up.outcome.get().cloned()
    }
}

impl Drop for WaiterSubscription {
    fn drop(&mut self) {
        let mut waiting = self.waiters.waiting.lock();
        if let Some(entry) = waiting.get_mut(&self.id) {
            entry.count -= 1;
            // The last request removes the entry, so the map contains only contributions that are waited for.
            if entry.count == 0 {
                waiting.remove(&self.id);
            }
        }
    }
}

impl Waiters {
    /// Returns the contribution at once if it is decided, otherwise when it is decided or `wait` is over.
    pub async fn outcome(
        &self,
        store: &Store,
        id: ContributionId,
        wait: Duration,
    ) -> Result<Option<Contribution>, store::Error> {
        let is_decided = |row: &Contribution| row.status.is_terminal();
        self.until(*id.as_bytes(), wait, is_decided, || store.contribution(id))
            .await
    }

    /// Returns the version of a unit at once if it is decided, otherwise when it is decided or `wait` is over.
    pub async fn unit(&self, store: &Store, id: UnitId, wait: Duration) -> Result<Option<Unit>, store::Error> {
        let (knowledge, is_decided) = (store.knowledge(), |unit: &Unit| !unit.status.is_open());
        self.until(*id.as_bytes(), wait, is_decided, || knowledge.unit(id))
            .await
    }

    /// Returns what `read` finds at once if it is decided, otherwise when it is decided or `wait` is over.
    async fn until<T, Reading>(
        &self,
        id: Key,
        wait: Duration,
        is_decided: impl Fn(&T) -> bool,
        read: impl Fn() -> Reading,
    ) -> Result<Option<T>, store::Error>
    where
        Reading: Future<Output = Result<Option<T>, store::Error>>,
    {
        if wait.is_zero() {
            return read().await;
        }
        let deadline = tokio::time::Instant::now() + wait;
        let subscription = self.subscribe_to(id);
        let mut recheck = FIRST_RECHECK;
        loop {
            // The listener is enabled before the row is read, so that an outcome in between is not missed.
            let notified = subscription.wake_up.notify.notified();
            tokio::pin!(notified);
            notified.as_mut().enable();
            let row = read().await?;
            if row.as_ref().is_none_or(&is_decided) {
                return Ok(row);
            }
            let pause = if subscription.wake_up.is_logged.load(Ordering::Acquire) {
                // After a hint the row is a matter of milliseconds, so the pauses begin short.
                let pause = recheck;
                recheck = (recheck * 2).min(MAX_RECHECK);
                pause
            } else {
                MAX_RECHECK
            };
            let next = deadline.min(tokio::time::Instant::now() + pause);
            // The last read catches an outcome that arrived together with the deadline.
            if tokio::time::timeout_at(next, notified).await.is_err() && next == deadline {
                return read().await;
            }
        }
    }

    /// Wakes the requests that wait for `id`; they read the database.
    pub fn wake(&self, id: ContributionId) {
        self.wake_key(id.as_bytes());
    }

    /// Wakes the requests that wait for a version of a unit; they read the database.
    pub fn wake_unit(&self, id: UnitId) {
        self.wake_key(id.as_bytes());
    }

    fn wake_key(&self, id: &Key) {
        if let Some(wake_up) = self.wake_up(id) {
            wake_up.notify.notify_waiters();
        }
    }

    /// Notifies the requests that wait for `id` that its outcome is in the log. Returns true if there are any.
    pub fn notify_logged(&self, id: ContributionId) -> bool {
        self.notify_key_logged(id.as_bytes())
    }

    /// Notifies the requests that wait for a version of a unit that its outcome is in the log. Returns true if there
    /// are any.
    pub fn notify_unit_logged(&self, id: UnitId) -> bool {
        self.notify_key_logged(id.as_bytes())
    }

    fn notify_key_logged(&self, id: &Key) -> bool {
        let Some(wake_up) = self.wake_up(id) else { return false };
        // Set before the notice, so that a request which is just about to wait reads it.
        wake_up.is_logged.store(true, Ordering::Release);
        wake_up.notify.notify_waiters();
        true
    }

    #[cfg(test)]
    pub(crate) fn is_logged(&self, id: ContributionId) -> bool {
        self.wake_up(id.as_bytes())
            .is_some_and(|wake_up| wake_up.is_logged.load(Ordering::Acquire))
    }

    /// Returns true if no request waits.
    pub fn is_empty(&self) -> bool {
        self.waiting.lock().is_empty()
    }

    /// Passes on an outcome that was applied just now, and wakes the requests that wait for it.
    pub fn notify_applied(&self, outcome: &OutcomeRow) {
        let Some(wake_up) = self.wake_up(outcome.id.as_bytes()) else {
            return;
        };
        // A contribution that waits is not decided, so its requests keep waiting.
        if !matches!(outcome.resolution, Resolution::Waiting { .. }) {
            wake_up.outcome.get_or_init(|| outcome.clone());
        }
        wake_up.notify.notify_waiters();
    }

    fn wake_up(&self, id: &Key) -> Option<Arc<WakeUp>> {
        let waiting = self.waiting.lock();
        waiting.get(id).map(|entry| Arc::clone(&entry.wake_up))
    }

    /// Registers a request that waits for the outcome of `id` from now on.
    pub fn subscribe(&self, id: ContributionId) -> WaiterSubscription {
        self.subscribe_to(*id.as_bytes())
    }

    fn subscribe_to(&self, id: Key) -> WaiterSubscription {
        let mut waiting = self.waiting.lock();
        let entry = waiting.entry(id).or_default();
        entry.count += 1;
        WaiterSubscription {
            waiters: self.clone(),
            id,
            wake_up: Arc::clone(&entry.wake_up),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use store::ContributionStatus;

    use super::*;
    use crate::testing::Service;

    #[tokio::test]
    async fn a_wait_without_an_outcome_ends_with_the_row_as_it_is_and_leaves_nothing_behind() {
        let service = Service::start().await;
        let token = service.operator().await;
        let key = service.agent(&token, "contributor").await;
        service.project(&key, "gauges", &json!({})).await;
        let body = r#"{"records":[{"name":"a"}]}"#;
        let got = service
            .call("POST", "/projects/gauges/contribute", Some(&key), body)
            .await;
        let id = got.json()["id"].as_str().unwrap().parse().unwrap();
        let waiters = &service.app.waiters;
        let row = waiters
            .outcome(&service.app.store, id, Duration::from_millis(20))
            .await
            .unwrap()
            .unwrap();
        assert_eq!(row.status, ContributionStatus::Submitted);
        assert!(waiters.waiting.lock().is_empty());
    }

    fn outcome(id: ContributionId, resolution: Resolution) -> OutcomeRow {
        OutcomeRow {
            id,
            generation: 0,
            at: types::Timestamp::from_micros(0),
            resolution,
            tallies: "[]".to_owned(),
            verdicts: "[]".to_owned(),
        }
    }

    #[tokio::test]
    async fn a_subscription_gets_a_terminal_outcome_and_nothing_else() {
        let (long, none) = (Duration::from_secs(20), Duration::ZERO);
        let (waiters, id) = (Waiters::default(), ContributionId::from_bytes([1; 16]));
        let subscription = waiters.subscribe(id);
        assert_eq!(subscription.recv(none).await, None);
        let held = Resolution::Waiting {
            reason: "budget".to_owned(),
            resumes_after: None,
        };
        let waking = async { waiters.notify_applied(&outcome(id, held)) };
        assert_eq!(tokio::join!(subscription.recv(long), waking).0, None);
        let waking = async { waiters.wake(id) };
        assert_eq!(tokio::join!(subscription.recv(long), waking).0, None);
        let rejected = outcome(
            id,
            Resolution::Rejected {
                code: "refused".to_owned(),
                message: "no".to_owned(),
            },
        );
        waiters.notify_applied(&rejected);
        assert_eq!(subscription.recv(long).await, Some(rejected));
        drop(subscription);
        assert_eq!(waiters.subscribe(id).recv(none).await, None);
    }
}

//! Requests that wait for the outcome of a contribution.
//!
//! Invariant: a waiting request holds no database connection, and sees an outcome only after the database has it, so
//! later requests see it too. Only the projector that applied a terminal outcome passes it on directly; every other
//! wake-up makes the request read the database.
//!
//! A request that is woken ([`Waiters::wake`]) reads the row once. After a hint ([`Waiters::hint`]) that another
//! process is writing the row, it reads at growing intervals until the row is there. Without any notice it reads every
//! [`SELDOM`], so that nobody waits in vain while the log is down.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use parking_lot::Mutex;
use store::{Contribution, OutcomeRow, Resolution, Store};
use tokio::sync::Notify;
use types::ContributionId;

/// First pause after a hint before the row is read again; doubles to [`SELDOM`].
const SOON: Duration = Duration::from_millis(5);
/// Interval at which a row without notice is read again.
const SELDOM: Duration = Duration::from_secs(2);

/// Registry of the waiting requests of this process.
#[derive(Clone, Debug, Default)]
pub struct Waiters {
    waiting: Arc<Mutex<HashMap<ContributionId, Waiting>>>,
}

#[derive(Debug, Default)]
struct Waiting {
    bell: Arc<Bell>,
    count: usize,
}

#[derive(Debug, Default)]
struct Bell {
    rung: Notify,
    /// Terminal outcome, once it is applied.
    told: OnceLock<OutcomeRow>,
    /// True if the outcome is in the log, and so will soon be in the database.
    foretold: AtomicBool,
}

/// Registration of one waiting request, ended on drop.
#[derive(Debug)]
pub struct Place {
    waiters: Waiters,
    id: ContributionId,
    bell: Arc<Bell>,
}

impl Place {
    /// Returns the terminal outcome that was applied since the registration, as soon as there is one. Returns `None`
    /// when `wait` is over, or after [`SELDOM`] at the latest: another process may have applied the outcome, so the
    /// caller then reads the database.
    pub async fn told(&self, wait: Duration) -> Option<OutcomeRow> {
        // The listener is enabled before the outcome is checked, so that an outcome in between is not missed.
        let rung = self.bell.rung.notified();
        tokio::pin!(rung);
        rung.as_mut().enable();
        if self.bell.told.get().is_none() && !self.bell.foretold.load(Ordering::Acquire) {
            tokio::time::timeout(wait.min(SELDOM), rung).await.ok();
        }
        self.bell.told.get().cloned()
    }
}

impl Drop for Place {
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
        if wait.is_zero() {
            return store.contribution(id).await;
        }
        let deadline = tokio::time::Instant::now() + wait;
        let place = self.place(id);
        let mut soon = SOON;
        loop {
            // The listener is enabled before the row is read, so that an outcome in between is not missed.
            let rung = place.bell.rung.notified();
            tokio::pin!(rung);
            rung.as_mut().enable();
            let row = store.contribution(id).await?;
            if row.as_ref().is_none_or(|row| row.status.is_terminal()) {
                return Ok(row);
            }
            let pause = if place.bell.foretold.load(Ordering::Acquire) {
                // After a hint the row is a matter of milliseconds, so the pauses begin short.
                let pause = soon;
                soon = (soon * 2).min(SELDOM);
                pause
            } else {
                SELDOM
            };
            let next = deadline.min(tokio::time::Instant::now() + pause);
            // The last read catches an outcome that arrived together with the deadline.
            if tokio::time::timeout_at(next, rung).await.is_err() && next == deadline {
                return store.contribution(id).await;
            }
        }
    }

    /// Wakes the requests that wait for `id`; they read the database.
    pub fn wake(&self, id: ContributionId) {
        if let Some(bell) = self.bell(id) {
            bell.rung.notify_waiters();
        }
    }

    /// Notifies the requests that wait for `id` that its outcome is in the log. Returns true if there are any.
    pub fn hint(&self, id: ContributionId) -> bool {
        let Some(bell) = self.bell(id) else { return false };
        bell.foretold.store(true, Ordering::Release);
        bell.rung.notify_waiters();
        true
    }

    #[cfg(test)]
    pub(super) fn is_foretold(&self, id: ContributionId) -> bool {
        self.bell(id).is_some_and(|bell| bell.foretold.load(Ordering::Acquire))
    }

    /// Returns true if no request waits.
    pub fn is_empty(&self) -> bool {
        self.waiting.lock().is_empty()
    }

    /// Passes on an outcome that was applied just now, and wakes the requests that wait for it.
    pub fn tell(&self, outcome: &OutcomeRow) {
        let Some(bell) = self.bell(outcome.id) else { return };
        // A contribution that waits is not decided, so its requests keep waiting.
        if !matches!(outcome.resolution, Resolution::Waiting { .. }) {
            bell.told.get_or_init(|| outcome.clone());
        }
        bell.rung.notify_waiters();
    }

    fn bell(&self, id: ContributionId) -> Option<Arc<Bell>> {
        let waiting = self.waiting.lock();
        waiting.get(&id).map(|entry| Arc::clone(&entry.bell))
    }

    /// Registers a request that waits for the outcome of `id` from now on.
    pub fn place(&self, id: ContributionId) -> Place {
        let mut waiting = self.waiting.lock();
        let entry = waiting.entry(id).or_default();
        entry.count += 1;
        Place {
            waiters: self.clone(),
            id,
            bell: Arc::clone(&entry.bell),
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
    async fn who_has_a_place_is_told_a_terminal_outcome_and_nothing_else() {
        let (long, none) = (Duration::from_secs(20), Duration::ZERO);
        let (waiters, id) = (Waiters::default(), ContributionId::from_bytes([1; 16]));
        let place = waiters.place(id);
        assert_eq!(place.told(none).await, None);
        let held = Resolution::Waiting {
            reason: "budget".to_owned(),
            resumes_after: None,
        };
        let ring = async { waiters.tell(&outcome(id, held)) };
        assert_eq!(tokio::join!(place.told(long), ring).0, None);
        let ring = async { waiters.wake(id) };
        assert_eq!(tokio::join!(place.told(long), ring).0, None);
        let rejected = outcome(
            id,
            Resolution::Rejected {
                code: "refused".to_owned(),
                message: "no".to_owned(),
            },
        );
        waiters.tell(&rejected);
        assert_eq!(place.told(long).await, Some(rejected));
        drop(place);
        assert_eq!(waiters.place(id).told(none).await, None);
    }
}

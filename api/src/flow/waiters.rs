//! Requests that wait for the outcome of a contribution.
//!
//! Invariant: a waiter holds no database connection while it waits, and sees an outcome only after the database does,
//! so whoever asks next sees it too.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use store::{Contribution, Store};
use tokio::sync::Notify;
use types::ContributionId;

/// The waiting requests of this process.
#[derive(Clone, Debug, Default)]
pub struct Waiters {
    waiting: Arc<Mutex<HashMap<ContributionId, Waiting>>>,
}

#[derive(Debug, Default)]
struct Waiting {
    bell: Arc<Notify>,
    count: usize,
}

/// Counts a request as waiting until it is dropped.
struct Place<'a> {
    waiters: &'a Waiters,
    id: ContributionId,
    bell: Arc<Notify>,
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        let mut waiting = self.waiters.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(entry) = waiting.get_mut(&self.id) {
            entry.count -= 1;
            if entry.count == 0 {
                waiting.remove(&self.id);
            }
        }
    }
}

impl Waiters {
    /// The contribution as it is, or, while it is undecided, as it is when it is decided or `wait` is over.
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
        loop {
            // Why: the bell is listened to before the row is read, so an outcome in between is not missed.
            let rung = place.bell.notified();
            tokio::pin!(rung);
            rung.as_mut().enable();
            let row = store.contribution(id).await?;
            if row.as_ref().is_none_or(|row| row.status.is_terminal()) {
                return Ok(row);
            }
            if tokio::time::timeout_at(deadline, rung).await.is_err() {
                return store.contribution(id).await;
            }
        }
    }

    /// Wakes the requests that wait for `id`.
    pub fn wake(&self, id: ContributionId) {
        if let Some(entry) = self.waiting.lock().unwrap_or_else(PoisonError::into_inner).get(&id) {
            entry.bell.notify_waiters();
        }
    }

    fn place(&self, id: ContributionId) -> Place<'_> {
        let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        let entry = waiting.entry(id).or_default();
        entry.count += 1;
        Place {
            waiters: self,
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
        assert!(waiters.waiting.lock().unwrap().is_empty());
    }
}

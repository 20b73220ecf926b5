//! Admission control: bounds the contributions that are acknowledged and not decided.
//!
//! Invariant: whatever stops behind the acknowledgement, the open contributions in the database are bounded.
//! Acknowledgements of this process count at once; those of other processes, and decisions, count from the next query
//! on. So the bound is exceeded by at most the acknowledgements of other processes between two queries. If the disk has
//! no space to decide the open ones, nothing more is acknowledged either.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use store::Store;
use tokio_util::sync::CancellationToken;

use crate::config::Limits;
use crate::periodic::PeriodicTimer;

/// Interval at which the open contributions are counted in the database.
const COUNT_INTERVAL: Duration = Duration::from_secs(1);

/// Bound on the contributions without an outcome.
#[derive(Clone, Copy, Debug)]
struct BacklogBound {
    contributions: u64,
    bytes: u64,
}

/// Reason why no more contributions are acknowledged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BacklogRefusal {
    /// Too many contributions have no outcome.
    Backlog,
    /// The disk has too little free space.
    Disk,
}

/// Count of the contributions without an outcome. Clones share it.
#[derive(Clone, Debug)]
pub struct Backlog {
    shared: Arc<BacklogState>,
}

#[derive(Debug)]
struct BacklogState {
    bound: BacklogBound,
    contributions: AtomicU64,
    bytes: AtomicU64,
    disk_has_space: AtomicBool,
}

impl Backlog {
    /// Creates an empty backlog. [`Self::run`] adds the contributions in the database.
    pub fn of(limits: &Limits) -> Self {
        let shared = BacklogState {
            bound: BacklogBound {
                contributions: limits.open_contributions,
                bytes: limits.open_bytes.0,
            },
            contributions: AtomicU64::new(0),
            bytes: AtomicU64::new(0),
            disk_has_space: AtomicBool::new(true),
        };
        Self {
            shared: Arc::new(shared),
        }
    }

    /// Returns the reason to refuse another contribution, if there is one.
    pub fn rejection(&self) -> Option<BacklogRefusal> {
        // Relaxed loads are enough: no other data is read by these counts.
        let BacklogState { bound, .. } = &*self.shared;
        if !self.shared.disk_has_space.load(Ordering::Relaxed) {
            return Some(BacklogRefusal::Disk);
        }
        // Either bound is enough: many small submissions fill the log as well as a few large ones.
        let rejection = self.shared.contributions.load(Ordering::Relaxed) >= bound.contributions
            || self.shared.bytes.load(Ordering::Relaxed) >= bound.bytes;
        rejection.then_some(BacklogRefusal::Backlog)
    }

    /// Sets whether the disk has space for more contributions.
    pub fn set_disk_has_space(&self, disk_has_space: bool) {
        // Only a change is logged, not each check of the disk.
        if self.shared.disk_has_space.swap(disk_has_space, Ordering::Relaxed) != disk_has_space {
            if disk_has_space {
                tracing::warn!("the disk has more than `data.reserve` free again; contributions are accepted");
            } else {
                tracing::warn!("the disk has no more than `data.reserve` free; contributions are refused");
            }
        }
    }

    /// Counts a contribution that was acknowledged, with the size of its submission.
    pub fn add(&self, bytes: usize) {
        // Counted at once, since many more could be acknowledged before the next look at the database.
        self.shared.contributions.fetch_add(1, Ordering::Relaxed);
        self.shared.bytes.fetch_add(bytes as u64, Ordering::Relaxed);
    }

    /// Counts the open contributions in the database every second until `stop`.
    pub async fn run(self, store: Store, stop: CancellationToken) {
        let looking = async {
            let mut rounds = PeriodicTimer::every(COUNT_INTERVAL, &stop);
            while rounds.next().await {
                if let Err(error) = self.count(&store).await {
                    let error = &error as &dyn std::error::Error;
                    tracing::warn!(
                        error,
                        "cannot count the contributions without an outcome; the last count stays in use"
                    );
                }
            }
        };
        stop.run_until_cancelled(looking).await;
    }

    async fn count(&self, store: &Store) -> Result<(), store::Error> {
        let knowledge = store.knowledge();
        let (outbox, units) = tokio::try_join!(store.open_count_and_bytes(), knowledge.outbox_size())?;
        // An acknowledgement between the query and this line is missing in the count until the next query.
        self.shared
            .contributions
            .store(outbox.open + units.open, Ordering::Relaxed);
        self.shared.bytes.store(outbox.bytes + units.bytes, Ordering::Relaxed);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use types::Size;

    use super::*;
    use crate::config::Limits;
    use crate::testing::{Service, config, limits};

    #[tokio::test]
    async fn a_full_backlog_refuses_until_the_database_has_room() {
        let limits = Limits {
            open_contributions: 3,
            ..limits()
        };
        let service = Service::with(config(), limits).await;
        let token = service.operator().await;
        let key = service.agent(&token, "contributor").await;
        service.project(&key, "gauges", &json!({})).await;
        let contribute = async |name: u32| {
            let body = json!({"records": [{"name": format!("n{name}")}]}).to_string();
            let path = "/projects/gauges/contribute";
            service.call("POST", path, Some(&key), &body).await
        };
        let mut ids = Vec::new();
        for number in 0..3 {
            let got = contribute(number).await;
            assert_eq!(got.status, 201);
            ids.push(got.json()["id"].as_str().unwrap().parse().unwrap());
        }
        let refused = contribute(3).await;
        assert_eq!(refused.status, 503);
        assert_eq!(refused.json()["error"], "backlog_full");
        assert_eq!(refused.headers["retry-after"], "5");

        // What the database has is the truth: all three still wait there.
        let backlog = &service.app.backlog;
        backlog.count(&service.app.store).await.unwrap();
        assert_eq!(backlog.rejection(), Some(BacklogRefusal::Backlog));
        let rejected = store::OutcomeRow {
            id: ids[0],
            generation: 0,
            at: service.app.clock.now(),
            resolution: store::Resolution::Rejected {
                code: "duplicates".to_owned(),
                message: "nothing new".to_owned(),
            },
            tallies: "[]".to_owned(),
            verdicts: "[]".to_owned(),
        };
        assert!(service.app.store.outcomes_apply(vec![rejected]).await.unwrap()[0].changed);
        backlog.count(&service.app.store).await.unwrap();
        assert_eq!(contribute(3).await.status, 201);

        backlog.count(&service.app.store).await.unwrap();
        backlog.set_disk_has_space(false);
        let refused = contribute(4).await;
        assert_eq!(
            (refused.status.as_u16(), &refused.json()["error"]),
            (503, &json!("storage_full"))
        );
    }

    #[test]
    fn bytes_fill_a_backlog_too() {
        let backlog = Backlog::of(&Limits {
            open_contributions: 10,
            open_bytes: Size(100),
            ..limits()
        });
        backlog.add(99);
        assert_eq!(backlog.rejection(), None);
        backlog.add(1);
        assert_eq!(backlog.rejection(), Some(BacklogRefusal::Backlog));
    }
}

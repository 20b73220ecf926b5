use async_trait::async_trait;
use eventlog::{Bounds, Embedded, EmbeddedOptions, Error, Position, Record, Subscription};
use messages::{BASE_FORMAT, ContributionOutcome, Resolution};
use serde_json::json;
use store::{Contribution, ContributionStatus, OutcomeRow};
use tokio::task::JoinHandle;
use tokio::time::Instant;
use types::{ContributionId, DatasetId, Timestamp};

use super::*;
use crate::testing::Service;

/// A replica with a request that waits, and a log of which another replica projects the outcomes.
struct Fixture {
    service: Service,
    log: Arc<Embedded>,
    id: ContributionId,
    _folder: tempfile::TempDir,
}

impl Fixture {
    async fn start() -> Self {
        let service = Service::start().await;
        let token = service.operator().await;
        let key = service.agent(&token, "contributor").await;
        service.project(&key, "gauges", &json!({})).await;
        let body = r#"{"records":[{"name":"a"}]}"#;
        let got = service
            .call("POST", "/projects/gauges/contribute", Some(&key), body)
            .await;
        let folder = tempfile::tempdir().unwrap();
        Self {
            id: got.json()["id"].as_str().unwrap().parse().unwrap(),
            log: Embedded::open(folder.path().join("log"), EmbeddedOptions::default()).unwrap(),
            service,
            _folder: folder,
        }
    }

    /// A request that waits for as long as a request may.
    fn waiting(&self) -> JoinHandle<Contribution> {
        let (waiters, store, id) = (
            self.service.app.waiters.clone(),
            self.service.app.store.clone(),
            self.id,
        );
        tokio::spawn(async move {
            let found = waiters.outcome(&store, id, Duration::from_secs(20)).await;
            found.unwrap().unwrap()
        })
    }

    /// Waits until the request is registered.
    async fn waits(&self) {
        while self.service.app.waiters.is_empty() {
            tokio::task::yield_now().await;
        }
    }

    /// Appends the outcome to the log, as the other replica's worker does.
    async fn publish(&self) {
        let outcome = ContributionOutcome {
            format: BASE_FORMAT,
            contribution: self.id,
            generation: 0,
            dataset: DatasetId::new(Timestamp::from_micros(1)),
            at: Timestamp::from_micros(1),
            resolution: Resolution::Rejected {
                code: "refused".to_owned(),
                message: "no".to_owned(),
            },
            rows: 1,
            verdicts: Vec::new(),
            tallies: Vec::new(),
            traceparent: None,
        };
        self.log
            .append(OUTCOMES_TOPIC, vec![outcome.record().unwrap()])
            .await
            .unwrap();
    }

    /// Applies the outcome to the database, as the other replica's projector does.
    async fn projected(&self) {
        let row = OutcomeRow {
            id: self.id,
            generation: 0,
            at: Timestamp::from_micros(1),
            resolution: Resolution::Rejected {
                code: "refused".to_owned(),
                message: "no".to_owned(),
            },
            tallies: "[]".to_owned(),
            verdicts: "[]".to_owned(),
        };
        self.service.app.store.outcomes_apply(vec![row]).await.unwrap();
    }

    fn follow(&self, log: Arc<dyn EventLog>) -> (CancellationToken, JoinHandle<()>) {
        let stop = CancellationToken::new();
        let follower = Follower::new(log, self.service.app.waiters.clone());
        (stop.clone(), tokio::spawn(follower.run(stop)))
    }
}

/// A log, or the rest of one, that fails at every call.
#[derive(Debug)]
struct Down;

fn down() -> Error {
    Error::Closed
}

#[async_trait]
impl EventLog for Down {
    async fn append(&self, _: &str, _: Vec<Record>) -> Result<Vec<Position>, Error> {
        Err(down())
    }

    async fn subscribe(&self, _: &str, _: &str) -> Result<Box<dyn Subscription>, Error> {
        Err(down())
    }

    async fn recent(&self, _: &str, _: u64) -> Result<Box<dyn Subscription>, Error> {
        Err(down())
    }

    async fn keep(&self, _: &str, _: u64) -> Result<(), Error> {
        Err(down())
    }

    async fn bounds(&self, _: &str) -> Result<Vec<Bounds>, Error> {
        Err(down())
    }
}

#[tokio::test]
async fn a_request_is_answered_when_the_outcome_of_another_replica_is_in_the_database() {
    let fixture = Fixture::start().await;
    let (stop, following) = fixture.follow(Arc::clone(&fixture.log) as Arc<dyn EventLog>);
    let waiting = fixture.waiting();
    fixture.waits().await;
    let started = Instant::now();
    // The tail is ahead of the projection. It may not have begun yet, so the outcome is appended until the follower
    // sees it.
    while !fixture.service.app.waiters.is_logged(fixture.id) {
        fixture.publish().await;
    }
    assert!(!waiting.is_finished(), "the row is not there yet");
    fixture.projected().await;
    let row = waiting.await.unwrap();
    assert_eq!(row.status, ContributionStatus::Rejected);
    assert!(started.elapsed() < Duration::from_secs(2), "{:?}", started.elapsed());
    stop.cancel();
    following.await.unwrap();
}

#[tokio::test]
async fn a_request_is_answered_within_its_wait_also_while_the_log_is_down() {
    let fixture = Fixture::start().await;
    let (stop, following) = fixture.follow(Arc::new(Down));
    let waiting = fixture.waiting();
    fixture.waits().await;
    let started = Instant::now();
    fixture.projected().await;
    let row = waiting.await.unwrap();
    assert_eq!(row.status, ContributionStatus::Rejected);
    assert!(started.elapsed() < Duration::from_secs(15), "{:?}", started.elapsed());
    assert!(!following.is_finished(), "a log that is down does not end the follower");
    stop.cancel();
    following.await.unwrap();
}

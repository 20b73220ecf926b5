use std::sync::atomic::{AtomicI64, Ordering};

use async_trait::async_trait;
use eventlog::{Bounds, Embedded, EmbeddedOptions, Error, Position, Subscription};
use serde_json::json;
use tempfile::TempDir;
use types::HumanDuration;

use super::*;
use crate::state::sweeper_config::SweeperConfig;
use crate::testing::Service;

/// A service whose relay is never run, with contributions acknowledged, and a log of its own for the sweeper.
async fn world(contributions: usize) -> (Service, Arc<Embedded>, TempDir, Sweeper) {
    let service = Service::start().await;
    let token = service.operator().await;
    let key = service.agent(&token, "contributor").await;
    service.project(&key, "gauges", &json!({})).await;
    for number in 0..contributions {
        let body = json!({"records": [{"name": format!("n{number}")}]}).to_string();
        let got = service
            .call("POST", "/projects/gauges/contribute", Some(&key), &body)
            .await;
        assert_eq!(got.status, 201);
    }
    let directory = tempfile::tempdir().unwrap();
    let log = Embedded::open(
        directory.path(),
        EmbeddedOptions {
            partitions: 1,
            retain: 10,
        },
    )
    .unwrap();
    let config = SweeperConfig {
        every: HumanDuration(Duration::from_secs(1)),
        first: HumanDuration(Duration::from_secs(30)),
    };
    let clock = Arc::clone(&service.app.clock);
    let sweeper = Sweeper::new(
        service.app.store.clone(),
        Arc::clone(&log) as Arc<dyn EventLog>,
        clock,
        config,
        Duration::from_hours(24),
    );
    (service, log, directory, sweeper)
}

/// A log that refuses large records, and accepts a given number of appends.
#[derive(Debug)]
struct Picky {
    log: Arc<Embedded>,
    largest: usize,
    appends: AtomicI64,
}

#[async_trait]
impl EventLog for Picky {
    async fn append(&self, topic: &str, records: Vec<Record>) -> Result<Vec<Position>, Error> {
        if self.appends.fetch_sub(1, Ordering::SeqCst) <= 0 {
            return Err(Error::Closed);
        }
        if let Some(large) = records.iter().find(|record| record.value.len() > self.largest) {
            return Err(Error::TooLarge {
                bytes: large.value.len(),
                limit: self.largest,
            });
        }
        self.log.append(topic, records).await
    }

    async fn subscribe(&self, topic: &str, group: &str) -> Result<Box<dyn Subscription>, Error> {
        self.log.subscribe(topic, group).await
    }

    async fn recent(&self, topic: &str, count: u64) -> Result<Box<dyn Subscription>, Error> {
        self.log.recent(topic, count).await
    }

    async fn keep(&self, topic: &str, count: u64) -> Result<(), Error> {
        self.log.keep(topic, count).await
    }

    async fn bounds(&self, topic: &str) -> Result<Vec<Bounds>, Error> {
        self.log.bounds(topic).await
    }
}

/// Returns the same sweeper on a log that refuses some records.
fn picky(sweeper: Sweeper, log: &Arc<Embedded>, largest: usize, appends: i64) -> Sweeper {
    let log = Arc::new(Picky {
        log: Arc::clone(log),
        largest,
        appends: AtomicI64::new(appends),
    });
    Sweeper { log, ..sweeper }
}

async fn appended(log: &Embedded) -> u64 {
    log.bounds(CONTRIBUTIONS_TOPIC)
        .await
        .unwrap()
        .iter()
        .map(|bounds| bounds.next)
        .sum()
}

#[tokio::test]
async fn everything_open_at_the_start_is_appended_at_once() {
    let open = 2 * SUBMISSIONS_PER_PAGE as usize + 3;
    let (_service, log, _directory, sweeper) = world(open).await;
    assert_eq!(sweeper.everything(&mut None).await.unwrap(), open);
    assert_eq!(appended(&log).await, open as u64);
    let mut subscription = log.subscribe(CONTRIBUTIONS_TOPIC, "test").await.unwrap();
    let mut names = std::collections::HashSet::new();
    for delivered in subscription.next(open).await.unwrap() {
        let submission = messages::Submission::decode(&delivered.record.value).unwrap();
        assert_eq!(delivered.record.key, submission.dataset.as_bytes()[..]);
        let messages::Source::Inline(records) = submission.source else {
            panic!("not an upload");
        };
        names.insert(records.values().unwrap()[0]["name"].clone());
    }
    assert_eq!(names, (0..open).map(|number| json!(format!("n{number}"))).collect());
}

#[tokio::test]
async fn what_is_due_is_appended_again_and_later_each_time() {
    let (service, log, _directory, sweeper) = world(1).await;
    assert_eq!(sweeper.due(false).await.unwrap(), 0);
    let mut total = 0;
    // 30 seconds after the acknowledgement, then 30, 60, 120 seconds after the one before.
    for wait in [30, 30, 60, 120] {
        service.clock.advance(Duration::from_millis(wait * 1000 - 1));
        assert_eq!(sweeper.due(false).await.unwrap(), 0, "before {wait} seconds");
        service.clock.advance(Duration::from_millis(1));
        assert_eq!(sweeper.due(false).await.unwrap(), 1, "after {wait} seconds");
        total += 1;
        assert_eq!(appended(&log).await, total);
    }
}

#[tokio::test]
async fn a_submission_that_the_log_does_not_take_keeps_no_other_waiting() {
    let (service, log, _directory, sweeper) = world(3).await;
    let open = service
        .app
        .store
        .contributions_open_at_start(SUBMISSIONS_PER_PAGE, None)
        .await
        .unwrap();
    let smallest = open.iter().map(|due| due.submission.len()).min().unwrap();
    let token = service.operator().await;
    let key = service.agent(&token, "other").await;
    service.project(&key, "tides", &json!({})).await;
    let large = json!({"records": [{"name": (0..5_000).map(|number| number.to_string()).collect::<String>()}]});
    let contribute = async |body: &serde_json::Value| {
        let got = service
            .call("POST", "/projects/tides/contribute", Some(&key), &body.to_string())
            .await;
        assert_eq!(got.status, 201);
    };
    contribute(&large).await;
    contribute(&json!({"records": [{"name": "after it"}]})).await;

    let sweeper = picky(sweeper, &log, smallest + 1_000, i64::MAX);
    assert_eq!(sweeper.everything(&mut None).await.unwrap(), 4);
    assert_eq!(appended(&log).await, 4);
    // Each is due again at its time, the refused one too: the limit of the log may be raised.
    service.clock.advance(Duration::from_secs(30));
    assert_eq!(sweeper.due(false).await.unwrap(), 4);
    assert_eq!(sweeper.due(false).await.unwrap(), 0);
    let lenient = picky(sweeper, &log, usize::MAX, i64::MAX);
    service.clock.advance(Duration::from_mins(1));
    assert_eq!(lenient.due(false).await.unwrap(), 5);
}

#[tokio::test]
async fn a_beginning_that_was_broken_off_is_gone_on_with() {
    let page = SUBMISSIONS_PER_PAGE as usize;
    let (_service, log, _directory, sweeper) = world(3 * page).await;
    let sweeper = picky(sweeper, &log, usize::MAX, 2);
    let mut after = None;
    assert!(sweeper.everything(&mut after).await.is_err());
    assert_eq!(appended(&log).await, 2 * u64::from(SUBMISSIONS_PER_PAGE));
    let sweeper = picky(sweeper, &log, usize::MAX, i64::MAX);
    assert_eq!(sweeper.everything(&mut after).await.unwrap(), page);
    assert_eq!(appended(&log).await, 3 * u64::from(SUBMISSIONS_PER_PAGE));
}

#[tokio::test]
async fn idempotency_keys_are_forgotten_after_their_time_and_not_before() {
    let (service, _log, _directory, sweeper) = world(0).await;
    let token = service.operator().await;
    let key = service.agent(&token, "repeater").await;
    service.project(&key, "tides", &json!({})).await;
    let contribute = async || {
        let request = http::Request::post("/projects/tides/contribute")
            .header("authorization", format!("Bearer {key}"))
            .header("idempotency-key", "once");
        let body = json!({"records": [{"name": "n"}]}).to_string();
        service.send(request.body(body.into()).unwrap()).await.status
    };
    assert_eq!(contribute().await, 201);
    service.clock.advance(Duration::from_hours(24));
    assert_eq!(sweeper.forget_keys().await.unwrap(), 0);
    service.clock.advance(Duration::from_millis(1));
    assert_eq!(sweeper.forget_keys().await.unwrap(), 1);
    assert_eq!(contribute().await, 201);
}

/// Contributions and units are appended by the same rule.
#[tokio::test]
async fn a_log_that_is_down_refuses_no_record() {
    let directory = tempfile::tempdir().unwrap();
    let options = EmbeddedOptions {
        partitions: 1,
        retain: 10,
    };
    let log = Picky {
        log: Embedded::open(directory.path(), options).unwrap(),
        largest: 100,
        // All at once, then the first and the second.
        appends: AtomicI64::new(3),
    };
    let record = |bytes: usize| Record {
        key: Bytes::new(),
        value: vec![b'x'; bytes].into(),
    };
    let told = std::sync::Mutex::new(Vec::new());
    let records = vec![record(200), record(1), record(1)];
    let end = append_all(&log, CONTRIBUTIONS_TOPIC, records, |place, error| {
        told.lock().unwrap().push((place, error.to_string()));
    });
    assert!(matches!(end.await, Err(Error::Closed)));
    let told = told.into_inner().unwrap();
    assert_eq!(told.iter().map(|(place, _)| *place).collect::<Vec<_>>(), [0]);
}

//! The table line over the embedded log and local tables: order, isolation, holds, poison, restarts.
//!
//! Invariant: everything is asserted through the log and the catalog; nothing looks inside a worker.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::tests_outside_test_module,
    reason = "an integration test is a test module"
)]

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use catalog::Catalog;
use catalog::storage::DurableLocal;
use eventlog::{Embedded, EventLog, Options, Record, Subscription};
use operators::Verdict;
use operators::screen::{Cause, Opinion, Screener, Unavailable};
use pipelines::message::{CONTRIBUTIONS, DEAD_LETTERS, DeadLetter, FORMAT, OUTCOMES, Outcome, Resolution, Submission};
use pipelines::{Config, Worker};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::sync::Semaphore;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use types::clock::ManualClock;
use types::{AgentId, Clock, Contract, ContributionId, DatasetId, Timestamp, Version};

/// A screener that does what the text of a record says.
#[derive(Debug)]
struct Scripted {
    /// Records with `"slow"` take one permit each.
    slow: Semaphore,
    /// Records with `"hold"` are held while this is true.
    holding: Mutex<bool>,
    calls: Mutex<usize>,
}

#[async_trait]
impl Screener for Scripted {
    async fn screen(&self, records: &[&str]) -> Result<Vec<Opinion>, Unavailable> {
        *self.calls.lock().unwrap() += 1;
        if records.iter().any(|record| record.contains("slow")) {
            self.slow.acquire().await.unwrap().forget();
        }
        let fatal = records.iter().any(|record| record.contains("panic"));
        assert!(!fatal, "a screener that panics");
        if records.iter().any(|record| record.contains("hold")) && *self.holding.lock().unwrap() {
            return Err(Unavailable {
                reason: Cause::Budget,
                resumes_after: Some(Timestamp::from_micros(7)),
            });
        }
        Ok(vec![Opinion::Acceptable; records.len()])
    }
}

struct World {
    dir: TempDir,
    log: Arc<Embedded>,
    screener: Arc<Scripted>,
    clock: Arc<ManualClock>,
    outcomes: Box<dyn Subscription>,
    seen: HashMap<ContributionId, Vec<Outcome>>,
    worker: Option<(CancellationToken, JoinHandle<Result<(), pipelines::Error>>)>,
}

fn config() -> Config {
    Config {
        group: "workers".to_owned(),
        judged_ahead: 4,
        lane_bytes: 1 << 20,
        queue_bytes: 8 << 20,
        idle_seconds: 60,
        retry_first_ms: 1,
        retry_most_ms: 10,
        grace_seconds: 10,
    }
}

fn contract() -> Contract {
    serde_json::from_value(json!({"fields": [{"name": "text", "type": "string", "required": true}]})).unwrap()
}

fn texts<const N: usize>(texts: [&str; N]) -> Vec<Value> {
    texts.into_iter().map(|text| json!({"text": text})).collect()
}

impl World {
    async fn new() -> Self {
        let dir = TempDir::new().unwrap();
        // One partition, so that every dataset shares it.
        let log = Embedded::open(
            dir.path().join("log"),
            Options {
                partitions: 1,
                retain: 1_000,
            },
        )
        .unwrap();
        let outcomes = log.subscribe(OUTCOMES, "test").await.unwrap();
        let screener = Scripted {
            slow: Semaphore::new(0),
            holding: Mutex::new(true),
            calls: Mutex::new(0),
        };
        let mut world = Self {
            dir,
            log,
            screener: Arc::new(screener),
            clock: Arc::new(ManualClock::at("2026-11-21T00:00:00Z".parse().unwrap())),
            outcomes,
            seen: HashMap::new(),
            worker: None,
        };
        world.start();
        world
    }

    fn catalog(&self, index: &str) -> Catalog {
        let tables = DurableLocal::open(self.dir.path().join("tables")).unwrap();
        let clock = Arc::clone(&self.clock) as Arc<dyn Clock>;
        Catalog::open(Arc::new(tables), self.dir.path().join(index), clock).unwrap()
    }

    /// What a reader that shares nothing with the worker finds: the latest version and its number of records.
    async fn latest(&self, dataset: DatasetId) -> (Version, u64) {
        let snapshot = self.catalog("reader").snapshot(dataset, None).await.unwrap().unwrap();
        (snapshot.version(), snapshot.record_count())
    }

    fn start(&mut self) {
        let stop = CancellationToken::new();
        let log = Arc::clone(&self.log) as Arc<dyn EventLog>;
        let screener = Arc::clone(&self.screener) as Arc<dyn Screener>;
        let worker = Worker::new(
            log,
            self.catalog("index"),
            screener,
            Arc::clone(&self.clock) as Arc<dyn Clock>,
            config(),
        );
        self.worker = Some((stop.clone(), tokio::spawn(worker.run(stop))));
    }

    async fn stop(&mut self) {
        if let Some((stop, worker)) = self.worker.take() {
            stop.cancel();
            worker.await.unwrap().unwrap();
        }
    }

    fn dataset(&self) -> DatasetId {
        DatasetId::new(self.clock.now())
    }

    fn submission(&self, dataset: DatasetId, records: Vec<Value>) -> Submission {
        Submission {
            format: FORMAT,
            contribution: ContributionId::new(self.clock.now()),
            generation: 0,
            dataset,
            agent: AgentId::new(self.clock.now()),
            private: false,
            contract: contract(),
            submitted_at: self.clock.now(),
            records,
        }
    }

    async fn append(&self, record: Record) {
        self.log.append(CONTRIBUTIONS, vec![record]).await.unwrap();
    }

    async fn submit(&self, dataset: DatasetId, records: Vec<Value>) -> ContributionId {
        let submission = self.submission(dataset, records);
        self.append(submission.record().unwrap()).await;
        submission.contribution
    }

    /// The next outcome of a contribution that was not returned before.
    async fn outcome(&mut self, id: ContributionId) -> Outcome {
        loop {
            if let Some(seen) = self.seen.get_mut(&id).filter(|seen| !seen.is_empty()) {
                return seen.remove(0);
            }
            for delivered in self.outcomes.next(64).await.unwrap() {
                let outcome = Outcome::decode(&delivered.record.value).unwrap();
                self.seen.entry(outcome.contribution).or_default().push(outcome);
            }
        }
    }

    async fn merged(&mut self, id: ContributionId) -> (u64, u64) {
        match self.outcome(id).await.resolution {
            Resolution::Merged { version, accepted, .. } => (version.0, accepted),
            other => panic!("{other:?}"),
        }
    }
}

#[tokio::test]
async fn submissions_of_a_dataset_become_versions_in_order() {
    let mut world = World::new().await;
    let dataset = world.dataset();
    let mut ids = Vec::new();
    for batch in [["a", "b"], ["b", "c"], ["c", "a"], ["d", "d"]] {
        ids.push(world.submit(dataset, texts(batch)).await);
    }
    assert_eq!(world.merged(ids[0]).await, (1, 2));
    assert_eq!(world.merged(ids[1]).await, (2, 1));
    let rejected = world.outcome(ids[2]).await;
    assert!(
        matches!(rejected.resolution, Resolution::Rejected { ref code, .. } if code == "duplicates"),
        "{rejected:?}"
    );
    assert_eq!(rejected.verdicts.len(), 2);
    assert_eq!(world.merged(ids[3]).await, (3, 1));
    assert_eq!(world.latest(dataset).await, (Version(3), 4));
}

#[tokio::test]
async fn a_slow_model_delays_only_its_dataset() {
    let mut world = World::new().await;
    let (slow, quick) = (world.dataset(), world.dataset());
    let stuck = world.submit(slow, texts(["slow"])).await;
    let behind = world.submit(slow, texts(["behind"])).await;
    for index in 0..20 {
        let id = world.submit(quick, vec![json!({"text": format!("q{index}")})]).await;
        assert_eq!(world.merged(id).await, (index + 1, 1));
    }
    assert!(!world.seen.contains_key(&stuck) && !world.seen.contains_key(&behind));
    world.screener.slow.add_permits(1);
    assert_eq!(world.merged(stuck).await, (1, 1));
    assert_eq!(world.merged(behind).await, (2, 1));
}

#[tokio::test]
async fn a_full_lane_leaves_messages_out_instead_of_waiting() {
    let mut world = World::new().await;
    let (slow, quick) = (world.dataset(), world.dataset());
    let stuck = world.submit(slow, texts(["slow"])).await;
    let large = "x".repeat(400_000);
    let mut flood = Vec::new();
    for index in 0..8 {
        flood.push(world.submission(slow, vec![json!({"text": format!("{index}{large}")})]));
    }
    for submission in &flood {
        world.append(submission.record().unwrap()).await;
    }
    let id = world.submit(quick, texts(["quick"])).await;
    assert_eq!(world.merged(id).await, (1, 1));
    world.screener.slow.add_permits(1);
    assert_eq!(world.merged(stuck).await, (1, 1));
    // What was left out has no outcome; the marketplace appends it again and it is merged once.
    for submission in &flood {
        world.append(submission.record().unwrap()).await;
        world.merged(submission.contribution).await;
    }
    assert_eq!(world.latest(slow).await.1, 9);
}

#[tokio::test]
async fn a_hold_lets_the_line_go_on_and_is_judged_when_it_comes_again() {
    let mut world = World::new().await;
    let dataset = world.dataset();
    let held = world.submission(dataset, texts(["hold"]));
    world.append(held.record().unwrap()).await;
    let next = world.submit(dataset, texts(["next"])).await;
    let waiting = world.outcome(held.contribution).await;
    assert!(
        matches!(waiting.resolution, Resolution::Waiting { ref reason, resumes_after: Some(_) } if reason == "budget"),
        "{waiting:?}"
    );
    assert_eq!(world.merged(next).await, (1, 1));
    *world.screener.holding.lock().unwrap() = false;
    world.append(held.record().unwrap()).await;
    assert_eq!(world.merged(held.contribution).await, (2, 1));
}

#[tokio::test]
async fn a_private_dataset_is_not_screened() {
    let mut world = World::new().await;
    let submission = Submission {
        private: true,
        ..world.submission(world.dataset(), texts(["hold"]))
    };
    world.append(submission.record().unwrap()).await;
    assert_eq!(world.merged(submission.contribution).await, (1, 1));
    assert_eq!(*world.screener.calls.lock().unwrap(), 0);
}

#[tokio::test]
async fn poison_goes_to_the_dead_letters_and_blocks_nobody() {
    let mut world = World::new().await;
    let mut letters = world.log.subscribe(DEAD_LETTERS, "test").await.unwrap();
    let dataset = world.dataset();
    let good = world.submission(dataset, texts(["good"]));
    let other_contract = serde_json::from_value(json!({"fields": [{"name": "n", "type": "integer"}]})).unwrap();
    let contradicting = Submission {
        contract: other_contract,
        ..world.submission(dataset, texts(["x"]))
    };
    let panicking = world.submission(dataset, texts(["panic"]));
    let future_format = Submission {
        format: 99,
        ..world.submission(dataset, texts(["x"]))
    };
    let key = good.record().unwrap().key;
    let garbage = Record {
        key: key.clone(),
        value: b"{not json".as_slice().into(),
    };
    let empty = Record {
        key,
        value: b"".as_slice().into(),
    };
    let keyless = Record {
        key: b"short".as_slice().into(),
        value: b"{}".as_slice().into(),
    };
    let poison = [
        garbage,
        good.record().unwrap(),
        contradicting.record().unwrap(),
        panicking.record().unwrap(),
        future_format.record().unwrap(),
        empty,
        keyless,
    ];
    for record in poison {
        world.append(record).await;
    }
    let last = world.submit(dataset, texts(["last"])).await;
    assert_eq!(world.merged(good.contribution).await, (1, 1));
    assert_eq!(world.merged(last).await, (2, 1));
    for submission in [&contradicting, &panicking, &future_format] {
        let outcome = world.outcome(submission.contribution).await;
        assert!(
            matches!(outcome.resolution, Resolution::Rejected { ref code, .. } if code == "unprocessable"),
            "{outcome:?}"
        );
    }
    let mut seen: Vec<DeadLetter> = Vec::new();
    while seen.len() < 6 {
        let batch = letters.next(64).await.unwrap();
        seen.extend(
            batch
                .iter()
                .map(|delivered| serde_json::from_slice::<DeadLetter>(&delivered.record.value).unwrap()),
        );
    }
    assert!(
        seen.iter()
            .any(|letter| letter.contribution == Some(contradicting.contribution))
    );
    assert!(
        seen.iter()
            .all(|letter| !letter.reason.is_empty() && letter.topic == CONTRIBUTIONS)
    );
}

#[tokio::test]
async fn a_restart_decides_nothing_twice() {
    let mut world = World::new().await;
    let dataset = world.dataset();
    let merged = world.submission(dataset, texts(["a", "a", "b"]));
    let rejected = world.submission(dataset, vec![json!({"text": 1})]);
    for submission in [&merged, &rejected] {
        world.append(submission.record().unwrap()).await;
    }
    let first = world.outcome(merged.contribution).await;
    world.outcome(rejected.contribution).await;
    world.stop().await;
    world.start();
    // Delivered again: the merged one adopts its version or is known to be decided, the rejected one stays decided.
    for submission in [&merged, &rejected] {
        world.append(submission.record().unwrap()).await;
    }
    let fence = world.submit(dataset, texts(["fence"])).await;
    assert_eq!(world.merged(fence).await, (2, 1));
    assert!(world.seen.values().all(Vec::is_empty), "{:?}", world.seen);
    assert_eq!(first.verdicts.len(), 1);
    assert!(matches!(first.verdicts[0].verdict, Verdict::Drop { .. }));
}

#[tokio::test]
async fn a_merge_whose_outcome_was_lost_gives_the_same_outcome_again() {
    let mut world = World::new().await;
    let dataset = world.dataset();
    let submission = world.submission(dataset, texts(["a", "a", "b"]));
    world.append(submission.record().unwrap()).await;
    let first = world.outcome(submission.contribution).await;
    world.stop().await;
    // A new log: no position and no outcome is left, only the table.
    world.log = Embedded::open(
        world.dir.path().join("log-2"),
        Options {
            partitions: 1,
            retain: 1_000,
        },
    )
    .unwrap();
    world.outcomes = world.log.subscribe(OUTCOMES, "test").await.unwrap();
    world.start();
    world.append(submission.record().unwrap()).await;
    assert_eq!(world.outcome(submission.contribution).await, first);
    assert_eq!(world.latest(dataset).await, (Version(1), 2));
}

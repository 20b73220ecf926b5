//! Two replicas and three workers on Kafka, `PostgreSQL`, an S3 server and Redis: the same flow as on embedded parts, with
//! every part failing under it.
//!
//! Invariant: a fault that did not happen fails the run. Work is only added while a fault lasts or between faults, never to
//! cover up what one of them lost: the check at the end waits for what was acknowledged and for nothing else.

use std::collections::BTreeSet;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use reqwest::Method;
use s3_server::{Fault, Rule};
use serde_json::{Value, json};
use store::testing::Stop;
use tests::server::{DEADLINE, POLL};
use tests::topology::Parts;
use tests::world::{Agent, Operator, batch, contribute, decided, merged, project_body, records};
use tests::{Http, Server};

use crate::binary;

/// Datasets, so that every worker has some.
const DATASETS: usize = 4;
/// Records of a batch.
const RECORDS: usize = 5;
/// How many acknowledgements a fault lasts for, at the least.
const UNDER_FAULT: usize = 12;

/// The running topology and what clients did on it.
struct Site {
    parts: Parts,
    replicas: Vec<Server>,
    workers: Vec<Server>,
    agent: Agent,
    slugs: Vec<String>,
    /// Acknowledged contributions, with their datasets.
    acknowledged: Mutex<Vec<(usize, String)>>,
    sent: AtomicUsize,
    refused: AtomicUsize,
}

impl Site {
    async fn build() -> Option<Self> {
        let parts = Parts::start(binary()).await?;
        let replicas = vec![parts.replica("api-0").await, parts.replica("api-1").await];
        let mut workers = Vec::new();
        for number in 0..3 {
            workers.push(parts.worker(&format!("worker-{number}")).await);
        }
        let operator = Operator::create(replicas[0].options(), "first");
        let agent = Agent::create(&replicas[0].http(), &operator, "first.agent").await;
        let mut slugs = Vec::new();
        for number in 0..DATASETS {
            let slug = format!("dataset-{number}");
            let body = merged(project_body(&slug), json!({}));
            agent.http.post("/projects", &body).await.expect(201);
            slugs.push(slug);
        }
        Some(Self {
            parts,
            replicas,
            workers,
            agent,
            slugs,
            acknowledged: Mutex::default(),
            sent: AtomicUsize::new(0),
            refused: AtomicUsize::new(0),
        })
    }

    fn http(&self, replica: usize) -> Http {
        self.agent.at(&self.replicas[replica % self.replicas.len()].http()).http
    }

    /// Sends a batch that nobody else sends, again under its key until it is acknowledged or refused by `gone`.
    async fn send(&self, gone: &AtomicBool) {
        let number = self.sent.fetch_add(1, Ordering::Relaxed);
        let dataset = number % DATASETS;
        let path = format!("/projects/{}/contribute", self.slugs[dataset]);
        let body = batch(&records(&format!("series {number}"), RECORDS)).to_string();
        let key = format!("batch-{number}");
        for attempt in 0.. {
            let http = self.http(number + attempt);
            let headers = [("idempotency-key", key.as_str())];
            let answer = http
                .send(Method::POST, &path, &headers, Some(body.clone().into()))
                .await;
            match answer {
                Ok(answer) if matches!(answer.code(), 200 | 201) => {
                    let id = answer.text("/id").to_owned();
                    self.acknowledged.lock().unwrap().push((dataset, id));
                    return;
                }
                Ok(answer) => {
                    assert_eq!(answer.code(), 503, "{}", answer.body);
                    assert!(!answer.header("retry-after").is_empty(), "a 503 says when to try again");
                    self.refused.fetch_add(1, Ordering::Relaxed);
                }
                Err(error) => panic!("a replica did not answer: {error:?}"),
            }
            // Whoever gives up does not know whether it was acknowledged: it goes on until it does.
            tokio::time::sleep(POLL * if gone.load(Ordering::Relaxed) { 20 } else { 4 }).await;
        }
    }

    /// Sends from four clients until `fault` is over and [`UNDER_FAULT`] more batches are acknowledged.
    async fn under<T>(&self, fault: impl Future<Output = T>) -> T {
        let over = AtomicBool::new(false);
        let before = self.acknowledged.lock().unwrap().len();
        let enough = || self.acknowledged.lock().unwrap().len() >= before + UNDER_FAULT;
        let client = async || {
            while !over.load(Ordering::Relaxed) || !enough() {
                self.send(&over).await;
            }
        };
        let fault = async {
            let done = fault.await;
            over.store(true, Ordering::Relaxed);
            done
        };
        let (done, ..) = tokio::join!(fault, client(), client(), client(), client());
        done
    }

    /// Waits for what was acknowledged, asked of either replica, and holds the datasets against it.
    async fn judge(&self) {
        let acknowledged = std::mem::take(&mut *self.acknowledged.lock().unwrap());
        let mut versions = vec![BTreeSet::new(); DATASETS];
        let mut ids = BTreeSet::new();
        for (number, (dataset, id)) in acknowledged.into_iter().enumerate() {
            assert!(ids.insert(id.clone()), "acknowledged twice: {id}");
            let outcome = decided(&self.http(number), &self.slugs[dataset], &id).await;
            assert_eq!(outcome.text("/status"), "merged", "{}", outcome.body);
            assert_eq!(outcome.body["acceptedCount"], RECORDS, "{}", outcome.body);
            let version = outcome.body["mergedVersion"].as_u64().unwrap();
            assert!(versions[dataset].insert(version), "version {version} twice");
        }
        for (dataset, slug) in self.slugs.iter().enumerate() {
            let newest = versions[dataset].len() as u64;
            assert!(
                versions[dataset].iter().copied().eq(1..=newest),
                "{slug}: versions with gaps"
            );
            for replica in 0..2 {
                let rows = exported(&self.http(replica), slug, newest).await;
                assert_eq!(rows.len() as u64, newest * RECORDS as u64, "{slug}");
                let distinct: BTreeSet<_> = rows.iter().map(Value::to_string).collect();
                assert_eq!(distinct.len(), rows.len(), "{slug}: a record twice");
            }
        }
        let checked = self.replicas[0].options().run(&["check"]);
        let said = String::from_utf8_lossy(&checked.stdout).into_owned();
        assert!(checked.status.success(), "{said}");
    }
}

/// Every record of a version.
async fn exported(http: &Http, slug: &str, version: u64) -> Vec<Value> {
    let answer = http
        .get(&format!("/projects/{slug}/export?version={version}"))
        .await
        .expect(200);
    let lines = answer
        .bytes
        .split(|byte| *byte == b'\n')
        .filter(|line| !line.is_empty());
    lines.map(|line| serde_json::from_slice(line).unwrap()).collect()
}

/// Waits until `seconds` are over: a fault has to last.
async fn lasting(seconds: u64) {
    tokio::time::sleep(Duration::from_secs(seconds)).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_flow_of_one_machine_on_many() {
    let Some(site) = Site::build().await else { return };
    let (one, other) = (site.http(0), site.http(1));
    let slug = site.slugs[0].clone();
    for number in 0..6 {
        let http = if number % 2 == 0 { &one } else { &other };
        let outcome = contribute(http, &slug, &records(&format!("s{number}"), 10)).await;
        assert_eq!(outcome.body["mergedVersion"], number + 1, "{}", outcome.body);
    }
    for http in [&one, &other] {
        assert_eq!(exported(http, &slug, 6).await.len(), 60);
        let page = http
            .get(&format!("/projects/{slug}/data?version=3&limit=1000"))
            .await
            .expect(200);
        assert_eq!(page.body["items"].as_array().unwrap().len(), 30);
        let diff = http
            .get(&format!("/projects/{slug}/diff?from=2&to=4"))
            .await
            .expect(200);
        assert_eq!(diff.body["items"].as_array().unwrap().len(), 20);
        let sql = json!({"sql": "SELECT count(*) AS n FROM records", "version": 5});
        let answer = http.post(&format!("/projects/{slug}/query"), &sql).await.expect(200);
        assert_eq!(answer.body["rows"], json!([[50]]));
        let ready = http.get("/readyz").await.expect(200);
        assert_eq!((ready.text("/db"), ready.text("/cache")), ("ok", "ok"));
    }
    // What a buyer pulls comes from the bucket itself, and proves itself.
    let folder = site.parts.folder().join("pulled");
    let known = site.parts.folder().join("known-keys.json");
    let pull = std::process::Command::new(binary())
        .args([
            "pull",
            &slug,
            "--version",
            "6",
            "--server",
            site.replicas[1].base(),
            "--dir",
        ])
        .arg(&folder)
        .arg("--known-keys")
        .arg(&known)
        .env("SLUICE_KEY", &site.agent.key)
        .output()
        .unwrap();
    assert!(pull.status.success(), "{}", String::from_utf8_lossy(&pull.stderr));
    let duplicate = contribute(&other, &slug, &records("s0", 10)).await;
    assert_eq!(duplicate.text("/status"), "rejected", "{}", duplicate.body);
    let checked = site.replicas[1].options().run(&["check"]);
    assert!(checked.status.success(), "{}", String::from_utf8_lossy(&checked.stdout));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_is_lost_or_doubled_whatever_part_fails() {
    let Some(mut site) = Site::build().await else { return };
    site.under(async {}).await;

    let worker = site.workers.remove(0);
    site.under(async { worker.kill() }).await;
    site.workers.push(site.parts.worker("worker-3").await);

    // Longer than its session: another has its partitions when it goes on.
    let zombie = &site.workers[0];
    site.under(async {
        zombie.hang();
        lasting(10).await;
        zombie.go_on();
    })
    .await;

    site.under(async {
        tokio::task::block_in_place(|| site.parts.broker.kill()).unwrap();
        lasting(5).await;
        tokio::task::block_in_place(|| site.parts.broker.resume_after_kill()).unwrap();
    })
    .await;

    let refused = site.refused.load(Ordering::Relaxed);
    site.under(async {
        tokio::task::block_in_place(|| site.parts.postgres.stop(Stop::Immediate));
        lasting(2).await;
        tokio::task::block_in_place(|| site.parts.postgres.run_again());
    })
    .await;
    assert!(
        site.refused.load(Ordering::Relaxed) > refused,
        "nobody noticed that the database was gone"
    );

    let faults = site.parts.objects.faults();
    let kinds = [
        Fault::Internal,
        Fault::SlowDown,
        Fault::DoneThenInternal,
        Fault::LostAnswer,
    ];
    for fault in kinds {
        faults.add(Rule::share(fault, "PUT", 60));
    }
    faults.add(Rule::share(Fault::Conflict, "PUT", 60));
    site.under(async {
        let deadline = Instant::now() + DEADLINE;
        while kinds
            .iter()
            .chain([&Fault::Conflict])
            .any(|fault| faults.happened(*fault) == 0)
        {
            assert!(Instant::now() < deadline, "a fault of the store never happened");
            lasting(1).await;
        }
    })
    .await;
    faults.clear();

    site.parts.cache.kill();
    site.under(lasting(2)).await;
    site.parts.cache.restart().await;

    site.judge().await;
    eprintln!(
        "{} batches sent, {} answers of 503",
        site.sent.load(Ordering::Relaxed),
        site.refused.load(Ordering::Relaxed)
    );
}

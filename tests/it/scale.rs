//! Replicas of the interface and workers on Kafka, `PostgreSQL`, an S3 server and Redis: the same flow as on embedded
//! parts, with every part failing under it.
//!
//! Invariant: a fault that did not happen fails the run. Work is only added while a fault lasts or between faults,
//! never to cover up what one of them lost: the check at the end waits for what was acknowledged and for nothing else.

mod broker;
mod kills;
mod ledger;
mod lethal;
mod rolling;
mod site;
mod topics;

use std::path::Path;
use std::time::{Duration, Instant};

use eventlog::testing;
use s3_server::{Fault, Rule};
use serde_json::json;
use store::testing::Stop;
use tests::crash::Counters;
use tests::server::{DEADLINE, tail_of};
use tests::topology::Parts;
use tests::world::{contribute, records};

use self::ledger::exported;
use self::site::Site;
use crate::binary;

const WORKER_KILLED: &str = "a worker killed";
const WORKER_HUNG: &str = "a worker hung, and lost partitions";
const BROKER_KILLED: &str = "the broker killed";
const BROKER_ANSWERS_LOST: &str = "bytes of the broker's answers lost";
const DATABASE_STOPPED: &str = "503s without the database";
const STORE_500: &str = "store: 500";
const STORE_503: &str = "store: 503";
const STORE_DONE_500: &str = "store: done, then 500";
const STORE_ANSWER_LOST: &str = "store: done, answer lost";
const STORE_SLOW: &str = "store: slow";
const STORE_SILENT: &str = "store: done, silence";
const STORE_409: &str = "store: 409";
const CACHE_GONE: &str = "the cache gone";
/// What a worker says that lost its partitions.
const REVOKED: &str = "revoked topic=\"sluice.contributions\"";
/// What must have happened at least once in a run.
const FAULTS: [&str; 19] = [
    WORKER_KILLED,
    WORKER_HUNG,
    BROKER_KILLED,
    BROKER_ANSWERS_LOST,
    DATABASE_STOPPED,
    STORE_500,
    STORE_503,
    STORE_DONE_500,
    STORE_ANSWER_LOST,
    STORE_SLOW,
    STORE_SILENT,
    STORE_409,
    CACHE_GONE,
    topics::OUT_OF_RANGE,
    topics::MADE_ANEW,
    topics::TOLD_AGAIN,
    topics::POISON,
    lethal::WORKERS_ENDED,
    lethal::QUARANTINED,
];

/// Waits until `seconds` are over: a fault has to last.
async fn lasting(seconds: u64) {
    tokio::time::sleep(Duration::from_secs(seconds)).await;
}

/// Looks for a contribution in what the processes log: by its id, with the same request on both sides.
fn named_on_both_sides(site: &Site, contribution: &str) {
    let request = |servers: &[tests::Server], event: &str| {
        let logs = servers
            .iter()
            .map(|server| std::fs::read_to_string(server.options().log()).unwrap());
        let log = logs.collect::<String>();
        let line = log
            .lines()
            .find(|line| line.contains(event) && line.contains(contribution));
        let line = line.unwrap_or_else(|| panic!("no line `{event}` for {contribution}"));
        let id = line.split_once("request_id=").expect("a line names its request").1;
        id.trim_start_matches('"').chars().take(36).collect::<String>()
    };
    let acknowledged = request(&site.replicas, "contribution acknowledged");
    assert_eq!(acknowledged, request(&site.workers, "contribution merged"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_flow_of_one_machine_on_many() {
    let Some(parts) = Parts::start(binary()).await else {
        return;
    };
    let site = Site::on(parts).await;
    let (one, other) = (site.http(0), site.http(1));
    let slug = site.ledger.slugs()[0].clone();
    for number in 0..6 {
        let http = if number % 2 == 0 { one } else { other };
        let outcome = contribute(http, &slug, &records(&format!("s{number}"), 10)).await;
        assert_eq!(outcome.body["mergedVersion"], number + 1, "{}", outcome.body);
        named_on_both_sides(&site, outcome.text("/id"));
    }
    for http in [one, other] {
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
    let duplicate = contribute(other, &slug, &records("s0", 10)).await;
    assert_eq!(duplicate.text("/status"), "rejected", "{}", duplicate.body);
    site.replicas[1].options().assert_consistent();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_is_lost_or_doubled_whatever_part_fails() {
    let Some(parts) = Parts::start(binary()).await else {
        return;
    };
    // Through the proxy, which can lose what the broker answers.
    let brokers = parts.broker.proxied();
    let parts = parts.with("SLUICE_FAULT_LETHAL", lethal::LETHAL);
    let mut site = Site::on(parts.with("SLUICE__LOG__BROKERS", brokers)).await;
    site.under(async {}).await;
    let mut faults = Counters::default();
    workers_fail(&mut site, &mut faults).await;
    the_broker_fails(&site, &mut faults).await;
    the_database_fails(&site, &mut faults).await;
    the_store_of_the_tables_fails(&site, &mut faults).await;
    the_cache_fails(&mut site, &mut faults).await;
    topics::fail(&site, &mut faults).await;
    lethal::comes(&mut site, &mut faults).await;
    site.judge().await;
    eprintln!(
        "{} batches sent, {} answers of 503\n{}",
        site.sent(),
        site.refused(),
        faults.lines()
    );
    for fault in FAULTS {
        assert!(faults.get(fault) > 0, "`{fault}` never happened");
    }
}

async fn workers_fail(site: &mut Site, faults: &mut Counters) {
    let worker = site.workers.remove(0);
    site.under(async { worker.kill() }).await;
    site.workers.push(site.parts.worker("worker-3").await);
    faults.add(WORKER_KILLED, 1);

    // Once the newcomer has its share, the group is at rest.
    let newcomer = site.workers.last().unwrap().options().log();
    site.under(until(&newcomer, "the worker has these partitions now", 1))
        .await;
    // Longer than its session: another has its partitions when it goes on.
    let zombie = &site.workers[0];
    let log = zombie.options().log();
    let before = lines_with(&log, REVOKED);
    site.under(async {
        zombie.hang();
        lasting(10).await;
        zombie.go_on();
        until(&log, REVOKED, before + 1).await;
    })
    .await;
    faults.add(WORKER_HUNG, lines_with(&log, REVOKED) - before);
}

async fn the_broker_fails(site: &Site, faults: &mut Counters) {
    let broker = &site.parts.broker;
    site.under(async {
        tokio::task::block_in_place(|| broker.kill()).unwrap();
        lasting(5).await;
        tokio::task::block_in_place(|| broker.resume_after_kill()).unwrap();
    })
    .await;
    faults.add(BROKER_KILLED, 1);

    site.under(async {
        broker.proxy().set(testing::Fault::LoseAnswers);
        lasting(5).await;
        broker.proxy().set(testing::Fault::None);
    })
    .await;
    faults.add(BROKER_ANSWERS_LOST, broker.proxy().counts().lost_answers);
}

async fn the_database_fails(site: &Site, faults: &mut Counters) {
    let refused = site.refused();
    site.under(async {
        tokio::task::block_in_place(|| site.parts.postgres.stop(Stop::Immediate));
        lasting(2).await;
        tokio::task::block_in_place(|| site.parts.postgres.run_again());
    })
    .await;
    faults.add(DATABASE_STOPPED, site.refused() - refused);
}

async fn the_store_of_the_tables_fails(site: &Site, faults: &mut Counters) {
    let kinds = [
        (STORE_500, Fault::Internal),
        (STORE_503, Fault::SlowDown),
        (STORE_DONE_500, Fault::DoneThenInternal),
        (STORE_ANSWER_LOST, Fault::LostAnswer),
        (STORE_SLOW, Fault::Slow(Duration::from_secs(1))),
        (STORE_SILENT, Fault::Silence),
        (STORE_409, Fault::Conflict),
    ];
    let store = site.parts.objects.faults();
    for (_, fault) in kinds {
        store.add(Rule::share(fault, "PUT", 30));
    }
    site.under(async {
        lasting(10).await;
        // What chance left out happens to the next that come.
        for (_, fault) in kinds.iter().filter(|(_, fault)| store.happened(*fault) == 0) {
            store.add(Rule::next(*fault, "PUT", "", 1));
        }
        let deadline = Instant::now() + DEADLINE;
        while kinds.iter().any(|(_, fault)| store.happened(*fault) == 0) {
            assert!(Instant::now() < deadline, "a fault of the store never happened");
            lasting(1).await;
        }
    })
    .await;
    for (name, fault) in kinds {
        faults.add(name, store.happened(fault));
    }
    store.clear();
}

async fn the_cache_fails(site: &mut Site, faults: &mut Counters) {
    site.parts.cache.kill();
    site.under(lasting(2)).await;
    let ready = site.http(0).get("/readyz").await;
    faults.add(CACHE_GONE, u64::from(ready.text("/cache") == "down"));
    site.parts.cache.restart().await;
}

/// Waits until so many lines of a log have this.
async fn until(log: &Path, what: &str, count: u64) {
    let deadline = Instant::now() + DEADLINE;
    while lines_with(log, what) < count {
        assert!(Instant::now() < deadline, "never said `{what}`:\n{}", tail_of(log));
        lasting(1).await;
    }
}

/// How many lines of a log have this.
fn lines_with(log: &Path, what: &str) -> u64 {
    let text = std::fs::read_to_string(log).unwrap_or_default();
    text.lines().filter(|line| line.contains(what)).count() as u64
}

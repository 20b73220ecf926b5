//! A batch that ends the process of whichever worker judges it, among batches that do nothing.
//!
//! Invariant: each worker that ends is started again under its name, and ended of nothing else.

use std::os::unix::process::ExitStatusExt as _;
use std::process::ExitStatus;
use std::time::Instant;

use reqwest::Method;
use serde_json::json;
use tests::crash::Counters;
use tests::server::{DEADLINE, tail_of};
use tests::world::batch;
use tests::{Options, Server};

use super::lasting;
use super::site::Site;

pub(super) const WORKERS_ENDED: &str = "workers ended by a batch";
pub(super) const QUARANTINED: &str = "batches quarantined for it";
/// What no worker can bear.
pub(super) const LETHAL: &str = "a text that ends whoever judges it";
/// How many workers may end before the batch is given up: those that judge it without a trial.
const ENDS: u64 = 6;
/// SIGABRT.
const ABORTED: i32 = 6;

pub(super) async fn comes(site: &mut Site, faults: &mut Counters) {
    let mut workers = std::mem::take(&mut site.workers);
    let slug = site.ledger.slugs()[0].clone();
    let body = batch(&[json!({"station": format!("{LETHAL}!"), "sample": 1})]);
    let (id, ends) = site
        .under(async {
            let sent = site.http(0).post(&format!("/projects/{slug}/contribute"), &body).await;
            let id = sent.expect(201).text("/id").to_owned();
            let path = format!("/projects/{slug}/contributions/{id}");
            let mut ends = 0;
            loop {
                for worker in &mut workers {
                    if let Some(status) = worker.exited() {
                        let options = worker.options().clone();
                        ends += ended(&options, status);
                        *worker = started(&options, &mut ends).await;
                    }
                }
                assert!(ends <= ENDS, "workers end again and again");
                let told = site
                    .http(1)
                    .send(Method::GET, &path, &[], None)
                    .await
                    .unwrap()
                    .expect(200);
                if told.text("/status") == "rejected" {
                    assert_eq!(told.text("/reason/code"), "unprocessable", "{}", told.body);
                    break (id, ends);
                }
                assert_eq!(told.text("/status"), "submitted", "{}", told.body);
                lasting(1).await;
            }
        })
        .await;
    site.workers = workers;
    faults.add(WORKERS_ENDED, ends);
    // The letter and the outcome come by two topics, so a caller may see the outcome first.
    let deadline = Instant::now() + DEADLINE;
    let kept = loop {
        let letters = site.replicas[0].options().admin(&["dead-letters", "list"]);
        let letters = letters["items"].as_array().unwrap().iter();
        let its = letters.filter(|letter| letter["contributionId"].as_str() == Some(&*id));
        match its.count() {
            0 => assert!(Instant::now() < deadline, "the batch became no dead letter"),
            kept => break kept,
        }
        lasting(1).await;
    };
    faults.add(QUARANTINED, kept as u64);
}

/// Starts a worker, however often it ends before it answers.
async fn started(options: &Options, ends: &mut u64) -> Server {
    loop {
        match Server::try_start(options).await {
            Ok(server) => return server,
            Err(status) => *ends += ended(options, status),
        }
        assert!(*ends <= ENDS, "workers end again and again");
    }
}

/// An end that the batch is the cause of.
fn ended(options: &Options, status: ExitStatus) -> u64 {
    assert_eq!(status.signal(), Some(ABORTED), "{}", tail_of(&options.log()));
    1
}

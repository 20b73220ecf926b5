//! The broker is away for a minute while clients go on.
//!
//! Invariant: a batch is acknowledged or refused, and the refusal says that nothing was kept. What was acknowledged is
//! bounded, and is merged in its order once the broker is back.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use tests::server::DEADLINE;
use tests::topology::Parts;

use super::lasting;
use super::site::{DATASETS, Site};
use crate::binary;

/// How long the broker is away, in seconds.
const AWAY: u64 = 60;
/// How many contributions may wait for their outcome; the clients send as many in half of the time or less.
const BOUND: u64 = 240;
/// How often each of the clients, one for a dataset, sends a batch.
const PACE: Duration = Duration::from_millis(200);
/// How many batches of each client are acknowledged after the broker is back.
const AFTERWARDS: usize = 3;

/// What clients were told while the broker was away.
#[derive(Debug, Default)]
struct Told {
    acknowledged: AtomicUsize,
    refused: AtomicUsize,
}

/// Sends a batch after the other for one dataset until the broker is back and some more are acknowledged.
async fn client(site: &Site, dataset: usize, away: &AtomicBool, told: &Told) {
    let mut afterwards = 0;
    let deadline = Instant::now() + Duration::from_secs(AWAY) + 2 * DEADLINE;
    while afterwards < AFTERWARDS {
        let batch = site.ledger.batch_for(dataset);
        for attempt in dataset.. {
            assert!(Instant::now() < deadline, "nothing is acknowledged again");
            let was_away = away.load(Ordering::Relaxed);
            let answer = site.ledger.send(site.http(attempt), &batch, 0).await;
            let answer = answer.unwrap_or_else(|error| panic!("a replica did not answer: {error:?}"));
            let counter = match answer.code() {
                200 | 201 => &told.acknowledged,
                503 => {
                    assert_eq!(answer.error(), "backlog_full", "{}", answer.body);
                    assert!(!answer.header("retry-after").is_empty(), "a 503 says when to try again");
                    &told.refused
                }
                other => panic!("{other}: {}", answer.body),
            };
            counter.fetch_add(usize::from(was_away), Ordering::Relaxed);
            tokio::time::sleep(PACE).await;
            if answer.code() != 503 {
                afterwards += usize::from(!was_away);
                break;
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_broker_that_is_away_for_a_minute_bounds_what_is_acknowledged_and_disturbs_no_order() {
    let Some(parts) = Parts::start(binary()).await else {
        return;
    };
    let site = Site::on(parts.with("SLUICE__LIMITS__OPEN_CONTRIBUTIONS", BOUND)).await;
    site.under(async {}).await;
    let (away, told) = (AtomicBool::new(true), Told::default());
    let begun = Instant::now();
    tokio::task::block_in_place(|| site.parts.broker.kill()).unwrap();
    let before = site.ledger.counts();
    let clients = (0..DATASETS).map(|dataset| client(&site, dataset, &away, &told));
    let outage = async {
        lasting(AWAY).await;
        away.store(false, Ordering::Relaxed);
        let at_the_end = site.ledger.counts();
        tokio::task::block_in_place(|| site.parts.broker.resume_after_kill()).unwrap();
        at_the_end
    };
    let (during, _) = tokio::join!(outage, futures_util::future::join_all(clients));
    let (acknowledged, refused) = (
        told.acknowledged.load(Ordering::Relaxed),
        told.refused.load(Ordering::Relaxed),
    );
    let back = begun.elapsed();
    let callers = [site.http(0).clone(), site.http(1).clone()];
    let found = site.ledger.judge(&callers).await;
    eprintln!(
        "{acknowledged} acknowledged and {refused} refused while the broker was away; serving again after {back:?}, all \
         merged after {:?}",
        begun.elapsed()
    );
    assert!(acknowledged > 0, "nothing was acknowledged without the broker");
    assert!(refused > 0, "the bound was never reached");
    // Each replica counts what the other acknowledges at its next look, a second later.
    assert!(acknowledged as u64 <= 2 * BOUND, "{acknowledged} were acknowledged");
    for (found, (before, during)) in found.iter().zip(before.into_iter().zip(during)) {
        let versions = &found.versions[before..during];
        assert!(versions.is_sorted(), "merged out of their order: {versions:?}");
    }
    site.replicas[0].options().assert_consistent();
}

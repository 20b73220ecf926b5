//! A server that stops, halts or is cut off: every call ends in time, nothing acknowledged is lost, and the store goes
//! on by itself when the server does.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use tokio::task::JoinSet;
use tokio::time::Instant;
use types::{Classify, ContributionId, Kind, Retry};

use super::server;
use crate::conformance::fixture::{World, at, outcome, rejected};
use crate::testing::{Mode, Postgres, Proxy, Stop};
use crate::{Error, Idempotency, NewContribution, Options, Store, SubmitOutcome};

/// The time limit of every call here.
const LIMIT: Duration = Duration::from_secs(2);
/// The time by which a call may exceed its limit on a busy machine.
const GRACE: Duration = Duration::from_secs(2);

fn hasty() -> Options {
    Options {
        timeout: LIMIT,
        busy_timeout: LIMIT / 2,
        ..Options::default()
    }
}

/// Runs a call that must end in time; when it fails, because the database is not available.
async fn in_time<T>(call: impl Future<Output = Result<T, Error>>) -> Result<T, Error> {
    let began = Instant::now();
    let answer = call.await;
    let took = began.elapsed();
    assert!(took < LIMIT + GRACE, "{took:?}");
    if let Err(error) = &answer {
        assert_eq!(
            (error.kind(), error.retry()),
            (Kind::Unavailable, Retry::Backoff),
            "{error:?}"
        );
    }
    answer
}

/// Tries until the store answers again; a store that never does fails the test by its time limit.
async fn answers_again(store: &Store) {
    let began = Instant::now();
    while in_time(store.ping()).await.is_err() || in_time(store.usage_count(9, "again", 1)).await.is_err() {
        assert!(began.elapsed() < Duration::from_secs(30), "the store does not recover");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_crashes_under_load_loses_nothing_acknowledged() {
    let Some(server) = Postgres::start() else { return };
    let server = Arc::new(server);
    let url = server.fresh_database();
    let stores = [
        Store::connect(&url, hasty()).await.unwrap(),
        Store::connect(&url, hasty()).await.unwrap(),
    ];
    let world = World::new(&stores[0]).await;
    let (acknowledged, failed) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicU64::new(0)));
    let ends = Arc::new(AtomicBool::new(false));
    let mut submitting = JoinSet::new();
    for number in 0..8 {
        let store = stores[number % 2].clone();
        let (acknowledged, failed, ends) = (Arc::clone(&acknowledged), Arc::clone(&failed), Arc::clone(&ends));
        submitting.spawn(async move {
            let mut kept = Vec::new();
            while !ends.load(Ordering::Relaxed) {
                let new = world.contribution();
                let id = new.id;
                match in_time(store.contribution_submit(new)).await {
                    Ok(outcome) => {
                        assert_eq!(outcome, SubmitOutcome::Submitted);
                        kept.push(id);
                        acknowledged.fetch_add(1, Ordering::Relaxed);
                    }
                    Err(_unknown) => {
                        failed.fetch_add(1, Ordering::Relaxed);
                        tokio::task::yield_now().await;
                    }
                }
            }
            kept
        });
    }
    let reaches = async |counter: &AtomicU64, more: u64| {
        let goal = counter.load(Ordering::Relaxed) + more;
        while counter.load(Ordering::Relaxed) < goal {
            tokio::task::yield_now().await;
        }
    };
    for _ in 0..3 {
        reaches(&acknowledged, 50).await;
        let crashing = Arc::clone(&server);
        tokio::task::spawn_blocking(move || crashing.stop(Stop::Immediate))
            .await
            .unwrap();
        reaches(&failed, 20).await;
        let starting = Arc::clone(&server);
        tokio::task::spawn_blocking(move || starting.run_again()).await.unwrap();
    }
    reaches(&acknowledged, 50).await;
    ends.store(true, Ordering::Relaxed);
    let kept: Vec<ContributionId> = submitting.join_all().await.into_iter().flatten().collect();
    let entries = stores[0].check_project(world.project).await.unwrap();
    let there: std::collections::BTreeSet<_> = entries.contributions.iter().map(|entry| entry.id).collect();
    assert!(kept.len() >= 200);
    assert_eq!(kept.iter().filter(|id| !there.contains(id)).count(), 0);
    assert!(entries.contributions.iter().all(|entry| entry.in_outbox));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_halts_is_unavailable_in_time_and_served_again_when_it_goes_on() {
    let Some(server) = Postgres::start() else { return };
    let store = Store::connect(&server.fresh_database(), hasty()).await.unwrap();
    let world = World::new(&store).await;
    for _ in 0..2 {
        server.pause();
        let mut calls = JoinSet::new();
        for number in 0..60 {
            let store = store.clone();
            calls.spawn(async move {
                let failed = match number % 3 {
                    0 => in_time(store.ping()).await.is_err(),
                    1 => in_time(store.contribution_submit(world.contribution())).await.is_err(),
                    _ => in_time(store.check_project(world.project)).await.is_err(),
                };
                assert!(failed, "nobody answers");
            });
        }
        calls.join_all().await;
        server.resume();
        answers_again(&store).await;
    }
    let id = world.submitted(&store, 1).await[0];
    assert!(
        store
            .outcomes_apply(vec![outcome(id, rejected("refused"))])
            .await
            .unwrap()[0]
            .changed
    );
}

#[tokio::test]
async fn closing_does_not_wait_for_a_server_that_halted() {
    let Some(server) = Postgres::start() else { return };
    let store = Store::connect(&server.fresh_database(), hasty()).await.unwrap();
    server.pause();
    in_time(store.ping()).await.unwrap_err();
    in_time(async {
        store.close().await;
        Ok(())
    })
    .await
    .unwrap();
    server.resume();
}

#[tokio::test]
async fn a_server_that_stops_refuses_at_once_and_its_return_is_noticed() {
    let Some(server) = Postgres::start() else { return };
    let store = Store::connect(&server.fresh_database(), hasty()).await.unwrap();
    store.usage_count(1, "search", 1).await.unwrap();
    server.stop(Stop::Fast);
    // Open connections detect the failure; later calls do not wait for a time limit.
    in_time(store.ping()).await.unwrap_err();
    in_time(store.usage_count(1, "search", 1)).await.unwrap_err();
    let began = Instant::now();
    for _ in 0..20 {
        in_time(store.ping()).await.unwrap_err();
        in_time(store.usage_count(1, "search", 1)).await.unwrap_err();
    }
    assert!(began.elapsed() < LIMIT, "{:?}", began.elapsed());
    server.run_again();
    answers_again(&store).await;
    assert_eq!(store.usage(1).await.unwrap(), [("search".to_owned(), 1)]);
}

#[tokio::test]
async fn a_commit_whose_answer_is_lost_is_found_by_asking_again() {
    let Some((url, ())) = server::fresh() else { return };
    let (server, database) = (Postgres::shared().unwrap(), url.rsplit_once('/').unwrap().1);
    let proxy = Proxy::start(server.address()).await;
    let store = Store::connect(&Postgres::url(database, proxy.address()), hasty())
        .await
        .unwrap();
    let world = World::new(&store).await;
    let keyed = |id| NewContribution {
        id,
        idempotency: Some(Idempotency {
            key: "key".to_owned(),
            body_hash: [1; 32],
            window: Duration::from_hours(24),
        }),
        ..world.contribution()
    };
    let (first, second) = (ContributionId::new(at(0)), ContributionId::new(at(0)));
    proxy.set(Mode::LoseCommit);
    let error = in_time(store.contribution_submit(keyed(first))).await.unwrap_err();
    assert!(matches!(error, Error::Unavailable(_)), "{error:?}");
    assert_eq!(proxy.lost(), 1, "it was not made a second time");
    proxy.set(Mode::Pass);
    let again = store.contribution_submit(keyed(second)).await.unwrap();
    assert_eq!(again, SubmitOutcome::Replayed(first));
    assert_eq!(store.open_count_and_bytes().await.unwrap().open, 1);
}

#[tokio::test]
async fn connections_that_a_network_forgot_are_given_up_in_time() {
    let Some((url, ())) = server::fresh() else { return };
    let (server, database) = (Postgres::shared().unwrap(), url.rsplit_once('/').unwrap().1);
    let proxy = Proxy::start(server.address()).await;
    let store = Store::connect(&Postgres::url(database, proxy.address()), hasty())
        .await
        .unwrap();
    store.usage_count(1, "search", 1).await.unwrap();
    proxy.set(Mode::Silent);
    for _ in 0..2 {
        let mut calls = JoinSet::new();
        for number in 0..12 {
            let store = store.clone();
            calls.spawn(async move {
                let answer = match number % 2 {
                    0 => in_time(store.ping()).await,
                    _ => in_time(store.usage_count(1, "search", 1)).await,
                };
                answer.unwrap_err();
            });
        }
        calls.join_all().await;
    }
    // The old connections stay dead; new ones are all it takes.
    proxy.set(Mode::Pass);
    let began = Instant::now();
    answers_again(&store).await;
    assert!(began.elapsed() < LIMIT, "{:?}", began.elapsed());
}

//! Many readers who ask at once for profiles that nobody has built: each gets its profile or is told to come again, and nobody
//! else waits for them.

use std::collections::BTreeMap;
use std::net::Ipv4Addr;
use std::time::{Duration, Instant};

use futures_util::future::join_all;
use tests::world::{contribute, project_body, records};
use tests::{Answer, Http, World};
use tokio::sync::watch;

use super::{often, timeless};
use crate::binary;

/// Readers, who come from addresses of their own in groups.
const READERS: usize = 200;
const ADDRESSES: usize = 20;
/// Datasets and versions of each, with rows of each version.
const DATASETS: usize = 4;
const VERSIONS: u64 = 13;
const ROWS: usize = 10;
/// Rows that a call reads at most, so that later versions are built behind the calls.
const CALL_ROWS: usize = 60;
/// The longest that somebody else waits for an answer meanwhile, on a machine that does other work.
const RESPONSIVE: Duration = Duration::from_secs(3);

/// One who comes from the address of this number.
fn reader(http: &Http, number: usize) -> Http {
    http.bound_to(Ipv4Addr::new(127, 0, 4, u8::try_from(number + 1).unwrap()).into())
}

fn path(dataset: usize, version: u64) -> String {
    format!("/projects/crowd-{dataset}/profile?version={version}")
}

/// Makes a dataset of many small versions.
async fn filled(own: &Http, dataset: usize) {
    let slug = format!("crowd-{dataset}");
    own.post("/projects", &project_body(&slug)).await.expect(201);
    for version in 1..=VERSIONS {
        let outcome = contribute(own, &slug, &records(&format!("v{version}"), ROWS)).await;
        assert_eq!(outcome.body["mergedVersion"], version, "{}", outcome.body);
    }
}

/// The kind of an answer; fails unless it is one that a reader of a profile may get.
fn kind(answer: &Answer) -> &'static str {
    let again = answer
        .header("retry-after")
        .parse::<u64>()
        .is_ok_and(|seconds| seconds >= 1);
    match (answer.code(), answer.error()) {
        (200, _) => "profile",
        (503, "not_yet") if again => "not yet",
        (429, "profile_busy") if again => "busy",
        (code, _) => panic!("{code}: {}", String::from_utf8_lossy(&answer.bytes)),
    }
}

/// Calls the service in turn until the crowd is gone; the longest wait, and the number of calls.
async fn neighbour(world: &World, gone: watch::Receiver<bool>) -> (Duration, usize) {
    let (mut longest, mut calls) = (Duration::ZERO, 0);
    let own = &world.agent.http;
    while !*gone.borrow() {
        let begun = Instant::now();
        match calls % 4 {
            0 => drop(world.http.get("/healthz").await.expect(200)),
            1 => drop(world.http.get("/projects/crowd-0").await.expect(200)),
            2 => drop(own.get("/projects/crowd-1/data?limit=5").await.expect(200)),
            _ => {
                let series = format!("beside {calls}");
                let outcome = contribute(own, "beside", &records(&series, 2)).await;
                assert_eq!(outcome.text("/status"), "merged", "{}", outcome.body);
            }
        }
        longest = longest.max(begun.elapsed());
        calls += 1;
    }
    (longest, calls)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_hundred_who_ask_for_unbuilt_profiles_get_them_or_are_told_to_wait_and_keep_nobody() {
    let world = World::start_with(binary(), |options| {
        let options = often(options).with("SLUICE__PROFILES__EVERY", "2s");
        options.with("SLUICE__PROFILES__REQUEST_ROWS", CALL_ROWS)
    })
    .await;
    let own = &world.agent.http;
    own.post("/projects", &project_body("beside")).await.expect(201);
    join_all((0..DATASETS).map(|dataset| filled(own, dataset))).await;

    let wanted = |number: usize| (number % DATASETS, 1 + (number / DATASETS) as u64 % VERSIONS);
    let (gone, is_gone) = watch::channel(false);
    let crowd = async {
        let readers = (0..READERS).map(|number| (reader(&world.http, number % ADDRESSES), wanted(number)));
        let asked =
            readers.map(|(reader, (dataset, version))| async move { reader.get(&path(dataset, version)).await });
        let answers = join_all(asked).await;
        gone.send(true).unwrap();
        answers
    };
    let (answers, (longest, calls)) = tokio::join!(crowd, neighbour(&world, is_gone));
    let mut kinds = BTreeMap::new();
    for (number, answer) in answers.iter().enumerate() {
        *kinds.entry(kind(answer)).or_insert(0) += 1;
        if answer.code() == 200 {
            let (_, version) = wanted(number);
            assert_eq!(answer.body["version"], version);
            assert_eq!(answer.body["records"], version * ROWS as u64);
        }
    }
    eprintln!("{READERS} readers: {kinds:?}; {calls} calls beside them, the longest {longest:?}");
    assert!(kinds["profile"] > 0 && kinds.len() > 1, "{kinds:?}");
    assert!(calls > 0 && longest <= RESPONSIVE, "{longest:?} of {calls} calls");

    // Whoever was told to wait gets it, and the same as everybody.
    for number in 0..DATASETS * usize::try_from(VERSIONS).unwrap() {
        let (dataset, version) = wanted(number);
        let path = path(dataset, version);
        let caller = reader(&world.http, ADDRESSES + number);
        let built = caller.comes_to_show(&path, |answer| kind(answer) == "profile").await;
        assert_eq!(built.body["records"], version * ROWS as u64);
        for before in answers
            .iter()
            .enumerate()
            .filter(|(other, _)| wanted(*other) == (dataset, version))
        {
            if before.1.code() == 200 {
                assert_eq!(timeless(before.1), timeless(&built));
            }
        }
    }
    let is_newest = |answer: &Answer| answer.body["latestVersion"] == calls / 4;
    world.http.soon_shows("/projects/beside", is_newest).await;
    world.server.options().assert_consistent();
}

//! Writers and readers of the board, the feed and the search at the same time.
//!
//! Invariant: no answer is a 5xx, and whatever was acknowledged is there afterwards, once.

use std::collections::HashSet;
use std::time::{Duration, Instant};

use futures_util::future::{join, join_all};
use serde_json::json;
use tests::world::{Agent, contribute, records};
use tests::{Http, Options, World};

use crate::{binary, configured};

/// Seconds of a usual run; `SLUICE_TEST_STORM` asks for more.
const SECONDS: u64 = 5;
const WRITERS: usize = 20;
const READERS: usize = 50;
/// Paths that readers ask for in turn.
const READ: [&str; 8] = [
    "/community/requests",
    "/community/requests?status=open&q=quay",
    "/requests",
    "/activity",
    "/activity.atom",
    "/search?q=readings",
    "/find?q=quay",
    "/projects",
];

fn wide(options: Options) -> Options {
    ["REQUESTS", "COMMENTS"].into_iter().fold(options, |options, name| {
        options.with(&format!("SLUICE__LIMITS__{name}_PER_AGENT_PER_HOUR"), 1_000_000)
    })
}

/// Ids of the requests and of the comments that a writer was told are kept.
#[derive(Debug, Default)]
struct Written {
    requests: Vec<String>,
    comments: Vec<String>,
}

async fn write(agent: Agent, slug: &str, writer: usize, end: Instant) -> Written {
    let mut written = Written::default();
    for number in 0.. {
        if Instant::now() >= end {
            break;
        }
        let title = format!("Readings by the quay, number {number} of {writer}");
        let body = json!({"title": title, "body": "One record for each sample.", "kind": "dataset", "category": "data-source"});
        let made = agent.http.post("/community/requests", &body).await.expect(201);
        written.requests.push(made.text("/id").to_owned());
        let body = json!({"body": format!("Remark {number} of {writer}")});
        let path = format!("/projects/{slug}/comments");
        let made = agent.http.post(&path, &body).await.expect(201);
        written.comments.push(made.body["id"].to_string());
    }
    written
}

async fn read(http: Http, reader: usize, end: Instant) -> usize {
    let mut answers = 0;
    for path in READ.iter().cycle().skip(reader) {
        if Instant::now() >= end {
            break;
        }
        http.get(path).await.expect(200);
        answers += 1;
    }
    answers
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_storm_on_board_feed_and_search_loses_nothing_and_fails_nobody() {
    let world = World::start_with(binary(), wide).await;
    let slug = world.project().await;
    contribute(&world.agent.http, &slug, &records(&slug, 3)).await;
    let (_, other) = world.newcomer().await;
    let end = Instant::now() + Duration::from_secs(configured("SLUICE_TEST_STORM", SECONDS));
    let writers = (0..WRITERS).map(|writer| {
        let agent = if writer % 2 == 0 { &world.agent } else { &other };
        write(agent.at(&world.http), &slug, writer, end)
    });
    let readers = (0..READERS).map(|reader| read(world.http.anonymous(), reader, end));
    let (written, read) = join(join_all(writers), join_all(readers)).await;
    let requests: Vec<_> = written.iter().flat_map(|written| &written.requests).collect();
    let comments: HashSet<_> = written.iter().flat_map(|written| &written.comments).collect();
    eprintln!(
        "{} requests, {} comments, {} reads",
        requests.len(),
        comments.len(),
        read.iter().sum::<usize>()
    );
    assert!(requests.len() >= WRITERS && read.iter().all(|count| *count > 0));

    let listed = world.http.get("/community/requests").await.expect(200);
    assert_eq!(listed.body["total"], requests.len());
    for id in &requests {
        world.http.get(&format!("/community/requests/{id}")).await.expect(200);
    }
    let thread = world.http.get(&format!("/projects/{slug}/comments")).await.expect(200);
    assert_eq!(thread.body["count"], comments.len());
    world.server.options().assert_consistent();
}

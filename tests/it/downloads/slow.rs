//! Readers who take a download slowly: they get all of it, they keep nobody else from theirs, and who waited behind them is
//! asked for the right once more.

use std::time::Duration;

use futures_util::future::join_all;
use reqwest::Response;
use serde_json::{Value, json};
use tests::Http;
use tests::random::Random;
use tests::world::{decided, merged, project_body};
use tokio::sync::watch;
use tokio::task::JoinSet;

use crate::accounts::Site;
use crate::profiles::letters;
use crate::sql_page::Asker;
use crate::uploads::{begin, complete, fill};

/// Downloads of one operator at the same time. Further ones wait.
const AT_ONCE: usize = 8;
/// Persons who read slowly, so many downloads at once.
const SLOW: usize = 4;
/// Bytes that a slow reader takes in a second.
const PACE: usize = 16 << 10;
/// Seconds for which slow readers are slow at least.
const SECONDS: usize = 3;
/// Rows of the file and letters of each: more bytes in any format than sockets keep.
const ROWS: usize = 20_000;
const LETTERS: usize = 600;
/// Pages that a person opens while a download waits.
const PAGES: usize = 20;
const FORMATS: [&str; 4] = ["csv", "ndjson", "arrow", "parquet"];

/// Makes a dataset whose file is long in every format.
async fn long_dataset(own: &Http, slug: &str, changes: Value) {
    let mut random = Random::new(39);
    let line = |sample: usize, random: &mut Random| {
        json!({"station": letters(random, LETTERS), "sample": sample}).to_string() + "\n"
    };
    let lines: String = (0..ROWS).map(|sample| line(sample, &mut random)).collect();
    own.post("/projects", &merged(project_body(slug), changes))
        .await
        .expect(201);
    let (bytes, part) = (lines.as_bytes(), 8 << 20);
    let upload = begin(own, slug, bytes, part, "none").await;
    let tags = fill(&upload, bytes, part).await;
    let completed = complete(own, slug, &upload, &tags).await.expect(201);
    let outcome = decided(own, slug, completed.text("/id")).await;
    assert_eq!(outcome.body["acceptedCount"], ROWS, "{}", outcome.body);
}

/// Sends the form of a download; the answer whose file is not read yet.
async fn ask(person: &Asker, slug: &str, token: &str, format: &str) -> Response {
    let fields = [("form_token", token), ("version", "1"), ("format", format)];
    let path = format!("/projects/{slug}/download");
    let origin = person.agent.http.base();
    let sent = person.browser.try_browse(origin, &person.session, &path, Some(&fields));
    sent.await.unwrap()
}

/// As many downloads of a person as there may be at once, whose files are not read.
async fn unread(person: &Asker, slug: &str, token: &str) -> Vec<Response> {
    let asked = (0..AT_ONCE).map(|number| ask(person, slug, token, FORMATS[number % FORMATS.len()]));
    let answers = join_all(asked).await;
    assert!(answers.iter().all(|answer| answer.status() == 200), "{answers:?}");
    answers
}

/// Reads a file slowly until the others are done, then to its end; its bytes, and how many of them were read slowly.
async fn read_slowly(mut answer: Response, others_are_done: watch::Receiver<bool>) -> (Vec<u8>, usize) {
    let mut bytes = Vec::new();
    let mut seconds = tokio::time::interval(Duration::from_secs(1));
    let mut allowed = 0;
    while allowed < SECONDS * PACE || !*others_are_done.borrow() {
        seconds.tick().await;
        allowed += PACE;
        while bytes.len() < allowed {
            let piece = answer
                .chunk()
                .await
                .unwrap()
                .expect("the file ended while it was read slowly");
            bytes.extend_from_slice(&piece);
        }
    }
    let slowly = bytes.len();
    while let Some(piece) = answer.chunk().await.unwrap() {
        bytes.extend_from_slice(&piece);
    }
    (bytes, slowly)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn slow_readers_of_downloads_get_all_and_keep_nobody_from_theirs() {
    let site = Site::start(None, |options| options).await;
    let owner = Asker::new(&site, "ada@example.org").await;
    long_dataset(&owner.agent.http, "long", json!({})).await;
    let (done, is_done) = watch::channel(false);
    let mut slow = JoinSet::new();
    let mut persons = Vec::new();
    for number in 0..SLOW {
        let person = Asker::new(&site, &format!("slow-{number}@example.org")).await;
        let token = person.token().await;
        for (number, answer) in unread(&person, "long", &token).await.into_iter().enumerate() {
            let is_done = is_done.clone();
            slow.spawn(async move { (FORMATS[number % FORMATS.len()], read_slowly(answer, is_done).await) });
        }
        persons.push(person);
    }
    // Somebody else downloads in every format, and each of the slow ones goes on looking and asking.
    let other = Asker::new(&site, "eve@example.org").await;
    let token = other.token().await;
    let files = join_all(FORMATS.map(|format| ask(&other, "long", &token, format))).await;
    let files = join_all(files.into_iter().map(Response::bytes)).await;
    let files: Vec<_> = FORMATS.into_iter().zip(files.into_iter().map(Result::unwrap)).collect();
    for person in &persons {
        for path in ["/projects/long", "/projects/long/rows?version=1&offset=19000"] {
            person.open(path).await.expect(200);
        }
        person
            .ask("long", &[("q", "SELECT count(*) AS n FROM records")])
            .await
            .expect(200);
    }
    let export = other
        .agent
        .http
        .get("/projects/long/export?version=1")
        .await
        .expect(200);
    assert!(export.bytes == files[1].1, "the lines are those of the export");
    assert_eq!(slow.len(), SLOW * AT_ONCE);
    done.send(true).unwrap();
    while let Some(read) = slow.join_next().await {
        let (format, (bytes, slowly)) = read.unwrap();
        let (_, whole) = files.iter().find(|(name, _)| *name == format).unwrap();
        assert!(bytes == *whole, "{format}: {} bytes of {}", bytes.len(), whole.len());
        assert!(
            slowly < whole.len() / 2,
            "{format}: {slowly} of {} bytes were read slowly",
            whole.len()
        );
    }
}

/// Has a download wait behind those that a person may have at once, ends the right meanwhile, and lets it on; its answer.
async fn waited(person: &Asker, slug: &str, format: &'static str, end: impl Future<Output = ()>) -> Response {
    let token = person.token().await;
    let mut before = unread(person, slug, &token).await;
    let behind = tokio::spawn({
        let (person, slug, token) = (person.clone(), slug.to_owned(), token.clone());
        async move { ask(&person, &slug, &token, format).await }
    });
    // Pages that are asked for after it are answered before it.
    for _ in 0..PAGES {
        person.open("/console/settings").await.expect(200);
    }
    end.await;
    assert!(
        !behind.is_finished(),
        "one download more than may be at once did not wait"
    );
    before.pop();
    behind.await.unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_download_that_waited_is_refused_if_the_right_ended_meanwhile() {
    let site = Site::start(None, |options| options).await;
    let owner = Asker::new(&site, "ada@example.org").await;
    let other = Asker::new(&site, "bob@example.org").await;
    let (own, http) = (&owner.agent.http, &other.agent.http);
    long_dataset(own, "free", json!({})).await;
    long_dataset(own, "paid", json!({"access": "paid", "price": "0.10"})).await;
    site.grant(other.operator, "10");
    let bought = http.post("/projects/paid/buy", &json!({})).await.expect(200);
    let refunded = async {
        site.refund(bought.text("/saleId"));
        http.soon("/projects/paid/data", 402).await;
    };
    let refused = waited(&other, "paid", "csv", refunded).await;
    assert_eq!(refused.status(), 402);
    let taken_down = async {
        site.take_down("free").await;
        http.soon("/projects/free/data", 404).await;
    };
    let refused = waited(&other, "free", "parquet", taken_down).await;
    assert_eq!(refused.status(), 404);
}

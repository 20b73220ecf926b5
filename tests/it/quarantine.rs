//! A batch, an upload or a unit that ends the process whenever it is judged or encoded, among others that do nothing: the
//! process comes back, ends twice more at most, and then goes on without it. A batch whose processes are killed from
//! outside is merged.
//!
//! Invariant: nothing is sent again to make up for what was lost; a request whose answer was lost is repeated under its
//! key.

use std::fs;
use std::os::unix::process::ExitStatusExt as _;
use std::path::{Path, PathBuf};
use std::time::Instant;

use reqwest::Method;
use serde_json::{Value, json};
use tests::server::{DEADLINE, POLL, tail_of};
use tests::world::{Agent, Operator, batch, decided, project_body, records};
use tests::{Http, Options, Server};

use crate::binary;

/// What the process cannot bear.
const LETHAL: &str = "a text that ends whoever judges it";
/// Where batches go; the lethal one is among those of the first.
const SLUGS: [&str; 3] = ["mine", "other", "third"];
/// How many batches that do nothing each dataset gets, and their records.
const INNOCENTS: usize = 12;
const RECORDS: usize = 3;
/// How often the process is started before it is given up.
const LIVES: usize = 8;
/// SIGABRT and SIGKILL.
const ABORTED: i32 = 6;
const KILLED: i32 = 9;

struct Sent {
    slug: &'static str,
    /// Where it is sent to.
    path: String,
    key: String,
    body: Value,
    /// Once it was acknowledged.
    id: Option<String>,
    /// Once it was decided.
    status: Option<String>,
}

impl Sent {
    fn new(slug: &'static str, key: String, records: &[Value]) -> Self {
        Self {
            slug,
            path: format!("/projects/{slug}/contribute"),
            key,
            body: batch(records),
            id: None,
            status: None,
        }
    }

    /// An upload whose one part was sent: what is left to send is that it is complete.
    async fn upload(http: &Http, slug: &'static str, records: &[Value]) -> Self {
        let lines: Vec<_> = records.iter().map(|record| format!("{record}\n")).collect();
        let lines = lines.concat();
        let body = json!({"bytes": lines.len(), "parts": 1, "partSize": lines.len(), "sourceDeclaration": "made up"});
        let path = format!("/projects/{slug}/uploads");
        let begun = http.post(&path, &body).await.expect(201);
        let part = s3_server::caller()
            .build()
            .unwrap()
            .put(begun.text("/partUrls/0/url"))
            .body(lines);
        let tag = part.send().await.unwrap().headers()["etag"]
            .to_str()
            .unwrap()
            .to_owned();
        let id = begun.text("/id");
        Self {
            slug,
            path: format!("{path}/{id}/complete"),
            key: id.to_owned(),
            body: json!({"etags": [{"n": 1, "etag": tag}]}),
            id: None,
            status: None,
        }
    }

    /// Goes on with it as far as the service answers; `None` where it does not.
    async fn go_on(&mut self, http: &Http) -> Option<()> {
        let Some(id) = &self.id else {
            let headers = [("idempotency-key", self.key.as_str())];
            let body = self.body.to_string().into();
            let answer = http.send(Method::POST, &self.path, &headers, Some(body)).await.ok()?;
            assert!(matches!(answer.code(), 200 | 201), "{}", answer.body);
            self.id = Some(answer.text("/id").to_owned());
            return Some(());
        };
        let path = format!("/projects/{}/contributions/{id}", self.slug);
        let answer = http.send(Method::GET, &path, &[], None).await.ok()?.expect(200);
        let status = answer.text("/status");
        if matches!(status, "merged" | "rejected") {
            self.status = Some(status.to_owned());
        }
        Some(())
    }
}

/// Goes on with everything until it is decided, or the process has ended: whether it has.
async fn ends(server: &mut Server, agent: &Agent, sent: &mut [Sent]) -> bool {
    let http = agent.at(&server.http()).http;
    let deadline = Instant::now() + DEADLINE;
    while sent.iter().any(|sent| sent.status.is_none()) {
        for sent in sent.iter_mut().filter(|sent| sent.status.is_none()) {
            if sent.go_on(&http).await.is_none() {
                break;
            }
        }
        if let Some(status) = server.exited() {
            assert_eq!(status.signal(), Some(ABORTED), "{}", tail_of(&server.options().log()));
            return true;
        }
        assert!(Instant::now() < deadline, "{}", tail_of(&server.options().log()));
        tokio::time::sleep(POLL).await;
    }
    false
}

/// Starts the process again whenever it ends, until everything is decided: the lethal one among them is rejected, and
/// nothing else is.
async fn survive(mut server: Server, agent: &Agent, sent: &mut [Sent], lethal: usize) -> Server {
    let options = server.options().clone();
    let mut deaths = 0;
    while ends(&mut server, agent, sent).await {
        server = loop {
            deaths += 1;
            assert!(deaths <= LIVES, "it ends again and again");
            match Server::try_start(&options).await {
                Ok(server) => break server,
                Err(status) => assert_eq!(status.signal(), Some(ABORTED), "{}", tail_of(&options.log())),
            }
        };
    }
    assert!((1..=3).contains(&deaths), "{deaths} deaths");
    for (number, sent) in sent.iter().enumerate() {
        let expected = if number == lethal { "rejected" } else { "merged" };
        assert_eq!(sent.status.as_deref(), Some(expected), "{}", sent.key);
    }
    server
}

/// A service with the datasets.
async fn set(options: &Options) -> (Server, Agent) {
    let server = Server::start(options).await;
    let operator = Operator::create(options, "first");
    let agent = Agent::create(&server.http(), &operator, "first.agent").await;
    for slug in SLUGS {
        agent.http.post("/projects", &project_body(slug)).await.expect(201);
    }
    (server, agent)
}

/// Batches for every dataset in turn.
fn innocents() -> impl Iterator<Item = Sent> {
    (0..INNOCENTS * SLUGS.len()).map(|number| {
        let records = records(&format!("series {number}"), RECORDS);
        Sent::new(SLUGS[number % SLUGS.len()], format!("batch-{number}"), &records)
    })
}

fn lethal_record() -> Value {
    json!({"station": format!("{LETHAL}!"), "sample": 1})
}

/// The one dead letter there is, which is about this contribution and says why.
fn letter_about(options: &Options, id: &str) -> String {
    let letters = options.admin(&["dead-letters", "list"]);
    assert_eq!(letters["total"], 1, "{letters}");
    let letter = &letters["items"][0];
    assert_eq!(letter["contributionId"].as_str(), Some(id));
    let reason = letter["reason"].as_str().unwrap();
    assert!(reason.contains("process ended"), "{reason}");
    letter["id"].as_str().unwrap().to_owned()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_batch_that_ends_its_process_every_time_is_quarantined() {
    let folder = tempfile::tempdir().unwrap();
    let options = Options::new(binary(), folder.path().join("data")).with("SLUICE_FAULT_LETHAL", LETHAL);
    let (server, agent) = set(&options).await;
    let mut sent: Vec<_> = innocents().collect();
    let lethal = sent.len() / 2;
    sent.insert(lethal, Sent::new(SLUGS[0], "lethal".to_owned(), &[lethal_record()]));

    let server = survive(server, &agent, &mut sent, lethal).await;
    let id = sent[lethal].id.clone().unwrap();
    let http = agent.at(&server.http()).http;
    for slug in SLUGS {
        let project = http.get(&format!("/projects/{slug}")).await.expect(200);
        let counts = ["versionCount", "recordCount"].map(|name| project.body[name].as_u64());
        assert_eq!(
            counts,
            [INNOCENTS, INNOCENTS * RECORDS].map(|count| Some(count as u64)),
            "{slug}"
        );
    }
    options.assert_consistent();
    let letter = letter_about(&options, &id);

    // Mended, and replayed.
    assert!(server.stop().await.success());
    let server = Server::start(&options.clone().with("SLUICE_FAULT_LETHAL", "")).await;
    options.admin(&["dead-letters", "replay", &letter]);
    let outcome = decided(&agent.at(&server.http()).http, SLUGS[0], &id).await;
    assert_eq!(outcome.text("/status"), "merged", "{}", outcome.body);
    options.assert_consistent();
    assert!(server.stop().await.success());
}

/// Waits until every unit is decided, or the process has ended: whether it has.
async fn ends_of_units(server: &mut Server, agent: &Agent, ids: &[String]) -> bool {
    let http = agent.at(&server.http()).http;
    let deadline = Instant::now() + DEADLINE;
    loop {
        let mut open = 0;
        for id in ids {
            let shown = http.send(Method::GET, &format!("/knowledge/{id}"), &[], None).await;
            let is_decided = shown.is_ok_and(|shown| matches!(shown.text("/status"), "published" | "rejected"));
            open += usize::from(!is_decided);
        }
        if let Some(status) = server.exited() {
            assert_eq!(status.signal(), Some(ABORTED), "{}", tail_of(&server.options().log()));
            return true;
        }
        if open == 0 {
            return false;
        }
        assert!(Instant::now() < deadline, "{}", tail_of(&server.options().log()));
        tokio::time::sleep(POLL).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_unit_that_ends_its_process_every_time_is_rejected() {
    let folder = tempfile::tempdir().unwrap();
    let armed = Options::new(binary(), folder.path().join("data")).with("SLUICE_FAULT_LETHAL", LETHAL);
    let (server, agent) = set(&armed).await;
    assert!(server.stop().await.success());
    // All units are sent before the first is reviewed.
    armed.admin(&["validation", "pause"]);
    let mut server = Server::start(&armed).await;
    let mut ids = Vec::new();
    for number in 0..4 {
        let text = if number == 2 {
            LETHAL
        } else {
            "a text that says little of anything"
        };
        let body = json!({
            "title": format!("Unit {number}"),
            "body": format!("Number {number}: {text}."),
            "category": "performance-tuning",
            "sourceDeclaration": "Made up by a test.",
        });
        let made = agent
            .at(&server.http())
            .http
            .post("/knowledge", &body)
            .await
            .expect(201);
        ids.push(made.text("/id").to_owned());
    }
    armed.admin(&["validation", "resume"]);
    let mut deaths = 0;
    while ends_of_units(&mut server, &agent, &ids).await {
        server = loop {
            deaths += 1;
            assert!(deaths <= LIVES, "it ends again and again");
            match Server::try_start(&armed).await {
                Ok(server) => break server,
                Err(status) => assert_eq!(status.signal(), Some(ABORTED), "{}", tail_of(&armed.log())),
            }
        };
    }
    assert!((1..=3).contains(&deaths), "{deaths} deaths");
    let http = agent.at(&server.http()).http;
    for (number, id) in ids.iter().enumerate() {
        let shown = http.get(&format!("/knowledge/{id}")).await.expect(200);
        let is_unprocessable = shown.body["reason"]["code"] == "unprocessable";
        assert_eq!(is_unprocessable, number == 2, "{}", shown.body);
    }
    let letters = armed.admin(&["dead-letters", "list"]);
    assert_eq!(letters["total"], 1, "{letters}");
    assert_eq!(letters["items"][0]["unitId"].as_str(), Some(ids[2].as_str()));
    let reason = letters["items"][0]["reason"].as_str().unwrap();
    assert!(reason.contains("process ended"), "{reason}");
    armed.assert_consistent();
    assert!(server.stop().await.success());
}

/// What is in the folder of the service's data, whatever its depth, whose name has this.
fn named(folder: &Path, name: &str) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        if entry.file_name().to_string_lossy().contains(name) {
            found.push(path);
        } else if path.is_dir() {
            found.extend(named(&path, name));
        }
    }
    found
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_upload_that_ends_its_process_every_time_is_quarantined_and_freed() {
    let folder = tempfile::tempdir().unwrap();
    let options = Options::new(binary(), folder.path().join("data")).with("SLUICE_FAULT_LETHAL", LETHAL);
    let (server, agent) = set(&options).await;
    let mut sent: Vec<_> = innocents().collect();
    let lethal = sent.len() / 2;
    let mut lines = records("before the lethal one", 200);
    lines.push(lethal_record());
    lines.extend(records("behind the lethal one", 200));
    sent.insert(lethal, Sent::upload(&agent.http, SLUGS[0], &lines).await);
    for (slug, series) in [(SLUGS[0], "an upload"), (SLUGS[1], "another")] {
        let upload = Sent::upload(&agent.http, slug, &records(series, 50)).await;
        sent.insert(lethal + 1, upload);
    }
    let server = survive(server, &agent, &mut sent, lethal).await;
    let id = sent[lethal].id.clone().unwrap();
    let http = agent.at(&server.http()).http;
    let told = decided(&http, SLUGS[0], &id).await;
    assert_eq!(told.text("/reason/code"), "unprocessable", "{}", told.body);
    for (slug, uploaded) in [(SLUGS[0], 50), (SLUGS[1], 50), (SLUGS[2], 0)] {
        let project = http.get(&format!("/projects/{slug}")).await.expect(200);
        let records = (INNOCENTS * RECORDS + uploaded) as u64;
        assert_eq!(project.body["recordCount"], records, "{slug}");
    }
    options.assert_consistent();
    letter_about(&options, &id);
    assert!(server.stop().await.success());
    // Nothing of what was staged is left; its bytes are kept to be replayed, for a week.
    for staged in named(options.data(), "staged") {
        assert_eq!(fs::read_dir(&staged).unwrap().count(), 0, "{}", staged.display());
    }
    assert_eq!(named(options.data(), &id), [options.data().join("uploads").join(&id)]);
    let server = Server::start(&options.clone().with("SLUICE__CLOCK__OFFSET", "8d")).await;
    let deadline = Instant::now() + DEADLINE;
    while !named(options.data(), &id).is_empty() {
        assert!(Instant::now() < deadline, "its bytes are kept for ever");
        tokio::time::sleep(POLL).await;
    }
    options.assert_consistent();
    assert!(server.stop().await.success());
}

/// Sends a batch that ends its process in this way, among others for every dataset: it is rejected, and they are merged.
async fn is_rejected_alone(way: &str) {
    let folder = tempfile::tempdir().unwrap();
    let options = Options::new(binary(), folder.path().join("data"));
    let options = options.with("SLUICE_FAULT_LETHAL", format!("{way}:{LETHAL}"));
    let (server, agent) = set(&options).await;
    let mut sent: Vec<_> = innocents().take(2 * SLUGS.len()).collect();
    let lethal = sent.len() / 2;
    sent.insert(lethal, Sent::new(SLUGS[0], "lethal".to_owned(), &[lethal_record()]));
    let server = survive(server, &agent, &mut sent, lethal).await;
    letter_about(&options, sent[lethal].id.as_ref().unwrap());
    options.assert_consistent();
    assert!(server.stop().await.success());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_batch_that_ends_its_process_when_it_is_encoded_is_quarantined() {
    is_rejected_alone("encoder").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_batch_that_exhausts_the_stack_is_quarantined() {
    is_rejected_alone("stack").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_batch_that_is_in_work_at_twenty_kills_from_outside_is_merged_once() {
    let folder = tempfile::tempdir().unwrap();
    let options = Options::new(binary(), folder.path().join("data"));
    let (server, agent) = set(&options).await;
    assert!(server.stop().await.success());
    let armed = options.clone().with("SLUICE_FAULT_POINT", "gate.exit");
    let mut sent = [Sent::new(SLUGS[0], "good".to_owned(), &records("good", RECORDS))];
    for _ in 0..20 {
        let status = match Server::try_start(&armed).await {
            Err(status) => status,
            Ok(mut server) => {
                let http = agent.at(&server.http()).http;
                let deadline = Instant::now() + DEADLINE;
                loop {
                    sent[0].go_on(&http).await.unwrap_or_default();
                    if let Some(status) = server.exited() {
                        break status;
                    }
                    assert!(Instant::now() < deadline, "{}", tail_of(&armed.log()));
                    tokio::time::sleep(POLL).await;
                }
            }
        };
        assert_eq!(status.signal(), Some(KILLED), "{}", tail_of(&armed.log()));
    }
    let mut server = Server::start(&options).await;
    assert!(!ends(&mut server, &agent, &mut sent).await);
    assert_eq!(sent[0].status.as_deref(), Some("merged"));
    let project = agent.at(&server.http()).http.get("/projects/mine").await.expect(200);
    assert_eq!(project.body["versionCount"], 1);
    assert_eq!(options.admin(&["dead-letters", "list"])["total"], 0);
    options.assert_consistent();
    assert!(server.stop().await.success());
}

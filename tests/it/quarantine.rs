//! A batch that ends the process whenever it is judged, among batches that do nothing: the process comes back, ends twice
//! more, and then goes on without it.
//!
//! Invariant: nothing is sent again to make up for what was lost; a request whose answer was lost is repeated under its key.

use std::os::unix::process::ExitStatusExt as _;
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
/// SIGABRT.
const ABORTED: i32 = 6;

struct Sent {
    slug: &'static str,
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
            key,
            body: batch(records),
            id: None,
            status: None,
        }
    }

    /// Goes on with it as far as the service answers; `None` where it does not.
    async fn go_on(&mut self, http: &Http) -> Option<()> {
        let Some(id) = &self.id else {
            let path = format!("/projects/{}/contribute", self.slug);
            let headers = [("idempotency-key", self.key.as_str())];
            let body = self.body.to_string().into();
            let answer = http.send(Method::POST, &path, &headers, Some(body)).await.ok()?;
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

fn check(options: &Options) {
    let checked = options.run(&["check"]);
    let said = String::from_utf8_lossy(&checked.stdout);
    assert!(
        checked.status.success(),
        "{said}{}",
        String::from_utf8_lossy(&checked.stderr)
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_batch_that_ends_its_process_every_time_is_quarantined_after_three() {
    let folder = tempfile::tempdir().unwrap();
    let options = Options::new(binary(), folder.path().join("data")).with("SLUICE_FAULT_LETHAL", LETHAL);
    let mut server = Server::start(&options).await;
    let operator = Operator::create(&options, "first");
    let agent = Agent::create(&server.http(), &operator, "first.agent").await;
    for slug in SLUGS {
        agent.http.post("/projects", &project_body(slug)).await.expect(201);
    }
    let innocent = |number: usize| {
        let slug = SLUGS[number % SLUGS.len()];
        Sent::new(
            slug,
            format!("batch-{number}"),
            &records(&format!("series {number}"), RECORDS),
        )
    };
    let mut sent: Vec<_> = (0..INNOCENTS * SLUGS.len()).map(innocent).collect();
    let lethal = sent.len() / 2;
    let text = json!({"station": format!("{LETHAL}!"), "sample": 1});
    sent.insert(lethal, Sent::new(SLUGS[0], "lethal".to_owned(), &[text]));

    let mut deaths = 0;
    while ends(&mut server, &agent, &mut sent).await {
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
    check(&options);
    let letters = options.admin(&["dead-letters", "list"]);
    assert_eq!(
        (
            letters["total"].as_u64(),
            letters["items"][0]["contributionId"].as_str()
        ),
        (Some(1), Some(&*id))
    );
    let reason = letters["items"][0]["reason"].as_str().unwrap();
    assert!(reason.contains("process ended"), "{reason}");

    // Mended, and replayed.
    assert!(server.stop().await.success());
    let server = Server::start(&options.clone().with("SLUICE_FAULT_LETHAL", "")).await;
    options.admin(&["dead-letters", "replay", letters["items"][0]["id"].as_str().unwrap()]);
    let outcome = decided(&agent.at(&server.http()).http, SLUGS[0], &id).await;
    assert_eq!(outcome.text("/status"), "merged", "{}", outcome.body);
    check(&options);
    assert!(server.stop().await.success());
}

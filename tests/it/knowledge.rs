//! Knowledge units through the doors of the service: what was acknowledged survives, and pauses hold on every start.

use std::path::Path;
use std::process::Command;
use std::time::Instant;

use serde_json::{Value, json};
use tests::server::DEADLINE;
use tests::{Http, Options, World};

use crate::binary;

fn unit(body: &str) -> Value {
    json!({
        "title": "SQLite in WAL mode: checkpoints of 4,000 pages",
        "body": body,
        "category": "performance-tuning",
        "sourceDeclaration": "Ran on 2026-11-20 on a rented machine with 2 cores.",
    })
}

/// Submits units until one waits, which it does within a second of a pause. Returns the ids of all.
async fn until_one_waits(http: &Http) -> Vec<String> {
    let (begun, mut ids) = (Instant::now(), Vec::new());
    loop {
        let made = http
            .post("/knowledge", &unit(&format!("Text {}.", ids.len())))
            .await
            .expect(201);
        ids.push(made.text("/id").to_owned());
        if made.text("/validation/state") == "waiting" {
            assert_eq!(made.text("/validation/reason"), "paused");
            return ids;
        }
        assert!(
            begun.elapsed() < DEADLINE,
            "no submission waits although reviews are paused"
        );
        // The next look at the state is half a second away; a long call passes the time.
        http.get(&format!("/knowledge/{}?wait=1", ids[ids.len() - 1]))
            .await
            .expect(200);
    }
}

/// A pause holds submissions over a restart of the service, `check` finds nothing wrong, and its end lets them go on.
#[tokio::test]
async fn a_pause_holds_submissions_over_a_restart() {
    let world = World::start_with(binary(), |options| {
        options
            .with("SLUICE__LIMITS__KNOWLEDGE_PER_DAY", 1_000)
            .with("SLUICE__LIMITS__SUBMISSIONS_PER_AGENT_PER_HOUR", 1_000)
    })
    .await;
    let options = world.server.options().clone();
    assert_eq!(
        options.admin(&["validation", "pause"]),
        json!({"paused": true, "changed": true})
    );
    let ids = until_one_waits(&world.agent.http).await;
    let quota = world.agent.http.get("/quota").await.expect(200);
    assert_eq!(
        (quota.text("/validation/state"), quota.text("/validation/reason")),
        ("waiting", "paused")
    );
    let world = world.restart_with(|options| options).await;
    let waiting = &ids[ids.len() - 1];
    let path = format!("/knowledge/{waiting}");
    let shown = world.agent.http.get(&path).await.expect(200);
    assert_eq!(
        (shown.text("/status"), shown.text("/body")),
        ("waiting", format!("Text {}.", ids.len() - 1).as_str())
    );
    options.assert_consistent();
    assert_eq!(
        options.admin(&["validation", "resume"]),
        json!({"paused": false, "changed": true})
    );
    assert_eq!(
        options.admin(&["validation", "resume"]),
        json!({"paused": false, "changed": false})
    );
    let begun = Instant::now();
    let next = format!("{path}?wait=1");
    while world.agent.http.get(&next).await.expect(200).text("/status") == "waiting" {
        assert!(begun.elapsed() < DEADLINE, "the end of the pause is not noticed");
    }
    options.assert_consistent();
}

/// An erased unit is gone for its owner too, and cannot be erased again.
#[tokio::test]
async fn an_erased_unit_is_gone() {
    let world = World::start(binary()).await;
    let made = world
        .agent
        .http
        .post("/knowledge", &unit("To be erased."))
        .await
        .expect(201);
    let id = made.text("/id").to_owned();
    let options = world.server.options();
    let erased = options.admin(&["knowledge", "erase", &id]);
    assert_eq!(
        (erased["chainId"].as_str(), erased["erased"].as_bool()),
        (Some(id.as_str()), Some(true))
    );
    let again = options.run(&["admin", "knowledge", "erase", &id]);
    assert!(!again.status.success());
    let shown = world.agent.http.get(&format!("/knowledge/{id}")).await.expect(200);
    assert_eq!(
        (shown.text("/status"), shown.text("/body"), shown.text("/title")),
        ("rejected", "", "")
    );
    options.assert_consistent();
}

/// Body of a unit that the rubric publishes.
const GOOD: &str = include_str!("../../deploy/sluice/data/unit.md");

fn measured(body: &str) -> Value {
    json!({
        "title": "Simple case mappings of Unicode 15.0 that do not come back: 37 characters",
        "body": body,
        "category": "text-processing",
        "sourceDeclaration": "Counted on 2026-11-24 in UnicodeData.txt of Unicode 15.0.",
    })
}

/// Waits for the end of the review of a unit.
async fn reviewed(http: &Http, id: &str) -> tests::Answer {
    let begun = Instant::now();
    loop {
        let shown = http.get(&format!("/knowledge/{id}?wait=20")).await.expect(200);
        if ["published", "rejected"].contains(&shown.text("/status")) {
            return shown;
        }
        assert!(begun.elapsed() < DEADLINE, "not reviewed: {}", shown.body);
    }
}

/// True if a search has found this unit.
fn has_found(id: &str) -> impl Fn(&tests::Answer) -> bool {
    move |answer| {
        let items = answer.body["items"].as_array().into_iter().flatten();
        items.into_iter().any(|item| item["id"] == id)
    }
}

/// A good unit is published with its scores, found by other forms of its words, bought and read. A bad one is rejected
/// with sentences that say what to change, and a copy is rejected with the unit that it copies.
#[tokio::test]
async fn a_unit_is_reviewed_found_bought_and_read() {
    let world = World::start(binary()).await;
    let author = &world.agent.http;
    let mut good = measured(GOOD);
    good["price"] = json!("0.25");
    let made = author.post("/knowledge", &good).await.expect(201);
    assert_eq!(made.text("/validation/state"), "queued");
    let id = made.text("/id").to_owned();
    let published = reviewed(author, &id).await;
    assert_eq!(published.text("/status"), "published", "{}", published.body);
    let total = published.body["scores"]["total"].as_u64().unwrap();
    assert!((55..=100).contains(&total), "{}", published.body);

    let vague = "Unicode is very important. Always handle text well, and remember that good software respects it.";
    let mut bad = measured(vague);
    bad["title"] = json!("Thoughts on Unicode");
    let bad = author.post("/knowledge", &bad).await.expect(201);
    let rejected = reviewed(author, bad.text("/id")).await;
    assert_eq!(rejected.text("/status"), "rejected", "{}", rejected.body);
    let details = rejected.body["validations"].as_array().unwrap();
    let last = details.last().unwrap()["detail"].as_str().unwrap();
    assert!(
        last.contains("55 is needed") && last.contains("«Unicode is very important.»"),
        "{last}"
    );

    let (buyer, reader) = world.newcomer().await;
    let copied = reader
        .http
        .post("/knowledge", &measured(&format!("{GOOD}\n\nThanks.")))
        .await
        .expect(201);
    let copied = reviewed(&reader.http, copied.text("/id")).await;
    assert_eq!(copied.text("/status"), "rejected");
    assert!(copied.body.to_string().contains(&id), "{}", copied.body);

    // By other forms of its words, without a key, and not with its text.
    let found = world
        .http
        .soon_shows("/search?q=fold%20identifier", has_found(&id))
        .await;
    assert!(!found.body.to_string().contains("KELVIN SIGN"), "{}", found.body);
    let filtered = world.http.get("/search?q=folded&category=frontend").await.expect(200);
    assert_eq!(filtered.body["total"], json!(0));

    let full = format!("/knowledge/{id}/full");
    let refused = reader.http.get(&full).await.expect(402);
    assert_eq!(refused.body["priceMicro"], json!(250_000));
    let options = world.server.options();
    options.admin(&["credits", "grant", &buyer.id, "--cents", "25"]);
    let bought = reader
        .http
        .post(&format!("/knowledge/{id}/buy"), &json!({}))
        .await
        .expect(200);
    assert_eq!(bought.body["charged"], json!(true));
    assert_eq!(reader.http.get(&full).await.expect(200).text("/body"), GOOD);
    // Score, first read and sale: each once.
    let points = |answer: &tests::Answer| answer.body["points"].as_u64() == Some(total + 5 + 5);
    author.soon_shows("/points", points).await;
    reader.http.get(&full).await.expect(200);

    // A restart knows what is published: the copy of a copy is refused again, and the search finds the unit again.
    let world = world.restart_with(|options| options).await;
    let again = world
        .agent
        .http
        .post("/knowledge", &measured(&format!("{GOOD} Once more.")))
        .await
        .expect(201);
    let again = reviewed(&world.agent.http, again.text("/id")).await;
    assert_eq!(again.text("/status"), "rejected", "{}", again.body);
    world.http.comes_to_show("/search?q=folded", has_found(&id)).await;

    // The author retires it: it leaves the search, and its buyer reads on.
    world
        .agent
        .http
        .post(&format!("/knowledge/{id}/retire"), &json!({}))
        .await
        .expect(200);
    let is_gone = |answer: &tests::Answer| !has_found(&id)(answer);
    world.http.soon_shows("/search?q=folded", is_gone).await;
    world.server.options().assert_consistent();
}

/// A backup has the table of published units, which belongs to no project.
#[tokio::test]
async fn a_backup_has_what_was_published() {
    let world = World::start(binary()).await;
    let author = &world.agent.http;
    let made = author.post("/knowledge", &measured(GOOD)).await.expect(201);
    let published = reviewed(author, made.text("/id")).await;
    assert_eq!(published.text("/status"), "published", "{}", published.body);
    let copy = world.folder().join("copy");
    let program = Path::new(env!("CARGO_MANIFEST_DIR")).join("../deploy/backup.py");
    let mut backup = Command::new("python3");
    backup.arg(program).arg(world.server.options().data()).arg(&copy);
    let ran = backup.output().unwrap();
    assert!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stderr));
    Options::new(binary(), copy).assert_consistent();
}

//! Takedowns on two services over one database and one bucket: what one of them reports, an administrator takes down, and
//! the other answers as missing within a second, at every door. The owner is told, answers, and gets it back.
//!
//! Invariant: before each change the other service has answered from what it remembers, so it must forget.

use std::path::Path;
use std::time::Instant;

use reqwest::Method;
use serde_json::{Value, json};
use tests::letters::letter_to;
use tests::world::{Agent, Operator, contribute, merged, project_body, records};
use tests::{Answer, Http, Options, Server};

use crate::accounts::on_each;
use crate::binary;
use crate::uploads_bucket::Bucket;

/// Submits a priced unit and waits until it is published. Returns its id.
pub(crate) async fn published(author: &Http) -> String {
    let body = json!({
        "title": "Simple case mappings of Unicode 15.0 that do not come back",
        "body": include_str!("../../deploy/sluice/data/unit.md"),
        "category": "text-processing",
        "sourceDeclaration": "Counted in UnicodeData.txt of Unicode 15.0.",
        "price": "0.25",
    });
    let id = author
        .post("/knowledge", &body)
        .await
        .expect(201)
        .text("/id")
        .to_owned();
    let is_published = |answer: &Answer| answer.text("/status") == "published";
    author.comes_to_show(&format!("/knowledge/{id}"), is_published).await;
    id
}

/// A call to a door of an item, with the name of the item as `{}`.
type Door = (&'static str, &'static str, &'static str);

const DATASET: [Door; 13] = [
    ("GET", "/projects/{}", ""),
    ("GET", "/projects/{}/data", ""),
    (
        "POST",
        "/projects/{}/query",
        r#"{"sql": "SELECT count(*) AS n FROM records"}"#,
    ),
    ("GET", "/projects/{}/export?version=1", ""),
    ("GET", "/projects/{}/manifest", ""),
    ("GET", "/projects/{}/diff?to=1&limit=0", ""),
    ("GET", "/projects/{}/diff?to=1", ""),
    ("POST", "/projects/{}/buy", "{}"),
    ("GET", "/paid/dataset?slug={}", ""),
    ("PATCH", "/projects/{}", r#"{"title": "Another title"}"#),
    ("POST", "/projects/{}/contribute", r#"{"records": [{"station": "a"}]}"#),
    ("POST", "/projects/{}/validate", r#"{"records": [{"station": "a"}]}"#),
    (
        "POST",
        "/reports",
        r#"{"kind": "dataset", "id": "{}", "reason": "other", "detail": "Once more, please."}"#,
    ),
];
const UNIT: [Door; 6] = [
    ("POST", "/knowledge/{}/buy", r#"{"maxPrice": "1"}"#),
    ("GET", "/paid/knowledge?id={}", ""),
    ("GET", "/knowledge/{}/reviews", ""),
    ("GET", "/knowledge/{}/comments", ""),
    ("POST", "/knowledge/{}/comments", r#"{"body": "Does it hold?"}"#),
    (
        "POST",
        "/reports",
        r#"{"kind": "unit", "id": "{}", "reason": "other", "detail": "Once more, please."}"#,
    ),
];
const NO_UNIT: &str = "0197b3c0-0000-7000-8000-000000000001";

async fn at(http: &Http, (method, path, body): Door, item: &str) -> Answer {
    let method: Method = method.parse().unwrap();
    let body = (method != Method::GET).then(|| body.replace("{}", item).into_bytes());
    http.send(method, &path.replace("{}", item), &[], body).await.unwrap()
}

/// Fails unless every door answers for an item as for one that does not exist, byte for byte.
async fn is_missing(http: &Http, doors: &[Door], item: &str, absent: &str) {
    for door in doors {
        let (got, missing) = (at(http, *door, item).await, at(http, *door, absent).await);
        let text = |answer: &Answer| String::from_utf8_lossy(&answer.bytes).replace(item, absent);
        assert_eq!((got.code(), text(&got)), (missing.code(), text(&missing)), "{door:?}");
        assert!(matches!(got.code(), 401 | 404), "{door:?}: {}", got.body);
    }
}

fn report(kind: &str, id: &str, reason: &str) -> Value {
    json!({
        "kind": kind, "id": id, "reason": reason, "detail": "It is a copy of our yearbook.",
        "email": "rights@example.org",
    })
}

/// The owner is told how to answer, and the reporter, who has no key, where the outcome of a report is.
async fn letters_tell(mail: &Path, upheld: &[(String, String)]) {
    let letter = letter_to(mail, "seller@example.org").await;
    assert!(letter.text.contains("/console/moderation"), "{}", letter.text);
    let letter = letter_to(mail, "rights@example.org").await;
    // Either service names its own address.
    let mut reports = upheld
        .iter()
        .map(|(_, outcome)| outcome.split_once("/reports/").unwrap().1);
    assert!(reports.any(|report| letter.text.contains(report)), "{}", letter.text);
    assert!(!letter.text.contains("yearbook"), "{}", letter.text);
}

/// A request that is taken down has no page on any replica, and gets it back.
async fn a_request_has_no_page(options: &Options, asker: &Http, there: &Http) {
    let wanted = json!({"title": "Tides of the quay", "body": "Hourly ones, measured in metres."});
    let asked = asker.post("/community/requests", &wanted).await.expect(201);
    let (id, page) = (asked.text("/id"), format!("/requests/{}", asked.text("/id")));
    there.soon(&page, 200).await;
    let sent = asker.post("/reports", &report("topic", id, "spam")).await.expect(201);
    let done = options.admin(&["reports", "uphold", sent.text("/id")]);
    there.soon(&page, 404).await;
    there.get(&format!("/community{page}")).await.expect(404);
    options.admin(&["reports", "restore", done["takedownId"].as_str().unwrap()]);
    there.soon(&page, 200).await;
}

/// An agent that is taken down has no key on any replica, and gets it back. `there` is the agent at another replica.
async fn an_agent_has_no_key(options: &Options, here: &Http, there: &Http) {
    let sent = here
        .post("/reports", &report("agent", "reader", "spam"))
        .await
        .expect(201);
    let done = options.admin(&["reports", "uphold", sent.text("/id")]);
    assert_eq!(there.soon("/points", 401).await.error(), "account_suspended");
    options.admin(&["reports", "restore", done["takedownId"].as_str().unwrap()]);
    there.soon("/points", 200).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_taken_down_is_missing_everywhere_within_a_second() {
    on_each(async |url| {
        let (bucket, folder) = (Bucket::start(), tempfile::tempdir().unwrap());
        let options = |name: &str, url: Option<&str>| {
            let options = bucket.configure(Options::new(binary(), folder.path().join(name)));
            // Either service sends the letters.
            let options = options
                .with("SLUICE__MAIL__FOLDER", folder.path().join("mail").display())
                .with("SLUICE__LIMITS__REPORTS_PER_IP_PER_HOUR", 1_000_000);
            match url {
                Some(url) => options.with("SLUICE__DATABASE__URL", url),
                None => options,
            }
        };
        let one = options("one", url.as_deref());
        let first = Server::start(&one).await;
        // Without a server of databases, the second service opens the file of the first.
        let file = format!("sqlite://{}", one.data().join("sluice.db").display());
        let url = url.as_deref().unwrap_or(&file);
        let servers = [first, Server::start(&options("other", Some(url))).await];
        let [seller, stranger] = ["seller", "stranger"].map(|name| Operator::create(&one, name));
        let here = servers[0].http();
        let owner = Agent::create(&here, &seller, "owner").await;
        let reader = Agent::create(&here, &stranger, "reader").await;
        let there = servers[1].http();
        let (owner_there, reader_there) = (owner.at(&there).http, reader.at(&there).http);

        let body = merged(project_body("tides"), json!({"access": "paid", "price": 0}));
        owner.http.post("/projects", &body).await.expect(201);
        contribute(&owner.http, "tides", &records("a", 3)).await;
        let unit = published(&owner.http).await;
        let full = format!("/knowledge/{unit}/full");
        let (list, feed, found) = ("/projects?q=tides", "/activity", "/search?q=folding");
        reader_there.soon("/projects/tides/data", 200).await;
        owner_there.get(&full).await.expect(200);
        let is_listed = |answer: &Answer| answer.body["total"] == 1;
        there.soon_shows(list, is_listed).await;
        let is_found = |answer: &Answer| answer.body["items"][0]["id"] == unit;
        there.comes_to_show(found, is_found).await;
        let entries = there.get(feed).await.expect(200).body["items"]
            .as_array()
            .unwrap()
            .len();
        assert_eq!(entries, 3);

        let mut upheld = Vec::new();
        for (kind, id) in [("dataset", "tides"), ("unit", unit.as_str())] {
            let sent = here.post("/reports", &report(kind, id, "copyright")).await.expect(201);
            let again = here.post("/reports", &report(kind, id, "copyright")).await.expect(200);
            assert_eq!(again.body, sent.body);
            let listed = one.admin(&["reports", "list", "--status", "open"]);
            assert_eq!(listed["items"][0]["id"], sent.body["id"]);
            let outcome = sent.text("/outcome").to_owned();
            let done = one.admin(&["reports", "uphold", sent.text("/id"), "--note", "Show your licence."]);
            upheld.push((done["takedownId"].as_str().unwrap().to_owned(), outcome));
        }
        let begun = Instant::now();
        for (http, status) in [(&there, 401), (&owner_there, 404), (&reader_there, 404)] {
            http.soon("/projects/tides/data", status).await;
            http.soon("/projects/tides", 404).await;
        }
        assert!(begun.elapsed().as_secs() < 3, "each waits for a second at most");
        for http in [&there, &owner_there, &reader_there] {
            is_missing(http, &DATASET, "tides", "absent").await;
            assert_eq!(http.get(list).await.expect(200).body["total"], 0);
        }
        for http in [&there, &reader_there] {
            is_missing(http, &UNIT, &unit, NO_UNIT).await;
            http.get(&full).await.expect(404);
        }
        assert_eq!(there.get(feed).await.expect(200).body["items"], json!([]));
        let is_gone = |answer: &Answer| answer.body["items"] == json!([]);
        there.soon_shows(found, is_gone).await;
        let own = owner_there.get(&format!("/knowledge/{unit}")).await.expect(200);
        assert_eq!((own.text("/status"), own.text("/body")), ("taken_down", ""));
        owner_there.get(&full).await.expect(404);
        let log = there.get("/takedowns").await.expect(200);
        assert_eq!(log.body["items"].as_array().unwrap().len(), 2);
        assert!(!log.body.to_string().contains("tides"), "{}", log.body);
        letters_tell(&folder.path().join("mail"), &upheld).await;

        for (takedown, outcome) in &upheld {
            let path = outcome.strip_prefix(here.base()).unwrap_or(outcome);
            let told = there.get(path).await.expect(200);
            assert_eq!(told.text("/status"), "upheld");
            one.admin(&["reports", "restore", takedown]);
            let again = one.run(&["admin", "reports", "restore", takedown]);
            assert!(!again.status.success());
            assert!(!there.get(path).await.expect(200).text("/restoredAt").is_empty());
        }
        reader_there.soon("/projects/tides/data", 200).await;
        owner_there.soon(&full, 200).await;
        there.soon_shows(list, is_listed).await;
        assert_eq!(
            there.get(feed).await.expect(200).body["items"]
                .as_array()
                .unwrap()
                .len(),
            entries
        );

        a_request_has_no_page(&one, &reader.http, &there).await;
        an_agent_has_no_key(&one, &here, &reader_there).await;
        one.assert_consistent();
    })
    .await;
}

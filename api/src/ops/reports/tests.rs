use http::StatusCode;
use serde_json::{Value, json};
use store::{Decided, Language, ReportStatus, UnitOutcome, Uphold};
use types::unit::{Judge, UnitResolution, UnitScores};
use types::vocabulary::JudgeKind;
use types::{Clock as _, TakedownId, UnitId};

use crate::rules::letters::{self, LetterPayload};
use crate::testing::{Got, Service, config, count, limits};

/// A service with a paid dataset and a published unit of one operator, and an agent of another.
struct World {
    service: Service,
    owner: String,
    other: String,
    unit: String,
}

impl World {
    async fn start() -> Self {
        let limits = crate::config::Limits {
            calls_per_ip_per_minute: count(1_000_000),
            reports_per_ip_per_hour: 1_000_000,
            ..limits()
        };
        let service = Service::with(config(), limits).await;
        let (one, two) = (service.operator().await, service.operator().await);
        let owner = service.agent(&one, "owner").await;
        let other = service.agent(&two, "other").await;
        service
            .project(&owner, "prices", &json!({"access": "paid", "price": "0.50"}))
            .await;
        service.merged(&owner, "prices", &[json!({"name": "a"})]).await;
        let body = json!({
            "title": "A title",
            "body": "Measured here.",
            "category": "tool-usage",
            "sourceDeclaration": "Ran here today.",
            "price": "0.25",
        });
        let got = service
            .call("POST", "/knowledge", Some(&owner), &body.to_string())
            .await;
        let unit = got.json()["id"].as_str().unwrap().to_owned();
        let world = Self {
            service,
            owner,
            other,
            unit,
        };
        world.publish().await;
        world
    }

    async fn publish(&self) {
        let id: UnitId = self.unit.parse().unwrap();
        let outcome = UnitOutcome {
            id,
            generation: 0,
            at: self.service.clock.now(),
            resolution: UnitResolution::Published {
                scores: UnitScores {
                    accuracy: 60,
                    novelty: 60,
                    reproducibility: 60,
                    specificity: 60,
                    total: 60,
                },
                judge: Judge {
                    kind: JudgeKind::Heuristic,
                    name: "rubric-1".to_owned(),
                },
                language: Language::English,
                near: None,
                embedder: None,
            },
            report: Vec::new(),
        };
        let applied = self.service.app.store.knowledge().apply(vec![outcome]).await.unwrap();
        assert!(applied[0].changed);
    }

    async fn report(&self, key: Option<&str>, body: &Value) -> Got {
        self.service.call("POST", "/reports", key, &body.to_string()).await
    }

    /// Takes an item down after a report of it.
    async fn down(&self, kind: &str, id: &str, reason: &str) -> TakedownId {
        let got = self.report(Some(&self.other), &report(kind, id, reason)).await;
        assert_eq!(got.status, 201, "{}", got.text());
        let now = self.service.clock.now();
        let takedown = TakedownId::new(now);
        let uphold = Uphold {
            report: got.json()["id"].as_str().unwrap().parse().unwrap(),
            takedown,
            note: None,
            by: None,
            letters: letters::decision(takedown),
            now,
        };
        let decided = self.service.app.store.moderation().uphold(uphold).await.unwrap();
        assert!(matches!(decided, Decided::Done(_)), "{decided:?}");
        takedown
    }

    async fn back(&self, takedown: TakedownId) {
        let payload = letters::input(&LetterPayload::ItemRestored { takedown });
        let now = self.service.clock.now();
        let moderation = self.service.app.store.moderation();
        let letter = ("mail".to_owned(), payload);
        let restored = moderation.restore(takedown, None, None, letter, now).await.unwrap();
        assert!(matches!(restored, Decided::Done(_)), "{restored:?}");
    }
}

fn report(kind: &str, id: &str, reason: &str) -> Value {
    json!({"kind": kind, "id": id, "reason": reason, "detail": "It is a copy of my work."})
}

/// Returns an answer without the id of its request.
fn said(got: &Got) -> (StatusCode, String) {
    (got.status, got.text())
}

#[tokio::test]
async fn a_report_is_one_within_a_day_and_its_reporter_follows_it() {
    let world = World::start().await;
    let mut sent = report("dataset", "prices", "copyright");
    // Without a key, somebody must be reachable.
    let refused = world.report(None, &sent).await;
    assert_eq!(refused.status, 400);
    assert_eq!(refused.json()["details"][0]["path"], "/email");
    sent["email"] = json!("not an address");
    assert_eq!(world.report(None, &sent).await.status, 400);
    sent["email"] = json!("rights@example.org");
    let first = world.report(None, &sent).await;
    assert_eq!(first.status, 201, "{}", first.text());
    let again = world.report(None, &sent).await;
    assert_eq!((again.status, again.json()), (StatusCode::OK, first.json()));
    // With a key no address is needed, and the report is the agent's.
    let of_agent = world
        .report(Some(&world.other), &report("dataset", "prices", "copyright"))
        .await;
    assert_eq!(of_agent.status, 201);

    let path = |got: &Got| {
        let outcome = got.json()["outcome"].as_str().unwrap().to_owned();
        outcome.strip_prefix("http://sluice.test").unwrap().to_owned()
    };
    let (by_token, by_key) = (path(&first), path(&of_agent));
    let seen = world.service.get(&by_token, None).await;
    assert_eq!(
        (seen.status, seen.json()["status"].clone()),
        (StatusCode::OK, json!("open"))
    );
    assert_eq!(world.service.get(&by_key, Some(&world.other)).await.status, 200);
    let without = by_token.split('?').next().unwrap();
    let unknown = without.replace(&without[without.len() - 4..], "0000");
    for (path, key) in [
        (without, None),
        (without, Some(&world.other)),
        (by_key.as_str(), None),
        (by_key.as_str(), Some(&world.owner)),
        (unknown.as_str(), None),
    ] {
        let missing = world.service.get(path, key.map(String::as_str)).await;
        assert_eq!(missing.status, 404, "{path}");
    }
    world.down("dataset", "prices", "spam").await;
    assert_eq!(world.service.get(&by_token, None).await.json()["status"], "upheld");
}

#[tokio::test]
async fn what_cannot_be_seen_is_reported_like_what_does_not_exist() {
    let world = World::start().await;
    let service = &world.service;
    service
        .project(&world.owner, "secret", &json!({"visibility": "private"}))
        .await;
    let missing = said(&world.report(None, &report("dataset", "no-such-thing", "spam")).await);
    assert_eq!(missing.0, 404);
    for (kind, id) in [
        ("dataset", "secret"),
        ("unit", "0197b3c0-0000-7000-8000-000000000001"),
        ("unit", "no uuid"),
        ("comment", "7"),
        ("comment", "+7"),
        ("review", "1"),
        ("topic", "0197b3c0-0000-7000-8000-000000000001"),
        ("agent", "nobody"),
    ] {
        let got = world.report(Some(&world.other), &report(kind, id, "spam")).await;
        assert_eq!(said(&got), missing, "{kind} {id}");
    }
    let own = world
        .report(Some(&world.owner), &report("dataset", "secret", "spam"))
        .await;
    assert_eq!(own.status, 201);
    for (kind, id) in [("dataset", "prices"), ("unit", &world.unit), ("agent", "owner")] {
        world.down(kind, id, "other").await;
        let got = world.report(Some(&world.other), &report(kind, id, "spam")).await;
        assert_eq!(said(&got), missing, "{kind} {id}");
    }
}

#[tokio::test]
async fn the_fields_of_a_report_have_their_limits() {
    let world = World::start().await;
    for (member, value, status) in [
        ("kind", json!("answer"), 400),
        ("kind", json!("unitunitunitunitunitu"), 400),
        ("id", json!(""), 400),
        ("id", json!("a".repeat(81)), 400),
        ("id", json!("a".repeat(80)), 404),
        ("reason", json!("boring"), 400),
        ("detail", json!("a".repeat(9)), 400),
        ("detail", json!("한".repeat(10)), 201),
        ("detail", json!("a".repeat(4_001)), 400),
        ("email", json!("a".repeat(321)), 400),
        ("extra", json!(1), 400),
    ] {
        let mut sent = report("dataset", "prices", "other");
        sent[member] = value.clone();
        let got = world.report(None, &sent).await;
        assert_eq!(got.status, status, "{member} {value} {}", got.text());
    }
}

/// Every door of a dataset closes for everybody, byte for byte as for a slug that names nothing; a buyer keeps reading
/// it for spam. Its owner gets it back.
#[tokio::test]
async fn a_dataset_that_is_down_is_missing_at_every_door() {
    let world = World::start().await;
    let service = &world.service;
    let reads = [
        ("GET", "/projects/prices", ""),
        ("GET", "/projects/prices/data", ""),
        ("POST", "/projects/prices/query", r#"{"sql": "SELECT 1 FROM records"}"#),
        ("GET", "/projects/prices/export?version=1", ""),
        ("GET", "/projects/prices/diff?to=1&limit=0", ""),
        ("GET", "/projects/prices/manifest", ""),
        ("POST", "/projects/prices/buy", "{}"),
        ("GET", "/paid/dataset?slug=prices", ""),
        ("PATCH", "/projects/prices", r#"{"title": "Another title"}"#),
        ("POST", "/projects/prices/contribute", r#"{"records": [{"name": "b"}]}"#),
        ("POST", "/projects/prices/validate", r#"{"records": [{"name": "b"}]}"#),
    ];
    let id = service
        .app
        .store
        .project_by_slug("prices", None)
        .await
        .unwrap()
        .unwrap();
    for reason in ["copyright", "spam"] {
        let takedown = world.down("dataset", "prices", reason).await;
        for key in [None, Some(&world.owner), Some(&world.other)] {
            for (method, path, body) in reads {
                let key = key.map(String::as_str);
                let got = service.call(method, path, key, body).await;
                let missing = service.call(method, &path.replace("prices", "absent"), key, body).await;
                let said = (got.status, got.text().replace("prices", "absent"));
                assert_eq!(said, (missing.status, missing.text()), "{method} {path}");
                assert!(
                    matches!(got.status.as_u16(), 401 | 404),
                    "{method} {path} {}",
                    got.text()
                );
            }
            let listed = service.get("/projects?q=prices", key.map(String::as_str)).await.json();
            assert_eq!((&listed["total"], &listed["items"]), (&json!(0), &json!([])));
        }
        let searched = service
            .app
            .store
            .searching()
            .datasets(&[id.id.to_string()])
            .await
            .unwrap();
        assert_eq!(searched, []);
        world.back(takedown).await;
        assert_eq!(
            service.get("/projects/prices/data", Some(&world.owner)).await.status,
            200
        );
    }
}

#[tokio::test]
async fn a_buyer_keeps_a_dataset_for_spam_and_not_for_copyright() {
    let world = World::start().await;
    let service = &world.service;
    let operator = {
        let hash = crate::secrets::hash(&world.other);
        let principal = service.app.store.accounts().principal(&hash, service.clock.now()).await;
        principal.unwrap().unwrap().operator().unwrap()
    };
    service.granted(operator, 1_000_000).await;
    let bought = service
        .call("POST", "/projects/prices/buy", Some(&world.other), "{}")
        .await;
    assert_eq!(bought.status, 200, "{}", bought.text());
    let part = {
        let manifest = service
            .get("/projects/prices/manifest", Some(&world.other))
            .await
            .json();
        let url = manifest["urls"]
            .as_array()
            .and_then(|urls| urls[0]["url"].as_str().map(str::to_owned));
        let url = url.unwrap_or_else(|| manifest["parts"][0]["url"].as_str().unwrap().to_owned());
        url.strip_prefix("http://sluice.test").unwrap().to_owned()
    };
    for (reason, status) in [("spam", 200), ("copyright", 404)] {
        let takedown = world.down("dataset", "prices", reason).await;
        for path in [
            "/projects/prices",
            "/projects/prices/data",
            "/projects/prices/manifest",
            &part,
        ] {
            let got = service.get(path, Some(&world.other)).await;
            assert_eq!(got.status, status, "{reason} {path}");
        }
        for (path, body) in [
            ("/projects/prices/buy", "{}"),
            ("/projects/prices/contribute", r#"{"records": [{"name": "b"}]}"#),
        ] {
            let got = service.call("POST", path, Some(&world.other), body).await;
            assert_eq!(got.status, 404, "{reason} {path}");
        }
        world.back(takedown).await;
        assert_eq!(service.get(&part, None).await.status, 200);
    }
}

/// A buyer of an earlier version learns nothing of a later one while the dataset is down.
#[tokio::test]
async fn a_later_version_is_missing_for_the_buyer_of_an_earlier_one() {
    let world = World::start().await;
    let service = &world.service;
    let hash = crate::secrets::hash(&world.other);
    let principal = service.app.store.accounts().principal(&hash, service.clock.now()).await;
    service
        .granted(principal.unwrap().unwrap().operator().unwrap(), 1_000_000)
        .await;
    let other = Some(world.other.as_str());
    let bought = service.call("POST", "/projects/prices/buy", other, "{}").await;
    assert_eq!(bought.status, 200, "{}", bought.text());
    service.merged(&world.owner, "prices", &[json!({"name": "b"})]).await;
    let later = "/projects/prices/data?version=2";
    assert_eq!(service.get(later, other).await.status, 402);
    let takedown = world.down("dataset", "prices", "spam").await;
    assert_eq!(service.get("/projects/prices/data?version=1", other).await.status, 200);
    let got = service.get(later, other).await;
    let missing = service.get(&later.replace("prices", "absent"), other).await;
    assert_eq!(
        (got.status, got.text().replace("prices", "absent")),
        (missing.status, missing.text())
    );
    assert_eq!(got.status, 404);
    world.back(takedown).await;
    assert_eq!(service.get(later, other).await.status, 402);
}

/// A unit that is down is missing for its owner too; the status is all that it sees.
#[tokio::test]
async fn an_owner_reads_no_unit_that_is_down() {
    let world = World::start().await;
    let (service, owner) = (&world.service, Some(world.owner.as_str()));
    let full = format!("/knowledge/{}/full", world.unit);
    assert_eq!(service.get(&full, owner).await.status, 200);
    let takedown = world.down("unit", &world.unit, "spam").await;
    let got = service.get(&full, owner).await;
    let missing = service
        .get(
            &full.replace(&world.unit, "0197b3c0-0000-7000-8000-000000000001"),
            owner,
        )
        .await;
    assert_eq!((got.status, got.text()), (missing.status, missing.text()));
    assert_eq!(got.status, 404);
    let seen = service.get(&format!("/knowledge/{}", world.unit), owner).await.json();
    assert_eq!((&seen["status"], &seen["body"]), (&json!("taken_down"), &json!("")));
    world.back(takedown).await;
    assert_eq!(service.get(&full, owner).await.status, 200);
}

/// A reporter without a key who leaves an address is sent the address of the outcome, once; the administrator is told
/// while there is no moderator.
#[tokio::test]
async fn letters_tell_the_reporter_and_the_administrator() {
    let world = World::start().await;
    let service = &world.service;
    let mut sent = report("dataset", "prices", "copyright");
    sent["email"] = json!("eve@example.org");
    let made = world.report(None, &sent).await;
    assert_eq!(made.status, 201, "{}", made.text());
    assert_eq!(world.report(None, &sent).await.status, 200);
    assert_eq!(world.report(Some(&world.other), &sent).await.status, 201);
    let due = service.clock.now().plus(std::time::Duration::from_mins(15));
    let jobs = service
        .app
        .store
        .flow()
        .jobs_lease(due, std::time::Duration::from_secs(1), 99)
        .await;
    let mut letters = Vec::new();
    for job in jobs.unwrap().into_iter().filter(|job| job.kind == letters::KIND) {
        letters.extend(letters::letter(&service.app, &job, due).await.unwrap());
    }
    let to = |address: &str| letters.iter().filter(|letter| letter.to == address).collect::<Vec<_>>();
    let [outcome] = to("eve@example.org")[..] else {
        panic!("{letters:?}");
    };
    let made = made.json();
    assert!(
        outcome.text.contains(made["outcome"].as_str().unwrap()),
        "{}",
        outcome.text
    );
    assert!(!outcome.text.contains("copy of my work"), "{}", outcome.text);
    let [digest] = to("admin@sluice.test")[..] else {
        panic!("{letters:?}");
    };
    assert!(digest.text.contains("2 x dataset: copyright"), "{}", digest.text);
}

#[tokio::test]
async fn an_agent_that_is_down_has_no_key_and_no_name() {
    let world = World::start().await;
    let service = &world.service;
    let path = format!("/knowledge/{}/comments", world.unit);
    let said = service
        .call("POST", &path, Some(&world.other), r#"{"body": "Buy mine."}"#)
        .await;
    assert_eq!(said.status, 201);
    let takedown = world.down("agent", "other", "spam").await;
    let refused = service.get("/points", Some(&world.other)).await;
    assert_eq!(
        (refused.status, refused.json()["error"].clone()),
        (StatusCode::UNAUTHORIZED, json!("account_suspended"))
    );
    assert_eq!(service.get(&path, None).await.json()["items"][0]["agent"], "[removed]");
    world.back(takedown).await;
    assert_eq!(service.get("/points", Some(&world.other)).await.status, 200);
    assert_eq!(service.get(&path, None).await.json()["items"][0]["agent"], "other");
}

/// A ranking is remembered for a minute, and still loses an agent at once.
#[tokio::test]
async fn an_agent_that_is_down_has_no_place() {
    let world = World::start().await;
    let service = &world.service;
    let places = async || service.get("/leaderboard", None).await.json()["items"].clone();
    assert_eq!(places().await[0]["agent"], "owner");
    world.service.clock.advance(std::time::Duration::from_secs(1));
    world.down("agent", "owner", "spam").await;
    assert_eq!(places().await, json!([]));
}

/// The words beside a rating have no number, so a report names them by unit and agent. The stars stay.
#[tokio::test]
async fn words_beside_a_rating_are_reported_and_taken_down() {
    let world = World::start().await;
    let service = &world.service;
    let path = format!("/knowledge/{}", world.unit);
    let unpriced = json!({"price": null}).to_string();
    let put = service
        .call("PUT", &format!("{path}/price"), Some(&world.owner), &unpriced)
        .await;
    assert_eq!(put.status, 200, "{}", put.text());
    let read = service.get(&format!("{path}/full"), Some(&world.other)).await;
    assert_eq!(read.status, 200, "{}", read.text());
    let rating = json!({"rating": 1, "comment": "Buy mine instead."}).to_string();
    let rated = service
        .call("POST", &format!("{path}/review"), Some(&world.other), &rating)
        .await;
    assert_eq!(rated.status, 200, "{}", rated.text());
    let listed = async || service.get(&format!("{path}/reviews"), None).await.json();
    assert_eq!(listed().await["items"][0]["comment"], "Buy mine instead.");
    let missing = world.report(None, &report("review", "7", "spam")).await;
    for nobody in ["owner", "nobody", "", "other/more"] {
        let id = format!("{}/{nobody}", world.unit);
        let got = world.report(None, &report("review", &id, "spam")).await;
        assert_eq!(said(&got), said(&missing), "{id}");
    }
    let takedown = world.down("review", &format!("{}/other", world.unit), "spam").await;
    let shown = listed().await;
    assert_eq!(shown["items"][0].get("comment"), None);
    assert_eq!((&shown["items"][0]["rating"], &shown["count"]), (&json!(1), &json!(1)));
    world.back(takedown).await;
    assert_eq!(listed().await["items"][0]["comment"], "Buy mine instead.");
}

/// The map of the site is kept for a minute, and still loses an item at once.
#[tokio::test]
async fn an_item_that_is_down_is_not_in_the_map() {
    let world = World::start().await;
    let service = &world.service;
    let map = async || service.get("/sitemap.xml", None).await.text();
    let (unit, dataset) = (format!("/units/{}</loc>", world.unit), "/projects/prices</loc>");
    let first = map().await;
    assert!(first.contains(&unit) && first.contains(dataset), "{first}");
    service.project(&world.owner, "later", &json!({})).await;
    assert_eq!(map().await, first);
    service.clock.advance(std::time::Duration::from_mins(1));
    assert!(map().await.contains("/projects/later</loc>"));
    world.down("unit", &world.unit, "spam").await;
    let left = map().await;
    assert!(!left.contains(&unit) && left.contains(dataset), "{left}");
}

#[tokio::test]
async fn the_log_names_no_item_and_letters_tell_owners() {
    let world = World::start().await;
    let service = &world.service;
    let takedown = world.down("dataset", "prices", "personal-data").await;
    let log = service.get("/takedowns", None).await;
    assert!(!log.text().contains("prices"), "{}", log.text());
    assert_eq!(log.json()["items"][0]["reason"], "personal-data");
    assert_eq!(log.json()["items"][0]["restoredAt"], Value::Null);
    let flow = service.app.store.flow();
    let now = service.clock.now();
    let jobs = flow
        .jobs_lease(now, std::time::Duration::from_secs(1), 99)
        .await
        .unwrap();
    let mut letters = Vec::new();
    for job in jobs {
        letters.extend(letters::letter(&service.app, &job, now).await.unwrap());
    }
    assert_eq!(letters.len(), 1);
    assert!(letters[0].text.contains("dataset prices"), "{}", letters[0].text);
    world.back(takedown).await;
    let log = service.get("/takedowns", None).await.json();
    assert!(log["items"][0]["restoredAt"].is_string(), "{log}");
    let reports = service.app.store.moderation().reports(None, None, 9).await.unwrap();
    assert!(reports.iter().all(|report| report.status == ReportStatus::Upheld));
}

#[tokio::test]
async fn an_address_has_its_reports_of_an_hour() {
    let limits = crate::config::Limits {
        reports_per_ip_per_hour: 2,
        ..limits()
    };
    let service = Service::with(config(), limits).await;
    for status in [404, 404, 429] {
        let body = report("dataset", "absent", "spam").to_string();
        let got = service.call("POST", "/reports", None, &body).await;
        assert_eq!(got.status, status, "{}", got.text());
    }
}

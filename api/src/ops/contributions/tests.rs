use http::Request;
use operators::{Reason, RowVerdict, Tally, Verdict};
use serde_json::{Value, json};
use store::{OutcomeRow, Resolution};
use types::{ContributionId, Size, Timestamp, Version};

use crate::testing::{Got, Service, config, limits};

/// A service with a public project `weather` of one operator and an agent of another.
struct Scene {
    service: Service,
    /// The token of the operator that maintains the project.
    maintainer: String,
    /// The key of the agent that contributes.
    key: String,
}

impl Scene {
    async fn set() -> Self {
        Self::with(limits()).await
    }

    async fn with(limits: crate::Limits) -> Self {
        let service = Service::with(config(), limits).await;
        let maintainer = service.operator().await;
        service.project(&maintainer, "weather", &json!({})).await;
        let contributor = service.operator().await;
        let key = service.agent(&contributor, "bob").await;
        Self {
            service,
            maintainer,
            key,
        }
    }

    async fn contribute(&self, body: &Value, idempotency_key: Option<&str>) -> Got {
        let mut request =
            Request::post("/projects/weather/contribute").header("authorization", format!("Bearer {}", self.key));
        if let Some(key) = idempotency_key {
            request = request.header("idempotency-key", key);
        }
        self.service.send(request.body(body.to_string().into()).unwrap()).await
    }

    async fn decide(&self, id: &str, resolution: Resolution, verdicts: &[RowVerdict]) {
        let tally = Tally {
            gate: operators::GateName::CONTRACT,
            rows: 3,
            passed: 1,
            dropped: 1,
            refused: 1,
            held: 0,
            note: None,
        };
        let id: ContributionId = id.parse().unwrap();
        let outcome = OutcomeRow {
            id,
            generation: 0,
            at: self.service.app.clock.now(),
            resolution,
            tallies: serde_json::to_string(&[tally]).unwrap(),
            verdicts: serde_json::to_string(verdicts).unwrap(),
        };
        let applied = self.service.app.store.outcomes_apply(vec![outcome]).await.unwrap();
        assert!(applied[0].changed);
        self.service.app.waiters.wake(id);
    }
}

fn three() -> Value {
    json!({"records": [{"name": "a"}, {"name": "b"}, {"name": 5}], "sourceDeclaration": "Made up\nfor a test."})
}

fn merged() -> Resolution {
    Resolution::Merged {
        version: Version(1),
        accepted: 2,
        record_count: 2,
        root: "ab".repeat(32),
    }
}

fn reason(code: &str) -> Reason {
    Reason {
        gate: operators::GateName::CONTRACT,
        code: code.to_owned(),
        path: "/name".to_owned(),
        expected: "string".to_owned(),
        actual: "integer 5".to_owned(),
    }
}

#[tokio::test]
async fn an_acknowledged_batch_is_in_the_outbox_with_its_contract() {
    let scene = Scene::set().await;
    let got = scene.contribute(&three(), None).await;
    assert_eq!(got.status, 201);
    let answer = got.json();
    assert_eq!(
        answer,
        json!({
            "id": answer["id"], "project": "weather", "status": "submitted", "submittedCount": 3,
            "submittedAt": "2026-11-21T07:00:00Z", "sourceDeclaration": "Made up\nfor a test.",
            "validation": {"state": "queued"},
            "allowance": {
                "kind": "contribution", "limit": 200, "used": 1, "remaining": 199, "resetAt": "2026-11-22T00:00:00Z",
            },
        })
    );
    let open = scene
        .service
        .app
        .store
        .contributions_open_at_start(10, None)
        .await
        .unwrap();
    let submission = messages::Submission::decode(&open[0].submission).unwrap();
    assert_eq!(submission.contribution.to_string(), answer["id"].as_str().unwrap());
    let messages::Source::Inline(records) = &submission.source else {
        panic!("not an upload");
    };
    let records = records.values().unwrap();
    assert_eq!(records, three()["records"].as_array().unwrap().clone());
    assert_eq!(submission.contract.fields()[0].name, "name");
    assert!(!submission.private);
    let path = format!("/projects/weather/contributions/{}", answer["id"].as_str().unwrap());
    assert_eq!(scene.service.get(&path, Some(&scene.key)).await.json(), answer);
}

#[tokio::test]
async fn a_batch_that_breaks_the_interface_is_refused_whole() {
    let scene = Scene::set().await;
    let long = json!({"records": [{}], "sourceDeclaration": "x".repeat(501)});
    for (body, path) in [
        (json!({"records": []}), "/records"),
        (json!({"records": vec![json!({}); 501]}), "/records"),
        (json!({"records": [{}, 5]}), "/records/1"),
        (json!({"records": {}}), "/records"),
        (json!({}), "/records"),
        (long, "/sourceDeclaration"),
        (json!({"records": [{}], "sourceDeclaration": 1}), "/sourceDeclaration"),
        (json!({"records": [{}], "wait": 1}), "/wait"),
    ] {
        let got = scene.contribute(&body, None).await;
        assert_eq!(got.status, 400, "{path}");
        assert_eq!(got.json()["details"][0]["path"], path);
    }
    let outbox = scene.service.app.store.open_count_and_bytes().await.unwrap();
    assert_eq!(outbox.open, 0);
}

#[tokio::test]
async fn a_repeated_key_replays_and_another_body_is_refused() {
    let scene = Scene::set().await;
    let first = scene.contribute(&three(), Some("k-1")).await;
    assert_eq!(first.status, 201);
    let again = scene.contribute(&three(), Some("k-1")).await;
    assert_eq!(again.status, 200);
    assert_eq!(again.json()["replayed"], true);
    assert_eq!(again.json()["id"], first.json()["id"]);
    scene.decide(first.json()["id"].as_str().unwrap(), merged(), &[]).await;
    let decided = scene.contribute(&three(), Some("k-1")).await.json();
    assert_eq!(
        (&decided["status"], &decided["mergedVersion"]),
        (&json!("merged"), &json!(1))
    );
    let other = scene
        .contribute(&json!({"records": [{"name": "z"}]}), Some("k-1"))
        .await;
    assert_eq!(
        (other.status.as_u16(), other.json()["error"].as_str()),
        (422, Some("idempotency_key_reused"))
    );
    scene.service.clock.advance(std::time::Duration::from_hours(24));
    assert_eq!(scene.contribute(&three(), Some("k-1")).await.status, 201);
}

#[tokio::test]
async fn a_repeated_key_replays_when_the_storage_is_used_up() {
    let mut few = limits();
    few.storage_per_operator = Size(4_000);
    let scene = Scene::with(few).await;
    let first = scene.contribute(&three(), Some("k-1")).await;
    assert_eq!(first.status, 201, "{}", first.json());
    let id: ContributionId = first.json()["id"].as_str().unwrap().parse().unwrap();
    let earlier = scene.service.app.store.contribution(id).await.unwrap().unwrap();
    // More than the storage, however it is compressed.
    let names: Vec<Value> = (0..200_u8)
        .map(|n| json!({"name": blake3::hash(&[n]).to_string()}))
        .collect();
    scene
        .service
        .merged_in_the_table_only("weather", id, earlier.agent, &names)
        .await;
    // The size of what is stored is read again after 10 seconds.
    scene.service.clock.advance(std::time::Duration::from_secs(10));
    assert_eq!(scene.contribute(&three(), None).await.status, 402);
    let again = scene.contribute(&three(), Some("k-1")).await;
    assert_eq!((again.status.as_u16(), &again.json()["replayed"]), (200, &json!(true)));
    let other = json!({"records": [{"name": "z"}]});
    assert_eq!(scene.contribute(&other, Some("k-1")).await.status, 422);
    assert_eq!(scene.contribute(&other, Some("k-2")).await.status, 402);
}

#[tokio::test]
async fn a_batch_sees_the_storage_that_was_just_filled() {
    let mut few = limits();
    few.storage_per_operator = Size(30_000);
    let scene = Scene::with(few).await;
    let service = &scene.service;
    let key = service.agent(&scene.maintainer, "maintainer").await;
    let mut round = 0_u8;
    // The clock stands still, so that nothing is read again because time has passed.
    let full = loop {
        let names: Vec<Value> = (0..30_u8)
            .map(|n| json!({"name": blake3::hash(&[round, n]).to_string()}))
            .collect();
        let body = json!({ "records": names }).to_string();
        let sent = service
            .call("POST", "/projects/weather/contribute", Some(&key), &body)
            .await;
        if sent.status != 201 {
            break sent;
        }
        service.merged(&key, "weather", &names).await;
        round += 1;
        assert!(round < 50, "more is stored than may be");
    };
    let quota = service.get("/quota", Some(&key)).await.json();
    assert_eq!(
        (full.status.as_u16(), &full.json()["quota"]["storage"]["used"]),
        (402, &quota["storage"]["used"]),
        "{}",
        full.json()
    );
    assert!(quota["storage"]["used"].as_u64().unwrap() <= 30_000, "{quota}");
}

#[tokio::test]
async fn fifty_twins_of_one_key_are_one_contribution() {
    let scene = Scene::set().await;
    let body = three();
    let twins = (0..50).map(|_| scene.contribute(&body, Some("twin")));
    let answers = futures_util::future::join_all(twins).await;
    let created = answers.iter().filter(|got| got.status == 201).count();
    let replayed = answers
        .iter()
        .filter(|got| got.status == 200 && got.json()["replayed"] == true)
        .count();
    assert_eq!((created, replayed), (1, 49));
    assert!(answers.iter().all(|got| got.json()["id"] == answers[0].json()["id"]));
    assert_eq!(scene.service.app.store.open_count_and_bytes().await.unwrap().open, 1);
}

#[tokio::test]
async fn an_idempotency_key_is_visible_ascii_of_bounded_length() {
    let scene = Scene::set().await;
    for key in ["", "a b", &"x".repeat(256)] {
        let got = scene.contribute(&three(), Some(key)).await;
        assert_eq!(
            (got.status.as_u16(), got.json()["details"][0]["path"].as_str()),
            (400, Some("/Idempotency-Key")),
            "{key}"
        );
    }
    assert_eq!(scene.contribute(&three(), Some(&"~".repeat(255))).await.status, 201);
}

#[tokio::test]
async fn a_project_that_is_not_open_takes_no_contributions() {
    let scene = Scene::set().await;
    for status in ["paused", "archived"] {
        let body = json!({"status": status}).to_string();
        let patched = scene
            .service
            .call("PATCH", "/projects/weather", Some(&scene.maintainer), &body)
            .await;
        assert_eq!(patched.status, 200);
        let got = scene.contribute(&three(), None).await;
        assert_eq!(
            (got.status.as_u16(), got.json()["error"].as_str()),
            (409, Some("project_not_open"))
        );
        assert_eq!(got.json()["status"], status);
    }
}

#[tokio::test]
async fn the_allowance_of_a_day_is_for_public_projects_and_starts_anew_at_midnight() {
    let mut few = limits();
    few.public_contributions_per_day = 1;
    let scene = Scene::with(few).await;
    assert_eq!(scene.contribute(&three(), None).await.status, 201);
    let got = scene.contribute(&three(), None).await;
    assert_eq!(got.status, 429);
    assert_eq!(
        got.json()["allowance"],
        json!({
            "kind": "contribution", "limit": 1, "used": 1, "remaining": 0, "resetAt": "2026-11-22T00:00:00Z",
        })
    );
    assert_eq!(got.headers["retry-after"], (17 * 3_600).to_string().as_str());
    scene
        .service
        .project(&scene.key, "mine", &json!({"visibility": "private"}))
        .await;
    for _ in 0..2 {
        let body = three().to_string();
        let private = scene
            .service
            .call("POST", "/projects/mine/contribute", Some(&scene.key), &body)
            .await;
        assert_eq!(private.status, 201);
    }
    scene.service.clock.advance(std::time::Duration::from_hours(17));
    assert_eq!(scene.contribute(&three(), None).await.status, 201);
}

#[tokio::test]
async fn a_rejected_batch_names_its_offending_records_and_every_record_has_a_verdict() {
    let scene = Scene::set().await;
    let id = scene.contribute(&three(), None).await.json()["id"]
        .as_str()
        .unwrap()
        .to_owned();
    let path = format!("/projects/weather/contributions/{id}");
    let undecided = scene.service.get(&format!("{path}/verdicts"), Some(&scene.key)).await;
    assert_eq!(
        (undecided.status.as_u16(), undecided.json()["error"].as_str()),
        (409, Some("undecided"))
    );
    let verdicts = [
        RowVerdict::of_record(
            1,
            Verdict::Drop {
                reason: reason("duplicate"),
            },
        ),
        RowVerdict {
            line: Some(4),
            ..RowVerdict::of_record(
                2,
                Verdict::Refuse {
                    reasons: vec![reason("type"), reason("range")],
                },
            )
        },
    ];
    let rejected = Resolution::Rejected {
        code: "refused".to_owned(),
        message: "1 of 3 records".to_owned(),
    };
    scene.decide(&id, rejected, &verdicts).await;
    let outcome = scene.service.get(&path, Some(&scene.key)).await.json();
    assert_eq!(outcome["status"], "rejected");
    assert_eq!(
        outcome["reason"],
        json!({"code": "refused", "message": "1 of 3 records"})
    );
    assert_eq!(outcome["verdicts"][1]["reasons"][1]["code"], "range");
    assert_eq!(outcome["tallies"][0]["refused"], 1);
    assert_eq!(outcome["verdictsUrl"], format!("http://sluice.test{path}/verdicts"));
    let verdicts = format!("{path}/verdicts");
    let got = scene.service.get(&verdicts, Some(&scene.key)).await;
    assert_eq!(got.headers["content-type"], "application/x-ndjson; charset=utf-8");
    let text = String::from_utf8(got.bytes).unwrap();
    let lines: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(lines.len(), 3);
    assert_eq!(lines[0], json!({"row": 0, "verdict": "pass"}));
    assert_eq!(lines[1]["verdict"], "drop");
    assert_eq!(lines[2]["reasons"].as_array().unwrap().len(), 2);
    // A person reads them in no other way than an agent of the operator does.
    assert_eq!(scene.service.get(&verdicts, Some(&scene.maintainer)).await.status, 401);
}

#[tokio::test]
async fn nothing_is_said_of_records_that_no_gate_has_seen() {
    let scene = Scene::set().await;
    let id = scene.contribute(&three(), None).await.json()["id"]
        .as_str()
        .unwrap()
        .to_owned();
    let unprocessable = Resolution::Rejected {
        code: "unprocessable".to_owned(),
        message: "it ended its worker".to_owned(),
    };
    scene.decide(&id, unprocessable, &[]).await;
    let path = format!("/projects/weather/contributions/{id}/verdicts");
    let got = scene.service.get(&path, Some(&scene.key)).await;
    assert_eq!((got.status.as_u16(), got.bytes.as_slice()), (200, [].as_slice()));
}

#[tokio::test]
async fn a_waiting_batch_says_why_and_until_when() {
    let scene = Scene::set().await;
    let id = scene.contribute(&three(), None).await.json()["id"]
        .as_str()
        .unwrap()
        .to_owned();
    let resumes: Timestamp = "2026-11-22T00:00:00Z".parse().unwrap();
    let waiting = Resolution::Waiting {
        reason: "budget".to_owned(),
        resumes_after: Some(resumes),
    };
    scene.decide(&id, waiting, &[]).await;
    let got = scene
        .service
        .get(&format!("/projects/weather/contributions/{id}"), Some(&scene.key))
        .await
        .json();
    assert_eq!(
        (&got["status"], &got["reason"]["code"], &got["resumesAfter"]),
        (&json!("waiting"), &json!("budget"), &json!("2026-11-22T00:00:00Z"))
    );
}

#[tokio::test]
async fn who_waits_is_answered_when_the_outcome_is_there() {
    let scene = Scene::set().await;
    let id = scene.contribute(&three(), None).await.json()["id"]
        .as_str()
        .unwrap()
        .to_owned();
    let path = format!("/projects/weather/contributions/{id}?wait=20");
    let (got, ()) = tokio::join!(
        scene.service.get(&path, Some(&scene.key)),
        scene.decide(&id, merged(), &[])
    );
    let outcome = got.json();
    assert_eq!(
        (
            &outcome["status"],
            &outcome["mergedVersion"],
            &outcome["acceptedCount"],
            &outcome["recordCount"]
        ),
        (&json!("merged"), &json!(1), &json!(2), &json!(2))
    );
    let project = scene.service.get("/projects/weather", None).await.json();
    assert_eq!(
        (&project["latestVersion"], &project["recordCount"]),
        (&json!(1), &json!(2))
    );
    assert_eq!(project["versions"][0]["contributor"], "bob");
    assert_eq!(
        project["contributors"],
        json!([{"agent": "bob", "contributions": 1, "acceptedCount": 2}])
    );
}

#[tokio::test]
async fn a_contribution_is_seen_by_its_contributor_and_the_maintainer_only() {
    let scene = Scene::set().await;
    let id = scene.contribute(&three(), None).await.json()["id"]
        .as_str()
        .unwrap()
        .to_owned();
    let stranger = scene.service.operator().await;
    let strange = scene.service.agent(&stranger, "eve").await;
    let kept = scene.service.agent(&scene.maintainer, "keeper").await;
    let path = format!("/projects/weather/contributions/{id}");
    for reader in [&scene.key, &kept] {
        let seen = scene.service.get(&path, Some(reader)).await;
        assert_eq!(seen.status, 200);
        assert_eq!(seen.json()["sourceDeclaration"], "Made up\nfor a test.");
    }
    assert_eq!(scene.service.get(&path, Some(&strange)).await.status, 404);
    assert_eq!(
        scene
            .service
            .get(&format!("{path}/verdicts"), Some(&strange))
            .await
            .status,
        404
    );
    scene.service.project(&scene.key, "other", &json!({})).await;
    assert_eq!(
        scene
            .service
            .get(&format!("/projects/other/contributions/{id}"), Some(&scene.key))
            .await
            .status,
        404
    );
    let malformed = scene
        .service
        .get("/projects/weather/contributions/nonsense", Some(&scene.key))
        .await;
    assert_eq!(
        (
            malformed.status.as_u16(),
            malformed.json()["details"][0]["problem"].as_str()
        ),
        (400, Some("must be a UUID"))
    );
}

//! Submissions, revisions, their limits, and what the owner sees of them.

use std::time::Duration;

use super::*;

#[tokio::test]
async fn a_submission_is_shown_as_it_was_sent_and_waits_in_the_outbox() {
    let world = World::start().await;
    let got = world
        .submit_with(
            "한국어 body.",
            &json!({"price": "0.25", "trialSale": true, "license": "CC-BY-4.0"}),
        )
        .await;
    assert_eq!(got.status, 201, "{}", got.text());
    let made = got.json();
    let id = made["id"].as_str().unwrap();
    assert_eq!(
        (made["status"].as_str(), made["validation"]["state"].as_str()),
        (Some("queued"), Some("queued"))
    );
    assert_eq!(
        (
            made["chainId"].as_str(),
            made["language"].as_str(),
            made["length"].as_u64()
        ),
        (Some(id), Some("ko"), Some(9))
    );
    assert_eq!(
        (made["price"].as_str(), made["license"].as_str(), made["agent"].as_str()),
        (Some("0.25"), Some("CC-BY-4.0"), Some("author"))
    );
    assert_eq!(
        (made["validations"].clone(), made["url"].clone()),
        (json!([]), json!(format!("http://sluice.test/units/{id}")))
    );
    for absent in ["version", "scores", "reason", "decidedAt", "takenDown", "supersededBy"] {
        assert!(made.get(absent).is_none(), "{absent}");
    }
    let later = world.service.clock.now().plus(Duration::from_mins(5));
    let due = world.service.app.store.knowledge().due(later, 10).await.unwrap();
    assert_eq!(due.len(), 1);
    let message = messages::UnitSubmission::decode(&due[0].submission).unwrap();
    assert_eq!(
        (message.unit.to_string(), message.text.body),
        (id.to_owned(), "한국어 body.".to_owned())
    );
    let again = world.submit("한국어   BODY!").await;
    assert_eq!(
        (again.status.as_u16(), again.json()["error"].as_str()),
        (409, Some("duplicate_submission"))
    );
    assert_eq!(
        (again.json()["unitId"].as_str(), again.json()["status"].as_str()),
        (Some(id), Some("queued"))
    );
}

#[tokio::test]
async fn an_outcome_is_shown_with_scores_and_reasons() {
    let world = World::start().await;
    let id = world.submitted("One.").await;
    world.reject(&id).await;
    let got = world.get(&format!("/knowledge/{id}"), Some(&world.author)).await.json();
    assert_eq!(
        (got["status"].as_str(), got["reason"]["code"].as_str()),
        (Some("rejected"), Some("score_below_55"))
    );
    assert!(got.get("validation").is_none());
    let entry = &got["validations"][0];
    assert_eq!(
        (entry["step"].as_str(), entry["detail"].as_str()),
        (Some("score"), Some("Say more of the machine."))
    );
    assert_eq!(
        (
            entry["scores"]["accuracy"].as_f64(),
            entry["scores"]["passMark"].as_u64()
        ),
        (Some(6.2), Some(55))
    );
    assert_eq!(entry["judge"], json!({"kind": "heuristic", "name": "rubric-1"}));
    // The same text may be sent again after a rejection.
    let id = world.published("One.", 71).await;
    world.service.clock.advance(Duration::from_secs(1));
    let next = world.revised(&id, "Two.").await;
    world.publish(&next, 80).await;
    let got = world.get(&format!("/knowledge/{id}"), Some(&world.author)).await.json();
    assert_eq!(
        (got["status"].as_str(), got["version"].as_u64()),
        (Some("superseded"), Some(1))
    );
    assert_eq!(
        (got["supersededBy"].as_str(), got["scores"]["total"].as_u64()),
        (Some(next.as_str()), Some(71))
    );
    let statuses: Vec<_> = got["versions"]
        .as_array()
        .unwrap()
        .iter()
        .map(|line| line["status"].as_str().unwrap())
        .collect();
    assert_eq!(statuses, ["published", "superseded"]);
}

/// A held version says why and until when, and so does the quota.
#[tokio::test]
async fn a_hold_is_told_in_one_shape() {
    let world = World::start().await;
    let id = world.submitted("One.").await;
    let until = world.service.clock.now().plus(Duration::from_hours(3));
    let held = UnitResolution::Waiting {
        reason: "budget".to_owned(),
        resumes_after: Some(until),
    };
    assert!(world.apply(&id, held).await);
    let got = world.get(&format!("/knowledge/{id}"), Some(&world.author)).await.json();
    let validation = &got["validation"];
    assert_eq!(
        (
            got["status"].as_str(),
            validation["state"].as_str(),
            validation["reason"].as_str()
        ),
        (Some("waiting"), Some("waiting"), Some("budget"))
    );
    assert_eq!(validation["resumesAfter"], got["resumesAfter"]);
    assert_eq!(got["resumesAfter"].as_str(), Some(until.to_string().as_str()));
    let quota = world.get("/quota", Some(&world.author)).await.json();
    assert_eq!(
        (
            quota["validation"]["state"].as_str(),
            quota["validation"]["reason"].as_str()
        ),
        (Some("waiting"), Some("budget"))
    );
    world
        .service
        .app
        .validation
        .refresh(&world.service.app.store)
        .await
        .unwrap();
    let next = world.submit("Two.").await.json();
    assert_eq!(
        (next["status"].as_str(), next["validation"]["reason"].as_str()),
        (Some("waiting"), Some("budget"))
    );
    world.service.clock.advance(Duration::from_hours(3));
    let quota = world.get("/quota", Some(&world.author)).await.json();
    assert_eq!(quota["validation"]["state"], "running");
    let third = world.submit("Three.").await.json();
    assert_eq!(third["status"], "queued");
}

#[tokio::test]
async fn a_pause_keeps_submissions_waiting() {
    let world = World::start().await;
    let (store, now) = (&world.service.app.store, world.service.clock.now());
    assert!(store.validation_pause(true, now).await.unwrap());
    world.service.app.validation.refresh(store).await.unwrap();
    let got = world.submit("One.").await.json();
    assert_eq!(
        (got["status"].as_str(), got["validation"]["reason"].as_str()),
        (Some("waiting"), Some("paused"))
    );
    assert!(got["validation"].get("resumesAfter").is_none());
}

#[tokio::test]
async fn limits_of_the_hour_and_the_day_say_when_to_come_back() {
    let world = World::with(Limits {
        knowledge_per_day: 10,
        submissions_per_agent_per_hour: 6,
        revisions_per_agent_per_hour: 12,
        ..wide()
    })
    .await;
    let id = world.published("Text 0.", 60).await;
    for number in 1..6 {
        world.submitted(&format!("Text {number}.")).await;
    }
    world.service.clock.advance(Duration::from_mins(50));
    let got = world.submit("Text 6.").await;
    assert_eq!(
        (got.status.as_u16(), got.json()["error"].as_str()),
        (429, Some("hourly_limit"))
    );
    assert_eq!(got.json()["retryAfter"], 600);
    assert_eq!(got.headers["retry-after"], "600");
    // Revisions have an hour of their own, and share the day.
    let mut latest = id;
    for number in 0..4 {
        let next = world.revised(&latest, &format!("Revision {number}.")).await;
        world.publish(&next, 60).await;
        latest = next;
    }
    let path = format!("/knowledge/{latest}/revise");
    let got = world
        .post(&path, Some(&world.author), &json!({"body": "Revision 4."}))
        .await;
    let body = got.json();
    assert_eq!(
        (got.status.as_u16(), body["error"].as_str()),
        (429, Some("allowance_spent"))
    );
    assert_eq!(body["allowance"]["kind"], "knowledge");
    assert_eq!(
        (body["allowance"]["limit"].as_u64(), body["allowance"]["used"].as_u64()),
        (Some(10), Some(10))
    );
    assert_eq!(body["allowance"]["resetAt"], "2026-11-22T00:00:00Z");
    assert_eq!(
        got.headers["retry-after"].to_str().unwrap().parse::<u64>().unwrap(),
        16 * 3600 + 10 * 60
    );
    let quota = world.get("/quota", Some(&world.author)).await.json();
    assert_eq!(
        quota["validation"]["remaining"],
        json!({"knowledge": 0, "contributions": 200})
    );
    assert_eq!(quota["validation"]["resetAt"], "2026-11-22T00:00:00Z");
    assert_eq!(quota["egress"]["resetsAt"], "2026-12-01T00:00:00Z");
    // The other operator has a day of its own.
    let got = world
        .post("/knowledge", Some(&world.other), &unit("Text of another."))
        .await;
    assert_eq!(got.status, 201);
}

#[tokio::test]
async fn only_the_latest_version_is_revised_and_retired() {
    let world = World::start().await;
    let one = world.published("One.", 60).await;
    let two = world.revised(&one, "Two.").await;
    let revise = async |id: &str, body: &str| {
        world
            .post(
                &format!("/knowledge/{id}/revise"),
                Some(&world.author),
                &json!({"body": body}),
            )
            .await
    };
    let got = revise(&one, "Three.").await;
    assert_eq!(
        (
            got.status.as_u16(),
            got.json()["error"].as_str(),
            got.json()["unitId"].as_str()
        ),
        (409, Some("revision_in_validation"), Some(two.as_str()))
    );
    world.publish(&two, 60).await;
    let got = revise(&one, "Three.").await;
    assert_eq!(
        (got.json()["error"].as_str(), got.json()["latest"].as_str()),
        (Some("not_latest"), Some(two.as_str()))
    );
    // Members that are left out are copied from the latest version.
    let three = world.revised(&two, "Three.").await;
    let got = world
        .get(&format!("/knowledge/{three}"), Some(&world.author))
        .await
        .json();
    assert_eq!(
        (
            got["title"].as_str(),
            got["predecessor"].as_str(),
            got["chainId"].as_str()
        ),
        (Some("A title"), Some(two.as_str()), Some(one.as_str()))
    );
    let retire = async |id: &str| {
        world
            .post(&format!("/knowledge/{id}/retire"), Some(&world.author), &json!({}))
            .await
    };
    let got = retire(&one).await;
    assert_eq!(
        (got.status.as_u16(), got.json()["latest"].as_str()),
        (409, Some(two.as_str()))
    );
    let got = retire(&two).await;
    assert_eq!(
        (got.status.as_u16(), got.json()["status"].as_str()),
        (200, Some("retired"))
    );
    assert!(!world.apply(&three, resolution(90)).await);
    let got = world
        .get(&format!("/knowledge/{three}"), Some(&world.author))
        .await
        .json();
    assert_eq!(
        (got["status"].as_str(), got["reason"]["code"].as_str()),
        (Some("rejected"), Some("chain_retired"))
    );
}

#[tokio::test]
async fn a_price_changes_once_a_day() {
    let world = World::start().await;
    let id = world.published("One.", 60).await;
    let price = async |price: Value| {
        let body = json!({"price": price}).to_string();
        world
            .service
            .call("PUT", &format!("/knowledge/{id}/price"), Some(&world.author), &body)
            .await
    };
    let got = price(json!("0.25")).await.json();
    assert_eq!(
        (
            got["price"].as_str(),
            got["priceMicro"].as_i64(),
            got["locked"].as_bool()
        ),
        (Some("0.25"), Some(250_000), Some(true))
    );
    assert_eq!(price(json!(0.25)).await.status, 200);
    let got = price(json!(null)).await;
    assert_eq!(
        (
            got.status.as_u16(),
            got.json()["error"].as_str(),
            got.json()["retryAfter"].as_u64()
        ),
        (429, Some("price_changed"), Some(86_400))
    );
    world.service.clock.advance(Duration::from_hours(24));
    let got = price(json!(null)).await.json();
    assert_eq!(
        (
            got["price"].clone(),
            got["priceMicro"].as_i64(),
            got["locked"].as_bool()
        ),
        (json!(null), Some(10_000), Some(false))
    );
    let got = world
        .service
        .call("PUT", &format!("/knowledge/{id}/price"), Some(&world.author), "{}")
        .await;
    assert_eq!(got.status, 400);
}

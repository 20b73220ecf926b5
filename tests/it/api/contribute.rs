//! Contributions: from the acknowledgement to a version or a reason.

use std::time::Instant;

use serde_json::{Value, json};
use tests::world::{all_data, batch, contribute, decided, records};

use super::world;

#[tokio::test]
async fn a_batch_becomes_the_next_version() {
    let world = world().await;
    let slug = world.project().await;
    for (version, series) in (1..=3).zip(["a", "b", "c"]) {
        let merged = contribute(&world.agent.http, &slug, &records(series, 10)).await;
        assert_eq!(merged.text("/status"), "merged");
        let told = ["mergedVersion", "acceptedCount", "recordCount"].map(|name| merged.body[name].as_u64());
        assert_eq!(told, [Some(version), Some(10), Some(version * 10)]);
    }
}

#[tokio::test]
async fn the_acknowledgement_names_the_contribution_and_its_status() {
    let world = world().await;
    let slug = world.project().await;
    let path = format!("/projects/{slug}/contribute");
    let answer = world.agent.http.post(&path, &batch(&records("a", 3))).await.expect(201);
    let id = answer.text("/id");
    assert_eq!(id.len(), 36, "{id}");
    assert!(
        matches!(answer.text("/status"), "submitted" | "merged"),
        "{}",
        answer.body
    );
    let read = decided(&world.agent.http, &slug, id).await;
    assert_eq!(read.text("/id"), id);
    // Whoever may see the project may see the contribution, under this project only.
    let other = world.project().await;
    world
        .agent
        .http
        .get(&format!("/projects/{other}/contributions/{id}"))
        .await
        .expect(404);
    world
        .http
        .get(&format!("/projects/{slug}/contributions/{id}"))
        .await
        .expect(401);
    let nobody = "019a0000-0000-7000-8000-000000000000";
    world
        .agent
        .http
        .get(&format!("/projects/{slug}/contributions/{nobody}"))
        .await
        .expect(404);
    let malformed = world.agent.http.get(&format!("/projects/{slug}/contributions/7")).await;
    assert!(matches!(malformed.code(), 400 | 404), "{}", malformed.body);
}

#[tokio::test]
async fn duplicates_are_dropped_within_a_batch_and_against_the_table() {
    let world = world().await;
    let slug = world.project().await;
    let mut twice = records("a", 4);
    twice.extend(records("a", 4));
    let merged = contribute(&world.agent.http, &slug, &twice).await;
    assert_eq!(
        (&merged.body["acceptedCount"], &merged.body["recordCount"]),
        (&json!(4), &json!(4))
    );
    let merged = contribute(&world.agent.http, &slug, &records("a", 6)).await;
    assert_eq!(
        (&merged.body["acceptedCount"], &merged.body["recordCount"]),
        (&json!(2), &json!(6))
    );
    let rejected = contribute(&world.agent.http, &slug, &records("a", 6)).await;
    assert_eq!(rejected.text("/status"), "rejected");
    assert!(rejected.body.to_string().contains("duplicate"), "{}", rejected.body);
    assert_eq!(all_data(&world.agent.http, &slug, 2).await.len(), 6);
    world
        .agent
        .http
        .get(&format!("/projects/{slug}/data?version=3"))
        .await
        .expect(404);
}

#[tokio::test]
async fn spellings_of_one_record_are_one_record() {
    let world = world().await;
    let slug = world.project().await;
    let spellings = r#"{"records":[
        {"station":"a","sample":1,"value":1.0,"at":"2026-01-02T03:04:05Z"},
        {"value":1,"sample":1.0,"station":"\u0061","at":"2026-01-02T04:04:05.000+01:00"},
        {"station":"a","sample":1,"value":1e0,"good":null,"at":"2026-01-02t03:04:05z"},
        {"station":"a","sample":1,"value":-0.0},
        {"station":"a","sample":1,"value":0}
    ]}"#;
    let path = format!("/projects/{slug}/contribute?wait=20");
    let answer = world.agent.http.post_bytes(&path, spellings).await.expect(201);
    let merged = decided(&world.agent.http, &slug, answer.text("/id")).await;
    assert_eq!(merged.body["acceptedCount"], 2, "{}", merged.body);
    // Composed and decomposed letters are different texts.
    let letters = [
        json!({"station": "\u{e9}", "sample": 1}),
        json!({"station": "e\u{301}", "sample": 1}),
    ];
    let merged = contribute(&world.agent.http, &slug, &letters).await;
    assert_eq!(merged.body["acceptedCount"], 2, "{}", merged.body);
}

#[tokio::test]
async fn one_bad_record_rejects_its_batch_and_every_bad_record_is_named() {
    let world = world().await;
    let slug = world.project().await;
    let mut rows = records("a", 6);
    rows[1]["sample"] = json!("one");
    rows[2].as_object_mut().unwrap().remove("station");
    rows[4]["colour"] = json!("red");
    rows[5] = json!({"station": "a", "sample": 1.5, "value": "x", "at": "yesterday", "good": 1});
    let rejected = contribute(&world.agent.http, &slug, &rows).await;
    assert_eq!(rejected.text("/status"), "rejected", "{}", rejected.body);
    let id = rejected.text("/id");
    let verdicts = world
        .agent
        .http
        .get(&format!("/projects/{slug}/contributions/{id}/verdicts"))
        .await
        .expect(200);
    assert_eq!(verdicts.header("content-type"), "application/x-ndjson; charset=utf-8");
    let lines: Vec<Value> = String::from_utf8(verdicts.bytes)
        .unwrap()
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .filter(|line: &Value| line["verdict"] != "pass")
        .collect();
    let named: std::collections::BTreeSet<_> = lines.iter().map(|line| line["row"].as_u64().unwrap()).collect();
    assert_eq!(named, [1, 2, 4, 5].into(), "{lines:?}");
    let shown = lines.iter().map(ToString::to_string).collect::<String>();
    for path in ["/sample", "/station", "/colour", "/value", "/at", "/good"] {
        assert!(shown.contains(path), "{path} is not named: {shown}");
    }
    let data = world
        .agent
        .http
        .get(&format!("/projects/{slug}/data"))
        .await
        .expect(200);
    assert_eq!((&data.body["version"], &data.body["total"]), (&json!(0), &json!(0)));
    world
        .agent
        .http
        .get(&format!("/projects/{slug}/data?version=1"))
        .await
        .expect(404);
}

#[tokio::test]
async fn personal_data_is_rejected_and_never_echoed() {
    let world = world().await;
    let slug = world.project().await;
    let address = "jane.q.public@example-mail.org";
    let card = "4111 1111 1111 1111";
    let rows = [
        json!({"station": format!("write to {address}"), "sample": 1}),
        json!({"station": "fine", "sample": 2}),
        json!({"station": format!("paid with card {card}"), "sample": 3}),
    ];
    let rejected = contribute(&world.agent.http, &slug, &rows).await;
    assert_eq!(rejected.text("/status"), "rejected", "{}", rejected.body);
    let path = format!("/projects/{slug}/contributions/{}/verdicts", rejected.text("/id"));
    let verdicts = String::from_utf8(world.agent.http.get(&path).await.expect(200).bytes).unwrap();
    assert_eq!(verdicts.matches("\"refuse\"").count(), 2, "{verdicts}");
    for secret in [address, card, "4111"] {
        assert!(
            !verdicts.contains(secret) && !rejected.body.to_string().contains(secret),
            "echoes {secret}"
        );
    }
}

#[tokio::test]
async fn five_hundred_records_are_merged_and_readable_at_once() {
    let world = world().await;
    let slug = world.project().await;
    let path = format!("/projects/{slug}/contribute?wait=20");
    let answer = world
        .agent
        .http
        .post(&path, &batch(&records("a", 500)))
        .await
        .expect(201);
    assert_eq!(answer.text("/status"), "merged", "{}", answer.body);
    assert_eq!(all_data(&world.agent.http, &slug, 1).await.len(), 500);
}

#[tokio::test]
async fn wait_ends_with_the_outcome_not_with_the_time() {
    let world = world().await;
    let slug = world.project().await;
    let path = format!("/projects/{slug}/contribute");
    let answer = world.agent.http.post(&path, &batch(&records("a", 3))).await.expect(201);
    let begun = Instant::now();
    let read = world
        .agent
        .http
        .get(&format!(
            "/projects/{slug}/contributions/{}?wait=20",
            answer.text("/id")
        ))
        .await;
    assert_eq!(read.text("/status"), "merged");
    assert!(begun.elapsed().as_secs() < 15, "{:?}", begun.elapsed());
}

#[tokio::test]
async fn extras_are_kept_where_they_are_allowed() {
    let world = world().await;
    let def = json!({"fields": [{"name": "a", "type": "string", "required": true}], "allowExtra": true});
    let slug = world.project_with(json!({"schemaDef": def})).await;
    let record = json!({"a": "x", "more": {"z": [1, 2.5], "a": "\u{1f30d}"}, "n": 7});
    contribute(&world.agent.http, &slug, std::slice::from_ref(&record)).await;
    assert_eq!(all_data(&world.agent.http, &slug, 1).await, [record]);
}

#[tokio::test]
async fn a_contract_of_every_type_gives_back_what_was_sent() {
    let world = world().await;
    let slug = world.project().await;
    let sent = [
        json!({"station": "", "sample": i64::MIN, "value": 5e-324, "at": "0001-01-01T00:00:00Z", "good": true,
            "more": {"deep": [[[null, "x"]]], "n": 1}}),
        json!({"station": "\u{1f30d}\t\"\\\u{7f}", "sample": i64::MAX, "value": -1.797_693_134_862_315_7e308,
            "at": "9999-12-30T21:59:59.999999Z", "good": false, "more": "text"}),
        json!({"station": "x", "sample": 0, "value": null, "at": null, "good": null, "more": null}),
    ];
    let merged = contribute(&world.agent.http, &slug, &sent).await;
    assert_eq!(merged.text("/status"), "merged", "{}", merged.body);
    let read = all_data(&world.agent.http, &slug, 1).await;
    assert_eq!(read, sent);
}

#[tokio::test]
async fn contributions_of_two_agents_with_the_same_records_count_once() {
    let world = world().await;
    let slug = world.project().await;
    let (_, other) = world.newcomer().await;
    let rows = records("a", 20);
    let (first, second) = tokio::join!(
        contribute(&world.agent.http, &slug, &rows),
        contribute(&other.http, &slug, &rows)
    );
    let mut statuses = [first.text("/status"), second.text("/status")];
    statuses.sort_unstable();
    assert_eq!(statuses, ["merged", "rejected"]);
    assert_eq!(all_data(&world.agent.http, &slug, 1).await.len(), 20);
}

#[tokio::test]
async fn what_was_merged_is_there_after_a_restart() {
    let world = world().await;
    let slug = world.project().await;
    contribute(&world.agent.http, &slug, &records("a", 30)).await;
    let before = all_data(&world.agent.http, &slug, 1).await;
    let world = world.restart_with(|options| options).await;
    assert_eq!(all_data(&world.agent.http, &slug, 1).await, before);
    let rejected = contribute(&world.agent.http, &slug, &records("a", 30)).await;
    assert_eq!(rejected.text("/status"), "rejected");
    let merged = contribute(&world.agent.http, &slug, &records("b", 1)).await;
    assert_eq!(merged.body["mergedVersion"], 2);
}

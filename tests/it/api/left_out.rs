//! Refused records that are left out, numbers that are not rounded, and what an answer says of both.

use serde_json::{Value, json};
use tests::world::{contribute, decided, merged, records};
use tests::{Answer, World};

use super::{assert_names, world};
use crate::uploads::{begin, complete, fill, lines};

/// A batch of ten records of which the first are refused.
fn ten(refused: usize) -> Value {
    let mut all = records("ten", 10);
    for record in &mut all[..refused] {
        record["sample"] = json!("none");
    }
    json!({"records": all, "onRefused": "drop"})
}

async fn outcome(world: &World, slug: &str, body: &Value) -> Answer {
    let path = format!("/projects/{slug}/contribute?wait=20");
    let answer = world.agent.http.post(&path, body).await.expect(201);
    decided(&world.agent.http, slug, answer.text("/id")).await
}

#[tokio::test]
async fn refused_records_are_left_out_counted_and_listed() {
    let world = world().await;
    let slug = world.project().await;
    let validate = format!("/projects/{slug}/validate");
    let run = world.agent.http.post(&validate, &ten(4)).await.expect(200);
    assert_eq!(run.text("/decision"), "merge");
    let summary = "6 of 10 records are new; 4 refused and left out";
    assert_eq!(run.text("/summary"), summary);
    let run = world.agent.http.post(&validate, &ten(6)).await.expect(200);
    assert_eq!((run.text("/decision"), run.text("/reason/code")), ("reject", "refused"));

    let refused = outcome(&world, &slug, &ten(6)).await;
    assert_eq!(refused.text("/status"), "rejected");
    let message = "6 of 10 records are refused, more than half; a wrong delimiter or column is likelier";
    assert!(refused.text("/reason/message").starts_with(message), "{}", refused.body);
    let counts = |answer: &Answer| {
        ["submittedCount", "acceptedCount", "refusedCount", "droppedCount"].map(|name| answer.body[name].as_u64())
    };
    assert_eq!(counts(&refused), [Some(10), None, Some(6), Some(0)]);

    let mut with_duplicate = ten(4);
    let again = with_duplicate["records"][9].clone();
    with_duplicate["records"].as_array_mut().unwrap().push(again);
    let answer = outcome(&world, &slug, &with_duplicate).await;
    assert_eq!(answer.text("/status"), "merged");
    assert_eq!(counts(&answer), [Some(11), Some(6), Some(4), Some(1)]);
    let summary = "6 of 11 records are new; 1 duplicate dropped (9.1 %), 4 refused and left out";
    assert_eq!(answer.text("/summary"), summary);
    let shown = answer.body["verdicts"].as_array().unwrap();
    assert_eq!(shown.len(), 4);
    assert_eq!(shown[0]["reasons"][0]["path"], "/sample");
    let path = format!("/projects/{slug}/contributions/{}/verdicts", answer.text("/id"));
    let listed = world.agent.http.get(&path).await.expect(200);
    let lines = listed
        .bytes
        .split(|byte| *byte == b'\n')
        .filter(|line| !line.is_empty());
    let kinds: Vec<Value> = lines
        .map(|line| serde_json::from_slice::<Value>(line).unwrap()["verdict"].take())
        .collect();
    assert_eq!(kinds, [&["refuse"; 4][..], &["pass"; 6], &["drop"]].concat());
    // The usual policy rejects, and says so as before.
    let rejected = outcome(&world, &slug, &merged(ten(1), json!({"onRefused": "reject"}))).await;
    let message = "1 of 10 records is refused; the first is record 0 at `/sample`: expected integer, found string";
    assert!(
        rejected.text("/reason/message").starts_with(message),
        "{}",
        rejected.body
    );
    let unknown = merged(ten(1), json!({"onRefused": "skip"}));
    let path = format!("/projects/{slug}/contribute");
    assert_names(&world.agent.http.post(&path, &unknown).await, "/onRefused");
}

#[tokio::test]
async fn the_key_of_a_call_is_for_one_policy() {
    let world = world().await;
    let slug = world.project().await;
    let path = format!("/projects/{slug}/contribute?wait=20");
    let first = world.agent.http.post_once(&path, "one", &ten(4)).await.expect(201);
    let again = world.agent.http.post_once(&path, "one", &ten(4)).await.expect(200);
    assert_eq!(
        (again.text("/id"), &again.body["replayed"]),
        (first.text("/id"), &json!(true))
    );
    let other = merged(ten(4), json!({"onRefused": null}));
    world.agent.http.post_once(&path, "one", &other).await.expect(422);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_upload_leaves_refused_lines_out_and_is_completed_with_one_policy() {
    let world = world().await;
    let slug = world.project().await;
    let bytes = [&lines(0..6)[..], b"{\"station\":\"x\",\"sample\":\"y\"}\nno json\n"].concat();
    let upload = begin(&world.agent.http, &slug, &bytes, 100, "none").await;
    let tags = fill(&upload, &bytes, 100).await;
    let path = format!("/projects/{slug}/uploads/{}/complete", upload["id"].as_str().unwrap());
    let body = json!({"etags": tags, "onRefused": "drop"});
    let completed = world.agent.http.post(&path, &body).await.expect(201);
    let answer = decided(&world.agent.http, &slug, completed.text("/id")).await;
    assert_eq!(
        answer.text("/summary"),
        "6 of 8 records are new; 2 refused and left out"
    );
    assert_eq!(
        (&answer.body["refusedCount"], &answer.body["verdicts"][1]["row"]),
        (&json!(2), &json!(7))
    );
    world.agent.http.post(&path, &body).await.expect(201);
    let other = complete(&world.agent.http, &slug, &upload, &tags).await;
    assert_eq!((other.code(), other.error()), (409, "upload_completed"));
}

#[tokio::test]
async fn a_service_whose_workers_may_be_old_takes_no_such_contribution() {
    let world = world().await;
    let slug = world.project().await;
    let world = world
        .restart_with(|options| options.with("SLUICE__MESSAGES__WRITE_FORMAT", "1"))
        .await;
    let path = format!("/projects/{slug}/contribute");
    let refused = world.agent.http.post(&path, &ten(4)).await;
    assert_eq!((refused.code(), refused.error()), (503, "not_enabled"));
    let usual = merged(ten(0), json!({"onRefused": "reject"}));
    assert_eq!(outcome(&world, &slug, &usual).await.text("/status"), "merged");
    // A dry run writes nothing.
    world
        .agent
        .http
        .post(&format!("/projects/{slug}/validate"), &ten(4))
        .await
        .expect(200);
    let upload = begin(&world.agent.http, &slug, &lines(0..3), 1_000, "none").await;
    let tags = fill(&upload, &lines(0..3), 1_000).await;
    let path = format!("/projects/{slug}/uploads/{}/complete", upload["id"].as_str().unwrap());
    let refused = world
        .agent
        .http
        .post(&path, &json!({"etags": tags, "onRefused": "drop"}))
        .await;
    assert_eq!((refused.code(), refused.error()), (503, "not_enabled"));
    // It stays open.
    complete(&world.agent.http, &slug, &upload, &tags).await.expect(201);
}

#[tokio::test]
async fn a_number_that_a_double_does_not_keep_is_refused_at_every_door() {
    let world = world().await;
    let schema = json!({"fields": [
        {"name": "wei", "type": "number"}, {"name": "more", "type": "json"}, {"name": "text", "type": "string"},
    ], "allowExtra": true});
    let slug = world.project_with(json!({"schemaDef": schema})).await;
    let body = |record: &str| format!("{{\"records\":[{{\"text\":\"a\"}},{record}]}}");
    for (record, path, number) in [
        (
            "{\"wei\":1000000000000000000007}",
            "/records/1/wei",
            "1000000000000000000007",
        ),
        (
            "{\"wei\":0.333333333333333333}",
            "/records/1/wei",
            "0.333333333333333333",
        ),
        (
            "{\"more\":{\"a\":[1,9007199254740993.0]}}",
            "/records/1/more/a/1",
            "9007199254740993.0",
        ),
        (
            "{\"amount\":18446744073709551617}",
            "/records/1/amount",
            "18446744073709551617",
        ),
    ] {
        for operation in ["contribute", "validate"] {
            let refused = world
                .agent
                .http
                .post_bytes(&format!("/projects/{slug}/{operation}"), body(record))
                .await;
            assert_names(&refused, path);
            assert_eq!(refused.error(), "digits");
            let problem = refused.text("/details/0/problem");
            let expected = format!(
                "must be a number that a double keeps, found {number}; send it as text to a `decimal` or `string` field"
            );
            assert_eq!(problem, expected);
        }
        let call = format!(
            "{{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/call\",\"params\":{{\"name\":\"contribute_records\",\
             \"arguments\":{{\"slug\":\"{slug}\",\"records\":[{{\"text\":\"a\"}},{record}]}}}}}}"
        );
        let answer = world.agent.http.post_bytes("/mcp", call).await.expect(200);
        let said = answer.body.to_string();
        assert!(said.contains(path) && said.contains("digits"), "{said}");
    }
    // What programs print of doubles, and integers of 64 bits where the type is any JSON.
    let kept = "{\"wei\":2.220446049250313081e-16,\"more\":[9007199254740993,1e21,0.1000000000000000056]}";
    let path = format!("/projects/{slug}/contribute?wait=20");
    let answer = world.agent.http.post_bytes(&path, body(kept)).await.expect(201);
    let answer = decided(&world.agent.http, &slug, answer.text("/id")).await;
    assert_eq!(answer.text("/status"), "merged", "{}", answer.body);
}

#[tokio::test]
async fn an_answer_says_what_is_left_of_the_day_rejected_or_not() {
    let world = world().await;
    let slug = world.project().await;
    let limit = world.agent.http.get("/quota").await.expect(200).body["validation"]["allowed"]["contributions"]
        .as_u64()
        .unwrap();
    let left = |answer: &Value| ["used", "remaining"].map(|name| answer["allowance"][name].as_u64().unwrap());
    let taken = contribute(&world.agent.http, &slug, &records("a", 2)).await;
    assert_eq!(left(&taken.body), [1, limit - 1]);
    let rejected = contribute(&world.agent.http, &slug, &records("a", 2)).await;
    assert_eq!(rejected.text("/status"), "rejected");
    assert_eq!(left(&rejected.body), [2, limit - 2]);
    let validate = format!("/projects/{slug}/validate");
    world.agent.http.post(&validate, &ten(1)).await.expect(200);
    let bytes = lines(0..3);
    let upload = begin(&world.agent.http, &slug, &bytes, 1_000, "none").await;
    assert_eq!(left(&upload), [3, limit - 3]);
    let tags = fill(&upload, &bytes, 1_000).await;
    let completed = complete(&world.agent.http, &slug, &upload, &tags).await.expect(201);
    assert_eq!(left(&completed.body), [3, limit - 3]);
    let quota = world.agent.http.get("/quota").await.expect(200);
    assert_eq!(quota.body["validation"]["remaining"]["contributions"], limit - 3);
    // The maintainer sees the contribution, and not what its contributor has left.
    let private = world.project_with(json!({"visibility": "private"})).await;
    let answer = contribute(&world.agent.http, &private, &records("a", 2)).await;
    assert!(answer.body.get("allowance").is_none(), "{}", answer.body);
}

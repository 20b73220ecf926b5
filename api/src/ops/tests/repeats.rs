//! Calls that make something, repeated with the same `Idempotency-Key`.

use std::time::Duration;

use axum::body::Body;
use futures_util::future::join_all;
use http::Request;
use serde_json::{Value, json};

use crate::call::spec::{ApiKind, Effect};
use crate::ops::knowledge::tests::World;
use crate::testing::Got;

/// A call that makes something.
struct Call {
    name: &'static str,
    path: String,
    key: String,
    body: Value,
    /// Input of which the same key is another call.
    other: Value,
}

/// Sends a call with an idempotency key.
async fn send(world: &World, call: &Call, body: &Value, key: &str) -> Got {
    let request = Request::post(&call.path)
        .header("authorization", format!("Bearer {}", call.key))
        .header("content-type", "application/json")
        .header("idempotency-key", key)
        .body(Body::from(body.to_string()));
    world.service.send(request.unwrap()).await
}

/// Returns a call of each operation that takes a key, by the author.
async fn calls(world: &World) -> Vec<Call> {
    let (author, other) = (world.author.clone(), world.other.clone());
    let service = &world.service;
    service
        .project(&other, "theirs", &json!({"access": "paid", "price": "0.50"}))
        .await;
    service.merged(&other, "theirs", &[json!({"name": "a"})]).await;
    let me = service.get("/me", Some(&author)).await.json();
    let operator = me["operator"]["id"].as_str().unwrap().parse().unwrap();
    service.granted(operator, 1_000_000).await;
    let bought = service.call("POST", "/projects/theirs/buy", Some(&author), "{}").await;
    assert_eq!(bought.status, 200, "{}", bought.text());
    let own = world.published("A text of the author.", 80).await;
    let text = |body: &str| json!({"title": "A title", "body": body, "category": "tool-usage", "sourceDeclaration": "Ran here today."});
    let theirs = world
        .post("/knowledge", Some(&other), &text("A text of the other."))
        .await
        .json();
    let theirs = theirs["id"].as_str().unwrap().to_owned();
    world.publish(&theirs, 80).await;
    let read = world.get(&format!("/knowledge/{theirs}/full"), Some(&author)).await;
    assert_eq!(read.status, 200, "{}", read.text());
    let wish = json!({"title": "Their wish", "body": "Measured ones, please."});
    let wanted = world.post("/community/requests", Some(&other), &wish).await.json();
    let wanted = wanted["id"].as_str().unwrap().to_owned();
    let project = |title: &str| {
        json!({
            "slug": "made-once", "title": title, "readme": "A readme of at least twenty characters.",
            "schemaDef": {"fields": [{"name": "name", "type": "string"}]},
        })
    };
    let call = |name, path: String, body, other| Call {
        name,
        path,
        key: author.clone(),
        body,
        other,
    };
    vec![
        call(
            "create_dataset",
            "/projects".to_owned(),
            project("Made once"),
            project("Made twice"),
        ),
        call(
            "submit_knowledge",
            "/knowledge".to_owned(),
            text("A new text."),
            text("Another new text."),
        ),
        call(
            "revise_knowledge",
            format!("/knowledge/{own}/revise"),
            json!({"body": "A mended text."}),
            json!({"body": "A worse text."}),
        ),
        call(
            "rate_knowledge",
            format!("/knowledge/{theirs}/review"),
            json!({"rating": 5}),
            json!({"rating": 1}),
        ),
        call(
            "comment_on_knowledge",
            format!("/knowledge/{theirs}/comments"),
            json!({"body": "A comment."}),
            json!({"body": "Another comment."}),
        ),
        call(
            "post_request",
            "/community/requests".to_owned(),
            json!({"title": "My wish", "body": "Measured ones, please."}),
            json!({"title": "My second wish", "body": "Measured ones, please."}),
        ),
        call(
            "answer_request",
            format!("/community/requests/{wanted}/answers"),
            json!({"note": "A note alone."}),
            json!({"note": "Another note."}),
        ),
        call(
            "review_item",
            "/community/reviews".to_owned(),
            json!({"dataset": "theirs", "kind": "question", "body": "Since when is it kept?"}),
            json!({"dataset": "theirs", "kind": "question", "body": "Until when is it kept?"}),
        ),
        call(
            "comment_on_dataset",
            "/projects/theirs/comments".to_owned(),
            json!({"body": "A comment."}),
            json!({"body": "Another comment."}),
        ),
    ]
}

/// Returns what an answer says of the thing that was made, without the mark of a replay and what changes with others.
fn made(got: &Got) -> Value {
    let mut body = got.json();
    body.as_object_mut().unwrap().remove("replayed");
    body
}

#[test]
fn every_operation_that_makes_something_takes_a_key_or_has_a_reason() {
    // Its answer has a secret: a key, a signed address, or the address of an outcome. Or nobody calls whose key it could
    // be, or the item and version are the key, or it changes what there is, so that a second call finds it changed.
    let others = [
        "sign_up",
        "resend_verification",
        "verify_operator",
        "create_agent",
        "claim_agent",
        "begin_login",
        "register_app",
        "oauth_token",
        "oauth_revoke",
        "begin_upload",
        "complete_upload",
        "validate_records",
        "retire_knowledge",
        "appeal_rejection",
        "mark_knowledge",
        "buy_dataset",
        "buy_knowledge_with_credits",
        "prove_payout_address",
        "faucet",
        "report_content",
        "choose_answer",
        "close_request",
        "withdraw_comment",
        // Of a sale there is one dispute, with one answer and one end.
        "open_dispute",
        "answer_dispute",
        "refund_dispute",
        // It has a mechanism of its own, with the project as the scope of the key.
        "contribute_records",
    ];
    let table = super::table();
    let posts = table.iter().filter(|operation| {
        let spec = &operation.spec;
        spec.surface == ApiKind::Rest && spec.method == http::Method::POST && spec.effect != Effect::Read
    });
    for operation in posts {
        let name = operation.spec.name;
        assert_eq!(operation.takes_key(), !others.contains(&name), "{name}");
    }
}

#[tokio::test]
async fn a_repeated_call_makes_nothing_and_answers_for_the_first() {
    let world = World::start().await;
    let calls = calls(&world).await;
    let takes_key = super::table().iter().filter(|operation| operation.takes_key()).count();
    assert_eq!(calls.len(), takes_key);
    for call in &calls {
        let name = call.name;
        let first = send(&world, call, &call.body, "k").await;
        assert!(first.status.is_success(), "{name}: {}", first.text());
        assert!(first.json().get("replayed").is_none(), "{name}");
        world.service.clock.advance(Duration::from_secs(1));
        let again = send(&world, call, &call.body, "k").await;
        assert_eq!(
            (again.status.as_u16(), &again.json()["replayed"]),
            (200, &json!(true)),
            "{name}: {}",
            again.text()
        );
        assert_eq!(made(&again), made(&first), "{name}");
        // Another spelling of the same body is the same call.
        let spaced = Call {
            path: call.path.clone(),
            key: call.key.clone(),
            body: json!({}),
            other: json!({}),
            ..*call
        };
        let text: Value = serde_json::from_str(&format!(" {:#} ", call.body)).unwrap();
        assert_eq!(send(&world, &spaced, &text, "k").await.status, 200, "{name}");
        let other = send(&world, call, &call.other, "k").await;
        assert_eq!(
            (other.status.as_u16(), &other.json()["error"]),
            (422, &json!("idempotency_key_reused")),
            "{name}: {}",
            other.text()
        );
    }
    let mine = world.get("/me/requests", Some(&world.author)).await.json();
    assert_eq!(mine["items"].as_array().unwrap().len(), 1);
    for path in ["/projects/theirs/comments", calls[4].path.as_str()] {
        let comments = world.get(path, Some(&world.author)).await.json();
        assert_eq!(comments["count"], 1, "{path}");
    }
}

#[tokio::test]
async fn twins_at_once_make_one_thing() {
    let world = World::start().await;
    let all = calls(&world).await;
    for call in all.iter().filter(|call| call.name != "rate_knowledge") {
        let answers = join_all((0..6).map(|_| send(&world, call, &call.body, "twin"))).await;
        let created = answers.iter().filter(|got| got.status == 201).count();
        let replayed = answers
            .iter()
            .filter(|got| got.status == 200 && got.json()["replayed"] == true);
        let told = answers.iter().map(Got::text).collect::<Vec<_>>();
        assert_eq!((created, replayed.count()), (1, 5), "{}: {told:?}", call.name);
    }
}

#[tokio::test]
async fn a_refused_call_leaves_its_key_and_a_key_is_of_one_caller_and_thing() {
    let world = World::start().await;
    let calls = calls(&world).await;
    let named = |name: &str| calls.iter().find(|call| call.name == name).unwrap();
    // The slug is taken, then another one is free under the same key.
    let create = named("create_dataset");
    let mut taken = create.body.clone();
    taken["slug"] = json!("theirs");
    assert_eq!(send(&world, create, &taken, "k").await.status, 409);
    assert_eq!(send(&world, create, &create.body, "k").await.status, 201);
    // What was made stays made, though the second dataset of the name would be refused now.
    let archived = world
        .service
        .call(
            "PATCH",
            "/projects/made-once",
            Some(&world.author),
            r#"{"status": "archived"}"#,
        )
        .await;
    assert_eq!(archived.status, 200, "{}", archived.text());
    let again = send(&world, create, &create.body, "k").await;
    assert_eq!(
        (again.status.as_u16(), &again.json()["status"]),
        (200, &json!("archived"))
    );
    // The key of another operation, of another thing, and of another caller is another key.
    let comment = named("comment_on_dataset");
    assert_eq!(send(&world, comment, &comment.body, "k").await.status, 201);
    let unit = named("comment_on_knowledge");
    assert_eq!(send(&world, unit, &unit.body, "k").await.status, 201);
    let theirs = Call {
        key: world.other.clone(),
        path: comment.path.clone(),
        body: json!({}),
        other: json!({}),
        ..*comment
    };
    assert_eq!(send(&world, &theirs, &comment.body, "k").await.status, 201);
    // It is forgotten after a day.
    world.service.clock.advance(Duration::from_hours(24));
    assert_eq!(send(&world, comment, &comment.body, "k").await.status, 201);
    // A key has a shape.
    assert_eq!(send(&world, comment, &comment.body, "").await.status, 400);
}

//! Idempotency keys: one effect and one answer, whoever repeats it, however often at once.

use serde_json::json;
use tests::world::{batch, decided, records};
use tests::{Answer, Options};

use super::world;

#[tokio::test]
async fn fifty_twins_at_once_have_one_effect() {
    let world = world().await;
    let slug = world.project().await;
    let path = format!("/projects/{slug}/contribute");
    let body = batch(&records("a", 25));
    let requests = (0..50).map(|_| {
        let (http, path, body) = (world.agent.http.clone(), path.clone(), body.clone());
        async move { http.post_once(&path, "twin", &body).await }
    });
    let answers: Vec<Answer> = futures_util::future::join_all(requests).await;
    let created: Vec<_> = answers.iter().filter(|answer| answer.code() == 201).collect();
    let replayed: Vec<_> = answers.iter().filter(|answer| answer.code() == 200).collect();
    assert_eq!(
        (created.len(), replayed.len()),
        (1, 49),
        "{:?}",
        answers.iter().map(Answer::code).collect::<Vec<_>>()
    );
    assert!(created[0].body.get("replayed").is_none_or(|replayed| replayed == false));
    for answer in &replayed {
        assert_eq!(answer.body["replayed"], true, "{}", answer.body);
        assert_eq!(answer.text("/id"), created[0].text("/id"));
    }
    let merged = decided(&world.agent.http, &slug, created[0].text("/id")).await;
    assert_eq!(
        (&merged.body["mergedVersion"], &merged.body["acceptedCount"]),
        (&json!(1), &json!(25))
    );
    world
        .agent
        .http
        .get(&format!("/projects/{slug}/data?version=2"))
        .await
        .expect(404);
}

#[tokio::test]
async fn a_replay_tells_the_present_outcome() {
    let world = world().await;
    let slug = world.project().await;
    let path = format!("/projects/{slug}/contribute");
    let body = batch(&records("a", 3));
    let first = world.agent.http.post_once(&path, "k", &body).await.expect(201);
    decided(&world.agent.http, &slug, first.text("/id")).await;
    let again = world.agent.http.post_once(&path, "k", &body).await.expect(200);
    assert_eq!(
        (again.text("/status"), &again.body["mergedVersion"]),
        ("merged", &json!(1))
    );
    let world = world.restart_with(|options| options).await;
    let again = world.agent.http.post_once(&path, "k", &body).await.expect(200);
    assert_eq!(again.text("/id"), first.text("/id"));
}

#[tokio::test]
async fn another_body_under_the_same_key_is_refused_with_nothing_done() {
    let world = world().await;
    let slug = world.project().await;
    let path = format!("/projects/{slug}/contribute");
    world
        .agent
        .http
        .post_once(&path, "k", &batch(&records("a", 3)))
        .await
        .expect(201);
    let others = [
        batch(&records("b", 3)),
        json!({"records": records("a", 3)}),
        json!({"records": records("a", 3), "sourceDeclaration": "another"}),
    ];
    for other in others {
        let answer = world.agent.http.post_once(&path, "k", &other).await.expect(422);
        assert!(!answer.error().is_empty());
    }
    let key = "k-2";
    let answer = world
        .agent
        .http
        .post_once(&path, key, &batch(&records("b", 3)))
        .await
        .expect(201);
    let merged = decided(&world.agent.http, &slug, answer.text("/id")).await;
    assert_eq!(merged.body["mergedVersion"], 2);
}

#[tokio::test]
async fn a_key_belongs_to_one_agent_and_one_project() {
    let world = world().await;
    let (first, second) = (world.project().await, world.project().await);
    let (_, other) = world.newcomer().await;
    let sibling = tests::world::Agent::create(&world.http, &world.operator, "sibling").await;
    let path = |slug: &str| format!("/projects/{slug}/contribute");
    for (caller, slug, series) in [
        (&world.agent.http, &first, "a"),
        (&world.agent.http, &second, "b"),
        (&other.http, &first, "c"),
        (&sibling.http, &first, "d"),
    ] {
        caller
            .post_once(&path(slug), "shared", &batch(&records(series, 2)))
            .await
            .expect(201);
    }
}

#[tokio::test]
async fn a_request_that_was_refused_leaves_its_key_unused() {
    let world = world().await;
    let slug = world.project().await;
    let path = format!("/projects/{slug}/contribute");
    world
        .agent
        .http
        .post_once(&path, "k", &json!({"records": []}))
        .await
        .expect(400);
    world
        .agent
        .http
        .patch(&format!("/projects/{slug}"), &json!({"status": "paused"}))
        .await
        .expect(200);
    world
        .agent
        .http
        .post_once(&path, "k", &batch(&records("a", 1)))
        .await
        .expect(409);
    world
        .agent
        .http
        .patch(&format!("/projects/{slug}"), &json!({"status": "open"}))
        .await
        .expect(200);
    world
        .agent
        .http
        .post_once(&path, "k", &batch(&records("a", 2)))
        .await
        .expect(201);
    // A replay is answered from memory, also once the project takes nothing new.
    world
        .agent
        .http
        .patch(&format!("/projects/{slug}"), &json!({"status": "archived"}))
        .await
        .expect(200);
    world
        .agent
        .http
        .post_once(&path, "k", &batch(&records("a", 2)))
        .await
        .expect(200);
}

#[tokio::test]
async fn a_key_is_forgotten_after_a_day() {
    let world = world().await;
    let slug = world.project().await;
    let path = format!("/projects/{slug}/contribute");
    let body = batch(&records("a", 3));
    let first = world.agent.http.post_once(&path, "k", &body).await.expect(201);
    decided(&world.agent.http, &slug, first.text("/id")).await;
    let at = |offset: &'static str| move |options: Options| options.with("SLUICE__CLOCK__OFFSET", offset);
    let world = world.restart_with(at("23h")).await;
    world.agent.http.post_once(&path, "k", &body).await.expect(200);
    let world = world.restart_with(at("25h")).await;
    let second = world
        .agent
        .http
        .post_once(&path, "k", &batch(&records("b", 3)))
        .await
        .expect(201);
    assert_ne!(second.text("/id"), first.text("/id"));
}

#[tokio::test]
async fn keys_have_a_shape() {
    let world = world().await;
    let slug = world.project().await;
    let path = format!("/projects/{slug}/contribute");
    let long = super::text(10_000);
    for key in ["", long.as_str()] {
        let answer = world.agent.http.post_once(&path, key, &batch(&records("a", 1))).await;
        assert_eq!(answer.code(), 400, "{}: {}", key.len(), answer.body);
    }
}

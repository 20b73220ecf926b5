//! Limits: contributions of an operator in a UTC day, and calls of an address in a minute.

use serde_json::{Value, json};
use tests::world::{Agent, batch, contribute, records};
use tests::{Answer, Options, World};

use crate::binary;

const DAILY: &str = "SLUICE__LIMITS__PUBLIC_CONTRIBUTIONS_PER_DAY";
const CALLS: &str = "SLUICE__LIMITS__CALLS_PER_IP_PER_MINUTE";

/// A world where an operator has three public contributions a day.
async fn three_a_day() -> World {
    World::start_with(binary(), |options| options.with(DAILY, 3)).await
}

async fn contribute_once(world: &World, slug: &str, series: &str) -> Answer {
    world
        .agent
        .http
        .post(&format!("/projects/{slug}/contribute"), &batch(&records(series, 2)))
        .await
}

#[tokio::test]
async fn public_contributions_of_an_operator_are_limited_until_the_next_utc_day() {
    let world = three_a_day().await;
    let (first, second) = (world.project().await, world.project().await);
    let sibling = Agent::create(&world.http, &world.operator, "sibling").await;
    contribute_once(&world, &first, "a").await.expect(201);
    contribute_once(&world, &second, "a").await.expect(201);
    let path = format!("/projects/{first}/contribute");
    sibling.http.post(&path, &batch(&records("b", 2))).await.expect(201);
    for http in [&world.agent.http, &sibling.http] {
        let refused = http.post(&path, &batch(&records("c", 2))).await.expect(429);
        let seconds: u64 = refused.header("retry-after").parse().unwrap();
        assert!((1..=86_400).contains(&seconds), "{seconds}");
        let reset = refused.text("/allowance/resetAt");
        assert!(reset.ends_with("T00:00:00Z"), "{reset}");
    }
    let (_, other) = world.newcomer().await;
    other.http.post(&path, &batch(&records("d", 2))).await.expect(201);
    let world = world
        .restart_with(|options: Options| options.with("SLUICE__CLOCK__OFFSET", "24h"))
        .await;
    contribute_once(&world, &first, "e").await.expect(201);
}

#[tokio::test]
async fn only_what_is_kept_of_public_projects_counts() {
    let world = three_a_day().await;
    let slug = world.project().await;
    let private = world.project_with(json!({"visibility": "private"})).await;
    let path = format!("/projects/{slug}/contribute");
    for number in 0..6 {
        contribute_once(&world, &private, &format!("p{number}"))
            .await
            .expect(201);
        let body = batch(&records(&format!("v{number}"), 2));
        world
            .agent
            .http
            .post(&format!("/projects/{slug}/validate"), &body)
            .await
            .expect(200);
        world.agent.http.post(&path, &json!({"records": []})).await.expect(400);
    }
    let body = batch(&records("k", 2));
    world.agent.http.post_once(&path, "k", &body).await.expect(201);
    for _ in 0..5 {
        world.agent.http.post_once(&path, "k", &body).await.expect(200);
        world
            .agent
            .http
            .post_once(&path, "k", &batch(&records("other", 1)))
            .await
            .expect(422);
    }
    contribute_once(&world, &slug, "a").await.expect(201);
    // What is rejected later was validated, so it counts.
    let rejected = contribute(&world.agent.http, &slug, &records("a", 2)).await;
    assert_eq!(rejected.text("/status"), "rejected");
    contribute_once(&world, &slug, "b").await.expect(429);
    world.agent.http.post_once(&path, "k", &body).await.expect(200);
}

#[tokio::test]
async fn the_allowance_holds_against_many_at_once() {
    let world = three_a_day().await;
    let slug = world.project().await;
    let requests = (0..20).map(|number| {
        let (http, slug) = (world.agent.http.clone(), slug.clone());
        let body = batch(&records(&format!("s{number}"), 2));
        async move { http.post(&format!("/projects/{slug}/contribute"), &body).await.code() }
    });
    let mut codes = futures_util::future::join_all(requests).await;
    codes.sort_unstable();
    assert_eq!(codes, [&[201; 3][..], &[429; 17]].concat());
}

#[tokio::test]
async fn calls_of_an_address_are_limited_in_a_minute() {
    let limit = |options: Options| options.with(CALLS, 30);
    let world = World::start_with(binary(), limit).await;
    let mut refused: Option<Answer> = None;
    for _ in 0..100 {
        let answer = world.http.get("/licenses").await;
        if answer.code() == 429 {
            refused = Some(answer);
            break;
        }
        assert_eq!(answer.code(), 200);
    }
    let refused = refused.expect("a call beyond the limit is refused");
    let seconds: u64 = refused.header("retry-after").parse().unwrap();
    assert!((1..=120).contains(&seconds), "{seconds}");
    assert!(!refused.error().is_empty());
    // A limit on calls hides nothing from the machines that watch the service.
    world.http.get("/healthz").await.expect(200);
    world.http.get("/readyz").await.expect(200);
}

#[tokio::test]
async fn the_limits_of_the_interface_are_the_defaults() {
    let folder = tempfile::tempdir().unwrap();
    let shown = std::process::Command::new(binary())
        .args(["config", "--show", "--data"])
        .arg(folder.path())
        .env_clear()
        .output()
        .unwrap();
    assert!(shown.status.success(), "{}", String::from_utf8_lossy(&shown.stderr));
    let text = String::from_utf8(shown.stdout).unwrap();
    for line in [
        "calls_per_ip_per_minute = 300",
        "agent_registrations_per_ip_per_hour = 20",
        "sign_ups_per_ip_per_hour = 10",
        "resends_per_ip_per_hour = 5",
        "agents_per_operator = 5",
        "active_projects_per_operator = 3",
        "public_contributions_per_day = 200",
    ] {
        assert!(text.contains(line), "{line} is not a default:\n{text}");
    }
    assert_ne!(text, Value::Null.to_string());
}

//! What needs no resource: liveness, readiness, licences, terms, credentials, and addresses that do not exist.

use reqwest::Method;
use serde_json::json;
use tests::world::{batch, records};

use super::world;

#[tokio::test]
async fn public_facts_are_told_without_a_credential() {
    let world = world().await;
    let http = &world.http;
    http.get("/healthz").await.expect(200);
    let ready = http.get("/readyz").await.expect(200);
    assert_eq!((&ready.body["db"], &ready.body["cache"]), (&json!("ok"), &json!("off")));
    let licenses = http.get("/licenses").await.expect(200);
    let shown = licenses.body.to_string();
    for id in [
        "platform-standard",
        "CC0-1.0",
        "CC-BY-4.0",
        "CC-BY-SA-4.0",
        "ODbL-1.0",
        "PDDL-1.0",
        "CDLA-Permissive-2.0",
    ] {
        assert!(shown.contains(&format!("\"{id}\"")), "{id} is missing: {shown}");
    }
    assert!(shown.contains("https://"), "no licence has a link: {shown}");
    let behind = |url: &str| url.strip_prefix(world.server.base()).unwrap().to_owned();
    let own = |license: &&serde_json::Value| license["id"] == "platform-standard";
    let own = licenses.body["items"].as_array().unwrap().iter().find(own).unwrap();
    let text = http.get(&behind(own["url"].as_str().unwrap())).await.expect(200);
    assert_eq!(text.header("content-type"), "text/plain; charset=utf-8");
    let terms = http.get("/terms/version").await.expect(200);
    let text = http.get(&behind(terms.text("/url"))).await.expect(200);
    assert_eq!(text.header("content-type"), "text/plain; charset=utf-8");
    assert!(
        !terms.text("/version").is_empty() && !terms.text("/url").is_empty(),
        "{}",
        terms.body
    );
    let signup = http.get("/signup/status").await.expect(200);
    assert!(signup.body["open"].is_boolean(), "{}", signup.body);
}

#[tokio::test]
async fn a_call_without_a_valid_credential_is_told_how_to_get_one() {
    let world = world().await;
    let slug = world.project().await;
    let contribute = format!("/projects/{slug}/contribute");
    let body = batch(&records("a", 1));
    let wrong = "km_AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA";
    let callers = [
        world.http.clone(),
        world.http.with(wrong),
        world.http.with("wto_AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"),
        world.http.with("Bearer"),
        world.http.with("%00"),
    ];
    for caller in callers {
        let refused = [
            caller.post(&contribute, &body).await,
            caller.get(&format!("/projects/{slug}/data")).await,
            caller.post("/projects", &json!({})).await,
            caller.post("/agents", &json!({})).await,
        ];
        for answer in refused {
            let answer = answer.expect(401);
            assert!(!answer.text("/hint").is_empty(), "{}", answer.body);
            assert!(!answer.text("/getKey").is_empty(), "{}", answer.body);
            assert!(!answer.body.to_string().contains(wrong));
        }
    }
}

#[tokio::test]
async fn a_wrong_credential_is_refused_even_where_none_is_needed() {
    let world = world().await;
    world.http.with("km_nobody").get("/projects").await.expect(401);
}

#[tokio::test]
async fn other_schemes_and_a_key_in_the_address_are_no_credential() {
    let world = world().await;
    let key = &world.agent.key;
    let slug = world.project().await;
    let path = format!("/projects/{slug}/data");
    let basic = format!("Basic {key}");
    let answer = world
        .http
        .send(Method::GET, &path, &[("authorization", &basic)], None)
        .await
        .unwrap();
    answer.expect(401);
    for query in ["key", "token", "access_token"] {
        let code = world.http.get(&format!("{path}?{query}={key}")).await.code();
        assert!(matches!(code, 400 | 401), "{query}: {code}");
    }
}

#[tokio::test]
async fn an_agent_key_and_an_operator_token_open_only_their_own_doors() {
    let world = world().await;
    let slug = world.project().await;
    let body = batch(&records("a", 1));
    let by_operator = world.owner.post(&format!("/projects/{slug}/contribute"), &body).await;
    assert!(matches!(by_operator.code(), 401 | 403), "{}", by_operator.body);
    let by_agent = world.agent.http.post("/agents", &json!({"name": "another"})).await;
    assert!(matches!(by_agent.code(), 401 | 403), "{}", by_agent.body);
}

#[tokio::test]
async fn unknown_addresses_and_methods_answer_in_json() {
    let world = world().await;
    // The root is a page for people.
    let home = world.http.get("/").await.expect(200);
    assert!(
        home.header("content-type").starts_with("text/html"),
        "{:?}",
        home.headers
    );
    for path in [
        "/nothing",
        "/projects/",
        "/projects/a/b/c/d",
        "//projects",
        "/..%2fetc",
        "/%00",
    ] {
        let answer = world.http.get(path).await.expect(404);
        assert!(!answer.error().is_empty(), "{path}: {}", answer.body);
    }
    let answer = world
        .http
        .send(Method::DELETE, "/projects", &[], None)
        .await
        .unwrap()
        .expect(405);
    assert!(answer.header("allow").contains("GET"), "{:?}", answer.headers);
    assert!(!answer.error().is_empty());
}

#[tokio::test]
async fn a_suspended_operator_is_refused_with_all_its_agents_until_restored() {
    let world = world().await;
    let slug = world.project().await;
    let path = format!("/projects/{slug}/data");
    tests::world::contribute(&world.agent.http, &slug, &records("a", 4)).await;
    world.agent.http.get(&path).await.expect(200);
    let manifest = format!("/projects/{slug}/manifest");
    let listed = world.agent.http.get(&manifest).await.expect(200).body;
    let part = listed["parts"][0]["url"].as_str().unwrap();
    let part = part.strip_prefix(world.server.base()).unwrap().to_owned();
    world.http.get(&part).await.expect(200);
    let options = world.server.options();
    let id = world.operator.id.as_str();
    options.admin(&["operator", "suspend", id, "--reason", "a test"]);
    let refused = world.agent.http.soon(&path, 401).await;
    assert_eq!(refused.error(), "account_suspended");
    assert!(!refused.text("/hint").contains("Bearer"), "{}", refused.body);
    // Another process suspended; the addresses handed out before end at once, and the items stay.
    assert_eq!(world.http.get(&part).await.expect(403).error(), "account_suspended");
    world.http.get(&format!("/projects/{slug}")).await.expect(200);
    let (_, stranger) = world.newcomer().await;
    assert_eq!(stranger.http.get(&path).await.expect(200).body["total"], 4);
    world.owner.soon(&manifest, 401).await;
    world.owner.post("/agents", &json!({"name": "late"})).await.expect(401);
    options.admin(&["operator", "restore", id]);
    world.agent.http.soon(&path, 200).await;
    world.http.get(&part).await.expect(200);
}

#[tokio::test]
async fn every_answer_carries_a_request_id_and_no_secret_is_stored_or_logged() {
    let world = world().await;
    let answer = world.agent.http.get("/projects").await.expect(200);
    assert!(!answer.header("x-request-id").is_empty(), "{:?}", answer.headers);
    let secrets = [world.agent.key.clone(), world.operator.token.clone()];
    let log = world.server.options().log();
    let folder = world.folder().to_owned();
    let status = world.server.stop().await;
    assert!(status.success(), "{status}");
    let mut pending = vec![folder];
    let mut files = vec![log];
    while let Some(folder) = pending.pop() {
        for entry in std::fs::read_dir(folder).unwrap().map(Result::unwrap) {
            let list = if entry.path().is_dir() {
                &mut pending
            } else {
                &mut files
            };
            list.push(entry.path());
        }
    }
    for file in files {
        let bytes = std::fs::read(&file).unwrap();
        for secret in &secrets {
            let found = bytes.windows(secret.len()).any(|window| window == secret.as_bytes());
            assert!(!found, "a credential is in {}", file.display());
        }
    }
}

#[tokio::test]
async fn a_stop_ends_the_process_in_order_with_work_in_flight() {
    let world = world().await;
    let slug = world.project().await;
    let path = format!("/projects/{slug}/contribute");
    let acknowledged = world
        .agent
        .http
        .post(&path, &batch(&records("a", 500)))
        .await
        .expect(201);
    let world = world.restart_with(|options| options).await;
    let outcome = tests::world::decided(&world.agent.http, &slug, acknowledged.text("/id")).await;
    assert_eq!(outcome.text("/status"), "merged");
}

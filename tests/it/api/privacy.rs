//! Private projects: to everyone outside their operator they are not there.

use reqwest::Method;
use serde_json::json;
use tests::world::{Agent, batch, contribute, merged, project_body, records};
use tests::{Answer, Http, World};

use super::world;

const ID: &str = "019a0000-0000-7000-8000-000000000000";

/// Every call that names a project, as somebody makes it.
async fn calls(http: &Http, slug: &str) -> Vec<(String, Answer)> {
    let body = batch(&records("a", 1)).to_string();
    let calls: [(Method, &str, Option<&str>); 9] = [
        (Method::GET, "", None),
        (Method::PATCH, "", Some(r#"{"title":"Another title"}"#)),
        (Method::GET, "/data", None),
        (Method::GET, "/data?version=1", None),
        (Method::GET, "/data?version=99", None),
        (Method::POST, "/contribute", Some(&body)),
        (Method::POST, "/validate", Some(&body)),
        (Method::GET, "/contributions/019a0000-0000-7000-8000-000000000000", None),
        (
            Method::GET,
            "/contributions/019a0000-0000-7000-8000-000000000000/verdicts",
            None,
        ),
    ];
    let mut answers = Vec::new();
    for (method, rest, body) in calls {
        let path = format!("/projects/{slug}{rest}");
        let body = body.map(|body| body.as_bytes().to_vec());
        let answer = http.send(method.clone(), &path, &[], body).await.unwrap();
        answers.push((format!("{method} {path}"), answer));
    }
    answers
}

/// Headers that may tell answers apart.
fn telling(answer: &Answer) -> Vec<(String, Vec<u8>)> {
    let headers = answer
        .headers
        .iter()
        .filter(|(name, _)| !matches!(name.as_str(), "date" | "x-request-id"));
    headers
        .map(|(name, value)| (name.to_string(), value.as_bytes().to_vec()))
        .collect()
}

async fn private(world: &World, slug: &str) {
    let body = merged(project_body(slug), json!({"visibility": "private"}));
    world.agent.http.post("/projects", &body).await.expect(201);
}

#[tokio::test]
async fn a_private_project_answers_byte_for_byte_as_one_that_is_missing() {
    let world = world().await;
    let (operator, stranger) = world.newcomer().await;
    let callers = [
        world.http.clone(),
        stranger.http.clone(),
        world.http.with(&operator.token),
    ];
    let mut missing = Vec::new();
    for caller in &callers {
        missing.push(calls(caller, "secret").await);
    }
    private(&world, "secret").await;
    contribute(&world.agent.http, "secret", &records("a", 3)).await;
    for (caller, before) in callers.iter().zip(missing) {
        for ((call, now), (_, before)) in calls(caller, "secret").await.into_iter().zip(before) {
            assert_eq!(now.code(), before.code(), "{call}");
            assert!(matches!(now.code(), 401 | 403 | 404), "{call}: {}", now.code());
            assert_eq!(now.bytes, before.bytes, "{call}");
            assert_eq!(telling(&now), telling(&before), "{call}");
        }
    }
    let stranger_sees = calls(&stranger.http, "secret").await;
    assert!(
        stranger_sees.iter().all(|(_, answer)| answer.code() == 404),
        "{stranger_sees:?}"
    );
}

#[tokio::test]
async fn the_operators_agents_and_token_see_it() {
    let world = world().await;
    private(&world, "secret").await;
    let sibling = Agent::create(&world.http, &world.operator, "sibling").await;
    let merged = contribute(&sibling.http, "secret", &records("a", 3)).await;
    assert_eq!(merged.text("/status"), "merged");
    for caller in [&world.agent.http, &sibling.http, &world.owner] {
        caller.get("/projects/secret").await.expect(200);
    }
    sibling.http.get("/projects/secret/data").await.expect(200);
}

#[tokio::test]
async fn it_is_in_no_list_of_others() {
    let world = world().await;
    private(&world, "secret").await;
    let (operator, stranger) = world.newcomer().await;
    for query in ["", "?q=secret", "?q=Readings"] {
        let path = format!("/projects{query}");
        for caller in [&world.http, &stranger.http, &world.http.with(&operator.token)] {
            let shown = caller.get(&path).await.expect(200).body;
            assert!(!shown.to_string().contains("secret"), "{shown}");
            assert_eq!(shown["items"], json!([]));
        }
        for caller in [&world.agent.http, &world.owner] {
            let shown = caller.get(&path).await.expect(200).body;
            assert!(shown.to_string().contains("secret"), "{shown}");
        }
    }
}

#[tokio::test]
async fn a_contribution_of_it_is_not_reached_through_another_project() {
    let world = world().await;
    private(&world, "secret").await;
    let merged = contribute(&world.agent.http, "secret", &records("a", 3)).await;
    let id = merged.text("/id");
    assert_ne!(id, ID);
    let (_, stranger) = world.newcomer().await;
    let open = open_slug(&stranger).await;
    for rest in ["", "/verdicts"] {
        stranger
            .http
            .get(&format!("/projects/{open}/contributions/{id}{rest}"))
            .await
            .expect(404);
    }
}

async fn open_slug(agent: &Agent) -> &'static str {
    agent
        .http
        .post("/projects", &project_body("open-one"))
        .await
        .expect(201);
    "open-one"
}

#[tokio::test]
async fn only_the_slug_itself_is_given_away_when_it_is_taken() {
    let world = world().await;
    private(&world, "secret").await;
    let (_, stranger) = world.newcomer().await;
    let answer = stranger
        .http
        .post("/projects", &project_body("secret"))
        .await
        .expect(409);
    assert!(!answer.body.to_string().contains("private"), "{}", answer.body);
}

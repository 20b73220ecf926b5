//! The machine-readable description, held against the service it describes.

use reqwest::Method;
use serde_json::{Value, json};
use tests::World;
use tests::agents::Agents;

use crate::{binary, configured};

/// The operations that this build has, by method and path.
const OPERATIONS: [(&str, &str); 33] = [
    ("get", "/healthz"),
    ("get", "/readyz"),
    ("get", "/licenses"),
    ("get", "/terms/version"),
    ("get", "/signup/status"),
    ("get", "/terms"),
    ("get", "/licenses/platform-standard"),
    ("get", "/guide/agents.md"),
    ("get", "/openapi.json"),
    ("post", "/operators"),
    ("post", "/operators/resend"),
    ("post", "/operators/verify"),
    ("post", "/agents"),
    ("post", "/agents/claim"),
    ("get", "/agents/claim/status"),
    ("post", "/projects"),
    ("get", "/projects"),
    ("get", "/projects/{slug}"),
    ("patch", "/projects/{slug}"),
    ("post", "/projects/{slug}/contribute"),
    ("post", "/projects/{slug}/uploads"),
    ("post", "/projects/{slug}/uploads/{id}/complete"),
    ("put", "/uploads/{id}/{n}"),
    ("get", "/projects/{slug}/contributions/{id}"),
    ("get", "/projects/{slug}/data"),
    ("post", "/projects/{slug}/query"),
    ("get", "/projects/{slug}/export"),
    ("get", "/projects/{slug}/diff"),
    ("get", "/projects/{slug}/manifest"),
    ("get", "/parts/{dataset}/{name}"),
    ("get", "/.well-known/service-keys"),
    ("post", "/projects/{slug}/validate"),
    ("get", "/projects/{slug}/contributions/{id}/verdicts"),
];

async fn description(world: &World) -> Value {
    world.http.get("/openapi.json").await.expect(200).body
}

/// Method, path and description of every operation.
fn operations(document: &Value) -> Vec<(String, String, &Value)> {
    let paths = document["paths"].as_object().unwrap();
    let methods = ["get", "put", "post", "delete", "patch"];
    paths
        .iter()
        .flat_map(|(path, item)| {
            let item = item.as_object().unwrap().iter();
            item.filter(|(method, _)| methods.contains(&method.as_str()))
                .map(move |(method, operation)| (method.clone(), path.clone(), operation))
        })
        .collect()
}

#[tokio::test]
async fn every_operation_is_described() {
    let world = World::start(binary()).await;
    let document = description(&world).await;
    assert!(
        document["openapi"].as_str().unwrap().starts_with("3.1"),
        "{}",
        document["openapi"]
    );
    assert_eq!(document["info"]["version"], "0.26.0");
    let described = operations(&document);
    for (method, path) in OPERATIONS {
        assert!(
            described.iter().any(|(m, p, _)| m == method && p == path),
            "{method} {path} is not described"
        );
    }
    let mut names: Vec<_> = described
        .iter()
        .map(|(_, _, operation)| operation["operationId"].as_str().unwrap())
        .collect();
    let count = names.len();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), count, "operation ids are not distinct");
    for (method, path, operation) in described {
        assert!(
            operation["summary"].as_str().is_some_and(|summary| !summary.is_empty()),
            "{method} {path}"
        );
        assert!(
            !operation["responses"].as_object().unwrap().is_empty(),
            "{method} {path}"
        );
        let body = &operation["requestBody"]["content"]["application/json"]["schema"];
        let type_at = body["$ref"].as_str().and_then(|to| to.strip_prefix('#'));
        let body = type_at.map_or(body, |at| document.pointer(at).unwrap());
        // Members that are not known are ignored by the endpoints of OAuth, and only there.
        if body.is_object() && !path.starts_with("/oauth/") {
            assert_eq!(
                body["additionalProperties"], false,
                "{method} {path} takes unknown fields"
            );
        }
    }
}

#[tokio::test]
async fn every_operation_that_asks_for_a_credential_refuses_a_call_without() {
    let world = World::start(binary()).await;
    let document = description(&world).await;
    let mut guarded = 0;
    for (method, path, operation) in operations(&document) {
        let security = operation["security"]
            .as_array()
            .or_else(|| document["security"].as_array());
        let open = security.is_none_or(|ways| ways.is_empty() || ways.contains(&json!({})));
        let address = path
            .replace("{slug}", "some-slug")
            .replace("{id}", "019a0000-0000-7000-8000-000000000000")
            // The stream ends after this time only.
            .replace("/activity/events", "/activity/events?seconds=1")
            // The records of a diff need a key, its contributions do not.
            .replace("/diff", "/diff?limit=0");
        let method = Method::from_bytes(method.to_uppercase().as_bytes()).unwrap();
        let answer = world
            .http
            .send(method.clone(), &address, &[], Some(b"{}".to_vec()))
            .await
            .unwrap();
        // A wallet signs in by a header, which is no credential of an account: some of these answer 401 without it.
        let parameters = operation["parameters"].as_array();
        let takes_wallet = parameters.is_some_and(|list| list.iter().any(|one| one["name"] == "SIGN-IN-WITH-X"));
        if takes_wallet {
            assert!((400..500).contains(&answer.code()), "{method} {path}: {}", answer.body);
        } else if open {
            assert_ne!(answer.code(), 401, "{method} {path}");
        } else {
            guarded += 1;
            assert_eq!(answer.code(), 401, "{method} {path}: {}", answer.body);
            assert!(
                !answer.text("/hint").is_empty() && !answer.text("/getKey").is_empty(),
                "{method} {path}"
            );
        }
    }
    assert!(guarded >= 7, "only {guarded} operations ask for a credential");
}

#[tokio::test]
async fn the_command_prints_the_same_document() {
    let world = World::start(binary()).await;
    let served = description(&world).await;
    let printed = world.server.options().run(&["openapi"]);
    assert!(printed.status.success(), "{}", String::from_utf8_lossy(&printed.stderr));
    let printed: Value = serde_json::from_slice(&printed.stdout).unwrap();
    assert_eq!(printed["paths"], served["paths"]);
    assert_eq!(printed["components"], served["components"]);
}

#[tokio::test]
async fn every_failure_of_an_operation_is_described() {
    let world = World::start(binary()).await;
    let document = description(&world).await;
    let slug = world.project().await;
    let address = format!("/projects/{slug}/contribute");
    let responses = &document["paths"]["/projects/{slug}/contribute"]["post"]["responses"];
    let answers = [
        world.http.post(&address, &json!({})).await,
        world.agent.http.post(&address, &json!({})).await,
        world
            .agent
            .http
            .post("/projects/no-such/contribute", &json!({"records": [{}]}))
            .await,
        world.agent.http.post_bytes(&address, " ".repeat(5 << 20)).await,
    ];
    for answer in answers {
        let code = answer.code().to_string();
        assert!(
            responses.get(&code).is_some() || responses.get("default").is_some(),
            "{code} is not described"
        );
    }
    for code in ["200", "201", "400", "401", "404", "409", "413", "422", "429"] {
        assert!(responses.get(code).is_some(), "contribute does not describe {code}");
    }
}

/// Generates calls from the description, also in sequences and with input that breaks it, and checks every answer:
/// its status, its headers and its body are described, good input is taken, bad input and a missing credential are not.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn schemathesis_finds_no_answer_that_is_not_described() {
    let Some(agents) = Agents::installed() else { return };
    let world = World::start(binary()).await;
    world.project().await;
    let url = format!("{}/openapi.json", world.server.base());
    let folder = tempfile::tempdir().unwrap();
    let examples = configured("SLUICE_TEST_EXAMPLES", 5).to_string();
    let every = ["run", &url, "--max-examples", &examples];
    let [key, token] =
        [&world.agent.key, &world.operator.token].map(|secret| format!("Authorization: Bearer {secret}"));
    for further in [
        &["--header", &key, "--exclude-path-regex", "^/(oauth/|agents$)"][..],
        &["--header", &token, "--include-path", "/agents"],
        // RFC 7591 section 2 and RFC 6749 section 3.1: members that a server does not understand are ignored, and null is
        // a member that is not there.
        &[
            "--include-path-regex",
            "^/oauth/",
            "--exclude-checks",
            "negative_data_rejection",
        ],
    ] {
        let mut run = agents.schemathesis(&[every.as_slice(), further].concat(), folder.path());
        let output = tokio::task::block_in_place(|| run.output().unwrap());
        let said = String::from_utf8_lossy(&output.stdout);
        assert!(
            output.status.success(),
            "{said}{}",
            String::from_utf8_lossy(&output.stderr)
        );
        assert!(said.contains(" passed"), "{said}");
    }
}

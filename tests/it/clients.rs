//! Apps on the SDKs of others at their first calls, as the READMEs of those show them: by the defaults, reading first.
//!
//! Invariant: an app knows the address of the endpoint and nothing else. What it may ask for it learns from refusals,
//! and what it may do the person decides.

use futures_util::future::join_all;
use serde_json::{Value, json};
use tests::agents::Agents;
use tests::world::{project_body, records};

use crate::accounts::Site;
use crate::mcp::{calls, judge};
use crate::oauth::agree_to;

/// Scopes in the order in which they are needed.
const SCOPES: [&str; 3] = ["read", "write", "spend"];

/// Apps, and true for each that asks again where a scope is missing. The others renew the token that they have instead.
const APPS: [(&str, bool); 5] = [
    ("first_sdk1.mjs", false),
    ("first_sdk2.mjs", true),
    ("first_sdk.py", true),
    ("first_fastmcp.py", true),
    ("first_mcp_remote.mjs", false),
];

/// Creates an agent of an operator and returns its key.
async fn key(site: &Site, email: &str) -> String {
    let operator = site.operator(email).await;
    let token = site.token(operator).await;
    let made = site.http.with(&token).post("/agents", &json!({"name": "first"})).await;
    made.expect(201).text("/key").to_owned()
}

/// Puts a dataset on sale that given credits pay for, and returns its slug.
async fn on_sale(site: &Site) -> &'static str {
    let slug = "levels";
    let key = key(site, "seller@example.org").await;
    let mut project = project_body(slug);
    let price = json!({"access": "paid", "price": "0.05", "trialSale": true});
    project
        .as_object_mut()
        .unwrap()
        .extend(price.as_object().unwrap().clone());
    let seller = site.http.with(&key);
    seller.post("/projects", &project).await.expect(201);
    let batch = json!({"records": records("gauge", 3)});
    let path = format!("/projects/{slug}/contribute?wait=20");
    let merged = seller.post(&path, &batch).await;
    assert_eq!(merged.body["status"], "merged", "{}", merged.body);
    slug
}

/// Runs an app with a person of its own, and returns what it says at the end.
async fn run(agents: &Agents, site: &Site, (script, asks_again): (&str, bool), calls: &Value) -> Value {
    let email = format!("{}@example.org", script.replace(['.', '_'], "-"));
    let (operator, session) = site.signed_in(&email).await;
    site.grant(operator, "5");
    let endpoint = format!("{}/mcp", site.http.base());
    let mut app = agents
        .start(script, &json!({"endpoint": endpoint, "calls": calls}))
        .await;
    let mut consents = 0;
    loop {
        let heard = app.hear_either("authorize", "done").await;
        let Some(asked) = heard.as_str() else { return heard };
        consents += 1;
        let ticked = if asks_again { consents } else { SCOPES.len() };
        let callback = agree_to(site, &session, asked, &SCOPES[..ticked].join(" ")).await;
        app.tell(&json!({"callback": callback})).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_app_on_each_sdk_reads_then_writes_then_spends() {
    let Some(agents) = Agents::installed() else { return };
    let site = Site::start(None, |options| options).await;
    let slug = on_sale(&site).await;
    let calls = json!([
        {"name": "my_quota", "arguments": {}},
        {"name": "post_request", "arguments": {"title": "Levels wanted", "body": "Hourly levels of the quay."}},
        {"name": "buy_dataset", "arguments": {"slug": slug}},
    ]);
    let runs = APPS.map(|app| run(&agents, &site, app, &calls));
    for ((script, asks_again), done) in APPS.into_iter().zip(join_all(runs).await) {
        assert!(done["tools"].as_array().unwrap().len() >= 30, "{script}: {done}");
        let results = done["results"].as_array().unwrap();
        let names: Vec<_> = results.iter().map(|result| result["name"].as_str().unwrap()).collect();
        assert_eq!(names, ["my_quota", "post_request", "buy_dataset"], "{script}");
        for result in results {
            assert_eq!(result["isError"], false, "{script}: {result}");
        }
        let asked: Vec<_> = results.iter().map(|result| result["asked"].as_u64().unwrap()).collect();
        let expected = if asks_again { [1, 1, 1] } else { [1, 0, 0] };
        assert_eq!(asked, expected, "{script}: {done}");
        let bought: Value = serde_json::from_str(results[2]["text"].as_str().unwrap()).unwrap();
        assert_eq!(
            (&bought["dataset"], &bought["charged"]),
            (&json!(slug), &json!(true)),
            "{script}: {bought}"
        );
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_sdk_of_google_takes_and_calls_every_tool() {
    let Some(agents) = Agents::installed() else { return };
    let site = Site::start(None, |options| options).await;
    let key = key(&site, "ada@example.org").await;
    let endpoint = format!("{}/mcp", site.http.base());
    let given = json!({"endpoint": endpoint, "key": key, "calls": calls("tides")});
    let done = agents.start("gemini.py", &given).await.hear("done").await;
    assert_eq!(done["declared"], done["tools"], "{done}");
    judge(&done, "tides");
}

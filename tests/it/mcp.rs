//! MCP: the official clients and the conformance suite speak to the service.
//!
//! Invariant: the calls are those of a real agent: it finds the endpoint in `/llms.txt`, learns of a dataset, contributes,
//! follows the outcome and queries.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::Stdio;

use serde_json::{Value, json};
use tests::agents::Agents;
use tests::apps::App;
use tests::world::{project_body, records};
use tests::{Http, World};
use tokio::io::{AsyncBufReadExt as _, BufReader};

use crate::accounts::{Site, on_each};
use crate::binary;
use crate::oauth::agree;

/// An id that nothing has.
const NONE: &str = "019a0000-0000-7000-8000-000000000000";

/// Calls of an agent, each with the members that it takes from the answer before, and the code with which it must be
/// refused, if it must.
pub(crate) fn calls(slug: &str) -> Value {
    let rows = records("gauge", 3);
    json!([
        {"name": "create_dataset", "arguments": project_body(slug)},
        {"name": "list_datasets", "arguments": {"q": slug}},
        {"name": "dataset_info", "arguments": {"slug": slug}},
        {"name": "update_dataset", "arguments": {"slug": slug, "title": "Another title"}},
        {"name": "contribute_records", "arguments": {"slug": slug, "records": rows, "wait": 20}},
        {"name": "contribution_status", "arguments": {"slug": slug}, "takes": {"id": "id"}},
        {"name": "read_dataset", "arguments": {"slug": slug, "limit": 2}},
        {"name": "query_dataset", "arguments": {"slug": slug, "sql": "SELECT count(*) AS n FROM records"}},
        {"name": "preview_dataset", "arguments": {"slug": slug, "version": 1}},
        {"name": "dataset_manifest", "arguments": {"slug": slug}},
        {"name": "dataset_diff", "arguments": {"slug": slug, "to": 1}},
        {"name": "search_knowledge", "arguments": {"q": "quay"}},
        {"name": "submit_knowledge", "arguments": {
            "title": "Levels at the quay", "body": "The gauge at the quay read 0.83 m.", "category": "tides",
            "sourceDeclaration": "Read by a test."}},
        {"name": "check_submission", "arguments": {}, "takes": {"id": "id"}},
        {"name": "revise_knowledge", "arguments": {"id": NONE, "body": "More."}, "refused": "not_found"},
        {"name": "set_knowledge_price", "arguments": {"id": NONE, "price": "0.10"}, "refused": "not_found"},
        {"name": "retire_knowledge", "arguments": {"id": NONE}, "refused": "not_found"},
        {"name": "validate_knowledge", "arguments": {
            "title": "Levels at the quay", "body": "The gauge at the quay read 0.83 m.", "category": "tides",
            "sourceDeclaration": "Read by a test."}},
        {"name": "mark_knowledge", "arguments": {"id": NONE, "mark": "confirmed", "ran": "Read the gauge again."},
            "refused": "not_found"},
        {"name": "appeal_rejection", "arguments": {"id": NONE}, "refused": "not_found"},
        {"name": "get_knowledge_full", "arguments": {"id": NONE}, "refused": "not_found"},
        {"name": "my_quota", "arguments": {}},
        {"name": "my_earnings", "arguments": {}},
        {"name": "post_request", "arguments": {"title": "Levels wanted", "body": "Hourly levels of the quay."}},
        {"name": "get_request", "arguments": {}, "takes": {"id": "id"}},
        {"name": "close_request", "arguments": {}, "takes": {"id": "id"}},
        {"name": "answer_request", "arguments": {"note": "Mine."}, "takes": {"id": "id"}, "refused": "own_request"},
        {"name": "choose_answer", "arguments": {"id": NONE, "answerId": 1}, "refused": "not_found"},
        {"name": "review_item", "arguments": {"dataset": slug, "body": "Complete."}, "refused": "invalid_request"},
        {"name": "list_requests", "arguments": {"status": "closed"}},
        {"name": "report_content", "arguments": {
            "kind": "dataset", "id": slug, "reason": "other", "detail": "A test of the report.",
        }},
    ])
}

/// Fails unless each call was answered, with what it must say.
pub(crate) fn judge(done: &Value, slug: &str) {
    let results = done["results"].as_array().unwrap();
    let calls = calls(slug);
    for (call, result) in calls.as_array().unwrap().iter().zip(results) {
        let refused = call["refused"].as_str();
        assert_eq!(result["isError"], refused.is_some(), "{result}");
        // The mark of what others wrote comes before the text.
        let text = result["content"].as_array().unwrap().last().unwrap()["text"]
            .as_str()
            .unwrap();
        let code = refused.map_or_else(String::new, |code| format!("\"error\":\"{code}\""));
        assert!(text.contains(&code), "{code}: {text}");
    }
    let of = |name: &str| &results.iter().find(|result| result["name"] == name).unwrap()["structured"];
    assert_eq!(of("list_datasets")["items"][0]["slug"], slug, "{done}");
    assert_eq!(of("dataset_info")["slug"], slug);
    assert_eq!(of("update_dataset")["title"], "Another title");
    assert_eq!(of("contribution_status")["status"], "merged");
    assert_eq!(
        of("read_dataset")["items"].as_array().unwrap().len(),
        2,
        "{}",
        of("read_dataset")
    );
    assert_eq!(of("query_dataset")["rows"], json!([[3]]), "{}", of("query_dataset"));
    assert_eq!(of("dataset_diff")["appendedCount"], 3, "{}", of("dataset_diff"));
    // Text of others is marked, so that a model can tell it from an instruction.
    let info = results.iter().find(|result| result["name"] == "dataset_info").unwrap();
    assert!(
        info["content"][0]["text"].as_str().unwrap().contains("other agents"),
        "{info}"
    );
    let called: Vec<&str> = results.iter().map(|result| result["name"].as_str().unwrap()).collect();
    // These clients have no scope `spend`. Wallets buy in the tests of payments.
    let buys = |tool: &Value| tool.as_str().unwrap().starts_with("buy_");
    for tool in done["tools"].as_array().unwrap().iter().filter(|tool| !buys(tool)) {
        assert!(called.contains(&tool.as_str().unwrap()), "nobody called {tool}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_official_clients_call_every_tool() {
    let Some(agents) = Agents::installed() else { return };
    on_each(async |url| {
        let site = Site::start(url.as_deref(), |options| options).await;
        let (operator, session) = site.signed_in("ada@example.org").await;
        // The client learns from a refusal where to get a token.
        let given = json!({"base": site.http.base(), "calls": calls("tides")});
        let mut client = agents.start("mcp_sdk.mjs", &given).await;
        let asked = client.hear("authorize").await;
        let callback = agree(&site, &session, asked.as_str().unwrap()).await;
        client.tell(&json!({"callback": callback})).await;
        let done = client.hear("done").await;
        assert_eq!(
            (&done["wasAsked"], &done["scope"]),
            (&json!(true), &json!("read write"))
        );
        judge(&done, "tides");
        // An agent's key opens the same tools.
        let token = site.token(operator).await;
        let made = site
            .http
            .with(&token)
            .post("/agents", &json!({"name": "python"}))
            .await
            .expect(201);
        let given = json!({"base": site.http.base(), "key": made.text("/key"), "calls": calls("waves")});
        let mut client = agents.start("mcp_sdk.py", &given).await;
        judge(&client.hear("done").await, "waves");
    })
    .await;
}

/// Checks in the results of the conformance suite that failed, each after its scenario, and the number of all checks.
fn failures(folder: &Path) -> (BTreeSet<String>, usize) {
    let (mut failures, mut count) = (BTreeSet::new(), 0);
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let Ok(text) = std::fs::read(path.join("checks.json")) else {
            continue;
        };
        let name = path.file_name().unwrap().to_str().unwrap();
        // The name of the folder is the scenario between the command and the time of the run.
        let scenario = name.strip_prefix("server-").unwrap_or(name);
        let scenario = &scenario[..scenario.len() - "-2026-11-24T09-06-06-898Z".len()];
        let checks: Vec<Value> = serde_json::from_slice(&text).unwrap();
        count += checks.len();
        let failed = checks.iter().filter(|check| check["status"] == "FAILURE");
        failures.extend(failed.map(|check| format!("{scenario} {}", check["id"].as_str().unwrap())));
    }
    (failures, count)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_conformance_suite_finds_nothing_but_what_needs_its_own_server() {
    let Some(agents) = Agents::installed() else { return };
    let site = Site::start(None, |options| options).await;
    let expected = include_str!("../agents/expected-failures.txt");
    let expected = expected.lines().filter(|line| !line.starts_with('#'));
    let expected: BTreeSet<String> = expected.map(str::to_owned).collect();
    let folder = tempfile::tempdir().unwrap();
    let url = format!("{}/mcp", site.http.base());
    // The latest revision with a handshake, and the one without.
    for revision in ["2025-11-25", "2026-07-28"] {
        let arguments = ["server", "--url", &url, "--suite", "all", "--spec-version", revision];
        let mut suite = agents.conformance(&arguments, folder.path());
        tokio::task::block_in_place(|| suite.output().unwrap());
    }
    let (failures, count) = failures(folder.path());
    assert!(count > 150, "only {count} checks");
    let new: Vec<_> = failures.difference(&expected).collect();
    let gone: Vec<_> = expected.difference(&failures).collect();
    assert!(
        new.is_empty() && gone.is_empty(),
        "failed: {new:#?}\nexpected to fail: {gone:#?}"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_conformance_suite_gets_a_token_of_the_authorization_server() {
    let Some(agents) = Agents::installed() else { return };
    let site = Site::start(None, |options| options).await;
    let (_, session) = site.signed_in("ada@example.org").await;
    let base = site.http.base();
    let app = App::register(base, "Conformance").await;
    let folder = tempfile::tempdir().unwrap();
    // The port of a loopback address is free, and the suite wants to be told it.
    let port = std::net::TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap();
    let (port, resource) = (port.port().to_string(), format!("{base}/mcp"));
    let arguments = [
        "authorization",
        "--url",
        base,
        "--client-id",
        &app.id,
        "--resource",
        &resource,
        "--port",
        &port,
    ];
    let mut suite = tokio::process::Command::from(agents.conformance(&arguments, folder.path()));
    let mut suite = suite.stdout(Stdio::piped()).kill_on_drop(true).spawn().unwrap();
    let mut lines = BufReader::new(suite.stdout.take().unwrap()).lines();
    let mut said = Vec::new();
    // The person opens the address that the suite prints, and the browser follows the answer to the suite.
    let mut asked = None;
    while let Some(line) = lines.next_line().await.unwrap() {
        if line.contains("/oauth/authorize?") {
            asked = Some(line.trim().to_owned());
        }
        let listens = line.starts_with("Callback server started");
        said.push(line);
        if listens {
            let callback = agree(&site, &session, asked.as_deref().unwrap()).await;
            let arrived = s3_server::caller().build().unwrap().get(callback).send().await;
            assert!(arrived.unwrap().status().is_success());
        }
    }
    let ended = suite.wait().await.unwrap();
    let (failures, count) = failures(folder.path());
    assert!(
        ended.success() && failures.is_empty() && count >= 3,
        "{failures:?}, {count}: {said:#?}"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_inspector_lists_and_calls_tools() {
    let Some(agents) = Agents::installed() else { return };
    let site = Site::start(None, |options| options).await;
    let operator = site.operator("ada@example.org").await;
    let token = site.token(operator).await;
    let made = site
        .http
        .with(&token)
        .post("/agents", &json!({"name": "inspector"}))
        .await;
    let key = made.expect(201).text("/key").to_owned();
    let folder = tempfile::tempdir().unwrap();
    let header = format!("Authorization: Bearer {key}");
    let inspect = |path: &str, further: &[&str]| -> Value {
        let url = format!("{}{path}", site.http.base());
        let mut arguments = vec![url.as_str(), "--transport", "http", "--header", &header];
        arguments.extend_from_slice(further);
        let mut inspector = agents.inspector(&arguments, folder.path());
        let output = tokio::task::block_in_place(|| inspector.output().unwrap());
        let said = String::from_utf8_lossy(&output.stdout);
        serde_json::from_str(&said).unwrap_or_else(|_error| panic!("{said}{}", String::from_utf8_lossy(&output.stderr)))
    };
    for path in ["/mcp", "/mcp/directory"] {
        let listed = inspect(path, &["--method", "tools/list"]);
        let names: Vec<_> = listed["tools"]
            .as_array()
            .unwrap()
            .iter()
            .map(|tool| &tool["name"])
            .collect();
        assert!(names.contains(&&json!("contribute_records")), "{path}: {names:?}");
    }
    let contract = json!({"fields": [{"name": "gauge", "type": "string"}]});
    let [contract, records] = [contract, json!([{"gauge": "quay"}])].map(|value| value.to_string());
    let [contract, records] = [format!("schemaDef={contract}"), format!("records={records}")];
    let call = |name: &str, arguments: &[&str]| {
        let named = ["--method", "tools/call", "--tool-name", name, "--tool-arg"];
        inspect("/mcp", &[named.as_slice(), arguments].concat())
    };
    let made = call(
        "create_dataset",
        &[
            "slug=tides",
            "title=Tides",
            "readme=Levels of the water at the quay.",
            &contract,
        ],
    );
    assert_eq!(made["structuredContent"]["slug"], "tides", "{made}");
    let merged = call("contribute_records", &["slug=tides", &records, "wait=20"]);
    assert_eq!(merged["structuredContent"]["status"], "merged", "{merged}");
    let read = call("read_dataset", &["slug=tides"]);
    assert_eq!(read["structuredContent"]["items"], json!([{"gauge": "quay"}]), "{read}");
}

#[tokio::test]
async fn the_entry_for_the_registry_names_the_endpoints_of_this_version() {
    let world = World::start(binary()).await;
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../deploy/server.json");
    let entry: Value = serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap();
    let description = world.http.get("/openapi.json").await.expect(200);
    assert_eq!(entry["version"], description.body["info"]["version"]);
    let text = |member: &str| entry[member].as_str().unwrap();
    // Rules of the registry: a reversed domain with one name below it, and at most 100 characters of description.
    assert_eq!(text("name").split('/').count(), 2);
    assert!(text("description").len() <= 100);
    let mut endpoints = Vec::new();
    for remote in entry["remotes"].as_array().unwrap() {
        assert_eq!(remote["type"], "streamable-http");
        let url = remote["url"].as_str().unwrap();
        let endpoint = url.strip_prefix(text("websiteUrl")).unwrap();
        let ping = json!({"jsonrpc": "2.0", "id": 1, "method": "ping"});
        world.http.post(endpoint, &ping).await.expect(200);
        endpoints.push(endpoint);
    }
    assert_eq!(endpoints, ["/mcp", "/mcp/directory"]);
}

/// Calls a tool and returns the JSON of its text, with the bytes of the answer.
async fn answered(http: &Http, name: &str, arguments: &Value) -> (Value, usize) {
    let params = json!({"name": name, "arguments": arguments});
    let message = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params});
    let answer = http.post("/mcp", &message).await.expect(200);
    let result = &answer.body["result"];
    assert_eq!(result["isError"], false, "{result}");
    let text = result["content"].as_array().unwrap().last().unwrap()["text"]
        .as_str()
        .unwrap();
    (serde_json::from_str(text).unwrap(), answer.bytes.len())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rows_in_no_order_are_each_on_one_page() {
    let world = World::start(binary()).await;
    let fields = json!([{"name": "id", "type": "integer", "required": true}, {"name": "text", "type": "string"}]);
    let slug = world.project_with(json!({"schemaDef": {"fields": fields}})).await;
    let http = &world.agent.http;
    // Several parts, so that threads would read them at once.
    for batch in 0..6 {
        let words = [
            "amber", "basin", "cedar", "delta", "ember", "fjord", "grove", "harbor", "inlet", "jetty", "knoll",
        ];
        let text = |id: usize| {
            let words: Vec<_> = (0..18).map(|place| words[(id + place * place) % words.len()]).collect();
            words.join(" ")
        };
        let rows: Vec<_> = (0..150)
            .map(|row| json!({"id": batch * 150 + row, "text": text(batch * 150 + row)}))
            .collect();
        let path = format!("/projects/{slug}/contribute?wait=20");
        let merged = http.post(&path, &json!({"records": rows})).await;
        assert_eq!(merged.body["status"], "merged", "{}", merged.body);
    }
    for sql in [
        "SELECT id, text FROM records",
        "SELECT id, max(text) FROM records GROUP BY id",
        "SELECT a.id, b.text FROM records a JOIN records b ON a.id = b.id ORDER BY a.text",
    ] {
        let (mut ids, mut pages, mut next) = (Vec::new(), 0, json!(0));
        while !next.is_null() {
            let arguments = json!({"slug": slug, "sql": sql, "limit": 1_000, "offset": next});
            let (page, bytes) = answered(http, "query_dataset", &arguments).await;
            assert!(bytes < 40_000, "{sql}: {bytes}");
            let rows = page["rows"].as_array().unwrap();
            ids.extend(rows.iter().map(|row| row[0].as_i64().unwrap()));
            next = page["nextOffset"].clone();
            pages += 1;
        }
        assert!(pages > 3, "{sql}: {pages}");
        ids.sort_unstable();
        assert!(ids.into_iter().eq(0..900), "{sql}");
    }
}

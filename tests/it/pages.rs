//! Public pages of things that are on sale: their weight, and the calls that they show, run as they are copied.
//!
//! Invariant: nothing in a copied call is changed; the key and what it names are in the environment.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use reqwest::Method;
use serde_json::{Value, json};
use tests::world::{Agent, contribute, records};
use tests::{Http, World};

use crate::moderation::published;
use crate::{binary, optional};

/// Time in which a page is to be served, and how much longer it may take on a machine that does other work.
const SOON: Duration = Duration::from_millis(50);
const SLACK: u32 = 10;
/// Times that a page is opened to measure it.
const OPENED: usize = 5;
/// Bytes of a page, and of the style, the script and the mark that all pages link to.
const MOST: usize = 100 << 10;
/// Public pages that are always there.
pub(crate) const ALWAYS: [&str; 18] = [
    "/",
    "/find",
    "/projects",
    "/units",
    "/requests?title=Readings&kind=dataset",
    "/requests",
    "/requests?status=open",
    "/activity",
    "/leaderboard",
    "/takedowns",
    "/collectors",
    "/report",
    "/test-usdc",
    "/signup",
    "/signin",
    "/terms",
    "/licenses",
    "/no/such/page",
];
/// A text that would do harm as markup.
const HOSTILE: &str = "<script>alert(1)</script> [a](javascript:alert(1)) \u{5e9}\u{5dc} ![p](https://evil.example/p)";

/// Makes a paid dataset with a version, a comment and a question that is answered, and two requests, of which one has an
/// answer. Returns the addresses of their pages, those of the requests last.
pub(crate) async fn furnish(seller: &Http, buyer: &Http, slug: &str) -> Vec<String> {
    contribute(seller, slug, &records(slug, 3)).await;
    buyer
        .post(&format!("/projects/{slug}/buy"), &json!({}))
        .await
        .expect(200);
    let question = json!({"dataset": slug, "kind": "question", "body": format!("{HOSTILE} asked")});
    let asked = buyer.post("/community/reviews", &question).await.expect(201);
    let comments = format!("/projects/{slug}/comments");
    let reply = json!({"body": format!("{HOSTILE} replied"), "parentId": asked.body["id"]});
    seller.post(&comments, &reply).await.expect(201);
    let comment = json!({"body": format!("{HOSTILE} remarked")});
    buyer.post(&comments, &comment).await.expect(201);
    let mut pages = vec![format!("/projects/{slug}")];
    for title in ["Readings of stations by the quay", HOSTILE] {
        let wanted = json!({
            "title": title, "body": format!("One record for each sample. {HOSTILE}"), "kind": "dataset", "budget": "0.50",
            "fields": [{"name": "station", "type": "string", "description": HOSTILE}],
        });
        let made = buyer.post("/community/requests", &wanted).await.expect(201);
        pages.push(format!("/requests/{}", made.text("/id")));
    }
    let answers = format!("/community{}/answers", pages[1]);
    let offer = json!({"dataset": slug, "note": HOSTILE});
    seller.post(&answers, &offer).await.expect(201);
    pages
}

/// Opens a page as a browser does.
async fn page(http: &Http, path: &str) -> String {
    let got = http
        .send(Method::GET, path, &[("accept", "text/html")], None)
        .await
        .unwrap();
    let text = String::from_utf8(got.bytes).unwrap();
    assert_eq!(
        got.status.as_u16(),
        if path == "/no/such/page" { 404 } else { 200 },
        "{path}: {text}"
    );
    assert!(text.starts_with("<!doctype html>"), "{path}: {text}");
    text
}

/// Opens a page several times and returns its text and the median of the times until it was there.
async fn timed(http: &Http, path: &str) -> (String, Duration) {
    let (mut text, mut times) = (String::new(), Vec::new());
    for _ in 0..OPENED {
        let begun = Instant::now();
        text = page(http, path).await;
        times.push(begun.elapsed());
    }
    times.sort_unstable();
    (text, times[OPENED / 2])
}

/// The text of a call on a page, as a browser copies it.
pub(crate) fn copied(page: &str, id: &str) -> String {
    let block = page.split(&format!(" id=\"{id}\"")).nth(1);
    let block = block.unwrap_or_else(|| panic!("no `{id}` in {page}"));
    // No `>` of a text is left as it is in HTML.
    let code = block.split("</code>").next().unwrap().rsplit('>').next().unwrap();
    code.replace("&#34;", "\"")
        .replace("&#39;", "'")
        .replace("&#60;", "<")
        .replace("&#62;", ">")
        .replace("&#38;", "&")
}

/// Runs a copied call in a folder.
pub(crate) fn run(folder: &Path, seller: &Agent, slug: &str, call: &str) -> String {
    let path = std::env::var("PATH").unwrap();
    let ran = Command::new("bash")
        .args(["-c", &format!("set -eu\n{call}\n")])
        .current_dir(folder)
        .env("PATH", format!("{}:{path}", folder.display()))
        .env("SLUICE_KEY", &seller.key)
        .env("DATASET", slug)
        .env("XDG_DATA_HOME", folder.join("home"))
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&[ran.stdout, ran.stderr].concat()).into_owned();
    assert!(ran.status.success(), "{call}: {said}");
    said
}

/// Runs a copied script, where there is a Python that has what it imports.
fn run_python(buyer: &Agent, script: &str) {
    let Some(python) = std::env::var("SLUICE_TEST_PYTHON").ok() else {
        return optional("SLUICE_TEST_PYTHON names no Python with requests");
    };
    let run = |script: &str| {
        let mut command = Command::new(&python);
        command
            .args(["-c", script])
            .env("SLUICE_KEY", &buyer.key)
            .env("NO_PROXY", "*");
        command.output().unwrap()
    };
    if !run("import requests").status.success() {
        return optional("the Python of SLUICE_TEST_PYTHON has no requests");
    }
    let ran = run(script);
    let said = String::from_utf8_lossy(&[ran.stdout, ran.stderr].concat()).into_owned();
    assert!(ran.status.success(), "{script}: {said}");
    assert!(said.contains("'sample'"), "{said}");
}

/// Calls the tools of a copied text, one a line, and returns the last answer.
pub(crate) async fn call_tools(http: &Http, text: &str) -> Value {
    let mut last = Value::Null;
    for line in text.lines() {
        let (name, arguments) = line.split_once(' ').unwrap();
        let arguments: Value = serde_json::from_str(arguments).unwrap();
        let params = json!({"name": name, "arguments": arguments});
        let message = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params});
        let accept = [("accept", "application/json, text/event-stream")];
        let body = message.to_string().into_bytes();
        let got = http.send(Method::POST, "/mcp", &accept, Some(body)).await.unwrap();
        let text = String::from_utf8(got.bytes).unwrap();
        let event = text.lines().find_map(|line| line.strip_prefix("data:"));
        last = serde_json::from_str(event.unwrap_or(&text)).unwrap();
        let is_good = last["result"].is_object() && last["result"]["isError"] != true;
        assert!(is_good, "{line}: {last}");
    }
    last
}

#[tokio::test]
async fn public_pages_are_light_and_their_calls_run_as_copied() {
    if Command::new("curl").arg("--version").output().is_err() {
        assert!(std::env::var("CI").as_deref() != Ok("true"), "curl must be there in CI");
        eprintln!("skipped: there is no curl");
        return;
    }
    let world = World::start(binary()).await;
    let slug = world.project_with(json!({"access": "paid", "price": "0.50"})).await;
    let (owner, buyer) = world.newcomer().await;
    let options = world.server.options();
    options.admin(&["credits", "grant", &owner.id, "--cents", "100"]);
    let mut shown = furnish(&world.agent.http, &buyer.http, &slug).await;
    let unit = published(&world.agent.http).await;
    buyer
        .http
        .post(&format!("/knowledge/{unit}/buy"), &json!({}))
        .await
        .expect(200);
    shown.push(format!("/units/{unit}"));
    for path in ALWAYS.iter().copied().chain(shown.iter().map(String::as_str)) {
        let (text, time) = timed(&world.http, path).await;
        assert!(time <= SOON * SLACK, "{path}: {time:?}");
        let links = text.split('"').filter(|part| part.starts_with("/assets/"));
        let mut links: Vec<&str> = links.collect();
        links.sort_unstable();
        links.dedup();
        assert_eq!(links.len(), 3, "{path}: {links:?}");
        let mut weight = 0;
        for link in links {
            weight += world.http.get(link).await.expect(200).bytes.len();
        }
        let late = if time > SOON { ", which is late" } else { "" };
        eprintln!(
            "{path}: {} bytes, what it links to {weight}, in {time:.1?}{late}",
            text.len()
        );
        assert!(text.len() <= MOST, "{path}: {} bytes", text.len());
        assert!(weight <= MOST, "{path}: links to {weight} bytes");
        let harm = ["<script>alert", "href=\"javascript:", "src=\"https://evil"];
        assert!(!harm.iter().any(|harm| text.contains(harm)), "{path}: {text}");
    }

    let folder = world.folder().join("copied");
    fs::create_dir(&folder).unwrap();
    symlink(binary(), folder.join("sluice")).unwrap();
    let dataset = page(&world.http, &shown[0]).await;
    run(&folder, &buyer, &slug, &copied(&dataset, "get-curl"));
    let exported = fs::read_to_string(folder.join(format!("{slug}.ndjson"))).unwrap();
    let lines: Vec<Value> = exported
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    assert_eq!(lines.len(), 3, "{exported}");
    run(&folder, &buyer, &slug, &copied(&dataset, "get-cli"));
    run(&folder, &buyer, &slug, &copied(&dataset, "verify"));
    run_python(&buyer, &copied(&dataset, "get-python"));
    let read = call_tools(&buyer.http, &copied(&dataset, "get-mcp")).await;
    assert!(read.to_string().contains("sample"), "{read}");
    let priced = page(&world.http, &format!("/units/{unit}")).await;
    let said = run(&folder, &buyer, &slug, &copied(&priced, "call"));
    // What is bought before is not paid again, and then it is read.
    let answers: Vec<Value> = serde_json::Deserializer::from_str(&said)
        .into_iter()
        .map(Result::unwrap)
        .collect();
    let [bought, full] = answers.as_slice() else {
        unreachable!("a purchase and a text: {said}")
    };
    assert_eq!(
        (&bought["unitId"], &bought["charged"]),
        (&json!(unit), &json!(false)),
        "{said}"
    );
    assert_eq!(full["id"], unit, "{said}");
    // The second request has no answer yet; the seller gives it one.
    let request = page(&world.http, &shown[2]).await;
    let said = run(&folder, &world.agent, &slug, &copied(&request, "how-curl"));
    assert!(said.contains(&slug) && !said.contains("\"error\""), "{said}");
    let answered = world.http.get(&format!("/community{}", shown[2])).await.expect(200);
    assert_eq!(answered.text("/answers/0/item/dataset"), slug);
    // The second line has a word in the place of the seller's item.
    let tools = copied(&page(&world.http, &shown[2]).await, "how-mcp");
    let (look, _) = tools.split_once('\n').unwrap();
    let asked = call_tools(&world.agent.http, look).await;
    assert!(asked.to_string().contains(&slug), "{asked}");
    let home = page(&world.http, "/").await;
    let said = run(&folder, &buyer, &slug, &copied(&home, "verify"));
    assert!(said.contains(&slug), "{said}");
}

//! The programs of the pages about jobs: each runs as it is printed, and an agent that knows nothing but `/llms.txt` sells,
//! buys, answers and pays by them.
//!
//! Invariant: the only change to a program is the key of the agent.

use std::path::Path;
use std::process::Stdio;

use serde_json::{Value, json};
use tests::agents::Agents;
use tests::{Answer, Http, Options, World};
use tokio::io::{AsyncBufReadExt as _, BufReader};
use tokio::process::Command;

use crate::accounts::Site;
use crate::oauth::agree;
use crate::{binary, optional};

/// A text that the review publishes, as the file of a labelled unit.
const TEXT: &str = include_str!("../../operators/models/corpus/train/alert-signal-matrix.toml");

async fn read(http: &Http, url: &str) -> String {
    let path = url.strip_prefix(http.base()).unwrap();
    String::from_utf8(http.get(path).await.expect(200).bytes).unwrap()
}

/// The page that the index names for a job.
async fn page(http: &Http, index: &str, job: &str) -> String {
    let (_, rest) = index.split_once(&format!("- [{job}](")).unwrap();
    read(http, rest.split_once(')').unwrap().0).await
}

/// The program of a page in a language, with the key of the agent.
fn program(page: &str, language: &str, key: &str) -> String {
    let blocks: Vec<&str> = page.split(&format!("```{language}\n")).skip(1).collect();
    assert_eq!(blocks.len(), 1, "{page}");
    blocks[0].split_once("```").unwrap().0.replace("km_…", key)
}

fn has_python() -> bool {
    let found = std::process::Command::new("python3").arg("--version").output();
    if found.is_err() {
        optional("programs of the pages: there is no `python3`");
    }
    found.is_ok()
}

/// Runs a program that needs Python alone, and returns what it prints.
async fn run(folder: &Path, program: &str) -> String {
    let mut command = Command::new("python3");
    let ran = command
        .args(["-c", program])
        .current_dir(folder)
        .output()
        .await
        .unwrap();
    let said = String::from_utf8_lossy(&ran.stderr).into_owned();
    assert!(ran.status.success(), "{said}");
    String::from_utf8(ran.stdout).unwrap()
}

/// Publishes a text of another operator at a price, which the search finds.
async fn other_text(other: &Http) -> String {
    let body = json!({
        "title": "Simple case mappings of Unicode 15.0 that do not come back",
        "body": include_str!("../../deploy/sluice/data/unit.md"),
        "category": "text-processing",
        "sourceDeclaration": "Counted in UnicodeData.txt of Unicode 15.0.",
        "price": "0.25",
    });
    let made = other.post("/knowledge", &body).await.expect(201);
    let id = made.text("/id").to_owned();
    let is_found = |answer: &Answer| answer.body["items"].as_array().is_some_and(|items| !items.is_empty());
    other
        .comes_to_show("/search?q=simple%20case%20mappings", is_found)
        .await;
    id
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_agent_that_knows_only_the_index_sells_buys_answers_and_pays() {
    let Some(wallets) = Agents::wallets().filter(|_| has_python()) else {
        return;
    };
    let world = World::start(binary()).await;
    let (buyer, other) = world.newcomer().await;
    let theirs = other_text(&other.http).await;
    let asked = json!({"title": "Which alerts are noise?", "body": "Counted over a year, please, with the lead time."});
    let request = other.http.post("/community/requests", &asked).await.expect(201);
    let request = format!("/community/requests/{}", request.text("/id"));

    // All that the agent knows, and its key.
    let index = read(&world.http, &format!("{}/llms.txt", world.http.base())).await;
    let (key, folder) = (world.agent.key.as_str(), world.folder());
    let text = TEXT.split("'''").nth(1).unwrap();
    let title = TEXT.lines().next().unwrap().split('"').nth(1).unwrap();
    std::fs::write(folder.join("text.md"), format!("# {title}\n{text}")).unwrap();
    let publish = program(&page(&world.http, &index, "Publish a text").await, "python", key);
    let said = run(folder, &publish).await;
    assert!(said.starts_with("published "), "{said}");
    let sell = program(&page(&world.http, &index, "Sell a text").await, "python", key);
    let said = run(folder, &sell).await;
    assert!(said.starts_with(&format!("for sale: {title} 0.25\n")), "{said}");
    // Run again after a lost answer, neither makes anything.
    let again = run(folder, &publish).await;
    assert!(again.starts_with("published "), "{again}");
    let mine = world.agent.http.get("/me/knowledge").await.expect(200);
    assert_eq!(mine.body["items"].as_array().unwrap().len(), 1, "{}", mine.body);
    let unit = mine.body["items"][0]["id"].as_str().unwrap();

    let answer = program(&page(&world.http, &index, "Answer a request").await, "python", key);
    let said = run(folder, &answer).await;
    assert!(said.contains("answered: "), "{said}");
    let shown = world.http.get(&request).await.expect(200);
    assert_eq!(
        (&shown.body["answers"][0]["item"]["unitId"], &shown.body["answerCount"]),
        (&json!(unit), &json!(1)),
        "{}",
        shown.body
    );

    // It pays from wallets that the faucet filled.
    let buy = page(&world.http, &index, "Buy a text").await;
    for language in ["python", "js"] {
        let ran = wallets.run(language, &program(&buy, language, key)).await;
        let said = String::from_utf8_lossy(&[ran.stdout, ran.stderr].concat()).into_owned();
        assert!(ran.status.success(), "{language}: {said}");
        assert!(said.contains("U+212A (KELVIN SIGN)"), "{language}: {said}");
    }
    let earned = other.http.get("/earnings").await.expect(200);
    let sold = other.http.get(&format!("/knowledge/{theirs}")).await.expect(200);
    assert_eq!(sold.body["stats"]["sold"], 2, "{}", sold.body);
    assert_eq!(earned.body["onHold"]["totalMicro"], 410_000, "{}", earned.body);

    // Its own text is bought by whoever asked, and the same page says what it earned.
    let options = world.server.options();
    options.admin(&["credits", "grant", &buyer.id, "--cents", "25"]);
    let bought = other.http.post(&format!("/knowledge/{unit}/buy"), &json!({})).await;
    bought.expect(200);
    let said = run(folder, &sell).await;
    assert!(said.contains(&format!("published 0.25 sold 1 {title}")), "{said}");
    assert!(said.contains("on hold: 205000 "), "{said}");
    options.assert_consistent();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_program_that_connects_an_app_calls_a_tool_for_a_person() {
    if !has_python() {
        return;
    }
    let site = Site::start(None, |options: Options| options).await;
    let (_, session) = site.signed_in("ada@example.org").await;
    let index = read(&site.http, &format!("{}/llms.txt", site.http.base())).await;
    let connect = program(&page(&site.http, &index, "Connect an app").await, "python", "");
    let mut app = Command::new("python3")
        .args(["-c", &connect])
        .stdout(Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(app.stdout.take().unwrap()).lines();
    let asked = lines.next_line().await.unwrap().unwrap();
    let callback = agree(&site, &session, asked.strip_prefix("Open in a browser: ").unwrap()).await;
    let closed = s3_server::caller().build().unwrap().get(callback).send().await.unwrap();
    assert_eq!(closed.status(), 200);
    let who = lines.next_line().await.unwrap().unwrap();
    assert_eq!(who, "acts as tide-desk with read write");
    let quota: Value = serde_json::from_str(&lines.next_line().await.unwrap().unwrap()).unwrap();
    assert!(quota["storage"]["allowed"].is_u64(), "{quota}");
    assert!(app.wait().await.unwrap().success());
}

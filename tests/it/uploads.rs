//! Large files pushed with the program, against a service that serves others meanwhile.

use std::fs;
use std::io::Write as _;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::time::Instant;

use flate2::write::GzEncoder;
use serde_json::{Value, json};
use tests::server::{DEADLINE, POLL};
use tests::world::{contribute, records};
use tests::{Answer, Http, World};

use crate::binary;

const ROWS: u64 = 50_000;
const PARTS: usize = 8;

/// `sluice push` of a file in parts of this size.
pub(crate) fn push(world: &World, slug: &str, file: &Path, part: u64) -> Command {
    let mut command = Command::new(binary());
    command
        .arg("push")
        .arg(file)
        .args(["--project", slug, "--part-size", &format!("{part}B")])
        .arg("--state")
        .arg(file.with_extension("state"))
        .env("SLUICE_SERVER", world.server.base())
        .env("SLUICE_KEY", &world.agent.key)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    command
}

/// Returns records as lines of JSON, one for each number.
pub(crate) fn lines(numbers: std::ops::Range<u64>) -> Vec<u8> {
    let line =
        |number| json!({"station": format!("bulk {number}"), "sample": number, "value": 0.25}).to_string() + "\n";
    numbers.map(line).collect::<String>().into_bytes()
}

pub(crate) fn said(output: &Output) -> String {
    let stderr = String::from_utf8_lossy(&output.stderr);
    format!("{}{stderr}", String::from_utf8_lossy(&output.stdout))
}

/// Puts bytes to a part's address: the status and the tag.
pub(crate) async fn put(url: &str, bytes: &[u8]) -> (u16, String) {
    let client = s3_server::caller().build().unwrap();
    let sent = client.put(url).body(bytes.to_vec()).send().await.unwrap();
    let tag = sent.headers().get("etag").map(|tag| tag.to_str().unwrap().to_owned());
    (sent.status().as_u16(), tag.unwrap_or_default())
}

/// Begins an upload of these bytes in parts of this size.
pub(crate) async fn begin(http: &Http, slug: &str, bytes: &[u8], part: usize, compression: &str) -> Value {
    let body = json!({
        "bytes": bytes.len(), "parts": bytes.len().div_ceil(part), "partSize": part, "compression": compression,
    });
    http.post(&format!("/projects/{slug}/uploads"), &body)
        .await
        .expect(201)
        .body
}

pub(crate) fn url(upload: &Value, part: usize) -> &str {
    upload["partUrls"][part]["url"].as_str().unwrap()
}

/// Puts every part; their tags.
pub(crate) async fn fill(upload: &Value, bytes: &[u8], part: usize) -> Vec<Value> {
    let mut tags = Vec::new();
    for (index, bytes) in bytes.chunks(part).enumerate() {
        let (status, tag) = put(url(upload, index), bytes).await;
        assert_eq!(status, 200);
        tags.push(json!({"n": index + 1, "etag": tag}));
    }
    tags
}

pub(crate) async fn complete(http: &Http, slug: &str, upload: &Value, tags: &[Value]) -> Answer {
    let id = upload["id"].as_str().unwrap();
    let path = format!("/projects/{slug}/uploads/{id}/complete");
    http.post(&path, &json!({ "etags": tags })).await
}

pub(crate) fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

/// How many parts the state file says were sent; none where there is no such file.
fn sent(folder: &Path) -> Option<usize> {
    let file = fs::read_dir(folder)
        .ok()?
        .flatten()
        .find(|entry| entry.path().extension().is_some_and(|e| e == "json"))?;
    let state: Value = serde_json::from_slice(&fs::read(file.path()).ok()?).ok()?;
    state["tags"].as_object().map(serde_json::Map::len)
}

/// Waits until some parts were sent, or the push is over; kills it.
async fn killed_halfway(mut child: Child, folder: &Path) -> usize {
    let begun = Instant::now();
    loop {
        let parts = sent(folder).unwrap_or(0);
        if parts >= 2 || child.try_wait().unwrap().is_some() {
            child.kill().unwrap();
            child.wait().unwrap();
            return sent(folder).unwrap_or(0);
        }
        assert!(begun.elapsed() < DEADLINE, "nothing was sent");
        tokio::time::sleep(POLL).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_push_that_was_killed_goes_on_and_others_are_served_meanwhile() {
    let world = World::start(binary()).await;
    let slug = world.project().await;
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("rows.ndjson");
    let lines: Vec<_> = (0..ROWS)
        .map(|row| {
            format!(
                "{}\n",
                json!({"station": format!("bulk {row}"), "sample": row, "value": 0.25})
            )
        })
        .collect();
    let text = lines.concat();
    fs::write(&file, &text).unwrap();
    let part = text.len().div_ceil(PARTS) as u64;

    let child = push(&world, &slug, &file, part).spawn().unwrap();
    let before = killed_halfway(child, &file.with_extension("state")).await;

    // Small batches go on being merged while the rest is sent and staged.
    let mut command = push(&world, &slug, &file, part);
    let pushing = tokio::task::spawn_blocking(move || command.output());
    let mut merged = 0;
    while !pushing.is_finished() {
        let answer = contribute(&world.agent.http, &slug, &records(&format!("small {merged}"), 3)).await;
        assert_eq!(answer.text("/status"), "merged");
        merged += 1;
    }
    let output = pushing.await.unwrap().unwrap();
    assert!(output.status.success(), "{}", said(&output));
    assert!(said(&output).contains("50,000 records are new"), "{}", said(&output));
    eprintln!("{before} of {PARTS} parts were sent before the kill, {merged} small batches merged meanwhile");

    let data = world
        .agent
        .http
        .get(&format!("/projects/{slug}/data?limit=1"))
        .await
        .expect(200);
    assert_eq!(data.body["total"].as_u64(), Some(ROWS + 3 * merged));
    world.server.options().assert_consistent();
    assert_eq!(
        sent(&file.with_extension("state")),
        None,
        "nothing is left of a push that is over"
    );

    // The same file again is nothing new, which is no failure.
    let again = push(&world, &slug, &file, part).output().unwrap();
    assert_eq!(again.status.code(), Some(0), "{}", said(&again));
    let expected = format!("Nothing new: all 50,000 records are in `{slug}` already.");
    assert!(said(&again).contains(&expected), "{}", said(&again));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_file_that_is_edited_between_interrupted_pushes_leaves_no_upload_open() {
    let limited = |options: tests::server::Options| options.with("SLUICE__LIMITS__OPEN_UPLOADS", 3);
    let world = World::start_with(binary(), limited).await;
    let slug = world.project().await;
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("rows.ndjson");
    let line = |edit: usize, row: u64| json!({"station": format!("edit {edit}"), "sample": row}).to_string() + "\n";
    let text = |edit: usize| (0..ROWS).map(|row| line(edit, row)).collect::<String>();
    let open = async || {
        let path = format!("/projects/{slug}/uploads");
        let listed = world.agent.http.get(&path).await.expect(200);
        listed.body["items"].as_array().unwrap().len()
    };
    // One more than an operator may have open.
    for edit in 0..4 {
        let text = text(edit);
        fs::write(&file, &text).unwrap();
        let part = text.len().div_ceil(PARTS) as u64;
        let child = push(&world, &slug, &file, part).spawn().unwrap();
        let sent = killed_halfway(child, &file.with_extension("state")).await;
        assert!(sent < PARTS, "the push was over before it was killed");
        assert_eq!(open().await, 1);
    }
    let edited = text(3) + &line(4, 0);
    fs::write(&file, &edited).unwrap();
    let output = push(&world, &slug, &file, 1 << 20).output().unwrap();
    let said = said(&output);
    assert!(output.status.success(), "{said}");
    assert!(
        said.contains("rows.ndjson or its options have changed: the earlier upload is cancelled"),
        "{said}"
    );
    assert!(said.contains("version 1: 50,001 of 50,001 records are new."), "{said}");
    assert_eq!(open().await, 0);
    world.server.options().assert_consistent();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_operator_at_its_limit_is_told_what_is_open_and_cancels_one() {
    let limited = |options: tests::server::Options| options.with("SLUICE__LIMITS__OPEN_UPLOADS", 3);
    let world = World::start_with(binary(), limited).await;
    let slug = world.project().await;
    let bytes = lines(0..10);
    for _ in 0..3 {
        begin(&world.agent.http, &slug, &bytes, bytes.len(), "none").await;
    }
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("rows.ndjson");
    fs::write(&file, &bytes).unwrap();
    let run = |arguments: &[&str]| {
        let mut command = Command::new(binary());
        let command = command.args(arguments).env("SLUICE_SERVER", world.server.base());
        command.env("SLUICE_KEY", &world.agent.key).output().unwrap()
    };
    let refused = push(&world, &slug, &file, 1 << 20).output().unwrap();
    let words = said(&refused);
    assert_eq!(refused.status.code(), Some(1), "{words}");
    assert!(words.contains("the limit: cancel one, or wait until "), "{words}");
    assert_eq!(words.matches("cancel: sluice uploads cancel ").count(), 3, "{words}");
    let listed = said(&run(&["uploads"]));
    assert_eq!(listed.lines().count(), 3, "{listed}");
    let id = listed.split_whitespace().next().unwrap();
    assert!(
        listed.contains(&format!("{id}  {slug}  ")) && listed.contains("by "),
        "{listed}"
    );
    let cancelled = run(&["uploads", "cancel", id]);
    assert_eq!(cancelled.status.code(), Some(0), "{}", said(&cancelled));
    let pushed = push(&world, &slug, &file, 1 << 20).output().unwrap();
    assert!(pushed.status.success(), "{}", said(&pushed));
    assert_eq!(said(&run(&["uploads"])).lines().count(), 2);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_bad_line_is_named_and_leaves_nothing() {
    let world = World::start(binary()).await;
    let slug = world.project().await;
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("rows.ndjson");
    let lines: Vec<_> = (0..20_000)
        .map(|row| format!("{}\n", json!({"station": format!("bulk {row}"), "sample": row})))
        .collect();
    let mut text = lines.concat();
    text.push_str(r#"{"station": "the last", "sample": "seven"}"#);
    fs::write(&file, &text).unwrap();
    let output = push(&world, &slug, &file, 1 << 20).arg("--gzip").output().unwrap();
    assert_eq!(output.status.code(), Some(4));
    assert!(said(&output).contains("line 20,001, `sample`"), "{}", said(&output));
    let project = world.agent.http.get(&format!("/projects/{slug}")).await.expect(200);
    assert_eq!(project.body["latestVersion"], 0);
    let begun = Instant::now();
    let uploads = world.server.options().data().join("uploads");
    loop {
        // The folder of parts that are being written is all that is left.
        let left = fs::read_dir(&uploads).unwrap().count();
        if left == 1 {
            break;
        }
        assert!(begun.elapsed() < DEADLINE, "{left} uploads are left");
        tokio::time::sleep(POLL).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_table_of_commas_becomes_records_by_the_contract() {
    let world = World::start(binary()).await;
    let slug = world.project().await;
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("rows.csv");
    fs::write(&file, "station,sample,value\n\"a, b\",1,0.5\nc,2,\n").unwrap();
    let output = push(&world, &slug, &file, 1 << 20).output().unwrap();
    assert!(output.status.success(), "{}", said(&output));
    let data = world
        .agent
        .http
        .get(&format!("/projects/{slug}/data"))
        .await
        .expect(200);
    assert_eq!(data.body["items"][0]["station"], "a, b");
    assert_eq!(data.body["items"][1]["sample"], 2);
}

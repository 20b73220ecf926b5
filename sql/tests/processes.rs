//! The lives of processes: how they are fenced in, and that none is left behind.
//!
//! A test target of its own, because it counts the children of its process.

#![expect(
    clippy::unwrap_used,
    clippy::tests_outside_test_module,
    reason = "everything here is a test"
)]

#[path = "it/fixture.rs"]
mod fixture;

use std::cell::RefCell;
use std::fs;
use std::time::{Duration, Instant};

use serde_json::json;
use sql::{Error, Sandbox, SandboxConfig};
use tokio::sync::Mutex;

use fixture::{Fixture, ROWS, rows};

/// A statement that never ends by itself.
const ENDLESS: &str = "SELECT sum(a.value * b.value * c.value) FROM records a, records b, records c, records d";
/// One test at a time has children.
static ALONE: Mutex<()> = Mutex::const_new(());

/// A line of a file of proc(5).
fn line(file: &str, name: &str) -> Option<String> {
    let text = fs::read_to_string(file).ok()?;
    let found = text.lines().find_map(|line| line.strip_prefix(name))?;
    Some(found.split_whitespace().collect::<Vec<_>>().join(" "))
}

/// The children of this process that live.
fn children() -> Vec<u32> {
    let me = std::process::id().to_string();
    let processes = fs::read_dir("/proc")
        .unwrap()
        .filter_map(|entry| entry.unwrap().file_name().to_str()?.parse().ok());
    processes
        .filter(|process: &u32| {
            let status = format!("/proc/{process}/status");
            line(&status, "PPid:").as_ref() == Some(&me)
                && line(&status, "State:").is_some_and(|state| !state.starts_with('Z'))
        })
        .collect()
}

/// Waits until `holds`.
async fn until(holds: impl Fn() -> bool) {
    let start = Instant::now();
    while !holds() {
        assert!(start.elapsed() < Duration::from_secs(10), "it never came to be");
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn a_query_ends_at_its_deadline_and_its_process_with_it() {
    let _alone = ALONE.lock().await;
    let fixture = Fixture::new().await;
    let sandbox = Sandbox::start(SandboxConfig {
        seconds: Duration::from_secs(1),
        ..fixture.config()
    })
    .unwrap();
    let start = Instant::now();
    let ended = sandbox.query(&fixture.records, ENDLESS, 10).await;
    assert!(matches!(ended, Err(Error::TimedOut { .. })), "{ended:?}");
    assert!(start.elapsed() < Duration::from_millis(1_500), "{:?}", start.elapsed());
    until(|| children().len() == 1).await;
}

#[tokio::test]
async fn a_query_that_nobody_waits_for_is_ended_and_its_process_replaced() {
    let _alone = ALONE.lock().await;
    let fixture = Fixture::new().await;
    let sandbox = fixture.sandbox();
    until(|| children().len() == 1).await;
    let first = children();
    let query = sandbox.query(&fixture.records, ENDLESS, 10);
    assert!(tokio::time::timeout(Duration::from_millis(500), query).await.is_err());
    until(|| children().len() == 1 && children() != first).await;
    let answer = sandbox.query(&fixture.records, "SELECT 1", 10).await.unwrap();
    assert_eq!(rows(&answer), [json!([1])]);
}

#[tokio::test]
async fn a_process_is_fenced_in_before_it_sees_a_query() {
    let _alone = ALONE.lock().await;
    let fixture = Fixture::new().await;
    let sandbox = fixture.sandbox();
    sandbox.query(&fixture.records, "SELECT 1", 10).await.unwrap();
    let told = |process: &u32| {
        let [status, limits] = ["status", "limits"].map(|file| format!("/proc/{process}/{file}"));
        // Mode 2 is a filter (proc(5)); the fence is the last thing a process does before it waits for a query.
        line(&status, "Seccomp:").filter(|mode| mode == "2")?;
        let told = [
            line(&status, "NoNewPrivs:")?,
            line(&limits, "Max address space")?,
            line(&limits, "Max cpu time")?,
            line(&limits, "Max file size")?,
            line(&limits, "Max core file size")?,
        ];
        Some(told)
    };
    // Which of them there are changes: one ends with its query, another takes its place.
    let fenced = RefCell::new(None);
    until(|| {
        *fenced.borrow_mut() = children().iter().find_map(told);
        fenced.borrow().is_some()
    })
    .await;
    let expected = [
        "1",
        "2147483648 2147483648 bytes",
        "42 43 seconds",
        "0 0 bytes",
        "0 0 bytes",
    ];
    assert_eq!(fenced.into_inner().unwrap(), expected);
}

#[tokio::test]
async fn a_process_that_dies_while_it_waits_is_replaced() {
    let _alone = ALONE.lock().await;
    let fixture = Fixture::new().await;
    let sandbox = fixture.sandbox();
    until(|| children().len() == 1).await;
    let process = children()[0].to_string();
    assert!(
        std::process::Command::new("kill")
            .args(["-KILL", &process])
            .status()
            .unwrap()
            .success()
    );
    let answer = sandbox
        .query(&fixture.records, "SELECT count(*) FROM records", 10)
        .await
        .unwrap();
    assert_eq!(rows(&answer), [json!([ROWS])]);
}

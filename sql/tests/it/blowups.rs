//! Statements that would take a process down, held against `corpus/blowups.tsv`.
//!
//! Each ends within its time with the right error; the caller's memory stays as it is; the next query is answered at
//! once.

use std::fmt::Write as _;
use std::time::{Duration, Instant};

use serde_json::json;
use sql::{Error, Sandbox, SandboxConfig};

use crate::corpus;
use crate::fixture::{Fixture, ROWS, rows};

const CORPUS: &str = include_str!("../corpus/blowups.tsv");
/// What a query may take here.
const LIMIT: Duration = Duration::from_secs(2);
/// What ending a process may add.
const SLACK: Duration = Duration::from_secs(1);
/// How much memory the caller may take more, in KiB.
const GROWTH: u64 = 64 << 10;

/// How much memory this process has at most had so far, in KiB (proc(5), `VmHWM`).
fn peak() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    line.trim().trim_end_matches(" kB").parse().unwrap()
}

fn ended(answered: &Result<sql::QueryAnswer, Error>) -> &'static str {
    match answered {
        Ok(_) => "answered",
        Err(Error::Refused(_)) => "refused",
        Err(Error::Failed { .. }) => "failed",
        Err(Error::TimedOut { .. } | Error::OutOfMemory { .. }) => "ended",
        Err(Error::TooLarge) => "large",
        Err(_) => "crashed",
    }
}

#[tokio::test]
async fn no_statement_takes_more_than_its_process() {
    let fixture = Fixture::new().await;
    let sandbox = Sandbox::start(SandboxConfig {
        seconds: LIMIT,
        memory_bytes: 1 << 30,
        ..fixture.config()
    })
    .unwrap();
    let ask = async |sql: &str| {
        let start = Instant::now();
        (sandbox.query(&fixture.records, sql, 1_000).await, start.elapsed())
    };
    let statements = corpus::read(CORPUS);
    ask("SELECT count(*) FROM records").await.0.unwrap();
    let before = peak();
    let mut problems = String::new();
    for (expected, sql) in &statements {
        let (answered, took) = ask(sql).await;
        let actual = ended(&answered);
        // What would be too large may meet the clock before.
        let right = match *expected {
            "any" => actual != "crashed",
            "large" => actual == "large" || actual == "ended",
            expected => actual == expected,
        };
        let (next, next_took) = ask("SELECT count(*) FROM records").await;
        let healthy = next.is_ok_and(|answer| rows(&answer) == [json!([ROWS])]);
        if !right || !healthy || took > LIMIT + SLACK || next_took > Duration::from_secs(1) {
            let shown: String = sql.chars().take(150).collect();
            let why = answered.map_or_else(
                |error| error.to_string(),
                |answer| format!("{} rows", answer.rows.len()),
            );
            writeln!(
                problems,
                "{shown}\n  should be {expected}, is {actual} in {took:?}: {why}"
            )
            .unwrap();
            writeln!(problems, "  the next is answered: {healthy}, in {next_took:?}").unwrap();
        }
    }
    let grown = peak() - before;
    assert!(problems.is_empty(), "\n{problems}");
    assert!(grown <= GROWTH, "the caller has grown by {grown} KiB");
    assert!(statements.len() >= 60, "{} statements", statements.len());
}

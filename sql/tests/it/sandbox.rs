//! Limits of answers, parts and queries.

use std::fs;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use serde_json::json;
use sql::{Error, Sandbox, SandboxConfig, SandboxPart, VersionRecords};
use types::Proof;

use crate::fixture::{Fixture, ROWS, rows};

#[tokio::test]
async fn a_limit_cuts_and_says_so() {
    let fixture = Fixture::new().await;
    let sandbox = fixture.sandbox();
    let ids = "SELECT id FROM records WHERE seq < 3 ORDER BY id";
    let cut = sandbox.query(&fixture.records, ids, 2).await.unwrap();
    assert_eq!(
        (rows(&cut), cut.truncated),
        (vec![json!(["r00000"]), json!(["r00001"])], true)
    );
    assert_eq!(cut.bytes, 2 * r#"["r00000"]"#.len() as u64);
    let whole = sandbox.query(&fixture.records, ids, 3).await.unwrap();
    assert_eq!((whole.rows.len(), whole.truncated), (3, false));
    let none = sandbox.query(&fixture.records, ids, 0).await.unwrap();
    assert_eq!((none.rows.len(), none.truncated), (0, true));
}

#[tokio::test]
async fn a_timestamp_that_no_text_can_say_is_no_answer() {
    let fixture = Fixture::new().await;
    let sandbox = fixture.sandbox();
    let ask = async |years: u32| {
        let sql = format!("SELECT max(at) + INTERVAL '{years} years' FROM records");
        sandbox.query(&fixture.records, &sql, 1).await
    };
    assert_eq!(rows(&ask(7_973).await.unwrap()), [json!(["9999-01-03T01:59:00Z"])]);
    let error = ask(7_974).await.unwrap_err();
    assert!(
        matches!(&error, Error::Failed { message } if message.contains("years 1 to 9999")),
        "{error:?}"
    );
}

#[tokio::test]
async fn an_empty_version_has_columns_and_no_rows() {
    let fixture = Fixture::new().await;
    let sandbox = fixture.sandbox();
    let empty = VersionRecords {
        parts: Vec::new(),
        ..fixture.records.clone()
    };
    let answer = sandbox.query(&empty, "SELECT * FROM records", 10).await.unwrap();
    assert_eq!((answer.columns.len(), answer.rows.len()), (10, 0));
    let count = sandbox
        .query(&empty, "SELECT count(*), max(seq) FROM records WHERE ok", 10)
        .await
        .unwrap();
    assert_eq!(rows(&count), [json!([0, null])]);
}

#[tokio::test]
async fn more_parts_than_one_message_carries_are_read() {
    let fixture = Fixture::new().await;
    let sandbox = fixture.sandbox();
    let times = 120;
    let many = VersionRecords {
        parts: vec![fixture.records.parts.clone(); times].concat(),
        ..fixture.records.clone()
    };
    let sql = "SELECT count(*), count(DISTINCT id), count(value) FROM records";
    let answer = sandbox.query(&many, sql, 10).await.unwrap();
    let times = i64::try_from(times).unwrap();
    assert_eq!(rows(&answer), [json!([ROWS * times, ROWS, 2_700 * times])]);
}

#[tokio::test]
async fn queries_beyond_the_number_at_once_wait_within_their_time() {
    let fixture = Fixture::new().await;
    let with = |at_once: usize| SandboxConfig {
        seconds: Duration::from_secs(2),
        at_once,
        ..fixture.config()
    };
    let none = Sandbox::start(with(0))
        .unwrap()
        .query(&fixture.records, "SELECT 1", 10)
        .await;
    assert!(matches!(none, Err(Error::Busy)), "{none:?}");
    let sandbox = Sandbox::start(with(1)).unwrap();
    let (first, second) = tokio::join!(
        sandbox.query(&fixture.records, "SELECT 1", 10),
        sandbox.query(&fixture.records, "SELECT 2", 10)
    );
    assert_eq!(
        (rows(&first.unwrap()), rows(&second.unwrap())),
        (vec![json!([1])], vec![json!([2])])
    );
}

#[tokio::test]
async fn parts_that_are_missing_or_damaged_are_told_apart() {
    let fixture = Fixture::new().await;
    let sandbox = fixture.sandbox();
    let with = |path: PathBuf| VersionRecords {
        parts: vec![SandboxPart {
            path,
            rows: 10,
            proof: Arc::new(Proof::whole(1_000, [7; 32])),
        }],
        ..fixture.records.clone()
    };
    let missing = sandbox
        .query(&with("/no/such/part".into()), "SELECT id FROM records", 10)
        .await;
    assert!(matches!(missing, Err(Error::Part { .. })), "{missing:?}");
    let directory = tempfile::tempdir().unwrap();
    let damaged = directory.path().join("damaged");
    fs::write(&damaged, [7; 1_000]).unwrap();
    let damaged = sandbox.query(&with(damaged), "SELECT id FROM records", 10).await;
    assert!(matches!(damaged, Err(Error::Damaged { .. })), "{damaged:?}");
    // A condition is evaluated while parts are read, and is the statement's all the same.
    for sql in [
        "SELECT device FROM records WHERE 10 / seq > 1",
        "SELECT id, device FROM records WHERE CAST(id AS BIGINT) > 5",
    ] {
        let failed = sandbox.query(&fixture.records, sql, 10).await;
        assert!(matches!(failed, Err(Error::Failed { .. })), "{sql}: {failed:?}");
    }
}

#[tokio::test]
async fn a_program_that_is_no_sandbox_serves_no_query() {
    let fixture = Fixture::new().await;
    let absent = SandboxConfig {
        program: "/no/such/program".into(),
        ..fixture.config()
    };
    assert!(matches!(Sandbox::start(absent), Err(Error::Process { .. })));
    let other = SandboxConfig {
        program: "/bin/true".into(),
        ..fixture.config()
    };
    let answered = match Sandbox::start(other) {
        Ok(sandbox) => sandbox.query(&fixture.records, "SELECT 1", 10).await.map(drop),
        Err(error) => Err(error),
    };
    assert!(matches!(answered, Err(Error::Process { .. })), "{answered:?}");
}

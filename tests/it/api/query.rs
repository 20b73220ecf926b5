//! SQL over a version, through the sandbox.

use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tests::world::{all_data, contract, contribute, records};
use tests::{Answer, Http};

use super::{assert_names, world};

/// A statement that no machine answers in its time and that is not refused.
const ENDLESS: &str = "SELECT count(*) FROM records a, records b, records c, records d WHERE a.value + b.value + c.value + \
                       d.value < 0";

async fn ask(http: &Http, slug: &str, body: &Value) -> Answer {
    http.post(&format!("/projects/{slug}/query"), body).await
}

#[tokio::test]
async fn a_query_sees_the_records_of_its_version_and_no_other() {
    let world = world().await;
    let slug = world.project().await;
    for series in ["a", "b", "c"] {
        contribute(&world.agent.http, &slug, &records(series, 10)).await;
    }
    let (_, stranger) = world.newcomer().await;
    for version in 1..=3 {
        let sql = "SELECT station, sample, value, at, good, more FROM records";
        let body = json!({"sql": sql, "version": version, "limit": 1000});
        let answer = ask(&stranger.http, &slug, &body).await.expect(200).body;
        assert_eq!(answer["version"], version);
        let names: Vec<&Value> = answer["columns"]
            .as_array()
            .unwrap()
            .iter()
            .map(|column| &column["name"])
            .collect();
        assert_eq!(
            json!(names),
            json!(["station", "sample", "value", "at", "good", "more"])
        );
        let mut found: Vec<Value> = answer["rows"].as_array().unwrap().clone();
        let mut expected: Vec<Value> = all_data(&stranger.http, &slug, version)
            .await
            .iter()
            .map(|record| {
                names
                    .iter()
                    .map(|name| record[name.as_str().unwrap()].clone())
                    .collect()
            })
            .collect();
        found.sort_by_key(Value::to_string);
        expected.sort_by_key(Value::to_string);
        assert_eq!(found, expected);
    }
    let sql = "SELECT station, count(*) AS n, max(sample) AS top FROM records GROUP BY station ORDER BY station";
    let answer = ask(&stranger.http, &slug, &json!({ "sql": sql }))
        .await
        .expect(200)
        .body;
    assert_eq!(answer["rows"], json!([["a", 10, 9], ["b", 10, 9], ["c", 10, 9]]));
    assert_eq!(
        (&answer["version"], &answer["truncated"], &answer["rowCount"]),
        (&json!(3), &json!(false), &json!(3))
    );
}

#[tokio::test]
async fn an_answer_is_cut_at_its_limit_and_says_so() {
    let world = world().await;
    let slug = world.project().await;
    contribute(&world.agent.http, &slug, &records("a", 300)).await;
    for (limit, rows, truncated) in [
        (None, 200, true),
        (Some(299), 299, true),
        (Some(300), 300, false),
        (Some(1), 1, true),
    ] {
        let mut body = json!({"sql": "SELECT sample FROM records"});
        if let Some(limit) = limit {
            body["limit"] = limit.into();
        }
        let answer = ask(&world.agent.http, &slug, &body).await.expect(200).body;
        assert_eq!(answer["rows"].as_array().unwrap().len(), rows, "{limit:?}");
        assert_eq!(answer["truncated"], truncated, "{limit:?}");
    }
}

#[tokio::test]
async fn what_is_not_a_question_is_refused_naming_the_statement() {
    let world = world().await;
    let slug = world.project().await;
    contribute(&world.agent.http, &slug, &records("a", 3)).await;
    for sql in [
        "DROP TABLE records",
        "SELECT 1; SELECT 2",
        "EXPLAIN SELECT 1",
        "SELECT * FROM '/etc/passwd'",
        "SELECT * FROM other",
        "SELECT * FROM information_schema.tables",
        "SET datafusion.execution.batch_size = 1",
        "COPY records TO 'x.csv'",
        "SELECT nothing FROM records",
        "SELECT _sluice_key FROM records",
        "SELECT 1/0 FROM records",
        "not sql at all",
        " ",
        "SELECT repeat('x', 2000000000)",
    ] {
        let answer = ask(&world.agent.http, &slug, &json!({ "sql": sql })).await;
        assert_names(&answer, "/sql");
        assert!(
            matches!(answer.error(), "query_refused" | "query_failed"),
            "{sql}: {}",
            answer.body
        );
        let said = answer.text("/message");
        assert!(said.matches("is refused").count() <= 1, "{sql}: {said}");
    }
    for body in [
        json!({}),
        json!({"sql": ""}),
        json!({"sql": "S".repeat(4001)}),
        json!({"sql": "SELECT 1", "limit": 1001}),
        json!({"sql": "SELECT 1", "limit": 0}),
        json!({"sql": "SELECT 1", "version": 0}),
        json!({"sql": "SELECT 1", "file": "x"}),
    ] {
        assert_eq!(ask(&world.agent.http, &slug, &body).await.code(), 400, "{body}");
    }
    let missing = ask(&world.agent.http, &slug, &json!({"sql": "SELECT 1", "version": 2})).await;
    assert_eq!(missing.code(), 404);
}

#[tokio::test]
async fn a_query_that_takes_too_long_is_408_and_blocks_nobody_after_it() {
    let world = tests::World::start_with(crate::binary(), |options| {
        options.with("SLUICE__LIMITS__QUERY_TIMEOUT", "2s")
    })
    .await;
    let slug = world.project().await;
    contribute(&world.agent.http, &slug, &records("a", 500)).await;
    let (_, stranger) = world.newcomer().await;
    let started = Instant::now();
    let endless = json!({ "sql": ENDLESS });
    let slow = async {
        // It may find a small one of the same operator under way.
        loop {
            let slow = ask(&world.agent.http, &slug, &endless).await;
            if slow.code() != 429 {
                return slow;
            }
        }
    };
    let meanwhile = async {
        // As soon as the slow one runs, its operator gets no second one.
        loop {
            let second = ask(
                &world.agent.http,
                &slug,
                &json!({"sql": "SELECT 1 AS one FROM records"}),
            )
            .await;
            if second.code() == 429 {
                assert_eq!((second.error(), second.header("retry-after")), ("query_running", "1"));
                break;
            }
            assert!(started.elapsed() < Duration::from_secs(10), "both run");
        }
        let other = ask(
            &stranger.http,
            &slug,
            &json!({"sql": "SELECT count(*) AS n FROM records"}),
        )
        .await;
        assert_eq!(other.expect(200).body["rows"], json!([[500]]));
    };
    let (slow, ()) = tokio::join!(slow, meanwhile);
    assert_eq!((slow.code(), slow.error()), (408, "query_timeout"), "{}", slow.body);
    assert!(started.elapsed() < Duration::from_secs(20), "{:?}", started.elapsed());
    let next = Instant::now();
    ask(
        &world.agent.http,
        &slug,
        &json!({"sql": "SELECT count(*) AS n FROM records"}),
    )
    .await
    .expect(200);
    assert!(next.elapsed() < Duration::from_secs(5), "{:?}", next.elapsed());
}

#[tokio::test]
async fn a_client_that_goes_away_leaves_no_query_behind() {
    let world = world().await;
    let slug = world.project().await;
    contribute(&world.agent.http, &slug, &records("a", 500)).await;
    let endless = json!({ "sql": ENDLESS });
    let asked = ask(&world.agent.http, &slug, &endless);
    let gone = tokio::time::timeout(Duration::from_millis(700), asked);
    assert!(gone.await.is_err(), "the statement is too quick");
    let started = Instant::now();
    loop {
        let next = ask(
            &world.agent.http,
            &slug,
            &json!({"sql": "SELECT 1 AS one FROM records LIMIT 1"}),
        )
        .await;
        if next.code() == 200 {
            break;
        }
        assert_eq!(next.code(), 429, "{}", next.body);
        assert!(started.elapsed() < Duration::from_secs(10), "the lease is still held");
    }
}

#[tokio::test]
async fn a_version_that_is_too_large_is_to_be_pulled() {
    let world = tests::World::start_with(crate::binary(), |options| {
        options.with("SLUICE__LIMITS__QUERY_VERSION", "1KiB")
    })
    .await;
    let slug = world.project().await;
    contribute(&world.agent.http, &slug, &records("a", 50)).await;
    let answer = ask(&world.agent.http, &slug, &json!({"sql": "SELECT 1"}))
        .await
        .expect(413);
    assert!(
        answer.text("/message").contains(&format!("sluice pull {slug}")),
        "{}",
        answer.body
    );
}

#[tokio::test]
async fn an_empty_dataset_and_one_with_extras_can_be_asked() {
    let world = world().await;
    let def = tests::world::merged(contract(), json!({"allowExtra": true}));
    let slug = world.project_with(json!({ "schemaDef": def })).await;
    let count = json!({"sql": "SELECT count(*) AS n, max(value) AS top FROM records"});
    let empty = ask(&world.agent.http, &slug, &count).await.expect(200).body;
    assert_eq!((&empty["rows"], &empty["version"]), (&json!([[0, null]]), &json!(0)));
    let rows = [json!({"station": "a", "sample": 1, "more": {"x": [1, null]}, "own": true})];
    contribute(&world.agent.http, &slug, &rows).await;
    let answer = ask(
        &world.agent.http,
        &slug,
        &json!({"sql": "SELECT more, value FROM records"}),
    )
    .await
    .expect(200);
    assert_eq!(answer.body["rows"], json!([[{"x": [1, null]}, null]]));
    let shape = answer.body["columns"]
        .as_array()
        .unwrap()
        .iter()
        .map(|column| &column["type"]);
    assert_eq!(json!(shape.collect::<Vec<_>>()), json!(["Json", "Float64"]));
}

/// The command asks the same and prints it.
#[tokio::test]
async fn the_command_prints_an_answer_in_every_form() {
    let world = world().await;
    let slug = world.project().await;
    contribute(&world.agent.http, &slug, &records("a", 3)).await;
    let run = |arguments: &[&str]| {
        let sql = "SELECT sample, station FROM records ORDER BY sample";
        let remote = ["--server", world.server.base(), "--key", &world.agent.key];
        let output = world
            .server
            .options()
            .run(&[&["query", &slug, sql], arguments, &remote].concat());
        assert!(
            output.status.success(),
            "{arguments:?}: {}",
            String::from_utf8_lossy(&output.stderr)
        );
        output
    };
    let text = |arguments: &[&str]| String::from_utf8(run(arguments).stdout).unwrap();
    assert_eq!(text(&["--format", "csv"]), "sample,station\n0,a\n1,a\n2,a\n");
    let json: Value = serde_json::from_str(&text(&["--format", "json", "--version", "1"])).unwrap();
    assert_eq!(
        (&json["rows"], &json["version"]),
        (&json!([[0, "a"], [1, "a"], [2, "a"]]), &json!(1))
    );
    let table = text(&[]);
    assert!(
        table.contains("sample  station") && table.contains("(3 rows of version 1)"),
        "{table}"
    );
    let cut = run(&["--limit", "2"]);
    assert!(String::from_utf8_lossy(&cut.stderr).contains("--limit"), "{cut:?}");
    let parquet = run(&["--format", "parquet"]).stdout;
    assert!(parquet.starts_with(b"PAR1") && parquet.ends_with(b"PAR1"));
    let refused = world.server.options().run(&[
        "query",
        &slug,
        "DROP TABLE records",
        "--server",
        world.server.base(),
        "--key",
        &world.agent.key,
    ]);
    assert!(!refused.status.success() && !refused.stderr.is_empty());
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn the_service_and_the_processes_of_its_queries_have_small_pages_only() {
    let world = world().await;
    let slug = world.project().await;
    contribute(&world.agent.http, &slug, &records("a", 1)).await;
    ask(
        &world.agent.http,
        &slug,
        &json!({"sql": "SELECT count(*) FROM records"}),
    )
    .await
    .expect(200);
    let service = world.server.pid().to_string();
    let line = |status: &str, name: &str| {
        let line = status.lines().find_map(|line| line.strip_prefix(name));
        line.map(|value| value.trim().to_owned())
    };
    let processes = std::fs::read_dir("/proc").unwrap().flatten();
    let family: Vec<String> = processes
        .filter_map(|process| std::fs::read_to_string(process.path().join("status")).ok())
        .filter(|status| [line(status, "Pid:"), line(status, "PPid:")].contains(&Some(service.clone())))
        .collect();
    assert!(family.len() > 1, "no process for queries stands by");
    for status in family {
        // A kernel without huge pages has no such line.
        assert_ne!(line(&status, "THP_enabled:").as_deref(), Some("1"), "{status}");
    }
}

//! What statements answer, held against `corpus/results.slt` and `corpus/meaning.slt`.
//!
//! A record of a file is `query`, the types of the columns, a statement, `----`, and its rows as JSON arrays; or
//! `error`, words of its message, and a statement. Records are separated by empty lines, `#` starts a comment.

use std::fmt::Write as _;
use std::sync::Arc;

use serde_json::json;

use crate::fixture::{Fixture, rows};

const CORPORA: [&str; 2] = [
    include_str!("../corpus/results.slt"),
    include_str!("../corpus/meaning.slt"),
];

#[tokio::test]
async fn every_statement_answers_what_the_corpus_says() {
    let fixture = Fixture::new().await;
    let sandbox = fixture.sandbox();
    let mut problems = String::new();
    let mut statements = 0;
    for record in CORPORA.iter().flat_map(|corpus| corpus.split("\n\n")) {
        let lines: Vec<&str> = record.lines().filter(|line| !line.starts_with('#')).collect();
        let Some((head, body)) = lines.split_first() else {
            continue;
        };
        statements += 1;
        let end = body.iter().position(|line| *line == "----").unwrap_or(body.len());
        let sql = body[..end].join("\n");
        let answered = sandbox.query(&fixture.records, &sql, 1_000).await;
        let actual = match &answered {
            Ok(answer) => {
                let types: Vec<_> = answer
                    .columns
                    .iter()
                    .map(|column| column.kind.replace(' ', ""))
                    .collect();
                let mut lines = vec![format!("query {}", types.join(" ")).trim_end().to_owned()];
                lines.extend(answer.rows.iter().map(|row| row.get().to_owned()));
                lines
            }
            Err(error) => vec![format!("error {error}")],
        };
        let holds = if let Some(words) = head.strip_prefix("error ") {
            answered.is_err() && actual[0].contains(words)
        } else {
            let rows = body.get(end + 1..).unwrap_or_default();
            actual[0] == *head && actual[1..].iter().eq(rows.iter())
        };
        if !holds {
            writeln!(problems, "{head}\n{sql}\n  answers\n{}\n", actual.join("\n")).unwrap();
        }
    }
    assert!(problems.is_empty(), "\n{problems}");
    assert!(statements >= 60, "{statements} statements");
}

/// The greatest `seq` is in the part that is read first, and the only `온도` in the one that is read last.
#[tokio::test]
async fn a_column_that_is_null_at_first_has_its_least_value_all_the_same() {
    let mut fixture = Fixture::new().await;
    fixture.records.parts.reverse();
    for condition in ["", " WHERE id <> ''"] {
        let sql = format!("SELECT max(seq), min(온도) FROM records{condition}");
        let answer = fixture.sandbox().query(&fixture.records, &sql, 10).await.unwrap();
        assert_eq!(rows(&answer), [json!([i64::MAX, -2])], "{sql}");
    }
}

#[tokio::test]
async fn a_field_called_as_the_table_hides_neither() {
    let def = json!({"fields": [
        {"name": "id", "type": "integer", "required": true},
        {"name": "Records", "type": "integer"}
    ]});
    let contract = Arc::new(serde_json::from_value(def).unwrap());
    let records = vec![json!({"id": 1, "Records": 3}), json!({"id": 2, "Records": 5})];
    let fixture = Fixture::of(contract, vec![records]).await;
    let sandbox = fixture.sandbox();
    for (sql, expected) in [
        (
            "SELECT id, records FROM records ORDER BY records DESC",
            json!([[2, 5], [1, 3]]),
        ),
        ("SELECT sum(RECORDS) FROM Records WHERE records > 3", json!([[5]])),
        (
            "SELECT records.records, records.id FROM records ORDER BY 1",
            json!([[3, 1], [5, 2]]),
        ),
        (
            "SELECT a.records, r.id FROM records a, records r WHERE a.id < r.id",
            json!([[3, 2]]),
        ),
        (
            "SELECT count(*) FROM records a JOIN records b USING (records)",
            json!([[2]]),
        ),
        (
            "SELECT id AS records FROM records ORDER BY records DESC",
            json!([[2], [1]]),
        ),
        (r#"SELECT r."Records" FROM "records" r WHERE r.id = 1"#, json!([[3]])),
        (
            r#"WITH "Records" AS (SELECT 9 AS x) SELECT x FROM "Records""#,
            json!([[9]]),
        ),
    ] {
        let answered = sandbox.query(&fixture.records, sql, 10).await;
        let answer = answered.unwrap_or_else(|error| panic!("{sql}: {error}"));
        assert_eq!(json!(rows(&answer)), expected, "{sql}");
    }
}

/// The engine asks for a report of a bug in some of its messages; nobody here can act on that.
#[tokio::test]
async fn no_answer_asks_for_a_bug_report() {
    let fixture = Fixture::new().await;
    let sandbox = fixture.sandbox();
    for sql in [
        "SELECT to_timestamp(id) FROM records",
        "SELECT to_timestamp(device) FROM records WHERE to_timestamp(id) IS NOT NULL",
        "SELECT to_timestamp('x')",
        "SELECT to_timestamp('2026-01-01', 'x')",
        "SELECT to_timestamp(id, device) FROM records",
        "SELECT to_timestamp_seconds(id) FROM records",
        "SELECT to_timestamp_nanos(id) FROM records",
        "SELECT to_date(id) FROM records",
        "SELECT to_time(id) FROM records",
        "SELECT array_sum([id]) FROM records",
        "SELECT date_part('nothing', at) FROM records",
        "SELECT date_trunc('nothing', at) FROM records",
        "SELECT date_trunc(device, at) FROM records",
        "SELECT date_bin(INTERVAL '0 s', at) FROM records",
        "SELECT extract(epoch FROM id) FROM records",
        "SELECT encode(id, 'nothing') FROM records",
        "SELECT decode(id, 'hex') FROM records",
        "SELECT substr_index(id, '', 1) FROM records",
        "SELECT regexp_replace(id, '(', 'x') FROM records",
        "SELECT nth_value(id, seq) OVER () FROM records",
        "SELECT ntile(0) OVER (ORDER BY id) FROM records",
        "SELECT lag(id, seq) OVER (ORDER BY id) FROM records",
        "SELECT sum(seq) OVER (ORDER BY id RANGE BETWEEN 1 PRECEDING AND CURRENT ROW) FROM records",
        "SELECT percentile_cont(2) WITHIN GROUP (ORDER BY seq) FROM records",
        "SELECT (SELECT seq FROM records r WHERE r.seq > q.seq) FROM records q",
        "SELECT id IN (SELECT id FROM records) FROM records",
        "SELECT CASE WHEN EXISTS (SELECT 1 FROM records) THEN 1 END FROM records",
        "SELECT factorial(seq) FROM records",
        "SELECT make_date(seq, seq, seq) FROM records",
    ] {
        let answered = sandbox.query(&fixture.records, sql, 10).await;
        if let Err(error) = answered {
            let said = error.to_string();
            let asks = ["bug", "issue", "Internal error", "github", "report"]
                .iter()
                .any(|word| said.contains(word));
            assert!(!asks, "{sql}\n  {said}");
            assert!(
                matches!(error, sql::Error::Failed { .. } | sql::Error::Refused(_)),
                "{sql}\n  {error:?}"
            );
        }
    }
}

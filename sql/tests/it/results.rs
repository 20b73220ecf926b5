//! What statements answer, held against `corpus/results.slt`.
//!
//! A record of the file is `query`, the types of the columns, a statement, `----`, and its rows as JSON arrays; or
//! `error`, words of its message, and a statement. Records are separated by empty lines, `#` starts a comment.

use std::fmt::Write as _;

use serde_json::json;

use crate::fixture::{Fixture, rows};

const CORPUS: &str = include_str!("../corpus/results.slt");

#[tokio::test]
async fn every_statement_answers_what_the_corpus_says() {
    let fixture = Fixture::new().await;
    let sandbox = fixture.sandbox();
    let mut problems = String::new();
    let mut statements = 0;
    for record in CORPUS.split("\n\n") {
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

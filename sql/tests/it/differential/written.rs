//! The statements of `corpus/postgres`, as a buyer of the records would ask them.
//!
//! A file has statements that are separated by empty lines; lines that begin with `--` are comments. The rows of a
//! statement with an ORDER BY at its end are compared in their order.

use std::collections::BTreeSet;
use std::sync::Arc;

use serde_json::{Value, json};
use types::Contract;

use super::{Outcome, Statement, compared, listed};

const RECORDS: &str = include_str!("../../corpus/postgres/records.jsonl");
/// Statements that are answered otherwise or refused: the line of `deploy/sluice/API.md` that says so, a tab, and the
/// statement in one line.
const DIFFERENCES: &str = include_str!("../../corpus/postgres/differences.tsv");
/// The folder of the statements.
const FOLDER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/corpus/postgres");
/// The least number of statements of a file, and of all.
const LEAST: [usize; 2] = [20, 300];
/// Names a file, without its ending, to compare alone.
const ONLY: &str = "SLUICE_TEST_SQL_FILE";
/// Of a hundred statements those that both must answer alike.
const ANSWERED_PERCENT: usize = 95;

fn contract() -> Arc<Contract> {
    let def = json!({"fields": [
        {"name": "id", "type": "integer", "required": true},
        {"name": "station", "type": "string"},
        {"name": "at", "type": "timestamp"},
        {"name": "until", "type": "timestamp"},
        {"name": "x", "type": "number"},
        {"name": "y", "type": "number"},
        {"name": "n", "type": "integer"},
        {"name": "m", "type": "integer"},
        {"name": "ok", "type": "boolean"},
        {"name": "tags", "type": "string"},
        {"name": "note", "type": "string"},
        {"name": "doc", "type": "json"},
        {"name": "day", "type": "date"},
        {"name": "amount", "type": "decimal", "scale": 2},
        {"name": "wide", "type": "decimal", "scale": 0}
    ]});
    Arc::new(serde_json::from_value(def).unwrap())
}

/// The records, in versions of 25.
fn records() -> Vec<Vec<Value>> {
    let records: Vec<Value> = RECORDS
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    records.chunks(25).map(<[Value]>::to_vec).collect()
}

/// The statements of a file.
fn statements(text: &str) -> Vec<Statement> {
    let blocks = text.split("\n\n").map(|block| {
        let lines = block.lines().filter(|line| !line.starts_with("--"));
        lines
            .collect::<Vec<_>>()
            .join("\n")
            .trim()
            .trim_end_matches(';')
            .to_owned()
    });
    blocks
        .filter(|statement| !statement.is_empty())
        .map(|statement| {
            let ordered = is_ordered(&statement);
            Statement::new(statement, ordered)
        })
        .collect()
}

/// Returns true if ORDER BY stands outside of all brackets and texts.
fn is_ordered(statement: &str) -> bool {
    let mut outside = String::new();
    let (mut depth, mut quoted) = (0, false);
    for letter in statement.chars() {
        match letter {
            '\'' => quoted = !quoted,
            _ if quoted => {}
            '(' => depth += 1,
            ')' => depth -= 1,
            letter if depth == 0 => outside.push(if letter.is_whitespace() {
                ' '
            } else {
                letter.to_ascii_uppercase()
            }),
            _ => {}
        }
    }
    outside.contains(" ORDER BY ")
}

/// Returns the statement in one line.
fn line(statement: &Statement) -> String {
    statement.ours().split_whitespace().collect::<Vec<_>>().join(" ")
}

#[tokio::test]
async fn written_statements_answer_what_postgresql_answers() {
    let only = std::env::var(ONLY).ok();
    let mut all = Vec::new();
    let mut files: Vec<_> = std::fs::read_dir(FOLDER)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    files.sort();
    for path in files
        .iter()
        .filter(|path| path.extension().is_some_and(|ending| ending == "sql"))
    {
        let read = statements(&std::fs::read_to_string(path).unwrap());
        assert!(
            read.len() >= LEAST[0],
            "{} has {} statements",
            path.display(),
            read.len()
        );
        if only
            .as_deref()
            .is_none_or(|only| path.file_stem().is_some_and(|name| name == only))
        {
            all.extend(read);
        }
    }
    let total = all.len();
    let lines: BTreeSet<String> = all.iter().map(line).collect();
    let Some(outcome) = compared("written", (contract(), records()), all).await else {
        return;
    };
    let allowed: Vec<(&str, &str)> = DIFFERENCES
        .lines()
        .map(|entry| entry.split_once('\t').expect(entry))
        .collect();
    let rows = listed::rows();
    for (row, statement) in &allowed {
        assert!(rows.iter().any(|listed| listed == row), "API.md has no line `{row}`");
        assert!(
            only.is_some() || lines.contains(*statement),
            "no file has the statement\n{statement}"
        );
    }
    let Outcome { answered, failed, .. } = outcome;
    eprintln!("{answered} of {total} answers are the same, {failed} fail on both sides");
    let is_allowed = |statement: &Statement| allowed.iter().any(|(_, allowed)| *allowed == line(statement));
    let (known, unknown): (Vec<_>, Vec<_>) = outcome
        .problems
        .into_iter()
        .partition(|(statement, _)| is_allowed(statement));
    let unknown = Outcome {
        problems: unknown,
        ..Outcome::default()
    };
    assert!(
        unknown.problems.is_empty(),
        "{} differences\n{}",
        unknown.problems.len(),
        unknown.text()
    );
    if only.is_none() {
        // A list that is longer than it needs to be would hide a difference that comes later.
        assert_eq!(known.len(), allowed.len(), "these differ as listed: {known:?}");
        assert!(total >= LEAST[1], "{total} statements");
        assert!(
            answered * 100 >= total * ANSWERED_PERCENT,
            "{answered} of {total} answered alike"
        );
    }
}

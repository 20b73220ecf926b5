//! The sandbox held against `PostgreSQL`: statements that are generated over a typed table, and those of
//! `corpus/postgres`, each answered by both.
//!
//! Invariant: the statements are the same in every run. A statement passes if both answer the same rows, if both fail,
//! or if it is of a kind that `deploy/sluice/API.md` lists.

#![expect(clippy::print_stderr, reason = "a test says what it compared")]

mod compare;
mod generate;
mod listed;
mod postgres;
mod shapes;
mod table;
mod written;

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt as _;
use serde_json::Value;
use sql::{Error, Sandbox, SandboxConfig};
use types::Contract;

use self::compare::{Rows, same};
use self::generate::Statement;
use self::postgres::Postgres;
use crate::fixture::Fixture;

/// The seed of the statements, unless [`OTHER_SEED`] has another.
const SEED: u64 = 17;
/// Names a seed to look for further differences with.
const OTHER_SEED: &str = "SLUICE_TEST_SQL_SEED";
/// The number of statements that are generated.
const STATEMENTS: usize = 2_000;
/// The least number of them that both must answer, so that errors are not all that is compared.
const ANSWERED: usize = 1_500;
/// Time that a query may take.
const PATIENCE: Duration = Duration::from_mins(2);
/// The number of queries under way at once.
const AT_ONCE: usize = 2;

/// The answer of one side to a statement.
#[derive(Debug)]
enum Said {
    Rows(Rows),
    Error(String),
}

/// The outcome of a comparison.
#[derive(Debug, Default)]
struct Outcome {
    answered: usize,
    failed: usize,
    /// Statements that differ, each with its difference.
    problems: Vec<(Statement, String)>,
}

impl Outcome {
    fn add(&mut self, statement: Statement, ours: Said, theirs: Said) {
        let problem = match (ours, theirs) {
            (Said::Rows(ours), Said::Rows(theirs)) => {
                let Err(problem) = same(&ours, &theirs, statement.ordered) else {
                    self.answered += 1;
                    return;
                };
                problem
            }
            (Said::Error(error), Said::Error(_)) if !error.contains("bug") => {
                self.failed += 1;
                return;
            }
            (Said::Error(error), _) => format!("only the sandbox fails: {error}"),
            (Said::Rows(rows), Said::Error(error)) => {
                format!(
                    "only PostgreSQL fails: {error}; the sandbox answers {:?}",
                    rows.iter().take(4).collect::<Vec<_>>()
                )
            }
        };
        self.problems.push((statement, problem));
    }

    fn text(&self) -> String {
        let mut text = String::new();
        for (statement, problem) in &self.problems {
            writeln!(text, "{problem}\n{}\n", statement.ours()).unwrap();
        }
        text
    }
}

/// Asks both for each of the statements over the records of `versions`; none where there is no `PostgreSQL`. `name` is
/// that of a new database.
async fn compared(
    name: &str,
    (contract, versions): (Arc<Contract>, Vec<Vec<Value>>),
    statements: Vec<Statement>,
) -> Option<Outcome> {
    let mut postgres = Postgres::start(name, &contract, &versions)?;
    let fixture = Fixture::of(contract, versions).await;
    // What is compared is the answer, and a busy machine may take its time.
    let config = SandboxConfig {
        seconds: PATIENCE,
        ..fixture.config()
    };
    let sandbox = Sandbox::start(config).unwrap();
    let (sandbox, records) = (&sandbox, &fixture.records);
    let mut answers = futures_util::stream::iter(statements)
        .map(async |statement| {
            let answered = sandbox.query(records, &statement.ours(), 100_000).await;
            let said = match answered {
                Ok(answer) => Said::Rows(compare::of_sandbox(&answer)),
                Err(error @ (Error::Refused(_) | Error::Failed { .. })) => Said::Error(error.to_string()),
                Err(error) => panic!("{error}: {}", statement.ours()),
            };
            (statement, said)
        })
        .buffered(AT_ONCE);
    let mut outcome = Outcome::default();
    while let Some((statement, ours)) = answers.next().await {
        let theirs = postgres.ask(&statement.theirs());
        outcome.add(statement, ours, theirs);
    }
    Some(outcome)
}

#[tokio::test]
async fn generated_statements_answer_what_postgresql_answers() {
    let seed = std::env::var(OTHER_SEED).map_or(SEED, |seed| seed.parse().unwrap());
    let statements = shapes::statements(seed, STATEMENTS);
    let again = shapes::statements(seed, STATEMENTS);
    assert!(
        statements
            .iter()
            .zip(&again)
            .all(|(one, other)| one.ours() == other.ours())
    );
    let Some(mut outcome) = compared("generated", (table::contract(), table::batches()), statements).await else {
        return;
    };
    let mut listed = BTreeMap::new();
    outcome.problems.retain(|(_, problem)| {
        let words = listed::words_of(problem);
        words.map(|words| *listed.entry(words).or_insert(0) += 1).is_none()
    });
    let Outcome { answered, failed, .. } = outcome;
    eprintln!("{answered} answers are the same, {failed} fail on both sides, listed: {listed:?}");
    assert!(
        outcome.problems.is_empty(),
        "{} differences\n{}",
        outcome.problems.len(),
        outcome.text()
    );
    assert!(answered >= ANSWERED, "{answered} answered by both");
    // A list that is longer than it needs to be would hide a difference that comes later.
    for kind in listed::REFUSED.iter().filter(|kind| kind.generated && seed == SEED) {
        assert!(listed.contains_key(kind.words), "nothing is {kind:?}");
    }
}

/// Each of these answers something else in `PostgreSQL`, as the two texts are not the same statement.
#[tokio::test]
async fn a_wrong_answer_is_found() {
    let planted = [
        // Rows: too few, too many, repeated, and in another order.
        ("SELECT id FROM records WHERE i «<|<=» 3", false),
        ("SELECT s FROM records UNION «ALL|» SELECT s FROM records", false),
        ("SELECT id FROM records ORDER BY i «ASC|DESC», id", true),
        ("SELECT id FROM records ORDER BY id LIMIT «3|4»", true),
        // Values: integers beyond the digits of a double, the last digits of a double, a microsecond, null.
        ("SELECT sum(i) «|+ 1» AS c FROM records", false),
        ("SELECT j «|- 1» FROM records WHERE j = 9223372036854775807", false),
        ("SELECT n «|* 1.00000000001» AS c FROM records", false),
        ("SELECT moment «|+ INTERVAL '1 microsecond'» AS c FROM records", false),
        ("SELECT coalesce(s, «''|NULL») AS c FROM records", false),
        ("SELECT count(*) FILTER (WHERE i > «0|5») FROM records", false),
        ("SELECT array_agg(i ORDER BY id «|DESC») FROM records", false),
        // Types: a number as text, an instant as a local time, a condition as a number.
        ("SELECT «i|CAST(i AS VARCHAR)» FROM records", false),
        ("SELECT «moment|moment::timestamp» FROM records", false),
        ("SELECT «b|b::int» FROM records", false),
        // An error on one side only.
        ("SELECT «i|1 / (i - i)» FROM records", false),
    ];
    let statements = planted.map(|(text, ordered)| Statement::new(text.to_owned(), ordered));
    let Some(outcome) = compared("planted", (table::contract(), table::batches()), statements.into()).await else {
        return;
    };
    assert_eq!(outcome.problems.len(), planted.len(), "{outcome:?}");
}

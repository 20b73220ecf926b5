//! The sandbox held against `DuckDB`: generated statements over a typed table, each answered by both.
//!
//! Invariant: the statements are the same in every run. A statement passes if both answer the same rows, if both fail,
//! or if it is of a kind that [`DIFFERENCES`] lists.

#![expect(
    clippy::print_stderr,
    reason = "a test says what it compared, and that it was skipped"
)]

mod compare;
mod generate;
mod shapes;
mod table;

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

use futures_util::StreamExt as _;
use serde_json::Value;
use sql::Error;

use self::compare::{Rows, same};
use self::generate::Statement;
use crate::fixture::Fixture;

/// Names the Python that has `duckdb`.
const PYTHON: &str = "SLUICE_TEST_PYTHON";
/// Answers statements with it.
const SCRIPT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it/differential/duckdb_answers.py");
/// The seed of the statements, unless [`OTHER_SEED`] has another.
const SEED: u64 = 17;
/// Names a seed to look for further differences with.
const OTHER_SEED: &str = "SLUICE_TEST_SQL_SEED";
/// The number of statements that are generated.
const STATEMENTS: usize = 2_000;
/// The least number of them that both must answer, so that errors are not all that is compared.
const ANSWERED: usize = 1_500;
/// The number of queries under way at once.
const AT_ONCE: usize = 2;

/// A kind of statement that the sandbox refuses or fails and `DuckDB` answers, by words of the error.
#[derive(Debug)]
struct Difference {
    words: &'static str,
    #[expect(dead_code, reason = "it is for whoever reads the list")]
    reason: &'static str,
}

/// Every difference there may be: at most 20.
const DIFFERENCES: &[Difference] = &[
    Difference {
        words: "`SIMILAR TO` is refused",
        reason: "the engine matches a part of the text",
    },
    Difference {
        words: "INTERSECT ALL` is refused",
        reason: "the engine does not count equal rows",
    },
    Difference {
        words: "EXCEPT ALL` is refused",
        reason: "the engine does not count equal rows",
    },
    Difference {
        words: "JOIN … USING` is refused",
        reason: "the engine takes the merged column from the left table",
    },
    Difference {
        words: "NATURAL ",
        reason: "as USING",
    },
    Difference {
        words: " ANY` is refused",
        reason: "the engine fails or answers wrongly",
    },
    Difference {
        words: " ALL` is refused",
        reason: "the engine fails or answers wrongly",
    },
    Difference {
        words: "a window cannot extend another one",
        reason: "the engine forgets the other window",
    },
    Difference {
        words: "NOT IN (SELECT …) is supported as",
        reason: "the engine takes null for false where it joins",
    },
    Difference {
        words: "write brackets around `… IS DISTINCT FROM …`",
        reason: "the parser takes the rest of the condition for the right side",
    },
    Difference {
        words: "have the same name",
        reason: "a cast has no name of its own, and two columns must not have one name",
    },
    Difference {
        words: "beyond 64 bits",
        reason: "DuckDB adds in 128 bits; a sum is an integer of 64 bits here",
    },
];

/// The answer of one side to a statement.
#[derive(Debug)]
enum Said {
    Rows(Rows),
    Error(String),
}

/// `DuckDB` with the parts of the table.
struct DuckDb {
    child: Child,
    out: BufReader<std::process::ChildStdout>,
}

impl DuckDb {
    fn start(python: &str, parts: Vec<PathBuf>) -> Self {
        let mut child = Command::new(python)
            .arg(SCRIPT)
            .args(parts)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let out = BufReader::new(child.stdout.take().unwrap());
        Self { child, out }
    }

    fn ask(&mut self, sql: &str) -> Said {
        let line = serde_json::to_string(sql).unwrap();
        writeln!(self.child.stdin.as_mut().unwrap(), "{line}").unwrap();
        let mut answer = String::new();
        self.out.read_line(&mut answer).unwrap();
        let answer: Value = serde_json::from_str(&answer).expect("DuckDB's process has ended");
        match answer.get("error") {
            Some(error) => Said::Error(error.to_string()),
            None => Said::Rows(compare::of_duckdb(&answer["rows"])),
        }
    }
}

impl Drop for DuckDb {
    fn drop(&mut self) {
        drop(self.child.stdin.take());
        self.child.wait().unwrap();
    }
}

/// The outcome of a comparison.
#[derive(Debug, Default)]
struct Outcome {
    answered: usize,
    failed: usize,
    listed: BTreeMap<&'static str, usize>,
    problems: Vec<String>,
}

impl Outcome {
    fn add(&mut self, statement: &Statement, ours: Said, theirs: Said) {
        let listed = |error: &str| DIFFERENCES.iter().find(|listed| error.contains(listed.words));
        match (ours, theirs) {
            (Said::Rows(ours), Said::Rows(theirs)) => {
                if let Err(problem) = same(ours, theirs, statement.ordered) {
                    self.problems.push(format!("{problem}\n{}", statement.ours()));
                } else {
                    self.answered += 1;
                }
            }
            (Said::Error(error), theirs) => {
                if error.contains("bug") {
                    self.problems.push(format!("{error}\n{}", statement.ours()));
                } else if let Some(listed) = listed(&error) {
                    *self.listed.entry(listed.words).or_default() += 1;
                } else if let Said::Error(_) = theirs {
                    self.failed += 1;
                } else {
                    let problem = format!("only the sandbox fails: {error}");
                    self.problems.push(format!("{problem}\n{}", statement.ours()));
                }
            }
            (Said::Rows(_), Said::Error(error)) => {
                let problem = format!("only DuckDB fails: {error}");
                self.problems
                    .push(format!("{problem}\n{}\n{}", statement.ours(), statement.theirs()));
            }
        }
    }
}

/// Asks both for each of the statements; none where there is no `DuckDB`.
async fn compared(statements: Vec<Statement>) -> Option<Outcome> {
    let Ok(python) = std::env::var(PYTHON) else {
        assert!(
            std::env::var("CI").as_deref() != Ok("true"),
            "{PYTHON} must be set in CI"
        );
        eprintln!("skipped: {PYTHON} names no Python with duckdb");
        return None;
    };
    let fixture = Fixture::of(table::contract(), table::batches()).await;
    let parts = fixture.records.parts.iter().map(|part| part.path.clone()).collect();
    let mut duckdb = DuckDb::start(&python, parts);
    let sandbox = fixture.sandbox();
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
        let theirs = duckdb.ask(&statement.theirs());
        outcome.add(&statement, ours, theirs);
    }
    Some(outcome)
}

#[tokio::test]
async fn generated_statements_answer_what_duckdb_answers() {
    assert!(DIFFERENCES.len() <= 20);
    let seed = std::env::var(OTHER_SEED).map_or(SEED, |seed| seed.parse().unwrap());
    let statements = shapes::statements(seed, STATEMENTS);
    let again = shapes::statements(seed, STATEMENTS);
    assert!(
        statements
            .iter()
            .zip(&again)
            .all(|(one, other)| one.ours() == other.ours())
    );
    let Some(outcome) = compared(statements).await else {
        return;
    };
    let mut text = String::new();
    for problem in &outcome.problems {
        writeln!(text, "{problem}\n").unwrap();
    }
    let Outcome { answered, failed, .. } = outcome;
    eprintln!(
        "{answered} answers are the same, {failed} fail on both sides, listed: {:?}",
        outcome.listed
    );
    assert!(text.is_empty(), "{} differences\n{text}", outcome.problems.len());
    assert!(answered >= ANSWERED, "{answered} answered by both");
    // A list that is longer than it needs to be would hide a difference that comes later.
    for listed in DIFFERENCES.iter().filter(|_| seed == SEED) {
        assert!(outcome.listed.contains_key(listed.words), "nothing is {listed:?}");
    }
}

/// Each of these answers something else in `DuckDB`, as the two texts are not the same statement.
#[tokio::test]
async fn a_wrong_answer_is_found() {
    for (text, ordered) in [
        ("SELECT id FROM records WHERE i «<|<=» 3", false),
        ("SELECT sum(i) «|+ 1» AS c FROM records", false),
        ("SELECT s FROM records UNION «ALL|» SELECT s FROM records", false),
        ("SELECT n «|+ 0.001» AS c FROM records", false),
        ("SELECT id FROM records ORDER BY i «ASC|DESC», id", true),
        ("SELECT coalesce(s, «''|NULL») AS c FROM records", false),
        (
            "SELECT j FROM records WHERE j > 0 «|AND j < 9223372036854775807»",
            false,
        ),
        ("SELECT moment «|+ INTERVAL '1 microsecond'» AS c FROM records", false),
        ("SELECT j «|- 1» FROM records WHERE j = 9223372036854775807", false),
    ] {
        let Some(outcome) = compared(vec![Statement::new(text.to_owned(), ordered)]).await else {
            return;
        };
        assert_eq!(outcome.problems.len(), 1, "{text}: {outcome:?}");
    }
}

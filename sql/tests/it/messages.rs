//! Messages of statements that fail: each names the rule in the words of SQL, and what to do.

use std::fmt::Write as _;

use crate::corpus;
use crate::fixture::Fixture;

const CORPUS: &str = include_str!("../corpus/messages.tsv");
/// Words of the engine, which mean nothing to a reader.
const ENGINE: [&str; 16] = [
    "Arrow",
    "DataFusion",
    "Decimal1",
    "Decimal2",
    "Error during",
    "Float64",
    "Int64",
    "Plan",
    "Utf8",
    "coerc",
    "common type to coerce",
    "infer",
    "signature",
    "user-defined",
    "wildcard",
    "NativeType",
];

#[tokio::test]
async fn every_failure_says_its_rule_in_the_words_of_sql() {
    let fixture = Fixture::new().await;
    let sandbox = fixture.sandbox();
    let statements = corpus::read(CORPUS);
    let mut problems = String::new();
    for (words, statement) in &statements {
        let said = match sandbox.query(&fixture.records, statement, 10).await {
            Ok(answer) => format!("it answers {:?}", answer.rows),
            Err(error) => error.to_string(),
        };
        if !said.contains(words) || ENGINE.iter().any(|word| said.contains(word)) {
            writeln!(problems, "{statement}\n  should say `{words}`\n  {said}").unwrap();
        }
    }
    assert!(problems.is_empty(), "\n{problems}");
    assert!(statements.len() >= 40, "{} statements", statements.len());
}

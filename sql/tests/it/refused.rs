//! Statements that are refused, held against `corpus/refused.tsv`.

use std::fmt::Write as _;
use std::time::Instant;

use crate::corpus;

const CORPUS: &str = include_str!("../corpus/refused.tsv");

#[tokio::test]
async fn every_statement_of_the_corpus_is_refused_by_its_rule_and_at_once() {
    let statements = corpus::read(CORPUS);
    let mut problems = String::new();
    for (words, sql) in &statements {
        let start = Instant::now();
        let checked = sql::check(sql).await;
        let said = checked.map_or_else(|refusal| refusal.to_string(), |()| "it is taken".to_owned());
        let took = start.elapsed();
        if !said.contains(words) || took.as_millis() > 500 {
            let shown: String = sql.chars().take(120).collect();
            writeln!(
                problems,
                "{shown}\n  should be refused with `{words}`\n  {said} ({took:?})"
            )
            .unwrap();
        }
    }
    assert!(problems.is_empty(), "\n{problems}");
    assert!(statements.len() >= 300, "{} statements", statements.len());
}

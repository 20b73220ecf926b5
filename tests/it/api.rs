//! The interface, resource by resource.

mod agents;
mod compaction;
mod contribute;
mod data;
mod exact;
mod export;
mod idempotency;
mod input;
mod left_out;
mod limits;
mod manifest;
mod privacy;
mod projects;
mod query;
mod query_receipts;
mod service;
mod validate;

use serde_json::Value;
use tests::World;

use crate::binary;

/// A world for one test.
async fn world() -> World {
    World::start(binary()).await
}

/// `n` characters.
fn text(n: usize) -> String {
    "a".repeat(n)
}

/// Asserts that `answer` refuses the request as invalid, naming `path`.
#[track_caller]
fn assert_names(answer: &tests::Answer, path: &str) {
    assert_eq!(answer.code(), 400, "{}", answer.body);
    assert!(
        !answer.error().is_empty() && !answer.text("/message").is_empty(),
        "{}",
        answer.body
    );
    assert!(answer.paths().contains(&path), "{path} is not named: {}", answer.body);
    let details = answer.body["details"].as_array().unwrap();
    let problem = |detail: &Value| detail["problem"].as_str().is_some_and(|problem| !problem.is_empty());
    assert!(details.iter().all(problem), "{}", answer.body);
}

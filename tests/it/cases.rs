//! The small files of `tests/fixtures/cases`: each becomes the records that its line of the table says, or is refused with
//! the words that the table says.
//!
//! Invariant: every file there has its line, so none is forgotten.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use serde::Deserialize;
use serde_json::{Value, json};
use tests::World;
use tests::world::{all_data, decided};

use crate::binary;
use crate::uploads::{push, said};

/// A line of the table, as its README describes.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Case {
    #[serde(rename = "case")]
    name: String,
    /// The contract of the dataset that gets the records.
    fields: String,
    /// Records of the dataset, if all are taken.
    #[serde(default)]
    records: Option<Vec<Value>>,
    /// Words about what is refused.
    #[serde(default)]
    refused: Option<String>,
    /// Words of the question that is open.
    #[serde(default)]
    asks: Option<String>,
    /// Records of the dataset that the file alone makes, where they differ.
    #[serde(default)]
    created: Option<Vec<Value>>,
    /// Flags that settle what is open before that.
    #[serde(default)]
    flags: Option<String>,
}

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/cases")
}

fn table() -> Vec<Case> {
    let text = fs::read_to_string(folder().join("table.jsonl")).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// The files that begin with `prefix`, in order.
fn files(prefix: &str) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder()).unwrap().map(|entry| entry.unwrap().path());
    let is_one = |path: &PathBuf| path.file_name().unwrap().to_string_lossy().starts_with(prefix);
    let mut files: Vec<PathBuf> = entries.filter(is_one).collect();
    files.sort();
    files
}

#[test]
fn every_case_has_a_line_that_says_what_becomes_of_it() {
    let table = table();
    for case in &table {
        let kinds = [case.records.is_some(), case.refused.is_some(), case.asks.is_some()];
        assert_eq!(kinds.iter().filter(|is_there| **is_there).count(), 1, "{case:?}");
    }
    let lines: Vec<&str> = table.iter().map(|case| case.name.as_str()).collect();
    let named: BTreeSet<String> = lines.iter().map(|case| (*case).to_owned()).collect();
    assert_eq!(named.len(), lines.len(), "a case has one line");
    let beside = ["README.md", "table.jsonl", "upload-slots.txt"];
    let is_pushed = |name: &String| {
        !beside.contains(&name.as_str()) && !["sql-", "pii-"].iter().any(|prefix| name.starts_with(prefix))
    };
    let there = files("")
        .into_iter()
        .map(|path| path.file_name().unwrap().to_string_lossy().into_owned());
    assert_eq!(there.filter(is_pushed).collect::<BTreeSet<_>>(), named);
}

/// Pushes the file of each case to a project of its own, and makes a dataset of it. The differences to the table.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_file_becomes_its_records_or_is_refused_with_line_rule_and_remedy() {
    let world = World::start(binary()).await;
    let mut differing = Vec::new();
    for case in table() {
        let field = |field: &str| {
            let (name, kind) = field.split_once(' ').unwrap();
            json!({"name": name, "type": kind})
        };
        let fields: Vec<Value> = case.fields.split(", ").map(field).collect();
        let slug = world.project_with(json!({"schemaDef": {"fields": fields}})).await;
        // A copy, since the state of the push is kept beside it.
        let place = world.folder().join(&slug);
        fs::create_dir(&place).unwrap();
        let file = place.join(&case.name);
        fs::copy(folder().join(&case.name), &file).unwrap();
        let output = push(&world, &slug, &file, 1 << 20).output().unwrap();
        let (code, said) = (output.status.code(), said(&output));
        let is_right = match (&case.records, &case.refused, &case.asks) {
            (Some(records), ..) => code == Some(0) && same(&all_data(&world.agent.http, &slug, 1).await, records),
            (_, Some(words), _) => code == Some(4) && said.contains(words),
            (.., Some(words)) => code == Some(3) && said.contains(words),
            _ => false,
        };
        if !is_right {
            differing.push(format!("{}: {code:?}: {said}", case.name));
        }
        let project = world.agent.http.get(&format!("/projects/{slug}")).await.expect(200);
        if project.body["latestVersion"] != u64::from(case.records.is_some()) {
            differing.push(format!("{}: version {}", case.name, project.body["latestVersion"]));
        }
        let Some(records) = &case.created else { continue };
        let made = format!("{slug}-made");
        let mut create = push(&world, &made, &file, 1 << 20);
        create.args(["--create", "--yes"]);
        create.args(case.flags.iter().flat_map(|flags| flags.split(' ')));
        let output = create.output().unwrap();
        let found = match output.status.code() {
            Some(0) => all_data(&world.agent.http, &made, 1).await,
            _ => Vec::new(),
        };
        if !same(&found, records) {
            let said = crate::uploads::said(&output);
            differing.push(format!("{} as a new dataset: {found:?}: {said}", case.name));
        }
    }
    none(&differing);
}

/// Compares records in any order.
fn same(found: &[Value], expected: &[Value]) -> bool {
    let sorted = |records: &[Value]| {
        let mut texts: Vec<String> = records.iter().map(Value::to_string).collect();
        texts.sort();
        texts
    };
    sorted(found) == sorted(expected)
}

fn none(differing: &[String]) {
    assert!(differing.is_empty(), "{}", differing.join("\n"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_statement_has_the_rows_of_postgresql_or_is_refused() {
    let world = World::start(binary()).await;
    let mut differing = Vec::new();
    let files = files("sql-");
    assert!(!files.is_empty());
    for file in files {
        let case: Value = serde_json::from_slice(&fs::read(&file).unwrap()).unwrap();
        let slug = world.project_with(json!({"schemaDef": case["schemaDef"]})).await;
        let body = json!({"records": case["records"]});
        let path = format!("/projects/{slug}/contribute?wait=20");
        let contributed = world.agent.http.post(&path, &body).await.expect(201);
        decided(&world.agent.http, &slug, contributed.text("/id")).await;
        let path = format!("/projects/{slug}/query");
        let answer = world.agent.http.post(&path, &json!({"sql": case["sql"]})).await;
        let expected = case
            .as_object()
            .unwrap()
            .iter()
            .find(|(name, _)| name.starts_with("expected"));
        let expected = expected.unwrap().1;
        let is_right = match expected {
            Value::String(_) => answer.code() == 400,
            rows => answer.code() == 200 && alike(&answer.body["rows"], rows),
        };
        if !is_right {
            differing.push(format!("{}: expected {expected}, found {}", case["case"], answer.body));
        }
    }
    none(&differing);
}

/// Compares values, numbers as doubles.
fn alike(found: &Value, expected: &Value) -> bool {
    match (found, expected) {
        (Value::Array(found), Value::Array(expected)) => {
            found.len() == expected.len()
                && found
                    .iter()
                    .zip(expected)
                    .all(|(found, expected)| alike(found, expected))
        }
        (Value::Number(found), Value::Number(expected)) => found.as_f64() == expected.as_f64(),
        _ => found == expected,
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn honest_rows_pass_the_personal_data_gate() {
    let world = World::start(binary()).await;
    let files = files("pii-");
    assert!(!files.is_empty());
    for file in files {
        let text = fs::read_to_string(&file).unwrap();
        let records: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        let fields = json!([{"name": "v", "type": "string"}]);
        let slug = world.project_with(json!({"schemaDef": {"fields": fields}})).await;
        let path = format!("/projects/{slug}/contribute?wait=20");
        let contributed = world
            .agent
            .http
            .post(&path, &json!({"records": records}))
            .await
            .expect(201);
        let outcome = decided(&world.agent.http, &slug, contributed.text("/id")).await;
        assert_eq!(outcome.body["acceptedCount"], records.len(), "{}", outcome.body);
    }
}

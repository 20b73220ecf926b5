//! Generated filters and orders: the rows of a page are those that somebody else finds.
//!
//! Invariant: a page is asked for by the form of the page before, as a browser sends it.

use std::fs;

use serde_json::{Value, json};
use tests::apps::{encoded, hidden_fields};
use tests::random::Random;
use tests::world::merged;

use super::{opened, profile, profiled, rows, sent};
use crate::profiles::{any_record, fields};
use crate::sql_page::{Asker, cells};
use crate::{configured, readers};

/// Compares pages with what `duckdb` answers.
const COMPARED: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/readers/compare_rows.py");
/// Questions of a usual run; `SLUICE_TEST_FILTERS` asks for more.
const QUESTIONS: u64 = 24;
const BATCHES: u64 = 3;
const BATCH_ROWS: u64 = 500;
const PAGE_ROWS: u64 = 50;
const SLUG: &str = "filtered";

/// Sends the form of a page with more fields; the page that comes.
async fn press(reader: &Asker, page: &str, version: u64, more: &[(String, String)]) -> String {
    let version = ("version".to_owned(), version.to_string());
    let all = [hidden_fields(page, "view"), vec![version], more.to_vec()].concat();
    let all: Vec<_> = all
        .iter()
        .map(|(name, value)| (name.as_str(), value.as_str()))
        .collect();
    opened(reader, &rows(SLUG, &format!("?{}", encoded(&all)))).await
}

/// Numbers of the rows of a page, and how many there are in all.
fn shown(page: &str) -> (Vec<u64>, u64) {
    let number = |text: &str| text.replace(',', "").parse::<u64>();
    let (_, status) = page
        .split_once("<span role=\"status\">")
        .unwrap_or_else(|| panic!("{page}"));
    let status = status.split('<').next().unwrap();
    // "1 to 50 of 133 rows", "7 rows" or "No rows".
    let total = status.split_whitespace().rev().find_map(|word| number(word).ok());
    let rows = if status.starts_with("No ") {
        Vec::new()
    } else {
        cells(page)
    };
    let rows = rows.iter().map(|row| number(&row[0]).unwrap());
    (rows.collect(), total.unwrap_or(0))
}

fn text(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

/// A filter by a value that some record has, or one close to it.
fn filter(random: &mut Random, all: &[Value], columns: &[(String, String)]) -> [String; 3] {
    loop {
        let (name, kind) = random.pick(columns).clone();
        let operators: &[&str] = match kind.as_str() {
            "json" => &["has", "null", "some"],
            "string" => &["is", "not", "less", "greater", "has", "null", "some"],
            "boolean" => &["is", "not", "null", "some"],
            _ => &["is", "not", "less", "greater", "null", "some"],
        };
        let operator = (*random.pick(operators)).to_owned();
        let record = &random.pick(all)[&name];
        if matches!(operator.as_str(), "null" | "some") {
            return [name, operator, String::new()];
        }
        if record.is_null() {
            continue;
        }
        let mut value = text(record);
        if operator == "has" {
            let characters: Vec<char> = value.chars().collect();
            let from = random.below(characters.len().max(1));
            value = characters.iter().skip(from).take(1 + random.below(4)).collect();
            if random.chance(20) {
                value.push(*random.pick(&['%', '_', '\\', '\'']));
            }
        }
        // A field of a form has no blanks around its value that a person could see.
        if value.trim() == value && !(operator == "has" && value.is_empty()) {
            return [name, operator, value];
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn filtered_and_ordered_rows_are_those_that_duckdb_finds() {
    let Some(python) = readers::python() else { return };
    let (_site, owner, other) = profiled().await;
    let body = merged(tests::world::project_body(SLUG), json!({"schemaDef": fields()}));
    owner.agent.http.post("/projects", &body).await.expect(201);
    let mut random = Random::new(39);
    let all: Vec<Value> = (0..BATCHES * BATCH_ROWS)
        .map(|row| any_record(&mut random, row))
        .collect();
    for records in all.chunks(usize::try_from(BATCH_ROWS).unwrap()) {
        sent(&owner.agent, SLUG, records).await;
    }
    profile(&owner, SLUG, BATCHES).await;
    let names = fields()["fields"].as_array().unwrap().clone();
    let columns: Vec<_> = names
        .iter()
        .map(|field| (text(&field["name"]), text(&field["type"])))
        .collect();
    let first = opened(&other, &rows(SLUG, "")).await;
    let mut pages = Vec::new();
    for _ in 0..configured("SLUICE_TEST_FILTERS", QUESTIONS) {
        let mut page = first.clone();
        let mut filters = Vec::new();
        for number in 1..=random.below(4) {
            let [name, operator, value] = filter(&mut random, &all, &columns);
            let asked = [("f", &name), ("o", &operator), ("v", &value)];
            let asked = asked.map(|(letter, value)| (format!("{letter}{number}"), value.clone()));
            page = press(&other, &page, BATCHES, &asked).await;
            filters.push(json!([name, operator, value]));
        }
        let mut sort = Value::Null;
        if filters.is_empty() || random.chance(60) {
            let sortable: Vec<_> = columns.iter().filter(|(_, kind)| kind != "json").collect();
            let (name, way) = (&random.pick(&sortable).0, *random.pick(&["asc", "desc"]));
            page = press(&other, &page, BATCHES, &[("by".to_owned(), format!("{name} {way}"))]).await;
            sort = json!([name, way]);
        }
        let mut keep = |page: &str, offset: u64| {
            let (rows, total) = shown(page);
            pages.push(json!({"filters": filters, "sort": sort, "offset": offset, "rows": rows, "total": total}));
            total
        };
        let total = keep(&page, 0);
        if total > PAGE_ROWS {
            let offset = PAGE_ROWS * (1 + random.bits() % ((total - 1) / PAGE_ROWS));
            let asked = [("offset".to_owned(), offset.to_string())];
            keep(&press(&other, &page, BATCHES, &asked).await, offset);
        }
    }
    let folder = tempfile::tempdir().unwrap();
    let [shown, export, asked] = ["profile.json", "rows.ndjson", "pages.json"].map(|name| folder.path().join(name));
    let http = &other.agent.http;
    fs::write(
        &shown,
        http.get(&format!("/projects/{SLUG}/profile")).await.expect(200).bytes,
    )
    .unwrap();
    let lines = http.get(&format!("/projects/{SLUG}/export?version={BATCHES}")).await;
    fs::write(&export, lines.expect(200).bytes).unwrap();
    fs::write(&asked, Value::from(pages.clone()).to_string()).unwrap();
    let [shown, export, asked] = [&shown, &export, &asked].map(|path| path.to_str().unwrap());
    let found = tokio::task::block_in_place(|| readers::run(&python, &[COMPARED, shown, export, asked]));
    assert_eq!(found, "[]");
    // The questions were such that rows remained and were left out.
    let total = |page: &&Value| (1..BATCHES * BATCH_ROWS).contains(&page["total"].as_u64().unwrap());
    assert!(pages.iter().filter(total).count() * 4 > pages.len(), "{pages:?}");
}

//! Datasets as strangers may make them, at every door of a person: none of them breaks a page, runs as anything, or is too large.

use std::io::Cursor;

use arrow::array::RecordBatch;
use arrow::ipc::reader::StreamReader;
use parquet::arrow::arrow_reader::ParquetRecordBatchReader;
use serde_json::{Map, Value, json};
use tests::world::{merged, project_body};

use super::{MOST, profile, profiled, sent};
use crate::sql_page::{Asker, text};

/// Most bytes of a profile, and of a preview with whole rows.
const MOST_PROFILE: usize = 256 << 10;
const MOST_PREVIEW: usize = (8 << 20) + (64 << 10);
/// A text of this many characters is the longest that a record may have.
const LONG: usize = 100_000;
/// Columns of the widest contract.
const COLUMNS: usize = 256;
/// Words that must never stand in a page as they are.
const SCRIPT: &str = "<script>alert(1)</script>";

/// A dataset: its name, its contract and its records.
struct Hostile {
    slug: &'static str,
    fields: Vec<Value>,
    records: Vec<Value>,
}

fn field(name: &str, kind: &str) -> Value {
    json!({"name": name, "type": kind})
}

fn of_texts(slug: &'static str, texts: &[String]) -> Hostile {
    let record = |(row, text): (usize, &String)| json!({"t": text, "n": row});
    Hostile {
        slug,
        fields: vec![field("t", "string"), field("n", "integer")],
        records: texts.iter().enumerate().map(record).collect(),
    }
}

fn hostile() -> Vec<Hostile> {
    let texts = |texts: &[&str]| texts.iter().map(|text| (*text).to_owned()).collect::<Vec<_>>();
    let name = |column: usize| format!("c{column:03}_\"'&<b>{}", "ä".repeat(20));
    let kinds = ["string", "integer", "number", "boolean", "timestamp", "date", "json"];
    let value = |column: usize, row: usize| match column % kinds.len() {
        0 => json!(format!("{SCRIPT}{column} {row}")),
        1 => json!(if row == 0 { i64::MIN } else { i64::MAX }),
        2 => json!([f64::MAX, f64::MIN, f64::MIN_POSITIVE, -0.0][row % 4]),
        3 => json!(row.is_multiple_of(2)),
        4 => json!("9999-12-31T23:59:59.999999Z"),
        5 => json!("0001-01-01"),
        _ => json!({"<b>": [SCRIPT, row, null]}),
    };
    let wide = |row: usize| {
        let members = (0..COLUMNS).map(|column| (name(column), value(column, row)));
        Value::Object(members.collect::<Map<_, _>>())
    };
    let line = |row: usize| format!("{row} {}", "&<\"'".repeat(LONG / 4 - 2));
    vec![
        of_texts("none", &[]),
        of_texts("one", &texts(&[""])),
        of_texts("long", &(0..12).map(line).collect::<Vec<_>>()),
        of_texts(
            "right-to-left",
            &texts(&[
                "txt.exe \u{5e9}\u{5dc}\u{5d5}\u{5dd} (\u{5d0})!",
                "\u{2066}\u{2067}\u{2068} never closed",
                "\u{627}\u{644}\u{639} 12 \u{5d0}",
                &format!("e{}", ('\u{300}'..='\u{36f}').collect::<String>()),
                "\u{648}\u{61f} 3 < 4 \u{62f}",
                SCRIPT,
            ]),
        ),
        of_texts(
            "formulas",
            &texts(&[
                "=1+1",
                "+cmd|' /C calc'!A0",
                "-2+3",
                "@SUM(A1)",
                "\t=1",
                "\r=1",
                "=HYPERLINK(\"https://evil.example\",\"x\")",
                "-12.5",
                "a,b",
                "\"",
                "line\nfeed",
            ]),
        ),
        Hostile {
            slug: "wide",
            fields: (0..COLUMNS)
                .map(|column| field(&name(column), kinds[column % kinds.len()]))
                .collect(),
            records: (0..6).map(wide).collect(),
        },
    ]
}

/// Rows of a file of CSV, and of each the first cell, by RFC 4180.
fn first_cells(csv: &str) -> Vec<String> {
    let (mut rows, mut cell, mut is_first, mut is_quoted) = (Vec::new(), String::new(), true, false);
    let mut characters = csv.chars().peekable();
    while let Some(character) = characters.next() {
        match character {
            '"' if is_quoted && characters.peek() == Some(&'"') => {
                characters.next();
                if is_first {
                    cell.push('"');
                }
            }
            '"' => is_quoted = !is_quoted,
            ',' if !is_quoted => is_first = false,
            '\n' if !is_quoted => {
                rows.push(std::mem::take(&mut cell));
                is_first = true;
            }
            other if is_first => cell.push(other),
            _ => {}
        }
    }
    assert!(!is_quoted && cell.is_empty(), "the file ends in a cell");
    rows
}

async fn file(person: &Asker, slug: &str, token: &str, format: &str) -> Vec<u8> {
    let fields = [("form_token", token), ("version", "1"), ("format", format)];
    let path = format!("/projects/{slug}/download");
    person
        .browser
        .browse(&person.session, &path, Some(&fields))
        .await
        .expect(200)
        .bytes
}

/// Holds each format of a file against the records.
async fn files_are_whole(person: &Asker, token: &str, Hostile { slug, records, fields }: &Hostile) {
    let lines = text_of(file(person, slug, token, "ndjson").await);
    let lines: Vec<Value> = lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(&lines, records, "{slug}");
    let parquet = bytes::Bytes::from(file(person, slug, token, "parquet").await);
    let parquet: Vec<_> = ParquetRecordBatchReader::try_new(parquet, 1_024)
        .unwrap()
        .map(Result::unwrap)
        .collect();
    let arrow = Cursor::new(file(person, slug, token, "arrow").await);
    let arrow: Vec<_> = StreamReader::try_new(arrow, None)
        .unwrap()
        .map(Result::unwrap)
        .collect();
    for batches in [parquet, arrow] {
        assert_eq!(
            batches.iter().map(RecordBatch::num_rows).sum::<usize>(),
            records.len(),
            "{slug}"
        );
        assert_eq!(batches[0].num_columns(), fields.len(), "{slug}");
    }
    let name = fields[0]["name"].as_str().unwrap();
    let cells = first_cells(&text_of(file(person, slug, token, "csv").await));
    assert_eq!((cells[0].as_str(), cells.len()), (name, records.len() + 1), "{slug}");
    for (cell, record) in cells[1..].iter().zip(records) {
        let value = record[name].as_str().unwrap();
        let runs = value.starts_with(['=', '+', '-', '@', '\t', '\r']) && value.parse::<f64>().is_err();
        let expected = if runs { format!("'{value}") } else { value.to_owned() };
        assert!(*cell == expected, "{slug}: {cell:.40} is not {expected:.40}");
    }
}

fn text_of(bytes: Vec<u8>) -> String {
    String::from_utf8(bytes).unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn datasets_of_strangers_break_no_page_no_file_and_no_bound() {
    let (_site, owner, other) = profiled().await;
    for dataset in hostile() {
        let Hostile { slug, fields, records } = &dataset;
        let body = merged(
            project_body(slug),
            json!({"title": format!("{SCRIPT} {slug}"), "schemaDef": {"fields": fields}}),
        );
        owner.agent.http.post("/projects", &body).await.expect(201);
        if !records.is_empty() {
            sent(&owner.agent, slug, records).await;
            profile(&owner, slug, 1).await;
        }
        let version = if records.is_empty() { "" } else { "/versions/1" };
        for path in ["", "/rows", "/rows?row=1", "/versions", version, "/sql"] {
            for session in ["", &other.session] {
                let page = other
                    .browser
                    .browse(session, &format!("/projects/{slug}{path}"), None)
                    .await;
                let is_row_of_none = records.is_empty() && path.ends_with("row=1");
                assert!(
                    page.code() == 200 || (is_row_of_none && page.code() == 404),
                    "{slug}{path}: {}",
                    page.code()
                );
                let page = text(&page);
                assert!(page.len() <= MOST, "{slug}{path}: {}", page.len());
                assert!(!page.contains(SCRIPT), "{slug}{path}");
            }
        }
        for (door, most) in [("profile", MOST_PROFILE), ("preview", MOST_PREVIEW)] {
            let is_there = !records.is_empty() || door == "preview";
            for http in [&other.agent.http, &other.agent.http.anonymous()] {
                let answer = http.get(&format!("/projects/{slug}/{door}")).await;
                let answer = answer.expect(if is_there { 200 } else { 404 });
                assert!(answer.bytes.len() <= most, "{slug} {door}: {}", answer.bytes.len());
            }
        }
        for statement in ["SELECT * FROM records", "SELECT count(*) AS n FROM records"] {
            let page = other.ask(slug, &[("q", statement), ("limit", "20")]).await.expect(200);
            assert!(!text(&page).contains(SCRIPT), "{slug}: {statement}");
        }
        if !records.is_empty() {
            let token = other.token().await;
            files_are_whole(&other, &token, &dataset).await;
        }
    }
}

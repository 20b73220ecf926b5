//! Files that libraries of others wrote, as datasets. `files/write.py` made them.

#![expect(
    clippy::unwrap_used,
    clippy::tests_outside_test_module,
    reason = "everything here is a test"
)]

use std::fs;
use std::io;
use std::path::Path;

use bytes::Bytes;
use serde_json::{Value, json};
use tabular::files::{FileInput, FilePlan, RowProblem, convert_file, format_of, infer_file};
use tabular::infer::{FileFormat, InferOptions, Inference};
use types::{Contract, Field, FieldType};

fn file(name: &str) -> FileInput {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/files").join(name);
    Bytes::from(fs::read(path).unwrap()).into()
}

fn options(flags: &[(&str, &str)]) -> InferOptions {
    let mut options = InferOptions::default();
    for (flag, value) in flags {
        options.set(flag, value).unwrap();
    }
    options
}

fn infer(input: &FileInput, options: &InferOptions) -> (Inference, FilePlan) {
    let format = format_of(input).unwrap().unwrap();
    infer_file(input, format, options).unwrap()
}

/// Returns the type of each field, with the scale of decimals.
fn kinds(inference: &Inference) -> Vec<String> {
    let kind = |column: &tabular::infer::InferredColumn| {
        let field = column.field.as_deref().unwrap_or("-");
        let scale = column.scale.map(|scale| format!("({scale})")).unwrap_or_default();
        format!("{field} {}{scale}", column.kind.name())
    };
    inference.columns.iter().map(kind).collect()
}

fn lines(input: &FileInput, plan: &FilePlan) -> Vec<Value> {
    let mut written = Vec::new();
    convert_file(input, plan, &mut written, &mut |_| Ok(())).unwrap();
    let text = String::from_utf8(written).unwrap();
    let record = |line: &str| {
        if line.is_empty() {
            Value::Null
        } else {
            serde_json::from_str(line).unwrap()
        }
    };
    text.lines().map(record).collect()
}

/// The code of a note or a question, and its column.
type Told<'a> = (&'a str, Option<&'a str>);

fn codes(inference: &Inference) -> (Vec<Told<'_>>, Vec<Told<'_>>) {
    let notes = inference.notes.iter().map(|note| (note.code, note.column.as_deref()));
    let questions = inference.questions.iter();
    let questions = questions.map(|question| (question.code, question.column.as_deref()));
    (notes.collect(), questions.collect())
}

/// The values of a file that do not fit their fields: row, field and code.
fn problems(input: &FileInput, plan: &FilePlan) -> Vec<(u64, String, &'static str)> {
    let mut problems = Vec::new();
    let mut add = |RowProblem { row, field, code, .. }: RowProblem| {
        problems.push((row, field, code));
        Ok(())
    };
    convert_file(input, plan, &mut io::sink(), &mut add).unwrap();
    problems
}

#[test]
fn the_content_says_the_format() {
    for (name, format) in [
        ("pandas.parquet", FileFormat::Parquet),
        ("pandas.feather", FileFormat::ArrowFile),
        ("polars.arrow", FileFormat::ArrowFile),
        ("pyarrow.arrows", FileFormat::ArrowStream),
        ("openpyxl.xlsx", FileFormat::Xlsx),
    ] {
        assert_eq!(format_of(&file(name)).unwrap(), Some(format), "{name}");
    }
    assert_eq!(format_of(&file("write.py")).unwrap(), None);
}

#[test]
fn a_table_of_pandas_is_a_dataset() {
    for name in ["pandas.parquet", "pandas.feather"] {
        let input = file(name);
        let (inference, plan) = infer(&input, &InferOptions::default());
        assert_eq!(
            kinds(&inference),
            [
                "trip_id integer",
                "started timestamp",
                "ended timestamp",
                "stops json",
                "fare decimal(2)",
                "km number",
                "line string",
                "round_trip boolean"
            ]
        );
        assert_eq!(inference.records, 3);
        let (notes, questions) = codes(&inference);
        assert_eq!(notes, [("zone", Some("started"))], "{name}");
        assert!(questions.is_empty(), "{questions:?}");
        let contract = inference.contract.unwrap();
        assert_eq!(contract.fields()[0].title.as_deref(), Some("Trip ID"));
        let expected = json!({
            "trip_id": 1, "started": "2024-05-01T08:00:00Z", "ended": "2024-05-01T08:00:00Z", "stops": ["07", "x", null],
            "fare": "12.50", "km": 1.5, "line": "A", "round_trip": true,
        });
        assert_eq!(inference.sample[0], expected);
        let lines = lines(&input, &plan);
        assert_eq!(lines[0], expected);
        let second = json!({
            "trip_id": 2, "started": "2024-05-01T08:00:00.123456Z", "stops": [], "fare": "0.05", "line": "B",
            "round_trip": false,
        });
        assert_eq!(lines[1], second);
    }
}

#[test]
fn nested_values_are_real_json_and_nothing_loses_digits() {
    for name in ["pyarrow.parquet", "pyarrow.arrows"] {
        let input = file(name);
        let (inference, _) = infer(&input, &InferOptions::default());
        assert_eq!(
            kinds(&inference),
            [
                "list json",
                "struct json",
                "numbered json",
                "bytes string",
                "photo string",
                "exact decimal(1)",
                "whole integer",
                "big decimal(0)",
                "fine timestamp",
                "took string",
                "day date",
                "infinite number"
            ],
            "{name}"
        );
        let (_, questions) = codes(&inference);
        let open = [
            ("bytes", Some("photo")),
            ("fine_time", Some("fine")),
            ("infinity", Some("infinite")),
        ];
        assert_eq!(questions, open, "{name}");
        for question in &inference.questions {
            assert!(!question.remedies.is_empty(), "{question}");
        }
        // The answers that the questions name settle them.
        let flags = [("--types", "photo=string:hex"), ("--round", "fine"), ("--null", "inf")];
        let (settled, plan) = infer(&input, &options(&flags));
        assert!(settled.is_settled(), "{:?}", settled.questions);
        let expected = json!({
            "list": ["07", "x", null], "struct": {"price": "3.50", "tags": {"a": 1, "b": null}, "at": "10:00:00"},
            "numbered": [{"key": 1, "value": "a"}], "bytes": "café", "photo": "ffd8ff", "exact": "3.5", "whole": 7,
            "big": "18446744073709551615", "fine": "2024-05-01T08:00:00.123457Z", "took": "P1DT1M30S", "day": "2020-02-29",
        });
        assert_eq!(lines(&input, &plan), [expected], "{name}");
    }
}

#[test]
fn uuids_times_and_intervals_are_texts() {
    let input = file("duckdb.parquet");
    let (inference, plan) = infer(&input, &InferOptions::default());
    assert_eq!(
        kinds(&inference),
        [
            "id string",
            "at string",
            "span string",
            "exact decimal(1)",
            "day date",
            "local timestamp",
            "list json",
            "struct json"
        ]
    );
    let expected = json!({
        "id": "12345678-9abc-def0-1234-56789abcdef0", "at": "10:00:00.500", "span": "P2M3D", "exact": "3.5",
        "day": "2020-02-29", "local": "2024-03-31T02:30:00Z", "list": [1, null], "struct": {"a": "x", "b": [true]},
    });
    let mut found = lines(&input, &plan);
    // Digits at the end of a fraction say nothing.
    let at = found[0]["at"].as_str().unwrap().trim_end_matches('0').to_owned();
    assert_eq!(at, "10:00:00.5");
    found[0]["at"] = json!("10:00:00.500");
    assert_eq!(found, [expected]);
}

#[test]
fn a_local_time_that_does_not_exist_is_refused() {
    let input = file("duckdb.parquet");
    let (inference, plan) = infer(&input, &options(&[("--zone", "Europe/Berlin")]));
    assert_eq!(codes(&inference).0, [("ambiguous_time", Some("local"))]);
    assert_eq!(problems(&input, &plan), [(1, "local".to_owned(), "ambiguous_time")]);
    assert_eq!(
        lines(&input, &plan)[0]["local"],
        "2024-03-31T02:30:00",
        "the dataset refuses it"
    );
    let mut tokyo = options(&[("--zone", "Asia/Tokyo")]);
    let (_, plan) = infer(&input, &tokyo);
    assert_eq!(lines(&input, &plan)[0]["local"], "2024-03-30T17:30:00Z");
    // The flag wins over the zone of a reading.
    let reading =
        json!({"format": "json-lines", "columns": [{"from": "local", "to": "local", "zone": "Europe/Berlin"}]});
    tokyo.reading = Some(serde_json::from_value(reading).unwrap());
    let (_, plan) = infer(&input, &tokyo);
    assert_eq!(lines(&input, &plan)[0]["local"], "2024-03-30T17:30:00Z");
}

#[test]
fn polars_writes_arrow_with_zstd() {
    let input = file("polars.arrow");
    let (inference, plan) = infer(&input, &InferOptions::default());
    let expected = [
        "name string",
        "at timestamp",
        "category string",
        "took string",
        "nested json",
    ];
    assert_eq!(kinds(&inference), expected);
    let expected = json!({
        "name": "a", "at": "2024-05-01T08:00:00Z", "category": "x", "took": "PT1M30S", "nested": {"n": 1},
    });
    assert_eq!(lines(&input, &plan), [expected, json!({"name": "b", "category": "y"})]);
}

#[test]
fn a_workbook_keeps_the_types_of_its_cells() {
    let input = file("openpyxl.xlsx");
    let (inference, plan) = infer(&input, &InferOptions::default());
    assert_eq!(
        kinds(&inference),
        [
            "station_id string",
            "opened date",
            "elevation_m number",
            "seen timestamp",
            "ratio integer",
            "open_at string",
            "note string"
        ]
    );
    assert_eq!(inference.records, 3);
    let notes: Vec<String> = inference.notes.iter().map(ToString::to_string).collect();
    for expected in [
        "the sheet `Stations` is read; there is also `Readme`",
        "1 merged area",
        "1 hidden row and 1 hidden column",
        "1 × an error of a formula is null",
    ] {
        assert!(
            notes.iter().any(|note| note.contains(expected)),
            "{expected}: {notes:?}"
        );
    }
    let expected = [
        Value::Null,
        json!({
            "station_id": "0017", "opened": "1964-05-01", "elevation_m": 9.5, "seen": "2024-05-01T08:30:00Z",
            "open_at": "10:30:00", "note": "a\rb",
        }),
        json!({
            "station_id": "0018", "opened": "2001-12-24", "elevation_m": 120, "seen": "2024-05-02T09:00:00.5Z",
            "ratio": 2, "open_at": "23:59:59",
        }),
        Value::Null,
        json!({"station_id": "0019"}),
    ];
    assert_eq!(lines(&input, &plan), expected, "line N is row N");
    let (other, _) = infer(&input, &options(&[("--sheet", "Readme")]));
    assert_eq!((kinds(&other), other.records), (vec!["about string".to_owned()], 0));
    let none = infer_file(&input, FileFormat::Xlsx, &options(&[("--sheet", "None")])).unwrap_err();
    assert!(
        none.to_string().contains("its sheets are `Stations`, `Readme`"),
        "{none}"
    );
}

#[test]
fn the_header_of_a_sheet_may_stand_below_a_title_and_beside_empty_columns() {
    let input = file("xlsxwriter.xlsx");
    let (inference, plan) = infer(&input, &InferOptions::default());
    let fields = [
        "n integer",
        "day date",
        "took string",
        "mixed string",
        "total integer",
        "flag boolean",
    ];
    assert_eq!(kinds(&inference), fields);
    let mixed = inference.notes.iter().find(|note| note.code == "mixed").unwrap();
    assert_eq!((mixed.line, mixed.column.as_deref()), (Some(4), Some("mixed")));
    assert!(mixed.message.contains("the first of them in row 4: `n/a`"), "{mixed}");
    let skipped = inference
        .notes
        .iter()
        .any(|note| note.message.contains("rows 1 stand above the header"));
    assert!(skipped, "{:?}", inference.notes);
    let first = json!({"n": 1, "day": "2024-01-01", "took": "P1DT12H", "mixed": "n/a", "total": 2, "flag": true});
    assert_eq!(lines(&input, &plan)[3], first);
    let (again, plan) = infer(&input, &options(&[("--null", "mixed=n/a")]));
    assert_eq!(kinds(&again)[3], "mixed integer");
    assert_eq!(lines(&input, &plan)[4]["mixed"], 1);
}

#[test]
fn formulas_without_values_are_a_question() {
    let input = file("formulas.xlsx");
    let (inference, _) = infer(&input, &InferOptions::default());
    assert_eq!(codes(&inference).1, [("formulas", Some("double"))]);
    let (inference, plan) = infer(&input, &options(&[("--ignore", "double")]));
    assert!(inference.is_settled());
    assert_eq!(lines(&input, &plan), [Value::Null, json!({"n": 1})]);
}

#[test]
fn a_file_is_read_against_the_contract_of_a_dataset() {
    let field = |name: &str, kind| Field::new(name, kind);
    let fields = vec![
        field("station_id", FieldType::String),
        field("opened", FieldType::Timestamp),
        Field {
            title: Some("Elevation (m)".to_owned()),
            ..field("height", FieldType::Integer)
        },
        field("ratio", FieldType::Decimal(2)),
    ];
    let contract = Contract::new(fields, false).unwrap();
    let ignored = [("--ignore", "Seen"), ("--ignore", "Open at")];
    let options = InferOptions {
        contract: Some(contract),
        ..options(&ignored)
    };
    let input = file("openpyxl.xlsx");
    let (inference, plan) = infer(&input, &options);
    assert_eq!(codes(&inference).1, [("unknown_column", Some("Note"))]);
    assert!(
        inference
            .notes
            .iter()
            .any(|note| note.message.contains("taken as midnight"))
    );
    let found = lines(&input, &plan);
    let second = json!({"station_id": "0018", "opened": "2001-12-24T00:00:00Z", "height": 120, "ratio": "2.00"});
    assert_eq!(found[2], second);
    assert_eq!(
        problems(&input, &plan),
        [(2, "height".to_owned(), "value")],
        "9.5 is no integer"
    );
    assert_eq!(found[1]["height"], "9.5");
}

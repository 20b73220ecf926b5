//! JSON is read, checked and written in time that is linear in its text.

#![expect(
    clippy::unwrap_used,
    clippy::tests_outside_test_module,
    reason = "an integration test is a test module"
)]

use std::sync::Arc;

use growth::{SHAPES, Shape, consume, is_linear, is_linear_in};
use serde_json::{Value, json};
use types::batch::LineDecoder;
use types::json::{check_digits, lost_digits, outline, parse, whole_double};
use types::render::csv::CsvReader;
use types::{Batch, Contract, Field, FieldType, canonical};

fn contract() -> Arc<Contract> {
    let fields = vec![
        Field::new("text", FieldType::String),
        Field::new("value", FieldType::Json),
        Field::new("number", FieldType::Number),
    ];
    Arc::new(Contract::new(fields, true).unwrap())
}

#[test]
fn text_that_may_be_json_is_read_in_linear_time() {
    is_linear("the parser", 5_000, |text| consume(parse(text.as_bytes())));
    is_linear("the outline", 5_000, |text| {
        consume(outline(text.as_bytes(), "records"));
    });
    is_linear("the check of digits", 5_000, |text| {
        consume(check_digits(text.as_bytes()));
    });
    is_linear("one number", 5_000, |text| {
        whole_double(text);
    });
}

#[test]
fn a_cell_is_written_in_linear_time() {
    is_linear("a cell of CSV", 50_000, |text| {
        let mut cell = Vec::new();
        CsvReader::Spreadsheet.write_cell(text, &mut cell);
        consume(cell);
    });
}

/// Documents whose pieces are values.
const DOCUMENTS: &[Shape] = &[
    Shape::of("1,"),
    Shape::of("0.1,"),
    Shape::of("1e5,"),
    Shape::of("1#.5,"),
    Shape::of("12345678901234567890,"),
    Shape::of("0.12345678901234567890,"),
    Shape::of("\"a\","),
    Shape::of("\"\\u0041\","),
    Shape::of("[],"),
    Shape::of("{},"),
    Shape::of("{\"a\":1},"),
    Shape::of("{\"a#\":{\"b#\":#}},"),
    Shape::of("null,"),
];

#[test]
fn documents_are_read_in_linear_time() {
    let array = |text: String| format!("[{text}1]").into_bytes();
    is_linear_in("the parser", 5_000, DOCUMENTS, array, |text| {
        consume(parse(text));
    });
    is_linear_in("the check of digits", 5_000, DOCUMENTS, array, |text| {
        lost_digits(text);
    });
    let records = |text: String| format!("{{\"records\":[{text}1]}}").into_bytes();
    is_linear_in("the outline", 5_000, DOCUMENTS, records, |text| {
        consume(outline(text, "records"));
    });
    let members = |text: String| format!("{{{text}\"z\":1}}").into_bytes();
    let shapes = &[
        Shape::of("\"a#\":1,"),
        Shape::of("\"a\":1,"),
        Shape::of("\"a#\":\"a#\","),
    ];
    is_linear_in("the parser of members", 5_000, shapes, members, |text| {
        consume(parse(text));
    });
}

/// A name and a record with a text in this place.
type Place = (&'static str, fn(String) -> Value);

#[test]
fn records_are_decoded_in_linear_time() {
    let contract = contract();
    let places: [Place; 5] = [
        ("a field", |text| json!({"text": text})),
        ("a number", |text| json!({"number": text})),
        ("a name", |text| json!({text: 1})),
        (
            "an array",
            |text| json!({"value": text.chars().map(String::from).collect::<Vec<_>>()}),
        ),
        ("deep values", |text| {
            let wrap = |inner: Value, c: char| json!({c.to_string(): inner});
            json!({"value": text.chars().take(60).fold(Value::Null, wrap), "text": text})
        }),
    ];
    for (place, record) in places {
        let reader = format!("the decoder of {place}");
        is_linear_in(
            &reader,
            3_000,
            SHAPES,
            |text| [record(text)],
            |records| {
                Batch::decode(&contract, records);
            },
        );
        let reader = format!("the reader of lines with {place}");
        is_linear_in(
            &reader,
            3_000,
            SHAPES,
            |text| record(text).to_string(),
            |line| {
                let mut lines = LineDecoder::new(&contract, 1, line.len());
                consume(lines.push(line.as_bytes()));
                lines.finish();
            },
        );
        let reader = format!("the canonical form of {place}");
        is_linear_in(&reader, 3_000, SHAPES, record, |record| {
            canonical::write_value(&mut Vec::new(), record);
        });
    }
}

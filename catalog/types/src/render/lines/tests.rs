use std::sync::Arc;

use serde_json::{Map, Value, json};

use super::*;
use crate::{Batch, render};

type Records = Vec<Map<String, Value>>;

/// Records as their lines have them, and as they are.
fn lines(contract: &Value, records: &[Value]) -> (Records, Records) {
    let contract: Arc<Contract> = Arc::new(serde_json::from_value(contract.clone()).unwrap());
    let batch = Batch::decode(&contract, records);
    let rows = batch.columns();
    let mut written = Vec::new();
    let lines = RenderedLines::new(&contract, rows).unwrap();
    lines.write(0..lines.len() + 9, &mut written);
    let read = written.split_inclusive(|byte| *byte == b'\n');
    let read = read.map(|line| serde_json::from_slice(line).unwrap()).collect();
    (read, render::records_of(&contract, rows).unwrap())
}

#[test]
fn lines_are_what_records_are() {
    let contract = json!({"fields": [
        {"name": "na\"me", "type": "string"}, {"name": "count", "type": "integer"},
        {"name": "ratio", "type": "number"}, {"name": "ok", "type": "boolean"},
        {"name": "at", "type": "timestamp"}, {"name": "more", "type": "json"},
        {"name": "day", "type": "date"}, {"name": "price", "type": "decimal", "scale": 2},
    ], "allowExtra": true});
    let (lines, records) = lines(
        &contract,
        &[
            json!({"na\"me": "", "count": i64::MIN, "ratio": -0.0, "ok": false, "at": "0001-01-01T00:00:00Z",
                "more": {"a": [1, {"b": null}]}, "extra": {"x": [true]}, "온도": 1.5}),
            json!({"na\"me": "\"\\\u{8}\u{c}\n\r\t\u{1}\u{1f}\u{7f}é€😀/", "count": i64::MAX, "ratio": 1e300, "ok": true,
                "at": "2026-11-21T07:10:20.5Z", "more": "text"}),
            json!({"more": 18_446_744_073_709_551_615_u64, "ratio": 3, "at": "1969-12-31T23:59:59.999999Z"}),
            json!({"more": null, "day": "0001-01-01", "price": "-9.5"}),
            json!({"day": "9999-12-31", "price": "0"}),
        ],
    );
    assert_eq!(lines, records);
    assert_eq!(lines.len(), 5);
    assert_eq!(
        (&lines[3]["day"], &lines[3]["price"]),
        (&json!("0001-01-01"), &json!("-9.50"))
    );
}

#[test]
fn an_escape_is_found_wherever_it_stands() {
    let contract = json!({"fields": [{"name": "a", "type": "string"}]});
    let mut records = Vec::new();
    for length in 0..20 {
        for place in 0..=length {
            for special in ["\"", "\\", "\u{0}", "\u{1f}", "\u{80}", "\u{a0}", " ", "!", "é"] {
                let mut text = "x".repeat(length);
                text.insert_str(place, special);
                records.push(json!({ "a": text }));
            }
        }
    }
    let (lines, records) = lines(&contract, &records);
    assert_eq!(lines, records);
}

use std::io::Cursor;

use arrow::ipc::reader::StreamReader;
use serde_json::json;

use super::*;
use crate::Batch;

fn contract() -> Arc<Contract> {
    let contract = json!({"fields": [
        {"name": "name", "type": "string"}, {"name": "count", "type": "integer"}, {"name": "ratio", "type": "number"},
        {"name": "ok", "type": "boolean"}, {"name": "at", "type": "timestamp"}, {"name": "more", "type": "json"},
        {"name": "day", "type": "date"}, {"name": "price", "type": "decimal", "scale": 2},
    ], "allowExtra": true});
    Arc::new(serde_json::from_value(contract).unwrap())
}

#[test]
fn a_stream_has_the_rows_of_every_batch_and_marks_json() {
    let contract = contract();
    let first = Batch::decode(
        &contract,
        &[
            json!({"name": "", "count": i64::MIN, "ratio": 0.5, "ok": true, "at": "0001-01-01T00:00:00Z",
                "more": {"a": 1}, "day": "9999-12-31", "price": "-1.50", "x": 1}),
            json!({"name": null, "more": "text"}),
        ],
    );
    let second = Batch::decode(&contract, &[json!({"name": "é", "count": i64::MAX})]);
    let mut stream = ArrowStream::new(record_schema(&contract)).unwrap();
    let mut bytes = Vec::new();
    for batch in [&first, &second] {
        let piece = stream.encode(batch.columns()).unwrap();
        assert!(!piece.is_empty(), "a batch is encoded when it is given");
        bytes.extend(piece);
    }
    bytes.extend(stream.finish().unwrap());

    let reader = StreamReader::try_new(Cursor::new(bytes), None).unwrap();
    let schema = reader.schema();
    let marked: Vec<_> = schema
        .fields()
        .iter()
        .filter(|field| field.metadata().get("sluice.type").is_some_and(|kind| kind == "json"))
        .map(|field| field.name().as_str())
        .collect();
    assert_eq!(marked, ["more", "_sluice_extra"]);
    let read: Vec<_> = reader.map(Result::unwrap).collect();
    assert_eq!(read.len(), 2);
    for (read, sent) in read.iter().zip([first, second]) {
        assert_eq!(read.columns(), sent.columns().columns());
    }
}

#[test]
fn a_stream_of_no_rows_has_its_columns() {
    let contract = contract();
    let bytes = ArrowStream::new(record_schema(&contract)).unwrap().finish().unwrap();
    let reader = StreamReader::try_new(Cursor::new(bytes), None).unwrap();
    assert_eq!(reader.schema().fields().len(), 9);
    assert_eq!(reader.count(), 0);
}

#[test]
fn a_batch_of_other_columns_is_refused() {
    let contract = contract();
    let other: Arc<Contract> =
        Arc::new(serde_json::from_value(json!({"fields": [{"name": "a", "type": "string"}]})).unwrap());
    let mut stream = ArrowStream::new(record_schema(&contract)).unwrap();
    assert!(
        stream
            .encode(Batch::decode(&other, &[json!({"a": "b"})]).columns())
            .is_err()
    );
}

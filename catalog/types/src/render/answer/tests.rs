use arrow::array::{Array as _, AsArray as _};
use arrow::datatypes::{DataType, Date32Type, Float64Type, Int64Type, TimeUnit, TimestampMicrosecondType, UInt64Type};
use serde_json::value::to_raw_value;
use serde_json::{Value, json};

use super::*;

/// Reads an answer and gives its rows to a function.
fn with<T>(columns: &[(&str, &str)], rows: &[Value], of: impl FnOnce(AnswerRows<'_>) -> T) -> T {
    let rows: Vec<Box<RawValue>> = rows.iter().map(|row| to_raw_value(row).unwrap()).collect();
    of(AnswerRows::new(columns.iter().copied(), rows.iter().map(AsRef::as_ref)).unwrap())
}

fn batch(columns: &[(&str, &str)], rows: &[Value]) -> RecordBatch {
    with(columns, rows, |rows| rows.columns().unwrap())
}

#[test]
fn columns_keep_their_types_and_values() {
    let rows = batch(
        &[
            ("i", "Int64"),
            ("u", "UInt64"),
            ("f", "Float64"),
            ("b", "Boolean"),
            ("t", "Timestamp(µs, \"UTC\")"),
            ("d", "Decimal128(38, 2)"),
            ("j", "Json"),
            ("day", "Date32"),
            ("w", "Decimal256(76, 2)"),
        ],
        &[
            json!([i64::MIN, u64::MAX, "NaN", true, "2026-11-21T07:10:20.5Z",
                "-999999999999999999999999999999999999.50", {"a": 1}, "2020-02-29", "1.50"]),
            json!([null, null, null, null, null, null, null, null, null]),
            json!([
                0,
                0,
                "-Infinity",
                false,
                "0001-01-01T00:00:00Z",
                "0.00",
                "text",
                "0001-01-01",
                "-1.50"
            ]),
        ],
    );
    assert_eq!(rows.num_rows(), 3);
    assert_eq!(rows.column(0).as_primitive::<Int64Type>().value(0), i64::MIN);
    assert_eq!(rows.column(1).as_primitive::<UInt64Type>().value(0), u64::MAX);
    assert!(rows.column(2).as_primitive::<Float64Type>().value(0).is_nan());
    let last = rows.column(2).as_primitive::<Float64Type>().value(2);
    assert!(last.is_infinite() && last.is_sign_negative());
    assert_eq!(
        rows.column(4).data_type(),
        &DataType::Timestamp(TimeUnit::Microsecond, Some("UTC".into()))
    );
    let at: Timestamp = "2026-11-21T07:10:20.5Z".parse().unwrap();
    assert_eq!(
        rows.column(4).as_primitive::<TimestampMicrosecondType>().value(0),
        at.micros()
    );
    assert_eq!(rows.column(5).data_type(), &DataType::Decimal128(38, 2));
    assert_eq!(
        rows.column(5).as_primitive::<Decimal128Type>().value_as_string(0),
        "-999999999999999999999999999999999999.50"
    );
    assert_eq!(rows.column(7).as_primitive::<Date32Type>().value(0), 18_321);
    let texts = |column: usize| rows.column(column).as_string::<i32>().iter().collect::<Vec<_>>();
    // A JSON text stays JSON, and only that column is marked.
    assert_eq!(texts(6), [Some("{\"a\":1}"), None, Some("\"text\"")]);
    assert_eq!(rows.schema().field(6).metadata()["sluice.type"], "json");
    assert_eq!(texts(8), [Some("1.50"), None, Some("-1.50")]);
    assert!(rows.schema().field(8).metadata().is_empty());
    assert!(rows.columns().iter().all(|column| column.is_null(1)));
}

#[test]
fn a_column_with_a_value_of_another_type_is_text() {
    for (kind, value, text) in [
        ("Int64", json!("one"), "one"),
        ("Int64", json!(1.5), "1.5"),
        ("Boolean", json!("true"), "true"),
        ("Date32", json!("10000-01-01"), "10000-01-01"),
        ("Timestamp(µs, \"UTC\")", json!("yesterday"), "yesterday"),
        ("Decimal128(x)", json!("1.5"), "1.5"),
        ("List(Int64)", json!([1, null]), "[1,null]"),
        ("Binary", json!("6869"), "6869"),
    ] {
        let rows = batch(&[("a", kind)], &[json!([null]), json!([value])]);
        let column = rows.column(0).as_string::<i32>();
        assert!(column.is_null(0), "{kind}");
        assert_eq!(column.value(1), text, "{kind}");
    }
    // A sum that leaves 64 bits is a text beside numbers, and exact.
    let sums = batch(
        &[("a", "Decimal128(38, 0)")],
        &[json!([7]), json!(["92233720368547758070"])],
    );
    let sums = sums.column(0).as_primitive::<Decimal128Type>();
    assert_eq!((sums.value(0), sums.value(1)), (7, 92_233_720_368_547_758_070));
}

#[test]
fn lines_have_the_values_byte_for_byte() {
    let row = RawValue::from_string("[1.50, {\"a\":1e400}, \"x\\u0041\"]".to_owned()).unwrap();
    let columns = [("a\"", "Float64"), ("b", "Json"), ("c", "Utf8")];
    let mut text = Vec::new();
    AnswerRows::new(columns, [&*row]).unwrap().write_lines(&mut text);
    assert_eq!(
        String::from_utf8(text).unwrap(),
        "{\"a\\\"\":1.50,\"b\":{\"a\":1e400},\"c\":\"x\\u0041\"}\n"
    );
}

#[test]
fn a_name_that_comes_again_gets_a_number() {
    let columns = [
        ("a", "Int64"),
        ("a_2", "Int64"),
        ("a", "Int64"),
        ("a", "Int64"),
        ("b", "Int64"),
    ];
    let rows = batch(&columns, &[json!([1, 2, 3, 4, 5])]);
    let names: Vec<_> = rows
        .schema()
        .fields()
        .iter()
        .map(|field| field.name().clone())
        .collect();
    assert_eq!(names, ["a", "a_2", "a_3", "a_4", "b"]);
}

#[test]
fn an_answer_without_rows_or_columns_is_a_batch() {
    assert_eq!(batch(&[("a", "Int64")], &[]).num_rows(), 0);
    assert_eq!(batch(&[], &[json!([]), json!([])]).num_rows(), 2);
}

#[test]
fn a_row_that_does_not_fit_is_named() {
    let columns = [("a", "Int64"), ("b", "Int64")];
    for (row, words) in [
        ("{}", "row 1 is no JSON array"),
        ("[1]", "row 1 has 1 values and there are 2 columns"),
    ] {
        let rows = ["[1,2]", row].map(|text| RawValue::from_string(text.to_owned()).unwrap());
        let error = AnswerRows::new(columns, rows.iter().map(AsRef::as_ref)).unwrap_err();
        assert_eq!(error.to_string(), words);
    }
}

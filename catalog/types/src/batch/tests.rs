use super::*;
use arrow::array::AsArray as _;
use arrow::datatypes::Float64Type;
use serde_json::json;

fn contract(allow_extra: bool) -> Arc<Contract> {
    let def = json!({"fields": [
        {"name": "name", "type": "string", "required": true},
        {"name": "count", "type": "integer"},
        {"name": "ratio", "type": "number"},
        {"name": "ok", "type": "boolean"},
        {"name": "at", "type": "timestamp"},
        {"name": "more", "type": "json"}
    ], "allowExtra": allow_extra});
    Arc::new(serde_json::from_value(def).unwrap())
}

fn decode(allow_extra: bool, records: &[Value]) -> Batch {
    Batch::decode(&contract(allow_extra), records)
}

fn key_of(record: Value) -> String {
    let batch = decode(true, &[record]);
    assert_eq!(batch.defects(), []);
    format!("{:?}", batch.keys()[0])
}

fn text_of(record: Value) -> String {
    String::from_utf8(decode(true, &[record]).canonical(0).to_vec()).unwrap()
}

/// Frozen: these keys are stored in tables.
#[test]
fn golden_vectors_of_the_canonical_form_and_its_key() {
    let vectors = [
        (json!({"name": "a"}), r#"{"name":"a"}"#),
        (json!({"count": 1.0, "name": "a"}), r#"{"count":1,"name":"a"}"#),
        (json!({"ratio": 1, "name": "é"}), r#"{"name":"é","ratio":1}"#),
        (
            json!({"ratio": -0.0, "name": "e\u{301}"}),
            "{\"name\":\"e\u{301}\",\"ratio\":0}",
        ),
        (
            json!({"name": "a", "at": "2026-11-21T16:00:00.10+09:00"}),
            r#"{"at":"2026-11-21T07:00:00.1Z","name":"a"}"#,
        ),
        (
            json!({"name": "a", "more": {"z": [1.50, null], "b": "\n"}}),
            r#"{"more":{"b":"\n","z":[1.5,null]},"name":"a"}"#,
        ),
        (
            json!({"name": "a", "zz": 1e21, "aa": true}),
            r#"{"aa":true,"name":"a","zz":1e+21}"#,
        ),
    ];
    let keys: Vec<_> = vectors.iter().map(|(record, _)| key_of(record.clone())).collect();
    for (record, canonical) in vectors {
        assert_eq!(text_of(record), canonical);
    }
    assert_eq!(keys, GOLDEN_KEYS);
}

const GOLDEN_KEYS: [&str; 7] = [
    "87cf8d2707f5a132f42b8d9d00b1ebad",
    "49791f7f447f9b0488d5927b3c6f83df",
    "16ad2d5834c5c6e87ed7cfd0f6f2639b",
    "9f7779ef677a4792c83688ac01063c56",
    "6276eba1511fc16faaa56e236d80f970",
    "314ada192eeb858fe9441fa270f64ae2",
    "fdf34131c75bd72336599edb07282073",
];

#[test]
fn there_is_one_zero_however_it_is_written() {
    let contract = contract(true);
    let mut lines = LineDecoder::new(&contract, 3, 100);
    let texts = [
        &br#"{"name":"a","ratio":-0.0}"#[..],
        br#"{"name":"a","ratio":-0e0}"#,
        br#"{"ratio":-0.0,"name":"\u0061"}"#,
    ];
    for text in texts {
        lines.push(text).unwrap();
    }
    let values = texts.map(|text| serde_json::from_slice(text).unwrap());
    for batch in [lines.finish(), decode(true, &values)] {
        let column = batch.columns().column_by_name("ratio").unwrap();
        let doubles = column.as_primitive::<Float64Type>().values();
        assert!(doubles.iter().all(|double| double.to_bits() == 0), "{doubles:?}");
    }
}

#[test]
fn spellings_of_one_record_have_one_key() {
    let same = [
        json!({"name": "a", "count": 1}),
        json!({"count": 1, "name": "a"}),
        json!({"count": 1.0, "name": "a", "ratio": null}),
        json!({"name": "a", "count": 1, "unknown": null}),
    ];
    let keys: std::collections::HashSet<_> = same.into_iter().map(key_of).collect();
    assert_eq!(keys.len(), 1);
}

#[test]
fn different_records_have_different_keys() {
    let different = [
        json!({"name": "é"}),
        json!({"name": "e\u{301}"}),
        json!({"name": "1"}),
        json!({"name": "1", "count": 1}),
        json!({"name": "1", "ratio": 1}),
        json!({"name": "1", "extra": 1}),
        json!({"name": "1", "extra": "1"}),
    ];
    let keys: std::collections::HashSet<_> = different.iter().cloned().map(key_of).collect();
    assert_eq!(keys.len(), different.len());
}

#[test]
fn every_misfit_is_named() {
    let batch = decode(
        false,
        &[
            json!({"name": "fine"}),
            json!({"name": 7, "count": 1.5, "ratio": "x", "ok": 1, "at": "yesterday"}),
            json!({"count": 9_223_372_036_854_775_808_u64, "ratio": 9_007_199_254_740_993_i64, "name": null}),
            json!({"name": "x", "wrong/name": {}}),
            json!([1]),
            json!({"name": "y", "count": 9_007_199_254_740_992.0_f64}),
        ],
    );
    let seen: Vec<_> = batch
        .defects()
        .iter()
        .map(|d| (d.row, d.code, d.path.as_str(), d.actual.as_str()))
        .collect();
    let mut expected = vec![
        (1, "type", "/at", "string"),
        (1, "type", "/count", "number 1.5"),
        (1, "type", "/name", "integer 7"),
        (1, "type", "/ok", "integer 1"),
        (1, "type", "/ratio", "string"),
        (2, "range", "/count", "integer 9223372036854775808"),
        (2, "missing", "/name", "null"),
        (2, "range", "/ratio", "integer 9007199254740993"),
        (3, "extra", "/wrong~1name", "object"),
        (4, "not_object", "", "array"),
        (5, "range", "/count", "number 9007199254740992.0"),
    ];
    expected.sort_unstable();
    let mut sorted = seen;
    sorted.sort_unstable();
    assert_eq!(sorted, expected);
    assert_eq!(batch.len(), 6);
}

/// Frozen: these keys are stored in tables.
#[test]
fn golden_vectors_of_days_and_decimals() {
    let contract = Arc::new(
        serde_json::from_value(json!({"fields": [
            {"name": "day", "type": "date"}, {"name": "price", "type": "decimal", "scale": 2},
            {"name": "wei", "type": "decimal", "scale": 0},
        ]}))
        .unwrap(),
    );
    let records = [
        json!({"day": "2020-02-29", "price": "12.5", "wei": "170141183460469231731"}),
        json!({"price": "-0.00"}),
        json!({"price": -7}),
    ];
    let batch = Batch::decode(&contract, &records);
    assert_eq!(batch.defects(), []);
    let canonical = |row| String::from_utf8(batch.canonical(row).to_vec()).unwrap();
    assert_eq!(
        [canonical(0), canonical(1), canonical(2)],
        [
            r#"{"day":"2020-02-29","price":"12.50","wei":"170141183460469231731"}"#,
            r#"{"price":"0.00"}"#,
            r#"{"price":"-7.00"}"#,
        ]
    );
    let keys: Vec<_> = batch.keys().iter().map(|key| format!("{key:?}")).collect();
    assert_eq!(
        keys,
        [
            "f07564a993a528be6cb969d4febc2aeb",
            "5d3306a2e598ffaa46f5674076f91872",
            "91e1b501ffd9bb61d1d3c297b1d573e3",
        ]
    );
}

#[test]
fn a_day_or_decimal_that_does_not_fit_says_what_to_send() {
    let contract = Arc::new(
        serde_json::from_value(json!({"fields": [
            {"name": "day", "type": "date"}, {"name": "price", "type": "decimal", "scale": 2},
        ]}))
        .unwrap(),
    );
    let text = "decimal: digits without leading zeros, at most 26 before and 2 after the point";
    let number = format!("{text}; send more than 15 digits as text");
    for (record, code, expected, actual) in [
        (
            json!({"day": "2021-02-29"}),
            "type",
            "date: YYYY-MM-DD, years 0001 to 9999, a day that exists",
            "string",
        ),
        (json!({"price": "012.5"}), "type", text, "string"),
        (json!({"price": "1e3"}), "type", text, "string"),
        (json!({"price": "1.234"}), "range", text, "string"),
        (
            json!({"price": 0.300_000_000_000_000_04}),
            "range",
            &*number,
            "number 0.30000000000000004",
        ),
        (json!({"price": [1]}), "type", text, "array"),
    ] {
        let batch = Batch::decode(&contract, &[record]);
        let defect = &batch.defects()[0];
        assert_eq!(
            (defect.code, &*defect.expected, &*defect.actual),
            (code, expected, actual)
        );
    }
}

#[test]
fn of_many_defects_of_a_row_the_first_are_named_and_the_others_counted() {
    let wrong = |count: usize| {
        let members = (0..count).map(|index| (format!("x{index:03}"), json!(1)));
        Value::Object(members.chain([("name".to_owned(), json!("a"))]).collect())
    };
    let batch = decode(false, &[wrong(MAX_DEFECTS), wrong(5_000), wrong(1)]);
    let of = |row: usize| batch.defects().iter().filter(move |defect| defect.row == row);
    assert!(of(0).all(|defect| defect.code == "extra"));
    assert_eq!([0, 1, 2].map(|row| of(row).count()), [MAX_DEFECTS, MAX_DEFECTS, 1]);
    let last = of(1).next_back().unwrap();
    assert_eq!((last.code, last.actual.as_str()), ("more", "4981 more"));
}

#[test]
fn text_of_any_length_keeps_its_escapes() {
    for length in 0..100 {
        for mark in ["", "\"", "\\", "\n", "\u{1f}", "é"] {
            let text = format!("{}{mark}{}", "x".repeat(length), "y".repeat(length % 7));
            let canonical = text_of(json!({"name": text}));
            assert_eq!(
                serde_json::from_str::<Value>(&canonical).unwrap(),
                json!({"name": text})
            );
            assert_eq!(
                canonical,
                format!(r#"{{"name":{}}}"#, serde_json::to_string(&text).unwrap())
            );
        }
    }
}

#[test]
fn filtering_keeps_rows_keys_and_positions_together() {
    let records: Vec<_> = (0..6).map(|i| json!({"name": format!("n{i}"), "extra": i})).collect();
    let batch = decode(true, &records);
    let odd = batch.filter(&[false, true, false, true, false, true]).unwrap();
    assert_eq!(odd.positions(), [1, 3, 5]);
    assert_eq!(odd.keys(), [batch.keys()[1], batch.keys()[3], batch.keys()[5]]);
    assert_eq!(odd.canonical(2), batch.canonical(5));
    assert_eq!(
        crate::render::records(odd.columns()).unwrap()[0],
        *records[1].as_object().unwrap()
    );
    assert!(batch.filter(&[true]).is_err());
    let again = odd.filter(&[true, false, true]).unwrap();
    assert_eq!((again.positions(), again.len()), (&[1, 5][..], 2));
    assert_eq!(again.keys(), [batch.keys()[1], batch.keys()[5]]);
    assert_eq!(
        [again.canonical(0), again.canonical(1)],
        [batch.canonical(1), batch.canonical(5)]
    );
}

#[test]
fn filtering_keeps_what_is_wrong_with_the_rows_that_stay() {
    let records: Vec<_> = (0..6)
        .map(|i| {
            if i % 3 == 0 {
                json!({"name": i})
            } else {
                json!({"name": "n"})
            }
        })
        .collect();
    let batch = decode(true, &records);
    let rows = |batch: &Batch| batch.defects().iter().map(|defect| defect.row).collect::<Vec<_>>();
    assert_eq!(rows(&batch), [0, 3]);
    let kept = batch.filter(&[false, true, false, true, true, true]).unwrap();
    assert_eq!(rows(&kept), [1]);
    assert_eq!(kept.defects()[0].path, "/name");
    assert!(rows(&kept.filter(&[true, false, true, true]).unwrap()).is_empty());
}

#[test]
fn keys_are_the_same_whenever_they_are_asked_for() {
    let records: Vec<_> = (0..6).map(|i| json!({"name": format!("n{i}")})).collect();
    let keep = [false, true, true, false, false, true];
    let (asked, unasked) = (decode(true, &records), decode(true, &records));
    let keys = asked.keys().to_vec();
    let expected = [keys[1], keys[2], keys[5]];
    assert_eq!(asked.filter(&keep).unwrap().keys(), expected);
    assert_eq!(unasked.filter(&keep).unwrap().keys(), expected);
    assert_eq!(unasked.keys(), keys);
}

use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;

fn contract(extra: bool) -> Arc<Contract> {
    let def = json!({"fields": [
        {"name": "name", "type": "string", "required": true},
        {"name": "count", "type": "integer"},
        {"name": "ratio", "type": "number"},
        {"name": "good", "type": "boolean"},
        {"name": "at", "type": "timestamp"},
        {"name": "more", "type": "json"},
        {"name": "day", "type": "date"},
        {"name": "price", "type": "decimal", "scale": 2},
        {"name": "Ünï", "type": "string"}
    ], "allowExtra": extra});
    Arc::new(serde_json::from_value(def).unwrap())
}

/// Reads the lines both ways and compares everything; how many were plain.
fn agree(lines: &[&[u8]], extra: bool) -> usize {
    let contract = contract(extra);
    let mut quick = LineDecoder::new(&contract, 1, 64);
    let mut records = Vec::new();
    for line in lines {
        match json::parse(line) {
            Ok(record) => {
                quick.push(line).unwrap();
                records.push(record);
            }
            Err(error) => assert_eq!(quick.push(line).unwrap_err(), error, "{}", line.escape_ascii()),
        }
    }
    let plain = quick.plain;
    let (slow, fast) = (Batch::decode(&contract, &records), quick.finish());
    assert_eq!(fast.len(), records.len());
    assert_eq!(fast.columns(), slow.columns());
    assert_eq!(fast.keys(), slow.keys());
    assert_eq!(fast.defects(), slow.defects());
    assert_eq!(fast.positions(), slow.positions());
    for row in 0..slow.len() {
        assert_eq!(
            fast.canonical(row).escape_ascii().to_string(),
            slow.canonical(row).escape_ascii().to_string()
        );
    }
    plain
}

fn plain(line: &str) -> bool {
    agree(&[line.as_bytes()], false) == 1
}

#[test]
fn usual_records_are_plain() {
    for line in [
        r#"{"name":"a"}"#,
        r#"{"name": "a", "count": 7, "ratio": 0.25, "good": true, "at": "2026-11-21T07:00:00Z", "more": null}"#,
        r#" { "ratio" : -1.5e-3 , "name" : "é 😀" , "count" : -12 } "#,
        r#"{"name":"","ratio":12,"good":false,"Ünï":"x"}"#,
        r#"{"name":"a","ratio":9007199254740992,"count":999999999999999999}"#,
        r#"{"name":"a","ratio":-0.0,"count":0}"#,
        r#"{"name":"a","day":"2020-02-29","price":"12.5"}"#,
        r#"{"name":"a","price":-12.5}"#,
        r#"{"name":"a","price":7}"#,
    ] {
        assert!(plain(line), "{line}");
    }
}

#[test]
fn unusual_records_take_the_slow_path_with_equal_results() {
    for line in [
        "{}",
        r#"{"name":null}"#,
        r#"{"count":1}"#,
        r#"{"name":"a","name":"b"}"#,
        r#"{"name":"a","count":null,"count":null}"#,
        r#"{"name":"a","count":1.0}"#,
        r#"{"name":"a","count":1.5}"#,
        r#"{"name":"a","count":"1"}"#,
        r#"{"name":"a","count":-0}"#,
        r#"{"name":"a","count":9223372036854775807}"#,
        r#"{"name":"a","count":9223372036854775808}"#,
        r#"{"name":"a","ratio":9007199254740993}"#,
        r#"{"name":"a","ratio":1e400}"#,
        r#"{"name":"a","ratio":01}"#,
        r#"{"name":"a","ratio":1.}"#,
        r#"{"name":"a","ratio":.5}"#,
        r#"{"name":"a","ratio":-}"#,
        r#"{"name":"a","ratio":1e}"#,
        r#"{"name":"a\n"}"#,
        r#"{"name":"\u0041"}"#,
        r#"{"name":"a","at":"2026-11-21T07:00:00.5Z"}"#,
        r#"{"name":"a","at":"2026-11-21T08:00:00+01:00"}"#,
        r#"{"name":"a","at":"2026-02-30T08:00:00Z"}"#,
        r#"{"name":"a","day":"2021-02-29"}"#,
        r#"{"name":"a","day":20200229}"#,
        r#"{"name":"a","price":"012.5"}"#,
        r#"{"name":"a","price":"1.234"}"#,
        r#"{"name":"a","price":1e3}"#,
        r#"{"name":"a","price":12.50}"#,
        r#"{"name":"a","price":0.30000000000000004}"#,
        r#"{"name":"a","price":1234567890123456}"#,
        r#"{"name":"a","price":true}"#,
        r#"{"name":"a","more":{"b":[1]}}"#,
        r#"{"name":"a","more":1}"#,
        r#"{"name":"a","other":1}"#,
        r#"{"name":"a",}"#,
        r#"{"name":"a"} {"name":"b"}"#,
        r#"{"name":"a"}x"#,
        r#"{"name":"a""#,
        r#"{"name"}"#,
        r#"{"name":tru}"#,
        r#"{"name":"a","good":truex}"#,
        "[]",
        r#""a""#,
        "null",
        "{\"name\":\"a\u{1}\"}",
        "{\"name\":\"a\u{0}\"}",
        "\u{feff}{\"name\":\"a\"}",
        "",
    ] {
        assert!(!plain(line), "{line}");
        agree(&[line.as_bytes()], true);
    }
    assert_eq!(agree(&[b"{\"name\":\"\xff\"}"], false), 0);
}

#[test]
fn records_of_changing_order_and_with_others_between_keep_their_values() {
    let lines: [&[u8]; 6] = [
        br#"{"name":"a","count":1,"good":true}"#,
        br#"{"count":2,"name":"b"}"#,
        br#"{"good":false,"name":"c\n","count":3}"#,
        br#"{"good":true,"name":"d"}"#,
        b"not json",
        br#"{"name":"e","count":5,"ratio":1}"#,
    ];
    assert_eq!(agree(&lines, false), 4);
    assert_eq!(agree(&lines, true), 4);
}

#[test]
fn a_line_that_differs_in_any_byte_from_the_one_before_is_read_as_if_alone() {
    let line = "{ \"name\" : \"é 😀 and more than that\" ,                  \"count\"    : 12,\"Ünï\":\"x\",\"ratio\":-0.125 }";
    assert!(plain(line));
    for at in 0..line.len() {
        for byte in *b" \"\\x0.,}\x1f\x80\xc3\xff" {
            let mut other = line.as_bytes().to_vec();
            other[at] = byte;
            agree(&[line.as_bytes(), &other, line.as_bytes()], true);
        }
        agree(&[line.as_bytes(), &line.as_bytes()[..at], line.as_bytes()], true);
    }
}

fn value() -> impl Strategy<Value = String> {
    prop_oneof![
        "[a-z\"{}:, é]{0,6}".prop_map(|text| Value::from(text).to_string()),
        any::<i64>().prop_map(|number| number.to_string()),
        (-50_i64..50).prop_map(|number| number.to_string()),
        any::<f64>().prop_map(|number| number.to_string()),
        "-?[0-9]{0,20}\\.?[0-9]{0,3}([eE][+-]?[0-9]{0,3})?",
        Just("true".to_owned()),
        Just("null".to_owned()),
        Just("\"2026-11-21T07:00:00Z\"".to_owned()),
        "\"[0-9]{4}-[01][0-9]-[0-3][0-9]\"",
        "\"-?[0-9]{0,29}(\\.[0-9]{0,4})?\"",
        Just("[1,{}]".to_owned()),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, cases: 512, ..ProptestConfig::default() })]

    #[test]
    fn whatever_the_lines_are_both_ways_agree(
        records in prop::collection::vec(
            prop::collection::vec(
                (prop::sample::select(vec![
                    "name", "count", "ratio", "good", "at", "more", "day", "price", "Ünï", "other",
                ]), value()),
                0..7,
            ),
            1..6,
        ),
        space in "[ \t]{0,2}",
        extra: bool,
    ) {
        let lines: Vec<String> = records
            .iter()
            .map(|members| {
                let members: Vec<String> =
                    members.iter().map(|(name, value)| format!("\"{name}\"{space}:{space}{value}")).collect();
                format!("{{{}}}", members.join(&format!("{space},")))
            })
            .collect();
        let lines: Vec<&[u8]> = lines.iter().map(String::as_bytes).collect();
        agree(&lines, extra);
    }
}

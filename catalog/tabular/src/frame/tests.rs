use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;

/// A record as a test sees it: its line and its text.
type Seen = (u64, String);

struct Slowly<'a>(&'a [u8], usize);

impl Read for Slowly<'_> {
    fn read(&mut self, to: &mut [u8]) -> io::Result<usize> {
        let most = self.1.min(to.len());
        self.0.read(&mut to[..most])
    }
}

fn read(text: &[u8], reading: &Value, at_once: usize) -> Result<Vec<Seen>, FrameError> {
    let reading: Reading = serde_json::from_value(reading.clone()).unwrap();
    let mut reader = RecordReader::new(Slowly(text, at_once), &reading).unwrap();
    let mut records = Vec::new();
    loop {
        let mut text = Vec::new();
        match reader.read(&mut text)? {
            None => return Ok(records),
            Some(record) => {
                assert_eq!(record.number, records.len() as u64);
                records.push((record.line, String::from_utf8_lossy(&text).into_owned()));
            }
        }
    }
}

#[track_caller]
fn frames(text: &str, reading: &Value, expected: &[(u64, &str)]) {
    let expected: Vec<Seen> = expected
        .iter()
        .map(|(line, text)| (*line, (*text).to_owned()))
        .collect();
    for at_once in [1, 7, usize::MAX] {
        assert_eq!(
            read(text.as_bytes(), reading, at_once).unwrap(),
            expected,
            "{text:?} by {at_once}"
        );
    }
}

#[track_caller]
fn fails(text: &str, reading: &Value, code: &str, words: &str) {
    for at_once in [1, usize::MAX] {
        let error = read(text.as_bytes(), reading, at_once).unwrap_err();
        assert_eq!(error.code(), code, "{text:?}: {error}");
        assert!(error.to_string().contains(words), "{text:?}: {error}");
    }
}

fn csv(columns: &[&str]) -> Value {
    let columns: Vec<_> = columns.iter().map(|from| json!({"from": from, "to": null})).collect();
    json!({"format": "csv", "columns": columns})
}

#[test]
fn rows_have_the_line_on_which_they_begin_and_blank_ones_are_passed_over() {
    frames("a,b\n1,2\n,\n\n3,4", &csv(&["a", "b"]), &[(2, "1,2"), (5, "3,4")]);
    frames(
        "a,b\r\n\"1\r\n\",2\r\r3,4\r\n",
        &csv(&["a", "b"]),
        &[(2, "\"1\r\n\",2"), (5, "3,4")],
    );
    frames("\"a\" , b \n1,2", &csv(&["a", "b"]), &[(2, "1,2")]);
    let reading = csv(&["a", "b"]);
    let reading: Reading = serde_json::from_value(reading).unwrap();
    let mut reader = RecordReader::new(&b"a,b\n1,2\n,\n\n3,4\n,\n"[..], &reading).unwrap();
    while reader.read(&mut Vec::new()).unwrap().is_some() {}
    assert_eq!(reader.blank_rows(), 3);
}

#[test]
fn a_header_stands_where_the_reading_says_and_has_its_names() {
    let on_line = |line: u64, columns: &[&str]| {
        let mut reading = csv(columns);
        reading["headerLine"] = json!(line);
        reading
    };
    frames("Report \"2024\n\na,b\n1,2", &on_line(3, &["a", "b"]), &[(4, "1,2")]);
    frames("\"Report\na,b\n1,2", &on_line(2, &["a", "b"]), &[(3, "1,2")]);
    frames("1,2\n3,4", &on_line(0, &["a", "b"]), &[(1, "1,2"), (2, "3,4")]);
    frames("# a,b\n1,2", &on_line(1, &["a", "b"]), &[(2, "1,2")]);
    frames("#a,b\n1,2", &on_line(1, &["#a", "b"]), &[(2, "1,2")]);
    frames("a,b\nx,1,2", &on_line(1, &["row_name", "a", "b"]), &[(2, "x,1,2")]);
    fails(
        "a,b\n1,2",
        &on_line(1, &["a", "c"]),
        "header_differs",
        "column 2 is not `c`",
    );
    fails(
        "a,b\n1,2",
        &on_line(1, &["a"]),
        "header_differs",
        "2 columns, the reading has 1",
    );
    fails("a\n", &on_line(2, &["a"]), "header_differs", "ends before");
    fails("\n\na\n", &on_line(1, &["a"]), "header_differs", "empty");
    fails("", &on_line(1, &["a"]), "header_differs", "ends before");
    // A header that is no header is a row, and rows are not repeated.
    let error = read(b"secret,b\n", &on_line(1, &["a", "b"]), 9).unwrap_err();
    assert!(!error.to_string().contains("secret"), "{error}");
}

#[test]
fn lines_are_left_out_by_number() {
    let mut reading = csv(&["a", "b"]);
    reading["skipLines"] = json!([2, 5, 9]);
    frames(
        "a,b\n\"units,m\n1,2\n\nTotal,\"9\n3,4\n",
        &reading,
        &[(3, "1,2"), (6, "3,4")],
    );
    reading["headerLine"] = json!(0);
    reading["skipLines"] = json!([1, 2]);
    frames("# comment\r\n\r\n1,2\r\n", &reading, &[(3, "1,2")]);
}

#[test]
fn an_unclosed_quote_names_its_line_and_column() {
    fails(
        "x,y\n1,\"6 ft\n2,b\n3,c\n",
        &csv(&["x", "y"]),
        "unclosed_quote",
        "line 2: the quote that opens column `y` is never closed",
    );
    let mut unquoted = csv(&["x", "y"]);
    unquoted["quote"] = Value::Null;
    frames("x,y\n1,\"6 ft\n2,b", &unquoted, &[(2, "1,\"6 ft"), (3, "2,b")]);
}

#[test]
fn quotes_are_quotes_also_if_no_line_before_has_one() {
    let mut text = "a,b\n".to_owned();
    text.push_str(&"1,2\n".repeat(600_000));
    text.push_str("1,\"a\nb\"\n2,3");
    let reading: Reading = serde_json::from_value(csv(&["a", "b"])).unwrap();
    let mut reader = RecordReader::new(text.as_bytes(), &reading).unwrap();
    let mut lines = Vec::new();
    let mut record = Vec::new();
    while let Some(framed) = reader.read(&mut record).unwrap() {
        lines.push(framed.line);
        if framed.line == 600_002 {
            assert_eq!(record, b"1,\"a\nb\"");
        }
        record.clear();
    }
    assert_eq!(lines[599_999..], [600_001, 600_002, 600_004]);
}

#[test]
fn json_lines_are_cut_at_line_feeds() {
    frames(
        "{\"a\":1}\r\n\n  \n {\"a\":\n2}",
        &json!({}),
        &[(1, "{\"a\":1}"), (4, "{\"a\":"), (5, "2}")],
    );
}

#[test]
fn records_of_a_document_are_found_by_their_pointer() {
    let at = |records: &str| json!({"format": "json", "records": records});
    frames(
        "{\"meta\":{},\n\"rows\":[\n  {\"a\":1},\n  {\"a\":\n2}\n]\n}\n",
        &at("/rows"),
        &[(3, "{\"a\":1}"), (4, "{\"a\":\n2}")],
    );
    frames(
        r#"{"data":{"x":"]}\"","items":[{"a":[{}]},5,"x",[],null]},"included":[{}]}"#,
        &at("/data/items"),
        &[(1, r#"{"a":[{}]}"#), (1, "5"), (1, "\"x\""), (1, "[]"), (1, "null")],
    );
    frames(r#"[{},[{"b":1}]]"#, &at("/1"), &[(1, r#"{"b":1}"#)]);
    frames(r#"{"a/b":{"c~":{"d":1}}}"#, &at("/a~1b/c~0"), &[(1, r#"{"d":1}"#)]);
    frames("[]", &at(""), &[]);
    frames("", &at(""), &[]);
    frames(
        "[{\"a\":1} ,\n{\"a\":2}]\n",
        &at(""),
        &[(1, "{\"a\":1}"), (2, "{\"a\":2}")],
    );
    frames(
        "{\"a\":1}{\"a\":2}\n\n{\"a\":3}",
        &at(""),
        &[(1, "{\"a\":1}"), (1, "{\"a\":2}"), (3, "{\"a\":3}")],
    );
    for (text, records, words) in [
        ("{\"a\":[]}", "/b", "no records at `/b`"),
        ("{\"a\":5}", "/a", "expected an object, or an array"),
        ("{\"a\":5}", "/a/b", "no records"),
        ("[{}]", "/3", "no records"),
        ("{\"a\":[{}],\"a\":[{}]}", "/a", "a second time"),
        ("{\"a\":[{}]", "/a", "expected `,`"),
        ("{\"a\":[{}]} x", "/a", "text follows"),
        ("[{}{}]", "", "expected `,`"),
        ("[{},]", "", "expected a value"),
        ("[{}", "", "expected `,`"),
        (
            "[{\"a\":1}\n,{\"b\":",
            "",
            "line 2: the value that begins here never ends",
        ),
        ("[{\"a\":\"x}]", "", "never ends"),
        ("5", "", "expected an object"),
        ("{a:1}", "/a", "name of a member"),
        ("{\"a\" 1}", "/a", "expected `:`"),
        ("{\"b\":,\"a\":[]}", "/a", "expected a value"),
    ] {
        fails(text, &at(records), "malformed_json", words);
    }
}

#[test]
fn records_by_key_come_with_their_names() {
    let by_key = json!({"format": "json", "members": "key"});
    frames(
        "{\"de\": {\"cap\":\"Berlin\"},\n \"f\\\"r\" :{\"cap\":\"Paris\"}}",
        &by_key,
        &[
            (1, "\"de\":{\"cap\":\"Berlin\"}"),
            (2, "\"f\\\"r\":{\"cap\":\"Paris\"}"),
        ],
    );
    let within = json!({"format": "json", "records": "/all", "members": "key"});
    frames("{\"all\":{\"a\":{}},\"x\":[1]}", &within, &[(1, "\"a\":{}")]);
    fails("[{}]", &by_key, "malformed_json", "expected an object whose members");
}

#[test]
fn a_record_that_is_too_long_is_passed_over_in_bounded_memory() {
    let long = "x".repeat(2 * MAX_RECORD_BYTES);
    for (text, reading) in [
        (format!("a,b\n{long},1\n2,3\n"), csv(&["a", "b"])),
        (format!("{{\"a\":\"{long}\"}}\n{{}}\n"), json!({})),
        (format!("[{{\"a\":\"{long}\"}},{{}}]"), json!({"format": "json"})),
    ] {
        let reading: Reading = serde_json::from_value(reading).unwrap();
        let mut reader = RecordReader::new(text.as_bytes(), &reading).unwrap();
        let mut text = Vec::new();
        let first = reader.read(&mut text).unwrap().unwrap();
        assert!(first.is_too_long && text.len() <= MAX_RECORD_BYTES);
        text.clear();
        let second = reader.read(&mut text).unwrap().unwrap();
        assert!(!second.is_too_long && text.len() < 10, "{second:?}");
        assert_eq!(reader.read(&mut text).unwrap(), None);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    /// The records of a document are those that a parser of the whole finds.
    #[test]
    fn records_of_a_document_are_those_of_a_parser(
        records in prop::collection::vec(document(), 0..6),
        beside in document(),
        is_pretty in any::<bool>(),
        at_once in 1_usize..30,
    ) {
        let whole = json!({"a": beside, "rows": records, "z": [beside]});
        let text = if is_pretty { serde_json::to_string_pretty(&whole) } else { serde_json::to_string(&whole) }.unwrap();
        let found = read(text.as_bytes(), &json!({"format": "json", "records": "/rows"}), at_once).unwrap();
        let found: Vec<Value> = found.iter().map(|(_, text)| serde_json::from_str(text).unwrap()).collect();
        prop_assert_eq!(found, records);
    }

    /// Whatever a text says, reading ends, and alike however it is cut.
    #[test]
    fn any_text_is_framed_alike(text in "[\\[\\]{}\",:a1\\\\ \n]{0,40}", records in "(|/a)", at_once in 1_usize..9) {
        for reading in [json!({"format": "json", "records": records}), json!({"format": "json", "members": "k"}), json!({})] {
            let whole = read(text.as_bytes(), &reading, usize::MAX);
            let pieces = read(text.as_bytes(), &reading, at_once);
            prop_assert_eq!(format!("{whole:?}"), format!("{pieces:?}"));
        }
    }
}

fn document() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i32>().prop_map(Value::from),
        "[ -~\n\t\"\\\\]{0,6}".prop_map(Value::from),
    ];
    leaf.prop_recursive(3, 16, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::btree_map("[a-c\"\\\\]{0,3}", inner, 0..4)
                .prop_map(|members| Value::Object(members.into_iter().collect())),
        ]
    })
}

use std::sync::Arc;

use serde_json::{Value, json};
use types::batch::LineDecoder;

use super::*;
use crate::frame::RecordReader;

/// A record as a test sees it: its line, and its value or the code, path and problem of each fault.
type Seen = (u64, Result<Value, Vec<(&'static str, String, String)>>);

fn field(name: &str, kind: &str) -> Value {
    match kind.strip_prefix("decimal") {
        Some(scale) => json!({"name": name, "type": "decimal", "scale": scale.parse::<u8>().unwrap()}),
        None => json!({"name": name, "type": kind}),
    }
}

fn contract(fields: &[(&str, &str)]) -> Contract {
    let fields: Vec<_> = fields.iter().map(|(name, kind)| field(name, kind)).collect();
    serde_json::from_value(json!({"fields": fields})).unwrap()
}

fn translate_by(text: &[u8], reading: &Value, contract: &Contract) -> Vec<Seen> {
    let reading: Reading = serde_json::from_value(reading.clone()).unwrap();
    let mut translator = Translator::new(&reading, contract).unwrap();
    let mut reader = RecordReader::new(text, &reading).unwrap();
    let mut seen = Vec::new();
    let mut text = Vec::new();
    while let Some(record) = reader.read(&mut text).unwrap() {
        let mut out = b"before ".to_vec();
        let result = translator.translate(&text, record.number, &mut out);
        let result = match result {
            Ok(()) => Ok(serde_json::from_slice(&out[7..])
                .unwrap_or_else(|error| panic!("{error}: {}", String::from_utf8_lossy(&out)))),
            Err(problems) => {
                assert_eq!(out, b"before ");
                let told = problems
                    .into_iter()
                    .map(|problem| (problem.code, problem.path, problem.problem));
                Err(told.collect())
            }
        };
        seen.push((record.line, result));
        text.clear();
    }
    seen
}

/// Reads a CSV whose columns have the names of the fields. `with` are further members of the reading, and of the column
/// with the name of a field.
#[track_caller]
fn csv(text: &str, fields: &[(&str, &str)], with: &Value, expected: &Value) {
    let columns = fields.iter().map(|(name, _)| {
        let mut column = json!({"from": name, "to": name});
        if let Some(Value::Object(members)) = with.get(format!("@{name}")) {
            column.as_object_mut().unwrap().extend(members.clone());
        }
        column
    });
    let mut reading = json!({"format": "csv", "columns": columns.collect::<Vec<_>>()});
    let members = with
        .as_object()
        .unwrap()
        .iter()
        .filter(|(name, _)| !name.starts_with('@'));
    reading
        .as_object_mut()
        .unwrap()
        .extend(members.map(|(name, value)| (name.clone(), value.clone())));
    check(text.as_bytes(), &reading, &contract(fields), expected);
}

/// Holds records against `expected`: an object, or a list of codes with paths.
#[track_caller]
fn check(text: &[u8], reading: &Value, contract: &Contract, expected: &Value) {
    let seen = translate_by(text, reading, contract);
    let short: Vec<Value> = seen
        .iter()
        .map(|(_, result)| match result {
            Ok(value) => value.clone(),
            Err(problems) => problems
                .iter()
                .map(|(code, path, _)| format!("{code} {path}"))
                .collect(),
        })
        .collect();
    assert_eq!(
        Value::from(short),
        *expected,
        "{}: {seen:?}",
        String::from_utf8_lossy(text)
    );
}

#[test]
fn cells_become_the_values_of_their_fields() {
    csv(
        "id,qty\n7,3",
        &[("id", "integer"), ("qty", "integer")],
        &json!({}),
        &json!([{"id": 7, "qty": 3}]),
    );
    csv(
        "a;b\n1,5;x\n2,25;y",
        &[("a", "number"), ("b", "string")],
        &json!({"delimiter": ";", "decimal": ","}),
        &json!([{"a": 1.5, "b": "x"}, {"a": 2.25, "b": "y"}]),
    );
    csv(
        "a\tb\n1\tx y",
        &[("a", "integer"), ("b", "string")],
        &json!({"delimiter": "\t"}),
        &json!([{"a": 1, "b": "x y"}]),
    );
    csv(
        "zip\n01234\n",
        &[("zip", "string")],
        &json!({}),
        &json!([{"zip": "01234"}]),
    );
    csv(
        "x,y\n\"1\" , \"a, b\" \n 2 , c \n",
        &[("x", "integer"), ("y", "string")],
        &json!({}),
        &json!([{"x": 1, "y": "a, b"}, {"x": 2, "y": " c "}]),
    );
    csv(
        "x\n6\" pipe",
        &[("x", "string")],
        &json!({}),
        &json!([{"x": "6\" pipe"}]),
    );
    csv(
        "x\n\"a\"\"b\\c\nd\te\u{7}\"\n",
        &[("x", "string")],
        &json!({}),
        &json!([{"x": "a\"b\\c\nd\te\u{7}"}]),
    );
    csv(
        "b\nTRUE\nno\nT\n0\nmaybe\n",
        &[("b", "boolean")],
        &json!({}),
        &json!([{"b": true}, {"b": false}, {"b": true}, {"b": false}, ["value /b"]]),
    );
    csv(
        "i\n+7\n007\n-0\n1.0\n1.5\n9223372036854775807\n9223372036854775808\nx\n",
        &[("i", "integer")],
        &json!({}),
        &json!([{"i": 7}, {"i": 7}, {"i": 0}, {"i": 1}, ["value /i"], {"i": i64::MAX}, ["value /i"], ["value /i"]]),
    );
}

#[test]
fn text_in_utf_16_is_translated_as_text() {
    let units: Vec<u8> = "\u{feff}naam\nZoë".encode_utf16().flat_map(u16::to_le_bytes).collect();
    let mut text = Vec::new();
    let mut decoder = crate::decode::Utf8Reader::new(&units[..], "utf-16le").unwrap();
    std::io::Read::read_to_end(&mut decoder, &mut text).unwrap();
    let reading = json!({"format": "csv", "encoding": "utf-16le", "columns": [{"from": "naam", "to": "naam"}]});
    check(
        &text,
        &reading,
        &contract(&[("naam", "string")]),
        &json!([{"naam": "Zoë"}]),
    );
}

#[test]
fn rows_that_are_no_records_of_the_header_are_refused_and_the_next_ones_are_not() {
    let two = [("x", "integer"), ("y", "string")];
    csv(
        "x,y\n1,\"ab\"c\n2,d\n",
        &two,
        &json!({}),
        &json!([["after_quote /y"], {"x": 2, "y": "d"}]),
    );
    csv(
        "x,y\n1\n2,3\n1,2,3\n",
        &two,
        &json!({}),
        &json!([["cells "], {"x": 2, "y": "3"}, ["cells "]]),
    );
    let seen = translate_by(
        b"x,y\n\n1\n",
        &json!({"format": "csv", "columns": [{"from": "x", "to": "x"}, {"from": "y", "to": "y"}]}),
        &contract(&two),
    );
    assert_eq!(seen[0].0, 3);
    assert_eq!(seen[0].1.as_ref().unwrap_err()[0].2, "has 1 cell, the header has 2");
    csv(
        "x,y\n1,a\0b\n2,c\n",
        &two,
        &json!({}),
        &json!([["zero /y"], {"x": 2, "y": "c"}]),
    );
    let reading = json!({"format": "csv", "columns": [{"from": "x", "to": "y"}]});
    let reading: Reading = serde_json::from_value(reading).unwrap();
    let mut translator = Translator::new(&reading, &contract(&two)).unwrap();
    let problems = translator.translate(&vec![b'z'; MAX_RECORD_BYTES + 1], 0, &mut Vec::new());
    assert_eq!(problems.unwrap_err()[0].code, "line_too_long");
}

#[test]
fn every_wrong_cell_of_a_record_is_told_and_its_text_is_not() {
    let columns = [
        ("a", "integer"),
        ("b", "number"),
        ("c", "timestamp"),
        ("d", "json"),
        ("e", "string"),
    ];
    csv(
        "a,b,c,d,e\nsecret,secret,secret,secret,secret\n1,2,2024-02-30T10:00:00Z,{},x\n",
        &columns,
        &json!({}),
        &json!([["value /a", "value /b", "value /c", "value /d"], ["value /c"]]),
    );
    let text = "a,b,c,d,e\nsecret,1e999,secret,[secret],x\n";
    let reading: Vec<_> = columns
        .iter()
        .map(|(name, _)| json!({"from": name, "to": name}))
        .collect();
    let seen = translate_by(
        text.as_bytes(),
        &json!({"format": "csv", "columns": reading}),
        &contract(&columns),
    );
    assert!(!format!("{seen:?}").contains("secret"), "{seen:?}");
    let many: Vec<_> = (0..30).map(|place| (format!("f{place}"), "integer")).collect();
    let many: Vec<_> = many.iter().map(|(name, kind)| (name.as_str(), *kind)).collect();
    let names: Vec<_> = many.iter().map(|(name, _)| *name).collect();
    let row = vec!["x"; 30].join(",");
    let columns: Vec<_> = names.iter().map(|name| json!({"from": name, "to": name})).collect();
    let seen = translate_by(
        format!("{}\n{row}\n", names.join(",")).as_bytes(),
        &json!({"format": "csv", "columns": columns}),
        &contract(&many),
    );
    let problems = seen[0].1.as_ref().unwrap_err();
    assert_eq!(problems.len(), MAX_DEFECTS);
    assert_eq!((problems[19].0, problems[19].2.as_str()), ("more", "11 more"));
}

#[test]
fn nulls_are_what_the_reading_says_and_never_a_text_by_chance() {
    csv(
        "q\n3\nNA\n",
        &[("q", "integer")],
        &json!({"@q": {"nulls": ["NA"]}}),
        &json!([{"q": 3}, {}]),
    );
    csv(
        "code\nNA\nNO\n",
        &[("code", "string")],
        &json!({}),
        &json!([{"code": "NA"}, {"code": "NO"}]),
    );
    csv(
        "a,b\n\\N,\\N\n-,-\n  ,x\n",
        &[("a", "number"), ("b", "string")],
        &json!({"nulls": ["-"]}),
        &json!([{}, {}, {"b": "x"}]),
    );
    csv(
        "a,b\n\"\",\"\"\n",
        &[("a", "string"), ("b", "string")],
        &json!({}),
        &json!([{}]),
    );
    csv(
        "a,b,c\n\"\",,\"\"\n",
        &[("a", "string"), ("b", "string"), ("c", "integer")],
        &json!({"emptyText": true}),
        &json!([{"a": ""}]),
    );
    csv(
        "v\n1.5\nnan\n",
        &[("v", "number")],
        &json!({"@v": {"nulls": ["nan"]}}),
        &json!([{"v": 1.5}, {}]),
    );
    csv("v\ninf\n", &[("v", "number")], &json!({}), &json!([["value /v"]]));
}

#[test]
fn numbers_keep_their_digits_or_their_record_is_refused() {
    csv(
        "x\n0.1\n2.220446049250313081e-16\n.5\n1e5\n0.333333333333333333\n9007199254740993.0\n1e400\n",
        &[("x", "number")],
        &json!({}),
        &json!([
            {"x": 0.1}, {"x": 2.220_446_049_250_313e-16}, {"x": 0.5}, {"x": 1e5},
            ["digits /x"], ["digits /x"], ["digits /x"]
        ]),
    );
    csv(
        "n\n170141183460469231731\n",
        &[("n", "decimal0")],
        &json!({}),
        &json!([{"n": "170141183460469231731"}]),
    );
    csv(
        "d\n12.5\n-0.00\n012.5\n1e3\n1.234\n.5\n\"1,5\"\n",
        &[("d", "decimal2")],
        &json!({}),
        &json!([{"d": "12.50"}, {"d": "0.00"}, ["value /d"], ["value /d"], ["value /d"], {"d": "0.50"}, ["value /d"]]),
    );
    csv(
        "d\n0.123456789012345678\n",
        &[("d", "decimal18")],
        &json!({}),
        &json!([{"d": "0.123456789012345678"}]),
    );
}

#[test]
fn dates_and_times_are_instants_of_the_zone_that_the_reading_says() {
    csv(
        "d\n2020-02-29\n2021-02-29\n",
        &[("d", "date")],
        &json!({}),
        &json!([{"d": "2020-02-29"}, ["value /d"]]),
    );
    csv(
        "d\n25/06/2020\n",
        &[("d", "date")],
        &json!({"@d": {"parse": "%d/%m/%Y"}}),
        &json!([{"d": "2020-06-25"}]),
    );
    csv(
        "d\n25/06/2020\n",
        &[("d", "timestamp")],
        &json!({"@d": {"parse": "%d/%m/%Y", "zone": "Europe/Oslo"}}),
        &json!([{"d": "2020-06-24T22:00:00Z"}]),
    );
    csv(
        "t\n2024-03-31 02:30\n2024-03-31 03:30\n2024-10-27 02:30\n",
        &[("t", "timestamp")],
        &json!({"@t": {"parse": "%Y-%m-%d %H:%M", "zone": "Europe/Berlin"}}),
        &json!([["ambiguous_time /t"], {"t": "2024-03-31T01:30:00Z"}, ["ambiguous_time /t"]]),
    );
    csv(
        "t\n2024-05-01 08:00\n",
        &[("t", "timestamp")],
        &json!({"@t": {"parse": "%Y-%m-%d %H:%M"}}),
        &json!([{"t": "2024-05-01T08:00:00Z"}]),
    );
    csv(
        "t\n2024-05-01T08:00:00.1234560Z\n2024-05-01T08:00:00.1234567Z\n2024-05-01T08:00:00\n",
        &[("t", "timestamp")],
        &json!({}),
        &json!([{"t": "2024-05-01T08:00:00.123456Z"}, ["value /t"], ["value /t"]]),
    );
    csv(
        "t\n2024-05-01T08:00:00.1234567Z\n",
        &[("t", "timestamp")],
        &json!({"@t": {"round": true}}),
        &json!([{"t": "2024-05-01T08:00:00.123457Z"}]),
    );
    csv(
        "t\n1714550400\n",
        &[("t", "timestamp")],
        &json!({"@t": {"parse": "unix-seconds"}}),
        &json!([{"t": "2024-05-01T08:00:00Z"}]),
    );
}

#[test]
fn json_cells_are_json() {
    csv(
        "j\n\"{\"\"a\"\":[1]}\"\nx\n[1,2\n\"{\"\"a\"\":1,\"\"a\"\":2}\"\n[0.333333333333333333]\n",
        &[("j", "json")],
        &json!({}),
        &json!([{"j": {"a": [1]}}, ["value /j"], ["cells "], ["value /j/a"], ["digits /j/0"]]),
    );
}

#[test]
fn columns_are_renamed_left_out_and_counted() {
    let reading = json!({"format": "csv", "columns": [
        {"from": "Old Name", "to": "new"}, {"from": "x", "to": null}, {"from": "", "to": null},
    ], "number": {"field": "row", "start": 7}});
    let contract = contract(&[("new", "string"), ("row", "integer"), ("other", "string")]);
    check(
        b"Old Name,x,\na,1,\n,,\nb,2,\n,,x\n",
        &reading,
        &contract,
        &json!([{"new": "a", "row": 7}, {"new": "b", "row": 8}, ["cells "]]),
    );
    let extras: Contract =
        serde_json::from_value(json!({"fields": [{"name": "a", "type": "integer"}], "allowExtra": true})).unwrap();
    let reading = json!({"format": "csv", "columns": [{"from": "a", "to": "a"}, {"from": "b", "to": "b c"}]});
    check(b"a,b\n1,2\n", &reading, &extras, &json!([{"a": 1, "b c": "2"}]));
}

#[test]
fn members_are_kept_as_they_are_written_unless_the_reading_names_them() {
    let fields = contract(&[
        ("new", "string"),
        ("at", "timestamp"),
        ("d", "decimal2"),
        ("n", "number"),
        ("key", "string"),
    ]);
    let reading = json!({"format": "json", "columns": [
        {"from": "o\"ld", "to": "new", "nulls": ["-"]},
        {"from": "at", "to": "at", "parse": "unix-seconds"},
        {"from": "out", "to": null},
    ]});
    check(
        br#"[{"o\"ld":"x","at":1714550400,"d":0.10,"n":1e2,"out":{"a":[1]},"more":[null]},
            {"o\u0022ld":"-","at":"1714550400","d":"1.5","n":null,"out":null},
            {"at":null,"d":0.30000000000000004,"n":0.333333333333333333,"more":[1000000000000000000001]},
            {"d":12.5,"at":"yesterday"}]"#,
        &reading,
        &fields,
        &json!([
            {"new": "x", "at": "2024-05-01T08:00:00Z", "d": "0.10", "n": 100.0, "more": [null]},
            {"at": "2024-05-01T08:00:00Z", "d": "1.5"},
            ["value /d", "digits /n", "digits /more/0"],
            ["value /at"],
        ]),
    );
    let by_key = json!({"format": "json", "members": "key"});
    check(
        br#"{"de":{"new":"Berlin"},"fr":{"new":"Paris"}}"#,
        &by_key,
        &fields,
        &json!([{"key": "de", "new": "Berlin"}, {"key": "fr", "new": "Paris"}]),
    );
    let lines = json!({"columns": [{"from": "key", "to": null}], "number": {"field": "n"}});
    let counted = contract(&[("n", "integer"), ("a", "integer")]);
    check(
        b"{\"a\":1,\"key\":2}\n\n{\"a\":2}\n{}\n",
        &lines,
        &counted,
        &json!([{"a": 1, "n": 1}, {"a": 2, "n": 2}, {"n": 3}]),
    );
}

#[test]
fn what_is_no_object_or_no_json_stays_that_and_is_refused_by_whoever_reads_the_line() {
    let fields = Arc::new(contract(&[("a", "integer"), ("b", "decimal2")]));
    let reading: Reading =
        serde_json::from_value(json!({"columns": [{"from": "x", "to": "a"}, {"from": "y", "to": null}]})).unwrap();
    let mut translator = Translator::new(&reading, &fields).unwrap();
    for line in [
        "{\"x\":1",
        "{\"x\":1,}",
        "{\"x\":1 \"b\":2}",
        "{,}",
        "{\"x\"}",
        "{\"x\":}",
        "{\"x\":01}",
        "{\"x\":1}}",
        "{\"x\":1} 2",
        "{\"y\":tru}",
        "{\"y\":[1}",
        "{\"x\":[1}]",
        "{\"b\":1.}",
        "{\"b\":+1}",
        "{\"b\":01}",
        "{x:1}",
        "{\"x\":1,\"a\":2}",
        "{\"a\":\"\u{1}\"}",
        "{\"y\":{\"\\u0000\"}}",
        "tru",
        "",
        "[",
        "{\"x\":nulll}",
        "{\"x\" 1}",
    ] {
        let mut out = Vec::new();
        let Ok(()) = translator.translate(line.as_bytes(), 0, &mut out) else {
            continue;
        };
        let mut decoder = LineDecoder::new(&fields, 1, 100);
        assert!(
            decoder.push(&out).is_err(),
            "{line} became {}",
            String::from_utf8_lossy(&out)
        );
    }
    for line in ["5", "[1]", "\"x\"", "null"] {
        let mut out = Vec::new();
        translator.translate(line.as_bytes(), 0, &mut out).unwrap();
        let mut decoder = LineDecoder::new(&fields, 1, 100);
        decoder.push(&out).unwrap();
        assert_eq!(decoder.finish().defects()[0].code, "not_object", "{line}");
    }
}

#[test]
fn a_record_that_names_make_too_long_is_refused() {
    let names: Vec<_> = (0..200).map(|place| format!("{place:0>128}")).collect();
    let fields: Vec<_> = names.iter().map(|name| (name.as_str(), "string")).collect();
    let contract = contract(&fields);
    let columns: Vec<_> = names.iter().map(|name| json!({"from": name, "to": name})).collect();
    let reading = json!({"format": "csv", "headerLine": 0, "columns": columns});
    // Control characters take six bytes in JSON.
    let row = vec!["\u{1}".repeat(5_000); 200].join(",");
    let seen = translate_by(row.as_bytes(), &reading, &contract);
    assert_eq!(seen[0].1.as_ref().unwrap_err()[0].0, "too_much_work");
    let reading: Reading = serde_json::from_value(reading).unwrap();
    assert_eq!(
        Translator::new(&reading, &contract).unwrap().record_work(),
        (200 * 132, 200)
    );
}

#[test]
fn another_release_of_the_zones_is_told_where_zones_are_used() {
    let reading = |tz: &str, zone: Value| -> Reading {
        let column = json!({"from": "t", "to": "t", "parse": "%Y-%m-%d %H:%M", "zone": zone});
        serde_json::from_value(json!({"format": "csv", "tz": tz, "columns": [column]})).unwrap()
    };
    let own = tz_release().unwrap();
    assert_eq!(other_tz_release(&reading("1999a", json!("Europe/Oslo"))), Some(own));
    assert_eq!(other_tz_release(&reading(own, json!("Europe/Oslo"))), None);
    assert_eq!(other_tz_release(&reading("1999a", Value::Null)), None);
}

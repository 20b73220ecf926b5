//! Inputs, and the contract, the reading and the records that inference makes of them.

#![expect(
    clippy::tests_outside_test_module,
    clippy::unwrap_used,
    reason = "an integration test is a test module"
)]

use std::io::Write as _;

use serde_json::{Value, json};
use tabular::infer::{InferError, InferOptions, Inference, infer};
use types::{Contract, FieldType};

fn options(flags: &[(&str, &str)]) -> InferOptions {
    let mut options = InferOptions::default();
    for (flag, value) in flags {
        options.set(flag, value).unwrap();
    }
    options
}

fn inferred_with(text: impl AsRef<[u8]>, flags: &[(&str, &str)]) -> Inference {
    infer(text.as_ref(), &options(flags)).unwrap()
}

fn inferred(text: impl AsRef<[u8]>) -> Inference {
    inferred_with(text, &[])
}

fn refused(text: impl AsRef<[u8]>) -> String {
    infer(text.as_ref(), &InferOptions::default()).unwrap_err().to_string()
}

/// Fields with their types, such as `a integer, b decimal(2)`.
fn fields(inference: &Inference) -> String {
    let fields = inference.contract.iter().flat_map(Contract::fields);
    let fields = fields.map(|field| match field.kind {
        FieldType::Decimal(scale) => format!("{} decimal({scale})", field.name),
        kind => format!("{} {}", field.name, kind.name()),
    });
    fields.collect::<Vec<_>>().join(", ")
}

fn notes(inference: &Inference) -> Vec<&str> {
    inference.notes.iter().map(|note| note.code).collect()
}

fn questions(inference: &Inference) -> Vec<&str> {
    inference.questions.iter().map(|question| question.code).collect()
}

/// Commands of the flags that the first note or question of a code names.
fn remedies(inference: &Inference, code: &str) -> Vec<String> {
    let of_notes = inference
        .notes
        .iter()
        .filter(|note| note.code == code)
        .flat_map(|note| &note.remedies);
    let questions = inference.questions.iter().filter(|question| question.code == code);
    let remedies = of_notes.chain(questions.flat_map(|question| &question.remedies));
    remedies.map(ToString::to_string).collect()
}

fn sample(inference: &Inference) -> Value {
    Value::Array(inference.sample.clone())
}

fn gzip(text: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    encoder.write_all(text).unwrap();
    encoder.finish().unwrap()
}

#[test]
fn delimiters_are_found() {
    let found = inferred("id,qty\n7,3");
    assert_eq!(fields(&found), "id integer, qty integer");
    assert_eq!(sample(&found), json!([{"id": 7, "qty": 3}]));
    assert_eq!((notes(&found), questions(&found)), (vec![], vec![]));

    let found = inferred("a\tb\n1\tx y");
    assert_eq!(
        (fields(&found).as_str(), found.reading.delimiter),
        ("a integer, b string", '\t')
    );
    assert_eq!(sample(&found), json!([{"a": 1, "b": "x y"}]));

    let found = inferred("sep=|\na|b\n1|2,5");
    assert_eq!((found.reading.delimiter, found.reading.header_line), ('|', 2));
    assert_eq!(sample(&found), json!([{"a": 1, "b": 2.5}]));
    assert_eq!(notes(&found), Vec::<&str>::new());

    let found = inferred_with("a:b\n1:2", &[("--delimiter", ":")]);
    assert_eq!(fields(&found), "a integer, b integer");
    assert_eq!(fields(&inferred("x\n6\" pipe")), "x string");

    let found = inferred("t status\n35 0\n34 1\n");
    assert_eq!(
        (found.reading.delimiter, fields(&found).as_str()),
        (' ', "t integer, status integer")
    );
    assert_eq!(
        fields(&inferred("full name\nAda King\nAlan Turing\n")),
        "full_name string"
    );
    let found = inferred("t   status\n35     0\n34     1\n");
    assert_eq!(
        (fields(&found).as_str(), questions(&found)),
        ("t_status string", vec!["blanks"])
    );
}

#[test]
fn a_decimal_comma_is_taken_where_it_is_sure() {
    let found = inferred("a;b\n1,5;x\n2,25;y");
    assert_eq!(
        (fields(&found).as_str(), found.reading.decimal),
        ("a number, b string", ',')
    );
    assert_eq!(sample(&found), json!([{"a": 1.5, "b": "x"}, {"a": 2.25, "b": "y"}]));

    let found = inferred("a;b\n1,500;x\n2,250;y");
    assert_eq!(
        (fields(&found).as_str(), notes(&found)),
        ("a string, b string", vec!["units"])
    );
    let found = inferred_with("a;b\n1,500;x\n2,250;y", &[("--decimal-comma", "")]);
    assert_eq!(sample(&found), json!([{"a": 1.5, "b": "x"}, {"a": 2.25, "b": "y"}]));

    let found = inferred("a;b;c\n1,5;2;3.5\n2,5;3,25;4.5");
    assert_eq!(fields(&found), "a number, b number, c string");
    assert_eq!(fields(&inferred("a;b\n1.5;x\n2.25;y")), "a number, b string");
}

#[test]
fn compressed_files_are_looked_into_once() {
    let text = b"p|q\n1|2\n";
    let mut members = gzip(&text[..4]);
    members.extend(gzip(&text[4..]));
    let found = inferred(&members);
    assert_eq!((fields(&found).as_str(), found.records), ("p integer, q integer", 1));
    let found = inferred(zstd::encode_all(&text[..], 0).unwrap());
    assert_eq!(fields(&found), "p integer, q integer");
    assert_eq!(serde_json::to_value(&found.reading).unwrap()["compression"], "zstd");
    assert!(refused(gzip(&gzip(text))).contains("compressed twice"));
}

#[test]
fn what_is_no_table_is_refused_by_name() {
    let mut zip = b"PK\x03\x04\x14\0\0\0\0\0".to_vec();
    zip.resize(26, 0);
    zip.extend(b"\x05\0\0\0x.csv");
    let problem = refused(&zip);
    assert!(problem.contains("`x.csv`") && problem.contains("unzip -p"), "{problem}");
    assert!(refused("<!DOCTYPE html><html>").contains("a web page"));
    assert!(refused("").contains("empty"));
    assert!(refused("[[1,2],[3,4]]").contains("objects"));
    assert!(refused("[1,2]").contains("objects"));
    let parquet = infer(&b"PAR1\0\0\0\0"[..], &InferOptions::default());
    assert!(matches!(parquet, Err(InferError::NoText(_))), "{parquet:?}");
}

#[test]
fn encodings_are_known_or_asked_for() {
    let text: Vec<u8> = "\u{feff}naam\nZoë".encode_utf16().flat_map(u16::to_le_bytes).collect();
    let found = inferred(&text);
    assert_eq!(sample(&found), json!([{"naam": "Zoë"}]));
    assert_eq!(found.reading.encoding, "utf-16le");

    let found = inferred(b"stad\nK\xf6ln\n");
    assert_eq!(questions(&found), ["encoding"]);
    let question = &found.questions[0];
    assert!(
        question.message.contains("Köln") && question.line == Some(2),
        "{question:?}"
    );
    assert_eq!(remedies(&found, "encoding"), ["--encoding 'windows-1252'"]);
    assert!(!found.complete && !found.is_settled());
    assert_eq!(
        inferred(b"id,stad\n1,Oslo\n2,K\xf6ln\n").columns[0].kind,
        FieldType::Integer
    );
    let found = inferred_with(b"stad\nK\xf6ln\n", &[("--encoding", "windows-1252")]);
    assert_eq!((sample(&found), questions(&found)), (json!([{"stad": "Köln"}]), vec![]));
}

#[test]
fn quotes_are_strict() {
    let problem = refused("x,y\n1,\"6 ft\n2,b\n3,c");
    assert!(
        problem.contains("line 2") && problem.contains("`y`") && problem.contains("never closed"),
        "{problem}"
    );

    let found = inferred("x,y\n1,\"ab\"c\n2,d");
    assert_eq!(sample(&found), json!([{"x": 2, "y": "d"}]));
    assert_eq!(
        (found.records, notes(&found), found.notes[0].line),
        (2, vec!["broken_records"], Some(2))
    );

    assert_eq!(sample(&inferred("x\n6\" pipe")), json!([{"x": "6\" pipe"}]));
    assert_eq!(
        sample(&inferred("x,y\n\"1\" , \"a, b\" ")),
        json!([{"x": 1, "y": "a, b"}])
    );

    let found = inferred("a\tb\n1\t\"Hello\n2\t\"Hi, she said\n3\t\"Oh\n");
    assert_eq!((found.reading.quote, notes(&found)), (None, vec!["quote"]));
    assert_eq!(found.sample[0], json!({"a": 1, "b": "\"Hello"}));

    let found = inferred("a,b\n1,\"say \\\"hi\\\", he\"\n2,\"x\"\n");
    assert_eq!(notes(&found), ["escape"]);
    assert_eq!(found.sample[0], json!({"a": 1, "b": "say \"hi\", he"}));
}

#[test]
fn a_quote_behind_the_begin_of_a_file_is_a_quote() {
    let text = format!("n,t\n{}1,\"a,b\"\n", "1,abcdefgh\n".repeat(600_000));
    let found = inferred(&text);
    assert_eq!((found.records, notes(&found), found.complete), (600_001, vec![], true));
    assert_eq!(
        found.columns[1].distinct.as_deref(),
        Some(&["abcdefgh".to_owned(), "a,b".to_owned()][..])
    );
}

#[test]
fn rows_without_values_are_no_records_and_others_are_counted() {
    let found = inferred("a,b,\n1,2,\n3,4,");
    assert_eq!(fields(&found), "a integer, b integer");
    assert_eq!(found.reading.columns[2].to, None);
    assert_eq!(sample(&found), json!([{"a": 1, "b": 2}, {"a": 3, "b": 4}]));

    let found = inferred("a,b,\n1,2\n3,4");
    assert_eq!(sample(&found), json!([{"a": 1, "b": 2}, {"a": 3, "b": 4}]));
    assert_eq!(notes(&found), Vec::<&str>::new());

    let found = inferred("a,b\n1,2\n,\n\n3,4");
    assert_eq!((found.records, notes(&found)), (2, vec!["blank_lines"]));
    assert!(found.notes[0].message.starts_with("2 "), "{}", found.notes[0].message);

    let found = inferred("a,b\n1\n2,3");
    assert_eq!(
        (found.records, notes(&found), found.notes[0].line),
        (2, vec!["cells"], Some(2))
    );
    assert_eq!(sample(&found), json!([{"a": 2, "b": 3}]));
}

#[test]
fn headers_are_told_from_titles_and_data() {
    let found = inferred("Report 2024\n\na,b\n1,2");
    assert_eq!((found.reading.header_line, notes(&found)), (3, vec!["skipped_lines"]));
    assert_eq!(sample(&found), json!([{"a": 1, "b": 2}]));

    let found = inferred("Name:,x\nMade by\nhand\na,b,c\n1,2,3\n4,5,6\n");
    assert_eq!(
        (found.reading.header_line, fields(&found).as_str()),
        (4, "a integer, b integer, c integer")
    );

    let found = inferred("1.5,2\n2.5,3");
    assert_eq!(fields(&found), "column_1 number, column_2 integer");
    assert_eq!((found.reading.header_line, found.records), (0, 2));

    let found = inferred("Land,2019\nPeru,5");
    assert_eq!(
        (fields(&found).as_str(), notes(&found)),
        ("Land string, 2019 integer", vec!["header"])
    );
    assert_eq!(remedies(&found, "header"), ["--no-header"]);
    assert_eq!(
        fields(&inferred("2021-01,2021-02\na,b")),
        "2021-01 string, 2021-02 string"
    );
    assert_eq!(
        fields(&inferred_with("a,b\nc,d", &[("--no-header", "")])),
        "column_1 string, column_2 string"
    );

    let found = inferred("# made by hand\n# and twice\nid,v\n1,2\n");
    assert_eq!(
        (fields(&found).as_str(), found.reading.header_line),
        ("id integer, v integer", 3)
    );
    let found = inferred("#id,v\n1,2\n");
    assert_eq!(sample(&found), json!([{"id": 1, "v": 2}]));
    let found = inferred("\"mpg\",\"cyl\"\n\"Mazda RX4\",21,6\n\"Datsun\",22.8,4\n");
    assert_eq!(
        (fields(&found).as_str(), notes(&found)),
        ("row_name string, mpg number, cyl integer", vec!["row_names"])
    );
    assert_eq!(found.sample[0], json!({"row_name": "Mazda RX4", "mpg": 21, "cyl": 6}));
}

#[test]
fn a_line_that_describes_or_sums_up_is_asked_about() {
    let found = inferred("height,name\nm,text\n1,a\n2,b\n3,c\n4,d\n");
    assert_eq!(
        (questions(&found), found.questions[0].line),
        (vec!["description_line"], Some(2))
    );
    let found = inferred_with("height,name\nm,text\n1,a\n2,b\n3,c\n4,d\n", &[("--skip-lines", "2")]);
    assert_eq!(
        (fields(&found).as_str(), found.records),
        ("height integer, name string", 4)
    );
    let found = inferred("year,v\n2019,1\n2020,2\n2021,3\n2022,4\nTotal,10\n");
    assert_eq!(
        (questions(&found), found.questions[0].line),
        (vec!["last_line"], Some(6))
    );
    assert_eq!(
        remedies(&found, "last_line"),
        ["--skip-lines '6'", "--types 'year=string'"]
    );
}

#[test]
fn names_are_folded_together_and_keep_their_titles() {
    assert_eq!(fields(&inferred("n,n\n1,2")), "n integer, n_2 integer");
    let found = inferred("Cost (€),Cost [€]\n1,2");
    assert_eq!(fields(&found), "cost integer, cost_2 integer");
    let titles: Vec<_> = found
        .contract
        .iter()
        .flat_map(Contract::fields)
        .map(|field| &field.title)
        .collect();
    assert_eq!(titles, [&Some("Cost (€)".to_owned()), &Some("Cost [€]".to_owned())]);
    assert_eq!(notes(&found), ["name_taken"]);
    assert_eq!(fields(&inferred("온도,b c\n3,4")), "온도 integer, b_c integer");

    let found = inferred_with(
        "Old name,b,c\n1,2,3",
        &[("--rename", "Old name=new"), ("--ignore", "b")],
    );
    assert_eq!(sample(&found), json!([{"new": 1, "c": 3}]));
    let unknown = infer("a\n1".as_bytes(), &options(&[("--ignore", "b")])).unwrap_err();
    assert!(matches!(unknown, InferError::Flag(_)), "{unknown}");
    assert_eq!(
        questions(&inferred_with("a\n1", &[("--rename", "a=b c")])),
        ["illegal_name", "contract"]
    );
}

#[test]
fn numbers_keep_every_digit() {
    for (text, expected, noted) in [
        ("zip\n01234\n98765", "zip string", vec!["leading_zeros"]),
        ("phone\n+47123\n+47456", "phone string", vec!["plus_signs"]),
        ("n\n170141183460469231731", "n decimal(0)", vec![]),
        ("n\n123456789012345678901234567890", "n string", vec!["digits"]),
        ("x\n0.1\n2.220446049250313081e-16", "x number", vec![]),
        ("x\n0.123456789012345678", "x decimal(18)", vec![]),
        ("x\n0.1234567890123456789", "x string", vec!["digits"]),
        ("x\n1.5\n.5\n1e5\n5.", "x number", vec![]),
        ("x\n1.0\nNA\n2.0", "x number", vec![]),
        ("tract\n12E12\n13456", "tract string", vec!["codes"]),
        ("tract\n03E05\n13456", "tract string", vec!["leading_zeros"]),
        ("x\n12%\n15%", "x string", vec!["units"]),
        ("x\n€5\n€6", "x string", vec!["units"]),
        ("x\n 5 \n 6", "x integer", vec![]),
        ("x\n9007199254740993\n1.5", "x decimal(1)", vec![]),
        ("b\ntrue\nFALSE\n", "b boolean", vec![]),
        ("b\nyes\nno\n", "b string", vec![]),
    ] {
        let found = inferred(text);
        assert_eq!(
            (fields(&found).as_str(), notes(&found), questions(&found)),
            (expected, noted, vec![]),
            "{text:?}"
        );
    }
    let found = inferred("n\n170141183460469231731");
    assert_eq!(sample(&found), json!([{"n": "170141183460469231731"}]));
    assert_eq!(
        sample(&inferred_with("b\nyes\nno", &[("--types", "b=boolean")])),
        json!([{"b": true}, {"b": false}])
    );
    assert_eq!(
        sample(&inferred_with("z\n01", &[("--types", "z=integer")])),
        json!([{"z": 1}])
    );
}

#[test]
fn words_are_null_where_everything_else_is_no_text() {
    let found = inferred("q\n3\nNA");
    assert_eq!((fields(&found).as_str(), found.columns[0].nulls), ("q integer", 1));
    assert_eq!(sample(&found), json!([{"q": 3}, {}]));
    assert_eq!(found.reading.columns[0].nulls, ["NA"]);

    let found = inferred("code\nNA\nNO");
    assert_eq!(
        (fields(&found).as_str(), sample(&found)),
        ("code string", json!([{"code": "NA"}, {"code": "NO"}]))
    );

    let found = inferred("v\n1.5\nnan\ninf");
    assert_eq!((fields(&found).as_str(), found.columns[0].nulls), ("v number", 1));
    assert_eq!(questions(&found), ["infinity"]);
    assert_eq!(remedies(&found, "infinity"), ["--null 'v=inf'", "--types 'v=string'"]);
    let found = inferred_with("v\n1.5\nnan\ninf", &[("--null", "inf")]);
    assert_eq!(
        (sample(&found), questions(&found)),
        (json!([{"v": 1.5}, {}, {}]), vec![])
    );
    assert_eq!(
        questions(&inferred_with("v\n1.5\ninf", &[("--types", "v=string")])),
        Vec::<&str>::new()
    );

    let found = inferred("v\n1\n::\n2\n::");
    assert_eq!(
        (fields(&found).as_str(), questions(&found)),
        ("v integer", vec!["null_word"])
    );
    let found = inferred_with("v,w\n1,::\n::,a", &[("--null", "v=::")]);
    assert_eq!(sample(&found), json!([{"v": 1, "w": "::"}, {"w": "a"}]));

    let found = inferred("a,b\n1,\\N\n,x");
    assert_eq!(sample(&found), json!([{"a": 1}, {"b": "x"}]));
    let found = inferred("a,b\n1,\n2,\"\"\n");
    assert_eq!(
        (fields(&found).as_str(), notes(&found)),
        ("a integer, b string", vec!["no_values"])
    );
    let found = inferred_with("a,b\n1,x\n2,\"\"\n", &[("--empty-text", "")]);
    assert_eq!(found.sample[1], json!({"a": 2, "b": ""}));
}

#[test]
fn a_few_values_that_exclude_a_better_type_are_named() {
    let text = format!("v\n{}9,5m\n{}", "1.5\n".repeat(300), "2.5\n".repeat(300));
    let found = inferred(&text);
    assert_eq!(
        (fields(&found).as_str(), notes(&found)),
        ("v string", vec!["exceptions"])
    );
    assert_eq!(
        (found.notes[0].line, found.notes[0].message.contains("`9,5m`")),
        (Some(302), true)
    );
    assert_eq!(
        remedies(&found, "exceptions"),
        ["--null 'v=9,5m'", "--types 'v=number'"]
    );
    let found = inferred_with(&text, &[("--null", "v=9,5m")]);
    assert_eq!((fields(&found).as_str(), found.columns[0].nulls), ("v number", 1));
    assert_eq!(notes(&inferred("v\n1\nx\n2\n3\ny\n4\n")), Vec::<&str>::new());
}

#[test]
fn dates_of_every_form_are_read() {
    for (text, expected, parse, first) in [
        ("d\n2020-02-29", "d date", None, "2020-02-29"),
        ("d\n2021/03/04", "d date", Some("%Y/%m/%d"), "2021-03-04"),
        ("d\n04.03.2021", "d date", Some("%d.%m.%Y"), "2021-03-04"),
        ("d\n4 Mar 2021", "d date", Some("%d %b %Y"), "2021-03-04"),
        ("d\n31-OCT-2023", "d date", Some("%d-%b-%Y"), "2023-10-31"),
        ("d\n05/06/2020\n25/06/2020", "d date", Some("%d/%m/%Y"), "2020-06-05"),
        ("d\n05/06/2020\n05/26/2020", "d date", Some("%m/%d/%Y"), "2020-05-06"),
        ("t\n2024-05-01T08:00:00Z", "t timestamp", None, "2024-05-01T08:00:00Z"),
        (
            "t\n2024-05-01T08:00:00+02:00",
            "t timestamp",
            None,
            "2024-05-01T06:00:00Z",
        ),
        (
            "t\n2024-05-01 08:00:00+0200",
            "t timestamp",
            Some("%Y-%m-%d %H:%M:%S%.f%z"),
            "2024-05-01T06:00:00Z",
        ),
        (
            "t\n2024-05-01 08:00 UTC",
            "t timestamp",
            Some("%Y-%m-%d %H:%M %z"),
            "2024-05-01T08:00:00Z",
        ),
        (
            "t\n5/14/2024 3:04 PM",
            "t timestamp",
            Some("%m/%d/%Y %I:%M %p"),
            "2024-05-14T15:04:00Z",
        ),
        (
            "t\n2024-05-01T08:00:00.1234560Z",
            "t timestamp",
            None,
            "2024-05-01T08:00:00.123456Z",
        ),
    ] {
        let found = inferred(text);
        let seen = (
            fields(&found),
            found.columns[0].parse.as_deref(),
            found.sample[0].as_object().unwrap().values().next(),
        );
        assert_eq!(seen, (expected.to_owned(), parse, Some(&json!(first))), "{text:?}");
        assert_eq!(questions(&found), Vec::<&str>::new(), "{text:?}");
    }
    let found = inferred("d\n05/06/2020");
    assert_eq!(
        (fields(&found).as_str(), notes(&found)),
        ("d string", vec!["day_or_month"])
    );
    assert_eq!(
        remedies(&found, "day_or_month"),
        ["--types 'd=date:%d/%m/%Y'", "--types 'd=date:%m/%d/%Y'"]
    );
    let found = inferred_with("d\n05/06/2020", &[("--types", "d=date:%d/%m/%Y")]);
    assert_eq!(sample(&found), json!([{"d": "2020-06-05"}]));
    for text in ["d\n2021-02-29", "d\n2021-03-04\n2021-03-04 08:00", "d\n4/3/21"] {
        assert_eq!(fields(&inferred(text)), "d string", "{text:?}");
    }
}

#[test]
fn times_without_a_zone_are_noted_and_fine_ones_asked_about() {
    let found = inferred("t\n2024-05-01 08:00");
    assert_eq!((fields(&found).as_str(), notes(&found)), ("t timestamp", vec!["zone"]));
    assert_eq!(sample(&found), json!([{"t": "2024-05-01T08:00:00Z"}]));
    let found = inferred_with("t\n2024-05-01 08:00", &[("--zone", "Europe/Oslo")]);
    assert_eq!(
        (sample(&found), notes(&found)),
        (json!([{"t": "2024-05-01T06:00:00Z"}]), vec![])
    );
    assert!(found.reading.tz.is_some());
    let found = inferred_with("t\n2024-03-31 02:30\n2024-03-30 02:30", &[("--zone", "Europe/Berlin")]);
    assert_eq!(sample(&found), json!([{"t": "2024-03-30T01:30:00Z"}]));

    let found = inferred("t\n2024-05-01T08:00:00.1234567Z");
    assert_eq!(
        (
            questions(&found),
            remedies(&found, "finer_than_microseconds")[0].as_str()
        ),
        (vec!["finer_than_microseconds"], "--round 't'")
    );
    let found = inferred_with("t\n2024-05-01T08:00:00.1234567Z", &[("--round", "t")]);
    assert_eq!(
        (sample(&found), questions(&found)),
        (json!([{"t": "2024-05-01T08:00:00.123457Z"}]), vec![])
    );

    let found = inferred("t\n1714550400");
    assert_eq!((fields(&found).as_str(), notes(&found)), ("t integer", vec!["epoch"]));
    assert_eq!(remedies(&found, "epoch"), ["--types 't=timestamp:unix-seconds'"]);
    let found = inferred_with("t\n1714550400", &[("--types", "t=timestamp:unix-seconds")]);
    assert_eq!(
        (sample(&found), notes(&found)),
        (json!([{"t": "2024-05-01T08:00:00Z"}]), vec![])
    );
    assert_eq!(
        remedies(&inferred("date\n20240501"), "epoch"),
        ["--types 'date=date:%Y%m%d'"]
    );
    assert_eq!(notes(&inferred("population\n1714550400")), Vec::<&str>::new());
}

#[test]
fn a_file_is_fitted_to_an_existing_contract() {
    let contract = serde_json::from_value(json!({"fields": [
        {"name": "at", "type": "timestamp"}, {"name": "n", "type": "integer"}, {"name": "name", "type": "string"}
    ]}));
    let options = InferOptions {
        contract: Some(contract.unwrap()),
        ..InferOptions::default()
    };
    let found = infer("At,n,NAME\n2024-05-01,1.0,7\n".as_bytes(), &options).unwrap();
    assert_eq!(
        sample(&found),
        json!([{"at": "2024-05-01T00:00:00Z", "n": 1, "name": "7"}])
    );
    assert!(
        notes(&found).contains(&"midnight") && questions(&found).is_empty(),
        "{:?}",
        found.questions
    );
    let found = infer("at,Operator\n2024-05-01T00:00:00Z,x\n".as_bytes(), &options).unwrap();
    assert_eq!(
        (questions(&found), remedies(&found, "unknown_column")),
        (vec!["unknown_column"], vec!["--ignore 'Operator'".to_owned()])
    );
    let found = infer("at\n01.05.2024\n".as_bytes(), &options).unwrap();
    assert_eq!(sample(&found), json!([{"at": "2024-05-01T00:00:00Z"}]));
    let found = infer("at\n05/01/2024\n".as_bytes(), &options).unwrap();
    assert_eq!(questions(&found), ["day_or_month"]);
    let found = infer(&b"{\"at\":\"2024-05-01\",\"n\":1.0,\"name\":\"x\"}\n"[..], &options).unwrap();
    assert_eq!(
        sample(&found),
        json!([{"at": "2024-05-01T00:00:00Z", "n": 1, "name": "x"}])
    );
}

#[test]
fn json_in_cells_is_json() {
    let found = inferred("j\n\"{\"\"a\"\":[1]}\"\n[]");
    assert_eq!(
        (fields(&found).as_str(), sample(&found)),
        ("j json", json!([{"j": {"a": [1]}}, {"j": []}]))
    );
    assert_eq!(fields(&inferred("j\n\"{\"\"a\"\":[1]}\"\nx")), "j string");
    assert_eq!(
        fields(&inferred("j\n\"{\"\"a\"\":1000000000000000000007}\"\n")),
        "j string"
    );
}

#[test]
fn records_are_found_in_json_documents() {
    let found = inferred("{\n  \"meta\": {},\n  \"rows\": [\n    {\"a\": 1},\n    {\"a\": 2}\n  ]\n}\n");
    assert_eq!(
        (found.reading.records.as_str(), sample(&found)),
        ("/rows", json!([{"a": 1}, {"a": 2}]))
    );
    assert_eq!((fields(&found).as_str(), questions(&found)), ("a integer", vec![]));
    assert_eq!(
        inferred("{\"meta\":{},\"rows\":[{\"a\":1},{\"a\":2}]}").reading.records,
        "/rows"
    );

    let found = inferred("{\"de\":{\"cap\":\"Berlin\"},\"fr\":{\"cap\":\"Paris\"}}");
    assert_eq!(fields(&found), "key string, cap string");
    assert_eq!(
        sample(&found),
        json!([{"key": "de", "cap": "Berlin"}, {"key": "fr", "cap": "Paris"}])
    );
    let found = inferred_with(
        "{\"de\":{\"cap\":\"Berlin\"},\"fr\":{\"cap\":\"Paris\"}}",
        &[("--members", "iso")],
    );
    assert_eq!(fields(&found), "iso string, cap string");

    let found = inferred("[{\"a\":1},{\"a\":\"x\"}]");
    assert_eq!((fields(&found).as_str(), notes(&found)), ("a json", vec!["mixed"]));

    let found = inferred("{\"data\":{\"items\":[{\"a\":1},{\"a\":2}]},\"included\":[{\"b\":1}]}");
    assert_eq!(questions(&found), ["records"]);
    assert_eq!(
        remedies(&found, "records"),
        ["--records '/data/items'", "--records '/included'"]
    );
    let found = inferred_with(
        "{\"data\":{\"items\":[{\"a\":1},{\"a\":2}]},\"included\":[{\"b\":1}]}",
        &[("--records", "/included")],
    );
    assert_eq!((sample(&found), questions(&found)), (json!([{"b": 1}]), vec![]));

    assert_eq!(sample(&inferred("{\"a\":1}")), json!([{"a": 1}]));
    assert_eq!(
        sample(&inferred("{\"a\":1} {\"a\":2}\n{\"a\":3}")),
        json!([{"a": 1}, {"a": 2}, {"a": 3}])
    );
    assert_eq!(
        questions(&inferred("{\"a\":{\"0\":1,\"1\":2},\"b\":{\"0\":3,\"1\":4}}")),
        ["by_columns"]
    );
    assert_eq!(
        questions(&inferred("{\"rows\":[{\"a\":1}],\"points\":[[1,2],[3,4]]}")),
        ["arrays"]
    );
}

#[test]
fn json_keeps_its_types() {
    let text = "{\"s\":\"NA\",\"i\":1,\"f\":1.5,\"d\":\"2024-05-01\",\"b\":true,\"o\":{},\"z\":\"007\",\"x\":1}\n\
                {\"s\":\"b\",\"i\":2,\"f\":2,\"d\":\"2024-05-02\",\"b\":null,\"o\":[1],\"z\":\"1\",\"x\":\"y\"}\n";
    let found = inferred(text);
    assert_eq!(
        fields(&found),
        "s string, i integer, f number, d date, b boolean, o json, z string, x json"
    );
    assert_eq!((found.records, found.columns[4].nulls), (2, 1));
    assert_eq!(
        fields(&inferred("{\"n\":170141183460469231731}\n{\"n\":1}\n")),
        "n decimal(0)"
    );
    assert_eq!(
        sample(&inferred("{\"n\":0.123456789012345678}\n{\"n\":1}\n"))[0],
        json!({"n": "0.123456789012345678"})
    );
    let found = inferred("{\"a b\":1,\"c\":2}\n{\"a b\":3}\n");
    assert_eq!(sample(&found), json!([{"a_b": 1, "c": 2}, {"a_b": 3}]));
    let found = inferred("{\"v\":NaN}\n{\"v\":1}\n");
    assert_eq!((notes(&found), found.records), (vec!["broken_records"], 2));
    let found = inferred("{\"o\":{\"v\":1000000000000000000007}}\n{\"o\":{}}\n");
    assert_eq!(
        (notes(&found), found.notes[0].line, sample(&found)),
        (vec!["digits"], Some(1), json!([{"o": {}}]))
    );
    assert_eq!(questions(&inferred("{\"v\":1e-400}\n{\"v\":1}\n")), ["digits"]);
}

#[test]
fn rows_are_numbered_where_it_is_asked_for() {
    let found = inferred_with("a\nx\nx\n", &[("--number-rows", "row")]);
    assert_eq!(sample(&found), json!([{"a": "x", "row": 1}, {"a": "x", "row": 2}]));
    let found = inferred_with("row\nx\n", &[("--number-rows", "row=5211")]);
    assert_eq!(sample(&found), json!([{"row_2": "x", "row": 5211}]));
}

#[test]
fn what_a_text_cut_off_says_is_not_complete() {
    let options = InferOptions {
        max_text_bytes: 20,
        ..InferOptions::default()
    };
    let found = infer("a,b\n1,2\n3,4\n5,6\n7,\"x\ny\"\n".as_bytes(), &options).unwrap();
    assert_eq!(
        (found.complete, found.records, fields(&found).as_str()),
        (false, 3, "a integer, b integer")
    );
    let found = infer(&b"[{\"a\":1},{\"a\":2},{\"a\":\"x\"}]"[..], &options).unwrap();
    assert_eq!(
        (found.complete, found.records, fields(&found).as_str()),
        (false, 2, "a integer")
    );
    let found = infer(&b"{\"a\":1}\n{\"a\":2}\n{\"a\":\"x\"}\n"[..], &options).unwrap();
    assert_eq!(
        (found.complete, found.records, fields(&found).as_str()),
        (false, 2, "a integer")
    );
}

#[test]
fn no_text_of_a_file_gets_into_a_command_that_could_run() {
    let hostile = "-rf,$(id),\u{202e}x,b'c\n1,x\u{1b}]0;x\u{7},2,05/06/2020\n";
    let found = inferred(hostile);
    let all = found.notes.iter().flat_map(|note| &note.remedies);
    let all: Vec<_> = all
        .chain(found.questions.iter().flat_map(|question| &question.remedies))
        .collect();
    assert!(all.iter().any(|remedy| remedy.command.is_none()), "{all:?}");
    for command in all.iter().filter_map(|remedy| remedy.command.as_deref()) {
        assert!(
            !command.contains("$(") && !command.contains("'-") && !command.contains('\u{1b}'),
            "{command}"
        );
    }
}

#[test]
fn an_answer_is_what_the_interface_says() {
    let found = inferred("Station ID;Opened\n0017;01.05.1864\n0018;n/a\n");
    let answer = serde_json::to_value(&found).unwrap();
    let members: Vec<&str> = answer.as_object().unwrap().keys().map(String::as_str).collect();
    for member in [
        "format",
        "complete",
        "records",
        "columns",
        "schemaDef",
        "reading",
        "sample",
        "notes",
        "questions",
    ] {
        assert!(members.contains(&member), "{member}");
    }
    assert_eq!(answer["format"], "csv");
    assert_eq!(
        answer["columns"][1],
        json!({"name": "Opened", "field": "opened", "type": "date", "parse": "%d.%m.%Y", "nulls": 1,
               "nullWords": [{"word": "n/a", "count": 1}], "examples": ["01.05.1864"], "distinct": ["01.05.1864"]})
    );
    assert_eq!(
        answer["reading"]["columns"][0],
        json!({"from": "Station ID", "to": "station_id"})
    );
    assert_eq!(answer["schemaDef"]["fields"][0]["title"], "Station ID");
}

//! Delimited texts: dialects, headers, names.

use serde_json::json;
use tabular::infer::{InferError, InferOptions, infer};
use types::{Contract, FieldType};

use crate::{fields, gzip, inferred, inferred_with, notes, options, questions, refused, remedies, sample};

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

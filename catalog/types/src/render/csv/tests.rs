use std::sync::Arc;

use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;
use crate::{Batch, Contract};

fn csv(contract: &Value, records: &[Value], reader: CsvReader) -> String {
    let contract: Arc<Contract> = Arc::new(serde_json::from_value(contract.clone()).unwrap());
    let batch = Batch::decode(&contract, records);
    let rows = batch.columns();
    let mut text = Vec::new();
    reader.write_names(&contract.schema(), &mut text);
    let cells = RenderedCsv::new(rows, reader).unwrap();
    cells.write(0..cells.len() + 9, &mut text);
    String::from_utf8(text).unwrap()
}

/// Reads CSV by the grammar of RFC 4180 section 2, with line feeds. A cell is none if it has neither text nor quotes.
fn parsed(text: &str) -> Vec<Vec<Option<String>>> {
    let (mut lines, mut line) = (Vec::new(), Vec::new());
    let mut rest = text;
    while !rest.is_empty() {
        let cell = if let Some(quoted) = rest.strip_prefix('"') {
            let mut cell = String::new();
            rest = quoted;
            loop {
                let (run, after) = rest.split_once('"').unwrap();
                cell.push_str(run);
                rest = after;
                let Some(after) = rest.strip_prefix('"') else { break };
                cell.push('"');
                rest = after;
            }
            Some(cell)
        } else {
            let end = rest.find([',', '\n']).unwrap();
            let (cell, after) = rest.split_at(end);
            assert!(!cell.contains(['"', '\r']), "{cell:?}");
            rest = after;
            Some(cell.to_owned()).filter(|cell| !cell.is_empty())
        };
        line.push(cell);
        let end;
        (end, rest) = rest.split_at(1);
        match end {
            "," => {}
            "\n" => lines.push(std::mem::take(&mut line)),
            other => panic!("{other:?} after a cell"),
        }
    }
    assert!(line.is_empty());
    lines
}

#[test]
fn every_type_is_text_of_its_own() {
    let contract = json!({"fields": [
        {"name": "na\"me", "type": "string"}, {"name": "count", "type": "integer"},
        {"name": "ratio", "type": "number"}, {"name": "ok", "type": "boolean"},
        {"name": "at", "type": "timestamp"}, {"name": "more", "type": "json"},
        {"name": "day", "type": "date"}, {"name": "price", "type": "decimal", "scale": 2},
    ], "allowExtra": true});
    let records = [
        json!({"na\"me": "", "count": i64::MIN, "ratio": -0.0, "ok": false, "at": "0001-01-01T00:00:00Z",
            "more": {"a": [1, "b,c"]}, "day": "0001-01-01", "price": "-9.5", "x": [true]}),
        json!({"na\"me": "two\r\n\"lines\", one cell", "count": i64::MAX, "ratio": 1e300, "ok": true,
            "at": "2026-11-21T07:10:20.5Z", "more": "text", "day": "9999-12-31", "price": "0"}),
        json!({"more": null}),
        json!({"na\"me": "null", "ratio": 3, "more": 18_446_744_073_709_551_615_u64}),
    ];
    assert_eq!(
        csv(&contract, &records, CsvReader::Program),
        "\"na\"\"me\",count,ratio,ok,at,more,day,price,_sluice_extra\n\
         \"\",-9223372036854775808,0.0,false,0001-01-01T00:00:00Z,\"{\"\"a\"\":[1,\"\"b,c\"\"]}\",0001-01-01,-9.50,\
         \"{\"\"x\"\":[true]}\"\n\
         \"two\r\n\"\"lines\"\", one cell\",9223372036854775807,1e+300,true,2026-11-21T07:10:20.5Z,\"\"\"text\"\"\",\
         9999-12-31,0.00,\n\
         ,,,,,,,,\n\
         null,,3.0,,,18446744073709551615,,,\n"
    );
}

#[test]
fn a_spreadsheet_runs_no_text_and_a_program_gets_it_as_it_is() {
    for (text, shown) in [
        ("=1+1", "'=1+1"),
        ("=\"a\"", "\"'=\"\"a\"\"\""),
        (
            "=HYPERLINK(\"http://a.example\",1)",
            "\"'=HYPERLINK(\"\"http://a.example\"\",1)\"",
        ),
        ("@SUM(A1)", "'@SUM(A1)"),
        ("+cmd|' /C calc'!A0", "'+cmd|' /C calc'!A0"),
        ("-2+3", "'-2+3"),
        ("-", "'-"),
        ("+", "'+"),
        ("-e5", "'-e5"),
        ("-1e", "'-1e"),
        ("-.", "'-."),
        ("--1", "'--1"),
        ("-Infinity", "'-Infinity"),
        ("\t=1", "'\t=1"),
        ("\r=1", "\"'\r=1\""),
        ("\n=1", "\"'\n=1\""),
        ("＝1", "'＝1"),
        // Numbers, and texts that no spreadsheet runs.
        ("-5", "-5"),
        ("+3.25", "+3.25"),
        ("-.5", "-.5"),
        ("-5.", "-5."),
        ("+1E-07", "+1E-07"),
        ("1=1", "1=1"),
        ("'=1", "'=1"),
        ("a@b.example", "a@b.example"),
        ("", "\"\""),
        (" x", " x"),
    ] {
        let mut cell = Vec::new();
        CsvReader::Spreadsheet.write_cell(text, &mut cell);
        assert_eq!(String::from_utf8(cell).unwrap(), shown, "{text:?}");
        let contract = json!({"fields": [{"name": "a", "type": "string"}, {"name": "b", "type": "integer"}]});
        let exact = csv(&contract, &[json!({"a": text, "b": -1})], CsvReader::Program);
        assert_eq!(parsed(&exact)[1], [Some(text.to_owned()), Some("-1".to_owned())]);
    }
}

#[test]
fn a_column_is_named_without_a_formula() {
    let contract = json!({"fields": [{"name": "-a", "type": "string"}, {"name": "@b", "type": "json"}]});
    let records = [json!({"-a": "-5", "@b": -5})];
    assert_eq!(csv(&contract, &records, CsvReader::Spreadsheet), "'-a,'@b\n-5,-5\n");
    assert_eq!(csv(&contract, &records, CsvReader::Program), "-a,@b\n-5,-5\n");
}

#[test]
fn each_row_of_one_column_is_a_line_that_no_reader_skips() {
    let texts = json!({"fields": [{"name": "a", "type": "string"}]});
    let records = [
        json!({"a": "x"}),
        json!({}),
        json!({"a": ""}),
        json!({"a": " \t"}),
        json!({"a": " y"}),
    ];
    assert_eq!(
        csv(&texts, &records, CsvReader::Program),
        "a\nx\n\"\"\n\"\"\n\" \t\"\n y\n"
    );
    assert_eq!(
        csv(&texts, &records[1..4], CsvReader::Spreadsheet),
        "a\n\"\"\n\"\"\n\" \t\"\n"
    );
    let numbers = json!({"fields": [{"name": "a", "type": "integer"}]});
    assert_eq!(
        csv(
            &numbers,
            &[json!({"a": 1}), json!({}), json!({"a": 3})],
            CsvReader::Program
        ),
        "a\n1\n\"\"\n3\n"
    );
}

proptest! {
    #[test]
    fn texts_come_back_as_they_were(texts in proptest::collection::vec(proptest::option::of("[ab\"',\r\n\t=;é]{0,6}"), 1..20)) {
        let contract = json!({"fields": [{"name": "a", "type": "string"}, {"name": "b", "type": "integer"}]});
        let records: Vec<Value> = texts.iter().enumerate().map(|(row, text)| json!({"a": text, "b": row})).collect();
        let read = parsed(&csv(&contract, &records, CsvReader::Program));
        let read: Vec<_> = read.into_iter().skip(1).map(|line| line[0].clone()).collect();
        prop_assert_eq!(read, texts);
    }

    #[test]
    fn a_cell_for_a_spreadsheet_begins_with_no_formula(text in "[=+@\t\r\n.e0-9-]{1,5}") {
        let mut cell = Vec::new();
        CsvReader::Spreadsheet.write_cell(&text, &mut cell);
        let cell = String::from_utf8(cell).unwrap();
        let shown = cell.trim_start_matches('"');
        prop_assert!(!shown.starts_with(FORMULA_STARTS) || text.parse::<f64>().is_ok(), "{:?}", cell);
        prop_assert_eq!(shown.starts_with('\''), text.starts_with(FORMULA_STARTS) && !is_number(&text));
    }
}

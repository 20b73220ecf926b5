//! Texts of strangers are read in time that is linear in their length.

#![expect(clippy::tests_outside_test_module, reason = "an integration test is a test module")]

use std::hint::black_box;
use std::io::Read as _;

use growth::is_linear;
use tabular::csv::{CsvFormat, CsvReader, CsvRecord};
use tabular::decode::Utf8Reader;
use tabular::detect::detect;
use tabular::frame::RecordReader;
use tabular::infer::{InferOptions, infer};
use tabular::reading::{QuoteEscape, Reading};
use tabular::translate::Translator;
use tabular::values::{DateForms, TimeShape, TimeZones, ValueParse, WrittenNumber};
use types::Contract;

#[test]
fn csv_is_linear() {
    for delimiter in *b",;\t" {
        for escape in [QuoteEscape::Double, QuoteEscape::Backslash] {
            let format = CsvFormat {
                escape,
                ..CsvFormat::delimited_by(delimiter)
            };
            is_linear("the reader of CSV", 8_000, |text| {
                let mut reader = CsvReader::with_format(text.as_bytes(), format);
                let mut record = CsvRecord::default();
                while matches!(reader.read(&mut record), Ok(true)) {
                    black_box(record.cells().len());
                }
            });
        }
    }
}

#[test]
fn translation_is_linear() {
    let contract: Contract = serde_json::from_str(
        r#"{"fields": [{"name": "a", "type": "string"}, {"name": "b", "type": "timestamp"}, {"name": "c", "type": "number"},
            {"name": "d", "type": "decimal", "scale": 2}, {"name": "e", "type": "json"}]}"#,
    )
    .unwrap();
    for (reading, name) in [
        (
            r#"{"format": "csv", "headerLine": 0, "columns": [{"from": "a", "to": "a"}]}"#,
            "the translation of texts",
        ),
        (
            r#"{"format": "csv", "headerLine": 0, "columns": [{"from": "a", "to": "b", "parse": "%d %b %Y %H:%M:%S%.f %z"}]}"#,
            "the translation of times",
        ),
        (
            r#"{"format": "csv", "headerLine": 0, "columns": [{"from": "a", "to": "c"}]}"#,
            "the translation of numbers",
        ),
        (
            r#"{"format": "csv", "headerLine": 0, "quote": null, "delimiter": "|", "columns": [{"from": "a", "to": "e"}]}"#,
            "the translation of JSON",
        ),
        (
            r#"{"format": "json", "columns": [{"from": "x", "to": "a"}]}"#,
            "the translation of documents",
        ),
        (
            r#"{"format": "json", "records": "/a/b", "columns": [{"from": "x", "to": "a"}]}"#,
            "the translation of inner documents",
        ),
        (
            r#"{"format": "json", "members": "x", "columns": [{"from": "x", "to": "a"}]}"#,
            "the translation of members",
        ),
        (
            r#"{"columns": [{"from": "a", "to": null}]}"#,
            "the translation of lines",
        ),
    ] {
        let reading: Reading = serde_json::from_str(reading).unwrap();
        is_linear(name, 8_000, |text| {
            let mut translator = Translator::new(&reading, &contract).unwrap();
            let mut reader = RecordReader::new(text.as_bytes(), &reading).unwrap();
            let (mut record, mut out) = (Vec::new(), Vec::new());
            while let Ok(Some(framed)) = reader.read(&mut record) {
                black_box(translator.translate(&record, framed.number, &mut out).is_ok());
                record.clear();
                out.clear();
            }
        });
    }
}

#[test]
fn words_are_linear() {
    let (times, zone) = (ValueParse::new("%a %d %b %Y %H:%M:%S%.f %z").unwrap(), TimeZones::new());
    is_linear("the reader of times", 8_000, |text| {
        black_box(times.read(text.as_bytes()).is_ok());
        black_box(TimeShape::of(text.as_bytes(), DateForms::ALL).is_some());
        black_box(zone.get(text).is_ok());
        black_box(ValueParse::new(text).is_ok());
    });
    is_linear("the reader of numbers", 8_000, |text| {
        if let Some(number) = WrittenNumber::parse(text.as_bytes(), b'.') {
            black_box((number.double(), number.integer()));
        }
    });
}

#[test]
fn encodings_are_linear() {
    is_linear("the detection of files", 8_000, |text| {
        black_box(detect(text.as_bytes()).is_ok());
    });
    for label in ["utf-8", "utf-16le", "gb18030", "iso-2022-jp"] {
        is_linear("the decoder of texts", 8_000, |text| {
            let mut out = Vec::new();
            let read = Utf8Reader::new(text.as_bytes(), label).map(|mut reader| reader.read_to_end(&mut out));
            black_box(read.is_ok());
        });
    }
}

#[test]
fn inference_is_linear() {
    for (name, flags) in [
        ("inference", &[][..]),
        ("inference of CSV", &[("--format", "csv")]),
        (
            "inference of tables",
            &[("--format", "csv"), ("--no-header", ""), ("--delimiter", ";")],
        ),
        ("inference of JSON Lines", &[("--format", "json-lines")]),
        ("inference of JSON", &[("--format", "json")]),
    ] {
        let mut options = InferOptions::default();
        for (flag, value) in flags {
            options.set(flag, value).unwrap();
        }
        is_linear(name, 8_000, |text| {
            black_box(infer(text.as_bytes(), &options).is_ok());
        });
    }
}

use serde_json::value::{RawValue, to_raw_value};
use serde_json::{Value, json};

use super::*;
use crate::call::answer::{OperationOutput, OperationResult as _};

fn column(name: &str, kind: &str) -> AnswerColumn {
    AnswerColumn {
        name: name.to_owned(),
        kind: kind.to_owned(),
        nullable: true,
    }
}

/// Encodes an answer; returns the headers and the bytes of the file.
fn encoded(columns: &[AnswerColumn], rows: &[Value], is_cut: bool, format: FileFormat) -> (String, String, Bytes) {
    let rows: Vec<Box<RawValue>> = rows.iter().map(|row| to_raw_value(row).unwrap()).collect();
    let answer = DownloadedAnswer {
        slug: "tide-levels",
        version: Version(12),
        columns,
        rows: &rows,
        is_cut,
    };
    match answer.encode(format).unwrap().into_output().unwrap() {
        OperationOutput::Whole {
            status,
            headers,
            content_type,
            body,
        } => {
            assert_eq!((status.as_u16(), headers.len()), (200, 1));
            (headers[0].1.to_str().unwrap().to_owned(), content_type.to_owned(), body)
        }
        OperationOutput::Stream { .. } => panic!("an answer is whole in memory"),
    }
}

#[test]
fn each_format_has_the_rows_of_the_answer() {
    let columns = [
        column("gauge", "Utf8"),
        column("level", "Float64"),
        column("more", "Json"),
    ];
    let rows = [
        json!(["=Wick", 1.5, {"a": [1]}]),
        json!(["", "NaN", null]),
        json!([null, -2.0, "text"]),
    ];
    let file = |format| encoded(&columns, &rows, false, format);
    let (disposition, media_type, csv) = file(FileFormat::Csv);
    assert_eq!(disposition, "attachment; filename=\"tide-levels-v12-answer.csv\"");
    assert_eq!(media_type, "text/csv; charset=utf-8; header=present");
    assert_eq!(
        csv,
        "gauge,level,more\n'=Wick,1.5,\"{\"\"a\"\":[1]}\"\n\"\",NaN,\n,-2.0,\"\"\"text\"\"\"\n"
    );
    let (disposition, media_type, lines) = file(FileFormat::JsonLines);
    assert_eq!(disposition, "attachment; filename=\"tide-levels-v12-answer.ndjson\"");
    assert_eq!(media_type, "application/x-ndjson; charset=utf-8");
    assert_eq!(
        lines,
        "{\"gauge\":\"=Wick\",\"level\":1.5,\"more\":{\"a\":[1]}}\n\
         {\"gauge\":\"\",\"level\":\"NaN\",\"more\":null}\n\
         {\"gauge\":null,\"level\":-2.0,\"more\":\"text\"}\n"
    );
    let (disposition, media_type, parquet) = file(FileFormat::Parquet);
    assert_eq!(disposition, "attachment; filename=\"tide-levels-v12-answer.parquet\"");
    assert_eq!(media_type, "application/vnd.apache.parquet");
    assert!(parquet.starts_with(b"PAR1") && parquet.ends_with(b"PAR1"));
    let (disposition, media_type, arrow) = file(FileFormat::Arrow);
    assert_eq!(disposition, "attachment; filename=\"tide-levels-v12-answer.arrow\"");
    assert_eq!(media_type, "application/vnd.apache.arrow.stream");
    // A continuation, and the end of a stream (Arrow columnar format, encapsulated messages).
    assert!(arrow.starts_with(&[0xff; 4]) && arrow.ends_with(&[0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0]));
}

#[test]
fn a_file_says_in_its_name_that_its_answer_is_cut() {
    let (columns, rows) = ([column("n", "Int64")], [json!([1]), json!([2])]);
    let (disposition, _, csv) = encoded(&columns, &rows, true, FileFormat::Csv);
    assert_eq!(
        disposition,
        "attachment; filename=\"tide-levels-v12-answer-first-2.csv\""
    );
    assert_eq!(csv, "n\n1\n2\n");
}

#[test]
fn an_answer_without_rows_is_a_file_of_its_columns() {
    let columns = [column("n", "Int64"), column("n", "Utf8")];
    for format in [
        FileFormat::Csv,
        FileFormat::JsonLines,
        FileFormat::Parquet,
        FileFormat::Arrow,
    ] {
        let (.., file) = encoded(&columns, &[], false, format);
        match format {
            FileFormat::Csv => assert_eq!(file, "n,n_2\n"),
            FileFormat::JsonLines => assert_eq!(file, ""),
            FileFormat::Parquet | FileFormat::Arrow => assert!(!file.is_empty()),
        }
    }
}

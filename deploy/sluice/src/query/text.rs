//! Answers as text for people.

use std::fmt::Write as _;

use client::model::{Answer, AnswerColumn};
use serde_json::Value;

use crate::terminal::shown;

/// Formats the answer as a table: names, types, then the rows, with numbers to the right. Width is counted in characters:
/// wide scripts may misalign columns, which harms nothing.
pub(crate) fn table(answer: &Answer) -> String {
    let mut lines: Vec<Vec<String>> = vec![
        answer.columns.iter().map(|column| shown(&column.name)).collect(),
        answer.columns.iter().map(|column| shown(&column.kind)).collect(),
    ];
    let cells = |row: &Vec<Value>| row.iter().map(|value| shown(&plain(value))).collect();
    lines.extend(answer.rows.iter().map(cells));
    let widths: Vec<usize> = (0..answer.columns.len())
        .map(|column| lines.iter().map(|line| width(line, column)).max().unwrap_or(0))
        .collect();
    let mut text = String::new();
    for (number, line) in lines.iter().enumerate() {
        for (column, &wide) in widths.iter().enumerate() {
            let cell = line.get(column).map_or("", String::as_str);
            let gap = " ".repeat(wide - width(line, column));
            let separator = if column == 0 { "" } else { "  " };
            let number = number > 1 && is_number(&answer.columns[column]);
            let (left, right) = if number { (gap.as_str(), "") } else { ("", gap.as_str()) };
            text.extend([separator, left, cell, right]);
        }
        // Padding of the last column is removed.
        text.truncate(text.trim_end_matches(' ').len());
        text.push('\n');
        if number == 1 {
            let rules: Vec<String> = widths.iter().map(|&wide| "-".repeat(wide)).collect();
            text.extend([rules.join("  ").as_str(), "\n"]);
        }
    }
    let rows = answer.rows.len();
    let plural = if rows == 1 { "" } else { "s" };
    // Writes to a string cannot fail.
    writeln!(text, "({rows} row{plural} of version {})", answer.version).unwrap_or_default();
    text
}

/// Formats a value; a text has no quotes.
fn plain(value: &Value) -> String {
    match value {
        Value::Null => "NULL".to_owned(),
        Value::String(text) => text.clone(),
        value => value.to_string(),
    }
}

fn width(line: &[String], column: usize) -> usize {
    line.get(column).map_or(0, |cell| cell.chars().count())
}

fn is_number(column: &AnswerColumn) -> bool {
    ["Int", "UInt", "Float", "Decimal"]
        .iter()
        .any(|kind| column.kind.starts_with(kind))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn answer(columns: &[(&str, &str)], rows: &Value) -> Answer {
        let columns: Vec<Value> = columns
            .iter()
            .map(|(name, kind)| json!({"name": name, "type": kind, "nullable": true}))
            .collect();
        let answer = json!({"version": 3, "columns": columns, "rows": rows, "truncated": false});
        serde_json::from_value(answer).unwrap()
    }

    #[test]
    fn a_table_lines_up() {
        let answer = answer(
            &[("name", "Utf8"), ("n", "Int64")],
            &json!([["one", 1], ["a longer one", 20_000], [null, null]]),
        );
        let expected = [
            "name          n",
            "Utf8          Int64",
            "------------  -----",
            "one               1",
            "a longer one  20000",
            "NULL           NULL",
            "(3 rows of version 3)",
            "",
        ];
        assert_eq!(table(&answer), expected.join("\n"));
    }

    #[test]
    fn a_terminal_is_not_told_what_to_do() {
        let answer = answer(
            &[("\u{1b}[2J", "Utf8")],
            &json!([["a\nb\r\u{7}"], ["\u{202e}evil"], ["x".repeat(100)]]),
        );
        let table = table(&answer);
        assert!(!table.contains(['\u{1b}', '\r', '\u{7}', '\u{202e}']), "{table:?}");
        assert!(table.contains("a\\u{a}b"), "{table}");
        assert!(table.contains(&format!("{}…", "x".repeat(80))), "{table}");
    }

    #[test]
    fn an_answer_without_rows_has_its_columns() {
        let answer = answer(&[("n", "Int64")], &json!([]));
        assert_eq!(table(&answer), "n\nInt64\n-----\n(0 rows of version 3)\n");
    }
}

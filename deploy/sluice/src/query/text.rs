//! Answers as text for people.

use client::model::{Answer, AnswerColumn};
use serde_json::Value;

use crate::grid;
use crate::terminal::shown;

/// Names of types that the engine writes around literals in the names of columns.
const LITERAL_TYPES: [&str; 22] = [
    "Boolean",
    "Date32",
    "Date64",
    "Decimal128",
    "Decimal256",
    "Float32",
    "Float64",
    "Int8",
    "Int16",
    "Int32",
    "Int64",
    "IntervalMonthDayNano",
    "LargeUtf8",
    "TimestampMicrosecond",
    "TimestampMillisecond",
    "TimestampNanosecond",
    "UInt8",
    "UInt16",
    "UInt32",
    "UInt64",
    "Utf8View",
    "Utf8",
];
/// The table as the engine writes it before its columns within expressions.
const TABLE: &str = "records.";

/// Formats the answer as a table: names, then the rows, with numbers to the right.
pub(crate) fn table(answer: &Answer) -> String {
    let heads: Vec<String> = answer
        .columns
        .iter()
        .map(|column| shown(&column_name(&column.name)))
        .collect();
    let cells = |row: &Vec<Value>| row.iter().map(|value| shown(&plain(value))).collect();
    let rows: Vec<Vec<String>> = answer.rows.iter().map(cells).collect();
    let mut lines = grid::lines(&heads, &rows, |column| {
        answer.columns.get(column).is_some_and(is_number)
    });
    let rows = answer.rows.len();
    let plural = if rows == 1 { "" } else { "s" };
    lines.push(format!("({rows} row{plural} of version {})", answer.version));
    lines.push(String::new());
    lines.join("\n")
}

/// Returns the name of a column as its statement would say it: `'2026-01-01'` for `Utf8("2026-01-01")`, and `sum(gauge)`
/// for `sum(records.gauge)`.
fn column_name(name: &str) -> String {
    let is_expression = name.contains('(');
    let (mut plain, mut rest, mut before) = (String::with_capacity(name.len()), name, ' ');
    while let Some(character) = rest.chars().next() {
        let is_begin = !before.is_alphanumeric() && before != '_';
        if is_begin && let Some((value, after)) = literal(rest) {
            plain.push_str(&value);
            (rest, before) = (after, ')');
            continue;
        }
        if is_begin
            && is_expression
            && let Some(after) = rest.strip_prefix(TABLE)
        {
            (rest, before) = (after, '.');
            continue;
        }
        plain.push(character);
        (rest, before) = (&rest[character.len_utf8()..], character);
    }
    plain
}

/// Returns the literal with which a text begins, as SQL, and what follows it.
fn literal(text: &str) -> Option<(String, &str)> {
    let (kind, inner) = LITERAL_TYPES
        .iter()
        .find_map(|kind| Some((*kind, text.strip_prefix(kind)?.strip_prefix('(')?)))?;
    if let Some(quoted) = inner.strip_prefix('"') {
        let (value, after) = quoted.split_once("\")")?;
        return Some((format!("'{value}'"), after));
    }
    let end = closing(inner)?;
    let (value, after) = (&inner[..end], &inner[end + 1..]);
    Some((number(kind, value).unwrap_or_else(|| value.to_owned()), after))
}

/// Returns the place of the bracket that closes the text.
fn closing(text: &str) -> Option<usize> {
    let mut depth = 0_usize;
    for (at, character) in text.char_indices() {
        match character {
            '(' => depth += 1,
            ')' if depth == 0 => return Some(at),
            ')' => depth -= 1,
            _ => {}
        }
    }
    None
}

/// Returns a decimal, which the engine writes as `Some(150),3,2`, with its point. `None` for other values.
fn number(kind: &str, value: &str) -> Option<String> {
    if !kind.starts_with("Decimal") {
        return None;
    }
    let (digits, rest) = value.strip_prefix("Some(")?.split_once(')')?;
    let scale: usize = rest.rsplit(',').next()?.trim().parse().ok()?;
    let (sign, digits) = match digits.strip_prefix('-') {
        Some(digits) => ("-", digits),
        None => ("", digits),
    };
    // No decimal of the engine has more digits.
    if scale > 76 || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let padded = format!("{digits:0>0$}", scale + 1);
    let (whole, fraction) = padded.split_at(padded.len().checked_sub(scale)?);
    let point = if scale == 0 { "" } else { "." };
    Some(format!("{sign}{whole}{point}{fraction}"))
}

/// Formats a value; a text has no quotes.
fn plain(value: &Value) -> String {
    match value {
        Value::Null => "NULL".to_owned(),
        Value::String(text) => text.clone(),
        value => value.to_string(),
    }
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
        assert_eq!(table(&answer), "n\n-\n(0 rows of version 3)\n");
    }

    #[test]
    fn a_column_without_a_name_is_called_like_its_expression() {
        for (engine, shown) in [
            ("gauge", "gauge"),
            ("records.gauge", "records.gauge"),
            ("Utf8(\"2026-01-01\")", "'2026-01-01'"),
            ("Utf8View(\"a (b)\")", "'a (b)'"),
            ("sum(records.metres)", "sum(metres)"),
            ("sum(records.metres * Int64(2) + Float64(1.5))", "sum(metres * 2 + 1.5)"),
            ("Decimal128(Some(-150),3,2)", "-1.50"),
            ("Decimal128(Some(5),3,2)", "0.05"),
            ("coalesce(records.a,Utf8(NULL))", "coalesce(a,NULL)"),
            ("MyInt64(1)", "MyInt64(1)"),
            ("Int64(1", "Int64(1"),
            ("count(Int64(1))", "count(1)"),
        ] {
            assert_eq!(column_name(engine), shown);
        }
    }
}

//! Rows of two engines, in one form.
//!
//! Invariant: integers and texts are compared exactly, a double to nine digits, and rows as often as they come.

use serde_json::Value;
use serde_json::value::RawValue;
use sql::Answer;

/// Rows of cells.
pub(super) type Rows = Vec<Vec<Cell>>;

/// One value.
#[derive(Clone, Debug)]
pub(super) enum Cell {
    Null,
    Boolean(bool),
    Integer(i128),
    Number(f64),
    Text(String),
    List(Vec<Self>),
}

impl Cell {
    fn number(text: &str) -> Self {
        let number = text.parse::<f64>().expect(text);
        Self::Number(number)
    }

    /// A date or a time without an offset, which is UTC, and without a fraction that says nothing.
    fn time(text: &str) -> Self {
        let text = text.trim_end_matches("+00:00").trim_end_matches('Z').replace(' ', "T");
        let text = if text.contains('.') {
            text.trim_end_matches('0').trim_end_matches('.').to_owned()
        } else {
            text
        };
        Self::Text(text)
    }

    /// A text by which equal cells are next to each other.
    fn key(&self) -> String {
        match self {
            Self::Null => "0".to_owned(),
            Self::Boolean(value) => format!("1{value}"),
            #[expect(clippy::cast_precision_loss, reason = "it only decides an order")]
            Self::Integer(value) => format!("2{:+.11e}", *value as f64 + 0.0),
            Self::Number(value) => format!("2{:+.11e}", value + 0.0),
            Self::Text(text) => format!("3{text}"),
            Self::List(cells) => format!("4{:?}", cells.iter().map(Self::key).collect::<Vec<_>>()),
        }
    }

    #[expect(clippy::cast_precision_loss, reason = "a double is compared to nine digits")]
    fn is(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Null, Self::Null) => true,
            (Self::Boolean(one), Self::Boolean(other)) => one == other,
            (Self::Integer(one), Self::Integer(other)) => one == other,
            (Self::Text(one), Self::Text(other)) => one == other,
            (Self::List(one), Self::List(other)) => {
                one.len() == other.len() && one.iter().zip(other).all(|(one, other)| one.is(other))
            }
            (Self::Number(one), Self::Number(other)) => near(*one, *other),
            (Self::Number(one), Self::Integer(other)) | (Self::Integer(other), Self::Number(one)) => {
                near(*one, *other as f64)
            }
            _ => false,
        }
    }
}

fn near(one: f64, other: f64) -> bool {
    one.to_bits() == other.to_bits()
        || (one.is_nan() && other.is_nan())
        || one.partial_cmp(&other).is_some_and(std::cmp::Ordering::is_eq)
        || (one - other).abs() <= 1e-9 * one.abs().max(other.abs())
}

/// The rows of an answer of the sandbox.
pub(super) fn of_sandbox(answer: &Answer) -> Rows {
    let kinds: Vec<&str> = answer.columns.iter().map(|column| &*column.kind).collect();
    let row = |row: &RawValue| {
        let cells: Vec<&RawValue> = serde_json::from_str(row.get()).unwrap();
        cells
            .into_iter()
            .zip(&kinds)
            .map(|(cell, kind)| of_kind(cell, kind))
            .collect()
    };
    answer.rows.iter().map(|raw| row(raw)).collect()
}

fn of_kind(raw: &RawValue, kind: &str) -> Cell {
    if raw.get() == "null" {
        return Cell::Null;
    }
    if kind == "Json" {
        return Cell::Text(raw.get().to_owned());
    }
    let text = || serde_json::from_str::<String>(raw.get()).unwrap_or_else(|_| raw.get().to_owned());
    if let Some(kind) = kind.strip_prefix("List(").and_then(|kind| kind.strip_suffix(')')) {
        let cells: Vec<&RawValue> = serde_json::from_str(raw.get()).unwrap();
        return Cell::List(cells.into_iter().map(|cell| of_kind(cell, kind)).collect());
    }
    match kind {
        "Boolean" => Cell::Boolean(raw.get() == "true"),
        kind if kind.contains("Int") && !kind.contains("Interval") => Cell::Integer(raw.get().parse().unwrap()),
        kind if kind.starts_with("Float") || kind.starts_with("Decimal") => Cell::number(&text()),
        kind if kind.starts_with("Timestamp") || kind.starts_with("Date") => Cell::time(&text()),
        _ => Cell::Text(text()),
    }
}

/// The rows that the script of `DuckDB` prints.
pub(super) fn of_duckdb(rows: &Value) -> Rows {
    let rows = rows.as_array().unwrap().iter();
    rows.map(|row| row.as_array().unwrap().iter().map(of_script).collect())
        .collect()
}

fn of_script(value: &Value) -> Cell {
    match value {
        Value::Null => Cell::Null,
        Value::Bool(value) => Cell::Boolean(*value),
        Value::Number(number) => number
            .to_string()
            .parse()
            .map_or_else(|_| Cell::number(&number.to_string()), Cell::Integer),
        Value::String(text) => Cell::Text(text.clone()),
        Value::Array(values) => Cell::List(values.iter().map(of_script).collect()),
        Value::Object(marked) => match (marked.get("number"), marked.get("time")) {
            (Some(number), _) => Cell::number(number.as_str().unwrap()),
            (_, Some(time)) => Cell::time(time.as_str().unwrap()),
            _ => panic!("{marked:?}"),
        },
    }
}

/// Compares two answers, in their order where that is total.
pub(super) fn same(mut ours: Rows, mut theirs: Rows, ordered: bool) -> Result<(), String> {
    if !ordered {
        for rows in [&mut ours, &mut theirs] {
            rows.sort_by_cached_key(|row| row.iter().map(Cell::key).collect::<Vec<_>>());
        }
    }
    if ours.len() != theirs.len() {
        let shown = |rows: &Rows| format!("{:?}", rows.iter().take(4).collect::<Vec<_>>());
        let (one, other) = (shown(&ours), shown(&theirs));
        return Err(format!(
            "{} rows instead of {}: {one} instead of {other}",
            ours.len(),
            theirs.len()
        ));
    }
    let is = |(one, other): &(&Vec<Cell>, &Vec<Cell>)| {
        one.len() == other.len() && one.iter().zip(other.iter()).all(|(one, other)| one.is(other))
    };
    let wrong = ours.iter().zip(&theirs).find(|pair| !is(pair));
    wrong.map_or(Ok(()), |(one, other)| Err(format!("{one:?} instead of {other:?}")))
}

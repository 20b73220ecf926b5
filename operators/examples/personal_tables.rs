//! Streams tables through the personal data gate, in batches as a contribution has them, and counts what it refuses.
//!
//! Invariant: nothing about the values decides what is counted: every row of a table is judged, typed and as text.
//!
//! ```text
//! cargo run --release -p operators --example personal_tables -- [--show N]    tables on standard input
//! ```
//!
//! A table is a line `{"table": …, "columns": […]}` and then a line per row, an array of texts, numbers and other values
//! in the order of the columns. `tests/tables/measure.py` writes it. The answer has a line per table, read typed (a
//! column whose texts are all numbers is one), as text (every value is text) and by lines (a row is one text, its values
//! parted by commas). With `--show N` what was found in the first N refused rows of each table follows.

use std::collections::BTreeMap;
use std::error::Error;
use std::io::{BufRead as _, Write as _, stdin, stdout};
use std::sync::Arc;
use std::time::{Duration, Instant};

use operators::gates::PersonalData;
use operators::{Gate as _, Verdict};
use serde::Deserialize;
use serde_json::{Map, Value, json};
use types::{Batch, Contract, Field, FieldType};

/// The most records of a contribution.
const BATCH: usize = 500;

#[derive(Deserialize)]
struct Head {
    table: String,
    columns: Vec<String>,
}

/// What was refused of one reading.
#[derive(Default)]
struct Count {
    rows: usize,
    refused: usize,
    batches: usize,
    refused_batches: usize,
    codes: BTreeMap<String, usize>,
    shown: Vec<String>,
    time: Duration,
}

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let show = match arguments.next().as_deref() {
        Some("--show") => arguments.next().and_then(|count| count.parse().ok()).unwrap_or(5),
        _ => 0,
    };
    let mut table: Option<(Head, Vec<Vec<Value>>)> = None;
    for line in stdin().lock().lines() {
        let line = line?;
        if line.starts_with('{') {
            if let Some((head, rows)) = table.take() {
                judge(&head, &rows, show)?;
            }
            table = Some((serde_json::from_str(&line)?, Vec::new()));
        } else if let Some((_, rows)) = &mut table {
            rows.push(serde_json::from_str(&line)?);
        }
    }
    if let Some((head, rows)) = table {
        judge(&head, &rows, show)?;
    }
    Ok(())
}

/// Judges a table in all readings and prints a line for each.
fn judge(head: &Head, rows: &[Vec<Value>], show: usize) -> Result<(), Box<dyn Error>> {
    let typed: Vec<_> = (0..head.columns.len()).map(|column| kind(rows, column)).collect();
    let text: Vec<_> = typed
        .iter()
        .map(|kind| match kind {
            FieldType::Json => FieldType::Json,
            _ => FieldType::String,
        })
        .collect();
    let line = Head {
        table: head.table.clone(),
        columns: vec!["line".to_owned()],
    };
    let joined = rows.iter().map(|row| {
        let cells = row
            .iter()
            .map(|cell| cell.as_str().map_or_else(|| cell.to_string(), str::to_owned));
        vec![Value::String(cells.collect::<Vec<_>>().join(","))]
    });
    let joined: Vec<_> = joined.collect();
    let readings = [
        ("typed", head, rows, typed),
        ("text", head, rows, text),
        ("lines", &line, joined.as_slice(), vec![FieldType::String]),
    ];
    for (reading, head, rows, kinds) in readings {
        let count = count(head, rows, &kinds, show)?;
        let codes: Vec<_> = count
            .codes
            .iter()
            .map(|(code, rows)| format!("{code}={rows}"))
            .collect();
        writeln!(
            stdout(),
            "{}\t{reading}\t{}\t{}\t{}\t{}\t{}\t{}",
            head.table,
            count.rows,
            count.refused,
            count.batches,
            count.refused_batches,
            codes.join(","),
            count.time.as_micros(),
        )?;
        for shown in count.shown {
            writeln!(stdout(), "  {shown}")?;
        }
    }
    Ok(())
}

/// Returns the type of a column: a number if every text in it is one, `json` if there is any array or object.
fn kind(rows: &[Vec<Value>], column: usize) -> FieldType {
    let mut kind = None;
    for value in rows.iter().filter_map(|row| row.get(column)) {
        let own = match value {
            Value::Null => continue,
            Value::Bool(_) => FieldType::Boolean,
            Value::Array(_) | Value::Object(_) => return FieldType::Json,
            Value::Number(number) if number.is_i64() => FieldType::Integer,
            Value::Number(_) => FieldType::Number,
            // A leading zero is part of a code.
            Value::String(text) if text.len() > 1 && text.starts_with('0') && !text.starts_with("0.") => {
                FieldType::String
            }
            Value::String(text) if text.is_empty() => continue,
            Value::String(text) if text.parse::<i64>().is_ok() => FieldType::Integer,
            Value::String(text) if is_number(text) => FieldType::Number,
            Value::String(_) => FieldType::String,
        };
        kind = match (kind, own) {
            (None, own) => Some(own),
            (Some(kind), own) if kind == own => Some(kind),
            (Some(FieldType::Integer | FieldType::Number), FieldType::Integer | FieldType::Number) => {
                Some(FieldType::Number)
            }
            _ => Some(FieldType::String),
        };
    }
    kind.unwrap_or(FieldType::String)
}

fn is_number(text: &str) -> bool {
    text.parse::<f64>().is_ok_and(f64::is_finite)
}

/// Returns a value as the type of its column has it.
fn cell(value: &Value, kind: FieldType) -> Value {
    match (kind, value) {
        (FieldType::Json, _) | (_, Value::Null) => value.clone(),
        (FieldType::String, Value::String(_)) => value.clone(),
        (FieldType::String, _) => Value::String(value.to_string()),
        (_, Value::String(text)) if text.is_empty() => Value::Null,
        (FieldType::Integer, Value::String(text)) => json!(text.parse::<i64>().ok()),
        (FieldType::Number, Value::String(text)) => json!(text.parse::<f64>().ok()),
        _ => value.clone(),
    }
}

fn count(head: &Head, rows: &[Vec<Value>], kinds: &[FieldType], show: usize) -> Result<Count, Box<dyn Error>> {
    let fields = head
        .columns
        .iter()
        .zip(kinds)
        .map(|(name, kind)| Field::new(name, *kind));
    let contract = Arc::new(Contract::new(fields.collect(), false)?);
    let mut count = Count::default();
    for rows in rows.chunks(BATCH) {
        let record = |row: &Vec<Value>| -> Value {
            let cells = head.columns.iter().zip(kinds).zip(row);
            cells
                .map(|((name, kind), value)| (name.clone(), cell(value, *kind)))
                .collect::<Map<_, _>>()
                .into()
        };
        let records: Vec<_> = rows.iter().map(record).collect();
        let batch = Batch::decode(&contract, &records);
        let begun = Instant::now();
        let verdicts = PersonalData::new().judge(&batch);
        count.time += begun.elapsed();
        count.rows += records.len();
        count.batches += 1;
        let before = count.refused;
        for (row, verdict) in verdicts.exceptions() {
            let Verdict::Refuse { reasons } = verdict else { continue };
            count.refused += 1;
            for reason in reasons {
                *count.codes.entry(reason.code.clone()).or_default() += 1;
            }
            if count.shown.len() < show {
                let found = reasons.iter().map(|reason| {
                    let value = records[*row].pointer(&reason.path).unwrap_or(&Value::Null);
                    format!("{} {} {value}", reason.code, reason.path)
                });
                count.shown.push(found.collect::<Vec<_>>().join("; "));
            }
        }
        count.refused_batches += usize::from(count.refused > before);
    }
    Ok(count)
}

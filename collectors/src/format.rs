//! Decoding of answers into records of a source, as JSON.
//!
//! Invariant: an answer that is cut off or has another form than its definition says is a [`RunFailure`], never fewer
//! records.

mod feed;
mod parquet;

use bytes::Bytes;
use serde_json::{Value, json};
use tabular::csv::{self, CsvReader, CsvRecord, RecordProblem};
use types::json::lost_digits;

use crate::RunFailure;
use crate::mapping::written_number;
use crate::source::{Fetch, MAX_ROWS, SourceFormat};

pub(crate) use parquet::rows as parquet_rows;

/// Decodes one answer. `is_framed` says that the transport would have shown a missing end.
pub(crate) fn decode(fetch: &Fetch, body: &Bytes, is_framed: bool) -> Result<Vec<Value>, RunFailure> {
    let rows = match fetch.format {
        SourceFormat::Json => json_records(fetch, body)?,
        SourceFormat::Ndjson => lines(body, is_framed)?,
        SourceFormat::Csv => {
            check_end(body, is_framed)?;
            delimited(fetch, body)?
        }
        SourceFormat::Feed => feed::entries(body)?,
        SourceFormat::Parquet | SourceFormat::Delta => parquet::rows(body.clone())?,
    };
    if rows.len() > MAX_ROWS {
        return Err(too_many());
    }
    Ok(rows)
}

pub(crate) fn too_many() -> RunFailure {
    RunFailure::new("too_large", format!("the source has more than {MAX_ROWS} records"))
}

/// Returns the address of the next page of a JSON answer, as the answer has it.
pub(crate) fn next_page(body: &Bytes, pointer: &str) -> Result<Option<String>, RunFailure> {
    let document: Value = parse(body)?;
    match document.pointer(pointer) {
        None | Some(Value::Null) => Ok(None),
        // Sources mark the last page by a missing member, null or an empty text.
        Some(Value::String(next)) if next.is_empty() => Ok(None),
        Some(Value::String(next)) => Ok(Some(next.clone())),
        Some(_) => Err(RunFailure::form("the address of the next page is no text")),
    }
}

fn parse(body: &[u8]) -> Result<Value, RunFailure> {
    parse_with_digits(body).map_err(|_error| RunFailure::form("the answer is no complete JSON"))
}

/// Parses JSON. A number of which the parser would drop digits stays as the text has it.
fn parse_with_digits(text: &[u8]) -> serde_json::Result<Value> {
    // Before a number is replaced, because what takes its place may be JSON where the number is none.
    let parsed = serde_json::from_slice(text)?;
    let places = lost_digits(text);
    if places.is_empty() {
        return Ok(parsed);
    }
    let (mut marked, mut from) = (Vec::with_capacity(text.len() * 2), 0);
    for place in places {
        marked.extend_from_slice(&text[from..place.start]);
        from = place.end;
        serde_json::to_writer(&mut marked, &written_number(&String::from_utf8_lossy(&text[place])))?;
    }
    marked.extend_from_slice(&text[from..]);
    serde_json::from_slice(&marked)
}

fn json_records(fetch: &Fetch, body: &[u8]) -> Result<Vec<Value>, RunFailure> {
    let mut document = parse(body)?;
    let missing = || RunFailure::form("the answer has no records where the definition says");
    let records = document
        .pointer_mut(&fetch.records)
        .map(Value::take)
        .ok_or_else(missing)?;
    match records {
        Value::Array(records) if !fetch.members => Ok(records),
        Value::Object(members) if fetch.members => {
            let members = members.into_iter();
            Ok(members
                .map(|(key, value)| json!({ "key": key, "value": value }))
                .collect())
        }
        _ => Err(missing()),
    }
}

fn lines(body: &[u8], is_framed: bool) -> Result<Vec<Value>, RunFailure> {
    check_end(body, is_framed)?;
    let lines = body.split(|byte| *byte == b'\n');
    let lines = lines.filter(|line| !line.trim_ascii().is_empty());
    lines
        .map(|line| parse_with_digits(line).map_err(|_error| RunFailure::form("a line of the answer is no JSON")))
        .collect()
}

/// Decodes the rows of a delimited text, of which each has as many cells as the first. Without a header the members are
/// numbered from 1.
fn delimited(fetch: &Fetch, body: &[u8]) -> Result<Vec<Value>, RunFailure> {
    let body = body.strip_prefix(b"\xef\xbb\xbf").unwrap_or(body);
    let delimiter = fetch.delimiter.and_then(|delimiter| u8::try_from(delimiter).ok());
    let mut reader = CsvReader::new(body, delimiter.unwrap_or(b','));
    let (mut row, mut records) = (CsvRecord::default(), Vec::new());
    let mut names: Option<Vec<String>> = None;
    let broken = |error: csv::Error| RunFailure::form(error.to_string());
    while reader.read(&mut row).map_err(broken)? {
        let line = row.line();
        match row.problem() {
            None => {}
            Some(RecordProblem::AfterQuote(cell)) => {
                let cell = cell + 1;
                return Err(RunFailure::form(format!(
                    "line {line}: text follows the closing quote of cell {cell}"
                )));
            }
            Some(RecordProblem::TooLong) => return Err(RunFailure::form(format!("line {line} is too long"))),
        }
        let cells: Result<Vec<&str>, _> = row.cells().map(std::str::from_utf8).collect();
        let cells = cells.map_err(|_error| RunFailure::form(format!("line {line} is not UTF-8")))?;
        let names = match &names {
            Some(names) => names,
            None if fetch.header => {
                names = Some(cells.iter().map(|name| name.trim().to_owned()).collect());
                continue;
            }
            None => names.insert((1..=cells.len()).map(|number| number.to_string()).collect()),
        };
        if names.len() != cells.len() {
            return Err(RunFailure::form(format!("line {line} has another number of cells")));
        }
        let record = names
            .iter()
            .zip(cells)
            .map(|(name, cell)| (name.clone(), Value::from(cell)));
        records.push(Value::Object(record.collect()));
    }
    Ok(records)
}

/// Checks the end of a text that shows it by its last line only.
fn check_end(body: &[u8], is_framed: bool) -> Result<(), RunFailure> {
    if is_framed || body.ends_with(b"\n") {
        Ok(())
    } else {
        Err(RunFailure::form("the answer ends within a line"))
    }
}

#[cfg(test)]
pub(crate) mod tests;

//! Records of CSV (RFC 4180), and of texts with another delimiter.
//!
//! Invariant: every line has as many fields as the first.

use serde_json::{Map, Value};
use tabular::csv::{CsvReader, CsvRecord, RecordProblem};

use crate::RunFailure;
use crate::source::Fetch;

/// Decodes the lines. Without a header the members are numbered from 1.
pub(super) fn records(fetch: &Fetch, body: &[u8]) -> Result<Vec<Value>, RunFailure> {
    let body = body.strip_prefix(b"\xef\xbb\xbf").unwrap_or(body);
    let delimiter = fetch.delimiter.and_then(|delimiter| u8::try_from(delimiter).ok());
    let mut reader = CsvReader::new(body, delimiter.unwrap_or(b','));
    let mut line = CsvRecord::default();
    let mut names: Option<Vec<String>> = None;
    let mut wanted = None;
    let mut records = Vec::new();
    while reader
        .read(&mut line)
        .map_err(|error| RunFailure::form(error.to_string()))?
    {
        let cells = cells(&line)?;
        if *wanted.get_or_insert(cells.len()) != cells.len() {
            return Err(RunFailure::form(format!(
                "line {} has another number of cells",
                line.line()
            )));
        }
        if fetch.header && names.is_none() {
            names = Some(cells.iter().map(|name| name.trim().to_owned()).collect());
            continue;
        }
        let mut record = Map::new();
        for (at, value) in cells.into_iter().enumerate() {
            let name = match &names {
                Some(names) => names.get(at).cloned().unwrap_or_default(),
                None => (at + 1).to_string(),
            };
            record.insert(name, value.into());
        }
        records.push(Value::Object(record));
    }
    Ok(records)
}

/// Returns the cells of a line as texts.
fn cells(line: &CsvRecord) -> Result<Vec<&str>, RunFailure> {
    let number = line.line();
    match line.problem() {
        None => {}
        Some(RecordProblem::AfterQuote(cell)) => {
            let cell = cell + 1;
            return Err(RunFailure::form(format!(
                "line {number}: text follows the closing quote of cell {cell}"
            )));
        }
        Some(RecordProblem::TooLong) => return Err(RunFailure::form(format!("line {number} is too long"))),
    }
    let cells = line.cells().map(std::str::from_utf8);
    let cells = cells.collect::<Result<_, _>>();
    cells.map_err(|_error| RunFailure::form(format!("line {number} is not UTF-8")))
}

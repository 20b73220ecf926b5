//! Records of CSV (RFC 4180), and of texts with another delimiter.
//!
//! Invariant: every line has as many fields as the first.

use serde_json::{Map, Value};

use crate::Failure;
use crate::source::Fetch;

/// Decodes the lines. Without a header the members are numbered from 1.
pub(super) fn records(fetch: &Fetch, body: &[u8]) -> Result<Vec<Value>, Failure> {
    let body = body.strip_prefix(b"\xef\xbb\xbf").unwrap_or(body);
    let delimiter = fetch.delimiter.and_then(|delimiter| u8::try_from(delimiter).ok());
    let mut reader = csv::ReaderBuilder::new()
        .has_headers(fetch.header)
        .delimiter(delimiter.unwrap_or(b','))
        .from_reader(body);
    let broken = |_error| Failure::form("the answer is no CSV with equally long lines of UTF-8");
    let names: Option<Vec<String>> = if fetch.header {
        let header = reader.headers().map_err(broken)?;
        Some(header.iter().map(|name| name.trim().to_owned()).collect())
    } else {
        None
    };
    let mut records = Vec::new();
    for line in reader.records() {
        let line = line.map_err(broken)?;
        let mut record = Map::new();
        for (at, value) in line.iter().enumerate() {
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

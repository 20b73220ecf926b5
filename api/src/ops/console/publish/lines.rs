//! Records of a small file, for one batch.
//!
//! Invariant: they are what a worker would make of an upload of the file with the same reading. A binary file is read in the
//! process that reads such files, and never here.

use std::io::Cursor;

use data_encoding::BASE64;
use serde_json::{Map, Value, json};
use tabular::decode::{Utf8Reader, decompress};
use tabular::detect::{FileCompression, detect};
use tabular::frame::RecordReader;
use tabular::reading::{Reading, TextCompression};
use tabular::translate::Translator;
use types::error::with_causes;
use types::{AgentId, Contract};

use super::act;
use super::draft::{FileInForm, FoundFile};
use crate::call::cx::Cx;
use crate::error::ApiError;

/// Formats that are tables of bytes and no text.
const TABLES: [&str; 4] = ["parquet", "arrow-file", "arrow-stream", "xlsx"];
/// Bytes of a file that tell its compression.
const BEGIN_BYTES: usize = 4_096;

/// Returns the records of a file as an array.
pub(super) async fn records(
    cx: &Cx,
    agent: AgentId,
    file: &FileInForm,
    found: &FoundFile,
    contract: &Value,
) -> Result<Value, ApiError> {
    let most = cx.app.limits.contribution_body.bytes();
    // Below, a text is read to its end.
    if !found.complete {
        return Err(too_large(most));
    }
    let lines = if TABLES.contains(&found.format.as_str()) {
        let mut body = Map::new();
        body.insert("base64".to_owned(), file.content.clone().into());
        body.insert("flags".to_owned(), json!(file.said()));
        body.insert("schemaDef".to_owned(), contract.clone());
        act(cx, agent, "convert_file", body).await?
    } else {
        let bytes = BASE64.decode(file.content.as_bytes()).map_err(ApiError::internal)?;
        let reading: Reading = serde_json::from_value(found.reading.clone()).map_err(ApiError::internal)?;
        let contract: Contract = serde_json::from_value(contract.clone()).map_err(ApiError::internal)?;
        let drops = file.drops;
        let translated =
            tokio::task::spawn_blocking(move || translated(&bytes, &reading, &contract, drops, most)).await;
        translated.map_err(ApiError::internal)??
    };
    if lines.len() > most {
        return Err(too_large(most));
    }
    let records = lines.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
    let records: Result<Vec<Value>, _> = records.map(serde_json::from_slice).collect();
    // A line of JSON Lines that is none is passed on by the translator, for whoever reads it.
    records
        .map(Value::Array)
        .map_err(|error| ApiError::invalid("/file", format!("has a line that is no JSON: {error}")))
}

/// Translates a text into JSON Lines of at most `most` bytes and a record.
fn translated(
    bytes: &[u8],
    reading: &Reading,
    contract: &Contract,
    drops: bool,
    most: usize,
) -> Result<Vec<u8>, ApiError> {
    let refused = |problem: String| ApiError::invalid("/file", problem);
    let begin = bytes.get(..BEGIN_BYTES).unwrap_or(bytes);
    let compression = match reading.compression {
        Some(TextCompression::Zstd) => FileCompression::Zstd,
        None => detect(begin).map_err(|error| refused(with_causes(&error)))?.compression,
    };
    let plain = decompress(Cursor::new(bytes), compression).map_err(|error| refused(with_causes(&error)))?;
    let text = Utf8Reader::new(plain, &reading.encoding).map_err(|error| refused(with_causes(&error)))?;
    let broken = |error: tabular::reading::ReadingError| refused(with_causes(&error));
    let mut reader = RecordReader::new(text, reading).map_err(broken)?;
    let mut translator = Translator::new(reading, contract).map_err(broken)?;
    let (mut record, mut lines) = (Vec::new(), Vec::new());
    while let Some(framed) = reader.read(&mut record).map_err(|error| refused(with_causes(&error)))? {
        let before = lines.len();
        let is_whole = !framed.is_too_long && translator.translate(&record, framed.number, &mut lines).is_ok();
        if is_whole {
            lines.push(b'\n');
        } else if drops {
            lines.truncate(before);
        } else {
            return Err(refused(format!(
                "the record of line {} is refused; see above why",
                framed.line
            )));
        }
        // A few records of a compressed file can be much text.
        if lines.len() > most {
            return Err(too_large(most));
        }
        record.clear();
    }
    Ok(lines)
}

fn too_large(most: usize) -> ApiError {
    let problem = format!("comes to more than {most} bytes of records; with scripts, or by `sluice push`, it may");
    ApiError::invalid("/file", problem)
}

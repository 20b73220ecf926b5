//! `sluice query`: sends a query to a service and prints the answer.
//!
//! Invariant: answers contain data of other agents, so a terminal receives no control character of them.

mod text;

use std::io::{self, IsTerminal};

use anyhow::bail;
use client::model::Answer;
use serde_json::value::{RawValue, to_raw_value};
use types::render::answer::AnswerRows;
use types::render::csv::{CsvReader, RenderedCsv};

use crate::cli::{QueryArgs, QueryFormat};
use crate::exit::{self, WrongUsage};
use crate::terminal;

pub(crate) use text::table;

/// Most rows of an answer.
const MAX_ROWS: usize = 1_000;

/// Sends the query and prints the answer in the chosen format.
pub async fn run(arguments: &QueryArgs) -> anyhow::Result<()> {
    let format = if arguments.json {
        QueryFormat::Json
    } else {
        arguments.format
    };
    // Binary output would garble a terminal.
    if format == QueryFormat::Parquet && io::stdout().is_terminal() {
        bail!(WrongUsage("--format parquet: send the output to a file".to_owned()));
    }
    let client = arguments.remote.client()?;
    let answer = client
        .query(&arguments.slug, &arguments.sql, arguments.version, arguments.limit)
        .await
        .map_err(exit::of_arguments)?;
    match format {
        QueryFormat::Table => terminal::bytes(table(&answer).as_bytes())?,
        QueryFormat::Csv if io::stdout().is_terminal() => {
            let text = encoded(&answer, QueryFormat::Csv)?;
            terminal::line(&terminal::plain_lines(String::from_utf8_lossy(&text).lines()))?;
        }
        QueryFormat::Json => terminal::json(&answer)?,
        QueryFormat::Csv | QueryFormat::Parquet => terminal::bytes(&encoded(&answer, format)?)?,
    }
    // JSON has `truncated` as a field.
    if answer.truncated && format != QueryFormat::Json {
        terminal::note(&more_rows(answer.rows.len(), &arguments.slug));
    }
    Ok(())
}

/// Returns the line about rows that the answer has not.
fn more_rows(shown: usize, slug: &str) -> String {
    if shown < MAX_ROWS {
        return format!("there are more rows than these {shown}; ask for more with --limit, up to {MAX_ROWS}");
    }
    let pull = terminal::quoted(slug).map_or_else(String::new, |slug| format!(", or `sluice pull {slug}`"));
    format!("there are more rows than these {shown}, which are the most of an answer; narrow the statement{pull}")
}

/// Encodes the answer as a Parquet file, or as CSV with a header line.
fn encoded(answer: &Answer, format: QueryFormat) -> anyhow::Result<Vec<u8>> {
    let rows: Vec<Box<RawValue>> = answer.rows.iter().map(to_raw_value).collect::<Result<_, _>>()?;
    let columns = answer.columns.iter().map(|column| (&*column.name, &*column.kind));
    let columns = AnswerRows::new(columns, rows.iter().map(AsRef::as_ref))?.columns()?;
    if format == QueryFormat::Parquet {
        return Ok(catalog::parquet_file(&columns)?);
    }
    let (mut text, cells) = (Vec::new(), RenderedCsv::new(&columns, CsvReader::Program)?);
    CsvReader::Program.write_names(columns.schema_ref(), &mut text);
    cells.write(0..cells.len(), &mut text);
    Ok(text)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn csv(columns: &[(&str, &str)], rows: &Value) -> String {
        let columns: Vec<Value> = columns
            .iter()
            .map(|(name, kind)| json!({"name": name, "type": kind, "nullable": true}))
            .collect();
        let answer = json!({"version": 3, "columns": columns, "rows": rows, "truncated": false});
        let answer: Answer = serde_json::from_value(answer).unwrap();
        String::from_utf8(encoded(&answer, QueryFormat::Csv).unwrap()).unwrap()
    }

    #[test]
    fn more_rows_are_asked_for_only_where_there_can_be_more() {
        assert!(more_rows(200, "tides").contains("--limit, up to 1000"));
        let most = more_rows(1000, "tides");
        assert!(
            !most.contains("--limit") && most.contains("`sluice pull 'tides'`"),
            "{most}"
        );
        assert!(!more_rows(1000, "$(id)").contains("pull"));
    }

    #[test]
    fn csv_is_quoted_where_it_must_be() {
        let text = csv(
            &[("a,b", "Utf8"), ("c", "Json")],
            &json!([["say \"hi\"", {"x": [1]}], ["", null], ["two\nlines", 1.5], ["=plain", true]]),
        );
        assert_eq!(
            text,
            "\"a,b\",c\n\"say \"\"hi\"\"\",\"{\"\"x\"\":[1]}\"\n\"\",\n\"two\nlines\",1.5\n=plain,true\n"
        );
        assert_eq!(csv(&[("n", "Int64")], &json!([])), "n\n");
    }
}

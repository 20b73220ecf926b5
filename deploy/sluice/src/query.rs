//! `sluice query`: sends a query to a service and prints the answer.
//!
//! Invariant: answers contain data of other agents, so a terminal receives no control character of them.

mod parquet;
mod text;

use std::io::{self, IsTerminal};

use anyhow::bail;

use crate::cli::{QueryArgs, QueryFormat};
use crate::terminal;

pub(crate) use text::table;

/// Sends the query and prints the answer in the chosen format.
pub async fn run(arguments: &QueryArgs) -> anyhow::Result<()> {
    // Binary output would garble a terminal.
    if arguments.format == QueryFormat::Parquet && io::stdout().is_terminal() {
        bail!("--format parquet: send the output to a file");
    }
    let client = arguments.remote.client()?;
    let answer = client
        .query(&arguments.slug, &arguments.sql, arguments.version, arguments.limit)
        .await?;
    match arguments.format {
        QueryFormat::Table => terminal::bytes(table(&answer).as_bytes())?,
        QueryFormat::Csv if io::stdout().is_terminal() => {
            terminal::line(&terminal::plain_lines(text::csv(&answer).lines()))?;
        }
        QueryFormat::Csv => terminal::bytes(text::csv(&answer).as_bytes())?,
        QueryFormat::Json => terminal::json(&answer)?,
        QueryFormat::Parquet => terminal::bytes(&parquet::encode(&answer)?)?,
    }
    // JSON has `truncated` as a field.
    if answer.truncated && arguments.format != QueryFormat::Json {
        let shown = answer.rows.len();
        terminal::note(&format!(
            "there are more rows than these {shown}; ask for more with --limit, up to 1000"
        ));
    }
    Ok(())
}

//! `sluice query`: a question to a service, and its answer in a form of choice.
//!
//! Invariant: what comes back is data of other agents; a terminal is shown no control character of it.

mod parquet;
mod text;

use std::io::{self, IsTerminal};

use anyhow::bail;

use crate::cli::{Query, QueryFormat};
use crate::terminal;

pub(crate) use text::table;

/// Asks and prints.
pub async fn run(arguments: &Query) -> anyhow::Result<()> {
    if arguments.format == QueryFormat::Parquet && io::stdout().is_terminal() {
        bail!("--format parquet: send the output to a file");
    }
    let client = arguments.remote.client()?;
    let answer = client
        .query(&arguments.slug, &arguments.sql, arguments.version, arguments.limit)
        .await?;
    match arguments.format {
        QueryFormat::Table => terminal::bytes(table(&answer).as_bytes())?,
        QueryFormat::Csv => terminal::bytes(text::csv(&answer).as_bytes())?,
        QueryFormat::Json => terminal::json(&answer)?,
        QueryFormat::Parquet => terminal::bytes(&parquet::encode(&answer)?)?,
    }
    if answer.truncated && arguments.format != QueryFormat::Json {
        let shown = answer.rows.len();
        terminal::note(&format!(
            "there are more rows than these {shown}; ask for more with --limit, up to 1000"
        ));
    }
    Ok(())
}

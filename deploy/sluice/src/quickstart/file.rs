//! A CSV of the quickstart becomes a dataset by one command.
//!
//! Invariant: the command is that of everybody, `sluice push FILE --create`.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use anyhow::{Context, bail};
use clap::Parser as _;
use serde_json::Value;

use super::QuickstartStage;
use super::report::{head, item};
use crate::cli::{Cli, Command};
use crate::push;
use crate::push::project::type_name;
use crate::terminal::line;

/// Name of the file, without a number and its end.
const FILE_STEM: &str = "character-counts";
/// Folder in the data directory for the state of the push.
const STATE_FOLDER: &str = "push";

/// Writes a CSV of the categories of these records, makes a dataset of it with one command, and prints the fields that it has.
pub(super) async fn show(stage: &QuickstartStage, data: &Path, records: &[Value]) -> anyhow::Result<()> {
    // The name of the file is that of the dataset, and an earlier quickstart may have used it.
    let number = stage
        .slug
        .rsplit_once('-')
        .and_then(|(_, number)| number.parse::<u32>().ok());
    let name = number.map_or_else(|| FILE_STEM.to_owned(), |number| format!("{FILE_STEM}-{number}"));
    let file = data.join(format!("{name}.csv"));
    fs::write(&file, csv(records)).with_context(|| format!("cannot write `{}`", file.display()))?;
    head("A CSV becomes a dataset by one command, without a schema:")?;
    line(&format!("  sluice push {} --create --yes", file.display()))?;
    let (path, state) = (file.as_os_str(), data.join(STATE_FOLDER));
    let arguments = [
        "sluice".as_ref(),
        "push".as_ref(),
        path,
        "--create".as_ref(),
        "--yes".as_ref(),
        "--state".as_ref(),
        state.as_os_str(),
        "--server".as_ref(),
        stage.base.as_ref(),
        "--key".as_ref(),
        stage.agent.key.as_ref(),
    ];
    let Command::Push(arguments) = Cli::try_parse_from(arguments)?.command else {
        bail!("the command of the quickstart is no push");
    };
    let code = push::run(&arguments).await?;
    let project = stage.client.project(&name).await?;
    if project.latest_version != 1 {
        bail!("the CSV became no dataset: {code:?}");
    }
    let contract = push::project::contract_of(&project)?;
    let fields: Vec<String> = contract
        .fields()
        .iter()
        .map(|field| format!("{} {}", field.name, type_name(field.kind)))
        .collect();
    item("fields", &fields.join(", "))?;
    Ok(())
}

/// Returns a table of the categories: the number of their characters, and the first of them.
fn csv(records: &[Value]) -> String {
    let mut counts: BTreeMap<&str, (u64, &str)> = BTreeMap::new();
    for record in records {
        let text = |name: &str| record.get(name).and_then(Value::as_str).unwrap_or_default();
        counts
            .entry(text("category"))
            .or_insert_with(|| (0, text("codePoint")))
            .0 += 1;
    }
    let mut lines = vec!["Category;Characters;First code point\n".to_owned()];
    let rows = counts.into_iter();
    lines.extend(rows.map(|(category, (count, first))| format!("{category};{count};{first}\n")));
    lines.concat()
}

//! `sluice infer`: says what a file is. It creates nothing and sends nothing.
//!
//! Invariant: it needs no service. With one, it says whether a project could be created.

use std::process::ExitCode;

use crate::cli::InferArgs;
use crate::exit;
use crate::input::InputFile;
use crate::look::LookPlan;
use crate::pull::bar;
use crate::push::{BYTES_BAR, project, state_folder, table};
use crate::terminal;

/// Prints the columns of a file, the contract for it, notes and questions. The exit code is [`exit::EXIT_OPEN`] if a question
/// is open.
pub async fn run(arguments: &InferArgs) -> anyhow::Result<ExitCode> {
    let plan = LookPlan::of(&arguments.reading, None)?;
    let (client, key) = arguments.remote.client_with_source()?;
    if let Some(caller) = project::caller_if_reachable(&client, key.is_some()).await
        && let Some((active, room)) = project::at_limit(&caller, None)
    {
        terminal::note(&active);
        terminal::note(&room);
    }
    let input = InputFile::open(&arguments.file, &state_folder(None)?)?;
    let look = plan.look(&input, &bar(BYTES_BAR).with_message("reading")).await?.look;
    if arguments.json {
        terminal::json(&look)?;
    } else {
        let mut lines = table::lines(input.name(), &look);
        if let Some(contract) = &look.contract {
            lines.push(format!(
                "Contract: {}",
                terminal::plain(&serde_json::to_string(contract)?)
            ));
        }
        lines.extend(table::questions(&look));
        terminal::line(&lines.join("\n"))?;
    }
    Ok(if look.questions.is_empty() {
        ExitCode::SUCCESS
    } else {
        exit::EXIT_OPEN.into()
    })
}

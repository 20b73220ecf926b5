//! `sluice create`: a project without records, with the contract of a file or of JSON.
//!
//! Invariant: nothing is created without a person's yes, or `--yes`.

use std::process::ExitCode;

use crate::cli::CreateArgs;
use crate::input::InputFile;
use crate::look::LookPlan;
use crate::pull::bar;
use crate::push::project::{self, ProjectPlan, readme_of, schema_of};
use crate::push::{BYTES_BAR, state_folder, table};
use crate::terminal::{self, shown};

/// Creates a project and prints how records get into it.
pub async fn run(arguments: &CreateArgs) -> anyhow::Result<ExitCode> {
    let plan = ProjectPlan::of(Some(&arguments.slug), None, &arguments.project)?;
    let client = arguments.remote.client()?;
    // Before the file is read, which may take minutes.
    project::check_limit(&client, None).await?;
    let (contract, readme) = match (&arguments.like, &arguments.schema) {
        (Some(file), _) => {
            let input = InputFile::open(file, &state_folder(None)?)?;
            let mut plan = LookPlan::of(&arguments.reading, None)?;
            let found = plan.settled(&input, &bar(BYTES_BAR).with_message("reading")).await?;
            for line in table::lines(input.name(), &found.look) {
                terminal::note(&line);
            }
            let contract = found.look.contract()?;
            let readme = readme_of(&input.shown(), &table::form(&found.look), None, &contract);
            (contract, readme)
        }
        (None, Some(schema)) => {
            project::check_no_reading(&arguments.reading)?;
            let contract = schema_of(schema)?;
            let readme = readme_of("a contract", "no records yet", None, &contract);
            (contract, readme)
        }
        (None, None) => anyhow::bail!(crate::exit::WrongUsage("say --like FILE or --schema JSON".to_owned())),
    };
    plan.confirm(arguments.yes, "")?;
    let created = client.project_create(&plan.project(&contract, readme)?).await;
    let created = created.map_err(|error| project::explained(error, &plan.slug))?;
    if arguments.json {
        terminal::json(&created)?;
    } else {
        terminal::line(&format!("{} is created, {}.", shown(&created.slug), plan.visibility()))?;
        terminal::note(&format!("Next: sluice push FILE --project {}", plan.slug));
    }
    Ok(ExitCode::SUCCESS)
}

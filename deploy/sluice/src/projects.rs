//! `sluice archive` and `sluice delete`: end a project.
//!
//! Invariant: a dataset is deleted only if the caller typed its slug twice, or said `--yes`.

use std::process::ExitCode;

use serde_json::Value;

use crate::cli::{ArchiveArgs, DeleteArgs};
use crate::exit::Unanswered;
use crate::terminal::{self, shown};

/// Archives a project, for good.
pub async fn archive(arguments: ArchiveArgs) -> anyhow::Result<ExitCode> {
    let (client, _) = arguments.remote.client_with_key()?;
    let project = client.project_archive(&arguments.slug).await?;
    if arguments.json {
        terminal::json(&project)?;
    } else {
        let slug = shown(&project.slug);
        terminal::line(&format!(
            "{slug} is archived: it takes no more records, and can be read as before."
        ))?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Deletes a private dataset, after a confirmation.
pub async fn delete(arguments: DeleteArgs) -> anyhow::Result<ExitCode> {
    let (client, _) = arguments.remote.client_with_key()?;
    let slug = shown(&arguments.slug);
    if !arguments.yes {
        let question = format!("Delete `{slug}` with all its records, for good? Type its name: ");
        let open = match terminal::ask(&question)? {
            Some(typed) if typed == arguments.slug => None,
            Some(_) => Some(format!("that is not `{slug}`; nothing was deleted")),
            None => Some(format!(
                "nobody is here to confirm; nothing was deleted. --yes deletes `{slug}` without a question"
            )),
        };
        if let Some(open) = open {
            return Err(Unanswered(open).into());
        }
    }
    let deleted = client.project_delete(&arguments.slug).await?;
    if arguments.json {
        terminal::json(&deleted)?;
        return Ok(ExitCode::SUCCESS);
    }
    terminal::line(&format!("{slug} is deleted. Its name stays taken."))?;
    for remains in remains(&deleted) {
        terminal::note(&format!("Remains: {}", terminal::plain(&remains)));
    }
    Ok(ExitCode::SUCCESS)
}

/// Returns what the answer says that remains for a time: a text, or several.
fn remains(deleted: &Value) -> Vec<String> {
    match &deleted["remains"] {
        Value::String(text) => vec![text.clone()],
        Value::Array(texts) => texts.iter().filter_map(Value::as_str).map(str::to_owned).collect(),
        _ => Vec::new(),
    }
}

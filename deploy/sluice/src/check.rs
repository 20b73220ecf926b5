//! Proves that the database and the tables tell the same story; works beside a service that runs.
//!
//! Invariant: it changes nothing. The database is read before and after a table: what it said before must be in the
//! table, and what the table has must be in the database after, decided or still open. So work that goes on meanwhile
//! is never a violation.

mod compare;

use std::collections::BTreeSet;
use std::process::ExitCode;
use std::sync::Arc;

use anyhow::Context;
use object_store::ObjectStore;
use store::Schema;
use types::DatasetId;

use crate::assemble::{self, Layout};
use crate::cli;
use crate::config::Config;
use crate::objects;
use crate::terminal;

use compare::{Counts, compare};

/// Checks every dataset, prints what it found, and fails when a rule is broken.
pub async fn run(config: &Config, arguments: cli::Check) -> anyhow::Result<ExitCode> {
    let layout = Layout::new(&config.data.dir);
    let clock = assemble::clock(config);
    let store = assemble::connect(config, Schema::Current).await?;
    let objects = objects::open_to_read(config, &layout)?;
    let folders = table_folders(objects.as_ref()).await?;
    let mut projects = BTreeSet::new();
    let mut total = Counts::default();
    let mut broken = 0;
    for project in store.check_projects().await? {
        let before = store.check_project(project.id).await?;
        let tables = match &objects {
            Some(tables) => Some(Arc::clone(tables)),
            // Why again: the first table may be there by now.
            None => objects::open_to_read(config, &layout)?,
        };
        let report = match tables {
            Some(tables) => catalog::check::table(&tables, project.id).await?,
            None => catalog::check::Report::default(),
        };
        let after = store.check_project(project.id).await?;
        let open_since = clock.now().minus(arguments.open_for.0);
        let (counts, violations) = compare(&project, &before, &report, &after, open_since);
        terminal::line(&format!("{}: {counts}", project.slug))?;
        for violation in &violations {
            terminal::line(&format!("{}: VIOLATION {violation}", project.slug))?;
        }
        broken += violations.len();
        total.add(&counts);
        projects.insert(project.id.to_string());
    }
    // Why: a folder that was there before the projects were listed has its project among them.
    for folder in folders.difference(&projects) {
        terminal::line(&format!(
            "{folder}: VIOLATION table_without_project: no project has this table"
        ))?;
        broken += 1;
    }
    store.close().await;
    let projects = counted(projects.len(), "project");
    terminal::line(&format!("{projects}: {total}; {}", counted(broken, "violation")))?;
    Ok(if broken == 0 {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

fn counted(count: usize, what: &str) -> String {
    match count {
        0 => format!("no {what}s"),
        1 => format!("1 {what}"),
        _ => format!("{count} {what}s"),
    }
}

/// The names of the folders that can only be tables.
async fn table_folders(objects: Option<&Arc<dyn ObjectStore>>) -> anyhow::Result<BTreeSet<String>> {
    let Some(objects) = objects else {
        return Ok(BTreeSet::new());
    };
    let listed = objects
        .list_with_delimiter(None)
        .await
        .context("the tables cannot be listed")?;
    let names = listed.common_prefixes.iter().filter_map(|folder| folder.filename());
    let tables = names.filter(|name| name.parse::<DatasetId>().is_ok());
    Ok(tables.map(str::to_owned).collect())
}

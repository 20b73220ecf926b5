//! Proves that the database and the tables tell the same story; works beside a service that runs.
//!
//! Invariant: it changes nothing. The database is read before and after a table: what it said before must be in the
//! table, and what the table has must be in the database after, decided or still open. So work that goes on meanwhile
//! is never a violation.

mod compare;

use std::collections::BTreeSet;
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;

use anyhow::Context;
use object_store::ObjectStore;
use object_store::local::LocalFileSystem;
use types::DatasetId;

use crate::assemble::{self, Layout};
use crate::cli;
use crate::config::Config;
use crate::terminal;

use compare::{Counts, compare};

/// Checks every dataset, prints what it found, and fails when a rule is broken.
pub async fn run(config: &Config, arguments: cli::Check) -> anyhow::Result<ExitCode> {
    let layout = Layout::new(&config.data.dir);
    let clock = assemble::clock(config);
    let store = assemble::connect(config, false).await?;
    let folders = table_folders(&layout.tables())?;
    let mut projects = BTreeSet::new();
    let mut total = Counts::default();
    let mut broken = 0;
    for project in store.check_projects().await? {
        let before = store.check_project(project.id).await?;
        let report = match objects(&layout.tables())? {
            Some(objects) => catalog::check::table(&objects, project.id).await?,
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

/// The tables' store, opened to be read; `None` before the first table.
fn objects(tables: &Path) -> anyhow::Result<Option<Arc<dyn ObjectStore>>> {
    if !tables.exists() {
        return Ok(None);
    }
    let files = LocalFileSystem::new_with_prefix(tables)
        .with_context(|| format!("the tables `{}` cannot be read", tables.display()))?;
    Ok(Some(Arc::new(files)))
}

/// The names of the folders that can only be tables.
fn table_folders(tables: &Path) -> anyhow::Result<BTreeSet<String>> {
    if !tables.exists() {
        return Ok(BTreeSet::new());
    }
    let mut folders = BTreeSet::new();
    for entry in std::fs::read_dir(tables)? {
        let name = entry?.file_name().to_string_lossy().into_owned();
        if name.parse::<DatasetId>().is_ok() {
            folders.insert(name);
        }
    }
    Ok(folders)
}

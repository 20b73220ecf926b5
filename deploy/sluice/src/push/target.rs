//! The project that a file is pushed to.
//!
//! Invariant: nothing is created before the records were judged here, and a person or the command line agreed.

use std::path::Path;

use anyhow::{Context as _, bail};
use client::Client;
use client::model::Me;
use indicatif::HumanCount;
use types::Contract;

use super::check::CheckedRecords;
use super::project::{self, ProjectPlan};
use super::{FileWork, PreparedFile, table};
use crate::cli::PushArgs;
use crate::exit::Unanswered;
use crate::input::InputFile;
use crate::look::{FileLook, LookPlan};
use crate::terminal::{self, quoted_path, shown};

/// A push whose file is prepared.
pub(super) enum PushReady {
    /// Nothing is sent.
    Ends(CheckedRecords),
    Go {
        checked: Option<CheckedRecords>,
        /// True if the project was created just now.
        created: bool,
    },
}

/// The project that a file is pushed to.
pub(super) enum PushTarget {
    /// It exists.
    Existing {
        slug: String,
        contract: Contract,
        records: u64,
    },
    /// It is made of the file.
    New {
        plan: Box<ProjectPlan>,
        caller: Box<Me>,
        yes: bool,
    },
}

impl PushTarget {
    /// Finds the project, or fails if the caller cannot create another one.
    pub(super) async fn find(client: &Client, arguments: &PushArgs) -> anyhow::Result<Self> {
        let slug = arguments.project.as_deref();
        if arguments.create {
            let is_named = !InputFile::is_standard_input(&arguments.file);
            let name = is_named.then(|| arguments.file.to_string_lossy());
            let plan = ProjectPlan::of(slug, name.as_deref(), &arguments.new)?;
            let caller = project::check_limit(client, Some(&plan.slug)).await?;
            return Ok(Self::New {
                plan: Box::new(plan),
                caller: Box::new(caller),
                yes: arguments.yes,
            });
        }
        let slug = slug.context("--project is missing")?;
        let project = client.project(slug).await.map_err(|error| {
            let is_missing = error.problem().is_some_and(|problem| problem.status == 404);
            let error = anyhow::Error::from(error);
            if is_missing {
                return error.context(missing(slug, &arguments.file));
            }
            error
        })?;
        Ok(Self::Existing {
            slug: slug.to_owned(),
            contract: project::contract_of(&project)?,
            records: project.record_count,
        })
    }

    pub(super) fn slug(&self) -> &str {
        match self {
            Self::Existing { slug, .. } => slug,
            Self::New { plan, .. } => &plan.slug,
        }
    }

    pub(super) const fn is_new(&self) -> bool {
        matches!(self, Self::New { .. })
    }

    /// Returns the contract that the file is fitted to.
    pub(super) const fn contract(&self) -> Option<&Contract> {
        match self {
            Self::Existing { contract, .. } => Some(contract),
            Self::New { .. } => None,
        }
    }

    /// Returns the contract of the records.
    pub(super) fn contract_for(&self, look: &FileLook) -> anyhow::Result<Contract> {
        match self {
            Self::Existing { contract, .. } => Ok(contract.clone()),
            Self::New { .. } => look.contract(),
        }
    }

    /// Fails if rows are numbered from 1 for a dataset that has records: those of a second file would be lost to the first.
    pub(super) fn check_number(&self, plan: &LookPlan) -> anyhow::Result<()> {
        let (Self::Existing { records, .. }, Some(number)) = (self, &plan.options.number) else {
            return Ok(());
        };
        if *records == 0 || number.start > 1 {
            return Ok(());
        }
        bail!(Unanswered(format!(
            "the dataset has {} records: --number-rows {}={}",
            HumanCount(*records),
            shown(&number.field),
            records.saturating_add(1)
        )))
    }

    /// Prints what the file is.
    pub(super) fn tell(&self, input: &InputFile, look: &FileLook) {
        // The fields of a dataset that exists are known, and what was decided about the file is not.
        let lines = match self {
            Self::New { .. } => table::lines(input.name(), look),
            Self::Existing { .. } if look.notes.is_empty() => Vec::new(),
            Self::Existing { .. } => table::noted_lines(input.name(), look),
        };
        for line in lines {
            terminal::note(&line);
        }
    }

    /// Returns true if the project exists, and is one that can be gone on with.
    pub(super) async fn is_there(&self, client: &Client, contract: &Contract) -> anyhow::Result<bool> {
        match self {
            Self::Existing { .. } => Ok(true),
            Self::New { plan, caller, .. } => project::own_equal(client, caller, plan, contract).await,
        }
    }

    /// Judges the records, and creates the project if nothing speaks against it.
    pub(super) async fn make_ready(
        &self,
        client: &Client,
        work: &FileWork<'_>,
        prepared: &PreparedFile,
        folder: &Path,
        is_there: bool,
    ) -> anyhow::Result<PushReady> {
        let checked = match work.check(prepared, folder).await? {
            Some(checked) if checked.is_rejected() || work.arguments.dry_run => return Ok(PushReady::Ends(checked)),
            checked => checked,
        };
        if let Some(checked) = &checked {
            checked.tell(work.place(), self.is_new(), work.arguments.refused.as_deref());
        }
        work.input.check_unchanged()?;
        let created = self.create(client, work, is_there).await?;
        Ok(PushReady::Go { checked, created })
    }

    /// Creates the project, unless it exists. Returns true if it was created.
    async fn create(&self, client: &Client, work: &FileWork<'_>, is_there: bool) -> anyhow::Result<bool> {
        let Self::New { plan, yes, .. } = self else {
            return Ok(false);
        };
        if is_there {
            return Ok(false);
        }
        plan.confirm(*yes, ", and send it")?;
        let readme = project::readme_of(
            &work.input.shown(),
            &table::form(&work.found.look),
            work.found.look.complete.then_some(work.found.look.records),
            work.contract,
        );
        let new = plan.project(work.contract, readme)?;
        let created = client.project_create(&new).await;
        created.map_err(|error| project::explained(error, &plan.slug))?;
        Ok(true)
    }
}

/// Returns the sentence about a project that is not there.
fn missing(slug: &str, file: &Path) -> String {
    let slug = shown(slug);
    match quoted_path(file) {
        Some(file) => format!("no project `{slug}`: `sluice push {file} --create --project {slug}` makes it"),
        None => format!("no project `{slug}`: `sluice push FILE --create` makes one"),
    }
}

//! `sluice push`: makes a dataset of a file, or appends it to one.
//!
//! Invariants:
//! - Nothing is created or sent before the whole file was read, what is open is settled, and the records were judged here,
//!   unless the command line says otherwise.
//! - A text is sent as it is. Another file is converted into a file of its own, so that an interrupted push can continue
//!   with the same bytes.

use std::fs::{self, File};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io::{self, BufWriter, Write as _};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

use anyhow::{Context, anyhow, bail};
use client::model::{Contribution, Me, OpenUpload};
use client::{Client, PushEvent, PushProgress};
use flate2::Compression;
use flate2::write::GzEncoder;
use indicatif::{HumanCount, ProgressBar};
use serde::Deserialize as _;
use serde_json::{Value, json};
use tabular::detect::FileCompression;
use tabular::reading::Reading;
use types::Contract;

use self::check::{CheckPlan, CheckedRecords};
use self::outcome::PushContext;
use self::project::ProjectPlan;
use crate::cli::{PushArgs, RefusedEffect};
use crate::exit::{self, FileRefused, Unanswered};
use crate::input::InputFile;
use crate::look::{FileLook, LookPlan, LookedAtFile};
use crate::made::{UnfinishedFile, private_folder};
use crate::pull::bar;
use crate::signals::Signals;
use crate::terminal::{self, quoted_path, shown};
use crate::{config, uploads};

mod check;
mod outcome;
pub(crate) mod project;
pub(crate) mod table;

/// Template of the bar of bytes that are read or sent.
pub(crate) const BYTES_BAR: &str = "{msg} {bar:40} {bytes}/{total_bytes}, {binary_bytes_per_sec}, {eta} left";
/// The share of duplicates, one in this many, from which a new dataset gets a note on them.
const NOTED_DUPLICATES: u64 = 100;

/// Pushes a file and prints the outcome. The exit code is [`exit::EXIT_REFUSED`] if records were refused, but not where the
/// dataset has all of them already.
pub async fn run(arguments: &PushArgs) -> anyhow::Result<ExitCode> {
    if !arguments.create {
        project::check_unused(&arguments.new)?;
    }
    let client = arguments.remote.client()?;
    let folder = state_folder(arguments.state.clone())?;
    // Before the file is read, which may take minutes.
    let target = PushTarget::find(&client, arguments).await?;
    let input = InputFile::open(&arguments.file, &folder)?;
    let mut plan = LookPlan::of(&arguments.reading, target.contract())?;
    target.check_number(&plan)?;
    let found = plan.settled(&input, &bar(BYTES_BAR).with_message("reading")).await?;
    target.tell(&input, &found.look);
    let contract = target.contract_for(&found.look)?;
    let is_there = target.is_there(&client, &contract).await?;
    let work = FileWork {
        arguments,
        input: &input,
        plan: &plan,
        found: &found,
        contract: &contract,
        slug: target.slug(),
    };
    let place = PushFiles::of(&work, &folder)?;
    place.tidy()?;
    let prepared = work.prepare(&place).await?;
    let ready = target.make_ready(&client, &work, &prepared, &folder, is_there).await;
    let (checked, created) = match ready {
        Ok(PushReady::Go { checked, created }) => (checked, created),
        Ok(PushReady::Ends(checked)) => {
            place.discard_made()?;
            return work.end_without_push(&checked);
        }
        Err(error) => {
            // The error is more important than one of this.
            place.discard_made().ok();
            return Err(error);
        }
    };
    let contribution = work.push(&client, &place, &prepared).await?;
    let context = PushContext {
        slug: target.slug(),
        place: work.place(),
        told: checked.as_ref().map_or(0, |checked| checked.refused),
        kept_in: arguments.refused.as_ref().map(|file| file.display().to_string()),
    };
    work.print(&context, &contribution, checked.as_ref())?;
    if created && contribution.is_merged() && !arguments.json {
        terminal::note(&format!(
            "Next: sluice query {} \"SELECT * FROM records LIMIT 5\"",
            target.slug()
        ));
    }
    Ok(match &contribution.reason {
        _ if contribution.is_merged() || contribution.has_nothing_new() => ExitCode::SUCCESS,
        // The service gave up on it, whatever it contains.
        Some(reason) if reason.code == "unprocessable" => exit::EXIT_FAILED.into(),
        _ => exit::EXIT_REFUSED.into(),
    })
}

/// A push whose file is prepared.
enum PushReady {
    /// Nothing is sent.
    Ends(CheckedRecords),
    Go {
        checked: Option<CheckedRecords>,
        /// True if the project was created just now.
        created: bool,
    },
}

/// The project that a file is pushed to.
enum PushTarget {
    /// It exists.
    Existing {
        slug: String,
        contract: Contract,
        records: u64,
    },
    /// It is made of the file.
    New { plan: Box<ProjectPlan>, caller: Box<Me>, yes: bool },
}

impl PushTarget {
    /// Finds the project, or fails if the caller cannot create another one.
    async fn find(client: &Client, arguments: &PushArgs) -> anyhow::Result<Self> {
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

    fn slug(&self) -> &str {
        match self {
            Self::Existing { slug, .. } => slug,
            Self::New { plan, .. } => &plan.slug,
        }
    }

    const fn is_new(&self) -> bool {
        matches!(self, Self::New { .. })
    }

    /// Returns the contract that the file is fitted to.
    const fn contract(&self) -> Option<&Contract> {
        match self {
            Self::Existing { contract, .. } => Some(contract),
            Self::New { .. } => None,
        }
    }

    /// Returns the contract of the records.
    fn contract_for(&self, look: &FileLook) -> anyhow::Result<Contract> {
        match self {
            Self::Existing { contract, .. } => Ok(contract.clone()),
            Self::New { .. } => look.contract(),
        }
    }

    /// Fails if rows are numbered from 1 for a dataset that has records: those of a second file would be lost to the first.
    fn check_number(&self, plan: &LookPlan) -> anyhow::Result<()> {
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
    fn tell(&self, input: &InputFile, look: &FileLook) {
        let lines = table::lines(input.name(), look);
        // The fields of a dataset that exists are known, and what was decided about the file is not.
        if self.is_new() {
            lines.iter().for_each(|line| terminal::note(line));
        } else if !look.notes.is_empty() {
            table::noted_lines(input.name(), look).iter().for_each(|line| terminal::note(line));
        }
    }

    /// Returns true if the project exists, and is one that can be gone on with.
    async fn is_there(&self, client: &Client, contract: &Contract) -> anyhow::Result<bool> {
        match self {
            Self::Existing { .. } => Ok(true),
            Self::New { plan, caller, .. } => project::own_equal(client, caller, plan, contract).await,
        }
    }

    /// Judges the records, and creates the project if nothing speaks against it.
    async fn make_ready(
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
            checked.tell(self.is_new(), work.arguments.refused.as_deref());
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

/// The file that is sent.
#[derive(Debug)]
struct PreparedFile {
    file: PathBuf,
    gzip: bool,
    reading: Reading,
    /// The converted file, to be removed at the end. `None` if the caller's file is sent.
    made: Option<PathBuf>,
}

/// A file on its way into a dataset.
struct FileWork<'a> {
    arguments: &'a PushArgs,
    input: &'a InputFile,
    plan: &'a LookPlan,
    found: &'a LookedAtFile,
    contract: &'a Contract,
    slug: &'a str,
}

impl FileWork<'_> {
    /// Returns the word for the place of a record in the file.
    fn place(&self) -> &'static str {
        if self.found.kind.is_text() {
            "line"
        } else {
            "row"
        }
    }

    /// Converts or compresses the file if needed, unless an earlier push has done so.
    async fn prepare(&self, place: &PushFiles) -> anyhow::Result<PreparedFile> {
        let (input, found) = (self.input, self.found);
        let reading = found.look.reading.clone();
        let is_compressed = found.compression != FileCompression::None;
        // A compressed text is sent as it is, because the service reads it.
        if found.kind.is_text() && (is_compressed || !self.arguments.gzip) {
            return Ok(PreparedFile {
                file: input.path().to_owned(),
                gzip: found.compression == FileCompression::Gzip,
                reading,
                made: None,
            });
        }
        // The file has its name only once it is whole, so an existing one is complete.
        if !place.made.exists() {
            if let Some(folder) = place.made.parent() {
                private_folder(folder)?;
            }
            let converting = bar(BYTES_BAR).with_message("converting");
            let made = UnfinishedFile::begin(&place.made)?;
            let out = BufWriter::with_capacity(1 << 20, made.file()?);
            let converted = self.convert(&converting, out).await;
            converting.finish_and_clear();
            input.check_unchanged()?;
            converted.with_context(|| input.shown())?;
            if made.is_empty()? {
                return Err(FileRefused::mark(anyhow!("{} has no records", input.shown())));
            }
            made.finish(&place.made)?;
        }
        Ok(PreparedFile {
            file: place.made.clone(),
            gzip: self.arguments.gzip,
            reading,
            made: Some(place.made.clone()),
        })
    }

    /// Writes the file as it is sent.
    async fn convert(&self, bar: &ProgressBar, out: BufWriter<File>) -> anyhow::Result<()> {
        let (plan, found) = (self.plan, self.found);
        if self.arguments.gzip {
            let out = GzEncoder::new(out, Compression::fast());
            plan.convert(self.input, found, bar, out).await?.finish()?.flush()?;
        } else {
            plan.convert(self.input, found, bar, out).await?.flush()?;
        }
        Ok(())
    }

    /// Judges the records here, unless the command line says otherwise.
    async fn check(&self, prepared: &PreparedFile, folder: &Path) -> anyhow::Result<Option<CheckedRecords>> {
        if self.arguments.no_check {
            return Ok(None);
        }
        let plan = CheckPlan {
            file: prepared.file.clone(),
            gzip: prepared.gzip,
            reading: prepared.reading.clone(),
            contract: Arc::new(self.contract.clone()),
            drops_refused: self.arguments.on_refused == RefusedEffect::Drop,
            refused: self.arguments.refused.clone(),
            folder: folder.to_owned(),
            name: self.input.shown(),
        };
        let checking = bar(BYTES_BAR).with_message("checking");
        let checked = check::check(plan, &checking).await;
        checking.finish_and_clear();
        let checked = checked?;
        self.input.check_unchanged()?;
        Ok(Some(checked))
    }

    /// Ends a push whose records are refused, or that is only tried.
    fn end_without_push(&self, checked: &CheckedRecords) -> anyhow::Result<ExitCode> {
        if self.arguments.json {
            terminal::json(&json!({
                "project": self.slug, "checked": checked.json(self.place()), "schemaDef": self.contract,
                "reading": self.found.look.reading, "notes": self.found.look.notes,
            }))?;
        } else {
            let lines = checked.lines(self.place(), self.arguments);
            terminal::line(&terminal::plain_lines(lines.iter().map(String::as_str)))?;
        }
        Ok(if checked.is_rejected() {
            exit::EXIT_REFUSED.into()
        } else {
            ExitCode::SUCCESS
        })
    }

    /// Sends the file and waits for its outcome.
    async fn push(&self, client: &Client, place: &PushFiles, prepared: &PreparedFile) -> anyhow::Result<Contribution> {
        let arguments = self.arguments;
        // From here on Ctrl-C drops the push, whose state file has every part that was acknowledged.
        let mut interrupted = Signals::listen()?;
        let reading = &prepared.reading;
        let push = client::Push {
            file: prepared.file.clone(),
            gzip: prepared.gzip,
            slug: self.slug.to_owned(),
            source_declaration: arguments.source.clone(),
            // Services that know no reading read JSON Lines without one.
            reading: (*reading != Reading::default()).then(|| serde_json::to_value(reading)).transpose()?,
            drops_refused: arguments.on_refused == RefusedEffect::Drop,
            part_size: arguments.part_size.0,
            state: place.state.clone(),
        };
        let sending = bar(BYTES_BAR).with_message("sending");
        let on_event = on_event(&sending, self.input.name());
        let contribution = tokio::select! {
            pushed = client.push(&push, &on_event) => pushed.map_err(|error| {
                explained(self.of_input(error, &prepared.file))
            }),
            () = interrupted.asked() => Err(self.interrupted(&sending)),
        };
        sending.finish_and_clear();
        if self.input.is_spooled() && contribution.is_err() {
            // Nobody can go on with it. The error of the push is more important than one of this.
            client.push_cancel(&place.state).await.ok();
        }
        // While the state file exists, the next push needs exactly the converted file.
        let removed = match prepared.made.as_ref().filter(|_| !place.state.exists()) {
            Some(made) => fs::remove_file(made).with_context(|| format!("`{}` could not be removed", made.display())),
            None => Ok(()),
        };
        // The error of the push is more important than one of the removal.
        let contribution = contribution?;
        removed?;
        Ok(contribution)
    }

    fn interrupted(&self, sending: &ProgressBar) -> anyhow::Error {
        let percent = sending.position().saturating_mul(100).checked_div(sending.length().unwrap_or(0)).unwrap_or(0);
        if self.input.is_spooled() {
            return anyhow!("interrupted at {percent} %; nothing of it is kept");
        }
        anyhow!("interrupted at {percent} %; the same command goes on")
    }

    /// Replaces the path of the file that is sent in an error with the name of the caller's file.
    fn of_input(&self, error: client::Error, sent: &Path) -> client::Error {
        let name = || PathBuf::from(self.input.name());
        match error {
            // Names are compared, because the client reports the canonical path.
            client::Error::File { path, source } if path.file_name() == sent.file_name() => client::Error::File {
                path: name(),
                source,
            },
            client::Error::Place { path, problem } if path.file_name() == sent.file_name() => client::Error::Place {
                path: name(),
                problem,
            },
            other => other,
        }
    }

    /// Prints the outcome.
    fn print(
        &self,
        context: &PushContext<'_>,
        contribution: &Contribution,
        checked: Option<&CheckedRecords>,
    ) -> io::Result<()> {
        if self.arguments.json {
            let checked = checked.map_or(Value::Null, |checked| checked.json(self.place()));
            return terminal::json(&json!({
                "project": self.slug, "checked": checked, "contribution": contribution, "notes": self.found.look.notes,
            }));
        }
        // Names of members and texts of the service are in them.
        let lines = outcome::outcome(context, contribution);
        terminal::line(&terminal::plain_lines(lines.iter().map(String::as_str)))
    }
}

/// Adds to an error what the caller can do about it.
fn explained(error: client::Error) -> anyhow::Error {
    let uploads = error.problem().and_then(|problem| problem.body.get("uploads"));
    let uploads = uploads.and_then(|uploads| Vec::<OpenUpload>::deserialize(uploads).ok());
    let lines = uploads.unwrap_or_default();
    let lines: Vec<String> = lines
        .iter()
        .map(|upload| format!("\n  {}", uploads::line(upload)))
        .collect();
    if lines.is_empty() {
        return error.into();
    }
    anyhow!("{error}{}", lines.concat())
}

/// Returns a callback that shows the progress of a push on `bar`.
fn on_event(bar: &ProgressBar, name: &str) -> PushProgress {
    let (bar, name) = (bar.clone(), shown(name));
    Arc::new(move |event| match event {
        PushEvent::Cancelled => bar.suspend(|| {
            terminal::note(&format!(
                "{name} or its options have changed: the earlier upload is cancelled, all is sent again"
            ));
        }),
        PushEvent::Planned { bytes, sent } => {
            bar.set_length(bytes);
            bar.set_position(sent);
        }
        PushEvent::Sent(bytes) => bar.inc(bytes),
        PushEvent::Judging { progress, waiting } => {
            // The total of the judgement is unknown, so a spinner replaces the bar.
            bar.set_style(indicatif::ProgressStyle::default_spinner());
            bar.set_message(match (waiting, progress) {
                (Some(waiting), _) => format!("waiting: {waiting}"),
                (None, Some((_, rows))) => format!("{} records judged", HumanCount(rows)),
                (None, None) => "uploaded; waiting for the outcome".to_owned(),
            });
            bar.tick();
        }
    })
}

/// Returns the folder that remembers the progress of pushes, and has copies of what has no name.
pub(crate) fn state_folder(named: Option<PathBuf>) -> anyhow::Result<PathBuf> {
    let default = || config::state_home().map(|state| state.join("sluice/push"));
    let folder = named.or_else(default);
    folder.context("there is no home folder for the state of the push; name a folder with --state")
}

/// Paths of the files of one push.
#[derive(Debug)]
struct PushFiles {
    /// The state file.
    state: PathBuf,
    /// The converted file.
    made: PathBuf,
}

impl PushFiles {
    /// Returns the paths of a push. The state file is the same for the same path, project and service, so a push of a
    /// changed file finds what became of the earlier one. The converted file is also named by size, time of change and
    /// options, which decide its bytes.
    fn of(work: &FileWork<'_>, folder: &Path) -> anyhow::Result<Self> {
        let (input, arguments) = (work.input, work.arguments);
        let path = if input.is_spooled() {
            // No other command continues it, whatever it is named.
            PathBuf::from(format!("{}:{}", std::process::id(), input.path().display()))
        } else {
            let path = input.path().canonicalize();
            path.with_context(|| format!("`{}` cannot be read", input.path().display()))?
        };
        let state = hash(&(&path, work.slug, &arguments.remote.server));
        let contract = serde_json::to_string(work.contract)?;
        let flags = format!("{:?}", arguments.reading);
        let bytes = hash(&(input.version(), arguments.gzip, contract, flags));
        Ok(Self {
            made: folder.join(format!("{state}-{bytes}")),
            state: folder.join(format!("{state}.json")),
        })
    }

    /// Removes what earlier states of the file were converted to.
    fn tidy(&self) -> io::Result<()> {
        let Some(folder) = self.state.parent().filter(|folder| folder.exists()) else {
            return Ok(());
        };
        let stem = self.state.file_stem().unwrap_or_default().as_encoded_bytes();
        for entry in fs::read_dir(folder)? {
            let path = entry?.path();
            let name = path.file_name().unwrap_or_default().as_encoded_bytes();
            let is_of_push = name.strip_prefix(stem).is_some_and(|rest| rest.starts_with(b"-"));
            if is_of_push && path != self.made {
                fs::remove_file(path)?;
            }
        }
        Ok(())
    }

    /// Removes the converted file of a push that does not take place, unless an earlier one can go on with it.
    fn discard_made(&self) -> io::Result<()> {
        if self.state.exists() {
            return Ok(());
        }
        match fs::remove_file(&self.made) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            _ => Ok(()),
        }
    }
}

fn hash(what: &impl Hash) -> String {
    let mut hasher = DefaultHasher::new();
    what.hash(&mut hasher);
    format!("{:016x}", hasher.finish())
}

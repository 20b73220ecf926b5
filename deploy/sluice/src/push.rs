//! `sluice push`: makes a dataset of a file, or appends it to one.
//!
//! Invariants:
//! - Nothing is created or sent before the whole file was read, what is open is settled, and the records were judged here,
//!   unless the command line says otherwise.
//! - A text is sent as it is. Another file is converted into a file of its own, so that an interrupted push can continue
//!   with the same bytes.

use std::fs::{self, File};
use std::io::{self, BufWriter, Write as _};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

use anyhow::{Context as _, anyhow};
use client::model::{Contribution, OpenUpload};
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
use self::files::PushFiles;
use self::outcome::PushContext;
use self::target::{PushReady, PushTarget};
use crate::cli::{PushArgs, RefusedEffect};
use crate::exit::{self, FileRefused};
use crate::input::InputFile;
use crate::look::{LookPlan, LookedAtFile};
use crate::made::{UnfinishedFile, private_folder};
use crate::pull::bar;
use crate::signals::Signals;
use crate::terminal::{self, shown};
use crate::uploads;

mod check;
mod files;
mod outcome;
pub(crate) mod project;
pub(crate) mod table;
mod target;

pub(crate) use self::files::state_folder;

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
        kept: checked.as_ref().map_or(0, CheckedRecords::kept),
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
        if self.found.kind.is_text() { "line" } else { "row" }
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
        if let Some(refused) = &self.arguments.refused
            && is_same_file(refused, self.input.path())
        {
            anyhow::bail!(exit::WrongUsage(format!(
                "--refused {} is the file that is pushed; name another",
                shown(&refused.display().to_string())
            )));
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
            reading: (*reading != Reading::default())
                .then(|| serde_json::to_value(reading))
                .transpose()?,
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
        let percent = sending
            .position()
            .saturating_mul(100)
            .checked_div(sending.length().unwrap_or(0))
            .unwrap_or(0);
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
            client::Error::File { path, source } if path.file_name() == sent.file_name() => {
                client::Error::File { path: name(), source }
            }
            client::Error::Place { path, problem } if path.file_name() == sent.file_name() => {
                client::Error::Place { path: name(), problem }
            }
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
                (Some(waiting), _) => format!("waiting: {}", terminal::plain(&waiting)),
                (None, Some((_, rows))) => format!("{} records judged", HumanCount(rows)),
                (None, None) => "uploaded; waiting for the outcome".to_owned(),
            });
            bar.tick();
        }
    })
}

/// Returns true if both paths lead to one file.
fn is_same_file(one: &Path, other: &Path) -> bool {
    let id = |path: &Path| fs::metadata(path).map(|file| (file.dev(), file.ino())).ok();
    id(one).is_some_and(|one| id(other) == Some(one))
}

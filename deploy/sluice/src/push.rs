//! `sluice push`: uploads a file into a dataset.
//!
//! Invariant: JSON Lines are sent. Another file is converted by the project's contract into a file of its own, so that
//! an interrupted push can continue with the same bytes.

use std::fs::{self, DirBuilder, File};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io::{self, BufReader, BufWriter, Read, Write};
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

use anyhow::{Context, anyhow, bail};
use client::model::{Contribution, OpenUpload};
use client::{Client, PushEvent, PushProgress};
use flate2::Compression;
use flate2::write::GzEncoder;
use indicatif::{HumanCount, ProgressBar};
use serde::Deserialize as _;
use tabular::files::{FileInput, LineWriter, RecordSink, RowProblem, convert_file, infer_file};
use tabular::infer::{FileFormat, InferOptions};
use types::Contract;

use self::made::UnfinishedFile;
use crate::cli::{PushArgs, PushFormat};
use crate::exit::{self, FileRefused};
use crate::pull::bar;
use crate::signals::Signals;
use crate::terminal::{self, shown};
use crate::{config, uploads};

mod cell;
mod csv;
mod made;

/// First two bytes of a gzip file (RFC 1952 section 2.3.1).
const GZIP_MAGIC: [u8; 2] = [0x1f, 0x8b];
/// First bytes of a file of Apache Parquet.
const PARQUET_MAGIC: &[u8] = b"PAR1";
/// First bytes of files that no format of records begins with, and what they are.
const REFUSED_FORMATS: [(&[u8], &str); 3] = [
    (b"BZh", "compressed with bzip2, which is not read"),
    (b"\xfd7zXZ\0", "compressed with xz, which is not read"),
    (b"PK\x03\x04", "a ZIP archive, which is not read"),
];

/// Pushes a file and prints the outcome. The exit code is [`exit::EXIT_REFUSED`] if the contribution was rejected, but not where
/// the dataset has all its records already.
pub async fn run(arguments: PushArgs) -> anyhow::Result<ExitCode> {
    let client = arguments.remote.client()?;
    let folder = state_folder(&arguments)?;
    let place = PushFiles::of(&arguments, &folder)?;
    place.tidy()?;
    let prepared = prepare(&client, &arguments, &place).await?;
    // From here on Ctrl-C drops the push, whose state file has every part that was acknowledged.
    let mut interrupted = Signals::listen()?;
    let push = client::Push {
        file: prepared.file,
        gzip: prepared.gzip,
        slug: arguments.project.clone(),
        source_declaration: arguments.source.clone(),
        part_size: arguments.part_size.0,
        state: place.state.clone(),
    };
    let sending = bar("{bar:40} {bytes}/{total_bytes}, {binary_bytes_per_sec}, {eta} left");
    let on_event = on_event(&sending, &arguments.file);
    let contribution = tokio::select! {
        pushed = client.push(&push, &on_event) => pushed.map_err(|error| {
            explained(of_file(error, &place.made, &arguments.file))
        }),
        () = interrupted.asked() => Err(anyhow!("interrupted; the same command resumes the push")),
    };
    sending.finish_and_clear();
    // While the state file exists, the next push needs exactly the converted file.
    let removed = match prepared.made.filter(|_| !place.state.exists()) {
        Some(made) => fs::remove_file(&made).with_context(|| format!("`{}` could not be removed", made.display())),
        None => Ok(()),
    };
    // The error of the push is more important than one of the removal.
    let contribution = contribution?;
    removed?;
    summary(&arguments, &contribution)?;
    Ok(match &contribution.reason {
        _ if contribution.is_merged() || contribution.has_nothing_new() => ExitCode::SUCCESS,
        // The service gave up on it, whatever it contains.
        Some(reason) if reason.code == "unprocessable" => exit::EXIT_FAILED.into(),
        _ => exit::EXIT_REFUSED.into(),
    })
}

/// Adds to an error what the caller can do about it.
fn explained(error: client::Error) -> anyhow::Error {
    if matches!(&error, client::Error::Place { problem, .. } if problem == "is empty") {
        return FileRefused::mark(error.into());
    }
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
fn on_event(bar: &ProgressBar, file: &Path) -> PushProgress {
    let (bar, name) = (
        bar.clone(),
        file.file_name().unwrap_or_default().to_string_lossy().into_owned(),
    );
    Arc::new(move |event| match event {
        PushEvent::Cancelled => bar.suspend(|| {
            let name = shown(&name);
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

/// Replaces the path of the converted file in an error with that of the caller's file.
fn of_file(error: client::Error, made: &Path, file: &Path) -> client::Error {
    match error {
        // Names are compared, because the client reports the canonical path.
        client::Error::File { path, source } if path.file_name() == made.file_name() => client::Error::File {
            path: file.to_owned(),
            source,
        },
        client::Error::Place { path, problem } if path.file_name() == made.file_name() => client::Error::Place {
            path: file.to_owned(),
            problem,
        },
        other => other,
    }
}

/// Returns the place in the file of each record: its line, or its row in a Parquet file. Records are counted from 0 and
/// in order.
fn places_of(arguments: &PushArgs, records: &[u64]) -> anyhow::Result<Vec<String>> {
    let numbered = |name: &str, numbers: &[u64]| numbers.iter().map(|number| format!("{name} {number}")).collect();
    // The service counts records from 0, people count lines and rows from 1.
    let counted: Vec<u64> = records.iter().map(|record| record + 1).collect();
    Ok(match format_of(arguments, &begin(&arguments.file)?) {
        PushFormat::Ndjson => numbered("line", &counted),
        PushFormat::Csv => numbered("line", &csv::lines_of(File::open(&arguments.file)?, records)?),
        PushFormat::Parquet => numbered("row", &counted),
    })
}

/// Replaces the line number in a message of the service, which counts converted lines, with the place in the caller's
/// file.
fn of_the_file(arguments: &PushArgs, message: &str) -> String {
    // Only a message that names a line is changed. Any other is shown as it is.
    let placed = message.split_once("on line ").and_then(|(before, after)| {
        let digits = after.bytes().take_while(u8::is_ascii_digit).count();
        let (number, after) = after.split_at(digits);
        let record = number.parse::<u64>().ok()?.checked_sub(1)?;
        let places = places_of(arguments, &[record]).ok()?;
        Some(format!("{before}on {}{after}", places.first()?))
    });
    placed.unwrap_or_else(|| message.to_owned())
}

/// Returns the sentence about the outcome of a contribution. Duplicates come first, since they are what people overlook.
fn headline(arguments: &PushArgs, contribution: &Contribution) -> String {
    let slug = &arguments.project;
    if contribution.has_nothing_new() {
        let (records, duplicates) = contribution.duplicates().unwrap_or_default();
        return match (records, contribution.refused_count.unwrap_or(0)) {
            (1, 0) => format!("Nothing new: the record is in `{slug}` already."),
            (records, 0) => format!(
                "Nothing new: all {} records are in `{slug}` already.",
                HumanCount(records)
            ),
            (records, refused) => format!(
                "Nothing new: of {} records {} are in `{slug}` already, {} are refused and left out.",
                HumanCount(records),
                HumanCount(duplicates),
                HumanCount(refused)
            ),
        };
    }
    match (contribution.merged_version, &contribution.reason) {
        (Some(version), _) => {
            // The service says what was left out, and why.
            let merged = contribution.summary.clone();
            let new = HumanCount(contribution.accepted_count.unwrap_or(0));
            let merged = merged.unwrap_or_else(|| format!("{new} records are new"));
            format!("{slug} version {version}: {merged}.")
        }
        (None, Some(reason)) => {
            let (status, code, message) = (
                &contribution.status,
                &reason.code,
                of_the_file(arguments, &reason.message),
            );
            format!("{slug}: {status} ({code}): {message}")
        }
        (None, None) => format!("{slug}: {}", contribution.status),
    }
}

/// Prints the outcome of a contribution.
fn summary(arguments: &PushArgs, contribution: &Contribution) -> anyhow::Result<()> {
    // Names of members and texts of the service are in them.
    let lines = outcome(arguments, contribution);
    terminal::line(&terminal::plain_lines(lines.iter().map(String::as_str)))?;
    Ok(())
}

/// Returns the lines about the outcome of a contribution: tallies of the gates, and the refused records with their reasons.
fn outcome(arguments: &PushArgs, contribution: &Contribution) -> Vec<String> {
    let id = &contribution.id;
    // Of what is merged, or known already, a duplicate is no news, and what was left out is.
    let is_over = contribution.is_merged() || contribution.has_nothing_new();
    let verdicts = contribution.verdicts.iter();
    let verdicts: Vec<_> = verdicts.filter(|said| !is_over || said.verdict == "refuse").collect();
    let records: Vec<u64> = verdicts.iter().map(|verdict| verdict.row).collect();
    // Reading the file again may fail. Then records are named by their number.
    let places = places_of(arguments, &records).unwrap_or_default();
    let place = |at: usize| -> String {
        let known = places.get(at).cloned();
        known.unwrap_or_else(|| format!("record {}", records[at] + 1))
    };
    let mut lines = vec![headline(arguments, contribution)];
    for tally in &contribution.tallies {
        lines.push(format!(
            "  {:<14} {:>12} records: {} passed, {} dropped, {} refused, {} held",
            tally.gate,
            HumanCount(tally.rows).to_string(),
            HumanCount(tally.passed),
            HumanCount(tally.dropped),
            HumanCount(tally.refused),
            HumanCount(tally.held)
        ));
    }
    for (at, verdict) in verdicts.into_iter().enumerate() {
        for reason in &verdict.reasons {
            let path = if reason.path.is_empty() {
                String::new()
            } else {
                format!(" {}", reason.path)
            };
            let (place, gate, code) = (place(at), &reason.gate, &reason.code);
            let differs = match (reason.expected.as_str(), reason.actual.as_str()) {
                ("", "") => String::new(),
                (expected, actual) => format!(" expected {expected}, found {actual}"),
            };
            lines.push(format!("  {place}{path}:{differs} ({gate}: {code})"));
        }
    }
    lines.push(format!("  contribution   {id}"));
    lines
}

/// Returns the folder that remembers the progress of pushes.
fn state_folder(arguments: &PushArgs) -> anyhow::Result<PathBuf> {
    let default = || config::state_home().map(|state| state.join("sluice/push"));
    let folder = arguments.state.clone().or_else(default);
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
    fn of(arguments: &PushArgs, folder: &Path) -> anyhow::Result<Self> {
        let file = &arguments.file;
        let unreadable = || format!("`{}` cannot be read", file.display());
        let path = file.canonicalize().with_context(unreadable)?;
        let found = path.metadata().with_context(unreadable)?;
        let modified = found.modified().with_context(unreadable)?;
        let state = hash(&(&path, &arguments.project, &arguments.remote.server));
        let format = format!("{:?}", arguments.format);
        let bytes = hash(&(found.len(), modified, arguments.gzip, format));
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
}

fn hash(what: &impl Hash) -> String {
    let mut hasher = DefaultHasher::new();
    what.hash(&mut hasher);
    format!("{:016x}", hasher.finish())
}

/// The file that is sent.
#[derive(Debug)]
struct PreparedFile {
    file: PathBuf,
    gzip: bool,
    /// The converted file, to be removed at the end. `None` if the caller's file is sent.
    made: Option<PathBuf>,
}

/// Converts or compresses the file if needed, unless an earlier push has done so.
async fn prepare(client: &Client, arguments: &PushArgs, place: &PushFiles) -> anyhow::Result<PreparedFile> {
    let file = arguments.file.clone();
    let named = || format!("`{}`", file.display());
    let begin = begin(&file)?;
    if let Some((_, problem)) = REFUSED_FORMATS.iter().find(|(magic, _)| begin.starts_with(magic)) {
        return Err(FileRefused::mark(anyhow!("it is {problem}; unpack it first"))).with_context(named);
    }
    let format = format_of(arguments, &begin);
    // A compressed file is sent as it is, because the service accepts gzip.
    let compressed = format == PushFormat::Ndjson && begin.starts_with(&GZIP_MAGIC);
    if format == PushFormat::Ndjson && (compressed || !arguments.gzip) {
        return Ok(PreparedFile {
            file,
            gzip: compressed,
            made: None,
        });
    }
    let made = place.made.clone();
    // The file has its name only once it is whole, so an existing one is complete.
    if !made.exists() {
        let contract = match format {
            PushFormat::Ndjson => None,
            PushFormat::Csv | PushFormat::Parquet => Some(contract(client, &arguments.project).await?),
        };
        let (target, gzip) = (made.clone(), arguments.gzip);
        let named = named();
        // Conversion is bound by the processor and the disk.
        let make = move || make(&file, format, contract.as_ref(), gzip, &target);
        let made = tokio::task::spawn_blocking(make).await?.map_err(FileRefused::mark);
        made.context(named)?;
    }
    Ok(PreparedFile {
        file: made.clone(),
        gzip: arguments.gzip,
        made: Some(made),
    })
}

/// Returns the format of a file that begins with these bytes.
fn format_of(arguments: &PushArgs, begin: &[u8]) -> PushFormat {
    if let Some(format) = arguments.format {
        return format;
    }
    let extension = arguments.file.extension().unwrap_or_default().to_ascii_lowercase();
    match extension.to_str() {
        // A file of Parquet says so itself, whatever its name.
        _ if begin.starts_with(PARQUET_MAGIC) => PushFormat::Parquet,
        Some("csv") => PushFormat::Csv,
        Some("parquet") => PushFormat::Parquet,
        _ => PushFormat::Ndjson,
    }
}

/// Returns the first bytes of a file.
fn begin(file: &Path) -> anyhow::Result<Vec<u8>> {
    let mut begin = Vec::new();
    let read = File::open(file).and_then(|file| file.take(8).read_to_end(&mut begin));
    read.with_context(|| format!("`{}` cannot be read", file.display()))?;
    Ok(begin)
}

/// Fetches the contract of a project.
async fn contract(client: &Client, slug: &str) -> anyhow::Result<Contract> {
    let project = client.project(slug).await?;
    let schema = project
        .more
        // The client's type of a project has no contract, so it is read from the other fields.
        .get("schemaDef")
        .context("the service's answer has no `schemaDef` for the project")?;
    Ok(serde_json::from_value(schema.clone())?)
}

/// Converts a file to `target`, which exists only once it is whole.
fn make(file: &Path, format: PushFormat, contract: Option<&Contract>, gzip: bool, target: &Path) -> anyhow::Result<()> {
    if let Some(folder) = target.parent() {
        // The folder contains copies of the caller's records, so only the user may read it.
        DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
    }
    let made = UnfinishedFile::begin(target)?;
    let out = BufWriter::with_capacity(1 << 20, made.file()?);
    let input = File::open(file).context("it cannot be read")?;
    if gzip {
        let mut out = GzEncoder::new(out, Compression::fast());
        write(input, format, contract, &mut out)?;
        out.finish()?.flush()?;
    } else {
        let mut out = out;
        write(input, format, contract, &mut out)?;
        out.flush()?;
    }
    if made.is_empty()? {
        bail!("it has no records");
    }
    made.finish(target)?;
    Ok(())
}

fn write(input: File, format: PushFormat, contract: Option<&Contract>, out: &mut impl Write) -> anyhow::Result<()> {
    match (format, contract) {
        (PushFormat::Csv, Some(contract)) => csv::convert(input, contract, out),
        (PushFormat::Parquet, Some(contract)) => parquet(input, contract, out),
        _ => {
            io::copy(&mut BufReader::with_capacity(1 << 20, input), out)?;
            Ok(())
        }
    }
}

/// Writes the records of a Parquet file. The first value that does not fit its field ends it.
fn parquet(input: File, contract: &Contract, out: &mut impl Write) -> anyhow::Result<()> {
    let length = input.metadata()?.len();
    let input = FileInput::of_file(input, length);
    let options = InferOptions {
        contract: Some(contract.clone()),
        ..InferOptions::default()
    };
    let (inference, plan) = infer_file(&input, FileFormat::Parquet, &options)?;
    if let Some(question) = inference.questions.first() {
        bail!("{question}");
    }
    let mut sink = FittingRecords {
        lines: LineWriter::new(out),
        misfit: None,
    };
    let converted = convert_file(&input, &plan, &mut sink);
    if let Some(RowProblem { row, field, value, problem, .. }) = sink.misfit {
        bail!("row {row}, the column of `{field}`: `{value}`: {problem}");
    }
    Ok(converted?)
}

/// Writes records until a value does not fit its field.
struct FittingRecords<W> {
    lines: LineWriter<W>,
    misfit: Option<RowProblem>,
}

impl<W: Write> RecordSink for FittingRecords<W> {
    fn record(&mut self, row: u64, line: &[u8]) -> io::Result<()> {
        self.lines.record(row, line)
    }

    fn problem(&mut self, problem: RowProblem) -> io::Result<()> {
        self.misfit = Some(problem);
        Err(io::ErrorKind::InvalidData.into())
    }
}

#[cfg(test)]
mod tests;

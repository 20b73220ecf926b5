//! The check at home: the records of a file are judged by the gates of the worker before a byte is sent.
//!
//! Invariant: a value of the file is shown here, and never sent in a verdict. It is printed so that a terminal does not obey
//! it, and in a command only if it is safe there.

use std::fs::File;
use std::io::{BufReader, BufWriter, Write as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context as _, anyhow};
use indicatif::{HumanCount, ProgressBar};
use operators::{Decision, GateName, Reason};
use pipelines::check::{CheckError, CheckedFile, FileCheck};
use serde_json::{Value, json};
use tabular::decode::{byte_order_mark, encode};
use tabular::frame::MAX_RECORD_BYTES;
use tabular::reading::{Reading, TextFormat};
use types::Contract;
use types::vocabulary::OnRefused;
use uploads::Compression;

use super::NOTED_DUPLICATES;
use crate::cli::PushArgs;
use crate::exit::FileRefused;
use crate::input::WatchedFile;
use crate::json_member::raw_member;
use crate::made::private_folder;
use crate::terminal::{self, quoted, quoted_path, shown};

/// Refused records that are listed.
const MAX_LISTED: usize = 20;
/// Reasons of a refused record that are listed.
const MAX_LISTED_REASONS: usize = 5;

/// A file that is to be checked, and how.
#[derive(Debug)]
pub(super) struct CheckPlan {
    /// The file as it will be sent.
    pub(super) file: PathBuf,
    pub(super) gzip: bool,
    pub(super) reading: Reading,
    pub(super) contract: Arc<Contract>,
    pub(super) drops_refused: bool,
    /// The file that gets the refused records.
    pub(super) refused: Option<PathBuf>,
    /// The folder for what does not fit into memory.
    pub(super) folder: PathBuf,
    /// The name of the file for people.
    pub(super) name: String,
}

/// A rule that a record of the file breaks, with its value.
#[derive(Clone, Debug)]
struct ListedRefusal {
    line: u64,
    /// The column or member; empty for the whole record.
    column: String,
    reason: Reason,
    /// The value, as it is in the file.
    value: Option<String>,
    /// True if the value is JSON, and no cell.
    is_json: bool,
}

/// Result of a check.
#[derive(Debug)]
pub(super) struct CheckedRecords {
    pub(super) records: u64,
    pub(super) refused: u64,
    pub(super) duplicates: u64,
    decision: Decision,
    listed: Vec<ListedRefusal>,
    /// The number of records that are listed.
    listed_records: u64,
    /// The number of refused records that are too long for the file of refused ones.
    unkept: u64,
}

/// Judges the records of a file.
pub(super) async fn check(plan: CheckPlan, bar: &ProgressBar) -> anyhow::Result<CheckedRecords> {
    let bar = bar.clone();
    // Judging is bound by the processor and the disk.
    tokio::task::spawn_blocking(move || check_now(&plan, &bar)).await?
}

fn check_now(plan: &CheckPlan, bar: &ProgressBar) -> anyhow::Result<CheckedRecords> {
    let open = || File::open(&plan.file).with_context(|| format!("{} cannot be read", plan.name));
    let file = open()?;
    bar.set_length(file.metadata()?.len());
    private_folder(&plan.folder)?;
    let kept = plan
        .refused
        .as_deref()
        .map(|path| RefusedFile::new(path, &plan.reading));
    let check = FileCheck {
        contract: Arc::clone(&plan.contract),
        reading: plan.reading.clone(),
        compression: if plan.gzip {
            Compression::Gzip
        } else {
            Compression::None
        },
        on_refused: if plan.drops_refused {
            OnRefused::Drop
        } else {
            OnRefused::Reject
        },
        folder: plan.folder.clone(),
    };
    let (mut listed, mut numbers) = (Vec::new(), Vec::new());
    let checked = check.run(WatchedFile::new(file, bar.clone()), |refused| {
        if listed.len() < MAX_LISTED {
            listed.push((refused.number, refused.reasons.to_vec()));
        }
        if kept.is_some() {
            // A file has at most so many records, and all of them may be refused.
            numbers.extend(u32::try_from(refused.number));
        }
    });
    let checked = checked.map_err(|error| plan.failed(error))?;
    let (listed, unkept) = plan.with_texts(&check, open()?, &listed, &numbers, kept)?;
    Ok(CheckedRecords::of(&checked, listed, unkept))
}

impl CheckPlan {
    fn failed(&self, error: CheckError) -> anyhow::Error {
        match error {
            CheckError::Unreadable { message, .. } => FileRefused::mark(anyhow!("{}: {message}", self.name)),
            error => anyhow::Error::from(error).context(self.name.clone()),
        }
    }

    /// Reads the file again for the refused records, since their texts were not kept: lists the first, and keeps all of them
    /// in a file but those that are too long, whose number it returns.
    fn with_texts(
        &self,
        check: &FileCheck,
        file: File,
        listed: &[(u64, Vec<Reason>)],
        numbers: &[u32],
        mut kept: Option<RefusedFile>,
    ) -> anyhow::Result<(Vec<Vec<ListedRefusal>>, u64)> {
        let mut records = check
            .records(BufReader::with_capacity(1 << 20, file))
            .map_err(|error| self.failed(error))?;
        let (mut listed, mut numbers) = (listed.iter().peekable(), numbers.iter().peekable());
        let (mut found, mut text) = (Vec::new(), Vec::new());
        while listed.peek().is_some() || numbers.peek().is_some() {
            text.clear();
            let record = records.read(&mut text).map_err(|error| self.failed(error.into()))?;
            let record = record.context("the file has fewer records than before")?;
            if let Some((_, reasons)) = listed.next_if(|(number, _)| *number == record.number) {
                found.push(list(&self.reading, record.line, reasons, &text));
            }
            if numbers.next_if(|number| u64::from(**number) == record.number).is_some()
                && let Some(kept) = &mut kept
            {
                kept.add(&text, record.is_too_long)?;
            }
        }
        let unkept = kept.map_or(Ok(0), RefusedFile::finish)?;
        Ok((found, unkept))
    }
}

/// Returns the broken rules of a record, each with its value.
fn list(reading: &Reading, line: u64, reasons: &[Reason], text: &[u8]) -> Vec<ListedRefusal> {
    let reasons = reasons.iter().take(MAX_LISTED_REASONS);
    reasons
        .map(|reason| {
            let (column, value) = place_in_file(reading, &reason.path, text);
            ListedRefusal {
                line,
                column,
                reason: reason.clone(),
                value,
                is_json: reading.format != TextFormat::Csv,
            }
        })
        .collect()
}

/// Returns the column or member of the file that a path in the record is from, and its value there.
fn place_in_file(reading: &Reading, path: &str, text: &[u8]) -> (String, Option<String>) {
    let Some(path) = path.strip_prefix('/') else {
        return (String::new(), None);
    };
    let (field, rest) = path.split_at(path.find('/').unwrap_or(path.len()));
    let field = field.replace("~1", "/").replace("~0", "~");
    let column = reading
        .columns
        .iter()
        .position(|column| column.to.as_deref() == Some(&field));
    let from = column
        .and_then(|at| reading.columns.get(at))
        .map_or(field.as_str(), |column| &column.from);
    let value = match reading.format {
        TextFormat::Csv => column.and_then(|at| cell(reading, text, at)),
        TextFormat::JsonLines | TextFormat::Json => {
            let pointer = format!("/{}{rest}", from.replace('~', "~0").replace('/', "~1"));
            raw_member(text, &pointer).map(str::to_owned)
        }
    };
    (from.to_owned(), value)
}

/// Returns a cell of a record by the number of its column.
fn cell(reading: &Reading, text: &[u8], at: usize) -> Option<String> {
    let mut record = tabular::csv::CsvRecord::default();
    record.set(text, 0, reading.csv_format().ok()?);
    let cell = record.cells().nth(at)?;
    Some(String::from_utf8_lossy(cell).into_owned())
}

/// Returns the header of a delimited text, as a reader of it takes it.
fn header(reading: &Reading) -> Option<String> {
    if reading.format != TextFormat::Csv || reading.header_line == 0 {
        return None;
    }
    let quoted = |name: &str| match reading.quote {
        Some(quote) => format!("{quote}{}{quote}", name.replace(quote, &format!("{quote}{quote}"))),
        None => name.to_owned(),
    };
    let names = reading.columns.iter().map(|column| {
        let is_plain = column
            .from
            .chars()
            .all(|sign| sign.is_alphanumeric() || matches!(sign, ' ' | '_' | '-' | '.'));
        if is_plain {
            column.from.clone()
        } else {
            quoted(&column.from)
        }
    });
    Some(names.collect::<Vec<_>>().join(&reading.delimiter.to_string()))
}

/// The file that gets the refused records, as they are in the file, in its encoding and below its header. It exists from the
/// first record on.
#[derive(Debug)]
struct RefusedFile {
    path: PathBuf,
    /// Its name until it is whole.
    unfinished: PathBuf,
    header: Option<String>,
    /// Label of the encoding of the file, so that what reads the file reads this one.
    encoding: String,
    out: Option<BufWriter<File>>,
    /// Number of refused records that are not in it, because they are too long.
    unkept: u64,
}

impl RefusedFile {
    fn new(path: &Path, reading: &Reading) -> Self {
        Self {
            path: path.to_owned(),
            unfinished: path.with_added_extension("unfinished"),
            header: header(reading),
            encoding: reading.encoding.clone(),
            out: None,
            unkept: 0,
        }
    }

    fn add(&mut self, text: &[u8], is_too_long: bool) -> anyhow::Result<()> {
        // `text` is only the begin of such a record.
        if is_too_long {
            self.unkept += 1;
            return Ok(());
        }
        let (path, encoding) = (&self.path, &self.encoding);
        let unwritten = || format!("`{}` cannot be written", path.display());
        let mut lines = String::new();
        let out = match &mut self.out {
            Some(out) => out,
            none => {
                lines += byte_order_mark(encoding);
                if let Some(header) = &self.header {
                    lines += header;
                    lines.push('\n');
                }
                none.insert(BufWriter::new(File::create(&self.unfinished).with_context(unwritten)?))
            }
        };
        lines += std::str::from_utf8(text)?;
        lines.push('\n');
        let bytes = encode(&lines, encoding);
        let bytes = bytes.with_context(|| format!("`{encoding}` lacks a character of a refused record"))?;
        out.write_all(&bytes).with_context(unwritten)
    }

    /// Takes the place of an earlier one, which would be taken for that of this push. Returns how many records are not in it.
    fn finish(self) -> anyhow::Result<u64> {
        let path = self.path;
        let finished = match self.out {
            Some(mut out) => out.flush().and_then(|()| std::fs::rename(&self.unfinished, &path)),
            None => match std::fs::remove_file(&path) {
                Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(error),
                _ => Ok(()),
            },
        };
        finished.with_context(|| format!("`{}` cannot be written", path.display()))?;
        Ok(self.unkept)
    }
}

impl CheckedRecords {
    fn of(checked: &CheckedFile, listed: Vec<Vec<ListedRefusal>>, unkept: u64) -> Self {
        Self {
            records: checked.records(),
            refused: checked.refused(),
            duplicates: checked.duplicates(),
            decision: checked.decision.clone(),
            listed_records: listed.len() as u64,
            listed: listed.into_iter().flatten().collect(),
            unkept,
        }
    }

    /// Returns the number of refused records that are in the file of refused ones, if there is to be one.
    pub(super) const fn kept(&self) -> u64 {
        self.refused.saturating_sub(self.unkept)
    }

    /// Returns true if the service would reject the records.
    pub(super) const fn is_rejected(&self) -> bool {
        matches!(self.decision, Decision::Reject { .. })
    }

    /// Prints the result, before the records are sent.
    pub(super) fn tell(&self, place: &str, is_new: bool, refused: Option<&Path>) {
        terminal::note(&self.headline());
        for line in self.refusals(place, false) {
            terminal::note(&terminal::plain(&line));
        }
        if self.refused > 0
            && let Some(file) = refused.and_then(quoted_path)
        {
            let most = MAX_RECORD_BYTES >> 20;
            terminal::note(&match (self.kept(), self.unkept) {
                (_, 0) => format!("  all of them are in {file}"),
                (0, _) => format!("  none of them is in {file}, since each has more than {most} MiB"),
                (_, unkept) => format!("  all of them but {unkept} of more than {most} MiB are in {file}"),
            });
        }
        if is_new && self.duplicates > self.records / NOTED_DUPLICATES {
            terminal::note("  rows without an identity are kept, each with its number, by: --number-rows row");
        }
    }

    fn headline(&self) -> String {
        let records = HumanCount(self.records);
        let passed = HumanCount(self.records.saturating_sub(self.refused));
        let mut line = match (self.refused, self.duplicates) {
            (0, 0) if self.records == 1 => return "Checked: 1 record passes.".to_owned(),
            (0, 0) => return format!("Checked: {records} records pass."),
            (0, _) => format!("Checked: {passed} pass"),
            (refused, _) => format!(
                "Checked: {records} {}, {} refused",
                noun(self.records),
                HumanCount(refused)
            ),
        };
        if self.duplicates > 0 {
            let repeat = if self.duplicates == 1 {
                "repeats an earlier record"
            } else {
                "repeat earlier records"
            };
            line = format!("{line}, {} {repeat}", HumanCount(self.duplicates));
        }
        line + "."
    }

    /// Returns the lines that end a push which sends nothing.
    pub(super) fn lines(&self, place: &str, arguments: &PushArgs) -> Vec<String> {
        let mut lines = vec![format!("{} Nothing was sent.", self.headline())];
        if let Decision::Reject { code, message } = &self.decision
            && code != "refused"
        {
            lines.push(format!("  {message}"));
        }
        lines.extend(self.refusals(place, true));
        if self.is_rejected() && self.refused > 0 {
            let is_half = self.refused > self.records / 2;
            let advice = match &arguments.refused {
                _ if is_half => "More than half are refused; a wrong delimiter or column is likelier.".to_owned(),
                Some(_) => "Repair them, or leave them out: --on-refused drop".to_owned(),
                None => "Repair them, or leave them out: --on-refused drop --refused left-out.jsonl".to_owned(),
            };
            lines.push(advice);
        }
        lines
    }

    /// Returns a line for each broken rule of the first refused records.
    fn refusals(&self, place: &str, with_remedies: bool) -> Vec<String> {
        let mut lines: Vec<String> = self
            .listed
            .iter()
            .map(|refusal| refusal.line(place, with_remedies))
            .collect();
        if let Some(more) = self.refused.checked_sub(self.listed_records).filter(|more| *more > 0) {
            lines.push(format!("  … {} more", HumanCount(more)));
        }
        lines
    }

    /// Returns the check as JSON.
    pub(super) fn json(&self, place: &str) -> Value {
        let refusals: Vec<Value> = self.listed.iter().map(|refusal| refusal.json(place)).collect();
        json!({
            "records": self.records, "passed": self.records.saturating_sub(self.refused), "refused": self.refused,
            "duplicates": self.duplicates, "refusals": refusals,
        })
    }
}

const fn noun(records: u64) -> &'static str {
    if records == 1 { "record" } else { "records" }
}

impl ListedRefusal {
    fn line(&self, place: &str, with_remedies: bool) -> String {
        let Reason {
            gate,
            code,
            expected,
            actual,
            ..
        } = &self.reason;
        let column = match self.column.as_str() {
            "" => String::new(),
            column => format!(", `{}`", shown(column)),
        };
        let value = self.value.as_deref().map(shown);
        let value = value.map(|value| if self.is_json { value } else { format!("`{value}`") });
        let broken = if *gate == GateName::PERSONAL_DATA {
            let value = value.map_or_else(String::new, |value| format!(": {value}"));
            format!("looks like {actual} ({gate}: {code}){value}")
        } else {
            let found = value.unwrap_or_else(|| actual.clone());
            format!("expected {expected}, found {found} ({gate}: {code})")
        };
        let remedy = match self.remedies() {
            Some(remedies) if with_remedies => format!(". Remedy: {remedies}"),
            _ => String::new(),
        };
        format!("  {place} {}{column}: {broken}{remedy}", HumanCount(self.line))
    }

    /// Returns the flags that would take the value, if they are safe to paste.
    fn remedies(&self) -> Option<String> {
        if self.reason.gate != GateName::DECODE || self.reason.code != "value" {
            return None;
        }
        let word = quoted(self.value.as_deref()?)?;
        let field = self.reason.path.strip_prefix('/').unwrap_or_default();
        let types = match quoted(field) {
            Some(_) => format!(", or in a new dataset --types '{field}=string'"),
            None => String::new(),
        };
        Some(format!("--null {word}{types}"))
    }

    fn json(&self, place: &str) -> Value {
        json!({
            (place): self.line, "column": self.column, "path": self.reason.path, "gate": self.reason.gate,
            "code": self.reason.code, "expected": self.reason.expected, "actual": self.reason.actual, "value": self.value,
        })
    }
}

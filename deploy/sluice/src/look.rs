//! A look at a whole file: what it is, by the flags of the command line and the answers of a person.
//!
//! Invariant: what is open is asked or ends the command with exit code 3. Nothing is guessed into a dataset.

use std::fs::{self, File};
use std::io::{self, BufReader, Read as _, Write};
use std::path::Path;

use anyhow::{Context as _, anyhow, bail};
use api::state::files::FileFailure;
use indicatif::ProgressBar;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use tabular::detect::{self, FileCompression, FileKind};
use tabular::files::FilePlan;
use tabular::infer::{FileFormat, InferError, InferOptions};
use tabular::reading::Reading;
use types::Contract;

use crate::cli::ReadingArgs;
use crate::exit::{FileRefused, Unanswered, WrongUsage};
use crate::file_child::{FileProcesses, WorkbookFile};
use crate::input::{InputFile, WatchedFile};
use crate::push::table;
use crate::terminal::{self, quoted_path};

/// The most times that a person is asked.
const MAX_ANSWERS: usize = 100;

/// A file by its content, and the dataset that it can become: the answer of an inference.
// Of the answer as JSON, since a workbook is looked at in another process.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct FileLook {
    pub(crate) format: String,
    /// False if not the whole file was looked at.
    pub(crate) complete: bool,
    pub(crate) records: u64,
    pub(crate) columns: Vec<LookedAtColumn>,
    #[serde(rename = "schemaDef", default, skip_serializing_if = "Option::is_none")]
    pub(crate) contract: Option<Contract>,
    pub(crate) reading: Reading,
    pub(crate) notes: Vec<LookedAtRemark>,
    pub(crate) questions: Vec<LookedAtRemark>,
    #[serde(flatten)]
    more: serde_json::Map<String, Value>,
}

/// A column of a file.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct LookedAtColumn {
    pub(crate) name: String,
    /// The field; `None` if the column is left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) field: Option<String>,
    #[serde(rename = "type")]
    kind: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    scale: Option<u8>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) parse: Option<String>,
    pub(crate) nulls: u64,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) null_words: Vec<CountedNullWord>,
    #[serde(default)]
    pub(crate) examples: Vec<String>,
    #[serde(flatten)]
    more: serde_json::Map<String, Value>,
}

impl LookedAtColumn {
    /// Returns the name of its type, with the scale of a decimal.
    pub(crate) fn type_name(&self) -> String {
        match self.scale {
            Some(scale) => format!("{}({scale})", self.kind),
            None => self.kind.clone(),
        }
    }
}

/// A word that means null in a column.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct CountedNullWord {
    pub(crate) word: String,
    pub(crate) count: u64,
}

/// A note or a question.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct LookedAtRemark {
    code: String,
    pub(crate) message: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) column: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) line: Option<u64>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) remedies: Vec<LookedAtRemedy>,
}

/// A flag that settles a question, or decides otherwise.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct LookedAtRemedy {
    pub(crate) flag: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) value: Option<String>,
    /// The flag as it can be pasted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) command: Option<String>,
}

/// Options of a look.
#[derive(Clone, Debug)]
pub(crate) struct LookPlan {
    pub(crate) options: InferOptions,
    /// The flags of the options, each with its value, for another process.
    flags: Vec<(String, String)>,
}

/// A file that was looked at.
#[derive(Debug)]
pub(crate) struct LookedAtFile {
    pub(crate) look: FileLook,
    pub(crate) kind: FileKind,
    pub(crate) compression: FileCompression,
    /// Way to the records of a file of Parquet or Arrow.
    plan: Option<FilePlan>,
}

impl LookPlan {
    /// Returns the plan of the flags. `contract` is that of the dataset that the file goes to.
    pub(crate) fn of(arguments: &ReadingArgs, contract: Option<&Contract>) -> anyhow::Result<Self> {
        let options = InferOptions {
            reading: arguments.reading.as_deref().map(saved_reading).transpose()?,
            contract: contract.cloned(),
            // The bytes are at hand, so all of them are looked at.
            max_text_bytes: u64::MAX,
            ..InferOptions::default()
        };
        let mut plan = Self {
            options,
            flags: Vec::new(),
        };
        for (flag, value) in arguments.flags() {
            plan.set(flag, value)?;
        }
        Ok(plan)
    }

    fn set(&mut self, flag: &str, value: &str) -> anyhow::Result<()> {
        let set = self.options.set(flag, value);
        set.map_err(|error| WrongUsage(error.to_string()))?;
        self.flags.push((flag.to_owned(), value.to_owned()));
        Ok(())
    }

    /// Looks at the whole file. Questions are in the answer.
    pub(crate) async fn look(&self, input: &InputFile, bar: &ProgressBar) -> anyhow::Result<LookedAtFile> {
        bar.set_length(input.bytes());
        bar.set_position(0);
        let file = input.reader()?;
        let detected = detected(input)?;
        let (kind, compression) = detected.map_or((FileKind::Delimited, FileCompression::None), |detected| {
            (detected.kind, detected.compression)
        });
        let (look, plan) = if kind.is_text() {
            (self.look_at_text(input, file, bar).await, None)
        } else if compression != FileCompression::None {
            (
                Err(FileRefused::mark(anyhow!("it is compressed; decompress it first"))),
                None,
            )
        } else if kind == FileKind::Xlsx {
            (self.look_at_workbook(file).await, None)
        } else {
            match self.look_at_table(file, kind).await {
                Ok((look, plan)) => (Ok(look), Some(plan)),
                Err(error) => (Err(error), None),
            }
        };
        bar.finish_and_clear();
        // A change of the file may be what was wrong with it.
        input.check_unchanged()?;
        Ok(LookedAtFile {
            look: look.with_context(|| input.shown())?,
            kind,
            compression,
            plan,
        })
    }

    async fn look_at_text(&self, input: &InputFile, file: File, bar: &ProgressBar) -> anyhow::Result<FileLook> {
        let (options, file) = (self.options.clone(), WatchedFile::new(file, bar.clone()));
        // Reading is bound by the processor and the disk.
        let inferred = tokio::task::spawn_blocking(move || tabular::infer::infer(file, &options)).await?;
        FileLook::of(&serde_json::to_value(
            &inferred.map_err(|error| not_inferred(error, input))?,
        )?)
    }

    async fn look_at_table(&self, file: File, kind: FileKind) -> anyhow::Result<(FileLook, FilePlan)> {
        let options = self.options.clone();
        let format = table_format(kind)?;
        let read = move || tabular::files::infer_file(&file.into(), format, &options);
        let read = tokio::task::spawn_blocking(read).await?;
        let (inference, plan) = read.map_err(|error| FileRefused::mark(error.into()))?;
        Ok((FileLook::of(&serde_json::to_value(&inference)?)?, plan))
    }

    async fn look_at_workbook(&self, file: File) -> anyhow::Result<FileLook> {
        let read = FileProcesses::new()?.infer_workbook(self.workbook(file)?).await?;
        FileLook::of(&serde_json::from_str(&read.map_err(refused)?)?)
    }

    fn workbook(&self, file: File) -> anyhow::Result<WorkbookFile> {
        Ok(WorkbookFile {
            file,
            flags: self.flags.clone(),
            reading: self.options.reading.as_ref().map(serde_json::to_value).transpose()?,
            contract: self.options.contract.clone(),
        })
    }

    /// Looks at the file until nothing is open: a person at the terminal answers the questions.
    ///
    /// # Errors
    /// [`Unanswered`] with the questions, if nobody answers.
    pub(crate) async fn settled(&mut self, input: &InputFile, bar: &ProgressBar) -> anyhow::Result<LookedAtFile> {
        for _ in 0..MAX_ANSWERS {
            let found = self.look(input, bar).await?;
            let Some(question) = found.look.questions.first() else {
                return Ok(found);
            };
            let Some(answer) = asked(question)? else {
                let questions = table::questions(&found.look).join("\n");
                bail!(Unanswered(format!(
                    "{}: {questions}\nNothing was created.",
                    input.name()
                )));
            };
            let (flag, value) = (answer.flag.clone(), answer.value.clone().unwrap_or_default());
            self.set(&flag, &value)?;
        }
        bail!(Unanswered(format!(
            "{}: more than {MAX_ANSWERS} questions are open",
            input.name()
        )))
    }

    /// Writes the records of a file as it is sent: a text as it is, another file as JSON Lines. Returns `out`, not flushed.
    pub(crate) async fn convert<W: Write + Send + 'static>(
        &self,
        input: &InputFile,
        found: &LookedAtFile,
        bar: &ProgressBar,
        mut out: W,
    ) -> anyhow::Result<W> {
        bar.set_length(input.bytes());
        let file = input.reader()?;
        if found.kind == FileKind::Xlsx {
            let mut take = |piece: Vec<u8>| out.write_all(&piece);
            let converted = FileProcesses::new()?
                .convert_workbook(self.workbook(file)?, &mut take)
                .await?;
            return converted.map(|()| out).map_err(refused);
        }
        let (plan, bar) = (found.plan.clone(), bar.clone());
        let write = move || -> anyhow::Result<W> {
            match plan {
                None => {
                    io::copy(
                        &mut BufReader::with_capacity(1 << 20, WatchedFile::new(file, bar)),
                        &mut out,
                    )?;
                }
                Some(plan) => {
                    // A value that does not fit its field is a text there, which the check refuses with its row.
                    let converted = tabular::files::convert_file(&file.into(), &plan, &mut out, &mut |_| Ok(()));
                    converted.map_err(|error| FileRefused::mark(error.into()))?;
                }
            }
            Ok(out)
        };
        tokio::task::spawn_blocking(write).await?
    }
}

/// Returns what a file is by its begin; `None` if it is nothing that is known.
fn detected(input: &InputFile) -> anyhow::Result<Option<detect::Detected>> {
    let mut begin = Vec::new();
    let file = input.reader()?;
    file.take(detect::DETECT_BYTES as u64)
        .read_to_end(&mut begin)
        .with_context(|| format!("{} cannot be read", input.shown()))?;
    // What it is otherwise is said by the reading of a text, unless a flag says that it is one.
    Ok(detect::detect(&begin).ok())
}

fn table_format(kind: FileKind) -> anyhow::Result<FileFormat> {
    match kind {
        FileKind::Parquet => Ok(FileFormat::Parquet),
        FileKind::ArrowFile => Ok(FileFormat::ArrowFile),
        FileKind::ArrowStream => Ok(FileFormat::ArrowStream),
        _ => bail!("it is no table"),
    }
}

/// Returns the error for a text of which nothing can be said.
fn not_inferred(error: InferError, input: &InputFile) -> anyhow::Error {
    match error {
        InferError::Io(error) => anyhow::Error::from(error),
        InferError::Flag(error) => WrongUsage(error.to_string()).into(),
        InferError::Unreadable { problem, remedy, .. } => {
            // A command to paste names the file only if a shell takes the name as it is.
            let file = (!input.is_spooled()).then(|| quoted_path(input.path())).flatten();
            let remedy = file.map_or_else(|| remedy.clone(), |file| remedy.replace("FILE", &file));
            FileRefused::mark(anyhow!("{problem}; {remedy}"))
        }
        error => FileRefused::mark(error.into()),
    }
}

/// Returns the error for a workbook that another process did not read.
fn refused(failure: FileFailure) -> anyhow::Error {
    match failure {
        FileFailure::Input { path, problem } => WrongUsage(format!("{path}: {problem}")).into(),
        FileFailure::Refused(problem) | FileFailure::TooLarge(problem) => FileRefused::mark(anyhow!(problem)),
        FileFailure::Open(questions) => Unanswered(questions.join("\n")).into(),
        FileFailure::Unavailable(problem) => anyhow!(problem),
    }
}

impl FileLook {
    fn of(answer: &Value) -> anyhow::Result<Self> {
        Self::deserialize(answer).context("the answer of the inference is not understood")
    }

    /// Returns the contract for the records.
    pub(crate) fn contract(&self) -> anyhow::Result<Contract> {
        let contract = self.contract.clone();
        contract.ok_or_else(|| FileRefused::mark(anyhow!("no contract can be made of the file")))
    }
}

/// Reads a saved reading: the JSON of `infer`, or its member `reading`.
fn saved_reading(path: &Path) -> anyhow::Result<Reading> {
    let unread = || format!("the reading `{}` cannot be read", path.display());
    let text = fs::read(path).with_context(unread)?;
    let saved: serde_json::Result<Value> = serde_json::from_slice(&text);
    let saved = saved
        .map_err(|error| FileRefused::mark(error.into()))
        .with_context(unread)?;
    let reading = saved.get("reading").cloned().unwrap_or(saved);
    let reading: serde_json::Result<Reading> = serde_json::from_value(reading);
    reading
        .map_err(|error| FileRefused::mark(error.into()))
        .with_context(unread)
}

/// Asks a person which of the flags is meant. `None` if nobody answers.
fn asked(question: &LookedAtRemark) -> anyhow::Result<Option<&LookedAtRemedy>> {
    let answers = &question.remedies;
    if answers.is_empty() {
        return Ok(None);
    }
    let mut lines = vec![terminal::plain(&question.message)];
    lines.extend((1..).zip(answers).map(|(number, answer)| {
        let value = answer.value.as_deref().map_or_else(String::new, terminal::shown);
        format!("  {number}  {} {value}", answer.flag)
    }));
    lines.push(format!("Which one, 1 to {}? Enter ends. ", answers.len()));
    let typed = terminal::ask(&lines.join("\n"))?;
    let number = typed.and_then(|typed| typed.parse::<usize>().ok());
    Ok(number.and_then(|number| answers.get(number.checked_sub(1)?)))
}

//! Reading of files in processes of this program: those that strangers send, and workbooks.
//!
//! Invariant: a process gets one file and ends. It has 512 MiB, 20 seconds of processor time, no files but the one, no
//! network and no environment.

mod work;

use std::fs::File;
use std::io;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use api::state::files::{FILE_PROCESSOR as PROCESSOR, FileDone, FileFailure, FileJob, FileReader};
use async_trait::async_trait;
use bytes::Bytes;
use fenced::{ChildEnd, ChildProcess, ChildProgram, ChildSetup};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use types::Contract;
use types::vocabulary::OnRefused;

use crate::sandbox::program;

/// Hidden command-line argument that makes the program a child.
pub const ARGUMENT: &str = "__file-child";
/// Version of the messages. Both sides are of the same build.
const PROTOCOL: &str = concat!("sluice-files-1 ", env!("CARGO_PKG_VERSION"));
/// Address space of a child, with what the program itself needs.
const MEMORY_BYTES: u64 = 512 << 20;
/// Time of a child. It waits for nothing, so it has its processor time by then unless the machine is overloaded.
const PATIENCE: Duration = Duration::from_mins(2);
/// The most bytes of JSON Lines that a call answers.
const MAX_LINES_BYTES: u64 = 64 << 20;
/// The longest message of a child: an inference, or problems of rows.
const MAX_REPLY_BYTES: usize = 96 << 20;
/// Bytes of lines that are sent at once.
const PIECE_BYTES: usize = 1 << 20;
const STACK_BYTES: usize = 16 << 20;

/// The work that is wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
enum ChildWork {
    Infer,
    Convert,
}

/// The first message, after which the bytes of the file follow, or its descriptor.
#[derive(Debug, Serialize, Deserialize)]
struct FileTask {
    work: ChildWork,
    flags: Vec<(String, String)>,
    reading: Option<Value>,
    contract: Option<Arc<Contract>>,
    on_refused: OnRefused,
    /// Length of the file.
    bytes: u64,
    /// True if the descriptor of the file follows, and not its bytes.
    is_open: bool,
    /// The most bytes of the lines.
    most: u64,
}

/// A message of a child.
#[derive(Debug, Serialize, Deserialize)]
enum FileReply {
    /// The answer of an inference, as JSON, with the processor time in microseconds.
    Inferred { text: String, micros: u64 },
    /// So many bytes of lines follow.
    Piece(usize),
    /// All lines were sent.
    Converted { micros: u64 },
    /// The work failed.
    Failed { failure: TaskFailure, micros: u64 },
}

/// Reason why a child has no answer.
#[derive(Debug, Serialize, Deserialize)]
enum TaskFailure {
    Input { path: String, problem: String },
    Refused(String),
    Open(Vec<String>),
    TooLarge(String),
    Unavailable(String),
}

impl From<TaskFailure> for FileFailure {
    fn from(failure: TaskFailure) -> Self {
        match failure {
            TaskFailure::Input { path, problem } => Self::Input { path, problem },
            TaskFailure::Refused(problem) => Self::Refused(problem),
            TaskFailure::Open(questions) => Self::Open(questions),
            TaskFailure::TooLarge(problem) => Self::TooLarge(problem),
            TaskFailure::Unavailable(problem) => Self::Unavailable(problem),
        }
    }
}

/// Runs the child.
pub fn run() -> ExitCode {
    let restarted = program().map_err(io::Error::other);
    let restarted =
        restarted.and_then(|program| fenced::child::restart_within(&program, ARGUMENT.as_ref(), MEMORY_BYTES));
    match restarted {
        Ok(()) => fenced::child::run(STACK_BYTES, work::serve),
        Err(_) => ExitCode::FAILURE,
    }
}

/// The file of a task.
#[derive(Debug)]
enum TaskFile<'a> {
    Bytes(&'a [u8]),
    Open(File),
}

/// Takes the lines of a child.
type OnPiece<'a> = &'a mut (dyn FnMut(Vec<u8>) -> io::Result<()> + Send);

/// Starts a process for each file.
#[derive(Clone, Debug)]
pub struct FileProcesses {
    program: PathBuf,
}

/// What a child ended with.
#[derive(Debug)]
enum TaskEnd {
    Inferred(String),
    Converted,
}

impl FileProcesses {
    /// Finds the program. Starts nothing.
    pub fn new() -> anyhow::Result<Self> {
        Ok(Self { program: program()? })
    }

    /// Runs a task in a process.
    async fn run(&self, task: FileTask, file: TaskFile<'_>, on_piece: OnPiece<'_>) -> FileDone<TaskEnd> {
        let done = tokio::time::timeout(PATIENCE, self.work(task, file, on_piece)).await;
        done.unwrap_or_else(|_late| FileDone {
            processor: PROCESSOR,
            result: Err(too_much_work()),
        })
    }

    async fn work(&self, task: FileTask, file: TaskFile<'_>, on_piece: OnPiece<'_>) -> FileDone<TaskEnd> {
        let unavailable = |problem: String| FileDone {
            processor: Duration::ZERO,
            result: Err(FileFailure::Unavailable(problem)),
        };
        let program = ChildProgram {
            program: self.program.clone(),
            args: vec![ARGUMENT.into()],
        };
        let setup = ChildSetup {
            protocol: PROTOCOL.to_owned(),
            memory: MEMORY_BYTES,
            processor: PROCESSOR.as_secs(),
            threads: 1,
        };
        let mut process = match ChildProcess::start(&program, &setup) {
            Ok(process) => process,
            Err(error) => return unavailable(types::error::with_causes(&error)),
        };
        if let Err(error) = process.ready().await {
            return unavailable(types::error::with_causes(&error));
        }
        match converse(&mut process, task, file, on_piece).await {
            Ok(done) => done,
            // What it used is not known, so it is what it may use.
            Err(error) => FileDone {
                processor: PROCESSOR,
                result: Err(match process.end(error).await {
                    Ok(ChildEnd::OutOfMemory) => FileFailure::TooLarge(format!(
                        "the file needs more than the {} MiB of memory in which it is read; save it as CSV",
                        MEMORY_BYTES >> 20
                    )),
                    Ok(ChildEnd::ProcessorTime) => too_much_work(),
                    Ok(ChildEnd::StackOverflow) => FileFailure::Refused("the file nests too deeply".to_owned()),
                    Ok(ChildEnd::Crashed(_)) => FileFailure::Refused(
                        "the file ended the process that read it; it is damaged, or of a form that is not read"
                            .to_owned(),
                    ),
                    Err(error) => FileFailure::Unavailable(types::error::with_causes(&error)),
                }),
            },
        }
    }
}

fn too_much_work() -> FileFailure {
    FileFailure::TooLarge(format!(
        "the file takes more than {} seconds to read; as CSV, `sluice push` reads it at any size",
        PROCESSOR.as_secs()
    ))
}

/// Sends the task and takes the answer. An error means that the process has ended.
async fn converse(
    process: &mut ChildProcess,
    task: FileTask,
    file: TaskFile<'_>,
    on_piece: OnPiece<'_>,
) -> io::Result<FileDone<TaskEnd>> {
    let channel = &mut process.channel;
    channel.send(&task).await?;
    match file {
        TaskFile::Bytes(bytes) => channel.send_bytes(bytes).await?,
        TaskFile::Open(file) => channel.send_files(&[file]).await?,
    }
    let done = |micros, result| FileDone {
        processor: Duration::from_micros(micros),
        result,
    };
    let mut left = task.most;
    loop {
        match channel.receive(MAX_REPLY_BYTES).await? {
            FileReply::Inferred { text, micros } => return Ok(done(micros, Ok(TaskEnd::Inferred(text)))),
            FileReply::Converted { micros } => return Ok(done(micros, Ok(TaskEnd::Converted))),
            FileReply::Failed { failure, micros } => return Ok(done(micros, Err(failure.into()))),
            FileReply::Piece(bytes) => {
                // The child keeps these bounds itself, unless it is not what it should be.
                left = left
                    .checked_sub(bytes as u64)
                    .filter(|_| bytes <= 2 * PIECE_BYTES + MAX_LINE_BYTES)
                    .ok_or(io::ErrorKind::InvalidData)?;
                let piece = channel.receive_bytes(bytes).await?;
                if let Err(error) = on_piece(piece) {
                    let failed = FileFailure::Unavailable(format!("the lines could not be kept: {error}"));
                    return Ok(done(0, Err(failed)));
                }
            }
        }
    }
}

/// The longest line of a record, which a piece may exceed its size by.
const MAX_LINE_BYTES: usize = 64 << 20;

fn task(work: ChildWork, job: &FileJob) -> FileTask {
    FileTask {
        work,
        flags: job.flags.clone(),
        reading: job.reading.clone(),
        contract: job.contract.clone(),
        on_refused: job.on_refused,
        bytes: job.body.len() as u64,
        is_open: false,
        most: MAX_LINES_BYTES,
    }
}

#[async_trait]
impl FileReader for FileProcesses {
    async fn infer(&self, job: FileJob) -> FileDone<Value> {
        let task = task(ChildWork::Infer, &job);
        let done = self.run(task, TaskFile::Bytes(&job.body), &mut |_| Ok(())).await;
        let result = done.result.and_then(|end| match end {
            TaskEnd::Inferred(text) => serde_json::from_str(&text)
                .map_err(|error| FileFailure::Unavailable(format!("the answer of a process is no JSON: {error}"))),
            TaskEnd::Converted => Err(FileFailure::Unavailable("a process did other work".to_owned())),
        });
        FileDone {
            processor: done.processor,
            result,
        }
    }

    async fn convert(&self, job: FileJob) -> FileDone<Bytes> {
        let mut lines = Vec::new();
        let task = task(ChildWork::Convert, &job);
        let mut take = |piece: Vec<u8>| {
            lines.extend_from_slice(&piece);
            Ok(())
        };
        let done = self.run(task, TaskFile::Bytes(&job.body), &mut take).await;
        FileDone {
            processor: done.processor,
            result: done.result.map(|_| lines.into()),
        }
    }
}

/// A workbook on the disk of the command line's user.
#[derive(Debug)]
pub(crate) struct WorkbookFile {
    /// The open file.
    pub(crate) file: File,
    /// Flags, each with its value; empty for none.
    pub(crate) flags: Vec<(String, String)>,
    /// Reading that was saved before.
    pub(crate) reading: Option<Value>,
    /// Contract that the file is for.
    pub(crate) contract: Option<Contract>,
}

impl WorkbookFile {
    fn task(self, work: ChildWork) -> io::Result<(FileTask, File)> {
        let task = FileTask {
            work,
            flags: self.flags,
            reading: self.reading,
            contract: self.contract.map(Arc::new),
            on_refused: OnRefused::Reject,
            bytes: self.file.metadata()?.len(),
            is_open: true,
            most: u64::MAX,
        };
        Ok((task, self.file))
    }
}

impl FileProcesses {
    /// Says what a workbook is: the JSON of an inference.
    pub(crate) async fn infer_workbook(&self, workbook: WorkbookFile) -> io::Result<Result<String, FileFailure>> {
        let (task, file) = workbook.task(ChildWork::Infer)?;
        let done = self.run(task, TaskFile::Open(file), &mut |_| Ok(())).await;
        Ok(done.result.and_then(|end| match end {
            TaskEnd::Inferred(text) => Ok(text),
            TaskEnd::Converted => Err(FileFailure::Unavailable("a process did other work".to_owned())),
        }))
    }

    /// Converts a workbook into JSON Lines, which `take` gets in pieces.
    pub(crate) async fn convert_workbook(
        &self,
        workbook: WorkbookFile,
        take: &mut (dyn FnMut(Vec<u8>) -> io::Result<()> + Send),
    ) -> io::Result<Result<(), FileFailure>> {
        let (task, file) = workbook.task(ChildWork::Convert)?;
        Ok(self.run(task, TaskFile::Open(file), take).await.result.map(drop))
    }
}

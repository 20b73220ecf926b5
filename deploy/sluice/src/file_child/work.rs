//! The work of a child: reads one file behind the fence.
//!
//! Invariant: a file that is damaged ends at most this process.

use std::collections::HashMap;
use std::io::{self, Read, Write};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use bytes::Bytes;
use fenced::ChildChannel;
use operators::{GateName, Reason};
use pipelines::file_judge::{FileJudge, JudgedFile, RefusedLine};
use rustix::time::{ClockId, clock_gettime};
use serde_json::{Map, Value, json};
use tabular::csv::CsvRecord;
use tabular::decode::{Utf8Reader, decompress};
use tabular::detect::{DETECT_BYTES, Detected, FileCompression, detect};
use tabular::files::{
    FileError, FileInput, FilePlan, MAX_UNPACKED_BYTES, RecordSink, RowProblem, convert_file, convert_records,
    format_of, infer_file,
};
use tabular::frame::{MAX_RECORD_BYTES, RecordReader};
use tabular::infer::{InferError, InferOptions, Inference, Remedy, shown};
use tabular::reading::{Reading, ReadingError, TextFormat};
use tabular::translate::{CellProblem, Translator};
use types::Contract;

use super::{ChildWork, FileReply, FileTask, MAX_LINES_BYTES, PIECE_BYTES, PROTOCOL, TaskFailure};
use crate::json_member::member_text;

/// Refused records that an answer tells.
const MAX_VERDICTS: usize = 20;

/// Serves one file over standard input, which is a socket, and ends.
pub(super) fn serve() -> io::Result<()> {
    let Some((mut child, ())) = fenced::child::enter(PROTOCOL, |_| Ok(()))? else {
        return Ok(());
    };
    let task: FileTask = child.channel.receive()?;
    let input = if task.is_open {
        let file = child
            .channel
            .receive_files(1)?
            .pop()
            .ok_or(io::ErrorKind::UnexpectedEof)?;
        FileInput::of_file(file, task.bytes)
    } else {
        let bytes = usize::try_from(task.bytes).map_err(io::Error::other)?;
        Bytes::from(child.channel.receive_bytes(bytes)?).into()
    };
    child.watch_caller()?;
    let worked = catch_unwind(AssertUnwindSafe(|| match task.work {
        ChildWork::Infer => infer(&task, input).map(Some),
        ChildWork::Convert => convert(&task, input, &mut child.channel).map(|()| None),
    }));
    let worked = worked.unwrap_or_else(|_panic| {
        Err(TaskFailure::Refused(
            "the file is damaged, or of a form that is not read".to_owned(),
        ))
    });
    let micros = processor_micros();
    child.channel.send(&match worked {
        Ok(Some(text)) => FileReply::Inferred { text, micros },
        Ok(None) => FileReply::Converted { micros },
        Err(failure) => FileReply::Failed { failure, micros },
    })
}

/// Returns the processor time of this process.
fn processor_micros() -> u64 {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    let seconds = u64::try_from(time.tv_sec).unwrap_or(0);
    seconds * 1_000_000 + u64::try_from(time.tv_nsec).unwrap_or(0) / 1_000
}

impl From<FileError> for TaskFailure {
    fn from(error: FileError) -> Self {
        match error {
            FileError::TooLarge(problem) => Self::TooLarge(problem),
            FileError::Refused(problem) => Self::Refused(problem),
            FileError::Enough => Self::Refused("the file was not read to its end".to_owned()),
            FileError::Io(error) => match error.downcast::<LinesTooLong>() {
                Ok(long) => Self::TooLarge(long.to_string()),
                // What the file claims to have, and does not.
                Err(error) => Self::Refused(format!("the file cannot be read: {error}")),
            },
        }
    }
}

/// More lines than a call answers.
#[derive(Debug, thiserror::Error)]
#[error("the records come to more than {} MiB of JSON Lines; the command line converts larger files", MAX_LINES_BYTES >> 20)]
struct LinesTooLong;

fn options(task: &FileTask) -> Result<InferOptions, TaskFailure> {
    let mut options = InferOptions {
        contract: task.contract.as_deref().cloned(),
        max_text_bytes: MAX_UNPACKED_BYTES,
        ..InferOptions::default()
    };
    if let Some(reading) = &task.reading {
        let reading: Result<Reading, _> = serde_json::from_value(reading.clone());
        options.reading = Some(reading.map_err(|error| TaskFailure::Input {
            path: "/reading".to_owned(),
            problem: format!("is no reading: {error}"),
        })?);
    }
    for (at, (flag, value)) in task.flags.iter().enumerate() {
        options.set(flag, value).map_err(|error| TaskFailure::Input {
            path: format!("/flags/{at}"),
            problem: error.to_string(),
        })?;
    }
    Ok(options)
}

/// Returns the Parquet, Arrow or XLSX file that is in gzip or zstd; text is unpacked as it is read.
fn unpacked_binary(input: FileInput) -> Result<FileInput, TaskFailure> {
    let mut begin = Vec::new();
    let read = input.rewound().take(DETECT_BYTES as u64).read_to_end(&mut begin);
    read.map_err(FileError::Io)?;
    match detect(&begin) {
        Ok(Detected { compression, kind, .. }) if compression != FileCompression::None && !kind.is_text() => {
            whole(decompress(input.rewound(), compression).map_err(FileError::Io)?)
        }
        _ => Ok(input),
    }
}

fn whole(mut input: impl Read) -> Result<FileInput, TaskFailure> {
    let mut bytes = Vec::new();
    let read = input.by_ref().take(MAX_UNPACKED_BYTES + 1).read_to_end(&mut bytes);
    read.map_err(|error| match error.kind() {
        io::ErrorKind::OutOfMemory => {
            TaskFailure::TooLarge("the file comes to more than there is memory for".to_owned())
        }
        _ => TaskFailure::Refused(format!("the compressed file is damaged: {error}")),
    })?;
    if bytes.len() as u64 > MAX_UNPACKED_BYTES {
        return Err(TaskFailure::TooLarge(format!(
            "the file comes to more than {} MiB unpacked, the most that is read here",
            MAX_UNPACKED_BYTES >> 20
        )));
    }
    Ok(Bytes::from(bytes).into())
}

/// What is found of a file: its answer, and how its records are made.
enum FoundFile {
    Text(Inference, Detected),
    Binary(Inference, FilePlan),
}

fn found(input: &FileInput, options: &InferOptions) -> Result<FoundFile, TaskFailure> {
    if let Some(format) = format_of(input).map_err(FileError::Io)? {
        let (inference, plan) = infer_file(input, format, options)?;
        return Ok(FoundFile::Binary(inference, plan));
    }
    let mut begin = Vec::new();
    let read = input.rewound().take(DETECT_BYTES as u64).read_to_end(&mut begin);
    read.map_err(FileError::Io)?;
    let detected = detect(&begin).map_err(|unreadable| TaskFailure::Refused(unreadable.to_string()))?;
    let inference = tabular::infer::infer(input.rewound(), options).map_err(|error| match error {
        InferError::Flag(error) => TaskFailure::Input {
            path: "/flags".to_owned(),
            problem: error.to_string(),
        },
        error => TaskFailure::Refused(error.to_string()),
    })?;
    Ok(FoundFile::Text(inference, detected))
}

/// Says what a file is, as JSON, and judges its records by the contract of the task.
fn infer(task: &FileTask, input: FileInput) -> Result<String, TaskFailure> {
    let options = options(task)?;
    let input = unpacked_binary(input)?;
    let found = found(&input, &options)?;
    let (FoundFile::Text(inference, _) | FoundFile::Binary(inference, _)) = &found;
    let Ok(Value::Object(mut answer)) = serde_json::to_value(inference) else {
        return Err(TaskFailure::Unavailable("an inference is no object".to_owned()));
    };
    // What is open can make every record be refused, which would say nothing.
    if let Some(contract) = &task.contract
        && inference.questions.is_empty()
    {
        let mut judge = TaskJudge::new(task, contract, inference)?;
        match &found {
            FoundFile::Binary(_, plan) => convert_records(&input, plan, &mut judge)?,
            FoundFile::Text(inference, detected) => judge.text(&input, &inference.reading, *detected, contract)?,
        }
        judge.finish(&mut answer)?;
    }
    serde_json::to_string(&answer).map_err(|error| TaskFailure::Unavailable(error.to_string()))
}

/// Sends the records of a binary file as lines.
fn convert(task: &FileTask, input: FileInput, channel: &mut ChildChannel) -> Result<(), TaskFailure> {
    let options = options(task)?;
    let input = unpacked_binary(input)?;
    let FoundFile::Binary(inference, plan) = found(&input, &options)? else {
        return Err(TaskFailure::Refused(
            "the file is text, which an upload takes as it is".to_owned(),
        ));
    };
    if !inference.is_settled() {
        let questions = inference.questions.iter().map(ToString::to_string);
        return Err(TaskFailure::Open(questions.collect()));
    }
    let mut pieces = PieceWriter {
        channel,
        left: task.most,
        piece: Vec::with_capacity(PIECE_BYTES),
    };
    convert_file(&input, &plan, &mut pieces, &mut |_| Ok(()))?;
    pieces.flush().map_err(|error| FileError::Io(error).into())
}

/// Sends what is written in pieces.
struct PieceWriter<'a> {
    channel: &'a mut ChildChannel,
    /// Bytes that may still be sent.
    left: u64,
    piece: Vec<u8>,
}

impl Write for PieceWriter<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let left = self.left.checked_sub(bytes.len() as u64);
        self.left = left.ok_or_else(|| io::Error::other(LinesTooLong))?;
        self.piece.extend_from_slice(bytes);
        if self.piece.len() >= PIECE_BYTES {
            self.flush()?;
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        // A record may be longer than a piece.
        for piece in self.piece.chunks(PIECE_BYTES) {
            self.channel.send(&FileReply::Piece(piece.len()))?;
            self.channel.send_bytes(piece)?;
        }
        self.piece.clear();
        Ok(())
    }
}

/// Judges the records of a file, and tells the values of those that are refused.
struct TaskJudge {
    judge: FileJudge,
    /// Name of the column of each field.
    columns: HashMap<String, String>,
    /// Values of the file that do not fit their fields, by row and field, of the first rows.
    misfits: HashMap<(u64, String), RowProblem>,
    /// Values of cells that are refused before they are records, by line and path.
    cells: HashMap<(u64, String), String>,
}

impl TaskJudge {
    fn new(task: &FileTask, contract: &Arc<Contract>, inference: &Inference) -> Result<Self, TaskFailure> {
        let judge = FileJudge::new(Arc::clone(contract), task.on_refused, MAX_VERDICTS);
        let columns = inference.columns.iter();
        let columns = columns.filter_map(|column| Some((column.field.clone()?, column.name.clone())));
        Ok(Self {
            judge: judge.map_err(TaskFailure::Unavailable)?,
            columns: columns.collect(),
            misfits: HashMap::new(),
            cells: HashMap::new(),
        })
    }

    fn push(&mut self, line: u64, record: &[u8]) -> io::Result<()> {
        self.judge.push(line, record).map_err(io::Error::other)
    }

    /// Judges the records of a text.
    fn text(
        &mut self,
        input: &FileInput,
        reading: &Reading,
        detected: Detected,
        contract: &Contract,
    ) -> Result<(), TaskFailure> {
        let unfit = |error: ReadingError| TaskFailure::Input {
            path: format!("/reading{}", error.path),
            problem: error.problem,
        };
        let text = decompress(input.rewound(), detected.compression).map_err(FileError::Io)?;
        let text = Utf8Reader::new(text, &reading.encoding).map_err(|error| TaskFailure::Refused(error.to_string()))?;
        let mut records = RecordReader::new(text, reading).map_err(unfit)?;
        let mut translator = Translator::new(reading, contract).map_err(unfit)?;
        let (mut record, mut line) = (Vec::new(), Vec::new());
        let mut judged = 0;
        loop {
            record.clear();
            line.clear();
            let framed = records
                .read(&mut record)
                .map_err(|error| TaskFailure::Refused(error.to_string()))?;
            let Some(framed) = framed else { return Ok(()) };
            judged += record.len() as u64;
            // As far as inference reads, whose answer says so.
            if judged > MAX_UNPACKED_BYTES {
                return Ok(());
            }
            if framed.is_too_long {
                let reason = Reason {
                    gate: GateName::DECODE,
                    code: "line_too_long".to_owned(),
                    path: String::new(),
                    expected: format!("a record of at most {MAX_RECORD_BYTES} bytes"),
                    actual: "is longer".to_owned(),
                };
                self.judge
                    .refuse(framed.line, vec![reason])
                    .map_err(TaskFailure::Unavailable)?;
                continue;
            }
            match translator.translate(&record, framed.number, &mut line) {
                Ok(()) => self.push(framed.line, &line).map_err(FileError::Io)?,
                Err(problems) => self
                    .refuse(framed.line, &record, reading, &problems)
                    .map_err(TaskFailure::Unavailable)?,
            }
        }
    }

    /// Counts a record whose cells say nothing.
    fn refuse(&mut self, line: u64, record: &[u8], reading: &Reading, problems: &[CellProblem]) -> Result<(), String> {
        let cells = match reading.csv_format() {
            Ok(format) if reading.format == TextFormat::Csv && self.cells.len() < 100 * MAX_VERDICTS => {
                let mut cells = CsvRecord::default();
                cells.set(record, 0, format);
                cells
                    .cells()
                    .map(|cell| String::from_utf8_lossy(cell).into_owned())
                    .collect()
            }
            _ => Vec::new(),
        };
        let reasons = problems.iter().map(|problem| {
            if let Some(value) = problem.column.and_then(|column| cells.get(column)) {
                self.cells.insert((line, problem.path.clone()), shown(value));
            }
            Reason {
                gate: GateName::DECODE,
                code: problem.code.to_owned(),
                path: problem.path.clone(),
                expected: problem.expected.clone(),
                actual: problem.problem.clone(),
            }
        });
        let reasons = reasons.collect();
        self.judge.refuse(line, reasons)
    }

    fn finish(self, answer: &mut Map<String, Value>) -> Result<(), TaskFailure> {
        let Self {
            judge,
            columns,
            misfits,
            cells,
        } = self;
        let judged = judge.finish().map_err(TaskFailure::Unavailable)?;
        let JudgedFile {
            passed,
            refused,
            duplicates,
            first,
            rejected,
        } = judged;
        let mut verdicts = Vec::new();
        for refused in &first {
            for reason in &refused.reasons {
                let field = field_of(&reason.path);
                let misfit = field
                    .as_ref()
                    .and_then(|field| misfits.get(&(refused.line, field.clone())));
                let column = field.as_ref().and_then(|field| columns.get(field));
                let cell = cells.get(&(refused.line, reason.path.clone())).cloned();
                let value = cell.or_else(|| misfit.map(|misfit| misfit.value.clone()));
                let value = value.or_else(|| member_text(&refused.text, &reason.path).map(|text| shown(&text)));
                verdicts.push(verdict(refused, reason, column, value.as_deref(), misfit));
            }
        }
        verdicts.truncate(MAX_VERDICTS);
        answer.insert("passed".to_owned(), passed.into());
        answer.insert("refused".to_owned(), refused.into());
        answer.insert("duplicates".to_owned(), duplicates.into());
        answer.insert("verdicts".to_owned(), verdicts.into());
        if let Some(rejected) = rejected {
            answer.insert("rejected".to_owned(), rejected.into());
        }
        Ok(())
    }
}

impl RecordSink for TaskJudge {
    fn record(&mut self, row: u64, line: &[u8]) -> io::Result<()> {
        self.push(row, line)
    }

    fn problem(&mut self, problem: RowProblem) -> io::Result<()> {
        // Later ones are refused with their text, which their line has.
        if self.misfits.len() < 100 * MAX_VERDICTS {
            self.misfits.insert((problem.row, problem.field.clone()), problem);
        }
        Ok(())
    }
}

/// Returns the field that a JSON pointer leads into.
fn field_of(path: &str) -> Option<String> {
    let field = path.strip_prefix('/')?.split('/').next()?;
    Some(field.replace("~1", "/").replace("~0", "~"))
}

fn verdict(
    refused: &RefusedLine,
    reason: &Reason,
    column: Option<&String>,
    value: Option<&str>,
    misfit: Option<&RowProblem>,
) -> Value {
    let decode = GateName::DECODE;
    let (gate, code, message) = match misfit {
        Some(misfit) => (decode.as_str(), misfit.code, misfit.problem.clone()),
        None if reason.gate == decode => (decode.as_str(), reason.code.as_str(), reason.actual.clone()),
        None => {
            let message = format!("expected {}, found {}", reason.expected, reason.actual);
            (reason.gate.as_str(), reason.code.as_str(), message)
        }
    };
    // Only a value that is no value can be said to be null.
    let remedy = match (column, value) {
        (Some(column), Some(value)) if code == "value" => Some(Remedy::new("--null", &[column, value], "")),
        _ => None,
    };
    let verdict = json!({
        "line": refused.line, "column": column, "path": reason.path, "value": value, "gate": gate, "code": code,
        "message": message, "remedy": remedy,
    });
    match verdict {
        Value::Object(members) => members
            .into_iter()
            .filter(|(_, value)| !value.is_null())
            .collect::<Map<_, _>>()
            .into(),
        other => other,
    }
}

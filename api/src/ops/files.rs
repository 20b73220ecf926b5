//! Operations that read a file and keep nothing of it: what it is, and its records as JSON Lines.
//!
//! Invariant: a file is read in a process of its own. Nothing of it is stored or logged.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use data_encoding::BASE64;
use http::Method;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use types::vocabulary::OnRefused;
use types::{Contract, OperatorId};

use super::projects::{SchemaDef, contract_of};
use crate::call::answer::{BodyMedia, JSON, JsonReply, NDJSON, OCTET_STREAM, StreamedAnswer};
use crate::call::cx::Cx;
use crate::call::operation::Operations;
use crate::call::spec::{BodySize, KEY_OR_OPERATOR, Scope, Spec};
use crate::codes::ErrorCode;
use crate::error::{ApiError, whole_seconds};
use crate::state::files::{FILE_PROCESSOR, FileDone, FileFailure, FileJob};

/// The longest wait for a process. Each of those before has 20 seconds of processor time.
const PROCESS_PATIENCE: Duration = Duration::from_mins(1);
/// `Retry-After` while other files are read, in seconds.
const BUSY_SECONDS: u64 = 5;
const EXAMPLE: &str = r#"{"text": "gauge;metres\nA;1,5\nB;2,25\n"}"#;

const FAILURE: &[(u16, &str)] = &[
    (
        400,
        "The file is none that is read (`file_refused`), comes to more than may be read here (`file_too_large`), or the \
         body breaks a rule; `message` says why.",
    ),
    (413, "The body is larger than `limits.file_body`."),
    (
        429,
        "Another file of the operator is being read, its minute of processor time in 10 minutes is used, or no place \
         became free (`busy`); or too many calls. `Retry-After` says when to come back.",
    ),
    (503, "No process could read the file; try again."),
];

pub(super) fn add(table: &mut Operations) {
    let spec = Spec {
        method: Method::POST,
        tag: "datasets",
        accepts: KEY_OR_OPERATOR,
        // A dry run takes the same doors as the contribution that it stands for.
        scope: Scope::Write,
        body: BodySize::File,
        takes: &[JSON, OCTET_STREAM],
        alone: true,
        failure: FAILURE,
        example: EXAMPLE,
        ..Spec::BASE
    };
    table.add(
        Spec {
            name: "infer_file",
            path: "/files/infer",
            summary: "Says what a file is, and the dataset that it can become",
            description: "CSV and its like, JSON, JSON Lines, Parquet, Arrow and XLSX, also in gzip or zstd; the content \
                          decides, and the name plays no part. The body is the file itself, or an object with its text \
                          or Base64. With `schemaDef` the records are judged by it, as a contribution would be, without \
                          the records of a dataset. Nothing is stored.",
            success: &[(200, "The columns, contract, reading, notes and questions.")],
            ..spec.clone()
        },
        &[],
        infer,
    );
    table.add(
        Spec {
            name: "convert_file",
            path: "/files/convert",
            summary: "Converts a Parquet, Arrow or XLSX file into JSON Lines",
            description: "Line N is row N of the file, so a row that is no record is an empty line. A value that does not \
                          fit its field is text, which the dataset refuses. The lines are sent to an upload as they are. \
                          Nothing is stored.",
            success: &[(200, "The records, one JSON object a line.")],
            ..spec
        },
        &[],
        convert,
    );
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct FileInput {
    /// The file, if it is text of UTF-8.
    text: Option<String>,
    /// The file as Base64 (RFC 4648 section 4).
    base64: Option<String>,
    /// Reading of another file, or an edited one: what it says holds.
    #[schemars(with = "Option<Map<String, Value>>")]
    reading: Option<Value>,
    /// Contract that the records are judged by.
    #[schemars(with = "Option<SchemaDef>")]
    schema_def: Option<Value>,
    /// Effect of refused records: `reject` the file, or `drop`: they are left out unless they are more than half.
    #[serde(default)]
    on_refused: OnRefused,
    /// Decisions about the file, as the `remedies` of notes and questions name them.
    #[serde(default)]
    #[schemars(length(max = 2_000))]
    flags: Vec<FileFlag>,
}

/// A flag of `sluice infer`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct FileFlag {
    /// The flag, such as `--zone`.
    #[schemars(length(min = 3, max = 40))]
    flag: String,
    /// Its value; absent for a flag without one.
    #[schemars(length(max = 2_000))]
    #[serde(default)]
    value: String,
}

/// A file as it was found.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct InferredFile {
    /// Format of the file: `csv`, `json-lines`, `json`, `parquet`, `arrow-file`, `arrow-stream` or `xlsx`.
    format: String,
    /// False if not the whole file was read; then a later record may not fit.
    complete: bool,
    /// Bytes of text that were read, after decompression and decoding.
    text_bytes: u64,
    /// Records, also those that cannot be taken.
    records: u64,
    /// The columns of the file, in order.
    columns: Vec<FileColumn>,
    /// The contract that the records pass; absent if there is none, which a question says.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<SchemaDef>")]
    schema_def: Option<Value>,
    /// The reading that makes records of the file, or of the JSON Lines of `convert_file`.
    reading: Map<String, Value>,
    /// The first records as they will be stored, at most 20.
    #[schemars(with = "Vec<Map<String, Value>>")]
    sample: Vec<Value>,
    /// Number of records that pass, with `schemaDef`.
    #[serde(skip_serializing_if = "Option::is_none")]
    passed: Option<u64>,
    /// Number of records that are refused, with `schemaDef`.
    #[serde(skip_serializing_if = "Option::is_none")]
    refused: Option<u64>,
    /// Number of records that repeat an earlier one of the file, with `schemaDef`.
    #[serde(skip_serializing_if = "Option::is_none")]
    duplicates: Option<u64>,
    /// The first refused records, at most 20, with `schemaDef`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    verdicts: Vec<FileVerdict>,
    /// Why the records would be rejected as a whole, with `schemaDef` and `onRefused`; absent if those that pass would be
    /// merged.
    #[serde(skip_serializing_if = "Option::is_none")]
    rejected: Option<String>,
    /// Decisions that were made.
    notes: Vec<FileRemark>,
    /// Decisions that a person has to make before a project is created.
    questions: Vec<FileRemark>,
    /// Active projects of the operator, and how many it may have.
    projects: Option<FileProjects>,
}

/// A column of a file, or a member of its objects.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct FileColumn {
    /// Name in the file.
    name: String,
    /// Name of the field; absent if the column is left out.
    #[serde(skip_serializing_if = "Option::is_none")]
    field: Option<String>,
    /// Type of the field.
    #[serde(rename = "type")]
    kind: String,
    /// Digits after the point, of a decimal.
    #[serde(skip_serializing_if = "Option::is_none")]
    scale: Option<u8>,
    /// Form of dates and times, as in the reading.
    #[serde(skip_serializing_if = "Option::is_none")]
    parse: Option<String>,
    /// Records in which the value is null.
    nulls: u64,
    /// Words of the column that mean null.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    null_words: Vec<FileNullWord>,
    /// The first distinct values, as they are in the file.
    examples: Vec<String>,
    /// All distinct values, if they are few.
    #[serde(skip_serializing_if = "Option::is_none")]
    distinct: Option<Vec<String>>,
}

/// A word that means null in a column.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
struct FileNullWord {
    /// The word.
    word: String,
    /// The number of cells that are it.
    count: u64,
}

/// A note or a question.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
struct FileRemark {
    /// Subject, for programs.
    code: String,
    /// The remark in words.
    message: String,
    /// Name of the column in the file.
    #[serde(skip_serializing_if = "Option::is_none")]
    column: Option<String>,
    /// Line of the file, from 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    line: Option<u64>,
    /// Flags that decide otherwise, or answer the question.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    remedies: Vec<FileRemedy>,
}

/// A flag that decides something.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
struct FileRemedy {
    /// The flag.
    flag: String,
    /// Its value; absent for a flag without one.
    #[serde(skip_serializing_if = "Option::is_none")]
    value: Option<String>,
    /// The flag as it can be pasted into a shell; absent if its value is not safe there.
    #[serde(skip_serializing_if = "Option::is_none")]
    command: Option<String>,
}

/// A reason why a record is refused.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
struct FileVerdict {
    /// Line of the file, or row of a workbook or table, from 1.
    line: u64,
    /// Name of the column in the file.
    #[serde(skip_serializing_if = "Option::is_none")]
    column: Option<String>,
    /// Path of the value in the record; empty for the record.
    path: String,
    /// Begin of the value, as it is in the file.
    #[serde(skip_serializing_if = "Option::is_none")]
    value: Option<String>,
    /// Gate that refuses it.
    gate: String,
    /// Case of the refusal, for programs.
    code: String,
    /// The refusal in words.
    message: String,
    /// A flag that decides otherwise.
    #[serde(skip_serializing_if = "Option::is_none")]
    remedy: Option<FileRemedy>,
}

/// Projects of an operator.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
struct FileProjects {
    /// Number of its active projects.
    active: u64,
    /// The most that it may have.
    limit: u32,
}

/// Records of a file, one a line. A row that is no record is an empty line.
struct FileLinesMedia;

impl BodyMedia for FileLinesMedia {
    const TYPE: &'static str = NDJSON;

    fn schema() -> Value {
        json!({"type": "object"})
    }
}

async fn infer(cx: Cx, input: FileInput) -> Result<JsonReply<InferredFile>, ApiError> {
    let operator = cx.the_operator()?;
    let job = job(&cx, input)?;
    let found = work(&cx, cx.app.files.infer(job)).await?;
    let mut found: InferredFile =
        serde_json::from_value(found).map_err(|error| ApiError::internal(format!("inference: {error}")))?;
    let limit = cx.app.limits.active_projects_per_operator;
    // One more than there may be, since a lower limit leaves those that there are.
    let active = cx
        .app
        .store
        .console()
        .active_projects_of(operator, limit.saturating_add(1))
        .await?;
    found.projects = Some(FileProjects {
        active: active.len() as u64,
        limit,
    });
    Ok(JsonReply::ok(found))
}

async fn convert(cx: Cx, input: FileInput) -> Result<StreamedAnswer<FileLinesMedia>, ApiError> {
    let job = job(&cx, input)?;
    let lines: Bytes = work(&cx, cx.app.files.convert(job)).await?;
    Ok(StreamedAnswer::whole(lines))
}

fn job(cx: &Cx, input: FileInput) -> Result<FileJob, ApiError> {
    let contract: Option<Contract> = input.schema_def.map(contract_of).transpose()?;
    let body = match (input.text, input.base64, &cx.body) {
        (None, None, Some(body)) => body.clone(),
        (Some(text), None, None) => text.into(),
        (None, Some(text), None) => BASE64
            .decode(text.as_bytes())
            .map_err(|error| ApiError::invalid("/base64", format!("is not Base64: {error}")))?
            .into(),
        _ => return Err(ApiError::invalid("", "must have exactly one of `text` and `base64`")),
    };
    Ok(FileJob {
        body,
        flags: input.flags.into_iter().map(|flag| (flag.flag, flag.value)).collect(),
        reading: input.reading,
        contract: contract.map(Arc::new),
        on_refused: input.on_refused,
    })
}

/// Waits for the place of a process, and works.
async fn work<T>(cx: &Cx, work: impl Future<Output = FileDone<T>>) -> Result<T, ApiError> {
    let (operator, shares) = (cx.the_operator()?, &cx.app.process.files);
    if let Some(wait) = shares.wait(operator, cx.now) {
        let message = "the files of this operator have used their minute of processor time in 10 minutes";
        return Err(ApiError::limited(ErrorCode::Busy, message, whole_seconds(wait)));
    }
    let place = tokio::time::timeout(PROCESS_PATIENCE, shares.processes.acquire()).await;
    let Ok(Ok(_place)) = place else {
        let message = "other files are being read, and no place became free in a minute";
        return Err(ApiError::limited(ErrorCode::Busy, message, BUSY_SECONDS));
    };
    let mut charge = Charge {
        cx,
        operator,
        time: FILE_PROCESSOR,
    };
    let done = work.await;
    charge.time = done.processor;
    done.result.map_err(failed)
}

/// Processor time that an operator is charged when this is dropped: all that a process may use, until it is known. A caller
/// who hangs up ends the process, and the work before that counts, too.
struct Charge<'a> {
    cx: &'a Cx,
    operator: OperatorId,
    time: Duration,
}

impl Drop for Charge<'_> {
    fn drop(&mut self) {
        let app = &self.cx.app;
        app.process.files.spend(self.operator, app.clock.now(), self.time);
    }
}

fn failed(failure: FileFailure) -> ApiError {
    match failure {
        FileFailure::Input { path, problem } => ApiError::invalid(path, problem),
        FileFailure::Refused(problem) => ApiError::new(ErrorCode::FileRefused, problem),
        FileFailure::Open(questions) => {
            let message = format!("the file leaves open: {}", questions.join("; "));
            ApiError::new(ErrorCode::FileOpen, message).field("questions", questions)
        }
        FileFailure::TooLarge(problem) => ApiError::new(ErrorCode::FileTooLarge, problem),
        FileFailure::Unavailable(context) => ApiError::unavailable(context),
    }
}

#[cfg(test)]
mod tests;

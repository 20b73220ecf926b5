//! Operation that streams a whole version as NDJSON, and the records of a version as a file of any format.
//!
//! Invariant: a bounded number of records is in memory, whatever the size of the version. None but the first few is rendered
//! before the client reads it.

use std::io;
use std::sync::Arc;

use arrow::array::RecordBatch;
use bytes::Bytes;
use catalog::{Columns, Snapshot};
use futures_util::stream::{self, BoxStream, StreamExt as _, TryStreamExt as _};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value};
use store::Project;
use types::error::with_causes;
use types::render::arrow::{ArrowStream, record_schema};
use types::render::csv::{CsvReader, RenderedCsv};
use types::render::lines::RenderedLines;
use types::{Contract, Version};

use crate::call::answer::{BodyMedia, NDJSON, StreamedAnswer};
use crate::call::cx::Cx;
use crate::call::operation::Operations;
use crate::call::schema;
use crate::call::spec::{GuardedItem, KEY, Spec};
use crate::error::ApiError;
use crate::rules::answer_file::FileFormat;
use crate::rules::entitlement;
use crate::rules::reading::{self, MAX_EXACT_INTEGER, NO_VERSION, NOT_BOUGHT, NOT_YET};
use crate::rules::standing::RepeatedCheck;
use crate::state::holder_limit::HolderPermit;

/// Bytes rendered at a time, plus at most one record.
const CHUNK_BYTES: usize = 64 << 10;

pub(super) fn add(table: &mut Operations) {
    table.add(
        Spec {
            name: "export_dataset",
            path: "/projects/{slug}/export",
            summary: "All records of a version, one JSON object a line",
            description: "The records are those of `read_dataset`, in the same order. An answer that ends early breaks \
                          its connection off. Eight of an operator are sent at once, and more wait.",
            tag: "datasets",
            accepts: KEY,
            item: GuardedItem::Project,
            egress: true,
            success: &[(200, "The records.")],
            failure: &[NOT_BOUGHT, NO_VERSION, NOT_YET],
            ..Spec::BASE
        },
        &[],
        export,
    );
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct ExportInput {
    /// Slug of the project.
    slug: String,
    /// Version to export.
    #[schemars(range(min = 1, max = MAX_EXACT_INTEGER))]
    version: u64,
}

/// Media type of the answer: one record per line.
struct RecordLinesMedia;

impl BodyMedia for RecordLinesMedia {
    const TYPE: &'static str = NDJSON;

    fn schema() -> Value {
        schema::of_output::<Map<String, Value>>()
    }
}

async fn export(cx: Cx, input: ExportInput) -> Result<StreamedAnswer<RecordLinesMedia>, ApiError> {
    let project = entitlement::visible(&cx, &input.slug).await?;
    let snapshot = reading::entitled(&cx, &project, Some(Version(input.version))).await?;
    Ok(StreamedAnswer::ok(
        records(&cx, &project, &snapshot, FileFormat::JsonLines).await?,
    ))
}

/// Pieces of an answer that is produced while it is sent.
type Pieces<E> = BoxStream<'static, Result<Bytes, E>>;

/// Returns the records of a version as the pieces of a file, for a caller who may read them. The first [`CHUNK_BYTES`] bytes
/// are there, so that a damaged table and a reader without egress still get an error status.
///
/// # Errors
/// 503 for a damaged table, the refusals of egress, and those of a caller who may not read the version any more when
/// its turn comes.
pub(super) async fn records(
    cx: &Cx,
    project: &Project,
    snapshot: &Snapshot,
    format: FileFormat,
) -> Result<Pieces<io::Error>, ApiError> {
    // The empty version has neither a contract nor records.
    let Some(contract) = snapshot.contract().cloned() else {
        return Ok(stream::empty().boxed());
    };
    // The permit is taken last, so that a refused call does not wait for one.
    let permit = cx.app.process.exports.acquire(cx.the_operator()?).await;
    let mut pieces = encoded(snapshot, contract, format).await?;
    let mut first = Vec::new();
    while first.len() < CHUNK_BYTES {
        let Some(piece) = pieces.try_next().await? else { break };
        first.extend_from_slice(&piece);
    }
    // It waited for the permit, and a file of Parquet for a place to be encoded.
    let version = snapshot.version();
    reading::still_entitled(cx, project, version, Some(version)).await?;
    if let Some(reader) = cx.reader().filter(|_| cx.answer_is_sent) {
        let bytes = first.len() as u64;
        // They go back to the lease here, and are taken again when they are sent.
        drop(
            cx.app
                .egress
                .admit_body(&cx.app, reader, cx.app.clock.now(), bytes)
                .await?,
        );
    }
    let first = Some(Bytes::from(first)).filter(|first| !first.is_empty());
    let sent = SentRecords {
        cx: cx.clone(),
        project: project.clone(),
        version,
        pieces: stream::iter(first.map(Ok)).chain(pieces).boxed(),
        repeated: RepeatedCheck::made(cx.app.clock.now()),
        _permit: permit,
    };
    let body = stream::try_unfold(sent, async |mut sent: SentRecords| {
        let piece = sent.next().await.map_err(|error| broken(&error))?;
        Ok(piece.map(|piece| (piece, sent)))
    });
    Ok(body.boxed())
}

/// Records of a version that a client reads as slowly as it likes. It owns the permit, which is returned when the answer
/// ends, also if the client disconnects.
struct SentRecords {
    cx: Cx,
    project: Project,
    version: Version,
    pieces: Pieces<ApiError>,
    repeated: RepeatedCheck,
    _permit: HolderPermit,
}

impl SentRecords {
    /// Returns the next piece, if the caller may still read.
    async fn next(&mut self) -> Result<Option<Bytes>, ApiError> {
        let Some(piece) = self.pieces.try_next().await? else {
            return Ok(None);
        };
        let right = reading::still_entitled(&self.cx, &self.project, self.version, Some(self.version));
        self.repeated.repeat(self.cx.app.clock.now(), right).await?;
        Ok(Some(piece))
    }
}

/// Encodes the records of a version while the pieces are polled. The first rows are read before this returns.
async fn encoded(
    snapshot: &Snapshot,
    contract: Arc<Contract>,
    format: FileFormat,
) -> Result<Pieces<ApiError>, ApiError> {
    if format == FileFormat::Parquet {
        return Ok(snapshot.parquet().map_err(ApiError::from).boxed());
    }
    let mut rows = snapshot.stream(Columns::Records, 0..snapshot.record_count());
    let first = rows.try_next().await?;
    let rows = stream::iter(first.map(Ok)).chain(rows).map_err(ApiError::from);
    Ok(match format {
        FileFormat::Csv => {
            let mut names = Vec::new();
            CsvReader::Spreadsheet.write_names(&contract.schema(), &mut names);
            let rows = rows.map(|rows| -> Result<_, ApiError> {
                let cells = RenderedCsv::new(&rows?, CsvReader::Spreadsheet).map_err(|error| unrendered(&error))?;
                Ok(pieces(cells.len(), move |row, out| cells.write(row..row + 1, out)))
            });
            stream::iter([Ok(Bytes::from(names))]).chain(rows.try_flatten()).boxed()
        }
        FileFormat::Arrow => arrow(
            ArrowStream::new(record_schema(&contract)).map_err(|error| unrendered(&error))?,
            rows.boxed(),
        ),
        FileFormat::JsonLines | FileFormat::Parquet => {
            let rows = rows.map(move |rows| -> Result<_, ApiError> {
                let lines = RenderedLines::new(&contract, &rows?).map_err(|error| unrendered(&error))?;
                Ok(pieces(lines.len(), move |row, out| lines.write(row..row + 1, out)))
            });
            rows.try_flatten().boxed()
        }
    })
}

/// Encodes rows as an Arrow stream, each batch when it is polled.
fn arrow(stream: ArrowStream, rows: BoxStream<'static, Result<RecordBatch, ApiError>>) -> Pieces<ApiError> {
    let next = |(stream, mut rows): (Option<ArrowStream>, BoxStream<'static, Result<RecordBatch, ApiError>>)| async move {
        let Some(mut stream) = stream else {
            return Ok(None);
        };
        let Some(batch) = rows.try_next().await? else {
            let end = stream.finish().map_err(|error| unrendered(&error))?;
            return Ok(Some((Bytes::from(end), (None, rows))));
        };
        let piece = stream.encode(&batch).map_err(|error| unrendered(&error))?;
        Ok(Some((Bytes::from(piece), (Some(stream), rows))))
    };
    stream::try_unfold((Some(stream), rows), next).boxed()
}

/// Renders rows lazily, about [`CHUNK_BYTES`] bytes at a time.
fn pieces(count: usize, write: impl Fn(usize, &mut Vec<u8>) + Send + 'static) -> Pieces<ApiError> {
    let mut row = 0;
    let pieces = std::iter::from_fn(move || {
        let mut piece = Vec::with_capacity(CHUNK_BYTES + CHUNK_BYTES / 8);
        // Records are written whole, so a piece may be larger by one record than the bound.
        while row < count && piece.len() < CHUNK_BYTES {
            write(row, &mut piece);
            row += 1;
        }
        (!piece.is_empty()).then(|| Ok(Bytes::from(piece)))
    });
    stream::iter(pieces).boxed()
}

fn unrendered(error: &(dyn std::error::Error + 'static)) -> ApiError {
    ApiError::internal(format!("rendering records: {}", with_causes(error)))
}

/// Logs an error of an answer that has begun, and returns the error that closes the connection, since the status was
/// sent already.
fn broken(error: &ApiError) -> io::Error {
    let reason = error.reason();
    if error.status().is_server_error() {
        tracing::error!(
            error = reason,
            "an export failed after its answer had begun; the connection was closed"
        );
    } else {
        tracing::info!(error = reason, "the right to read ended while an export was sent");
    }
    io::Error::other("the export failed")
}

#[cfg(test)]
mod tests;

//! Operation that streams a whole version as NDJSON.
//!
//! Invariant: a bounded number of records is in memory, whatever the size of the version. None is rendered before the
//! client reads it.

use std::io;

use bytes::Bytes;
use catalog::Columns;
use futures_util::stream::{self, BoxStream, StreamExt as _, TryStreamExt as _};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value};
use types::Version;
use types::render::lines::RenderedLines;

use crate::call::answer::{BodyMedia, NDJSON, StreamedAnswer};
use crate::call::cx::Cx;
use crate::call::operation::Operations;
use crate::call::schema;
use crate::call::spec::{GuardedItem, KEY, Spec};
use crate::error::ApiError;
use crate::rules::entitlement;
use crate::rules::reading::{self, MAX_EXACT_INTEGER, NO_VERSION, NOT_BOUGHT, NOT_YET};
use types::error::with_causes;

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
    let version = Some(Version(input.version));
    let snapshot = reading::entitled(&cx, &project, version).await?;
    // The empty version has neither a contract nor records.
    let Some(contract) = snapshot.contract().cloned() else {
        return Ok(StreamedAnswer::ok(stream::empty().boxed()));
    };
    // The permit is taken last, so that a refused call does not wait for one.
    let permit = cx.app.process.exports.acquire(cx.the_operator()?).await;
    let mut batches = snapshot.stream(Columns::Records, 0..snapshot.record_count());
    // The first rows are read before the head of the answer is sent, so that a damaged table still gets an error
    // status.
    let first = batches.try_next().await?;
    let body = stream::iter(first.map(Ok))
        .chain(batches)
        .map_err(|error| broken(&error))
        .and_then(move |rows| {
            // The closure owns the permit, so it is returned when the answer ends, also if the client disconnects.
            let _permit = &permit;
            let lines = RenderedLines::new(&contract, &rows).map_err(|error| broken(&error));
            std::future::ready(lines.map(pieces))
        })
        .try_flatten();
    Ok(StreamedAnswer::ok(body.boxed()))
}

/// Renders the lines of a batch lazily, about [`CHUNK_BYTES`] bytes at a time.
fn pieces(lines: RenderedLines) -> BoxStream<'static, Result<Bytes, io::Error>> {
    let mut row = 0;
    let pieces = std::iter::from_fn(move || {
        let mut piece = Vec::with_capacity(CHUNK_BYTES + CHUNK_BYTES / 8);
        // Records are written whole, so a piece may be larger by one record than the bound.
        while row < lines.len() && piece.len() < CHUNK_BYTES {
            lines.write(row..row + 1, &mut piece);
            row += 1;
        }
        (!piece.is_empty()).then(|| Ok(Bytes::from(piece)))
    });
    stream::iter(pieces).boxed()
}

/// Logs an error of an answer that has begun, and returns the error that closes the connection, since the status was
/// sent already.
fn broken(error: &(dyn std::error::Error + 'static)) -> io::Error {
    tracing::error!(
        error = with_causes(error),
        "an export failed after its answer had begun; the connection was closed"
    );
    io::Error::other("the export failed")
}

#[cfg(test)]
mod tests;

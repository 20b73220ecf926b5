//! What every read of a version has in common.
//!
//! Invariants:
//! - A version that the service has told of is never denied; where it is not here yet, that is said.
//! - Nothing is read of a table that lacks the latest version that the service has told of, or has it with another content
//!   root, whichever version is asked for.
//! - A page of records is bounded in bytes, whatever records are in it.

use std::time::Duration;

use arrow::array::RecordBatch;
use catalog::{Columns, Snapshot};
use futures_util::TryStreamExt as _;
use serde_json::value::RawValue;
use store::Project;
use types::Version;
use types::render::lines::Lines;

use crate::cx::Cx;
use crate::entitlement;
use crate::error::ApiError;

/// The greatest integer that every JSON reader takes exactly (RFC 7493 section 2.2).
pub(super) const GREATEST: u64 = (1 << 53) - 1;
/// A page ends with the record that brings it to this many bytes, so that one of large records fits into memory.
pub(super) const PAGE_BYTES: usize = 8 << 20;
/// What every read of a version may be refused for.
pub(super) const NO_VERSION: (u16, &str) = (
    404,
    "There is no such project or version, or the project is private to others.",
);
/// What every read of a paid version may be refused for.
pub(super) const NOT_BOUGHT: (u16, &str) = (
    402,
    "The project is paid and the version is not bought; `credits.buy` and `pay` say how to.",
);
/// The refusals of a read that may pass: of a version that was just merged, and of a table that lost history or is damaged.
pub(super) const NOT_YET: (u16, &str) = (
    503,
    "The version was just merged and is not here yet (`not_yet`), the table lacks versions that it had \
     (`history_lost`), or a file of it is damaged (`table_damaged`); `Retry-After` says when to come back.",
);
/// The time that a merged version may take to be visible in this process.
const ON_ITS_WAY: Duration = Duration::from_secs(2);

/// The records of a project at a version, the latest where not given.
pub(super) async fn snapshot(cx: &Cx, project: &Project, version: Option<Version>) -> Result<Snapshot, ApiError> {
    let catalog = &cx.app.catalog;
    // The table may be ahead of what outcomes told, and must not be behind it.
    let told = catalog.snapshot(project.id, Some(project.version)).await?;
    let told = told.ok_or_else(|| behind(cx, project, version))?;
    let expected = project.head.as_ref().map(|head| head.root.as_str());
    let root = told.root_at(project.version).map(|root| root.to_string());
    if expected.is_some_and(|expected| root.as_deref() != Some(expected)) {
        return Err(lost(project));
    }
    match version {
        None => Ok(catalog.snapshot(project.id, None).await?.unwrap_or(told)),
        Some(version) if version <= project.version => told.at(version).ok_or_else(|| lost(project)),
        Some(version) => {
            let found = catalog.snapshot(project.id, Some(version)).await?;
            found.ok_or_else(|| missing(project, version))
        }
    }
}

/// The table lacks the latest version that the service has told of.
fn behind(cx: &Cx, project: &Project, asked: Option<Version>) -> ApiError {
    let Project { slug, version, .. } = project;
    let head = project.head.as_ref();
    if head.is_some_and(|head| cx.now.since(head.merged_at) < ON_ITS_WAY) {
        if let Some(asked) = asked.filter(|asked| asked > version) {
            return missing(project, asked);
        }
        let message = format!("version {version} of `{slug}` was just merged and is not here yet; try again shortly");
        return ApiError::not_yet(message);
    }
    lost(project)
}

fn missing(project: &Project, version: Version) -> ApiError {
    ApiError::not_found(format!("the dataset `{}` has no version {version}", project.slug))
}

fn lost(project: &Project) -> ApiError {
    let Project { slug, version, .. } = project;
    ApiError::history_lost(slug).context(format!(
        "the table {} lacks version {version} of `{slug}`, or has another; restore it, or accept the loss with \
         `sluice admin table accept-loss {slug}`",
        project.id
    ))
}

/// Returns the records for a caller who may read them. The version must exist before its price is asked, and the empty one before
/// the first merge has no price.
pub(super) async fn entitled(cx: &Cx, project: &Project, version: Option<Version>) -> Result<Snapshot, ApiError> {
    let snapshot = snapshot(cx, project, version).await?;
    if snapshot.version() > Version::EMPTY {
        entitlement::records(cx, project, version)?;
    }
    Ok(snapshot)
}

/// Up to `limit` records from index `offset` on, fewer where [`PAGE_BYTES`] are reached, but one if there is one. The
/// records of each batch, as JSON, come with what `more` says of it; they are as many as its rows or, in the last, fewer.
pub(super) async fn page<M>(
    snapshot: &Snapshot,
    columns: Columns,
    offset: u64,
    limit: usize,
    more: impl Fn(&RecordBatch) -> Result<M, ApiError>,
) -> Result<Vec<(M, Vec<Box<RawValue>>)>, ApiError> {
    let Some(contract) = snapshot.contract() else {
        return Ok(Vec::new());
    };
    let internal = |error: &dyn std::error::Error| ApiError::internal(format!("rendering records: {error}"));
    let mut batches = snapshot.stream(columns, offset..offset.saturating_add(limit as u64));
    let mut pages = Vec::new();
    let mut bytes = 0;
    while let Some(rows) = batches.try_next().await? {
        let lines = Lines::new(contract, &rows).map_err(|error| internal(&error))?;
        let mut records = Vec::with_capacity(lines.len());
        for row in 0..lines.len() {
            if bytes >= PAGE_BYTES {
                break;
            }
            let mut text = Vec::with_capacity(256);
            lines.record(row, &mut text);
            bytes += text.len();
            let text = String::from_utf8(text).map_err(|error| internal(&error))?;
            records.push(RawValue::from_string(text).map_err(|error| internal(&error))?);
        }
        pages.push((more(&rows)?, records));
        if bytes >= PAGE_BYTES {
            break;
        }
    }
    Ok(pages)
}

//! Functions that every read of a version uses.
//!
//! Invariants:
//! - A version that the service has announced is never reported as missing. If this process does not see it yet, the
//!   answer is 503.
//! - No version of a table is read if the table lacks the latest version that the service has announced, or has it with
//!   another content root.
//! - A page of records is bounded in bytes, whatever the size of its records.

use std::ops::Range;
use std::time::Duration;

use arrow::array::RecordBatch;
use catalog::{Columns, Snapshot};
use futures_util::TryStreamExt as _;
use serde_json::value::RawValue;
use store::Project;
use types::Version;
use types::render::lines::RenderedLines;

use crate::call::cx::Cx;
use crate::error::ApiError;
use crate::rules::{auth, entitlement};
use crate::state::page_size::PageSize;

/// The greatest integer that every JSON reader represents exactly (RFC 7493 section 2.2).
pub(crate) const MAX_EXACT_INTEGER: u64 = (1 << 53) - 1;
/// Error that every read of a version can return.
pub(crate) const NO_VERSION: (u16, &str) = (
    404,
    "There is no such project or version, or the project is private to others.",
);
/// Error that every read of a paid version can return.
pub(crate) const NOT_BOUGHT: (u16, &str) = (
    402,
    "The project is paid and the version is not bought; `credits.buy` and `pay` say how to.",
);
/// Errors of a read that can be retried: the version was just merged, or its table lost history or is damaged.
pub(crate) const NOT_YET: (u16, &str) = (
    503,
    "The version was just merged and is not here yet (`not_yet`), the table lacks versions that it had \
     (`history_lost`), or a file of it is damaged (`table_damaged`); `Retry-After` says when to come back.",
);
/// Time that a merged version may take to be visible in this process.
const VISIBILITY_TIMEOUT: Duration = Duration::from_secs(2);

/// Returns a snapshot of a project's table at a version; the latest if `version` is `None`.
pub(crate) async fn snapshot(cx: &Cx, project: &Project, version: Option<Version>) -> Result<Snapshot, ApiError> {
    let catalog = &cx.app.catalog;
    // The table may be ahead of the outcomes that the database has applied, but it must not be behind them.
    let published = catalog.snapshot(project.id, Some(project.version)).await?;
    let published = published.ok_or_else(|| behind(cx, project, version))?;
    let expected = project.head.as_ref().map(|head| head.root.as_str());
    let root = published.root_at(project.version).map(|root| root.to_string());
    // Another root at the same version means that the table was replaced, for example by an older copy that grew again.
    if expected.is_some_and(|expected| root.as_deref() != Some(expected)) {
        return Err(lost(project));
    }
    match version {
        // The latest version of the table may be newer than the announced one, and is the one to serve.
        None => Ok(published.latest()),
        Some(version) if version <= project.version => published.at(version).ok_or_else(|| lost(project)),
        Some(version) => {
            let found = catalog.snapshot(project.id, Some(version)).await?;
            found.ok_or_else(|| missing(project, version))
        }
    }
}

/// Returns the error for a table that lacks the latest announced version: 503 or 404 right after its merge, later
/// `history_lost`.
fn behind(cx: &Cx, project: &Project, asked: Option<Version>) -> ApiError {
    let Project { slug, version, .. } = project;
    let head = project.head.as_ref();
    // A merge by another replica may not be visible in this process yet.
    if head.is_some_and(|head| cx.now.since(head.merged_at) < VISIBILITY_TIMEOUT) {
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

/// Returns a snapshot for a caller who may read its records. The version must exist before its price is looked at. The
/// empty version before the first merge has no price.
pub(crate) async fn entitled(cx: &Cx, project: &Project, version: Option<Version>) -> Result<Snapshot, ApiError> {
    let snapshot = snapshot(cx, project, version).await?;
    if snapshot.version() > Version::EMPTY {
        entitlement::records(cx, project, snapshot.version(), version).await?;
        cx.app.process.readers.note(project, cx.operator(), cx.now);
    }
    Ok(snapshot)
}

/// Repeats the decision of [`entitled`] after a wait, as of now: meanwhile the operator can have been suspended, the
/// dataset taken down or made private, or the purchase refunded. What was read before is not sent then.
///
/// # Errors
/// Those that a call gets which begins now.
pub(crate) async fn still_entitled(
    cx: &Cx,
    project: &Project,
    version: Version,
    asked: Option<Version>,
) -> Result<(), ApiError> {
    let cx = Cx {
        now: cx.app.clock.now(),
        ..cx.clone()
    };
    let operator = cx.app.store.operator(cx.the_operator()?).await?;
    // A deleted operator is treated like a suspended one.
    if operator.is_none_or(|operator| operator.suspended.is_some()) {
        return Err(auth::account_suspended(&cx.app));
    }
    let now = entitlement::visible(&cx, &project.slug).await?;
    // The slug of a dataset that was deleted can be another's.
    if now.id != project.id {
        return Err(ApiError::no_project(&project.slug));
    }
    if version > Version::EMPTY {
        entitlement::records(&cx, &now, version, asked).await?;
    }
    Ok(())
}

/// Reads the records of a range of rows, as JSON. Stops earlier at the size of a page, but returns at least one record
/// if there is one. The records of each batch are paired with the value that `more`
/// computes from the batch. The last batch may have more rows than records.
pub(crate) async fn page<M>(
    snapshot: &Snapshot,
    columns: Columns,
    rows: Range<u64>,
    size: PageSize,
    more: impl Fn(&RecordBatch) -> Result<M, ApiError>,
) -> Result<Vec<(M, Vec<Box<RawValue>>)>, ApiError> {
    // The empty version has neither a contract nor records.
    let Some(contract) = snapshot.contract() else {
        return Ok(Vec::new());
    };
    let internal = |error: &dyn std::error::Error| ApiError::internal(format!("rendering records: {error}"));
    let mut batches = snapshot.stream(columns, rows);
    let mut pages = Vec::new();
    let (mut bytes, mut is_full) = (0, false);
    while let Some(batch) = batches.try_next().await? {
        let lines = RenderedLines::new(contract, &batch).map_err(|error| internal(&error))?;
        let mut records = Vec::with_capacity(lines.len());
        for row in 0..lines.len() {
            let mut text = Vec::with_capacity(256);
            lines.record(row, &mut text);
            // A comma follows it.
            let length = text.len() + 1;
            if size.ends_before(bytes, length) {
                is_full = true;
                break;
            }
            bytes += length;
            let text = String::from_utf8(text).map_err(|error| internal(&error))?;
            records.push(RawValue::from_string(text).map_err(|error| internal(&error))?);
        }
        pages.push((more(&batch)?, records));
        if is_full || size.ends_before(bytes, 0) {
            break;
        }
    }
    Ok(pages)
}

#[cfg(test)]
mod tests;

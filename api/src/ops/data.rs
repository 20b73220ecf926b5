//! Operation that reads the records of a version by page.
//!
//! Invariant: a page is of one version, which its answer names. The records of a version and their order never change.

use arrow::array::RecordBatch;
use bytes::Bytes;
use catalog::{Columns, Snapshot};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use serde_json::{Map, Value};
use types::Version;

use crate::call::cx::Cx;
use crate::call::operation::Operations;
use crate::call::rendered::{self, RenderedJson};
use crate::call::room::PageRoom;
use crate::call::schema::SchemaBound;
use crate::call::spec::{GuardedItem, KEY, Spec};
use crate::config::Limits;
use crate::error::ApiError;
use crate::rules::entitlement;
use crate::rules::reading::{self, MAX_EXACT_INTEGER, NO_VERSION, NOT_BOUGHT, NOT_YET};
use crate::state::caches::PageKey;

pub(super) fn add(table: &mut Operations, limits: &Limits) {
    table.add(
        Spec {
            name: "read_dataset",
            path: "/projects/{slug}/data",
            summary: "A page of the records of a version",
            description: "Without `version`, the latest; keep the `version` of the first page for the ones after it. A \
                          page with many bytes has fewer than `limit`; it goes on at `nextOffset`.",
            tag: "datasets",
            accepts: KEY,
            item: GuardedItem::Project,
            egress: true,
            success: &[(200, "The page.")],
            failure: &[NOT_BOUGHT, NO_VERSION, NOT_YET],
            ..Spec::BASE
        },
        &[
            SchemaBound {
                at: "/properties/limit",
                keyword: "maximum",
                value: limits.page_records.get().into(),
                asserted: true,
            },
            SchemaBound {
                at: "/properties/limit",
                keyword: "default",
                value: limits.default_page_records.get().into(),
                asserted: true,
            },
        ],
        read,
    );
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct ReadDataInput {
    /// Slug of the project.
    slug: String,
    /// Version to read; the latest if absent.
    #[schemars(range(min = 1, max = MAX_EXACT_INTEGER))]
    version: Option<u64>,
    /// Greatest number of records on the page.
    #[schemars(range(min = 1, max = 1_000))]
    limit: Option<u32>,
    /// Number of records to skip.
    #[serde(default)]
    #[schemars(range(min = 0, max = MAX_EXACT_INTEGER))]
    offset: u64,
}

#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "Page")]
#[serde(rename_all = "camelCase")]
struct DataPage {
    /// The records, in the order of the version.
    #[schemars(with = "Vec<Map<String, Value>>")]
    items: Vec<Box<RawValue>>,
    /// Version of the records; 0 before the first merge.
    version: u64,
    /// Number of records in the version.
    total: u64,
    /// Number of records skipped.
    offset: u64,
    /// Greatest number of records on the page.
    limit: u32,
    /// Offset of the next page; absent on the last.
    #[serde(skip_serializing_if = "Option::is_none")]
    next_offset: Option<u64>,
}

async fn read(cx: Cx, input: ReadDataInput) -> Result<RenderedJson<DataPage>, ApiError> {
    let project = entitlement::visible_lately(&cx, &input.slug).await?;
    let version = input.version.map(Version);
    let default = cx.app.limits.default_page_records.get();
    let limit = input.limit.unwrap_or(default);
    let snapshot = reading::entitled(&cx, &project, version).await?;
    let page = page_json(&cx, &snapshot, input.offset, limit).await?;
    Ok(RenderedJson::ok(page))
}

/// Returns a page of a version as this operation answers it, for a caller whose access was decided. The page is the same for
/// everybody who has it.
pub(in crate::ops) async fn page_json(
    cx: &Cx,
    snapshot: &Snapshot,
    offset: u64,
    limit: u32,
) -> Result<Bytes, ApiError> {
    let size = PageRoom::of(cx).page_size();
    let key = snapshot.root_at(snapshot.version()).map(|root| PageKey {
        dataset: snapshot.dataset(),
        version: snapshot.version(),
        root,
        offset,
        limit,
        size,
    });
    let caches = &cx.app.process.caches;
    if let Some(page) = key.and_then(|key| caches.page(&key)) {
        return Ok(page);
    }
    let total = snapshot.record_count();
    // The page needs the records only, and nothing of their batches.
    let nothing = |_: &RecordBatch| Ok(());
    let rows = offset..offset.saturating_add(limit.into());
    let pages = reading::page(snapshot, Columns::Records, rows, size, nothing).await?;
    let items: Vec<_> = pages.into_iter().flat_map(|((), records)| records).collect();
    let next_offset = offset.saturating_add(items.len() as u64);
    let page = rendered::json(&DataPage {
        // A page can be shorter than `limit` for its size, so its length and not the limit decides where the next
        // begins.
        next_offset: (next_offset < total && !items.is_empty()).then_some(next_offset),
        items,
        version: snapshot.version().0,
        total,
        offset,
        limit,
    })
    .map_err(|error| ApiError::internal(format!("page: {error}")))?;
    if let Some(key) = key {
        caches.remember_page(key, &page);
    }
    Ok(page)
}

#[cfg(test)]
mod tests;

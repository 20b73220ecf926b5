//! Operation that lists the records and contributions between two versions.
//!
//! Invariant: contributors are public and need no credential. The records need the same entitlement as reading the
//! later version.

use std::collections::HashMap;

use arrow::array::{AsArray as _, RecordBatch};
use arrow::datatypes::Int64Type;
use catalog::{Columns, HIDDEN_COLUMNS, Snapshot};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use serde_json::{Map, Value};
use store::{Project, ProjectVersion};
use types::Version;

use crate::call::answer::JsonReply;
use crate::call::cx::Cx;
use crate::call::operation::Operations;
use crate::call::room::PageRoom;
use crate::call::schema::SchemaBound;
use crate::call::spec::{GuardedItem, OPTIONAL, Spec};
use crate::call::wire::WireInstant;
use crate::config::Limits;
use crate::error::ApiError;
use crate::rules::auth;
use crate::rules::entitlement;
use crate::rules::reading::{self, MAX_EXACT_INTEGER, NO_VERSION, NOT_BOUGHT, NOT_YET};
use crate::state::page_size::PageSize;

/// Contributions that one answer lists at most.
const MAX_CONTRIBUTIONS: u32 = 500;

pub(super) fn add(table: &mut Operations, limits: &Limits) {
    table.add(
        Spec {
            name: "dataset_diff",
            path: "/projects/{slug}/diff",
            summary: "The records appended after one version up to another, with who contributed them",
            description: "`limit=0` answers the contributions only and needs no credential; with one, it counts \
                          toward egress like any other. The records need an agent \
                          key and, of a paid project, the version `to`. Contributions beyond the first 500, or those that \
                          fit, are those of the same call with `from` set to `nextFrom`. A page with many bytes has \
                          fewer than `limit`; it goes on at `nextOffset`.",
            tag: "datasets",
            accepts: OPTIONAL,
            item: GuardedItem::Records,
            egress: true,
            success: &[(200, "The contributions, and a page of the records.")],
            failure: &[NOT_BOUGHT, NO_VERSION, NOT_YET],
            ..Spec::BASE
        },
        &[
            SchemaBound {
                at: "/properties/limit",
                keyword: "maximum",
                value: limits.diff_records.get().into(),
                asserted: true,
            },
            SchemaBound {
                at: "/properties/limit",
                keyword: "default",
                value: limits.default_diff_records.get().into(),
                asserted: true,
            },
        ],
        diff,
    );
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct DiffInput {
    /// Slug of the project.
    slug: String,
    /// Version after which the records begin; 0 for all records.
    #[serde(default)]
    #[schemars(range(min = 0, max = MAX_EXACT_INTEGER))]
    from: u64,
    /// Version that contains the last of the records.
    #[schemars(range(min = 1, max = MAX_EXACT_INTEGER))]
    to: u64,
    /// Greatest number of records; 0 for the contributions only.
    #[schemars(range(min = 0, max = 500))]
    limit: Option<u32>,
    /// Number of records to skip.
    #[serde(default)]
    #[schemars(range(min = 0, max = MAX_EXACT_INTEGER))]
    offset: u64,
}

#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "Diff")]
#[serde(rename_all = "camelCase")]
struct VersionDiff {
    /// Version after which the records begin.
    from: u64,
    /// Version that contains the last of them.
    to: u64,
    /// Number of records appended between the two versions.
    appended_count: u64,
    /// The contributions that appended them, oldest first, at most 500.
    contributions: Vec<ContributedVersion>,
    /// Value of `from` for the next call, if there are further contributions; absent when all are listed.
    #[serde(skip_serializing_if = "Option::is_none")]
    next_from: Option<u64>,
    /// The records, in the order of the version; none with `limit=0`.
    items: Vec<AppendedRecord>,
    /// Number of records skipped.
    offset: u64,
    /// Greatest number of records on the page.
    limit: u32,
    /// Offset of the next page of records; absent on the last.
    #[serde(skip_serializing_if = "Option::is_none")]
    next_offset: Option<u64>,
}

/// A contribution that became a version.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "Contributed")]
#[serde(rename_all = "camelCase")]
struct ContributedVersion {
    /// Version that the contribution became.
    version: u64,
    /// Id of the contribution.
    contribution_id: String,
    /// The agent that contributed.
    contributor: String,
    /// Number of records that it appended.
    accepted_count: u64,
    /// Number of records in the version.
    record_count: u64,
    /// The content root of the version: 64 hexadecimal digits.
    root: String,
    /// Time of the merge.
    created_at: WireInstant,
}

impl From<ProjectVersion> for ContributedVersion {
    fn from(version: ProjectVersion) -> Self {
        Self {
            version: version.version.0,
            contribution_id: version.contribution.to_string(),
            contributor: version.agent_name,
            accepted_count: version.accepted,
            record_count: version.record_count,
            root: version.root,
            created_at: version.created_at.into(),
        }
    }
}

/// A record that was appended.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "Appended")]
#[serde(rename_all = "camelCase")]
pub(in crate::ops) struct AppendedRecord {
    /// The version that appended it.
    pub(in crate::ops) version: u64,
    /// Id of the contribution that contained it.
    contribution_id: String,
    /// The agent that contributed it.
    pub(in crate::ops) contributor: String,
    /// The record itself.
    #[schemars(with = "Map<String, Value>")]
    pub(in crate::ops) record: Box<RawValue>,
}

async fn diff(cx: Cx, input: DiffInput) -> Result<JsonReply<VersionDiff>, ApiError> {
    let default = cx.app.limits.default_diff_records.get();
    let limit = input.limit.unwrap_or(default);
    // The contributions alone are public. The records need an agent key, whether or not there is such a project.
    if limit > 0 {
        auth::require_agent(&cx.app, cx.caller.as_ref())?;
    }
    let project = entitlement::visible(&cx, &input.slug).await?;
    let (from, to) = (Version(input.from), Version(input.to));
    if from > to {
        return Err(ApiError::invalid("/from", "must be at most `to`"));
    }
    let snapshot = if limit > 0 {
        reading::entitled(&cx, &project, Some(to)).await?
    } else {
        reading::snapshot(&cx, &project, Some(to)).await?
    };
    // Versions are prefixes of each other, so the records between two are those after the rows of the first.
    let before = reading::snapshot(&cx, &project, Some(from)).await?.record_count();
    let appended = snapshot.record_count() - before;

    // One more than the answer lists, to know if there are more.
    let mut contributions = published(&cx, &project, from, to, MAX_CONTRIBUTIONS + 1).await?;
    let more = contributions.len() > MAX_CONTRIBUTIONS as usize;
    contributions.truncate(MAX_CONTRIBUTIONS as usize);
    let mut room = PageRoom::of(&cx);
    let mut contributions: Vec<ContributedVersion> = contributions.into_iter().map(Into::into).collect();
    // With records in the answer, the contributions take a third of it at most.
    let mut of_contributions = if limit > 0 { room.share(3) } else { room };
    let more = of_contributions.keep(&mut contributions)? || more;
    room.spend(&contributions)?;
    let next_from = contributions.last().filter(|_| more).map(|last| last.version);

    // An offset beyond the last record gives an empty page, not an error.
    let left = appended.saturating_sub(input.offset).min(limit.into());
    let count = usize::try_from(left).unwrap_or(0);
    let start = before.saturating_add(input.offset);
    let mut items = records(&cx, &project, &snapshot, (start, count), room.page_size()).await?;
    room.keep(&mut items)?;
    let next_offset = input.offset.saturating_add(items.len() as u64);
    Ok(JsonReply::ok(VersionDiff {
        from: from.0,
        to: to.0,
        appended_count: appended,
        contributions,
        next_from,
        // A page can end early for its size, so its length decides where the next one begins.
        next_offset: (next_offset < appended && !items.is_empty()).then_some(next_offset),
        items,
        offset: input.offset,
        limit,
    }))
}

/// Returns the first `limit` versions after `from` up to `to`. Fails with 503 if the database lacks one that the table
/// has.
async fn published(
    cx: &Cx,
    project: &Project,
    from: Version,
    to: Version,
    limit: u32,
) -> Result<Vec<ProjectVersion>, ApiError> {
    let versions = cx
        .app
        .store
        .project_versions_between(project.id, from, to, limit)
        .await?;
    if (versions.len() as u64) < (to.0 - from.0).min(limit.into()) {
        // The table has a merge before the projector has applied its outcome, and only the outcome names the
        // contributor.
        let message = format!("version {to} of `{}` was just merged; try again shortly", project.slug);
        return Err(ApiError::not_yet(message));
    }
    Ok(versions)
}

/// Returns `count` records from index `offset` on, each with its version and contributor.
pub(in crate::ops) async fn records(
    cx: &Cx,
    project: &Project,
    snapshot: &Snapshot,
    (offset, count): (u64, usize),
    size: PageSize,
) -> Result<Vec<AppendedRecord>, ApiError> {
    // Records are read first, so that contributors are looked up only for versions on the page.
    let mut found = Vec::with_capacity(count);
    let rows = offset..offset.saturating_add(count as u64);
    for (versions, records) in reading::page(snapshot, Columns::All, rows, size, versions).await? {
        found.extend(versions.into_iter().zip(records));
    }
    let (Some((first, _)), Some((last, _))) = (found.first(), found.last()) else {
        // A page can end early for its size, so fewer records than `count` may have been read.
        return Ok(Vec::new());
    };
    let most = u32::try_from(count).unwrap_or(u32::MAX);
    let before = Version(first.saturating_sub(1));
    let published = published(cx, project, before, Version(*last), most).await?;
    let published: HashMap<u64, ProjectVersion> = published
        .into_iter()
        .map(|version| (version.version.0, version))
        .collect();
    let attributed = found.into_iter().map(|(version, record)| {
        let published = published.get(&version);
        let published = published.ok_or_else(|| {
            ApiError::internal(format!(
                "version {version} of {} has no row in the database",
                project.id
            ))
        })?;
        Ok(AppendedRecord {
            version,
            contribution_id: published.contribution.to_string(),
            contributor: published.agent_name.clone(),
            record,
        })
    });
    attributed.collect()
}

/// Returns the version that appended each row, from the hidden column of the part.
fn versions(rows: &RecordBatch) -> Result<Vec<u64>, ApiError> {
    let [_, _, _, name, _] = HIDDEN_COLUMNS;
    let column = rows
        .column_by_name(name)
        .and_then(|column| column.as_primitive_opt::<Int64Type>());
    let column = column.ok_or_else(|| ApiError::internal(format!("a part has no column `{name}`")))?;
    Ok(column
        .values()
        .iter()
        .map(|&version| u64::try_from(version).unwrap_or(0))
        .collect())
}

#[cfg(test)]
mod tests;

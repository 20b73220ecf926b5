//! What was appended between two versions, and by whom.
//!
//! Invariant: who contributed is public and needs no credential; the records need what reading the later version needs.

use std::collections::HashMap;

use arrow::array::{AsArray as _, RecordBatch};
use arrow::datatypes::Int64Type;
use catalog::{Columns, HIDDEN, Snapshot};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use serde_json::{Map, Value};
use store::{Project, ProjectVersion};
use types::Version;

use super::reading::{self, GREATEST, NO_VERSION, NOT_BOUGHT, NOT_YET};
use crate::answer::Reply;
use crate::auth;
use crate::config::Limits;
use crate::cx::Cx;
use crate::entitlement;
use crate::error::ApiError;
use crate::operation::{Auth, Operations, Spec};
use crate::schema::Bound;
use crate::wire::When;

/// How many contributions one answer lists.
const CONTRIBUTIONS: u32 = 500;

pub(super) fn add(table: &mut Operations, limits: &Limits) {
    table.add(
        Spec {
            name: "dataset_diff",
            path: "/projects/{slug}/diff",
            summary: "The records appended after one version up to another, with who contributed them",
            description: "`limit=0` answers the contributions only and needs no credential; with one, it counts \
                          toward egress like any other. The records need an agent \
                          key and, of a paid project, the version `to`. Contributions beyond the first 500 are those \
                          of the same call with `from` set to `nextFrom`. A page of very large records has fewer than \
                          `limit`; it goes on at `nextOffset`.",
            tag: "datasets",
            auth: Auth::Optional,
            egress: true,
            success: &[(200, "The contributions, and a page of the records.")],
            failure: &[
                (403, "The records need an agent key; an operator token is a person."),
                NOT_BOUGHT,
                NO_VERSION,
                NOT_YET,
            ],
            ..Spec::BASE
        },
        &[
            Bound {
                at: "/properties/limit",
                keyword: "maximum",
                value: limits.diff_records.into(),
                asserted: true,
            },
            Bound {
                at: "/properties/limit",
                keyword: "default",
                value: limits.default_diff_records.into(),
                asserted: true,
            },
        ],
        diff,
    );
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Between {
    /// The project's slug.
    slug: String,
    /// The version whose records are left out with those before it; 0 leaves none out.
    #[serde(default)]
    #[schemars(range(min = 0, max = GREATEST))]
    from: u64,
    /// The version whose records are the last.
    #[schemars(range(min = 1, max = GREATEST))]
    to: u64,
    /// How many records at most; 0 for the contributions only.
    #[schemars(range(min = 0, max = 500))]
    limit: Option<u32>,
    /// How many records to pass over.
    #[serde(default)]
    #[schemars(range(min = 0, max = GREATEST))]
    offset: u64,
}

#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct Diff {
    /// The version that the records come after.
    from: u64,
    /// The version of the last of them.
    to: u64,
    /// How many records were appended.
    appended_count: u64,
    /// The contributions that appended them, oldest first, at most 500.
    contributions: Vec<Contributed>,
    /// Where the contributions go on: `from` of the next call; absent when all are here.
    #[serde(skip_serializing_if = "Option::is_none")]
    next_from: Option<u64>,
    /// The records, in the order of the version; none with `limit=0`.
    items: Vec<Appended>,
    /// How many records were passed over.
    offset: u64,
    /// How many records the page could have.
    limit: u32,
    /// Where the next page of records begins; absent on the last.
    #[serde(skip_serializing_if = "Option::is_none")]
    next_offset: Option<u64>,
}

/// A contribution that became a version.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct Contributed {
    /// The version it became.
    version: u64,
    /// Its id.
    contribution_id: String,
    /// The agent that contributed.
    contributor: String,
    /// How many records it appended.
    accepted_count: u64,
    /// How many records the version has in all.
    record_count: u64,
    /// The content root of the version: 64 hexadecimal digits.
    root: String,
    /// When it was merged.
    created_at: When,
}

impl From<ProjectVersion> for Contributed {
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
#[serde(rename_all = "camelCase")]
struct Appended {
    /// The version that appended it.
    version: u64,
    /// The contribution it came with.
    contribution_id: String,
    /// The agent that contributed it.
    contributor: String,
    /// The record.
    #[schemars(with = "Map<String, Value>")]
    record: Box<RawValue>,
}

async fn diff(cx: Cx, input: Between) -> Result<Reply<Diff>, ApiError> {
    let project = entitlement::visible(&cx, &input.slug).await?;
    let (from, to) = (Version(input.from), Version(input.to));
    if from > to {
        return Err(ApiError::invalid("/from", "must be at most `to`"));
    }
    let limit = input.limit.unwrap_or(cx.app.limits.default_diff_records);
    if limit > 0 {
        auth::require_agent(&cx)?;
    }
    let snapshot = if limit > 0 {
        reading::entitled(&cx, &project, Some(to)).await?
    } else {
        reading::snapshot(&cx, &project, Some(to)).await?
    };
    let before = reading::snapshot(&cx, &project, Some(from)).await?.record_count();
    let appended = snapshot.record_count() - before;

    let mut contributions = told(&cx, &project, from, to, CONTRIBUTIONS + 1).await?;
    let more = contributions.len() > CONTRIBUTIONS as usize;
    contributions.truncate(CONTRIBUTIONS as usize);
    let next_from = contributions.last().filter(|_| more).map(|last| last.version.0);

    let left = appended.saturating_sub(input.offset).min(limit.into());
    let count = usize::try_from(left).unwrap_or(0);
    let items = records(&cx, &project, &snapshot, before.saturating_add(input.offset), count).await?;
    let next_offset = input.offset.saturating_add(items.len() as u64);
    Ok(Reply::ok(Diff {
        from: from.0,
        to: to.0,
        appended_count: appended,
        contributions: contributions.into_iter().map(Into::into).collect(),
        next_from,
        next_offset: (next_offset < appended && !items.is_empty()).then_some(next_offset),
        items,
        offset: input.offset,
        limit,
    }))
}

/// The first versions after `from` up to `to`, which the table has: as many of them as `limit`.
async fn told(
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
        // Why: the table knows of a merge before the outcome that tells who made it is applied.
        let message = format!("version {to} of `{}` was just merged; try again shortly", project.slug);
        return Err(ApiError::not_yet(message));
    }
    Ok(versions)
}

/// `count` records from index `offset` on, each with where it comes from.
async fn records(
    cx: &Cx,
    project: &Project,
    snapshot: &Snapshot,
    offset: u64,
    count: usize,
) -> Result<Vec<Appended>, ApiError> {
    let mut found = Vec::with_capacity(count);
    for (versions, records) in reading::page(snapshot, Columns::All, offset, count, versions).await? {
        found.extend(versions.into_iter().zip(records));
    }
    let (Some((first, _)), Some((last, _))) = (found.first(), found.last()) else {
        return Ok(Vec::new());
    };
    let most = u32::try_from(count).unwrap_or(u32::MAX);
    let before = Version(first.saturating_sub(1));
    let told = told(cx, project, before, Version(*last), most).await?;
    let told: HashMap<u64, ProjectVersion> = told.into_iter().map(|version| (version.version.0, version)).collect();
    let attributed = found.into_iter().map(|(version, record)| {
        let told = told.get(&version);
        let told = told.ok_or_else(|| {
            ApiError::internal(format!(
                "version {version} of {} has no row in the database",
                project.id
            ))
        })?;
        Ok(Appended {
            version,
            contribution_id: told.contribution.to_string(),
            contributor: told.agent_name.clone(),
            record,
        })
    });
    attributed.collect()
}

/// The version that appended each row.
fn versions(rows: &RecordBatch) -> Result<Vec<u64>, ApiError> {
    let [_, _, _, name, _] = HIDDEN;
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

//! Versions of a dataset: all of them, and one with the rows that it added.
//!
//! Invariants:
//! - The facts of a version are public as its contributions are. Its rows and files are for who may read it.
//! - Rows are read only if no other site led here, since they count as egress.
//! - The source of a batch is for the account that sent it and for that of the dataset, as its contribution is.

use catalog::Snapshot;
use data_encoding::HEXLOWER;
use pages::{
    AddedRow, AddedRows, DatasetTab, DatasetVersion, DatasetVersionPage, DatasetVersionsPage, GrowthPoint,
    LeftOutRecords, ProofOfVersion, VersionFile,
};
use schemars::JsonSchema;
use serde::Deserialize;
use store::ProjectVersion;
use types::Version;

use super::rows::{BareColumns, count, failure, is_from_elsewhere, values};
use super::scene::DatasetScene;
use crate::call::cx::Cx;
use crate::call::operation::Operations;
use crate::call::spec::{GuardedItem, Spec};
use crate::call::view::PageResponse;
use crate::error::ApiError;
use crate::keys::KeyRing;
use crate::ops::contributions::stored_left_out;
use crate::ops::diff;
use crate::ops::page_kit::page_layout;
use crate::ops::site::page;
use crate::rules::profiles::may_read;
use crate::rules::reading::{self, MAX_EXACT_INTEGER, NO_VERSION, NOT_YET};
use crate::state::page_size::PageSize;

/// Points of the chart.
const GROWTH_POINTS: u64 = 72;
/// Versions on each side of one that its page links to.
const NEAR: u64 = 2;
/// Files that the page of a version lists.
const MAX_FILES: usize = 100;

pub(super) fn add(table: &mut Operations) {
    let spec = |name, path, summary| Spec {
        item: GuardedItem::Project,
        failure: &[NO_VERSION, NOT_YET],
        ..page(name, path, summary)
    };
    let list = spec(
        "dataset_versions_page",
        "/projects/{slug}/versions",
        "Versions of a dataset",
    );
    table.add(list, &[], versions);
    let one = spec(
        "dataset_version_page",
        "/projects/{slug}/versions/{n}",
        "A version of a dataset",
    );
    table.add(one, &[], version);
}

/// Page of the list.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct VersionsPageQuery {
    /// Slug of the dataset.
    #[schemars(length(max = 80))]
    slug: String,
    /// Version before which the page begins; the newest versions if absent.
    #[schemars(range(min = 1, max = MAX_EXACT_INTEGER))]
    before: Option<u64>,
}

/// Returns a version as pages show it. `table` is any version of the table.
fn shown(version: ProjectVersion, table: Option<&Snapshot>) -> Result<DatasetVersion, ApiError> {
    let left_out = version.tallies.as_deref().map(stored_left_out).transpose()?;
    Ok(DatasetVersion {
        bytes: table
            .and_then(|table| table.at(version.version))
            .map(|found| found.bytes()),
        version: version.version,
        added: version.accepted,
        left_out: left_out.map(|(copies, refused)| LeftOutRecords { copies, refused }),
        records: version.record_count,
        agent: version.agent_name,
        root: version.root,
        at: version.created_at,
    })
}

async fn versions(cx: Cx, input: VersionsPageQuery) -> Result<PageResponse, ApiError> {
    let scene = DatasetScene::find(&cx, &input.slug).await?;
    let (store, project) = (&cx.app.store, &scene.project);
    let before = input.before.map(Version);
    let step = project.version.0.div_ceil(GROWTH_POINTS).max(1);
    let (found, growth) = tokio::try_join!(
        store.project_versions(project.id, before, DatasetVersionsPage::VERSIONS),
        store.project_growth(project.id, project.version, step)
    )?;
    let points = growth.into_iter().map(|point| GrowthPoint {
        at: point.created_at,
        records: point.record_count,
    });
    PageResponse::page(&DatasetVersionsPage {
        chrome: page_layout(&cx).await?,
        head: scene.head(&cx, DatasetTab::Versions),
        growth: points.collect(),
        versions: found
            .into_iter()
            .map(|version| shown(version, scene.latest.as_ref()))
            .collect::<Result<_, _>>()?,
    })
}

/// One version, and the one that it is compared with.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct VersionPagePath {
    /// Slug of the dataset.
    #[schemars(length(max = 80))]
    slug: String,
    /// Number of the version.
    #[schemars(range(min = 1, max = MAX_EXACT_INTEGER))]
    n: u64,
    /// Version after which the rows begin; the one before if absent.
    #[schemars(range(min = 0, max = MAX_EXACT_INTEGER))]
    from: Option<u64>,
    /// Number of newer rows; only the first rows if absent.
    #[schemars(range(min = 0, max = MAX_EXACT_INTEGER))]
    offset: Option<u64>,
    /// Columns, by name; a range as `(0-23)`.
    #[serde(default)]
    #[schemars(length(max = 300))]
    cols: Vec<String>,
}

async fn version(cx: Cx, input: VersionPagePath) -> Result<PageResponse, ApiError> {
    let scene = DatasetScene::find(&cx, &input.slug).await?;
    let (store, project) = (&cx.app.store, &scene.project);
    let number = Version(input.n);
    let (first, last) = (input.n.saturating_sub(NEAR + 1), input.n.saturating_add(NEAR));
    let limit = u32::try_from(2 * NEAR + 1).unwrap_or(u32::MAX);
    let near = store
        .project_versions_between(project.id, Version(first), Version(last), limit)
        .await?;
    let missing = || ApiError::not_found(format!("the dataset `{}` has no version {number}", project.slug));
    let here = near
        .iter()
        .find(|version| version.version == number)
        .ok_or_else(missing)?;
    let from = Version(input.from.unwrap_or(input.n - 1));
    if from >= number {
        return Err(ApiError::invalid(
            "/from",
            "must be an earlier version than the one of the page",
        ));
    }
    let before = if let Some(before) = near.iter().find(|version| version.version == from) {
        before.record_count
    } else {
        let after = Version(from.0.saturating_sub(1));
        let found = store.project_versions_between(project.id, after, from, 1).await?;
        found.first().map_or(0, |version| version.record_count)
    };
    let can_read = may_read(&cx, project, number).await?;
    let added = here.record_count.saturating_sub(before);
    let columns = BareColumns::of(&input.cols, &scene.contract);
    let chosen = columns.member();
    let (mut rows, mut failed) = (None, None);
    let is_from_elsewhere = is_from_elsewhere(&cx);
    if can_read && !is_from_elsewhere {
        match added_rows(&cx, &scene, number, columns, (before, added), input.offset).await {
            Ok(found) => rows = Some(found),
            Err(error) => failed = Some(failure(&cx, error)?.0),
        }
    }
    let table = scene.latest.as_ref().and_then(|latest| latest.at(number));
    let parts = table.as_ref().map(Snapshot::parts).unwrap_or_default();
    let files = parts
        .iter()
        .filter(|_| can_read)
        .take(MAX_FILES)
        .map(|part| VersionFile {
            name: part.name(),
            rows: part.rows,
            bytes: part.bytes,
            since: part.first_version(),
            sha256: HEXLOWER.encode(&part.sha256),
        });
    let root_before = near.iter().find(|version| version.version.0 + 1 == input.n);
    let page = DatasetVersionPage {
        chrome: page_layout(&cx).await?,
        head: scene.head(&cx, DatasetTab::Versions),
        root_before: root_before.map(|version| version.root.clone()),
        file_count: table.as_ref().map(|_| parts.len() as u64),
        files: files.collect(),
        source: source(&cx, &scene, here).await?,
        key: current_key(&cx).await?,
        chosen,
        from,
        added,
        rows,
        failure: failed,
        is_offered: can_read && is_from_elsewhere,
        has_all: input.offset.is_some(),
        version: shown(here.clone(), table.as_ref())?,
        near: near
            .iter()
            .map(|version| shown(version.clone(), None))
            .collect::<Result<_, _>>()?,
    };
    PageResponse::page(&page)
}

/// Returns the proof of a version; none where there is no such version.
pub(super) async fn proof(cx: &Cx, scene: &DatasetScene, version: Version) -> Result<Option<ProofOfVersion>, ApiError> {
    let (store, after) = (&cx.app.store, Version(version.0.saturating_sub(1)));
    let found = store
        .project_versions_between(scene.project.id, after, version, 1)
        .await?;
    let Some(found) = found.into_iter().next() else {
        return Ok(None);
    };
    let table = scene.latest.as_ref().and_then(|latest| latest.at(version));
    Ok(Some(ProofOfVersion {
        version: found.version,
        root: found.root,
        records: found.record_count,
        key: current_key(cx).await?,
        files: table.map(|table| (table.parts().len() as u64, table.bytes())),
    }))
}

/// Returns the id of the key that signs manifests now.
async fn current_key(cx: &Cx) -> Result<String, ApiError> {
    let ring = KeyRing::load(&cx.app.store, &*cx.app.clock).await?;
    Ok(ring.current().key_id.to_string())
}

/// Returns the declared source of a version to the accounts that may see its contribution.
async fn source(cx: &Cx, scene: &DatasetScene, version: &ProjectVersion) -> Result<Option<String>, ApiError> {
    // Buyers of a dataset that is taken down keep its rows only.
    let Some(reader) = cx.operator().filter(|_| scene.project.taken_down.is_none()) else {
        return Ok(None);
    };
    let contribution = cx.app.store.contribution(version.contribution).await?;
    let contribution = contribution.filter(|row| row.operator == reader || scene.project.operator == reader);
    Ok(contribution.and_then(|row| row.source_declaration))
}

/// Returns a page of the rows after the first `before` of a version, newest first. `offset` newer ones are left out;
/// without an offset the page is a short one.
async fn added_rows(
    cx: &Cx,
    scene: &DatasetScene,
    version: Version,
    columns: BareColumns,
    (before, added): (u64, u64),
    offset: Option<u64>,
) -> Result<AddedRows, ApiError> {
    let snapshot = reading::entitled(cx, &scene.project, Some(version)).await?;
    let most = offset.map_or(DatasetVersionPage::FIRST_ROWS, |_| DatasetVersionPage::ROWS);
    let offset = offset.unwrap_or(0);
    let left = added.saturating_sub(offset);
    let end = before.saturating_add(left);
    let mut wanted = left.min(most.into());
    let (start, records) = loop {
        let start = end.saturating_sub(wanted);
        let count = usize::try_from(wanted).unwrap_or(0);
        let records = diff::records(cx, &scene.project, &snapshot, (start, count), PageSize::LARGE).await?;
        // Rows are read from the first on, and large ones end a page early: then the newest would be missing.
        if records.len() >= count || count <= 1 {
            break (start, records);
        }
        wanted = wanted.div_ceil(2);
    };
    count(
        cx,
        records.iter().map(|record| record.record.get().len() as u64 + 1).sum(),
    )
    .await?;
    let mut rows = Vec::with_capacity(records.len());
    for (place, record) in (start.saturating_add(1)..).zip(records) {
        rows.push(AddedRow {
            place,
            version: Version(record.version),
            values: values(&record.record, &scene.contract, &columns.indexes)?,
            agent: record.contributor,
        });
    }
    rows.reverse();
    let choices = (columns.choices, columns.has_ranges);
    Ok(AddedRows::new(columns.columns, choices, rows, offset))
}

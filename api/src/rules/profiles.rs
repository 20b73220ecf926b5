//! Profiles as their readers see them: the level of a caller, the milestone of a paid dataset, and the preview rows.
//!
//! Invariants:
//! - Who may not read a version of a paid dataset sees the public document of the milestone at or before it, and nothing
//!   while its owner shows no rows.
//! - What is shown is of the version of the history that the database has: a document of a version that was lost is not.

use operators::profile::{ProfileFigures, ProfileLevel};
use serde_json::{Map, Value};
use store::{ProfileKind, Project, StoredProfile};
use types::{Timestamp, Version};

use crate::call::cx::Cx;
use crate::error::ApiError;
use crate::rules::entitlement;

pub(crate) mod build;
pub(crate) mod request;
pub(crate) mod rows;

use rows::RankedRow;

/// Number of preview rows for a caller who may read the records.
const ROWS_OF_READER: usize = 20;
/// The most rows that are shown of a free dataset.
pub(crate) const MOST_FREE_ROWS: u32 = 100;
/// The most rows that are shown of a paid dataset.
pub(crate) const MOST_PAID_ROWS: u32 = 20;
/// Number of rows that are shown of a free dataset whose owner gives none.
pub(crate) const FREE_ROWS: u32 = 20;
/// The same of a paid dataset.
pub(crate) const PAID_ROWS: u32 = 5;
/// The least number of rows of a paid dataset behind each row that is shown of it.
const ROWS_BEHIND_ONE: u64 = 20;

/// A profile and preview rows, as a caller may see them.
#[derive(Clone, Debug)]
pub(crate) struct ShownProfile {
    /// Version that they are of, which can be older than the version that was asked for.
    pub version: Version,
    /// Content root of that version, 64 hexadecimal digits.
    pub root: String,
    /// Number of records of that version.
    pub records: u64,
    /// Level of the figures.
    pub level: ProfileLevel,
    /// Time at which they were computed.
    pub made_at: Timestamp,
    /// The figures, a column each in the order of the contract.
    pub figures: ProfileFigures,
    /// Some records, in the order of the version, their long texts cut.
    pub preview: Vec<Map<String, Value>>,
    /// Places of these records in the version, from 0.
    pub offsets: Vec<u64>,
    /// Names of the fields of each of them whose value is the beginning of the text of its JSON.
    pub begun: Vec<Vec<String>>,
    /// True if a value in them was cut or left out.
    pub is_cut: bool,
    /// Time at which somebody asked for the version, if anybody did.
    pub asked_at: Option<Timestamp>,
}

/// Returns the stored profile of a version as the caller may see it; without a version the newest. Returns `None` where
/// nothing is stored or may be shown. Never builds one.
pub(crate) async fn shown(
    cx: &Cx,
    project: &Project,
    version: Option<Version>,
) -> Result<Option<ShownProfile>, ApiError> {
    found(cx, project, version.unwrap_or(project.version), version.is_some()).await
}

/// Returns the newest stored profile of a version and those before it, as the caller may see it. Never builds one.
pub(crate) async fn shown_upto(cx: &Cx, project: &Project, version: Version) -> Result<Option<ShownProfile>, ApiError> {
    found(cx, project, version, false).await
}

/// Returns a stored profile of a version or, unless `is_exact`, the newest of those before it. A public one is always of the
/// newest milestone.
async fn found(cx: &Cx, project: &Project, upto: Version, is_exact: bool) -> Result<Option<ShownProfile>, ApiError> {
    let profiles = cx.app.store.profiles();
    if entitlement::sees_whole(cx, project, upto).await? {
        let stored = if is_exact {
            profiles.of(project.id, upto).await?
        } else {
            profiles.newest(project.id, upto, ProfileKind::Full).await?
        };
        let may_read = cx.operator().is_some();
        let most = if may_read {
            ROWS_OF_READER
        } else {
            rows_of(project.preview_rows, MOST_FREE_ROWS)
        };
        return stored.map(|stored| read(stored, ProfileLevel::Full, most)).transpose();
    }
    // Without a choice of the owner nothing was offered, also if documents were made before, and what is taken down is
    // offered no more.
    if project.preview_rows.is_none() || project.taken_down.is_some() {
        return Ok(None);
    }
    let stored = profiles.newest(project.id, upto, ProfileKind::Public).await?;
    let stored = stored.map(|stored| {
        let twentieth = usize::try_from(stored.records / ROWS_BEHIND_ONE).unwrap_or(usize::MAX);
        let most = rows_of(project.preview_rows, MOST_PAID_ROWS).min(twentieth);
        read(stored, ProfileLevel::Public, most)
    });
    stored.transpose()
}

/// Returns records of the newest stored profile of a dataset that anybody sees; `None` where nothing is stored or shown.
pub(crate) async fn sampled(cx: &Cx, project: &Project) -> Result<Option<Vec<Map<String, Value>>>, ApiError> {
    // Asked as nobody, since a page that is the same for all has to show what all may see.
    let anybody = Cx {
        caller: None,
        ..cx.clone()
    };
    let shown = shown(&anybody, project, None).await?;
    Ok(shown.map(|shown| shown.preview))
}

/// Returns true if the caller may read the records of a version: a person as its operator, and nobody without a
/// credential. Never spends.
pub(crate) async fn may_read(cx: &Cx, project: &Project, version: Version) -> Result<bool, ApiError> {
    entitlement::may_read(cx, project, version).await
}

fn rows_of(chosen: Option<u32>, most: u32) -> usize {
    usize::try_from(chosen.unwrap_or(0).min(most)).unwrap_or(0)
}

fn read(stored: StoredProfile, level: ProfileLevel, most: usize) -> Result<ShownProfile, ApiError> {
    let broken = |error| ApiError::internal(format!("a stored profile: {error}"));
    let figures: ProfileFigures = serde_json::from_str(&stored.figures).map_err(broken)?;
    let rows: Vec<RankedRow> = serde_json::from_str(&stored.preview).map_err(broken)?;
    let rows = rows::first(rows, most);
    Ok(ShownProfile {
        version: stored.version,
        root: stored.root,
        records: stored.records,
        level,
        made_at: stored.made_at,
        figures,
        is_cut: rows.iter().any(|row| row.cut),
        offsets: rows.iter().map(|row| row.offset).collect(),
        begun: rows.iter().map(|row| row.begun.clone()).collect(),
        preview: rows.into_iter().map(|row| row.row).collect(),
        asked_at: stored.asked_at,
    })
}

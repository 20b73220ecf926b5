//! Profiles as their readers see them: the level of a caller, the milestone of a paid dataset, and the preview rows.
//!
//! Invariants:
//! - Who may not read a version of a paid dataset sees the public document of the milestone at or before it, and nothing
//!   while its owner shows no rows.
//! - What is shown is of the version of the history that the database has: a document of a version that was lost is not.

use operators::profile::{ProfileFigures, ProfileLevel};
use serde_json::{Map, Value};
use store::{Project, ProfileKind, StoredProfile};
use types::{Timestamp, Version};

use crate::call::cx::Cx;
use crate::error::ApiError;
use crate::rules::entitlement;

/// Number of preview rows for a caller who may read the records.
const ROWS_OF_READER: usize = 20;
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
    /// True if a text in them was cut.
    pub is_cut: bool,
}

/// Returns the stored profile of a version as the caller may see it; without a version the newest. Returns `None` where
/// nothing is stored or may be shown. Never builds one.
pub(crate) async fn shown(
    cx: &Cx,
    project: &Project,
    version: Option<Version>,
) -> Result<Option<ShownProfile>, ApiError> {
    todo!("{cx:?} {project:?} {version:?}")
}

/// Returns true if the caller may read the records of a version: a person as its operator, and nobody without a
/// credential. Never spends.
pub(crate) async fn may_read(cx: &Cx, project: &Project, version: Version) -> Result<bool, ApiError> {
    entitlement::may_read(cx, project, version).await
}

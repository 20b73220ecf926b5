//! Search for projects: by slug, and as pages of the projects that a viewer may see.
//!
//! Invariant: a page never shows another operator's private project, and paging neither repeats nor skips a project
//! that existed when it began; one that is merged meanwhile moves to the front, where a new list begins.

use std::fmt;
use std::str::FromStr;

use types::{DatasetId, OperatorId, Timestamp, Version};

use super::{Project, ProjectHead};
use crate::query::{sql, text};
use crate::row::{Columns as _, Row as _, json_column, pair, row, texts};
use crate::{Access, Error, ProjectStatus, Store, Visibility};

/// The selection of projects to list.
#[derive(Clone, Debug)]
pub struct ProjectFilter {
    /// Keeps those whose slug or title contains this text, whatever its case.
    pub q: Option<String>,
    /// The operator whose private projects are listed too.
    pub viewer: Option<OperatorId>,
    /// Cursor of the previous page; `None` for the first page.
    pub after: Option<ProjectCursor>,
    /// Largest number of projects to return.
    pub limit: u32,
}

row! {
    /// A project as listed: without its readme and its contract, which may be large.
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub struct ProjectSummary {
        /// Id of the project.
        pub id: DatasetId,
        /// Slug of the project, its name in URLs.
        pub slug: String,
        /// Title of the project.
        pub title: String,
        /// Identifier of the licence.
        pub license: String,
        /// Tags of the project.
        pub tags: Vec<String> = "tags" => json_column,
        /// Access to the records.
        pub access: Access,
        /// Visibility of the project.
        pub visibility: Visibility,
        /// Price of a version in micro-USDC: 0 is free, `None` the platform's default.
        pub price_micro: Option<i64>,
        /// True if buyers may pay with given credits.
        pub trial_sale: bool,
        /// Status, which decides whether contributions are accepted.
        pub status: ProjectStatus,
        /// Time of the creation.
        pub created_at: Timestamp,
        /// Time of the last merge; before the first, of the creation.
        pub updated_at: Timestamp,
        /// Latest version with a recorded outcome.
        pub version: Version,
        /// Number of records of that version.
        pub record_count: u64,
    }
}

impl From<&Project> for ProjectSummary {
    fn from(project: &Project) -> Self {
        Self {
            id: project.id,
            slug: project.slug.clone(),
            title: project.title.clone(),
            license: project.license.clone(),
            tags: project.tags.clone(),
            access: project.access,
            visibility: project.visibility,
            price_micro: project.price_micro,
            trial_sale: project.trial_sale,
            status: project.status,
            created_at: project.created_at,
            updated_at: project.updated_at,
            version: project.version,
            record_count: project.record_count,
        }
    }
}

/// The position of a project in the list, which begins with the latest merge; as text `<microseconds>.<id>`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProjectCursor {
    /// Time of the last merge; before the first, of the creation.
    pub updated_at: Timestamp,
    /// Id of the project, which orders projects with equal times.
    pub id: DatasetId,
}

impl From<&ProjectSummary> for ProjectCursor {
    fn from(project: &ProjectSummary) -> Self {
        Self {
            updated_at: project.updated_at,
            id: project.id,
        }
    }
}

impl fmt::Display for ProjectCursor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.updated_at.micros(), self.id)
    }
}

/// The text is not a cursor.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not a cursor that a list of projects returned")]
pub struct ParseCursorError;

impl FromStr for ProjectCursor {
    type Err = ParseCursorError;

    fn from_str(text: &str) -> Result<Self, ParseCursorError> {
        let (micros, id) = text.split_once('.').ok_or(ParseCursorError)?;
        Ok(Self {
            updated_at: Timestamp::from_micros(micros.parse().map_err(|_error| ParseCursorError)?),
            id: id.parse().map_err(|_error| ParseCursorError)?,
        })
    }
}

impl Store {
    /// Returns the slug and the operator of a project, whoever may see it.
    pub async fn project_owner(&self, id: DatasetId) -> Result<Option<(String, OperatorId)>, Error> {
        self.read(async {
            sql!(
                "SELECT slug, operator_id FROM projects WHERE id = $1 AND deleted_at IS NULL",
                id
            )
            .row_if_any(&mut self.readers())
            .await?
            .map(|row| Ok((row.get("slug")?, row.get("operator_id")?)))
            .transpose()
        })
        .await
    }

    /// Returns the project with this slug, if it is public or belongs to the viewer. One that is taken down is found by
    /// an operator only that bought it and keeps it for the reason; its own operator does not find it either.
    pub async fn project_by_slug(&self, slug: &str, viewer: Option<OperatorId>) -> Result<Option<Project>, Error> {
        // A slug that no database can store names no project.
        if texts(&[("slug", slug)]).is_err() {
            return Ok(None);
        }
        self.read(async {
            sql!(
                text!(
                    "SELECT ",
                    Project::COLUMNS,
                    ",
                            (SELECT root FROM versions
                             WHERE versions.project_id = projects.id AND versions.version = projects.version) AS head_root,
                            (SELECT versions.created_at FROM versions
                             WHERE versions.project_id = projects.id AND versions.version = projects.version) AS head_at
                     FROM projects
                     WHERE slug = $1 AND deleted_at IS NULL
                       AND ((taken_down_at IS NULL AND (visibility = 'public' OR operator_id = $2))
                            OR (taken_down_reason IN ('spam', 'inaccurate') AND $2 <> ''
                                AND EXISTS (SELECT 1 FROM entitlements
                                            WHERE owner = 'op:' || CAST($2 AS TEXT) AND item_kind = 'dataset'
                                              AND item_id = projects.id)))"
                ),
                slug,
                viewer.map(|viewer| viewer.to_string()).unwrap_or_default()
            )
            .row_if_any(&mut self.readers())
            .await?
            .map(|row| {
                let head = pair(&row, "head_root, head_at")?;
                Ok(Project {
                    head: head.map(|(root, merged_at)| ProjectHead { root, merged_at }),
                    ..Project::of(&row)?
                })
            })
            .transpose()
        })
        .await
    }

    /// Counts the projects on all pages of a list.
    pub async fn project_count(&self, filter: &ProjectFilter) -> Result<u64, Error> {
        if texts(&[("q", filter.q.as_deref().unwrap_or_default())]).is_err() {
            return Ok(0);
        }
        self.read(async {
            sql!(
                r"SELECT COUNT(*) AS listed FROM projects
                 WHERE (visibility = 'public' OR operator_id = $1) AND taken_down_at IS NULL AND deleted_at IS NULL
                   AND (slug LIKE $2 ESCAPE '\' OR title_key LIKE $2 ESCAPE '\')",
                filter.viewer.map(|viewer| viewer.to_string()).unwrap_or_default(),
                pattern(filter.q.as_deref().unwrap_or_default())
            )
            .row(&mut self.readers())
            .await?
            .get("listed")
        })
        .await
    }

    /// Returns a page of the public projects and the viewer's private ones, the newest project first. Of the cursor only
    /// the id counts.
    pub async fn projects_by_age(&self, filter: &ProjectFilter) -> Result<Vec<ProjectSummary>, Error> {
        if texts(&[("q", filter.q.as_deref().unwrap_or_default())]).is_err() {
            return Ok(Vec::new());
        }
        self.all(sql!(
            text!(
                "SELECT ",
                ProjectSummary::COLUMNS,
                // An id begins with the time of its making, so the key of the table has the order.
                r" FROM projects
                 WHERE ($1 = '' OR id < $1)
                   AND (visibility = 'public' OR operator_id = $2) AND taken_down_at IS NULL AND deleted_at IS NULL
                   AND (slug LIKE $3 ESCAPE '\' OR title_key LIKE $3 ESCAPE '\')
                 ORDER BY id DESC LIMIT $4"
            ),
            filter.after.map(|cursor| cursor.id.to_string()).unwrap_or_default(),
            filter.viewer.map(|viewer| viewer.to_string()).unwrap_or_default(),
            pattern(filter.q.as_deref().unwrap_or_default()),
            filter.limit
        ))
        .await
    }

    /// Returns a page of the public projects and the viewer's private ones, the latest merge first.
    pub async fn projects(&self, filter: &ProjectFilter) -> Result<Vec<ProjectSummary>, Error> {
        if texts(&[("q", filter.q.as_deref().unwrap_or_default())]).is_err() {
            return Ok(Vec::new());
        }
        // The first page begins at the latest possible time.
        // The time alone is no cursor: two projects of one microsecond would lose one of them at a
        // page's end.
        let (micros, id) = filter.after.map_or((i64::MAX, String::new()), |cursor| {
            (cursor.updated_at.micros(), cursor.id.to_string())
        });
        self.all(sql!(
            text!(
                "SELECT ",
                ProjectSummary::COLUMNS,
                r" FROM projects
                 WHERE (updated_at < $1 OR (updated_at = $1 AND id < $2))
                   AND (visibility = 'public' OR operator_id = $3) AND taken_down_at IS NULL AND deleted_at IS NULL
                   AND (slug LIKE $4 ESCAPE '\' OR title_key LIKE $4 ESCAPE '\')
                 ORDER BY updated_at DESC, id DESC LIMIT $5"
            ),
            micros,
            id,
            filter.viewer.map(|viewer| viewer.to_string()).unwrap_or_default(),
            pattern(filter.q.as_deref().unwrap_or_default()),
            filter.limit
        ))
        .await
    }
}

/// Folds the case of a text character by character, so that a part of a text folds to a part of its fold.
///
/// `str::to_lowercase` does not: it looks at neighbouring characters (the final sigma), so a part may fold differently
/// from the whole.
pub(crate) fn fold(text: &str) -> String {
    text.chars()
        .flat_map(char::to_uppercase)
        .flat_map(char::to_lowercase)
        .collect()
}

/// Returns the pattern of `LIKE … ESCAPE '\'` for texts that contain `q` literally.
pub(crate) fn pattern(q: &str) -> String {
    let mut pattern = String::with_capacity(q.len() + 2);
    pattern.push('%');
    for character in fold(q).chars() {
        // These have a meaning in a pattern, so they are escaped.
        if matches!(character, '%' | '_' | '\\') {
            pattern.push('\\');
        }
        pattern.push(character);
    }
    pattern.push('%');
    pattern
}

/// Returns such a pattern, or an empty text where there is nothing to look for.
pub(crate) fn pattern_or_empty(q: &str) -> String {
    let q = q.trim();
    if q.is_empty() { String::new() } else { pattern(q) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_folds_to_a_part_of_the_fold() {
        for (title, part) in [
            ("ΟΔΥΣΣΕΑΣ", "δυσ"),
            ("ΟΔΥΣΣΕΑΣ", "ΕΑς"),
            ("Straße", "STRASSE"),
            ("서울 Weather", "울 WEA"),
            ("ÉCOLE", "école"),
        ] {
            assert!(fold(title).contains(&fold(part)), "{title} {part}");
        }
    }

    #[test]
    fn what_like_would_interpret_is_escaped() {
        assert_eq!(pattern(r"50%_\X"), r"%50\%\_\\x%");
        assert_eq!(pattern(""), "%%");
    }

    #[test]
    fn cursors_round_trip_and_other_texts_are_refused() {
        let cursor = ProjectCursor {
            updated_at: Timestamp::from_micros(-7),
            id: DatasetId::new(Timestamp::from_micros(7)),
        };
        assert_eq!(cursor.to_string().parse(), Ok(cursor));
        for text in ["", ".", "1.", "x.0", "1.0"] {
            assert_eq!(text.parse::<ProjectCursor>(), Err(ParseCursorError), "{text}");
        }
    }
}

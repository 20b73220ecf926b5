//! Operations that list projects and return one.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use store::{Project, ProjectCursor, ProjectFilter, Store};

use super::Named;
use super::view::{Details, Full, Summary, VersionEntry};
use crate::answer::Reply;
use crate::caches::ProjectView;
use crate::cx::Cx;
use crate::entitlement;
use crate::error::ApiError;
use crate::ops::cut;
use crate::rendered::{self, Rendered};
use crate::schema::LINE;

/// Versions and contributors that one answer shows.
const MAX_LISTED: u32 = 100;
/// Projects on a page when the caller gives no `limit`.
const DEFAULT_PAGE_PROJECTS: u32 = 1_000;
/// Form of a cursor: creation time in microseconds and id of the last project of a page.
const CURSOR_PATTERN: &str = "^[0-9]{1,18}[.][0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$";
/// Kind under which a search is counted as usage.
const SEARCH_USAGE: &str = "project_search";

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct List {
    /// Keeps projects whose slug or title contains this text, whatever its case.
    #[schemars(length(max = 200), regex(pattern = LINE))]
    q: Option<String>,
    /// Greatest number of projects on the page; 1000 where not given.
    #[schemars(range(min = 1, max = 1_000))]
    limit: Option<u32>,
    /// The `nextCursor` of the page before.
    #[schemars(regex(pattern = CURSOR_PATTERN))]
    cursor: Option<String>,
}

#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct Page {
    items: Vec<Summary>,
    /// Number of projects on all pages.
    total: u64,
    /// Cursor of the next page; absent on the last.
    #[serde(skip_serializing_if = "Option::is_none")]
    next_cursor: Option<String>,
}

pub(super) async fn list(cx: Cx, input: List) -> Result<Reply<Page>, ApiError> {
    let cursor = |text: String| text.parse::<ProjectCursor>();
    let after = input
        .cursor
        .map(cursor)
        .transpose()
        .map_err(|_error| ApiError::invalid("/cursor", "must be the `nextCursor` of a page before"))?;
    let limit = input.limit.unwrap_or(DEFAULT_PAGE_PROJECTS);
    let searches = input.q.as_ref().is_some_and(|q| !q.is_empty());
    // One more project than the page has, to know if there is a next page.
    let filter = ProjectFilter {
        q: input.q,
        viewer: cx.operator(),
        after,
        limit: limit + 1,
    };
    // Only the number of searches is counted, never their text.
    if searches {
        cx.app.usage.add(SEARCH_USAGE, cx.now);
    }
    let store = &cx.app.store;
    // The page and the count are independent of each other, so they are read at the same time.
    let (mut projects, total) = tokio::try_join!(store.projects(&filter), store.project_count(&filter))?;
    let next = cut(&mut projects, limit).map(ProjectCursor::from);
    Ok(Reply::ok(Page {
        total,
        next_cursor: next.map(|cursor| cursor.to_string()),
        items: projects.into_iter().map(Summary::from).collect(),
    }))
}

pub(super) async fn get(cx: Cx, input: Named) -> Result<Rendered<Full>, ApiError> {
    let view = cx.app.project_view(&input.slug, cx.operator(), render).await?;
    let view = view.ok_or_else(|| ApiError::no_project(&input.slug))?;
    entitlement::known(&cx, &view.project)?;
    Ok(Rendered::ok(view.body.clone()))
}

/// Renders a project with its versions and contributors. The answer is the same for everybody who may see the project.
async fn render(store: Store, project: Project) -> Result<ProjectView, store::Error> {
    let written = store.summaries();
    let (versions, counts, contributors, summaries) = tokio::try_join!(
        store.project_versions(project.id, None, MAX_LISTED),
        store.project_counts(project.id),
        store.project_contributors(project.id, MAX_LISTED),
        written.of(project.id, MAX_LISTED),
    )?;
    let versions = versions.iter().map(|version| VersionEntry::of(version, &summaries));
    let full = Full {
        details: Details::of(&project)?,
        versions: versions.collect(),
        version_count: counts.versions,
        contributor_count: counts.contributors,
        contributors: contributors.iter().map(Into::into).collect(),
    };
    let body = rendered::json(&full).map_err(|error| store::Error::Malformed {
        column: "projects",
        problem: error.to_string(),
    })?;
    Ok(ProjectView { project, body })
}

//! Operations that list projects and return one.

use bytes::Bytes;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use store::{Project, ProjectCursor, ProjectFilter, Store};

use super::view::{FullProject, ProjectDetails, ProjectListing, VersionEntry};
use crate::call::answer::JsonReply;
use crate::call::cx::Cx;
use crate::call::rendered::{self, RenderedJson};
use crate::call::room::PageRoom;
use crate::call::schema::LINE;
use crate::error::ApiError;
use crate::ops::paging::{NOT_A_NEXT_CURSOR, read_cursor, take_page};
use crate::rules::entitlement;
use crate::state::caches::ProjectView;

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
pub(super) struct ListProjectsQuery {
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
#[schemars(rename = "Page")]
#[serde(rename_all = "camelCase")]
pub(super) struct ProjectPage {
    items: Vec<ProjectListing>,
    /// Number of projects on all pages.
    total: u64,
    /// Cursor of the next page; absent on the last.
    #[serde(skip_serializing_if = "Option::is_none")]
    next_cursor: Option<String>,
}

pub(super) async fn list(cx: Cx, input: ListProjectsQuery) -> Result<JsonReply<ProjectPage>, ApiError> {
    let after: Option<ProjectCursor> = read_cursor(input.cursor.as_deref(), NOT_A_NEXT_CURSOR)?;
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
    let mut next = take_page(&mut projects, limit).map(ProjectCursor::from);
    let mut items = Vec::with_capacity(projects.len());
    let (mut room, mut last) = (PageRoom::of(&cx), None);
    for project in projects {
        let cursor = ProjectCursor::from(&project);
        let item = ProjectListing::from(project);
        if !room.takes(&item)? {
            next = last;
            break;
        }
        last = Some(cursor);
        items.push(item);
    }
    Ok(JsonReply::ok(ProjectPage {
        total,
        next_cursor: next.map(|cursor| cursor.to_string()),
        items,
    }))
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct ProjectPath {
    /// Slug of the project. Any text is accepted: what cannot be a slug names no project.
    slug: String,
    /// Characters of the readme to skip.
    #[serde(default)]
    #[schemars(range(min = 0, max = 20_000))]
    offset: u64,
}

pub(super) async fn get(cx: Cx, input: ProjectPath) -> Result<RenderedJson<FullProject>, ApiError> {
    let view = cx.app.project_view(&input.slug, cx.operator(), render).await?;
    let view = view.ok_or_else(|| ApiError::no_project(&input.slug))?;
    entitlement::known(&cx, &view.project)?;
    let room = PageRoom::of(&cx);
    if input.offset == 0 && room.holds(view.body.len()) {
        return Ok(RenderedJson::ok(view.body.clone()));
    }
    part(&view.body, room, input.offset).map(RenderedJson::ok)
}

/// Returns an answer with a part of the readme, and with the versions and contributors that fit.
fn part(body: &[u8], mut room: PageRoom, offset: u64) -> Result<Bytes, ApiError> {
    let broken = |error| ApiError::internal(format!("project: {error}"));
    let mut full: Map<String, Value> = serde_json::from_slice(body).map_err(broken)?;
    let readme = match full.remove("readme") {
        Some(Value::String(readme)) => readme,
        _ => String::new(),
    };
    let mut list = |name: &str| match full.remove(name) {
        Some(Value::Array(items)) => items,
        _ => Vec::new(),
    };
    let (mut versions, mut contributors) = (list("versions"), list("contributors"));
    room.spend(&full)?;
    let part = room.share(2).part(readme, offset);
    room.spend(&part.text)?;
    room.share(3).keep(&mut contributors)?;
    room.spend(&contributors)?;
    room.keep(&mut versions)?;
    full.insert("readme".to_owned(), part.text.into());
    full.insert("versions".to_owned(), versions.into());
    full.insert("contributors".to_owned(), contributors.into());
    if let Some(next) = part.next_offset {
        full.insert("nextOffset".to_owned(), next.into());
    }
    rendered::json(&full).map_err(broken)
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
    let full = FullProject {
        details: ProjectDetails::of(&project)?,
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

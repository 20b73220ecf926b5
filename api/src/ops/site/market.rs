//! Page of the public datasets.

use pages::{BrowsePage, BrowseRow};
use schemars::JsonSchema;
use serde::Deserialize;
use store::{ProjectCursor, ProjectFilter};

use super::dataset::price;
use super::page;
use crate::call::cx::Cx;
use crate::call::operation::Operations;
use crate::call::schema::LINE;
use crate::call::view::PageResponse;
use crate::error::ApiError;
use crate::ops::page_kit::{instant, page_layout};
use crate::ops::paging::{read_cursor, take_page};
use crate::ops::search;

const PATH: &str = "/projects";
/// Order in which the newest dataset comes first.
const BY_AGE: &str = "newest";
/// Datasets on a page of the list.
const ROWS: u32 = 50;

pub(super) fn add(table: &mut Operations) {
    table.add(page("browse_page", PATH, "Datasets"), &[], browse);
}

/// Page of the list.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct ListDatasetsQuery {
    /// Text that slugs and titles contain.
    #[schemars(length(max = 200), regex(pattern = LINE))]
    q: Option<String>,
    /// Order of the list: `newest` for the newest dataset first; where not given, the latest rows first.
    #[schemars(length(max = 20))]
    sort: Option<String>,
    /// Last dataset of the page before.
    #[schemars(length(max = 100))]
    cursor: Option<String>,
}

async fn browse(cx: Cx, input: ListDatasetsQuery) -> Result<PageResponse, ApiError> {
    let after: Option<ProjectCursor> =
        read_cursor(input.cursor.as_deref(), "must be the last dataset of a page before")?;
    let is_later = after.is_some();
    let is_by_age = match input.sort.as_deref().unwrap_or_default() {
        "" => false,
        BY_AGE => true,
        _ => return Err(ApiError::not_found("there is no such list")),
    };
    let q = input.q.unwrap_or_default();
    let filter = ProjectFilter {
        q: Some(q.clone()).filter(|q| !q.is_empty()),
        // The list is the same for everybody.
        viewer: None,
        after,
        limit: ROWS + 1,
    };
    let store = &cx.app.store;
    let page = async {
        if is_by_age {
            store.projects_by_age(&filter).await
        } else {
            store.projects(&filter).await
        }
    };
    let (mut found, total) = tokio::try_join!(page, store.project_count(&filter))?;
    let next = take_page(&mut found, ROWS).map(ProjectCursor::from);
    let query = |rest: String| {
        let mut address = url::form_urlencoded::Serializer::new(String::new());
        if !q.is_empty() {
            address.append_pair("q", &q);
        }
        if is_by_age {
            address.append_pair("sort", BY_AGE);
        }
        if !rest.is_empty() {
            address.append_pair("cursor", &rest);
        }
        format!("{PATH}?{}", address.finish())
    };
    PageResponse::page(&BrowsePage {
        chrome: page_layout(&cx).await?,
        is_by_age,
        total,
        next: next.map(|cursor| query(cursor.to_string())),
        first: is_later.then(|| query(String::new())),
        rows: found
            .into_iter()
            .map(|project| {
                let price = price(project.access, project.price_micro);
                BrowseRow {
                    is_locked: price.is_some(),
                    price: search::price(price.map_or(0, |price| price.0)),
                    slug: project.slug,
                    title: project.title,
                    tags: project.tags,
                    records: project.record_count,
                    version: project.version.0,
                    license: project.license,
                    at: instant(project.updated_at),
                }
            })
            .collect(),
        q,
    })
}

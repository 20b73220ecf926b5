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
use crate::ops::paging::take_page;

const PATH: &str = "/projects";
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
    /// Last dataset of the page before.
    #[schemars(length(max = 100))]
    cursor: Option<String>,
}

async fn browse(cx: Cx, input: ListDatasetsQuery) -> Result<PageResponse, ApiError> {
    let after: Option<ProjectCursor> = input
        .cursor
        .as_deref()
        .map(str::parse)
        .transpose()
        .map_err(|_error| ApiError::invalid("/cursor", "must be the last dataset of a page before"))?;
    let is_later = after.is_some();
    let q = input.q.unwrap_or_default();
    let filter = ProjectFilter {
        q: Some(q.clone()).filter(|q| !q.is_empty()),
        // The list is the same for everybody.
        viewer: None,
        after,
        limit: ROWS + 1,
    };
    let store = &cx.app.store;
    let (mut found, total) = tokio::try_join!(store.projects(&filter), store.project_count(&filter))?;
    let next = take_page(&mut found, ROWS).map(ProjectCursor::from);
    let query = |rest: String| {
        let mut address = url::form_urlencoded::Serializer::new(String::new());
        if !q.is_empty() {
            address.append_pair("q", &q);
        }
        if !rest.is_empty() {
            address.append_pair("cursor", &rest);
        }
        format!("{PATH}?{}", address.finish())
    };
    PageResponse::page(&BrowsePage {
        chrome: page_layout(&cx).await?,
        total,
        next: next.map(|cursor| query(cursor.to_string())),
        first: is_later.then(|| query(String::new())),
        rows: found
            .into_iter()
            .map(|project| BrowseRow {
                price: price(project.access, project.price_micro).map(|price| price.to_string()),
                slug: project.slug,
                title: project.title,
                records: project.record_count,
                version: project.version.0,
                license: project.license,
                at: instant(project.updated_at),
            })
            .collect(),
        q,
    })
}

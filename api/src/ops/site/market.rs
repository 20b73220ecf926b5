//! Public pages of datasets: the list, and one dataset.

use pages::{
    BrowsePage, BrowseRow, ContractField, Discussion, PublicContributor, PublicDataset, PublicDatasetPage,
    PublicVersion, VersionSummary,
};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;
use store::{Access, ItemKind, ProjectCursor, ProjectFilter};
use types::money::MicroUsdc;

use super::page;
use crate::call::cx::Cx;
use crate::call::operation::Operations;
use crate::call::schema::LINE;
use crate::call::view::PageResponse;
use crate::error::ApiError;
use crate::ops::community::{DiscussionPlaces, discussion};
use crate::ops::page_kit::{instant, page_layout};
use crate::ops::paging::take_page;
use crate::price::dataset_price;
use crate::rules::entitlement;

const PATH: &str = "/projects";
/// Datasets on a page of the list.
const ROWS: u32 = 50;
/// Versions and contributors on the page of a dataset.
const VERSIONS: u32 = 72;
const CONTRIBUTORS: u32 = 10;

pub(super) fn add(table: &mut Operations) {
    table.add(page("browse_page", PATH, "Datasets"), &[], browse);
    table.add(
        page("public_dataset_page", "/projects/{slug}", "A dataset"),
        &[],
        dataset,
    );
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

/// Returns the price of a dataset for people; `None` if it is free.
fn price(access: Access, micro: Option<i64>) -> Option<String> {
    // A public dataset has no price, even if the database has one.
    let price = (access == Access::Paid).then(|| dataset_price(micro));
    price
        .filter(|price| *price > MicroUsdc(0))
        .map(|price| price.to_string())
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
                price: price(project.access, project.price_micro),
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

/// A dataset in a path.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct DatasetPagePath {
    /// Slug of the dataset.
    #[schemars(length(max = 80))]
    slug: String,
    /// Number of the page of reviews; 1 where not given.
    #[schemars(range(min = 1, max = 1_000))]
    reviews: Option<u32>,
    /// Last comment of the page before.
    #[schemars(regex(pattern = "^[0-9]{1,18}$"))]
    comments: Option<String>,
}

async fn dataset(cx: Cx, input: DatasetPagePath) -> Result<PageResponse, ApiError> {
    let project = entitlement::visible_lately(&cx, &input.slug).await?;
    let store = &cx.app.store;
    let written = store.summaries();
    let (versions, counts, contributors, summaries) = tokio::try_join!(
        store.project_versions(project.id, None, VERSIONS),
        store.project_counts(project.id),
        store.project_contributors(project.id, CONTRIBUTORS),
        written.of(project.id, 1),
    )?;
    let contract: Value = serde_json::from_str(&project.contract_json).map_err(ApiError::internal)?;
    let fields = contract["fields"].as_array().into_iter().flatten();
    let dataset = PublicDataset {
        slug: project.slug.clone(),
        title: project.title.clone(),
        status: project.status.to_string(),
        license: project.license.clone(),
        tags: project.tags.clone(),
        price: price(project.access, project.price_micro),
        trial_sale: project.trial_sale,
        version: project.version.0,
        records: project.record_count,
        fields: fields
            .map(|field| ContractField {
                name: field["name"].as_str().unwrap_or_default().to_owned(),
                kind: match (&field["type"], &field["scale"]) {
                    (kind, Value::Number(scale)) => format!("{}({scale})", kind.as_str().unwrap_or_default()),
                    (kind, _) => kind.as_str().unwrap_or_default().to_owned(),
                },
                required: field["required"] == true,
                meaning: ["title", "description", "unit"]
                    .into_iter()
                    .filter_map(|member| field[member].as_str())
                    .collect::<Vec<_>>()
                    .join(" · "),
            })
            .collect(),
        allows_extra: contract["allowExtra"] == true,
        versions: versions
            .into_iter()
            .map(|version| PublicVersion {
                version: version.version.0,
                added: version.accepted,
                records: version.record_count,
                agent: version.agent_name,
                root: version.root,
                at: instant(version.created_at),
            })
            .collect(),
        summary: summaries.into_iter().next().map(|summary| VersionSummary {
            version: summary.version.0,
            text: summary.text,
            model: summary.model,
        }),
        contributors: contributors
            .into_iter()
            .map(|contributor| PublicContributor {
                agent: contributor.name,
                contributions: contributor.contributions,
                added: contributor.accepted,
            })
            .collect(),
        contributor_count: counts.contributors,
    };
    // A discussion is closed for everybody while its item is down.
    let discussion = if project.taken_down.is_none() {
        let path = format!("{PATH}/{}", project.slug);
        let places = DiscussionPlaces::new(path, input.reviews, input.comments.as_deref());
        let id = project.id.to_string();
        discussion(&cx, ItemKind::Dataset, &id, project.operator, &places).await?
    } else {
        Discussion::default()
    };
    let page = PublicDatasetPage::new(page_layout(&cx).await?, dataset, &project.readme, discussion);
    PageResponse::page(&page)
}

//! Pages of one dataset: its first page, the viewer of its rows, and its versions.
//!
//! Invariant: whether a row is shown is decided by the entitlement of the reader's account to the version, before any is read.

mod rows;
mod scene;
mod select;
mod versions;

use operators::profile;
use pages::{DatasetPage, DatasetTab, Discussion, SummaryOfVersion, VersionContributor};
use schemars::JsonSchema;
use serde::Deserialize;
use store::ItemKind;

use super::page;
use crate::call::cx::Cx;
use crate::call::operation::Operations;
use crate::call::spec::{GuardedItem, Spec};
use crate::call::view::PageResponse;
use crate::error::ApiError;
use crate::ops::community::{DiscussionPlaces, discussion};
use crate::ops::page_kit::page_layout;
use crate::rules::profiles;

pub(super) use scene::{DatasetScene, price};

pub(super) fn add(table: &mut Operations) {
    let spec = Spec {
        item: GuardedItem::Project,
        ..page("public_dataset_page", "/projects/{slug}", "A dataset")
    };
    table.add(spec, &[], dataset);
    rows::add(table);
    versions::add(table);
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
    let scene = DatasetScene::find(&cx, &input.slug).await?;
    let project = &scene.project;
    let (store, chrome) = (&cx.app.store, page_layout(&cx).await?);
    let written = store.summaries();
    let summaries = written.of(project.id, 1).await?;
    let head = scene.head(&cx, DatasetTab::Data);
    let rows = rows::first(&cx, &scene, &chrome, &head).await?;
    let shown = profiles::shown(&cx, project, None).await?;
    let figures = shown.iter().flat_map(|shown| &shown.figures.columns);
    let contributors = scene.contributors.iter().map(|contributor| VersionContributor {
        agent: contributor.name.clone(),
        contributions: contributor.contributions,
        added: contributor.accepted,
    });
    let summary = summaries.into_iter().next().map(|summary| SummaryOfVersion {
        version: summary.version,
        text: summary.text,
        model: summary.model,
    });
    // A discussion is closed for everybody while its item is down.
    let discussion = if project.taken_down.is_none() {
        let path = format!("/projects/{}", project.slug);
        let places = DiscussionPlaces::new(path, input.reviews, input.comments.as_deref());
        let id = project.id.to_string();
        discussion(&cx, ItemKind::Dataset, &id, project.operator, &places).await?
    } else {
        Discussion::default()
    };
    let page = DatasetPage::new(
        chrome,
        head,
        rows,
        (scene.contract.clone(), figures.map(profile::summary).collect()),
        (shown.as_ref().map(|shown| shown.version), project.created_at),
        summary,
        contributors.collect(),
        discussion,
    );
    PageResponse::page(&page)
}

//! Pages of one dataset: its first page, the viewer of its rows, and its versions.
//!
//! Invariant: whether a row is shown is decided by the entitlement of the reader's account to the version, before any is read.

mod rows;
mod scene;
mod select;
mod versions;

use operators::profile;
use pages::{DatasetHead, DatasetPage, DatasetTab, Discussion, SummaryOfVersion, VersionContributor};
use schemars::JsonSchema;
use serde::Deserialize;
use store::{ItemKind, ProjectDay};
use types::Timestamp;

use super::page;
use crate::call::cx::Cx;
use crate::call::operation::Operations;
use crate::call::spec::{GuardedItem, Spec};
use crate::call::view::PageResponse;
use crate::error::ApiError;
use crate::ops::community::{DiscussionPlaces, discussion};
use crate::ops::page_kit::page_layout;
use crate::rules::profiles;

pub(super) use scene::DatasetScene;
pub(in crate::ops) use scene::price;

/// Days of the figure of rows a day, today among them.
const DAYS: i64 = 30;
/// Newest versions that the figure is made from.
const MAX_VERSIONS: u32 = 3_000;

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
    let id = project.id.to_string();
    let (money, since) = (store.money(), Timestamp::of_day(first_day(cx.now)));
    let (sold, added) = tokio::try_join!(
        money.sold_count(ItemKind::Dataset, &id),
        store.project_days(project.id, since, MAX_VERSIONS)
    )?;
    let head = DatasetHead {
        sold,
        ..scene.head(&cx, DatasetTab::Data)
    };
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
    PageResponse::page(&page.with_days(days(&added, project.created_at, cx.now)))
}

/// Returns the first of the days of the figure, as a number since 1970.
fn first_day(now: Timestamp) -> i64 {
    now.day() - (DAYS - 1)
}

/// Returns the rows of each of the last days, oldest day first, from the day on which the dataset was made.
fn days(added: &[ProjectDay], made: Timestamp, now: Timestamp) -> Vec<u64> {
    let versions: u64 = added.iter().map(|day| day.versions).sum();
    // Of the oldest day of those that were read, some versions may be missing.
    let read = match added.first() {
        Some(oldest) if versions >= u64::from(MAX_VERSIONS) => oldest.day + 1,
        _ => i64::MIN,
    };
    let begin = first_day(now).max(made.day()).max(read);
    let rows = |day: i64| {
        added
            .iter()
            .find(|found| found.day == day)
            .map_or(0, |found| found.added)
    };
    (begin..=now.day()).map(rows).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(day: i64) -> Timestamp {
        Timestamp::from_micros(Timestamp::of_day(day).micros() + 5)
    }

    fn day(day: i64, versions: u64) -> ProjectDay {
        ProjectDay {
            day,
            added: 10 * versions,
            versions,
        }
    }

    #[test]
    fn days_begin_with_the_dataset_and_end_today() {
        let added = [day(97, 2), day(99, 1)];
        assert_eq!(days(&added, at(96), at(100)), [0, 20, 0, 10, 0]);
        let old = days(&added, at(1), at(100));
        assert_eq!((old.len(), old[26], old[28], old[29]), (30, 20, 10, 0));
        assert_eq!(days(&[], at(100), at(100)), [0]);
    }

    #[test]
    fn a_day_that_was_read_in_part_is_left_out() {
        let added = [day(97, 1), day(99, u64::from(MAX_VERSIONS) - 1)];
        assert_eq!(days(&added, at(1), at(99)), [0, added[1].added]);
    }
}

//! Scenarios about summaries of versions of public datasets.

use std::time::Duration;

use types::{DatasetId, Version};

use super::fixture::{World, at, merged, new_project, open, outcome, project, race};
use super::moderation::{back, down};
use crate::{ReportKind, ReportReason, Store, SummaryLease, SummaryLimits, Visibility};

const LIMITS: SummaryLimits = SummaryLimits {
    lease: Duration::from_mins(10),
    every: Duration::from_hours(1),
    failures: 3,
};

/// Merges a version of the world's dataset.
async fn grow(store: &Store, world: &World, version: u64) {
    let id = world.submitted(store, 1).await[0];
    let applied = store.outcomes_apply(vec![outcome(id, merged(version))]).await.unwrap();
    assert!(applied[0].changed);
}

async fn take(store: &Store, now: i64) -> Option<SummaryLease> {
    store.summaries().take(at(now), LIMITS).await.unwrap()
}

async fn write(store: &Store, lease: SummaryLease, text: &str, now: i64) -> bool {
    store.summaries().write(lease, text, "judge-x", at(now)).await.unwrap()
}

/// Returns the summaries of a dataset as anybody sees them.
async fn shown(store: &Store, id: DatasetId) -> Vec<(u64, String)> {
    let summaries = store.summaries().of(id, 10).await.unwrap();
    summaries
        .into_iter()
        .map(|summary| (summary.version.0, summary.text))
        .collect()
}

/// Of many processes one gets a version, and it is written once. The next version has its own, an hour later.
pub async fn a_version_is_summarised_once(url: &str) {
    let store = open(url).await;
    let world = World::new(&store).await;
    assert_eq!(take(&store, 10).await, None, "it has no version");
    grow(&store, &world, 1).await;
    let stores = [store.clone(), open(url).await];
    let taken = race(stores, 6, |store, _| async move { take(&store, 20).await }).await;
    let taken: Vec<_> = taken.into_iter().flatten().collect();
    let [first] = taken[..] else {
        unreachable!("not one of them: {taken:?}")
    };
    assert_eq!((first.project, first.version), (world.project, Version(1)));
    // It was too slow, and another one has it now.
    let second = take(&store, 20 + 601).await.unwrap();
    assert!(!write(&store, first, "Too late.", 630).await);
    assert!(write(&store, second, "Rain.", 631).await);
    assert!(!write(&store, second, "Rain again.", 632).await);
    assert_eq!(shown(&store, world.project).await, [(1, "Rain.".to_owned())]);
    let summary = store.summaries().of(world.project, 1).await.unwrap().remove(0);
    assert_eq!((summary.model.as_str(), summary.at), ("judge-x", at(631)));
    assert_eq!(take(&store, 100_000).await, None);
    // Versions that come fast are not summarised each, but the latest of them is.
    grow(&store, &world, 2).await;
    grow(&store, &world, 3).await;
    assert_eq!(take(&store, 631 + 3_599).await, None);
    let third = take(&store, 631 + 3_601).await.unwrap();
    assert_eq!(third.version, Version(3));
    assert!(write(&store, third, "Rain and snow.", 5_000).await);
    let expected = [(3, "Rain and snow.".to_owned()), (1, "Rain.".to_owned())];
    assert_eq!(shown(&store, world.project).await, expected);
}

/// A private dataset is never taken into work. One that is taken down gets no summary, and shows none.
pub async fn a_dataset_that_is_not_shown_has_no_summary(url: &str) {
    let store = open(url).await;
    let world = World::new(&store).await;
    let private = new_project(world.operator, "private");
    let private = World {
        project: project(
            &store,
            crate::NewProject {
                visibility: Visibility::Private,
                ..private
            },
        )
        .await,
        ..world
    };
    grow(&store, &private, 1).await;
    assert_eq!(take(&store, 20).await, None);
    grow(&store, &world, 1).await;
    let lease = take(&store, 30).await.unwrap();
    assert_eq!(lease.project, world.project);
    // It comes down while the model is asked.
    let item = world.project.to_string();
    let takedown = down(&store, ReportKind::Dataset, &item, ReportReason::Copyright, at(40)).await;
    assert!(!write(&store, lease, "Rain.", 50).await);
    assert_eq!(take(&store, 1_000).await, None);
    back(&store, takedown.id, at(1_100)).await;
    let lease = take(&store, 1_200).await.unwrap();
    assert!(write(&store, lease, "Rain.", 1_210).await);
    assert_eq!(shown(&store, world.project).await.len(), 1);
    let takedown = down(&store, ReportKind::Dataset, &item, ReportReason::Spam, at(1_300)).await;
    assert_eq!(shown(&store, world.project).await, []);
    back(&store, takedown.id, at(1_400)).await;
    assert_eq!(shown(&store, world.project).await.len(), 1);
    assert_eq!(shown(&store, private.project).await, []);
}

/// An outage costs a version nothing. Answers that cannot be used give it up at the third.
pub async fn what_cannot_be_summarised_is_given_up(url: &str) {
    let store = open(url).await;
    let world = World::new(&store).await;
    grow(&store, &world, 1).await;
    for round in 0..5 {
        let lease = take(&store, 10 + round).await.unwrap();
        store.summaries().give_back(lease, at(11 + round)).await.unwrap();
    }
    for failure in 0..3 {
        let now = 100 + failure * 60;
        let lease = take(&store, now).await.unwrap();
        store.summaries().fail(lease, at(now + 30)).await.unwrap();
        assert_eq!(take(&store, now + 29).await, None);
        // The time of this process is over.
        store.summaries().fail(lease, at(now)).await.unwrap();
        store.summaries().give_back(lease, at(now)).await.unwrap();
    }
    assert_eq!(take(&store, 1_000_000).await, None);
    assert_eq!(shown(&store, world.project).await, []);
    grow(&store, &world, 2).await;
    assert_eq!(take(&store, 1_000_000).await.unwrap().version, Version(2));
}

//! Scenarios about the handle itself, usage counts and the checker's view.

use types::{Classify, Kind, Retry, Version};

use super::fixture::{World, merged, open, operator, outcome, rejected};
use crate::{ContributionStatus, SubmitOutcome};

/// Counts add up per day and kind.
pub async fn counts_add_up_and_keep_no_text(url: &str) {
    let store = open(url).await;
    for (day, kind, n) in [(1, "search", 2), (1, "query", 1), (1, "search", 3), (2, "search", 7)] {
        store.usage_count(day, kind, n).await.unwrap();
    }
    let expected = [("query".to_owned(), 1), ("search".to_owned(), 5)];
    assert_eq!(store.usage(1).await.unwrap(), expected);
    assert_eq!(store.usage(3).await.unwrap(), []);
    let beyond = store.usage_count(1, "search", u64::MAX).await.unwrap_err();
    assert_eq!(beyond.kind(), Kind::Invalid);
}

/// The checker reads every contribution with its outcome, and every version.
pub async fn a_checker_sees_what_is_there(url: &str) {
    let store = open(url).await;
    let world = World::new(&store).await;
    let mut ids = world.submitted(&store, 3).await;
    let outcomes = vec![outcome(ids[0], merged(1)), outcome(ids[1], rejected("refused"))];
    assert_eq!(store.outcomes_apply(outcomes).await.unwrap().len(), 2);

    let projects = store.check_projects().await.unwrap();
    assert_eq!(
        (projects.len(), projects[0].id, projects[0].slug.as_str()),
        (1, world.project, "weather")
    );
    assert_eq!((projects[0].version, projects[0].record_count), (Version(1), 2));
    let entries = store.check_project(world.project).await.unwrap();
    let states: Vec<_> = ids
        .iter()
        .filter_map(|id| entries.contributions.iter().find(|entry| entry.id == *id))
        .map(|entry| {
            (
                entry.status,
                entry.version,
                entry.reject_code.as_deref(),
                entry.in_outbox,
            )
        })
        .collect();
    assert_eq!(
        states,
        [
            (ContributionStatus::Merged, Some(Version(1)), None, false),
            (ContributionStatus::Rejected, None, Some("refused"), false),
            (ContributionStatus::Submitted, None, None, true),
        ]
    );
    ids.sort();
    assert!(
        entries
            .contributions
            .iter()
            .map(|entry| entry.id)
            .eq(ids.iter().copied())
    );
    assert_eq!(entries.versions.len(), 1);
    assert_eq!(
        (entries.versions[0].version, entries.versions[0].accepted),
        (Version(1), 2)
    );
}

/// Each handle sees the commits of the other, and both may write.
pub async fn two_handles_share_one_database(url: &str) {
    let (one, other) = (open(url).await, open(url).await);
    let ada = operator(&one, "ada@example.org").await;
    assert_eq!(other.operator(ada).await.unwrap().unwrap().id, ada);
    let eve = operator(&other, "eve@example.org").await;
    assert_eq!(one.operator(eve).await.unwrap().unwrap().id, eve);
    one.ping().await.unwrap();
    other.close().await;
    one.ping().await.unwrap();
    operator(&one, "zoe@example.org").await;
}

/// An acknowledgement is one commit, and so is a batch of outcomes.
pub async fn a_change_costs_one_commit(url: &str) {
    let store = open(url).await;
    let world = World::new(&store).await;
    let before = store.commits();
    let new = world.contribution();
    let id = new.id;
    assert_eq!(store.contribution_submit(new).await.unwrap(), SubmitOutcome::Submitted);
    assert_eq!(store.commits() - before, 1);
    let ids = world.submitted(&store, 3).await;
    let before = store.commits();
    let outcomes = ids
        .iter()
        .chain([&id])
        .zip(1..)
        .map(|(id, version)| outcome(*id, merged(version)));
    let applied = store.outcomes_apply(outcomes.collect::<Vec<_>>()).await.unwrap();
    assert_eq!((applied.len(), store.commits() - before), (4, 1));
}

/// After closing, calls fail at once and say that trying again may help.
pub async fn a_closed_store_says_so(url: &str) {
    let store = open(url).await;
    store.close().await;
    let errors = [
        store.ping().await.unwrap_err(),
        store.usage_count(1, "search", 1).await.unwrap_err(),
        store.usage(1).await.unwrap_err(),
    ];
    for error in errors {
        assert_eq!(
            (error.kind(), error.retry()),
            (Kind::Unavailable, Retry::Backoff),
            "{error}"
        );
    }
}

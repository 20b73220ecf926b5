//! Scenarios about applying outcomes.

use types::{ContributionId, Timestamp, Version};

use super::fixture::{World, agent, at, merged, open, outcome, rejected, waiting};
use crate::{ContributionStatus, Outbox, OutcomeRow, Resolution, Store};

/// A merge closes the row, empties the outbox and makes the version, all at once.
pub async fn a_merge_closes_and_makes_a_version(url: &str) {
    let store = open(url).await;
    let world = World::new(&store).await;
    let id = world.submitted(&store, 1).await[0];
    assert_eq!(apply(&store, vec![outcome(id, merged(1))]).await, [true]);

    let row = store.contribution(id).await.unwrap().unwrap();
    assert_eq!((row.status, row.decided_at), (ContributionStatus::Merged, Some(at(10))));
    assert_eq!(
        (row.version, row.accepted, row.record_count),
        (Some(Version(1)), Some(2), Some(2))
    );
    assert_eq!((row.root, row.tallies.as_deref()), (Some("ab".repeat(32)), Some("[]")));
    let verdicts = store.contribution_verdicts(id).await.unwrap();
    assert_eq!(verdicts.as_deref(), Some(r#"[{"row":1}]"#));
    assert_eq!(store.open_count_and_bytes().await.unwrap(), Outbox::default());

    let versions = store.project_versions(world.project, None, 10).await.unwrap();
    assert_eq!(versions.len(), 1);
    assert_eq!((versions[0].version, versions[0].contribution), (Version(1), id));
    assert_eq!((versions[0].accepted, versions[0].record_count), (2, 2));
    assert_eq!(
        (versions[0].agent_name.as_str(), versions[0].created_at),
        ("collector", at(10))
    );
    let project = store.project_by_slug("weather", None).await.unwrap().unwrap();
    assert_eq!((project.version, project.record_count), (Version(1), 2));
}

/// A rejection closes the row with its reason and makes no version.
pub async fn a_rejection_closes_and_says_why(url: &str) {
    let store = open(url).await;
    let world = World::new(&store).await;
    let id = world.submitted(&store, 1).await[0];
    assert_eq!(apply(&store, vec![outcome(id, rejected("duplicates"))]).await, [true]);
    let row = store.contribution(id).await.unwrap().unwrap();
    assert_eq!(
        (row.status, row.decided_at),
        (ContributionStatus::Rejected, Some(at(10)))
    );
    assert_eq!(row.reject_code.as_deref(), Some("duplicates"));
    assert_eq!(row.reject_message.as_deref(), Some("Not a record is new."));
    assert_eq!(store.open_count_and_bytes().await.unwrap(), Outbox::default());
    assert_eq!(store.project_counts(world.project).await.unwrap().versions, 0);
}

/// Outcomes after a terminal outcome change nothing, in the same call or a later one.
pub async fn the_first_terminal_outcome_wins(url: &str) {
    let store = open(url).await;
    let world = World::new(&store).await;
    let ids = world.submitted(&store, 2).await;
    let first = vec![
        outcome(ids[0], merged(1)),
        outcome(ids[0], merged(1)),
        outcome(ids[1], rejected("refused")),
        outcome(ids[1], rejected("duplicates")),
    ];
    assert_eq!(apply(&store, first).await, [true, false, true, false]);
    let before = store.contribution(ids[0]).await.unwrap();
    let later = vec![
        outcome(ids[0], rejected("refused")),
        outcome(ids[0], waiting(None)),
        outcome(ids[0], merged(7)),
        outcome(ids[1], waiting(None)),
    ];
    assert_eq!(apply(&store, later).await, [false; 4]);
    assert_eq!(store.contribution(ids[0]).await.unwrap(), before);
    let second = store.contribution(ids[1]).await.unwrap().unwrap();
    assert_eq!((second.status, second.version), (ContributionStatus::Rejected, None));
    assert_eq!(store.project_counts(world.project).await.unwrap().versions, 1);
}

/// A merge is applied once, also after a rejection and in any generation. No outcome is applied after it.
pub async fn what_a_table_has_is_merged_whatever_was_said_before(url: &str) {
    let store = open(url).await;
    let world = World::new(&store).await;
    let ids = world.submitted(&store, 2).await;
    assert_eq!(apply(&store, vec![outcome(ids[0], rejected("refused"))]).await, [true]);
    let of_another_generation = OutcomeRow {
        generation: 3,
        ..outcome(ids[1], merged(2))
    };
    let late = vec![
        outcome(ids[0], merged(1)),
        outcome(ids[0], rejected("refused")),
        outcome(ids[0], merged(1)),
        of_another_generation,
    ];
    assert_eq!(apply(&store, late).await, [true, false, false, true]);
    for (id, version) in [(ids[0], 1), (ids[1], 2)] {
        let row = store.contribution(id).await.unwrap().unwrap();
        assert_eq!(
            (row.status, row.version),
            (ContributionStatus::Merged, Some(Version(version)))
        );
        assert_eq!(row.reject_code, None);
    }
    assert_eq!(store.project_counts(world.project).await.unwrap().versions, 2);
    assert_eq!(store.open_count_and_bytes().await.unwrap().open, 0);
}

/// Only the current generation counts.
pub async fn an_outcome_of_another_generation_is_ignored(url: &str) {
    let store = open(url).await;
    let world = World::new(&store).await;
    let id = world.submitted(&store, 1).await[0];
    for resolution in [rejected("refused"), waiting(None)] {
        let other = OutcomeRow {
            generation: 1,
            ..outcome(id, resolution)
        };
        assert_eq!(apply(&store, vec![other]).await, [false]);
    }
    let row = store.contribution(id).await.unwrap().unwrap();
    assert_eq!(row.status, ContributionStatus::Submitted);
    assert_eq!(store.open_count_and_bytes().await.unwrap().open, 1);
}

/// A waiting contribution stays in the outbox. It is due when its wait ends, or after a fixed time if that is unknown.
pub async fn waiting_keeps_the_row_open_and_says_when(url: &str) {
    let store = open(url).await;
    let world = World::new(&store).await;
    let ids = world.submitted(&store, 2).await;
    let held = vec![outcome(ids[0], waiting(Some(500))), outcome(ids[1], waiting(None))];
    assert_eq!(apply(&store, held).await, [true, true]);

    let row = store.contribution(ids[0]).await.unwrap().unwrap();
    assert_eq!((row.status, row.decided_at), (ContributionStatus::Waiting, None));
    assert_eq!(
        (row.waiting_reason.as_deref(), row.resumes_after),
        (Some("budget"), Some(at(500)))
    );
    let due = async |seconds| -> Vec<ContributionId> {
        let due = store.contributions_due(at(seconds), 10).await.unwrap();
        due.into_iter().map(|due| due.id).collect()
    };
    assert_eq!(due(69).await, []);
    assert_eq!(due(70).await, [ids[1]]);
    assert_eq!(due(500).await, [ids[1], ids[0]]);

    assert_eq!(apply(&store, vec![outcome(ids[0], merged(1))]).await, [true]);
    let row = store.contribution(ids[0]).await.unwrap().unwrap();
    assert_eq!(
        (row.status, row.waiting_reason, row.resumes_after),
        (ContributionStatus::Merged, None, None)
    );
}

/// Outcomes of unknown contributions, and a version that another contribution has, leave the rest as it should be.
pub async fn an_unapplicable_outcome_does_not_stop_the_others(url: &str) {
    let store = open(url).await;
    let world = World::new(&store).await;
    let ids = world.submitted(&store, 3).await;
    let outcomes = vec![
        outcome(ContributionId::new(at(0)), merged(9)),
        outcome(ids[0], merged(1)),
        outcome(ids[1], merged(1)),
        outcome(ids[2], merged(2)),
    ];
    assert_eq!(apply(&store, outcomes).await, [false, true, true, true]);
    let versions = store.project_versions(world.project, None, 10).await.unwrap();
    let made: Vec<_> = versions
        .iter()
        .map(|version| (version.version.0, version.contribution))
        .collect();
    assert_eq!(made, [(2, ids[2]), (1, ids[0])]);
}

/// Versions are paged newest first; contributors are ordered by what they added; the project shows the latest version
/// whatever the order of outcomes.
pub async fn versions_and_contributors_add_up(url: &str) {
    let store = open(url).await;
    let world = World::new(&store).await;
    let second = World {
        agent: agent(&store, world.operator, "second").await,
        ..world
    };
    let mut ids = second.submitted(&store, 3).await;
    ids.extend(world.submitted(&store, 1).await);
    let numbers = [2, 4, 1, 3];
    let outcomes = ids.iter().zip(numbers).map(|(id, number)| outcome(*id, merged(number)));
    assert_eq!(apply(&store, outcomes.collect()).await, [true; 4]);

    let project = store.project_by_slug("weather", None).await.unwrap().unwrap();
    assert_eq!((project.version, project.record_count), (Version(4), 8));
    assert_eq!(store.project_counts(world.project).await.unwrap().versions, 4);
    let page = async |before| -> Vec<u64> {
        let page = store.project_versions(world.project, before, 2).await.unwrap();
        page.into_iter().map(|version| version.version.0).collect()
    };
    assert_eq!(page(None).await, [4, 3]);
    assert_eq!(page(Some(Version(3))).await, [2, 1]);
    assert_eq!(page(Some(Version(1))).await, [0; 0]);
    let growth = async |head, step| -> Vec<u64> {
        let growth = store.project_growth(world.project, Version(head), step).await.unwrap();
        growth.into_iter().map(|point| point.record_count).collect()
    };
    assert_eq!(
        growth(4, 2).await,
        [2, 6, 8],
        "the first, each second one, and the head"
    );
    assert_eq!(growth(4, 9).await, [2, 8]);
    assert_eq!(growth(1, 1).await, [2]);
    assert_eq!(
        growth(0, 1).await,
        [2],
        "a version that is not announced yet does no harm"
    );
    let days = async |since, versions| -> Vec<(u64, u64)> {
        let days = store.project_days(world.project, since, versions).await.unwrap();
        days.into_iter().map(|day| (day.added, day.versions)).collect()
    };
    let begin = Timestamp::from_micros(0);
    let total = |days: Vec<(u64, u64)>| days.iter().fold((0, 0), |sum, day| (sum.0 + day.0, sum.1 + day.1));
    assert_eq!(total(days(begin, 100).await), (8, 4));
    assert_eq!(total(days(begin, 3).await), (6, 3), "the newest ones");
    assert_eq!(days(Timestamp::from_micros(i64::MAX), 100).await, [(0, 0); 0]);
    let contributors = store.project_contributors(world.project, 10).await.unwrap();
    let shares: Vec<_> = contributors
        .iter()
        .map(|contributor| {
            (
                contributor.name.as_str(),
                contributor.contributions,
                contributor.accepted,
            )
        })
        .collect();
    assert_eq!(shares, [("second", 3, 6), ("collector", 1, 2)]);
}

async fn apply(store: &Store, outcomes: Vec<OutcomeRow>) -> Vec<bool> {
    let applied = store.outcomes_apply(outcomes).await.unwrap();
    applied.into_iter().map(|applied| applied.changed).collect()
}

/// An outcome that quotes a record with U+0000 does not stop those behind it.
pub async fn an_outcome_is_kept_whatever_its_texts(url: &str) {
    let store = open(url).await;
    let world = World::new(&store).await;
    let id = world.submitted(&store, 1).await[0];
    let resolution = Resolution::Rejected {
        code: "refused".to_owned(),
        message: "the value is `a\0b`".to_owned(),
    };
    assert!(store.outcomes_apply(vec![outcome(id, resolution)]).await.unwrap()[0].changed);
    let row = store.contribution(id).await.unwrap().unwrap();
    assert_eq!(row.reject_message.as_deref(), Some("the value is `a\u{fffd}b`"));
}

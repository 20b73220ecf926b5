//! Scenarios about losses of history that an administrator accepts.

use std::sync::Arc;
use std::time::Duration;

use types::{ContributionId, Version};

use super::fixture::{World, at, open, outcome};
use crate::{
    ContributionLoss, ContributionStatus, Loss, LossAccepted, NewLoss, OutcomeRow, Resolution, RunCounts, RunEnd,
    RunOutcome, SeenCollector, Store,
};

/// A root that no other letter gives.
fn root(letter: char) -> String {
    letter.to_string().repeat(64)
}

fn merged(version: u64, letter: char) -> Resolution {
    Resolution::Merged {
        version: Version(version),
        accepted: 2,
        record_count: 2 * version,
        root: root(letter),
    }
}

/// A world with a merged contribution for each letter, the root of its version.
async fn world(store: &Store, letters: &str) -> (World, Vec<ContributionId>) {
    let world = World::new(store).await;
    let ids = world.submitted(store, letters.len()).await;
    let told = (1..).zip(letters.chars()).zip(&ids);
    let outcomes = told.map(|((version, letter), &id)| outcome(id, merged(version, letter)));
    let applied = store.outcomes_apply(outcomes.collect()).await.unwrap();
    assert!(applied.iter().all(|applied| applied.changed));
    (world, ids)
}

/// Accepts that the table has only the versions with these roots.
async fn accept(store: &Store, world: &World, letters: &str) -> LossAccepted {
    let project = store.project_by_slug("weather", None).await.unwrap().unwrap();
    accept_at(store, world, letters, project.version).await
}

/// Accepts it for a table that was read when the project had this version.
async fn accept_at(store: &Store, world: &World, letters: &str, expected: Version) -> LossAccepted {
    let new = NewLoss {
        project: world.project,
        expected,
        roots: letters.chars().map(root).collect::<Arc<[_]>>(),
        reason: "the disk failed".to_owned(),
        now: at(100),
    };
    store.loss_accept(new).await.unwrap()
}

/// Accepts a loss. Returns it with the number of lost contributions.
fn loss_of(accepted: LossAccepted) -> (Loss, u64) {
    let loss = match accepted {
        LossAccepted::Accepted { loss, contributions } => Some((loss, contributions)),
        LossAccepted::NothingLost | LossAccepted::Stale => None,
    };
    loss.unwrap()
}

/// Returns the project's version and number of records, and the roots of its versions, newest first.
async fn head(store: &Store, world: &World) -> (u64, u64, Vec<String>) {
    let project = store.project_by_slug("weather", None).await.unwrap().unwrap();
    let versions = store.project_versions(world.project, None, 10).await.unwrap();
    let roots = versions.into_iter().map(|version| version.root).collect::<Vec<_>>();
    assert_eq!(project.head.map(|head| head.root), roots.first().cloned());
    (project.version.0, project.record_count, roots)
}

/// The versions after the last common one are removed. Their contributions stay merged and are marked as lost.
pub async fn an_accepted_loss_takes_the_versions_that_the_table_lacks(url: &str) {
    let store = open(url).await;
    let (world, ids) = world(&store, "abcd").await;
    let waiting = world.submitted(&store, 1).await[0];
    let (loss, contributions) = loss_of(accept(&store, &world, "ab").await);
    assert_eq!((loss.number, loss.kept, loss.version), (1, Version(2), Version(4)));
    assert_eq!(contributions, 2);
    assert_eq!(head(&store, &world).await, (2, 4, vec![root('b'), root('a')]));
    assert_eq!(store.losses(world.project).await.unwrap(), [loss]);
    let lost = store.lost_versions(world.project).await.unwrap();
    let lost: Vec<_> = lost.into_iter().map(|lost| (lost.version.0, lost.root)).collect();
    assert_eq!(lost, [(3, root('c')), (4, root('d'))]);

    let said = ContributionLoss {
        reason: "the disk failed".to_owned(),
        accepted_at: at(100),
    };
    for (id, loss) in ids.iter().zip([None, None, Some(&said), Some(&said)]) {
        let row = store.contribution(*id).await.unwrap().unwrap();
        assert_eq!((row.status, row.loss.as_ref()), (ContributionStatus::Merged, loss));
    }
    let by = store.project_contributors(world.project, 10).await.unwrap();
    assert_eq!((by[0].contributions, by[0].accepted), (2, 4));
    assert_eq!(store.project_counts(world.project).await.unwrap().versions, 2);
    // Open submissions were due in a minute.
    let due = store
        .contributions_due(at(100).minus(Duration::from_secs(50)), 10)
        .await
        .unwrap();
    assert!(due.is_empty());
    let due = store.contributions_due(at(100), 10).await.unwrap();
    assert_eq!(due.iter().map(|due| due.id).collect::<Vec<_>>(), [waiting]);
}

/// A loss forgets where the collector of the dataset was, and a run under way does not bring its place back.
pub async fn a_loss_forgets_the_place_in_the_source(url: &str) {
    let store = open(url).await;
    let (world, _) = world(&store, "abc").await;
    let collectors = store.collectors();
    let seen = ["weather", "other"].map(|dataset| SeenCollector {
        name: format!("of-{dataset}"),
        dataset: dataset.to_owned(),
        title: "Title".to_owned(),
        publisher: "Publisher".to_owned(),
        license: "CC0-1.0".to_owned(),
        schedule: "0 */6 * * *".to_owned(),
    });
    collectors.see(seen.to_vec(), at(0)).await.unwrap();
    let begin = async |name: &str, run: &str, now| {
        let begun = collectors.begin(name, run, at(now), Duration::from_mins(1), true).await;
        begun.unwrap().unwrap().cursor
    };
    let end = async |name: &str, run: &str| {
        let end = RunEnd {
            outcome: RunOutcome::Unchanged,
            counts: RunCounts::default(),
            version: None,
            reason: None,
            cursor: Some("{}".to_owned()),
            next_at: at(900),
            now: at(1),
        };
        collectors.end(name, run, end).await.unwrap()
    };
    for name in ["of-weather", "of-other"] {
        assert_eq!(begin(name, &format!("{name}-1"), 0).await, None);
        assert!(end(name, &format!("{name}-1")).await);
        assert_eq!(begin(name, &format!("{name}-2"), 2).await.as_deref(), Some("{}"));
    }
    loss_of(accept(&store, &world, "a").await);
    assert!(!end("of-weather", "of-weather-2").await);
    assert!(end("of-other", "of-other-2").await);
    assert_eq!(begin("of-weather", "of-weather-3", 3).await, None);
    assert_eq!(begin("of-other", "of-other-3", 3).await.as_deref(), Some("{}"));
}

/// Later merges reuse the numbers of lost versions, and the sums of the project follow.
pub async fn versions_after_a_loss_have_the_numbers_of_the_lost_ones(url: &str) {
    let store = open(url).await;
    let (world, ids) = world(&store, "abc").await;
    assert!(matches!(
        accept(&store, &world, "a").await,
        LossAccepted::Accepted { .. }
    ));
    let next = world.submitted(&store, 1).await[0];
    let told = vec![
        // The outcome of a lost contribution is published again.
        outcome(ids[1], merged(2, 'b')),
        outcome(next, merged(2, 'x')),
    ];
    let applied = store.outcomes_apply(told).await.unwrap();
    assert_eq!(
        applied.iter().map(|applied| applied.changed).collect::<Vec<_>>(),
        [false, true]
    );
    assert_eq!(head(&store, &world).await, (2, 4, vec![root('x'), root('a')]));
    assert!(store.contribution(ids[1]).await.unwrap().unwrap().loss.is_some());
    // A lost contribution that is merged again is no longer lost.
    let again = store
        .outcomes_apply(vec![outcome(ids[2], merged(3, 'y'))])
        .await
        .unwrap();
    assert!(again[0].changed);
    assert_eq!(store.contribution(ids[2]).await.unwrap().unwrap().loss, None);
    assert_eq!(
        head(&store, &world).await,
        (3, 6, vec![root('y'), root('x'), root('a')])
    );
    let by = store.project_contributors(world.project, 10).await.unwrap();
    assert_eq!((by[0].contributions, by[0].accepted), (3, 6));
}

/// If the table has another history of the same length, the database has that history afterwards.
pub async fn a_version_that_the_table_has_instead_takes_the_place_of_the_lost_one(url: &str) {
    let store = open(url).await;
    let (world, ids) = world(&store, "abc").await;
    let instead = world.submitted(&store, 1).await[0];
    let told = vec![outcome(instead, merged(3, 'z'))];
    assert!(store.outcomes_apply(told).await.unwrap()[0].changed);
    let (loss, contributions) = loss_of(accept(&store, &world, "abz").await);
    assert_eq!((loss.kept, loss.version, contributions), (Version(2), Version(3), 1));
    assert_eq!(
        head(&store, &world).await,
        (3, 6, vec![root('z'), root('b'), root('a')])
    );
    assert!(store.contribution(ids[2]).await.unwrap().unwrap().loss.is_some());
    assert_eq!(store.contribution(instead).await.unwrap().unwrap().loss, None);
    let by = store.project_contributors(world.project, 10).await.unwrap();
    assert_eq!((by[0].contributions, by[0].accepted), (3, 6));
}

/// A version that was merged while the table was read is not lost.
pub async fn a_version_merged_after_the_table_was_read_is_kept(url: &str) {
    let store = open(url).await;
    let (world, _) = world(&store, "abc").await;
    assert_eq!(accept_at(&store, &world, "ab", Version(2)).await, LossAccepted::Stale);
    assert_eq!(head(&store, &world).await.0, 3);
}

/// The same records after the same version have the same root, so only the time of the merge distinguishes a new merge
/// from an old outcome.
pub async fn a_lost_contribution_that_is_merged_again_has_its_version_again(url: &str) {
    let store = open(url).await;
    let (world, ids) = world(&store, "ab").await;
    let accepted = accept(&store, &world, "a").await;
    assert!(matches!(accepted, LossAccepted::Accepted { .. }));
    let old = outcome(ids[1], merged(2, 'b'));
    let new = OutcomeRow {
        at: at(200),
        ..old.clone()
    };
    let applied = store.outcomes_apply(vec![old, new]).await.unwrap();
    assert_eq!(
        applied.iter().map(|applied| applied.changed).collect::<Vec<_>>(),
        [false, true]
    );
    assert_eq!(store.contribution(ids[1]).await.unwrap().unwrap().loss, None);
    assert_eq!(head(&store, &world).await, (2, 4, vec![root('b'), root('a')]));
}

/// A table with every version, or more, has lost none. A table without versions has lost all.
pub async fn a_loss_is_accepted_only_where_there_is_one(url: &str) {
    let store = open(url).await;
    let (world, _) = world(&store, "ab").await;
    for letters in ["ab", "abc"] {
        assert_eq!(accept(&store, &world, letters).await, LossAccepted::NothingLost);
    }
    assert_eq!(head(&store, &world).await.0, 2);
    let (loss, _) = loss_of(accept(&store, &world, "").await);
    assert_eq!((loss.kept, loss.version), (Version(0), Version(2)));
    assert_eq!(head(&store, &world).await, (0, 0, Vec::new()));
    assert_eq!(accept(&store, &world, "").await, LossAccepted::NothingLost);
    assert_eq!(store.losses(world.project).await.unwrap().len(), 1);
}

//! Scenarios about deleted datasets.

use std::time::Duration;

use types::{DatasetId, OperatorId};

use super::fixture::{World, at, fresh_hash, merged, new_project, open, outcome, project, race, rejected};
use super::uploads::{begun, complete};
use crate::{
    ContributionStatus, DELETE_TABLE, Idempotency, Job, NewProject, ProjectChanges, ProjectCreated, ProjectDeleted,
    ProjectFilter, Replay, Store, SubmitOutcome, UploadCompleted, Visibility,
};

/// A world whose project is private.
async fn private(store: &Store) -> World {
    let world = World::new(store).await;
    let secret = NewProject {
        visibility: Visibility::Private,
        ..new_project(world.operator, "secret")
    };
    World {
        project: project(store, secret).await,
        ..world
    }
}

async fn delete(store: &Store, world: &World) -> ProjectDeleted {
    store
        .project_delete(world.project, world.operator, at(50))
        .await
        .unwrap()
}

async fn jobs(store: &Store, seconds: i64) -> Vec<Job> {
    let flow = store.flow();
    flow.jobs_lease(at(seconds), Duration::from_secs(1), 10).await.unwrap()
}

/// Clears everything, some rows at a time, and returns the number of changes that took.
async fn clear(store: &Store, id: DatasetId) -> u32 {
    let mut changes = 1;
    while !store.project_clear(id, 2, at(60)).await.unwrap() {
        changes += 1;
    }
    let mut last = None;
    loop {
        let page = store.project_clear_contributions(id, last, 2).await.unwrap();
        let Some(id) = page else { return changes };
        assert!(last < Some(id));
        (last, changes) = (Some(id), changes + 1);
    }
}

/// No look-up finds it, it frees a place, its texts are gone, and two jobs delete the rest.
pub async fn a_private_dataset_is_deleted_and_its_slug_stays(url: &str) {
    let store = open(url).await;
    let world = private(&store).await;
    let viewer = Some(world.operator);
    let filter = ProjectFilter {
        q: None,
        viewer,
        after: None,
        limit: 10,
    };
    assert_eq!(store.projects(&filter).await.unwrap().len(), 2);
    assert_eq!(delete(&store, &world).await, ProjectDeleted::Deleted);
    assert_eq!(delete(&store, &world).await, ProjectDeleted::Missing, "twice");
    assert_eq!(store.project_by_slug("secret", viewer).await.unwrap(), None);
    assert_eq!(store.project_owner(world.project).await.unwrap(), None);
    assert_eq!(store.projects(&filter).await.unwrap().len(), 1);
    assert_eq!(store.project_count(&filter).await.unwrap(), 1);
    assert_eq!(store.console().projects_of(world.operator, 10).await.unwrap().len(), 1);
    assert_eq!(store.datasets_of(world.operator).await.unwrap().len(), 1);
    let title = ProjectChanges {
        title: Some("Back again".to_owned()),
        ..ProjectChanges::default()
    };
    let changed = store.project_update(world.project, title, at(60), Duration::ZERO).await;
    assert!(changed.is_err(), "{changed:?}");

    let place = new_project(world.operator, "place");
    assert_eq!(store.project_create(place, 2).await.unwrap(), ProjectCreated::Created);
    let again = new_project(world.operator, "secret");
    assert_eq!(store.project_create(again, 9).await.unwrap(), ProjectCreated::SlugTaken);

    let entry = store.check_projects().await.unwrap();
    let entry = entry.into_iter().find(|project| project.slug == "secret").unwrap();
    assert_eq!(entry.deleted_at, Some(at(50)));
    assert_eq!(store.projects_deleted(at(50)).await.unwrap(), [world.project]);
    assert_eq!(store.projects_deleted(at(51)).await.unwrap(), []);

    let now = jobs(&store, 50).await;
    let later = jobs(&store, 50 + 3_600).await;
    assert_eq!(
        (now.len(), later.len()),
        (1, 2),
        "the first is due again, as nobody said that it is done"
    );
    for job in later {
        assert_eq!(job.kind, DELETE_TABLE);
        assert_eq!(job.payload, format!(r#"{{"dataset":"{}"}}"#, world.project));
    }
}

/// Undecided contributions are rejected and leave the outbox, and nothing new is taken.
pub async fn what_was_open_ends_with_its_dataset(url: &str) {
    let store = open(url).await;
    let world = private(&store).await;
    let ids = world.submitted(&store, 3).await;
    assert!(store.outcomes_apply(vec![outcome(ids[0], merged(1))]).await.unwrap()[0].changed);
    assert_eq!(store.open_count_and_bytes().await.unwrap().open, 2);
    assert_eq!(delete(&store, &world).await, ProjectDeleted::Deleted);
    assert_eq!(store.open_count_and_bytes().await.unwrap().open, 0);
    for (id, status) in ids.iter().zip([
        ContributionStatus::Merged,
        ContributionStatus::Rejected,
        ContributionStatus::Rejected,
    ]) {
        let contribution = store.contribution(*id).await.unwrap().unwrap();
        assert_eq!(contribution.status, status);
        if status == ContributionStatus::Rejected {
            assert_eq!(contribution.reject_code.as_deref(), Some("deleted"));
        }
    }
    let late = store.contribution_submit(world.contribution()).await.unwrap();
    assert!(matches!(late, SubmitOutcome::NotOpen { .. }), "{late:?}");
}

/// A public dataset, another operator's, and one that an answer links are not deleted.
pub async fn what_others_read_stays(url: &str) {
    let store = open(url).await;
    let world = private(&store).await;
    let public = store.project_by_slug("weather", None).await.unwrap().unwrap();
    let stranger = OperatorId::new(at(1));
    for (id, operator, expected) in [
        (public.id, world.operator, ProjectDeleted::NotPrivate),
        (world.project, stranger, ProjectDeleted::Missing),
        (DatasetId::new(at(2)), world.operator, ProjectDeleted::Missing),
    ] {
        assert_eq!(store.project_delete(id, operator, at(50)).await.unwrap(), expected);
    }
    assert!(
        store
            .project_by_slug("secret", Some(world.operator))
            .await
            .unwrap()
            .is_some()
    );
    assert_eq!(store.project_by_slug("weather", None).await.unwrap(), Some(public));
    assert_eq!(jobs(&store, 7_200).await, []);
    // Nothing is cleared of what is not deleted.
    let ids = world.submitted(&store, 1).await;
    assert!(store.outcomes_apply(vec![outcome(ids[0], merged(1))]).await.unwrap()[0].changed);
    assert!(store.project_clear(world.project, 10, at(60)).await.unwrap());
    assert_eq!(
        store
            .project_clear_contributions(world.project, None, 10)
            .await
            .unwrap(),
        None
    );
    assert_eq!(store.project_versions(world.project, None, 10).await.unwrap().len(), 1);
}

/// The outcome of a merge that came first, of a rejection, and of a wait.
pub async fn outcomes_of_a_deleted_dataset_change_nothing(url: &str) {
    let store = open(url).await;
    let world = private(&store).await;
    let ids = world.submitted(&store, 2).await;
    assert_eq!(delete(&store, &world).await, ProjectDeleted::Deleted);
    let late = vec![outcome(ids[0], merged(1)), outcome(ids[1], rejected("refused"))];
    for applied in store.outcomes_apply(late).await.unwrap() {
        assert!(!applied.changed, "{applied:?}");
    }
    assert_eq!(store.project_versions(world.project, None, 10).await.unwrap(), []);
    let found = store.contribution(ids[0]).await.unwrap().unwrap();
    assert_eq!(found.reject_code.as_deref(), Some("deleted"));
    // The letter of a message that could not be processed brings nothing back.
    assert_eq!(
        store
            .dead_letter_replay("none".to_owned(), |_, _| None, at(70))
            .await
            .unwrap(),
        Replay::Unknown
    );
}

/// Versions, keys, verdicts and sources go; ids, times and counts stay.
pub async fn a_deletion_is_cleared_in_pages(url: &str) {
    let store = open(url).await;
    let world = private(&store).await;
    let mut ids = world.submitted(&store, 6).await;
    let mut keyed = world.contribution();
    keyed.idempotency = Some(Idempotency {
        key: "once".to_owned(),
        body_hash: fresh_hash(),
        window: Duration::from_hours(24),
    });
    ids.push(keyed.id);
    assert_eq!(
        store.contribution_submit(keyed.clone()).await.unwrap(),
        SubmitOutcome::Submitted
    );
    let completed = begun(&store, &world, at(3)).await;
    let done = complete(&store, &world, completed, at(4)).await;
    assert_eq!(done, UploadCompleted::Completed);
    ids.push(completed);
    let expired = begun(&store, &world, at(4)).await;
    let outcomes = (1..)
        .zip(&ids)
        .map(|(version, id)| outcome(*id, merged(version)))
        .collect();
    assert!(
        store
            .outcomes_apply(outcomes)
            .await
            .unwrap()
            .iter()
            .all(|applied| applied.changed)
    );
    assert_eq!(store.project_counts(world.project).await.unwrap().versions, 8);
    let before = store.check_project(world.project).await.unwrap();
    assert_eq!(delete(&store, &world).await, ProjectDeleted::Deleted);
    assert!(clear(&store, world.project).await > 4, "in pages");
    assert_eq!(
        clear(&store, world.project).await,
        5,
        "again, nothing is left but the look at the contributions"
    );
    assert_eq!(store.project_versions(world.project, None, 10).await.unwrap(), []);
    assert_eq!(store.project_counts(world.project).await.unwrap().versions, 0);
    let after = store.check_project(world.project).await.unwrap();
    assert_eq!(after.versions, []);
    for (before, after) in before.contributions.iter().zip(&after.contributions) {
        assert_eq!(
            (before.id, before.rows, before.accepted, before.decided_at),
            (after.id, after.rows, after.accepted, after.decided_at)
        );
        assert_eq!(after.root, None);
    }
    for id in ids {
        assert_eq!(store.contribution_verdicts(id).await.unwrap(), None);
        assert_eq!(store.contribution(id).await.unwrap().unwrap().source_declaration, None);
    }
    for (upload, etags) in [(completed, Some("[]")), (expired, None)] {
        let upload = store.upload(upload).await.unwrap().unwrap();
        assert_eq!((upload.source_declaration, upload.etags.as_deref()), (None, etags));
    }
    // The key is free: its row is gone, and the project takes nothing.
    let again = store.contribution_submit(keyed).await.unwrap();
    assert!(matches!(again, SubmitOutcome::NotOpen { .. }), "{again:?}");
}

/// Two calls at the same instant delete once.
pub async fn one_of_many_deletions_wins(url: &str) {
    let stores = [open(url).await, open(url).await];
    let world = private(&stores[0]).await;
    let deleted = race(stores.clone(), 6, move |store, _| async move {
        delete(&store, &world).await
    })
    .await;
    let won = deleted
        .iter()
        .filter(|deleted| **deleted == ProjectDeleted::Deleted)
        .count();
    assert_eq!(won, 1, "{deleted:?}");
    assert_eq!(jobs(&stores[0], 7_200).await.len(), 2);
}

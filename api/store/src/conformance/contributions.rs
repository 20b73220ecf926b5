//! Scenarios about acknowledging contributions and the outbox.

use std::time::Duration;

use types::{Classify, ContributionId, DatasetId, Kind};

use super::fixture::{World, agent, at, merged, new_project, open, outcome, project};
use crate::{
    Allowance, ContributionStatus, Idempotency, NewContribution, Outbox, ProjectChanges, ProjectStatus, Store,
    SubmitOutcome, Swept,
};

const DAY: Duration = Duration::from_hours(24);

/// The row describes the contribution, and the outbox has the bytes of its submission.
pub async fn an_acknowledged_contribution_is_kept_with_its_submission(url: &str) {
    let store = open(url).await;
    let world = World::new(&store).await;
    let new = NewContribution {
        submission: vec![0, 255, 10, 0],
        ..world.contribution()
    };
    let id = new.id;
    assert_eq!(store.contribution_submit(new).await.unwrap(), SubmitOutcome::Submitted);

    let row = store.contribution(id).await.unwrap().unwrap();
    assert_eq!(
        (row.project, row.agent, row.operator),
        (world.project, world.agent, world.operator)
    );
    assert_eq!(
        (row.agent_name.as_str(), row.rows, row.private),
        ("collector", 3, false)
    );
    assert_eq!(row.source_declaration.as_deref(), Some("measured on the roof"));
    assert_eq!(
        (row.status, row.generation, row.submitted_at),
        (ContributionStatus::Submitted, 0, at(0))
    );
    assert_eq!((row.decided_at, row.version, row.reject_code), (None, None, None));
    assert_eq!(store.contribution_verdicts(id).await.unwrap(), None);
    let open = store.contributions_open_at_start(10, None).await.unwrap();
    assert_eq!((open.len(), open[0].id, open[0].project), (1, id, world.project));
    assert_eq!(
        (open[0].submission.as_slice(), open[0].attempts),
        ([0, 255, 10, 0].as_slice(), 0)
    );
    assert_eq!(store.contribution(ContributionId::new(at(0))).await.unwrap(), None);
}

/// The window counts from the first use; after it, the key is as good as new.
pub async fn a_key_replays_within_its_window_and_not_after(url: &str) {
    let store = open(url).await;
    let world = World::new(&store).await;
    let first = keyed(world, "k", 1, 0);
    let id = first.id;
    assert_eq!(
        store.contribution_submit(first).await.unwrap(),
        SubmitOutcome::Submitted
    );
    for seconds in [0, 5, 86_399] {
        assert_eq!(
            store.contribution_submit(keyed(world, "k", 1, seconds)).await.unwrap(),
            SubmitOutcome::Replayed(id)
        );
    }
    for (key, body, seconds, expected) in [
        ("k", 1, 86_399, Some(SubmitOutcome::Replayed(id))),
        ("k", 2, 86_399, Some(SubmitOutcome::KeyReused)),
        ("k", 1, 86_400, None),
        ("other", 1, 0, None),
    ] {
        let used = store.idempotency_used(&keyed(world, key, body, seconds)).await.unwrap();
        assert_eq!(used, expected, "{key} {body} {seconds}");
    }
    assert_eq!(store.idempotency_used(&world.contribution()).await.unwrap(), None);
    let later = keyed(world, "k", 2, 86_400);
    let later_id = later.id;
    assert_eq!(
        store.contribution_submit(later).await.unwrap(),
        SubmitOutcome::Submitted
    );
    assert_eq!(
        store.contribution_submit(keyed(world, "k", 2, 86_401)).await.unwrap(),
        SubmitOutcome::Replayed(later_id)
    );
    assert_eq!(count(&store).await, 2);
}

/// Two bodies with one idempotency key: the second is refused and adds no row.
pub async fn a_key_with_another_body_is_refused(url: &str) {
    let store = open(url).await;
    let world = World::new(&store).await;
    assert_eq!(
        store.contribution_submit(keyed(world, "k", 1, 0)).await.unwrap(),
        SubmitOutcome::Submitted
    );
    assert_eq!(
        store.contribution_submit(keyed(world, "k", 2, 1)).await.unwrap(),
        SubmitOutcome::KeyReused
    );
    assert_eq!(count(&store).await, 1);
}

/// Another agent or another project may use the same key.
pub async fn a_key_belongs_to_its_agent_and_project(url: &str) {
    let store = open(url).await;
    let world = World::new(&store).await;
    let other_agent = World {
        agent: agent(&store, world.operator, "second").await,
        ..world
    };
    let other_project = World {
        project: project(&store, new_project(world.operator, "climate")).await,
        ..world
    };
    for world in [world, other_agent, other_project] {
        assert_eq!(
            store.contribution_submit(keyed(world, "k", 1, 0)).await.unwrap(),
            SubmitOutcome::Submitted
        );
    }
}

/// Paused and archived projects refuse new contributions and still replay old ones.
pub async fn a_project_that_is_not_open_refuses(url: &str) {
    let store = open(url).await;
    let world = World::new(&store).await;
    let first = keyed(world, "k", 1, 0);
    let id = first.id;
    assert_eq!(
        store.contribution_submit(first).await.unwrap(),
        SubmitOutcome::Submitted
    );
    for status in [ProjectStatus::Paused, ProjectStatus::Archived] {
        let changes = ProjectChanges {
            status: Some(status),
            ..ProjectChanges::default()
        };
        drop(store.project_update(world.project, changes, at(1), DAY).await.unwrap());
        assert_eq!(
            store.contribution_submit(keyed(world, "other", 1, 1)).await.unwrap(),
            SubmitOutcome::NotOpen { status }
        );
        assert_eq!(
            store.contribution_submit(keyed(world, "k", 1, 1)).await.unwrap(),
            SubmitOutcome::Replayed(id)
        );
    }
    let nowhere = NewContribution {
        project: DatasetId::new(at(0)),
        ..world.contribution()
    };
    assert_eq!(
        store.contribution_submit(nowhere).await.unwrap_err().kind(),
        Kind::NotFound
    );
}

/// A refusal keeps neither the key nor the allowance.
pub async fn a_refused_contribution_leaves_nothing(url: &str) {
    let store = open(url).await;
    let world = World::new(&store).await;
    let allowed = |limit: u32| NewContribution {
        allowance: Some(Allowance { limit, day: 1 }),
        ..keyed(world, "k", 1, 0)
    };
    assert_eq!(
        store.contribution_submit(allowed(0)).await.unwrap(),
        SubmitOutcome::AllowanceSpent
    );
    assert_eq!(
        store.contribution_submit(allowed(1)).await.unwrap(),
        SubmitOutcome::Submitted
    );

    // The id is in use: the statement fails after the key was claimed and the allowance used.
    let taken = store.contributions_open_at_start(1, None).await.unwrap()[0].id;
    let clash = |id| NewContribution {
        id,
        allowance: Some(Allowance { limit: 2, day: 1 }),
        ..keyed(world, "k2", 1, 0)
    };
    let error = store.contribution_submit(clash(taken)).await.unwrap_err();
    assert_eq!(error.kind(), Kind::Internal);
    let fresh = ContributionId::new(at(0));
    assert_eq!(
        store.contribution_submit(clash(fresh)).await.unwrap(),
        SubmitOutcome::Submitted
    );
    assert_eq!(count(&store).await, 2);
}

/// The allowance counts per operator and day. A contribution that needs none does not count.
pub async fn an_allowance_is_per_operator_and_day(url: &str) {
    let store = open(url).await;
    let world = World::new(&store).await;
    let submit = async |day: Option<i64>| {
        let new = NewContribution {
            allowance: day.map(|day| Allowance { limit: 2, day }),
            ..world.contribution()
        };
        store.contribution_submit(new).await.unwrap()
    };
    for day in [Some(1), None, Some(1), Some(2)] {
        assert_eq!(submit(day).await, SubmitOutcome::Submitted, "{day:?}");
    }
    assert_eq!(submit(Some(1)).await, SubmitOutcome::AllowanceSpent);
    assert_eq!(submit(None).await, SubmitOutcome::Submitted);
    assert_eq!(submit(Some(2)).await, SubmitOutcome::Submitted);
    assert_eq!(submit(Some(2)).await, SubmitOutcome::AllowanceSpent);
}

/// Pruning forgets the oldest keys first, never more than asked, never those within the window.
pub async fn old_keys_are_pruned(url: &str) {
    let store = open(url).await;
    let world = World::new(&store).await;
    for (key, seconds) in [("a", 0), ("b", 1), ("c", 2)] {
        let submitted = store.contribution_submit(keyed(world, key, 1, seconds)).await.unwrap();
        assert_eq!(submitted, SubmitOutcome::Submitted);
    }
    assert_eq!(store.idempotency_prune(at(2), 1).await.unwrap(), 1);
    assert_eq!(store.idempotency_prune(at(2), 10).await.unwrap(), 1);
    assert_eq!(store.idempotency_prune(at(2), 10).await.unwrap(), 0);
    assert_eq!(
        store.contribution_submit(keyed(world, "a", 1, 3)).await.unwrap(),
        SubmitOutcome::Submitted
    );
    assert!(matches!(
        store.contribution_submit(keyed(world, "c", 1, 3)).await.unwrap(),
        SubmitOutcome::Replayed(_)
    ));
}

/// Open submissions come when they are due, in the order they are overdue, until they are closed.
pub async fn the_outbox_gives_what_is_due(url: &str) {
    let store = open(url).await;
    let world = World::new(&store).await;
    assert_eq!(store.open_count_and_bytes().await.unwrap(), Outbox::default());
    let mut ids = Vec::new();
    for seconds in [30, 10, 20] {
        let new = NewContribution {
            first_sweep: at(seconds),
            submission: vec![7; 5],
            ..world.contribution()
        };
        ids.push(new.id);
        assert_eq!(store.contribution_submit(new).await.unwrap(), SubmitOutcome::Submitted);
    }
    let due = async |seconds, limit| -> Vec<(ContributionId, u32)> {
        let due = store.contributions_due(at(seconds), limit).await.unwrap();
        due.into_iter().map(|due| (due.id, due.attempts)).collect()
    };
    assert_eq!(
        store.open_count_and_bytes().await.unwrap(),
        Outbox { open: 3, bytes: 15 }
    );
    assert_eq!(due(9, 10).await, []);
    assert_eq!(due(30, 10).await, [(ids[1], 0), (ids[2], 0), (ids[0], 0)]);
    assert_eq!(due(30, 1).await, [(ids[1], 0)]);

    let swept = Swept {
        id: ids[1],
        next_sweep: at(25),
    };
    let gone = Swept {
        id: ContributionId::new(at(0)),
        next_sweep: at(25),
    };
    store.contributions_swept(vec![swept, gone]).await.unwrap();
    assert_eq!(due(25, 10).await, [(ids[2], 0), (ids[1], 1)]);

    let applied = store.outcomes_apply(vec![outcome(ids[2], merged(1))]).await.unwrap();
    assert!(applied[0].changed);
    assert_eq!(due(30, 10).await, [(ids[1], 1), (ids[0], 0)]);
    assert_eq!(
        store.open_count_and_bytes().await.unwrap(),
        Outbox { open: 2, bytes: 10 }
    );

    // While the review is paused, only what goes to private projects is asked for.
    let private = NewContribution {
        private: true,
        first_sweep: at(40),
        ..world.contribution()
    };
    let hidden = private.id;
    assert_eq!(
        store.contribution_submit(private).await.unwrap(),
        SubmitOutcome::Submitted
    );
    let of_private = async |seconds| -> Vec<ContributionId> {
        let due = store.private_contributions_due(at(seconds), 10).await.unwrap();
        due.into_iter().map(|due| due.id).collect()
    };
    assert_eq!((of_private(39).await, of_private(40).await), (vec![], vec![hidden]));
    assert_eq!(due(40, 10).await, [(ids[1], 1), (ids[0], 0), (hidden, 0)]);

    let mut at_start = Vec::new();
    while let Some(next) = store
        .contributions_open_at_start(1, at_start.last().copied())
        .await
        .unwrap()
        .pop()
    {
        at_start.push(next.id);
    }
    let mut open = vec![ids[0], ids[1], hidden];
    open.sort();
    assert_eq!(at_start, open);
}

fn keyed(world: World, key: &str, body: u8, seconds: i64) -> NewContribution {
    NewContribution {
        now: at(seconds),
        idempotency: Some(Idempotency {
            key: key.to_owned(),
            body_hash: [body; 32],
            window: DAY,
        }),
        ..world.contribution()
    }
}

async fn count(store: &Store) -> usize {
    store.contributions_open_at_start(1_000, None).await.unwrap().len()
}

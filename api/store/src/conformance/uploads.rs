//! Scenarios about uploads.

use std::time::Duration;

use types::{ContributionId, Timestamp};

use super::fixture::{World, at, merged, open, operator, outcome, race, rejected};
use crate::{
    Allowance, Compression, NewContribution, ProjectChanges, ProjectStatus, Store, Upload, UploadAbandoned,
    UploadBounds, UploadCompleted, UploadCreated, UploadStatus,
};

const BOUNDS: UploadBounds = UploadBounds {
    open: 3,
    bytes: 1_000,
    allowance: None,
};
const KEPT: Duration = Duration::from_hours(1);

fn new(world: &World, now: Timestamp) -> Upload {
    Upload {
        id: ContributionId::new(now),
        project: world.project,
        agent: world.agent,
        operator: world.operator,
        source_declaration: Some("logged".to_owned()),
        bytes: 100,
        parts: 4,
        part_size: 30,
        compression: Compression::Gzip,
        status: UploadStatus::Open,
        created_at: now,
        expires_at: now.plus(Duration::from_mins(1)),
        etags: None,
    }
}

pub(super) async fn begun(store: &Store, world: &World, now: Timestamp) -> ContributionId {
    let upload = new(world, now);
    let id = upload.id;
    assert_eq!(
        store.upload_create(upload, BOUNDS).await.unwrap(),
        UploadCreated::Created
    );
    id
}

pub(super) async fn complete(store: &Store, world: &World, id: ContributionId, now: Timestamp) -> UploadCompleted {
    let contribution = NewContribution {
        id,
        rows: 0,
        now,
        ..world.contribution()
    };
    store.upload_complete("[\"a\"]".to_owned(), contribution).await.unwrap()
}

async fn to_free(store: &Store, now: Timestamp) -> Vec<ContributionId> {
    store.uploads_to_free(now, KEPT, None, 10).await.unwrap()
}

/// An upload is found as it was begun, and becomes a contribution with an outbox entry once.
pub async fn an_upload_becomes_a_contribution_once(url: &str) {
    let store = open(url).await;
    let world = World::new(&store).await;
    let upload = new(&world, at(0));
    let id = upload.id;
    assert_eq!(
        store.upload_create(upload.clone(), BOUNDS).await.unwrap(),
        UploadCreated::Created
    );
    assert_eq!(store.upload(id).await.unwrap().as_ref(), Some(&upload));
    assert!(store.contribution(id).await.unwrap().is_none());
    assert_eq!(complete(&store, &world, id, at(1)).await, UploadCompleted::Completed);
    assert_eq!(complete(&store, &world, id, at(2)).await, UploadCompleted::Before);
    let found = store.upload(id).await.unwrap().unwrap();
    assert_eq!(
        (found.status, found.etags.as_deref()),
        (UploadStatus::Completed, Some("[\"a\"]"))
    );
    assert_eq!(store.contribution(id).await.unwrap().unwrap().submitted_at, at(1));
    assert_eq!(store.contributions_open_at_start(9, None).await.unwrap().len(), 1);
    // Completed, it does not expire.
    assert_eq!(to_free(&store, at(1_000)).await, []);
    assert_eq!(complete(&store, &world, id, at(1_000)).await, UploadCompleted::Before);
}

/// An operator's open uploads and their bytes are limited. Expired and completed uploads no longer count.
pub async fn an_operator_never_exceeds_its_uploads(url: &str) {
    let store = open(url).await;
    let world = World::new(&store).await;
    let mut ids = Vec::new();
    for second in 0..3 {
        ids.push(begun(&store, &world, at(second)).await);
    }
    let too_many = UploadCreated::TooMany { until: at(60) };
    assert_eq!(store.upload_create(new(&world, at(3)), BOUNDS).await.unwrap(), too_many);
    assert_eq!(
        complete(&store, &world, ids[1], at(3)).await,
        UploadCompleted::Completed
    );
    begun(&store, &world, at(4)).await;
    assert_eq!(store.upload_create(new(&world, at(5)), BOUNDS).await.unwrap(), too_many);
    // The first has expired, although its status is still open.
    begun(&store, &world, at(60)).await;
    let large = Upload {
        bytes: 501,
        ..new(&world, at(62))
    };
    let full = UploadCreated::Full { held: 500 };
    assert_eq!(store.upload_create(large, BOUNDS).await.unwrap(), full);
}

/// Of two concurrent uploads for one remaining slot, one is created.
pub async fn uploads_are_counted_under_contention(url: &str) {
    let stores = [open(url).await, open(url).await];
    let world = World::new(&stores[0]).await;
    let created = race(stores, 8, move |store, _| async move {
        store.upload_create(new(&world, at(0)), BOUNDS).await.unwrap()
    })
    .await;
    let count = created
        .iter()
        .filter(|created| **created == UploadCreated::Created)
        .count();
    assert_eq!(count, 3, "{created:?}");
}

/// A refused upload adds no row, and the allowance is per day.
pub async fn a_refused_upload_leaves_nothing(url: &str) {
    let store = open(url).await;
    let world = World::new(&store).await;
    let bounds = UploadBounds {
        allowance: Some(Allowance { limit: 1, day: 7 }),
        ..BOUNDS
    };
    let first = new(&world, at(0));
    assert_eq!(
        store.upload_create(first, bounds).await.unwrap(),
        UploadCreated::Created
    );
    let second = new(&world, at(0));
    let id = second.id;
    assert_eq!(
        store.upload_create(second, bounds).await.unwrap(),
        UploadCreated::AllowanceSpent
    );
    assert!(store.upload(id).await.unwrap().is_none());
}

/// The bounds of an operator that may begin `limit` uploads on the day of `at(0)`.
fn allowed(limit: u32) -> UploadBounds {
    UploadBounds {
        allowance: Some(Allowance {
            limit,
            day: at(0).day(),
        }),
        ..BOUNDS
    }
}

/// An upload that expires was never a contribution: the day of its beginning has its allowance again, once.
pub async fn what_expires_gives_its_allowance_back(url: &str) {
    let store = open(url).await;
    let world = World::new(&store).await;
    let bounds = allowed(2);
    let create = async || store.upload_create(new(&world, at(0)), bounds).await.unwrap();
    let completed = new(&world, at(0));
    let id = completed.id;
    let created = store.upload_create(completed, bounds).await.unwrap();
    assert_eq!(created, UploadCreated::Created);
    assert_eq!(create().await, UploadCreated::Created);
    assert_eq!(create().await, UploadCreated::AllowanceSpent);
    assert_eq!(complete(&store, &world, id, at(1)).await, UploadCompleted::Completed);
    for second in [60, 61] {
        assert_eq!(to_free(&store, at(second)).await.len(), 1);
    }
    assert_eq!(create().await, UploadCreated::Created);
    assert_eq!(
        create().await,
        UploadCreated::AllowanceSpent,
        "what was completed counts"
    );
}

/// The uploads of a suspended operator are over, and those of others go on.
pub async fn a_suspension_ends_uploads(url: &str) {
    let store = open(url).await;
    let world = World::new(&store).await;
    let other = World {
        operator: operator(&store, "grace@example.org").await,
        ..world
    };
    let (theirs, others) = (begun(&store, &world, at(0)).await, begun(&store, &other, at(0)).await);
    let suspended = store.operator_suspend(world.operator, "spam".to_owned(), at(1)).await;
    assert!(suspended.is_ok(), "{suspended:?}");
    assert_eq!(to_free(&store, at(1)).await, [theirs]);
    assert_eq!(complete(&store, &world, theirs, at(2)).await, UploadCompleted::Expired);
    assert_eq!(
        complete(&store, &other, others, at(2)).await,
        UploadCompleted::Completed
    );
}

/// A closed project accepts neither a new upload nor the completion of one.
pub async fn a_project_that_is_not_open_takes_no_upload(url: &str) {
    let store = open(url).await;
    let world = World::new(&store).await;
    let id = begun(&store, &world, at(0)).await;
    let pause = ProjectChanges {
        status: Some(ProjectStatus::Paused),
        ..ProjectChanges::default()
    };
    let updated = store.project_update(world.project, pause, at(1), KEPT).await;
    assert!(updated.is_ok(), "{updated:?}");
    let status = ProjectStatus::Paused;
    assert_eq!(
        complete(&store, &world, id, at(2)).await,
        UploadCompleted::NotOpen { status }
    );
    assert_eq!(store.upload(id).await.unwrap().unwrap().status, UploadStatus::Open);
    assert!(store.contribution(id).await.unwrap().is_none());
    let another = store.upload_create(new(&world, at(3)), BOUNDS).await.unwrap();
    assert_eq!(another, UploadCreated::NotOpen { status });
}

/// The bytes of expired and of decided uploads are returned for deletion until they are marked as freed.
pub async fn bytes_are_freed_once_nobody_needs_them(url: &str) {
    let store = open(url).await;
    let world = World::new(&store).await;
    let expires = begun(&store, &world, at(0)).await;
    assert_eq!(to_free(&store, at(59)).await, []);
    assert_eq!(to_free(&store, at(60)).await, [expires]);
    assert_eq!(
        complete(&store, &world, expires, at(60)).await,
        UploadCompleted::Expired
    );
    assert_eq!(to_free(&store, at(60)).await, [expires]);
    store.upload_freed(expires, at(61)).await.unwrap();
    assert_eq!(to_free(&store, at(61)).await, []);

    let mut ids = Vec::new();
    for second in 100..103 {
        let id = begun(&store, &world, at(second)).await;
        assert_eq!(
            complete(&store, &world, id, at(second)).await,
            UploadCompleted::Completed
        );
        ids.push(id);
    }
    store.upload_freed(ids[0], at(103)).await.unwrap();
    let outcomes = vec![
        outcome(ids[0], merged(1)),
        outcome(ids[1], rejected("refused")),
        outcome(ids[2], rejected("unprocessable")),
    ];
    let applied = store.outcomes_apply(outcomes).await.unwrap();
    assert!(applied.iter().all(|applied| applied.changed));
    assert_eq!(to_free(&store, at(104)).await, [ids[1]]);
    // An unprocessable contribution may be replayed for a while. These were decided at 10 s.
    assert_eq!(to_free(&store, at(10 + 3_600)).await, [ids[1], ids[2]]);
    let page = async |after, limit| {
        let now = at(10 + 3_600);
        store.uploads_to_free(now, KEPT, after, limit).await.unwrap()
    };
    assert_eq!(page(None, 1).await, [ids[1]]);
    assert_eq!(page(Some(ids[1]), 1).await, [ids[2]]);
    assert_eq!(page(Some(ids[2]), 1).await, []);
}

/// An open upload is never marked as freed.
pub async fn an_open_upload_is_not_freed(url: &str) {
    let store = open(url).await;
    let world = World::new(&store).await;
    let id = begun(&store, &world, at(0)).await;
    store.upload_freed(id, at(1)).await.unwrap();
    assert_eq!(complete(&store, &world, id, at(2)).await, UploadCompleted::Completed);
}

/// An abandoned upload does not count as open and is freed. A completed upload cannot be abandoned.
pub async fn what_is_abandoned_is_over_at_once(url: &str) {
    let store = open(url).await;
    let world = World::new(&store).await;
    let allowance = Some(Allowance {
        limit: 1,
        day: at(0).day(),
    });
    let bounds = UploadBounds {
        open: 1,
        allowance,
        ..BOUNDS
    };
    let first = new(&world, at(0));
    let id = first.id;
    assert_eq!(
        store.upload_create(first, bounds).await.unwrap(),
        UploadCreated::Created
    );
    // The second call returns no allowance.
    for abandoned in [UploadAbandoned::Abandoned, UploadAbandoned::Before] {
        assert_eq!(store.upload_abandon(id).await.unwrap(), abandoned);
    }
    assert_eq!(complete(&store, &world, id, at(1)).await, UploadCompleted::Expired);
    assert_eq!(to_free(&store, at(1)).await, [id]);
    let next = new(&world, at(1));
    let second = next.id;
    assert_eq!(store.upload_create(next, bounds).await.unwrap(), UploadCreated::Created);
    assert_eq!(
        complete(&store, &world, second, at(2)).await,
        UploadCompleted::Completed
    );
    let completed = store.upload_abandon(second).await.unwrap();
    assert_eq!(completed, UploadAbandoned::Completed);
    let missing = store.upload_abandon(ContributionId::new(at(2))).await.unwrap();
    assert_eq!(missing, UploadAbandoned::Before);
    let third = store.upload_create(new(&world, at(3)), bounds).await.unwrap();
    assert_eq!(third, UploadCreated::AllowanceSpent);
    assert_eq!(
        store.upload(second).await.unwrap().unwrap().status,
        UploadStatus::Completed
    );
}

/// An operator's open uploads are listed with their names, oldest first, and no others.
pub async fn open_uploads_are_listed_for_their_operator(url: &str) {
    let store = open(url).await;
    let world = World::new(&store).await;
    let other = World {
        operator: operator(&store, "grace@example.org").await,
        ..world
    };
    begun(&store, &other, at(0)).await;
    let mut ids = Vec::new();
    for second in [2, 1, 0] {
        ids.insert(0, begun(&store, &world, at(second)).await);
    }
    let listed = async |now| {
        let listed = store.uploads_open(world.operator, now).await.unwrap();
        listed.iter().map(|open| open.upload.id).collect::<Vec<_>>()
    };
    assert_eq!(listed(at(3)).await, ids);
    let first = store.uploads_open(world.operator, at(3)).await.unwrap().remove(0);
    assert_eq!(Some(&first.upload), store.upload(ids[0]).await.unwrap().as_ref());
    let (slug, _) = store.project_owner(world.project).await.unwrap().unwrap();
    assert_eq!(first.slug, slug);
    assert!(!first.agent.is_empty());
    // Those that are over for any reason are left out.
    assert_eq!(
        complete(&store, &world, ids[1], at(3)).await,
        UploadCompleted::Completed
    );
    assert_eq!(listed(at(60)).await, [ids[2]]);
    assert_eq!(store.upload_abandon(ids[2]).await.unwrap(), UploadAbandoned::Abandoned);
    assert_eq!(listed(at(3)).await, [ids[0]]);
}

/// Of a cancellation and a completion at the same time, one takes effect.
pub async fn an_upload_is_cancelled_or_completed(url: &str) {
    let stores = [open(url).await, open(url).await];
    let world = World::new(&stores[0]).await;
    for second in 0..8 {
        let id = begun(&stores[0], &world, at(second)).await;
        let ended = race(stores.clone(), 4, move |store, task| async move {
            if task % 2 == 0 {
                store.upload_abandon(id).await.unwrap() == UploadAbandoned::Abandoned
            } else {
                complete(&store, &world, id, at(second)).await == UploadCompleted::Completed
            }
        })
        .await;
        assert_eq!(ended.iter().filter(|ended| **ended).count(), 1, "{ended:?}");
        let status = stores[0].upload(id).await.unwrap().unwrap().status;
        let is_contribution = stores[0].contribution(id).await.unwrap().is_some();
        assert_eq!(is_contribution, status == UploadStatus::Completed);
        // What is cancelled holds its slot no longer, and what is completed does not either.
        assert_eq!(stores[0].uploads_open(world.operator, at(second)).await.unwrap(), []);
    }
}

/// Whoever cancels an upload, at once or when it has expired, gives its allowance back once.
pub async fn what_is_cancelled_gives_its_allowance_back_once(url: &str) {
    let stores = [open(url).await, open(url).await];
    let store = stores[0].clone();
    let world = World::new(&store).await;
    let bounds = allowed(2);
    let create = async || {
        let upload = new(&world, at(0));
        (upload.id, store.upload_create(upload, bounds).await.unwrap())
    };
    let ((kept, _), (id, created)) = (create().await, create().await);
    assert_eq!(created, UploadCreated::Created);
    assert_eq!(create().await.1, UploadCreated::AllowanceSpent);
    let abandoned = race(stores, 8, move |store, _| async move {
        store.upload_abandon(id).await.unwrap()
    })
    .await;
    let once = abandoned
        .iter()
        .filter(|abandoned| **abandoned == UploadAbandoned::Abandoned);
    assert_eq!(once.count(), 1, "{abandoned:?}");
    // Neither the sweep nor a later call gives anything back again.
    assert_eq!(to_free(&store, at(1)).await, [id]);
    assert_eq!(create().await.1, UploadCreated::Created);
    assert_eq!(create().await.1, UploadCreated::AllowanceSpent);
    // An upload past its time can be cancelled before the sweep expires it.
    assert_eq!(store.upload_abandon(kept).await.unwrap(), UploadAbandoned::Abandoned);
    assert_eq!(to_free(&store, at(1)).await.len(), 2);
}

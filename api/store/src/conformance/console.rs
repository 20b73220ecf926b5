//! Scenarios about the lists of the console.

use types::ContributionId;

use super::fixture::{World, agent, at, merged, new_project, open, operator, outcome, project, rejected, waiting};
use crate::{
    Compression, ContributionStatus, Selection, Store, SubmitOutcome, Upload, UploadBounds, UploadCreated, UploadStatus,
};

const DAY: i64 = 86_400;

/// Contributions of both days, newest first: one merged, one rejected, one that could not be processed, one held and
/// one that is not judged.
async fn five(store: &Store, world: &World) -> Vec<ContributionId> {
    let mut ids = Vec::new();
    for (number, day) in [0, 0, 1, 1, 1].into_iter().enumerate() {
        let mut new = world.contribution();
        let now = at(day * DAY + i64::try_from(number).unwrap());
        (new.id, new.now) = (ContributionId::new(now), now);
        ids.push(new.id);
        assert_eq!(store.contribution_submit(new).await.unwrap(), SubmitOutcome::Submitted);
    }
    let outcomes = vec![
        outcome(ids[0], merged(1)),
        outcome(ids[1], rejected("all_duplicates")),
        outcome(ids[2], rejected("unprocessable")),
        outcome(ids[3], waiting(Some(90))),
    ];
    for applied in store.outcomes_apply(outcomes).await.unwrap() {
        assert!(applied.changed);
    }
    ids.reverse();
    ids
}

/// Each selection has its contributions, newest first, page by page, and nobody else's.
pub async fn contributions_are_listed_by_what_became_of_them(url: &str) {
    let store = open(url).await;
    let world = World::new(&store).await;
    let ids = five(&store, &world).await;
    let eve = operator(&store, "eve@example.org").await;
    let console = store.console();
    let listed = async |selection, before, limit| {
        let rows = console
            .contributions_of(world.operator, selection, before, limit)
            .await
            .unwrap();
        rows.into_iter().map(|row| row.id).collect::<Vec<_>>()
    };
    assert_eq!(listed(Selection::All, None, 10).await, ids);
    assert_eq!(listed(Selection::All, None, 2).await, ids[..2]);
    assert_eq!(listed(Selection::All, Some(ids[1]), 2).await, ids[2..4]);
    assert_eq!(listed(Selection::Submitted, None, 10).await, [ids[0]]);
    assert_eq!(listed(Selection::Waiting, None, 10).await, [ids[1]]);
    assert_eq!(listed(Selection::Dead, None, 10).await, [ids[2]]);
    assert_eq!(listed(Selection::Rejected, None, 10).await, [ids[3]]);
    assert_eq!(listed(Selection::Merged, None, 10).await, [ids[4]]);
    let none = console.contributions_of(eve, Selection::All, None, 10).await.unwrap();
    assert!(none.is_empty());
    let to = console.contributions_to(world.project, Some(ids[0]), 2).await.unwrap();
    assert_eq!(to.iter().map(|row| row.id).collect::<Vec<_>>(), ids[1..3]);
    assert_eq!(
        (to[0].slug.as_str(), to[0].agent_name.as_str()),
        ("weather", "collector")
    );
    assert_eq!(to[0].waiting_reason.as_deref(), Some("budget"));
    assert_eq!(to[1].reject_code.as_deref(), Some("unprocessable"));
}

/// The contributions of each day are counted by what became of them.
pub async fn contributions_are_counted_by_day(url: &str) {
    let store = open(url).await;
    let world = World::new(&store).await;
    five(&store, &world).await;
    let now = at(DAY + 60);
    let days = store.console().days_of(world.operator, 14, now).await.unwrap();
    let counts: Vec<_> = days.iter().map(|day| (day.merged, day.rejected, day.open)).collect();
    assert_eq!(counts, [(1, 1, 0), (0, 1, 2)]);
    assert_eq!(days[1].number, now.micros() / 86_400_000_000);
    // Of one day, only the second counts.
    let days = store.console().days_of(world.operator, 1, now).await.unwrap();
    assert_eq!(days.iter().map(|day| day.rejected).collect::<Vec<_>>(), [1]);
}

/// Contributions that became the same are one sum, of those since an instant and of one operator.
pub async fn contributions_are_added_up_by_their_tallies(url: &str) {
    let store = open(url).await;
    let world = World::new(&store).await;
    five(&store, &world).await;
    let eve = operator(&store, "eve@example.org").await;
    let sums = async |operator, seconds, limit| {
        let sums = store.console().sums_of(operator, at(seconds), limit).await.unwrap();
        let told = sums
            .into_iter()
            .map(|sum| (sum.status, sum.tallies, sum.count, sum.rows));
        told.collect::<Vec<_>>()
    };
    let tallies = Some("[]".to_owned());
    let rejected = (ContributionStatus::Rejected, tallies.clone(), 2, 6);
    let all = sums(world.operator, 0, 10).await;
    assert_eq!(all[0], rejected);
    assert!(all.contains(&(ContributionStatus::Merged, tallies, 1, 3)), "{all:?}");
    assert_eq!(all.iter().map(|sum| sum.2).sum::<u64>(), 5);
    assert_eq!(sums(world.operator, 0, 1).await, [rejected]);
    let later = sums(world.operator, DAY, 10).await;
    assert_eq!(later.iter().map(|sum| sum.2).sum::<u64>(), 3);
    assert_eq!(sums(eve, 0, 10).await, []);
}

/// An operator sees its own projects and their uploads, with what has no outcome.
pub async fn projects_and_uploads_are_listed(url: &str) {
    let store = open(url).await;
    let world = World::new(&store).await;
    five(&store, &world).await;
    let eve = operator(&store, "eve@example.org").await;
    agent(&store, eve, "other").await;
    project(&store, new_project(eve, "tides")).await;
    let projects = store.console().projects_of(world.operator, 10).await.unwrap();
    let seen: Vec<_> = projects
        .iter()
        .map(|project| {
            (
                project.slug.as_str(),
                project.version.0,
                project.open,
                project.merged_at,
            )
        })
        .collect();
    assert_eq!(seen, [("weather", 1, 2, Some(at(10)))]);
    let upload = Upload {
        id: ContributionId::new(at(1)),
        project: world.project,
        agent: world.agent,
        operator: world.operator,
        source_declaration: None,
        bytes: 100,
        parts: 4,
        part_size: 30,
        compression: Compression::None,
        status: UploadStatus::Open,
        created_at: at(1),
        expires_at: at(60),
        etags: None,
    };
    let id = upload.id;
    let bounds = UploadBounds {
        open: 3,
        bytes: 1_000,
        allowance: None,
    };
    assert_eq!(
        store.upload_create(upload, bounds).await.unwrap(),
        UploadCreated::Created
    );
    let uploads = store.console().uploads_to(world.project, 10).await.unwrap();
    assert_eq!(uploads.len(), 1);
    assert_eq!((uploads[0].id, uploads[0].bytes, uploads[0].parts), (id, 100, 4));
    assert_eq!(
        (uploads[0].agent_name.as_str(), uploads[0].created_at),
        ("collector", at(1))
    );
}

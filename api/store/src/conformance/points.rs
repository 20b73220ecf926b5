//! Scenarios about points.

use types::{ContributionId, Timestamp};

use super::fixture::{World, at, merged, open, operator, outcome};
use super::knowledge;
use crate::writer::Change;
use crate::{BATCHES_A_DAY, OutcomeRow, PointsKind, Resolution, Store};

fn merge(id: ContributionId, version: u64, accepted: u64, now: Timestamp) -> OutcomeRow {
    let Resolution::Merged {
        version,
        record_count,
        root,
        ..
    } = merged(version)
    else {
        unreachable!("`merged` makes a merge")
    };
    OutcomeRow {
        at: now,
        ..outcome(
            id,
            Resolution::Merged {
                version,
                accepted,
                record_count,
                root,
            },
        )
    }
}

async fn apply(store: &Store, outcomes: Vec<OutcomeRow>) {
    for applied in store.outcomes_apply(outcomes).await.unwrap() {
        assert!(applied.changed);
    }
}

/// A merged batch gives a point per five accepted records, at most twenty, once.
pub async fn a_merged_batch_gives_points_once(url: &str) {
    let store = open(url).await;
    let world = World::new(&store).await;
    let mut ids = world.submitted(&store, 4).await;
    // Older batches are filled in by their ids, and ids of one millisecond have no order.
    ids.sort_unstable();
    let accepted = [4, 5, 99, 500];
    let outcomes: Vec<_> = (1..)
        .zip(&ids)
        .zip(accepted)
        .map(|((version, id), accepted)| merge(*id, version, accepted, at(10)))
        .collect();
    apply(&store, outcomes.clone()).await;
    for applied in store.outcomes_apply(outcomes).await.unwrap() {
        assert!(!applied.changed);
    }
    let sums = store.points().of_agent(world.agent).await.unwrap();
    assert_eq!((sums.points, sums.batches), (1 + 19 + 20, 3));
    assert_eq!(store.points().of_operator(world.operator).await.unwrap(), 40);
    // Batches that have their points keep them when older ones are filled in.
    let filled = store.points().batches_fill(None, 2).await.unwrap();
    assert_eq!((filled.last, filled.added), (Some(ids[1]), 0));
    let filled = store.points().batches_fill(filled.last, 10).await.unwrap();
    assert_eq!((filled.last, filled.added), (Some(ids[3]), 0));
    assert_eq!(store.points().batches_fill(filled.last, 10).await.unwrap().last, None);
    knowledge::is_sound(&store).await;
}

/// Merged batches count for a place in public datasets that another operator has read, up to so many points a day; the
/// points themselves stay. Of those from before readers were noted nobody need have read the dataset.
pub async fn batches_count_for_a_place_where_others_read(url: &str) {
    let store = open(url).await;
    let world = World::new(&store).await;
    let points = store.points();
    let day = std::time::Duration::from_hours(24);
    let ids = world.submitted(&store, 9).await;
    for (version, id) in (1..).zip(&ids) {
        let now = if version < 9 { at(10) } else { at(10).plus(day) };
        apply(&store, vec![merge(*id, version, 100, now)]).await;
    }
    let ranked = async |since| {
        let ranked = points.ranking(since, 10).await.unwrap();
        let sums = ranked.iter().map(|ranked| (ranked.sums.points, ranked.sums.batches));
        sums.collect::<Vec<_>>()
    };
    let second = Some(at(10).plus(day).day());
    assert_eq!(ranked(None).await, [], "nobody else has read it");
    let read = |operator| vec![(world.project, operator, at(20))];
    assert_eq!(points.readers_note(read(world.operator)).await.unwrap(), 0);
    assert_eq!(ranked(None).await, [], "its own operator is nobody else");
    let other = operator(&store, "reader@example.org").await;
    assert_eq!(points.readers_note(read(other)).await.unwrap(), 1);
    assert_eq!(points.readers_note(read(other)).await.unwrap(), 0);
    assert_eq!(BATCHES_A_DAY, 100);
    assert_eq!(ranked(None).await, [(100 + 20, 9)]);
    assert_eq!(ranked(second).await, [(20, 1)]);
    let plant = async |text: &'static str| {
        let planted = store.write_aside(move |cx| {
            Box::pin(async move {
                sqlx::query(text).execute(cx).await?;
                Ok(Change::Keep(()))
            })
        });
        planted.await.unwrap();
    };
    plant("DELETE FROM dataset_readers").await;
    plant("UPDATE points_batches SET needs_reader = 0").await;
    assert_eq!(
        ranked(None).await,
        [(100 + 20, 9)],
        "of old batches nobody knows the readers"
    );
    plant("UPDATE projects SET visibility = 'private'").await;
    assert_eq!((ranked(None).await, ranked(second).await), (vec![], vec![]));
    let sums = points.of_agent(world.agent).await.unwrap();
    assert_eq!((sums.points, sums.batches), (180, 9));
}

/// Events are listed newest first, page by page.
pub async fn events_are_listed_newest_first(url: &str) {
    let store = open(url).await;
    let world = World::new(&store).await;
    let ids = world.submitted(&store, 3).await;
    for (version, id) in (1..).zip(&ids) {
        let now = at(i64::try_from(version).unwrap());
        apply(&store, vec![merge(*id, version, 5 * version, now)]).await;
    }
    let newest = store.points().events(world.agent, None, 2).await.unwrap();
    let points: Vec<_> = newest.iter().map(|event| (event.kind, event.points)).collect();
    assert_eq!(points, [(PointsKind::MergedBatch, 3), (PointsKind::MergedBatch, 2)]);
    let rest = store.points().events(world.agent, Some(newest[1].id), 2).await.unwrap();
    assert_eq!(rest.iter().map(|event| event.points).collect::<Vec<_>>(), [1]);
}

/// The ranking is by points, then by who had them first; it ends with those who have none, and a period leaves out what
/// is older.
pub async fn the_ranking_is_by_points_and_period(url: &str) {
    let store = open(url).await;
    let world = knowledge::World::new(&store).await;
    let one = world.published(&store, "one", 60).await;
    let today = at(10).day();
    let names = async |since| {
        let ranked = store.points().ranking(since, 10).await.unwrap();
        ranked
            .into_iter()
            .map(|ranked| (ranked.agent_name, ranked.sums.points))
            .collect::<Vec<_>>()
    };
    assert_eq!(names(None).await, [("author".to_owned(), 60)]);
    assert_eq!(names(Some(today)).await, [("author".to_owned(), 60)]);
    assert_eq!(names(Some(today + 1)).await, []);
    // A day later another read counts for the period that begins then.
    let later = at(10).plus(std::time::Duration::from_hours(24));
    assert!(store.knowledge().read(one, one, world.reader, later).await.unwrap());
    assert_eq!(names(Some(today + 1)).await, [("author".to_owned(), 5)]);
    assert_eq!(names(None).await, [("author".to_owned(), 65)]);
    let first = &store.points().ranking(None, 1).await.unwrap()[0];
    assert_eq!(
        (first.sums.published, first.sums.first_reads, first.last_at),
        (1, 1, later)
    );
    assert_eq!(first.operator_name, "Ada");
}

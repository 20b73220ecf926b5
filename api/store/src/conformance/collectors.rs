//! Scenarios about collectors.

use std::time::Duration;

use types::{ContributionId, Timestamp, Version};

use super::fixture::{at, open, race};
use crate::{RunCounts, RunEnd, RunOutcome, SeenCollector, Store};

const LEASE: Duration = Duration::from_mins(1);
const NAME: &str = "quakes";

fn seen(name: &str) -> SeenCollector {
    SeenCollector {
        name: name.to_owned(),
        dataset: "earthquakes".to_owned(),
        title: "Earthquakes".to_owned(),
        publisher: "USGS".to_owned(),
        license: "CC0-1.0".to_owned(),
        schedule: "0 */6 * * *".to_owned(),
    }
}

async fn with_one(url: &str) -> Store {
    let store = open(url).await;
    store.collectors().see(vec![seen(NAME)], at(0)).await.unwrap();
    store
}

fn run(now: Timestamp) -> String {
    ContributionId::new(now).to_string()
}

fn end(outcome: RunOutcome, cursor: Option<&str>, next: i64, now: i64) -> RunEnd {
    RunEnd {
        outcome,
        counts: RunCounts {
            fetched: 5,
            added: 2,
            known: 1,
            refused: 1,
            failed: 1,
        },
        version: (outcome == RunOutcome::Merged).then_some(Version(3)),
        reason: (outcome == RunOutcome::Failed).then(|| ("status".to_owned(), "it answered 503\0".to_owned())),
        cursor: cursor.map(str::to_owned),
        next_at: at(next),
        now: at(now),
    }
}

/// A run begins when it is due, once; the next one when the next due time has come.
pub async fn a_due_time_is_run_once_under_its_lease(url: &str) {
    let store = with_one(url).await;
    let collectors = store.collectors();
    let one = run(at(5));
    let begun = collectors
        .begin(NAME, &one, at(5), LEASE, false)
        .await
        .unwrap()
        .unwrap();
    assert_eq!((begun.due_at, begun.cursor, begun.failures), (at(0), None, 0));
    assert_eq!(
        collectors.begin(NAME, "other", at(6), LEASE, false).await.unwrap(),
        None
    );
    assert!(collectors.renew(NAME, &one, at(100)).await.unwrap());
    assert_eq!(
        collectors.begin(NAME, "other", at(70), LEASE, true).await.unwrap(),
        None
    );
    let ended = collectors.end(NAME, &one, end(RunOutcome::Merged, Some("{}"), 1_000, 80));
    assert!(ended.await.unwrap());
    assert_eq!(
        collectors.begin(NAME, "other", at(999), LEASE, false).await.unwrap(),
        None
    );
    // Seen again by another process, it keeps its due time.
    collectors.see(vec![seen(NAME)], at(90)).await.unwrap();
    let all = collectors.all().await.unwrap();
    assert_eq!((all.len(), all[0].next_at, all[0].seen_at), (1, at(1_000), at(90)));
    let at_once = run(at(999));
    assert!(
        collectors
            .begin(NAME, &at_once, at(999), LEASE, true)
            .await
            .unwrap()
            .is_some()
    );
    let runs = collectors.runs(30).await.unwrap();
    let last = &runs[NAME][1];
    assert_eq!(runs[NAME].len(), 2);
    assert_eq!(
        (
            last.outcome,
            last.version,
            last.ended_at,
            last.counts.fetched,
            last.counts.refused
        ),
        (Some(RunOutcome::Merged), Some(Version(3)), Some(at(80)), 5, 1)
    );
    assert_eq!(collectors.runs(1).await.unwrap()[NAME].len(), 1);
}

/// A run whose process died is due again when its lease ends, and is shown as failed; the dead one ends nothing.
pub async fn a_run_that_is_lost_is_failed_and_due_again(url: &str) {
    let store = with_one(url).await;
    let collectors = store.collectors();
    let (dead, next) = (run(at(0)), run(at(60)));
    assert!(
        collectors
            .begin(NAME, &dead, at(0), LEASE, false)
            .await
            .unwrap()
            .is_some()
    );
    let begun = collectors
        .begin(NAME, &next, at(60), LEASE, false)
        .await
        .unwrap()
        .unwrap();
    assert_eq!(begun.due_at, at(0));
    let late = end(RunOutcome::Merged, Some("{\"late\":1}"), 9_000, 61);
    assert!(!collectors.end(NAME, &dead, late).await.unwrap());
    assert!(!collectors.renew(NAME, &dead, at(500)).await.unwrap());
    let runs = collectors.runs(9).await.unwrap();
    let lost = runs[NAME].iter().find(|run| run.id == dead).unwrap();
    assert_eq!((lost.outcome, lost.ended_at), (Some(RunOutcome::Failed), Some(at(60))));
    assert_eq!(lost.reason.as_ref().unwrap().0, "interrupted");
    assert_eq!(collectors.all().await.unwrap()[0].next_at, at(0));
}

/// A run that is given back is due again and counts as nothing; one that lost its lease gives nothing back.
pub async fn a_run_that_is_given_back_is_due_and_no_failure(url: &str) {
    let store = with_one(url).await;
    let collectors = store.collectors();
    let (one, forced) = (run(at(5)), run(at(7)));
    let begun = collectors.begin(NAME, &one, at(5), LEASE, false).await.unwrap();
    assert!(begun.is_some());
    assert!(!collectors.give_back(NAME, &forced, at(6)).await.unwrap());
    assert!(collectors.give_back(NAME, &one, at(6)).await.unwrap());
    let all = collectors.all().await.unwrap();
    assert_eq!((all[0].next_at, all[0].failures, all[0].leased_until), (at(0), 0, None));
    assert!(collectors.runs(9).await.unwrap().is_empty());
    // One that was begun before its due time is due at once, too.
    collectors.reschedule(NAME, at(900)).await.unwrap();
    let begun = collectors.begin(NAME, &forced, at(7), LEASE, true).await.unwrap();
    assert!(begun.is_some());
    assert!(collectors.give_back(NAME, &forced, at(8)).await.unwrap());
    assert_eq!(collectors.all().await.unwrap()[0].next_at, at(8));
}

/// A failed run leaves the cursor and counts; one that did not fail begins the count anew.
pub async fn a_cursor_moves_with_the_end_of_a_run_only(url: &str) {
    let store = with_one(url).await;
    let collectors = store.collectors();
    let step = async |now: i64, outcome, cursor| {
        let id = run(at(now));
        let begun = collectors
            .begin(NAME, &id, at(now), LEASE, false)
            .await
            .unwrap()
            .unwrap();
        assert!(
            collectors
                .end(NAME, &id, end(outcome, cursor, now + 1, now))
                .await
                .unwrap()
        );
        (begun.cursor, begun.failures)
    };
    assert_eq!(step(0, RunOutcome::Merged, Some("{\"etag\":\"a\"}")).await, (None, 0));
    let cursor = Some("{\"etag\":\"a\"}".to_owned());
    assert_eq!(step(1, RunOutcome::Failed, None).await, (cursor.clone(), 0));
    assert_eq!(step(2, RunOutcome::Failed, None).await, (cursor.clone(), 1));
    assert_eq!(step(3, RunOutcome::Unchanged, None).await, (cursor.clone(), 2));
    assert_eq!(step(4, RunOutcome::Held, None).await, (cursor, 0));
}

/// Many processes begin the run of one due time: one of them does.
pub async fn one_of_many_begins_a_run(url: &str) {
    let stores = [open(url).await, open(url).await];
    stores[0].collectors().see(vec![seen(NAME)], at(0)).await.unwrap();
    let begun = race(stores, 10, |store, _| async move {
        let id = run(at(1));
        store.collectors().begin(NAME, &id, at(1), LEASE, false).await.unwrap()
    })
    .await;
    assert_eq!(begun.iter().flatten().count(), 1);
}

/// A lease that a clock in the future gave does not hold a collector for years.
pub async fn a_lease_of_a_clock_that_was_ahead_ends(url: &str) {
    let store = with_one(url).await;
    let collectors = store.collectors();
    let ahead = run(at(0));
    assert!(
        collectors
            .begin(NAME, &ahead, at(9_000_000), LEASE, false)
            .await
            .unwrap()
            .is_some()
    );
    assert!(
        collectors
            .begin(NAME, &run(at(1)), at(1), LEASE, false)
            .await
            .unwrap()
            .is_some()
    );
    collectors.reschedule(NAME, at(77)).await.unwrap();
    assert_eq!(collectors.all().await.unwrap()[0].next_at, at(0));
}

/// The newest runs are kept.
pub async fn old_runs_are_pruned(url: &str) {
    let store = with_one(url).await;
    let collectors = store.collectors();
    for now in 0..103 {
        let id = run(at(now));
        assert!(
            collectors
                .begin(NAME, &id, at(now), LEASE, false)
                .await
                .unwrap()
                .is_some()
        );
        assert!(
            collectors
                .end(NAME, &id, end(RunOutcome::Unchanged, None, now, now))
                .await
                .unwrap()
        );
    }
    let runs = &collectors.runs(200).await.unwrap()[NAME];
    assert_eq!((runs.len(), runs[0].started_at), (100, at(102)));
    collectors.reschedule(NAME, at(777)).await.unwrap();
    assert_eq!(collectors.all().await.unwrap()[0].next_at, at(777));
}

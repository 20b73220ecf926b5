//! Scenarios about holds of the review of knowledge units: of the service, of one text, and by a pause.

use std::time::Duration;

use types::unit::UNUSABLE_ANSWER;
use types::vocabulary::{ReviewStep, StepOutcome};

use super::fixture::{self, at, new_project, open, outcome, project, waiting};
use super::knowledge::{World, apply, entry, held, is_sound, published, rejected, status, submitted};
use crate::{ContributionStatus, NewContribution, NewUnit, Store, SubmitOutcome, UnitOutcome, UnitStatus, UnitSwept};

/// Returns an author of contributions to a dataset of the units' author.
async fn contributor(store: &Store, world: &World) -> fixture::World {
    let (agent, operator) = world.author;
    fixture::World {
        operator,
        agent,
        project: project(store, new_project(operator, "weather")).await,
    }
}

/// A hold keeps the version, adds one entry a day, and ends with the first decision of a judge, for all that wait.
pub async fn a_hold_ends_with_the_first_decision(url: &str) {
    let store = open(url).await;
    let world = World::new(&store).await;
    let mut ids = Vec::new();
    for text in ["one", "two", "three"] {
        ids.push(submitted(&store, world.version(text)).await);
    }
    for _ in 0..3 {
        let all = vec![
            held(ids[0], "provider", Some(at(500))),
            held(ids[1], "provider", Some(at(500))),
        ];
        assert_eq!(apply(&store, all).await, [true, true]);
    }
    let unit = store.knowledge().unit(ids[0]).await.unwrap().unwrap();
    assert_eq!(
        (unit.status, unit.waiting_reason.as_deref()),
        (UnitStatus::Waiting, Some("provider"))
    );
    assert_eq!(unit.resumes_after, Some(at(500)));
    assert_eq!(store.knowledge().entries(ids[0]).await.unwrap().len(), 1);
    let (state, _) = store.validation().await.unwrap();
    assert_eq!(state.hold.unwrap().reason, "provider");
    let due = store.knowledge().due(at(499), 10).await.unwrap();
    assert_eq!(due.iter().map(|due| due.id).collect::<Vec<_>>(), [ids[2]]);
    // One probe an interval, whoever asks.
    let probe = async |second| {
        store
            .validation_probe(at(second), Duration::from_secs(30))
            .await
            .unwrap()
    };
    assert_eq!((probe(20).await, probe(40).await, probe(50).await), (true, false, true));
    // A version that is appended again is queued again.
    let swept = vec![UnitSwept {
        id: ids[0],
        next_sweep: at(600),
    }];
    store.knowledge().swept(swept).await.unwrap();
    assert_eq!(status(&store, ids[0]).await, UnitStatus::Queued);
    // A rejection by a step before the judges says nothing about them.
    let contribution = contributor(&store, &world).await.submitted(&store, 1).await[0];
    let held_too = outcome(contribution, waiting(Some(100_000)));
    assert!(store.outcomes_apply(vec![held_too]).await.unwrap()[0].changed);
    let early = UnitOutcome {
        at: at(50),
        report: vec![entry(ReviewStep::PersonalData, StepOutcome::Refused)],
        ..rejected(ids[2], "personal_data")
    };
    assert_eq!(apply(&store, vec![early]).await, [true]);
    assert!(store.validation().await.unwrap().0.hold.is_some());
    assert!(store.contributions_due(at(99_999), 10).await.unwrap().is_empty());
    let decided = UnitOutcome {
        at: at(60),
        ..published(ids[0], 70)
    };
    assert_eq!(apply(&store, vec![decided]).await, [true]);
    assert_eq!(store.validation().await.unwrap().0.hold, None);
    let due = store.knowledge().due(at(60), 10).await.unwrap();
    assert_eq!(due.iter().map(|due| due.id).collect::<Vec<_>>(), [ids[1]]);
    let due = store.contributions_due(at(60), 10).await.unwrap();
    assert_eq!(due.iter().map(|due| due.id).collect::<Vec<_>>(), [contribution]);
    // A hold that was noticed before that decision does not come back.
    let late = UnitOutcome {
        at: at(55),
        ..held(ids[1], "provider", None)
    };
    assert_eq!(apply(&store, vec![late]).await, [true]);
    assert_eq!(store.validation().await.unwrap().0.hold, None);
    is_sound(&store).await;
}

/// A version whose text spoils the answers of the judge holds nobody else, and is rejected at its fifth try, however often
/// an outcome comes.
pub async fn a_text_without_a_verdict_is_given_up(url: &str) {
    let store = open(url).await;
    let world = World::new(&store).await;
    let ids = [
        submitted(&store, world.version("one")).await,
        submitted(&store, world.version("two")).await,
    ];
    let spoiled = |second| {
        let mut outcome = held(ids[0], "provider", Some(at(second + 600)));
        outcome.at = at(second);
        UNUSABLE_ANSWER.clone_into(&mut outcome.report[1].code);
        outcome.report[1].at = at(second);
        outcome
    };
    assert_eq!(apply(&store, vec![held(ids[1], "provider", None)]).await, [true]);
    assert!(store.validation().await.unwrap().0.hold.is_some());
    // The judge answers others, so the hold of the service is over.
    assert_eq!(apply(&store, vec![spoiled(20)]).await, [true]);
    assert_eq!(store.validation().await.unwrap().0.hold, None);
    for second in [20, 30, 30, 40, 50, 50] {
        assert_eq!(apply(&store, vec![spoiled(second)]).await, [true]);
        let unit = store.knowledge().unit(ids[0]).await.unwrap().unwrap();
        assert_eq!(
            (unit.status, unit.waiting_reason.as_deref(), unit.resumes_after),
            (UnitStatus::Waiting, Some("provider"), Some(at(second + 600)))
        );
        assert_eq!(store.validation().await.unwrap().0.hold, None);
    }
    assert_eq!(store.knowledge().entries(ids[0]).await.unwrap().len(), 4);
    assert_eq!(apply(&store, vec![spoiled(60), spoiled(60)]).await, [true, false]);
    let unit = store.knowledge().unit(ids[0]).await.unwrap().unwrap();
    assert_eq!(
        (unit.status, unit.reject_code.as_deref()),
        (UnitStatus::Rejected, Some("no_verdict"))
    );
    let entries = store.knowledge().entries(ids[0]).await.unwrap();
    let last = entries.last().unwrap();
    assert_eq!(
        (last.step, last.outcome, last.code.as_str()),
        (ReviewStep::Hold, StepOutcome::Refused, "no_verdict")
    );
    assert_eq!(store.validation().await.unwrap().0.hold, None);
    // It has used its allowance: the text made the judge work for it.
    let used = store
        .allowance_used(world.author.1, crate::AllowanceKind::Knowledge, at(0).day())
        .await
        .unwrap();
    assert_eq!(used, 2);
    is_sound(&store).await;
}

/// A pause is known to everybody; when it ends, what waits for its end is due.
pub async fn a_pause_ends_for_all_at_once(url: &str) {
    let store = open(url).await;
    let world = World::new(&store).await;
    let (_, generation) = store.validation().await.unwrap();
    assert!(store.validation_pause(true, at(1)).await.unwrap());
    assert!(!store.validation_pause(true, at(1)).await.unwrap());
    let (state, later) = open(url).await.validation().await.unwrap();
    assert!(state.paused && later > generation);
    let new = NewUnit {
        held: Some(("paused".to_owned(), None)),
        first_sweep: at(100_000),
        ..world.version("one")
    };
    let id = submitted(&store, new).await;
    assert_eq!(status(&store, id).await, UnitStatus::Waiting);
    let contribution = NewContribution {
        paused: true,
        first_sweep: at(100_000),
        ..contributor(&store, &world).await.contribution()
    };
    let contributed = contribution.id;
    assert_eq!(
        store.contribution_submit(contribution).await.unwrap(),
        SubmitOutcome::Submitted
    );
    let row = store.contribution(contributed).await.unwrap().unwrap();
    assert_eq!(row.status, ContributionStatus::Waiting);
    assert!(store.knowledge().due(at(99_999), 10).await.unwrap().is_empty());
    assert!(store.contributions_due(at(99_999), 10).await.unwrap().is_empty());
    assert!(store.validation_pause(false, at(5)).await.unwrap());
    assert_eq!(store.knowledge().due(at(5), 10).await.unwrap().len(), 1);
    let due = store.contributions_due(at(5), 10).await.unwrap();
    assert_eq!(due.iter().map(|due| due.id).collect::<Vec<_>>(), [contributed]);
    is_sound(&store).await;
}

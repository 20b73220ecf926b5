//! Scenarios in which many do the same thing at the same instant, through two handles as two processes would.

use std::collections::BTreeSet;
use std::time::Duration;

use types::{ContributionId, OperatorId};

use super::fixture::{World, at, merged, new_agent, new_project, open, operator, outcome, race, rejected};
use crate::{
    AgentCreated, Allowance, CallKey, ContributionStatus, DeadLetter, DeadLetterAdded, Egress, Error, Idempotency,
    KeyUsed, NewContribution, ProjectChanges, ProjectCreated, ProjectStatus, ProjectUpdated, Replay, Store,
    SubmitOutcome,
};

/// Of fifty twins one is submitted and forty-nine replay it.
pub async fn twins_of_one_key_are_one_contribution(url: &str) {
    let stores = two(url).await;
    let world = World::new(&stores[0]).await;
    let outcomes = race(stores.clone(), 50, |store, _| async move {
        let new = NewContribution {
            idempotency: Some(Idempotency {
                key: "twin".to_owned(),
                body_hash: [1; 32],
                window: Duration::from_hours(24),
            }),
            allowance: Some(Allowance { limit: 50, day: 0 }),
            ..world.contribution()
        };
        (new.id, store.contribution_submit(new).await.unwrap())
    })
    .await;
    let submitted: Vec<_> = ids(&outcomes, |outcome| *outcome == SubmitOutcome::Submitted);
    assert_eq!(submitted.len(), 1);
    let replayed = ids(&outcomes, |outcome| *outcome == SubmitOutcome::Replayed(submitted[0]));
    assert_eq!(replayed.len(), 49);
    assert_eq!(stores[1].open_count_and_bytes().await.unwrap().open, 1);

    // The replays used no allowance.
    for _ in 0..49 {
        let new = NewContribution {
            allowance: Some(Allowance { limit: 50, day: 0 }),
            ..world.contribution()
        };
        assert_eq!(
            stores[0].contribution_submit(new).await.unwrap(),
            SubmitOutcome::Submitted
        );
    }
}

/// Of twenty calls with one key one makes its project; the others are told so, and another key makes another.
pub async fn twins_of_one_call_make_one_thing(url: &str) {
    let stores = two(url).await;
    let ada = operator(&stores[0], "ada@example.org").await;
    let key = move |key: &str, hash: u8, seconds: i64| CallKey {
        caller: ada.to_string(),
        operation: "create_dataset".to_owned(),
        key: key.to_owned(),
        body_hash: [hash; 32],
        window: Duration::from_secs(100),
        now: at(seconds),
    };
    let outcomes = race(stores.clone(), 20, move |store, number| async move {
        let store = store.keyed(key("twin", 1, 0));
        match store
            .project_create(new_project(ada, &format!("project-{number}")), 3)
            .await
        {
            Ok(created) => Some(created),
            Err(error) => {
                assert!(matches!(error, Error::Repeated), "{error}");
                None
            }
        }
    })
    .await;
    assert_eq!(count(&outcomes, &Some(ProjectCreated::Created)), 1);
    assert_eq!(count(&outcomes, &None), 19);
    let store = &stores[1];
    let Some(KeyUsed::Same { made }) = store.call_key_used(&key("twin", 1, 99)).await.unwrap() else {
        unreachable!("the key is in use")
    };
    assert!(store.project_by_slug(&made, Some(ada)).await.unwrap().is_some());
    assert_eq!(
        store.call_key_used(&key("twin", 2, 99)).await.unwrap(),
        Some(KeyUsed::Other)
    );
    assert_eq!(store.call_key_used(&key("twin", 1, 100)).await.unwrap(), None);
    assert_eq!(store.call_key_used(&key("other", 1, 0)).await.unwrap(), None);

    // A call that is refused leaves its key; one after the window has it anew.
    let create = async |key: CallKey, slug: &str| {
        let created = store.keyed(key).project_create(new_project(ada, slug), 3).await;
        created.unwrap()
    };
    assert_eq!(create(key("free", 1, 0), &made).await, ProjectCreated::SlugTaken);
    assert_eq!(store.call_key_used(&key("free", 1, 0)).await.unwrap(), None);
    assert_eq!(create(key("twin", 3, 100), "later").await, ProjectCreated::Created);
    let later = store.call_key_used(&key("twin", 3, 101)).await.unwrap();
    assert_eq!(
        later,
        Some(KeyUsed::Same {
            made: "later".to_owned()
        })
    );
    assert_eq!(store.idempotency_prune(at(100), 10).await.unwrap(), 0);
    assert_eq!(store.idempotency_prune(at(101), 10).await.unwrap(), 1);
}

/// Of twenty agents created at once, five are.
pub async fn an_operator_never_exceeds_its_agents(url: &str) {
    let stores = two(url).await;
    let ada = operator(&stores[0], "ada@example.org").await;
    let outcomes = race(stores, 20, |store, number| async move {
        store
            .agent_create(new_agent(ada, &format!("agent-{number}")), 5)
            .await
            .unwrap()
    })
    .await;
    assert_eq!(count(&outcomes, &AgentCreated::Created), 5);
    assert_eq!(count(&outcomes, &AgentCreated::LimitReached), 15);
}

/// Of twenty projects created at once, three are.
pub async fn an_operator_never_exceeds_its_projects(url: &str) {
    let stores = two(url).await;
    let ada = operator(&stores[0], "ada@example.org").await;
    let outcomes = race(stores, 20, |store, number| async move {
        store
            .project_create(new_project(ada, &format!("project-{number}")), 3)
            .await
            .unwrap()
    })
    .await;
    assert_eq!(count(&outcomes, &ProjectCreated::Created), 3);
    assert_eq!(count(&outcomes, &ProjectCreated::LimitReached), 17);
}

/// Of three hundred contributions at once under an allowance of two hundred, two hundred are acknowledged.
pub async fn an_allowance_is_exact_under_contention(url: &str) {
    let stores = two(url).await;
    let world = World::new(&stores[0]).await;
    let outcomes = race(stores.clone(), 300, |store, _| async move {
        let new = NewContribution {
            allowance: Some(Allowance { limit: 200, day: 0 }),
            ..world.contribution()
        };
        store.contribution_submit(new).await.unwrap()
    })
    .await;
    assert_eq!(count(&outcomes, &SubmitOutcome::Submitted), 200);
    assert_eq!(count(&outcomes, &SubmitOutcome::AllowanceSpent), 100);
    assert_eq!(stores[0].open_count_and_bytes().await.unwrap().open, 200);
}

/// Of ten operators after one slug, one gets it.
pub async fn one_of_many_wins_a_slug(url: &str) {
    let stores = two(url).await;
    let mut operators = Vec::new();
    for number in 0..10 {
        operators.push(operator(&stores[0], &format!("{number}@example.org")).await);
    }
    let outcomes = race(stores, 10, |store, number| {
        let new = new_project(operators[number], "weather");
        async move { store.project_create(new, 3).await.unwrap() }
    })
    .await;
    assert_eq!(count(&outcomes, &ProjectCreated::Created), 1);
    assert_eq!(count(&outcomes, &ProjectCreated::SlugTaken), 9);
}

/// Of ten operators after names that look alike, one gets it.
pub async fn one_of_many_wins_a_name(url: &str) {
    let stores = two(url).await;
    let mut operators = Vec::new();
    for number in 0..10 {
        operators.push(operator(&stores[0], &format!("{number}@example.org")).await);
    }
    let outcomes = race(stores, 10, |store, number| {
        let new = new_agent(operators[number], "collector");
        async move { store.agent_create(new, 5).await.unwrap() }
    })
    .await;
    assert_eq!(count(&outcomes, &AgentCreated::Created), 1);
    assert_eq!(count(&outcomes, &AgentCreated::NameTaken), 9);
}

/// Of ten changes of one price at once, one is made.
pub async fn a_price_changes_once_under_contention(url: &str) {
    let stores = two(url).await;
    let world = World::new(&stores[0]).await;
    let outcomes = race(stores, 10, |store, number| async move {
        let changes = ProjectChanges {
            price: Some(Some(1_000 + i64::try_from(number).unwrap())),
            ..ProjectChanges::default()
        };
        store
            .project_update(world.project, changes, at(1), Duration::from_hours(24))
            .await
            .unwrap()
    })
    .await;
    let changed = |outcome: &&ProjectUpdated| matches!(outcome, ProjectUpdated::Updated(_));
    assert_eq!(outcomes.iter().filter(changed).count(), 1);
}

/// Archiving at the same time as pausing and opening. Later changes of the status are refused.
pub async fn an_archived_project_stays_archived(url: &str) {
    let stores = two(url).await;
    let world = World::new(&stores[0]).await;
    race(stores.clone(), 12, |store, number| async move {
        let to = [ProjectStatus::Paused, ProjectStatus::Archived, ProjectStatus::Open][number % 3];
        let changes = ProjectChanges {
            status: Some(to),
            ..ProjectChanges::default()
        };
        store
            .project_update(world.project, changes, at(1), Duration::ZERO)
            .await
            .unwrap()
    })
    .await;
    let project = stores[0].project_by_slug("weather", None).await.unwrap().unwrap();
    assert_eq!(project.status, ProjectStatus::Archived);
}

/// Projectors that apply the same outcomes at once apply each once, whichever comes first.
pub async fn two_projectors_apply_each_outcome_once(url: &str) {
    let stores = two(url).await;
    let world = World::new(&stores[0]).await;
    let contributions = world.submitted(&stores[0], 40).await;
    let applied = race(stores.clone(), 2, |store, _| {
        let contributions = contributions.clone();
        async move {
            let mut applied = Vec::new();
            for (batch, ids) in contributions.chunks(4).enumerate() {
                let outcomes = ids.iter().enumerate().map(|(place, id)| {
                    let number = u64::try_from(batch * 4 + place).unwrap();
                    outcome(
                        *id,
                        if place == 3 {
                            rejected("refused")
                        } else {
                            merged(number + 1)
                        },
                    )
                });
                applied.extend(store.outcomes_apply(outcomes.collect::<Vec<_>>()).await.unwrap());
            }
            applied
        }
    })
    .await;
    let closed: Vec<_> = applied
        .iter()
        .flatten()
        .filter(|applied| applied.changed)
        .map(|applied| applied.id)
        .collect();
    assert_eq!(closed.len(), 40);
    assert_eq!(closed.iter().collect::<BTreeSet<_>>().len(), 40);
    assert_eq!(stores[0].project_counts(world.project).await.unwrap().versions, 30);
    assert_eq!(stores[0].open_count_and_bytes().await.unwrap().open, 0);
}

/// The first of two concurrent rejections of one contribution stays. A merge wins over a concurrent rejection.
pub async fn the_first_of_two_outcomes_wins(url: &str) {
    let stores = two(url).await;
    let world = World::new(&stores[0]).await;
    let codes = ["refused", "duplicates"];
    for (number, id) in world.submitted(&stores[0], 20).await.into_iter().enumerate() {
        let is_merged = number % 2 == 0;
        let applied = race(stores.clone(), 2, |store, racer| async move {
            let resolution = if is_merged && racer == 0 {
                merged(1)
            } else {
                rejected(codes[racer])
            };
            let applied = store.outcomes_apply(vec![outcome(id, resolution)]).await.unwrap();
            (racer, applied[0].changed)
        })
        .await;
        let winners: Vec<usize> = applied
            .into_iter()
            .filter(|(_, won)| *won)
            .map(|(racer, _)| racer)
            .collect();
        let row = stores[1].contribution(id).await.unwrap().unwrap();
        if is_merged {
            assert!(winners.contains(&0), "a merge is never too late");
            assert_eq!(row.status, ContributionStatus::Merged);
        } else {
            assert_eq!(winners.len(), 1);
            assert_eq!(row.reject_code.as_deref(), Some(codes[winners[0]]));
        }
    }
    assert_eq!(stores[0].open_count_and_bytes().await.unwrap().open, 0);
}

/// Concurrent additions from both sides are all stored, in any order.
pub async fn counts_add_up_under_contention(url: &str) {
    let stores = two(url).await;
    let operators = [OperatorId::new(at(0)), OperatorId::new(at(0)), OperatorId::new(at(0))];
    race(stores.clone(), 30, |store, number| async move {
        let of = |operator| Egress {
            operator,
            month: 1,
            reader: None,
            bytes: 1,
        };
        let mut sent = operators.map(of).to_vec();
        sent.rotate_left(number % 3);
        store.egress_add(number.to_string(), sent, at(0)).await.unwrap();
        store.usage_count(1, "search", 1).await.unwrap();
    })
    .await;
    for operator in operators {
        assert_eq!(stores[0].egress(operator, 1).await.unwrap(), 30);
    }
    assert_eq!(stores[0].usage(1).await.unwrap(), [("search".to_owned(), 30)]);
}

/// Of ten concurrent replays of one dead letter, one succeeds.
pub async fn a_letter_is_replayed_once(url: &str) {
    let stores = two(url).await;
    let world = World::new(&stores[0]).await;
    let id = world.submitted(&stores[0], 1).await[0];
    let outcomes = vec![outcome(id, rejected("unprocessable"))];
    assert!(stores[0].outcomes_apply(outcomes).await.unwrap()[0].changed);
    let letter = DeadLetter {
        id: "letter".to_owned(),
        topic: "contributions".to_owned(),
        partition: 0,
        offset: 7,
        contribution: Some(id),
        unit: None,
        payload: b"payload".to_vec(),
        reason: "it ended its worker".to_owned(),
        now: at(11),
    };
    assert_eq!(stores[0].dead_letter_add(letter).await.unwrap(), DeadLetterAdded::Added);
    let replays = race(stores.clone(), 10, |store, _| async move {
        let renew = |payload: &[u8], _| Some(payload.to_vec());
        store
            .dead_letter_replay("letter".to_owned(), renew, at(12))
            .await
            .unwrap()
    })
    .await;
    let reopened = Replay::Reopened {
        contribution: id,
        generation: 1,
    };
    assert_eq!(count(&replays, &reopened), 1);
    assert_eq!(count(&replays, &Replay::AlreadyReplayed), 9);
    assert_eq!(stores[1].contribution(id).await.unwrap().unwrap().generation, 1);
}

async fn two(url: &str) -> [Store; 2] {
    [open(url).await, open(url).await]
}

fn ids(outcomes: &[(ContributionId, SubmitOutcome)], keep: impl Fn(&SubmitOutcome) -> bool) -> Vec<ContributionId> {
    outcomes
        .iter()
        .filter(|(_, outcome)| keep(outcome))
        .map(|(id, _)| *id)
        .collect()
}

fn count<T: PartialEq>(outcomes: &[T], expected: &T) -> usize {
    outcomes.iter().filter(|outcome| *outcome == expected).count()
}

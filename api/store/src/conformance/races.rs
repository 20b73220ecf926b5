//! Scenarios in which many do the same thing at the same instant, through two handles as two processes would.

use std::collections::BTreeSet;
use std::time::Duration;

use types::ContributionId;

use super::fixture::{World, merged, new_agent, new_project, open, operator, outcome, race, rejected};
use crate::{AgentCreated, Allowance, Idempotency, NewContribution, ProjectCreated, Store, SubmitOutcome};

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
                applied.extend(store.outcomes_apply(outcomes.collect()).await.unwrap());
            }
            applied
        }
    })
    .await;
    let closed: Vec<_> = applied
        .iter()
        .flatten()
        .filter(|applied| applied.applied)
        .map(|applied| applied.id)
        .collect();
    assert_eq!(closed.len(), 40);
    assert_eq!(closed.iter().collect::<BTreeSet<_>>().len(), 40);
    assert_eq!(stores[0].project_version_count(world.project).await.unwrap(), 30);
    assert_eq!(stores[0].open_count_and_bytes().await.unwrap().open, 0);
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

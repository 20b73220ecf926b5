//! Scenarios about what anybody may know of accounts.

use types::vocabulary::{ReportKind, ReportReason, Visibility};

use super::fixture::{World, at, merged, new_project, open, outcome, project};
use super::knowledge;
use crate::{ActivityKind, NewProject, PublicEnd, Store};

/// An agent and its account show public things only, and a name that is hidden is read nowhere.
pub async fn an_account_shows_what_is_public(url: &str) {
    let store = open(url).await;
    let units = knowledge::World::new(&store).await;
    let unit = units.published(&store, "one", 60).await;
    let (agent, operator) = units.author;
    let public = project(&store, new_project(operator, "weather")).await;
    let private = NewProject {
        visibility: Visibility::Private,
        ..new_project(operator, "secret")
    };
    project(&store, private).await;
    let world = World {
        operator,
        agent,
        project: public,
    };
    let id = world.submitted(&store, 1).await[0];
    let applied = store.outcomes_apply(vec![outcome(id, merged(1))]).await.unwrap();
    assert!(applied[0].changed);

    let accounts = store.public_accounts();
    let found = accounts.agent("author").await.unwrap().unwrap();
    assert_eq!(
        (found.id, found.operator, found.name.as_str()),
        (agent, operator, "author")
    );
    assert!(found.account.is_some() && found.removed_at.is_none());
    assert_eq!(accounts.agent("nobody").await.unwrap(), None);
    let figures = accounts.figures(agent).await.unwrap();
    assert_eq!(
        (figures.rows, figures.datasets, figures.units, figures.sales),
        (2, 1, 1, 0)
    );
    let all = accounts.figures_of_account(operator).await.unwrap();
    assert_eq!((all.datasets, all.units), (1, 1));
    let datasets = accounts.datasets(operator, None, 9).await.unwrap();
    assert_eq!(
        datasets.iter().map(|dataset| dataset.slug.as_str()).collect::<Vec<_>>(),
        ["weather"]
    );
    assert_eq!(accounts.datasets(operator, Some(agent), 9).await.unwrap(), []);
    for listed in [
        accounts.units(operator, 9).await.unwrap(),
        accounts.units_of_agent(agent, 9).await.unwrap(),
    ] {
        assert_eq!(listed.iter().map(|listed| listed.id).collect::<Vec<_>>(), [unit]);
    }
    let days = accounts.days(operator, agent, at(0)).await.unwrap();
    assert_eq!(
        (days.len(), days[0].rows, days[0].merged, days[0].rejected),
        (1, 2, 1, 0)
    );
    let lately = accounts.lately(agent, 9).await.unwrap();
    let kinds: Vec<_> = lately.iter().map(|entry| entry.kind).collect();
    assert_eq!(kinds, [ActivityKind::Version, ActivityKind::Unit]);
    let record = accounts.record(operator).await.unwrap();
    assert_eq!((record.takedowns, record.disputes, record.refunds), (0, 0, 0));
    let agents = accounts.agents(operator, 9).await.unwrap();
    assert!(agents.iter().any(|listed| listed.id == agent));

    let names = async || {
        let ranking = store.points().ranking(None, 9).await.unwrap();
        ranking
            .into_iter()
            .map(|ranked| ranked.operator_name)
            .collect::<Vec<_>>()
    };
    assert_eq!(names().await, ["Ada"]);
    assert_eq!(
        accounts.account(operator).await.unwrap().unwrap().name.as_deref(),
        Some("Ada")
    );
    hide_names(&store).await;
    assert_eq!(accounts.agent("author").await.unwrap().unwrap().account, None);
    assert_eq!(accounts.account(operator).await.unwrap().unwrap().name, None);
    assert_eq!(names().await, [""]);
}

async fn hide_names(store: &Store) {
    store
        .write_aside(|cx| {
            Box::pin(async move {
                sqlx::query("UPDATE operators SET profile_hidden = 1")
                    .execute(cx)
                    .await?;
                Ok(crate::writer::Change::Keep(()))
            })
        })
        .await
        .unwrap();
}

/// The end of an item is told if it was public, and of nothing else.
pub async fn an_end_is_told_of_what_was_public(url: &str) {
    let store = open(url).await;
    let units = knowledge::World::new(&store).await;
    let unit = units.published(&store, "one", 60).await;
    let (agent, operator) = units.author;
    let public = project(&store, new_project(operator, "weather")).await;
    let private = NewProject {
        visibility: Visibility::Private,
        ..new_project(operator, "secret")
    };
    let private = project(&store, private).await;
    let accounts = store.public_accounts();
    assert_eq!(accounts.dataset_end("weather").await.unwrap(), None);
    assert_eq!(accounts.unit_end(unit).await.unwrap(), None);
    let hide = async |kind: ReportKind, item: String| {
        let moderation = store.moderation();
        assert!(
            moderation
                .hide(kind, item, Some(ReportReason::Spam), at(40))
                .await
                .unwrap()
        );
    };
    for dataset in [public, private] {
        hide(ReportKind::Dataset, dataset.to_string()).await;
    }
    let down = Some(PublicEnd::TakenDown(at(40)));
    assert_eq!(accounts.dataset_end("weather").await.unwrap(), down);
    for slug in ["secret", "missing", "nul\0"] {
        assert_eq!(accounts.dataset_end(slug).await.unwrap(), None, "{slug}");
    }
    let _retired = store.knowledge().retire(unit, unit, at(30)).await.unwrap();
    assert_eq!(
        accounts.unit_end(unit).await.unwrap(),
        Some(PublicEnd::Withdrawn(at(30)))
    );
    hide(ReportKind::Unit, unit.to_string()).await;
    assert_eq!(accounts.unit_end(unit).await.unwrap(), down);
    assert_eq!(accounts.agent_end("author").await.unwrap(), None);
    hide(ReportKind::Agent, agent.to_string()).await;
    assert_eq!(accounts.agent_end("author").await.unwrap(), down);
    assert_eq!(accounts.agent("author").await.unwrap(), None);
    assert_eq!(accounts.request_end("missing").await.unwrap(), None);
}

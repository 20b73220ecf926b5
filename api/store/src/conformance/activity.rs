//! Scenarios about the public feed.

use types::vocabulary::Visibility;

use super::fixture::{World, at, merged, new_project, open, outcome, project};
use super::knowledge;
use crate::{ActivityKind, NewProject, Store};

async fn kinds(store: &Store) -> Vec<(ActivityKind, String)> {
    let shown = store.feed().before(i64::MAX, 10).await.unwrap();
    shown.into_iter().map(|entry| (entry.kind, entry.item)).collect()
}

/// A public dataset, its versions and a published unit are in the feed, newest first; what is private, retired or hidden
/// is not. Nothing of a private project takes a number.
pub async fn the_feed_has_what_anybody_may_see(url: &str) {
    let store = open(url).await;
    let world = knowledge::World::new(&store).await;
    let unit = world.published(&store, "one", 60).await;
    let (agent, operator) = world.author;
    let public = project(&store, new_project(operator, "weather")).await;
    let private = NewProject {
        visibility: Visibility::Private,
        ..new_project(operator, "secret")
    };
    let private = project(&store, private).await;
    for project in [public, private] {
        let world = World {
            operator,
            agent,
            project,
        };
        let id = world.submitted(&store, 1).await[0];
        let applied = store.outcomes_apply(vec![outcome(id, merged(1))]).await.unwrap();
        assert!(applied[0].changed);
        let again = store.outcomes_apply(vec![outcome(id, merged(1))]).await.unwrap();
        assert!(!again[0].changed);
    }
    let entry = |kind, item: &str| (kind, item.to_owned());
    let dataset = [
        entry(ActivityKind::Version, "weather"),
        entry(ActivityKind::Dataset, "weather"),
    ];
    assert_eq!(
        kinds(&store).await,
        [&dataset[..], &[entry(ActivityKind::Unit, &unit.to_string())]].concat()
    );
    assert_eq!(store.feed().last().await.unwrap(), 3);
    let after = store.feed().after(1, 10).await.unwrap();
    assert_eq!(after.iter().map(|entry| entry.seq).collect::<Vec<_>>(), [2, 3]);
    assert_eq!((after[1].subject.as_str(), after[1].records), ("1", Some(2)));
    assert_eq!(after[1].agent.as_deref(), Some("author"));
    let _retired = store.knowledge().retire(unit, unit, at(30)).await.unwrap();
    assert_eq!(kinds(&store).await, dataset);
}

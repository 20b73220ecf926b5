//! Scenarios about who reads, rates and comments on knowledge units, and about their erasure.

use std::time::Duration;

use types::{AgentId, OperatorId, UnitId};

use super::fixture::{agent, at, open, race};
use super::knowledge::{World, apply, is_sound, published, status, submitted};
use crate::{
    ItemKind, NewComment, NewRating, NewVectors, Outbox, Rated, RatingCursor, ShownUnit, Standing, UnitStatus,
};

const DAY: Duration = Duration::from_hours(24);

/// The first read of an agent of another operator counts once for all versions, and gives points once.
pub async fn a_first_read_counts_once(url: &str) {
    let store = open(url).await;
    let world = World::new(&store).await;
    let one = world.published(&store, "one", 60).await;
    let read = async |unit, who, second| store.knowledge().read(one, unit, who, at(second)).await.unwrap();
    assert!(!read(one, world.author, 20).await, "the own operator");
    assert!(read(one, world.reader, 20).await);
    assert!(!read(one, world.reader, 21).await);
    let two = submitted(&store, world.revision(one, one, "two")).await;
    assert_eq!(apply(&store, vec![published(two, 60)]).await, [true]);
    assert!(!read(two, world.reader, 22).await, "another version");
    let sums = store.points().of_agent(world.author.0).await.unwrap();
    assert_eq!((sums.points, sums.first_reads, sums.published), (65, 1, 2));
    assert_eq!(store.knowledge().unit(two).await.unwrap().unwrap().chain.readers, 1);
    let standing = store.knowledge().standing(one, world.reader.0, at(30)).await.unwrap();
    assert!(standing.has_read && !standing.is_permitted);
    is_sound(&store).await;
}

/// Many reads of one agent at once count once.
pub async fn one_of_many_reads_is_the_first(url: &str) {
    let store = open(url).await;
    let world = World::new(&store).await;
    let one = world.published(&store, "one", 60).await;
    let counted = race([store.clone(), open(url).await], 8, move |store, _| async move {
        store.knowledge().read(one, one, world.reader, at(20)).await.unwrap()
    })
    .await;
    assert_eq!(counted.iter().filter(|first| **first).count(), 1);
    assert_eq!(store.points().of_agent(world.author.0).await.unwrap().points, 65);
    is_sound(&store).await;
}

/// A rating needs a recorded read or a permit that is not over, not of the own operator, and is given once.
pub async fn a_rating_follows_a_read_and_is_given_once(url: &str) {
    let store = open(url).await;
    let world = World::new(&store).await;
    let one = world.published(&store, "one", 60).await;
    let rate = async |who: (AgentId, OperatorId), rating, second| {
        let new = NewRating {
            chain: one,
            unit: one,
            agent: who.0,
            operator: who.1,
            rating,
            comment: Some("Works.".to_owned()),
            now: at(second),
        };
        store.knowledge().rate(new).await.unwrap()
    };
    let third = (agent(&store, world.reader.1, "third").await, world.reader.1);
    assert_eq!(rate(world.author, 5, 20).await, Rated::Own);
    assert_eq!(rate(world.reader, 5, 20).await, Rated::NotRead);
    store
        .knowledge()
        .permit(one, world.reader.0, at(20), DAY)
        .await
        .unwrap();
    let standing = Standing {
        has_read: false,
        is_permitted: true,
    };
    assert_eq!(
        store.knowledge().standing(one, world.reader.0, at(21)).await.unwrap(),
        standing
    );
    assert_eq!(
        rate(world.reader, 5, 20 + 86_400).await,
        Rated::NotRead,
        "the permit is over"
    );
    assert_eq!(
        rate(world.reader, 4, 20 + 86_399).await,
        Rated::Added { count: 1, sum: 4 }
    );
    assert_eq!(rate(world.reader, 1, 30).await, Rated::Before);
    assert!(store.knowledge().read(one, one, third, at(30)).await.unwrap());
    assert_eq!(rate(third, 1, 31).await, Rated::Added { count: 2, sum: 5 });
    let ratings = store.knowledge().ratings(one, None, 1).await.unwrap();
    assert_eq!(ratings.histogram, [1, 0, 0, 1, 0]);
    let last = &ratings.items[0];
    assert_eq!((last.agent, last.stars, last.version), (world.reader.0, 4, Some(1)));
    let after = Some(RatingCursor {
        at: last.at,
        agent: last.agent,
    });
    let rest = store.knowledge().ratings(one, after, 10).await.unwrap().items;
    assert_eq!(rest.iter().map(|rating| rating.agent).collect::<Vec<_>>(), [third.0]);
    // Each operator finds what its agents gave, a page at a time.
    let console = store.console();
    let given = console.ratings_by(world.reader.1, None, 1).await.unwrap();
    let place = given[0].place();
    assert_eq!(place.to_string().parse(), Ok(place));
    let later = console.ratings_by(world.reader.1, Some(place), 10).await.unwrap();
    let mut both: Vec<_> = given.iter().chain(&later).map(|row| (row.agent, row.rating)).collect();
    both.sort_unstable();
    let mut expected = [(world.reader.0, 4), (third.0, 1)];
    expected.sort_unstable();
    assert_eq!(both, expected);
    assert_eq!(console.ratings_by(world.author.1, None, 10).await.unwrap(), []);
    assert_eq!(store.knowledge().permits_prune(at(20 + 86_400)).await.unwrap(), 1);
    is_sound(&store).await;
}

/// A reply answers a comment of the same item; numbers rise.
pub async fn a_reply_answers_a_comment_of_its_item(url: &str) {
    let store = open(url).await;
    let world = World::new(&store).await;
    let (one, two) = (
        world.published(&store, "one", 60).await,
        world.published(&store, "two", 60).await,
    );
    let say = async |kind, item: UnitId, parent| {
        let new = NewComment {
            kind,
            item: item.to_string(),
            version: None,
            agent: world.reader.0,
            operator: world.reader.1,
            parent,
            body: "A question.".to_owned(),
            now: at(20),
        };
        store.comments().add(new).await.unwrap()
    };
    let first = say(ItemKind::Unit, one, None).await.unwrap();
    let reply = say(ItemKind::Unit, one, Some(first)).await.unwrap();
    assert!(reply > first);
    assert_eq!(say(ItemKind::Unit, two, Some(first)).await, None);
    assert_eq!(say(ItemKind::Dataset, one, Some(first)).await, None);
    assert_eq!(say(ItemKind::Unit, one, Some(reply + 100)).await, None);
    let listed = store
        .comments()
        .of(ItemKind::Unit, &one.to_string(), 0, 10)
        .await
        .unwrap();
    let listed: Vec<_> = listed.iter().map(|comment| (comment.id, comment.parent)).collect();
    assert_eq!(listed, [(first, None), (reply, Some(first))]);
    assert_eq!(
        store.comments().count(ItemKind::Unit, &one.to_string()).await.unwrap(),
        2
    );
    assert_eq!(
        store
            .comments()
            .of(ItemKind::Unit, &one.to_string(), first, 10)
            .await
            .unwrap()
            .len(),
        1
    );
    assert_eq!(
        store.knowledge().unit(one).await.unwrap().unwrap().chain.comment_count,
        2
    );
    is_sound(&store).await;
}

/// The newest units come first, a page follows the one before it, and what is not shown is on none.
pub async fn the_newest_units_come_first(url: &str) {
    let store = open(url).await;
    let world = World::new(&store).await;
    let (one, two) = (
        world.published(&store, "one", 60).await,
        world.published(&store, "two", 61).await,
    );
    submitted(&store, world.revision(one, one, "three")).await;
    let searching = store.searching();
    let newest = searching.units_newest(None, 10).await.unwrap();
    let mut ids: Vec<UnitId> = newest.iter().map(|unit| unit.id).collect();
    assert!(newest.is_sorted_by_key(|unit| std::cmp::Reverse((unit.published_at, unit.id.to_string()))));
    let first = ShownUnit {
        id: newest[0].id,
        published_at: newest[0].published_at.unwrap(),
    };
    let rest = searching.units_newest(Some(first), 10).await.unwrap();
    assert_eq!(rest, newest[1..]);
    assert_eq!(searching.units_newest(None, 1).await.unwrap(), newest[..1]);
    ids.sort_unstable_by_key(UnitId::to_string);
    let mut both = [one, two];
    both.sort_unstable_by_key(UnitId::to_string);
    assert_eq!(ids, both);
    assert!(store.knowledge().erase(one, at(20)).await.unwrap());
    let left: Vec<UnitId> = searching
        .units_newest(None, 10)
        .await
        .unwrap()
        .iter()
        .map(|unit| unit.id)
        .collect();
    assert_eq!(left, [two]);
}

/// An erased unit has no text left, and a version in work ends.
pub async fn an_erased_unit_has_no_text(url: &str) {
    let store = open(url).await;
    let world = World::new(&store).await;
    let one = world.published(&store, "one", 60).await;
    let two = submitted(&store, world.revision(one, one, "two")).await;
    let searching = store.searching();
    let vectors = |item: &str, hash: u8, pieces: u8| NewVectors {
        item: item.to_owned(),
        hash: vec![hash],
        vectors: (0..pieces).map(|piece| vec![piece, 255, hash]).collect(),
    };
    let item = one.to_string();
    // A text that became shorter has fewer pieces.
    for (hash, pieces) in [(1, 5), (2, 2)] {
        let new = vectors(&item, hash, pieces);
        assert!(searching.keep_vectors("m", Some(one), new).await.unwrap());
    }
    assert!(
        searching
            .keep_vectors("m", None, vectors("dataset", 3, 1))
            .await
            .unwrap()
    );
    let items = [item.clone(), "dataset".to_owned(), "none".to_owned()];
    let kept = async || {
        let kept = searching.vectors("m", &items).await.unwrap();
        let kept = kept.into_iter().map(|kept| (kept.item, kept.chunk, kept.vector));
        kept.collect::<Vec<_>>()
    };
    let of_dataset = ("dataset".to_owned(), 0, vec![0, 255, 3]);
    let mut all = vec![
        (item.clone(), 0, vec![0, 255, 2]),
        (item.clone(), 1, vec![1, 255, 2]),
        of_dataset.clone(),
    ];
    all.sort();
    assert_eq!(kept().await, all);
    assert!(searching.vectors("other", &items).await.unwrap().is_empty());
    assert!(store.knowledge().erase(one, at(20)).await.unwrap());
    assert!(
        !searching
            .keep_vectors("m", Some(one), vectors(&item, 4, 1))
            .await
            .unwrap()
    );
    assert_eq!(kept().await, [of_dataset]);
    assert!(!store.knowledge().erase(one, at(21)).await.unwrap());
    assert!(!store.knowledge().erase(UnitId::new(at(0)), at(21)).await.unwrap());
    for id in [one, two] {
        let unit = store.knowledge().unit(id).await.unwrap().unwrap();
        assert_eq!((unit.title, unit.body, unit.source_declaration), Default::default());
        assert_eq!(
            (unit.chain.erased_at, unit.chain.taken_down.is_some()),
            (Some(at(20)), true)
        );
    }
    assert_eq!(status(&store, two).await, UnitStatus::Rejected);
    assert_eq!(store.knowledge().outbox_size().await.unwrap(), Outbox::default());
    is_sound(&store).await;
}

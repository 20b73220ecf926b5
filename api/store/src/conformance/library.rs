//! Scenarios about the library of an operator: what it bought, and what its agents read.

use std::time::Duration;

use types::vocabulary::ItemKind;

use super::fixture::{at, open};
use super::knowledge::World;
use super::money::{Market, give, merge};
use crate::{LibraryFilter, LibraryOrder, OwnedItem, PriceChanged, Store, UnitRetired};

async fn listed(store: &Store, market: &Market, filter: LibraryFilter) -> Vec<OwnedItem> {
    let filter = LibraryFilter { limit: 9, ..filter };
    let money = store.money();
    let items = money.library(market.buyer, &filter).await.unwrap();
    let count = money.library_count(market.buyer, &filter).await.unwrap();
    assert_eq!(count, items.len() as u64);
    items
}

/// An item is listed once, by the purchase of its highest version, beside the newest version that there is.
pub async fn what_was_bought_is_listed_once(url: &str) {
    let store = open(url).await;
    let market = Market::new(&store, 500_000, false).await;
    give(&store, market.buyer, 2_000_000, false, "g").await;
    let all = LibraryFilter::default;
    let newer = || LibraryFilter {
        is_newer: true,
        ..all()
    };
    assert_eq!(listed(&store, &market, all()).await, []);
    let first = market.buy(&store, 10).await;
    let items = listed(&store, &market, all()).await;
    let [item] = &items[..] else {
        unreachable!("one purchase: {items:?}");
    };
    assert_eq!(item.sale, first);
    assert_eq!(
        (item.slug.as_deref(), item.agent_name.as_deref(), item.newest),
        (Some("prices"), Some("shopper"), Some(1))
    );
    assert!(!item.is_hidden && item.confirmed.is_none() && item.title.is_some());
    assert_eq!(listed(&store, &market, newer()).await, []);
    merge(&store, market.seller, market.item, 2).await;
    let items = listed(&store, &market, newer()).await;
    assert_eq!((items.len(), items[0].newest, items[0].sale.version), (1, Some(2), 1));
    let second = market.buy(&store, 20).await;
    for order in [LibraryOrder::Newest, LibraryOrder::Title, LibraryOrder::Price] {
        let items = listed(&store, &market, LibraryFilter { order, ..all() }).await;
        assert_eq!(items.iter().map(|item| item.sale.id).collect::<Vec<_>>(), [second.id]);
    }
    assert_eq!(listed(&store, &market, newer()).await, []);
    let with = |q: &str, kind| LibraryFilter {
        q: q.to_owned(),
        kind,
        ..all()
    };
    for (q, kind, count) in [
        ("PRICES", None, 1),
        (" prices ", Some(ItemKind::Dataset), 1),
        ("prices", Some(ItemKind::Unit), 0),
        ("%", None, 0),
        ("no such words", None, 0),
        ("\0", None, 0),
    ] {
        assert_eq!(
            listed(&store, &market, with(q, kind)).await.len(),
            count,
            "{q} {kind:?}"
        );
    }
    let many = LibraryFilter { limit: 9, ..all() };
    let seller = store.money().library(market.seller.operator, &many).await;
    assert_eq!(seller.unwrap(), [], "another operator");
}

/// A unit that agents read is listed once, until it has a price; of a retired one its readers keep it.
pub async fn a_read_is_listed_while_it_may_be_read_again(url: &str) {
    let store = open(url).await;
    let world = World::new(&store).await;
    let (one, two) = (
        world.published(&store, "one %", 60).await,
        world.published(&store, "two", 60).await,
    );
    let (knowledge, reader) = (store.knowledge(), world.reader.1);
    for (unit, second) in [(one, 20), (two, 30)] {
        assert!(!knowledge.is_read_by(reader, unit).await.unwrap());
        assert!(knowledge.read(unit, unit, world.reader, at(second)).await.unwrap());
        assert!(knowledge.is_read_by(reader, unit).await.unwrap());
        assert!(!knowledge.is_read_by(world.author.1, unit).await.unwrap());
    }
    let read = async |q: &str, place: (u32, u32)| {
        let units = knowledge.read_by(reader, (q, false), place).await.unwrap();
        units
            .iter()
            .map(|unit| (unit.chain, unit.latest, unit.read_at))
            .collect::<Vec<_>>()
    };
    let (first, second) = ((one, one, at(20)), (two, two, at(30)));
    assert_eq!(read("", (0, 9)).await, [second, first]);
    assert_eq!(read("", (1, 9)).await, [first]);
    assert_eq!(read("", (0, 1)).await, [second]);
    assert_eq!(read("%", (0, 9)).await, [first], "a letter and no pattern");
    assert_eq!(knowledge.read_by(reader, ("", true), (0, 9)).await.unwrap().len(), 2);
    assert_eq!(knowledge.read_by_count(reader, "TWO").await.unwrap(), 1);
    let priced = knowledge
        .price(one, Some(250_000), at(40), Duration::ZERO)
        .await
        .unwrap();
    assert!(matches!(priced, PriceChanged::Changed(_)), "{priced:?}");
    assert_eq!(read("", (0, 9)).await, [second]);
    let retired = knowledge.retire(one, one, at(50)).await.unwrap();
    assert_eq!(retired, UnitRetired::Retired);
    assert_eq!(read("", (0, 9)).await, [second, first]);
}

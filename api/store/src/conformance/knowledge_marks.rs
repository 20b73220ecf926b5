//! Scenarios about marks of readers on units: who gives them, whose count, and the trust that sellers get by them.

use types::{AgentId, LedgerEventId, OperatorId, SaleId, UnitId};

use super::fixture::{agent, at, mail, open, operator, race};
use super::knowledge::{World, apply, is_sound, published, submitted};
use super::money::{give, terms};
use super::payouts::pay_from;
use crate::{ItemKind, MarkCounts, MarkKind, Marked, NewMark, NewPurchase, NewPurchaseAsk, PaidFor, Purchased, Store};

const PRICE: i64 = 500_000;

/// Returns the wallet with this number.
fn wallet(number: u32) -> String {
    format!("0x{number:040x}")
}

/// A unit of the author that costs [`PRICE`].
async fn priced(store: &Store, world: &World, text: &str) -> UnitId {
    let new = crate::NewUnit {
        price_micro: Some(PRICE),
        ..world.version(text)
    };
    let id = submitted(store, new).await;
    assert_eq!(apply(store, vec![published(id, 60)]).await, [true]);
    id
}

/// An agent of a new operator.
async fn stranger(store: &Store, name: &str) -> (AgentId, OperatorId) {
    let operator = operator(store, &format!("{name}@example.org")).await;
    (agent(store, operator, name).await, operator)
}

/// Credits a pack that a wallet pays for.
async fn top_up(store: &Store, (_, operator): (AgentId, OperatorId), wallet: &str) {
    let (_, settled) = pay_from(store, wallet, PaidFor::Pack, operator.to_string(), 1_000_000, 10).await;
    assert!(matches!(settled, crate::Settled::Credited { .. }), "{settled:?}");
}

/// Buys and reads a unit.
async fn buy(store: &Store, unit: UnitId, (agent, operator): (AgentId, OperatorId)) {
    let purchase = NewPurchase {
        sale: SaleId::new(at(20)),
        event: LedgerEventId::new(at(20)),
        kind: ItemKind::Unit,
        item: unit.to_string(),
        version: None,
        buyer: operator,
        agent: Some(agent),
        app: None,
        max_price: None,
        ask: NewPurchaseAsk::silent(at(20)),
        terms: terms(),
        now: at(20),
    };
    let bought = store.money().purchase(purchase).await.unwrap();
    assert!(matches!(bought, Purchased::Bought(_)), "{bought:?}");
    read(store, unit, (agent, operator)).await;
}

async fn read(store: &Store, unit: UnitId, who: (AgentId, OperatorId)) {
    assert!(store.knowledge().read(unit, unit, who, at(21)).await.unwrap());
}

fn new_mark(unit: UnitId, who: (AgentId, OperatorId), mark: MarkKind, second: i64) -> NewMark {
    NewMark {
        chain: unit,
        unit,
        agent: who.0,
        operator: who.1,
        mark,
        ran: "The script of the text, three times.".to_owned(),
        now: at(second),
    }
}

/// Sets a mark. Returns if it counts, and the numbers of the unit.
async fn mark(
    store: &Store,
    unit: UnitId,
    who: (AgentId, OperatorId),
    kind: MarkKind,
    second: i64,
) -> (bool, [u64; 3]) {
    let marked = store.knowledge().mark(new_mark(unit, who, kind, second)).await.unwrap();
    let Marked::Set { counts, marks, .. } = marked else {
        unreachable!("the unit was read: {marked:?}");
    };
    let stored = store.knowledge().unit(unit).await.unwrap().unwrap().chain.marks;
    assert_eq!(stored, marks);
    (counts, [marks.confirmed, marks.stale, marks.incorrect])
}

async fn is_trusted(store: &Store, unit: UnitId) -> bool {
    let unit = store.knowledge().unit(unit).await.unwrap().unwrap();
    unit.is_of_trusted_seller
}

/// A mark needs a recorded read, not of the own operator; a later one takes its place, and the same again is no change.
pub async fn a_mark_follows_a_read_and_takes_the_place_of_the_one_before(url: &str) {
    let store = open(url).await;
    let world = World::new(&store).await;
    let one = world.published(&store, "one", 60).await;
    let set = async |who, kind, second| store.knowledge().mark(new_mark(one, who, kind, second)).await.unwrap();
    assert_eq!(set(world.author, MarkKind::Confirmed, 20).await, Marked::Own);
    assert_eq!(set(world.reader, MarkKind::Confirmed, 20).await, Marked::NotRead);
    let day = std::time::Duration::from_hours(24);
    store
        .knowledge()
        .permit(one, world.reader.0, at(20), day)
        .await
        .unwrap();
    assert_eq!(
        set(world.reader, MarkKind::Confirmed, 20).await,
        Marked::NotRead,
        "a permit is no record of a read"
    );
    read(&store, one, world.reader).await;
    let unpaid = |second| Marked::Set {
        at: at(second),
        counts: false,
        marks: MarkCounts::default(),
    };
    assert_eq!(set(world.reader, MarkKind::Confirmed, 30).await, unpaid(30));
    assert_eq!(
        set(world.reader, MarkKind::Confirmed, 40).await,
        unpaid(30),
        "the same again"
    );
    assert_eq!(set(world.reader, MarkKind::Stale, 50).await, unpaid(50));
    let second = (agent(&store, world.reader.1, "second").await, world.reader.1);
    read(&store, one, second).await;
    assert_eq!(set(second, MarkKind::Incorrect, 60).await, unpaid(60));
    let marks = store.knowledge().marks(one, 10).await.unwrap();
    let found: Vec<_> = marks.iter().map(|mark| (mark.agent_name.as_str(), mark.mark)).collect();
    assert_eq!(found, [("second", MarkKind::Incorrect), ("reader", MarkKind::Stale)]);
    assert_eq!(
        (marks[0].version, marks[0].counts, marks[0].at),
        (Some(1), false, at(60))
    );
    assert_eq!(store.knowledge().marks(one, 1).await.unwrap().len(), 1);
    let set_by = store.console().marks_by(world.reader.1, None, 10).await.unwrap();
    let mut set_by: Vec<_> = set_by.iter().map(|row| (row.agent, row.mark)).collect();
    set_by.sort_unstable_by_key(|(agent, _)| *agent);
    let mut expected = [(world.reader.0, MarkKind::Stale), (second.0, MarkKind::Incorrect)];
    expected.sort_unstable_by_key(|(agent, _)| *agent);
    assert_eq!(set_by, expected);
    assert_eq!(store.console().marks_by(world.author.1, None, 10).await.unwrap(), []);
    is_sound(&store).await;
    assert!(store.knowledge().erase(one, at(70)).await.unwrap());
    let erased = store.knowledge().marks(one, 10).await.unwrap();
    assert!(erased.iter().all(|mark| mark.ran.is_empty()), "{erased:?}");
    is_sound(&store).await;
}

/// A mark counts when its operator paid with money that came in, and once for each wallet: neither given credits nor
/// granted ones, no second agent, no second operator of the wallet, and no wallet of the seller.
pub async fn a_mark_counts_once_for_a_wallet_that_paid(url: &str) {
    let store = open(url).await;
    let world = World::new(&store).await;
    let unit = priced(&store, &world, "one").await;
    let confirm = async |who, second| mark(&store, unit, who, MarkKind::Confirmed, second).await;

    let granted = stranger(&store, "granted").await;
    give(&store, granted.1, 1_000_000, false, "grant").await;
    buy(&store, unit, granted).await;
    assert_eq!(confirm(granted, 30).await, (false, [0, 0, 0]), "granted credits");
    top_up(&store, granted, &wallet(1)).await;
    assert_eq!(
        confirm(granted, 31).await,
        (true, [1, 0, 0]),
        "the same mark, now that it paid"
    );

    let sister = (agent(&store, granted.1, "sister").await, granted.1);
    read(&store, unit, sister).await;
    assert_eq!(confirm(sister, 32).await, (true, [1, 0, 0]), "the same operator");
    let accounts = store.accounts();
    let set = accounts.payout_set(granted.1, wallet(9), at(33), mail(at(33), None), at(33));
    set.await.unwrap();
    let third = (agent(&store, granted.1, "third").await, granted.1);
    read(&store, unit, third).await;
    assert_eq!(
        confirm(third, 34).await,
        (true, [1, 0, 0]),
        "another address of the operator"
    );

    let twin = stranger(&store, "twin").await;
    top_up(&store, twin, &wallet(1)).await;
    buy(&store, unit, twin).await;
    assert_eq!(confirm(twin, 35).await, (true, [1, 0, 0]), "the same wallet");

    let only_topped_up = stranger(&store, "idle").await;
    top_up(&store, only_topped_up, &wallet(2)).await;
    read(&store, unit, only_topped_up).await;
    assert_eq!(
        confirm(only_topped_up, 36).await,
        (false, [1, 0, 0]),
        "nothing was paid"
    );

    let seller = world.author.1;
    let address = wallet(0xAB).to_uppercase().replace("0X", "0x");
    let set = accounts.payout_set(seller, address, at(36), mail(at(36), None), at(36));
    set.await.unwrap();
    let shill = stranger(&store, "shill").await;
    top_up(&store, shill, &wallet(0xAB)).await;
    buy(&store, unit, shill).await;
    assert_eq!(confirm(shill, 37).await, (false, [1, 0, 0]), "a wallet of the seller");

    let other = stranger(&store, "other").await;
    top_up(&store, other, &wallet(3)).await;
    buy(&store, unit, other).await;
    assert_eq!(
        mark(&store, unit, other, MarkKind::Incorrect, 38).await,
        (true, [1, 0, 1])
    );
    let found = store.knowledge().unit(unit).await.unwrap().unwrap().chain.marks;
    assert!(found.is_doubted(), "{found:?}");
    assert_eq!(found.confirmed_at, Some(at(35)));
    assert_eq!(confirm(other, 39).await, (true, [2, 0, 0]), "a mark that was changed");
    is_sound(&store).await;
}

/// A seller is new until three payers confirm its units, and again when one takes that back. The search reads all its
/// units again.
pub async fn three_payers_make_a_seller_trusted(url: &str) {
    let store = open(url).await;
    let world = World::new(&store).await;
    let (one, two) = (priced(&store, &world, "one").await, priced(&store, &world, "two").await);
    let mut payers = Vec::new();
    for number in 1..=3 {
        let who = stranger(&store, &format!("payer-{number}")).await;
        top_up(&store, who, &wallet(number)).await;
        buy(&store, one, who).await;
        payers.push(who);
    }
    let changed = async || {
        let last = store.searching().last_change().await.unwrap();
        let changes = store.searching().changes_after(0, 1_000).await.unwrap();
        assert_eq!(changes.last().unwrap().seq, last);
        assert_eq!(
            i64::try_from(changes.len()).unwrap(),
            last,
            "no number is left out or given twice"
        );
        changes.into_iter().map(|change| change.item).collect::<Vec<_>>()
    };
    mark(&store, one, payers[0], MarkKind::Confirmed, 30).await;
    let before = changed().await.len();
    mark(&store, one, payers[1], MarkKind::Confirmed, 31).await;
    assert!(!is_trusted(&store, two).await);
    assert_eq!(
        changed().await.len(),
        before,
        "nothing that the search knows has changed"
    );
    mark(&store, one, payers[2], MarkKind::Confirmed, 32).await;
    assert!(is_trusted(&store, two).await, "also for other units of the seller");
    let mut both = vec![one.to_string(), two.to_string()];
    both.sort_unstable();
    assert_eq!(changed().await[before..], both);
    mark(&store, one, payers[0], MarkKind::Stale, 33).await;
    assert!(!is_trusted(&store, one).await);
    assert_eq!(changed().await[before + 2..], both);
    is_sound(&store).await;
}

/// Payers that confirm different units of a seller at once are all counted.
pub async fn payers_on_different_units_at_once_are_all_counted(url: &str) {
    let store = open(url).await;
    let world = World::new(&store).await;
    let mut pairs = Vec::new();
    for number in 1..=3 {
        let unit = priced(&store, &world, &format!("unit {number}")).await;
        let who = stranger(&store, &format!("payer-{number}")).await;
        top_up(&store, who, &wallet(number)).await;
        buy(&store, unit, who).await;
        pairs.push((unit, who));
    }
    let racing = pairs.clone();
    let counted = race([store.clone(), open(url).await], 6, move |store, number| {
        let (unit, who) = racing[number % 3];
        async move {
            store
                .knowledge()
                .mark(new_mark(unit, who, MarkKind::Confirmed, 30))
                .await
                .unwrap()
        }
    })
    .await;
    assert!(
        counted
            .iter()
            .all(|marked| matches!(marked, Marked::Set { counts: true, .. })),
        "{counted:?}"
    );
    assert!(is_trusted(&store, pairs[0].0).await);
    is_sound(&store).await;
}

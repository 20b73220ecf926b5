//! Scenarios about caps of agents and apps, and the counters of what they spend.

use oauth::family::Family;
use oauth::{
    Access, AppBudget, Challenge, Code, Connection, ConnectionId, Grant, Hash, Redeemed, Resource, Scope, Scopes,
    Storage as _,
};
use pay::BLOCK_BYTES;
use types::money::MicroUsdc;
use types::vocabulary::{SpendOf, SpendPeriod};
use types::{AgentId, DatasetId, LedgerEventId, OperatorId};

use super::fixture::{agent, at, fresh_hash, open, operator, race};
use super::money::{ASSET, FREE, Market, balances, dispute, faults, give, paid_dataset, resolve, sound};
use super::money_check::plant;
use crate::{
    DisputeResolution, EgressLease, EgressLeased, NewPurchase, Purchased, SpendCapped, SpendLimits, SpendOwner,
    Spender, Spending, Store,
};

/// Price of the items of these scenarios.
const PRICE: i64 = 100_000;
const DAY: i64 = 86_400;
/// Time of the checks.
const NOW: i64 = 90 * DAY;

/// A buyer with credits, and items at [`PRICE`].
pub(crate) struct Shop {
    pub(crate) market: Market,
    pub(crate) items: Vec<DatasetId>,
}

impl Shop {
    pub(crate) async fn of(store: &Store, items: usize) -> Self {
        let market = Market::new(store, PRICE, false).await;
        give(store, market.buyer, 100 * PRICE, false, "shop").await;
        let mut all = vec![market.item];
        for number in 1..items {
            all.push(paid_dataset(store, market.seller, &format!("item-{number}"), Some(PRICE), false).await);
        }
        Self { market, items: all }
    }

    /// Returns the purchase of an item by the buyer's agent, through an app if there is one.
    pub(crate) fn purchase(&self, item: usize, app: Option<ConnectionId>, now: i64) -> NewPurchase {
        NewPurchase {
            item: self.items[item].to_string(),
            app,
            ..self.market.purchase(now)
        }
    }

    pub(crate) async fn buy(&self, store: &Store, item: usize, app: Option<ConnectionId>, now: i64) -> Purchased {
        store.money().purchase(self.purchase(item, app, now)).await.unwrap()
    }

    pub(crate) async fn limit(&self, store: &Store, owner: SpendOwner, limits: SpendLimits) {
        let money = store.money();
        assert!(money.limits_set(self.market.buyer, owner, limits, at(1)).await.unwrap());
    }

    pub(crate) const fn agent(&self) -> SpendOwner {
        SpendOwner::Agent(self.market.buyers_agent)
    }
}

pub(crate) const fn micro(amount: i64) -> MicroUsdc {
    MicroUsdc(amount)
}

/// Connects an app to an agent with the budget that its person gave it.
pub(crate) async fn connect(
    store: &Store,
    operator: OperatorId,
    agent: AgentId,
    budget: AppBudget,
    now: i64,
) -> ConnectionId {
    let grant = Grant {
        client_id: "https://app.example/client.json".to_owned(),
        operator,
        agent,
        resource: Resource::Mcp,
        scopes: Scopes::of(&[Scope::Read, Scope::Spend]),
    };
    let code = Code {
        grant: grant.clone(),
        redirect_uri: "https://app.example/cb".to_owned(),
        challenge: Challenge::from_bytes([0; 32]),
        budget,
        expires_at: at(now + 60),
    };
    let hash = Hash(fresh_hash());
    store.add_code(hash, &code).await.unwrap();
    let connection = Connection {
        id: ConnectionId::new(at(now)),
        grant,
        family: Family::new(at(now)),
    };
    let access = Access {
        connection: connection.id,
        scopes: connection.grant.scopes,
        expires_at: at(now + 3_600),
    };
    let redeemed = store
        .redeem(hash, &connection, None, (Hash(fresh_hash()), &access))
        .await;
    assert_eq!(redeemed.unwrap(), Redeemed::Now);
    connection.id
}

async fn spending(store: &Store, owner: SpendOwner, now: i64) -> Spending {
    store.money().spendings(&[owner], at(now)).await.unwrap().remove(0)
}

fn is_bought(purchased: &Purchased) -> bool {
    matches!(purchased, Purchased::Bought(_))
}

/// A purchase that is dearer than the cap of one is refused and leaves nothing; what fits is counted, free repeats are not.
pub async fn a_purchase_fits_the_cap_of_one(url: &str) {
    let store = open(url).await;
    let shop = Shop::of(&store, 2).await;
    assert_eq!(spending(&store, shop.agent(), 10).await, Spending::default());
    let limits = |per_purchase| SpendLimits {
        per_purchase,
        ..SpendLimits::default()
    };
    shop.limit(&store, shop.agent(), limits(Some(micro(PRICE - 1)))).await;
    let before = balances(&store, shop.market.buyer).await;
    let capped = SpendCapped {
        of: SpendOf::Agent,
        period: SpendPeriod::Purchase,
        cap: MicroUsdc(PRICE - 1),
        used: MicroUsdc(0),
        price: MicroUsdc(PRICE),
        resets_at: None,
        has_refund: false,
    };
    assert_eq!(shop.buy(&store, 0, None, 10).await, Purchased::Capped(capped));
    assert_eq!(balances(&store, shop.market.buyer).await, before);
    assert_eq!(spending(&store, shop.agent(), 10).await.on_day, MicroUsdc(0));

    // Nothing is bought with a cap of nothing, and everything without one.
    shop.limit(&store, shop.agent(), limits(Some(micro(0)))).await;
    assert!(matches!(shop.buy(&store, 0, None, 11).await, Purchased::Capped(_)));
    shop.limit(&store, shop.agent(), limits(Some(micro(PRICE)))).await;
    assert!(is_bought(&shop.buy(&store, 0, None, 12).await));
    assert_eq!(shop.buy(&store, 0, None, 13).await, Purchased::Owned { version: 1 });
    shop.limit(&store, shop.agent(), SpendLimits::default()).await;
    assert!(is_bought(&shop.buy(&store, 1, None, 14).await));
    let spent = spending(&store, shop.agent(), 15).await;
    assert_eq!(
        (spent.on_day, spent.in_month),
        (MicroUsdc(2 * PRICE), MicroUsdc(2 * PRICE))
    );
    assert_eq!(faults(&store, NOW).await, []);
}

/// What an app spends must fit its caps and those of its agent, and moves the counters of both.
pub async fn an_app_spends_within_its_caps_and_those_of_its_agent(url: &str) {
    let store = open(url).await;
    let shop = Shop::of(&store, 12).await;
    let (buyer, desk) = (shop.market.buyer, shop.market.buyers_agent);
    let budget = AppBudget {
        per_month: Some(micro(3 * PRICE)),
        approve_above: None,
    };
    let app = connect(&store, buyer, desk, budget, 5).await;
    let limits = SpendLimits {
        per_month: Some(micro(10 * PRICE)),
        ..SpendLimits::default()
    };
    shop.limit(&store, shop.agent(), limits).await;
    for item in 0..3 {
        assert!(is_bought(&shop.buy(&store, item, Some(app), 10).await), "{item}");
    }
    let refused = shop.buy(&store, 3, Some(app), 11).await;
    let Purchased::Capped(capped) = refused else {
        unreachable!("the app has spent its budget: {refused:?}");
    };
    assert_eq!((capped.of, capped.period), (SpendOf::App, SpendPeriod::Month));
    assert_eq!((capped.cap, capped.used), (MicroUsdc(3 * PRICE), MicroUsdc(3 * PRICE)));
    assert_eq!(capped.resets_at, Some(at(11).next_month()));
    // The refusal left nothing in the counter of the agent, which goes first.
    assert_eq!(spending(&store, shop.agent(), 12).await.in_month, MicroUsdc(3 * PRICE));
    for item in 3..10 {
        assert!(is_bought(&shop.buy(&store, item, None, 20).await), "{item}");
    }
    for by in [None, Some(app)] {
        let refused = shop.buy(&store, 10, by, 21).await;
        assert!(
            matches!(&refused, Purchased::Capped(capped) if capped.of == SpendOf::Agent),
            "{refused:?}"
        );
    }
    let spent = spending(&store, SpendOwner::App(app), 22).await;
    assert_eq!(
        spent.in_month,
        MicroUsdc(3 * PRICE),
        "the key moves no counter of the app"
    );
    assert_eq!(faults(&store, NOW).await, []);

    // Another consent is another app at zero.
    let another = connect(&store, buyer, desk, AppBudget::default(), 30).await;
    assert_eq!(
        spending(&store, SpendOwner::App(another), 31).await,
        Spending::default()
    );
}

/// Days and months begin anew at midnight UTC, and what was spent before a cap was set counts.
pub async fn a_cap_begins_anew_with_its_period(url: &str) {
    let store = open(url).await;
    let shop = Shop::of(&store, 6).await;
    // `at(0)` is 2023-11-14, 22:13:20 UTC.
    let midnight = i64::try_from(at(0).next_day().since(at(0)).as_secs()).unwrap();
    let december = i64::try_from(at(0).next_month().since(at(0)).as_secs()).unwrap();
    assert!(is_bought(&shop.buy(&store, 0, None, midnight - 2).await));
    let limits = SpendLimits {
        per_day: Some(micro(PRICE)),
        per_month: Some(micro(2 * PRICE)),
        ..SpendLimits::default()
    };
    shop.limit(&store, shop.agent(), limits).await;
    let refused = shop.buy(&store, 1, None, midnight - 1).await;
    let Purchased::Capped(capped) = refused else {
        unreachable!("what was spent before counts: {refused:?}");
    };
    assert_eq!(
        (capped.period, capped.resets_at),
        (SpendPeriod::Day, Some(at(midnight)))
    );
    assert!(is_bought(&shop.buy(&store, 1, None, midnight).await));
    for (now, period) in [(midnight + 1, SpendPeriod::Day), (midnight + DAY, SpendPeriod::Month)] {
        let refused = shop.buy(&store, 2, None, now).await;
        assert!(
            matches!(&refused, Purchased::Capped(capped) if capped.period == period),
            "{now}: {refused:?}"
        );
    }
    assert!(!is_bought(&shop.buy(&store, 2, None, december - 1).await));
    assert!(is_bought(&shop.buy(&store, 2, None, december).await));
    assert_eq!(faults(&store, NOW).await, []);
}

/// A refund gives nothing back to a cap, and the refusal after it says so.
pub async fn a_refund_gives_nothing_back_to_a_cap(url: &str) {
    let store = open(url).await;
    let shop = Shop::of(&store, 2).await;
    let limits = SpendLimits {
        per_day: Some(micro(PRICE)),
        ..SpendLimits::default()
    };
    shop.limit(&store, shop.agent(), limits).await;
    let Purchased::Bought(sale) = shop.buy(&store, 0, None, 10).await else {
        unreachable!("it fits the cap");
    };
    let refusal = async |now| match shop.buy(&store, 1, None, now).await {
        Purchased::Capped(capped) => capped.has_refund,
        other => unreachable!("the cap is reached: {other:?}"),
    };
    assert!(!refusal(11).await);
    let (id, _) = dispute(&store, sale.id, 20).await;
    let _resolved = resolve(&store, id, DisputeResolution::Refund { wallet: None }, 21).await;
    assert!(refusal(22).await);
    assert_eq!(faults(&store, NOW).await, []);
}

/// Purchases at once never pass a cap together, on two connections to the database.
pub async fn purchases_at_once_never_pass_a_cap(url: &str) {
    let stores = [open(url).await, open(url).await];
    let shop = Shop::of(&stores[0], 64).await;
    let limits = SpendLimits {
        per_day: Some(micro(10 * PRICE)),
        ..SpendLimits::default()
    };
    shop.limit(&stores[0], shop.agent(), limits).await;
    let purchases: Vec<_> = (0..64).map(|item| shop.purchase(item, None, 10)).collect();
    let tried = race(stores.clone(), 64, move |store, number| {
        let new = purchases[number].clone();
        async move { store.money().purchase(new).await.unwrap() }
    })
    .await;
    let count = |wanted: fn(&Purchased) -> bool| tried.iter().filter(|purchased| wanted(purchased)).count();
    assert_eq!(count(is_bought), 10);
    assert_eq!(count(|purchased| matches!(purchased, Purchased::Capped(_))), 54);
    let spent = spending(&stores[0], shop.agent(), 11).await;
    assert_eq!(
        (spent.on_day, spent.in_month),
        (MicroUsdc(10 * PRICE), MicroUsdc(10 * PRICE))
    );
    assert_eq!(faults(&stores[0], NOW).await, []);
}

/// Agents that buy one item at once buy it once, and none is told of a cap that only the winner used.
pub async fn one_of_many_purchases_uses_the_cap(url: &str) {
    let stores = [open(url).await, open(url).await];
    let shop = Shop::of(&stores[0], 1).await;
    let limits = SpendLimits {
        per_day: Some(micro(PRICE)),
        ..SpendLimits::default()
    };
    shop.limit(&stores[0], shop.agent(), limits).await;
    let one = shop.purchase(0, None, 10);
    let tried = race(stores.clone(), 24, move |store, _| {
        let new = NewPurchase {
            sale: types::SaleId::new(at(10)),
            event: LedgerEventId::new(at(10)),
            ..one.clone()
        };
        async move { store.money().purchase(new).await.unwrap() }
    })
    .await;
    assert_eq!(tried.iter().filter(|purchased| is_bought(purchased)).count(), 1);
    let owned = tried
        .iter()
        .filter(|purchased| **purchased == Purchased::Owned { version: 1 });
    assert_eq!(owned.count(), 23, "{tried:?}");
    assert_eq!(faults(&stores[0], NOW).await, []);
}

/// Blocks of egress fit the caps of the day and the month of the agent and the app that read, and nobody is asked.
pub async fn egress_is_paid_within_the_caps(url: &str) {
    const BLOCK: i64 = 1_250;
    let store = open(url).await;
    let shop = Shop::of(&store, 1).await;
    let (buyer, desk) = (shop.market.buyer, shop.market.buyers_agent);
    let app = connect(&store, buyer, desk, AppBudget::default(), 5).await;
    let limits = SpendLimits {
        // Neither is for usage.
        per_purchase: Some(micro(0)),
        approve_above: Some(micro(0)),
        per_day: Some(micro(2 * BLOCK)),
        per_month: None,
    };
    shop.limit(&store, shop.agent(), limits).await;
    let lease = async |bytes: u64, now| {
        let lease = EgressLease {
            account: format!("op:{buyer}"),
            month: at(now).month(),
            bytes,
            free: FREE,
            platform: 1 << 40,
            payer: Some(buyer),
            asset: ASSET.to_owned(),
            block: MicroUsdc(BLOCK),
            event: LedgerEventId::new(at(now)),
            spender: Some(Spender {
                agent: desk,
                app: Some(app),
            }),
            now: at(now),
        };
        store.money().egress_lease(lease).await.unwrap()
    };
    assert_eq!(lease(FREE, 10).await, EgressLeased::Leased);
    assert_eq!(
        spending(&store, shop.agent(), 10).await.on_day,
        MicroUsdc(0),
        "that was free"
    );
    assert_eq!(lease(2 * BLOCK_BYTES, 11).await, EgressLeased::Leased);
    let refused = lease(1, 12).await;
    let EgressLeased::Capped { need, capped } = refused else {
        unreachable!("two blocks are the cap of a day: {refused:?}");
    };
    assert_eq!(need, MicroUsdc(BLOCK));
    assert_eq!((capped.period, capped.used), (SpendPeriod::Day, MicroUsdc(2 * BLOCK)));
    assert_eq!(
        spending(&store, SpendOwner::App(app), 13).await.on_day,
        MicroUsdc(2 * BLOCK)
    );
    // What usage took of a cap is not there for purchases.
    assert!(matches!(shop.buy(&store, 0, None, 14).await, Purchased::Capped(_)));
    assert_eq!(lease(1, 12 + DAY).await, EgressLeased::Leased);
    sound(&store).await;
}

/// A person sets the limits of what is the operator's and lives, and of nothing else.
pub async fn limits_are_of_an_operators_own(url: &str) {
    let store = open(url).await;
    let shop = Shop::of(&store, 1).await;
    let (buyer, desk) = (shop.market.buyer, shop.market.buyers_agent);
    let app = connect(&store, buyer, desk, AppBudget::default(), 5).await;
    let eve = operator(&store, "eve@example.org").await;
    let set = async |operator, owner, now| {
        let limits = SpendLimits {
            per_day: Some(micro(1)),
            ..SpendLimits::default()
        };
        store
            .money()
            .limits_set(operator, owner, limits, at(now))
            .await
            .unwrap()
    };
    for owner in [SpendOwner::Agent(desk), SpendOwner::App(app)] {
        assert!(!set(eve, owner, 10).await, "{owner}");
        assert!(set(buyer, owner, 10).await, "{owner}");
    }
    let negative = SpendLimits {
        per_purchase: Some(micro(-1)),
        ..SpendLimits::default()
    };
    let money = store.money();
    let refused = money.limits_set(buyer, SpendOwner::Agent(desk), negative, at(11));
    assert!(refused.await.is_err());
    assert!(store.oauth().connection_end_of(buyer, app, at(12)).await.unwrap());
    assert!(!set(buyer, SpendOwner::App(app), 13).await);
    let other = agent(&store, buyer, "other").await;
    assert!(store.accounts().agent_remove(buyer, other, at(14)).await.unwrap());
    assert!(!set(buyer, SpendOwner::Agent(other), 15).await);
}

/// A counter that is not the sum of its charges is found, and a charge that nobody counted.
pub async fn a_counter_that_lies_is_found(url: &str) {
    let store = open(url).await;
    let shop = Shop::of(&store, 1).await;
    assert!(is_bought(&shop.buy(&store, 0, None, 10).await));
    assert_eq!(faults(&store, NOW).await, []);
    let owner = |owner: String| format!("UPDATE spend_used SET owner = '{owner}'");
    let used = |sign: char| format!("UPDATE spend_used SET used = used {sign} 1");
    for (planted, undone) in [
        (used('-'), used('+')),
        (owner("ag:nobody".to_owned()), owner(shop.agent().to_string())),
    ] {
        plant(&store, planted.clone()).await;
        let found = faults(&store, NOW).await;
        assert!(found.iter().any(|fault| fault.rule == "M17"), "{planted}: {found:?}");
        plant(&store, undone).await;
        assert_eq!(faults(&store, NOW).await, [], "after {planted}");
    }
    for change in ["UPDATE spends SET amount = amount - 1", "DELETE FROM spends"] {
        let changed = store.write_aside(move |cx: &mut sqlx::AnyConnection| {
            Box::pin(async move {
                sqlx::query(change).execute(cx).await?;
                Ok(crate::writer::Change::Keep(()))
            })
        });
        assert!(changed.await.is_err(), "{change}: a row of a charge never changes");
    }
    // A build that does not count leaves sales that are found, once those before the counters are over.
    plant(
        &store,
        "INSERT INTO ledger_events (id, asset, kind, key, at, month, subject, actor)
         SELECT 'planted', asset, kind, 'planted', at, month, subject, actor FROM ledger_events WHERE kind = 'sale'"
            .to_owned(),
    )
    .await;
    let found = faults(&store, NOW).await;
    let uncounted = found
        .iter()
        .any(|fault| fault.rule == "M17" && fault.subject == "planted");
    assert!(uncounted, "{found:?}");
}

//! Scenarios about money: purchases, balances, releases, disputes, grants and leases.

use std::time::Duration;

use pay::AccountKind;
use types::money::MicroUsdc;
use types::vocabulary::{Access, ItemKind, PaidWith};
use types::{AgentId, DatasetId, DisputeId, LedgerEventId, OperatorId, SaleId, Version};

use super::fixture::{World, agent, at, merged, new_project, open, operator, outcome, project, race};
use crate::{
    Balances, CheckTerms, DisputeDecision, DisputeOpened, DisputeResolution, DisputeResolved, EntryCursor, EntryFilter,
    Granted, MoneyFault, NewContribution, NewDispute, NewGrant, NewProject, NewPurchase, NewPurchaseAsk,
    ProjectChanges, Purchased, Sale, SaleState, SaleTerms, Store, WalletRefund,
};

/// Asset of the ledger in these scenarios.
pub(crate) const ASSET: &str = "eip155:84532/0x5111ce0000000000000000000000000000000402";
const WEEK: i64 = 7 * 86_400;
pub(crate) const FREE: u64 = 1 << 20;

/// A seller with a paid dataset of one version, and a buyer.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Market {
    pub(crate) seller: World,
    pub(crate) item: DatasetId,
    pub(crate) buyer: OperatorId,
    pub(crate) buyers_agent: AgentId,
}

impl Market {
    pub(crate) async fn new(store: &Store, price: i64, trial_sale: bool) -> Self {
        let seller = World::new(store).await;
        let buyer = operator(store, "bob@example.org").await;
        Self {
            item: paid_dataset(store, seller, "prices", Some(price), trial_sale).await,
            buyers_agent: agent(store, buyer, "shopper").await,
            seller,
            buyer,
        }
    }

    pub(crate) fn purchase(&self, now: i64) -> NewPurchase {
        NewPurchase {
            sale: SaleId::new(at(now)),
            event: LedgerEventId::new(at(now)),
            kind: ItemKind::Dataset,
            item: self.item.to_string(),
            version: None,
            buyer: self.buyer,
            agent: Some(self.buyers_agent),
            app: None,
            max_price: None,
            ask: NewPurchaseAsk::silent(at(now)),
            terms: terms(),
            now: at(now),
        }
    }

    pub(crate) async fn buy(&self, store: &Store, now: i64) -> Sale {
        let purchased = store.money().purchase(self.purchase(now)).await.unwrap();
        let Purchased::Bought(sale) = purchased else {
            unreachable!("the credits cover it: {purchased:?}");
        };
        sale
    }

    /// Buys another dataset of the seller for the default price, named for the time.
    pub(crate) async fn buy_other(&self, store: &Store, now: i64) -> SaleId {
        let item = paid_dataset(store, self.seller, &format!("other-{now}"), None, false).await;
        let new = NewPurchase {
            item: item.to_string(),
            ..self.purchase(now)
        };
        let purchased = store.money().purchase(new).await.unwrap();
        let Purchased::Bought(sale) = purchased else {
            unreachable!("the credits cover it: {purchased:?}");
        };
        sale.id
    }
}

/// A paid dataset with one merged version.
pub(crate) async fn paid_dataset(
    store: &Store,
    seller: World,
    slug: &str,
    price: Option<i64>,
    trial_sale: bool,
) -> DatasetId {
    let new = NewProject {
        access: Access::Paid,
        price_micro: price,
        trial_sale,
        created_by_agent: Some(seller.agent),
        ..new_project(seller.operator, slug)
    };
    let id = project(store, new).await;
    merge(store, seller, id, 1).await;
    id
}

pub(crate) async fn merge(store: &Store, seller: World, project: DatasetId, version: u64) {
    let new = NewContribution {
        project,
        ..seller.contribution()
    };
    let id = new.id;
    let _submitted = store.contribution_submit(new).await.unwrap();
    store.outcomes_apply(vec![outcome(id, merged(version))]).await.unwrap();
}

pub(crate) fn terms() -> SaleTerms {
    SaleTerms {
        asset: ASSET.to_owned(),
        default_price: MicroUsdc(100_000),
        fee: "100000:30,1000000:20,10000000:10".parse().unwrap(),
        dispute_window: Duration::from_secs(WEEK.unsigned_abs()),
        quote_window: Duration::from_mins(5),
    }
}

pub(crate) async fn grant(store: &Store, operator: OperatorId, amount: i64, given: bool, reference: &str) -> Granted {
    let new = NewGrant {
        event: LedgerEventId::new(at(0)),
        asset: ASSET.to_owned(),
        operator,
        amount: MicroUsdc(amount),
        given,
        reference: reference.to_owned(),
        now: at(0),
    };
    store.money().grant(new).await.unwrap()
}

/// Grants credits as [`grant`] does, for a reference that is new.
pub(crate) async fn give(store: &Store, operator: OperatorId, amount: i64, given: bool, reference: &str) {
    let granted = grant(store, operator, amount, given, reference).await;
    assert_eq!(granted, Granted::Done);
}

pub(crate) async fn balances(store: &Store, operator: OperatorId) -> Balances {
    store.money().balances(ASSET, operator).await.unwrap()
}

pub(crate) async fn faults(store: &Store, now: i64) -> Vec<MoneyFault> {
    let terms = CheckTerms {
        free_egress: FREE,
        quote_window: terms().quote_window,
        now: at(now),
    };
    store.money().faults(terms, 9).await.unwrap()
}

pub(crate) async fn sound(store: &Store) {
    assert_eq!(faults(store, 0).await, []);
}

async fn points(store: &Store, agent: AgentId) -> i64 {
    store.points().of_agent(agent).await.unwrap().points
}

/// A purchase takes the price, splits it, unlocks the version and gives points; a second one costs nothing.
pub async fn a_purchase_moves_the_price_once(url: &str) {
    let store = open(url).await;
    let market = Market::new(&store, 500_000, false).await;
    assert_eq!(grant(&store, market.buyer, 1_000_000, false, "g").await, Granted::Done);
    let before = points(&store, market.seller.agent).await;
    let sale = market.buy(&store, 10).await;
    assert_eq!((sale.price.0, sale.fee.0, sale.share.0), (500_000, 120_000, 380_000));
    assert_eq!(
        (sale.paid_with, sale.state, sale.version),
        (PaidWith::Credits, SaleState::Held, 1)
    );
    let again = store.money().purchase(market.purchase(11)).await.unwrap();
    assert_eq!(again, Purchased::Owned { version: 1 });
    assert_eq!(balances(&store, market.buyer).await.credits.0, 500_000);
    assert_eq!(balances(&store, market.seller.operator).await.held.0, 380_000);
    assert_eq!(points(&store, market.seller.agent).await - before, 5);
    let (entries, next) = store
        .money()
        .journal(ASSET, market.buyer, EntryFilter::default(), EntryCursor::NEWEST, 10)
        .await
        .unwrap();
    // A sale has two movements of the buyer's account, share and fee.
    let amounts: Vec<(i64, i64)> = entries.iter().map(|entry| (entry.amount.0, entry.after.0)).collect();
    assert_eq!(
        amounts,
        [(-120_000, 500_000), (-380_000, 620_000), (1_000_000, 1_000_000)]
    );
    assert_eq!(next, None);
    let named = [market.item.to_string(), market.buyer.to_string()];
    let names = store.money().item_names(&named).await.unwrap();
    assert_eq!(names.keys().collect::<Vec<_>>(), [&named[0]], "only items have names");
    assert_eq!(names[&named[0]].slug.as_deref(), Some("prices"));
    sound(&store).await;

    // A later version costs the full price again, and unlocks more.
    merge(&store, market.seller, market.item, 2).await;
    let later = market.buy(&store, 20).await;
    assert_eq!(later.version, 2);
    let item = market.item.to_string();
    let owned = store
        .money()
        .owned(market.buyer, ItemKind::Dataset, &item)
        .await
        .unwrap();
    assert_eq!((owned, balances(&store, market.buyer).await.credits.0), (Some(2), 0));
    let first = NewPurchase {
        version: Some(Version(1)),
        ..market.purchase(21)
    };
    assert_eq!(
        store.money().purchase(first).await.unwrap(),
        Purchased::Owned { version: 2 }
    );
    sound(&store).await;
}

/// Pages of the journal neither repeat nor skip.
pub async fn pages_of_the_journal_follow_each_other(url: &str) {
    let store = open(url).await;
    let bob = operator(&store, "bob@example.org").await;
    for number in 0..9 {
        assert_eq!(
            grant(&store, bob, 10 + number, number % 3 == 0, &format!("g{number}")).await,
            Granted::Done
        );
    }
    let (mut seen, mut cursor) = (Vec::new(), EntryCursor::NEWEST);
    loop {
        let (page, next) = store
            .money()
            .journal(ASSET, bob, EntryFilter::default(), cursor, 2)
            .await
            .unwrap();
        assert!(page.len() <= 2);
        seen.extend(page.into_iter().map(|entry| (entry.account, entry.seq)));
        let Some(next) = next else { break };
        assert_eq!(next.to_string().parse(), Ok(next));
        cursor = next;
    }
    let mut expected: Vec<_> = (1..=6).map(|seq| (AccountKind::Credits, seq)).collect();
    expected.extend((1..=3).map(|seq| (AccountKind::Given, seq)));
    seen.sort_unstable();
    assert_eq!(seen, expected);
}

/// Each reason for which an item cannot be bought has its own result, and nothing is written.
pub async fn what_is_not_sold_is_not_charged(url: &str) {
    let store = open(url).await;
    let market = Market::new(&store, 500_000, false).await;
    give(&store, market.buyer, 400_000, false, "g").await;
    let buy = async |new: NewPurchase| store.money().purchase(new).await.unwrap();
    let short = Purchased::Short {
        price: MicroUsdc(500_000),
        balance: MicroUsdc(400_000),
        given: MicroUsdc(0),
    };
    assert_eq!(buy(market.purchase(10)).await, short);
    let own = NewPurchase {
        buyer: market.seller.operator,
        ..market.purchase(10)
    };
    assert_eq!(buy(own).await, Purchased::Own);
    let later = NewPurchase {
        version: Some(Version(2)),
        ..market.purchase(10)
    };
    assert_eq!(buy(later).await, Purchased::NoVersion { latest: 1 });
    let empty = NewPurchase {
        item: market.seller.project.to_string(),
        ..market.purchase(10)
    };
    // What is free is never sold, with or without a version.
    assert_eq!(buy(empty.clone()).await, Purchased::Free);
    let none = NewPurchase {
        version: Some(Version(7)),
        ..empty
    };
    assert_eq!(buy(none).await, Purchased::Free);
    merge(&store, market.seller, market.seller.project, 1).await;
    let free = NewPurchase {
        item: market.seller.project.to_string(),
        ..market.purchase(10)
    };
    assert_eq!(buy(free).await, Purchased::Free);
    let unknown = NewPurchase {
        item: DatasetId::new(at(1)).to_string(),
        ..market.purchase(10)
    };
    assert_eq!(buy(unknown).await, Purchased::Missing);
    store
        .operator_suspend(market.seller.operator, "fraud".to_owned(), at(11))
        .await
        .unwrap();
    give(&store, market.buyer, 400_000, false, "h").await;
    assert_eq!(buy(market.purchase(12)).await, Purchased::NotForSale);
    assert_eq!(balances(&store, market.buyer).await.credits.0, 800_000);
    sound(&store).await;
}

/// Credits pay the price now, whatever the item cost a moment ago; a wallet may pay any price of the last five minutes,
/// and a price of zero sells nothing.
pub async fn credits_pay_the_price_now(url: &str) {
    let store = open(url).await;
    let market = Market::new(&store, 500_000, false).await;
    give(&store, market.buyer, 2_000_000, false, "g").await;
    let price = async |price, now| {
        let changes = ProjectChanges {
            price: Some(price),
            ..ProjectChanges::default()
        };
        let _updated = store
            .project_update(market.item, changes, at(now), Duration::ZERO)
            .await
            .unwrap();
    };
    price(Some(900_000), 1_000).await;
    let money = store.money();
    let in_force = async |now| {
        let item = market.item.to_string();
        let window = Duration::from_mins(5);
        money
            .prices_in_force(ItemKind::Dataset, &item, 100_000, window, at(now))
            .await
            .unwrap()
    };
    assert_eq!(in_force(1_299).await, [500_000, 900_000]);
    assert_eq!(in_force(1_301).await, [900_000]);
    let sale = market.buy(&store, 1_001).await;
    assert_eq!(sale.price.0, 900_000);
    price(Some(250_000), 1_500).await;
    merge(&store, market.seller, market.item, 2).await;
    assert_eq!(market.buy(&store, 1_501).await.price.0, 250_000);
    price(None, 2_000).await;
    assert_eq!(in_force(2_400).await, [100_000]);
    assert_eq!(faults(&store, 2_400).await, []);
    price(Some(0), 3_000).await;
    merge(&store, market.seller, market.item, 3).await;
    assert_eq!(money.purchase(market.purchase(3_001)).await.unwrap(), Purchased::Free);
}

/// Given credits pay a trial sale wholly or not at all, and move no money to the seller.
pub async fn given_credits_pay_trial_sales_only(url: &str) {
    let store = open(url).await;
    let market = Market::new(&store, 300_000, true).await;
    give(&store, market.buyer, 500_000, true, "given").await;
    let before = points(&store, market.seller.agent).await;
    let sale = market.buy(&store, 10).await;
    assert_eq!((sale.paid_with, sale.fee.0, sale.share.0), (PaidWith::Given, 0, 0));
    assert_eq!(points(&store, market.seller.agent).await - before, 5 + 30);
    assert_eq!(balances(&store, market.seller.operator).await, Balances::default());
    merge(&store, market.seller, market.item, 2).await;
    // 200,000 given credits are left, and the two kinds are never mixed.
    give(&store, market.buyer, 200_000, false, "bought").await;
    let short = store.money().purchase(market.purchase(11)).await.unwrap();
    assert!(matches!(short, Purchased::Short { .. }), "{short:?}");
    give(&store, market.buyer, 100_000, false, "more").await;
    assert_eq!(market.buy(&store, 12).await.paid_with, PaidWith::Credits);
    let left = balances(&store, market.buyer).await;
    assert_eq!((left.credits.0, left.given.0), (0, 200_000));
    // A seller that does not take them gets none.
    let other = paid_dataset(&store, market.seller, "other", Some(100_000), false).await;
    let refused = NewPurchase {
        item: other.to_string(),
        ..market.purchase(13)
    };
    assert!(matches!(
        store.money().purchase(refused).await.unwrap(),
        Purchased::Short { .. }
    ));
    sound(&store).await;
}

/// Of 64 purchases of different items by a balance for one, one succeeds; of 64 of one item, one is charged.
pub async fn a_balance_is_spent_once(url: &str) {
    let stores = [open(url).await, open(url).await];
    let market = Market::new(&stores[0], 500_000, false).await;
    let mut items = vec![market.item];
    for number in 0..63 {
        let slug = format!("more-{number}");
        items.push(paid_dataset(&stores[0], market.seller, &slug, Some(500_000), false).await);
    }
    give(&stores[0], market.buyer, 500_000, false, "g").await;
    let racing = items.clone();
    let bought = race(stores.clone(), 64, move |store, number| {
        let item = racing[number].to_string();
        async move {
            let new = NewPurchase {
                item,
                ..market.purchase(10)
            };
            store.money().purchase(new).await.unwrap()
        }
    })
    .await;
    let count = |wanted: fn(&Purchased) -> bool| bought.iter().filter(|purchased| wanted(purchased)).count();
    assert_eq!(count(|purchased| matches!(purchased, Purchased::Bought(_))), 1);
    assert_eq!(count(|purchased| matches!(purchased, Purchased::Short { .. })), 63);
    assert_eq!(balances(&stores[0], market.buyer).await.credits.0, 0);

    give(&stores[0], market.buyer, 5_000_000, false, "h").await;
    let one = paid_dataset(&stores[0], market.seller, "one", Some(500_000), false).await;
    let bought = race(stores.clone(), 64, move |store, _| async move {
        let new = NewPurchase {
            item: one.to_string(),
            ..market.purchase(20)
        };
        store.money().purchase(new).await.unwrap()
    })
    .await;
    let charged = bought
        .iter()
        .filter(|purchased| matches!(purchased, Purchased::Bought(_)));
    assert_eq!(charged.count(), 1);
    let owned = bought
        .iter()
        .filter(|purchased| matches!(purchased, Purchased::Owned { .. }));
    assert_eq!(owned.count(), 63);
    assert_eq!(balances(&stores[0], market.buyer).await.credits.0, 4_500_000);
    sound(&stores[0]).await;
}

/// A reference is one grant; an unknown operator gets none; a balance has a largest value.
pub async fn a_reference_is_one_grant(url: &str) {
    let stores = [open(url).await, open(url).await];
    let bob = operator(&stores[0], "bob@example.org").await;
    let granted = race(stores.clone(), 20, move |store, _| async move {
        grant(&store, bob, 1_000, false, "once").await
    })
    .await;
    let count = granted.iter().filter(|granted| **granted == Granted::Done).count();
    assert_eq!((count, balances(&stores[0], bob).await.credits.0), (1, 1_000));
    let stranger = OperatorId::new(at(5));
    assert_eq!(grant(&stores[0], stranger, 1, false, "x").await, Granted::NoOperator);
    assert_eq!(grant(&stores[0], bob, i64::MAX, false, "y").await, Granted::Full);
    assert_eq!(balances(&stores[0], bob).await.credits.0, 1_000);
    sound(&stores[0]).await;
}

/// A share is payable after its window, once, whoever releases.
pub async fn a_share_is_released_once(url: &str) {
    let stores = [open(url).await, open(url).await];
    let market = Market::new(&stores[0], 500_000, false).await;
    give(&stores[0], market.buyer, 1_000_000, false, "g").await;
    market.buy(&stores[0], 10).await;
    let release = async |store: Store, now: i64| store.money().release(ASSET, at(now), 100).await.unwrap();
    assert_eq!(release(stores[0].clone(), 9 + WEEK).await, 0);
    let released = race(stores.clone(), 8, move |store, _| async move {
        store.money().release(ASSET, at(10 + WEEK), 100).await.unwrap()
    })
    .await;
    assert_eq!(released.iter().sum::<u64>(), 1);
    let seller = balances(&stores[0], market.seller.operator).await;
    assert_eq!((seller.held.0, seller.payable.0), (0, 380_000));
    sound(&stores[0]).await;
}

pub(crate) async fn dispute(store: &Store, sale: SaleId, now: i64) -> (DisputeId, DisputeOpened) {
    let id = DisputeId::new(at(now));
    let new = NewDispute {
        id,
        event: LedgerEventId::new(at(now)),
        sale,
        reason: "the records are made up".to_owned(),
        by: "admin".to_owned(),
        opener: None,
        letters: None,
        now: at(now),
    };
    (id, store.money().dispute_open(new).await.unwrap())
}

pub(crate) async fn resolve(store: &Store, id: DisputeId, resolution: DisputeResolution, now: i64) -> DisputeResolved {
    let decision = DisputeDecision {
        id,
        resolution,
        event: LedgerEventId::new(at(now)),
        by: "admin".to_owned(),
        seller: None,
        answer: "decided".to_owned(),
        letters: None,
        now: at(now),
    };
    store.money().dispute_resolve(decision).await.unwrap()
}

/// A refund takes back money, entitlement and points; a dispute outside the window is refused.
pub async fn a_refund_takes_everything_back(url: &str) {
    let store = open(url).await;
    let market = Market::new(&store, 500_000, false).await;
    give(&store, market.buyer, 1_000_000, false, "g").await;
    let before = points(&store, market.seller.agent).await;
    let first = market.buy(&store, 10).await;
    merge(&store, market.seller, market.item, 2).await;
    let second = market.buy(&store, 20).await;
    let generation = store.money().entitlement_generation().await.unwrap();
    let (id, opened) = dispute(&store, second.id, 30).await;
    assert!(matches!(opened, DisputeOpened::Opened(_)), "{opened:?}");
    assert_eq!(balances(&store, market.seller.operator).await.disputed.0, 380_000);
    let found = store.money().dispute(id).await.unwrap().unwrap();
    assert_eq!((found.id, found.sale), (id, second.id));
    assert_eq!(store.money().dispute(DisputeId::new(at(1))).await.unwrap(), None);
    let (_, twice) = dispute(&store, second.id, 31).await;
    assert!(matches!(twice, DisputeOpened::TooLate { .. }), "{twice:?}");
    // A share that is disputed is not released.
    assert_eq!(store.money().release(ASSET, at(15 + WEEK), 9).await.unwrap(), 1);
    sound(&store).await;

    let refund = DisputeResolution::Refund { wallet: None };
    let resolved = resolve(&store, id, refund.clone(), 40).await;
    assert!(matches!(resolved, DisputeResolved::Resolved(_)), "{resolved:?}");
    assert_eq!(resolve(&store, id, refund, 41).await, DisputeResolved::Ended);
    assert_eq!(balances(&store, market.buyer).await.credits.0, 500_000);
    let item = market.item.to_string();
    let owned = store
        .money()
        .owned(market.buyer, ItemKind::Dataset, &item)
        .await
        .unwrap();
    assert_eq!(owned, Some(1));
    assert!(store.money().entitlement_generation().await.unwrap() > generation);
    assert_eq!(points(&store, market.seller.agent).await - before, 5);
    let (_, late) = dispute(&store, first.id, 16 + WEEK).await;
    assert!(matches!(late, DisputeOpened::TooLate { .. }), "{late:?}");
    let (_, unknown) = dispute(&store, SaleId::new(at(1)), 16).await;
    assert_eq!(unknown, DisputeOpened::Missing);
    sound(&store).await;
}

/// A dispute that ends for the seller puts the share back: on hold within the window, payable after it.
pub async fn a_dispute_can_end_for_the_seller(url: &str) {
    let store = open(url).await;
    let market = Market::new(&store, 500_000, false).await;
    give(&store, market.buyer, 500_000, false, "g").await;
    let sale = market.buy(&store, 10).await;
    let (id, _) = dispute(&store, sale.id, 20).await;
    let held = resolve(&store, id, DisputeResolution::Release, 30).await;
    assert!(matches!(held, DisputeResolved::Resolved(sale) if sale.state == SaleState::Held));
    let (id, _) = dispute(&store, sale.id, 40).await;
    let payable = resolve(&store, id, DisputeResolution::Release, 11 + WEEK).await;
    assert!(matches!(payable, DisputeResolved::Resolved(sale) if sale.state == SaleState::Payable));
    assert_eq!(balances(&store, market.seller.operator).await.payable.0, 380_000);
    assert_eq!(store.money().release(ASSET, at(20 + WEEK), 9).await.unwrap(), 0);
    sound(&store).await;
}

/// A trial sale that is refunded gives the credits back; a sale without a wallet is not refunded to one.
pub async fn a_trial_sale_is_refunded_in_given_credits(url: &str) {
    let store = open(url).await;
    let market = Market::new(&store, 300_000, true).await;
    give(&store, market.buyer, 500_000, true, "given").await;
    let before = points(&store, market.seller.agent).await;
    let sale = market.buy(&store, 10).await;
    let sold = async || store.money().sold_count(sale.kind, &sale.item).await.unwrap();
    assert_eq!(sold().await, 1);
    let (id, _) = dispute(&store, sale.id, 20).await;
    assert_eq!(sold().await, 1, "a dispute is no refund");
    let refund = DisputeResolution::Refund { wallet: None };
    let resolved = resolve(&store, id, refund, 30).await;
    assert_eq!(sold().await, 0);
    assert!(matches!(resolved, DisputeResolved::Resolved(_)), "{resolved:?}");
    assert_eq!(balances(&store, market.buyer).await.given.0, 500_000);
    assert_eq!(points(&store, market.seller.agent).await, before);
    sound(&store).await;

    give(&store, market.buyer, 300_000, false, "bought").await;
    give(&store, market.seller.operator, 1, false, "unrelated").await;
    let other = paid_dataset(&store, market.seller, "other", Some(300_000), false).await;
    let new = NewPurchase {
        item: other.to_string(),
        ..market.purchase(40)
    };
    let Purchased::Bought(sale) = store.money().purchase(new).await.unwrap() else {
        unreachable!("the credits cover it");
    };
    let (id, _) = dispute(&store, sale.id, 50).await;
    let wallet = WalletRefund {
        id: "r".to_owned(),
        nonce: "0x1".to_owned(),
        event: LedgerEventId::new(at(60)),
    };
    let refund = DisputeResolution::Refund { wallet: Some(wallet) };
    assert_eq!(resolve(&store, id, refund, 60).await, DisputeResolved::NowhereToRefund);
    sound(&store).await;
}

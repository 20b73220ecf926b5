//! Scenarios about what leaves the treasury: it is promised once, and what is owed stays owed.

use std::time::Duration;

use types::money::MicroUsdc;
use types::{DisputeId, LedgerEventId, OperatorId, PaymentId, SaleId, Timestamp};

use super::fixture::{World, agent, at, mail, new_project, open, operator, project, race};
use super::money::{ASSET, Market, balances, dispute, give, paid_dataset, resolve, sound, terms};
use crate::{
    Bound, DisputeOpened, DisputeResolution, DisputeResolved, NewDeposit, NewPayment, NewPayout, NewPurchase,
    NewPurchaseAsk, PaidFor, PaymentBound, PaymentMessage, PayoutPicked, PayoutState, Purchased, Settled, Settlement,
    Store, WalletRefund,
};

/// Wallet that buys.
pub(crate) const WALLET: &str = "0x3333333333333333333333333333333333333333";
const WEEK: i64 = 7 * 86_400;

/// Refund that is queued at `now`.
pub(crate) fn refund(now: i64) -> WalletRefund {
    let id = PaymentId::new(at(now)).to_string();
    WalletRefund {
        nonce: format!("nonce of {id}"),
        id,
        event: LedgerEventId::new(at(now)),
    }
}

/// Pays for a thing by x402, and returns the payment with what came of it.
pub(crate) async fn pay(store: &Store, kind: PaidFor, thing: String, amount: i64, now: i64) -> (String, Settled) {
    pay_from(store, WALLET, kind, thing, amount, now).await
}

/// Pays as [`pay`] does, from this wallet.
pub(crate) async fn pay_from(
    store: &Store,
    wallet: &str,
    kind: PaidFor,
    thing: String,
    amount: i64,
    now: i64,
) -> (String, Settled) {
    let id = PaymentId::new(at(now)).to_string();
    let new = NewPayment {
        id: id.clone(),
        network: "eip155:84532".to_owned(),
        asset: "0x5111ce0000000000000000000000000000000402".to_owned(),
        payer: wallet.to_owned(),
        nonce: format!("nonce of {id}"),
        protocol: 2,
        bound: Bound {
            kind,
            id: thing,
            version: 1,
            unit_version: None,
        },
        amount,
        pay_to: "0x2222222222222222222222222222222222222222".to_owned(),
        valid_after: 0,
        valid_before: i64::MAX,
        message: PaymentMessage {
            payload: "{}".to_owned(),
            payload_hash: [7; 32],
            has_secret: false,
            identifier: None,
        },
        client_net: "192.0.2.1".to_owned(),
        buyer: None,
        is_owned: false,
        now: at(now),
        lease: Duration::from_secs(30),
    };
    assert_eq!(store.payments().bind(new).await.unwrap(), PaymentBound::New);
    assert!(store.payments().begin(&id, at(now + 60)).await.unwrap());
    let settlement = Settlement {
        payment: id.clone(),
        transaction: format!("transaction of {id}"),
        sale: SaleId::new(at(now)),
        event: LedgerEventId::new(at(now)),
        terms: terms(),
        refund: refund(now),
        now: at(now),
    };
    let settled = store.money().settle(settlement).await.unwrap();
    (id, settled)
}

/// Makes a seller with a share that is payable from `10 + WEEK` on, bought with granted credits.
async fn seller(store: &Store, buyer: OperatorId, number: u32) -> OperatorId {
    let owner = operator(store, &format!("seller-{number}@example.org")).await;
    let seller = World {
        operator: owner,
        agent: agent(store, owner, &format!("seller-{number}")).await,
        project: project(store, new_project(owner, &format!("free-{number}"))).await,
    };
    let item = paid_dataset(store, seller, &format!("paid-{number}"), Some(500_000), false).await;
    let address = format!("0x{number:040x}");
    let (accounts, letter) = (store.accounts(), mail(at(0), None));
    let set = accounts.payout_set(owner, address, at(1), letter, at(0));
    set.await.unwrap();
    give(store, buyer, 500_000, false, &format!("for {number}")).await;
    let new = NewPurchase {
        sale: SaleId::new(at(10)),
        event: LedgerEventId::new(at(10)),
        kind: types::vocabulary::ItemKind::Dataset,
        item: item.to_string(),
        version: None,
        buyer,
        agent: None,
        app: None,
        max_price: None,
        ask: NewPurchaseAsk::silent(at(10)),
        terms: terms(),
        now: at(10),
    };
    let bought = store.money().purchase(new).await.unwrap();
    assert!(matches!(bought, Purchased::Bought(_)), "{bought:?}");
    owner
}

pub(crate) async fn pick(store: &Store, payable: crate::Payable, now: i64) -> PayoutPicked {
    let id = PaymentId::new(at(now)).to_string();
    let new = NewPayout {
        nonce: format!("nonce of {id}"),
        id,
        asset: ASSET.to_owned(),
        payable,
        now: at(now),
    };
    store.money().payout_pick(new).await.unwrap()
}

/// Of many payouts that are picked at once, those are that the treasury covers together.
pub async fn the_treasury_is_promised_once(url: &str) {
    let stores = [open(url).await, open(url).await];
    let store = &stores[0];
    let buyer = operator(store, "bob@example.org").await;
    for number in 1..=6 {
        seller(store, buyer, number).await;
    }
    let (_, settled) = pay(store, PaidFor::Pack, buyer.to_string(), 1_000_000, 20).await;
    assert!(matches!(settled, Settled::Credited { .. }), "{settled:?}");
    let now = 10 + WEEK;
    assert_eq!(store.money().release(ASSET, at(now), 9).await.unwrap(), 6);
    let due = store.money().payable(ASSET, MicroUsdc(50_000), at(now)).await.unwrap();
    assert_eq!(due.len(), 6);
    let picked = race(stores.clone(), 6, move |store, number| {
        let payable = due[number].clone();
        async move { pick(&store, payable, now).await }
    })
    .await;
    let count = |wanted| picked.iter().filter(|picked| **picked == wanted).count();
    // Each is 380,000 of the 1,000,000.
    assert_eq!((count(PayoutPicked::Picked), count(PayoutPicked::Uncovered)), (2, 4));
    sound(store).await;
}

/// A wallet's sale under dispute, of a market whose treasury has promised the rest of what it has.
async fn promised(store: &Store) -> (Market, DisputeId) {
    let market = Market::new(store, 500_000, false).await;
    let (_, settled) = pay(store, PaidFor::Dataset, market.item.to_string(), 500_000, 5).await;
    let Settled::Sold(sale) = settled else {
        unreachable!("the wallet buys it: {settled:?}");
    };
    let (id, opened) = dispute(store, sale.id, 6).await;
    assert!(matches!(opened, DisputeOpened::Opened(_)), "{opened:?}");
    seller(store, market.buyer, 1).await;
    let now = 10 + WEEK;
    assert_eq!(store.money().release(ASSET, at(now), 9).await.unwrap(), 1);
    let due = store.money().payable(ASSET, MicroUsdc(50_000), at(now)).await.unwrap();
    assert_eq!(pick(store, due[0].clone(), now).await, PayoutPicked::Picked);
    (market, id)
}

fn to_wallet(now: i64) -> DisputeResolution {
    DisputeResolution::Refund {
        wallet: Some(refund(now)),
    }
}

fn deposit(transaction: &str, amount: i64, now: Timestamp) -> NewDeposit {
    NewDeposit {
        transaction: transaction.to_owned(),
        asset: ASSET.to_owned(),
        amount: MicroUsdc(amount),
        events: [LedgerEventId::new(now), LedgerEventId::new(now)],
        now,
    }
}

/// A refund to a wallet is not promised while the treasury does not cover it. A deposit, booked once, covers it.
pub async fn a_refund_waits_for_the_treasury(url: &str) {
    let store = open(url).await;
    let (market, id) = promised(&store).await;
    let now = 20 + WEEK;
    let resolved = resolve(&store, id, to_wallet(now), now).await;
    assert_eq!(resolved, DisputeResolved::Uncovered);
    assert_eq!(balances(&store, market.seller.operator).await.disputed.0, 380_000);
    assert_eq!(store.money().payouts_listed(None, 9).await.unwrap().len(), 1);
    sound(&store).await;

    let money = store.money();
    let first = money.payouts_listed(None, 9).await.unwrap()[0].id.clone();
    assert!(money.payout_done(&first, "0xab", at(now)).await.unwrap());
    let before = money.treasury(ASSET).await.unwrap();
    assert_eq!((before.balance.0, before.paid.0), (120_000, 380_000));
    assert!(money.deposit(deposit("0x01", 380_000, at(now))).await.unwrap());
    assert!(!money.deposit(deposit("0x01", 380_000, at(now))).await.unwrap());
    assert!(money.deposit(deposit("0x02", 0, at(now))).await.is_err());
    assert_eq!(money.treasury(ASSET).await.unwrap().balance.0, 500_000);
    // A transaction that bought something is no deposit.
    let listed = store.payments().listed(None, 9).await.unwrap();
    let bought = listed[0].transaction.clone().unwrap();
    assert!(!money.deposit(deposit(&bought, 1, at(now))).await.unwrap());
    // Beyond the credits that were granted it has no place.
    assert!(money.deposit(deposit("0x03", 1_000_000, at(now))).await.unwrap());
    sound(&store).await;

    let resolved = resolve(&store, id, to_wallet(now), now).await;
    assert!(matches!(resolved, DisputeResolved::Resolved(_)), "{resolved:?}");
    sound(&store).await;
}

/// A refund that was given up is still owed; it is tried again by its nonce, and paid once.
pub async fn a_refund_is_owed_until_it_is_paid(url: &str) {
    let store = open(url).await;
    let market = Market::new(&store, 500_000, false).await;
    let (_, settled) = pay(&store, PaidFor::Dataset, market.item.to_string(), 500_000, 5).await;
    let Settled::Sold(sale) = settled else {
        unreachable!("the wallet buys it: {settled:?}");
    };
    let (id, _) = dispute(&store, sale.id, 6).await;
    let resolved = resolve(&store, id, to_wallet(7), 7).await;
    assert!(matches!(resolved, DisputeResolved::Resolved(_)), "{resolved:?}");
    let money = store.money();
    let row = async || money.payouts_listed(None, 9).await.unwrap().remove(0);
    let queued = row().await;
    assert!(money.payout_sending(&queued.id, 700).await.unwrap());
    assert!(money.payout_failed(&queued.id, 1, at(700)).await.unwrap());
    assert!(!money.payout_failed(&queued.id, 1, at(700)).await.unwrap());
    assert_eq!(row().await.state, PayoutState::Failed);
    let due = money.payouts_due(at(100_000), Duration::from_mins(5), 9).await.unwrap();
    assert_eq!(due, [], "it waits for an administrator");
    sound(&store).await;

    assert!(money.payout_retry(&queued.id, at(800)).await.unwrap());
    let again = row().await;
    assert_eq!((again.state, again.attempts), (PayoutState::Picked, 0));
    assert_eq!((&again.nonce, again.valid_before), (&queued.nonce, 700));
    sound(&store).await;
    assert!(money.payout_done(&queued.id, "0xab", at(900)).await.unwrap());
    assert!(!money.payout_done(&queued.id, "0xab", at(900)).await.unwrap());
    assert!(!money.payout_retry(&queued.id, at(900)).await.unwrap());
    assert_eq!(money.treasury(ASSET).await.unwrap().balance.0, 0);
    sound(&store).await;
}

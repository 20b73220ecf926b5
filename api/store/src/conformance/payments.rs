//! Scenarios of payments by x402 and of the built-in test ledger.

use std::time::Duration;

use types::money::MicroUsdc;
use types::{LedgerEventId, OperatorId, PaymentId, SaleId};

use super::fixture::{at, mail, open, operator, race};
use super::money::{ASSET as LEDGER, Market, balances, give, sound, terms};
use super::payouts::pick;
use crate::{
    Bound, Doubtful, NewPayment, PaidFor, Payable, Payment, PaymentBound, PaymentMessage, PaymentState, PayoutPicked,
    PayoutState, Settled, Settlement, Store, WalletMoved, WalletRefund, WalletSpent, WalletTransfer,
};

const NETWORK: &str = "eip155:84532";
const ASSET: &str = "0x5111ce0000000000000000000000000000000402";
const PAYER: &str = "0x1111111111111111111111111111111111111111";
const TREASURY: &str = "0x2222222222222222222222222222222222222222";

fn payment(nonce: u32, kind: PaidFor) -> NewPayment {
    NewPayment {
        id: PaymentId::new(at(0)).to_string(),
        network: NETWORK.to_owned(),
        asset: ASSET.to_owned(),
        payer: PAYER.to_owned(),
        nonce: format!("0x{nonce:064x}"),
        protocol: 2,
        bound: Bound {
            kind,
            id: "thing".to_owned(),
            version: 1,
            unit_version: None,
        },
        amount: 500_000,
        pay_to: TREASURY.to_owned(),
        valid_after: 0,
        valid_before: 300,
        message: message(None),
        client_net: "192.0.2.1".to_owned(),
        buyer: None,
        is_owned: false,
        now: at(0),
        lease: Duration::from_secs(30),
    }
}

fn message(identifier: Option<&str>) -> PaymentMessage {
    PaymentMessage {
        payload: "{}".to_owned(),
        payload_hash: [7; 32],
        has_secret: identifier.is_some(),
        identifier: identifier.map(str::to_owned),
    }
}

async fn stored(store: &Store, id: &str) -> Payment {
    store.payments().get(id).await.unwrap().unwrap()
}

/// An authorization is bound once, and one payment of a wallet for an item is open.
pub async fn an_authorization_is_bound_once(url: &str) {
    let store = open(url).await;
    let payments = store.payments();
    let first = payment(1, PaidFor::Dataset);
    assert_eq!(payments.bind(first.clone()).await.unwrap(), PaymentBound::New);
    let twin = NewPayment {
        id: PaymentId::new(at(0)).to_string(),
        ..first.clone()
    };
    let known = payments.bind(twin).await.unwrap();
    assert!(matches!(known, PaymentBound::Known(known) if known.id == first.id));
    let second = payment(2, PaidFor::Dataset);
    assert_eq!(payments.bind(second.clone()).await.unwrap(), PaymentBound::Open);
    // A pack is no item: two may be bought at once.
    assert_eq!(
        payments.bind(payment(3, PaidFor::Pack)).await.unwrap(),
        PaymentBound::New
    );
    assert_eq!(
        payments.bind(payment(4, PaidFor::Pack)).await.unwrap(),
        PaymentBound::New
    );
    // A payment that was never sent gives way once its lease is over; one that was sent never does.
    let later = NewPayment { now: at(31), ..second };
    assert_eq!(payments.bind(later.clone()).await.unwrap(), PaymentBound::New);
    assert_eq!(stored(&store, &first.id).await.state, PaymentState::Abandoned);
    assert!(payments.begin(&later.id, at(91)).await.unwrap());
    let third = NewPayment {
        now: at(10_000),
        ..payment(5, PaidFor::Dataset)
    };
    assert_eq!(payments.bind(third).await.unwrap(), PaymentBound::Open);
    let known = stored(&store, &first.id).await;
    let rebound = payments.rebind(&known, message(None), at(31), Duration::from_secs(30));
    assert_eq!(rebound.await.unwrap(), PaymentBound::Open, "another one is open");
}

/// A payer gives an identifier to one payment, and it is free again when that payment is gone.
pub async fn an_identifier_is_one_payment_of_a_payer(url: &str) {
    let store = open(url).await;
    let payments = store.payments();
    let named = |nonce: u32| NewPayment {
        message: message(Some("pay_7d5d747be160e280")),
        ..payment(nonce, PaidFor::Pack)
    };
    let first = named(1);
    assert_eq!(payments.bind(first.clone()).await.unwrap(), PaymentBound::New);
    assert!(stored(&store, &first.id).await.has_secret);
    let twin = NewPayment {
        id: PaymentId::new(at(0)).to_string(),
        ..first.clone()
    };
    assert!(matches!(payments.bind(twin).await.unwrap(), PaymentBound::Known(_)));
    assert_eq!(payments.bind(named(2)).await.unwrap(), PaymentBound::IdentifierReused);
    let other = NewPayment {
        payer: TREASURY.to_owned(),
        ..named(3)
    };
    assert_eq!(payments.bind(other).await.unwrap(), PaymentBound::New);
    // A payment that was refused comes again under the same identifier, and not under that of another.
    assert!(payments.refuse(&first.id, "insufficient_funds").await.unwrap());
    let known = stored(&store, &first.id).await;
    let again =
        |identifier: &'static str| payments.rebind(&known, message(Some(identifier)), at(1), Duration::from_secs(30));
    assert_eq!(again("pay_7d5d747be160e280").await.unwrap(), PaymentBound::New);
    let second = NewPayment {
        message: message(Some("pay_0000000000000000")),
        ..payment(4, PaidFor::Pack)
    };
    assert_eq!(payments.bind(second).await.unwrap(), PaymentBound::New);
    assert!(payments.refuse(&first.id, "insufficient_funds").await.unwrap());
    assert_eq!(
        again("pay_0000000000000000").await.unwrap(),
        PaymentBound::IdentifierReused
    );
    // Nothing was sent: the rows go when they are not valid any more, and their identifiers with them.
    assert_eq!(payments.sweep(301, at(400)).await.unwrap(), 3);
    assert_eq!(payments.bind(named(5)).await.unwrap(), PaymentBound::New);
}

/// Of many payments of a payer with one identifier one is bound, and of many twins of one none is refused.
pub async fn one_of_many_takes_an_identifier(url: &str) {
    let stores = [open(url).await, open(url).await];
    for is_one in [true, false] {
        let identifier = if is_one {
            "pay_one_authorization"
        } else {
            "pay_many_authorizations"
        };
        let bound = race(stores.clone(), 8, move |store, number| async move {
            let nonce = if is_one { 1 } else { 10 + u32::try_from(number).unwrap() };
            let new = NewPayment {
                message: message(Some(identifier)),
                ..payment(nonce, PaidFor::Pack)
            };
            store.payments().bind(new).await.unwrap()
        })
        .await;
        let new = bound.iter().filter(|bound| **bound == PaymentBound::New).count();
        let reused = bound
            .iter()
            .filter(|bound| **bound == PaymentBound::IdentifierReused)
            .count();
        assert_eq!((new, reused), (1, if is_one { 0 } else { 7 }), "{bound:?}");
    }
}

/// Of many callers one takes a payment to be sent.
pub async fn one_of_many_sends_a_payment(url: &str) {
    let stores = [open(url).await, open(url).await];
    let new = payment(1, PaidFor::Dataset);
    let id = new.id.clone();
    assert_eq!(stores[0].payments().bind(new).await.unwrap(), PaymentBound::New);
    let taken = race(stores.clone(), 20, |store, _| {
        let id = id.clone();
        async move { store.payments().begin(&id, at(60)).await.unwrap() }
    })
    .await;
    assert_eq!(taken.iter().filter(|taken| **taken).count(), 1);
    let due = race(stores.clone(), 20, |store, _| async move {
        store.payments().due(at(61), at(200), 9).await.unwrap().len()
    })
    .await;
    assert_eq!(due.iter().sum::<usize>(), 1, "one looks at what its owner left");
    let left = stored(&stores[0], &id).await;
    assert_eq!((left.state, left.attempts), (PaymentState::Unknown, 2));
    assert!(!stores[0].payments().not_sent(&id, at(99)).await.unwrap());
}

/// A payment takes each step once, and a final one has no signature.
pub async fn a_payment_takes_each_step_once(url: &str) {
    let store = open(url).await;
    let payments = store.payments();
    let new = payment(1, PaidFor::Dataset);
    let id = new.id.as_str();
    assert_eq!(payments.bind(new.clone()).await.unwrap(), PaymentBound::New);
    assert!(payments.refuse(id, "insufficient_funds").await.unwrap());
    assert!(!payments.refuse(id, "again").await.unwrap());
    assert_eq!(stored(&store, id).await.payload, None);
    assert!(!payments.begin(id, at(60)).await.unwrap());
    let known = stored(&store, id).await;
    let rebound = payments.rebind(&known, message(None), at(0), Duration::from_secs(30));
    assert_eq!(rebound.await.unwrap(), PaymentBound::New);
    assert!(payments.begin(id, at(60)).await.unwrap());
    assert!(payments.not_sent(id, at(30)).await.unwrap());
    assert!(payments.begin(id, at(60)).await.unwrap());
    let doubt = |transaction: Option<&str>| Doubtful {
        reason: "lost".to_owned(),
        transaction: transaction.map(str::to_owned),
        next_try_at: at(70),
    };
    assert!(payments.doubt(id, doubt(Some("0xab"))).await.unwrap());
    // A later doubt does not forget a transaction.
    assert!(payments.doubt(id, doubt(None)).await.unwrap());
    assert_eq!(stored(&store, id).await.transaction.as_deref(), Some("0xab"));
    // An answer to an earlier attempt proves nothing about a later one.
    assert!(!payments.fail(id, 0, "insufficient_funds", at(330)).await.unwrap());
    assert!(payments.fail(id, 1, "expired", at(330)).await.unwrap());
    assert!(!payments.doubt(id, doubt(None)).await.unwrap());
    let failed = stored(&store, id).await;
    assert_eq!((failed.state, failed.payload), (PaymentState::Failed, None));
    assert_eq!(payments.due(at(329), at(400), 9).await.unwrap().len(), 0);
    assert_eq!(payments.due(at(330), at(400), 9).await.unwrap().len(), 1);
    assert!(payments.failed_for_good(id).await.unwrap());
    assert_eq!(payments.due(at(100_000), at(100_001), 9).await.unwrap().len(), 0);
    // A payment that was sent is never swept.
    assert_eq!(payments.sweep(i64::MAX, at(0)).await.unwrap(), 0);
    let fresh = payment(2, PaidFor::Dataset);
    assert_eq!(payments.bind(fresh).await.unwrap(), PaymentBound::New);
    assert_eq!(payments.sweep(300, at(0)).await.unwrap(), 0);
    assert_eq!(payments.sweep(301, at(0)).await.unwrap(), 1);
    assert_eq!(payments.listed(None, 9).await.unwrap().len(), 1);
    assert_eq!(payments.listed(Some(PaymentState::Unknown), 9).await.unwrap().len(), 0);
}

/// A nonce of the built-in ledger moves its amount once, and nobody spends what it has not.
pub async fn a_nonce_moves_its_amount_once(url: &str) {
    let stores = [open(url).await, open(url).await];
    let wallets = stores[0].wallets();
    wallets.give(PAYER, 1_000_000).await.unwrap();
    let transfer = |nonce: u32| WalletTransfer {
        from: PAYER.to_owned(),
        to: TREASURY.to_owned(),
        amount: 400_000,
        nonce: format!("0x{nonce:064x}"),
        transaction: format!("0x{nonce:x}"),
        now: at(0),
    };
    let moved = race(stores.clone(), 30, |store, _| async move {
        store.wallets().transfer(transfer(1)).await.unwrap()
    })
    .await;
    assert_eq!(moved.iter().filter(|moved| **moved == WalletMoved::Done).count(), 1);
    let used = WalletSpent::Used("0x1".to_owned());
    assert!(
        moved
            .iter()
            .all(|moved| matches!(moved, WalletMoved::Done) || *moved == WalletMoved::Spent(used.clone()))
    );
    // Each with a nonce of its own: the balance is enough for one of them.
    let moved = race(stores.clone(), 30, |store, number| async move {
        let nonce = 10 + u32::try_from(number).unwrap();
        store.wallets().transfer(transfer(nonce)).await.unwrap()
    })
    .await;
    assert_eq!(moved.iter().filter(|moved| **moved == WalletMoved::Done).count(), 1);
    assert_eq!(moved.iter().filter(|moved| **moved == WalletMoved::Short).count(), 29);
    assert_eq!(wallets.balance(PAYER).await.unwrap(), 200_000);
    assert_eq!(wallets.balance(TREASURY).await.unwrap(), 800_000);
    assert!(wallets.cancel(PAYER, "0x9", at(0)).await.unwrap());
    assert!(!wallets.cancel(PAYER, "0x9", at(0)).await.unwrap());
    let cancelled = wallets.spent(PAYER, "0x9").await.unwrap();
    assert_eq!(cancelled, Some(WalletSpent::Cancelled));
    assert_eq!(wallets.spent(PAYER, "0x8").await.unwrap(), None);
}

/// A wallet belongs to the one operator that proved it, as long as it is its address.
pub async fn a_wallet_proves_itself_to_one_operator(url: &str) {
    let store = open(url).await;
    let accounts = store.accounts();
    let (ada, bob) = (
        operator(&store, "ada@example.org").await,
        operator(&store, "bob@example.org").await,
    );
    let wallet = "0xabcdef0000000000000000000000000000000001";
    let typed = "0xABCDEF0000000000000000000000000000000001";
    let owner = async |now: i64| {
        let owner = store
            .accounts()
            .operator_of_wallet(wallet, None, at(now))
            .await
            .unwrap();
        owner.map(|owner| (owner.operator, owner.is_proved))
    };
    assert_eq!(owner(0).await, None);
    assert!(!accounts.payout_prove(ada, wallet, at(0)).await.unwrap());
    for operator in [ada, bob] {
        let set = accounts
            .payout_set(operator, typed.to_owned(), at(10), mail(at(0), None), at(0))
            .await;
        set.unwrap();
    }
    assert_eq!(owner(9).await, None, "no address is in force yet");
    assert!(!accounts.payout_prove(ada, wallet, at(9)).await.unwrap());
    // While nobody has proved it, it is the address of both, and either is found by name.
    for operator in [ada, bob] {
        let found = accounts
            .operator_of_wallet(wallet, Some(operator), at(10))
            .await
            .unwrap();
        assert_eq!(
            found.map(|owner| (owner.operator, owner.is_proved)),
            Some((operator, false))
        );
    }
    assert!(accounts.payout_prove(ada, wallet, at(10)).await.unwrap());
    assert_eq!(owner(11).await, Some((ada, true)));
    let found = accounts.operator_of_wallet(wallet, Some(bob), at(11)).await.unwrap();
    assert_eq!(found.map(|owner| (owner.operator, owner.is_proved)), Some((ada, true)));
    assert!(!accounts.payout_prove(bob, wallet, at(11)).await.unwrap());
    // Another address takes its place, and the proof goes with it.
    let set = accounts
        .payout_set(ada, TREASURY.to_owned(), at(100), mail(at(20), None), at(20))
        .await;
    set.unwrap();
    assert_eq!(owner(99).await, Some((ada, true)));
    assert_eq!(owner(100).await, Some((bob, false)));
    assert!(!accounts.payout_prove(ada, wallet, at(100)).await.unwrap());
    assert!(accounts.payout_prove(bob, wallet, at(100)).await.unwrap());
    assert_eq!(owner(101).await, Some((bob, true)));
}

/// Of operators who prove a wallet at once, one does. An address that is about to be an operator's takes nothing from it.
pub async fn one_of_many_proves_a_wallet(url: &str) {
    let stores = [open(url).await, open(url).await];
    let accounts = stores[0].accounts();
    let mut operators = Vec::new();
    for number in 0..8 {
        let one = operator(&stores[0], &format!("operator-{number}@example.org")).await;
        let set = accounts.payout_set(one, PAYER.to_owned(), at(10), mail(at(0), None), at(0));
        set.await.unwrap();
        operators.push(one);
    }
    let racing = operators.clone();
    let proved = race(stores.clone(), 8, move |store, number| {
        let operator = racing[number];
        async move { store.accounts().payout_prove(operator, PAYER, at(20)).await.unwrap() }
    })
    .await;
    assert_eq!(proved.iter().filter(|proved| **proved).count(), 1, "{proved:?}");
    sound(&stores[0]).await;

    // The first operator has proved another wallet, and its next address is the second's, who proved it.
    let wallet = "0x00000000000000000000000000000000000000aa";
    let set = async |operator, wallet: &str, from, now| {
        let (accounts, letter) = (stores[0].accounts(), mail(at(now), None));
        let set = accounts.payout_set(operator, wallet.to_owned(), at(from), letter, at(now));
        set.await.unwrap();
    };
    let other = "0x00000000000000000000000000000000000000bb";
    set(operators[0], other, 30, 25).await;
    assert!(accounts.payout_prove(operators[0], other, at(30)).await.unwrap());
    set(operators[1], wallet, 30, 25).await;
    assert!(accounts.payout_prove(operators[1], wallet, at(30)).await.unwrap());
    set(operators[0], wallet, 50, 40).await;
    let owner = accounts
        .operator_of_wallet(wallet, None, at(60))
        .await
        .unwrap()
        .unwrap();
    assert_eq!((owner.operator, owner.is_proved), (operators[1], true));
}

async fn payable(store: &Store, now: i64) -> Vec<Payable> {
    let threshold = MicroUsdc(50_000);
    store.money().payable(LEDGER, threshold, at(now)).await.unwrap()
}

/// Brings money in: an operator buys a pack, which is credited once.
async fn fund(stores: &[Store; 2], buyer: OperatorId, now: i64) {
    let store = &stores[0];
    let pack = NewPayment {
        bound: Bound {
            kind: PaidFor::Pack,
            id: buyer.to_string(),
            version: 1,
            unit_version: None,
        },
        amount: 1_000_000,
        ..payment(1, PaidFor::Pack)
    };
    let id = pack.id.clone();
    assert_eq!(store.payments().bind(pack).await.unwrap(), PaymentBound::New);
    assert!(store.payments().begin(&id, at(now)).await.unwrap());
    let settlement = Settlement {
        payment: id,
        transaction: "0xab".to_owned(),
        sale: SaleId::new(at(now)),
        event: LedgerEventId::new(at(now)),
        terms: terms(),
        refund: WalletRefund {
            id: PaymentId::new(at(now)).to_string(),
            nonce: "refund".to_owned(),
            event: LedgerEventId::new(at(now)),
        },
        now: at(now),
    };
    let settled = race(stores.clone(), 8, |store, _| {
        let settlement = settlement.clone();
        async move { store.money().settle(settlement).await.unwrap() }
    })
    .await;
    let credited = settled
        .iter()
        .filter(|settled| matches!(settled, Settled::Credited { .. }));
    assert_eq!(credited.count(), 1, "{settled:?}");
}

/// A payout takes the whole balance once, is paid once, and gives it back if it was not paid.
pub async fn a_payout_is_booked_once(url: &str) {
    let stores = [open(url).await, open(url).await];
    let store = &stores[0];
    let market = Market::new(store, 500_000, false).await;
    let seller = market.seller.operator;
    give(store, market.buyer, 1_000_000, false, "g").await;
    let sold = store.money().purchase(market.purchase(10)).await.unwrap();
    assert!(matches!(sold, crate::Purchased::Bought(_)), "{sold:?}");
    let now = 10 + 7 * 86_400;
    store.money().release(LEDGER, at(now), 100).await.unwrap();
    assert_eq!(payable(store, now).await, [], "there is no address");
    let accounts = store.accounts();
    let set = accounts
        .payout_set(seller, PAYER.to_owned(), at(now + 1), mail(at(now), None), at(now))
        .await;
    set.unwrap();
    assert_eq!(payable(store, now).await, [], "the address is not in force");
    let now = now + 1;
    let due = payable(store, now).await;
    assert_eq!((due.len(), due[0].amount), (1, MicroUsdc(380_000)));
    assert_eq!(due[0].address, PAYER);
    // Granted credits are not backed by money.
    assert_eq!(pick(store, due[0].clone(), now).await, PayoutPicked::Uncovered);
    fund(&stores, market.buyer, now).await;
    let picked = race(stores.clone(), 8, |store, _| {
        let payable = due[0].clone();
        async move { pick(&store, payable, now).await }
    })
    .await;
    assert_eq!(
        picked.iter().filter(|picked| **picked == PayoutPicked::Picked).count(),
        1,
        "{picked:?}"
    );
    assert_eq!(payable(store, now).await, [], "one payout is open");
    let lease = Duration::from_mins(1);
    let leased = race(stores.clone(), 8, |store, _| async move {
        store.money().payouts_due(at(now), lease, 9).await.unwrap().len()
    })
    .await;
    assert_eq!(leased.iter().sum::<usize>(), 1);
    let rows = store.money().payouts_of(seller, 9).await.unwrap();
    let payout = rows[0].id.as_str();
    assert!(store.money().payout_sending(payout, 700).await.unwrap());
    assert!(store.money().payout_sending(payout, 600).await.unwrap());
    assert!(store.money().payout_later(payout, None, at(now + 5)).await.unwrap());
    let rows = store
        .money()
        .payouts_listed(Some(PayoutState::Unknown), 9)
        .await
        .unwrap();
    assert_eq!((rows.len(), rows[0].valid_before, rows[0].attempts), (1, 700, 2));
    assert!(store.money().payout_retry(payout, at(now)).await.unwrap());
    // It was sent again since, so what is known of its first attempt proves nothing.
    assert!(!store.money().payout_failed(payout, 1, at(now)).await.unwrap());
    assert!(store.money().payout_failed(payout, 2, at(now)).await.unwrap());
    assert!(!store.money().payout_done(payout, "0xcd", at(now)).await.unwrap());
    assert_eq!(balances(store, seller).await.payable, MicroUsdc(380_000));
    assert_eq!(pick(store, due[0].clone(), now).await, PayoutPicked::Picked);
    let rows = store
        .money()
        .payouts_listed(Some(PayoutState::Picked), 9)
        .await
        .unwrap();
    let second = rows[0].id.clone();
    let done = race(stores.clone(), 8, |store, _| {
        let second = second.clone();
        async move { store.money().payout_done(&second, "0xcd", at(now)).await.unwrap() }
    })
    .await;
    assert_eq!(done.iter().filter(|done| **done).count(), 1);
    let left = balances(store, seller).await;
    assert_eq!((left.payable, left.payout_pending), (MicroUsdc(0), MicroUsdc(0)));
    sound(store).await;
}

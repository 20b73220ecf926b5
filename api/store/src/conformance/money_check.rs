//! Scenarios about the check of money: each rule names a row that breaks it.

use types::money::MicroUsdc;

use super::fixture::{at, mail, open};
use super::money::{ASSET, Market, dispute, faults, give, resolve, sound};
use super::payouts::{WALLET, pay, refund};
use crate::{DisputeResolution, PaidFor, Settled, Store, Treasury};

const WEEK: i64 = 7 * 86_400;
/// Time of the checks.
const NOW: i64 = WEEK + 1_000;

pub(crate) async fn plant(store: &Store, text: String) {
    let planted = store.write_aside(move |cx| {
        Box::pin(async move {
            let changed = sqlx::query(sqlx::AssertSqlSafe(text)).execute(cx).await?;
            Ok(crate::writer::Change::Keep(changed.rows_affected()))
        })
    });
    assert!(planted.await.unwrap() > 0, "nothing was planted");
}

/// Each planted row breaks its rule, and nothing is broken without it.
pub async fn a_planted_row_breaks_its_rule(url: &str) {
    let store = open(url).await;
    let market = Market::new(&store, 500_000, false).await;
    give(&store, market.buyer, 1_000_000, false, "g").await;
    market.buy(&store, 10).await;
    let (payment, settled) = pay(&store, PaidFor::Dataset, market.item.to_string(), 500_000, 20).await;
    let Settled::Sold(sale) = settled else {
        unreachable!("the wallet buys it: {settled:?}");
    };
    let pack = pay(&store, PaidFor::Pack, market.buyer.to_string(), 1_000_000, 30).await;
    assert!(matches!(pack.1, Settled::Credited { .. }), "{pack:?}");
    // One share is payable and picked, the other goes back to the wallet.
    let (id, _) = dispute(&store, sale.id, 40).await;
    let wallet = Some(refund(50));
    let _resolved = resolve(&store, id, DisputeResolution::Refund { wallet }, 50).await;
    let seller = market.seller.operator;
    for operator in [seller, market.buyer] {
        let letter = mail(at(0), None);
        let accounts = store.accounts();
        let set = accounts.payout_set(operator, WALLET.to_owned(), at(2), letter, at(1));
        set.await.unwrap();
    }
    let money = store.money();
    assert_eq!(money.release(ASSET, at(10 + WEEK), 9).await.unwrap(), 1);
    let due = money.payable(ASSET, MicroUsdc(50_000), at(NOW)).await.unwrap();
    let new = crate::NewPayout {
        id: "p".to_owned(),
        nonce: "nonce".to_owned(),
        asset: ASSET.to_owned(),
        payable: due[0].clone(),
        now: at(NOW),
    };
    assert_eq!(money.payout_pick(new).await.unwrap(), crate::PayoutPicked::Picked);
    sound(&store).await;

    let hour_ago = at(NOW - 3_600).micros();
    let proved = |time: &str| {
        format!("UPDATE operators SET payout_next_at = NULL, payout_address = '{WALLET}', payout_proved_at = {time}")
    };
    let buyer = |text: String| format!("UPDATE sales SET buyer_operator = {text} WHERE id = '{}'", sale.id);
    // The rule, a row that breaks it, and what was there before.
    let planted = [
        (
            "M9",
            format!("UPDATE payments SET state = 'unknown', next_try_at = {hour_ago} WHERE id = '{payment}'"),
            format!("UPDATE payments SET state = 'settled' WHERE id = '{payment}'"),
        ),
        (
            "M10",
            "UPDATE item_prices SET price_micro = 490000 WHERE price_micro = 500000".to_owned(),
            "UPDATE item_prices SET price_micro = 500000 WHERE price_micro = 490000".to_owned(),
        ),
        (
            "M10",
            "UPDATE sales SET price = 490000, fee = 110000 WHERE paid_with = 'credits'".to_owned(),
            "UPDATE sales SET price = 500000, fee = 120000 WHERE paid_with = 'credits'".to_owned(),
        ),
        (
            "M11",
            "UPDATE sales SET state = 'held' WHERE state = 'payable'".to_owned(),
            "UPDATE sales SET state = 'payable' WHERE state = 'held'".to_owned(),
        ),
        (
            "M11",
            "UPDATE payouts SET state = 'failed' WHERE kind = 'payout'".to_owned(),
            "UPDATE payouts SET state = 'picked' WHERE kind = 'payout'".to_owned(),
        ),
        (
            "M12",
            "UPDATE payouts SET amount = amount + 1 WHERE kind = 'refund'".to_owned(),
            "UPDATE payouts SET amount = amount - 1 WHERE kind = 'refund'".to_owned(),
        ),
        (
            "M17",
            format!(
                "UPDATE agents SET operator_id = '{seller}' WHERE id = '{}'",
                market.buyers_agent
            ),
            format!(
                "UPDATE agents SET operator_id = '{}' WHERE id = '{}'",
                market.buyer, market.buyers_agent
            ),
        ),
        ("M20", proved("1"), proved("NULL")),
        ("M20", buyer(format!("'{}'", market.buyer)), buyer("NULL".to_owned())),
    ];
    for (rule, row, undone) in planted {
        plant(&store, row.clone()).await;
        let found = faults(&store, NOW).await;
        assert!(found.iter().any(|fault| fault.rule == rule), "{rule}: {row}: {found:?}");
        plant(&store, undone).await;
        assert_eq!(faults(&store, NOW).await, [], "after {rule}: {row}");
    }
}

/// A payment that nobody looked at for an hour is found, and one that waited while the service was stopped is not.
pub async fn a_payment_is_forgotten_by_a_service_that_runs(url: &str) {
    let store = open(url).await;
    let market = Market::new(&store, 500_000, false).await;
    let (id, _) = pay(&store, PaidFor::Dataset, market.item.to_string(), 500_000, 20).await;
    let due = at(100).micros();
    plant(
        &store,
        format!("UPDATE payments SET state = 'unknown', next_try_at = {due} WHERE id = '{id}'"),
    )
    .await;
    let is_forgotten = async || {
        let found = faults(&store, NOW).await;
        found.iter().any(|fault| fault.rule == "M9")
    };
    assert!(is_forgotten().await, "no process has ever looked");
    for (looked, forgotten) in [(99, false), (3_699, false), (3_700, true)] {
        store.payments().sweep(0, at(looked)).await.unwrap();
        assert_eq!(is_forgotten().await, forgotten, "{looked}");
    }
}

/// A treasury that has less than the books say is found; one that has more, or is just being paid out of, is not.
pub async fn a_treasury_that_lacks_money_is_found(url: &str) {
    let store = open(url).await;
    let books = store.money().treasury(ASSET).await.unwrap();
    assert_eq!(books.fault(0, books), None);
    let books = |balance, paid, under_way| Treasury {
        balance: MicroUsdc(balance),
        paid: MicroUsdc(paid),
        under_way: MicroUsdc(under_way),
    };
    let before = books(1_000, 50, 0);
    for (wallet, after, is_fault) in [
        (1_000, books(1_000, 50, 0), false),
        (999, books(1_000, 50, 0), true),
        (1_500, books(1_500, 50, 0), false),
        // A payout of 300 was sent, and then booked.
        (700, books(1_000, 50, 300), false),
        (700, books(700, 350, 0), false),
        (699, books(700, 350, 0), true),
    ] {
        let fault = before.fault(wallet, after);
        assert_eq!(fault.is_some(), is_fault, "{wallet}: {fault:?}");
    }
}

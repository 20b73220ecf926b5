//! Scenarios about what receipts state, and what is kept of them.

use types::SaleId;
use types::money::MicroUsdc;
use types::vocabulary::PaidWith;

use super::fixture::{at, open, race};
use super::money::{Market, give, sound};
use super::payouts::pay;
use crate::{PaidFor, Settled, Store};

async fn kept(store: &Store, sale: SaleId) -> Option<String> {
    store.money().sale_facts(sale).await.unwrap().unwrap().receipt
}

/// The facts of a sale are those that the purchase wrote.
pub async fn the_facts_of_a_sale_are_those_of_its_purchase(url: &str) {
    let store = open(url).await;
    let market = Market::new(&store, 500_000, false).await;
    give(&store, market.buyer, 1_000_000, false, "g").await;
    let sale = market.buy(&store, 10).await;
    let facts = store.money().sale_facts(sale.id).await.unwrap().unwrap();
    assert_eq!(facts.sale, sale);
    assert_eq!(facts.slug.as_deref(), Some("prices"));
    assert!(facts.root.is_some());
    assert_eq!((&facts.transaction, &facts.body, &facts.receipt), (&None, &None, &None));
    assert!(!facts.license.is_empty());
    let movements = store.money().movements(at(10).day(), "").await.unwrap();
    let moved: Vec<_> = movements
        .iter()
        .filter(|moved| moved.id == facts.event.to_string())
        .collect();
    assert!(
        moved
            .iter()
            .all(|moved| moved.key == sale.id.to_string() && moved.kind == "sale")
    );
    assert_eq!(moved.iter().map(|moved| moved.amount).sum::<i64>(), 500_000);
    assert_eq!(store.money().sale_facts(SaleId::new(at(0))).await.unwrap(), None);
    sound(&store).await;
}

/// A trial sale has its event too, which is of another kind.
pub async fn a_trial_sale_has_facts(url: &str) {
    let store = open(url).await;
    let market = Market::new(&store, 100_000, true).await;
    give(&store, market.buyer, 100_000, true, "g").await;
    let sale = market.buy(&store, 20).await;
    assert_eq!((sale.paid_with, sale.price), (PaidWith::Given, MicroUsdc(100_000)));
    let facts = store.money().sale_facts(sale.id).await.unwrap().unwrap();
    let movements = store.money().movements(at(20).day(), "").await.unwrap();
    let moved = movements
        .iter()
        .find(|moved| moved.id == facts.event.to_string())
        .unwrap();
    assert_eq!((moved.kind.as_str(), moved.amount), ("trial_sale", 100_000));
    sound(&store).await;
}

/// Of many that keep a receipt one is kept, and all get it.
pub async fn one_of_many_receipts_is_kept(url: &str) {
    let store = open(url).await;
    let market = Market::new(&store, 500_000, false).await;
    give(&store, market.buyer, 1_000_000, false, "g").await;
    let sale = market.buy(&store, 10).await.id;
    let stores = [store.clone(), open(url).await];
    let keeping = race(stores, 8, move |store, number| async move {
        let text = format!("{{\"number\":{number}}}");
        store.money().keep_receipt(sale, "", &text).await.unwrap()
    });
    let given = keeping.await;
    let first = kept(&store, sale).await;
    assert!(
        first.is_some() && given.iter().all(|given| *given == first),
        "{given:?}"
    );
    // It changes only for who has read it.
    let money = store.money();
    let first = first.unwrap();
    assert_eq!(money.keep_receipt(sale, "", "{}").await.unwrap(), Some(first.clone()));
    assert_eq!(
        money.keep_receipt(sale, &first, "{}").await.unwrap().as_deref(),
        Some("{}")
    );
    assert_eq!(kept(&store, sale).await.as_deref(), Some("{}"));
    assert_eq!(money.keep_receipt(SaleId::new(at(0)), "", "{}").await.unwrap(), None);
    let listed = money.receipted_sales(None, 9).await.unwrap();
    assert_eq!((listed.len(), listed[0].sale.id), (1, sale));
    assert!(money.receipted_sales(Some(sale), 9).await.unwrap().is_empty());
}

/// A payment has a receipt once it is settled.
pub async fn a_settled_payment_keeps_one_receipt(url: &str) {
    let store = open(url).await;
    let market = Market::new(&store, 500_000, false).await;
    let (payment, settled) = pay(&store, PaidFor::Dataset, market.item.to_string(), 500_000, 10).await;
    let Settled::Sold(sale) = settled else {
        unreachable!("{settled:?}")
    };
    let money = store.money();
    assert_eq!(
        money
            .keep_payment_receipt(&payment, "", "a.b.c")
            .await
            .unwrap()
            .as_deref(),
        Some("a.b.c")
    );
    assert_eq!(
        money
            .keep_payment_receipt(&payment, "", "d.e.f")
            .await
            .unwrap()
            .as_deref(),
        Some("a.b.c")
    );
    let stored = store.payments().get(&payment).await.unwrap().unwrap();
    assert_eq!(stored.receipt.as_deref(), Some("a.b.c"));
    let listed = money.receipted_payments("", 9).await.unwrap();
    assert_eq!((listed.len(), listed[0].text.as_str()), (1, "a.b.c"));
    assert_eq!(listed[0].transaction, stored.transaction);
    let facts = money.sale_facts(sale.id).await.unwrap().unwrap();
    assert_eq!(facts.transaction, stored.transaction);
    sound(&store).await;
}

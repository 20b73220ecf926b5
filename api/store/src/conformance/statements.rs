//! Scenarios about what pages of money list: purchases and sales one line each, payouts, and the first steps.

use std::time::Duration;

use pay::EventKind;
use types::money::MicroUsdc;
use types::{PaymentId, SaleId};

use super::fixture::{at, mail, open};
use super::money::{ASSET, Market, dispute, give, merge, resolve, sound};
use super::payouts::{WALLET, pay};
use crate::{
    DayOfSales, DisputeResolution, EntryCursor, EntryFilter, ListedSale, NewPayout, PaidFor, PayoutPicked, SaleState,
    Settled, SoldFilter, StatementLine, Store,
};

const WEEK: i64 = 7 * 86_400;

async fn sold(store: &Store, market: &Market, filter: SoldFilter<'_>) -> Vec<ListedSale> {
    let money = store.money();
    let reading = money.sold_by(ASSET, market.seller.operator, filter, None, 9);
    reading.await.unwrap()
}

/// A purchase is one line with the whole price, on whatever page it stands, and the lines are in the order of their events.
pub async fn a_purchase_is_one_line_of_the_statement(url: &str) {
    let store = open(url).await;
    let market = Market::new(&store, 500_000, false).await;
    give(&store, market.buyer, 2_000_000, false, "g").await;
    give(&store, market.buyer, 50_000, true, "trial").await;
    let mut sales = vec![market.buy(&store, 10).await.id];
    for version in 2..=3 {
        merge(&store, market.seller, market.item, version).await;
        let now = 10 * i64::try_from(version).unwrap();
        sales.push(market.buy(&store, now).await.id);
    }
    let (id, _) = dispute(&store, sales[2], 40).await;
    resolve(&store, id, DisputeResolution::Refund { wallet: None }, 50).await;
    let money = store.money();
    let read = async |filter: EntryFilter, limit: u32| {
        let (mut lines, mut cursor): (Vec<StatementLine>, _) = (Vec::new(), EntryCursor::NEWEST);
        loop {
            let reading = money.statement(ASSET, market.buyer, filter, cursor, limit);
            let (page, next) = reading.await.unwrap();
            assert!(page.len() <= limit as usize, "{page:?}");
            lines.extend(page);
            let Some(next) = next else { return lines };
            cursor = next;
        }
    };
    for limit in [1, 2, 3, 50] {
        let lines = read(EntryFilter::default(), limit).await;
        let of: Vec<_> = lines
            .iter()
            .map(|line| (line.kind, line.amount.0, line.after.0))
            .collect();
        let (refund, sale) = (EventKind::DisputeWon, EventKind::Sale);
        assert_eq!(
            of,
            [
                (refund, 500_000, 1_000_000),
                (sale, -500_000, 500_000),
                (sale, -500_000, 1_000_000),
                (sale, -500_000, 1_500_000),
                (EventKind::Grant, 2_000_000, 2_000_000),
                (EventKind::Given, 50_000, 50_000),
            ],
            "{limit}"
        );
        let keys: Vec<_> = lines[1..4].iter().map(|line| line.key.clone()).collect();
        let expected: Vec<_> = sales.iter().rev().map(SaleId::to_string).collect();
        assert_eq!(keys, expected, "the key of a line leads to its receipt");
    }
    let purchases = EntryFilter {
        kinds: [Some(EventKind::Sale), Some(EventKind::TrialSale), None],
        ..EntryFilter::default()
    };
    assert_eq!(read(purchases, 2).await.len(), 3);
    let spent = store.money().spent_since(ASSET, market.buyer, at(0)).await.unwrap();
    assert_eq!(
        (spent.purchases, spent.sum),
        (2, MicroUsdc(1_000_000)),
        "a refund is not spent"
    );
    let spent = store.money().spent_since(ASSET, market.buyer, at(20)).await.unwrap();
    assert_eq!(spent.purchases, 1);
    sound(&store).await;
}

/// A seller's sales say where their money is: on hold, disputed, given back, ready, and paid by the payout after it.
pub async fn sales_say_where_their_money_is(url: &str) {
    let store = open(url).await;
    let market = Market::new(&store, 500_000, false).await;
    let seller = market.seller.operator;
    give(&store, market.buyer, 1_500_000, false, "g").await;
    let first = market.buy(&store, 10).await;
    merge(&store, market.seller, market.item, 2).await;
    let second = market.buy(&store, 20).await;
    let (id, _) = dispute(&store, second.id, 30).await;
    resolve(&store, id, DisputeResolution::Refund { wallet: None }, 40).await;
    let (_, settled) = pay(&store, PaidFor::Dataset, market.item.to_string(), 500_000, 50).await;
    assert!(matches!(settled, Settled::Sold(_)), "{settled:?}");
    // Granted credits are not backed by money, and the payout below is.
    let (_, settled) = pay(&store, PaidFor::Pack, market.buyer.to_string(), 1_000_000, 55).await;
    assert!(matches!(settled, Settled::Credited { .. }), "{settled:?}");
    let all = sold(&store, &market, SoldFilter::default()).await;
    let states: Vec<_> = all.iter().map(|sold| sold.sale.state).collect();
    assert_eq!(states, [SaleState::Held, SaleState::Refunded, SaleState::Held]);
    assert!(
        all[0]
            .sale
            .wallet
            .as_deref()
            .is_some_and(|wallet| wallet.ends_with(WALLET))
    );
    assert_eq!((all[1].resolved_at, all[1].paid_at), (Some(at(40)), None));
    assert!(
        all.iter()
            .all(|sold| sold.slug.as_deref() == Some("prices") && sold.title.is_some())
    );
    let held = SoldFilter {
        state: Some(SaleState::Held),
        item: None,
    };
    assert_eq!(sold(&store, &market, held).await.len(), 2);
    let item = market.item.to_string();
    for (item, number) in [(item.as_str(), 3), ("another", 0)] {
        let filter = SoldFilter {
            state: None,
            item: Some(item),
        };
        assert_eq!(sold(&store, &market, filter).await.len(), number, "{item}");
    }
    let money = store.money();
    let earlier = money
        .sold_by(ASSET, seller, SoldFilter::default(), Some(second.id), 9)
        .await;
    let earlier: Vec<_> = earlier.unwrap().into_iter().map(|sold| sold.sale.id).collect();
    assert_eq!(earlier, [first.id], "a page goes on where the one before ended");
    let strange = money
        .sold_by(ASSET, market.buyer, SoldFilter::default(), Some(second.id), 9)
        .await;
    assert_eq!(strange.unwrap(), []);
    let items = money.sold_items(seller, 9).await.unwrap();
    assert_eq!((items.len(), &items[0].item), (1, &market.item.to_string()));
    let days = money.days_of_sales(ASSET, seller, at(0), at(86_400)).await.unwrap();
    let day = DayOfSales {
        day: at(0).day(),
        by_credits: 1,
        by_wallet: 1,
        share_by_credits: MicroUsdc(380_000),
        share_by_wallet: MicroUsdc(380_000),
    };
    assert_eq!(days, [day]);

    // Released, it is ready; and the first payout that was picked after it has paid it.
    assert_eq!(money.release(ASSET, at(60 + WEEK), 9).await.unwrap(), 2);
    let ready = sold(&store, &market, SoldFilter::default()).await;
    assert_eq!((ready[2].sale.state, ready[2].paid_at), (SaleState::Payable, None));
    let letter = mail(at(0), None);
    let accounts = store.accounts();
    let set = accounts.payout_set(seller, format!("0x{:040x}", 9), at(1), letter, at(0));
    set.await.unwrap();
    let now = at(70 + WEEK);
    let due = money.payable(ASSET, MicroUsdc(1), now).await.unwrap();
    let id = PaymentId::new(now).to_string();
    let new = NewPayout {
        id: id.clone(),
        nonce: "nonce".to_owned(),
        asset: ASSET.to_owned(),
        payable: due[0].clone(),
        now,
    };
    let picked = money.payout_pick(new).await.unwrap();
    assert_eq!(picked, PayoutPicked::Picked);
    assert_eq!(sold(&store, &market, SoldFilter::default()).await[2].paid_at, None);
    let taken = money.payouts_due(now, Duration::from_secs(1), 9).await.unwrap();
    assert_eq!(taken.len(), 1);
    assert!(money.payout_sending(&id, i64::MAX).await.unwrap());
    assert!(money.payout_done(&id, "0xabc", at(80 + WEEK)).await.unwrap());
    let paid = sold(&store, &market, SoldFilter::default()).await;
    assert_eq!((paid[0].paid_at, paid[2].paid_at), (Some(now), Some(now)));
    assert_eq!(paid[1].paid_at, None, "what was given back was never paid");
    let payouts = money.payouts_of(seller, 9).await.unwrap();
    assert_eq!((payouts.len(), payouts[0].amount), (1, MicroUsdc(760_000)));
    assert_eq!(money.payouts_of(market.buyer, 9).await.unwrap(), []);
}

/// First steps are hidden once, for the operator alone.
pub async fn first_steps_stay_hidden(url: &str) {
    let store = open(url).await;
    let market = Market::new(&store, 500_000, false).await;
    let accounts = store.accounts();
    for now in [10, 20] {
        accounts.hide_first_steps(market.buyer, at(now)).await.unwrap();
        assert!(accounts.hides_first_steps(market.buyer).await.unwrap());
    }
    assert!(!accounts.hides_first_steps(market.seller.operator).await.unwrap());
}

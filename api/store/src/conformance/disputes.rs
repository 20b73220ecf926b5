//! Scenarios about the sides of disputes: the opening by a buyer, the answer and the refund of a seller, and lists.

use types::vocabulary::DisputeState;
use types::{DisputeId, LedgerEventId, OperatorId, SaleId};

use super::fixture::{at, open, operator, race};
use super::money::{Market, balances, dispute, give, sound};
use crate::{
    DISPUTE_ANSWER_WINDOW, DisputeDecision, DisputeLetters, DisputeOpened, DisputeOpener, DisputeReplied,
    DisputeResolution, DisputeResolved, DisputeSide, Job, NewDispute, SaleState, Store,
};

const WEEK: i64 = 7 * 86_400;

fn letters(word: &str) -> DisputeLetters {
    DisputeLetters {
        kind: "mail".to_owned(),
        payload: word.to_owned(),
    }
}

/// A dispute that the buyer's agent opens.
fn raised(market: &Market, sale: SaleId, now: i64) -> NewDispute {
    NewDispute {
        id: DisputeId::new(at(now)),
        event: LedgerEventId::new(at(now)),
        sale,
        reason: "half of the rows are made up".to_owned(),
        by: "buyer".to_owned(),
        opener: Some(DisputeOpener {
            operator: market.buyer,
            agent: Some(market.buyers_agent),
        }),
        letters: Some(letters("opened")),
        now: at(now),
    }
}

/// A refund by a seller.
fn given_back(id: DisputeId, seller: OperatorId, now: i64) -> DisputeDecision {
    DisputeDecision {
        id,
        resolution: DisputeResolution::Refund { wallet: None },
        event: LedgerEventId::new(at(now)),
        by: "seller".to_owned(),
        seller: Some(seller),
        answer: String::new(),
        letters: Some(letters("decided")),
        now: at(now),
    }
}

/// Takes the letters that are due, each with its reader.
async fn told(store: &Store) -> Vec<(Option<OperatorId>, String)> {
    let lease = std::time::Duration::from_secs(1);
    let jobs = store.flow().jobs_lease(at(100 * WEEK), lease, 100).await.unwrap();
    let mut told: Vec<_> = jobs
        .iter()
        .filter(|job: &&Job| job.kind == "mail")
        .map(|job| (job.operator, job.payload.clone()))
        .collect();
    told.sort();
    for job in jobs {
        store.flow().job_done(&job.id).await.unwrap();
    }
    told
}

/// A buyer opens one dispute of a sale; the seller and the administrator are told once.
pub async fn a_buyer_opens_one_dispute_of_a_sale(url: &str) {
    let store = open(url).await;
    let market = Market::new(&store, 500_000, false).await;
    give(&store, market.buyer, 1_000_000, false, "g").await;
    let sale = market.buy(&store, 10).await;
    let stranger = operator(&store, "eve@example.org").await;
    let theirs = NewDispute {
        opener: Some(DisputeOpener {
            operator: stranger,
            agent: None,
        }),
        ..raised(&market, sale.id, 20)
    };
    assert_eq!(
        store.money().dispute_open(theirs).await.unwrap(),
        DisputeOpened::Missing
    );
    let new = raised(&market, sale.id, 20);
    let id = new.id;
    let opened = store.money().dispute_open(new).await.unwrap();
    assert!(matches!(opened, DisputeOpened::Opened(_)), "{opened:?}");
    let again = store.money().dispute_open(raised(&market, sale.id, 30)).await.unwrap();
    assert_eq!(again, DisputeOpened::Before(id));
    assert_eq!(balances(&store, market.seller.operator).await.disputed.0, 380_000);
    let opened = "opened".to_owned();
    let readers = [(None, opened.clone()), (Some(market.seller.operator), opened)];
    assert_eq!(told(&store).await, readers);

    let money = store.money();
    let found = money.dispute_of(market.buyer, id).await.unwrap().unwrap();
    assert_eq!(found.side_of(market.buyer), Some(DisputeSide::Buyer));
    assert_eq!(found.side_of(market.seller.operator), Some(DisputeSide::Seller));
    assert_eq!(found.side_of(stranger), None);
    assert_eq!((found.sale.id, found.sale.state), (sale.id, SaleState::Disputed));
    assert_eq!(found.dispute.opened_agent, Some(market.buyers_agent));
    assert_eq!(found.dispute.answer_due, Some(at(20).plus(DISPUTE_ANSWER_WINDOW)));
    assert_eq!(found.slug.as_deref(), Some("prices"));
    assert_eq!(money.dispute_of(stranger, id).await.unwrap(), None);
    assert_eq!(money.disputed_sale(id).await.unwrap().as_ref(), Some(&found));
    assert_eq!(
        money.dispute_of_sale(market.buyer, sale.id).await.unwrap().as_ref(),
        Some(&found)
    );
    assert_eq!(money.dispute_of_sale(stranger, sale.id).await.unwrap(), None);
    assert_eq!(money.disputes_to_decide(9).await.unwrap(), [found]);

    // What the service decided for the seller is not opened once more by the buyer, but by an administrator.
    let decision = DisputeDecision {
        resolution: DisputeResolution::Release,
        seller: None,
        ..given_back(id, stranger, 40)
    };
    let resolved = money.dispute_resolve(decision).await.unwrap();
    assert!(matches!(resolved, DisputeResolved::Resolved(_)), "{resolved:?}");
    let again = money.dispute_open(raised(&market, sale.id, 50)).await.unwrap();
    assert_eq!(again, DisputeOpened::Before(id));
    let (_, by_administrator) = dispute(&store, sale.id, 60).await;
    assert!(
        matches!(by_administrator, DisputeOpened::Opened(_)),
        "{by_administrator:?}"
    );
    // After the window nobody opens one.
    let late = market.buy_other(&store, 70).await;
    let refused = money.dispute_open(raised(&market, late, 71 + WEEK)).await.unwrap();
    assert!(matches!(refused, DisputeOpened::TooLate { .. }), "{refused:?}");
    sound(&store).await;
}

/// Of many openings of a sale at once one is the dispute, and the others find it.
pub async fn one_of_many_openings_is_the_dispute(url: &str) {
    let stores = [open(url).await, open(url).await];
    let market = Market::new(&stores[0], 500_000, false).await;
    give(&stores[0], market.buyer, 500_000, false, "g").await;
    let sale = market.buy(&stores[0], 10).await.id;
    let opened = race(stores.clone(), 16, move |store, number| async move {
        let now = 20 + i64::try_from(number).unwrap();
        store.money().dispute_open(raised(&market, sale, now)).await.unwrap()
    })
    .await;
    let is_new = |opened: &&DisputeOpened| matches!(opened, DisputeOpened::Opened(_));
    assert_eq!(opened.iter().filter(is_new).count(), 1, "{opened:?}");
    let money = stores[0].money();
    let open = money.disputes_to_decide(9).await.unwrap();
    let [only] = &open[..] else {
        unreachable!("one dispute");
    };
    let mut others = opened.iter().filter(|opened| !is_new(opened));
    assert!(others.all(|opened| *opened == DisputeOpened::Before(only.dispute.id)));
    assert_eq!(balances(&stores[0], market.seller.operator).await.disputed.0, 380_000);
    sound(&stores[0]).await;
}

/// A seller answers once, and no time that passes moves money; then it gives the price back.
pub async fn a_seller_answers_once_or_gives_the_price_back(url: &str) {
    let store = open(url).await;
    let market = Market::new(&store, 500_000, false).await;
    give(&store, market.buyer, 500_000, false, "g").await;
    let sale = market.buy(&store, 10).await;
    let new = raised(&market, sale.id, 20);
    let id = new.id;
    let opened = store.money().dispute_open(new).await.unwrap();
    assert!(matches!(opened, DisputeOpened::Opened(_)), "{opened:?}");
    told(&store).await;
    let (money, seller) = (store.money(), market.seller.operator);
    let reply = async |operator: OperatorId, words: &'static str, now: i64| {
        let money = store.money();
        money
            .dispute_reply(operator, id, words, Some(letters("answered")), at(now))
            .await
            .unwrap()
    };
    assert_eq!(reply(market.buyer, "not mine", 30).await, DisputeReplied::Missing);
    // The deadline is over, and an answer counts all the same.
    let late = 30 + 4 * 86_400;
    assert_eq!(reply(seller, "the readme says so", late).await, DisputeReplied::Replied);
    assert_eq!(
        reply(seller, "the readme says so", late + 1).await,
        DisputeReplied::Replied
    );
    assert_eq!(
        reply(seller, "or something else", late + 2).await,
        DisputeReplied::Before
    );
    let answered = "answered".to_owned();
    assert_eq!(
        told(&store).await,
        [(None, answered.clone()), (Some(market.buyer), answered)]
    );
    // A share under dispute is not released, however late it is.
    assert_eq!(money.release(super::money::ASSET, at(20 * WEEK), 9).await.unwrap(), 0);
    assert_eq!(balances(&store, seller).await.disputed.0, 380_000);

    let not_theirs = money
        .dispute_resolve(given_back(id, market.buyer, late + 3))
        .await
        .unwrap();
    assert_eq!(not_theirs, DisputeResolved::Missing);
    let ended = money.dispute_resolve(given_back(id, seller, late + 4)).await.unwrap();
    assert!(matches!(ended, DisputeResolved::Resolved(sale) if sale.state == SaleState::Refunded));
    let twice = money.dispute_resolve(given_back(id, seller, late + 5)).await.unwrap();
    assert_eq!(twice, DisputeResolved::Ended);
    assert_eq!(balances(&store, market.buyer).await.credits.0, 500_000);
    assert_eq!(reply(seller, "too late", late + 6).await, DisputeReplied::Ended);
    let decided = "decided".to_owned();
    let mut readers = vec![(Some(seller), decided.clone()), (Some(market.buyer), decided)];
    readers.sort();
    assert_eq!(told(&store).await, readers);
    let found = money.disputed_sale(id).await.unwrap().unwrap().dispute;
    assert_eq!(
        (found.state, found.resolved_by.as_deref(), found.reply.as_deref()),
        (DisputeState::Refunded, Some("seller"), Some("the readme says so"))
    );
    sound(&store).await;
}

/// Each side lists its disputes, newest first, in pages.
pub async fn each_side_lists_its_disputes(url: &str) {
    let store = open(url).await;
    let market = Market::new(&store, 100_000, false).await;
    give(&store, market.buyer, 1_000_000, false, "g").await;
    let mut ids = Vec::new();
    for number in 0..3 {
        let sale = if number == 0 {
            market.buy(&store, 10).await.id
        } else {
            market.buy_other(&store, 10 + number).await
        };
        let new = raised(&market, sale, 20 + number);
        ids.insert(0, new.id);
        let opened = store.money().dispute_open(new).await.unwrap();
        assert!(matches!(opened, DisputeOpened::Opened(_)), "{opened:?}");
    }
    let money = store.money();
    for (operator, side) in [
        (market.buyer, DisputeSide::Buyer),
        (market.seller.operator, DisputeSide::Seller),
    ] {
        let page = async |before: Option<DisputeId>, limit: u32| {
            let found = store.money().disputes_of(operator, side, before, limit).await.unwrap();
            found.iter().map(|found| found.dispute.id).collect::<Vec<_>>()
        };
        assert_eq!(page(None, 9).await, ids);
        assert_eq!(page(None, 2).await, ids[..2]);
        assert_eq!(page(Some(ids[1]), 2).await, ids[2..]);
    }
    let none = money
        .disputes_of(market.buyer, DisputeSide::Seller, None, 9)
        .await
        .unwrap();
    assert_eq!(none, []);
    sound(&store).await;
}

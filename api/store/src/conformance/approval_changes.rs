//! Scenarios about what changes between a purchase that waits and the decision of a person.

use oauth::AppBudget;
use types::Version;
use types::money::MicroUsdc;
use types::vocabulary::{ApprovalState, AskedBy, ItemKind, SpendPeriod, StaleReason};

use super::approvals::{DAY, NOW, PRICE, always, asking, choice, no, reprice, row, waiting, yes, yes_at};
use super::fixture::{agent, at, open};
use super::money::{balances, dispute, faults, merge, resolve};
use super::money_check::plant;
use super::spending::{Shop, connect, micro};
use crate::{
    Approved, DeniedApproval, DisputeResolution, MAX_WAITING_APPROVALS, NewPurchase, NewYes, PersonAsked, Purchased,
    SpendLimits,
};

/// A yes to a price that has risen buys nothing and asks anew; a lower price is what is paid.
pub async fn a_yes_never_pays_more_than_was_shown(url: &str) {
    let store = open(url).await;
    let shop = asking(&store, 2).await;
    let before = balances(&store, shop.market.buyer).await.credits.0;
    let asked = waiting(&shop, &store, 0, None, 10).await;
    reprice(&shop, &store, 0, 2 * PRICE, 20).await;
    let stale = yes(&shop, &store, asked.id, 30).await;
    let Approved::Stale { approval, successor } = stale else {
        unreachable!("the price has risen: {stale:?}");
    };
    assert_eq!(
        (approval.state, approval.why),
        (ApprovalState::Stale, Some(StaleReason::Price))
    );
    let next = row(&shop, &store, successor.unwrap(), 31).await;
    assert_eq!(
        (next.state, next.price.0, next.asked_by),
        (ApprovalState::Waiting, 2 * PRICE, AskedBy::Agent)
    );
    let version = (ItemKind::Dataset, asked.item.as_str(), 1);
    let found = store
        .money()
        .approval_waiting_for(shop.market.buyers_agent, version.0, version.1, version.2, at(31))
        .await;
    assert_eq!(found.unwrap().map(|row| row.id), Some(next.id));
    assert_eq!(balances(&store, shop.market.buyer).await.credits.0, before);
    // The old row is over for good.
    assert!(matches!(yes(&shop, &store, asked.id, 32).await, Approved::Ended(_)));
    assert_eq!(
        waiting(&shop, &store, 0, None, 33).await.id,
        next.id,
        "the agent waits for the new one"
    );

    reprice(&shop, &store, 0, PRICE / 2, 40).await;
    // A page showed the lower price, and the price rose again before the click.
    reprice(&shop, &store, 0, 2 * PRICE, 42).await;
    let seen = NewYes {
        shown: Some(micro(PRICE / 2)),
        ..yes_at(&shop, next.id, 43)
    };
    let Approved::Stale { successor, .. } = store.money().approve(seen).await.unwrap() else {
        unreachable!("the price is above the one that was shown");
    };
    let next = row(&shop, &store, successor.unwrap(), 44).await;
    assert_eq!(next.price.0, 2 * PRICE);
    reprice(&shop, &store, 0, PRICE / 2, 45).await;
    assert!(matches!(yes(&shop, &store, next.id, 50).await, Approved::Bought(_)));
    assert_eq!(balances(&store, shop.market.buyer).await.credits.0, before - PRICE / 2);
    assert_eq!(faults(&store, NOW).await, []);
}

/// A cap or credits that are short keep the row as it is; it is bought once they are not.
pub async fn a_yes_waits_for_caps_and_credits(url: &str) {
    let store = open(url).await;
    let shop = asking(&store, 2).await;
    let asked = waiting(&shop, &store, 0, None, 10).await;
    let lowered = SpendLimits {
        per_day: Some(micro(PRICE - 1)),
        ..always()
    };
    shop.limit(&store, shop.agent(), lowered).await;
    let refused = yes(&shop, &store, asked.id, 20).await;
    assert!(
        matches!(&refused, Approved::Capped(capped) if capped.period == SpendPeriod::Day),
        "{refused:?}"
    );
    // The agent hears of the cap too, and of no row.
    assert!(matches!(shop.buy(&store, 0, None, 21).await, Purchased::Capped(_)));
    assert_eq!(row(&shop, &store, asked.id, 22).await, asked);
    shop.limit(&store, shop.agent(), always()).await;
    let credits = balances(&store, shop.market.buyer).await.credits.0;
    plant(
        &store,
        format!(
            "UPDATE ledger_accounts SET balance = {} WHERE kind = 'credits'",
            PRICE - 1
        ),
    )
    .await;
    let short = yes(&shop, &store, asked.id, 30).await;
    let expected = Approved::Short {
        price: MicroUsdc(PRICE),
        balance: MicroUsdc(PRICE - 1),
        given: MicroUsdc(0),
    };
    assert_eq!(short, expected);
    assert!(
        matches!(shop.buy(&store, 1, None, 31).await, Purchased::Short { .. }),
        "nobody is asked for nothing"
    );
    plant(
        &store,
        format!("UPDATE ledger_accounts SET balance = {credits} WHERE kind = 'credits'"),
    )
    .await;
    assert!(matches!(yes(&shop, &store, asked.id, 40).await, Approved::Bought(_)));
    assert_eq!(faults(&store, NOW).await, []);
}

/// What a person said yes to is gone: the item, the agent, the app, or the need.
pub async fn a_yes_to_what_has_changed_buys_nothing(url: &str) {
    let store = open(url).await;
    let shop = asking(&store, 5).await;
    let (buyer, desk) = (shop.market.buyer, shop.market.buyers_agent);
    let before = balances(&store, buyer).await;
    let app = connect(&store, buyer, desk, AppBudget::default(), 5).await;
    let why = async |id, now| match yes(&shop, &store, id, now).await {
        Approved::Stale {
            approval,
            successor: None,
        } => {
            assert_eq!(approval.state, ApprovalState::Stale);
            approval.why
        }
        other => unreachable!("something changed: {other:?}"),
    };
    let free = waiting(&shop, &store, 0, None, 10).await;
    reprice(&shop, &store, 0, 0, 11).await;
    assert_eq!(why(free.id, 12).await, Some(StaleReason::Item));

    let through = waiting(&shop, &store, 1, Some(app), 20).await;
    assert_eq!(through.app, Some(app));
    assert!(store.oauth().connection_end_of(buyer, app, at(21)).await.unwrap());
    assert_eq!(why(through.id, 22).await, Some(StaleReason::App));

    let owned = waiting(&shop, &store, 2, None, 30).await;
    let other = agent(&store, buyer, "other").await;
    let faster = NewPurchase {
        agent: Some(other),
        ..shop.purchase(2, None, 31)
    };
    let faster = store.money().purchase(faster).await.unwrap();
    assert!(
        matches!(faster, Purchased::Bought(_)),
        "another agent has no line: {faster:?}"
    );
    assert_eq!(why(owned.id, 32).await, Some(StaleReason::Owned));

    // A suspension is none of these: the row waits it out.
    let asked = waiting(&shop, &store, 3, None, 40).await;
    store
        .operator_suspend(buyer, "a reason".to_owned(), at(41))
        .await
        .unwrap();
    assert_eq!(yes(&shop, &store, asked.id, 42).await, Approved::Suspended);
    store.operator_restore(buyer).await.unwrap();
    assert!(matches!(yes(&shop, &store, asked.id, 44).await, Approved::Bought(_)));

    let last = waiting(&shop, &store, 4, None, 50).await;
    assert!(store.accounts().agent_remove(buyer, desk, at(51)).await.unwrap());
    assert_eq!(why(last.id, 52).await, Some(StaleReason::Agent));
    assert_eq!(balances(&store, buyer).await.credits.0, before.credits.0 - 2 * PRICE);
    assert_eq!(faults(&store, NOW).await, []);
}

/// A no binds the agent for a day, in every version, unless the price falls; a row that nobody decides makes room.
pub async fn a_no_binds_for_a_day(url: &str) {
    let store = open(url).await;
    let shop = asking(&store, 2).await;
    let asked = waiting(&shop, &store, 0, None, 10).await;
    assert!(matches!(
        no(&shop, &store, asked.id, 20).await,
        DeniedApproval::Denied(_)
    ));
    assert!(
        matches!(no(&shop, &store, asked.id, 21).await, DeniedApproval::Denied(_)),
        "a double click"
    );
    assert!(matches!(yes(&shop, &store, asked.id, 22).await, Approved::Ended(_)));
    merge(&store, shop.market.seller, shop.items[0], 2).await;
    for version in [None, Some(Version(1)), Some(Version(2))] {
        let again = NewPurchase {
            version,
            ..shop.purchase(0, None, 19 + DAY)
        };
        let refused = store.money().purchase(again).await.unwrap();
        let Purchased::Denied { approval, until } = refused else {
            unreachable!("the no binds in every version: {refused:?}");
        };
        assert_eq!((approval.id, until), (asked.id, at(20 + DAY)));
    }
    reprice(&shop, &store, 0, PRICE - 10_000, 30).await;
    let cheaper = waiting(&shop, &store, 0, None, 31).await;
    assert_ne!(cheaper.id, asked.id);
    reprice(&shop, &store, 0, PRICE, 32).await;
    assert!(matches!(
        no(&shop, &store, cheaper.id, 33).await,
        DeniedApproval::Denied(_)
    ));
    let later = waiting(&shop, &store, 0, None, 34 + DAY).await;
    assert_ne!(later.id, cheaper.id);

    // Nobody decides: by the clock it is over before its row says so, and the next ask is another row.
    let over = 34 + 2 * DAY;
    assert_eq!(row(&shop, &store, later.id, over).await.state, ApprovalState::Expired);
    assert!(
        matches!(yes(&shop, &store, later.id, over).await, Approved::Ended(row) if row.state == ApprovalState::Expired)
    );
    assert!(matches!(
        no(&shop, &store, later.id, over).await,
        DeniedApproval::Ended(_)
    ));
    let money = store.money();
    assert_eq!(money.approvals_count(shop.market.buyer, at(over)).await.unwrap(), 0);
    let anew = waiting(&shop, &store, 0, None, over).await;
    assert_ne!(anew.id, later.id);
    assert_eq!(
        money.approvals_expire(at(over + DAY - 1)).await.unwrap(),
        0,
        "the ask wrote the end of the other"
    );
    assert_eq!(money.approvals_expire(at(over + DAY)).await.unwrap(), 1);
    let ended = money
        .approvals_ended(shop.market.buyer, None, 9, at(over + DAY))
        .await
        .unwrap();
    let states: Vec<_> = ended.iter().map(|row| row.state).collect();
    let (expired, denied) = (ApprovalState::Expired, ApprovalState::Denied);
    assert_eq!(states, [expired, expired, denied, denied]);
    let page = money
        .approvals_ended(shop.market.buyer, Some(ended[1].id), 1, at(over + DAY))
        .await;
    assert_eq!(page.unwrap(), [ended[2].clone()]);
}

/// A no is to the price that its page shows: the one of now, if it has fallen.
pub async fn a_no_is_to_the_price_of_its_page(url: &str) {
    let store = open(url).await;
    let shop = Shop::of(&store, 1).await;
    let limits = SpendLimits {
        approve_above: Some(micro(PRICE / 2)),
        ..SpendLimits::default()
    };
    shop.limit(&store, shop.agent(), limits).await;
    let asked = waiting(&shop, &store, 0, None, 10).await;
    reprice(&shop, &store, 0, PRICE / 2, 20).await;
    let DeniedApproval::Denied(denied) = no(&shop, &store, asked.id, 30).await else {
        unreachable!("it waited");
    };
    assert_eq!(denied.price.0, PRICE / 2);
    // At that price the agent is below its line, and still is told no.
    let again = shop.buy(&store, 0, None, 40).await;
    assert!(matches!(again, Purchased::Denied { .. }), "{again:?}");
    reprice(&shop, &store, 0, PRICE / 4, 50).await;
    let cheaper = shop.buy(&store, 0, None, 60).await;
    assert!(matches!(cheaper, Purchased::Bought(_)), "{cheaper:?}");
}

/// What was bought by a yes and refunded is not had any more: a repeat asks again.
pub async fn what_was_refunded_is_asked_for_again(url: &str) {
    let store = open(url).await;
    let shop = asking(&store, 1).await;
    let asked = waiting(&shop, &store, 0, None, 10).await;
    let Approved::Bought(bought) = yes(&shop, &store, asked.id, 20).await else {
        unreachable!("the credits cover it");
    };
    let (id, _) = dispute(&store, bought.sale.unwrap(), 30).await;
    let _resolved = resolve(&store, id, DisputeResolution::Refund { wallet: None }, 40).await;
    let again = waiting(&shop, &store, 0, None, 50).await;
    assert_ne!(again.id, asked.id);
    assert_eq!(faults(&store, NOW).await, []);
}

/// What a person began on a page waits for the agent, too, once it asks: at the price of now.
pub async fn a_row_that_an_agent_takes_over_has_the_price_of_now(url: &str) {
    let store = open(url).await;
    let shop = asking(&store, 1).await;
    let begun = store.money().approval_ask(choice(&shop, 0, "f1", 10)).await.unwrap();
    let PersonAsked::Row(begun) = begun else {
        unreachable!("it is for sale: {begun:?}");
    };
    reprice(&shop, &store, 0, PRICE / 2, 20).await;
    let taken = waiting(&shop, &store, 0, None, 30).await;
    assert_eq!((taken.id, taken.price.0), (begun.id, PRICE / 2));
}

/// A person who leaves many questions undecided begins another all the same: the first one gives way.
pub async fn the_first_of_many_questions_of_a_person_gives_way(url: &str) {
    let store = open(url).await;
    let most = usize::try_from(MAX_WAITING_APPROVALS).unwrap();
    let shop = Shop::of(&store, most + 1).await;
    let mut begun = Vec::new();
    for (item, now) in (0..=most).zip(10..) {
        let choice = choice(&shop, item, &format!("f{item}"), now);
        let asked = store.money().approval_ask(choice).await.unwrap();
        let PersonAsked::Row(asked) = asked else {
            unreachable!("it is for sale");
        };
        begun.push(asked.id);
    }
    let mut states = Vec::new();
    for id in begun {
        states.push(row(&shop, &store, id, 50).await.state);
    }
    assert_eq!(states[0], ApprovalState::Expired);
    assert!(
        states[1..].iter().all(|state| *state == ApprovalState::Waiting),
        "{states:?}"
    );
}

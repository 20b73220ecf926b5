//! Scenarios about purchases that wait for a person's yes.

use std::time::Duration;

use oauth::{AppBudget, ConnectionId};
use types::money::MicroUsdc;
use types::vocabulary::{ApprovalState, AskedBy, ItemKind, StaleReason};
use types::{AgentId, ApprovalId, LedgerEventId, SaleId, SessionId, Version};

use super::fixture::{agent, at, mail, open, operator, race};
use super::money::{balances, faults, merge, paid_dataset, terms};
use super::money_check::plant;
use super::spending::{Shop, connect, micro};
use crate::{
    APPROVAL_LETTERS_A_DAY, ApprovalLetter, Approved, DeniedApproval, MAX_WAITING_APPROVALS, NewNo, NewPersonAsk,
    NewPurchase, NewPurchaseAsk, NewYes, PersonAsked, ProjectChanges, PurchaseApproval, Purchased, SpendLimits,
    SpendOwner, Store,
};

/// Price of the items of [`Shop`].
pub(super) const PRICE: i64 = 100_000;
pub(super) const DAY: i64 = 86_400;
/// Time of the checks.
pub(super) const NOW: i64 = 90 * DAY;

/// Limits that ask for every purchase.
pub(super) fn always() -> SpendLimits {
    SpendLimits {
        approve_above: Some(micro(0)),
        ..SpendLimits::default()
    }
}

/// A shop whose buyer's agent asks for every purchase.
pub(super) async fn asking(store: &Store, items: usize) -> Shop {
    let shop = Shop::of(store, items).await;
    shop.limit(store, shop.agent(), always()).await;
    shop
}

/// Returns the row that waits after a purchase of the agent.
pub(super) async fn waiting(
    shop: &Shop,
    store: &Store,
    item: usize,
    app: Option<ConnectionId>,
    now: i64,
) -> PurchaseApproval {
    match shop.buy(store, item, app, now).await {
        Purchased::Waiting(row) => *row,
        other => unreachable!("a person is asked: {other:?}"),
    }
}

pub(super) fn yes_at(shop: &Shop, id: ApprovalId, now: i64) -> NewYes {
    NewYes {
        id,
        operator: shop.market.buyer,
        session: SessionId::new(at(now)),
        shown: None,
        sale: SaleId::new(at(now)),
        event: LedgerEventId::new(at(now)),
        successor: ApprovalId::new(at(now)),
        terms: terms(),
        now: at(now),
    }
}

pub(super) async fn yes(shop: &Shop, store: &Store, id: ApprovalId, now: i64) -> Approved {
    store.money().approve(yes_at(shop, id, now)).await.unwrap()
}

pub(super) async fn no(shop: &Shop, store: &Store, id: ApprovalId, now: i64) -> DeniedApproval {
    let new = NewNo {
        id,
        operator: shop.market.buyer,
        session: SessionId::new(at(now)),
        default_price: terms().default_price,
        now: at(now),
    };
    store.money().deny(new).await.unwrap()
}

pub(super) async fn row(shop: &Shop, store: &Store, id: ApprovalId, now: i64) -> PurchaseApproval {
    let found = store.money().approval(shop.market.buyer, id, at(now)).await;
    found.unwrap().unwrap()
}

pub(super) async fn reprice(shop: &Shop, store: &Store, item: usize, price: i64, now: i64) {
    let changes = ProjectChanges {
        price: Some(Some(price)),
        ..ProjectChanges::default()
    };
    let _updated = store
        .project_update(shop.items[item], changes, at(now), Duration::ZERO)
        .await
        .unwrap();
}

/// Above the line nothing is bought until a person says yes; then the agent's repeat is answered for the one sale.
pub async fn a_purchase_above_the_line_waits_for_a_person(url: &str) {
    let store = open(url).await;
    let shop = Shop::of(&store, 2).await;
    let limits = SpendLimits {
        approve_above: Some(micro(PRICE - 1)),
        ..SpendLimits::default()
    };
    shop.limit(&store, shop.agent(), limits).await;
    let letter = ApprovalLetter {
        mail: mail(at(10), None),
        input: |id| format!("{{\"id\":\"{id}\"}}"),
    };
    let before = balances(&store, shop.market.buyer).await;
    let ask = NewPurchase {
        ask: NewPurchaseAsk {
            reason: Some("It has the tides of June.".to_owned()),
            letter: Some(letter),
            ..NewPurchaseAsk::silent(at(10))
        },
        ..shop.purchase(0, None, 10)
    };
    let asked = store.money().purchase(ask.clone()).await.unwrap();
    let Purchased::Waiting(asked) = asked else {
        unreachable!("a person is asked: {asked:?}");
    };
    assert_eq!(
        (asked.state, asked.asked_by, asked.price.0, asked.version),
        (ApprovalState::Waiting, AskedBy::Agent, PRICE, 1)
    );
    assert_eq!(asked.reason.as_deref(), Some("It has the tides of June."));
    assert_eq!(
        (asked.slug.as_deref(), asked.agent_name.as_str()),
        (Some("prices"), "shopper")
    );
    assert_eq!(asked.expires_at, at(10 + DAY));
    let again = waiting(&shop, &store, 0, None, 20).await;
    assert_eq!(again, *asked, "a repeat is the same row");
    assert_eq!(balances(&store, shop.market.buyer).await, before, "nothing is held");
    let letters = store
        .flow()
        .jobs_lease(at(30), Duration::from_secs(9), 9)
        .await
        .unwrap();
    let letters = letters.iter().filter(|job| job.kind == "mail");
    let inputs: Vec<_> = letters.map(|job| job.payload.as_str()).collect();
    assert_eq!(inputs, [format!("{{\"id\":\"{}\"}}", asked.id)], "one letter");
    let money = store.money();
    assert_eq!(money.approvals_count(shop.market.buyer, at(30)).await.unwrap(), 1);
    let listed = money.approvals_waiting(shop.market.buyer, 9, at(30)).await.unwrap();
    assert_eq!(listed, [*asked.clone()]);
    assert_eq!(
        money.approvals_ended(shop.market.buyer, None, 9, at(30)).await.unwrap(),
        []
    );

    let Approved::Bought(bought) = yes(&shop, &store, asked.id, 40).await else {
        unreachable!("nothing changed since");
    };
    let sale = money.sale(bought.sale.unwrap()).await.unwrap().unwrap();
    assert_eq!((sale.price.0, sale.approval, sale.version), (PRICE, Some(asked.id), 1));
    assert_eq!(sale.agent, Some(shop.market.buyers_agent));
    let answered = store.money().purchase(ask).await.unwrap();
    let Purchased::Approved { version: 1, approval } = answered else {
        unreachable!("the repeat is answered: {answered:?}");
    };
    assert_eq!((approval.id, approval.sale), (asked.id, Some(sale.id)));
    assert_eq!(
        balances(&store, shop.market.buyer).await.credits.0,
        before.credits.0 - PRICE
    );
    assert_eq!(money.approvals_count(shop.market.buyer, at(41)).await.unwrap(), 0);
    let ended = money.approvals_ended(shop.market.buyer, None, 9, at(41)).await.unwrap();
    assert_eq!(ended, [row(&shop, &store, asked.id, 41).await]);
    assert_eq!(faults(&store, NOW).await, []);

    // Another operator sees and decides nothing.
    let eve = operator(&store, "eve@example.org").await;
    assert_eq!(money.approval(eve, asked.id, at(50)).await.unwrap(), None);
    let second = waiting(&shop, &store, 1, None, 50).await;
    let foreign = NewYes {
        operator: eve,
        ..yes_at(&shop, second.id, 51)
    };
    assert_eq!(money.approve(foreign).await.unwrap(), Approved::Missing);
    let foreign = NewNo {
        id: second.id,
        operator: eve,
        session: SessionId::new(at(51)),
        now: at(51),
        default_price: terms().default_price,
    };
    assert_eq!(money.deny(foreign).await.unwrap(), DeniedApproval::Missing);
    assert_eq!(row(&shop, &store, second.id, 52).await.state, ApprovalState::Waiting);
}

/// Many clicks at once, a no and the agent's own call beside them make one sale or none.
pub async fn a_yes_buys_once_whatever_comes_at_once(url: &str) {
    let stores = [open(url).await, open(url).await];
    let store = &stores[0];
    let shop = asking(store, 3).await;
    let agent = shop.market.buyers_agent;
    let sold = async |item: usize| {
        let sales = store.money().bought_by(shop.market.buyer, 100).await.unwrap();
        let item = shop.items[item].to_string();
        sales.iter().filter(|sale| sale.item == item).count()
    };

    let asked = waiting(&shop, store, 0, None, 10).await;
    let clicks: Vec<_> = (0..50).map(|_| yes_at(&shop, asked.id, 20)).collect();
    let approved = race(stores.clone(), 50, move |store, number| {
        let click = clicks[number].clone();
        async move { store.money().approve(click).await.unwrap() }
    })
    .await;
    let all: Vec<_> = approved
        .iter()
        .map(|approved| match approved {
            Approved::Bought(row) => row.sale,
            other => unreachable!("each click gets the sale: {other:?}"),
        })
        .collect();
    assert!(all[0].is_some() && all.iter().all(|sale| *sale == all[0]), "{all:?}");
    assert_eq!(sold(0).await, 1);

    let asked = waiting(&shop, store, 1, None, 30).await;
    let click = yes_at(&shop, asked.id, 40);
    let decline = NewNo {
        id: asked.id,
        operator: shop.market.buyer,
        session: SessionId::new(at(40)),
        now: at(40),
        default_price: terms().default_price,
    };
    let decided = race(stores.clone(), 20, move |store, number| {
        let click = NewYes {
            sale: SaleId::new(at(40)),
            event: LedgerEventId::new(at(40)),
            ..click.clone()
        };
        async move {
            if number % 2 == 0 {
                let approved = store.money().approve(click).await.unwrap();
                assert!(
                    matches!(approved, Approved::Bought(_) | Approved::Ended(_)),
                    "{approved:?}"
                );
                matches!(approved, Approved::Bought(_))
            } else {
                let denied = store.money().deny(decline).await.unwrap();
                assert_ne!(denied, DeniedApproval::Missing);
                matches!(denied, DeniedApproval::Ended(_))
            }
        }
    })
    .await;
    // Who came first decides for all.
    assert!(decided.iter().all(|bought| *bought == decided[0]), "{decided:?}");
    assert_eq!(sold(1).await, usize::from(decided[0]));

    // The line goes up while the row waits, so the agent's call buys beside the yes.
    let asked = waiting(&shop, store, 2, None, 50).await;
    shop.limit(store, SpendOwner::Agent(agent), SpendLimits::default())
        .await;
    let (click, call) = (yes_at(&shop, asked.id, 60), shop.purchase(2, None, 60));
    race(stores.clone(), 20, move |store, number| {
        let click = NewYes {
            sale: SaleId::new(at(60)),
            event: LedgerEventId::new(at(60)),
            ..click.clone()
        };
        let call = NewPurchase {
            sale: SaleId::new(at(60)),
            event: LedgerEventId::new(at(60)),
            ..call.clone()
        };
        async move {
            if number % 2 == 0 {
                let approved = store.money().approve(click).await.unwrap();
                let ends = [ApprovalState::Bought, ApprovalState::Stale];
                match approved {
                    Approved::Bought(row) | Approved::Ended(row) => assert!(ends.contains(&row.state), "{row:?}"),
                    Approved::Stale { approval, successor } => {
                        assert_eq!((approval.why, successor), (Some(StaleReason::Owned), None));
                    }
                    other => unreachable!("{other:?}"),
                }
            } else {
                let bought = store.money().purchase(call).await.unwrap();
                let is_answered = matches!(
                    bought,
                    Purchased::Bought(_) | Purchased::Owned { .. } | Purchased::Approved { .. }
                );
                assert!(is_answered, "{bought:?}");
            }
        }
    })
    .await;
    assert_eq!(sold(2).await, 1);
    assert_eq!(faults(store, NOW).await, []);
}

/// A call without a version means the one that was asked about, whatever was merged since.
pub async fn a_call_without_a_version_means_what_was_asked(url: &str) {
    let store = open(url).await;
    let shop = asking(&store, 1).await;
    let asked = waiting(&shop, &store, 0, None, 10).await;
    merge(&store, shop.market.seller, shop.items[0], 2).await;
    assert_eq!(waiting(&shop, &store, 0, None, 20).await.id, asked.id);
    let named = NewPurchase {
        version: Some(Version(2)),
        ..shop.purchase(0, None, 21)
    };
    let Purchased::Waiting(second) = store.money().purchase(named).await.unwrap() else {
        unreachable!("another version is another row");
    };
    assert_eq!((second.version, asked.version), (2, 1));
    assert!(matches!(
        no(&shop, &store, second.id, 30).await,
        DeniedApproval::Denied(_)
    ));
    assert!(matches!(yes(&shop, &store, asked.id, 31).await, Approved::Bought(_)));
    let again = shop.buy(&store, 0, None, 40).await;
    let Purchased::Approved { version: 1, approval } = again else {
        unreachable!("version 1 is what was asked for and bought: {again:?}");
    };
    assert_eq!(approval.id, asked.id);
    // After a day nothing is remembered, and the latest is meant.
    assert_eq!(waiting(&shop, &store, 0, None, 40 + DAY).await.version, 2);
    assert_eq!(faults(&store, NOW).await, []);
}

/// The price that an agent names is a bound, and the line is the lower one of the agent and its app.
pub async fn the_lower_line_and_the_greatest_price_hold(url: &str) {
    let store = open(url).await;
    let shop = Shop::of(&store, 3).await;
    let (buyer, desk) = (shop.market.buyer, shop.market.buyers_agent);
    let budget = AppBudget {
        per_month: None,
        approve_above: Some(micro(PRICE - 1)),
    };
    let app = connect(&store, buyer, desk, budget, 5).await;
    let row = waiting(&shop, &store, 0, Some(app), 10).await;
    assert!(
        matches!(shop.buy(&store, 1, None, 11).await, Purchased::Bought(_)),
        "the key has no line"
    );
    assert!(matches!(yes(&shop, &store, row.id, 12).await, Approved::Bought(_)));
    let spent = store.money().spendings(&[SpendOwner::App(app)], at(13)).await.unwrap();
    assert_eq!(
        spent[0].on_day,
        MicroUsdc(PRICE),
        "the yes counts for the app that asked"
    );
    let bound = |most| NewPurchase {
        max_price: Some(micro(most)),
        ..shop.purchase(2, None, 20)
    };
    let refused = store.money().purchase(bound(PRICE - 1)).await.unwrap();
    let price = MicroUsdc(PRICE);
    assert_eq!(refused, Purchased::PriceAbove { price });
    let bought = store.money().purchase(bound(PRICE)).await.unwrap();
    assert!(matches!(bought, Purchased::Bought(_)), "{bought:?}");
    assert_eq!(faults(&store, NOW).await, []);
}

pub(super) fn choice(shop: &Shop, item: usize, form: &str, now: i64) -> NewPersonAsk {
    NewPersonAsk {
        id: ApprovalId::new(at(now)),
        operator: shop.market.buyer,
        form: form.to_owned(),
        kind: ItemKind::Dataset,
        item: shop.items[item].to_string(),
        version: None,
        agent: shop.market.buyers_agent,
        price: MicroUsdc(PRICE),
        default_price: MicroUsdc(PRICE),
        now: at(now),
    }
}

async fn chosen(store: &Store, new: NewPersonAsk) -> PurchaseApproval {
    match store.money().approval_ask(new).await.unwrap() {
        PersonAsked::Row(row) => *row,
        other => unreachable!("it is sold: {other:?}"),
    }
}

/// A form that a person sends makes one row, however often and from however many tabs; the yes to it buys once.
pub async fn a_form_makes_one_row(url: &str) {
    let stores = [open(url).await, open(url).await];
    let store = &stores[0];
    let shop = Shop::of(store, 3).await;
    let first = choice(&shop, 0, "f1", 10);
    let sent = race(stores.clone(), 10, move |store, _| {
        let new = NewPersonAsk {
            id: ApprovalId::new(at(10)),
            ..first.clone()
        };
        async move { chosen(&store, new).await.id }
    })
    .await;
    assert!(sent.iter().all(|id| *id == sent[0]), "{sent:?}");
    let money = store.money();
    assert_eq!(
        money.approvals_count(shop.market.buyer, at(11)).await.unwrap(),
        0,
        "the person knows of it"
    );
    assert_eq!(
        chosen(store, choice(&shop, 0, "f2", 11)).await.id,
        sent[0],
        "another tab finds it"
    );
    let elsewhere = chosen(store, choice(&shop, 1, "f1", 12)).await;
    assert_ne!(elsewhere.id, sent[0], "the same form with another choice");
    let second = agent(store, shop.market.buyer, "second").await;
    let by_another = NewPersonAsk {
        agent: second,
        ..choice(&shop, 0, "f1", 13)
    };
    assert_eq!(chosen(store, by_another).await.agent, second);

    assert!(matches!(yes(&shop, store, sent[0], 20).await, Approved::Bought(_)));
    let again = money.approval_ask(choice(&shop, 0, "f1", 21)).await.unwrap();
    let sale = row(&shop, store, sent[0], 21).await.sale.unwrap();
    assert_eq!(again, PersonAsked::Owned { sale });

    // A price that has fallen is the row's from now on, and one that has risen is said first.
    reprice(&shop, store, 1, PRICE / 2, 30).await;
    assert_eq!(
        chosen(store, choice(&shop, 1, "f3", 31)).await.price,
        MicroUsdc(PRICE / 2)
    );
    reprice(&shop, store, 1, 2 * PRICE, 32).await;
    let dearer = money.approval_ask(choice(&shop, 1, "f1", 33)).await.unwrap();
    assert_eq!(dearer, PersonAsked::PriceAbove(MicroUsdc(2 * PRICE)));
    let nobody = NewPersonAsk {
        agent: AgentId::new(at(0)),
        ..choice(&shop, 2, "f4", 34)
    };
    assert_eq!(money.approval_ask(nobody).await.unwrap(), PersonAsked::NoAgent);
    let own = NewPersonAsk {
        operator: shop.market.seller.operator,
        agent: shop.market.seller.agent,
        ..choice(&shop, 2, "f5", 35)
    };
    assert_eq!(money.approval_ask(own).await.unwrap(), PersonAsked::NotSold);

    // What a person began becomes the agent's once that asks for it.
    let begun = chosen(store, choice(&shop, 2, "f6", 40)).await;
    assert_eq!(begun.asked_by, AskedBy::Person);
    shop.limit(store, shop.agent(), always()).await;
    let taken = waiting(&shop, store, 2, None, 41).await;
    assert_eq!((taken.id, taken.asked_by), (begun.id, AskedBy::Agent));
    assert_eq!(money.approvals_count(shop.market.buyer, at(42)).await.unwrap(), 1);
    assert_eq!(faults(store, NOW).await, []);
}

/// Rows of an agent that wait have a number, also when it asks for many things at once, and so have the letters of a day.
pub async fn rows_that_wait_and_letters_have_a_number(url: &str) {
    let stores = [open(url).await, open(url).await];
    let store = &stores[0];
    let most = usize::try_from(MAX_WAITING_APPROVALS).unwrap();
    let shop = asking(store, most + 4).await;
    let purchases: Vec<_> = (0..most + 4)
        .map(|item| NewPurchase {
            ask: NewPurchaseAsk {
                letter: Some(ApprovalLetter {
                    mail: mail(at(10), None),
                    input: |id| id.to_string(),
                }),
                ..NewPurchaseAsk::silent(at(10))
            },
            ..shop.purchase(item, None, 10)
        })
        .collect();
    let asked = race(stores.clone(), most + 4, move |store, number| {
        let new = purchases[number].clone();
        async move { store.money().purchase(new).await.unwrap() }
    })
    .await;
    let waiting = asked.iter().filter(|asked| matches!(asked, Purchased::Waiting(_)));
    assert_eq!(waiting.count(), most);
    let full = asked.iter().filter(|asked| **asked == Purchased::TooManyWaiting);
    assert_eq!(full.count(), 4);
    let letters = store
        .flow()
        .jobs_lease(at(30), Duration::from_secs(9), 99)
        .await
        .unwrap();
    let letters = letters.iter().filter(|job| job.kind == "mail");
    assert_eq!(letters.count(), usize::try_from(APPROVAL_LETTERS_A_DAY).unwrap());
    // What the agent left waiting takes no place of its person.
    let extra = paid_dataset(store, shop.market.seller, "extra", Some(PRICE), false).await;
    let person = NewPersonAsk {
        item: extra.to_string(),
        ..choice(&shop, 0, "f1", 40)
    };
    assert_eq!(chosen(store, person).await.asked_by, AskedBy::Person);
    // Those whose time is over wait no more.
    let later = NewPurchase {
        item: extra.to_string(),
        ..shop.purchase(0, None, 10 + DAY)
    };
    let later = store.money().purchase(later).await.unwrap();
    assert!(matches!(later, Purchased::Waiting(_)), "{later:?}");
}

/// A row without its sale, a sale without its row and a price above the row's are found.
pub async fn a_yes_that_lies_is_found(url: &str) {
    let store = open(url).await;
    let shop = asking(&store, 2).await;
    let asked = waiting(&shop, &store, 0, None, 10).await;
    let other = waiting(&shop, &store, 1, None, 11).await;
    assert!(matches!(yes(&shop, &store, asked.id, 20).await, Approved::Bought(_)));
    assert_eq!(faults(&store, NOW).await, []);
    let price = |of: i64| format!("UPDATE approvals SET price = {of} WHERE id = '{}'", asked.id);
    let named = |id: &str| format!("UPDATE sales SET approval_id = {id}");
    let right = format!("'{}'", asked.id);
    for (planted, undone) in [
        (price(PRICE - 1), price(PRICE)),
        (named("NULL"), named(&right)),
        (named(&format!("'{}'", other.id)), named(&right)),
        (
            format!("UPDATE approvals SET state = 'denied', sale_id = NULL WHERE id = {right}"),
            format!("UPDATE approvals SET state = 'bought', sale_id = (SELECT id FROM sales) WHERE id = {right}"),
        ),
    ] {
        plant(&store, planted.clone()).await;
        let found = faults(&store, NOW).await;
        assert!(found.iter().any(|fault| fault.rule == "M17"), "{planted}: {found:?}");
        plant(&store, undone).await;
        assert_eq!(faults(&store, NOW).await, [], "after {planted}");
    }
}

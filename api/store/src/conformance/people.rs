//! Scenarios about what a person changes: the account, its address and its end; an item in two windows; and what an owner sees
//! of its sales.

use std::time::Duration;

use types::vocabulary::{EmailLink, LetterTopic};
use types::{LinkId, OperatorId, Timestamp};

use super::fixture::{
    World, agent, at, fresh_hash, job, mail, new_operator, new_project, open, operator, project, race,
};
use super::money::{Market, grant};
use super::uploads::begun;
use crate::{
    AccountClosed, CLOSED_NAME, EmailChangeAsked, EmailChanged, LinkPurpose, LinkRefused, NewEmailChange, NewLink,
    NewSession, OperatorCreated, PriceChanged, ProjectChanges, ProjectUpdated, Store,
};

const DAY: i64 = 86_400;

fn link(until: i64) -> NewLink {
    NewLink {
        id: LinkId::new(at(0)),
        token_hash: fresh_hash(),
        expires_at: at(until),
    }
}

fn change(operator: OperatorId, email: &str, seconds: i64) -> NewEmailChange {
    NewEmailChange {
        operator,
        email: email.to_owned(),
        confirm: link(seconds + DAY),
        stop: link(seconds + 7 * DAY),
        to_new: mail(at(seconds), Some(100)),
        blank: job(at(seconds)),
        to_old: mail(at(seconds), None),
        now: at(seconds),
    }
}

async fn email_of(store: &Store, operator: OperatorId) -> String {
    store.operator(operator).await.unwrap().unwrap().email
}

async fn signed_in(store: &Store, operator: OperatorId, now: Timestamp) -> bool {
    !store.accounts().sessions_of(operator, now).await.unwrap().is_empty()
}

/// Begins a session by a link that was mailed.
async fn sign_in(store: &Store, email: &str, seconds: i64) {
    let link = link(seconds + DAY);
    let request = crate::LinkRequest {
        email: email.to_owned(),
        link,
        mail: mail(at(seconds), None),
        blank: job(at(seconds)),
        now: at(seconds),
    };
    let accounts = store.accounts();
    let _taken = accounts.link_request(request, LinkPurpose::SignIn).await.unwrap();
    let session = NewSession {
        id: types::SessionId::new(at(seconds)),
        token_hash: fresh_hash(),
        expires_at: at(seconds + 30 * DAY),
        address: "192.0.2.1".to_owned(),
        user_agent: "a browser".to_owned(),
    };
    accounts
        .sign_in(link.token_hash, session, at(seconds))
        .await
        .unwrap()
        .unwrap();
}

/// A name is changed from the one that was seen; letters and the public name are what was chosen last.
pub async fn a_name_is_not_changed_over_another_window(url: &str) {
    let store = open(url).await;
    let ada = operator(&store, "ada@example.org").await;
    let accounts = store.accounts();
    let rename = async |was: &str, name: &str| accounts.rename(ada, was.to_owned(), name.to_owned()).await.unwrap();
    assert!(rename("Ada", "Harbour Lab").await);
    assert!(rename("Ada", "Harbour Lab").await, "sent twice");
    assert!(!rename("Ada", "Mooring").await, "another window has the old name");
    let found = store.operator(ada).await.unwrap().unwrap();
    assert_eq!(
        (found.display_name.as_str(), found.profile_hidden),
        ("Harbour Lab", false)
    );
    assert_eq!(found.muted_letters, []);
    accounts.profile_hide(ada, true).await.unwrap();
    let topics = [LetterTopic::Approvals, LetterTopic::Reports];
    accounts.letters_mute(ada, &topics).await.unwrap();
    let found = store.operator(ada).await.unwrap().unwrap();
    assert_eq!((found.profile_hidden, &found.muted_letters[..]), (true, &topics[..]));
    accounts.letters_mute(ada, &[]).await.unwrap();
    assert_eq!(store.operator(ada).await.unwrap().unwrap().muted_letters, []);
    let nobody = OperatorId::new(at(1));
    assert!(accounts.profile_hide(nobody, true).await.is_err());
}

/// An address changes when its mailbox confirms it, and the old mailbox takes that back for a week.
pub async fn an_address_is_confirmed_and_taken_back(url: &str) {
    let store = open(url).await;
    let ada = operator(&store, "ada@example.org").await;
    let accounts = store.accounts();
    sign_in(&store, "ada@example.org", 1).await;
    let same = accounts.email_change(change(ada, "ADA@example.org", 2)).await.unwrap();
    assert_eq!(same, EmailChangeAsked::Same);
    let first = change(ada, "ada@old.example", 3);
    let given_up = first.confirm.token_hash;
    assert_eq!(accounts.email_change(first).await.unwrap(), EmailChangeAsked::Asked);
    let new = change(ada, "ada@harbour.example", 4);
    let (confirm, stop) = (new.confirm.token_hash, new.stop.token_hash);
    assert_eq!(accounts.email_change(new).await.unwrap(), EmailChangeAsked::Asked);
    let refused = |refused| EmailChanged::Refused(refused);
    assert_eq!(
        accounts.email_confirm(given_up, at(5)).await.unwrap(),
        refused(LinkRefused::Unknown),
        "the first gave way to the second"
    );
    assert_eq!(
        accounts.email_confirm(stop, at(5)).await.unwrap(),
        refused(LinkRefused::Unknown),
        "a link does the work of its own purpose only"
    );
    assert_eq!(
        accounts.email_confirm(confirm, at(4 + DAY)).await.unwrap(),
        refused(LinkRefused::Expired)
    );
    assert_eq!(email_of(&store, ada).await, "ada@example.org");
    assert!(
        accounts
            .email_link(&confirm, EmailLink::Confirm, at(5))
            .await
            .unwrap()
            .is_ok()
    );
    assert!(matches!(
        accounts.email_confirm(confirm, at(5)).await.unwrap(),
        EmailChanged::Done(_)
    ));
    assert_eq!(
        accounts.email_confirm(confirm, at(6)).await.unwrap(),
        refused(LinkRefused::Used)
    );
    assert_eq!(email_of(&store, ada).await, "ada@harbour.example");
    assert!(store.operator_by_email("ada@example.org").await.unwrap().is_none());
    assert!(signed_in(&store, ada, at(7)).await);
    let soon = accounts.email_change(change(ada, "eve@example.org", 8)).await.unwrap();
    assert_eq!(soon, EmailChangeAsked::TooSoon { until: at(4 + 7 * DAY) });
    assert!(matches!(
        accounts.email_stop(stop, at(9)).await.unwrap(),
        EmailChanged::Done(_)
    ));
    assert_eq!(
        accounts.email_stop(stop, at(10)).await.unwrap(),
        refused(LinkRefused::Used)
    );
    assert_eq!(email_of(&store, ada).await, "ada@example.org");
    assert!(!signed_in(&store, ada, at(11)).await, "every session ends");
    let again = accounts
        .email_change(change(ada, "ada@harbour.example", 12))
        .await
        .unwrap();
    assert_eq!(
        again,
        EmailChangeAsked::Asked,
        "what was taken back is no reason to wait"
    );
}

/// An address that another account has is asked for like any other, and given to nobody.
pub async fn an_address_of_another_is_never_given(url: &str) {
    let store = open(url).await;
    let ada = operator(&store, "ada@example.org").await;
    let accounts = store.accounts();
    let taken = change(ada, "eve@example.org", 1);
    let confirm = taken.confirm.token_hash;
    assert_eq!(accounts.email_change(taken).await.unwrap(), EmailChangeAsked::Asked);
    // Meanwhile somebody signs up with another spelling of the mailbox.
    operator(&store, "eve+tides@example.org").await;
    assert_eq!(
        accounts.email_confirm(confirm, at(2)).await.unwrap(),
        EmailChanged::Taken
    );
    assert_eq!(email_of(&store, ada).await, "ada@example.org");
    assert_eq!(
        accounts.email_change(change(ada, "eve@example.org", 3)).await.unwrap(),
        EmailChangeAsked::Asked,
        "the answer does not tell of the other account"
    );
}

/// Of many presses of a button one changes the address.
pub async fn one_of_many_confirmations_changes_the_address(url: &str) {
    let store = open(url).await;
    let ada = operator(&store, "ada@example.org").await;
    let new = change(ada, "ada@harbour.example", 1);
    let confirm = new.confirm.token_hash;
    assert_eq!(
        store.accounts().email_change(new).await.unwrap(),
        EmailChangeAsked::Asked
    );
    let stores = [open(url).await, open(url).await];
    let ends = race(stores, 8, move |store, _| async move {
        store.accounts().email_confirm(confirm, at(2)).await.unwrap()
    })
    .await;
    let done = ends.iter().filter(|end| matches!(end, EmailChanged::Done(_))).count();
    assert_eq!(done, 1, "{ends:?}");
    assert_eq!(email_of(&store, ada).await, "ada@harbour.example");
}

/// An account closes when nothing of it is open; then no credential of it works, and its items stay.
pub async fn an_account_closes_once_nothing_is_open(url: &str) {
    let store = open(url).await;
    let world = World::new(&store).await;
    let accounts = store.accounts();
    sign_in(&store, "ada@example.org", 1).await;
    assert!(signed_in(&store, world.operator, at(2)).await);
    let upload = begun(&store, &world, at(0)).await;
    let open_now = accounts.open_matters(world.operator, at(2)).await.unwrap();
    assert_eq!((open_now.uploads, open_now.is_none()), (1, false));
    assert_eq!(
        accounts.close(world.operator, at(2)).await.unwrap(),
        AccountClosed::Open(open_now)
    );
    let _abandoned = store.upload_abandon(upload).await.unwrap();
    assert_eq!(
        accounts.close(world.operator, at(4)).await.unwrap(),
        AccountClosed::Closed
    );
    assert!(accounts.close(world.operator, at(5)).await.is_err(), "twice");
    let found = store.operator(world.operator).await.unwrap().unwrap();
    assert_eq!(
        (found.email.as_str(), found.display_name.as_str(), found.closed_at),
        ("", CLOSED_NAME, Some(at(4)))
    );
    assert!(found.profile_hidden);
    assert!(!signed_in(&store, world.operator, at(5)).await);
    assert!(accounts.tokens_of(world.operator).await.unwrap().is_empty());
    let agents = accounts.agents_of(world.operator, at(5)).await.unwrap();
    let ended: Vec<_> = agents
        .iter()
        .map(|agent| (agent.id, agent.removed_at, agent.keys.is_empty()))
        .collect();
    assert_eq!(ended, [(world.agent, Some(at(4)), true)]);
    assert!(store.operator_by_email("ada@example.org").await.unwrap().is_none());
    assert!(store.project_by_slug("weather", None).await.unwrap().is_some());
    // The address is free again, the names of the agents are not.
    let again = new_operator("ada@example.org");
    let eve = again.id;
    assert_eq!(store.operator_create(again).await.unwrap(), OperatorCreated::Created);
    let taken = store
        .agent_create(super::fixture::new_agent(eve, "collector"), 5)
        .await
        .unwrap();
    assert_eq!(taken, crate::AgentCreated::NameTaken);
}

/// A form changes the dataset that it was made from, and one that is sent twice is no conflict.
pub async fn a_form_changes_the_edition_that_it_saw(url: &str) {
    let store = open(url).await;
    let ada = operator(&store, "ada@example.org").await;
    let id = project(&store, new_project(ada, "weather")).await;
    let seen = store.project_by_slug("weather", None).await.unwrap().unwrap().edition();
    let send = async |title: &str, seen: &str| {
        let changes = ProjectChanges {
            title: Some(title.to_owned()),
            seen: Some(seen.to_owned()),
            ..ProjectChanges::default()
        };
        store
            .project_update(id, changes, at(1), Duration::from_hours(24))
            .await
            .unwrap()
    };
    let ProjectUpdated::Updated(first) = send("First words", &seen).await else {
        unreachable!("the edition is the one that was seen")
    };
    assert_ne!(first.edition(), seen);
    assert_eq!(send("First words", &seen).await, ProjectUpdated::Updated(first.clone()));
    assert_eq!(send("Other words", &seen).await, ProjectUpdated::Edited(first.clone()));
    let updated = send("Other words", &first.edition()).await;
    assert!(matches!(updated, ProjectUpdated::Updated(_)), "{updated:?}");
}

/// A price of a unit is changed from the one that was seen.
pub async fn a_price_is_changed_from_the_one_that_was_seen(url: &str) {
    let store = open(url).await;
    let world = super::knowledge::World::new(&store).await;
    let unit = super::knowledge::submitted(&store, world.version("one")).await;
    let knowledge = store.knowledge();
    let day = Duration::from_hours(24);
    let set = async |seen: Option<i64>, price: i64, seconds: i64| {
        knowledge
            .price_from(unit, seen, Some(price), at(seconds), day)
            .await
            .unwrap()
    };
    assert!(matches!(set(None, 250_000, 1).await, PriceChanged::Changed(_)));
    assert!(
        matches!(set(None, 250_000, 2).await, PriceChanged::Changed(_)),
        "sent twice"
    );
    let PriceChanged::Stale(chain) = set(None, 300_000, 3).await else {
        unreachable!("the price is another than the one that was seen")
    };
    assert_eq!(chain.price_micro, Some(250_000));
    assert!(matches!(
        set(Some(250_000), 300_000, 4).await,
        PriceChanged::TooSoon { .. }
    ));
}

/// Readers of a dataset are counted once each, by the day of their first read.
pub async fn readers_of_an_item_are_counted_by_day(url: &str) {
    let store = open(url).await;
    let world = World::new(&store).await;
    let (bob, eve) = (
        operator(&store, "bob@example.org").await,
        operator(&store, "eve@example.org").await,
    );
    agent(&store, bob, "bob-1").await;
    let reads = vec![
        (world.project, bob, at(0)),
        (world.project, bob, at(DAY)),
        (world.project, eve, at(DAY)),
        (world.project, world.operator, at(DAY)),
    ];
    assert_eq!(store.points().readers_note(reads).await.unwrap(), 2);
    let (money, dataset) = (store.money(), world.project.to_string());
    assert_eq!(money.readers_of_dataset(&dataset).await.unwrap(), 2);
    let days = money
        .reader_days(crate::ItemKind::Dataset, &dataset, at(-DAY))
        .await
        .unwrap();
    let days: Vec<_> = days.iter().map(|day| (day.day, day.count)).collect();
    assert_eq!(days, [(at(0).day(), 1), (at(DAY).day(), 1)]);
}

/// The owner of an item sees its sales and their sums; what was refunded is listed and not counted.
pub async fn sales_of_an_item_are_listed_and_added_up(url: &str) {
    let store = open(url).await;
    let market = Market::new(&store, 500_000, false).await;
    let granted = grant(&store, market.buyer, 2_000_000, false, "one").await;
    assert_eq!(granted, crate::Granted::Done);
    let (money, item) = (store.money(), market.item.to_string());
    let sold = crate::ItemOfSeller {
        kind: crate::ItemKind::Dataset,
        item: &item,
        seller: market.seller.operator,
    };
    assert_eq!(
        money.sums_of_item(sold, at(0)).await.unwrap(),
        crate::ItemSums::default()
    );
    let sale = market.buy(&store, 10).await;
    let listed = money.sales_of_item(sold, 9).await.unwrap();
    assert_eq!(listed.len(), 1);
    assert_eq!((&listed[0].sale, listed[0].paid_at), (&sale, None));
    assert_eq!(
        money.sales_by(market.seller.operator, None, 9).await.unwrap(),
        std::slice::from_ref(&sale)
    );
    assert_eq!(
        money.sales_by(market.seller.operator, Some(sale.id), 9).await.unwrap(),
        []
    );
    let of_another = crate::ItemOfSeller {
        seller: market.buyer,
        ..sold
    };
    assert_eq!(money.sales_of_item(of_another, 9).await.unwrap(), []);
    let sums = money.sums_of_item(sold, at(11)).await.unwrap();
    assert_eq!((sums.sold, sums.sold_since, sums.share), (1, 0, sale.share));
    assert_eq!(money.sums_of_item(sold, at(10)).await.unwrap().sold_since, 1);
    let days = money.days_of_item(sold, at(0)).await.unwrap();
    assert_eq!(days.iter().map(|day| day.count).collect::<Vec<_>>(), [1]);
    assert_eq!(money.days_of_item(sold, at(11)).await.unwrap(), []);
}

/// A closed account keeps what it sold, and a dispute of it must end first.
pub async fn an_open_dispute_keeps_an_account_open(url: &str) {
    let store = open(url).await;
    let market = Market::new(&store, 500_000, false).await;
    let granted = grant(&store, market.buyer, 2_000_000, false, "one").await;
    assert_eq!(granted, crate::Granted::Done);
    let sale = market.buy(&store, 10).await;
    let dispute = crate::NewDispute {
        id: types::DisputeId::new(at(20)),
        event: types::LedgerEventId::new(at(20)),
        sale: sale.id,
        reason: "made up".to_owned(),
        by: "admin".to_owned(),
        opener: None,
        letters: None,
        now: at(20),
    };
    let id = dispute.id;
    let (money, accounts) = (store.money(), store.accounts());
    assert!(matches!(
        money.dispute_open(dispute).await.unwrap(),
        crate::DisputeOpened::Opened(_)
    ));
    for side in [market.seller.operator, market.buyer] {
        let AccountClosed::Open(open) = accounts.close(side, at(30)).await.unwrap() else {
            unreachable!("a dispute is open")
        };
        assert_eq!(open.disputes, 1);
    }
    let decision = crate::DisputeDecision {
        id,
        resolution: crate::DisputeResolution::Release,
        event: types::LedgerEventId::new(at(40)),
        by: "admin".to_owned(),
        seller: None,
        answer: String::new(),
        letters: None,
        now: at(40),
    };
    let resolved = money.dispute_resolve(decision).await;
    assert!(matches!(resolved.unwrap(), crate::DisputeResolved::Resolved(_)));
    for side in [market.seller.operator, market.buyer] {
        assert_eq!(accounts.close(side, at(50)).await.unwrap(), AccountClosed::Closed);
    }
    let kept = money.sale(sale.id).await.unwrap().unwrap();
    assert_eq!((kept.seller, kept.share), (market.seller.operator, sale.share));
}

//! Scenarios about reports, takedowns and the ranking.

use types::vocabulary::{ActivityKind, ItemKind, PaidWith, RequestKind};
use types::{AgentId, LedgerEventId, OperatorId, ReportId, RequestId, SaleId, TakedownId, Timestamp};

use super::fixture::{agent, at, new_agent, open, operator, race};
use super::knowledge;
use super::money::{Market, give, paid_dataset, sound, terms};
use crate::{
    AgentCreated, Answered, Decided, DecisionLetters, Digest, Job, NewAnswer, NewComment, NewPurchase, NewPurchaseAsk,
    NewReport, NewRequest, NewReview, Principal, ProjectFilter, Purchased, ReportKind, ReportReason, ReportStatus,
    Reported, Reviewed, Store, Takedown, Uphold,
};

const HOUR: i64 = 3_600;

pub(super) fn digest(slot: i64) -> Digest {
    Digest {
        slot,
        kind: "mail".to_owned(),
        payload: format!("{{\"slot\":{slot}}}"),
        due_at: at(slot * 900),
    }
}

pub(super) fn new_report(
    kind: ReportKind,
    item: &str,
    reason: ReportReason,
    reporter: &str,
    now: Timestamp,
) -> NewReport {
    NewReport {
        id: ReportId::new(now),
        kind,
        item: item.to_owned(),
        named: item.to_owned(),
        reason,
        detail: "It is a copy of my work.".to_owned(),
        reporter: reporter.to_owned(),
        agent: None,
        email: Some("eve@example.org".to_owned()),
        digest: digest(1),
        letter: None,
        now,
    }
}

pub(super) async fn reported(store: &Store, new: NewReport) -> ReportId {
    match store.moderation().report(new).await.unwrap() {
        Reported::New(report) => report.id,
        Reported::Before(report) => unreachable!("reported before: {report:?}"),
    }
}

fn uphold_of(report: ReportId, now: Timestamp) -> Uphold {
    Uphold {
        report,
        takedown: TakedownId::new(now),
        note: Some("Show the licence.".to_owned()),
        by: None,
        letters: DecisionLetters {
            kind: "mail".to_owned(),
            owner: "{\"to\":\"owner\"}".to_owned(),
            buyers: "{\"to\":\"buyers\"}".to_owned(),
            wait: std::time::Duration::ZERO,
        },
        now,
    }
}

/// Takes an item down for a reason, and returns the takedown.
pub(super) async fn down(
    store: &Store,
    kind: ReportKind,
    item: &str,
    reason: ReportReason,
    now: Timestamp,
) -> Takedown {
    let report = reported(
        store,
        new_report(kind, item, reason, &format!("r{}", now.micros()), now),
    )
    .await;
    match store.moderation().uphold(uphold_of(report, now)).await.unwrap() {
        Decided::Done(takedown) => *takedown,
        other => unreachable!("not taken down: {other:?}"),
    }
}

pub(super) async fn back(store: &Store, takedown: TakedownId, now: Timestamp) {
    let letter = ("mail".to_owned(), "{\"to\":\"owner again\"}".to_owned());
    let restored = store
        .moderation()
        .restore(takedown, None, None, letter.clone(), now)
        .await
        .unwrap();
    assert!(matches!(restored, Decided::Done(_)), "{restored:?}");
    let again = store
        .moderation()
        .restore(takedown, None, None, letter, now)
        .await
        .unwrap();
    assert_eq!(again, Decided::Before);
}

/// Takes the letters that are due to operators.
async fn letters(store: &Store) -> Vec<(Option<OperatorId>, String)> {
    let mut all = all_letters(store).await;
    all.retain(|(to, _)| to.is_some());
    all
}

/// Takes the letters that are due, with the operators that get them, those to the administrator too.
pub(super) async fn all_letters(store: &Store) -> Vec<(Option<OperatorId>, String)> {
    let jobs = store
        .flow()
        .jobs_lease(at(1_000 * HOUR), std::time::Duration::from_secs(1), 100)
        .await
        .unwrap();
    let mut letters: Vec<_> = jobs
        .iter()
        .filter(|job: &&Job| job.kind == "mail")
        .map(|job| (job.operator, job.payload.clone()))
        .collect();
    letters.sort();
    for job in jobs {
        store.flow().job_done(&job.id).await.unwrap();
    }
    letters
}

/// A reporter's second report on an item for a reason within a day is the first; another reporter, reason or item, or a
/// day, makes another.
pub async fn a_report_is_kept_once_within_a_day(url: &str) {
    let store = open(url).await;
    let world = knowledge::World::new(&store).await;
    let unit = world.published(&store, "one", 60).await.to_string();
    let report = |reporter, reason, now| new_report(ReportKind::Unit, &unit, reason, reporter, at(now));
    let first = reported(&store, report("a", ReportReason::Spam, 10)).await;
    for now in [11, 10 + 24 * HOUR - 1] {
        match store
            .moderation()
            .report(report("a", ReportReason::Spam, now))
            .await
            .unwrap()
        {
            Reported::Before(before) => assert_eq!(before.id, first),
            Reported::New(report) => unreachable!("kept twice: {report:?}"),
        }
    }
    reported(&store, report("b", ReportReason::Spam, 12)).await;
    reported(&store, report("a", ReportReason::Other, 12)).await;
    let later = reported(&store, report("a", ReportReason::Spam, 10 + 24 * HOUR)).await;
    let listed = store
        .moderation()
        .reports(Some(ReportStatus::Open), None, 10)
        .await
        .unwrap();
    assert_eq!((listed.len(), listed[0].id), (4, later));
    assert_eq!(
        store
            .moderation()
            .reports(Some(ReportStatus::Upheld), None, 10)
            .await
            .unwrap(),
        []
    );
    let kept = store.moderation().report_of(first).await.unwrap().unwrap();
    assert_eq!(
        (kept.status, kept.email.as_deref()),
        (ReportStatus::Open, Some("eve@example.org"))
    );
}

/// Of many equal reports at once one is kept, and all get its number.
pub async fn one_of_many_twins_is_a_report(url: &str) {
    let stores = [open(url).await, open(url).await];
    let world = knowledge::World::new(&stores[0]).await;
    let unit = world.published(&stores[0], "one", 60).await.to_string();
    let ids = race(stores.clone(), 8, |store, _| {
        let new = new_report(ReportKind::Unit, &unit, ReportReason::Spam, "a", at(10));
        async move {
            match store.moderation().report(new).await.unwrap() {
                Reported::New(report) => (true, report.id),
                Reported::Before(report) => (false, report.id),
            }
        }
    })
    .await;
    assert_eq!(ids.iter().filter(|(is_new, _)| *is_new).count(), 1);
    assert!(ids.iter().all(|(_, id)| *id == ids[0].1), "{ids:?}");
    assert_eq!(stores[0].moderation().reports(None, None, 10).await.unwrap().len(), 1);
}

/// A unit that is taken down leaves search and sale, its owner is told and answers, and it comes back as it was.
pub async fn a_unit_comes_down_and_back(url: &str) {
    let store = open(url).await;
    let world = knowledge::World::new(&store).await;
    let unit = world.published(&store, "one", 60).await;
    let other = reported(
        &store,
        new_report(ReportKind::Unit, &unit.to_string(), ReportReason::Other, "else", at(5)),
    )
    .await;
    let takedown = down(
        &store,
        ReportKind::Unit,
        &unit.to_string(),
        ReportReason::Copyright,
        at(10),
    )
    .await;
    assert_eq!((takedown.owner, takedown.restored_at), (world.author.1, None));
    // Every open report on the item is decided with it.
    let other = store.moderation().report_of(other).await.unwrap().unwrap();
    assert_eq!(
        (other.status, other.takedown),
        (ReportStatus::Upheld, Some(takedown.id))
    );
    let chains = [unit.to_string()];
    assert_eq!(store.searching().units(&chains).await.unwrap(), []);
    let offer = store.money().offer(ItemKind::Unit, &chains[0]).await.unwrap().unwrap();
    assert!(!offer.visible);
    assert_eq!(store.feed().before(i64::MAX, 10).await.unwrap(), []);
    let moderation = store.moderation();
    let say = async |owner| {
        moderation
            .answer(owner, takedown.id, "I wrote it.".to_owned(), digest(2), at(20))
            .await
            .unwrap()
    };
    assert!(!say(world.reader.1).await);
    assert!(say(world.author.1).await);
    assert_eq!(moderation.answers_between(at(20), at(21)).await.unwrap(), 1);
    let listed = moderation.takedowns(Some(world.author.1), None, 10).await.unwrap();
    assert_eq!(listed[0].answer, Some((at(20), "I wrote it.".to_owned())));
    assert_eq!(moderation.takedowns(Some(world.reader.1), None, 10).await.unwrap(), []);
    back(&store, takedown.id, at(30)).await;
    assert!(!say(world.author.1).await);
    assert_eq!(store.searching().units(&chains).await.unwrap().len(), 1);
    assert_eq!(store.feed().before(i64::MAX, 10).await.unwrap().len(), 1);
    let owner = Some(world.author.1);
    let told = letters(&store).await;
    assert_eq!(
        told,
        [
            (owner, "{\"to\":\"owner again\"}".to_owned()),
            (owner, "{\"to\":\"owner\"}".to_owned())
        ]
    );
    knowledge::is_sound(&store).await;
}

/// A dataset that is taken down is found by nobody but, for some reasons, by who bought it; its owner does not find it
/// either. Parts follow.
pub async fn a_dataset_stays_with_buyers_for_some_reasons(url: &str) {
    let store = open(url).await;
    let market = Market::new(&store, 500_000, false).await;
    give(&store, market.buyer, 1_000_000, false, "one").await;
    market.buy(&store, 10).await;
    let (item, owner) = (market.item.to_string(), market.seller.operator);
    let found = async |viewer| store.project_by_slug("prices", viewer).await.unwrap().is_some();
    let buyer = format!("op:{}", market.buyer);
    let everybody = [None, Some(owner), Some(market.buyer)];
    let mut now = 20;
    for (reason, is_kept) in [
        (ReportReason::Spam, true),
        (ReportReason::Inaccurate, true),
        (ReportReason::Copyright, false),
        (ReportReason::PersonalData, false),
        (ReportReason::Unlawful, false),
        (ReportReason::Other, false),
    ] {
        let takedown = down(&store, ReportKind::Dataset, &item, reason, at(now)).await;
        let listed = store.console().projects_of(owner, 10).await.unwrap();
        let is_down = |slug: &str| listed.iter().any(|row| row.slug == slug && row.is_taken_down);
        assert!(is_down("prices"), "{listed:?}");
        assert_eq!(listed.iter().filter(|row| row.is_taken_down).count(), 1);
        for viewer in everybody {
            assert_eq!(
                found(viewer).await,
                is_kept && viewer == Some(market.buyer),
                "{reason} {viewer:?}"
            );
        }
        let parts = store.moderation();
        assert_eq!(parts.parts_are_hidden(market.item, &buyer).await.unwrap(), !is_kept);
        let own = format!("op:{owner}");
        assert!(parts.parts_are_hidden(market.item, &own).await.unwrap());
        assert!(!parts.parts_are_hidden(market.seller.project, "w:x").await.unwrap());
        for viewer in everybody {
            let filter = ProjectFilter {
                q: Some("prices".to_owned()),
                viewer,
                after: None,
                limit: 10,
            };
            assert_eq!(store.projects(&filter).await.unwrap(), []);
            assert_eq!(store.project_count(&filter).await.unwrap(), 0);
        }
        assert_eq!(
            store.searching().datasets(std::slice::from_ref(&item)).await.unwrap(),
            []
        );
        assert!(
            !store
                .money()
                .offer(ItemKind::Dataset, &item)
                .await
                .unwrap()
                .unwrap()
                .visible
        );
        // Letters of one instant are in no order.
        let mut sent = letters(&store).await;
        sent.sort_by(|one, other| other.1.cmp(&one.1));
        assert_eq!(
            sent,
            [
                (Some(owner), "{\"to\":\"owner\"}".to_owned()),
                (Some(market.buyer), "{\"to\":\"buyers\"}".to_owned())
            ]
        );
        back(&store, takedown.id, at(now + 1)).await;
        let _told = letters(&store).await;
        for viewer in everybody {
            assert!(found(viewer).await, "{reason} {viewer:?}");
        }
        assert!(
            !parts
                .parts_are_hidden(market.item, &format!("op:{owner}"))
                .await
                .unwrap()
        );
        now += 10;
    }
    sound(&store).await;
}

/// A comment leaves its list and its count; an agent its name and its key. Both come back.
pub async fn a_comment_and_an_agent_come_down_and_back(url: &str) {
    let store = open(url).await;
    let world = knowledge::World::new(&store).await;
    let unit = world.published(&store, "one", 60).await;
    let new = new_agent(world.reader.1, "talker");
    let (talker, key) = (new.id, new.key_hash);
    assert_eq!(store.agent_create(new, 9).await.unwrap(), AgentCreated::Created);
    let said = NewComment {
        kind: ItemKind::Unit,
        item: unit.to_string(),
        version: None,
        agent: talker,
        operator: world.reader.1,
        parent: None,
        body: "Buy my units.".to_owned(),
        now: at(10),
    };
    let number = store.comments().add(said).await.unwrap().unwrap();
    let listed = async || {
        let comments = store
            .comments()
            .of(ItemKind::Unit, &unit.to_string(), 0, 9)
            .await
            .unwrap();
        comments
            .into_iter()
            .map(|comment| comment.agent_name)
            .collect::<Vec<_>>()
    };
    let sees = async || {
        store
            .moderation()
            .sees_comment(ReportKind::Comment, number, None)
            .await
            .unwrap()
    };
    assert!(sees().await);
    let takedown = down(
        &store,
        ReportKind::Comment,
        &number.to_string(),
        ReportReason::Spam,
        at(20),
    )
    .await;
    assert_eq!((listed().await, sees().await), (Vec::<String>::new(), false));
    knowledge::is_sound(&store).await;
    back(&store, takedown.id, at(21)).await;
    assert_eq!((listed().await, sees().await), (vec!["talker".to_owned()], true));
    knowledge::is_sound(&store).await;

    let is_refused = async || {
        let principal = store.accounts().principal(&key, at(30)).await.unwrap().unwrap();
        matches!(principal, Principal::Agent { suspended: true, .. })
    };
    assert_eq!(store.moderation().agent_named("talker").await.unwrap(), Some(talker));
    let takedown = down(
        &store,
        ReportKind::Agent,
        &talker.to_string(),
        ReportReason::Spam,
        at(30),
    )
    .await;
    assert_eq!(
        (listed().await, is_refused().await),
        (vec!["[removed]".to_owned()], true)
    );
    assert_eq!(store.moderation().agent_named("talker").await.unwrap(), None);
    // The name stays taken.
    let again = store
        .agent_create(new_agent(world.reader.1, "talker"), 9)
        .await
        .unwrap();
    assert_eq!(again, AgentCreated::NameTaken);
    back(&store, takedown.id, at(31)).await;
    assert_eq!((listed().await, is_refused().await), (vec!["talker".to_owned()], false));
}

/// A request, an answer and a review come down and back, each under its kind.
pub async fn what_is_said_on_the_board_comes_down_and_back(url: &str) {
    let store = open(url).await;
    let world = knowledge::World::new(&store).await;
    let unit = world.published(&store, "one", 60).await.to_string();
    let (community, moderation) = (store.community(), store.moderation());
    let (asker, answerer) = (world.reader, world.author);
    let id = RequestId::new(at(10));
    let request = NewRequest {
        id,
        agent: asker.0,
        operator: asker.1,
        title: "Levels wanted".to_owned(),
        body: "Hourly levels of the quay.".to_owned(),
        kind: RequestKind::Knowledge,
        category: "general".to_owned(),
        budget_micro: None,
        deadline: None,
        fields: "[]".to_owned(),
        jobs: Vec::new(),
        now: at(10),
    };
    community.post(request).await.unwrap();
    let answer = NewAnswer {
        request: id,
        agent: answerer.0,
        operator: answerer.1,
        link: None,
        note: "Mine.".to_owned(),
        now: at(20),
    };
    let Answered::Added(answer) = community.answer(answer).await.unwrap() else {
        unreachable!("the request is open");
    };
    let review = NewReview {
        is_question: false,
        kind: ItemKind::Unit,
        item: unit,
        version: None,
        agent: asker.0,
        operator: asker.1,
        body: "It holds.".to_owned(),
        now: at(20),
    };
    let Reviewed::Added(review) = store.comments().review(review).await.unwrap() else {
        unreachable!("a first review");
    };
    let feed = async || {
        let entries = store.feed().before(i64::MAX, 9).await.unwrap();
        entries.into_iter().map(|entry| entry.kind).collect::<Vec<_>>()
    };
    let all = [ActivityKind::Answer, ActivityKind::Request, ActivityKind::Unit];
    assert_eq!(feed().await, all);
    let sees = async |kind, number| moderation.sees_comment(kind, number, None).await.unwrap();
    // A number is of one kind only.
    assert!(!sees(ReportKind::Review, answer).await && !sees(ReportKind::Comment, review).await);
    // A number of answers says nothing of one that is hidden.
    let answers = async || community.request(id, at(30)).await.unwrap().unwrap().answer_count;
    for (kind, number) in [(ReportKind::Comment, answer), (ReportKind::Review, review)] {
        assert!(sees(kind, number).await);
        let takedown = down(&store, kind, &number.to_string(), ReportReason::Spam, at(30 + number)).await;
        assert!(!sees(kind, number).await);
        assert_eq!(answers().await, u64::from(kind != ReportKind::Comment));
        back(&store, takedown.id, at(31 + number)).await;
        assert!(sees(kind, number).await);
        assert_eq!(answers().await, 1);
    }
    let takedown = down(&store, ReportKind::Topic, &id.to_string(), ReportReason::Spam, at(60)).await;
    assert_eq!(community.request(id, at(61)).await.unwrap(), None);
    assert!(!sees(ReportKind::Comment, answer).await);
    assert_eq!(feed().await, all[2..]);
    back(&store, takedown.id, at(62)).await;
    assert!(community.request(id, at(63)).await.unwrap().is_some());
    assert_eq!(feed().await, all);
    knowledge::is_sound(&store).await;
}

/// A report is decided once, whatever arrives at the same time, and an item is down once.
pub async fn a_decision_is_made_once(url: &str) {
    let stores = [open(url).await, open(url).await];
    let store = &stores[0];
    let world = knowledge::World::new(store).await;
    let unit = world.published(store, "one", 60).await.to_string();
    let report = reported(
        store,
        new_report(ReportKind::Unit, &unit, ReportReason::Spam, "a", at(10)),
    )
    .await;
    let decided = race(stores.clone(), 6, |store, number| async move {
        if number < 3 {
            let upheld = store.moderation().uphold(uphold_of(report, at(20))).await.unwrap();
            matches!(upheld, Decided::Done(_))
        } else {
            store.moderation().dismiss(report, None, None, at(20)).await.unwrap() == Some(true)
        }
    })
    .await;
    assert_eq!(decided.iter().filter(|is_done| **is_done).count(), 1, "{decided:?}");
    let moderation = store.moderation();
    assert_eq!(
        moderation.dismiss(report, None, None, at(21)).await.unwrap(),
        Some(false)
    );
    let unknown = moderation.dismiss(ReportId::new(at(0)), None, None, at(21)).await;
    assert_eq!(unknown.unwrap(), None);
    assert_eq!(
        moderation
            .uphold(uphold_of(ReportId::new(at(0)), at(21)))
            .await
            .unwrap(),
        Decided::Unknown
    );
    let is_down = !moderation.takedowns(None, None, 9).await.unwrap().is_empty();
    assert_eq!(store.searching().units(&[unit]).await.unwrap().is_empty(), is_down);
    // An item that does not exist cannot be taken down.
    let gone = new_report(ReportKind::Comment, "77", ReportReason::Spam, "a", at(10));
    let gone = reported(store, gone).await;
    assert_eq!(moderation.uphold(uphold_of(gone, at(22))).await.unwrap(), Decided::Gone);
}

/// Buys a dataset of one operator for another.
async fn buy(store: &Store, item: types::DatasetId, buyer: (OperatorId, AgentId), now: i64) {
    let new = NewPurchase {
        sale: SaleId::new(at(now)),
        event: LedgerEventId::new(at(now)),
        kind: ItemKind::Dataset,
        item: item.to_string(),
        version: None,
        buyer: buyer.0,
        agent: Some(buyer.1),
        app: None,
        max_price: None,
        ask: NewPurchaseAsk::silent(at(now)),
        terms: terms(),
        now: at(now),
    };
    match store.money().purchase(new).await.unwrap() {
        Purchased::Bought(sale) => assert_eq!(sale.paid_with, PaidWith::Credits),
        other => unreachable!("not bought: {other:?}"),
    }
}

/// Sales that come back to their buyer give no place in the ranking; the points stay, and so do sales to others.
pub async fn purchases_in_a_cycle_are_left_out_of_the_ranking(url: &str) {
    let store = open(url).await;
    let market = Market::new(&store, 500_000, false).await;
    let (seller, buyer) = (market.seller, market.buyer);
    for (operator, name) in [(seller.operator, "one"), (buyer, "two")] {
        give(&store, operator, 5_000_000, false, name).await;
    }
    buy(&store, market.item, (buyer, market.buyers_agent), 10).await;
    let sales = async |name: &str| {
        let ranked = store.points().ranking(None, 10).await.unwrap();
        let of_name = ranked.iter().find(|ranked| ranked.agent_name == name);
        of_name.map_or(0, |ranked| ranked.sums.sales)
    };
    assert_eq!(store.points().exclude(at(11)).await.unwrap(), 0);
    assert_eq!(sales("collector").await, 1);
    // The buyer sells something to the seller: the money comes back.
    let other = super::fixture::World {
        operator: buyer,
        agent: market.buyers_agent,
        project: seller.project,
    };
    let back = paid_dataset(&store, other, "returns", Some(500_000), false).await;
    buy(&store, back, (seller.operator, seller.agent), 20).await;
    assert_eq!(store.points().exclude(at(21)).await.unwrap(), 2);
    assert_eq!(store.points().exclude(at(22)).await.unwrap(), 0);
    assert_eq!((sales("collector").await, sales("shopper").await), (0, 0));
    assert_eq!(store.points().of_agent(seller.agent).await.unwrap().sales, 1);
    // A third operator buys from the seller, which is no part of the cycle.
    let third = operator(&store, "eve@example.org").await;
    let eve = agent(&store, third, "eve").await;
    give(&store, third, 5_000_000, false, "three").await;
    buy(&store, market.item, (third, eve), 30).await;
    assert_eq!(store.points().exclude(at(31)).await.unwrap(), 0);
    assert_eq!(sales("collector").await, 1);
}

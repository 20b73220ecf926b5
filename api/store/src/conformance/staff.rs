//! Scenarios about what the staff does: decisions that are taken back, accounts, invitations, figures, failing jobs.

use std::time::Duration;

use types::vocabulary::ItemKind;
use types::{OperatorId, ReportId, TakedownId, Timestamp};

use super::fixture::{agent, at, job, mail, new_operator, open, operator, race};
use super::knowledge;
use super::moderation::{digest, new_report, reported};
use super::money::{Market, give};
use crate::{
    Decided, DecidedFilter, DecisionLetters, Desk, EvidenceBuyers, FailingJobs, FigureDay, NewOperator,
    OperatorCreated, ReportKind, ReportReason, ReportStatus, ReporterRecord, Store, Undone, Uphold,
};

const WAIT: Duration = Duration::from_mins(10);

fn uphold(report: ReportId, takedown: TakedownId, by: OperatorId, now: Timestamp) -> Uphold {
    Uphold {
        report,
        takedown,
        note: Some("Nine of ten sentences are another's.".to_owned()),
        by: Some(by),
        letters: DecisionLetters {
            kind: "mail".to_owned(),
            owner: "{\"to\":\"owner\"}".to_owned(),
            buyers: "{\"to\":\"buyers\"}".to_owned(),
            wait: WAIT,
        },
        now,
    }
}

/// Returns the number of letters of decisions that are due at a time, and leases them.
async fn letters_due(store: &Store, now: Timestamp) -> usize {
    let jobs = store.flow().jobs_lease(now, Duration::from_secs(1), 100).await.unwrap();
    jobs.iter().filter(|job| job.payload.contains("\"to\"")).count()
}

/// A takedown is undone while its letters wait: item and reports are as they were, and nobody is told.
pub async fn a_takedown_is_undone_while_its_letters_wait(url: &str) {
    let store = open(url).await;
    let market = Market::new(&store, 500_000, false).await;
    give(&store, market.buyer, 1_000_000, false, "one").await;
    market.buy(&store, 5).await;
    let (item, moderation) = (market.item.to_string(), store.moderation());
    let staff = operator(&store, "staff@example.org").await;
    let report = |reporter, now| {
        let new = new_report(ReportKind::Dataset, &item, ReportReason::Copyright, reporter, at(now));
        reported(&store, new)
    };
    let reports = [report("a", 10).await, report("b", 11).await];
    let takedown = TakedownId::new(at(20));
    let upheld = moderation.uphold(uphold(reports[0], takedown, staff, at(20))).await;
    assert!(matches!(upheld.unwrap(), Decided::Done(_)));
    let found = async || store.project_by_slug("prices", None).await.unwrap().is_some();
    assert!(!found().await);
    assert_eq!(letters_due(&store, at(20 + 599)).await, 0);
    assert!(matches!(
        moderation.undo(takedown, at(30)).await.unwrap(),
        Undone::Done(_)
    ));
    assert!(found().await);
    assert_eq!(moderation.undo(takedown, at(31)).await.unwrap(), Undone::Unknown);
    for report in reports {
        let report = moderation.report_of(report).await.unwrap().unwrap();
        assert_eq!(
            (report.status, report.decided_at, report.takedown),
            (ReportStatus::Open, None, None)
        );
        assert_eq!(report.owner, Some(market.seller.operator));
    }
    assert_eq!(moderation.takedowns(None, None, 10).await.unwrap(), []);
    assert_eq!(letters_due(&store, at(100_000)).await, 0);
    // Once a letter has left, the trace stays.
    let again = TakedownId::new(at(200_000));
    let upheld = moderation.uphold(uphold(reports[1], again, staff, at(200_000))).await;
    assert!(matches!(upheld.unwrap(), Decided::Done(_)));
    assert_eq!(letters_due(&store, at(200_600)).await, 2);
    assert_eq!(moderation.undo(again, at(200_601)).await.unwrap(), Undone::Late);
    assert!(!found().await);
}

/// Of many who undo a takedown and show its item again, one does.
pub async fn one_of_many_takes_a_takedown_back(url: &str) {
    let stores = [open(url).await, open(url).await];
    let world = knowledge::World::new(&stores[0]).await;
    let unit = world.published(&stores[0], "one", 60).await.to_string();
    let new = new_report(ReportKind::Unit, &unit, ReportReason::Spam, "a", at(10));
    let report = reported(&stores[0], new).await;
    let takedown = TakedownId::new(at(20));
    let new = uphold(report, takedown, world.reader.1, at(20));
    let upheld = stores[0].moderation().uphold(new).await;
    assert!(matches!(upheld.unwrap(), Decided::Done(_)));
    let done = race(stores.clone(), 8, |store, place| async move {
        if place % 2 == 0 {
            matches!(
                store.moderation().undo(takedown, at(30)).await.unwrap(),
                Undone::Done(_)
            )
        } else {
            let letter = ("mail".to_owned(), "{}".to_owned());
            let restored = store.moderation().restore(takedown, None, None, letter, at(30)).await;
            matches!(restored.unwrap(), Decided::Done(_))
        }
    })
    .await;
    assert_eq!(done.iter().filter(|done| **done).count(), 1, "{done:?}");
    assert_eq!(stores[0].searching().units(&[unit]).await.unwrap().len(), 1);
    knowledge::is_sound(&stores[0]).await;
}

/// A dismissal keeps who decided and why, is listed, and is opened again for ten minutes.
pub async fn decisions_are_listed_and_a_dismissal_is_opened_again(url: &str) {
    let store = open(url).await;
    let world = knowledge::World::new(&store).await;
    let unit = world.published(&store, "one", 60).await.to_string();
    let (staff, moderation) = (world.reader.1, store.moderation());
    let reader = world.reader.0.to_string();
    let report =
        |reason, reporter, now| reported(&store, new_report(ReportKind::Unit, &unit, reason, reporter, at(now)));
    let spam = report(ReportReason::Spam, "a", 10).await;
    let other = report(ReportReason::Other, "a", 11).await;
    let urgent = report(ReportReason::PersonalData, "b", 12).await;
    let waiting = moderation.reports_waiting(10).await.unwrap();
    let ids: Vec<_> = waiting.iter().map(|row| row.report.id).collect();
    assert_eq!(ids, [urgent, spam, other]);
    assert_eq!(waiting[0].title.as_deref(), Some("Title"));
    let note = Some("The figures were checked.".to_owned());
    let dismissed = moderation.dismiss(spam, Some(staff), note.clone(), at(20)).await;
    assert_eq!(dismissed.unwrap(), Some(true));
    let decided = moderation.decided(DecidedFilter::Dismissed, None, 10).await.unwrap();
    assert_eq!(decided.len(), 1);
    assert_eq!(
        (
            decided[0].report.note.clone(),
            decided[0].by,
            decided[0].decider.as_deref()
        ),
        (note, Some(staff), Some("Ada"))
    );
    assert_eq!(moderation.reopen(spam, at(20 + 600)).await.unwrap(), Some(false));
    assert_eq!(moderation.reopen(spam, at(20 + 599)).await.unwrap(), Some(true));
    assert_eq!(moderation.reopen(spam, at(20 + 599)).await.unwrap(), Some(false));
    assert_eq!(moderation.reopen(ReportId::new(at(0)), at(21)).await.unwrap(), None);
    let reopened = moderation.report_of(spam).await.unwrap().unwrap();
    assert_eq!(
        (reopened.status, reopened.note, reopened.decided_by),
        (ReportStatus::Open, None, None)
    );
    let takedown = TakedownId::new(at(30));
    let upheld = moderation.uphold(uphold(other, takedown, staff, at(30))).await.unwrap();
    assert!(matches!(upheld, Decided::Done(_)));
    let decided = moderation.decided(DecidedFilter::All, None, 2).await.unwrap();
    assert_eq!(decided.len(), 2);
    let last = decided.last().map(|row| (at(30), row.report.id));
    assert_eq!(
        moderation.decided(DecidedFilter::Upheld, last, 10).await.unwrap().len(),
        1
    );
    assert_eq!(
        moderation.decided(DecidedFilter::Dismissed, None, 10).await.unwrap(),
        []
    );
    let record = moderation.record_of("a").await.unwrap();
    assert_eq!(record, ReporterRecord { decided: 2, upheld: 2 });
    let owner = world.author.1;
    let say = moderation.answer(owner, takedown, "I wrote it.".to_owned(), digest(3), at(40));
    assert!(say.await.unwrap());
    let desk = moderation.desk().await.unwrap();
    let expected = Desk {
        open: 0,
        answered: 1,
        down: 1,
        decided: 3,
    };
    assert_eq!(desk, expected);
    let down = moderation.takedowns_down(true, 10).await.unwrap();
    assert_eq!((down.len(), down[0].title.as_deref()), (1, Some("Title")));
    assert_eq!(moderation.takedowns_down(false, 10).await.unwrap(), down);
    assert_eq!(moderation.takedowns_of(owner, 10).await.unwrap(), down);
    assert_eq!(
        moderation.takedown_titled(takedown).await.unwrap().as_ref(),
        Some(&down[0])
    );
    let behind = moderation.report_behind(&down[0].takedown).await.unwrap();
    assert_eq!(behind.map(|report| report.id), Some(spam));
    assert_eq!(moderation.reports_of_owner(owner, 10).await.unwrap().len(), 3);
    let of_item = moderation.reports_of_item(ReportKind::Unit, &unit, 2).await.unwrap();
    assert_eq!(of_item.len(), 2);
    // An operator finds what its agents reported, and nothing of others.
    let sent = report(ReportReason::Other, &reader, 50).await;
    let found = moderation.reports_by(world.reader.1, None, 10).await.unwrap();
    assert_eq!(found.iter().map(|report| report.id).collect::<Vec<_>>(), [sent]);
    assert_eq!(moderation.reports_by(world.reader.1, Some(sent), 10).await.unwrap(), []);
    assert_eq!(moderation.reports_by(world.author.1, None, 10).await.unwrap(), []);
}

/// A reported item is shown with its text, its owner and its buyers, whatever its kind.
pub async fn a_reported_item_has_its_evidence(url: &str) {
    let store = open(url).await;
    let market = Market::new(&store, 500_000, false).await;
    give(&store, market.buyer, 1_000_000, false, "one").await;
    market.buy(&store, 5).await;
    let moderation = store.moderation();
    let item = market.item.to_string();
    let found = moderation.evidence(ReportKind::Dataset, &item).await.unwrap().unwrap();
    assert_eq!(
        (found.place.as_str(), found.operator),
        ("prices", market.seller.operator)
    );
    let buyers = moderation.buyers_of(ReportKind::Dataset, &item).await.unwrap();
    let expected = EvidenceBuyers {
        accounts: 1,
        wallets: 0,
        paid: types::money::MicroUsdc(500_000),
        held: 1,
    };
    assert_eq!(buyers, expected);
    let shopper = market.buyers_agent;
    let found = moderation
        .evidence(ReportKind::Agent, &shopper.to_string())
        .await
        .unwrap();
    assert_eq!(found.map(|found| found.title), Some("shopper".to_owned()));
    assert_eq!(
        moderation.agent_name(shopper).await.unwrap(),
        Some("shopper".to_owned())
    );
    let none = moderation
        .buyers_of(ReportKind::Agent, &shopper.to_string())
        .await
        .unwrap();
    assert_eq!(none, EvidenceBuyers::default());
    for (kind, item) in [
        (ReportKind::Unit, "none"),
        (ReportKind::Topic, "none"),
        (ReportKind::Comment, "7"),
        (ReportKind::Review, "a/b"),
        (ReportKind::Review, "words"),
    ] {
        assert_eq!(moderation.evidence(kind, item).await.unwrap(), None, "{kind} {item}");
    }
}

/// Accounts are found by whatever somebody knows of them, and by nothing else.
pub async fn accounts_are_found_by_what_is_known(url: &str) {
    let store = open(url).await;
    let market = Market::new(&store, 500_000, false).await;
    let named = NewOperator {
        display_name: "Prime Facts 50%_\u{e4}".to_owned(),
        ..new_operator("Post@Prime-Facts.example")
    };
    let prime = named.id;
    assert_eq!(store.operator_create(named).await.unwrap(), OperatorCreated::Created);
    let facts = agent(&store, prime, "Prime-9").await;
    let staff = store.staff();
    let found = async |told: &str| -> Vec<OperatorId> {
        let found = staff.accounts_found(told, 10).await.unwrap();
        found.into_iter().map(|account| account.id).collect()
    };
    for told in [
        "post@prime-facts.example",
        "POST@",
        "prime facts",
        "PRIME FACTS 50%",
        "Prime-9",
        &facts.to_string(),
        &prime.to_string(),
        &prime.to_string().to_uppercase(),
        " post ",
    ] {
        assert_eq!(found(told).await, [prime], "{told}");
    }
    for told in ["", " ", "%", "_rime", "facts", "nobody", "a\0b"] {
        assert_eq!(found(told).await, [], "{told:?}");
    }
    assert_eq!(found("prices").await, [market.seller.operator]);
    let account = staff.account(market.seller.operator).await.unwrap().unwrap();
    assert_eq!((account.datasets, account.units, account.role), (2, 0, None));
    let all = staff.accounts(None, 10).await.unwrap();
    assert_eq!(all.len(), 3);
    let rest = staff.accounts(Some(all[0].id), 10).await.unwrap();
    assert_eq!(rest, all[1..]);
    let items = staff.items_of(market.seller.operator, 10).await.unwrap();
    assert_eq!(items.len(), 2);
    assert!(
        items
            .iter()
            .all(|item| item.kind == ItemKind::Dataset && item.sold == 0)
    );
    assert_eq!(staff.account(OperatorId::new(at(0))).await.unwrap(), None);
}

/// A suspension, and its end, tell once, however often the form is sent.
pub async fn a_suspension_by_a_page_tells_once(url: &str) {
    let stores = [open(url).await, open(url).await];
    let ada = operator(&stores[0], "ada@example.org").await;
    let set = move |store: Store, reason: Option<&'static str>| async move {
        let reason = reason.map(str::to_owned);
        store
            .staff()
            .suspension_set(ada, reason, mail(at(1), None), at(1))
            .await
            .unwrap()
    };
    for reason in [Some("It repeats itself."), None] {
        let done = race(stores.clone(), 6, |store, _| set(store, reason)).await;
        assert_eq!(done.iter().filter(|done| **done == Some(true)).count(), 1, "{done:?}");
        let found = stores[0].operator(ada).await.unwrap().unwrap();
        assert_eq!(found.suspended.map(|(_, reason)| reason).as_deref(), reason);
    }
    let jobs = stores[0]
        .flow()
        .jobs_lease(at(2), Duration::from_secs(1), 10)
        .await
        .unwrap();
    assert_eq!(jobs.len(), 2);
    let nobody = OperatorId::new(at(0));
    let none = stores[0]
        .staff()
        .suspension_set(nobody, None, mail(at(1), None), at(1))
        .await;
    assert_eq!(none.unwrap(), None);
}

/// Invitations are listed with who invited, and taken back until they are used.
pub async fn invitations_are_listed_and_taken_back(url: &str) {
    let store = open(url).await;
    let ada = operator(&store, "ada@example.org").await;
    let accounts = store.accounts();
    assert!(accounts.invite_as("Eve@example.org", Some(ada), at(1)).await.unwrap());
    assert!(!accounts.invite_as("eve@EXAMPLE.org", None, at(2)).await.unwrap());
    assert!(accounts.invite("bob@example.org", at(3)).await.unwrap());
    let all = accounts.invitations(None, 10).await.unwrap();
    let told: Vec<_> = all
        .iter()
        .map(|invitation| (invitation.email.as_str(), invitation.invited_by.as_deref()))
        .collect();
    assert_eq!(told, [("bob@example.org", None), ("eve@example.org", Some("Ada"))]);
    let behind = Some((all[0].created_at, all[0].email.clone()));
    assert_eq!(accounts.invitations(behind, 10).await.unwrap(), all[1..]);
    assert!(accounts.invite_withdraw("EVE@example.org").await.unwrap());
    assert!(!accounts.invite_withdraw("eve@example.org").await.unwrap());
    assert_eq!(accounts.invitations(None, 10).await.unwrap(), all[..1]);
}

/// The figures of a day are those of its rows, and a count never takes the place of a later one.
pub async fn figures_are_counted_by_day(url: &str) {
    let store = open(url).await;
    let market = Market::new(&store, 500_000, false).await;
    give(&store, market.buyer, 1_000_000, false, "one").await;
    market.buy(&store, 5).await;
    let staff = store.staff();
    let day = at(0).day();
    let figures = staff.figures_counted(day, at(100)).await.unwrap();
    assert_eq!((figures.accounts, figures.sign_ups, figures.confirmed), (2, 2, 2));
    assert_eq!(
        (figures.sales, figures.credit.0, figures.wallet.0, figures.trials),
        (1, 500_000, 0, 0)
    );
    assert!(
        figures.fee.0 > 0 && figures.versions > 0 && figures.rows > 0,
        "{figures:?}"
    );
    let other = staff.figures_counted(day + 1, at(100)).await.unwrap();
    let nothing = FigureDay {
        day: day + 1,
        accounts: 2,
        counted_at: at(100),
        ..FigureDay::default()
    };
    assert_eq!(other, nothing);
    staff.figures_keep(vec![figures, other]).await.unwrap();
    let earlier = FigureDay {
        sales: 0,
        counted_at: at(99),
        ..figures
    };
    staff.figures_keep(vec![earlier]).await.unwrap();
    assert_eq!(staff.figures(day).await.unwrap(), [figures, other]);
    assert_eq!(staff.figures(day + 1).await.unwrap(), [other]);
}

/// A job that failed is counted, and due again when somebody says so, unless it runs.
pub async fn a_failed_job_is_tried_again_by_hand(url: &str) {
    let store = open(url).await;
    let (flow, staff) = (store.flow(), store.staff());
    let (one, two) = (job(at(1)), job(at(2)));
    let ids = [one.id.clone(), two.id.clone()];
    for job in [one, two] {
        assert!(flow.job_add(job).await.unwrap());
    }
    let lease = async |now| flow.jobs_lease(now, Duration::from_mins(5), 10).await.unwrap().len();
    assert_eq!(lease(at(10)).await, 2);
    assert!(!staff.job_again(&ids[0], at(11)).await.unwrap());
    flow.job_retry(&ids[0], "451 later", at(1_000)).await.unwrap();
    flow.job_fail(&ids[1], "550 never", at(12)).await.unwrap();
    let failing = staff.jobs_failing_count().await.unwrap();
    assert_eq!(
        failing,
        FailingJobs {
            retried: 1,
            given_up: 1
        }
    );
    let listed = staff.jobs_failing(10).await.unwrap();
    assert_eq!(listed.iter().map(|job| job.id.as_str()).collect::<Vec<_>>(), ids);
    assert_eq!(lease(at(20)).await, 0);
    for id in &ids {
        assert!(staff.job_again(id, at(20)).await.unwrap());
    }
    assert_eq!(lease(at(20)).await, 2);
    assert!(!staff.job_again(&ids[0], at(21)).await.unwrap());
    assert!(!staff.job_again("none", at(21)).await.unwrap());
}

//! Samples of the pages of the staff, and of the owner of what was taken down.

use types::vocabulary::{ItemKind, ReportKind, ReportReason, StaffRole};
use types::{OperatorId, ReportId, TakedownId};

use super::{Book, Texts, ago, ahead, person};
use crate::console::{
    AccountAgent, AccountItemRow, AccountPage, AccountRow, AccountsPage, CaseBuyers, CaseOwner, DecidedPage,
    DecidedRow, DecisionPage, DownPage, DownRow, FailingJobRow, FigureBar, FiguresPage, HistoryLine,
    InvitationRequestRow, InvitationRow, InvitationsPage, ModerationPage, ModerationTab, ModerationTabs, OverlapRow,
    OwnTakedown, QueuedReport, ReportCase, ReportDecision, ReportDecisionForm, ReportsPage, RestorePage,
    SuspensionForm, TextPiece,
};
use crate::{Error, FieldError};

const BYTES: [u8; 16] = [
    0x01, 0x9a, 0x8d, 0x10, 0x2c, 0x4e, 0x7f, 0x11, 0x8a, 0x07, 0xb2, 0xf0, 0xe5, 0xd9, 0xc3, 0x14,
];

pub(super) fn add(book: &mut Book, texts: &Texts) -> Result<(), Error> {
    book.add("console-takedowns", &own(texts))?;
    book.add("console-moderation", &reports(texts, Vec::new()))?;
    let wrong = FieldError::new("note", "Must have 20 to 2,000 characters.");
    book.add("console-moderation-errors", &reports(texts, vec![wrong]))?;
    for (name, decision) in [
        ("console-moderation-confirm", ReportDecision::Uphold),
        ("console-moderation-leave", ReportDecision::Dismiss),
    ] {
        book.add(name, &decision_page(texts, decision))?;
    }
    for (name, here) in [
        ("console-moderation-answers", ModerationTab::Answers),
        ("console-moderation-down", ModerationTab::Down),
    ] {
        let page = DownPage {
            chrome: person("/console/moderation", texts, 3),
            tabs: tabs(here),
            rows: vec![down(texts, true), down(texts, false)],
        };
        book.add(name, &page)?;
    }
    let restore = RestorePage {
        chrome: person("/console/takedowns/1/restore", texts, 3),
        row: down(texts, true),
        detail: Some(texts.text.clone()),
        note: texts.text.clone(),
        errors: vec![FieldError::new("note", "Must have 20 to 2,000 characters.")],
    };
    book.add("console-moderation-restore", &restore)?;
    book.add("console-moderation-decided", &decided(texts))?;
    book.add("console-operators", &accounts(texts))?;
    book.add("console-operator", &account_page(texts, false))?;
    book.add("console-operator-suspended", &account_page(texts, true))?;
    book.add("console-invitations", &invitations(texts))?;
    book.add("console-figures", &figures(texts))
}

pub(super) fn add_empty(book: &mut Book) -> Result<(), Error> {
    let texts = Texts::usual();
    let chrome = |path: &str| person(path, &texts, 0);
    book.add(
        "console-takedowns",
        &ModerationPage {
            chrome: chrome("/console/moderation"),
            tabs: None,
            down: Vec::new(),
            over: Vec::new(),
        },
    )?;
    book.add(
        "console-moderation",
        &ReportsPage {
            chrome: chrome("/console/moderation"),
            tabs: tabs(ModerationTab::Open),
            queue: Vec::new(),
            case: None,
            form: ReportDecisionForm::default(),
        },
    )?;
    book.add(
        "console-moderation-down",
        &DownPage {
            chrome: chrome("/console/moderation"),
            tabs: tabs(ModerationTab::Down),
            rows: Vec::new(),
        },
    )?;
    book.add(
        "console-moderation-decided",
        &DecidedPage {
            chrome: chrome("/console/moderation"),
            tabs: tabs(ModerationTab::Decided),
            outcome: "",
            rows: Vec::new(),
            next: None,
            first: None,
        },
    )?;
    book.add(
        "console-operators",
        &AccountsPage {
            chrome: chrome("/console/operators"),
            q: "nobody".to_owned(),
            rows: Vec::new(),
            next: None,
            first: None,
            has_more: false,
            is_administrator: false,
        },
    )?;
    book.add(
        "console-invitations",
        &InvitationsPage {
            chrome: chrome("/console/invitations"),
            is_open: true,
            requests: Vec::new(),
            rows: Vec::new(),
            next: None,
            first: None,
            email: String::new(),
            errors: Vec::new(),
        },
    )?;
    book.add(
        "console-figures",
        &FiguresPage {
            chrome: chrome("/console/figures"),
            counted_at: None,
            accounts: 0,
            days: Vec::new(),
            retried: 0,
            given_up: 0,
            jobs: Vec::new(),
        },
    )
}

fn tabs(here: ModerationTab) -> ModerationTabs {
    ModerationTabs {
        here,
        open: 6,
        answers: 1,
        down: 2,
        decided: 1_000,
    }
}

fn own(texts: &Texts) -> ModerationPage {
    let takedown = |answer: Option<&str>, restored| OwnTakedown {
        id: TakedownId::from_bytes(BYTES),
        kind: ReportKind::Dataset,
        title: texts.name.clone(),
        reason: ReportReason::Copyright,
        note: Some(texts.text.clone()),
        at: ago(90),
        answer: answer.map(|answer| (ago(30), answer.to_owned())),
        restored,
    };
    ModerationPage {
        chrome: person("/console/moderation", texts, 3),
        tabs: Some(tabs(ModerationTab::Own)),
        down: vec![takedown(Some(&texts.text), None)],
        over: vec![takedown(None, Some((ago(5), Some(texts.text.clone()))))],
    }
}

fn owner(texts: &Texts) -> CaseOwner {
    CaseOwner {
        id: OperatorId::from_bytes(BYTES),
        name: texts.name.clone(),
        since: ago(20_000),
        is_suspended: true,
        agents: 5,
        units: 14,
        rejected: 9,
        datasets: 2,
        takedowns: 1,
        reports: 2,
    }
}

fn reports(texts: &Texts, errors: Vec<FieldError>) -> ReportsPage {
    let queued = |here: bool| QueuedReport {
        id: ReportId::from_bytes(BYTES),
        kind: ReportKind::Unit,
        title: texts.name.clone(),
        reason: ReportReason::PersonalData,
        is_by_agent: !here,
        at: ago(51),
        here,
    };
    let piece = |text: &str, is_shared| TextPiece {
        text: text.to_owned(),
        is_shared,
    };
    let line = |what: &str, said: Option<&str>| HistoryLine {
        at: ago(300),
        what: what.to_owned(),
        said: said.map(str::to_owned),
    };
    ReportsPage {
        chrome: person("/console/moderation", texts, 3),
        tabs: tabs(ModerationTab::Open),
        queue: vec![queued(true), queued(false)],
        case: Some(ReportCase {
            id: ReportId::from_bytes(BYTES),
            kind: ReportKind::Unit,
            title: texts.name.clone(),
            reason: ReportReason::Copyright,
            at: ago(51),
            href: Some("/units/019a8d10-2c4e-7f11-8a07-b2f0e5d9c314".to_owned()),
            detail: texts.text.clone(),
            reporter: None,
            email: Some(texts.email.clone()),
            decided_before: 3,
            right_before: 2,
            text: vec![vec![piece(&texts.text, true), piece(&texts.text, false)]],
            more: 1_200,
            agent: Some(texts.name.clone()),
            overlaps: vec![OverlapRow {
                title: texts.name.clone(),
                href: "/units/019a8d10-2c4e-7f11-8a07-b2f0e5d9c314".to_owned(),
                owner: texts.name.clone(),
                is_same_owner: false,
                published_at: ago(70_000),
                is_earlier: true,
                percent: 91,
            }],
            owner: Some(owner(texts)),
            buyers: CaseBuyers {
                accounts: 2,
                wallets: 1,
                paid: 750_000,
                held: 3,
            },
            is_kept: false,
            history: vec![
                line("published", None),
                line("reported as: copyright", Some(&texts.text)),
            ],
            outcome: None,
        }),
        form: ReportDecisionForm {
            decision: ReportDecision::Uphold,
            note: texts.text.clone(),
            errors,
        },
    }
}

fn decision_page(texts: &Texts, decision: ReportDecision) -> DecisionPage {
    DecisionPage {
        chrome: person("/console/reports/1/confirm", texts, 3),
        id: ReportId::from_bytes(BYTES),
        kind: ReportKind::Agent,
        title: texts.name.clone(),
        reason: ReportReason::Copyright,
        decision,
        note: texts.text.clone(),
        owner: Some(texts.name.clone()),
        buyers: CaseBuyers {
            accounts: 2,
            wallets: 1,
            paid: 750_000,
            held: 3,
        },
        is_kept: false,
    }
}

fn down(texts: &Texts, is_answered: bool) -> DownRow {
    DownRow {
        id: TakedownId::from_bytes(BYTES),
        kind: ReportKind::Agent,
        title: texts.name.clone(),
        reason: ReportReason::Spam,
        note: Some(texts.text.clone()),
        answer: is_answered.then(|| (ago(10), texts.text.clone())),
        at: ago(2_000),
        owner: OperatorId::from_bytes(BYTES),
    }
}

fn decided(texts: &Texts) -> DecidedPage {
    let row = |takedown: Option<TakedownId>, restored_at, undo_until, is_own| DecidedRow {
        id: ReportId::from_bytes(BYTES),
        kind: ReportKind::Unit,
        title: texts.name.clone(),
        reason: ReportReason::Inaccurate,
        takedown,
        at: ago(1),
        by: Some(texts.name.clone()),
        is_own,
        note: Some(texts.text.clone()),
        is_answered: takedown.is_some(),
        restored_at,
        undo_until,
    };
    let takedown = Some(TakedownId::from_bytes(BYTES));
    DecidedPage {
        chrome: person("/console/moderation", texts, 3),
        tabs: tabs(ModerationTab::Decided),
        outcome: "upheld",
        rows: vec![
            row(takedown, None, Some(ahead(9)), true),
            row(takedown, None, None, false),
            row(takedown, Some(ago(0)), None, false),
            row(None, None, None, false),
        ],
        next: Some("/console/moderation?tab=decided&before=1".to_owned()),
        first: Some("/console/moderation?tab=decided".to_owned()),
    }
}

fn account(texts: &Texts, is_suspended: bool) -> AccountRow {
    AccountRow {
        id: OperatorId::from_bytes(BYTES),
        name: texts.name.clone(),
        email: texts.email.clone(),
        since: ago(30_000),
        is_confirmed: true,
        suspended_at: is_suspended.then(|| ago(60)),
        role: Some(StaffRole::Moderator),
        agents: 5,
        datasets: 1,
        units: 14,
        takedowns: 2,
        reports: 1,
    }
}

fn accounts(texts: &Texts) -> AccountsPage {
    let unconfirmed = AccountRow {
        is_confirmed: false,
        role: None,
        datasets: 0,
        units: 0,
        takedowns: 0,
        reports: 0,
        ..account(texts, false)
    };
    AccountsPage {
        chrome: person("/console/operators", texts, 3),
        q: texts.word.clone(),
        rows: vec![account(texts, false), account(texts, true), unconfirmed],
        next: Some("/console/operators?before=1".to_owned()),
        first: None,
        has_more: true,
        is_administrator: true,
    }
}

fn account_page(texts: &Texts, is_suspended: bool) -> AccountPage {
    let item = |kind, is_down, is_private| AccountItemRow {
        kind,
        title: texts.name.clone(),
        href: "/projects/tide-levels".to_owned(),
        is_down,
        is_ended: false,
        is_private,
        sold: 3,
        at: ago(4_000),
    };
    AccountPage {
        chrome: person("/console/operators/1", texts, 3),
        account: AccountRow {
            role: None,
            ..account(texts, is_suspended)
        },
        suspended_for: is_suspended.then(|| texts.text.clone()),
        terms: "2026-11-01".to_owned(),
        payout: Some("0x7700000000000000000000000000000000d41c00".to_owned()),
        is_payout_proved: false,
        rejected: 9,
        payable: 750_000,
        held: 2_450_000,
        credits: 0,
        given: 110_000,
        agents: vec![AccountAgent {
            name: texts.name.clone(),
            since: ago(9_000),
            keys: 1,
            removed_at: is_suspended.then(|| ago(8)),
        }],
        items: vec![item(ItemKind::Unit, true, false), item(ItemKind::Dataset, false, true)],
        history: vec![HistoryLine {
            at: ago(900),
            what: "taken down for copyright".to_owned(),
            said: Some(texts.text.clone()),
        }],
        is_administrator: true,
        is_staff: false,
        form: SuspensionForm {
            reason: texts.text.clone(),
            confirm: texts.name.clone(),
            errors: vec![FieldError::new("confirm", "Must be the name of this account.")],
        },
    }
}

fn invitations(texts: &Texts) -> InvitationsPage {
    InvitationsPage {
        chrome: person("/console/invitations", texts, 3),
        is_open: false,
        requests: vec![InvitationRequestRow {
            email: texts.email.clone(),
            note: texts.text.clone(),
            at: ago(70),
        }],
        rows: vec![
            InvitationRow {
                email: texts.email.clone(),
                by: Some(texts.name.clone()),
                at: ago(100),
                used_at: None,
            },
            InvitationRow {
                email: texts.email.clone(),
                by: None,
                at: ago(9_000),
                used_at: Some(ago(200)),
            },
        ],
        next: Some("/console/invitations?before=1".to_owned()),
        first: None,
        email: texts.email.clone(),
        errors: vec![FieldError::new("email", "Must be an e-mail address.")],
    }
}

fn figures(texts: &Texts) -> FiguresPage {
    let days = (0_u32..30).map(|back| FigureBar {
        day: ago(i64::from(29 - back) * 1_440 + 720),
        sign_ups: u64::from(back % 5),
        confirmed: u64::from(back % 5) / 2,
        sales: u64::from(back),
        credit: types::money::MicroUsdc(i64::from(back) * 130_000),
        wallet: types::money::MicroUsdc(i64::from(back % 7) * 250_000),
        fee: types::money::MicroUsdc(i64::from(back) * 13_000),
        trials: 1,
        versions: 4,
        rows: u64::from(back) * 1_000,
        units: 2,
    });
    FiguresPage {
        chrome: person("/console/figures", texts, 3),
        counted_at: Some(ago(2)),
        accounts: 1_204,
        days: days.collect(),
        retried: 2,
        given_up: 1,
        jobs: vec![FailingJobRow {
            id: "019a8d10-2c4e-7f11-8a07-b2f0e5d9c314".to_owned(),
            kind: "mail".to_owned(),
            error: texts.text.clone(),
            tries: 6,
            since: ago(240),
            is_given_up: true,
        }],
    }
}

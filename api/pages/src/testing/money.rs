//! Samples of the pages of money and of the quota.

use types::SaleId;
use types::money::MicroUsdc;
use types::vocabulary::{ItemKind, PaidWith, PayoutState, SaleState};

use super::checkout::{credits, limits, waiting, wallet};
use super::console::{DAY_MINUTES, ID};
use super::{Book, NOW, Texts, ago, ahead, person};
use crate::console::{
    CountLimit, EarnedMoney, EgressShare, FeeRow, HoldRow, MoneyPage, MonthOfEgress, PayoutRow, PayoutView, QuotaPage,
    SalesList, SoldRow, SpendingKind, SpendingList, SpendingRow, SpentMoney, StoredDataset, TopUpPage, TopUpWay,
};
use crate::{Allowance, CreditBalance, Error, FieldError, Instant, OptionChoice, SalesDay};

const WALLET: &str = "0x3fA9c5d04e2B7716c0dE88b1a45F90C2e6D7481b";

/// Returns the shares of an operator with sales.
pub(super) const fn earned() -> EarnedMoney {
    EarnedMoney {
        payable: MicroUsdc(2_060_000),
        held: MicroUsdc(6_940_000),
        disputed: MicroUsdc(730_000),
        on_its_way: MicroUsdc(0),
        paid: MicroUsdc(41_170_000),
        threshold: MicroUsdc(50_000),
        has_address: true,
    }
}

/// Returns sales of the last days.
pub(super) fn sales_days(days: i64) -> Vec<SalesDay> {
    let day = |number: i64| SalesDay {
        day: ago((days - 1 - number) * DAY_MINUTES),
        by_credits: u64::try_from(number % 5).unwrap_or(0),
        by_wallet: u64::try_from(number % 3).unwrap_or(0),
        share_by_credits: MicroUsdc(number % 5 * 205_000),
        share_by_wallet: MicroUsdc(number % 3 * 80_000),
    };
    (0..days).map(day).collect()
}

fn choice(value: &str, label: &str, is_chosen: bool) -> OptionChoice {
    OptionChoice {
        value: value.to_owned(),
        label: label.to_owned(),
        is_chosen,
    }
}

/// Returns sales in every state.
pub(super) fn sold(texts: &Texts) -> Vec<SoldRow> {
    let states = [
        (SaleState::Held, PaidWith::Credits, None),
        (SaleState::Disputed, PaidWith::X402, None),
        (SaleState::Payable, PaidWith::X402, None),
        (SaleState::Payable, PaidWith::Credits, Some(ago(900))),
        (SaleState::Refunded, PaidWith::Credits, None),
        (SaleState::Trial, PaidWith::Given, None),
    ];
    let row = |(state, paid_with, paid_at): (SaleState, PaidWith, Option<Instant>)| SoldRow {
        at: ago(90),
        href: "/console/datasets/tide-levels".to_owned(),
        title: texts.text.clone(),
        kind: if paid_with == PaidWith::X402 {
            ItemKind::Unit
        } else {
            ItemKind::Dataset
        },
        version: (paid_with != PaidWith::X402).then_some(1_241),
        paid_with,
        wallet: (paid_with == PaidWith::X402).then(|| format!("eip155:84532:{WALLET}")),
        price: MicroUsdc(250_000),
        fee: MicroUsdc(45_000),
        share: MicroUsdc(205_000),
        state,
        release_at: ahead(7 * DAY_MINUTES),
        paid_at,
        resolved_at: Some(ago(1_000)),
    };
    states.into_iter().map(row).collect()
}

fn spending(texts: &Texts) -> SpendingList {
    let row = |what: &str, title: Option<&str>, amount: i64| SpendingRow {
        at: ago(90),
        what: what.to_owned(),
        title: title.map(str::to_owned),
        href: title.map(|_| "/projects/tide-levels".to_owned()),
        note: if title.is_some() { "dataset" } else { "" }.to_owned(),
        agent: texts.name.clone(),
        amount: MicroUsdc(amount),
        after: MicroUsdc(4_184_000),
        is_trial: amount == 600_000,
        receipt: (amount < 0).then(|| SaleId::from_bytes([7; 16])),
    };
    SpendingList {
        kind: SpendingKind::Purchases,
        actors: vec![choice(ID, &texts.name, true)],
        months: vec![choice("2026-11", "November 2026", false)],
        rows: vec![
            row("", Some(&texts.text), -250_000),
            row("Credit added", None, 1_000_000),
            row("Trial credit given", None, 600_000),
            row("Given back", Some(&texts.text), 500_000),
        ],
        next: Some("1.1".to_owned()),
        is_later: true,
        archived_before: Some(ago(500 * DAY_MINUTES)),
    }
}

fn payouts() -> Vec<PayoutRow> {
    let row = |state: PayoutState, attempts: u64| PayoutRow {
        at: ago(300),
        amount: MicroUsdc(410_000),
        address: WALLET.to_owned(),
        state,
        attempts,
        transaction: (state == PayoutState::Done).then(|| format!("0x{}", "5b1e".repeat(16))),
    };
    vec![
        row(PayoutState::Sending, 1),
        row(PayoutState::Done, 1),
        row(PayoutState::Done, 2),
        row(PayoutState::Failed, 12),
    ]
}

fn money(texts: &Texts) -> MoneyPage {
    MoneyPage {
        disputes: super::disputes::some(texts),
        chrome: person("/console/money", texts, 3),
        credits: credits(),
        spent: SpentMoney {
            purchases: 4,
            sum: MicroUsdc(1_760_000),
        },
        earned: earned(),
        holds: vec![HoldRow {
            day: ahead(DAY_MINUTES),
            sales: 9,
            share: MicroUsdc(6_940_000),
        }],
        days: sales_days(30),
        waiting: vec![
            waiting(texts, Some(4), Some(texts.text.clone())),
            waiting(texts, None, None),
        ],
        payout: PayoutView {
            message: Some(format!("The wallet {WALLET} is of this account at sluice.example.")),
            signature: texts.word.clone(),
            address: Some(WALLET.to_owned()),
            proved_at: None,
            pending: Some((WALLET.to_owned(), ahead(3_000))),
            changed_at: Some(ago(1_200)),
            is_fresh: true,
            typed: texts.word.clone(),
            network: "eip155:84532".to_owned(),
        },
        payouts: payouts(),
        sales: SalesList {
            items: vec![choice(ID, &texts.text, true)],
            state: Some(SaleState::Held),
            rows: sold(texts),
            next: Some(SaleId::from_bytes([8; 16])),
            is_later: true,
        },
        spending: spending(texts),
        limits: limits(texts),
        fees: vec![FeeRow {
            price: MicroUsdc(250_000),
            fee: MicroUsdc(45_000),
            share: MicroUsdc(205_000),
        }],
        errors: vec![
            FieldError::new("address", "Must be 0x and 40 hexadecimal digits."),
            FieldError::new("signature", "Must be the signature of the wallet."),
        ],
    }
}

fn top_up(texts: &Texts, way: TopUpWay, packs: u32) -> TopUpPage {
    let mut offer = wallet(texts);
    offer.url = format!("https://sluice.example/paid/credits?operator={ID}");
    TopUpPage {
        chrome: person("/console/money/add", texts, 3),
        credits: credits(),
        pack: MicroUsdc(1_000_000),
        packs,
        way,
        wallet: offer,
    }
}

fn quota(texts: &Texts) -> QuotaPage {
    let share = |agent: Option<&str>, app: Option<&str>, share: u64| EgressShare {
        agent: agent.map(str::to_owned),
        app: app.map(str::to_owned),
        bytes: share << 27,
        share,
    };
    let name = Some(texts.name.as_str());
    QuotaPage {
        chrome: person("/console/quota", texts, 3),
        egress: Allowance {
            used: 19_112_604_467,
            allowed: 20 << 30,
        },
        free_egress: 20 << 30,
        next_month: ahead(8 * DAY_MINUTES),
        ends_about: Some(ahead(3 * DAY_MINUTES)),
        storage: Allowance {
            used: 440_234_567,
            allowed: 20 << 30,
        },
        free_storage: 20 << 30,
        knowledge: Allowance { used: 7, allowed: 10 },
        contributions: Allowance { used: 43, allowed: 200 },
        reviews_wait: Some("Reviews wait for their budget.".to_owned()),
        credits: credits(),
        readers: vec![
            share(name, None, 54),
            share(name, name, 26),
            share(None, name, 17),
            share(None, None, 3),
        ],
        stored: vec![StoredDataset {
            slug: "tide-levels".to_owned(),
            title: texts.text.clone(),
            facts: "private, archived".to_owned(),
            bytes: 406_847_488,
        }],
        more_stored: 3,
        uploading: 25_165_824,
        counts: vec![
            CountLimit {
                label: "Active datasets",
                used: Some(2),
                most: 3,
            },
            CountLimit {
                label: "Calls a minute from one address",
                used: None,
                most: 300,
            },
        ],
        months: vec![
            MonthOfEgress {
                begin: NOW,
                bytes: 19_112_604_467,
            },
            MonthOfEgress {
                begin: ago(40 * DAY_MINUTES),
                bytes: 21_689_584_025,
            },
        ],
        block: 64 << 20,
        egress_block: MicroUsdc(1_250),
        storage_block_day: MicroUsdc(40),
    }
}

pub(super) fn add(book: &mut Book, texts: &Texts) -> Result<(), Error> {
    book.add("console-money", &money(texts))?;
    for (way, packs) in [(TopUpWay::Wallet, 1), (TopUpWay::Phone, 5), (TopUpWay::Agent, 2)] {
        book.add(&format!("console-top-up-{}", way.word()), &top_up(texts, way, packs))?;
    }
    book.add("console-quota", &quota(texts))
}

/// Adds pages of an operator without money.
pub(super) fn add_empty(book: &mut Book) -> Result<(), Error> {
    let texts = Texts::usual();
    book.add(
        "console-money",
        &MoneyPage {
            chrome: person("/console/money", &texts, 0),
            credits: CreditBalance::default(),
            spent: SpentMoney::default(),
            earned: EarnedMoney::default(),
            holds: Vec::new(),
            days: Vec::new(),
            waiting: Vec::new(),
            payout: PayoutView::default(),
            payouts: Vec::new(),
            sales: SalesList::default(),
            spending: SpendingList::default(),
            limits: Vec::new(),
            errors: Vec::new(),
            ..money(&texts)
        },
    )?;
    book.add(
        "console-quota",
        &QuotaPage {
            chrome: person("/console/quota", &texts, 0),
            egress: Allowance::default(),
            ends_about: None,
            storage: Allowance::default(),
            reviews_wait: None,
            credits: CreditBalance::default(),
            readers: Vec::new(),
            stored: Vec::new(),
            more_stored: 0,
            uploading: 0,
            months: Vec::new(),
            ..quota(&texts)
        },
    )
}

//! Samples of the pages of an owner: sales of an item, a unit, the forms of the account, and its end.

use types::money::MicroUsdc;
use types::vocabulary::{LetterTopic, ProjectStatus};
use types::{Timestamp, UnitId};

use super::console::{DAY_MINUTES, ID};
use super::{Book, Texts, ago, ahead, person, visitor};
use crate::console::{
    AccountClosedPage, AccountForms, CloseAccountPage, ConsoleUnitPage, DatasetEditForm, EmailLinkPage, EmailLinkState,
    ItemDay, ItemSales, LetterChoice, OpenMatter, OwnUnit, StateMark, UnitPriceForm, UnitRow,
};
use crate::{Error, FieldError, GrowthPoint, KeptFormPage, VersionContributor};

pub(super) fn add(book: &mut Book, texts: &Texts) -> Result<(), Error> {
    book.add("console-unit", &unit(texts))?;
    book.add(
        "console-unit-retired",
        &ConsoleUnitPage {
            price: None,
            unit: OwnUnit {
                state: ("retired", StateMark::Off),
                retired_at: Some(ago(3 * DAY_MINUTES)),
                latest: None,
                rating: None,
                is_priced: false,
                ..unit(texts).unit
            },
            ..unit(texts)
        },
    )?;
    book.add(
        "kept-form",
        &KeptFormPage {
            chrome: visitor("/console/datasets/tide-levels"),
            action: "/console/datasets/tide-levels".to_owned(),
            page: "/console/datasets/tide-levels".to_owned(),
            fields: vec![
                ("title", texts.text.clone()),
                ("readme", texts.text.clone()),
                ("tags", "tides".to_owned()),
            ],
            label: "Save changes",
        },
    )?;
    for (name, is_stop, state) in [
        ("ready", false, ready(texts)),
        ("stop", true, ready(texts)),
        ("done", false, done(texts)),
        ("stopped", true, done(texts)),
        ("taken", false, EmailLinkState::Taken),
        ("expired", false, EmailLinkState::Expired),
        ("used", true, EmailLinkState::Used),
        ("unknown", true, EmailLinkState::Unknown),
    ] {
        let path = if is_stop { "/verify/email/stop" } else { "/verify/email" };
        let page = EmailLinkPage {
            chrome: visitor(path),
            is_stop,
            state,
        };
        book.add(&format!("email-link-{name}"), &page)?;
    }
    book.add("console-close", &close(texts))?;
    book.add(
        "console-close-open",
        &CloseAccountPage {
            open: vec![OpenMatter {
                what: "2 uploads can still be completed".to_owned(),
                next: "Complete or cancel them, or wait until they end by themselves.",
                href: "/console/datasets",
            }],
            payout: None,
            ..close(texts)
        },
    )?;
    book.add(
        "console-close-stale",
        &CloseAccountPage {
            is_fresh: false,
            ..close(texts)
        },
    )?;
    book.add(
        "account-closed",
        &AccountClosedPage {
            chrome: visitor("/console/settings/close"),
        },
    )
}

fn ready(texts: &Texts) -> EmailLinkState {
    EmailLinkState::Ready {
        token: "dG9rZW4".to_owned(),
        old: texts.email.clone(),
        new: texts.email.clone(),
    }
}

fn done(texts: &Texts) -> EmailLinkState {
    EmailLinkState::Done {
        email: texts.email.clone(),
    }
}

/// Returns sales in every state.
pub(super) fn sales(texts: &Texts) -> ItemSales {
    let counts = [3, 0, 1, 4, 0, 0, 2];
    let days = (0..30_i64).zip(counts.into_iter().cycle()).map(|(at, sales)| ItemDay {
        day: ago((29 - at) * DAY_MINUTES),
        sales,
        readers: sales / 2,
    });
    ItemSales {
        is_sold: true,
        sold: 312,
        sold_lately: 31,
        earned: MicroUsdc(28_420_000),
        readers: 41,
        reader_words: ("other account reads it", "other accounts read it"),
        days: days.collect(),
        rows: super::money::sold(texts),
    }
}

/// Returns a form that was refused, of a dataset that was changed meanwhile.
pub(super) fn edit(texts: &Texts) -> DatasetEditForm {
    DatasetEditForm {
        seen: "83b419ccc5d9ef72d7f35b587261a0f0".to_owned(),
        title: texts.text.clone(),
        readme: texts.text.clone(),
        tags: format!("tides, {}", texts.word),
        price: Some(texts.word.clone()),
        default_price: MicroUsdc(10_000),
        trial: true,
        status: ProjectStatus::Open,
        is_saved: false,
        errors: vec![FieldError::new("price", "Must be dollars from 0 on.")],
        changed: vec![("Title", texts.text.clone()), ("Price", "$0.10".to_owned())],
    }
}

/// Returns the agents that contributed to a dataset.
pub(super) fn contributors(texts: &Texts) -> Vec<VersionContributor> {
    let contributor = |agent: &str, contributions, added| VersionContributor {
        agent: agent.to_owned(),
        contributions,
        added,
    };
    vec![
        contributor("tide-gauge", 1_198, 835_758),
        contributor(&texts.name, 31, 2_604),
    ]
}

/// Returns the rows of a dataset over three days.
pub(super) fn growth() -> Vec<GrowthPoint> {
    let point = |minutes: i64, records| GrowthPoint {
        at: Timestamp::from_micros(ago(minutes).0),
        records,
    };
    vec![
        point(3 * DAY_MINUTES, 735_840),
        point(DAY_MINUTES, 800_000),
        point(12, 839_412),
    ]
}

/// Returns the forms of the account: with an address that waits, or with one that can be taken back.
pub(super) fn forms(texts: &Texts, is_fresh: bool) -> AccountForms {
    let topics = [LetterTopic::Approvals, LetterTopic::BoughtItems, LetterTopic::Reports];
    AccountForms {
        name: texts.name.clone(),
        name_seen: texts.name.clone(),
        email: texts.email.clone(),
        waiting: is_fresh.then(|| (texts.email.clone(), ahead(DAY_MINUTES))),
        settled_at: None,
        is_fresh,
        is_hidden: !is_fresh,
        letters: topics
            .into_iter()
            .map(|topic| LetterChoice {
                topic,
                is_wanted: topic != LetterTopic::BoughtItems,
            })
            .collect(),
    }
}

fn unit(texts: &Texts) -> ConsoleUnitPage {
    let id = UnitId::from_bytes([7; 16]);
    let row = |state: (&'static str, StateMark), total: Option<u64>| UnitRow {
        id: ID.to_owned(),
        title: texts.text.clone(),
        agent: texts.name.clone(),
        state,
        total,
        reason: Some(texts.text.clone()),
        at: ago(90),
    };
    ConsoleUnitPage {
        chrome: person("/console/knowledge/019a", texts, 2),
        unit: OwnUnit {
            id,
            latest: Some(id),
            title: texts.text.clone(),
            category: texts.word.clone(),
            license: "CC-BY-4.0".to_owned(),
            agent: texts.name.clone(),
            state: ("published", StateMark::Ok),
            price: MicroUsdc(250_000),
            is_priced: true,
            score: 81,
            published: 2,
            rating: Some((9, 44)),
            at: ago(20 * DAY_MINUTES),
            retired_at: None,
        },
        price: Some(UnitPriceForm {
            seen: "0.25".to_owned(),
            price: texts.word.clone(),
            default_price: MicroUsdc(10_000),
            window: "24 hours".to_owned(),
            is_saved: false,
            errors: vec![FieldError::new("price", "Must be dollars from 0 on.")],
        }),
        sales: ItemSales {
            reader_words: ("agent of others read it", "agents of others read it"),
            ..sales(texts)
        },
        versions: vec![
            row(("published", StateMark::Ok), Some(81)),
            row(("rejected", StateMark::Bad), None),
        ],
    }
}

fn close(texts: &Texts) -> CloseAccountPage {
    CloseAccountPage {
        chrome: person("/console/settings/close", texts, 0),
        email: texts.email.clone(),
        open: Vec::new(),
        agents: 3,
        credits: MicroUsdc(3_580_000),
        owed: MicroUsdc(12_360_000),
        payout: Some("0x3fa9c5d04e2b7716c0de88b1a45f90c2e6d7481b".to_owned()),
        is_fresh: true,
        typed: texts.word.clone(),
        errors: vec![FieldError::new("confirm", "Must be the address of this account.")],
    }
}

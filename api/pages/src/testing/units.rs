//! Samples of the page of a unit and of the library.

use types::money::MicroUsdc;
use types::unit::UnitScores;
use types::vocabulary::{AppealStatus, MarkKind, ReviewStep, StepOutcome};
use types::{SaleId, Version};

use super::board::discussion;
use super::{Book, Texts, ago, ahead, person, visitor};
use crate::console::{
    LibraryChoice, LibraryContent, LibraryDataset, LibraryItem, LibraryNote, LibraryPage, LibraryPaid, LibraryReader,
    LibraryText, LibraryThing, StateMark,
};
use crate::{
    AgentChoice, Error, FieldError, NearItem, PageLayout, SaidEntry, ScoreView, UnitAppeal, UnitFacts, UnitForms,
    UnitMark, UnitPage, UnitPrice, UnitPurchase, UnitReading, UnitStep, UnitVersion, UnitWords,
};

const ID: &str = "019a8c4e-77b2-7d10-9c55-2f0c1b6a9e34";
const PRICE: MicroUsdc = MicroUsdc(250_000);

pub(super) fn add(book: &mut Book, texts: &Texts) -> Result<(), Error> {
    book.add("unit", &for_sale(texts))?;
    book.add("unit-free", &with_account(texts))?;
    book.add("unit-read", &by_agent(texts, true))?;
    book.add("unit-read-first", &by_agent(texts, false))?;
    book.add("unit-bought", &bought(texts, false))?;
    book.add("unit-mistaken", &bought(texts, true))?;
    book.add("unit-own", &own(texts))?;
    book.add("unit-appealed", &appealed(texts))?;
    book.add("unit-down", &down(texts))?;
    book.add("console-library", &library(texts, Some(reader_of_unit(texts))))?;
    book.add(
        "console-library-dataset",
        &library(texts, Some(reader_of_dataset(texts))),
    )?;
    book.add("console-library-gone", &library(texts, Some(gone(texts))))
}

pub(super) fn add_empty(book: &mut Book) -> Result<(), Error> {
    let texts = Texts::usual();
    let empty = |choice: LibraryChoice| LibraryPage {
        bought: Vec::new(),
        bought_count: 0,
        read: Vec::new(),
        read_count: 0,
        previous: None,
        next: None,
        open: None,
        choice,
        ..library(&texts, None)
    };
    book.add("console-library", &empty(LibraryChoice::default()))?;
    let choice = LibraryChoice {
        q: "nothing".to_owned(),
        ..LibraryChoice::default()
    };
    book.add("console-library-none", &empty(choice))?;
    let facts = UnitFacts {
        sold: 0,
        readers: 0,
        confirmed: 0,
        doubted: 0,
        confirmed_at: None,
        ..facts(&texts, UnitPrice::Free)
    };
    book.add("unit", &UnitPage::open(visitor(&path()), facts, "Short."))
}

fn path() -> String {
    format!("/units/{ID}")
}

fn facts(texts: &Texts, price: UnitPrice) -> UnitFacts {
    UnitFacts {
        id: ID.to_owned(),
        title: texts.text.clone(),
        category: texts.word.clone(),
        license: "platform-standard".to_owned(),
        agent: texts.name.clone(),
        version: Some(3),
        state: ("published", StateMark::Ok),
        reason: None,
        newer: None,
        price,
        is_on_sale: true,
        takes_trial_credit: true,
        sold: 14,
        readers: 29,
        confirmed: 11,
        doubted: 1,
        confirmed_at: Some(ago(4_320)),
        length: 31_620,
        at: ago(18),
        is_own: false,
    }
}

fn markdown(texts: &Texts) -> String {
    let Texts { text, word, .. } = texts;
    format!(
        "It begins.\n\n# {text}\n\nIt says {text}\n\n## What was run\n\n```\n{word}\n```\n\n```rust\nlet a = 1;\n```\n\n\
         | a | b |\n|-|-|\n| {word} | 2 |\n\n## What to do\n\n1. Refuse {text}\n2. Kill it.\n\n- a point\n"
    )
}

const SCORES: UnitScores = UnitScores {
    accuracy: 90,
    novelty: 85,
    reproducibility: 90,
    specificity: 80,
    total: 86,
};

/// Fills what everybody sees of a published version.
fn filled(texts: &Texts, page: UnitPage) -> UnitPage {
    let said = |note: Option<&str>| SaidEntry {
        agent: texts.name.clone(),
        note: note.map(ToOwned::to_owned),
        text: texts.text.clone(),
        at: ago(600),
    };
    let version = |version, state, total, is_here| UnitVersion {
        href: path(),
        version,
        is_here,
        state,
        total,
        at: ago(6_000),
    };
    let mark = |mark, counts| UnitMark {
        agent: texts.name.clone(),
        mark,
        ran: (page.hidden == 0).then(|| texts.text.clone()),
        version: Some(2),
        counts,
        at: ago(4_000),
    };
    let near = |dataset: Option<&str>| NearItem {
        href: path(),
        title: texts.text.clone(),
        dataset: dataset.map(ToOwned::to_owned),
        scores: dataset.is_none().then_some(SCORES),
        rating: dataset.is_none().then_some(45),
        price: if dataset.is_none() {
            UnitPrice::Priced(PRICE)
        } else {
            UnitPrice::Free
        },
    };
    UnitPage {
        source: texts.text.clone(),
        scores: Some(ScoreView {
            scores: SCORES,
            judge: texts.word.clone(),
            is_heuristic: page.hidden > 0,
        }),
        versions: vec![
            version(Some(3), ("published", StateMark::Ok), Some(86), true),
            version(None, ("rejected", StateMark::Bad), None, false),
        ],
        steps: vec![
            step(texts, ReviewStep::PersonalData, StepOutcome::Passed, None),
            step(texts, ReviewStep::Score, StepOutcome::Passed, Some(86)),
        ],
        marks: vec![
            mark(MarkKind::Confirmed, true),
            mark(MarkKind::Stale, true),
            mark(MarkKind::Incorrect, false),
        ],
        rating: Some((46, 11)),
        histogram: [0, 0, 1, 2, 8],
        ratings: vec![said(Some("5 of 5"))],
        ratings_next: Some(format!("/units/{ID}?ratings=1.{ID}#h-r")),
        discussion: discussion(texts),
        near: vec![near(None), near(Some("dataset, 9,600 rows"))],
        account: Some((super::accounts::ACCOUNT, texts.name.clone())),
        request: format!("curl -s https://sluice.example/knowledge/{ID}/full -H \"Authorization: Bearer $SLUICE_KEY\""),
        ..page
    }
}

fn step(texts: &Texts, step: ReviewStep, outcome: StepOutcome, total: Option<u8>) -> UnitStep {
    UnitStep {
        step,
        outcome,
        total,
        detail: texts.text.clone(),
        judge: total.map(|_| texts.word.clone()),
        at: ago(20),
    }
}

fn for_sale(texts: &Texts) -> UnitPage {
    let facts = facts(texts, UnitPrice::Priced(PRICE));
    filled(texts, UnitPage::closed(visitor(&path()), facts, &markdown(texts), 20))
}

fn with_account(texts: &Texts) -> UnitPage {
    let facts = UnitFacts {
        newer: Some(path()),
        ..facts(texts, UnitPrice::WithAccount(MicroUsdc(10_000)))
    };
    let page = UnitPage::closed(visitor(&path()), facts, &markdown(texts), 5);
    UnitPage {
        reading: UnitReading::WithAccount(format!("/signin?next={}", path())),
        ..filled(texts, page)
    }
}

fn agents(texts: &Texts, count: usize) -> Vec<AgentChoice> {
    let agent = |number: usize| AgentChoice {
        id: format!("{number}{ID}"),
        name: texts.name.clone(),
        description: None,
    };
    (0..count).map(agent).collect()
}

fn by_agent(texts: &Texts, has_agents: bool) -> UnitPage {
    let facts = facts(texts, UnitPrice::WithAccount(MicroUsdc(10_000)));
    let page = UnitPage::closed(signed_in(texts), facts, &markdown(texts), 20);
    let errors = vec![FieldError::new("name", "Must have 1 to 60 letters.")];
    UnitPage {
        reading: UnitReading::ByAgent,
        forms: UnitForms {
            agents: agents(texts, if has_agents { 2 } else { 0 }),
            reads: true,
            errors: if has_agents { Vec::new() } else { errors },
            ..UnitForms::default()
        },
        ..filled(texts, page)
    }
}

fn signed_in(texts: &Texts) -> PageLayout {
    person(&path(), texts, 0)
}

fn bought(texts: &Texts, is_mistaken: bool) -> UnitPage {
    let facts = facts(texts, UnitPrice::Priced(PRICE));
    let words = UnitWords {
        mark: "stale".to_owned(),
        ran: texts.text.clone(),
        rating: "4".to_owned(),
        comment: texts.text.clone(),
        ..UnitWords::default()
    };
    let errors = ["mark", "ran", "rating", "comment", ""].map(|field| FieldError::new(field, "Must be otherwise."));
    UnitPage {
        purchase: Some(UnitPurchase {
            sale: SaleId::from_bytes([8; 16]),
            agent: Some(texts.name.clone()),
            price: PRICE,
            at: ago(90),
        }),
        forms: UnitForms {
            agents: agents(texts, if is_mistaken { 2 } else { 1 }),
            marks: true,
            rates: true,
            words: if is_mistaken { words } else { UnitWords::default() },
            errors: if is_mistaken { errors.into() } else { Vec::new() },
            done: (!is_mistaken).then_some("Rated by your agent."),
            ..UnitForms::default()
        },
        ..filled(texts, UnitPage::open(signed_in(texts), facts, &markdown(texts)))
    }
}

fn own(texts: &Texts) -> UnitPage {
    let facts = UnitFacts {
        version: None,
        state: ("rejected", StateMark::Bad),
        reason: Some(texts.text.clone()),
        is_own: true,
        ..facts(texts, UnitPrice::Priced(PRICE))
    };
    UnitPage {
        steps: vec![step(texts, ReviewStep::Score, StepOutcome::Refused, Some(51))],
        forms: UnitForms {
            agents: agents(texts, 1),
            appeals: true,
            ..UnitForms::default()
        },
        ..filled(texts, UnitPage::open(signed_in(texts), facts, &markdown(texts)))
    }
}

fn appealed(texts: &Texts) -> UnitPage {
    UnitPage {
        appeal: Some(UnitAppeal {
            status: AppealStatus::Denied,
            verdict: Some(texts.text.clone()),
            at: ago(300),
            decided_at: Some(ago(200)),
        }),
        forms: UnitForms::default(),
        ..own(texts)
    }
}

fn down(texts: &Texts) -> UnitPage {
    let facts = UnitFacts {
        state: ("taken down", StateMark::Bad),
        reason: Some(texts.text.clone()),
        is_own: true,
        ..facts(texts, UnitPrice::Priced(PRICE))
    };
    UnitPage::hidden(signed_in(texts), facts)
}

fn library(texts: &Texts, open: Option<LibraryReader>) -> LibraryPage {
    let item = |thing, note, price| LibraryItem {
        href: "/console/library?item=unit%3A1".to_owned(),
        is_open: note == LibraryNote::None,
        title: texts.text.clone(),
        thing,
        agent: Some(texts.name.clone()),
        price,
        at: ago(900),
        note,
    };
    LibraryPage {
        chrome: person("/console/library", texts, 0),
        account: texts.name.clone(),
        choice: LibraryChoice {
            q: texts.text.chars().take(200).collect(),
            sort: "title".to_owned(),
            ..LibraryChoice::default()
        },
        bought: vec![
            item(LibraryThing::Unit(Some(3)), LibraryNote::None, Some(PRICE)),
            item(
                LibraryThing::Dataset(Version(62)),
                LibraryNote::Newer(Version(63)),
                Some(PRICE),
            ),
            item(LibraryThing::Unit(Some(2)), LibraryNote::Doubted(2), Some(PRICE)),
            LibraryItem {
                title: String::new(),
                ..item(LibraryThing::Dataset(Version(2)), LibraryNote::Hidden, Some(PRICE))
            },
        ],
        bought_count: 18,
        read: vec![item(LibraryThing::Unit(None), LibraryNote::Doubted(1), None)],
        read_count: 31,
        previous: Some("/console/library?page=1".to_owned()),
        next: Some("/console/library?page=3".to_owned()),
        open,
    }
}

fn paid(texts: &Texts) -> LibraryPaid {
    LibraryPaid {
        sale: SaleId::from_bytes([8; 16]),
        price: PRICE,
        means: "trial credit",
        agent: Some(texts.name.clone()),
        at: ago(900),
        disputed_until: Some(ahead(9_000)),
    }
}

fn reader(texts: &Texts, content: LibraryContent) -> LibraryReader {
    LibraryReader {
        href: path(),
        title: texts.text.clone(),
        agent: Some(texts.name.clone()),
        license: "platform-standard".to_owned(),
        paid: Some(paid(texts)),
        content,
    }
}

fn reader_of_unit(texts: &Texts) -> LibraryReader {
    let mut text = LibraryText::of(&markdown(texts), &person("/console/library", texts, 0));
    text.source.clone_from(&texts.text);
    text.score = Some(86);
    text.confirmed = 11;
    text.doubted = 1;
    reader(texts, LibraryContent::Unit(text))
}

fn reader_of_dataset(texts: &Texts) -> LibraryReader {
    let dataset = LibraryDataset {
        slug: "tide-levels".to_owned(),
        version: Version(62),
        newest: Version(63),
        records: Some(18_000),
        newest_records: 18_240,
        price: PRICE,
    };
    reader(texts, LibraryContent::Dataset(dataset))
}

fn gone(texts: &Texts) -> LibraryReader {
    let closed = LibraryContent::Closed("It is taken down or deleted. Your receipt stays.");
    LibraryReader {
        title: String::new(),
        license: String::new(),
        ..reader(texts, closed)
    }
}

//! Samples of the public pages of accounts, agents and collectors, and of items that are gone.

use types::money::MicroUsdc;
use types::{OperatorId, Timestamp};

use super::{Book, NOW, Texts, ago, ahead, person, visitor};
use crate::console::{CollectorRunRow, CollectorState};
use crate::{
    AgentPage, CollectorPage, Error, FeedRow, GoneEnd, GonePage, GoneThing, Instant, ProfileAgent, ProfileItem,
    ProfilePage, PublicCollector, PublicCollectorsPage, RunBar,
};

/// Id of an account.
pub(super) const ACCOUNT: OperatorId = OperatorId::from_bytes([8; 16]);

fn time(at: Instant) -> Timestamp {
    Timestamp::from_micros(at.0)
}

pub(super) fn add(book: &mut Book, texts: &Texts) -> Result<(), Error> {
    book.add("agent", &agent(texts, false))?;
    book.add("agent-removed", &agent(texts, true))?;
    book.add("account", &account(texts, true))?;
    book.add("account-hidden", &account(texts, false))?;
    book.add(
        "collectors",
        &PublicCollectorsPage {
            chrome: visitor("/collectors"),
            rows: vec![
                collector(texts, 0, false),
                collector(texts, 3, false),
                collector(texts, 0, true),
            ],
            new_rows: 1_204,
        },
    )?;
    book.add(
        "collector",
        &CollectorPage {
            chrome: person("/collectors/ecb", texts, 0),
            collector: collector(texts, 2, false),
            runs: vec![run(texts, CollectorState::Failed), run(texts, CollectorState::Merged)],
        },
    )?;
    for (name, thing, end) in [
        ("gone-dataset", GoneThing::Dataset, GoneEnd::TakenDown),
        ("gone-request", GoneThing::Request, GoneEnd::TakenDown),
        ("gone-retired", GoneThing::Unit, GoneEnd::Withdrawn),
        ("gone-erased", GoneThing::Unit, GoneEnd::Erased),
        ("gone-agent", GoneThing::Agent, GoneEnd::TakenDown),
    ] {
        let page = GonePage {
            chrome: visitor("/projects/tide-levels"),
            thing,
            end,
            at: time(ago(30_000)),
            json: "{\n  \"error\": \"not_found\"\n}".to_owned(),
        };
        book.add(name, &page)?;
    }
    Ok(())
}

pub(super) fn add_empty(book: &mut Book) -> Result<(), Error> {
    let texts = Texts::usual();
    let agent = AgentPage {
        description: None,
        removed_at: None,
        rows: 0,
        datasets: 0,
        units: 0,
        sales: 0,
        points: -5,
        rank: None,
        rating: None,
        batches: (0, 0),
        days: Vec::new(),
        items: Vec::new(),
        lately: Vec::new(),
        ..agent(&texts, false)
    };
    book.add("agent", &agent)?;
    let account = ProfilePage {
        agents: Vec::new(),
        rating: None,
        disputes: (0, 0),
        takedowns: 0,
        items: Vec::new(),
        ..account(&texts, true)
    };
    book.add("account", &account)?;
    let none = PublicCollectorsPage {
        chrome: visitor("/collectors"),
        rows: Vec::new(),
        new_rows: 0,
    };
    book.add("collectors", &none)?;
    let unrun = CollectorPage {
        chrome: visitor("/collectors/ecb"),
        collector: PublicCollector {
            schedule: "@hourly".to_owned(),
            runs: Vec::new(),
            last_good: None,
            rows: None,
            ..collector(&texts, 0, false)
        },
        runs: Vec::new(),
    };
    book.add("collector", &unrun)
}

fn items(texts: &Texts) -> Vec<ProfileItem> {
    let item = |is_dataset: bool, price: Option<i64>, figure: Option<u64>| ProfileItem {
        href: if is_dataset {
            "/projects/tide-levels".to_owned()
        } else {
            "/units/09090909-0909-0909-0909-090909090909".to_owned()
        },
        title: texts.text.clone(),
        is_dataset,
        figure,
        sold: 61,
        updated_at: Some(time(ago(12))),
        price: price.map(MicroUsdc),
        is_locked: price.is_some_and(|price| price > 10_000),
    };
    vec![
        item(true, Some(100_000), Some(839_412)),
        item(true, None, Some(0)),
        item(false, Some(50_000), Some(81)),
        item(false, Some(10_000), None),
    ]
}

fn agent(texts: &Texts, is_removed: bool) -> AgentPage {
    let row = |word, version: Option<u64>| FeedRow {
        word,
        title: texts.text.clone(),
        href: Some("/projects/tide-levels".to_owned()),
        version,
        since: version.map(|version| version.saturating_sub(4)),
        agent: Some(texts.name.clone()),
        records: version.map(|_| 84),
        at: ago(12),
    };
    AgentPage {
        chrome: visitor("/agents/mooring-3"),
        name: texts.name.clone(),
        description: Some(texts.text.clone()),
        operator: ACCOUNT,
        account: (!is_removed).then(|| texts.name.clone()),
        since: time(ago(60 * 24 * 52)),
        removed_at: is_removed.then(|| time(ago(60))),
        rows: 822_108,
        datasets: 2,
        units: 2,
        sales: 75,
        points: 18_356,
        rank: Some(1),
        rating: Some((45, 19)),
        batches: (1_036, 1_041),
        days: (0..30)
            .map(|day| {
                let at = Timestamp::from_micros(NOW.0 - (29 - day) * 86_400_000_000);
                (at, if day % 7 == 3 { 0 } else { 2_016 })
            })
            .collect(),
        items: items(texts),
        lately: vec![row("merged", Some(1_242)), row("answered", None)],
    }
}

fn account(texts: &Texts, is_named: bool) -> ProfilePage {
    let agent = |description: Option<String>| ProfileAgent {
        name: texts.name.clone(),
        description,
        rows: 15_372,
        units: 3,
        sales: 4,
    };
    ProfilePage {
        chrome: visitor("/operators/08080808-0808-0808-0808-080808080808"),
        id: ACCOUNT,
        name: is_named.then(|| texts.name.clone()),
        since: time(ago(60 * 24 * 52)),
        is_wallet_proved: is_named,
        agents: vec![agent(Some(texts.text.clone())), agent(None)],
        datasets: 2,
        units: 5,
        sales: 96,
        rating: Some((44, 31)),
        disputes: (0, 1),
        takedowns: 2,
        items: items(texts),
    }
}

fn collector(texts: &Texts, failures: u32, is_late: bool) -> PublicCollector {
    PublicCollector {
        name: texts.word.clone(),
        dataset: "euro-rates".to_owned(),
        title: texts.text.clone(),
        publisher: texts.name.clone(),
        license: "CC-BY-4.0".to_owned(),
        schedule: "7 6,18 * * *".to_owned(),
        failures,
        is_late,
        next_at: time(ahead(200)),
        runs: (0..20)
            .map(|place| RunBar {
                new: if place % 2 == 0 { 31 } else { 0 },
                is_failed: failures > 0 && place > 16,
            })
            .collect(),
        last_good: Some((time(ago(41)), 31)),
        rows: Some(9_214),
        reason: (failures > 0).then(|| texts.text.clone()),
    }
}

fn run(texts: &Texts, state: CollectorState) -> CollectorRunRow {
    CollectorRunRow {
        collector: texts.word.clone(),
        state,
        at: ago(41),
        millis: Some(1_250),
        fetched: 31,
        new: 31,
        known: 0,
        refused: 0,
        version: (state == CollectorState::Merged).then_some(418),
        reason: (state == CollectorState::Failed).then(|| texts.text.clone()),
    }
}

//! Samples of the front page of the console.

use types::ApprovalId;
use types::money::MicroUsdc;

use super::console::{DAY_MINUTES, ID, activity, flow};
use super::money::{earned, sales_days};
use super::{Book, NOW, Texts, ago, ahead, checkout, person};
use crate::console::{Attention, EarnedMoney, EventGroup, FirstSteps, GoodToKnow, OverviewPage, SpentMoney};
use crate::{Allowance, CreditBalance, DayCount, Error, RowFlow};

fn days() -> Vec<DayCount> {
    let counts = [42, 51, 38, 0, 44, 47, 12, 39, 61, 55, 40, 48, 52, 21];
    let day = |(at, merged): (i64, u64)| DayCount {
        day: ago((13 - at) * DAY_MINUTES),
        merged,
        waiting: merged / 13,
        rejected: merged / 7,
    };
    (0_i64..).zip(counts).map(day).collect()
}

fn overview(texts: &Texts) -> OverviewPage {
    let egress = Allowance {
        used: 19_112_604_467,
        allowed: 20 << 30,
    };
    OverviewPage {
        chrome: person("/console", texts, 5),
        operator: texts.name.clone(),
        since: ago(52 * DAY_MINUTES),
        attention: vec![
            Attention::claim(&texts.name, ago(166), ahead(21 * 60)),
            Attention::approval(
                ApprovalId::from_bytes([5; 16]),
                &texts.name,
                &texts.text,
                MicroUsdc(2_500_000),
                ago(128),
                ahead(1_312),
            ),
            Attention::payout(MicroUsdc(2_060_000), NOW),
            Attention::takedown(&texts.text, "copyright", ago(1_700)),
            Attention::dead(ID, "sea-surface-temp", ago(240)),
            Attention::reports(3, 1, ago(600)),
            Attention::letter("the server refused the address", ago(40)),
        ],
        also: vec![
            GoodToKnow::held(ID, &texts.word, 500, Some(ahead(70))),
            GoodToKnow::held(ID, &texts.word, 84, None),
            GoodToKnow::downloads(&egress),
            GoodToKnow::request(ID, &texts.text),
        ],
        steps: None,
        credits: checkout::credits(),
        spent: SpentMoney {
            purchases: 4,
            sum: MicroUsdc(1_760_000),
        },
        earned: earned(),
        egress,
        storage: Allowance {
            used: 440_234_567,
            allowed: 20 << 30,
        },
        contributions: Allowance { used: 43, allowed: 200 },
        points: 21_296,
        agents: Allowance { used: 3, allowed: 5 },
        datasets: 2,
        records: 1_281_430,
        flow: flow(texts),
        days: days(),
        sales: sales_days(14),
        events: EventGroup::of(activity(texts), 12),
    }
}

pub(super) fn add(book: &mut Book, texts: &Texts) -> Result<(), Error> {
    book.add("console-overview", &overview(texts))?;
    let steps = FirstSteps {
        confirmed_at: Some(ago(52 * DAY_MINUTES)),
        has_agent: true,
        has_item: false,
        has_address: false,
    };
    book.add(
        "console-overview-steps",
        &OverviewPage {
            steps: Some(steps),
            ..overview(texts)
        },
    )
}

/// Adds the page of a person who has just come.
pub(super) fn add_empty(book: &mut Book) -> Result<(), Error> {
    let texts = Texts::usual();
    let days = days().into_iter().map(|day| DayCount {
        merged: 0,
        waiting: 0,
        rejected: 0,
        ..day
    });
    let steps = FirstSteps {
        confirmed_at: Some(ago(9)),
        has_agent: false,
        has_item: false,
        has_address: false,
    };
    book.add(
        "console-overview",
        &OverviewPage {
            chrome: person("/console", &texts, 0),
            attention: Vec::new(),
            also: Vec::new(),
            steps: Some(steps),
            credits: CreditBalance {
                bought: MicroUsdc(0),
                given: MicroUsdc(500_000),
            },
            spent: SpentMoney::default(),
            earned: EarnedMoney::default(),
            points: 0,
            agents: Allowance { used: 0, allowed: 5 },
            datasets: 0,
            records: 0,
            flow: RowFlow::default(),
            days: days.collect(),
            sales: Vec::new(),
            events: Vec::new(),
            ..overview(&texts)
        },
    )
}

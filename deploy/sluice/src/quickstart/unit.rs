//! The steps with knowledge: a unit is submitted, reviewed, found and bought.
//!
//! Invariant: as in the rest of the quickstart, every step uses the public interface.

use std::time::Duration;

use anyhow::{Context as _, bail};
use client::Client;
use client::model::{Hits, NewAgent, NewUnit, Unit};
use store::NewGrant;
use types::money::MicroUsdc;
use types::{Classify as _, Kind, LedgerEventId};

use super::report::{head, item};
use super::{MAX_OUTCOME_REQUESTS, QuickstartStage, WAIT_SECONDS};
use crate::admin;
use crate::assemble::RunningService;
use crate::config::Config;
use crate::money;

/// Counts of the characters that do not come back from a change of case, which the review publishes.
const MEASURED_UNIT: &str = include_str!("../../data/unit.md");
/// Sentences that it does not.
const VAGUE_UNIT: &str =
    "Unicode is very important. Always handle text well, and remember that good software respects every language.";
/// Most searches for the unit in one way.
const MAX_SEARCHES: usize = 100;
/// Wait between two of them.
const SEARCH_INTERVAL: Duration = Duration::from_millis(200);
/// Dollars that the unit costs.
const UNIT_PRICE_USD: &str = "0.25";
/// Credits that the buyer is granted, in micro-USDC.
const GRANTED_MICRO_USDC: i64 = 250_000;
/// Words of the search. The unit has other forms of them.
const SEARCH_WORDS: &str = "fold identifier";
/// A question in another language: characters whose case mapping does not come back.
const KOREAN_WORDS: &str = "대소문자 변환이 되돌아오지 않는 문자";

/// Runs the steps and prints their results.
pub(super) async fn show(running: &RunningService, config: &Config, stage: &QuickstartStage) -> anyhow::Result<()> {
    head(
        "A knowledge unit is submitted, reviewed, found by other words and in another language, bought with credits and read:",
    )?;
    // A quickstart in the same folder before this one published the text, which is a copy now.
    let title = "Simple case mappings of Unicode 15.0 that do not come back: 37 characters";
    let good = reviewed(&stage.client, &unit(title, MEASURED_UNIT)).await?;
    item("a measured text", &told(&good))?;
    let bad = reviewed(&stage.client, &unit("Thoughts on Unicode", VAGUE_UNIT)).await?;
    item("a vague text", &told(&bad))?;
    if bad.status != "rejected" {
        bail!("the review published a vague text");
    }
    if good.status != "published" {
        return Ok(());
    }
    for (what, words) in [("searched", SEARCH_WORDS), ("asked in Korean", KOREAN_WORDS)] {
        let (found, place) = found(&stage.client, words, &good.id).await?;
        item(
            what,
            &format!("`{words}`: {} found, the unit is number {place}", found.total),
        )?;
    }

    let buyer = buyer(running, config, stage).await?;
    let refused = buyer.unit_full(&good.id).await;
    match refused {
        Err(error) if error.kind() == Kind::PaymentRequired => {
            item("read without paying", &format!("refused: {error}"))?;
        }
        other => bail!("a priced unit was not refused: {other:?}"),
    }
    let bought = buyer.unit_buy(&good.id).await?;
    item(
        "bought",
        &format!(
            "for ${UNIT_PRICE_USD} of credits in test USDC, sale {}",
            bought.sale_id.unwrap_or_default()
        ),
    )?;
    let full = buyer.unit_full(&good.id).await?;
    item(
        "read",
        &format!("{} bytes, the text that was submitted", full.body.len()),
    )?;
    if full.body != MEASURED_UNIT {
        bail!("the text that was bought is another than the one submitted");
    }
    let (base, id) = (&stage.base, &good.id);
    let wallet =
        format!("{base}/test-usdc gives it test USDC, and {base}/paid/knowledge?id={id} sells the unit to a browser");
    item("with a wallet", &wallet)?;
    Ok(())
}

/// Searches until the index has the unit and its vectors, which takes about a second. Returns the results and the place of the unit.
async fn found(client: &Client, words: &str, id: &str) -> anyhow::Result<(Hits, usize)> {
    for _ in 0..MAX_SEARCHES {
        // The index may not be built yet.
        if let Some(found) = client.search(words).await.ok()
            && let Some(place) = found.items.iter().position(|hit| hit.id.as_deref() == Some(id))
        {
            return Ok((found, place + 1));
        }
        tokio::time::sleep(SEARCH_INTERVAL).await;
    }
    bail!("the search does not find the unit")
}

fn unit(title: &str, body: &str) -> NewUnit {
    NewUnit {
        title: title.to_owned(),
        body: body.to_owned(),
        category: "text-processing".to_owned(),
        source_declaration:
            "Counted on 2026-11-24 in UnicodeData.txt of Unicode 15.0, from Debian's unicode-data 15.0.0-1.".to_owned(),
        price: Some(UNIT_PRICE_USD.to_owned()),
    }
}

/// Submits a unit and waits for the end of its review.
async fn reviewed(client: &Client, unit: &NewUnit) -> anyhow::Result<Unit> {
    let mut made = client.unit_submit(unit).await?;
    for _ in 0..MAX_OUTCOME_REQUESTS {
        made = client.unit(&made.id, WAIT_SECONDS).await?;
        if made.is_decided() {
            return Ok(made);
        }
    }
    Err(anyhow::anyhow!("{made:?}")).context("a unit has no outcome")
}

/// Returns a sentence about a review: its status, its scores, and what its last step says.
fn told(unit: &Unit) -> String {
    let scores = unit.scores.as_ref().map_or_else(String::new, |scores| {
        format!(
            ", {} of 100 (accuracy {}, novelty {}, reproducibility {}, specificity {})",
            scores.total, scores.accuracy, scores.novelty, scores.reproducibility, scores.specificity
        )
    });
    let last = unit.validations.last().map_or("", |step| step.detail.as_str());
    format!("{}{scores}: {last}", unit.status)
}

/// Returns a client of an agent of another operator, which has credits for the unit.
async fn buyer(running: &RunningService, config: &Config, stage: &QuickstartStage) -> anyhow::Result<Client> {
    let store = running.store().context("the service has no database")?;
    let (clock, name) = (running.clock(), format!("reader-of-{}", stage.agent.name));
    let added = admin::operator_add(store, clock, config, &format!("{name}@example.org"), "Reader").await?;
    let operator = added.context("the reader is there already")?;
    let new = NewAgent {
        name,
        wallet_address: None,
    };
    let agent = Client::new(&stage.base, operator.token)?.agent_create(&new).await?;
    let now = clock.now();
    let event = LedgerEventId::new(now);
    let new = NewGrant {
        event,
        asset: config.tariff().asset,
        operator: operator.operator_id.parse()?,
        amount: MicroUsdc(GRANTED_MICRO_USDC),
        given: false,
        reference: event.to_string(),
        now,
    };
    money::grant(store, new).await?;
    Ok(Client::new(&stage.base, agent.key)?)
}

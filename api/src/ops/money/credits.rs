//! Credits of an operator: balance, prices, journal.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use store::{Entry, EntryCursor, EntryFilter};

use crate::call::answer::JsonReply;
use crate::call::cx::Cx;
use crate::error::ApiError;
use crate::rules::spending::{self, CallerLimits};

/// Movements of a page without `limit`.
const DEFAULT_ENTRIES: u32 = 50;

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct CreditsQuery {
    /// Position in the journal, from the page before.
    cursor: Option<String>,
    /// Greatest number of movements.
    #[schemars(range(min = 1, max = 200))]
    limit: Option<u32>,
}

/// Credits of an operator.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "Credits")]
#[serde(rename_all = "camelCase")]
pub(super) struct OperatorCredits {
    /// Nature of the money.
    asset: &'static str,
    /// All credits, in micro-USDC.
    balance_micro: i64,
    /// Bought credits, in micro-USDC.
    bought_micro: i64,
    /// Given credits, which pay trial sales only.
    given_micro: i64,
    /// Prices of what credits pay for.
    prices: PlatformPrices,
    /// Address that sells a pack of credits by x402.
    top_up: String,
    /// Limits of the calling agent, and of the app that acts as it.
    limits: Option<CallerLimits>,
    /// Page of movements, newest first.
    ledger: JournalPage,
}

/// Prices of the platform, in micro-USDC.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "Prices")]
struct PlatformPrices {
    /// Price and content of a pack.
    #[serde(rename = "packMicro")]
    pack: i64,
    /// Price of 64 MiB of egress beyond the free bytes.
    #[serde(rename = "egressMicroPer64MiB")]
    egress: i64,
    /// Price of 64 MiB of storage for a day, beyond the free bytes.
    #[serde(rename = "storageMicroPer64MiBDay")]
    storage: i64,
}

/// Page of the journal.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "Ledger")]
#[serde(rename_all = "camelCase")]
struct JournalPage {
    items: Vec<CreditMovement>,
    /// Position of the next page; absent on the last.
    #[serde(skip_serializing_if = "Option::is_none")]
    next_cursor: Option<String>,
    /// Time before which movements are archived and not listed; absent if none is.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("format" = "date-time"))]
    archived_before: Option<String>,
}

/// Entry of the ledger of credits.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "Movement")]
#[serde(rename_all = "camelCase")]
struct CreditMovement {
    /// Time of the event.
    #[schemars(extend("format" = "date-time"))]
    at: String,
    /// Kind of the event.
    kind: &'static str,
    /// Change of the balance, in micro-USDC.
    amount_micro: i64,
    /// Balance of the account after it.
    balance_micro: i64,
    /// Account: `credits` are bought, `given` are given.
    account: &'static str,
    /// Item, sale or reference of the event.
    item: String,
    /// Agent that acted; null if none did.
    agent: Option<String>,
}

pub(super) async fn credits(cx: Cx, input: CreditsQuery) -> Result<JsonReply<OperatorCredits>, ApiError> {
    let cursor = match &input.cursor {
        None => EntryCursor::NEWEST,
        Some(text) => text
            .parse()
            .map_err(|_error| ApiError::invalid("/cursor", "must be the `nextCursor` of a page"))?,
    };
    let (operator, tariff, money) = (cx.the_operator()?, &cx.app.pay, cx.app.store.money());
    let balances = money.balances(&tariff.asset, operator).await?;
    let limit = input.limit.unwrap_or(DEFAULT_ENTRIES);
    let (entries, next) = money
        .journal(&tariff.asset, operator, EntryFilter::default(), cursor, limit)
        .await?;
    let archived = money.archived_before(&tariff.asset, operator).await?;
    Ok(JsonReply::ok(OperatorCredits {
        asset: "test USDC",
        balance_micro: balances.credits.0.saturating_add(balances.given.0),
        bought_micro: balances.credits.0,
        given_micro: balances.given.0,
        prices: PlatformPrices {
            pack: tariff.pack.0,
            egress: tariff.egress_block.0,
            storage: tariff.storage_block_day.0,
        },
        top_up: cx.app.config.top_up(operator),
        limits: spending::limits_of(&cx).await?,
        ledger: JournalPage {
            items: entries.into_iter().map(movement).collect(),
            next_cursor: next.map(|next| next.to_string()),
            archived_before: archived.map(|at| at.to_string()),
        },
    }))
}

fn movement(entry: Entry) -> CreditMovement {
    CreditMovement {
        at: entry.at.to_string(),
        kind: entry.kind.as_str(),
        amount_micro: entry.amount.0,
        balance_micro: entry.after.0,
        account: entry.account.as_str(),
        item: entry.subject,
        // Events of the service itself have no actor.
        agent: Some(entry.actor).filter(|agent| !agent.is_empty()),
    }
}

//! Earnings of an operator.

use schemars::JsonSchema;
use serde::Serialize;
use store::{Sale, SaleState};
use types::vocabulary::ItemKind;

use crate::call::answer::JsonReply;
use crate::call::cx::Cx;
use crate::call::wire::NoInput;
use crate::error::ApiError;

/// Sales that an answer lists at most, in each state.
const LISTED: u32 = 100;

/// Test USDC from sales, in micro-USDC.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "Earnings")]
#[serde(rename_all = "camelCase")]
pub(super) struct OperatorEarnings {
    /// Share of sales whose window is over, not yet paid out.
    payable_micro: i64,
    /// Shares within the dispute window.
    on_hold: OnHold,
    /// Shares of sales under dispute.
    disputed: DisputedShares,
    /// Payout that is on its way.
    payout_pending_micro: i64,
    /// Sum of the payouts that were paid.
    paid_micro: i64,
    /// Address that payouts go to; null without one.
    payout_address: Option<PayoutAddress>,
}

/// Shares within the dispute window.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct OnHold {
    /// Sum of the shares.
    total_micro: i64,
    /// Time at which the first share is payable.
    #[schemars(extend("format" = "date-time"))]
    next_release_at: Option<String>,
    /// Time at which the last share is payable.
    #[schemars(extend("format" = "date-time"))]
    last_release_at: Option<String>,
    /// The first hundred sales.
    items: Vec<WaitingSale>,
}

/// Shares of sales under dispute.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "Disputed")]
#[serde(rename_all = "camelCase")]
struct DisputedShares {
    /// Sum of the shares.
    total_micro: i64,
    /// The first hundred sales.
    items: Vec<WaitingSale>,
}

/// Sale whose share waits.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "Sold")]
#[serde(rename_all = "camelCase")]
struct WaitingSale {
    /// Id of the sale.
    sale_id: String,
    /// Kind of the item.
    kind: ItemKind,
    /// Id of the unit or the dataset.
    item: String,
    /// Share of the seller.
    share_micro: i64,
    /// Time at which the dispute window ends.
    #[schemars(extend("format" = "date-time"))]
    release_at: String,
}

/// Address that payouts go to.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct PayoutAddress {
    /// Address in force, or the one that comes into force.
    address: String,
    /// Time from which payouts go to it; absent for the address in force.
    #[schemars(extend("format" = "date-time"))]
    #[serde(skip_serializing_if = "Option::is_none")]
    active_from: Option<String>,
    /// True if the wallet proved itself by a signature.
    proved: bool,
}

pub(super) async fn earnings(cx: Cx, _: NoInput) -> Result<JsonReply<OperatorEarnings>, ApiError> {
    let (operator, asset, money) = (cx.the_operator()?, &cx.app.pay.asset, cx.app.store.money());
    let balances = money.balances(asset, operator).await?;
    let held = money.sales_of(asset, operator, SaleState::Held, LISTED).await?;
    let disputed = money.sales_of(asset, operator, SaleState::Disputed, LISTED).await?;
    let payout = cx.app.store.accounts().payout(operator, cx.now).await?;
    // The address in force comes first. One that waits is shown only where there is no other, with its
    // time.
    let (address, active_from) = match (payout.address, payout.next) {
        (Some(address), _) => (Some(address), None),
        (None, Some((address, at))) => (Some(address), Some(at.to_string())),
        (None, None) => (None, None),
    };
    Ok(JsonReply::ok(OperatorEarnings {
        payable_micro: balances.payable.0,
        on_hold: OnHold {
            total_micro: balances.held.0,
            next_release_at: held.first_release.map(|at| at.to_string()),
            last_release_at: held.last_release.map(|at| at.to_string()),
            items: held.sales.into_iter().map(sold).collect(),
        },
        disputed: DisputedShares {
            total_micro: balances.disputed.0,
            items: disputed.sales.into_iter().map(sold).collect(),
        },
        payout_pending_micro: balances.payout_pending.0,
        paid_micro: money.paid_out(asset, operator).await?.0,
        payout_address: address.map(|address| PayoutAddress {
            address,
            active_from,
            proved: payout.proved_at.is_some(),
        }),
    }))
}

fn sold(sale: Sale) -> WaitingSale {
    WaitingSale {
        sale_id: sale.id.to_string(),
        kind: sale.kind,
        item: sale.item,
        share_micro: sale.share.0,
        release_at: sale.release_at.to_string(),
    }
}

//! Prices of the platform, for everybody.
//!
//! Invariant: the examples of the fee come from the function that splits sales.

use pay::Tariff;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Value, json};
use types::money::MicroUsdc;

use crate::call::answer::JsonReply;
use crate::call::cx::Cx;
use crate::call::wire::NoInput;
use crate::error::ApiError;

/// Prices whose fee is shown.
pub(in crate::ops) const EXAMPLES: [i64; 8] = [
    10_000,
    100_000,
    250_000,
    500_000,
    1_000_000,
    10_000_000,
    100_000_000,
    1_000_000_000,
];

/// Prices, fees and free figures. Amounts are in micro-USDC.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "Pricing")]
#[serde(rename_all = "camelCase")]
pub(super) struct PlatformPricing {
    /// Unit of the amounts.
    unit: &'static str,
    /// Prices of items without a price of their own.
    defaults: Value,
    /// Least price that is not free.
    minimum: i64,
    /// Brackets of the platform's fee, with examples.
    fee: PlatformFee,
    /// Threshold of payouts, and the days after a sale before its share is payable.
    payout: Value,
    /// Storage and egress that cost nothing.
    free_tier: Value,
    /// Prices of a pack of credits, of egress and of storage.
    credits: Value,
    /// Credits that the platform gives, for trial sales only.
    given: Value,
    /// Nature of the money.
    notice: &'static str,
}

/// Fee of the platform.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "Fee")]
struct PlatformFee {
    /// Brackets: the part of a price above an amount, up to another, costs a percentage.
    brackets: Vec<FeeBracket>,
    /// Fees and shares of some prices.
    examples: Vec<FeeExample>,
}

/// Bracket of the fee.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "Bracket")]
#[serde(rename_all = "camelCase")]
pub(in crate::ops) struct FeeBracket {
    /// Amount above which the bracket begins.
    pub(in crate::ops) above: i64,
    /// Amount up to which it goes; null for the last.
    pub(in crate::ops) up_to: Option<i64>,
    /// Percentage of the part of a price in the bracket.
    pub(in crate::ops) percent: i64,
}

/// Fee and share of a price.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "Example")]
struct FeeExample {
    /// Example of a price, in micro-USDC.
    price: i64,
    /// Part of the platform.
    fee: i64,
    /// Part of the seller.
    share: i64,
}

/// Returns the brackets of the fee, from nothing on.
pub(in crate::ops) fn brackets(tariff: &Tariff) -> Vec<FeeBracket> {
    let set = tariff.fee.as_slice();
    // Prices below the first bracket are shown as a bracket without a fee.
    let free = set.first().filter(|first| first.above > 0).map(|first| FeeBracket {
        above: 0,
        up_to: Some(first.above),
        percent: 0,
    });
    let ends = set.iter().skip(1).map(|next| Some(next.above)).chain([None]);
    let charged = set.iter().zip(ends).map(|(bracket, up_to)| FeeBracket {
        above: bracket.above,
        up_to,
        percent: bracket.percent,
    });
    free.into_iter().chain(charged).collect()
}

pub(super) async fn pricing(cx: Cx, _: NoInput) -> Result<JsonReply<PlatformPricing>, ApiError> {
    let tariff = &cx.app.pay;
    let example = |price| {
        // By the function that sells, so that the page cannot promise another fee.
        let split = tariff.fee.split(MicroUsdc(price));
        FeeExample {
            price,
            fee: split.fee.0,
            share: split.share.0,
        }
    };
    Ok(JsonReply::ok(PlatformPricing {
        unit: "micro-USDC",
        defaults: json!({"unit": pay::UNIT_DEFAULT.0, "datasetVersion": pay::DEFAULT_DATASET_PRICE.0}),
        minimum: pay::MIN_PRICE.0,
        fee: PlatformFee {
            brackets: brackets(tariff),
            examples: EXAMPLES.into_iter().map(example).collect(),
        },
        payout: json!({
            "threshold": tariff.payout_threshold.0,
            "disputeDays": days(tariff.dispute_window_seconds),
        }),
        free_tier: json!({
            "storageBytes": cx.app.limits.storage_per_operator.0,
            "egressBytesPerMonth": tariff.free_egress_bytes,
        }),
        credits: json!({
            "pack": tariff.pack.0,
            "egressPer64MiB": tariff.egress_block.0,
            "storagePer64MiBDay": tariff.storage_block_day.0,
        }),
        given: json!({"atSignUp": tariff.given_at_sign_up.0, "onlyFor": "trial sales"}),
        notice: "test USDC on a test network; balances may be reset; points are not money",
    }))
}

/// Returns seconds in days, as a whole number where they are one.
fn days(seconds: u32) -> Value {
    const DAY: u32 = 86_400;
    if seconds.is_multiple_of(DAY) {
        json!(seconds / DAY)
    } else {
        json!(f64::from(seconds) / f64::from(DAY))
    }
}

//! The page of prices.
//!
//! Invariant: every figure is of the configuration; the fee of a price is what a sale at that price is charged.

use askama::Template;
use types::money::MicroUsdc;

use super::contents::DocsPart;
use crate::filters;

/// `GET /pricing`: prices, fees, and the amounts that are free.
#[derive(Debug, Template)]
#[template(path = "docs/pricing.html")]
pub struct PricingPart {
    /// Price of a write-up that its seller sells without naming one.
    pub unit_default: MicroUsdc,
    /// Price of a version of a paid dataset without a price of its own.
    pub dataset_default: MicroUsdc,
    /// Least price that is not free.
    pub minimum: MicroUsdc,
    /// Credits that a new account is given.
    pub given: MicroUsdc,
    /// Price of a pack of credits.
    pub pack: MicroUsdc,
    /// Price of 64 MiB of traffic beyond the free bytes.
    pub egress_block: MicroUsdc,
    /// Price of 64 MiB of storage for a day beyond the free bytes.
    pub storage_block: MicroUsdc,
    /// Free bytes of traffic in a month.
    pub free_egress: u64,
    /// Free bytes of storage.
    pub free_storage: u64,
    /// Least balance that is paid out.
    pub payout_from: MicroUsdc,
    /// Time after a sale in which it can be disputed, in words.
    pub dispute_time: String,
    /// Reviews of write-ups of an account in a day.
    pub reviews_a_day: u32,
    /// Batches of an account to public datasets in a day.
    pub batches_a_day: u32,
    /// Active datasets of an account.
    pub active_datasets: u32,
    /// Steps of the fee, the lowest first.
    pub steps: Vec<FeeStep>,
    /// Prices with their fees.
    pub examples: Vec<FeeExample>,
    /// Price as it was asked for.
    pub asked: String,
    /// Fee of that price; `None` if it is no price.
    pub worked: Option<FeeExample>,
}

/// Step of the fee: the part of a price above an amount costs a percentage.
#[derive(Clone, Copy, Debug)]
pub struct FeeStep {
    /// Amount above which the step begins.
    pub above: MicroUsdc,
    /// Amount up to which it goes; `None` for the last.
    pub up_to: Option<MicroUsdc>,
    /// Fee on the part of a price within the step, in whole percent.
    pub percent: i64,
}

/// Price with its fee.
#[derive(Clone, Copy, Debug)]
pub struct FeeExample {
    /// Price that a buyer pays.
    pub price: MicroUsdc,
    /// Part of the platform.
    pub fee: MicroUsdc,
    /// Part of the seller.
    pub share: MicroUsdc,
}

impl FeeExample {
    /// Returns the part of the seller in percent, rounded down.
    fn percent(self) -> i64 {
        // 128 bits, because a hundred times a price need not fit 64.
        let share = i128::from(self.share.0) * 100;
        let percent = share.checked_div(i128::from(self.price.0)).unwrap_or(0);
        i64::try_from(percent).unwrap_or(0)
    }
}

impl DocsPart for PricingPart {
    fn place(&self) -> &'static str {
        "/pricing"
    }
}

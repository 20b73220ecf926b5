//! Offer of an item to a caller, as every transport renders it.

use types::money::MicroUsdc;

/// Item, its price and the addresses at which it is bought.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Quote {
    /// Sentence that names the item and its price.
    pub message: String,
    /// Price now.
    pub price: MicroUsdc,
    /// Address that buys with credits.
    pub buy: String,
    /// Address that sells by x402.
    pub pay: String,
    /// Address that sells credits to the caller's operator; `None` without a caller.
    pub top_up: Option<String>,
    /// Credits of the caller, if they do not cover the price.
    pub short: Option<Short>,
}

/// Credits that do not cover a price.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Short {
    /// Bought credits of the caller.
    pub balance: MicroUsdc,
    /// Given credits of the caller.
    pub given: MicroUsdc,
}

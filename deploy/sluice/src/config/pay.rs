//! Section `pay`: prices, the platform's fee and the money that they are in.
//!
//! Invariant: no output shows the URL of the node, whose path may have a key.

use std::fmt;
use std::time::Duration;

use serde::Deserialize;

use types::HumanDuration;

use super::Error;

/// The most micro-USDC of an amount: 1,000 USDC.
const MAX_AMOUNT_MICRO_USDC: i64 = 1_000_000_000;
/// Micro-USDC of a cent, below which nothing is sold or paid out.
const CENT_MICRO_USDC: i64 = 10_000;

/// Section `pay`: prices, the platform's fee and the money that they are in. Amounts are in micro-USDC.
#[derive(Clone, Deserialize)]
pub struct Pay {
    /// The network of the test USDC (CAIP-2).
    pub network: String,
    /// The address of the token.
    pub asset: String,
    /// The name of the token in its EIP-712 domain.
    pub asset_name: String,
    /// The version of the token in its EIP-712 domain.
    pub asset_version: String,
    /// The facilitator: `builtin`, or its URL.
    pub facilitator: String,
    /// The address that is paid. Empty means that of the treasury's key.
    #[serde(rename = "pay_to")]
    pub receiver: String,
    /// The URL of a node of the network. Empty means none.
    pub rpc_url: String,
    /// The interval at which payouts are picked.
    pub payout_every: HumanDuration,
    /// The brackets of the fee.
    pub fee: ::pay::Brackets,
    /// The price and the content of a pack of credits.
    pub pack: i64,
    /// The price of 64 MiB of egress beyond the free bytes.
    pub egress_block: i64,
    /// The price of 64 MiB of storage for a day, beyond the free bytes.
    pub storage_block_day: i64,
    /// The credits that an operator is given at sign-up, for trial sales only.
    pub given_at_sign_up: i64,
    /// The time after a sale in which it can be disputed.
    pub dispute_window: HumanDuration,
    /// The time for which a price that has changed is still taken.
    pub quote_window: HumanDuration,
    /// The balance at which a seller is paid out.
    pub payout_threshold: i64,
}

impl Pay {
    /// Checks the bounds of the amounts and times; the error names the first key that is out of them.
    pub(super) fn check(&self) -> Result<(), Error> {
        // Nothing is charged at 0, except where the interface has a word for it: no gift, and storage
        // without a price. A block of egress without a price would be an event without a movement.
        for (key, amount, least, shown) in [
            ("pay.pack", self.pack, CENT_MICRO_USDC, "10000"),
            ("pay.egress_block", self.egress_block, 1, "1"),
            ("pay.storage_block_day", self.storage_block_day, 0, "0"),
            ("pay.given_at_sign_up", self.given_at_sign_up, 0, "0"),
            ("pay.payout_threshold", self.payout_threshold, CENT_MICRO_USDC, "10000"),
        ] {
            if amount < least {
                return Err(Error::TooSmall { key, least: shown });
            }
            if amount > MAX_AMOUNT_MICRO_USDC {
                let most = MAX_AMOUNT_MICRO_USDC.to_string();
                return Err(Error::TooLarge { key, most });
            }
        }
        if self.payout_every.0.is_zero() {
            return Err(Error::Instant {
                key: "pay.payout_every",
            });
        }
        let days = |days: u64| Duration::from_hours(24 * days);
        for (key, span, most, shown) in [
            ("pay.payout_every", self.payout_every, days(31), "31d"),
            ("pay.dispute_window", self.dispute_window, days(366), "366d"),
            ("pay.quote_window", self.quote_window, days(1), "1d"),
        ] {
            if span.0 > most {
                let most = shown.to_owned();
                return Err(Error::TooLarge { key, most });
            }
        }
        Ok(())
    }
}

/// Shows everything but the URL of the node.
impl fmt::Debug for Pay {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pay")
            .field("network", &self.network)
            .field("asset", &self.asset)
            .field("facilitator", &self.facilitator)
            .field("receiver", &self.receiver)
            .finish_non_exhaustive()
    }
}

//! Section `pay`: prices, the platform's fee and the money that they are in.

use serde::Deserialize;

use super::Span;

/// Section `pay`: prices, the platform's fee and the money that they are in. Amounts are in micro-USDC.
#[derive(Clone, Debug, Deserialize)]
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
    pub payout_every: Span,
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
    pub dispute_window: Span,
    /// The time for which a price that has changed is still taken.
    pub quote_window: Span,
    /// The balance at which a seller is paid out.
    pub payout_threshold: i64,
}

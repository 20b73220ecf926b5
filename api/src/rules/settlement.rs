//! Payments by x402: what the service is paid with, who settles it, and the steps from an authorization to a grant.
//!
//! ```text
//! GET /paid/… ──▶ answers (402) ──▶ checks ──▶ bound ──▶ machine: verify, settle ──▶ settled with sale and entitlement
//!                                                         │ not known
//!                                                         ▼
//!                                                  reconciler: settle again, read the chain
//! payouts: picked ──▶ signed by the treasury ──▶ settle ──▶ booked
//! ```
//!
//! Invariants:
//! - A row is committed before every call to a facilitator. Nothing is granted before it is settled, and nothing is
//!   served before it is granted.
//! - While a settlement is not known, nobody is asked to pay again for it.

pub(crate) mod answers;
pub mod faucet;
pub(crate) mod goods;
pub(crate) mod machine;
mod wallets;

#[cfg(test)]
pub(crate) mod tests;

use std::time::Duration;

use store::PayoutRow;
use x402::PaymentAsset;

pub(crate) use machine::{DriveResult, PaymentMachine, settlement_payload};
pub use wallets::StoredWallets;

use crate::error::ApiError;

/// Time that a caller waits for a settlement: less than clients and proxies wait for an answer.
pub const PATIENCE: Duration = Duration::from_secs(25);

/// Returns the name of a wallet as an owner of items.
pub(crate) fn owner(asset: &PaymentAsset, wallet: &x402::Address) -> String {
    format!("{}:{wallet}", asset.network)
}

/// Returns the nonce of a payout, the same for every attempt.
pub fn payout_nonce(id: &str) -> x402::Bytes32 {
    // The text keeps these nonces apart from those that wallets draw, and its number lets the rule
    // change.
    x402::address::keccak(&[b"sluice-payout-1", id.as_bytes()])
}

/// Returns a number that a database holds as one of the chain.
pub(crate) fn natural(number: i64) -> u64 {
    u64::try_from(number).unwrap_or(0)
}

/// Returns a payout's wallet.
pub(crate) fn wallet_of(payout: &PayoutRow) -> Result<x402::Address, ApiError> {
    payout.address.parse().map_err(ApiError::internal)
}

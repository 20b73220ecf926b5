//! Payments by x402: the states of a payment, who moves it from one to the next, and the rules of each step.
//!
//! ```text
//!            ┌──────────────── P: sent once more ◀─────────────────┐
//!            ▼                                                     │
//!  ───P──▶ bound ───M: verify says no────────────────▶ refused ────┤
//!   │       ▲ │ └───P: a newer one of the wallet─────▶ abandoned ──┘
//!   │       │ │
//!   │       │ └─────M: begin, before it is sent──────▶ settling ───M: done, the chain has it────▶ settled
//!   │       │                                           │ │  └─────M: the first answer is no────▶ failed
//!   │       └───────M: it never left────────────────────┘ └────────M: nobody knows──────────────▶ unknown
//!   │                                                              R: its owner is gone
//!   └──P: the wallet has the item──▶ not_needed
//!
//!  unknown ──R: the chain has it, A──▶ settled          failed ──R: the chain has it after all, A──▶ settled
//!          ──R: cancelled, expired, A──▶ failed         bound, refused, abandoned ──R: never sent──▶ deleted
//! ```
//!
//! | | Who | File |
//! |-|-|-|
//! | P | the call that brings the payment | `api/src/ops/paid/purchase.rs` |
//! | M | the machine, in a task that no caller ends | `api/src/rules/settlement/machine.rs` |
//! | R | the reconciler, at intervals | `api/src/flow/reconciler.rs` |
//! | A | an administrator, by `sluice admin payments resolve` | `deploy/sluice/src/admin/payment_decisions.rs` |
//!
//! A step is one statement of [`store::Payments`], whose condition is the state before it. The step to `settled` is one
//! transaction of [`store::Money`] with the sale, the entitlement and the movements. `goods` says what is sold,
//! `answers` what a state answers, `challenge` what is said beside the terms, and `sign_in` reads what a wallet bought. Payouts go the other way (`api/src/flow/payouts.rs`): picked, sending, done; while it
//! is not known, unknown; given up, failed.
//!
//! Invariants:
//! - A row is committed before every call to a facilitator. Nothing is granted before it is settled, and nothing is
//!   served before it is granted.
//! - While a settlement is not known, nobody is asked to pay again for it.

pub(crate) mod answers;
pub(crate) mod challenge;
pub mod faucet;
pub(crate) mod goods;
pub(crate) mod machine;
pub(crate) mod sign_in;
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

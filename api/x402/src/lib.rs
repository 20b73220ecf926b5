//! Payments by x402, versions 1 and 2: the scheme `exact` on EVM chains with EIP-3009, with the extensions `offer-receipt`,
//! `payment-identifier`, `sign-in-with-x` and `bazaar`.
//!
//! ```text
//! header ──▶ wire (decode) ──▶ check (terms, signature, amount, time) ──▶ facilitator (verify, settle) ──▶ judge
//!                                                                          built-in ledger · HTTP by URL
//! ```
//!
//! Invariants:
//! - An authorization is taken only if its signature recovers to its payer, over our asset on our chain.
//! - A facilitator's answer is judged here: nothing counts as settled without a transaction, and nothing counts as
//!   refused unless the reason proves that nothing was sent.

pub mod address;
pub mod authorization;
pub mod builtin;
pub mod chain;
pub mod check;
#[cfg(any(test, feature = "testing"))]
pub mod conformance;
pub mod extensions;
pub mod facilitator;
pub mod facilitator_http;
pub mod network;
pub mod remote;
pub mod sign_in;
pub mod signature;
pub mod wire;

#[cfg(test)]
mod tests;

pub use address::{Address, Bytes32};
pub use authorization::Authorization;
pub use check::{MalformedField, RefusalReason};
pub use facilitator::{Facilitator, PaymentVerdict, SettledKind, Settlement, UnusableAnswer};
pub use network::{Network, PaymentAsset};
pub use signature::{WalletKey, WalletSignature};

/// Most bytes of a header that carries a payment or a sign-in.
pub const MAX_HEADER: usize = 16 << 10;

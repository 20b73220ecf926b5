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
mod machine;
mod payouts;
mod reconciler;
mod wallets;

#[cfg(test)]
pub(crate) mod tests;

use std::sync::Arc;
use std::time::Duration;

use pay::Tariff;
use store::{PayoutRow, SaleTerms};
use types::vocabulary::ItemKind;
use x402::chain::Chain;
use x402::{Asset, Facilitator, Key};

pub(crate) use machine::{Driven, Machine, kept};
pub use payouts::Payouts;
pub use reconciler::Reconciler;
pub use wallets::StoredWallets;

use crate::error::ApiError;

/// Means of payment of the service, and their settlement.
#[derive(Clone, Debug)]
pub struct PaymentPlane {
    /// Token that is taken, and where.
    pub asset: Asset,
    /// Facilitator that verifies and settles payments.
    pub facilitator: Arc<dyn Facilitator>,
    /// View of the chain; `None` where the facilitator's word is all there is.
    pub chain: Option<Arc<dyn Chain>>,
    /// True if the facilitator's word counts without a look at the chain.
    pub is_built_in: bool,
    /// True if version 1 of the protocol is settled.
    pub has_v1: bool,
    /// Key of the treasury, which signs payouts; `None` where nothing is paid out.
    pub treasury: Option<Key>,
    /// Prices and times of the platform.
    pub tariff: Arc<Tariff>,
    /// Interval at which payouts are picked.
    pub payout_every: Duration,
    /// Longest time that a caller waits for a settlement.
    pub patience: Duration,
}

impl PaymentPlane {
    /// Fails with 404 if the service is paid on a real network, where nobody makes test USDC.
    pub(crate) fn has_faucet(&self) -> Result<(), ApiError> {
        if self.is_built_in {
            return Ok(());
        }
        Err(ApiError::not_found(format!(
            "there is no faucet here: payments are on {}, which has faucets of its own",
            self.asset.network
        )))
    }

    /// Returns the terms of the sale of an item.
    pub(crate) fn terms(&self, kind: ItemKind) -> SaleTerms {
        SaleTerms {
            asset: self.asset.id(),
            default_price: match kind {
                ItemKind::Unit => pay::UNIT_DEFAULT,
                ItemKind::Dataset => pay::DATASET_DEFAULT,
            },
            fee: self.tariff.fee.clone(),
            dispute_window: self.tariff.dispute_window(),
            quote_window: self.tariff.quote_window(),
        }
    }
}

/// Time that a caller waits for a settlement: less than clients and proxies wait for an answer.
pub const PATIENCE: Duration = Duration::from_secs(25);

/// Returns the name of a wallet as an owner of items.
pub(crate) fn owner(asset: &Asset, wallet: &x402::Address) -> String {
    format!("{}:{wallet}", asset.network)
}

/// Returns the nonce of a payout, the same for every attempt.
pub fn payout_nonce(id: &str) -> x402::Word {
    // The text keeps these nonces apart from those that wallets draw, and its number lets the rule
    // change.
    x402::address::keccak(&[b"sluice-payout-1", id.as_bytes()])
}

/// Returns a number that a database holds as one of the chain.
fn natural(number: i64) -> u64 {
    u64::try_from(number).unwrap_or(0)
}

/// Returns a payout's wallet.
fn wallet_of(payout: &PayoutRow) -> Result<x402::Address, ApiError> {
    payout.address.parse().map_err(ApiError::internal)
}

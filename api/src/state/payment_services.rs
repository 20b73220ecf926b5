//! Means of payment of the service, and who settles them.
//!
//! Invariant: only a built-in facilitator is believed without a look at the chain.

use std::sync::Arc;
use std::time::Duration;

use pay::Tariff;
use store::SaleTerms;
use types::vocabulary::ItemKind;
use x402::chain::ChainClient;
use x402::{Facilitator, PaymentAsset, WalletKey};

use crate::error::ApiError;

/// Means of payment of the service, and their settlement.
#[derive(Clone, Debug)]
pub struct PaymentServices {
    /// Token that is taken, and where.
    pub asset: PaymentAsset,
    /// Facilitator that verifies and settles payments.
    pub facilitator: Arc<dyn Facilitator>,
    /// View of the chain; `None` where the facilitator's word is all there is.
    pub chain: Option<Arc<dyn ChainClient>>,
    /// True if the facilitator's word counts without a look at the chain.
    pub is_built_in: bool,
    /// True if version 1 of the protocol is settled.
    pub has_v1: bool,
    /// Key of the treasury, which signs payouts; `None` where nothing is paid out.
    pub treasury: Option<WalletKey>,
    /// Prices and times of the platform.
    pub tariff: Arc<Tariff>,
    /// Interval at which payouts are picked.
    pub payout_every: Duration,
    /// Longest time that a caller waits for a settlement.
    pub patience: Duration,
}

impl PaymentServices {
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
                ItemKind::Dataset => pay::DEFAULT_DATASET_PRICE,
            },
            fee: self.tariff.fee.clone(),
            dispute_window: self.tariff.dispute_window(),
            quote_window: self.tariff.quote_window(),
        }
    }
}

//! The built-in ledger: test USDC in the database, with the rules of a token on a chain.
//!
//! Invariants:
//! - A transfer needs the whole signature of its payer, its time, and the balance. It uses its nonce in the transaction
//!   that moves the balance, once.
//! - The ledger knows nothing of items and sales, as a chain would not.

use std::fmt::Debug;
use std::sync::Arc;

use async_trait::async_trait;
use types::{Clock, Timestamp};

use super::chain::{ChainClient, NonceStatus};
use super::facilitator::{ExpectedTransfer, SettleAnswer, SettlementOrder, judge};
use super::wire::{PAYMENT_SCHEME, Payment, PaymentMismatch, Protocol, read};
use super::{
    Address, Authorization, Bytes32, Facilitator, PaymentAsset, PaymentVerdict, SettledKind, Settlement,
    UnusableAnswer, check,
};

/// Error of the database: the state is not known.
pub type WalletsError = Box<dyn std::error::Error + Send + Sync>;

/// Use of a nonce.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Spent {
    /// It was used by this transaction.
    Used(Bytes32),
    /// The authorization was cancelled before it was used.
    Cancelled,
}

/// Outcome of a transfer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TransferOutcome {
    /// The transfer was made.
    Done,
    /// The nonce was used or cancelled before.
    Spent(Spent),
    /// The balance does not cover it.
    Short,
}

/// Balances and used nonces of the built-in ledger. Each method is one transaction.
#[async_trait]
pub trait Wallets: Debug + Send + Sync {
    /// Returns the balance of a wallet; 0 for one that is not known.
    async fn balance(&self, wallet: Address) -> Result<u64, WalletsError>;
    /// Returns what became of a nonce of a wallet; `None` if nothing did.
    async fn spent(&self, wallet: Address, nonce: Bytes32) -> Result<Option<Spent>, WalletsError>;
    /// Moves an amount and uses the nonce.
    async fn transfer(&self, transfer: &Authorization, at: Timestamp) -> Result<TransferOutcome, WalletsError>;
    /// Cancels a nonce that was not used. Returns false if it was used or cancelled before.
    async fn cancel(&self, wallet: Address, nonce: Bytes32, at: Timestamp) -> Result<bool, WalletsError>;
}

/// The built-in ledger as facilitator and chain.
#[derive(Clone, Debug)]
pub struct BuiltIn {
    wallets: Arc<dyn Wallets>,
    asset: PaymentAsset,
    clock: Arc<dyn Clock>,
}

impl BuiltIn {
    /// Creates the ledger of an asset.
    pub const fn new(wallets: Arc<dyn Wallets>, asset: PaymentAsset, clock: Arc<dyn Clock>) -> Self {
        Self { wallets, asset, clock }
    }

    fn now(&self) -> u64 {
        u64::try_from(self.clock.now().micros().div_euclid(1_000_000)).unwrap_or(0)
    }

    /// Reads an order with every rule but balance and nonce. Anybody may be paid here.
    fn read(&self, order: &SettlementOrder) -> Result<Payment, String> {
        // The ledger serves several recipients, such as sellers in payouts, as a token would. The order
        // says who is to be paid, and the signature covers it.
        let asset = PaymentAsset {
            pay_to: order.expected.pay_to,
            ..self.asset.clone()
        };
        let payment = match read(order.protocol, order.payment.clone(), &asset) {
            Ok(payment) => payment,
            Err(PaymentMismatch::Malformed(_)) => return Err("invalid_payload".to_owned()),
            Err(PaymentMismatch::Refused(reason)) => return Err(reason.word().to_owned()),
        };
        check::signed(&payment, &asset).map_err(|reason| reason.word().to_owned())?;
        let Authorization {
            value,
            valid_after,
            valid_before,
            ..
        } = payment.authorization;
        if value != order.expected.amount {
            return Err(check::RefusalReason::Value.word().to_owned());
        }
        // The token's own comparisons are strict.
        let now = self.now();
        if valid_after >= now {
            return Err(check::RefusalReason::ValidAfter.word().to_owned());
        }
        if now >= valid_before {
            return Err(check::RefusalReason::ValidBefore.word().to_owned());
        }
        Ok(payment)
    }

    /// Settles and answers as `/settle` does.
    ///
    /// # Errors
    /// [`UnusableAnswer`] if the database does not answer.
    pub async fn settle_and_say(&self, order: &SettlementOrder) -> Result<SettleAnswer, UnusableAnswer> {
        let refused = |reason: &str| SettleAnswer {
            error_reason: Some(reason.to_owned()),
            network: Some(order.protocol.network(&self.asset)),
            ..SettleAnswer::default()
        };
        let payment = match self.read(order) {
            Ok(payment) => payment,
            Err(reason) => return Ok(refused(&reason)),
        };
        let transfer = &payment.authorization;
        let moved = self
            .wallets
            .transfer(transfer, self.clock.now())
            .await
            .map_err(|error| unanswered(&error))?;
        // The transfer is the only place that decides. A check of balance and nonce before it would be
        // out of date by the time of the write.
        Ok(match moved {
            TransferOutcome::Done => SettleAnswer {
                success: true,
                error_reason: None,
                transaction: Some(transfer.transaction().to_string()),
                network: Some(order.protocol.network(&self.asset)),
                payer: Some(transfer.from.checksum()),
                amount: Some(transfer.value.to_string()),
            },
            TransferOutcome::Spent(_) => refused("nonce_already_used"),
            TransferOutcome::Short => refused("insufficient_funds"),
        })
    }
}

fn unanswered(error: &WalletsError) -> UnusableAnswer {
    UnusableAnswer {
        reason: error.to_string(),
        is_unsent: false,
    }
}

#[async_trait]
impl Facilitator for BuiltIn {
    async fn supported(&self) -> Result<Vec<SettledKind>, UnusableAnswer> {
        let kinds = [Protocol::V1, Protocol::V2].map(|protocol| SettledKind {
            version: protocol.number().into(),
            scheme: PAYMENT_SCHEME.to_owned(),
            network: protocol.network(&self.asset),
        });
        Ok(kinds.into())
    }

    async fn verify(&self, order: &SettlementOrder) -> Result<PaymentVerdict, UnusableAnswer> {
        let payment = match self.read(order) {
            Ok(payment) => payment,
            Err(reason) => return Ok(PaymentVerdict::Invalid(reason)),
        };
        let Authorization { from, nonce, value, .. } = payment.authorization;
        if self
            .wallets
            .spent(from, nonce)
            .await
            .map_err(|error| unanswered(&error))?
            .is_some()
        {
            return Ok(PaymentVerdict::Invalid("nonce_already_used".to_owned()));
        }
        if self.wallets.balance(from).await.map_err(|error| unanswered(&error))? < value {
            return Ok(PaymentVerdict::Invalid("insufficient_funds".to_owned()));
        }
        Ok(PaymentVerdict::Valid)
    }

    async fn settle(&self, order: &SettlementOrder) -> Settlement {
        match self.settle_and_say(order).await {
            Ok(answer) => judge(&answer, order.protocol, &order.expected, &self.asset),
            Err(unanswered) => Settlement::unknown(unanswered.reason),
        }
    }
}

#[async_trait]
impl ChainClient for BuiltIn {
    async fn lookup(&self, expected: &ExpectedTransfer) -> Result<NonceStatus, UnusableAnswer> {
        // The time comes first: what is not used later was not used then.
        let now = self.now();
        let spent = self.wallets.spent(expected.payer, expected.nonce).await;
        Ok(match spent.map_err(|error| unanswered(&error))? {
            None => NonceStatus::Unused(now),
            Some(Spent::Cancelled) => NonceStatus::Cancelled,
            // The transaction's name is a hash of payer, nonce, recipient and amount, so equality
            // proves that the nonce was used for this transfer and not for another.
            Some(Spent::Used(transaction)) if transaction == of(expected) => NonceStatus::Used(transaction),
            Some(Spent::Used(_)) => NonceStatus::UsedOtherwise,
        })
    }

    async fn confirms(&self, transaction: Bytes32, expected: &ExpectedTransfer) -> Result<bool, UnusableAnswer> {
        Ok(self.lookup(expected).await? == NonceStatus::Used(transaction))
    }

    async fn balance(&self, wallet: Address) -> Result<u64, UnusableAnswer> {
        self.wallets.balance(wallet).await.map_err(|error| unanswered(&error))
    }
}

/// Returns the transaction of the expected transfer.
fn of(expected: &ExpectedTransfer) -> Bytes32 {
    let transfer = Authorization {
        from: expected.payer,
        to: expected.pay_to,
        value: expected.amount,
        valid_after: 0,
        valid_before: 0,
        nonce: expected.nonce,
    };
    transfer.transaction()
}

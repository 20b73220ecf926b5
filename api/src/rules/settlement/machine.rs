//! The steps of a payment after it is bound: verify, settle, grant.
//!
//! Invariants:
//! - `settling` is committed before a facilitator is asked to settle, by one caller of many.
//! - An answer of a first attempt may prove that nothing was sent; an answer of a later one never does.
//! - A success counts only if the chain has the transfer, where a chain can be read.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use store::{Doubtful, Payment, PaymentState, Settled, Settlement as Grant, Store, WalletRefund};
use types::vocabulary::ItemKind;
use types::{Clock, LedgerEventId, PaymentId, SaleId, Timestamp, fault, mutate};
use x402::extensions::without_challenge;
use x402::facilitator::{ExpectedTransfer, SettlementDoubt, SettlementOrder};
use x402::wire::Protocol;
use x402::{Bytes32, PaymentVerdict, Settlement};

use super::{natural, payout_nonce};
use crate::error::ApiError;
use crate::state::payment_services::PaymentServices;
use types::error::with_causes;

/// Time for which a payment that is being settled has an owner, and the interval at which its owner extends it. After a
/// kill nobody looks at the payment for that time, so it is shorter than a caller's patience.
const LEASE: Duration = Duration::from_secs(10);
const HOLD_EVERY: Duration = Duration::from_secs(3);
/// Number of the first attempt to settle a payment.
const FIRST: i64 = 1;
/// Pause before the first look at a payment that is not known.
const FIRST_LOOK: Duration = Duration::from_secs(2);
/// Time after the end of an authorization at which a failed payment is looked at once more.
const SECOND_LOOK: Duration = Duration::from_secs(30);

/// Outcome of driving a payment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum DriveResult {
    /// The row says what became of it.
    Stored,
    /// The facilitator does not answer; nothing was sent.
    Unanswered,
}

/// Driver of payments through their states.
#[derive(Clone, Debug)]
pub(crate) struct PaymentMachine {
    pub(crate) store: Store,
    pub(crate) plane: Arc<PaymentServices>,
    pub(crate) clock: Arc<dyn Clock>,
}

impl PaymentMachine {
    /// Goes on with a bound payment until it is final or not known. Callers may drive the same one at once.
    pub(crate) async fn drive(&self, payment: &Payment) -> Result<DriveResult, ApiError> {
        if payment.state != PaymentState::Bound {
            return Ok(DriveResult::Stored);
        }
        let order = order(payment)?;
        // Asked before the row says `settling`: a payment that is refused here was surely never sent,
        // and its payer may send another.
        match self.plane.facilitator.verify(&order).await {
            Ok(PaymentVerdict::Valid) => {}
            Ok(PaymentVerdict::Invalid(reason)) => {
                self.store.payments().refuse(&payment.id, &reason).await?;
                return Ok(DriveResult::Stored);
            }
            Err(unanswered) => {
                tracing::warn!(
                    payment = payment.id,
                    error = unanswered.reason,
                    "the facilitator does not answer if a payment is good; its payer may send it again"
                );
                return Ok(DriveResult::Unanswered);
            }
        }
        fault::point("pay.verified");
        mutate!(Bug::SettlesUncommitted => return self.settle(payment, &order).await);
        let lease = self.clock.now().plus(LEASE);
        // Another call or replica took the step. Two settlements of one authorization move money once,
        // but only the answer of a first attempt proves anything, so there is one first attempt.
        if !self.store.payments().begin(&payment.id, lease).await? {
            return Ok(DriveResult::Stored);
        }
        self.settle(payment, &order).await
    }

    /// Asks the facilitator for the first time to settle a payment whose row says `settling`.
    async fn settle(&self, payment: &Payment, order: &SettlementOrder) -> Result<DriveResult, ApiError> {
        fault::point("pay.settling");
        mutate!(Bug::GrantsFirst => self.grant(payment, Bytes32([0; 32])).await?);
        let settlement = self.held(payment, self.plane.facilitator.settle(order)).await;
        mutate!(Bug::LostIsRefused => let settlement = crate::faults::refused(settlement));
        fault::point("pay.answered");
        match settlement {
            Settlement::Done(transaction) => self.done(payment, transaction, &order.expected).await?,
            // Another process may have sent it again by now, which this answer says nothing about.
            Settlement::Refused(reason) => self.fail(payment, FIRST, &reason).await?,
            Settlement::NotSent(reason) => {
                tracing::warn!(
                    payment = payment.id,
                    error = reason,
                    "the facilitator cannot be reached; its payer may send the payment again"
                );
                // Back to bound: the request did not leave, so nobody has to read a chain to find out.
                let lease = self.clock.now().plus(LEASE);
                self.store.payments().not_sent(&payment.id, lease).await?;
                return Ok(DriveResult::Unanswered);
            }
            Settlement::Unknown(doubt) => self.doubt(payment, doubt, FIRST_LOOK).await?,
        }
        Ok(DriveResult::Stored)
    }

    /// Waits for a settlement and keeps the payment meanwhile.
    async fn held(&self, payment: &Payment, settling: impl Future<Output = Settlement>) -> Settlement {
        let mut settling = std::pin::pin!(settling);
        loop {
            match tokio::time::timeout(HOLD_EVERY, &mut settling).await {
                Ok(settlement) => return settlement,
                Err(_longer) => {
                    let lease = self.clock.now().plus(LEASE);
                    // An owner that lost its payment only knows less of it: the chain takes the nonce once.
                    if let Err(error) = self.store.payments().hold(&payment.id, lease).await {
                        tracing::debug!(
                            payment = payment.id,
                            error = with_causes(&error),
                            "cannot extend a lease"
                        );
                    }
                }
            }
        }
    }

    /// Grants what a payment bought, once the chain confirms the transaction.
    pub(crate) async fn done(
        &self,
        payment: &Payment,
        transaction: Bytes32,
        expected: &ExpectedTransfer,
    ) -> Result<(), ApiError> {
        // The built-in ledger is the chain.
        if let Some(reader) = self.plane.chain.as_ref().filter(|_| !self.plane.is_built_in) {
            let confirmed = reader.confirms(transaction, expected).await;
            // A node that does not answer proves nothing either, so the payment is in doubt and not
            // refused.
            if confirmed != Ok(true) {
                let doubt = SettlementDoubt {
                    reason: "transaction_not_confirmed".to_owned(),
                    transaction: Some(transaction),
                    is_alarming: confirmed == Ok(false),
                };
                return self.doubt(payment, doubt, FIRST_LOOK).await;
            }
        }
        self.grant(payment, transaction).await
    }

    /// Grants what a settled payment bought.
    pub(crate) async fn grant(&self, payment: &Payment, transaction: Bytes32) -> Result<(), ApiError> {
        let now = self.clock.now();
        let refund = PaymentId::new(now).to_string();
        let kind = match payment.bound.kind {
            store::PaidFor::Dataset => ItemKind::Dataset,
            store::PaidFor::Unit | store::PaidFor::Pack => ItemKind::Unit,
        };
        let settled = self
            .store
            .money()
            .settle(Grant {
                payment: payment.id.clone(),
                transaction: transaction.to_string(),
                sale: SaleId::new(now),
                event: LedgerEventId::new(now),
                terms: self.plane.terms(kind),
                refund: WalletRefund {
                    nonce: payout_nonce(&refund).to_string(),
                    id: refund,
                    event: LedgerEventId::new(now),
                },
                now,
            })
            .await?;
        fault::point("pay.settled");
        if settled == Settled::Refunding {
            tracing::warn!(
                payment = payment.id,
                "a payment moved money for an item that its wallet has; it goes back to the wallet"
            );
        }
        Ok(())
    }

    /// Notes that a payment moved nothing, which its attempts so far prove.
    pub(crate) async fn fail(&self, payment: &Payment, attempts: i64, reason: &str) -> Result<(), ApiError> {
        let end = Timestamp::from_micros(payment.valid_before.saturating_mul(1_000_000));
        // Looked at once more after its end: until then the authorization is valid, and whoever has it
        // may still send it to the chain.
        let look_at = end.plus(SECOND_LOOK);
        let payments = self.store.payments();
        payments.fail(&payment.id, attempts, reason, look_at).await?;
        Ok(())
    }

    /// Notes that a payment may have moved the money.
    pub(crate) async fn doubt(
        &self,
        payment: &Payment,
        doubt: SettlementDoubt,
        pause: Duration,
    ) -> Result<(), ApiError> {
        if doubt.is_alarming {
            tracing::error!(
                payment = payment.id,
                reason = doubt.reason,
                "a facilitator's answer does not fit the payment; look at both (`sluice admin payments list`)"
            );
        }
        let doubtful = Doubtful {
            reason: doubt.reason,
            transaction: doubt.transaction.map(|transaction| transaction.to_string()),
            next_try_at: self.clock.now().plus(pause),
        };
        self.store.payments().doubt(&payment.id, doubtful).await?;
        Ok(())
    }

    /// Drives a payment in a task of its own, which a caller that leaves does not end.
    pub(crate) fn spawn(&self, payment: Payment) -> tokio::task::JoinHandle<Result<DriveResult, ApiError>> {
        let machine = self.clone();
        // A task of its own: the client may hang up, and a payment must not stop between two of its
        // steps.
        tokio::spawn(async move {
            let driven = machine.drive(&payment).await;
            if let Err(error) = &driven {
                tracing::warn!(
                    payment = payment.id,
                    error = error.reason(),
                    "a payment could not be driven to its end; it is looked at again"
                );
            }
            driven
        })
    }
}

/// Returns the text that a payment keeps of what a facilitator is sent.
pub(crate) fn settlement_payload(message: &Value, requirements: &Value) -> String {
    // The echoed challenge is what tells the payer from somebody who read the chain.
    let message = without_challenge(message);
    json!({"payment": message, "requirements": requirements}).to_string()
}

/// Returns the transfer that a payment must have made.
pub(crate) fn expected(payment: &Payment) -> Result<ExpectedTransfer, ApiError> {
    let malformed = |column: &str| ApiError::internal(format!("the column `{column}` of payment {}", payment.id));
    Ok(ExpectedTransfer {
        payer: payment.payer.parse().map_err(|_error| malformed("payer"))?,
        pay_to: payment.pay_to.parse().map_err(|_error| malformed("pay_to"))?,
        amount: natural(payment.amount),
        nonce: payment.nonce.parse().map_err(|_error| malformed("nonce"))?,
        valid_before: natural(payment.valid_before),
    })
}

/// Returns what a facilitator is sent for a payment, the same each time.
pub(crate) fn order(payment: &Payment) -> Result<SettlementOrder, ApiError> {
    let text = payment.payload.as_deref();
    let text = text.ok_or_else(|| ApiError::internal(format!("the payment {} has no payload", payment.id)))?;
    let mut kept: Value = serde_json::from_str(text).map_err(|error| ApiError::internal(with_causes(&error)))?;
    Ok(SettlementOrder {
        protocol: Protocol::of(payment.protocol).ok_or_else(|| ApiError::internal("the version of a payment"))?,
        payment: kept["payment"].take(),
        requirements: kept["requirements"].take(),
        expected: expected(payment)?,
    })
}

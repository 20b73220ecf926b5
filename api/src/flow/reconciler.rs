//! Reconciler: finds out what became of payments that may have moved money.
//!
//! Invariants:
//! - A payment is sent again unchanged, and only while it is valid: the chain takes its nonce once.
//! - A payment failed only if the chain has it cancelled, or unused at a block after its end.

use std::sync::Arc;
use std::time::Duration;

use store::{Payment, PaymentState, Store};
use tokio_util::sync::CancellationToken;
use types::{Backoff, Clock, mutate};
use x402::chain::NonceStatus;
use x402::check::MARGIN_SECONDS;
use x402::facilitator::SettlementDoubt;
use x402::{Bytes32, Settlement};

use crate::error::ApiError;
use crate::periodic::PeriodicTimer;
use crate::rules::settlement::machine::{PaymentMachine, expected, order};
use crate::rules::settlement::natural;
use crate::state::payment_services::PaymentServices;
use types::error::with_causes;

/// Interval at which payments are looked for.
const POLL_INTERVAL: Duration = Duration::from_secs(2);
/// Interval at which payments that never left are deleted, and their age after their end.
const SWEEP_INTERVAL: Duration = Duration::from_mins(10);
const SWEEP_AGE: Duration = Duration::from_hours(24);
/// Payments taken at a time, and the time that nobody else takes them.
const BATCH: u32 = 16;
const LEASE: Duration = Duration::from_mins(2);
/// Pauses between looks at a payment.
const BACKOFF: Backoff = Backoff {
    first: Duration::from_secs(2),
    most: Duration::from_mins(5),
};

/// Task that reconciles payments.
#[derive(Debug)]
pub struct PaymentReconciler {
    machine: PaymentMachine,
}

impl PaymentReconciler {
    /// Creates a reconciler that has not started.
    pub const fn new(store: Store, plane: Arc<PaymentServices>, clock: Arc<dyn Clock>) -> Self {
        Self {
            machine: PaymentMachine { store, plane, clock },
        }
    }

    /// Makes the payments due that an earlier process left in the middle. Only before this process takes payments, and
    /// where no other process can have one.
    ///
    /// # Errors
    /// A database that does not answer.
    pub async fn take_over(&self) -> Result<(), ApiError> {
        let orphaned = self.machine.store.payments().orphan(self.machine.clock.now()).await?;
        if orphaned > 0 {
            tracing::info!(
                orphaned,
                "payments were being settled when the service ended; looking at them now"
            );
        }
        Ok(())
    }

    /// Looks for unknown payments at intervals until `stop`.
    pub async fn run(self, stop: CancellationToken) {
        let running = async {
            let mut rounds = PeriodicTimer::every(POLL_INTERVAL, &stop);
            // After a stop, the first sweep waits until what became due meanwhile was looked at.
            let mut swept = self.machine.clock.now();
            while rounds.next().await {
                if let Err(error) = self.round().await {
                    tracing::warn!(
                        error = error.reason(),
                        "cannot look for payments that are not known; trying again"
                    );
                }
                let now = self.machine.clock.now();
                if now.since(swept) >= SWEEP_INTERVAL {
                    swept = now;
                    let end = now.minus(SWEEP_AGE).micros().div_euclid(1_000_000);
                    if let Err(error) = self.machine.store.payments().sweep(end, now).await {
                        tracing::warn!(
                            error = with_causes(&error),
                            "cannot delete payments that were never sent; trying again"
                        );
                    }
                }
            }
        };
        stop.run_until_cancelled(running).await;
    }

    /// Grants what a payment bought, by the word of an administrator who saw its transaction.
    ///
    /// # Errors
    /// A database that does not answer.
    pub async fn settled(&self, payment: &Payment, transaction: Bytes32) -> Result<(), ApiError> {
        self.machine.grant(payment, transaction).await
    }

    /// Looks at the payments that are due, and returns their number.
    ///
    /// # Errors
    /// A database that does not answer.
    pub async fn round(&self) -> Result<usize, ApiError> {
        let now = self.machine.clock.now();
        let due = self.machine.store.payments().due(now, now.plus(LEASE), BATCH).await?;
        for payment in &due {
            let looked = match payment.state {
                PaymentState::Failed => self.look_once_more(payment).await,
                _ => self.look_up(payment).await,
            };
            // The lease ends, and the payment is due again.
            if let Err(error) = looked {
                tracing::warn!(
                    payment = payment.id,
                    error = error.reason(),
                    "cannot find out what became of a payment; trying again"
                );
            }
        }
        Ok(due.len())
    }

    async fn look_up(&self, payment: &Payment) -> Result<(), ApiError> {
        let (machine, plane) = (&self.machine, &self.machine.plane);
        let expected = expected(payment)?;
        let mut reason = payment.reason.clone().unwrap_or_else(|| "interrupted".to_owned());
        if let Some(reader) = &plane.chain {
            match reader.lookup(&expected).await {
                // The chain outweighs everything that a facilitator has said.
                Ok(NonceStatus::Used(transaction)) => return machine.grant(payment, transaction).await,
                Ok(NonceStatus::Cancelled) => return machine.fail(payment, payment.attempts, "cancelled").await,
                Ok(NonceStatus::Unused(at)) if at >= expected.valid_before => {
                    return machine.fail(payment, payment.attempts, "expired").await;
                }
                // No rule fits a nonce that was used for another transfer, so the payment stays open
                // for an administrator. It raises the alarm once.
                Ok(NonceStatus::UsedOtherwise) => {
                    let doubt = SettlementDoubt {
                        reason: "nonce_used_otherwise".to_owned(),
                        transaction: None,
                        is_alarming: payment.reason.as_deref() != Some("nonce_used_otherwise"),
                    };
                    return machine.doubt(payment, doubt, BACKOFF.most).await;
                }
                Ok(NonceStatus::Unused(_)) => {}
                // A silent node is no reason to stop: the same payment may still be sent again.
                Err(unanswered) => reason = unanswered.reason,
            }
        }
        let now = natural(machine.clock.now().micros().div_euclid(1_000_000));
        let mut transaction: Option<Bytes32> = None;
        // Near its end it is not sent again: it could expire on the way, and one doubt would become
        // two.
        if payment.payload.is_some() && now + MARGIN_SECONDS < expected.valid_before {
            match plane.facilitator.settle(&order(payment)?).await {
                Settlement::Done(transaction) => return machine.done(payment, transaction, &expected).await,
                // The answer to a later attempt proves nothing about the first.
                Settlement::Refused(word) => {
                    mutate!(Bug::RefusalIsProof => machine.fail(payment, payment.attempts, &word).await?);
                    reason = word;
                }
                Settlement::NotSent(word) => reason = word,
                Settlement::Unknown(doubt) => {
                    reason = doubt.reason;
                    transaction = doubt.transaction;
                }
            }
        }
        let attempts = u32::try_from(payment.attempts).unwrap_or(u32::MAX);
        let doubt = SettlementDoubt {
            reason,
            transaction,
            is_alarming: false,
        };
        machine
            // Sending and the first doubt count as attempts, so the pauses begin with the shortest.
            .doubt(payment, doubt, BACKOFF.pause(attempts.saturating_sub(2)))
            .await
    }

    /// Looks at a failed payment after its end: the transfer may have been sent by somebody else.
    async fn look_once_more(&self, payment: &Payment) -> Result<(), ApiError> {
        let machine = &self.machine;
        let Some(reader) = &machine.plane.chain else {
            machine.store.payments().failed_for_good(&payment.id).await?;
            return Ok(());
        };
        let expected = expected(payment)?;
        let sight = reader.lookup(&expected).await.map_err(ApiError::unavailable)?;
        mutate!(Bug::LateIsIgnored => let sight = crate::faults::overlook(sight));
        match sight {
            NonceStatus::Used(transaction) => {
                tracing::warn!(
                    payment = payment.id,
                    "a payment that had failed moved its money later; it is settled"
                );
                machine.grant(payment, transaction).await
            }
            // The node is behind, so this says nothing yet. The lease ends, and the payment is due
            // again.
            NonceStatus::Unused(at) if at < expected.valid_before => Ok(()),
            // Its transfer may be older than the blocks that are searched, so a person looks.
            NonceStatus::UsedOtherwise => {
                tracing::error!(
                    payment = payment.id,
                    "the nonce of a payment that had failed was used; look at it (`sluice admin payments resolve`)"
                );
                machine.store.payments().failed_for_good(&payment.id).await?;
                Ok(())
            }
            NonceStatus::Unused(_) | NonceStatus::Cancelled => {
                machine.store.payments().failed_for_good(&payment.id).await?;
                Ok(())
            }
        }
    }
}

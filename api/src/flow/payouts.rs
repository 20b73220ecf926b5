//! Payouts: pays sellers their share, and wallets their refunds, from the treasury.
//!
//! Invariants:
//! - Every attempt of a payout has the same nonce, so the chain pays it once, however often it is signed.
//! - An attempt is committed before it is sent. A payout is given up only if its nonce is unused at a block after the
//!   end of its latest attempt. Where no chain can be read, an administrator gives it up.

use std::sync::Arc;
use std::time::Duration;

use serde_json::json;
use store::{NewPayout, PayoutPicked, PayoutRow, Store};
use tokio_util::sync::CancellationToken;
use types::{Backoff, Clock, PaymentId, Timestamp, fault, mutate};
use x402::chain::NonceStatus;
use x402::facilitator::{ExpectedTransfer, SettlementOrder};
use x402::wire::{Offer, Protocol};
use x402::{Authorization, PaymentAsset, Settlement, WalletKey};

use crate::error::ApiError;
use crate::periodic::PeriodicTimer;
use crate::rules::settlement::{natural, payout_nonce, wallet_of};
use crate::state::payment_services::PaymentServices;

/// Interval at which payouts are sent.
const POLL_INTERVAL: Duration = Duration::from_secs(2);
/// Seconds for which an attempt is valid.
const VALID_SECONDS: u64 = 600;
/// Payouts taken at a time, and the time that nobody else takes them.
const BATCH: u32 = 8;
const LEASE: Duration = Duration::from_mins(5);
/// Pauses between attempts, from a minute to six hours.
const BACKOFF: Backoff = Backoff {
    first: Duration::from_mins(1),
    most: Duration::from_hours(6),
};
/// Pause after an attempt that may have been paid.
const RECHECK_DELAY: Duration = Duration::from_secs(5);
/// Attempts after which a payout whose nonce is unused is given up: about a day and a half.
const MAX_ATTEMPTS: i64 = 12;

/// Task that picks payouts and sends them.
#[derive(Debug)]
pub struct PayoutTask {
    store: Store,
    plane: Arc<PaymentServices>,
    clock: Arc<dyn Clock>,
}

impl PayoutTask {
    /// Creates a task that has not started.
    pub const fn new(store: Store, plane: Arc<PaymentServices>, clock: Arc<dyn Clock>) -> Self {
        Self { store, plane, clock }
    }

    /// Pays until `stop`. Does nothing without the key of the treasury.
    pub async fn run(self, stop: CancellationToken) {
        let running = async {
            let mut rounds = PeriodicTimer::every(POLL_INTERVAL, &stop);
            let mut picked = Timestamp::from_micros(0);
            while rounds.next().await {
                let now = self.clock.now();
                if now.since(picked) >= self.plane.payout_every {
                    picked = now;
                    // Picking goes first, so that a payout that this round picks is sent in the same
                    // round.
                    told(self.pick().await.err());
                }
                told(self.send_due().await.err());
            }
        };
        if self.plane.treasury.is_some() {
            stop.run_until_cancelled(running).await;
        } else {
            stop.cancelled().await;
        }
    }

    /// Picks a payout for each operator that is due, and returns their number.
    ///
    /// # Errors
    /// A database that does not answer.
    pub async fn pick(&self) -> Result<usize, ApiError> {
        let (now, asset) = (self.clock.now(), self.plane.asset.id());
        let money = self.store.money();
        let mut picked = 0;
        // Each payout is a transaction of its own: one that the treasury does not cover keeps no other
        // back.
        for payable in money.payable(&asset, self.plane.tariff.payout_threshold, now).await? {
            let id = PaymentId::new(now).to_string();
            let new = NewPayout {
                // The nonce follows from the id and is stored with it, so a process that takes over
                // signs the same transfer.
                nonce: payout_nonce(&id).to_string(),
                id,
                asset: asset.clone(),
                payable,
                now,
            };
            let operator = new.payable.operator;
            match money.payout_pick(new).await? {
                PayoutPicked::Picked => picked += 1,
                // Another process has picked this operator meanwhile, which is as good.
                PayoutPicked::Raced => {}
                PayoutPicked::Uncovered => tracing::error!(
                    %operator,
                    "the treasury does not cover a payout; it waits until test USDC comes in"
                ),
            }
            fault::point("payout.picked");
        }
        Ok(picked)
    }

    /// Sends the payouts that are due, and returns their number.
    ///
    /// # Errors
    /// A database that does not answer.
    pub async fn send_due(&self) -> Result<usize, ApiError> {
        let Some(key) = &self.plane.treasury else {
            return Ok(0);
        };
        let due = self.store.money().payouts_due(self.clock.now(), LEASE, BATCH).await?;
        for payout in &due {
            self.send(key, payout).await?;
        }
        Ok(due.len())
    }

    async fn send(&self, key: &WalletKey, payout: &PayoutRow) -> Result<(), ApiError> {
        let money = self.store.money();
        let now = natural(self.clock.now().micros().div_euclid(1_000_000));
        let nonce = payout.nonce.parse().map_err(ApiError::internal)?;
        mutate!(Bug::PayoutNonces => let nonce = payout_nonce(&format!("{} {}", payout.id, payout.attempts)));
        let mut expected = ExpectedTransfer {
            payer: key.address(),
            pay_to: wallet_of(payout)?,
            amount: natural(payout.amount.0),
            nonce,
            valid_before: natural(payout.valid_before),
        };
        // An earlier attempt may have been paid. Before the first one nothing can have used the nonce.
        if let Some(reader) = self.plane.chain.as_ref().filter(|_| payout.attempts > 0) {
            match reader.lookup(&expected).await {
                Ok(NonceStatus::Used(transaction)) => {
                    money
                        .payout_done(&payout.id, &transaction.to_string(), self.clock.now())
                        .await?;
                    fault::point("payout.booked");
                    return Ok(());
                }
                // Before the end of the latest attempt that one may still be paid.
                Ok(NonceStatus::Unused(at)) if at >= expected.valid_before && payout.attempts >= MAX_ATTEMPTS => {
                    return self.give_up(payout).await;
                }
                Ok(NonceStatus::Unused(_)) => {}
                Ok(sight) => {
                    tracing::error!(
                        payout = payout.id,
                        sight = ?sight,
                        "the nonce of a payout was used for something else; look at the key of the treasury"
                    );
                    return self.later(payout, None, BACKOFF.most).await;
                }
                // Without a look it is still safe to send: the nonce is the same.
                Err(_unanswered) => {}
            }
        }
        expected.valid_before = now + VALID_SECONDS;
        let valid_before = i64::try_from(expected.valid_before).unwrap_or(i64::MAX);
        // The row is written first. After a crash it says that money may have moved, and the next try
        // asks the chain.
        if !money.payout_sending(&payout.id, valid_before).await? {
            return Ok(());
        }
        fault::point("payout.sending");
        let order = self.order(key, &expected);
        let settlement = self.plane.facilitator.settle(&order).await;
        fault::point("payout.answered");
        let attempts = u32::try_from(payout.attempts).unwrap_or(u32::MAX);
        match settlement {
            Settlement::Done(transaction) => {
                // The word of a facilitator that others run is checked on the chain, if a node can be
                // asked.
                let is_there = match self.plane.chain.as_ref().filter(|_| !self.plane.is_built_in) {
                    Some(reader) => reader.confirms(transaction, &expected).await == Ok(true),
                    None => true,
                };
                if !is_there {
                    return self.later(payout, Some(transaction.to_string()), RECHECK_DELAY).await;
                }
                money
                    .payout_done(&payout.id, &transaction.to_string(), self.clock.now())
                    .await?;
                fault::point("payout.booked");
                Ok(())
            }
            Settlement::Refused(reason) | Settlement::NotSent(reason) => {
                tracing::error!(payout = payout.id, reason, "a payout was refused; trying again later");
                self.later(payout, None, BACKOFF.pause(attempts)).await
            }
            Settlement::Unknown(doubt) => {
                tracing::warn!(
                    payout = payout.id,
                    reason = doubt.reason,
                    "it is not known if a payout was made; looking again"
                );
                // Most doubts are a slow answer, which the chain settles a moment later.
                let pause = if attempts == 0 {
                    RECHECK_DELAY
                } else {
                    BACKOFF.pause(attempts - 1)
                };
                let transaction = doubt.transaction.map(|transaction| transaction.to_string());
                self.later(payout, transaction, pause).await
            }
        }
    }

    /// Gives up a payout whose nonce is unused after the end of its latest attempt.
    async fn give_up(&self, payout: &PayoutRow) -> Result<(), ApiError> {
        let money = self.store.money();
        let is_over = money
            .payout_failed(&payout.id, payout.attempts, self.clock.now())
            .await?;
        if is_over && payout.is_refund {
            tracing::error!(
                payout = payout.id,
                "a refund to a wallet could not be made and is still owed; repeat it (`sluice admin payouts retry`)"
            );
        } else if is_over {
            tracing::error!(
                payout = payout.id,
                "a payout could not be made and is payable again; look at the facilitator"
            );
        }
        Ok(())
    }

    async fn later(&self, payout: &PayoutRow, transaction: Option<String>, pause: Duration) -> Result<(), ApiError> {
        let at = self.clock.now().plus(pause);
        self.store.money().payout_later(&payout.id, transaction, at).await?;
        Ok(())
    }

    /// Signs an attempt. It is a payment of version 2 in which the service is the payer.
    fn order(&self, key: &WalletKey, expected: &ExpectedTransfer) -> SettlementOrder {
        let asset = PaymentAsset {
            pay_to: expected.pay_to,
            ..self.plane.asset.clone()
        };
        let authorization = Authorization {
            from: expected.payer,
            to: expected.pay_to,
            value: expected.amount,
            // A start at `now` would be in the future of a chain whose clock is behind.
            valid_after: 0,
            valid_before: expected.valid_before,
            nonce: expected.nonce,
        };
        let signature = authorization.sign(&asset, key);
        let offer = Offer {
            url: "payout".to_owned(),
            description: "Payout".to_owned(),
            tag: "payout",
            amount: expected.amount,
        };
        let requirements = offer.v2(&asset);
        let payment = json!({
            "x402Version": 2,
            "accepted": requirements,
            "payload": {
                "signature": signature.to_string(),
                "authorization": {
                    "from": expected.payer.checksum(),
                    "to": expected.pay_to.checksum(),
                    "value": expected.amount.to_string(),
                    "validAfter": "0",
                    "validBefore": expected.valid_before.to_string(),
                    "nonce": expected.nonce.to_string(),
                },
            },
        });
        SettlementOrder {
            protocol: Protocol::V2,
            payment,
            requirements,
            expected: expected.clone(),
        }
    }
}

/// Logs that a round failed; the next one tries again.
fn told(failed: Option<ApiError>) {
    if let Some(error) = failed {
        tracing::warn!(error = error.reason(), "payouts could not be made; trying again");
    }
}

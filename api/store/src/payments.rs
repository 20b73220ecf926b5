//! Payments by x402: one row for each authorization, from the moment it is bound to an item.
//!
//! ```text
//! bound ──▶ settling ──▶ settled        refused: verify said no      abandoned: a newer one took its place
//!              │  └────▶ failed         not_needed: the wallet owned the item
//!              └─▶ unknown ──▶ settled, failed
//! ```
//!
//! Invariants:
//! - A step is taken by one statement whose condition is the state before it, so of many one takes it.
//! - At most one payment of a wallet for an item is open. Packs are no item in this sense.
//! - A row in a final state holds no signature.

mod model;
mod wallets;

use std::time::Duration;

use sqlx::AnyConnection;
use types::Timestamp;

pub use model::{Bound, Doubtful, NewPayment, PaidFor, Payment, PaymentBound, PaymentMessage, PaymentState};
pub use wallets::{WalletGift, WalletGiven, WalletMoved, WalletSpent, WalletTransfer, Wallets};

use crate::query::{sql, text, tx};
use crate::row::{Columns, Row as _, texts};
use crate::writer::Change;
use crate::{Error, Store};

/// The part of the database about payments by x402.
#[derive(Clone, Copy, Debug)]
pub struct Payments<'s>(pub(crate) &'s Store);

impl Store {
    /// Returns the part of the database about payments by x402.
    pub const fn payments(&self) -> Payments<'_> {
        Payments(self)
    }
}

impl Payments<'_> {
    /// Binds an authorization to a thing, unless it is known. An open payment of the same wallet and item that was
    /// never sent and whose lease is over is abandoned.
    ///
    /// # Errors
    /// [`Error::Text`].
    pub async fn bind(&self, new: NewPayment) -> Result<PaymentBound, Error> {
        texts(&[("payload", &new.message.payload), ("item_id", &new.bound.id)])?;
        self.0.write_aside(tx!(async move |cx| { bind(cx, &new).await })).await
    }

    /// Returns the payment of an authorization.
    pub async fn of(&self, network: &str, asset: &str, payer: &str, nonce: &str) -> Result<Option<Payment>, Error> {
        self.0
            .optional(sql!(
                text!(
                    "SELECT ",
                    Payment::COLUMNS,
                    " FROM payments WHERE network = $1 AND asset = $2 AND payer = $3 AND nonce = $4"
                ),
                network,
                asset,
                payer,
                nonce
            ))
            .await
    }

    /// Returns the payment with this id.
    pub async fn get(&self, id: &str) -> Result<Option<Payment>, Error> {
        self.0
            .optional(sql!(
                text!("SELECT ", Payment::COLUMNS, " FROM payments WHERE id = $1"),
                id
            ))
            .await
    }

    /// Returns the settled payment by which a wallet bought a thing first.
    pub async fn first_of(&self, network: &str, payer: &str, bound: &Bound) -> Result<Option<Payment>, Error> {
        self.0
            .optional(sql!(
                text!(
                    "SELECT ",
                    Payment::COLUMNS,
                    " FROM payments WHERE network = $1 AND payer = $2 AND item_kind = $3 AND item_id = $4
                     AND state = 'settled' ORDER BY settled_at LIMIT 1"
                ),
                network,
                payer,
                bound.kind,
                &bound.id
            ))
            .await
    }

    /// Returns the payments in a state, newest first.
    pub async fn listed(&self, state: Option<PaymentState>, limit: u32) -> Result<Vec<Payment>, Error> {
        self.0
            .all(sql!(
                text!(
                    "SELECT ",
                    Payment::COLUMNS,
                    " FROM payments WHERE state = $1 OR $1 = '' ORDER BY bound_at DESC, id LIMIT $2"
                ),
                state.map_or("", PaymentState::as_str),
                limit
            ))
            .await
    }

    /// Notes that the facilitator said no. Nothing was sent.
    pub async fn refuse(&self, id: &str, reason: &str) -> Result<bool, Error> {
        self.step(
            "UPDATE payments SET state = 'refused', reason = $2, payload = NULL WHERE id = $1 AND state = 'bound'",
            id,
            reason,
        )
        .await
    }

    /// Binds again, with the message that came now, a payment that was refused or gave way. [`PaymentBound::Open`] if it is
    /// in another state, or another payment of the wallet for the item is open.
    ///
    /// # Errors
    /// [`Error::Text`].
    pub async fn rebind(
        &self,
        known: &Payment,
        message: PaymentMessage,
        now: Timestamp,
        lease: Duration,
    ) -> Result<PaymentBound, Error> {
        texts(&[("payload", &message.payload)])?;
        let (id, payer) = (known.id.clone(), known.payer.clone());
        self.0
            .write_aside(tx!(async move |cx| {
                if !identify(cx, &payer, &id, &message, now).await? {
                    return Ok(Change::Undo(PaymentBound::IdentifierReused));
                }
                // Another open payment is looked for in the statement, because a violated index
                // would end the whole transaction on PostgreSQL.
                let changed = sql!(
                    "UPDATE payments SET state = 'bound', payload = $2, payload_hash = $5, has_secret = $6,
                         reason = NULL, lease_until = $3, bound_at = $4
                     WHERE id = $1 AND state IN ('refused', 'abandoned') AND NOT EXISTS (
                         SELECT 1 FROM payments AS other
                         WHERE other.network = payments.network AND other.payer = payments.payer
                           AND other.item_kind = payments.item_kind AND other.item_id = payments.item_id
                           AND other.item_kind <> 'pack' AND other.state IN ('bound', 'settling', 'unknown'))",
                    id,
                    message.payload,
                    now.plus(lease),
                    now,
                    message.payload_hash,
                    message.has_secret
                )
                .run(cx)
                .await?;
                Ok(if changed > 0 {
                    Change::Keep(PaymentBound::New)
                } else {
                    Change::Undo(PaymentBound::Open)
                })
            }))
            .await
    }

    /// Takes a bound payment to be sent. Of many callers one gets true.
    pub async fn begin(&self, id: &str, lease_until: Timestamp) -> Result<bool, Error> {
        self.timed(
            "UPDATE payments SET state = 'settling', attempts = attempts + 1, lease_until = $2, next_try_at = $2
             WHERE id = $1 AND state = 'bound'",
            id,
            lease_until,
        )
        .await
    }

    /// Extends the time for which the owner of a first attempt is known to live.
    pub async fn hold(&self, id: &str, lease_until: Timestamp) -> Result<bool, Error> {
        self.timed(
            "UPDATE payments SET lease_until = $2, next_try_at = $2
             WHERE id = $1 AND state = 'settling' AND attempts = 1",
            id,
            lease_until,
        )
        .await
    }

    /// Takes their owner from the payments that are bound or being settled, and returns their number. Only where every
    /// process that could own one has ended.
    pub async fn orphan(&self, now: Timestamp) -> Result<u64, Error> {
        self.0
            .write_aside(tx!(async move |cx| {
                let orphaned = sql!(
                    "UPDATE payments SET lease_until = $1,
                         next_try_at = CASE WHEN state = 'settling' THEN $1 ELSE next_try_at END
                     WHERE state IN ('bound', 'settling') AND lease_until > $1",
                    now
                )
                .run(cx)
                .await?;
                Ok(Change::Keep(orphaned))
            }))
            .await
    }

    /// Takes back a first attempt that did not leave.
    pub async fn not_sent(&self, id: &str, lease_until: Timestamp) -> Result<bool, Error> {
        // Only after a first attempt: with an earlier one, the authorization may have been sent before.
        self.timed(
            "UPDATE payments SET state = 'bound', attempts = 0, lease_until = $2
             WHERE id = $1 AND state = 'settling' AND attempts = 1",
            id,
            lease_until,
        )
        .await
    }

    /// Notes that a payment may have moved the money.
    pub async fn doubt(&self, id: &str, doubt: Doubtful) -> Result<bool, Error> {
        let id = id.to_owned();
        self.0
            .write_aside(tx!(async move |cx| {
                let changed = sql!(
                    "UPDATE payments SET state = 'unknown', reason = $2,
                         transaction_hash = COALESCE($3, transaction_hash), next_try_at = $4
                     WHERE id = $1 AND state IN ('settling', 'unknown')",
                    id,
                    doubt.reason,
                    doubt.transaction,
                    doubt.next_try_at
                )
                .run(cx)
                .await?;
                Ok(Change::Keep(changed > 0))
            }))
            .await
    }

    /// Notes that a payment moved nothing, which its attempts so far, `attempts` of them, prove, and when to look once
    /// more. False if it is over, or was sent again since.
    pub async fn fail(&self, id: &str, attempts: i64, reason: &str, look_at: Timestamp) -> Result<bool, Error> {
        let (id, reason) = (id.to_owned(), reason.to_owned());
        self.0
            .write_aside(tx!(async move |cx| {
                let changed = sql!(
                    "UPDATE payments SET state = 'failed', reason = $2, payload = NULL, next_try_at = $3
                     WHERE id = $1 AND attempts = $4 AND state IN ('settling', 'unknown')",
                    id,
                    reason,
                    look_at,
                    attempts
                )
                .run(cx)
                .await?;
                Ok(Change::Keep(changed > 0))
            }))
            .await
    }

    /// Notes that a failed payment was looked at for the last time.
    pub async fn failed_for_good(&self, id: &str) -> Result<bool, Error> {
        self.timed(
            "UPDATE payments SET next_try_at = $2 WHERE id = $1 AND state = 'failed'",
            id,
            Timestamp::from_micros(i64::MAX),
        )
        .await
    }

    /// Takes payments to look at: those that may have moved the money and are due, those whose owner is gone, and
    /// failed ones that are looked at once more. Nobody else gets them before `until`.
    pub async fn due(&self, now: Timestamp, until: Timestamp, limit: u32) -> Result<Vec<Payment>, Error> {
        self.0
            .write_aside(tx!(async move |cx| {
                // Failed rows are looked at as well until the chain proves that their authorization
                // can no longer be used.
                let due = sql!(
                    "SELECT id FROM payments WHERE state IN ('settling', 'unknown', 'failed') AND next_try_at <= $1
                     ORDER BY next_try_at, id LIMIT $2",
                    now,
                    limit
                )
                .rows(cx)
                .await?;
                if due.is_empty() {
                    return Ok(Change::Nothing(Vec::new()));
                }
                let mut taken = Vec::with_capacity(due.len());
                for row in due {
                    // A settling payment whose lease is over was sent, for all that anybody knows.
                    let row = sql!(
                        text!(
                            "UPDATE payments SET next_try_at = $3,
                                 attempts = attempts + CASE WHEN state = 'failed' THEN 0 ELSE 1 END,
                                 state = CASE WHEN state = 'settling' THEN 'unknown' ELSE state END
                             WHERE id = $1 AND state IN ('settling', 'unknown', 'failed') AND next_try_at <= $2
                             RETURNING ",
                            Payment::COLUMNS
                        ),
                        row.get::<String>("id")?,
                        now,
                        until
                    )
                    .row_if_any(cx)
                    .await?;
                    taken.extend(row.as_ref().map(Payment::of).transpose()?);
                }
                Ok(Change::Keep(taken))
            }))
            .await
    }

    /// Deletes payments that were never sent and cannot be any more, and returns their number. Notes that payments are
    /// looked for at `now`.
    pub async fn sweep(&self, valid_before: i64, now: Timestamp) -> Result<u64, Error> {
        self.0
            .write_aside(tx!(async move |cx| {
                // Without the note the check could not tell a payment that nobody looks at from one that
                // waits while the service is stopped.
                sql!(
                    "INSERT INTO service_state (name, value, generation, at) VALUES ('payments', '{}', 0, $1)
                     ON CONFLICT (name) DO UPDATE SET at = excluded.at",
                    now
                )
                .run(cx)
                .await?;
                // Their identifiers first, which are found by the rows.
                sql!(
                    "DELETE FROM payment_ids WHERE (payer, payment_id) IN (
                         SELECT payer, id FROM payments WHERE state IN ('bound', 'refused', 'abandoned')
                         AND attempts = 0 AND valid_before < $1)",
                    valid_before
                )
                .run(cx)
                .await?;
                // Only rows that were never sent: any other may still move money, and the row is
                // what it would be found by.
                let deleted = sql!(
                    "DELETE FROM payments WHERE state IN ('bound', 'refused', 'abandoned') AND attempts = 0
                     AND valid_before < $1",
                    valid_before
                )
                .run(cx)
                .await?;
                Ok(Change::Keep(deleted))
            }))
            .await
    }

    async fn step(&self, statement: &'static str, id: &str, text: &str) -> Result<bool, Error> {
        let (id, text) = (id.to_owned(), text.to_owned());
        self.0
            .write_aside(tx!(async move |cx| {
                let changed = sql!(statement, id, text).run(cx).await?;
                Ok(Change::Keep(changed > 0))
            }))
            .await
    }

    async fn timed(&self, statement: &'static str, id: &str, at: Timestamp) -> Result<bool, Error> {
        let id = id.to_owned();
        self.0
            .write_aside(tx!(async move |cx| {
                let changed = sql!(statement, id, at).run(cx).await?;
                Ok(Change::Keep(changed > 0))
            }))
            .await
    }
}

async fn bind(cx: &mut AnyConnection, new: &NewPayment) -> Result<Change<PaymentBound>, Error> {
    // Before anything is abandoned: the same authorization sent again must find its own row, whatever
    // its state.
    if let Some(known) = known(cx, new).await? {
        return Ok(Change::Nothing(PaymentBound::Known(Box::new(known))));
    }
    if !identify(cx, &new.payer, &new.id, &new.message, new.now).await? {
        // A twin of this authorization may have been faster.
        let outcome = known(cx, new).await?;
        return Ok(Change::Undo(outcome.map_or(PaymentBound::IdentifierReused, |known| {
            PaymentBound::Known(Box::new(known))
        })));
    }
    sql!(
        "UPDATE payments SET state = 'abandoned', payload = NULL
         WHERE network = $1 AND payer = $2 AND item_kind = $3 AND item_id = $4 AND item_kind <> 'pack'
           AND state = 'bound' AND lease_until <= $5",
        new.network.clone(),
        new.payer.clone(),
        new.bound.kind,
        new.bound.id.clone(),
        new.now
    )
    .run(cx)
    .await?;
    let state = if new.is_owned {
        PaymentState::NotNeeded
    } else {
        PaymentState::Bound
    };
    // Two unique keys decide: one row per authorization, and one open payment of a wallet for an item.
    let inserted = sql!(
        "INSERT INTO payments (id, network, asset, payer, nonce, x402_version, item_kind, item_id, version,
             unit_version, amount, pay_to, valid_after, valid_before, payload_hash, payload, has_secret, client_net,
             buyer_operator, state, attempts, lease_until, next_try_at, bound_at)
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19, $20, 0, $21, $21,
             $22)
         ON CONFLICT DO NOTHING",
        new.id.clone(),
        new.network.clone(),
        new.asset.clone(),
        new.payer.clone(),
        new.nonce.clone(),
        new.protocol,
        new.bound.kind,
        new.bound.id.clone(),
        new.bound.version,
        new.bound.unit_version.clone(),
        new.amount,
        new.pay_to.clone(),
        new.valid_after,
        new.valid_before,
        new.message.payload_hash,
        (!new.is_owned).then(|| new.message.payload.clone()),
        new.message.has_secret,
        new.client_net.clone(),
        new.buyer,
        state,
        new.now.plus(new.lease),
        new.now
    )
    .run(cx)
    .await?;
    if inserted > 0 {
        return Ok(Change::Keep(PaymentBound::New));
    }
    // One of two rules refused the row: another transaction bound the authorization, or the item for this wallet.
    let outcome = known(cx, new)
        .await?
        .map_or(PaymentBound::Open, |known| PaymentBound::Known(Box::new(known)));
    Ok(Change::Undo(outcome))
}

/// Gives a payment the identifier of its message. Returns false if the payer gave it to another payment.
async fn identify(
    cx: &mut AnyConnection,
    payer: &str,
    payment: &str,
    message: &PaymentMessage,
    now: Timestamp,
) -> Result<bool, Error> {
    let Some(identifier) = &message.identifier else {
        return Ok(true);
    };
    // The row is the lock between two payments with one identifier.
    sql!(
        "INSERT INTO payment_ids (payer, identifier, payload_hash, payment_id, created_at)
         VALUES ($1, $2, $3, $4, $5) ON CONFLICT (payer, identifier) DO NOTHING",
        payer.to_owned(),
        identifier,
        message.payload_hash,
        payment.to_owned(),
        now
    )
    .run(cx)
    .await?;
    let row = sql!(
        "SELECT payment_id FROM payment_ids WHERE payer = $1 AND identifier = $2",
        payer.to_owned(),
        identifier
    )
    .row(cx)
    .await?;
    Ok(row.value::<&str>("payment_id")? == payment)
}

async fn known(cx: &mut AnyConnection, new: &NewPayment) -> Result<Option<Payment>, Error> {
    sql!(
        text!(
            "SELECT ",
            Payment::COLUMNS,
            " FROM payments WHERE network = $1 AND asset = $2 AND payer = $3 AND nonce = $4"
        ),
        new.network.clone(),
        new.asset.clone(),
        new.payer.clone(),
        new.nonce.clone()
    )
    .optional(cx)
    .await
}

//! Payouts to sellers, and refunds to wallets, which leave the treasury the same way.
//!
//! Invariants:
//! - A payout is picked in the transaction that moves its amount to `payout_pending`, and booked in the one that moves
//!   it on. Its address, amount and nonce never change.
//! - An operator has at most one payout that is not over.
//! - What is on its way out of the treasury is never more than it has: a payout or refund that it does not cover is not
//!   picked.
//! - A refund that was given up is still owed: nobody else has a claim to its amount, and it is tried again with its
//!   nonce once an administrator says so.

use std::time::Duration;

use pay::{Account, Event};
use sqlx::AnyConnection;
use sqlx::any::AnyRow;
use types::money::MicroUsdc;
use types::{LedgerEventId, OperatorId, Timestamp, mutate};

pub use types::vocabulary::PayoutState;

use super::Money;
use super::post::{Posted, Posting, locked_balance, post};
use crate::Error;
use crate::query::{sql, text, tx};
use crate::row::{Columns, Row as _, row};
use crate::writer::Change;

row! {
    /// A payout, or a refund to a wallet.
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub struct PayoutRow {
        /// Id of the payout, a version 7 UUID.
        pub id: String,
        /// True for a refund.
        pub is_refund: bool = "kind" => is_refund,
        /// Operator that is paid; `None` for a refund to a wallet.
        pub operator: Option<OperatorId> = "operator_id",
        /// Wallet that is paid.
        pub address: String,
        /// Amount that is paid, in micro-USDC.
        pub amount: MicroUsdc,
        /// Asset of the ledger.
        pub asset: String,
        /// Nonce of every attempt.
        pub nonce: String,
        /// Second before which the latest attempt is valid; 0 before the first.
        pub valid_before: i64,
        /// State of the payout as stored.
        pub state: PayoutState,
        /// Number of attempts to send it so far.
        pub attempts: i64,
        /// Time of the next step.
        pub next_try_at: Timestamp,
        /// Transaction that paid it, once it is known.
        pub transaction: Option<String> = "transaction_hash",
        /// Time at which it was picked.
        pub created_at: Timestamp,
    }
}

row! {
    /// An operator that is due to be paid.
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub struct Payable {
        /// Operator that is paid.
        pub operator: OperatorId = "id",
        /// Payout address that is in force now.
        pub address: String,
        /// Balance that is payable.
        pub amount: MicroUsdc = "balance",
    }
}

/// Payout to pick.
#[derive(Clone, Debug)]
pub struct NewPayout {
    /// Id of the payout.
    pub id: String,
    /// Nonce of every attempt.
    pub nonce: String,
    /// Asset of the ledger.
    pub asset: String,
    /// Amount that is payable to an operator, and its address.
    pub payable: Payable,
    /// Time at which the payout is picked.
    pub now: Timestamp,
}

/// Outcome of picking a payout.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PayoutPicked {
    /// It is picked.
    Picked,
    /// Another payout of the operator is open, or its balance is smaller by now.
    Raced,
    /// The treasury does not cover it beside what is pending.
    Uncovered,
}

impl Money<'_> {
    /// Returns the operators with at least `threshold` payable, an address in force and no change of it that waits, who
    /// are not suspended and have no open payout.
    pub async fn payable(&self, asset: &str, threshold: MicroUsdc, now: Timestamp) -> Result<Vec<Payable>, Error> {
        self.0
            .all(sql!(
                "SELECT operators.id AS id, ledger_accounts.balance AS balance,
                     CASE WHEN payout_next_at <= $3 THEN payout_next_address ELSE payout_address END AS address
                 FROM ledger_accounts JOIN operators ON operators.id = ledger_accounts.operator_id
                 WHERE ledger_accounts.asset = $1 AND ledger_accounts.kind = 'payable'
                   AND ledger_accounts.balance >= $2 AND operators.suspended_at IS NULL
                   AND (payout_next_at IS NULL OR payout_next_at <= $3)
                   AND CASE WHEN payout_next_at <= $3 THEN payout_next_address ELSE payout_address END IS NOT NULL
                   AND NOT EXISTS (
                       SELECT 1 FROM payouts WHERE payouts.operator_id = operators.id
                         AND payouts.kind = 'payout' AND payouts.state IN ('picked', 'sending', 'unknown'))
                 ORDER BY operators.id",
                asset,
                threshold.0,
                now
            ))
            .await
    }

    /// Picks a payout: sets its amount aside.
    pub async fn payout_pick(&self, new: NewPayout) -> Result<PayoutPicked, Error> {
        self.0.write_aside(tx!(async move |cx| { pick(cx, &new).await })).await
    }

    /// Takes payouts to send or to look at, and returns them as they were. Nobody else gets them for `lease`.
    pub async fn payouts_due(&self, now: Timestamp, lease: Duration, limit: u32) -> Result<Vec<PayoutRow>, Error> {
        self.0
            .write_aside(tx!(async move |cx| {
                // Rows are read first and leased one by one: each update repeats the condition on
                // the locked row, so two processes that read the same rows share them out.
                let due = sql!(
                    text!(
                        "SELECT ",
                        PayoutRow::COLUMNS,
                        " FROM payouts WHERE state IN ('picked', 'sending', 'unknown') AND next_try_at <= $1
                         ORDER BY next_try_at, id LIMIT $2"
                    ),
                    now,
                    limit
                )
                .rows(cx)
                .await?;
                let mut taken = Vec::with_capacity(due.len());
                for row in &due {
                    let payout = PayoutRow::of(row)?;
                    let leased = sql!(
                        "UPDATE payouts SET next_try_at = $3
                         WHERE id = $1 AND state IN ('picked', 'sending', 'unknown') AND next_try_at <= $2",
                        payout.id.clone(),
                        now,
                        now.plus(lease)
                    )
                    .run(cx)
                    .await?;
                    if leased > 0 {
                        taken.push(payout);
                    }
                }
                Ok(if taken.is_empty() {
                    Change::Undo(taken)
                } else {
                    Change::Keep(taken)
                })
            }))
            .await
    }

    /// Notes that a payout is about to be sent with this last second, which never falls.
    pub async fn payout_sending(&self, id: &str, valid_before: i64) -> Result<bool, Error> {
        let id = id.to_owned();
        self.0
            .write_aside(tx!(async move |cx| {
                // The last second never falls: an earlier attempt with a later one may still be
                // valid on the chain, and until it is over the payout cannot be called failed.
                let changed = sql!(
                    "UPDATE payouts SET state = 'sending', attempts = attempts + 1,
                         valid_before = CASE WHEN valid_before > $2 THEN valid_before ELSE $2 END
                     WHERE id = $1 AND state IN ('picked', 'sending', 'unknown')",
                    id,
                    valid_before
                )
                .run(cx)
                .await?;
                Ok(Change::Keep(changed > 0))
            }))
            .await
    }

    /// Notes that a payout is not known to be paid, and when to go on.
    pub async fn payout_later(&self, id: &str, transaction: Option<String>, at: Timestamp) -> Result<bool, Error> {
        let id = id.to_owned();
        self.0
            .write_aside(tx!(async move |cx| {
                let changed = sql!(
                    "UPDATE payouts SET next_try_at = $3, transaction_hash = COALESCE($2, transaction_hash),
                         state = CASE WHEN state = 'sending' THEN 'unknown' ELSE state END
                     WHERE id = $1 AND state IN ('picked', 'sending', 'unknown')",
                    id,
                    transaction,
                    at
                )
                .run(cx)
                .await?;
                Ok(Change::Keep(changed > 0))
            }))
            .await
    }

    /// Books a payout that was paid. False if it was booked before.
    pub async fn payout_done(&self, id: &str, transaction: &str, now: Timestamp) -> Result<bool, Error> {
        let (id, transaction) = (id.to_owned(), transaction.to_owned());
        self.0
            .write_aside(tx!(async move |cx| { paid(cx, &id, transaction, now).await }))
            .await
    }

    /// Gives up a payout that was not paid, which is proved as of its latest attempt, the `attempts`th: the amount of a
    /// payout is payable again, that of a refund stays owed. False if it is over, or was sent again since.
    pub async fn payout_failed(&self, id: &str, attempts: i64, now: Timestamp) -> Result<bool, Error> {
        let id = id.to_owned();
        self.0
            .write_aside(tx!(async move |cx| { given_up(cx, &id, attempts, now).await }))
            .await
    }

    /// Returns a payout or refund.
    pub async fn payout_row(&self, id: &str) -> Result<Option<PayoutRow>, Error> {
        self.0
            .optional(sql!(
                text!("SELECT ", PayoutRow::COLUMNS, " FROM payouts WHERE id = $1"),
                id
            ))
            .await
    }

    /// Returns payouts and refunds in a state, or in any, newest first.
    pub async fn payouts_listed(&self, state: Option<PayoutState>, limit: u32) -> Result<Vec<PayoutRow>, Error> {
        self.0
            .all(sql!(
                text!(
                    "SELECT ",
                    PayoutRow::COLUMNS,
                    " FROM payouts WHERE (state = $1 OR $1 = '') ORDER BY created_at DESC, id DESC LIMIT $2"
                ),
                state.map_or("", PayoutState::as_str),
                limit
            ))
            .await
    }

    /// Returns the payouts of an operator, newest first.
    pub async fn payouts_of(&self, operator: OperatorId, limit: u32) -> Result<Vec<PayoutRow>, Error> {
        self.0
            .all(sql!(
                text!(
                    "SELECT ",
                    PayoutRow::COLUMNS,
                    " FROM payouts WHERE operator_id = $1 ORDER BY created_at DESC, id DESC LIMIT $2"
                ),
                operator,
                limit
            ))
            .await
    }

    /// Makes an open payout due at once, and opens a refund again that was given up. False if there is none with this
    /// id.
    pub async fn payout_retry(&self, id: &str, now: Timestamp) -> Result<bool, Error> {
        let id = id.to_owned();
        self.0
            .write_aside(tx!(async move |cx| {
                // The nonce stays: if an attempt was paid after all, the chain refuses the next one. The
                // attempts begin again, or the first failure would give the refund up at once.
                let changed = sql!(
                    "UPDATE payouts SET next_try_at = $2,
                         attempts = CASE WHEN state = 'failed' THEN 0 ELSE attempts END,
                         state = CASE WHEN state = 'failed' THEN 'picked' ELSE state END
                     WHERE id = $1
                       AND (state IN ('picked', 'sending', 'unknown') OR (kind = 'refund' AND state = 'failed'))",
                    id,
                    now
                )
                .run(cx)
                .await?;
                Ok(Change::Keep(changed > 0))
            }))
            .await
    }
}

async fn pick(cx: &mut AnyConnection, new: &NewPayout) -> Result<Change<PayoutPicked>, Error> {
    let Payable {
        operator,
        address,
        amount,
    } = &new.payable;
    let added = sql!(
        "INSERT INTO payouts (id, kind, operator_id, address, amount, asset, nonce, valid_before, state, attempts,
             next_try_at, created_at)
         VALUES ($1, 'payout', $2, $3, $4, $5, $6, 0, 'picked', 0, $7, $7) ON CONFLICT DO NOTHING",
        new.id.clone(),
        operator,
        address.clone(),
        amount.0,
        new.asset.clone(),
        new.nonce.clone(),
        new.now
    )
    .run(cx)
    .await?;
    // The unique index lets one payout of an operator be open.
    if added == 0 {
        return Ok(Change::Undo(PayoutPicked::Raced));
    }
    let event = Event::payout_pick(&new.id, *operator, *amount);
    // The amount was read before this transaction. If the balance is smaller by now the event is short,
    // and the row of the payout goes with it.
    if !booked(cx, &new.asset, &event, &new.id, new.now).await? {
        return Ok(Change::Undo(PayoutPicked::Raced));
    }
    if !is_covered(cx, &new.asset).await? {
        return Ok(Change::Undo(PayoutPicked::Uncovered));
    }
    Ok(Change::Keep(PayoutPicked::Picked))
}

/// Returns true if the treasury has what is on its way out of it, that of this transaction included. Granted credits are
/// not backed by money, so it may have less than is owed.
pub(super) async fn is_covered(cx: &mut AnyConnection, asset: &str) -> Result<bool, Error> {
    // The row is the lock: without it two payouts that are picked at once would both fit.
    locked_balance(cx, asset, Account::TREASURY).await?;
    let left: i64 = sql!(
        "SELECT CAST(COALESCE(SUM(CASE WHEN kind = 'treasury' THEN balance ELSE -balance END), 0) AS BIGINT)
         FROM ledger_accounts WHERE asset = $1 AND kind IN ('treasury', 'payout_pending', 'refund_pending')",
        asset
    )
    .scalar(cx)
    .await?;
    Ok(left >= 0)
}

async fn paid(cx: &mut AnyConnection, id: &str, transaction: String, now: Timestamp) -> Result<Change<bool>, Error> {
    let row = sql!(
        text!(
            "UPDATE payouts SET state = 'done', transaction_hash = $2
             WHERE id = $1 AND (state IN ('picked', 'sending', 'unknown') OR (kind = 'refund' AND state = 'failed'))
             RETURNING ",
            PayoutRow::COLUMNS
        ),
        id,
        transaction
    )
    .row_if_any(cx)
    .await?;
    let Some(row) = row else {
        return Ok(Change::Undo(false));
    };
    let payout = PayoutRow::of(&row)?;
    let event = match payout.operator.filter(|_| !payout.is_refund) {
        Some(operator) => Event::payout_done(id, operator, payout.amount),
        None => Event::refund_done(id, payout.amount),
    };
    over(cx, &payout, &event, now).await
}

async fn given_up(cx: &mut AnyConnection, id: &str, attempts: i64, now: Timestamp) -> Result<Change<bool>, Error> {
    // An attempt that was sent since may still be paid, so what is known of those before proves nothing.
    let row = sql!(
        text!(
            "UPDATE payouts SET state = 'failed'
             WHERE id = $1 AND attempts = $2 AND state IN ('picked', 'sending', 'unknown') RETURNING ",
            PayoutRow::COLUMNS
        ),
        id,
        attempts
    )
    .row_if_any(cx)
    .await?;
    let Some(row) = row else {
        return Ok(Change::Undo(false));
    };
    let payout = PayoutRow::of(&row)?;
    match payout.operator.filter(|_| !payout.is_refund) {
        Some(operator) => over(cx, &payout, &Event::payout_failed(id, operator, payout.amount), now).await,
        None => Ok(Change::Keep(true)),
    }
}

async fn over(
    cx: &mut AnyConnection,
    payout: &PayoutRow,
    event: &Event,
    now: Timestamp,
) -> Result<Change<bool>, Error> {
    if booked(cx, &payout.asset, event, &payout.id, now).await? {
        Ok(Change::Keep(true))
    } else {
        // The books do not have what the row says.
        Err(Error::Malformed {
            column: "payouts",
            problem: format!("the payout {} cannot be booked", payout.id),
        })
    }
}

async fn booked(cx: &mut AnyConnection, asset: &str, event: &Event, id: &str, now: Timestamp) -> Result<bool, Error> {
    let entry = LedgerEventId::new(now);
    mutate!(Bug::PayoutKeyless => let event = &super::faults::with_key(event, entry));
    let posting = Posting {
        id: entry,
        asset,
        event,
        at: now,
        subject: id,
        actor: "",
    };
    Ok(post(cx, &posting).await? == Posted::Done)
}

fn is_refund(row: &AnyRow, kind: &'static str) -> Result<bool, Error> {
    Ok(row.value::<&str>(kind)? == "refund")
}

//! Disputes of sales.
//!
//! Invariant: a dispute is opened within the window of its sale only, and ends once. A refund takes back what the sale
//! gave: money, entitlement and points, in one transaction.

use pay::Event;
use sqlx::AnyConnection;
use types::vocabulary::{DisputeState, PaidWith};
use types::{DisputeId, LedgerEventId, SaleId, Timestamp};

use super::payments::{WalletRefund, queue_refund};
use super::payouts::is_covered;
use super::post::{Posted, Posting, post};
use super::sales::{SaleState, count, unreward};
use super::{Money, Sale, entitlements};
use crate::Error;
use crate::query::{sql, text, tx};
use crate::row::{Columns, Row as _, row, texts};
use crate::writer::Change;

/// Dispute to open.
#[derive(Clone, Debug)]
pub struct NewDispute {
    /// Id of the dispute.
    pub id: DisputeId,
    /// Id of the event of the ledger.
    pub event: LedgerEventId,
    /// Sale that is disputed.
    pub sale: SaleId,
    /// Reason, in words.
    pub reason: String,
    /// Name of whoever opened it.
    pub by: String,
    /// Time of the opening.
    pub now: Timestamp,
}

row! {
    /// Dispute as stored.
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub struct Dispute {
        /// Id of the dispute.
        pub id: DisputeId,
        /// Sale that is disputed.
        pub sale: SaleId = "sale_id",
        /// Reason, in words.
        pub reason: String,
        /// Name of whoever opened it.
        pub opened_by: String,
        /// Time of the opening.
        pub opened_at: Timestamp,
        /// State of the dispute.
        pub state: DisputeState,
        /// Time of the end.
        pub resolved_at: Option<Timestamp>,
        /// Answer that ended it.
        pub answer: Option<String>,
    }
}

/// Result of [`Money::dispute_open`].
#[derive(Clone, Debug, PartialEq, Eq)]
#[must_use]
#[expect(clippy::large_enum_variant, reason = "the large variant is the usual one")]
pub enum DisputeOpened {
    /// The dispute is open; the share is on hold.
    Opened(Sale),
    /// The sale does not exist.
    Missing,
    /// The sale is not in its window, or is disputed or refunded already.
    TooLate {
        /// State of the sale.
        state: SaleState,
    },
}

/// End of a dispute.
#[derive(Clone, Debug)]
pub enum Resolution {
    /// The seller keeps the share.
    Release,
    /// The buyer gets the price back, as credits, or to its wallet.
    Refund {
        /// Refund to the wallet that paid; `None` gives credits to the operator that bought.
        wallet: Option<WalletRefund>,
    },
}

/// Result of [`Money::dispute_resolve`].
#[derive(Clone, Debug, PartialEq, Eq)]
#[must_use]
#[expect(clippy::large_enum_variant, reason = "the large variant is the usual one")]
pub enum DisputeResolved {
    /// The dispute has ended.
    Resolved(Sale),
    /// The dispute does not exist.
    Missing,
    /// The dispute had ended before.
    Ended,
    /// The sale has no wallet, or no operator, that the refund could go to.
    NowhereToRefund,
    /// An account does not cover the refund; nothing changed.
    Short,
    /// The treasury does not cover the refund to the wallet beside what is on its way out of it; nothing changed.
    Uncovered,
}

impl Money<'_> {
    /// Opens a dispute of a sale that is within its window.
    ///
    /// # Errors
    /// [`Error::Text`].
    pub async fn dispute_open(&self, new: NewDispute) -> Result<DisputeOpened, Error> {
        texts(&[("reason", &new.reason), ("opened_by", &new.by)])?;
        self.0
            .write_aside(tx!(async move |cx| {
                let row = sql!(
                    text!(
                        "UPDATE sales SET state = CASE WHEN state = 'trial' THEN 'trial_disputed' ELSE 'disputed' END
                         WHERE id = $1 AND state IN ('held', 'trial') AND release_at > $2 RETURNING ",
                        Sale::COLUMNS
                    ),
                    new.sale,
                    new.now
                )
                .row_if_any(cx)
                .await?;
                let Some(row) = row else {
                    let state = sql!("SELECT state FROM sales WHERE id = $1", new.sale)
                        .row_if_any(cx)
                        .await?;
                    return Ok(Change::Undo(match state {
                        Some(row) => DisputeOpened::TooLate {
                            state: row.get("state")?,
                        },
                        None => DisputeOpened::Missing,
                    }));
                };
                let sale = Sale::of(&row)?;
                sql!(
                    "INSERT INTO disputes (id, sale_id, reason, opened_by, opened_at, state)
                     VALUES ($1, $2, $3, $4, $5, 'open')",
                    new.id,
                    new.sale,
                    new.reason,
                    new.by,
                    new.now
                )
                .run(cx)
                .await?;
                // A trial sale moved no money that could be held back.
                if sale.paid_with != PaidWith::Given {
                    let event = Event::dispute_open(&new.id.to_string(), sale.seller, sale.share);
                    let posted = move_money(cx, &sale, &event, new.event, new.now).await?;
                    if posted != Posted::Done {
                        let state = SaleState::Held;
                        return Ok(Change::Undo(DisputeOpened::TooLate { state }));
                    }
                }
                Ok(Change::Keep(DisputeOpened::Opened(sale)))
            }))
            .await
    }

    /// Ends a dispute.
    ///
    /// # Errors
    /// [`Error::Text`].
    pub async fn dispute_resolve(
        &self,
        id: DisputeId,
        resolution: Resolution,
        event: LedgerEventId,
        by: &str,
        answer: &str,
        now: Timestamp,
    ) -> Result<DisputeResolved, Error> {
        texts(&[("resolved_by", by), ("answer", answer)])?;
        let (by, answer) = (by.to_owned(), answer.to_owned());
        self.0
            .write_aside(tx!(async move |cx| {
                let refunds = matches!(resolution, Resolution::Refund { .. });
                let row = sql!(
                    "UPDATE disputes SET state = $2, resolved_by = $3, resolved_at = $4, answer = $5
                     WHERE id = $1 AND state = 'open' RETURNING sale_id",
                    id,
                    if refunds { "refunded" } else { "released" },
                    by,
                    now,
                    answer
                )
                .row_if_any(cx)
                .await?;
                let Some(row) = row else {
                    return Ok(Change::Undo(not_open(cx, id).await?));
                };
                let disputed = row.get::<String>("sale_id")?;
                // The state after depends on the window, which the row itself knows.
                let row = sql!(
                    text!(
                        "UPDATE sales SET state = CASE
                             WHEN $2 = 1 AND state = 'trial_disputed' THEN 'trial_refunded'
                             WHEN $2 = 1 THEN 'refunded'
                             WHEN state = 'trial_disputed' THEN 'trial'
                             WHEN release_at > $3 THEN 'held' ELSE 'payable' END
                         WHERE id = $1 AND state IN ('disputed', 'trial_disputed') RETURNING ",
                        Sale::COLUMNS
                    ),
                    disputed,
                    refunds,
                    now
                )
                .row_if_any(cx)
                .await?;
                let Some(row) = row else {
                    return Ok(Change::Undo(DisputeResolved::Ended));
                };
                let sale = Sale::of(&row)?;
                let key = id.to_string();
                let is_trial = sale.paid_with == PaidWith::Given;
                let movement = match (&resolution, sale.buyer) {
                    (Resolution::Release, _) if is_trial => None,
                    (Resolution::Release, _) => {
                        let within = sale.state == SaleState::Held;
                        Some(Event::dispute_lost(&key, sale.seller, sale.share, within))
                    }
                    (Resolution::Refund { .. }, Some(buyer)) if is_trial => {
                        Some(Event::trial_dispute_won(&key, buyer, sale.price))
                    }
                    (Resolution::Refund { wallet: None }, Some(buyer)) => {
                        Some(Event::dispute_won(&key, sale.seller, Some(buyer), sale.split()))
                    }
                    (Resolution::Refund { wallet: Some(refund) }, _) => {
                        // The stored wallet begins with its network.
                        let address = sale.wallet.as_deref().and_then(|wallet| wallet.rsplit_once(':'));
                        let Some((_, address)) = address else {
                            return Ok(Change::Undo(DisputeResolved::NowhereToRefund));
                        };
                        queue_refund(cx, refund, &sale.asset, address, sale.price, now).await?;
                        Some(Event::dispute_won(&key, sale.seller, None, sale.split()))
                    }
                    (Resolution::Refund { .. }, None) => {
                        return Ok(Change::Undo(DisputeResolved::NowhereToRefund));
                    }
                };
                if let Some(movement) = movement {
                    let posted = move_money(cx, &sale, &movement, event, now).await?;
                    if posted != Posted::Done {
                        return Ok(Change::Undo(DisputeResolved::Short));
                    }
                }
                // The dispute stays open, so nobody is promised what is not there.
                let to_wallet = matches!(resolution, Resolution::Refund { wallet: Some(_) });
                if to_wallet && !is_covered(cx, &sale.asset).await? {
                    return Ok(Change::Undo(DisputeResolved::Uncovered));
                }
                if refunds {
                    entitlements::recompute(cx, &sale, now).await?;
                    count(cx, &sale, -1).await?;
                    unreward(cx, &sale, now).await?;
                }
                Ok(Change::Keep(DisputeResolved::Resolved(sale)))
            }))
            .await
    }

    /// Returns a dispute.
    pub async fn dispute(&self, id: DisputeId) -> Result<Option<Dispute>, Error> {
        self.0
            .optional(sql!(
                text!("SELECT ", Dispute::COLUMNS, " FROM disputes WHERE id = $1"),
                id
            ))
            .await
    }

    /// Returns disputes, open ones first, then newest first, up to `limit`.
    pub async fn disputes(&self, limit: u32) -> Result<Vec<Dispute>, Error> {
        self.0
            .all(sql!(
                text!(
                    "SELECT ",
                    Dispute::COLUMNS,
                    " FROM disputes
                     ORDER BY CASE WHEN state = 'open' THEN 0 ELSE 1 END, opened_at DESC, id DESC LIMIT $1",
                ),
                limit
            ))
            .await
    }
}

/// Returns what is said of a dispute that is not open.
async fn not_open(cx: &mut AnyConnection, id: DisputeId) -> Result<DisputeResolved, Error> {
    let known = sql!("SELECT id FROM disputes WHERE id = $1", id).row_if_any(cx).await?;
    Ok(known.map_or(DisputeResolved::Missing, |_row| DisputeResolved::Ended))
}

async fn move_money(
    cx: &mut AnyConnection,
    sale: &Sale,
    event: &Event,
    id: LedgerEventId,
    now: Timestamp,
) -> Result<Posted, Error> {
    let posting = Posting {
        id,
        asset: &sale.asset,
        event,
        at: now,
        subject: &sale.item,
        actor: "",
    };
    post(cx, &posting).await
}

//! Disputes of sales.
//!
//! Invariants:
//! - A dispute is opened within the window of its sale only, and ends once. A refund takes back what the sale gave: money,
//!   entitlement and points, in one transaction.
//! - A buyer opens one dispute of a sale, however often it asks. No time that passes moves money.

use std::time::Duration;

use pay::Event;
use sqlx::AnyConnection;
use types::vocabulary::{DisputeState, PaidWith};
use types::{AgentId, DisputeId, LedgerEventId, OperatorId, SaleId, Timestamp};

use super::payments::{WalletRefund, queue_refund};
use super::payouts::is_covered;
use super::post::{Posted, Posting, post};
use super::sales::{SaleState, count, unreward};
use super::{Money, Sale, entitlements};
use crate::Error;
use crate::query::{sql, text, tx};
use crate::row::{Columns, Row as _, row, texts};
use crate::writer::Change;

mod letters;
mod sides;

use letters::LetterReader;

pub use letters::DisputeLetters;
pub use sides::{DisputeReplied, DisputeSide, DisputedSale};

/// Time in which a seller is asked to answer. Nothing happens by itself when it is over.
pub const DISPUTE_ANSWER_WINDOW: Duration = Duration::from_hours(72);

/// Buyer that opens a dispute.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DisputeOpener {
    /// Operator that bought.
    pub operator: OperatorId,
    /// Agent that acts; `None` for the person.
    pub agent: Option<AgentId>,
}

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
    /// Buyer that opens it; `None` for an administrator.
    pub opener: Option<DisputeOpener>,
    /// Letters to the other parties, if they are to be told.
    pub letters: Option<DisputeLetters>,
    /// Time of the opening.
    pub now: Timestamp,
}

row! {
    /// Dispute as stored.
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub struct Dispute {
        /// Id of the dispute.
        pub id: DisputeId = "disputes.id AS dispute_id",
        /// Sale that is disputed.
        pub sale: SaleId = "disputes.sale_id AS disputed_sale",
        /// Reason, in words.
        pub reason: String = "disputes.reason AS reason",
        /// Name of whoever opened it.
        pub opened_by: String = "disputes.opened_by AS opened_by",
        /// Agent that opened it, if one did.
        pub opened_agent: Option<AgentId> = "disputes.opened_agent AS opened_agent",
        /// Time of the opening.
        pub opened_at: Timestamp = "disputes.opened_at AS opened_at",
        /// Instant until which the seller is asked to answer.
        pub answer_due: Option<Timestamp> = "disputes.answer_due AS answer_due",
        /// Answer of the seller, in words.
        pub reply: Option<String> = "disputes.reply AS reply",
        /// Time of that answer.
        pub replied_at: Option<Timestamp> = "disputes.replied_at AS replied_at",
        /// State of the dispute.
        pub state: DisputeState = "disputes.state AS dispute_state",
        /// Name of whoever ended it.
        pub resolved_by: Option<String> = "disputes.resolved_by AS resolved_by",
        /// Time of the end.
        pub resolved_at: Option<Timestamp> = "disputes.resolved_at AS resolved_at",
        /// Answer that ended it.
        pub answer: Option<String> = "disputes.answer AS answer",
    }
}

/// Result of [`Money::dispute_open`].
#[derive(Clone, Debug, PartialEq, Eq)]
#[must_use]
#[expect(clippy::large_enum_variant, reason = "the large variant is the usual one")]
pub enum DisputeOpened {
    /// The dispute is open; the share is on hold.
    Opened(Sale),
    /// The buyer had opened this one before; nothing changed.
    Before(DisputeId),
    /// The sale does not exist.
    Missing,
    /// The sale is not in its window, or is disputed or refunded already.
    TooLate {
        /// State of the sale.
        state: SaleState,
    },
}

/// Decision that ends a dispute.
#[derive(Clone, Debug)]
pub struct DisputeDecision {
    /// Id of the dispute.
    pub id: DisputeId,
    /// End of the dispute.
    pub resolution: Resolution,
    /// Id of the event of the ledger.
    pub event: LedgerEventId,
    /// Name of whoever ends it.
    pub by: String,
    /// Seller that gives in; `None` for an administrator.
    pub seller: Option<OperatorId>,
    /// Words for buyer and seller.
    pub answer: String,
    /// Letters to buyer and seller, if they are to be told.
    pub letters: Option<DisputeLetters>,
    /// Time of the decision.
    pub now: Timestamp,
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
    /// Opens a dispute of a sale that is within its window. A buyer that has opened one before gets
    /// [`DisputeOpened::Before`] with its id.
    ///
    /// # Errors
    /// [`Error::Text`].
    pub async fn dispute_open(&self, new: NewDispute) -> Result<DisputeOpened, Error> {
        texts(&[("reason", &new.reason), ("opened_by", &new.by)])?;
        self.0
            .write_aside(tx!(async move |cx| {
                // An administrator opens disputes of any sale, and again after one has ended.
                let buyer = new.opener.map(|opener| opener.operator.to_string()).unwrap_or_default();
                if let Some(id) = before(cx, new.sale, &buyer).await? {
                    return Ok(Change::Undo(DisputeOpened::Before(id)));
                }
                let row = sql!(
                    text!(
                        "UPDATE sales SET state = CASE WHEN state = 'trial' THEN 'trial_disputed' ELSE 'disputed' END
                         WHERE id = $1 AND state IN ('held', 'trial') AND release_at > $2
                           AND ($3 = '' OR buyer_operator = $3) RETURNING ",
                        Sale::COLUMNS
                    ),
                    new.sale,
                    new.now,
                    buyer.as_str()
                )
                .row_if_any(cx)
                .await?;
                let Some(row) = row else {
                    return Ok(Change::Undo(not_opened(cx, new.sale, &buyer).await?));
                };
                let sale = Sale::of(&row)?;
                insert(cx, &new, &sale).await?;
                // A trial sale moved no money that could be held back.
                if sale.paid_with != PaidWith::Given {
                    let event = Event::dispute_open(&new.id.to_string(), sale.seller, sale.share);
                    let posted = move_money(cx, &sale, &event, new.event, new.now).await?;
                    if posted != Posted::Done {
                        let state = SaleState::Held;
                        return Ok(Change::Undo(DisputeOpened::TooLate { state }));
                    }
                }
                if let Some(letters) = &new.letters {
                    // Who opened it knows.
                    let buyer = sale.buyer.filter(|_| new.opener.is_none());
                    let told = [
                        Some(LetterReader::Operator(sale.seller)),
                        buyer.map(LetterReader::Operator),
                        Some(LetterReader::Administrator),
                    ];
                    letters.send(cx, new.id, "opened", told, new.now).await?;
                }
                Ok(Change::Keep(DisputeOpened::Opened(sale)))
            }))
            .await
    }

    /// Ends a dispute.
    ///
    /// # Errors
    /// [`Error::Text`].
    pub async fn dispute_resolve(&self, decision: DisputeDecision) -> Result<DisputeResolved, Error> {
        texts(&[("resolved_by", &decision.by), ("answer", &decision.answer)])?;
        self.0
            .write_aside(tx!(async move |cx| {
                let DisputeDecision {
                    id,
                    resolution,
                    event,
                    by,
                    seller,
                    answer,
                    letters,
                    now,
                } = decision;
                let refunds = matches!(resolution, Resolution::Refund { .. });
                let seller = seller.map(|seller| seller.to_string()).unwrap_or_default();
                let row = sql!(
                    "UPDATE disputes SET state = $2, resolved_by = $3, resolved_at = $4, answer = $5
                     WHERE id = $1 AND state = 'open' AND ($6 = '' OR seller_operator = $6) RETURNING sale_id",
                    id,
                    if refunds { "refunded" } else { "released" },
                    by,
                    now,
                    answer,
                    seller.as_str()
                )
                .row_if_any(cx)
                .await?;
                let Some(row) = row else {
                    return Ok(Change::Undo(not_open(cx, id, &seller).await?));
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
                let DisputeMovement::With(movement) = end(cx, &sale, id, &resolution, now).await? else {
                    return Ok(Change::Undo(DisputeResolved::NowhereToRefund));
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
                if let Some(letters) = &letters {
                    let told = [
                        Some(LetterReader::Operator(sale.seller)),
                        sale.buyer.map(LetterReader::Operator),
                        None,
                    ];
                    letters.send(cx, id, "decided", told, now).await?;
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
                     ORDER BY CASE WHEN disputes.state = 'open' THEN 0 ELSE 1 END, disputes.opened_at DESC,
                              disputes.id DESC
                     LIMIT $1",
                ),
                limit
            ))
            .await
    }
}

/// Movement that ends a dispute.
enum DisputeMovement {
    /// The movement, if any money moves.
    With(Option<Event>),
    /// The refund has nowhere to go to.
    Nowhere,
}

/// Returns the movement that ends a dispute, and queues a refund to a wallet.
async fn end(
    cx: &mut AnyConnection,
    sale: &Sale,
    id: DisputeId,
    resolution: &Resolution,
    now: Timestamp,
) -> Result<DisputeMovement, Error> {
    let key = id.to_string();
    let is_trial = sale.paid_with == PaidWith::Given;
    let movement = match (resolution, sale.buyer) {
        (Resolution::Release, _) if is_trial => None,
        (Resolution::Release, _) => {
            let within = sale.state == SaleState::Held;
            Some(Event::dispute_lost(&key, sale.seller, sale.share, within))
        }
        (Resolution::Refund { .. }, Some(buyer)) if is_trial => Some(Event::trial_dispute_won(&key, buyer, sale.price)),
        (Resolution::Refund { wallet: None }, Some(buyer)) => {
            Some(Event::dispute_won(&key, sale.seller, Some(buyer), sale.split()))
        }
        (Resolution::Refund { wallet: Some(refund) }, _) => {
            // The stored wallet begins with its network.
            let address = sale.wallet.as_deref().and_then(|wallet| wallet.rsplit_once(':'));
            let Some((_, address)) = address else {
                return Ok(DisputeMovement::Nowhere);
            };
            queue_refund(cx, refund, &sale.asset, address, sale.price, now).await?;
            Some(Event::dispute_won(&key, sale.seller, None, sale.split()))
        }
        (Resolution::Refund { .. }, None) => return Ok(DisputeMovement::Nowhere),
    };
    Ok(DisputeMovement::With(movement))
}

/// Returns the newest dispute of a sale of this buyer; none for an administrator, who is no buyer.
async fn before(cx: &mut AnyConnection, sale: SaleId, buyer: &str) -> Result<Option<DisputeId>, Error> {
    sql!(
        "SELECT disputes.id AS id FROM disputes JOIN sales ON sales.id = disputes.sale_id
         WHERE disputes.sale_id = $1 AND sales.buyer_operator = $2 ORDER BY disputes.id DESC LIMIT 1",
        sale,
        buyer
    )
    .row_if_any(cx)
    .await?
    .map(|row| row.get("id"))
    .transpose()
}

/// Returns the reason why a sale cannot be disputed now: the buyer's dispute of it, its state, or that it is missing.
async fn not_opened(cx: &mut AnyConnection, sale: SaleId, buyer: &str) -> Result<DisputeOpened, Error> {
    // Of two that are sent at once, the second finds the dispute of the first.
    if let Some(id) = before(cx, sale, buyer).await? {
        return Ok(DisputeOpened::Before(id));
    }
    let state = sql!(
        "SELECT state FROM sales WHERE id = $1 AND ($2 = '' OR buyer_operator = $2)",
        sale,
        buyer
    )
    .row_if_any(cx)
    .await?;
    Ok(match state {
        Some(row) => DisputeOpened::TooLate {
            state: row.get("state")?,
        },
        None => DisputeOpened::Missing,
    })
}

async fn insert(cx: &mut AnyConnection, new: &NewDispute, sale: &Sale) -> Result<(), Error> {
    sql!(
        "INSERT INTO disputes
             (id, sale_id, reason, opened_by, opened_agent, opened_at, answer_due, state, seller_operator,
              buyer_operator)
         VALUES ($1, $2, $3, $4, $5, $6, $7, 'open', $8, $9)",
        new.id,
        new.sale,
        new.reason.as_str(),
        new.by.as_str(),
        new.opener.and_then(|opener| opener.agent),
        new.now,
        new.now.plus(DISPUTE_ANSWER_WINDOW),
        sale.seller,
        sale.buyer
    )
    .run(cx)
    .await?;
    Ok(())
}

/// Gives the disputes of a sale to the operator that the sale is of from now on.
pub(super) async fn adopt(cx: &mut AnyConnection, sale: SaleId, buyer: OperatorId) -> Result<(), Error> {
    sql!(
        "UPDATE disputes SET buyer_operator = $2 WHERE sale_id = $1",
        sale,
        buyer
    )
    .run(cx)
    .await?;
    Ok(())
}

/// Returns what is said of a dispute that is not open.
async fn not_open(cx: &mut AnyConnection, id: DisputeId, seller: &str) -> Result<DisputeResolved, Error> {
    let known = sql!(
        "SELECT id FROM disputes WHERE id = $1 AND ($2 = '' OR seller_operator = $2)",
        id,
        seller
    );
    let known = known.row_if_any(cx).await?;
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

//! The two sides of a dispute: what each sees, and the answer of the seller.
//!
//! Invariant: a dispute is found by its buyer and its seller only; for any other operator it is missing.

use types::vocabulary::DisputeState;
use types::{DisputeId, OperatorId, SaleId, Timestamp};

use super::letters::LetterReader;
use super::{Dispute, DisputeLetters};
use crate::Error;
use crate::money::{Money, Sale};
use crate::query::{sql, text, tx};
use crate::row::{Columns, Row as _, nested, row, texts};
use crate::writer::Change;

row! {
    /// A dispute with its sale, as both sides see it.
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub struct DisputedSale {
        /// Dispute of the sale, open or ended.
        pub dispute: Dispute = Dispute::COLUMNS => nested,
        /// The sale that is disputed.
        pub sale: Sale = Sale::COLUMNS => nested,
        /// Slug of the dataset, for one.
        pub slug: Option<String>,
        /// Title of the item as it is now.
        pub title: Option<String>,
    }
}

/// Side of a dispute.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DisputeSide {
    /// The operator that bought.
    Buyer,
    /// The operator that sold.
    Seller,
}

/// Result of [`Money::dispute_reply`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub enum DisputeReplied {
    /// The answer is kept, or was sent before with the same words.
    Replied,
    /// The seller has answered with other words; nothing changed.
    Before,
    /// The dispute has ended; nothing changed.
    Ended,
    /// The operator has sold nothing that is disputed so.
    Missing,
}

/// Statement that reads disputes with their sales and the names of what was sold.
const DISPUTED: &str = text!(
    "SELECT ",
    Dispute::COLUMNS,
    ", ",
    Sale::COLUMNS,
    ", projects.slug AS slug, COALESCE(projects.title, units.title) AS title
     FROM disputes
     JOIN sales ON sales.id = disputes.sale_id
     LEFT JOIN projects ON sales.item_kind = 'dataset' AND projects.id = sales.item_id
     LEFT JOIN chains ON sales.item_kind = 'unit' AND chains.id = sales.item_id
     LEFT JOIN units ON units.id = chains.latest_unit"
);

impl DisputedSale {
    /// Returns the side on which an operator is; `None` for a stranger.
    pub fn side_of(&self, operator: OperatorId) -> Option<DisputeSide> {
        if self.sale.seller == operator {
            Some(DisputeSide::Seller)
        } else {
            (self.sale.buyer == Some(operator)).then_some(DisputeSide::Buyer)
        }
    }
}

impl Money<'_> {
    /// Keeps the answer of a seller to a dispute that is open, once, and tells the buyer and the administrator.
    ///
    /// # Errors
    /// [`Error::Text`].
    pub async fn dispute_reply(
        &self,
        seller: OperatorId,
        id: DisputeId,
        words: &str,
        letters: Option<DisputeLetters>,
        now: Timestamp,
    ) -> Result<DisputeReplied, Error> {
        texts(&[("reply", words)])?;
        let words = words.to_owned();
        self.0
            .write_aside(tx!(async move |cx| {
                let row = sql!(
                    "UPDATE disputes SET reply = $3, replied_at = $4
                     WHERE id = $1 AND seller_operator = $2 AND state = 'open' AND reply IS NULL
                     RETURNING buyer_operator",
                    id,
                    seller,
                    words.as_str(),
                    now
                )
                .row_if_any(cx)
                .await?;
                if let Some(row) = row {
                    if let Some(letters) = &letters {
                        let buyer = row.get::<Option<OperatorId>>("buyer_operator")?;
                        let told = [
                            None,
                            buyer.map(LetterReader::Operator),
                            Some(LetterReader::Administrator),
                        ];
                        letters.send(cx, id, "answered", told, now).await?;
                    }
                    return Ok(Change::Keep(DisputeReplied::Replied));
                }
                let found = sql!(
                    "SELECT state, reply FROM disputes WHERE id = $1 AND seller_operator = $2",
                    id,
                    seller
                )
                .row_if_any(cx)
                .await?;
                let Some(found) = found else {
                    return Ok(Change::Undo(DisputeReplied::Missing));
                };
                let earlier = found.get::<Option<String>>("reply")?;
                let state = found.get::<DisputeState>("state")?;
                Ok(Change::Undo(if earlier.as_ref() == Some(&words) {
                    DisputeReplied::Replied
                } else if state == DisputeState::Open {
                    DisputeReplied::Before
                } else {
                    DisputeReplied::Ended
                }))
            }))
            .await
    }

    /// Returns a dispute, if the operator is its buyer or its seller.
    pub async fn dispute_of(&self, operator: OperatorId, id: DisputeId) -> Result<Option<DisputedSale>, Error> {
        self.0
            .optional(sql!(
                text!(
                    DISPUTED,
                    " WHERE disputes.id = $1 AND (sales.seller_operator = $2 OR sales.buyer_operator = $2)"
                ),
                id,
                operator
            ))
            .await
    }

    /// Returns the dispute of a sale that an operator bought, the newest if there are several.
    pub async fn dispute_of_sale(&self, buyer: OperatorId, sale: SaleId) -> Result<Option<DisputedSale>, Error> {
        self.0
            .optional(sql!(
                text!(
                    DISPUTED,
                    " WHERE disputes.sale_id = $1 AND sales.buyer_operator = $2 ORDER BY disputes.id DESC LIMIT 1"
                ),
                sale,
                buyer
            ))
            .await
    }

    /// Returns a dispute with its sale, for who decides.
    pub async fn disputed_sale(&self, id: DisputeId) -> Result<Option<DisputedSale>, Error> {
        self.0
            .optional(sql!(text!(DISPUTED, " WHERE disputes.id = $1"), id))
            .await
    }

    /// Returns the disputes of one side of an operator, newest first: those before `before`, or the newest.
    pub async fn disputes_of(
        &self,
        operator: OperatorId,
        side: DisputeSide,
        before: Option<DisputeId>,
        limit: u32,
    ) -> Result<Vec<DisputedSale>, Error> {
        let statement = match side {
            DisputeSide::Seller => text!(
                DISPUTED,
                " WHERE disputes.seller_operator = $1 AND ($2 = '' OR disputes.id < $2)
                 ORDER BY disputes.id DESC LIMIT $3"
            ),
            DisputeSide::Buyer => text!(
                DISPUTED,
                " WHERE disputes.buyer_operator = $1 AND ($2 = '' OR disputes.id < $2)
                 ORDER BY disputes.id DESC LIMIT $3"
            ),
        };
        let before = before.map(|id| id.to_string()).unwrap_or_default();
        self.0.all(sql!(statement, operator, before, limit)).await
    }

    /// Returns the disputes that wait for the answer of a seller, the first deadline first, up to `limit`.
    pub async fn disputes_to_answer(&self, seller: OperatorId, limit: u32) -> Result<Vec<DisputedSale>, Error> {
        self.0
            .all(sql!(
                text!(
                    DISPUTED,
                    " WHERE disputes.seller_operator = $1 AND disputes.state = 'open' AND disputes.reply IS NULL
                      ORDER BY disputes.answer_due, disputes.id LIMIT $2"
                ),
                seller,
                limit
            ))
            .await
    }

    /// Returns the disputes that nobody has decided, oldest first, up to `limit`.
    pub async fn disputes_to_decide(&self, limit: u32) -> Result<Vec<DisputedSale>, Error> {
        self.0
            .all(sql!(
                text!(
                    DISPUTED,
                    " WHERE disputes.state = 'open' ORDER BY disputes.opened_at, disputes.id LIMIT $1"
                ),
                limit
            ))
            .await
    }
}

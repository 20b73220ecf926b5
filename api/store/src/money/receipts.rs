//! Receipts of sales and of payments: the facts that they state, and the texts that were signed.
//!
//! Invariant: a receipt that is kept changes only if whoever changes it has read it, so of two that are made at once one is
//! kept, and both callers get that one.

use types::{LedgerEventId, SaleId};

use super::{Money, Sale};
use crate::Error;
use crate::query::{sql, text, tx};
use crate::row::{Row as _, nested, row};
use crate::writer::Change;

row! {
    /// A sale with what its receipt states beside it.
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub struct SaleFacts {
        /// The sale.
        pub sale: Sale = Sale::COLUMNS => nested,
        /// Event of the ledger that moved the money.
        pub event: LedgerEventId = "ledger_events.id AS event_id",
        /// Transaction of a payment by x402.
        pub transaction: Option<String> = "payments.transaction_hash AS transaction_hash",
        /// Slug of a dataset.
        pub slug: Option<String> = "projects.slug AS slug",
        /// Content root of the version of a dataset: 64 hexadecimal digits. That which was sold, also if it was lost and its
        /// number was given again.
        pub root: Option<String> = "COALESCE(
            (SELECT lost_versions.root FROM lost_versions
             JOIN losses ON losses.project_id = lost_versions.project_id AND losses.number = lost_versions.loss
             WHERE lost_versions.project_id = projects.id AND lost_versions.version = sales.version
               AND losses.accepted_at >= sales.sold_at
             ORDER BY losses.number LIMIT 1),
            versions.root) AS root",
        /// Licence of the item.
        pub license: String = "COALESCE(projects.license, chains.license) AS license",
        /// Text of the version of a unit, unless it was erased.
        pub body: Option<String> = "CASE WHEN chains.erased_at IS NULL THEN units.body END AS body",
        /// Receipt that was signed.
        pub receipt: Option<String> = "sales.receipt AS receipt",
    }
}

/// Tables of [`SaleFacts`].
const FACTS: &str = " FROM sales
    JOIN ledger_events ON ledger_events.key = sales.id
        AND ledger_events.kind = CASE WHEN sales.paid_with = 'given' THEN 'trial_sale' ELSE 'sale' END
    LEFT JOIN payments ON payments.id = sales.payment_id
    LEFT JOIN projects ON sales.item_kind = 'dataset' AND projects.id = sales.item_id
    LEFT JOIN versions ON versions.project_id = projects.id AND versions.version = sales.version
    LEFT JOIN chains ON sales.item_kind = 'unit' AND chains.id = sales.item_id
    LEFT JOIN units ON units.id = sales.unit_version";

row! {
    /// Receipt of a payment by x402 that was signed.
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub struct PaymentReceiptText {
        /// Id of the payment.
        pub payment: String = "id",
        /// Wallet that paid.
        pub payer: String,
        /// Network, by CAIP-2.
        pub network: String,
        /// Transaction of the payment; `None` if it was not needed.
        pub transaction: Option<String> = "transaction_hash",
        /// The receipt, as a compact JWS.
        pub text: String = "settle_response",
    }
}

impl Money<'_> {
    /// Returns a sale with what its receipt states.
    pub async fn sale_facts(&self, sale: SaleId) -> Result<Option<SaleFacts>, Error> {
        self.0
            .optional(sql!(
                text!("SELECT ", SaleFacts::COLUMNS, FACTS, " WHERE sales.id = $1"),
                sale
            ))
            .await
    }

    /// Returns up to `limit` sales that have a receipt, after the one with the id `after`, in the order of their ids.
    pub async fn receipted_sales(&self, after: Option<SaleId>, limit: u32) -> Result<Vec<SaleFacts>, Error> {
        self.0
            .all(sql!(
                text!(
                    "SELECT ",
                    SaleFacts::COLUMNS,
                    FACTS,
                    " WHERE sales.receipt IS NOT NULL AND sales.id > $1 ORDER BY sales.id LIMIT $2"
                ),
                after.map(|id| id.to_string()).unwrap_or_default(),
                limit
            ))
            .await
    }

    /// Keeps the receipt of a sale in the place of `before`, which is empty for none, and returns the one that is kept:
    /// this one, or that of a caller that was faster. `None` if there is no such sale.
    pub async fn keep_receipt(&self, sale: SaleId, before: &str, text: &str) -> Result<Option<String>, Error> {
        let (before, text) = (before.to_owned(), text.to_owned());
        self.0
            .write_aside(tx!(async move |cx| {
                let changed = sql!(
                    "UPDATE sales SET receipt = $3 WHERE id = $1 AND COALESCE(receipt, '') = $2",
                    sale,
                    before.as_str(),
                    text.as_str()
                )
                .run(cx)
                .await?;
                if changed > 0 {
                    return Ok(Change::Keep(Some(text)));
                }
                let kept = sql!("SELECT receipt FROM sales WHERE id = $1", sale);
                let kept: Option<Option<String>> = kept.scalar_if_any(cx).await?;
                Ok(Change::Keep(kept.flatten()))
            }))
            .await
    }

    /// Keeps the receipt of a payment in the same manner.
    pub async fn keep_payment_receipt(&self, payment: &str, before: &str, text: &str) -> Result<Option<String>, Error> {
        let (payment, before, text) = (payment.to_owned(), before.to_owned(), text.to_owned());
        self.0
            .write_aside(tx!(async move |cx| {
                let changed = sql!(
                    "UPDATE payments SET settle_response = $3
                     WHERE id = $1 AND COALESCE(settle_response, '') = $2 AND state IN ('settled', 'not_needed')",
                    payment.as_str(),
                    before.as_str(),
                    text.as_str()
                )
                .run(cx)
                .await?;
                if changed > 0 {
                    return Ok(Change::Keep(Some(text)));
                }
                let kept = sql!("SELECT settle_response FROM payments WHERE id = $1", payment.as_str());
                let kept: Option<Option<String>> = kept.scalar_if_any(cx).await?;
                Ok(Change::Keep(kept.flatten()))
            }))
            .await
    }

    /// Returns up to `limit` payments that have a receipt, after the one with the id `after`, in the order of their ids.
    pub async fn receipted_payments(&self, after: &str, limit: u32) -> Result<Vec<PaymentReceiptText>, Error> {
        self.0
            .all(sql!(
                text!(
                    "SELECT ",
                    PaymentReceiptText::COLUMNS,
                    " FROM payments WHERE settle_response IS NOT NULL AND id > $1 ORDER BY id LIMIT $2"
                ),
                after,
                limit
            ))
            .await
    }
}

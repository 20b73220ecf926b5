//! Sales as their seller lists them, with what became of the money of each.
//!
//! Invariant: nothing here names the buyer but by the wallet that paid, which the chain publishes anyway.

use types::money::MicroUsdc;
use types::{OperatorId, SaleId, Timestamp};

use super::{Money, Sale, SaleState};
use crate::Error;
use crate::query::{sql, text};
use crate::row::{Row as _, nested, row};

row! {
    /// A sale as its seller sees it.
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub struct ListedSale {
        /// Item, price, fee, share and state.
        pub sale: Sale = Sale::COLUMNS => nested,
        /// Slug of the dataset, for one.
        pub slug: Option<String>,
        /// Title of the item as it is now.
        pub title: Option<String>,
        /// Time of the payout that had the share in it, once one was paid.
        pub paid_at: Option<Timestamp>,
        /// Time at which a dispute of it ended.
        pub resolved_at: Option<Timestamp>,
    }
}

/// Statement that reads sales with the names of what was sold, and when their money went where.
pub(super) const SOLD: &str = text!(
    "SELECT ",
    Sale::COLUMNS,
    ", projects.slug AS slug, COALESCE(projects.title, units.title) AS title,
       (SELECT MAX(disputes.resolved_at) FROM disputes WHERE disputes.sale_id = sales.id) AS resolved_at,
       CASE WHEN sales.state = 'payable' THEN (
           SELECT MIN(payouts.created_at) FROM payouts
           WHERE payouts.operator_id = sales.seller_operator AND payouts.kind = 'payout' AND payouts.state = 'done'
             AND payouts.asset = sales.asset
             AND payouts.created_at >= COALESCE(
                 released.at,
                 (SELECT MAX(disputes.resolved_at) FROM disputes WHERE disputes.sale_id = sales.id),
                 sales.release_at)) END AS paid_at
     FROM sales
     LEFT JOIN ledger_events AS released ON released.id = sales.release_event
     LEFT JOIN projects ON sales.item_kind = 'dataset' AND projects.id = sales.item_id
     LEFT JOIN chains ON sales.item_kind = 'unit' AND chains.id = sales.item_id
     LEFT JOIN units ON units.id = chains.latest_unit"
);

/// Choice of sales.
#[derive(Clone, Copy, Debug, Default)]
pub struct SoldFilter<'f> {
    /// State of the money.
    pub state: Option<SaleState>,
    /// Id of the unit or the dataset.
    pub item: Option<&'f str>,
}

row! {
    /// Item that an operator has sold.
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub struct SoldItem {
        /// Id of the unit or the dataset.
        pub item: String = "item_id",
        /// Title of the item as it is now.
        pub title: Option<String>,
    }
}

row! {
    /// Sales of a UTC day that were not refunded.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
    pub struct DayOfSales {
        /// Number of the day since 1970.
        pub day: i64,
        /// Number of sales for credits.
        pub by_credits: u64,
        /// Number of sales to wallets.
        pub by_wallet: u64,
        /// Shares of the sales for credits.
        pub share_by_credits: MicroUsdc,
        /// Shares of the sales to wallets.
        pub share_by_wallet: MicroUsdc,
    }
}

row! {
    /// Purchases with credits of a time that were not refunded.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
    pub struct SpentCredits {
        /// Number of purchases.
        pub purchases: u64,
        /// Sum of their prices.
        pub sum: MicroUsdc,
    }
}

impl Money<'_> {
    /// Returns sales of an operator, newest first: those before `before`, or the newest.
    pub async fn sold_by(
        &self,
        asset: &str,
        seller: OperatorId,
        filter: SoldFilter<'_>,
        before: Option<SaleId>,
        limit: u32,
    ) -> Result<Vec<ListedSale>, Error> {
        self.0
            .all(sql!(
                text!(
                    SOLD,
                    " WHERE sales.seller_operator = $1 AND sales.asset = $2
                       AND ($3 = '' OR sales.state = $3) AND ($4 = '' OR sales.item_id = $4)
                       AND ($5 = '' OR (sales.sold_at, sales.id) <
                                       (SELECT last.sold_at, last.id FROM sales AS last
                                        WHERE last.id = $5 AND last.seller_operator = $1))
                     ORDER BY sales.sold_at DESC, sales.id DESC LIMIT $6"
                ),
                seller,
                asset,
                filter.state.map_or("", SaleState::as_str),
                filter.item.unwrap_or_default(),
                before.map(|id| id.to_string()).unwrap_or_default(),
                limit
            ))
            .await
    }

    /// Returns the items of the newest `sales` sales of an operator, by their titles.
    pub async fn sold_items(&self, seller: OperatorId, sales: u32) -> Result<Vec<SoldItem>, Error> {
        self.0
            .all(sql!(
                text!(
                    "SELECT DISTINCT sold.item_id AS item_id, COALESCE(projects.title, units.title) AS title
                     FROM (SELECT item_kind, item_id FROM sales WHERE seller_operator = $1
                           ORDER BY sold_at DESC, id DESC LIMIT $2) AS sold
                     LEFT JOIN projects ON sold.item_kind = 'dataset' AND projects.id = sold.item_id
                     LEFT JOIN chains ON sold.item_kind = 'unit' AND chains.id = sold.item_id
                     LEFT JOIN units ON units.id = chains.latest_unit
                     ORDER BY title, item_id"
                ),
                seller,
                sales
            ))
            .await
    }

    /// Returns the days with sales of an operator between two instants, oldest first. Refunded sales are left out; trial
    /// sales count and have no share.
    pub async fn days_of_sales(
        &self,
        asset: &str,
        seller: OperatorId,
        from: Timestamp,
        to: Timestamp,
    ) -> Result<Vec<DayOfSales>, Error> {
        self.0
            .all(sql!(
                "SELECT sold_at / 86400000000 AS day,
                     CAST(SUM(CASE WHEN paid_with = 'x402' THEN 0 ELSE 1 END) AS BIGINT) AS by_credits,
                     CAST(SUM(CASE WHEN paid_with = 'x402' THEN 1 ELSE 0 END) AS BIGINT) AS by_wallet,
                     CAST(SUM(CASE WHEN paid_with = 'x402' THEN 0 ELSE share END) AS BIGINT) AS share_by_credits,
                     CAST(SUM(CASE WHEN paid_with = 'x402' THEN share ELSE 0 END) AS BIGINT) AS share_by_wallet
                 FROM sales
                 WHERE seller_operator = $1 AND asset = $2 AND sold_at >= $3 AND sold_at < $4
                   AND state NOT IN ('refunded', 'trial_refunded')
                 GROUP BY sold_at / 86400000000 ORDER BY day",
                seller,
                asset,
                from,
                to
            ))
            .await
    }

    /// Returns what an operator spent on purchases with credits since an instant. Refunded purchases are left out.
    pub async fn spent_since(&self, asset: &str, buyer: OperatorId, from: Timestamp) -> Result<SpentCredits, Error> {
        self.0
            .one(sql!(
                "SELECT COUNT(*) AS purchases, CAST(COALESCE(SUM(price), 0) AS BIGINT) AS sum FROM sales
                 WHERE buyer_operator = $1 AND asset = $2 AND sold_at >= $3 AND paid_with <> 'x402'
                   AND state NOT IN ('refunded', 'trial_refunded')",
                buyer,
                asset,
                from
            ))
            .await
    }
}

//! Sales and readers of one item, and all sales of a seller, as the seller sees them.
//!
//! Invariant: a list has a bound on its rows, and days are those of a bounded time.

use types::money::MicroUsdc;
use types::vocabulary::ItemKind;
use types::{OperatorId, SaleId, Timestamp};

use super::seller::{ListedSale, SOLD};
use super::{Money, Sale};
use crate::Error;
use crate::query::{sql, text};
use crate::row::{Row as _, row};

/// Item of a seller whose sales are asked for.
#[derive(Clone, Copy, Debug)]
pub struct ItemOfSeller<'i> {
    /// Kind of the item.
    pub kind: ItemKind,
    /// Id of the dataset, or of the first version of the unit.
    pub item: &'i str,
    /// Operator that sells it.
    pub seller: OperatorId,
}

row! {
    /// Sums of the sales of an item that were not refunded.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
    pub struct ItemSums {
        /// Number of sales.
        pub sold: u64,
        /// Number of those since an instant.
        pub sold_since: u64,
        /// Sum of the shares of the seller.
        pub share: MicroUsdc,
    }
}

row! {
    /// Number of things on a UTC day.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct CountOfDay {
        /// Number of the day since 1970.
        pub day: i64,
        /// Number of the things.
        pub count: u64 = "counted",
    }
}

impl Money<'_> {
    /// Returns the latest sales of an item with what became of their money, newest first, up to `limit`.
    pub async fn sales_of_item(&self, sold: ItemOfSeller<'_>, limit: u32) -> Result<Vec<ListedSale>, Error> {
        self.0
            .all(sql!(
                text!(
                    SOLD,
                    " WHERE sales.item_kind = $1 AND sales.item_id = $2 AND sales.seller_operator = $3
                      ORDER BY sales.sold_at DESC, sales.id DESC LIMIT $4"
                ),
                sold.kind,
                sold.item.to_owned(),
                sold.seller,
                limit
            ))
            .await
    }

    /// Returns the sums of the sales of an item that were not refunded.
    pub async fn sums_of_item(&self, sold: ItemOfSeller<'_>, since: Timestamp) -> Result<ItemSums, Error> {
        self.0
            .one(sql!(
                "SELECT COUNT(*) AS sold,
                        CAST(COALESCE(SUM(CASE WHEN sold_at >= $4 THEN 1 ELSE 0 END), 0) AS BIGINT) AS sold_since,
                        CAST(COALESCE(SUM(share), 0) AS BIGINT) AS share
                 FROM sales
                 WHERE item_kind = $1 AND item_id = $2 AND seller_operator = $3
                   AND state NOT IN ('refunded', 'trial_refunded')",
                sold.kind,
                sold.item.to_owned(),
                sold.seller,
                since
            ))
            .await
    }

    /// Returns the sales of an item that were not refunded by UTC day, from `from` on, oldest day first.
    pub async fn days_of_item(&self, sold: ItemOfSeller<'_>, from: Timestamp) -> Result<Vec<CountOfDay>, Error> {
        self.0
            .all(sql!(
                "SELECT sold_at / 86400000000 AS day, COUNT(*) AS counted FROM sales
                 WHERE item_kind = $1 AND item_id = $2 AND seller_operator = $3 AND sold_at >= $4
                   AND state NOT IN ('refunded', 'trial_refunded')
                 GROUP BY sold_at / 86400000000 ORDER BY day",
                sold.kind,
                sold.item.to_owned(),
                sold.seller,
                from
            ))
            .await
    }

    /// Returns the number of operators that read a dataset of another. Units count their readers themselves.
    pub async fn readers_of_dataset(&self, dataset: &str) -> Result<u64, Error> {
        let counted: i64 = self
            .0
            .read(async {
                sql!(
                    "SELECT COUNT(*) FROM dataset_readers WHERE project_id = $1",
                    dataset.to_owned()
                )
                .scalar(&mut self.0.readers())
                .await
            })
            .await?;
        Ok(u64::try_from(counted).unwrap_or_default())
    }

    /// Returns the first reads of an item by UTC day, from `from` on, oldest day first: of operators for a dataset, of agents
    /// for a unit.
    pub async fn reader_days(&self, kind: ItemKind, item: &str, from: Timestamp) -> Result<Vec<CountOfDay>, Error> {
        let statement = match kind {
            ItemKind::Dataset => {
                "SELECT at / 86400000000 AS day, COUNT(*) AS counted FROM dataset_readers
                 WHERE project_id = $1 AND at >= $2 GROUP BY at / 86400000000 ORDER BY day"
            }
            ItemKind::Unit => {
                "SELECT first_at / 86400000000 AS day, COUNT(*) AS counted FROM unit_reads
                 WHERE chain_id = $1 AND first_at >= $2 GROUP BY first_at / 86400000000 ORDER BY day"
            }
        };
        self.0.all(sql!(statement, item.to_owned(), from)).await
    }

    /// Returns the sales of an operator, newest first: those before `before`, or the newest.
    pub async fn sales_by(&self, seller: OperatorId, before: Option<SaleId>, limit: u32) -> Result<Vec<Sale>, Error> {
        self.0
            .all(sql!(
                text!(
                    "SELECT ",
                    Sale::COLUMNS,
                    " FROM sales WHERE seller_operator = $1 AND ($2 = '' OR id < $2) ORDER BY id DESC LIMIT $3"
                ),
                seller,
                before.map(|id| id.to_string()).unwrap_or_default(),
                limit
            ))
            .await
    }
}

//! Balances and sales, as their operators see them.

use pay::{Account, AccountKind};
use types::money::MicroUsdc;
use types::vocabulary::ItemKind;
use types::{OperatorId, SaleId, Timestamp};

use super::entitlements::Owner;
use super::{Money, Sale};
use crate::Error;
use crate::query::{sql, text};
use crate::row::{Columns, Row as _, nested, row};

/// Balances of an operator.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Balances {
    /// Bought credits.
    pub credits: MicroUsdc,
    /// Given credits.
    pub given: MicroUsdc,
    /// Shares of sales within the dispute window.
    pub held: MicroUsdc,
    /// Shares that wait for a payout.
    pub payable: MicroUsdc,
    /// Shares of sales under dispute.
    pub disputed: MicroUsdc,
    /// Payout that is on its way.
    pub payout_pending: MicroUsdc,
}

/// Sales of an operator in one state.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Seller {
    /// Sales, those that are released first first.
    pub sales: Vec<Sale>,
    /// End of the first window, over all sales of the state.
    pub first_release: Option<Timestamp>,
    /// End of the last window, over all sales of the state.
    pub last_release: Option<Timestamp>,
}

row! {
    /// A sale as its buyer sees it.
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub struct Bought {
        /// Price, state and time of the purchase.
        pub sale: Sale = Sale::COLUMNS => nested,
        /// Slug of the dataset, for one.
        pub slug: Option<String>,
        /// Title of the item as it is now.
        pub title: Option<String>,
        /// Name of the agent that bought it, if an agent did.
        pub agent_name: Option<String>,
    }
}

/// Statement that reads sales with the names of what was sold and who bought it.
const BOUGHT: &str = text!(
    "SELECT ",
    Sale::COLUMNS,
    ", projects.slug AS slug, COALESCE(projects.title, units.title) AS title, agents.name AS agent_name
     FROM sales
     LEFT JOIN projects ON sales.item_kind = 'dataset' AND projects.id = sales.item_id
     LEFT JOIN chains ON sales.item_kind = 'unit' AND chains.id = sales.item_id
     LEFT JOIN units ON units.id = chains.latest_unit
     LEFT JOIN agents ON agents.id = sales.agent_id"
);

impl Money<'_> {
    /// Returns the balances of an operator; zeros for one without money.
    pub async fn balances(&self, asset: &str, operator: OperatorId) -> Result<Balances, Error> {
        self.0
            .read(async {
                let id = |kind| Account::of(kind, operator).id(asset);
                let rows = sql!(
                    "SELECT kind, balance FROM ledger_accounts WHERE id IN ($1, $2, $3, $4, $5, $6)",
                    id(AccountKind::Credits),
                    id(AccountKind::Given),
                    id(AccountKind::Held),
                    id(AccountKind::Payable),
                    id(AccountKind::Disputed),
                    id(AccountKind::PayoutPending)
                )
                .rows(&mut self.0.readers())
                .await?;
                let mut balances = Balances::default();
                for row in rows {
                    let balance = MicroUsdc(row.get("balance")?);
                    match row.value::<&str>("kind")? {
                        "credits" => balances.credits = balance,
                        "given" => balances.given = balance,
                        "held" => balances.held = balance,
                        "payable" => balances.payable = balance,
                        "disputed" => balances.disputed = balance,
                        _ => balances.payout_pending = balance,
                    }
                }
                Ok(balances)
            })
            .await
    }

    /// Returns the sales of an operator in a state, up to `limit`, with the ends of their windows.
    pub async fn sales_of(
        &self,
        asset: &str,
        seller: OperatorId,
        state: super::SaleState,
        limit: u32,
    ) -> Result<Seller, Error> {
        self.0
            .read(async {
                let rows = sql!(
                    text!(
                        "SELECT ",
                        Sale::COLUMNS,
                        " FROM sales WHERE seller_operator = $1 AND state = $2 AND asset = $3
                         ORDER BY release_at, id LIMIT $4"
                    ),
                    seller,
                    state,
                    asset,
                    limit
                )
                .rows(&mut self.0.readers())
                .await?;
                // Over all sales and not those of the list, which is cut.
                let ends = sql!(
                    "SELECT MIN(release_at) AS first_at, MAX(release_at) AS last_at FROM sales
                     WHERE seller_operator = $1 AND state = $2 AND asset = $3",
                    seller,
                    state,
                    asset
                )
                .row(&mut self.0.readers())
                .await?;
                Ok(Seller {
                    sales: rows.iter().map(Sale::of).collect::<Result<_, _>>()?,
                    first_release: ends.get("first_at")?,
                    last_release: ends.get("last_at")?,
                })
            })
            .await
    }

    /// Returns the number of sales of an item that were not refunded.
    pub async fn sold_count(&self, kind: ItemKind, item: &str) -> Result<u64, Error> {
        self.0
            .read(async {
                sql!(
                    "SELECT COUNT(*) AS sold FROM sales
                     WHERE item_kind = $1 AND item_id = $2 AND state NOT IN ('refunded', 'trial_refunded')",
                    kind,
                    item
                )
                .row(&mut self.0.readers())
                .await?
                .get("sold")
            })
            .await
    }

    /// Returns what an operator bought, newest first, up to `limit`.
    pub async fn bought_by(&self, buyer: OperatorId, limit: u32) -> Result<Vec<Sale>, Error> {
        self.0
            .all(sql!(
                text!(
                    "SELECT ",
                    Sale::COLUMNS,
                    " FROM sales WHERE buyer_operator = $1 ORDER BY sold_at DESC, id DESC LIMIT $2"
                ),
                buyer,
                limit
            ))
            .await
    }

    /// Returns what an operator bought, newest first: those before `before`, or the newest.
    pub async fn purchases_of(
        &self,
        buyer: OperatorId,
        before: Option<SaleId>,
        limit: u32,
    ) -> Result<Vec<Bought>, Error> {
        self.0
            .all(sql!(
                text!(
                    BOUGHT,
                    " WHERE sales.buyer_operator = $1
                       AND ($2 = '' OR (sales.sold_at, sales.id) <
                                       (SELECT last.sold_at, last.id FROM sales AS last
                                        WHERE last.id = $2 AND last.buyer_operator = $1))
                     ORDER BY sales.sold_at DESC, sales.id DESC LIMIT $3"
                ),
                buyer,
                before.map(|id| id.to_string()).unwrap_or_default(),
                limit
            ))
            .await
    }

    /// Returns a purchase of an operator, by its sale.
    pub async fn purchase_by_sale(&self, buyer: OperatorId, sale: SaleId) -> Result<Option<Bought>, Error> {
        self.0
            .optional(sql!(
                text!(BOUGHT, " WHERE sales.id = $1 AND sales.buyer_operator = $2"),
                sale,
                buyer
            ))
            .await
    }

    /// Returns the purchase by which an operator may read an item: of the highest version, for a dataset.
    pub async fn purchase_of(&self, buyer: OperatorId, kind: ItemKind, item: &str) -> Result<Option<Bought>, Error> {
        self.0
            .optional(sql!(
                text!(
                    BOUGHT,
                    " JOIN entitlements ON entitlements.sale_id = sales.id
                     WHERE entitlements.owner = $1 AND entitlements.item_kind = $2 AND entitlements.item_id = $3"
                ),
                Owner::Operator(buyer).to_string(),
                kind,
                item
            ))
            .await
    }

    /// Returns the sum of the payouts of an operator that were paid.
    pub async fn paid_out(&self, asset: &str, operator: OperatorId) -> Result<MicroUsdc, Error> {
        self.0
            .read(async {
                let sum: i64 = sql!(
                    "SELECT CAST(COALESCE(SUM(amount), 0) AS BIGINT) FROM payouts
                     WHERE operator_id = $1 AND asset = $2 AND kind = 'payout' AND state = 'done'",
                    operator,
                    asset
                )
                .scalar(&mut self.0.readers())
                .await?;
                Ok(MicroUsdc(sum))
            })
            .await
    }

    /// Returns true if an operator bought an item and the sale stands.
    pub async fn is_bought(&self, buyer: OperatorId, kind: ItemKind, item: &str) -> Result<bool, Error> {
        Ok(self.owned(buyer, kind, item).await?.is_some())
    }

    /// Returns a sale.
    pub async fn sale(&self, id: SaleId) -> Result<Option<Sale>, Error> {
        self.0
            .optional(sql!(text!("SELECT ", Sale::COLUMNS, " FROM sales WHERE id = $1"), id))
            .await
    }
}

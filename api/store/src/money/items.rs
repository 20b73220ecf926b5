//! Items on sale: who sells them, for how much, and in which version.

use std::collections::HashMap;
use std::time::Duration;

use sqlx::AnyConnection;
use sqlx::any::AnyRow;
use types::vocabulary::{Access, ItemKind, Visibility};
use types::{AgentId, OperatorId, Timestamp, UnitId};

use super::Money;
use crate::Error;
use crate::query::sql;
use crate::row::{Columns, row};
use crate::search::places;

/// Item on sale, as it is now.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is a fact of its own, and no two exclude each other"
)]
pub struct Offer {
    /// Kind of the item.
    pub kind: ItemKind,
    /// Id of the unit or the dataset.
    pub item: String,
    /// Operator that sells it.
    pub seller: OperatorId,
    /// Agent that made it, if one did.
    pub seller_agent: Option<AgentId>,
    /// Own price; `None` for the platform's default.
    pub price: Option<i64>,
    /// True if given credits pay it.
    pub trial_sale: bool,
    /// False once the unit was retired, or while the seller is suspended.
    pub on_sale: bool,
    /// False if others may not know of it: it is private, taken down or was never published.
    pub visible: bool,
    /// False for a dataset that everybody reads, and for a unit without a price of its own when credits are to pay it.
    pub can_be_priced: bool,
    /// Latest version; 0 before the first.
    pub version: u64,
    /// Id of the latest version of a unit.
    pub unit_version: Option<String>,
    /// Title.
    pub title: String,
    /// True if it is taken down. Then its seller does not see it either.
    pub taken_down: bool,
}

row! {
    /// Name of an item as it is now.
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub struct ItemName {
        /// Id of the unit or the dataset.
        pub id: String,
        /// Title of the item.
        pub title: String,
        /// Slug of the dataset, for one.
        pub slug: Option<String>,
    }
}

/// Statement that reads an offer of a dataset.
// One statement reads the item and its seller: a suspension ends the sale of everything the operator
// has.
const DATASET: &str = "SELECT projects.operator_id AS operator_id, projects.created_by_agent_id AS agent_id,
           projects.price_micro AS price_micro, projects.trial_sale AS trial_sale, projects.access AS access,
           projects.visibility AS visibility, projects.version AS version, projects.title AS title,
           projects.taken_down_at AS taken_down_at, operators.suspended_at AS suspended_at
    FROM projects JOIN operators ON operators.id = projects.operator_id WHERE projects.id = $1";

/// Statement that reads an offer of a unit.
const UNIT: &str = "SELECT chains.operator_id AS operator_id, chains.agent_id AS agent_id,
           chains.price_micro AS price_micro, chains.trial_sale AS trial_sale, chains.versions AS version,
           chains.latest_unit AS latest_unit, chains.retired_at AS retired_at, chains.taken_down_at AS taken_down_at,
           chains.erased_at AS erased_at, units.title AS title, operators.suspended_at AS suspended_at
    FROM chains JOIN operators ON operators.id = chains.operator_id
    LEFT JOIN units ON units.id = chains.latest_unit WHERE chains.id = $1";

impl Money<'_> {
    /// Returns an item as it is on sale now; `None` if it does not exist.
    pub async fn offer(&self, kind: ItemKind, item: &str) -> Result<Option<Offer>, Error> {
        self.0
            .read(async {
                let row = sql!(statement(kind), item).row_if_any(&mut self.0.readers()).await?;
                row.map(|row| offer(kind, item, &row)).transpose()
            })
            .await
    }

    /// Returns the names of items as they are now, by their ids: of datasets, and of the units of these first versions. What
    /// is no item has none.
    pub async fn item_names(&self, ids: &[String]) -> Result<HashMap<String, ItemName>, Error> {
        // `IN ()` is no SQL.
        if ids.is_empty() {
            return Ok(HashMap::new());
        }
        let places = places(ids.len());
        let text = format!(
            "SELECT id, title, slug FROM projects WHERE id IN ({places})
             UNION ALL
             SELECT chains.id AS id, units.title AS title, NULL AS slug
             FROM chains JOIN units ON units.id = chains.latest_unit
             WHERE chains.id IN ({places}) AND units.title IS NOT NULL"
        );
        let mut query = sql!(sqlx::AssertSqlSafe(text));
        for id in ids {
            query = query.with(id.clone());
        }
        let names: Vec<ItemName> = self.0.all(query).await?;
        Ok(names.into_iter().map(|name| (name.id.clone(), name)).collect())
    }

    /// Returns the unit that a version belongs to; `None` if there is no such version.
    pub async fn unit_of(&self, version: UnitId) -> Result<Option<UnitId>, Error> {
        self.0
            .read(async {
                sql!("SELECT chain_id FROM units WHERE id = $1", version)
                    .row_if_any(&mut self.0.readers())
                    .await?
                    .map(|row| row.get("chain_id"))
                    .transpose()
            })
            .await
    }

    /// Returns the prices above zero of an item that were in force within `window` before `now`, lowest first, with
    /// `default` in place of the platform's default price. The price now is among them.
    pub async fn prices_in_force(
        &self,
        kind: ItemKind,
        item: &str,
        default: i64,
        window: Duration,
        now: Timestamp,
    ) -> Result<Vec<i64>, Error> {
        let current = self.offer(kind, item).await?;
        self.0
            .read(async {
                let rows = sql!(PRICES, kind, item, now.minus(window), now)
                    .rows(&mut self.0.readers())
                    .await?;
                prices(&rows, current.as_ref(), default)
            })
            .await
    }
}

const fn statement(kind: ItemKind) -> &'static str {
    match kind {
        ItemKind::Unit => UNIT,
        ItemKind::Dataset => DATASET,
    }
}

fn offer(kind: ItemKind, item: &str, row: &AnyRow) -> Result<Offer, Error> {
    let suspended = row.get::<Option<Timestamp>>("suspended_at")?.is_some();
    let offer = Offer {
        kind,
        item: item.to_owned(),
        seller: row.get("operator_id")?,
        seller_agent: row.get("agent_id")?,
        price: row.get("price_micro")?,
        trial_sale: row.get("trial_sale")?,
        on_sale: !suspended,
        visible: true,
        can_be_priced: true,
        version: row.get("version")?,
        unit_version: None,
        title: row.get::<Option<String>>("title")?.unwrap_or_default(),
        taken_down: row.get::<Option<Timestamp>>("taken_down_at")?.is_some(),
    };
    Ok(match kind {
        ItemKind::Dataset => Offer {
            visible: row.get::<Visibility>("visibility")? == Visibility::Public
                && row.get::<Option<Timestamp>>("taken_down_at")?.is_none(),
            can_be_priced: row.get::<Access>("access")? == Access::Paid,
            ..offer
        },
        // A unit that is retired is not sold, but its buyers still read it. One that is taken down is
        // not found.
        ItemKind::Unit => Offer {
            visible: offer.version > 0
                && row.get::<Option<Timestamp>>("taken_down_at")?.is_none()
                && row.get::<Option<Timestamp>>("erased_at")?.is_none(),
            on_sale: !suspended && row.get::<Option<Timestamp>>("retired_at")?.is_none(),
            unit_version: row.get("latest_unit")?,
            ..offer
        },
    })
}

/// Reads an offer in the transaction of a change.
pub(super) async fn find(cx: &mut AnyConnection, kind: ItemKind, item: &str) -> Result<Option<Offer>, Error> {
    let row = sql!(statement(kind), item).row_if_any(cx).await?;
    row.map(|row| offer(kind, item, &row)).transpose()
}

/// Statement that reads the prices since an instant, and the one in force at it.
// The prices of the window, and the last one from before it, which was in force when the window began.
const PRICES: &str = "SELECT price_micro FROM item_prices
    WHERE item_kind = $1 AND item_id = $2 AND from_at <= $4
      AND from_at >= COALESCE((SELECT MAX(before.from_at) FROM item_prices AS before
                               WHERE before.item_kind = $1 AND before.item_id = $2 AND before.from_at <= $3), 0)";

fn prices(rows: &[AnyRow], current: Option<&Offer>, default: i64) -> Result<Vec<i64>, Error> {
    let stored = rows.iter().map(|row| row.get::<Option<i64>>("price_micro"));
    let mut prices = stored.collect::<Result<Vec<_>, _>>()?;
    // The present price counts even without a row: items from before prices had a history have none.
    prices.extend(current.map(|offer| offer.price));
    let mut prices: Vec<i64> = prices.into_iter().map(|price| price.unwrap_or(default)).collect();
    // Only prices above zero: nothing is bought for nothing, and the present price alone decides if the
    // item is free.
    prices.retain(|price| *price > 0);
    prices.sort_unstable();
    prices.dedup();
    Ok(prices)
}

/// Returns what a buyer by credits pays: the price in force, as every page and quote shows it. `None` if it is 0.
pub(super) fn price_for(offer: &Offer, default: i64) -> Option<i64> {
    // No earlier price binds. A wallet signs before it pays and so needs a window; credits are charged at once.
    Some(offer.price.unwrap_or(default)).filter(|price| *price > 0)
}

/// Notes a price from an instant on, in the transaction that sets it.
pub(crate) async fn price_set(
    cx: &mut AnyConnection,
    kind: ItemKind,
    item: &str,
    price: Option<i64>,
    now: Timestamp,
) -> Result<(), Error> {
    sql!(
        "INSERT INTO item_prices (item_kind, item_id, from_at, price_micro) VALUES ($1, $2, $3, $4)
         ON CONFLICT (item_kind, item_id, from_at) DO UPDATE SET price_micro = excluded.price_micro",
        kind,
        item,
        now,
        price
    )
    .run(cx)
    .await?;
    Ok(())
}

//! Entitlements: what an operator or a wallet may read because it bought it.
//!
//! Invariant: the version of a row is the highest of the owner's sales that are not refunded.

use std::fmt;

use sqlx::AnyConnection;
use types::vocabulary::ItemKind;
use types::{OperatorId, Timestamp, mutate};

use super::{Money, Sale};
use crate::Error;
use crate::query::sql;
use crate::row::{Columns, bigint};

/// Owner of an entitlement.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Owner {
    Operator(OperatorId),
    /// A wallet, as `{network}:{address}`.
    Wallet(String),
}

impl fmt::Display for Owner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Operator(operator) => write!(f, "op:{operator}"),
            Self::Wallet(wallet) => write!(f, "w:{wallet}"),
        }
    }
}

impl Money<'_> {
    /// Returns the highest version of an item that an operator has bought; for a unit 1, which means every version.
    pub async fn owned(&self, operator: OperatorId, kind: ItemKind, item: &str) -> Result<Option<u64>, Error> {
        self.owned_by(&Owner::Operator(operator), kind, item).await
    }

    /// Returns the highest version of an item that a wallet, `{network}:{address}`, has bought.
    pub async fn owned_by_wallet(&self, wallet: &str, kind: ItemKind, item: &str) -> Result<Option<u64>, Error> {
        self.owned_by(&Owner::Wallet(wallet.to_owned()), kind, item).await
    }

    async fn owned_by(&self, owner: &Owner, kind: ItemKind, item: &str) -> Result<Option<u64>, Error> {
        self.0
            .read(async {
                sql!(
                    "SELECT max_version FROM entitlements WHERE owner = $1 AND item_kind = $2 AND item_id = $3",
                    owner.to_string(),
                    kind,
                    item
                )
                .row_if_any(&mut self.0.readers())
                .await?
                .map(|row| row.get("max_version"))
                .transpose()
            })
            .await
    }

    /// Returns the number that rises with each refund, after which nobody relies on what it remembers.
    pub async fn entitlement_generation(&self) -> Result<i64, Error> {
        self.0
            .read(async {
                sql!("SELECT generation FROM entitlement_generation WHERE one = 1")
                    .scalar(&mut self.0.readers())
                    .await
            })
            .await
    }
}

/// Lets an owner read what a sale unlocks. Returns false if it may already.
pub(super) async fn grant(cx: &mut AnyConnection, owner: &Owner, sale: &Sale) -> Result<bool, Error> {
    // The condition refuses a version that is owned already. The row is locked from here on, so of two
    // purchases of one buyer the second finds the first.
    let granted = sql!(
        "INSERT INTO entitlements (owner, item_kind, item_id, max_version, sale_id, updated_at)
         VALUES ($1, $2, $3, $4, $5, $6)
         ON CONFLICT (owner, item_kind, item_id) DO UPDATE SET
             max_version = excluded.max_version, sale_id = excluded.sale_id, updated_at = excluded.updated_at
         WHERE entitlements.max_version < excluded.max_version",
        owner.to_string(),
        sale.kind,
        sale.item.as_str(),
        bigint("max_version", sale.unlocks())?,
        sale.id,
        sale.sold_at
    )
    .run(cx)
    .await?;
    Ok(granted > 0)
}

/// Sets what the owners of a refunded sale may read to what their other sales unlock.
pub(super) async fn recompute(cx: &mut AnyConnection, sale: &Sale, now: Timestamp) -> Result<(), Error> {
    mutate!(Bug::RefundKeepsItem => return Ok(()));
    for owner in sale.owners() {
        let (operator, wallet) = match &owner {
            Owner::Operator(operator) => (operator.to_string(), String::new()),
            Owner::Wallet(wallet) => (String::new(), wallet.clone()),
        };
        // Recomputed from the sales and not counted back: an older sale of the same owner may still
        // stand.
        let highest = sql!(
            "SELECT id, version FROM sales
             WHERE item_kind = $1 AND item_id = $2 AND state NOT IN ('refunded', 'trial_refunded')
               AND (buyer_operator = $3 OR buyer_wallet = $4)
             ORDER BY version DESC LIMIT 1",
            sale.kind,
            sale.item.as_str(),
            operator,
            wallet
        )
        .row_if_any(cx)
        .await?;
        if let Some(row) = highest {
            let version = match sale.kind {
                ItemKind::Unit => 1,
                ItemKind::Dataset => row.get::<i64>("version")?,
            };
            sql!(
                "UPDATE entitlements SET max_version = $4, sale_id = $5, updated_at = $6
                 WHERE owner = $1 AND item_kind = $2 AND item_id = $3",
                owner.to_string(),
                sale.kind,
                sale.item.as_str(),
                version,
                row.get::<String>("id")?,
                now
            )
            .run(cx)
            .await?;
        } else {
            sql!(
                "DELETE FROM entitlements WHERE owner = $1 AND item_kind = $2 AND item_id = $3",
                owner.to_string(),
                sale.kind,
                sale.item.as_str()
            )
            .run(cx)
            .await?;
        }
    }
    forget(cx).await
}

/// Makes every process forget what it remembers of entitlements.
pub(super) async fn forget(cx: &mut AnyConnection) -> Result<(), Error> {
    // Replicas keep positive answers for a while. They compare this number with the one that they
    // remember, so that what was refunded is not served from memory.
    sql!("UPDATE entitlement_generation SET generation = generation + 1 WHERE one = 1")
        .run(cx)
        .await?;
    Ok(())
}

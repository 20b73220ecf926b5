//! The decision of a person: a yes buys at once, a no ends the row.

use sqlx::AnyConnection;
use types::money::MicroUsdc;
use types::vocabulary::{ApprovalState, ItemKind, SpendKind, StaleReason};
use types::{ApprovalId, LedgerEventId, OperatorId, SaleId, SessionId, Timestamp, Version, mutate};

use super::PurchaseApproval;
use super::ask::{NewApprovalRow, found};
use crate::Error;
use crate::accounts::lock_suspended;
use crate::apps;
use crate::money::purchase::{CreditSale, GoodsForSale, NotSold, Purchased, WantedItem, find_for_sale, sell};
use crate::money::spending::{self, SpendCapped, SpendCharge, Spender};
use crate::money::{Money, SaleTerms};
use crate::query::{sql, tx};
use crate::writer::Change;

/// Yes of a person.
#[derive(Clone, Debug)]
pub struct NewYes {
    /// Row that the person decides of.
    pub id: ApprovalId,
    /// Operator that the person is.
    pub operator: OperatorId,
    /// Session that decides.
    pub session: SessionId,
    /// Price that the person saw, in micro-USDC; that of the row if absent. More is never paid.
    pub shown: Option<MicroUsdc>,
    /// Id of the sale.
    pub sale: SaleId,
    /// Id of the event of the ledger.
    pub event: LedgerEventId,
    /// Id of the row that follows if the price has risen.
    pub successor: ApprovalId,
    /// Terms of the sale.
    pub terms: SaleTerms,
    /// Time of the decision, and of the purchase.
    pub now: Timestamp,
}

/// Result of [`Money::approve`].
#[derive(Clone, Debug, PartialEq, Eq)]
#[must_use]
pub enum Approved {
    /// The item is bought, now or by an earlier yes. The row has the sale.
    Bought(Box<PurchaseApproval>),
    /// The operator has no such row.
    Missing,
    /// The row had ended before: denied, expired or stale. Nothing changed.
    Ended(Box<PurchaseApproval>),
    /// What the person said yes to had changed, so the row has ended and nothing is bought.
    Stale {
        /// The row, which says why.
        approval: Box<PurchaseApproval>,
        /// Row that waits at the new price, if the price has risen.
        successor: Option<ApprovalId>,
    },
    /// The price does not fit a cap of now. Nothing changed, and the row waits on.
    Capped(SpendCapped),
    /// The credits do not cover the price. Nothing changed, and the row waits on.
    Short {
        /// Price of the item now, in micro-USDC.
        price: MicroUsdc,
        /// Balance of bought credits, in micro-USDC.
        balance: MicroUsdc,
        /// Balance of given credits, in micro-USDC.
        given: MicroUsdc,
    },
    /// The seller cannot take the price now. Nothing changed, and the row waits on.
    NotForSale,
    /// The operator is suspended. Nothing changed.
    Suspended,
}

/// No of a person.
#[derive(Clone, Copy, Debug)]
pub struct NewNo {
    /// Row that the person decides of.
    pub id: ApprovalId,
    /// Operator that the person is.
    pub operator: OperatorId,
    /// Session that decides.
    pub session: SessionId,
    /// Price of an item of the kind without a price of its own.
    pub default_price: MicroUsdc,
    /// Time of the decision.
    pub now: Timestamp,
}

/// Result of [`Money::deny`].
#[derive(Clone, Debug, PartialEq, Eq)]
#[must_use]
pub enum DeniedApproval {
    /// The row is denied, now or by an earlier no.
    Denied(Box<PurchaseApproval>),
    /// The row had ended otherwise before. Nothing changed.
    Ended(Box<PurchaseApproval>),
    /// The operator has no such row.
    Missing,
}

impl Money<'_> {
    /// Buys what a row waits for, at the price of now and never above the row's; or ends the row if what the person saw
    /// has changed; or leaves it as it is.
    pub async fn approve(&self, new: NewYes) -> Result<Approved, Error> {
        let approving = async || {
            let new = new.clone();
            self.0
                .write_aside(tx!(async move |cx| { approve(cx, &new).await }))
                .await
        };
        let approved = loop {
            // Of a try that another purchase outran nothing is left, and the next one finds what the operator has.
            if let Some(approved) = approving().await? {
                break approved;
            }
        };
        if matches!(approved, Approved::Bought(_)) {
            types::fault::point("approval.bought");
        }
        Ok(approved)
    }

    /// Ends a row that waits, so that nothing is bought.
    pub async fn deny(&self, new: NewNo) -> Result<DeniedApproval, Error> {
        self.0
            .write_aside(tx!(async move |cx| {
                let denied = sql!(
                    "UPDATE approvals SET state = 'denied', decided_at = $3, session_id = $4
                     WHERE id = $1 AND operator_id = $2 AND state = 'waiting' AND expires_at > $3",
                    new.id,
                    new.operator,
                    new.now,
                    new.session
                )
                .run(cx)
                .await?;
                let row = found(cx, new.id, new.now).await?;
                let Some(row) = row.filter(|row| row.operator == new.operator).map(Box::new) else {
                    return Ok(Change::Undo(DeniedApproval::Missing));
                };
                Ok(if denied > 0 {
                    Change::Keep(DeniedApproval::Denied(Box::new(
                        refused(cx, *row, new.default_price).await?,
                    )))
                } else if row.state == ApprovalState::Denied {
                    Change::Undo(DeniedApproval::Denied(row))
                } else {
                    Change::Undo(DeniedApproval::Ended(row))
                })
            }))
            .await
    }
}

/// Writes the price that a person said no to: that of now, if it has fallen since the row was asked for. Only a lower one
/// is another question.
async fn refused(
    cx: &mut AnyConnection,
    row: PurchaseApproval,
    default_price: MicroUsdc,
) -> Result<PurchaseApproval, Error> {
    let goods = find_for_sale(cx, &wanted(&row, default_price)).await?;
    let Some(price) = goods.ok().map(|goods| goods.price).filter(|price| *price < row.price) else {
        return Ok(row);
    };
    sql!("UPDATE approvals SET price = $2 WHERE id = $1", row.id, price.0)
        .run(cx)
        .await?;
    Ok(PurchaseApproval { price, ..row })
}

/// Returns what a row waits for.
fn wanted(row: &PurchaseApproval, default_price: MicroUsdc) -> WantedItem<'_> {
    WantedItem {
        kind: row.kind,
        item: &row.item,
        // The version of the row, also if there is a newer one. A unit has no version to choose.
        version: Some(Version(row.version)).filter(|_| row.kind == ItemKind::Dataset),
        buyer: row.operator,
        default_price,
    }
}

/// Decides by a yes. Returns `None`, and leaves nothing, if another purchase of the item was faster.
async fn approve(cx: &mut AnyConnection, new: &NewYes) -> Result<Change<Option<Approved>>, Error> {
    // The lock of the operator comes first, as in a suspension and in every ask.
    let suspended = lock_suspended(cx, new.operator).await?;
    // The write locks the row: of clicks at once, and of a yes beside a no, the second finds what the first has left.
    let locked = sql!(
        "UPDATE approvals SET price = price WHERE id = $1 AND operator_id = $2",
        new.id,
        new.operator
    )
    .run(cx)
    .await?;
    let row = match found(cx, new.id, new.now).await? {
        Some(row) if locked > 0 => row,
        _ => return Ok(Change::Undo(Some(Approved::Missing))),
    };
    match row.state {
        ApprovalState::Bought => return Ok(Change::Undo(Some(Approved::Bought(Box::new(row))))),
        ApprovalState::Denied | ApprovalState::Expired | ApprovalState::Stale => {
            return Ok(Change::Undo(Some(Approved::Ended(Box::new(row)))));
        }
        ApprovalState::Waiting => {}
    }
    if suspended {
        return Ok(Change::Undo(Some(Approved::Suspended)));
    }
    if apps::is_removed(cx, row.operator, row.agent).await? {
        return end(cx, new, StaleReason::Agent, None).await;
    }
    if let Some(app) = row.app
        && !apps::is_connected(cx, row.operator, app, new.now).await?
    {
        return end(cx, new, StaleReason::App, None).await;
    }
    let goods = match find_for_sale(cx, &wanted(&row, new.terms.default_price)).await? {
        Ok(goods) => goods,
        Err(Purchased::Owned { .. }) => return end(cx, new, StaleReason::Owned, None).await,
        Err(_) => return end(cx, new, StaleReason::Item, None).await,
    };
    // The row may have been brought to a higher price in another window of the person.
    let most = new.shown.map_or(row.price, |shown| shown.min(row.price));
    let is_above = goods.price > most;
    mutate!(Bug::YesWithoutPrice => let is_above = false);
    if is_above {
        return end(cx, new, StaleReason::Price, Some((&row, &goods))).await;
    }
    buy(cx, new, &row, &goods).await
}

/// Buys what a row waits for, and ends it.
async fn buy(
    cx: &mut AnyConnection,
    new: &NewYes,
    row: &PurchaseApproval,
    goods: &GoodsForSale,
) -> Result<Change<Option<Approved>>, Error> {
    let spender = Spender {
        agent: row.agent,
        app: row.app,
    };
    let charge = SpendCharge {
        kind: SpendKind::Purchase,
        amount: goods.price,
        now: new.now,
    };
    let counted = match spending::count(cx, Some(spender), charge).await? {
        Ok(counted) => counted,
        Err(capped) => return Ok(Change::Undo(Some(Approved::Capped(capped)))),
    };
    let selling = CreditSale {
        id: new.sale,
        event: new.event,
        buyer: row.operator,
        agent: Some(row.agent),
        approval: Some(row.id),
        terms: &new.terms,
        now: new.now,
    };
    match sell(cx, goods, &selling).await? {
        Ok(sale) => {
            counted.note(cx, new.event, Some(row.id)).await?;
            sql!(
                "UPDATE approvals SET state = 'bought', sale_id = $2, decided_at = $3, session_id = $4 WHERE id = $1",
                row.id,
                sale.id,
                new.now,
                new.session
            )
            .run(cx)
            .await?;
            types::fault::point("approval.rows");
            Ok(Change::Keep(Some(Approved::Bought(Box::new(PurchaseApproval {
                state: ApprovalState::Bought,
                sale: Some(sale.id),
                decided_at: Some(new.now),
                ..row.clone()
            })))))
        }
        Err(NotSold::Short) => {
            let (balance, given) = goods.balances(cx, &new.terms.asset, row.operator).await?;
            let price = goods.price;
            Ok(Change::Undo(Some(Approved::Short { price, balance, given })))
        }
        Err(NotSold::Full) => Ok(Change::Undo(Some(Approved::NotForSale))),
        Err(NotSold::Owned) => Ok(Change::Undo(None)),
    }
}

/// Ends a row because of what has changed. After a price that has risen another row waits at the new one.
async fn end(
    cx: &mut AnyConnection,
    new: &NewYes,
    why: StaleReason,
    dearer: Option<(&PurchaseApproval, &GoodsForSale)>,
) -> Result<Change<Option<Approved>>, Error> {
    sql!(
        "UPDATE approvals SET state = 'stale', why = $2, decided_at = $3, session_id = $4 WHERE id = $1",
        new.id,
        why,
        new.now,
        new.session
    )
    .run(cx)
    .await?;
    if let Some((row, goods)) = dearer {
        let next = NewApprovalRow {
            id: new.successor,
            operator: row.operator,
            spender: Spender {
                agent: row.agent,
                app: row.app,
            },
            asked_by: row.asked_by,
            form: None,
            kind: row.kind,
            item: &row.item,
            version: row.version,
            price: goods.price,
            reason: row.reason.as_deref(),
            now: new.now,
        };
        next.insert(cx).await?;
    }
    Ok(match found(cx, new.id, new.now).await?.map(Box::new) {
        Some(approval) => Change::Keep(Some(Approved::Stale {
            approval,
            successor: dearer.map(|_| new.successor),
        })),
        None => Change::Undo(Some(Approved::Missing)),
    })
}

//! Purchases by credits.
//!
//! Invariant: item and price are read again in the transaction of the purchase, and no earlier price binds. A purchase
//! is paid wholly by given or wholly by bought credits: by given ones first, where the seller takes them.

use std::time::Duration;

use pay::{Account, AccountKind, Brackets};
use types::money::MicroUsdc;
use types::vocabulary::{ItemKind, PaidWith};
use types::{AgentId, LedgerEventId, OperatorId, SaleId, Timestamp, Version, mutate};

use super::entitlements::Owner;
use super::post::locked_balance;
use super::sales::{NewSale, Recorded, record};
use super::{Money, Sale, items};
use crate::Error;
use crate::query::{sql, tx};
use crate::row::Columns;
use crate::writer::Change;

/// Terms of sales, from the configuration.
#[derive(Clone, Debug)]
pub struct SaleTerms {
    /// Asset of the ledger.
    pub asset: String,
    /// Price of an item of the kind without a price of its own.
    pub default_price: MicroUsdc,
    /// Brackets of the fee.
    pub fee: Brackets,
    /// Time in which a sale can be disputed.
    pub dispute_window: Duration,
    /// Time for which a price that has changed is still taken from a wallet, which signs before it pays.
    pub quote_window: Duration,
}

/// Purchase by the credits of an operator.
#[derive(Clone, Debug)]
pub struct NewPurchase {
    /// Id of the sale.
    pub sale: SaleId,
    /// Id of the event of the ledger.
    pub event: LedgerEventId,
    /// Kind of the item.
    pub kind: ItemKind,
    /// Id of the unit or the dataset.
    pub item: String,
    /// Version of a dataset; the latest if absent.
    pub version: Option<Version>,
    /// Operator that buys.
    pub buyer: OperatorId,
    /// Agent that buys.
    pub agent: Option<AgentId>,
    /// Terms of the sale.
    pub terms: SaleTerms,
    /// Time of the purchase.
    pub now: Timestamp,
}

/// Result of [`Money::purchase`].
#[derive(Clone, Debug, PartialEq, Eq)]
#[must_use]
#[expect(clippy::large_enum_variant, reason = "the large variant is the usual one")]
pub enum Purchased {
    /// The item is bought.
    Bought(Sale),
    /// The operator has it already, up to this version; nothing was charged.
    Owned {
        /// Highest version that the operator may read.
        version: u64,
    },
    /// The credits do not cover the price.
    Short {
        /// Price of the item, in micro-USDC.
        price: MicroUsdc,
        /// Balance of bought credits, in micro-USDC.
        balance: MicroUsdc,
        /// Balance of given credits, in micro-USDC.
        given: MicroUsdc,
    },
    /// The item is the operator's own.
    Own,
    /// The item costs nothing.
    Free,
    /// The item is not sold any more, or not now.
    NotForSale,
    /// The item does not exist, or the operator may not know of it.
    Missing,
    /// The version does not exist.
    NoVersion {
        /// Latest version that the dataset has.
        latest: u64,
    },
}

impl Money<'_> {
    /// Buys an item with the credits of an operator: entitlement, sale, movements and points, or nothing.
    pub async fn purchase(&self, new: NewPurchase) -> Result<Purchased, Error> {
        self.0
            // Nobody remembers balances and sales.
            .write_aside(tx!(async move |cx| {
                // The order of the refusals: own item, unknown item, free, version, not on sale,
                // owned. A caller learns of a price only for what exists and is shown. What is
                // free is never sold, so a version that it lacks does not matter.
                let Some(offer) = items::find(cx, new.kind, &new.item).await? else {
                    return Ok(Change::Undo(Purchased::Missing));
                };
                // This comes before the check of visibility: a seller can see its private item, and the refusal
                // names the reason.
                if offer.seller == new.buyer && !offer.taken_down {
                    return Ok(Change::Undo(Purchased::Own));
                }
                if !offer.visible {
                    return Ok(Change::Undo(Purchased::Missing));
                }
                // A unit without a price of its own is read with a key for nothing.
                let unpriced = new.kind == ItemKind::Unit && offer.price.is_none();
                if unpriced || !offer.can_be_priced {
                    return Ok(Change::Undo(Purchased::Free));
                }
                let terms = &new.terms;
                let Some(price) = items::price_for(&offer, terms.default_price.0).map(MicroUsdc) else {
                    return Ok(Change::Undo(Purchased::Free));
                };
                let version = new.version.map_or(offer.version, |version| version.0);
                if version > offer.version || version == 0 {
                    let latest = offer.version;
                    return Ok(Change::Undo(Purchased::NoVersion { latest }));
                }
                // Before the check of ownership, so that the answer is the same for everybody. What was bought
                // still reads.
                if !offer.on_sale {
                    return Ok(Change::Undo(Purchased::NotForSale));
                }
                // Only for the answer: without a lock it may be out of date, and `record` decides
                // on the row of the entitlement itself.
                let owned = owned(cx, new.buyer, new.kind, &new.item).await?;
                let unlocks = if new.kind == ItemKind::Unit { 1 } else { version };
                if let Some(owned) = owned.filter(|owned| *owned >= unlocks) {
                    return Ok(Change::Undo(Purchased::Owned { version: owned }));
                }
                let account = |kind| Account::of(kind, new.buyer);
                let takes_given = offer.trial_sale;
                mutate!(Bug::GivenOnPriced => let takes_given = true);
                let given = if takes_given {
                    // Locked, because the choice of the account follows from the balance. Read
                    // without a lock, two purchases could both choose given credits that cover one.
                    locked_balance(cx, &terms.asset, account(AccountKind::Given)).await?
                } else {
                    0
                };
                let paid_with = if given >= price.0 {
                    PaidWith::Given
                } else {
                    PaidWith::Credits
                };
                let sale = NewSale {
                    id: new.sale,
                    asset: &terms.asset,
                    kind: new.kind,
                    item: &new.item,
                    version,
                    unit_version: offer.unit_version.clone(),
                    seller: offer.seller,
                    seller_agent: offer.seller_agent,
                    buyer: Some(new.buyer),
                    wallet: None,
                    agent: new.agent,
                    paid_with,
                    price,
                    fee: &terms.fee,
                    window: terms.dispute_window,
                    payment: None,
                    now: new.now,
                }
                .sale();
                Ok(match record(cx, &sale, new.event).await? {
                    Recorded::Done => Change::Keep(Purchased::Bought(sale)),
                    // Another purchase of the operator was faster.
                    Recorded::Owned => Change::Undo(Purchased::Owned { version: unlocks }),
                    Recorded::Full => Change::Undo(Purchased::NotForSale),
                    Recorded::Short => Change::Undo(Purchased::Short {
                        price,
                        balance: MicroUsdc(balance(cx, &terms.asset, account(AccountKind::Credits)).await?),
                        given: MicroUsdc(balance(cx, &terms.asset, account(AccountKind::Given)).await?),
                    }),
                })
            }))
            .await
    }
}

/// Returns the highest version of an item that an operator has bought.
async fn owned(
    cx: &mut sqlx::AnyConnection,
    operator: OperatorId,
    kind: ItemKind,
    item: &str,
) -> Result<Option<u64>, Error> {
    sql!(
        "SELECT max_version FROM entitlements WHERE owner = $1 AND item_kind = $2 AND item_id = $3",
        Owner::Operator(operator).to_string(),
        kind,
        item
    )
    .row_if_any(cx)
    .await?
    .map(|row| row.get("max_version"))
    .transpose()
}

/// Returns a balance for a message; it may change at once.
async fn balance(cx: &mut sqlx::AnyConnection, asset: &str, account: Account) -> Result<i64, Error> {
    let balance: Option<i64> = sql!("SELECT balance FROM ledger_accounts WHERE id = $1", account.id(asset))
        .scalar_if_any(cx)
        .await?;
    Ok(balance.unwrap_or(0))
}

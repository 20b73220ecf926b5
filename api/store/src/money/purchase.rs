//! Purchases by credits.
//!
//! Invariant: item and price are read again in the transaction of the purchase, and no earlier price binds. A purchase
//! is paid wholly by given or wholly by bought credits: by given ones first, where the seller takes them. What an agent
//! buys fits its caps and those of its app; above their line it waits for a person.

use std::time::Duration;

use oauth::ConnectionId;
use pay::{Account, AccountKind, Brackets};
use sqlx::AnyConnection;
use types::money::MicroUsdc;
use types::vocabulary::{ItemKind, PaidWith, SpendKind};
use types::{AgentId, ApprovalId, LedgerEventId, OperatorId, SaleId, Timestamp, Version, mutate};

use super::approvals::{AgentAsk, AskedBefore, NewPurchaseAsk, PurchaseApproval, ask};
use super::entitlements::Owner;
use super::items::Offer;
use super::post::locked_balance;
use super::sales::{NewSale, Recorded, record};
use super::spending::{self, HeldLimits, SpendCapped, SpendCharge, Spender};
use super::{Money, Sale, items};
use crate::Error;
use crate::query::{sql, tx};
use crate::row::{Columns, texts};
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
    /// Version of a dataset. If absent, the one that the agent has asked for lately, or the latest.
    pub version: Option<Version>,
    /// Operator that buys.
    pub buyer: OperatorId,
    /// Agent that buys.
    pub agent: Option<AgentId>,
    /// Connection of the app that acts as the agent, if one does.
    pub app: Option<ConnectionId>,
    /// Price above which nothing is bought.
    pub max_price: Option<MicroUsdc>,
    /// Ask of a person, for a price above the line of the agent or the app.
    pub ask: NewPurchaseAsk,
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
    /// The operator has it, because a person said yes to this agent lately; nothing was charged now.
    Approved {
        /// Highest version that the operator may read.
        version: u64,
        /// Row that was bought.
        approval: Box<PurchaseApproval>,
    },
    /// The price is above the line of the agent or the app, and a person is asked. Nothing moved.
    Waiting(Box<PurchaseApproval>),
    /// A person said no to this agent lately.
    Denied {
        /// Row that was denied.
        approval: Box<PurchaseApproval>,
        /// Instant from which the agent may ask again.
        until: Timestamp,
    },
    /// A person would be asked, and too many purchases of the agent wait already.
    TooManyWaiting,
    /// The price is above what the agent said that it pays at most.
    PriceAbove {
        /// Price now, in micro-USDC.
        price: MicroUsdc,
    },
    /// The price does not fit a cap of the agent or the app.
    Capped(SpendCapped),
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
    /// Buys an item with the credits of an operator: entitlement, sale, movements, points and counters, or nothing. Above
    /// the line of the agent or the app it asks a person, and buys nothing.
    ///
    /// # Errors
    /// [`Error::Text`].
    pub async fn purchase(&self, new: NewPurchase) -> Result<Purchased, Error> {
        texts(&[("reason", new.ask.reason.as_deref().unwrap_or_default())])?;
        let purchased = self
            .0
            // Nobody remembers balances and sales.
            .write_aside(tx!(async move |cx| { buy(cx, &new).await }))
            .await?;
        if matches!(purchased, Purchased::Waiting(_)) {
            types::fault::point("approval.asked");
        }
        Ok(purchased)
    }
}

async fn buy(cx: &mut AnyConnection, new: &NewPurchase) -> Result<Change<Purchased>, Error> {
    let NewPurchase { kind, now, .. } = *new;
    let before = AskedBefore::of(cx, new.agent, kind, &new.item, now).await?;
    let asked = before.version().filter(|_| kind == ItemKind::Dataset);
    let wanted = WantedItem {
        kind,
        item: &new.item,
        // A repeat of a call without a version means what a person was asked about, whatever was merged since.
        version: new.version.or(asked),
        buyer: new.buyer,
        default_price: new.terms.default_price,
    };
    let goods = match find_for_sale(cx, &wanted).await? {
        Ok(goods) => goods,
        Err(Purchased::Owned { version }) => {
            let asked = new.version.or(asked).map_or(1, |version| version.0);
            return Ok(Change::Undo(match before.bought(asked) {
                Some(approval) => Purchased::Approved {
                    version,
                    approval: Box::new(approval.clone()),
                },
                None => Purchased::Owned { version },
            }));
        }
        Err(refused) => return Ok(Change::Undo(refused)),
    };
    let price = goods.price;
    if new.max_price.is_some_and(|most| price > most) {
        return Ok(Change::Undo(Purchased::PriceAbove { price }));
    }
    if let Some(denied) = before.denied(price) {
        return Ok(Change::Undo(denied));
    }
    let spender = new.agent.map(|agent| Spender { agent, app: new.app });
    let limits = HeldLimits::of(cx, spender).await?;
    let charge = SpendCharge {
        kind: SpendKind::Purchase,
        amount: price,
        now,
    };
    let asset = new.terms.asset.as_str();
    if let Some(spender) = spender.filter(|_| limits.asks_for(price)) {
        // A person is asked only for what could be bought now.
        if let Some(capped) = limits.look(cx, charge).await? {
            return Ok(Change::Undo(Purchased::Capped(capped)));
        }
        let (balance, given) = goods.balances(cx, asset, new.buyer).await?;
        if balance < price && !(goods.offer.trial_sale && given >= price) {
            return Ok(Change::Undo(Purchased::Short { price, balance, given }));
        }
        let asked = AgentAsk {
            new: &new.ask,
            operator: new.buyer,
            spender,
            kind,
            item: &new.item,
            version: goods.unlocks(),
            price,
            now,
        };
        return ask(cx, asked).await;
    }
    // Counted before anything else is written, and under a lock: of purchases at once none passes a cap with another.
    let counted = match spending::count(cx, spender, charge).await? {
        Ok(counted) => counted,
        Err(capped) => {
            // The purchase that took what was left of the cap may have been one of this item.
            let owned = owned(cx, new.buyer, kind, &new.item).await?;
            return Ok(Change::Undo(match owned.filter(|owned| *owned >= goods.unlocks()) {
                Some(version) => Purchased::Owned { version },
                None => Purchased::Capped(capped),
            }));
        }
    };
    let selling = CreditSale {
        id: new.sale,
        event: new.event,
        buyer: new.buyer,
        agent: new.agent,
        approval: None,
        terms: &new.terms,
        now,
    };
    Ok(match sell(cx, &goods, &selling).await? {
        Ok(sale) => {
            counted.note(cx, new.event, None).await?;
            Change::Keep(Purchased::Bought(sale))
        }
        // Another purchase of the operator was faster.
        Err(NotSold::Owned) => Change::Undo(Purchased::Owned {
            version: goods.unlocks(),
        }),
        Err(NotSold::Full) => Change::Undo(Purchased::NotForSale),
        Err(NotSold::Short) => {
            let (balance, given) = goods.balances(cx, asset, new.buyer).await?;
            Change::Undo(Purchased::Short { price, balance, given })
        }
    })
}

/// Item that an operator wants to buy.
#[derive(Clone, Copy, Debug)]
pub(super) struct WantedItem<'a> {
    pub(super) kind: ItemKind,
    pub(super) item: &'a str,
    /// Version of a dataset; the latest if absent.
    pub(super) version: Option<Version>,
    pub(super) buyer: OperatorId,
    /// Price of an item of the kind without a price of its own.
    pub(super) default_price: MicroUsdc,
}

/// Item that is sold to an operator now, which it has not.
#[derive(Clone, Debug)]
pub(super) struct GoodsForSale {
    pub(super) offer: Offer,
    pub(super) price: MicroUsdc,
    /// Number of the version that is bought.
    pub(super) version: u64,
}

impl GoodsForSale {
    /// Returns the version up to which its buyer will read: for a unit 1, which means every version.
    pub(super) const fn unlocks(&self) -> u64 {
        match self.offer.kind {
            ItemKind::Unit => 1,
            ItemKind::Dataset => self.version,
        }
    }

    /// Returns the bought and the given credits of an operator, for a message or an ask; they may change at once.
    pub(super) async fn balances(
        &self,
        cx: &mut AnyConnection,
        asset: &str,
        operator: OperatorId,
    ) -> Result<(MicroUsdc, MicroUsdc), Error> {
        let bought = balance(cx, asset, Account::of(AccountKind::Credits, operator)).await?;
        let given = balance(cx, asset, Account::of(AccountKind::Given, operator)).await?;
        Ok((MicroUsdc(bought), MicroUsdc(given)))
    }
}

/// Returns an item as it is sold to an operator now, or the refusal, which is one without a price to pay.
pub(super) async fn find_for_sale(
    cx: &mut AnyConnection,
    wanted: &WantedItem<'_>,
) -> Result<Result<GoodsForSale, Purchased>, Error> {
    let WantedItem { kind, item, buyer, .. } = *wanted;
    // The order of the refusals: own item, unknown item, free, version, not on sale, owned. A caller learns of a price
    // only for what exists and is shown. What is free is never sold, so a version that it lacks does not matter.
    let Some(offer) = items::find(cx, kind, item).await? else {
        return Ok(Err(Purchased::Missing));
    };
    // This comes before the check of visibility: a seller can see its private item, and the refusal names the reason.
    if offer.seller == buyer && !offer.taken_down {
        return Ok(Err(Purchased::Own));
    }
    if !offer.visible {
        return Ok(Err(Purchased::Missing));
    }
    // A unit without a price of its own is read with a key for nothing.
    let unpriced = kind == ItemKind::Unit && offer.price.is_none();
    if unpriced || !offer.can_be_priced {
        return Ok(Err(Purchased::Free));
    }
    let Some(price) = items::price_for(&offer, wanted.default_price.0).map(MicroUsdc) else {
        return Ok(Err(Purchased::Free));
    };
    let version = wanted.version.map_or(offer.version, |version| version.0);
    if version > offer.version || version == 0 {
        let latest = offer.version;
        return Ok(Err(Purchased::NoVersion { latest }));
    }
    // Before the check of ownership, so that the answer is the same for everybody. What was bought still reads.
    if !offer.on_sale {
        return Ok(Err(Purchased::NotForSale));
    }
    let goods = GoodsForSale { offer, price, version };
    // Only for the answer: without a lock it may be out of date, and `record` decides on the row of the entitlement
    // itself.
    let owned = owned(cx, buyer, kind, item).await?;
    if let Some(version) = owned.filter(|owned| *owned >= goods.unlocks()) {
        return Ok(Err(Purchased::Owned { version }));
    }
    Ok(Ok(goods))
}

/// Sale to make of goods.
#[derive(Clone, Copy, Debug)]
pub(super) struct CreditSale<'a> {
    pub(super) id: SaleId,
    pub(super) event: LedgerEventId,
    pub(super) buyer: OperatorId,
    pub(super) agent: Option<AgentId>,
    pub(super) approval: Option<ApprovalId>,
    pub(super) terms: &'a SaleTerms,
    pub(super) now: Timestamp,
}

/// Refusal of [`sell`], after which the change must be undone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NotSold {
    /// The operator has the item already.
    Owned,
    /// The credits do not cover the price.
    Short,
    /// A balance would be too large.
    Full,
}

/// Sells goods for credits: given ones if they cover the price and the seller takes them, else bought ones.
pub(super) async fn sell(
    cx: &mut AnyConnection,
    goods: &GoodsForSale,
    selling: &CreditSale<'_>,
) -> Result<Result<Sale, NotSold>, Error> {
    let CreditSale { buyer, terms, .. } = *selling;
    let offer = &goods.offer;
    let takes_given = offer.trial_sale;
    mutate!(Bug::GivenOnPriced => let takes_given = true);
    let given = if takes_given {
        // Locked, because the choice of the account follows from the balance. Read without a lock, two purchases could
        // both choose given credits that cover one.
        locked_balance(cx, &terms.asset, Account::of(AccountKind::Given, buyer)).await?
    } else {
        0
    };
    let paid_with = if given >= goods.price.0 {
        PaidWith::Given
    } else {
        PaidWith::Credits
    };
    let sale = NewSale {
        id: selling.id,
        asset: &terms.asset,
        kind: offer.kind,
        item: &offer.item,
        version: goods.version,
        unit_version: offer.unit_version.clone(),
        seller: offer.seller,
        seller_agent: offer.seller_agent,
        buyer: Some(buyer),
        wallet: None,
        agent: selling.agent,
        paid_with,
        price: goods.price,
        fee: &terms.fee,
        window: terms.dispute_window,
        payment: None,
        approval: selling.approval,
        now: selling.now,
    }
    .sale();
    Ok(match record(cx, &sale, selling.event).await? {
        Recorded::Done => Ok(sale),
        Recorded::Owned => Err(NotSold::Owned),
        Recorded::Short => Err(NotSold::Short),
        Recorded::Full => Err(NotSold::Full),
    })
}

/// Returns the highest version of an item that an operator has bought.
pub(super) async fn owned(
    cx: &mut AnyConnection,
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
async fn balance(cx: &mut AnyConnection, asset: &str, account: Account) -> Result<i64, Error> {
    let balance: Option<i64> = sql!("SELECT balance FROM ledger_accounts WHERE id = $1", account.id(asset))
        .scalar_if_any(cx)
        .await?;
    Ok(balance.unwrap_or(0))
}

//! Sales: what was sold to whom, for how much, and what became of the money.
//!
//! Invariant: a sale, its entitlement, its movements and its points are written in one transaction.

use std::time::Duration;

use pay::{Brackets, Event, Split};
use sqlx::AnyConnection;
use types::money::MicroUsdc;
use types::vocabulary::{ItemKind, PaidWith, PointsKind};
use types::{AgentId, ApprovalId, LedgerEventId, OperatorId, SaleId, Timestamp, mutate};

use super::entitlements::{self, Owner};
use super::post::{Posted, Posting, post};
use crate::Error;
use crate::points::{self, NewPoints};
use crate::query::sql;
use crate::row::row;

pub use types::vocabulary::SaleState;

/// Points of a sale.
const SALE_POINTS: i64 = 5;
/// Micro-USDC of a cent, for which a trial sale gives a point.
const CENT: i64 = 10_000;

row! {
    /// Item that was sold.
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub struct Sale {
        /// Id of the sale.
        pub id: SaleId = "sales.id AS id",
        /// Asset that it was paid in.
        pub asset: String = "sales.asset AS asset",
        /// Kind of the item.
        pub kind: ItemKind = "sales.item_kind AS item_kind",
        /// Id of the unit or the dataset.
        pub item: String = "sales.item_id AS item_id",
        /// Number of the version.
        pub version: u64 = "sales.version AS version",
        /// Id of the version of a unit.
        pub unit_version: Option<String> = "sales.unit_version AS unit_version",
        /// Operator that sold it.
        pub seller: OperatorId = "sales.seller_operator AS seller_operator",
        /// Agent that made the item, if one did.
        pub seller_agent: Option<AgentId> = "sales.seller_agent AS seller_agent",
        /// Operator that bought it; `None` for a wallet without operator.
        pub buyer: Option<OperatorId> = "sales.buyer_operator AS buyer_operator",
        /// Wallet that paid, as `{network}:{address}`.
        pub wallet: Option<String> = "sales.buyer_wallet AS buyer_wallet",
        /// Agent that bought it.
        pub agent: Option<AgentId> = "sales.agent_id AS agent_id",
        /// Money that it was paid with.
        pub paid_with: PaidWith = "sales.paid_with AS paid_with",
        /// Price of the item at the sale, in micro-USDC.
        pub price: MicroUsdc = "sales.price AS price",
        /// Part of the platform; 0 for a trial sale.
        pub fee: MicroUsdc = "sales.fee AS fee",
        /// Part of the seller; 0 for a trial sale.
        pub share: MicroUsdc = "sales.share AS share",
        /// Brackets of the fee, as text.
        pub brackets: String = "sales.fee_brackets AS fee_brackets",
        /// Time of the sale.
        pub sold_at: Timestamp = "sales.sold_at AS sold_at",
        /// End of the time in which it can be disputed.
        pub release_at: Timestamp = "sales.release_at AS release_at",
        /// State of the money.
        pub state: SaleState = "sales.state AS state",
        /// Id of the payment by x402, if it was one.
        pub payment: Option<String> = "sales.payment_id AS payment_id",
        /// Yes of a person that bought it, if one did.
        pub approval: Option<ApprovalId> = "sales.approval_id AS approval_id",
    }
}

impl Sale {
    /// Returns the parts of the price.
    pub const fn split(&self) -> Split {
        Split {
            fee: self.fee,
            share: self.share,
        }
    }

    /// Returns the instant until which the sale may be disputed; `None` if that is over at `now`, or the money went
    /// elsewhere.
    pub fn disputable_until(&self, now: Timestamp) -> Option<Timestamp> {
        let is_held = matches!(self.state, SaleState::Held | SaleState::Trial);
        (is_held && now < self.release_at).then_some(self.release_at)
    }

    /// Returns true if the price was given back.
    pub const fn is_refunded(&self) -> bool {
        matches!(self.state, SaleState::Refunded | SaleState::TrialRefunded)
    }

    /// Returns the owners of what was bought; first the one that paid.
    pub(crate) fn owners(&self) -> impl Iterator<Item = Owner> {
        let wallet = self.wallet.clone().map(Owner::Wallet);
        wallet.into_iter().chain(self.buyer.map(Owner::Operator))
    }

    /// Returns the version up to which the sale lets its buyer read: for a unit 1, which means every version.
    pub(crate) const fn unlocks(&self) -> u64 {
        match self.kind {
            ItemKind::Unit => 1,
            ItemKind::Dataset => self.version,
        }
    }
}

/// Sale to record, without what follows from its price and time.
#[derive(Clone, Debug)]
pub(crate) struct NewSale<'a> {
    pub(crate) id: SaleId,
    pub(crate) asset: &'a str,
    pub(crate) kind: ItemKind,
    pub(crate) item: &'a str,
    pub(crate) version: u64,
    pub(crate) unit_version: Option<String>,
    pub(crate) seller: OperatorId,
    pub(crate) seller_agent: Option<AgentId>,
    pub(crate) buyer: Option<OperatorId>,
    pub(crate) wallet: Option<String>,
    pub(crate) agent: Option<AgentId>,
    pub(crate) paid_with: PaidWith,
    pub(crate) price: MicroUsdc,
    pub(crate) fee: &'a Brackets,
    pub(crate) window: Duration,
    pub(crate) payment: Option<String>,
    pub(crate) approval: Option<ApprovalId>,
    pub(crate) now: Timestamp,
}

impl NewSale<'_> {
    /// Returns the sale as it is stored.
    pub(crate) fn sale(&self) -> Sale {
        let split = self.fee.split(self.price);
        mutate!(Bug::FeeTooHigh => let split = super::faults::lose_cent(split));
        mutate!(Bug::FeeOnWhole => let split = super::faults::charge_whole(self.price));
        let split = match self.paid_with {
            // Given credits pay nobody: the seller gets points, the platform nothing.
            PaidWith::Given => Split {
                fee: MicroUsdc(0),
                share: MicroUsdc(0),
            },
            PaidWith::Credits | PaidWith::X402 => split,
        };
        Sale {
            id: self.id,
            asset: self.asset.to_owned(),
            kind: self.kind,
            item: self.item.to_owned(),
            version: self.version,
            unit_version: self.unit_version.clone(),
            seller: self.seller,
            seller_agent: self.seller_agent,
            buyer: self.buyer,
            wallet: self.wallet.clone(),
            agent: self.agent,
            paid_with: self.paid_with,
            price: self.price,
            fee: split.fee,
            share: split.share,
            brackets: self.fee.to_string(),
            sold_at: self.now,
            release_at: self.now.plus(self.window),
            state: match self.paid_with {
                PaidWith::Given => SaleState::Trial,
                PaidWith::Credits | PaidWith::X402 => SaleState::Held,
            },
            payment: self.payment.clone(),
            approval: self.approval,
        }
    }
}

/// Result of [`record`].
#[derive(Clone, Debug, PartialEq, Eq)]
#[must_use]
pub(crate) enum Recorded {
    /// Everything is written.
    Done,
    /// An owner has the item already; the change must be undone, unless it wrote nothing else.
    Owned,
    /// The buyer's money does not cover the price; the change must be undone.
    Short,
    /// A balance would be too large; the change must be undone.
    Full,
}

/// Grants a sale to its owners, moves the money, and gives the points.
pub(crate) async fn record(cx: &mut AnyConnection, sale: &Sale, event: LedgerEventId) -> Result<Recorded, Error> {
    // The first owner decides: its row is the lock between two purchases of one buyer.
    for (number, owner) in sale.owners().enumerate() {
        let granted = entitlements::grant(cx, &owner, sale).await?;
        // The second owner is the operator of a proved wallet. It may have the item already, which does
        // not undo what the wallet paid for.
        if !granted && number == 0 {
            return Ok(Recorded::Owned);
        }
    }
    // Before the event, whose key is the sale's id: the check of the ledger finds neither without the
    // other.
    insert(cx, sale).await?;
    match move_money(cx, sale, event).await? {
        Posted::Done => {}
        Posted::Short(_) => return Ok(Recorded::Short),
        Posted::Full(_) => return Ok(Recorded::Full),
        Posted::Repeated => return Ok(Recorded::Owned),
    }
    count(cx, sale, 1).await?;
    reward(cx, sale).await?;
    Ok(Recorded::Done)
}

/// Posts the event of a sale.
async fn move_money(cx: &mut AnyConnection, sale: &Sale, event: LedgerEventId) -> Result<Posted, Error> {
    mutate!(Bug::SaleUnpaid => return Ok(Posted::Done));
    let id = sale.id.to_string();
    let movement = match (sale.paid_with, sale.buyer) {
        (PaidWith::Credits, Some(buyer)) => Event::sale(&id, buyer, sale.seller, sale.split()),
        (PaidWith::Given, Some(buyer)) => Event::trial_sale(&id, buyer, sale.price),
        // Credits without an operator do not exist, so this is a payment by a wallet.
        _ => Event::sale_by_x402(&id, sale.seller, sale.split()),
    };
    mutate!(Bug::TrialPays => let movement = super::faults::pay_trial(movement, sale));
    let posting = Posting {
        id: event,
        asset: &sale.asset,
        event: &movement,
        at: sale.sold_at,
        subject: &sale.item,
        actor: &sale.agent.map(|agent| agent.to_string()).unwrap_or_default(),
    };
    post(cx, &posting).await
}

async fn insert(cx: &mut AnyConnection, sale: &Sale) -> Result<(), Error> {
    sql!(
        "INSERT INTO sales
             (id, asset, item_kind, item_id, version, unit_version, seller_operator, seller_agent, buyer_operator,
              buyer_wallet, agent_id, paid_with, price, fee, share, fee_brackets, sold_at, release_at, state, payment_id,
              approval_id)
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19, $20, $21)",
        sale.id,
        sale.asset.as_str(),
        sale.kind,
        sale.item.as_str(),
        crate::row::bigint("version", sale.version)?,
        sale.unit_version.as_deref(),
        sale.seller,
        sale.seller_agent,
        sale.buyer,
        sale.wallet.as_deref(),
        sale.agent,
        sale.paid_with,
        sale.price.0,
        sale.fee.0,
        sale.share.0,
        sale.brackets.as_str(),
        sale.sold_at,
        sale.release_at,
        sale.state,
        sale.payment.as_deref(),
        sale.approval
    )
    .run(cx)
    .await?;
    Ok(())
}

/// Adds to the number of live sales that a unit shows.
pub(crate) async fn count(cx: &mut AnyConnection, sale: &Sale, n: i64) -> Result<(), Error> {
    if sale.kind == ItemKind::Unit {
        sql!(
            "UPDATE chains SET sold_count = sold_count + $2 WHERE id = $1",
            sale.item.as_str(),
            n
        )
        .run(cx)
        .await?;
    }
    Ok(())
}

/// Gives the points of a sale to the agent that made the item.
async fn reward(cx: &mut AnyConnection, sale: &Sale) -> Result<(), Error> {
    let kind = match sale.paid_with {
        PaidWith::Given => PointsKind::TrialSale,
        PaidWith::Credits | PaidWith::X402 => PointsKind::Sale,
    };
    give_points(cx, sale, kind, points_of(sale), sale.sold_at).await
}

/// Takes the points of a refunded sale back.
pub(crate) async fn unreward(cx: &mut AnyConnection, sale: &Sale, now: Timestamp) -> Result<(), Error> {
    // The same sum as the reward, so that a refund leaves the agent as if there had been no sale.
    give_points(cx, sale, PointsKind::Reversal, -points_of(sale), now).await
}

/// Returns the points of a sale. A trial sale gives more, because it pays the seller nothing.
const fn points_of(sale: &Sale) -> i64 {
    match sale.paid_with {
        PaidWith::Given => SALE_POINTS + sale.price.0 / CENT,
        PaidWith::Credits | PaidWith::X402 => SALE_POINTS,
    }
}

/// Gives points to the agent that made the item. An item that a person made gives none.
async fn give_points(
    cx: &mut AnyConnection,
    sale: &Sale,
    kind: PointsKind,
    points: i64,
    at: Timestamp,
) -> Result<(), Error> {
    let Some(agent) = sale.seller_agent else {
        return Ok(());
    };
    let new = NewPoints {
        agent,
        operator: sale.seller,
        kind,
        key: sale.id.to_string(),
        points,
        subject: sale.item.clone(),
        at,
    };
    points::give(cx, &new).await?;
    Ok(())
}

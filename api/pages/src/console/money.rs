//! Money of an operator: earnings, credits, the journal of credits, what was bought.
//!
//! Invariant: amounts are integers of micro-USDC; the page says that they are test USDC.

use askama::Template;
use types::money::MicroUsdc;
use types::{ApprovalId, SaleId};

use super::DisputesPart;
use crate::chrome::{PageLayout, Theme};
use crate::filters;
use crate::spend::SpendRow;
use crate::time::Instant;

/// Page at `GET /console/money`: earnings and credits of an operator.
#[derive(Debug, Template)]
#[template(path = "console/money.html")]
pub struct MoneyPage {
    /// Frame of the page.
    pub chrome: PageLayout,
    /// Newest disputes of what the account sold and bought.
    pub disputes: DisputesPart,
    /// Shares that wait for a payout.
    pub payable: i64,
    /// Shares within the dispute window.
    pub held: i64,
    /// Shares of sales under dispute.
    pub disputed: i64,
    /// Sum of the payouts.
    pub paid: i64,
    /// Balance at which a seller is paid out.
    pub payout_threshold: i64,
    /// Shares within the dispute window, by the day on which they are released.
    pub holds: Vec<HoldRow>,
    /// Payout address in force.
    pub payout: Option<String>,
    /// Balance of bought credits, in micro-USDC.
    pub credits: i64,
    /// Balance of given credits, in micro-USDC.
    pub given: i64,
    /// Price of a pack of credits.
    pub pack: i64,
    /// Address that sells a pack.
    pub top_up: String,
    /// Test USDC that the faucet gives at a time; `None` on a real network.
    pub faucet: Option<u32>,
    /// Shares by the day of the sale, newest first; days without a sale are left out.
    pub days: Vec<HoldRow>,
    /// Kinds of entries that can be chosen.
    pub kinds: Vec<String>,
    /// Kind that is chosen.
    pub kind: Option<String>,
    /// Movements of the credits, newest first.
    pub entries: Vec<EntryRow>,
    /// Address of the next page of them.
    pub next: Option<String>,
    /// True if this is not the first page of them.
    pub is_later: bool,
    /// Purchases of agents that wait for the person's yes, oldest first.
    pub waiting: Vec<WaitingPurchase>,
    /// Agents and apps with their limits.
    pub limits: Vec<SpendRow>,
    /// Items that were bought, newest first.
    pub bought: Vec<BoughtRow>,
    /// Prices with their fee and share.
    pub fees: Vec<FeeRow>,
}

/// Shares of a day.
#[derive(Clone, Copy, Debug)]
pub struct HoldRow {
    /// Day, at its beginning.
    pub day: Instant,
    /// Number of sales whose shares are summed.
    pub sales: u64,
    /// Sum of the shares.
    pub share: i64,
}

/// Entry of the credit ledger, for a table row.
#[derive(Clone, Debug)]
pub struct EntryRow {
    /// Time of the event.
    pub at: Instant,
    /// Kind of the event, as a word.
    pub kind: String,
    /// Item or reference of the event.
    pub subject: String,
    /// Name of the agent that acted; empty if none did.
    pub agent: String,
    /// Change of the balance.
    pub amount: i64,
    /// Balance of the entry's account after it, in micro-USDC.
    pub after: i64,
    /// True for given credits.
    // Bought and given credits are two accounts, each with balances of its own, so an entry names its
    // account.
    pub is_given: bool,
}

/// Purchase of an agent that waits for the person's yes.
#[derive(Clone, Debug)]
pub struct WaitingPurchase {
    /// Id of the question.
    pub id: ApprovalId,
    /// Name of the agent.
    pub agent: String,
    /// Page of the item.
    pub href: String,
    /// Title of the item, by its seller.
    pub title: String,
    /// Version of a dataset.
    pub version: Option<u64>,
    /// Price, as it was asked.
    pub price: MicroUsdc,
    /// Words of the agent about why.
    pub reason: Option<String>,
    /// Time of the question.
    pub asked_at: Instant,
    /// Time until which it waits.
    pub expires_at: Instant,
}

/// Item that was bought.
#[derive(Clone, Debug)]
pub struct BoughtRow {
    /// Id of the sale.
    pub sale: SaleId,
    /// Title of the item.
    pub title: String,
    /// Kind of the item, as a word.
    pub kind: String,
    /// Version of a dataset.
    pub version: Option<u64>,
    /// Time of the sale.
    pub at: Instant,
    /// Money that it was paid with, as a word.
    pub paid_with: String,
    /// Price of the item at the sale, in micro-USDC.
    pub price: i64,
    /// True if the price was given back.
    pub refunded: bool,
}

/// Price with its fee and share.
#[derive(Clone, Copy, Debug)]
pub struct FeeRow {
    /// Example of a price, in micro-USDC.
    pub price: i64,
    /// Part of the platform.
    pub fee: i64,
    /// Part of the seller.
    pub share: i64,
}

#[expect(clippy::unused_self, reason = "a template calls functions through its page")]
impl MoneyPage {
    const fn balance(&self) -> i64 {
        self.credits.saturating_add(self.given)
    }

    /// Returns the words for a kind of event.
    fn word(&self, kind: &str) -> String {
        let words = match kind {
            "sale" => "Bought",
            "trial_sale" => "Bought on trial",
            "pack" => "Credit pack",
            "grant" => "Granted",
            "given" => "Given",
            "egress_block" => "Egress",
            "storage_day" => "Storage",
            "usage_refund" => "Charge given back",
            "dispute_won_by_buyer" => "Refund",
            other => other,
        };
        words.to_owned()
    }

    fn query(&self) -> String {
        self.kind
            .as_ref()
            .map(|kind| format!("?kind={kind}"))
            .unwrap_or_default()
    }

    /// Returns the address of the first page, unless this is it.
    fn first(&self) -> Option<&'static str> {
        self.is_later.then_some("/console/money")
    }
}

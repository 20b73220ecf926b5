//! Money of an operator: what it has to spend, what it earned, each sale, each purchase, limits and fees.
//!
//! Invariants:
//! - Amounts are integers of micro-USDC; the page says that they are test USDC.
//! - A purchase is one line, whatever the ledger moved for it.

use askama::Template;
use types::money::MicroUsdc;
use types::vocabulary::{ItemKind, PaidWith, SaleState};
use types::{ApprovalId, SaleId};

use super::DisputesPart;
use super::payout::{PayoutRow, PayoutView, short_address};
use crate::chart::{Bars, SalesDay};
use crate::chrome::{PageLayout, Theme};
use crate::filters;
use crate::form::{Errors as _, FieldError, OptionChoice};
use crate::number::{counted, grouped};
use crate::spend::{CreditBalance, SpendRow};
use crate::time::Instant;
use crate::words::StateMark;

/// Page at `GET /console/money`.
#[derive(Debug, Template)]
#[template(path = "console/money.html")]
pub struct MoneyPage {
    /// Frame of the page.
    pub chrome: PageLayout,
    /// Credits of the account.
    pub credits: CreditBalance,
    /// Purchases with credits in 30 days.
    pub spent: SpentMoney,
    /// Shares of sales.
    pub earned: EarnedMoney,
    /// Newest disputes of what the account sold and bought.
    pub disputes: DisputesPart,
    /// Shares within the dispute window, by the day on which they are released.
    pub holds: Vec<HoldRow>,
    /// Sales of the last 30 days, oldest first, days without one too.
    pub days: Vec<SalesDay>,
    /// Purchases of agents that wait for the person's yes, oldest first.
    pub waiting: Vec<WaitingPurchase>,
    /// Payout address as a task.
    pub payout: PayoutView,
    /// Latest payouts, newest first.
    pub payouts: Vec<PayoutRow>,
    /// Sales, and which of them are shown.
    pub sales: SalesList,
    /// Movements of the credits, and which of them are shown.
    pub spending: SpendingList,
    /// Agents and apps with their limits.
    pub limits: Vec<SpendRow>,
    /// Prices with their fee and share.
    pub fees: Vec<FeeRow>,
    /// Rules that the input of the payout address breaks: fields `address` and `signature`.
    pub errors: Vec<FieldError>,
}

/// Purchases of a time.
#[derive(Clone, Copy, Debug, Default)]
pub struct SpentMoney {
    /// Number of purchases.
    pub purchases: u64,
    /// Sum of their prices.
    pub sum: MicroUsdc,
}

impl SpentMoney {
    pub(crate) fn times(&self) -> String {
        counted(self.purchases, "purchase", "purchases")
    }
}

/// Shares of the sales of an operator.
#[derive(Clone, Copy, Debug, Default)]
pub struct EarnedMoney {
    /// Shares that wait for a payout.
    pub payable: MicroUsdc,
    /// Shares within the dispute window.
    pub held: MicroUsdc,
    /// Shares of sales under dispute.
    pub disputed: MicroUsdc,
    /// Payout that is on its way.
    pub on_its_way: MicroUsdc,
    /// Sum of the payouts that were paid.
    pub paid: MicroUsdc,
    /// Balance at which a seller is paid out.
    pub threshold: MicroUsdc,
    /// True if there is an address in force and no change of it waits.
    pub has_address: bool,
}

impl EarnedMoney {
    /// Returns when what is ready is paid out, in a few words.
    pub(crate) fn when(&self) -> String {
        if self.on_its_way.0 > 0 {
            return format!("and ${} on its way", self.on_its_way);
        }
        if !self.has_address {
            return if self.payable.0 > 0 {
                "waits for your address".to_owned()
            } else {
                "no payout address".to_owned()
            };
        }
        if self.payable < self.threshold {
            return format!("paid out from ${}", self.threshold);
        }
        "goes out by itself".to_owned()
    }

    /// Returns true if nothing was ever sold.
    pub(crate) const fn is_nothing(&self) -> bool {
        self.payable.0 == 0 && self.held.0 == 0 && self.disputed.0 == 0 && self.on_its_way.0 == 0 && self.paid.0 == 0
    }
}

/// Shares of a day.
#[derive(Clone, Copy, Debug)]
pub struct HoldRow {
    /// Day, at its beginning.
    pub day: Instant,
    /// Number of sales whose shares are summed.
    pub sales: u64,
    /// Sum of the shares.
    pub share: MicroUsdc,
}

/// Sales of an operator, and which of them are shown.
#[derive(Clone, Debug, Default)]
pub struct SalesList {
    /// Items that can be chosen.
    pub items: Vec<OptionChoice>,
    /// State that is chosen.
    pub state: Option<SaleState>,
    /// Sales, newest first.
    pub rows: Vec<SoldRow>,
    /// Last sale of the page, if there is another page.
    pub next: Option<SaleId>,
    /// True if this is not the first page.
    pub is_later: bool,
}

impl SalesList {
    /// States that can be chosen, with their words.
    const STATES: [(SaleState, &'static str); 5] = [
        (SaleState::Held, "on hold"),
        (SaleState::Payable, "ready or paid"),
        (SaleState::Disputed, "disputed"),
        (SaleState::Refunded, "given back"),
        (SaleState::Trial, "trial sale"),
    ];

    fn states(&self) -> Vec<OptionChoice> {
        let choice = |(state, label): (SaleState, &str)| OptionChoice {
            value: state.as_str().to_owned(),
            label: label.to_owned(),
            is_chosen: self.state == Some(state),
        };
        Self::STATES.into_iter().map(choice).collect()
    }

    /// Returns the choice as a query; empty if there is none.
    fn query(&self) -> String {
        query(&[("item", self.items.as_slice()), ("state", self.states().as_slice())])
    }

    /// Returns the address of the next page.
    fn later(&self) -> Option<String> {
        let last = self.next?;
        Some(format!("/console/money{}sold={last}#sales", further(&self.query())))
    }

    /// Returns the address of the first page, unless this is it.
    fn first(&self) -> Option<String> {
        self.is_later.then(|| format!("/console/money{}#sales", self.query()))
    }
}

/// Sale as its seller sees it.
#[derive(Clone, Debug)]
pub struct SoldRow {
    /// Time of the sale.
    pub at: Instant,
    /// Page of the item.
    pub href: String,
    /// Title of the item.
    pub title: String,
    /// Kind of the item.
    pub kind: ItemKind,
    /// Version of a dataset.
    pub version: Option<u64>,
    /// Money that it was paid with.
    pub paid_with: PaidWith,
    /// Wallet that paid, if one did.
    pub wallet: Option<String>,
    /// Price of the item at the sale.
    pub price: MicroUsdc,
    /// Part of the platform.
    pub fee: MicroUsdc,
    /// Part of the seller.
    pub share: MicroUsdc,
    /// State of the money.
    pub state: SaleState,
    /// End of the time in which it can be disputed.
    pub release_at: Instant,
    /// Time of the payout that had the share in it, once one was paid.
    pub paid_at: Option<Instant>,
    /// Time at which a dispute of it ended.
    pub resolved_at: Option<Instant>,
}

impl SoldRow {
    fn what(&self) -> String {
        of_item(self.kind, self.version)
    }

    pub(super) fn buyer(&self) -> String {
        match (self.paid_with, &self.wallet) {
            (PaidWith::X402, Some(wallet)) => format!("a wallet, {}", short_address(wallet)),
            (PaidWith::X402, None) => "a wallet".to_owned(),
            (PaidWith::Credits, _) => "an account, with credit".to_owned(),
            (PaidWith::Given, _) => "an account, with trial credit".to_owned(),
        }
    }

    pub(super) fn is_trial(&self) -> bool {
        self.paid_with == PaidWith::Given
    }

    pub(super) fn mark(&self) -> StateMark {
        match self.state {
            SaleState::Held => StateMark::Hold,
            SaleState::Disputed | SaleState::TrialDisputed => StateMark::Bad,
            SaleState::Payable if self.paid_at.is_some() => StateMark::Ok,
            SaleState::Payable => StateMark::Live,
            SaleState::Refunded | SaleState::Trial | SaleState::TrialRefunded => StateMark::Off,
        }
    }

    /// Returns the state with its day.
    pub(super) fn says(&self) -> String {
        match (self.state, self.paid_at, self.resolved_at) {
            (SaleState::Held, _, _) => format!("on hold until {}", self.release_at.day()),
            (SaleState::Disputed | SaleState::TrialDisputed, _, _) => "disputed".to_owned(),
            (SaleState::Payable, Some(at), _) => format!("paid {}", at.day()),
            (SaleState::Payable, None, _) => "ready".to_owned(),
            (SaleState::Refunded | SaleState::TrialRefunded, _, Some(at)) => format!("given back {}", at.day()),
            (SaleState::Refunded | SaleState::TrialRefunded, _, None) => "given back".to_owned(),
            (SaleState::Trial, _, _) => "trial sale".to_owned(),
        }
    }
}

/// Returns the words for an item, such as `dataset, v1,242`.
fn of_item(kind: ItemKind, version: Option<u64>) -> String {
    match (kind, version) {
        (ItemKind::Dataset, Some(version)) => format!("dataset, v{}", grouped(version)),
        (ItemKind::Dataset, None) => "dataset".to_owned(),
        (ItemKind::Unit, _) => "write-up".to_owned(),
    }
}

/// Returns what is chosen of fields as a query; empty if nothing is.
fn query(fields: &[(&str, &[OptionChoice])]) -> String {
    let chosen = fields.iter().filter_map(|(name, choices)| {
        let choice = choices
            .iter()
            .find(|choice| choice.is_chosen && !choice.value.is_empty())?;
        Some(format!("{name}={}", choice.value))
    });
    let parts: Vec<_> = chosen.collect();
    if parts.is_empty() {
        String::new()
    } else {
        format!("?{}", parts.join("&"))
    }
}

/// Returns the begin of a query with one field more.
fn further(query: &str) -> String {
    if query.is_empty() {
        "?".to_owned()
    } else {
        format!("{query}&")
    }
}

/// Choice of the movements of credits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SpendingKind {
    /// All of them.
    #[default]
    Everything,
    /// Purchases of items.
    Purchases,
    /// Credit that was added.
    Added,
    /// Downloads and storage beyond the free part.
    Usage,
    /// Credit given back: prices of purchases after a dispute, and charges for usage.
    Returned,
}

impl SpendingKind {
    /// Every choice, in the order of the page.
    pub const CHOICES: &[Self] = &[
        Self::Everything,
        Self::Purchases,
        Self::Added,
        Self::Usage,
        Self::Returned,
    ];

    /// Returns the value of the field.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Everything => "",
            Self::Purchases => "purchases",
            Self::Added => "added",
            Self::Usage => "usage",
            Self::Returned => "returned",
        }
    }

    const fn label(self) -> &'static str {
        match self {
            Self::Everything => "everything",
            Self::Purchases => "purchases",
            Self::Added => "credit added",
            Self::Usage => "downloads and storage",
            Self::Returned => "given back",
        }
    }
}

/// Movements of the credits, and which of them are shown.
#[derive(Clone, Debug, Default)]
pub struct SpendingList {
    /// Kind that is chosen.
    pub kind: SpendingKind,
    /// Agents that can be chosen.
    pub actors: Vec<OptionChoice>,
    /// Months that can be chosen, newest first.
    pub months: Vec<OptionChoice>,
    /// Events, newest first.
    pub rows: Vec<SpendingRow>,
    /// Position after the page, if there is another page.
    pub next: Option<String>,
    /// True if this is not the first page.
    pub is_later: bool,
    /// Time before which events are archived and not listed, if some are.
    pub archived_before: Option<Instant>,
}

impl SpendingList {
    fn kinds(&self) -> Vec<OptionChoice> {
        let choice = |kind: &SpendingKind| OptionChoice {
            value: kind.word().to_owned(),
            label: kind.label().to_owned(),
            is_chosen: *kind == self.kind,
        };
        SpendingKind::CHOICES.iter().map(choice).collect()
    }

    /// Returns the choice as a query; empty if there is none.
    fn query(&self) -> String {
        query(&[
            ("kind", self.kinds().as_slice()),
            ("by", self.actors.as_slice()),
            ("month", self.months.as_slice()),
        ])
    }

    /// Returns the address of the next page.
    fn later(&self) -> Option<String> {
        let last = self.next.as_ref()?;
        Some(format!(
            "/console/money{}cursor={last}#spending",
            further(&self.query())
        ))
    }

    /// Returns the address of the first page, unless this is it.
    fn first(&self) -> Option<String> {
        self.is_later
            .then(|| format!("/console/money{}#spending", self.query()))
    }
}

/// Event of the credits: a purchase, credit that was added, or a charge.
#[derive(Clone, Debug)]
pub struct SpendingRow {
    /// Time of the event.
    pub at: Instant,
    /// Event in words, if it is not of an item.
    pub what: String,
    /// Title of the item, if it is of one.
    pub title: Option<String>,
    /// Page of the item, if there is one.
    pub href: Option<String>,
    /// More about the event.
    pub note: String,
    /// Name of the agent that acted; empty if none did.
    pub agent: String,
    /// Change of the balance.
    pub amount: MicroUsdc,
    /// Balance of the event's account after it.
    pub after: MicroUsdc,
    /// True for trial credit.
    // Bought and trial credit are two accounts, each with balances of its own.
    pub is_trial: bool,
    /// Sale whose receipt there is.
    pub receipt: Option<SaleId>,
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

/// Price with its fee and share.
#[derive(Clone, Copy, Debug)]
pub struct FeeRow {
    /// Example of a price.
    pub price: MicroUsdc,
    /// Part of the platform.
    pub fee: MicroUsdc,
    /// Part of the seller.
    pub share: MicroUsdc,
}

impl FeeRow {
    /// Returns the hundredths of the price that the seller gets.
    const fn part(&self) -> i64 {
        match self.price.0 {
            0 => 0,
            price => self.share.0.saturating_mul(100) / price,
        }
    }
}

impl MoneyPage {
    fn chart(&self) -> Bars {
        Bars::of_shares(&self.days)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sale_says_where_its_money_is() {
        let sold = |state: SaleState, paid_at: Option<Instant>| SoldRow {
            at: Instant(0),
            href: String::new(),
            title: String::new(),
            kind: ItemKind::Dataset,
            version: Some(1_241),
            paid_with: PaidWith::X402,
            wallet: Some("eip155:84532:0x7b3F0b6E5d2C4A19885fE0C3B8d1F6a2E4b522c1".to_owned()),
            price: MicroUsdc(0),
            fee: MicroUsdc(0),
            share: MicroUsdc(0),
            state,
            release_at: Instant(86_400_000_000),
            paid_at,
            resolved_at: Some(Instant(0)),
        };
        for (state, paid_at, says, mark) in [
            (SaleState::Held, None, "on hold until 2 Jan", StateMark::Hold),
            (SaleState::Payable, None, "ready", StateMark::Live),
            (SaleState::Payable, Some(Instant(0)), "paid 1 Jan", StateMark::Ok),
            (SaleState::Disputed, None, "disputed", StateMark::Bad),
            (SaleState::Refunded, None, "given back 1 Jan", StateMark::Off),
            (SaleState::Trial, None, "trial sale", StateMark::Off),
        ] {
            let row = sold(state, paid_at);
            assert_eq!((row.says().as_str(), row.mark()), (says, mark));
        }
        let row = sold(SaleState::Held, None);
        assert_eq!(
            (row.buyer().as_str(), row.what().as_str()),
            ("a wallet, 0x7b…22c1", "dataset, v1,241")
        );
    }

    #[test]
    fn what_is_ready_says_when_it_goes_out() {
        let earned = |payable: i64, on_its_way: i64, has_address: bool| EarnedMoney {
            payable: MicroUsdc(payable),
            on_its_way: MicroUsdc(on_its_way),
            threshold: MicroUsdc(50_000),
            has_address,
            ..EarnedMoney::default()
        };
        for (earned, when) in [
            (earned(0, 0, false), "no payout address"),
            (earned(60_000, 0, false), "waits for your address"),
            (earned(40_000, 0, true), "paid out from $0.05"),
            (earned(50_000, 0, true), "goes out by itself"),
            (earned(0, 410_000, true), "and $0.41 on its way"),
        ] {
            assert_eq!(earned.when(), when);
        }
    }
}

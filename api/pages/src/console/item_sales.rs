//! Sales and readers of one item, as its seller sees them.
//!
//! Invariant: who bought is never named: a sale shows the way it was paid, and of a wallet its address, which the chain has
//! anyway.

use types::money::MicroUsdc;
use types::vocabulary::{PaidWith, SaleState};

use crate::chart::{BarCount, Bars};
use crate::number::grouped;
use crate::time::Instant;
use crate::words::StateMark;

/// Sales and readers of an item.
#[derive(Clone, Debug, Default)]
pub struct ItemSales {
    /// True if the item can be bought, or was.
    pub is_sold: bool,
    /// Number of sales that were not refunded.
    pub sold: u64,
    /// Number of those in the last 7 days.
    pub sold_lately: u64,
    /// Sum of the shares of the seller.
    pub earned: MicroUsdc,
    /// Number of others that read the item.
    pub readers: u64,
    /// Words for one reader and for several.
    pub reader_words: (&'static str, &'static str),
    /// The last days, oldest first.
    pub days: Vec<ItemDay>,
    /// Latest sales, newest first.
    pub rows: Vec<ItemSaleRow>,
}

/// Sales and first reads of a day.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ItemDay {
    /// Begin of the day.
    pub day: Instant,
    /// Number of sales.
    pub sales: u64,
    /// Number of first reads.
    pub readers: u64,
}

/// Sale of an item.
#[derive(Clone, Debug)]
pub struct ItemSaleRow {
    /// Time of the sale.
    pub at: Instant,
    /// Version of a dataset; none for a unit.
    pub version: Option<u64>,
    /// Money that it was paid with.
    pub paid_with: PaidWith,
    /// Wallet that paid, as `{network}:{address}`.
    pub wallet: Option<String>,
    /// Price at the sale.
    pub price: MicroUsdc,
    /// Part of the platform.
    pub fee: MicroUsdc,
    /// Part of the seller.
    pub share: MicroUsdc,
    /// State of the money.
    pub state: SaleState,
    /// End of the time in which it can be disputed.
    pub release_at: Instant,
}

impl ItemSaleRow {
    /// Returns the words for the buyer.
    pub(crate) fn buyer(&self) -> String {
        match (&self.wallet, self.paid_with) {
            (Some(wallet), _) => {
                let address = wallet.rsplit(':').next().unwrap_or_default();
                let head: String = address.chars().take(6).collect();
                let tail: Vec<char> = address.chars().rev().take(4).collect();
                let tail: String = tail.into_iter().rev().collect();
                format!("a wallet, {head}…{tail}")
            }
            (None, PaidWith::Given) => "an agent, with trial credit".to_owned(),
            (None, _) => "an agent, with credits".to_owned(),
        }
    }

    /// Returns true if the sale pays its seller.
    pub(crate) const fn pays(&self) -> bool {
        !matches!(self.paid_with, PaidWith::Given)
    }

    /// Returns true while the share waits for the end of the window.
    pub(crate) const fn is_held(&self) -> bool {
        matches!(self.state, SaleState::Held)
    }

    /// Returns the mark of the state.
    pub(crate) const fn mark(&self) -> StateMark {
        match self.state {
            SaleState::Held => StateMark::Hold,
            SaleState::Payable | SaleState::Trial => StateMark::Ok,
            SaleState::Disputed | SaleState::TrialDisputed => StateMark::Bad,
            SaleState::Refunded | SaleState::TrialRefunded => StateMark::Off,
        }
    }

    /// Returns the word for the state.
    pub(crate) const fn word(&self) -> &'static str {
        match self.state {
            SaleState::Held => "on hold",
            SaleState::Payable => "payable",
            SaleState::Disputed | SaleState::TrialDisputed => "disputed",
            SaleState::Refunded | SaleState::TrialRefunded => "refunded",
            SaleState::Trial => "trial sale",
        }
    }
}

impl ItemSales {
    /// Returns the words for the readers.
    pub(crate) fn readers(&self) -> String {
        let (one, several) = self.reader_words;
        format!(
            "{} {}",
            grouped(self.readers),
            if self.readers == 1 { one } else { several }
        )
    }

    /// Returns the chart of sales by day.
    pub(crate) fn sales_chart(&self) -> Bars {
        self.chart("Sales a day", "sold", |day| day.sales)
    }

    /// Returns the chart of new readers by day.
    pub(crate) fn readers_chart(&self) -> Bars {
        self.chart("New readers a day", "new", |day| day.readers)
    }

    fn chart(&self, heading: &'static str, word: &'static str, of: impl Fn(&ItemDay) -> u64) -> Bars {
        let bars: Vec<_> = self
            .days
            .iter()
            .map(|day| BarCount {
                name: day.day.day(),
                count: of(day),
            })
            .collect();
        Bars::of_days(heading, word, &bars)
    }
}

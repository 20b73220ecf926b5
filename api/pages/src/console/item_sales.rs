//! Sales and readers of one item, as its seller sees them.
//!
//! Invariant: who bought is never named: a sale shows the way it was paid, and of a wallet its address, which the chain has
//! anyway.

use types::money::MicroUsdc;

use super::SoldRow;
use crate::chart::{BarCount, Bars};
use crate::number::grouped;
use crate::time::Instant;

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
    pub rows: Vec<SoldRow>,
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

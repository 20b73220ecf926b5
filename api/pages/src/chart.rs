//! Charts, computed here and drawn by templates as SVG.
//!
//! Invariant: a chart of a flow shows every row that came in: passed, dropped, refused, held, or not merged with its batch.

use askama::Template;
use askama::filters::HtmlSafe;
use types::money::MicroUsdc;

use crate::number::grouped;
use crate::time::Instant;

mod answer;
mod bars;
mod flow;
mod scale;

pub use answer::ChartForm;
pub(crate) use answer::{AnswerChart, MAX_CHART_ROWS, chart_columns};
pub(crate) use bars::{BarCount, Bars};
pub use flow::{GateLoss, RowFlow};

/// Sales of one day that were not refunded.
#[derive(Clone, Copy, Debug, Default)]
pub struct SalesDay {
    /// Begin of the day.
    pub day: Instant,
    /// Number of sales for credits.
    pub by_credits: u64,
    /// Number of sales to wallets.
    pub by_wallet: u64,
    /// Shares of the sales for credits.
    pub share_by_credits: MicroUsdc,
    /// Shares of the sales to wallets.
    pub share_by_wallet: MicroUsdc,
}

/// Contributions of one day.
#[derive(Clone, Copy, Debug)]
pub struct DayCount {
    /// Begin of the day.
    pub day: Instant,
    /// Number of contributions that were merged.
    pub merged: u64,
    /// Number of contributions that wait or are held.
    pub waiting: u64,
    /// Number of contributions that were rejected or could not be processed.
    pub rejected: u64,
}

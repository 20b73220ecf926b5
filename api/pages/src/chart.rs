//! Charts, computed here and drawn by templates as SVG.
//!
//! Invariant: a chart of a flow shows every row that came in: passed, dropped, refused, held, or not merged with its batch.

use askama::Template;
use askama::filters::HtmlSafe;

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

//! Rows of a dataset over time, as steps.

use std::fmt::Write as _;

use askama::Template;
use askama::filters::HtmlSafe;
use types::Timestamp;

use crate::number::grouped;
use crate::time::Instant;

/// Side of the drawing, in tenths of its unit.
const SIDE_TENTHS: u128 = 1_000;

/// Records of a dataset from a time on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GrowthPoint {
    /// Time of the merge.
    pub at: Timestamp,
    /// Records since then.
    pub records: u64,
}

/// Chart of the rows over time. A table only grows, so it has steps and no slope.
#[derive(Debug, Template)]
#[template(path = "dataset/growth.html")]
pub(crate) struct GrowthChart {
    label: String,
    top: String,
    middle: String,
    steps: String,
    first: String,
    last: String,
}

impl HtmlSafe for GrowthChart {}

fn tenths(number: u128) -> String {
    format!("{}.{}", number / 10, number % 10)
}

impl GrowthChart {
    /// Draws points, oldest first; nothing below two.
    pub(crate) fn of(points: &[GrowthPoint]) -> Option<Self> {
        let (first, last) = (points.first()?, points.last()?);
        if points.len() < 2 {
            return None;
        }
        let most = points.iter().map(|point| point.records).max().unwrap_or(0).max(1);
        let top = round_up(most);
        let span = u128::from(first.at.micros().abs_diff(last.at.micros()).max(1));
        let place = |point: &GrowthPoint| {
            let since = point.at.micros().saturating_sub(first.at.micros()).max(0);
            let x = u128::from(since.unsigned_abs()) * SIDE_TENTHS / span;
            let y = SIDE_TENTHS - u128::from(point.records) * SIDE_TENTHS / u128::from(top);
            (tenths(x.min(SIDE_TENTHS)), tenths(y))
        };
        let (x, y) = place(first);
        let mut steps = format!("M{x} {y}");
        for point in &points[1..] {
            let (x, y) = place(point);
            write!(steps, "H{x}V{y}").ok();
        }
        let (from, to) = (Instant(first.at.micros()), Instant(last.at.micros()));
        Some(Self {
            label: format!(
                "Rows over time: {} on {}, {} on {}",
                grouped(first.records),
                from.plain(),
                grouped(last.records),
                to.plain()
            ),
            top: grouped(top),
            middle: grouped(top / 2),
            steps,
            first: from.day(),
            last: to.day(),
        })
    }
}

/// Returns the least round even number that is not below another: 2, 4, 6, 8, 10, 20, 40, …
fn round_up(number: u64) -> u64 {
    let mut power = 1_u64;
    loop {
        for step in [2, 4, 6, 8, 10] {
            match power.checked_mul(step) {
                Some(round) if round >= number => return round,
                Some(_) => {}
                None => return u64::MAX,
            }
        }
        power = power.saturating_mul(10);
    }
}

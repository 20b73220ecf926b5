//! Bars side by side: a count each, or the counts of a day stacked.

use types::money::MicroUsdc;

use super::{DayCount, HtmlSafe, SalesDay, Template, grouped};
use crate::number::counted;

/// Series of the bars: name and class.
const BAR_SERIES: [(&str, &str); 3] = [("merged", "b1"), ("waiting", "b3"), ("rejected", "b4")];
/// Series of the bars of sales: name and class.
const SALES_SERIES: [(&str, &str); 2] = [("with credit", "b1"), ("from a wallet", "b2")];
/// Words of a number at an axis, and the top of an axis without bars.
type AxisUnit = (fn(u64) -> String, u64);
/// Axis of counts.
const COUNTS: AxisUnit = (grouped, 2);
/// Axis of micro-USDC.
const DOLLARS: AxisUnit = (dollars, 1_000_000);
/// Height and width of the drawing, in hundredths of its unit.
const DRAWING_SIDE: u64 = 10_000;

/// Bar with one count.
pub(crate) struct BarCount {
    /// Name of the bar, which stands below it.
    pub(crate) name: String,
    /// Height of the bar.
    pub(crate) count: u64,
}

/// Rectangle of a bar, in hundredths.
struct Piece {
    class: &'static str,
    y: String,
    height: String,
}

/// Bar as it is drawn.
struct DrawnBar {
    title: String,
    x: String,
    pieces: Vec<Piece>,
}

/// Chart of bars.
#[derive(Template)]
#[template(path = "part/bars.html")]
pub(crate) struct Bars {
    heading: &'static str,
    label: String,
    is_empty: bool,
    aside: String,
    top: String,
    middle: String,
    width: String,
    columns: Vec<DrawnBar>,
    ticks: Vec<String>,
    series: &'static [(&'static str, &'static str)],
}

impl HtmlSafe for Bars {}

/// Returns hundredths as a decimal number.
fn decimal(hundredths: u64) -> String {
    // In integers, so that the text of a drawing does not depend on the way in which doubles are
    // rounded.
    format!("{}.{:02}", hundredths / 100, hundredths % 100)
}

/// Returns the least round even number that is not below another: 2, 4, 10, 20, 40, 100, …
fn round_up(number: u64) -> u64 {
    let mut power = 1_u64;
    loop {
        for step in [2, 4, 10] {
            let Some(round) = power.checked_mul(step) else {
                return u64::MAX;
            };
            if round >= number {
                return round;
            }
        }
        power = power.saturating_mul(10);
    }
}

impl Bars {
    /// Draws contributions by day and outcome.
    pub(crate) fn of_contributions(days: &[DayCount]) -> Self {
        let bars: Vec<_> = days
            .iter()
            .map(|day| (day.day.day(), vec![day.merged, day.waiting, day.rejected]))
            .collect();
        let (all, most) = sums(&bars);
        let label = match all {
            0 => format!("No contributions in {} days", days.len()),
            _ => format!(
                "{} contributions in {} days, at most {} a day",
                grouped(all),
                days.len(),
                grouped(most)
            ),
        };
        let aside = nothing(all, days.len());
        Self::drawn("Contributions a day", label, aside, &BAR_SERIES, &bars, COUNTS)
    }

    /// Draws the number of sales by day and money.
    pub(crate) fn of_sales(days: &[SalesDay]) -> Self {
        let bars: Vec<_> = days
            .iter()
            .map(|day| (day.day.day(), vec![day.by_credits, day.by_wallet]))
            .collect();
        let (all, most) = sums(&bars);
        let label = match all {
            0 => format!("No sales in {} days", days.len()),
            _ => format!(
                "{} in {} days, at most {} a day",
                counted(all, "sale", "sales"),
                days.len(),
                grouped(most)
            ),
        };
        let aside = nothing(all, days.len());
        Self::drawn("Sales a day", label, aside, &SALES_SERIES, &bars, COUNTS)
    }

    /// Draws the seller's share of sales by day and money.
    pub(crate) fn of_shares(days: &[SalesDay]) -> Self {
        let micro = |amount: MicroUsdc| u64::try_from(amount.0).unwrap_or(0);
        let bars: Vec<_> = days
            .iter()
            .map(|day| {
                let shares = vec![micro(day.share_by_credits), micro(day.share_by_wallet)];
                (day.day.day(), shares)
            })
            .collect();
        let (all, most) = sums(&bars);
        let label = match all {
            0 => format!("No share of sales in {} days", days.len()),
            _ => format!(
                "Share of sales a day over {} days, {} in all, at most {} a day",
                days.len(),
                dollars(all),
                dollars(most)
            ),
        };
        let aside = nothing(all, days.len());
        Self::drawn("Your share of sales a day", label, aside, &SALES_SERIES, &bars, DOLLARS)
    }

    /// Draws one count a bar. `aside` says which bars they are.
    pub(crate) fn of_counts(heading: &'static str, aside: String, bars: &[BarCount]) -> Self {
        let bars: Vec<_> = bars.iter().map(|bar| (bar.name.clone(), vec![bar.count])).collect();
        let (all, most) = sums(&bars);
        let label = format!("{heading}, {aside}: {} in all, at most {}", grouped(all), grouped(most));
        Self::drawn(heading, label, aside, &[("new", "b1")], &bars, COUNTS)
    }

    /// Draws one count a day; `word` says of what.
    pub(crate) fn of_days(heading: &'static str, word: &'static str, bars: &[BarCount]) -> Self {
        let bars: Vec<_> = bars.iter().map(|bar| (bar.name.clone(), vec![bar.count])).collect();
        let (all, most) = sums(&bars);
        let (aside, label) = match all {
            0 => (
                format!("none in {} days", bars.len()),
                format!("{heading}: none in {} days", bars.len()),
            ),
            _ => (
                format!("{} in {} days", grouped(all), bars.len()),
                format!(
                    "{heading}: {} in {} days, at most {}",
                    grouped(all),
                    bars.len(),
                    grouped(most)
                ),
            ),
        };
        let series = match word {
            "sold" => &[("sold", "b1")],
            _ => &[("new", "b1")],
        };
        Self::drawn(heading, label, aside, series, &bars, COUNTS)
    }

    /// Draws bars with their names, each with a count for each of the series. `label` tells the finding.
    pub(crate) fn of_series(
        heading: &'static str,
        label: String,
        series: &'static [(&'static str, &'static str)],
        bars: &[(String, Vec<u64>)],
    ) -> Self {
        Self::drawn(heading, label, String::new(), series, bars, COUNTS)
    }

    /// Draws the same of amounts of micro-USDC.
    pub(crate) fn of_money(
        heading: &'static str,
        label: String,
        series: &'static [(&'static str, &'static str)],
        bars: &[(String, Vec<u64>)],
    ) -> Self {
        Self::drawn(heading, label, String::new(), series, bars, DOLLARS)
    }

    /// Draws bars with their names, each with a count for each of the series, which `words` says.
    fn drawn(
        heading: &'static str,
        label: String,
        aside: String,
        series: &'static [(&'static str, &'static str)],
        bars: &[(String, Vec<u64>)],
        (words, empty): AxisUnit,
    ) -> Self {
        let (all, most) = sums(bars);
        // At least 2, because the axis also names the half of the top, which must be a whole number.
        let top = round_up(if most == 0 { empty } else { most.max(2) });
        let pitch = DRAWING_SIDE / u64::try_from(bars.len()).unwrap_or(1).max(1);
        // The rest is the gap between two bars.
        let width = pitch * 72 / 100;
        let share = |count: u64| {
            // In 128 bits: the product of a large count and the height does not fit 64.
            let share = u128::from(count) * u128::from(DRAWING_SIDE) / u128::from(top);
            u64::try_from(share).unwrap_or(DRAWING_SIDE)
        };
        let mut x = (pitch - width) / 2;
        let mut columns = Vec::new();
        for (name, counts) in bars {
            let mut y = DRAWING_SIDE;
            let mut pieces = Vec::new();
            // From the bottom up, in the order of the legend.
            let counts = series.iter().zip(counts).filter(|(_, count)| **count > 0);
            for ((_, class), count) in counts.clone() {
                let height = share(*count);
                // Saturating, because each height is rounded by itself and their sum may exceed the
                // side.
                y = y.saturating_sub(height);
                pieces.push(Piece {
                    class,
                    y: decimal(y),
                    height: decimal(height),
                });
            }
            let parts: Vec<_> = counts
                .map(|((name, _), count)| format!("{} {name}", words(*count)))
                .collect();
            let says = if parts.is_empty() {
                "none".to_owned()
            } else {
                parts.join(", ")
            };
            columns.push(DrawnBar {
                title: format!("{name}: {says}"),
                x: decimal(x),
                pieces,
            });
            x += pitch;
        }
        Self {
            heading,
            label,
            is_empty: all == 0,
            aside,
            top: words(top),
            middle: words(top / 2),
            width: decimal(width),
            columns,
            ticks: ticks(bars),
            series,
        }
    }
}

/// Returns an amount of micro-USDC in dollars.
fn dollars(micro: u64) -> String {
    format!("${}", MicroUsdc(i64::try_from(micro).unwrap_or(i64::MAX)))
}

/// Returns what stands beside a chart without bars.
fn nothing(all: u64, days: usize) -> String {
    if all == 0 {
        format!("none in {days} days")
    } else {
        String::new()
    }
}

/// Returns the sum of all counts, and the largest sum of a bar.
fn sums(bars: &[(String, Vec<u64>)]) -> (u64, u64) {
    let heights = bars
        .iter()
        .map(|(_, counts)| counts.iter().copied().fold(0, u64::saturating_add));
    (heights.clone().fold(0, u64::saturating_add), heights.max().unwrap_or(0))
}

/// Returns the words below the chart: the name of the first bar, of the last, and of two between.
fn ticks(bars: &[(String, Vec<u64>)]) -> Vec<String> {
    let Some(last) = bars.len().checked_sub(1) else {
        return Vec::new();
    };
    let mut places = vec![0, last / 3, last * 2 / 3, last];
    places.dedup();
    places
        .into_iter()
        .filter_map(|place| bars.get(place))
        .map(|(name, _)| name.clone())
        .collect()
}

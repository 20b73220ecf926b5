//! Bars side by side: a count each, or the counts of a day stacked.

use super::{DayCount, HtmlSafe, Template, grouped};

/// Series of the bars: name and class.
const BAR_SERIES: [(&str, &str); 3] = [("merged", "b1"), ("waiting", "b3"), ("rejected", "b4")];
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
        let aside = if all == 0 {
            format!("none in {} days", days.len())
        } else {
            String::new()
        };
        Self::drawn("Contributions a day", label, aside, &BAR_SERIES, &bars)
    }

    /// Draws one count a bar. `aside` says which bars they are.
    pub(crate) fn of_counts(heading: &'static str, aside: String, bars: &[BarCount]) -> Self {
        let bars: Vec<_> = bars.iter().map(|bar| (bar.name.clone(), vec![bar.count])).collect();
        let (all, most) = sums(&bars);
        let label = format!("{heading}, {aside}: {} in all, at most {}", grouped(all), grouped(most));
        Self::drawn(heading, label, aside, &[("new", "b1")], &bars)
    }

    /// Draws bars with their names, each with a count for each of the series. `label` tells the finding.
    pub(crate) fn of_series(
        heading: &'static str,
        label: String,
        series: &'static [(&'static str, &'static str)],
        bars: &[(String, Vec<u64>)],
    ) -> Self {
        Self::drawn(heading, label, String::new(), series, bars)
    }

    /// Draws bars with their names, each with a count for each of the series.
    fn drawn(
        heading: &'static str,
        label: String,
        aside: String,
        series: &'static [(&'static str, &'static str)],
        bars: &[(String, Vec<u64>)],
    ) -> Self {
        let (all, most) = sums(bars);
        // At least 2, because the axis also names the half of the top, which must be a whole number.
        let top = round_up(most.max(2));
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
                .map(|((name, _), count)| format!("{} {name}", grouped(*count)))
                .collect();
            let words = if parts.is_empty() {
                "none".to_owned()
            } else {
                parts.join(", ")
            };
            columns.push(DrawnBar {
                title: format!("{name}: {words}"),
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
            top: grouped(top),
            middle: grouped(top / 2),
            width: decimal(width),
            columns,
            ticks: ticks(bars),
            series,
        }
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

//! Bars by day, stacked.

use super::{DayCount, HtmlSafe, Template, grouped};

/// Series of the bars: name and class.
const BAR_SERIES: [(&str, &str); 3] = [("merged", "b1"), ("waiting", "b3"), ("rejected", "b4")];
/// Height and width of the drawing, in hundredths of its unit.
const DRAWING_SIDE: u64 = 10_000;

/// Rectangle of a bar, in hundredths.
struct Piece {
    class: &'static str,
    y: String,
    height: String,
}

/// Bar of a day.
struct DayBar {
    title: String,
    x: String,
    pieces: Vec<Piece>,
}

/// Chart of contributions by day.
#[derive(Template)]
#[template(path = "part/bars.html")]
pub(crate) struct Bars {
    label: String,
    is_empty: bool,
    days: usize,
    top: String,
    middle: String,
    width: String,
    columns: Vec<DayBar>,
    ticks: Vec<String>,
    series: [(&'static str, &'static str); 3],
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
        let total = |day: &DayCount| day.merged.saturating_add(day.waiting).saturating_add(day.rejected);
        let most = days.iter().map(total).max().unwrap_or(0);
        // At least 2, because the axis also names the half of the top, which must be a whole number.
        let top = round_up(most.max(2));
        let pitch = DRAWING_SIDE / u64::try_from(days.len()).unwrap_or(1).max(1);
        // The rest is the gap between two bars.
        let width = pitch * 72 / 100;
        let share = |count: u64| {
            // In 128 bits: the product of a large count and the height does not fit 64.
            let share = u128::from(count) * u128::from(DRAWING_SIDE) / u128::from(top);
            u64::try_from(share).unwrap_or(DRAWING_SIDE)
        };
        let mut x = (pitch - width) / 2;
        let mut columns = Vec::new();
        for day in days {
            let mut y = DRAWING_SIDE;
            let counts = [day.merged, day.waiting, day.rejected];
            let mut pieces = Vec::new();
            // From the bottom up, in the order of the legend.
            for ((_, class), count) in BAR_SERIES.iter().zip(counts).filter(|(_, count)| *count > 0) {
                let height = share(count);
                // Saturating, because each height is rounded by itself and their sum may exceed the
                // side.
                y = y.saturating_sub(height);
                pieces.push(Piece {
                    class,
                    y: decimal(y),
                    height: decimal(height),
                });
            }
            let parts = BAR_SERIES.iter().zip(counts).filter(|(_, count)| *count > 0);
            let parts: Vec<_> = parts
                .map(|((name, _), count)| format!("{} {name}", grouped(count)))
                .collect();
            let words = if parts.is_empty() {
                "none".to_owned()
            } else {
                parts.join(", ")
            };
            columns.push(DayBar {
                title: format!("{}: {words}", day.day.day()),
                x: decimal(x),
                pieces,
            });
            x += pitch;
        }
        let all = days.iter().map(total).fold(0, u64::saturating_add);
        let label = match all {
            0 => format!("No contributions in {} days", days.len()),
            _ => format!(
                "{} contributions in {} days, at most {} a day",
                grouped(all),
                days.len(),
                grouped(most)
            ),
        };
        Self {
            label,
            is_empty: all == 0,
            days: days.len(),
            top: grouped(top),
            middle: grouped(top / 2),
            width: decimal(width),
            columns,
            ticks: ticks(days),
            series: BAR_SERIES,
        }
    }
}

/// Returns the words below the chart: the first day, the last, and two between.
fn ticks(days: &[DayCount]) -> Vec<String> {
    let Some(last) = days.len().checked_sub(1) else {
        return Vec::new();
    };
    let mut places = vec![0, last / 3, last * 2 / 3, last];
    places.dedup();
    places
        .into_iter()
        .filter_map(|place| days.get(place))
        .map(|day| day.day.day())
        .collect()
}

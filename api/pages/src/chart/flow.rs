//! Rows on their way through the gates.

use std::fmt;

use super::{HtmlSafe, Template, grouped};
use crate::{filters, words};

/// Rows that came in, and the gates on their way into a table.
#[derive(Clone, Debug, Default)]
pub struct RowFlow {
    /// Number of rows that came in.
    pub rows: u64,
    /// Gates in the order in which records pass them.
    pub gates: Vec<GateLoss>,
    /// Number of rows that are not judged yet.
    pub waiting: u64,
    /// Number of rows that passed every gate and were not merged, because another row of their batch was refused.
    pub rejected: u64,
}

/// Rows that did not pass a gate.
#[derive(Clone, Debug)]
pub struct GateLoss {
    /// Name of the gate.
    pub name: String,
    /// Number of duplicates left out.
    pub dropped: u64,
    /// Number of refused rows.
    pub refused: u64,
    /// Number of rows that could not be judged.
    pub held: u64,
}

impl GateLoss {
    const fn lost(&self) -> u64 {
        self.dropped.saturating_add(self.refused).saturating_add(self.held)
    }

    fn label(&self) -> String {
        let parts = [
            (self.refused, "refused"),
            (self.dropped, "dropped"),
            (self.held, "held"),
        ];
        let words = parts.iter().filter(|(rows, _)| *rows > 0).map(|(_, word)| *word);
        words.collect::<Vec<_>>().join(", ")
    }
}

/// Length of the drawing in tenths of its unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Tenths(u64);

impl fmt::Display for Tenths {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.0 / 10, self.0 % 10)
    }
}

impl HtmlSafe for Tenths {}

impl Tenths {
    const fn plus(self, units: u64) -> Self {
        Self(self.0 + units * 10)
    }

    const fn minus(self, units: u64) -> Self {
        Self(self.0.saturating_sub(units * 10))
    }
}

/// Width of the drawing.
const DRAWING_WIDTH: u64 = 1080;
/// Room for the words before the first gate and after the last.
const END_WIDTHS: (u64, u64) = (132, 150);
/// Upper edge of the water when every row passes, and its bed.
const WATER_TOP: Tenths = Tenths(800);
/// Bed of the water.
const WATER_BED: Tenths = Tenths(2120);
/// Least height of a loss, so that it can be seen.
const MIN_LOSS_HEIGHT: u64 = 25;

/// Step of the drawing: two posts, a plate, and the rows left out there.
struct FlowStep {
    name: String,
    /// Rows before the step and after it.
    before: u64,
    after: u64,
    label: String,
    /// Place of the posts.
    x: Tenths,
    /// Surface of the water before the step and after it.
    high: Tenths,
    low: Tenths,
    /// Upper edge and height of the hatched area.
    out_top: Tenths,
    out_height: Tenths,
    /// Length of the hatched area.
    out_width: Tenths,
    /// Widths of the bars of the table, in tenths of a percent of the rows that came in.
    passed_share: Tenths,
    lost_share: Tenths,
}

impl FlowStep {
    const fn lost(&self) -> u64 {
        self.before - self.after
    }

    /// Returns the height of the plate, which hangs above the water. Where no row came, the gate is open.
    const fn plate(&self) -> Tenths {
        if self.before == 0 {
            return Tenths(140);
        }
        self.high.minus(72)
    }

    /// Returns the outline of the surface at this step.
    fn surface(&self) -> String {
        let Self { x, high, low, .. } = self;
        if low == high {
            return format!("H{x}");
        }
        if low.0 - high.0 < 60 {
            return format!("H{x}L{} {low}", x.plus(2));
        }
        let (first, second, end) = (x.plus(7), x.plus(5), x.plus(18));
        format!("H{x}C{first} {high} {second} {low} {end} {low}")
    }

    const fn left(&self) -> Tenths {
        Tenths(self.x.0 - 35)
    }

    const fn right(&self) -> Tenths {
        Tenths(self.x.0 + 35)
    }
}

/// Drawing of a flow, with the same numbers as a table.
#[derive(Template)]
#[template(path = "part/flow.html")]
pub(crate) struct DrawnFlow<'a> {
    flow: &'a RowFlow,
    steps: Vec<FlowStep>,
    /// Surface of the water where the rows come in and at the end.
    start: Tenths,
    end: Tenths,
}

impl HtmlSafe for DrawnFlow<'_> {}

impl DrawnFlow<'_> {
    fn outline(&self) -> String {
        let steps: Vec<_> = self.steps.iter().map(FlowStep::surface).collect();
        format!("M0 {}{}H{DRAWING_WIDTH}", self.start, steps.concat())
    }
}

/// Returns the part of a length that a number of rows is of all rows.
fn part(rows: u64, all: u64, length: u64) -> u64 {
    let part = u128::from(rows) * u128::from(length) / u128::from(all.max(1));
    u64::try_from(part).unwrap_or(length)
}

impl RowFlow {
    /// Returns the number of rows that passed every gate.
    pub fn passed(&self) -> u64 {
        let lost = self
            .gates
            .iter()
            .map(GateLoss::lost)
            .fold(self.waiting, u64::saturating_add);
        self.rows.saturating_sub(lost)
    }

    /// Returns the number of rows that entered a table.
    pub fn merged(&self) -> u64 {
        self.passed().saturating_sub(self.rejected)
    }

    /// Returns the flow in one sentence.
    pub(crate) fn sentence(&self) -> String {
        let mut parts = vec![format!("{} rows in", grouped(self.rows))];
        let mut add = |rows: u64, words: &str| {
            if rows > 0 {
                parts.push(format!("{} {words}", grouped(rows)));
            }
        };
        add(self.waiting, "waiting to be judged");
        for gate in &self.gates {
            let name = words::check(&gate.name);
            add(gate.refused, &format!("refused by {name}"));
            add(gate.dropped, "dropped as duplicates");
            add(gate.held, &format!("held by {name}"));
        }
        add(self.rejected, "not merged because their batch was rejected");
        parts.push(format!("{} merged", grouped(self.merged())));
        parts.join(", ")
    }

    pub(crate) fn drawn(&self) -> DrawnFlow<'_> {
        // A gate that rows wait at only while some do: else the gates are those that the pages explain.
        let queue = (self.waiting > 0).then(|| ("queue".to_owned(), self.waiting, "not judged yet".to_owned()));
        let merge = ("merge".to_owned(), self.rejected, "batch rejected".to_owned());
        let gates = self
            .gates
            .iter()
            .map(|gate| (words::check(&gate.name), gate.lost(), gate.label()));
        let all: Vec<_> = queue.into_iter().chain(gates).chain([merge]).collect();
        let count = u64::try_from(all.len()).unwrap_or(1);
        let pitch = (DRAWING_WIDTH - END_WIDTHS.0 - END_WIDTHS.1) * 10 / count;
        let level = |rows: u64| Tenths(WATER_BED.0 - part(rows, self.rows, WATER_BED.0 - WATER_TOP.0));
        let (mut steps, mut left, mut x) = (Vec::new(), self.rows, END_WIDTHS.0 * 10);
        for (name, lost, label) in all {
            // Counts that contradict each other must not draw water below its bed.
            let after = left.saturating_sub(lost);
            let (high, low) = (level(left), level(after));
            // One row of a million is a line too thin to see, and it is the one that people look for.
            let height = (low.0 - high.0).max(MIN_LOSS_HEIGHT);
            steps.push(FlowStep {
                name,
                before: left,
                after,
                label,
                x: Tenths(x),
                high,
                low,
                out_top: Tenths(low.0 - height),
                out_height: Tenths(height),
                out_width: Tenths(pitch - 120),
                passed_share: Tenths(part(after, self.rows, 1000)),
                // The same for the bars of the table.
                lost_share: Tenths(part(left - after, self.rows, 1000).max(8)),
            });
            left = after;
            x += pitch;
        }
        // Of no rows the channel is empty.
        let (start, end) = (level(self.rows), level(left));
        DrawnFlow {
            flow: self,
            steps,
            start,
            end,
        }
    }
}

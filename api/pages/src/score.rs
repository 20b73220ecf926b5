//! The scores of a unit, small enough for a line.

use askama::Template;
use askama::filters::HtmlSafe;

/// Names of the axes, in their order.
pub(crate) const AXES: [&str; 4] = ["evidence", "new here", "repeatable", "exact"];
/// Height of the drawing in tenths of its unit.
const HEIGHT_TENTHS: u64 = 140;
/// Width from one bar to the next.
const STEP: usize = 9;

/// Four gates that are open as far as each axis was scored.
#[derive(Clone, Debug, Template)]
#[template(path = "part/mini.html")]
pub struct MiniScore {
    /// Tenths from 0 to 100 of each axis.
    axes: [u64; 4],
}

impl HtmlSafe for MiniScore {}

/// Bar of a drawing.
struct MiniBar {
    x: usize,
    y: String,
    height: String,
}

fn decimal(tenths: u64) -> String {
    format!("{}.{}", tenths / 10, tenths % 10)
}

impl MiniScore {
    /// Creates the drawing of tenths: of the evidence, the novelty, the repeatability and the exactness.
    pub const fn new(axes: [u64; 4]) -> Self {
        Self { axes }
    }

    fn label(&self) -> String {
        let said = AXES
            .iter()
            .zip(self.axes)
            .map(|(name, tenths)| format!("{name} {}", decimal(tenths)));
        format!("{}, each of 10", said.collect::<Vec<_>>().join(", "))
    }

    fn bars(&self) -> Vec<MiniBar> {
        let bar = |(at, tenths): (usize, u64)| {
            let height = tenths.min(100) * HEIGHT_TENTHS / 100;
            MiniBar {
                x: at * STEP,
                y: decimal(HEIGHT_TENTHS - height),
                height: decimal(height),
            }
        };
        self.axes.into_iter().enumerate().map(bar).collect()
    }
}

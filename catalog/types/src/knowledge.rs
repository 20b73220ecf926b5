//! The text of a knowledge unit and the arithmetic of its scores.
//!
//! Invariant: the total of a unit is computed from its four axes by [`Axes::total`] and is never read from a text.

use serde::{Deserialize, Serialize};

use crate::unit::{Judge, UnitScores};
use crate::vocabulary::JudgeKind;

/// The total from which a unit is published.
pub const PASS_MARK: u8 = 55;
/// The most tenths of an axis: 10.0.
pub const MAX_TENTHS: u8 = 100;

/// The axes of a score, each with its meaning, in the order of [`Axes::tenths`].
pub const AXES: [(&str, &str); 4] = [
    ("accuracy", "support of the statements by evidence"),
    ("novelty", "distance from what is published, and substance of its own"),
    ("reproducibility", "ease of doing it again"),
    ("specificity", "numbers and conditions in place of general advice"),
];

/// The submitted text of a unit.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct UnitText {
    /// Title in one line, as the API checks.
    pub title: String,
    /// Body in Markdown, as it was submitted.
    pub body: String,
    /// Category, such as `performance-tuning`.
    pub category: String,
    /// Sentence that says where the knowledge comes from.
    pub source_declaration: String,
}

/// The four axes of a unit in tenths, each from 0 to [`MAX_TENTHS`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Axes {
    /// Support of the statements by evidence.
    pub accuracy: u8,
    /// Distance from what is published, and substance of its own.
    pub novelty: u8,
    /// Ease of doing it again.
    pub reproducibility: u8,
    /// Numbers and conditions in place of general advice.
    pub specificity: u8,
}

impl Axes {
    /// Returns the total from 0 to 100: the sum of the tenths divided by four, rounded down.
    pub fn total(self) -> u8 {
        let sum: u16 = self
            .tenths()
            .into_iter()
            // Cut to the range here too, because axes are also read from stored rows.
            .map(|tenths| u16::from(tenths.min(MAX_TENTHS)))
            .sum();
        // Rounded down, so that no rounding lifts a text over the pass mark.
        u8::try_from(sum / 4).unwrap_or(MAX_TENTHS)
    }

    /// Returns the tenths of accuracy, novelty, reproducibility and specificity.
    pub const fn tenths(self) -> [u8; 4] {
        [self.accuracy, self.novelty, self.reproducibility, self.specificity]
    }

    /// Creates axes from the tenths of accuracy, novelty, reproducibility and specificity.
    pub const fn of_tenths([accuracy, novelty, reproducibility, specificity]: [u8; 4]) -> Self {
        Self {
            accuracy,
            novelty,
            reproducibility,
            specificity,
        }
    }

    /// Returns true if the total reaches [`PASS_MARK`].
    pub fn passes(self) -> bool {
        self.total() >= PASS_MARK
    }
}

impl From<Axes> for UnitScores {
    fn from(axes: Axes) -> Self {
        Self {
            accuracy: axes.accuracy,
            novelty: axes.novelty,
            reproducibility: axes.reproducibility,
            specificity: axes.specificity,
            total: axes.total(),
        }
    }
}

impl From<UnitScores> for Axes {
    /// Takes the axes only, so that a total that was read counts for nothing.
    fn from(scores: UnitScores) -> Self {
        Self {
            accuracy: scores.accuracy,
            novelty: scores.novelty,
            reproducibility: scores.reproducibility,
            specificity: scores.specificity,
        }
    }
}

/// Returns a score as tenths, rounded to the nearest and kept between 0 and [`MAX_TENTHS`].
pub fn tenths(score: f64) -> u8 {
    let rounded = (score * 10.0).round().clamp(0.0, f64::from(MAX_TENTHS));
    // A number that is not finite counts as 0.
    if rounded.is_nan() {
        return 0;
    }
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "the number is whole and from 0 to 100"
    )]
    let tenths = rounded as u8;
    tenths
}

impl Judge {
    /// Creates the name of a fixed rule.
    pub fn heuristic(name: &str) -> Self {
        Self {
            kind: JudgeKind::Heuristic,
            name: name.to_owned(),
        }
    }

    /// Creates the name of a model.
    pub fn model(name: &str) -> Self {
        Self {
            kind: JudgeKind::Model,
            name: name.to_owned(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_total_is_rounded_down_and_comes_from_the_axes() {
        let axes = Axes::of_tenths([90, 85, 90, 80]);
        assert_eq!(axes.total(), 86);
        assert!(Axes::of_tenths([55; 4]).passes());
        assert!(!Axes::of_tenths([55, 55, 55, 54]).passes());
        assert_eq!(Axes::of_tenths([255; 4]).total(), 100);
        let mut scores = UnitScores::from(axes);
        scores.total = 100;
        assert_eq!(UnitScores::from(Axes::from(scores)).total, 86);
        assert_eq!(
            [tenths(f64::NAN), tenths(-1.0), tenths(11.0), tenths(8.54)],
            [0, 0, 100, 85]
        );
    }
}

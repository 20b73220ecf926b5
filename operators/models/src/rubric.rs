//! The local scorer: a rubric over the form of the evidence in a text, and the contradictions of a text with itself.
//!
//! Invariant: the same text always has the same score, and the total comes from the four axes. The rubric cannot know
//! if a statement is true: it measures how much of a text is figures, names, causes and commands, and if they belong to
//! it, and says in every answer that it is a heuristic.

mod consistency;
mod features;
mod languages;
mod lexicon;
mod marks;
mod parse;
mod reasons;
mod weights;

use async_trait::async_trait;
use operators::knowledge::{ContradictionFinder, NearestUnit, Scorer, ScorerAnswer};
use operators::screen::Unavailable;
use types::Timestamp;
use types::knowledge::UnitText;
use types::unit::Judge;

pub use features::RubricFeatures;
pub use languages::language;
pub use weights::{FeatureWeight, INTERCEPT, RUBRIC_NAME, RubricLogit, WEIGHTS, axes, weighed};

/// A scorer by the rubric; always available.
#[derive(Clone, Copy, Debug, Default)]
pub struct RubricScorer;

#[async_trait]
impl Scorer for RubricScorer {
    fn judge(&self) -> Judge {
        Judge::heuristic(RUBRIC_NAME)
    }

    async fn score(&self, unit: &UnitText, near: &NearestUnit) -> Result<ScorerAnswer, Unavailable> {
        Ok(score(unit, near))
    }
}

/// A finder of figures of a text that contradict each other by arithmetic.
#[derive(Clone, Copy, Debug, Default)]
pub struct ArithmeticFinder;

impl ContradictionFinder for ArithmeticFinder {
    fn judge(&self) -> Judge {
        Judge::heuristic(consistency::CONSISTENCY_NAME)
    }

    fn contradictions(&self, unit: &UnitText, submitted_at: Timestamp) -> Vec<String> {
        consistency::contradictions(&unit.body, submitted_at)
    }
}

/// Scores a unit beside the nearest published one.
pub fn score(unit: &UnitText, near: &NearestUnit) -> ScorerAnswer {
    let parsed = parse::parse(&unit.body);
    let measured = features::measured(&unit.title, &unit.body, &parsed, 0);
    let logit = weighed(&measured.features, WEIGHTS, INTERCEPT);
    let far = near
        .unit
        // A cosine of 0.90 or more counts as no distance and one of 0.50 or less as full distance:
        // texts without a common subject share common words too.
        .map_or(1.0, |_| ((0.90 - f64::from(near.cosine)) / 0.40).clamp(0.0, 1.0));
    let axes = weights::less_novel(axes(&logit), far);
    let reasons = if axes.passes() {
        Vec::new()
    } else {
        let needed = reasons::needed(measured.bare, |improved| {
            let improved = features::measured(&unit.title, &unit.body, &parsed, improved);
            weighed(&improved.features, WEIGHTS, INTERCEPT).total >= 0.0
        });
        reasons::reasons(&measured, needed)
    };
    ScorerAnswer {
        axes,
        fixes: reasons::fixes(&measured),
        reasons,
        language: language(&unit.body),
        remark: None,
    }
}

/// Measures a unit, for calibration.
pub fn measure(unit: &UnitText) -> RubricFeatures {
    features::measured(&unit.title, &unit.body, &parse::parse(&unit.body), 0).features
}

#[cfg(test)]
mod tests;

//! The local scorer: a rubric over the form of the evidence in a text.
//!
//! Invariant: the same text always has the same score, and the total comes from the four axes. The rubric cannot know
//! if a statement is true: it measures that there are quantities, conditions, steps, causes and a source, and says in
//! every answer that it is a heuristic.

mod contradictions;
mod features;
mod lexicon;
mod parse;

use async_trait::async_trait;
use operators::knowledge::{Axis, NearestUnit, Scorer, ScorerAnswer};
use operators::screen::Unavailable;
use types::knowledge::{Axes, UnitText, tenths};
use types::unit::Judge;
use types::vocabulary::Language;

use crate::language::{LatinLanguage, latin_language};

pub use features::RubricFeatures;
pub use weights::{RUBRIC_NAME, Weights, axes};

mod weights;

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

/// Scores a unit beside the nearest published one.
pub fn score(unit: &UnitText, near: &NearestUnit) -> ScorerAnswer {
    let (features, language) = measured(unit);
    let far = near
        .unit
        // A cosine of 0.90 or more counts as no distance and one of 0.50 or less as full distance:
        // texts without a common subject share common words too.
        .map_or(1.0, |_| ((0.90 - f64::from(near.cosine)) / 0.40).clamp(0.0, 1.0));
    let scores = axes(&features, far, &Weights::COMMITTED);
    ScorerAnswer {
        axes: Axes::of_tenths(scores.map(|score| tenths(score * 10.0))),
        fixes: Axis::ALL.map(|axis| fix(axis, &features, far)),
        language,
        remark: None,
    }
}

/// Measures a unit, for calibration.
pub fn measure(unit: &UnitText) -> RubricFeatures {
    measured(unit).0
}

/// Returns the features of a unit and its language.
fn measured(unit: &UnitText) -> (RubricFeatures, Language) {
    let language = language(&unit.body);
    let mut features = features::features(&unit.title, &unit.body, &unit.source_declaration);
    if language == Language::Other {
        blur(&mut features);
    }
    (features, language)
}

/// Sets what only words of English and Korean can show to the middle, and their penalties to none. A text without
/// numbers, names or commands gets nothing for words that nobody can judge.
fn blur(features: &mut RubricFeatures) {
    let doubt = 0.5 * features.qty.max(features.terms).max(features.cmd).max(features.ver);
    features.steps = doubt;
    features.spread = doubt;
    features.fail = doubt;
    features.limit = doubt;
    features.vague = 0.0;
    features.market = 0.0;
    features.advice = 0.0;
    features.pad = 0.0;
}

/// Returns the language of a text by its script, and in Latin letters by its words.
pub fn language(text: &str) -> Language {
    let (mut latin, mut hangul, mut other) = (0_usize, 0_usize, 0_usize);
    for character in text.chars().filter(|character| character.is_alphabetic()) {
        match character {
            'a'..='z' | 'A'..='Z' => latin += 1,
            '\u{1100}'..='\u{11FF}' | '\u{3130}'..='\u{318F}' | '\u{AC00}'..='\u{D7A3}' => hangul += 1,
            _ => other += 1,
        }
    }
    // A syllable says about as much as three letters.
    let (korean, all) = (hangul * 3, latin + hangul * 3 + other * 3);
    // A text without letters is of no language.
    if all == 0 || other * 3 * 10 > all * 3 {
        Language::Other
    } else if korean * 10 >= all * 4 {
        Language::Korean
    } else if korean * 10 >= all {
        Language::Mixed
    } else if latin_language(text).is_none_or(|language| language == LatinLanguage::English) {
        Language::English
    } else {
        Language::Other
    }
}

/// Returns the request that would raise an axis most.
fn fix(axis: Axis, features: &RubricFeatures, far: f64) -> String {
    let requests: &[(f64, &str)] = match axis {
        Axis::Specificity => &[
            (
                features.qty * 0.5 + features.ctx * 0.5,
                "give numbers with units and the condition each holds under",
            ),
            (
                1.0 - features.vague.max(features.advice),
                "replace general advice by what you saw",
            ),
            (features.ver, "name the version and the machine"),
            (features.terms, "name the settings, errors or commands"),
            (features.limit, "say where it does not hold"),
        ],
        Axis::Reproducibility => &[
            (features.cmd.max(features.steps), "list the commands in order"),
            (features.env, "name the version and the machine"),
            (features.src, "say who ran it, when and where"),
            (features.date, "give the date"),
        ],
        Axis::Accuracy => &[
            (1.0 - features.contra, "correct the figures that contradict each other"),
            (features.src, "say how you know: what was run, when and on what"),
            (
                features.spread.max(features.fail),
                "give the number of runs and the spread",
            ),
            (features.limit, "say what was not tested"),
        ],
        Axis::Novelty => &[
            (far, "say what is new against the nearest published unit"),
            (features.src, "add what you measured yourself"),
            (features.fail.max(features.compare), "say what failed and why"),
        ],
    };
    let least = requests.iter().min_by(|one, other| one.0.total_cmp(&other.0));
    least.map_or_else(String::new, |(_, request)| (*request).to_owned())
}

#[cfg(test)]
mod tests;

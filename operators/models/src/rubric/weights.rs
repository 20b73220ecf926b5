//! The weights of the rubric, and the four axes that they give.
//!
//! Invariant: the positive weights of an axis sum to 1, and each axis is from 0 to 1.

use super::RubricFeatures;

/// The name of the rubric with these weights, as answers give it.
pub const RUBRIC_NAME: &str = "rubric-1";

/// The weights of each axis: positive parts, then penalties.
#[derive(Clone, Debug, PartialEq)]
pub struct Weights {
    /// Of K, quantities, versions, identifiers, limits; vague words, bare advice, padding.
    pub specificity: ([f64; 5], [f64; 3]),
    /// Of how it was done, environment, versions, source, date, K; bare advice, links.
    pub reproducibility: ([f64; 6], [f64; 2]),
    /// Of source, K, conditions, spread or failure, limits; contradictions, selling, stuffing.
    pub accuracy: ([f64; 5], [f64; 3]),
    /// Of distance, K by source, findings, identifiers; padding, repetition, links.
    pub novelty: ([f64; 4], [f64; 3]),
    /// Share of every axis that two contradictions take.
    pub contra: f64,
}

impl Weights {
    /// The weights of [`RUBRIC_NAME`], found on the training half.
    pub const COMMITTED: Self = Self {
        specificity: ([0.35, 0.25, 0.15, 0.15, 0.10], [0.35, 0.25, 0.15]),
        reproducibility: ([0.25, 0.20, 0.15, 0.20, 0.10, 0.10], [0.25, 0.20]),
        accuracy: ([0.30, 0.25, 0.15, 0.15, 0.15], [0.60, 0.30, 0.25]),
        novelty: ([0.40, 0.35, 0.15, 0.10], [0.30, 0.30, 0.30]),
        contra: 0.50,
    };
}

/// Returns the best kind of evidence and a part of the second best: measurement, procedure, failure or reference.
fn evidence(features: &RubricFeatures) -> f64 {
    let mut kinds = [
        0.4 * features.qty + 0.3 * features.spread + 0.3 * features.compare,
        0.5 * features.steps + 0.5 * features.cmd,
        features.fail,
        0.5 * features.compare + 0.5 * features.terms,
    ];
    kinds.sort_by(f64::total_cmp);
    // The best kind carries the score, so a text need not measure, instruct and tell of a failure all
    // at once.
    (kinds[3] + 0.3 * kinds[2]).min(1.0)
}

/// Returns accuracy, novelty, reproducibility and specificity, each from 0 to 1.
pub fn axes(features: &RubricFeatures, far: f64, weights: &Weights) -> [f64; 4] {
    let f = features;
    let k = evidence(f);
    let sum = |weights: &[f64], values: &[f64]| -> f64 { weights.iter().zip(values).map(|(w, v)| w * v).sum() };
    // Nothing is gained on any axis by figures that contradict each other.
    let trust = 1.0 - weights.contra * f.contra;
    let axis = |(gain, loss): (&[f64], &[f64]), gains: &[f64], losses: &[f64]| {
        (trust * f.len * sum(gain, gains) - sum(loss, losses)).clamp(0.0, 1.0)
    };
    let found = f.spread.max(f.fail);
    let accuracy = axis(
        (&weights.accuracy.0, &weights.accuracy.1),
        &[f.src, k, f.ctx, found, f.limit],
        &[f.contra, f.market, f.stuff],
    );
    let novelty = axis(
        (&weights.novelty.0, &weights.novelty.1),
        &[far, k * f.src, found.max(f.compare), f.terms],
        &[f.pad, f.repeat, f.links],
    );
    let reproducibility = axis(
        (&weights.reproducibility.0, &weights.reproducibility.1),
        &[f.cmd.max(f.steps).max(0.8 * f.spread), f.env, f.ver, f.src, f.date, k],
        &[f.advice, f.links],
    );
    let specificity = axis(
        (&weights.specificity.0, &weights.specificity.1),
        &[k, f.qty * (0.5 + 0.5 * f.ctx), f.ver, f.terms, f.limit],
        &[f.vague, f.advice, f.pad],
    );
    [accuracy, novelty, reproducibility, specificity]
}

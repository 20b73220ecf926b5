//! Searches weights of the rubric on the training half, and prints them. A person commits what it prints.
//!
//! Invariant: it reads the training half only.

use std::path::Path;
use std::{env, fs};

use models::rubric::{RubricFeatures, Weights, axes, measure};
use serde::Deserialize;
use types::knowledge::{Axes, UnitText, tenths};

#[derive(Deserialize)]
struct Labelled {
    title: String,
    category: String,
    source: String,
    body: String,
    label: String,
    kind: String,
}

/// The step of the search.
const STEP: f64 = 0.05;
/// The distance to the nearest published unit that is assumed.
const FAR: f64 = 0.9;

#[expect(
    clippy::print_stdout,
    clippy::unwrap_used,
    reason = "an example prints and may end with a panic"
)]
fn main() {
    let folder = env::args()
        .nth(1)
        .unwrap_or_else(|| "operators/models/corpus/train".to_owned());
    assert!(!folder.contains("held"), "the held-back half is not for fitting");
    let mut units = Vec::new();
    for entry in fs::read_dir(Path::new(&folder)).unwrap() {
        let unit: Labelled = toml::from_str(&fs::read_to_string(entry.unwrap().path()).unwrap()).unwrap();
        // Copies are for the duplicate check, and no form shows a false fact.
        if unit.label == "copied" || unit.kind == "false-fact" {
            continue;
        }
        let good = unit.label == "good";
        let text = UnitText {
            title: unit.title,
            body: unit.body,
            category: unit.category,
            source_declaration: unit.source,
        };
        units.push((measure(&text), good));
    }
    let mut best = Weights::COMMITTED;
    let mut value = worth(&units, &best);
    println!("{} units, worth {value:?} at first", units.len());
    loop {
        let better = neighbours(&best)
            .into_iter()
            .map(|weights| (worth(&units, &weights), weights));
        let Some((worth, weights)) = better.max_by(|one, other| one.0.partial_cmp(&other.0).unwrap()) else {
            break;
        };
        if worth <= value {
            break;
        }
        (value, best) = (worth, weights);
    }
    println!("worth {value:?}\n{best:#?}");
}

/// Returns twice the published good ones and the rejected bad ones, then the distance of the nearest total to 54.5.
fn worth(units: &[(RubricFeatures, bool)], weights: &Weights) -> (u32, f64) {
    let mut right = 0;
    let mut nearest = f64::MAX;
    for (features, good) in units {
        let total = Axes::of_tenths(axes(features, FAR, weights).map(|axis| tenths(axis * 10.0))).total();
        nearest = nearest.min((f64::from(total) - 54.5).abs());
        right += match (good, total >= 55) {
            (true, true) => 2,
            (false, false) => 1,
            _ => 0,
        };
    }
    (right, nearest)
}

/// Returns every table in which one positive weight of an axis gives a step to another.
fn neighbours(weights: &Weights) -> Vec<Weights> {
    let mut found = Vec::new();
    let counts = [5, 6, 5, 4];
    for (axis, count) in counts.into_iter().enumerate() {
        for from in 0..count {
            for to in (0..count).filter(|to| *to != from) {
                let mut next = weights.clone();
                let gains: &mut [f64] = match axis {
                    0 => &mut next.specificity.0,
                    1 => &mut next.reproducibility.0,
                    2 => &mut next.accuracy.0,
                    _ => &mut next.novelty.0,
                };
                if gains[from] >= STEP {
                    gains[from] -= STEP;
                    gains[to] += STEP;
                    found.push(next);
                }
            }
        }
    }
    found
}

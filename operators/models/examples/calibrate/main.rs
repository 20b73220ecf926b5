//! Fits the weights of the rubric to the training half, checks them by leaving out one domain after the other, and prints
//! the table of `rubric/weights.rs`. A person commits what it prints.
//!
//! Invariant: it reads the training half only, and the same files give the same table.
//!
//! ```text
//! cargo run --release -p models --example calibrate -- FOLDER [families]
//! ```
//!
//! `FOLDER` has `texts.jsonl`, which `corpus/fetch.py` writes. With `families` each family of gaming sentences is held back
//! once, too.

#![expect(clippy::print_stdout, reason = "an example prints")]

#[path = "../../tests/corpus/climber.rs"]
mod climber;
mod fit;
#[path = "../../tests/corpus/gaming.rs"]
mod gaming;
#[path = "../../tests/corpus/texts.rs"]
mod texts;

use std::collections::BTreeMap;
use std::env;
use std::error::Error;
use std::path::PathBuf;

use models::rubric::{RubricFeatures, measure};
use types::knowledge::UnitText;

use self::climber::{ATTACK_PLACES, climbed};
use self::fit::{FitSample, FittedWeights, WeightSign, fitted};
use self::gaming::{AttackRandom, gamed, passage_copies};
use self::texts::{GamingSentence, LabelledText, TRAINING_HALF, gaming_sentences, project_texts, stranger_texts};

/// Penalty on the squares of weights.
const PENALTY: f64 = 20.0;
/// Weight of a text of the project, which are few, beside one of a stranger.
const PROJECT_WEIGHT: f64 = 4.0;
/// Weight of all gamed copies of a text together.
const GAMED_WEIGHT: f64 = 1.5;
/// The share of good texts that the operating point publishes where a domain was left out.
const GOOD_PUBLISHED: f64 = 0.825;
/// The words and characters of a text that stand for a sentence alone, and the weight of such a text.
const ALONE_WORDS: usize = 12;
const ALONE_CHARACTERS: usize = 60;
const ALONE_WEIGHT: f64 = 0.4;
/// Rounds in which an attacker climbs over the last fit.
const ROUNDS: usize = 3;
const CLIMBER_CALLS: usize = 40;

fn main() -> Result<(), Box<dyn Error>> {
    let folder = env::args().nth(1).map(PathBuf::from);
    let mut all: Vec<LabelledText> = Vec::new();
    for mut text in project_texts(TRAINING_HALF)? {
        // Copies are for the duplicate check, and no form shows a false fact or a contradiction.
        if text.label == "copied" || text.label == "wrong" {
            continue;
        }
        text.domain.clone_from(&text.category);
        all.push(text);
    }
    let project = all.len();
    if let Some(folder) = &folder {
        let strangers = stranger_texts(folder, TRAINING_HALF)?;
        all.extend(
            strangers
                .into_iter()
                .filter(|text| matches!(text.label.as_str(), "good" | "bad")),
        );
    }
    let sentences = gaming_sentences(TRAINING_HALF)?;
    println!(
        "{} texts, {project} of them the project's; {} gaming sentences",
        all.len(),
        sentences.len()
    );
    let texts: Vec<FitText> = all
        .into_iter()
        .enumerate()
        .map(|(at, text)| FitText {
            features: measure(&unit(&text, &text.body)).values(),
            weight: if at < project { PROJECT_WEIGHT } else { 1.0 },
            text,
        })
        .collect();
    let found = trained(&texts, &sentences, "");
    checked(&texts, &sentences, &found);
    Ok(())
}

/// The features of which more is never worse, and those of which more is never better: evidence raises a score, whatever
/// the texts of the fit happen to be.
const RAISING: &str = "evidence joined early spread conditioned coherent titled some code rows change kind denials varied item_words rules";
const LOWERING: &str = "hedged run vague talk market stock addressed boiler template repeat links stray adorned pictograms short_items idle \
                        headed fillers brief talks";

fn signs() -> Vec<WeightSign> {
    let sign = |name: &&str| {
        if RAISING.split(' ').any(|listed| listed == *name) {
            WeightSign::Positive
        } else if LOWERING.split(' ').any(|listed| listed == *name) {
            WeightSign::Negative
        } else {
            WeightSign::Any
        }
    };
    RubricFeatures::NAMES.iter().map(sign).collect()
}

struct FitText {
    text: LabelledText,
    features: Vec<f64>,
    weight: f64,
}

impl FitText {
    fn is_good(&self) -> bool {
        self.text.label == "good"
    }
}

fn unit(text: &LabelledText, body: &str) -> UnitText {
    UnitText {
        title: text.title.clone(),
        body: body.to_owned(),
        category: text.category.clone(),
        source_declaration: text.source.clone(),
    }
}

/// A fit with the gamed copies that it was made with.
struct TrainedWeights {
    fit: FittedWeights,
    gamed: Vec<FitSample>,
}

/// Returns the sentences of a language that a text's attacker has, by family.
fn families<'a>(text: &LabelledText, sentences: &'a [GamingSentence], without: &str) -> BTreeMap<&'a str, Vec<String>> {
    let mut families: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    for sentence in sentences
        .iter()
        .filter(|of| of.language == text.language && of.family != without)
    {
        families
            .entry(&sentence.family)
            .or_default()
            .extend(sentence.about(&text.title));
    }
    families
}

/// Fits to texts, to gamed copies of the bad ones, and to what an attacker finds, without one family of sentences.
fn trained(texts: &[FitText], sentences: &[GamingSentence], without: &str) -> TrainedWeights {
    let plain: Vec<FitSample> = texts
        .iter()
        .map(|text| FitSample {
            values: text.features.clone(),
            is_good: text.is_good(),
            weight: text.weight,
            domain: text.text.domain.clone(),
        })
        .collect();
    let mut gamed_samples = Vec::new();
    // A sentence alone is no unit, whatever it says.
    for text in texts {
        let words: Vec<&str> = text.text.body.split_whitespace().take(ALONE_WORDS).collect();
        let alone: String = words.join(" ").chars().take(ALONE_CHARACTERS).collect();
        gamed_samples.push(FitSample {
            values: measure(&unit(&text.text, &alone)).values(),
            is_good: false,
            weight: ALONE_WEIGHT,
            domain: text.text.domain.clone(),
        });
    }
    for text in texts.iter().filter(|text| !text.is_good() && text.text.junk) {
        let copies = gamed_copies(&text.text, sentences, without);
        #[expect(clippy::cast_precision_loss, reason = "few")]
        let weight = text.weight * GAMED_WEIGHT / copies.len().max(1) as f64;
        gamed_samples.extend(copies.into_iter().map(|(_, values)| FitSample {
            values,
            is_good: false,
            weight,
            domain: text.text.domain.clone(),
        }));
    }
    let mut fit = fitted(&[plain.clone(), gamed_samples.clone()].concat(), &signs(), PENALTY);
    for round in 0..ROUNDS {
        let operating = operating_point(&plain, &gamed_samples);
        for text in texts.iter().filter(|text| !text.is_good() && text.text.junk) {
            let all: Vec<String> = families(&text.text, sentences, without)
                .into_values()
                .flatten()
                .collect();
            let all: Vec<&str> = all.iter().map(String::as_str).collect();
            let passes = |body: &str| fit.logit(&measure(&unit(&text.text, body)).values()) >= operating;
            let seed = format!("{} {round}", text.text.id);
            if let Some((body, _)) = climbed(&text.text.body, &all, CLIMBER_CALLS, &seed, passes) {
                gamed_samples.push(FitSample {
                    values: measure(&unit(&text.text, &body)).values(),
                    is_good: false,
                    weight: text.weight * 0.5,
                    domain: text.text.domain.clone(),
                });
            }
        }
        fit = fitted(&[plain.clone(), gamed_samples.clone()].concat(), &signs(), PENALTY);
        println!(
            "round {round}: {} gamed copies, operating point {operating:.3}",
            gamed_samples.len()
        );
    }
    TrainedWeights {
        fit,
        gamed: gamed_samples,
    }
}

/// Returns copies of a text with sentences of each family, and with some of all.
fn gamed_copies(text: &LabelledText, sentences: &[GamingSentence], without: &str) -> Vec<(String, Vec<f64>)> {
    let families = families(text, sentences, without);
    let mut random = AttackRandom::new(&text.id);
    let mut copies = Vec::new();
    let mixed: Vec<String> = families.values().flatten().cloned().collect();
    for (family, of_family) in families.iter().map(|(name, of)| (*name, of)).chain([("mixed", &mixed)]) {
        if of_family.is_empty() {
            continue;
        }
        for (place, count) in ATTACK_PLACES.into_iter().zip([1, 2, 4]) {
            let chosen: Vec<&str> = (0..count)
                .map(|_| of_family[random.below(of_family.len())].as_str())
                .collect();
            let body = gamed(&text.body, &chosen, place, &mut random);
            copies.push((family.to_owned(), measure(&unit(text, &body)).values()));
        }
    }
    copies
}

/// Returns the logits of samples, each by a fit that has seen nothing of its domain.
fn left_out(plain: &[FitSample], gamed_samples: &[FitSample]) -> (Vec<f64>, Vec<f64>) {
    let domains: BTreeMap<&str, FittedWeights> = plain
        .iter()
        .map(|sample| sample.domain.as_str())
        .collect::<std::collections::BTreeSet<_>>()
        .into_iter()
        .map(|domain| {
            let others: Vec<FitSample> = plain
                .iter()
                .chain(gamed_samples)
                .filter(|sample| sample.domain != domain)
                .cloned()
                .collect();
            (domain, fitted(&others, &signs(), PENALTY))
        })
        .collect();
    let logit = |sample: &FitSample| domains[sample.domain.as_str()].logit(&sample.values);
    (
        plain.iter().map(logit).collect(),
        gamed_samples.iter().map(logit).collect(),
    )
}

/// Returns the logit at which the wanted share of good texts is published where their domain was left out.
fn operating_point(plain: &[FitSample], gamed_samples: &[FitSample]) -> f64 {
    let (logits, _) = left_out(plain, gamed_samples);
    let mut good: Vec<f64> = logits
        .iter()
        .zip(plain)
        .filter(|(_, sample)| sample.is_good)
        .map(|(logit, _)| *logit)
        .collect();
    good.sort_by(f64::total_cmp);
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        clippy::cast_precision_loss,
        reason = "an index below the length"
    )]
    let at = ((1.0 - GOOD_PUBLISHED) * good.len() as f64).floor() as usize;
    good.get(at).copied().unwrap_or(0.0)
}

/// Returns the share of pairs of a good and a bad text in which the good one has the larger logit.
fn area(logits: &[f64], samples: &[FitSample]) -> f64 {
    let (mut right, mut pairs) = (0.0, 0.0);
    for (one, good) in logits.iter().zip(samples).filter(|(_, sample)| sample.is_good) {
        for (other, bad) in logits.iter().zip(samples).filter(|(_, sample)| !sample.is_good) {
            let weight = good.weight * bad.weight;
            pairs += weight;
            right += weight * f64::from(u8::from(one > other));
        }
    }
    right / pairs
}

/// Prints how attackers of junk do against the fit, and, where asked, against fits without their family.
fn print_attacks(
    texts: &[FitText],
    sentences: &[GamingSentence],
    found: &TrainedWeights,
    operating: f64,
    plain: &[FitSample],
) {
    let mut by_family: BTreeMap<String, [usize; 2]> = BTreeMap::new();
    let mut climbed_over = [0, 0];
    for (text, number) in texts.iter().filter(|text| !text.is_good() && text.text.junk).zip(0..) {
        for (family, values) in gamed_copies(&text.text, sentences, "") {
            let passes = found.fit.logit(&values) >= operating;
            by_family.entry(family).or_default()[usize::from(passes)] += 1;
        }
        if number % 4 == 0 {
            let all: Vec<String> = families(&text.text, sentences, "").into_values().flatten().collect();
            let all: Vec<&str> = all.iter().map(String::as_str).collect();
            let passes = |body: &str| found.fit.logit(&measure(&unit(&text.text, body)).values()) >= operating;
            let found = climbed(&text.text.body, &all, 200, &text.text.id, passes);
            climbed_over[usize::from(found.is_some())] += 1;
        }
    }
    let junk = texts.iter().filter(|text| !text.is_good() && text.text.junk);
    let passages: Vec<f64> = junk
        .flat_map(|text| passage_copies(&text.text, sentences))
        .map(|copy| found.fit.logit(&measure(&unit(&copy, &copy.body)).values()))
        .collect();
    let passed = passages.iter().filter(|logit| **logit >= operating).count();
    println!(
        "junk with one passage, in sample: {passed} of {} published",
        passages.len()
    );
    println!("gamed copies by family, in sample: {by_family:?}; climber: {climbed_over:?}");
    // Each family takes a fit of its own, so who only wants the table leaves this out.
    let all_families = env::args().any(|argument| argument == "families");
    let held_back = by_family.keys().filter(|family| all_families && *family != "mixed");
    for family in held_back {
        let without = trained(texts, sentences, family);
        let point = operating_point(plain, &without.gamed);
        let mut counts = [0, 0];
        for text in texts.iter().filter(|text| !text.is_good() && text.text.junk) {
            for (of, values) in gamed_copies(&text.text, sentences, "") {
                if of == *family {
                    counts[usize::from(without.fit.logit(&values) >= point)] += 1;
                }
            }
        }
        println!("family {family} held back: {counts:?} refused, published");
    }
}

/// Prints how the fit does on domains and families that it has not seen, and the table.
fn checked(texts: &[FitText], sentences: &[GamingSentence], found: &TrainedWeights) {
    let plain: Vec<FitSample> = texts
        .iter()
        .map(|text| FitSample {
            values: text.features.clone(),
            is_good: text.is_good(),
            weight: text.weight,
            domain: text.text.domain.clone(),
        })
        .collect();
    let operating = operating_point(&plain, &found.gamed);
    let (logits, of_gamed) = left_out(&plain, &found.gamed);
    let mut table: BTreeMap<(bool, &str, &str), [usize; 2]> = BTreeMap::new();
    let mut missed = Vec::new();
    for ((logit, text), at) in logits.iter().zip(texts).zip(0..) {
        let of = if text.text.category == text.text.domain {
            "project"
        } else {
            "strangers"
        };
        for row in ["all", text.text.kind.as_str(), text.text.language.as_str(), of] {
            let row = table
                .entry((text.is_good(), if row == "all" { "" } else { row }, ""))
                .or_default();
            row[usize::from(*logit >= operating)] += 1;
        }
        if (*logit >= operating) != text.is_good() {
            missed.push((at, *logit - operating));
        }
    }
    println!(
        "area under the curve with a domain left out: {:.3}",
        area(&logits, &plain)
    );
    println!("with a domain left out: good, what: refused, published");
    for ((good, row, _), [refused, published]) in &table {
        println!("  {good:5} {row:14} {refused:4} {published:4}");
    }
    let passed = of_gamed.iter().filter(|logit| **logit >= operating).count();
    println!("gamed copies: {passed} of {} published", of_gamed.len());
    print_attacks(texts, sentences, found, operating, &plain);
    if env::var_os("CALIBRATE_MISSED").is_some() {
        missed.sort_by(|one, other| one.1.total_cmp(&other.1));
        for (at, logit) in missed {
            let text: &FitText = &texts[at];
            println!(
                "missed {logit:+.2} {} {} {} {}",
                text.text.id, text.text.label, text.text.kind, text.text.title
            );
        }
    }
    println!(
        "/// Table of {} texts and {} gamed copies.",
        texts.len(),
        found.gamed.len()
    );
    for ((name, mean), weight) in RubricFeatures::NAMES
        .iter()
        .zip(&found.fit.means)
        .zip(&found.fit.weights)
    {
        println!("    (\"{name}\", {mean:.4}, {weight:.4}),");
    }
    println!("INTERCEPT: {:.4}", found.fit.intercept - operating);
}

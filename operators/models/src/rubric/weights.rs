//! The weights of the rubric, and the total and the four axes that they give.
//!
//! Invariants:
//! - The total is a function of the features alone, made of + − × ÷ in a fixed order and rounded before it is compared.
//! - The four axes explain the total: their sum is four times the total, to the tenth.

use types::knowledge::{Axes, PASS_MARK};

use super::RubricFeatures;

/// The name of the rubric with these weights, as answers give it.
pub const RUBRIC_NAME: &str = "rubric-2";

/// A row of the table: name of the feature, its mean in the texts of the fit, and its weight for each unit above it.
pub type FeatureWeight = (&'static str, f64, f64);

/// The weights of [`RUBRIC_NAME`], as the example `calibrate` printed them.
pub const WEIGHTS: &[FeatureWeight] = &[
    ("evidence", 0.5012, 0.5810),
    ("joined", 0.3384, -0.7437),
    ("early", 0.5079, 0.6580),
    ("spread", 0.3637, 0.4440),
    ("conditioned", 0.4374, -1.4039),
    ("reasons", 0.0769, -0.7337),
    ("coherent", 0.4814, 0.6361),
    ("generic", 0.0206, -0.8806),
    ("titled", 0.1919, 0.3592),
    ("hedged", 0.0334, 1.5021),
    ("figures", 0.1801, -0.5023),
    ("names", 0.4254, -1.6116),
    ("proper", 0.3435, -0.2369),
    ("run", 0.3514, 0.4866),
    ("long_run", 0.3516, -0.1994),
    ("bare", 0.4095, 1.3158),
    ("vague", 0.0949, -1.5878),
    ("talk", 0.0853, -1.7591),
    ("market", 0.0078, -3.0873),
    ("stock", 0.0088, -2.1700),
    ("addressed", 0.0722, -0.2136),
    ("calls", 0.0097, 1.6598),
    ("boiler", 0.0453, -1.1415),
    ("template", 0.0101, -0.8403),
    ("repeat", 0.0115, -7.1234),
    ("varied", 0.8475, 1.5126),
    ("long_words", 0.5483, -0.2552),
    ("links", 0.0883, -2.6606),
    ("some", 0.8509, 1.2351),
    ("code", 0.1782, 2.3163),
    ("commands", 0.2765, -0.4051),
    ("steps", 0.1030, -1.1608),
    ("rows", 0.0494, 2.5183),
    ("items", 0.2886, -0.3818),
    ("environment", 0.2587, 0.0743),
    ("versions", 0.2156, -0.3960),
    ("incident", 0.0286, -0.4848),
    ("change", 0.0480, 0.7066),
    ("kind", 0.3762, 2.1427),
    ("grounded", 0.2778, 1.5499),
    ("pictograms", 0.0622, -0.9731),
    ("conditions", 0.2659, -0.9121),
    ("denials", 0.0831, 2.2373),
    ("told", 0.0671, -3.0029),
    ("sentence_words", 0.4429, 0.4069),
    ("item_words", 0.2385, 0.5341),
    ("short_items", 0.0896, -1.2316),
    ("linked", 0.0475, 1.0923),
    ("dense", 0.3935, -0.3397),
    ("facts", 0.6008, 0.6713),
    ("compares", 0.0552, -0.9532),
];
/// The logit of a text whose features are all at their mean, less that of the operating point.
pub const INTERCEPT: f64 = 0.1080;

/// The logit above the operating point that is half of the way to 100.
const HALF_WAY: f64 = 2.5;
/// Tenths of an axis for each unit of logit that its features give more than those of the others.
const TENTHS_BY_LOGIT: f64 = 8.0;

/// What the table says of a text.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RubricLogit {
    /// Logit above the operating point, in steps of 1/1,024: 0 is the least that is published.
    pub total: f64,
    /// Parts of it by the features of accuracy, novelty, reproducibility and specificity.
    pub by_axis: [f64; 4],
}

/// Weighs the features of a text by a table.
pub fn weighed(features: &RubricFeatures, table: &[FeatureWeight], intercept: f64) -> RubricLogit {
    let mut by_axis = [0.0; 4];
    for ((value, axis), (_, mean, weight)) in features.values().into_iter().zip(RubricFeatures::AXES).zip(table) {
        by_axis[*axis as usize] += weight * (value - mean);
    }
    let total = intercept + by_axis[0] + by_axis[1] + by_axis[2] + by_axis[3];
    RubricLogit {
        total: (total * 1024.0).round() / 1024.0,
        by_axis,
    }
}

/// Returns the axes of a logit. Their total grows with it, and is [`PASS_MARK`] at 0.
pub fn axes(logit: &RubricLogit) -> Axes {
    let mark = f64::from(PASS_MARK);
    let total = if logit.total >= 0.0 {
        mark + (100.0 - mark) * logit.total / (logit.total + HALF_WAY)
    } else {
        // Rounded down, what is barely below the operating point is below the mark.
        mark * HALF_WAY / (HALF_WAY - logit.total)
    };
    #[expect(clippy::cast_possible_truncation, reason = "the number is from 0 to 100")]
    let total = total.floor().clamp(0.0, 100.0) as i32;
    let total = if logit.total < 0.0 { total.min(i32::from(PASS_MARK) - 1) } else { total };
    let mean = (logit.by_axis[0] + logit.by_axis[1] + logit.by_axis[2] + logit.by_axis[3]) / 4.0;
    let mut tenths = logit.by_axis.map(|part| {
        #[expect(clippy::cast_possible_truncation, reason = "cut to the range of an axis")]
        let apart = ((part - mean) * TENTHS_BY_LOGIT).round().clamp(-100.0, 100.0) as i32;
        (total + apart).clamp(0, 100)
    });
    // What rounding and the ends of the range took is given back, the axis with the most room first.
    let mut missing = 4 * total - tenths.iter().sum::<i32>();
    while missing != 0 {
        let step = missing.signum();
        let room = |tenths: i32| if step > 0 { 100 - tenths } else { tenths };
        let Some(widest) = tenths.iter_mut().rev().max_by_key(|tenths| room(**tenths)) else { break };
        if room(*widest) == 0 {
            break;
        }
        *widest += step;
        missing -= step;
    }
    Axes::of_tenths(tenths.map(|tenths| u8::try_from(tenths).unwrap_or(0)))
}

/// Takes from novelty what a near published unit leaves of it. `far` is from 0, the same, to 1. Likeness alone refuses
/// nothing: a text that has passed keeps the mark.
pub fn less_novel(axes: Axes, far: f64) -> Axes {
    let [accuracy, novelty, reproducibility, specificity] = axes.tenths();
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a part of at most 40 tenths"
    )]
    let loss = (40.0 * (1.0 - far.clamp(0.0, 1.0))).round() as u8;
    let spare = axes.tenths().into_iter().map(u16::from).sum::<u16>().saturating_sub(4 * u16::from(PASS_MARK));
    let most = if axes.passes() { u8::try_from(spare).unwrap_or(u8::MAX) } else { u8::MAX };
    Axes::of_tenths([accuracy, novelty.saturating_sub(loss.min(most)), reproducibility, specificity])
}

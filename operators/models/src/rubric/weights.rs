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
    ("evidence", 0.4609, 0.0000),
    ("joined", 0.3159, 0.0000),
    ("early", 0.4614, 0.0230),
    ("spread", 0.3437, 0.2264),
    ("conditioned", 0.4272, 0.0000),
    ("coherent", 0.4300, 0.7773),
    ("titled", 0.1970, 0.1488),
    ("hedged", 0.0276, 0.0000),
    ("run", 0.3710, 0.0000),
    ("vague", 0.1103, -0.8668),
    ("talk", 0.1019, -1.1305),
    ("market", 0.0073, -2.4151),
    ("stock", 0.0138, -1.9491),
    ("addressed", 0.0741, -0.5394),
    ("boiler", 0.0388, -1.3459),
    ("template", 0.0087, -1.1178),
    ("repeat", 0.0053, -7.9830),
    ("varied", 0.7827, 1.1811),
    ("long_words", 0.5226, -1.1252),
    ("links", 0.0795, -2.8975),
    ("some", 0.7233, 1.7555),
    ("code", 0.1404, 3.1624),
    ("rows", 0.0440, 2.0630),
    ("items", 0.2569, 0.3459),
    ("change", 0.0418, 0.3230),
    ("kind", 0.3342, 0.6309),
    ("stray", 0.2127, -1.7770),
    ("adorned", 0.0678, -0.1143),
    ("pictograms", 0.0495, -0.6066),
    ("denials", 0.0880, 1.8513),
    ("item_words", 0.2059, 0.0000),
    ("short_items", 0.0806, -0.3729),
    ("brief", 0.1398, -0.7792),
    ("talks", 0.1523, -1.1200),
    ("idle", 0.0715, -1.1924),
    ("rules", 0.1182, 0.8770),
    ("headed", 0.0486, -1.1620),
    ("fillers", 0.0268, -4.3493),
];
/// The logit of a text whose features are all at their mean, less that of the operating point.
pub const INTERCEPT: f64 = -0.7085;

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
    let total = if logit.total < 0.0 {
        total.min(i32::from(PASS_MARK) - 1)
    } else {
        total
    };
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
        let Some(widest) = tenths.iter_mut().rev().max_by_key(|tenths| room(**tenths)) else {
            break;
        };
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
pub(super) fn less_novel(axes: Axes, far: f64) -> Axes {
    let [accuracy, novelty, reproducibility, specificity] = axes.tenths();
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a part of at most 40 tenths"
    )]
    let loss = (40.0 * (1.0 - far.clamp(0.0, 1.0))).round() as u8;
    let spare = axes
        .tenths()
        .into_iter()
        .map(u16::from)
        .sum::<u16>()
        .saturating_sub(4 * u16::from(PASS_MARK));
    let most = if axes.passes() {
        u8::try_from(spare).unwrap_or(u8::MAX)
    } else {
        u8::MAX
    };
    Axes::of_tenths([
        accuracy,
        novelty.saturating_sub(loss.min(most)),
        reproducibility,
        specificity,
    ])
}

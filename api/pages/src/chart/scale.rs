//! Axis of numbers.
//!
//! Invariant: every finite number has a place from 0 to 1, however large, small or close to the others it is.

use crate::number::grouped;

/// Steps between marks, as multiples of a power of ten.
const MARK_STEPS: [f64; 5] = [1.0, 2.0, 2.5, 5.0, 10.0];
/// Gaps between marks that are aimed at.
const GAPS_BETWEEN_MARKS: f64 = 4.0;
/// The most marks of an axis.
const MAX_MARKS: f64 = 8.0;
/// Ratio of a number to a step from which on sums of steps are not exact enough for marks.
const MAX_STEPS_TO_ZERO: f64 = 1e12;

/// Part of a step by which computed numbers may be off.
const STEP_SLACK: f64 = 1e-9;

/// Mark of an axis.
#[derive(Debug)]
pub(super) struct AxisMark {
    /// The number in words.
    pub(super) text: String,
    /// Place from 0, below, to 1.
    pub(super) place: f64,
}

/// Axis of numbers.
#[derive(Debug)]
pub(super) struct Scale {
    low: f64,
    high: f64,
    /// Marks from above.
    pub(super) marks: Vec<AxisMark>,
}

impl Scale {
    /// Creates the axis of some finite numbers, with zero on it if wanted.
    pub(super) fn of(values: impl Iterator<Item = f64> + Clone, with_zero: bool) -> Self {
        let (mut low, mut high) = (f64::INFINITY, f64::NEG_INFINITY);
        for value in values.chain(with_zero.then_some(0.0)) {
            (low, high) = (low.min(value), high.max(value));
        }
        if low > high {
            // Without a number there is nothing to place.
            (low, high) = (0.0, 1.0);
        }
        if low >= high {
            // One number stands in the middle, or on the ground if zero must be there.
            (low, high) = if with_zero { (0.0, 1.0) } else { around(low) };
        }
        Self::with_marks(low, high)
    }

    /// Widens the axis to round numbers and marks it there.
    fn with_marks(low: f64, high: f64) -> Self {
        let round = step(low, high).and_then(|step| {
            let (below, above) = ((low / step + STEP_SLACK).floor(), (high / step - STEP_SLACK).ceil());
            let ends = (below * step, above * step);
            let fits = above - below < MAX_MARKS && ends.0.is_finite() && ends.1.is_finite();
            fits.then_some((step, below, above))
        });
        let Some((step, below, above)) = round else {
            let mut scale = Self {
                low,
                high,
                marks: Vec::new(),
            };
            scale.marks = [high, low]
                .map(|value| AxisMark {
                    text: short(value),
                    place: scale.place(value),
                })
                .into();
            return scale;
        };
        let mut scale = Self {
            low: below * step,
            high: above * step,
            marks: Vec::new(),
        };
        let mut at = above;
        while at >= below {
            let value = at * step;
            let place = scale.place(value);
            scale.marks.push(AxisMark {
                text: text(value, step),
                place,
            });
            at -= 1.0;
        }
        scale
    }

    /// Returns the place of a number, from 0 to 1.
    pub(super) fn place(&self, value: f64) -> f64 {
        // By halves, since the distance of two numbers can be more than the largest.
        let span = self.high / 2.0 - self.low / 2.0;
        let place = (value / 2.0 - self.low / 2.0) / span;
        if place.is_finite() { place.clamp(0.0, 1.0) } else { 0.5 }
    }
}

/// Returns the ends of an axis that has one number in its middle.
fn around(value: f64) -> (f64, f64) {
    let margin = value.abs() / 2.0;
    let ends = (value - margin, value + margin);
    match ends {
        (low, high) if low < high && low.is_finite() && high.is_finite() => ends,
        _ if value == 0.0 => (-1.0, 1.0),
        // The largest and the smallest numbers have nothing beside them.
        _ => (value, value),
    }
}

/// Returns a round distance between marks; `None` if the numbers are too large, too small or too close for one.
fn step(low: f64, high: f64) -> Option<f64> {
    let rough = (high / 2.0 - low / 2.0) * 2.0 / GAPS_BETWEEN_MARKS;
    if !rough.is_normal() || low.abs().max(high.abs()) / rough > MAX_STEPS_TO_ZERO {
        return None;
    }
    let power = 10_f64.powf(rough.log10().floor());
    let multiple = MARK_STEPS
        .into_iter()
        .find(|step| step * power >= rough * (1.0 - STEP_SLACK))?;
    let step = multiple * power;
    step.is_normal().then_some(step)
}

/// Returns a number that is a multiple of a step, with as many digits as the step needs.
fn text(value: f64, step: f64) -> String {
    // Of no step is more than one digit behind its first needed, as in 2.5.
    let digits = (0..=7).find(|digits| {
        let power = 10_f64.powi(*digits);
        (step * power - (step * power).round()).abs() < step * power * 1e-6
    });
    match digits.and_then(|digits| usize::try_from(digits).ok()) {
        Some(digits) if value.abs() < 1e15 => {
            let written = format!("{:.digits$}", value.abs());
            let (whole, rest) = written
                .split_once('.')
                .map_or((&*written, ""), |(whole, rest)| (whole, rest));
            let whole = whole.parse().map_or_else(|_large| whole.to_owned(), grouped);
            let point = if rest.is_empty() { "" } else { "." };
            let sign = if value < 0.0 { "−" } else { "" };
            format!("{sign}{whole}{point}{rest}")
        }
        _ => short(value),
    }
}

/// Returns a number in few letters.
fn short(value: f64) -> String {
    let plain = value.to_string();
    let written = if plain.len() <= 12 {
        plain
    } else {
        format!("{value:.3e}")
    };
    written.replace('-', "−")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn marks(values: &[f64], with_zero: bool) -> Vec<String> {
        let scale = Scale::of(values.iter().copied(), with_zero);
        scale.marks.into_iter().map(|mark| mark.text).collect()
    }

    #[test]
    fn marks_are_round_numbers_around_the_values() {
        assert_eq!(marks(&[0.79, 1.28], false), ["1.4", "1.2", "1.0", "0.8", "0.6"]);
        assert_eq!(marks(&[5.93, 1.0], true), ["6", "4", "2", "0"]);
        assert_eq!(marks(&[-3.0, 7.0], true), ["7.5", "5.0", "2.5", "0.0", "−2.5", "−5.0"]);
        assert_eq!(
            marks(&[839_412.0], true),
            ["1,000,000", "750,000", "500,000", "250,000", "0"]
        );
        assert_eq!(marks(&[0.000_01, 0.000_02], false).len(), 5);
    }

    #[test]
    fn every_finite_number_has_a_place() {
        let hard = [
            0.0,
            1.0,
            -1.0,
            f64::MAX,
            f64::MIN,
            f64::MIN_POSITIVE,
            5e-324,
            1e300,
            9_007_199_254_740_993.0,
            1e18,
            1e18 + 256.0,
        ];
        for with_zero in [false, true] {
            for left in hard {
                for right in hard {
                    let scale = Scale::of([left, right].into_iter(), with_zero);
                    assert!(scale.marks.len() <= 9, "{left} {right}: {:?}", scale.marks);
                    let (low, high) = (scale.place(left.min(right)), scale.place(left.max(right)));
                    assert!(
                        (0.0..=1.0).contains(&low) && low <= high && high <= 1.0,
                        "{left} {right}"
                    );
                    for mark in &scale.marks {
                        assert!((0.0..=1.0).contains(&mark.place), "{left} {right}: {mark:?}");
                        assert!(mark.text.len() <= 24, "{mark:?}");
                    }
                }
            }
        }
        assert!(Scale::of(std::iter::empty(), false).place(7.0) <= 1.0);
    }

    #[test]
    fn one_number_stands_in_the_middle() {
        for value in [3.5, -3.5, 0.0, 1e18, f64::MAX, 5e-324] {
            let place = Scale::of([value, value].into_iter(), false).place(value);
            assert!((place - 0.5).abs() < 0.3, "{value}: {place}");
        }
    }
}

//! Axis of numbers.
//!
//! Invariants: every finite number has a place from 0 to 1, however large or small it is. Zero is on the axis.

use crate::number::grouped;

/// Steps between marks, as multiples of a power of ten.
const MARK_STEPS: [f64; 10] = [1.0, 1.5, 2.0, 2.5, 3.0, 4.0, 5.0, 6.0, 8.0, 10.0];

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
    /// Creates the axis of some finite numbers, from zero or through it, that ends at round numbers and is marked there:
    /// three times at most.
    pub(super) fn of(values: impl Iterator<Item = f64>) -> Self {
        let mut scale = Self::within(values);
        let (low, high) = (scale.low, scale.high);
        let step = step(low, high).filter(|step| (step * 2.0).is_finite());
        let values = match step {
            Some(step) => {
                let (below, above) = ((low / step + STEP_SLACK).floor(), (high / step - STEP_SLACK).ceil());
                (scale.low, scale.high) = (below * step, above * step);
                let marks = [2.0, 1.0, 0.0, -1.0, -2.0].into_iter();
                marks
                    .filter(|at| (below..=above).contains(at))
                    .map(|at| (at * step, text(at * step, step)))
                    .collect()
            }
            None => vec![(high, short(high)), (low, short(low))],
        };
        let mark = |(value, text)| AxisMark {
            text,
            place: scale.place(value),
        };
        scale.marks = values.into_iter().map(mark).collect();
        scale
    }

    /// Creates the axis of some finite numbers that ends at the outermost of them and of zero, without marks.
    pub(super) fn within(values: impl Iterator<Item = f64>) -> Self {
        let (mut low, mut high) = (0.0_f64, 0.0_f64);
        for value in values {
            (low, high) = (low.min(value), high.max(value));
        }
        if low >= high {
            high = 1.0;
        }
        Self {
            low,
            high,
            marks: Vec::new(),
        }
    }

    /// Returns the place of a number, from 0 to 1.
    pub(super) fn place(&self, value: f64) -> f64 {
        // By halves, since the distance of two numbers can be more than the largest.
        let span = self.high / 2.0 - self.low / 2.0;
        let place = (value / 2.0 - self.low / 2.0) / span;
        if place.is_finite() { place.clamp(0.0, 1.0) } else { 0.5 }
    }
}

/// Returns a round distance between marks, of which two go around the numbers; `None` if they are too large or too
/// small for one.
fn step(low: f64, high: f64) -> Option<f64> {
    let rough = if low < 0.0 && high > 0.0 {
        // A mark on each side of zero.
        high.max(-low)
    } else {
        high / 2.0 - low / 2.0
    };
    if !rough.is_normal() {
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

    fn marks(values: &[f64]) -> Vec<String> {
        let scale = Scale::of(values.iter().copied());
        scale.marks.into_iter().map(|mark| mark.text).collect()
    }

    #[test]
    fn three_round_numbers_from_zero_mark_an_axis() {
        assert_eq!(marks(&[3.1, 4.4]), ["5.0", "2.5", "0.0"]);
        assert_eq!(marks(&[5.93, 1.0]), ["6", "3", "0"]);
        assert_eq!(marks(&[-3.0, 7.0]), ["8", "0", "−8"]);
        assert_eq!(marks(&[-3.0, -2.0]), ["0.0", "−1.5", "−3.0"]);
        assert_eq!(marks(&[839_412.0]), ["1,000,000", "500,000", "0"]);
        assert_eq!(marks(&[0.0]), ["1.0", "0.5", "0.0"]);
        assert_eq!(marks(&[0.000_01, 0.000_02]).len(), 3);
    }

    #[test]
    fn an_axis_without_marks_ends_at_its_numbers() {
        let scale = Scale::within([3.1, 4.4].into_iter());
        assert!(scale.place(4.4) >= 1.0 && scale.place(0.0) <= 0.0 && scale.marks.is_empty());
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
        for left in hard {
            for right in hard {
                let scale = Scale::of([left, right].into_iter());
                assert!(
                    (2..=3).contains(&scale.marks.len()),
                    "{left} {right}: {:?}",
                    scale.marks
                );
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
        assert!(Scale::of(std::iter::empty()).place(7.0) <= 1.0);
    }
}

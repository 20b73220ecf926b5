//! Sums, norms and functions of real numbers, in a fixed order.
//!
//! Invariant: only `+`, `-`, `*`, `/` and square roots, each rounded by itself: the same bits on every machine.
//! Functions of the mathematical library of a platform, and products that are added without being rounded, are not.

/// The sums that run beside each other.
const LANES: usize = 8;

/// Returns the sum of `term` of each number. The number `n` goes to the sum `n` mod 8, and these are added in pairs.
fn sum(values: &[f32], term: impl Fn(f32) -> f32) -> f32 {
    let mut sums = [0.0; LANES];
    let (chunks, rest) = values.as_chunks::<LANES>();
    for chunk in chunks {
        for (sum, value) in sums.iter_mut().zip(chunk) {
            *sum += term(*value);
        }
    }
    for (sum, value) in sums.iter_mut().zip(rest) {
        *sum += term(*value);
    }
    let [zero, one, two, three, four, five, six, seven] = sums;
    ((zero + four) + (two + six)) + ((one + five) + (three + seven))
}

/// Returns the length of a vector.
pub(crate) fn length(values: &[f32]) -> f32 {
    sum(values, |value| value * value).sqrt()
}

/// Gives a vector the mean 0 and the variance 1, then gains and offsets. `least` is added to the variance.
pub(crate) fn normalise(values: &mut [f32], gains: &[f32], offsets: &[f32], least: f32) {
    #[expect(clippy::cast_precision_loss, reason = "a layer has some thousand values at most")]
    let count = values.len() as f32;
    let mean = sum(values, |value| value) / count;
    for value in values.iter_mut() {
        *value -= mean;
    }
    let variance = sum(values, |value| value * value) / count;
    let factor = 1.0 / (variance + least).sqrt();
    for ((value, gain), offset) in values.iter_mut().zip(gains).zip(offsets) {
        *value = *value * factor * gain + offset;
    }
}

/// Returns the hyperbolic tangent: Lambert's continued fraction of a sixteenth of the number, then doubled four times.
/// The error is less than a step of an `f32`.
#[expect(clippy::cast_possible_truncation, reason = "the result is rounded once")]
pub(crate) fn tanh(number: f32) -> f32 {
    // Beyond 20 it is 1 in all digits.
    let part = f64::from(number).clamp(-20.0, 20.0) / 16.0;
    let square = part * part;
    let above = part * (135_135.0 + square * (17_325.0 + square * (378.0 + square)));
    let below = 135_135.0 + square * (62_370.0 + square * (3_150.0 + square * 28.0));
    let mut tangent = above / below;
    for _ in 0..4 {
        tangent = 2.0 * tangent / (1.0 + tangent * tangent);
    }
    tangent as f32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tangent_is_that_of_the_mathematical_library() {
        for step in -3_000_i16..=3_000 {
            let number = f32::from(step) / 100.0;
            let known = f64::from(number).tanh();
            let error = (f64::from(tanh(number)) - known).abs();
            assert!(error <= 1e-7, "{number}: {error}");
        }
        assert_eq!(tanh(f32::INFINITY).to_bits(), 1.0_f32.to_bits());
        assert_eq!(tanh(-0.0).to_bits(), (-0.0_f32).to_bits());
    }

    #[test]
    fn a_normalised_vector_has_mean_and_variance() {
        let mut values: Vec<f32> = (0..20).map(|value| f32::from(value * value % 7_u16)).collect();
        normalise(&mut values, &[2.0; 20], &[1.0; 20], 0.0);
        let mean = sum(&values, |value| value) / 20.0;
        let variance = sum(&values, |value| (value - mean) * (value - mean)) / 20.0;
        assert!(
            (mean - 1.0).abs() < 1e-5 && (variance - 4.0).abs() < 1e-4,
            "{mean} {variance}"
        );
        assert!((length(&[3.0, 4.0]) - 5.0).abs() < 1e-6);
    }
}

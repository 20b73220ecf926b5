//! Exact sums of numbers and of their squares, and the figures that are rounded from them once.
//!
//! Invariant: a sum depends on the set of its summands alone, since nothing is rounded before the end.

use std::cmp::Ordering;

use super::codec::{SketchReader, SketchWriter};
use super::{SketchDamaged, digits};

/// Bits of a digit of a sum.
const DIGIT_BITS: usize = 32;
const DIGIT_MASK: i64 = (1 << DIGIT_BITS) - 1;
/// Additions of less than 2^32 to a digit until its carry must be taken, far below the 2^31 that fit.
const MAX_PENDING: u32 = 1 << 28;

/// Power of two that a double's sum counts in: the smallest double is one of these units.
const NUMBER_UNIT: i64 = -1_074;
/// Bits of a sum of 2^64 doubles.
const NUMBER_SUM_BITS: usize = 2_098 + 64;
/// Bits of a sum of 2^64 squares of doubles, which counts in the square of the unit.
const NUMBER_SQUARE_BITS: usize = 2 * 2_098 + 64;
/// Bits of a sum of 2^64 whole numbers of 128 bits.
const UNIT_SUM_BITS: usize = 128 + 64;
/// Bits of a sum of 2^64 squares of them.
const UNIT_SQUARE_BITS: usize = 2 * 128 + 64;
/// Zero digits behind a number before it is divided, so that the quotient has more digits than a double.
const QUOTIENT_DIGITS: usize = 12;

/// A signed whole number of a fixed width, to which others are added.
#[derive(Clone, Debug)]
struct ExactSum {
    /// Digits of base 2^32, the least first. Carries wait in the upper halves, and the sign in the last digit.
    digits: Vec<i64>,
    /// Additions since the last carry.
    pending: u32,
}

impl ExactSum {
    fn new(bits: usize) -> Self {
        Self {
            // A shifted summand touches three digits, and the last has the sign.
            digits: vec![0; bits / DIGIT_BITS + 3],
            pending: 0,
        }
    }

    /// Adds `value` times 2 to the power of `shift`, or subtracts it.
    #[inline]
    fn add(&mut self, value: u64, shift: usize, is_negative: bool) {
        let wide = u128::from(value) << (shift % DIGIT_BITS);
        let at = shift / DIGIT_BITS;
        let sign = if is_negative { -1 } else { 1 };
        let digit = |place: usize| i64::from(low_digit(wide >> (place * DIGIT_BITS)));
        if let Some(digits) = self.digits.get_mut(at..at + 3) {
            for (place, sum) in digits.iter_mut().enumerate() {
                *sum += sign * digit(place);
            }
        }
        self.pending += 1;
        if self.pending >= MAX_PENDING {
            self.carry();
        }
    }

    /// Adds `value` times 2 to the power of `shift`, or subtracts it.
    fn add_wide(&mut self, value: u128, shift: usize, is_negative: bool) {
        let (low, high) = halves(value);
        self.add(low, shift, is_negative);
        if high != 0 {
            self.add(high, shift + 64, is_negative);
        }
    }

    /// Makes every digit but the last one of 0 to 2^32 - 1. A number has one such form.
    fn carry(&mut self) {
        let mut carry = 0;
        if let Some((last, digits)) = self.digits.split_last_mut() {
            for digit in digits {
                let sum = *digit + carry;
                *digit = sum & DIGIT_MASK;
                carry = sum >> DIGIT_BITS;
            }
            *last += carry;
        }
        self.pending = 0;
    }

    /// Adds another sum of the same width.
    fn merge(&mut self, other: &Self) {
        self.carry();
        let mut other = other.clone();
        other.carry();
        for (sum, digit) in self.digits.iter_mut().zip(&other.digits) {
            *sum += digit;
        }
        self.carry();
    }

    /// Returns the sign and the magnitude.
    fn parts(&self) -> (bool, Magnitude) {
        let mut sum = self.clone();
        sum.carry();
        let is_negative = sum.digits.last().is_some_and(|last| *last < 0);
        if is_negative {
            sum.digits.iter_mut().for_each(|digit| *digit = -*digit);
            sum.carry();
        }
        let digits = sum.digits.iter().map(|digit| u32::try_from(*digit).unwrap_or(u32::MAX));
        (is_negative, Magnitude(digits.collect()).trimmed())
    }

    fn encode(&self, out: &mut SketchWriter) {
        let (is_negative, magnitude) = self.parts();
        let zeros = magnitude.0.iter().take_while(|digit| **digit == 0).count();
        out.count(usize::from(is_negative));
        out.count(zeros);
        out.count(magnitude.0.len() - zeros);
        for digit in magnitude.0.iter().skip(zeros) {
            out.bytes(&digit.to_le_bytes());
        }
    }

    fn decode(bits: usize, bytes: &mut SketchReader<'_>) -> Result<Self, SketchDamaged> {
        let mut sum = Self::new(bits);
        let (is_negative, zeros, count) = (bytes.count()? != 0, bytes.count()?, bytes.count()?);
        let end = zeros.checked_add(count).filter(|end| *end < sum.digits.len());
        let place = end.and_then(|end| sum.digits.get_mut(zeros..end));
        let place = place.ok_or(SketchDamaged {
            problem: "a sum is too long",
        })?;
        for digit in place {
            let value = i64::from(u32::from_le_bytes(bytes.array()?));
            *digit = if is_negative { -value } else { value };
        }
        sum.carry();
        Ok(sum)
    }
}

/// The numbers that moments are of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum MomentUnit {
    /// Doubles.
    Number,
    /// Whole numbers of units of `10^-scale`.
    Decimal(u8),
}

/// The sum of numbers and of their squares.
#[derive(Clone, Debug)]
pub(super) struct Moments {
    sum: ExactSum,
    squares: ExactSum,
}

impl Moments {
    /// Creates the moments of no numbers.
    pub(super) fn new(unit: MomentUnit) -> Self {
        let (sum, squares) = Self::bits(unit);
        Self {
            sum: ExactSum::new(sum),
            squares: ExactSum::new(squares),
        }
    }

    const fn bits(unit: MomentUnit) -> (usize, usize) {
        match unit {
            MomentUnit::Number => (NUMBER_SUM_BITS, NUMBER_SQUARE_BITS),
            MomentUnit::Decimal(_) => (UNIT_SUM_BITS, UNIT_SQUARE_BITS),
        }
    }

    /// Adds a finite double.
    #[inline]
    pub(super) fn add_number(&mut self, value: f64) {
        let bits = value.to_bits();
        let fraction = bits & ((1 << 52) - 1);
        let exponent = usize::try_from((bits >> 52) & 0x7ff).unwrap_or(0);
        // A subnormal number has the exponent of the smallest normal one, without the bit before the point.
        let (mantissa, shift) = match exponent {
            0 => (fraction, 0),
            _ => (fraction | (1 << 52), exponent - 1),
        };
        self.sum.add(mantissa, shift, value.is_sign_negative());
        let (low, high) = halves(u128::from(mantissa) * u128::from(mantissa));
        self.squares.add(low, 2 * shift, false);
        self.squares.add(high, 2 * shift + 64, false);
    }

    /// Adds a whole number.
    pub(super) fn add_units(&mut self, value: i128) {
        self.sum.add_wide(value.unsigned_abs(), 0, value < 0);
        let (low, high) = halves(value.unsigned_abs());
        let (low, high) = (u128::from(low), u128::from(high));
        self.squares.add_wide(low * low, 0, false);
        if high != 0 {
            self.squares.add_wide(low * high, 65, false);
            self.squares.add_wide(high * high, 128, false);
        }
    }

    /// Adds a sum of whole numbers and the sum of their squares.
    pub(super) fn add_sums(&mut self, sum: i128, squares: u128) {
        self.sum.add_wide(sum.unsigned_abs(), 0, sum < 0);
        self.squares.add_wide(squares, 0, false);
    }

    /// Adds the numbers of other moments of the same unit.
    pub(super) fn merge(&mut self, other: &Self) {
        self.sum.merge(&other.sum);
        self.squares.merge(&other.squares);
    }

    /// Returns the mean of `count` numbers as the nearest double; none of none.
    pub(super) fn mean(&self, unit: MomentUnit, count: u64) -> Option<f64> {
        if count == 0 {
            return None;
        }
        let (is_negative, mut sum) = self.sum.parts();
        let exponent = sum.lengthen();
        let mut is_cut = sum.divide(count);
        let exponent = match unit {
            MomentUnit::Number => exponent + NUMBER_UNIT,
            MomentUnit::Decimal(scale) => {
                is_cut |= sum.divide(10_u64.pow(scale.into()));
                exponent
            }
        };
        let mean = sum.nearest(exponent, is_cut);
        Some(if is_negative && mean != 0.0 { -mean } else { mean })
    }

    /// Returns the standard deviation of a sample of `count` numbers with 6 digits; none below two numbers, or if it is
    /// larger than a double.
    pub(super) fn deviation(&self, unit: MomentUnit, count: u64) -> Option<f64> {
        if count < 2 {
            return None;
        }
        // The variance is (count · squares - sum²) / (count · (count - 1)); the numerator is exact.
        let (_, sum) = self.sum.parts();
        let (_, squares) = self.squares.parts();
        let mut variance = squares.times(count).minus(&sum.squared());
        let exponent = variance.lengthen();
        variance.divide(count);
        variance.divide(count - 1);
        let exponent = match unit {
            MomentUnit::Number => exponent + 2 * NUMBER_UNIT,
            MomentUnit::Decimal(scale) => {
                variance.divide(10_u64.pow(scale.into()));
                variance.divide(10_u64.pow(scale.into()));
                exponent
            }
        };
        let deviation = digits::rounded(variance.root(exponent), 6);
        deviation.is_finite().then_some(deviation)
    }

    pub(super) fn encode(&self, out: &mut SketchWriter) {
        self.sum.encode(out);
        self.squares.encode(out);
    }

    pub(super) fn decode(unit: MomentUnit, bytes: &mut SketchReader<'_>) -> Result<Self, SketchDamaged> {
        let (sum, squares) = Self::bits(unit);
        Ok(Self {
            sum: ExactSum::decode(sum, bytes)?,
            squares: ExactSum::decode(squares, bytes)?,
        })
    }
}

/// A whole number that is not negative: digits of base 2^32, the least first, the last of which is not zero.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Magnitude(Vec<u32>);

impl Magnitude {
    fn trimmed(mut self) -> Self {
        while self.0.last() == Some(&0) {
            self.0.pop();
        }
        self
    }

    fn times(&self, factor: u64) -> Self {
        let mut product = Vec::with_capacity(self.0.len() + 2);
        let mut carry = 0_u128;
        for digit in &self.0 {
            carry += u128::from(*digit) * u128::from(factor);
            product.push(low_digit(carry));
            carry >>= DIGIT_BITS;
        }
        while carry != 0 {
            product.push(low_digit(carry));
            carry >>= DIGIT_BITS;
        }
        Self(product).trimmed()
    }

    fn squared(&self) -> Self {
        let mut square = vec![0_u32; 2 * self.0.len()];
        for (at, left) in self.0.iter().enumerate() {
            let mut carry = 0_u128;
            let mut right = self.0.iter();
            for place in square.iter_mut().skip(at) {
                let factor = right.next().copied().unwrap_or(0);
                carry += u128::from(*left) * u128::from(factor) + u128::from(*place);
                *place = low_digit(carry);
                carry >>= DIGIT_BITS;
            }
        }
        Self(square).trimmed()
    }

    /// Returns the difference, or zero if `other` is larger.
    fn minus(&self, other: &Self) -> Self {
        let mut difference = Vec::with_capacity(self.0.len());
        let mut borrow = 0_i64;
        for (at, digit) in self.0.iter().enumerate() {
            let rest = i64::from(*digit) - i64::from(other.0.get(at).copied().unwrap_or(0)) - borrow;
            borrow = i64::from(rest < 0);
            difference.push(u32::try_from(rest & DIGIT_MASK).unwrap_or(0));
        }
        if borrow == 0 && self.0.len() >= other.0.len() {
            Self(difference).trimmed()
        } else {
            Self(Vec::new())
        }
    }

    /// Multiplies by a power of two, and returns the exponent that makes up for it.
    fn lengthen(&mut self) -> i64 {
        self.0.splice(0..0, [0; QUOTIENT_DIGITS]);
        -i64::try_from(QUOTIENT_DIGITS * DIGIT_BITS).unwrap_or(0)
    }

    /// Divides, rounding down, and returns true if something was cut off.
    fn divide(&mut self, divisor: u64) -> bool {
        let divisor = u128::from(divisor.max(1));
        let mut rest = 0_u128;
        for digit in self.0.iter_mut().rev() {
            rest = (rest << DIGIT_BITS) | u128::from(*digit);
            *digit = low_digit(rest / divisor);
            rest %= divisor;
        }
        while self.0.last() == Some(&0) {
            self.0.pop();
        }
        rest != 0
    }

    /// Returns the number of bits up to the highest one that is set.
    fn length(&self) -> i64 {
        let last = self.0.last().map_or(0, |last| i64::from(32 - last.leading_zeros()));
        let below = i64::try_from(self.0.len().saturating_sub(1) * DIGIT_BITS).unwrap_or(0);
        below + last
    }

    /// Returns 64 bits from bit `from` on; bits that do not exist are zero.
    fn window(&self, from: i64) -> u64 {
        let bit = |place: i64| {
            let at = usize::try_from(from + place).ok()?;
            let digit = self.0.get(at / DIGIT_BITS)?;
            Some(u64::from((digit >> (at % DIGIT_BITS)) & 1) << place)
        };
        (0..64).filter_map(bit).sum()
    }

    /// Returns true if a bit below `end` is set.
    fn has_bits_below(&self, end: i64) -> bool {
        let lowest = self.0.iter().position(|digit| *digit != 0);
        lowest.is_some_and(|at| {
            let zeros = self.0.get(at).map_or(0, |digit| digit.trailing_zeros());
            i64::try_from(at * DIGIT_BITS).unwrap_or(i64::MAX) + i64::from(zeros) < end
        })
    }

    /// Returns the double nearest to this number times 2 to the power of `exponent`, ties to even. `is_cut` says that
    /// the number is a little larger than its digits.
    fn nearest(&self, exponent: i64, is_cut: bool) -> f64 {
        // The exponent of the last bit that a double of this size has.
        let last = (self.length() - 53 + exponent).max(NUMBER_UNIT);
        let dropped = last - exponent;
        let mantissa = self.window(dropped) & ((1 << 53) - 1);
        let is_half = dropped > 0 && self.window(dropped - 1) & 1 == 1;
        let is_more = is_cut || self.has_bits_below(dropped - 1);
        let is_up = is_half && (is_more || mantissa & 1 == 1);
        scaled(mantissa + u64::from(is_up), last)
    }

    /// Returns the square root of this number times 2 to the power of `exponent`, to about 15 digits.
    fn root(&self, exponent: i64) -> f64 {
        let dropped = self.length() - 53;
        // The exponent becomes even, so that half of it is whole.
        let dropped = dropped + ((dropped + exponent) & 1);
        let mantissa = match dropped.cmp(&0) {
            Ordering::Less => self.window(0) << dropped.unsigned_abs().min(63),
            _ => self.window(dropped),
        };
        let root = scaled(mantissa & ((1 << 53) - 1), 0).sqrt();
        // Two factors, since one alone may be no double while the product is.
        let half = i64::midpoint(dropped, exponent);
        root * scaled(1, half / 2) * scaled(1, half - half / 2)
    }
}

/// Returns `mantissa`, at most 2^53, times 2 to the power of `exponent`, where that is a double; else infinity, or for
/// exponents below the smallest double zero.
fn scaled(mantissa: u64, exponent: i64) -> f64 {
    if mantissa == 0 {
        return 0.0;
    }
    // The highest bit moves to where it is in a double.
    let shift = i64::from(mantissa.leading_zeros()) - 11;
    let mantissa = if shift < 0 {
        mantissa >> shift.unsigned_abs()
    } else {
        mantissa << shift
    };
    let biased = exponent - shift + 1_075;
    match u64::try_from(biased) {
        Ok(biased @ 1..2_047) => f64::from_bits((biased << 52) | (mantissa & ((1 << 52) - 1))),
        Ok(2_047..) => f64::INFINITY,
        // A subnormal number: the caller has rounded it already, so only zeros are shifted out.
        _ => f64::from_bits(
            mantissa
                .checked_shr(u32::try_from(1 - biased).unwrap_or(64))
                .unwrap_or(0),
        ),
    }
}

/// Returns `sum` divided by `count` as the nearest double, and zero for none.
pub(super) fn ratio(sum: u128, count: u64) -> f64 {
    let (low, high) = halves(sum);
    let digits = [low, high].map(|half| [low_digit(half.into()), low_digit(u128::from(half >> DIGIT_BITS))]);
    let mut quotient = Magnitude(digits.concat()).trimmed();
    let exponent = quotient.lengthen();
    let is_cut = quotient.divide(count);
    quotient.nearest(exponent, is_cut)
}

fn halves(value: u128) -> (u64, u64) {
    let low = u64::try_from(value & u128::from(u64::MAX)).unwrap_or(0);
    (low, u64::try_from(value >> 64).unwrap_or(0))
}

fn low_digit(value: u128) -> u32 {
    u32::try_from(value & u128::from(u32::MAX)).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn of_numbers(values: &[f64]) -> Moments {
        let mut moments = Moments::new(MomentUnit::Number);
        for value in values {
            moments.add_number(*value);
        }
        moments
    }

    #[test]
    fn sums_that_doubles_lose_are_exact() {
        let unit = MomentUnit::Number;
        for (values, mean) in [
            (&[1e308, 1e308, -1e308, -1e308, 4.0][..], 0.8),
            (&[f64::MAX, f64::MAX], f64::MAX),
            (&[1e16, 1.0, -1e16], 1.0 / 3.0),
            (&[5e-324, 5e-324, 5e-324], 5e-324),
            (&[5e-324, 0.0], 0.0),
            (&[1.5e-323, 0.0], 1e-323),
            (&[0.1; 10], 0.1),
            (&[-0.0, 0.0], 0.0),
            (&[-2.5], -2.5),
        ] {
            let moments = of_numbers(values);
            let count = values.len() as u64;
            assert_eq!(moments.mean(unit, count), Some(mean), "{values:?}");
        }
        assert_eq!(of_numbers(&[]).mean(unit, 0), None);
    }

    #[test]
    fn ratios_are_rounded_once() {
        for (sum, count, expected) in [
            (0, 0, 0.0),
            (1, 3, 1.0 / 3.0),
            (26, 2, 13.0),
            (u128::MAX, 1, 2_f64.powi(128)),
        ] {
            assert_eq!(Some(ratio(sum, count)), Some(expected), "{sum} / {count}");
        }
    }

    #[test]
    fn deviations_are_of_samples_and_have_six_digits() {
        let unit = MomentUnit::Number;
        for (values, deviation) in [
            (&[2.0, 4.0, 4.0, 4.0, 5.0, 5.0, 7.0, 9.0][..], Some(2.13809)),
            (&[1e9 + 1.0, 1e9 + 2.0, 1e9 + 3.0], Some(1.0)),
            (&[0.1; 1_000], Some(0.0)),
            (&[1.0], None),
            (&[5e-324, -5e-324], Some(5e-324)),
            (&[1e-200, -1e-200], Some(1.41421e-200)),
            (&[1e200, -1e200], Some(1.41421e200)),
            (&[f64::MAX, -f64::MAX], None),
        ] {
            let moments = of_numbers(values);
            assert_eq!(moments.deviation(unit, values.len() as u64), deviation, "{values:?}");
        }
    }

    #[test]
    fn whole_numbers_of_128_bits_fit() {
        let unit = MomentUnit::Decimal(2);
        let mut moments = Moments::new(unit);
        for value in [i128::MAX, i128::MIN, 1, 250] {
            moments.add_units(value);
        }
        assert_eq!(moments.mean(unit, 4), Some(0.625));
        let mut small = Moments::new(unit);
        for value in [100, 200, -600] {
            small.add_units(value);
        }
        assert_eq!(small.mean(unit, 3), Some(-1.0));
        assert_eq!(small.deviation(unit, 3), Some(4.3589));
        let mut sums = Moments::new(unit);
        sums.add_sums(-300, 10_000 + 40_000 + 360_000);
        assert_eq!(sums.deviation(unit, 3), small.deviation(unit, 3));
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn a_mean_of_two_is_their_middle(left in any::<i32>(), right in any::<i32>(), exponent in -900_i32..900) {
            // Both and their middle are doubles, so there is one right answer.
            let unit = 2_f64.powi(exponent);
            let (left, right) = (f64::from(left) * unit, f64::from(right) * unit);
            prop_assert_eq!(of_numbers(&[left, right]).mean(MomentUnit::Number, 2), Some(f64::midpoint(left, right) + 0.0));
        }

        #[test]
        fn one_number_is_its_mean(bits in any::<u64>()) {
            let value = f64::from_bits(bits);
            if value.is_finite() {
                prop_assert_eq!(of_numbers(&[value]).mean(MomentUnit::Number, 1), Some(value));
            }
        }

        #[test]
        fn sums_do_not_know_their_order(values in prop::collection::vec(any::<f64>(), 0..40), at in 0_usize..40) {
            let values: Vec<f64> = values.into_iter().filter(|value| value.is_finite()).collect();
            let whole = of_numbers(&values);
            let (left, right) = values.split_at(at.min(values.len()));
            let mut merged = of_numbers(right);
            merged.merge(&of_numbers(left));
            let (mut ours, mut theirs) = (SketchWriter::default(), SketchWriter::default());
            whole.encode(&mut ours);
            merged.encode(&mut theirs);
            prop_assert_eq!(&ours.0, &theirs.0);
            let mut reader = SketchReader::new(&ours.0);
            let mut again = SketchWriter::default();
            Moments::decode(MomentUnit::Number, &mut reader).unwrap().encode(&mut again);
            prop_assert_eq!(&ours.0, &again.0);
        }
    }
}

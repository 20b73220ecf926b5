//! Decimal arithmetic on scaled integers of 256 bits.
//!
//! Invariant: a result is exact or rounded to its scale, a half away from zero. One that has no room is `None`, never
//! another number.

use std::sync::LazyLock;

use datafusion::arrow::datatypes::i256;

/// Digits behind the point of numbers that may have some.
pub(in crate::child) const MAX_SCALE_DIGITS: u8 = 36;
/// [`MAX_SCALE_DIGITS`] as types have it.
pub(in crate::child) const SIGNED_SCALE: i8 = 36;
/// Greatest power of ten that 256 bits hold.
const MAX_POWER: u32 = 76;
/// Digits behind the point that a text shows, if they are enough for [`MIN_SIGNIFICANT_DIGITS`] ones.
const MAX_SHOWN_DIGITS: usize = 20;
/// Digits behind the point of seconds, and of most other numbers that are converted to doubles.
const MICROS_DIGITS: u8 = 6;
/// Significant digits that a text shows of a number that is far less than one.
const MIN_SIGNIFICANT_DIGITS: usize = 16;

const TEN: i256 = i256::from_i128(10);

/// Powers of ten. To compute one takes as long as to divide by it.
static POWERS: LazyLock<Vec<i256>> =
    LazyLock::new(|| (0..=MAX_POWER).map(|exponent| TEN.wrapping_pow(exponent)).collect());

fn power(exponent: u32) -> Option<i256> {
    POWERS.get(usize::try_from(exponent).ok()?).copied()
}

/// Returns `value` with another scale, rounded if that has fewer digits.
pub(in crate::child) fn rescaled(value: i256, from: u8, to: u8) -> Option<i256> {
    if to >= from {
        value.checked_mul(power(u32::from(to - from))?)
    } else {
        Some(divided(value, power(u32::from(from - to))?))
    }
}

/// Divides by a power of ten and rounds a half away from zero.
fn divided(value: i256, by: i256) -> i256 {
    let (quotient, rest) = (value.wrapping_div(by), value.wrapping_rem(by));
    // The rest is compared with what is missing to the divisor, because its double may have no room.
    let rest = rest.wrapping_abs();
    if rest == i256::ZERO || rest < by.wrapping_sub(rest) {
        return quotient;
    }
    // Every divisor is a power of ten, so the sign is that of the value.
    quotient.wrapping_add(if value.is_negative() {
        i256::MINUS_ONE
    } else {
        i256::ONE
    })
}

/// Multiplies two values of these scales. The product has the scale `to`.
pub(in crate::child) fn product(one: (i256, u8), other: (i256, u8), to: u8) -> Option<i256> {
    if let Some(product) = one.0.checked_mul(other.0) {
        return rescaled(product, one.1 + other.1, to);
    }
    // The whole parts and the fractions are multiplied one by one, each with room of its own.
    let (left, right) = (power(u32::from(one.1))?, power(u32::from(other.1))?);
    let (whole, part) = (one.0.wrapping_div(left), one.0.wrapping_rem(left));
    let (other_whole, other_part) = (other.0.wrapping_div(right), other.0.wrapping_rem(right));
    let terms = [
        (whole.checked_mul(other_whole)?, 0),
        (whole.checked_mul(other_part)?, other.1),
        (part.checked_mul(other_whole)?, one.1),
        (part.checked_mul(other_part)?, one.1 + other.1),
    ];
    terms.into_iter().try_fold(i256::ZERO, |sum, (term, scale)| {
        sum.checked_add(rescaled(term, scale, to)?)
    })
}

/// Divides two values of these scales, with [`MAX_SCALE_DIGITS`] digits behind the point. The divisor is not zero.
pub(in crate::child) fn quotient(one: (i256, u8), other: (i256, u8)) -> Option<i256> {
    // Digits of the result behind those of the quotient of the two integers.
    let more = i32::from(MAX_SCALE_DIGITS) + i32::from(other.1) - i32::from(one.1);
    let (above, below, left) = match u32::try_from(more) {
        Ok(left) => (one.0, other.0, left),
        Err(_) => (one.0, other.0.checked_mul(power(more.unsigned_abs())?)?, 0),
    };
    let negative = above.is_negative() != below.is_negative();
    let (above, below) = (above.checked_abs()?, below.checked_abs()?);
    let quotient = match (above.to_i128(), below.to_i128()) {
        (Some(above), Some(below)) if below.unsigned_abs() <= MAX_NARROW_DIVISOR => {
            narrow_quotient(above.unsigned_abs(), below.unsigned_abs(), left)?
        }
        _ => wide_quotient(above, below, left)?,
    };
    Some(if negative { quotient.wrapping_neg() } else { quotient })
}

/// Digits that a rest below [`MAX_NARROW_DIVISOR`] has room for in 128 bits.
const STEP_DIGITS: u32 = 18;
/// Greatest divisor of [`narrow_quotient`].
const MAX_NARROW_DIVISOR: u128 = 10_u128.pow(20);

/// Divides numbers of 128 bits, which takes a small part of the time of 256 bits, with `left` digits more.
fn narrow_quotient(above: u128, below: u128, mut left: u32) -> Option<i256> {
    let mut quotient = i256::from_parts(above / below, 0);
    let mut rest = above % below;
    while left > 0 {
        if rest == 0 {
            return quotient.checked_mul(power(left)?);
        }
        let digits = left.min(STEP_DIGITS);
        rest *= 10_u128.pow(digits);
        quotient = quotient
            .checked_mul(power(digits)?)?
            .checked_add(i256::from_parts(rest / below, 0))?;
        rest %= below;
        left -= digits;
    }
    if rest >= below - rest {
        quotient = quotient.checked_add(i256::ONE)?;
    }
    Some(quotient)
}

fn wide_quotient(above: i256, below: i256, mut left: u32) -> Option<i256> {
    let mut quotient = above.wrapping_div(below);
    let mut rest = above.wrapping_rem(below);
    // As many digits at a time as there is room for behind the rest, which is less than the divisor.
    let room = below.leading_zeros().saturating_sub(2) * 3 / 10;
    while left > 0 {
        if rest == i256::ZERO {
            return quotient.checked_mul(power(left)?);
        }
        let digits = left.min(room);
        if digits == 0 {
            return None;
        }
        let shift = power(digits)?;
        rest = rest.checked_mul(shift)?;
        quotient = quotient.checked_mul(shift)?.checked_add(rest.wrapping_div(below))?;
        rest = rest.wrapping_rem(below);
        left -= digits;
    }
    if rest >= below.wrapping_sub(rest) {
        quotient = quotient.checked_add(i256::ONE)?;
    }
    Some(quotient)
}

/// Returns the same number with the least scale that shows all its digits.
pub(in crate::child) fn without_zeros(mut value: i256, mut scale: u8) -> (i256, u8) {
    while scale > 0 && value.wrapping_rem(TEN) == i256::ZERO {
        value = value.wrapping_div(TEN);
        scale -= 1;
    }
    (value, scale)
}

/// Ways to drop digits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(in crate::child) enum Cut {
    Round,
    Truncate,
    Floor,
    Ceil,
}

/// Drops the digits behind `digits` ones after the point; a negative number counts before the point.
pub(in crate::child) fn cut(value: i256, scale: u8, digits: i64, how: Cut) -> Option<i256> {
    let Ok(dropped) = u32::try_from(i64::from(scale).saturating_sub(digits)) else {
        return Some(value);
    };
    let Some(unit) = power(dropped) else {
        return Some(i256::ZERO);
    };
    let rest = value.wrapping_rem(unit);
    let whole = value.wrapping_sub(rest);
    match how {
        Cut::Round => divided(value, unit).checked_mul(unit),
        Cut::Floor if rest.is_negative() => whole.checked_sub(unit),
        Cut::Ceil if rest.is_positive() => whole.checked_add(unit),
        Cut::Truncate | Cut::Floor | Cut::Ceil => Some(whole),
    }
}

/// Reads a number such as `-12.5` or `1e3`, with [`MAX_SCALE_DIGITS`] digits behind the point.
pub(in crate::child) fn read(text: &str) -> Option<i256> {
    let text = text.trim();
    let (text, exponent) = match text.split_once(['e', 'E']) {
        Some((text, exponent)) => (text, exponent.parse::<i32>().ok()?),
        None => (text, 0),
    };
    let (negative, text) = match text.strip_prefix(['-', '+']) {
        Some(rest) => (text.starts_with('-'), rest),
        None => (false, text),
    };
    let (whole, part) = text.split_once('.').unwrap_or((text, ""));
    if whole.len() + part.len() == 0 {
        return None;
    }
    let mut value = i256::ZERO;
    // Zeros in front are dropped, so what is left is bounded by the room for it.
    let digits = whole.bytes().chain(part.bytes());
    // Number of digits that have room, from the first one to the last of the scale. The next digit decides the rounding.
    let mut places = i32::try_from(whole.len())
        .ok()?
        .checked_add(exponent)?
        .checked_add(i32::from(MAX_SCALE_DIGITS))?;
    let mut rounds_up = false;
    let mut is_next = true;
    for digit in digits {
        if !digit.is_ascii_digit() {
            return None;
        }
        if places > 0 {
            value = value
                .checked_mul(TEN)?
                .checked_add(i256::from_i128(i128::from(digit - b'0')))?;
            places -= 1;
        } else {
            if places == 0 && is_next {
                rounds_up = digit >= b'5';
            }
            is_next = false;
        }
    }
    if value != i256::ZERO && places > 0 {
        value = value.checked_mul(power(u32::try_from(places).ok()?)?)?;
    }
    if rounds_up {
        value = value.checked_add(i256::ONE)?;
    }
    Some(if negative { value.wrapping_neg() } else { value })
}

/// Reads the double as `PostgreSQL` casts it to numeric: its first 15 digits.
pub(in crate::child) fn of_double(value: f64) -> Option<i256> {
    if value.is_finite() {
        read(&format!("{value:.14e}"))
    } else {
        None
    }
}

/// Reads the number of 32 bits as `PostgreSQL` casts it to numeric: its first 6 digits.
pub(in crate::child) fn of_single(value: f32) -> Option<i256> {
    if value.is_finite() {
        read(&format!("{value:.5e}"))
    } else {
        None
    }
}

/// Writes all digits of a value, without zeros at the end of a fraction.
pub(in crate::child) fn exact_text(value: i256, scale: u8) -> String {
    written(value, scale, usize::from(scale))
}

/// Writes a value with at most [`MAX_SHOWN_DIGITS`] digits behind the point, or as many as [`MIN_SIGNIFICANT_DIGITS`] ones take. `fixed` is a
/// number of digits that it has, zeros included.
pub(in crate::child) fn text(value: i256, scale: u8, fixed: Option<i64>) -> String {
    let digits = value.wrapping_abs().to_string().len();
    let zeros = usize::from(scale).saturating_sub(digits);
    let shown = MAX_SHOWN_DIGITS
        .max(zeros + MIN_SIGNIFICANT_DIGITS)
        .min(usize::from(scale));
    let rounded = i64::try_from(shown)
        .ok()
        .and_then(|shown| cut(value, scale, shown, Cut::Round))
        .unwrap_or(value);
    let mut text = written(rounded, scale, shown);
    let fixed = fixed.map_or(0, |fixed| {
        usize::try_from(fixed.clamp(0, i64::from(MAX_SCALE_DIGITS))).unwrap_or_default()
    });
    if fixed > 0 {
        let part = text.split_once('.').map_or(0, |(_, part)| part.len());
        if part == 0 {
            text.push('.');
        }
        text.extend(std::iter::repeat_n('0', fixed.saturating_sub(part)));
    }
    text
}

fn written(value: i256, scale: u8, shown: usize) -> String {
    let scale = usize::from(scale);
    let digits = format!("{:0>width$}", value.wrapping_abs().to_string(), width = scale + 1);
    let (whole, part) = digits.split_at(digits.len() - scale);
    let part = part[..shown].trim_end_matches('0');
    let sign = if value.is_negative() { "-" } else { "" };
    if part.is_empty() {
        format!("{sign}{whole}")
    } else {
        format!("{sign}{whole}.{part}")
    }
}

/// Returns the double that is nearest to a value.
pub(in crate::child) fn double(value: i256, scale: u8) -> f64 {
    // A quotient of two integers that doubles hold exactly is the nearest double.
    let unit = power(u32::from(scale.saturating_sub(MICROS_DIGITS)));
    if let Some(unit) = unit
        && value.wrapping_rem(unit) == i256::ZERO
        && let Some(few) = value.wrapping_div(unit).to_i128()
        && few.unsigned_abs() < 1 << f64::MANTISSA_DIGITS
    {
        #[expect(clippy::cast_precision_loss, reason = "the bound is checked before")]
        return few as f64 / 10_f64.powi(scale.min(MICROS_DIGITS).into());
    }
    // The standard library reads decimals exactly.
    exact_text(value, scale).parse().unwrap_or(f64::NAN)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Numbers of all sizes, with their scales.
    fn numbers() -> Vec<(i256, u8)> {
        let mut all = Vec::new();
        for text in [
            "1",
            "2",
            "3",
            "7",
            "25",
            "999999999999999999",
            "170141183460469231731687303715884105727",
        ] {
            for scale in [0, 1, 6, 36] {
                let value = i256::from_string(text).unwrap();
                all.push((value, scale));
                all.push((value.wrapping_neg(), scale));
            }
        }
        all
    }

    #[test]
    fn a_quotient_is_the_nearest_number_of_its_scale() {
        let mut found = 0;
        for one in numbers() {
            for other in numbers() {
                let Some(quotient) = quotient(one, other) else { continue };
                // quotient / 10^36 * other, against one: both as integers, where they have room.
                let (left, right) = (
                    quotient.checked_mul(other.0),
                    power(u32::from(MAX_SCALE_DIGITS) + u32::from(other.1) - u32::from(one.1))
                        .and_then(|unit| one.0.checked_mul(unit)),
                );
                if let Some((left, right)) = left.zip(right) {
                    let twice = left.wrapping_sub(right).wrapping_abs().wrapping_mul(i256::from(2));
                    assert!(twice <= other.0.wrapping_abs(), "{one:?} / {other:?} is {quotient}");
                    found += 1;
                }
            }
        }
        assert!(found > 500, "{found}");
    }

    #[test]
    fn both_ways_to_divide_agree() {
        for (above, _) in numbers().into_iter().filter(|(above, _)| !above.is_negative()) {
            for below in [1_u128, 2, 3, 7, 3_600, MAX_NARROW_DIVISOR] {
                for left in [0, 17, 18, 36] {
                    let narrow = narrow_quotient(above.to_i128().unwrap().unsigned_abs(), below, left);
                    let wide = wide_quotient(above, i256::from_parts(below, 0), left);
                    assert_eq!(narrow, wide, "{above} / {below} with {left} digits");
                }
            }
        }
    }

    #[test]
    fn the_double_of_a_number_is_the_one_that_its_digits_read_as() {
        for (value, scale) in numbers() {
            let expected: f64 = exact_text(value, scale).parse().unwrap();
            assert_eq!(
                double(value, scale).to_bits(),
                expected.to_bits(),
                "{value} with scale {scale}"
            );
        }
    }
}

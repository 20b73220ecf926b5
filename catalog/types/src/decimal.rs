//! Decimals of a fixed scale: whole numbers of units of the last digit.
//!
//! Invariant: a decimal of scale `s` has at most [`MAX_DIGITS`] digits, `s` of them after the point.

use serde_json::Number;

/// The most digits of a decimal. With 38, which fit the same column, sums would pass what an engine of 128 bits holds
/// and be other numbers; 28 leave room for ten billion summands.
pub const MAX_DIGITS: u8 = 28;
/// The most digits after the point.
pub const MAX_SCALE: u8 = 18;

/// The most significant digits of a JSON number that is a decimal. Two different decimals of 15 digits are never the
/// same double, so the decimal that was written is known.
const MAX_NUMBER_DIGITS: usize = 15;
/// The first number of units that has too many digits.
const UNITS_END: u128 = 10_u128.pow(MAX_DIGITS as u32);

/// The reason that a value is no decimal of a scale.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DecimalError {
    /// The text has another form than `-?(0|[1-9][0-9]*)(\.[0-9]+)?`.
    #[error("not a decimal: digits without leading zeros, with a point and digits after it or without both")]
    Syntax,
    /// More digits after the point than the scale, or more than [`MAX_DIGITS`] in all, zeros at the end aside.
    #[error("a decimal with too many digits")]
    Digits,
}

/// Returns the units of a decimal that is text: the number times 10 to the power of `scale`.
pub fn parse(text: &[u8], scale: u8) -> Result<i128, DecimalError> {
    let (negative, digits) = match text.strip_prefix(b"-") {
        Some(digits) => (true, digits),
        None => (false, text),
    };
    let point = digits.iter().position(|byte| *byte == b'.');
    let (whole, fraction) = match point {
        Some(point) => (&digits[..point], Some(&digits[point + 1..])),
        None => (digits, None),
    };
    let is_formed = !whole.is_empty()
        && (whole == b"0" || whole[0] != b'0')
        && fraction.is_none_or(|fraction| !fraction.is_empty())
        && whole.iter().chain(fraction.unwrap_or_default()).all(u8::is_ascii_digit);
    if !is_formed {
        return Err(DecimalError::Syntax);
    }
    units(negative, whole, fraction.unwrap_or_default(), scale)
}

/// Returns the units of a JSON number, which is the shortest decimal of its double.
///
/// # Errors
/// [`DecimalError::Digits`] also if that has more than 15 digits: the sender may have written another decimal.
pub fn of_number(number: &Number, scale: u8) -> Result<i128, DecimalError> {
    let written = match (number.as_i64(), number.as_u64(), number.as_f64()) {
        (Some(integer), _, _) => integer.to_string(),
        (None, Some(integer), _) => integer.to_string(),
        (None, None, Some(double)) => format!("{double:e}"),
        (None, None, None) => return Err(DecimalError::Digits),
    };
    let (mantissa, exponent) = written.split_once('e').unwrap_or((&written, "0"));
    let exponent: i64 = exponent.parse().map_err(|_error| DecimalError::Digits)?;
    let (negative, mantissa) = match mantissa.strip_prefix('-') {
        Some(mantissa) => (true, mantissa),
        None => (false, mantissa),
    };
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    // The number is these digits as an integer, times 10 to the power of `exponent`.
    let digits = [whole, fraction].concat();
    let significant = digits.trim_end_matches('0');
    let zeros = digits.len() - significant.len();
    if significant.is_empty() {
        return Ok(0);
    }
    let exponent = exponent + signed(zeros) - signed(fraction.len());
    let places = exponent + i64::from(scale);
    // The bound on the zeros also bounds the work, since a double has up to 308 of them.
    let zeros = usize::try_from(places).map_err(|_error| DecimalError::Digits)?;
    if significant.len() > MAX_NUMBER_DIGITS || zeros > usize::from(MAX_DIGITS) {
        return Err(DecimalError::Digits);
    }
    let mut units_digits = significant.as_bytes().to_vec();
    units_digits.resize(significant.len() + zeros, b'0');
    units(negative, &units_digits, b"", 0)
}

/// Returns the units of digits before and after the point.
fn units(negative: bool, whole: &[u8], fraction: &[u8], scale: u8) -> Result<i128, DecimalError> {
    let (kept, rest) = fraction.split_at(fraction.len().min(usize::from(scale)));
    if whole.len() > usize::from(MAX_DIGITS) || rest.iter().any(|digit| *digit != b'0') {
        return Err(DecimalError::Digits);
    }
    let zeros = usize::from(scale) - kept.len();
    let digits = whole.iter().chain(kept).map(|digit| digit - b'0');
    let mut units = 0_u128;
    for digit in digits.chain(std::iter::repeat_n(0, zeros)) {
        units = units * 10 + u128::from(digit);
        if units >= UNITS_END {
            return Err(DecimalError::Digits);
        }
    }
    let units = units.cast_signed();
    Ok(if negative { -units } else { units })
}

/// Appends the canonical text of a decimal: exactly `scale` digits after the point, no point at scale 0, and no sign of
/// zero.
pub fn write(out: &mut Vec<u8>, units: i128, scale: u8) {
    /// Digits of the largest value, and one.
    const DIGITS: usize = 40;
    if units < 0 {
        out.push(b'-');
    }
    let mut text = [b'0'; DIGITS];
    let (mut rest, mut at) = (units.unsigned_abs(), DIGITS);
    while rest > 0 && at > 0 {
        at -= 1;
        // Most decimals fit 64 bits, whose division is many times as fast.
        let digit = if let Ok(few) = u64::try_from(rest) {
            rest = u128::from(few / 10);
            u8::try_from(few % 10)
        } else {
            let digit = rest % 10;
            rest /= 10;
            u8::try_from(digit)
        };
        text[at] = b'0' + digit.unwrap_or(0);
    }
    // A zero stands before the point, so at least one digit more than the scale is written.
    let scale = usize::from(scale).min(DIGITS - 1);
    let start = at.min(DIGITS - scale - 1);
    let (whole, fraction) = text[start..].split_at(DIGITS - scale - start);
    out.extend_from_slice(whole);
    if !fraction.is_empty() {
        out.push(b'.');
        out.extend_from_slice(fraction);
    }
}

/// Returns the canonical text of a decimal, as [`write`] appends it.
pub fn text(units: i128, scale: u8) -> String {
    let mut text = Vec::with_capacity(usize::from(MAX_DIGITS) + 2);
    write(&mut text, units, scale);
    text.into_iter().map(char::from).collect()
}

fn signed(count: usize) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::{Value, json};

    use super::*;

    fn canonical(of: &str, scale: u8) -> Result<String, DecimalError> {
        parse(of.as_bytes(), scale).map(|units| text(units, scale))
    }

    fn of(number: &Value, scale: u8) -> Result<String, DecimalError> {
        let Value::Number(number) = number else {
            panic!("{number}")
        };
        of_number(number, scale).map(|units| text(units, scale))
    }

    #[test]
    fn equal_decimals_have_one_text() {
        for (written, scale, expected) in [
            ("12.5", 2, "12.50"),
            ("12.50", 2, "12.50"),
            ("12.5000000", 2, "12.50"),
            ("-0.00", 2, "0.00"),
            ("-0", 0, "0"),
            ("0", 18, "0.000000000000000000"),
            ("7.0", 0, "7"),
            ("-0.05", 2, "-0.05"),
            ("9999999999999999999999999999", 0, "9999999999999999999999999999"),
            ("-9999999999.999999999999999999", 18, "-9999999999.999999999999999999"),
        ] {
            assert_eq!(canonical(written, scale).as_deref(), Ok(expected), "{written}");
        }
    }

    #[test]
    fn other_forms_and_too_many_digits_are_refused() {
        for written in [
            "", "-", "012.5", "00", "+1", "1.", ".5", "1e3", "1,5", " 1", "1_0", "--1", "1.5.0", "\u{661}",
        ] {
            assert_eq!(canonical(written, 2), Err(DecimalError::Syntax), "{written}");
        }
        for (written, scale) in [
            ("1.234", 2),
            ("0.1", 0),
            ("10000000000000000000000000000", 0),
            ("10000000000", 18),
            ("99999999999999999999999999999999999999999999999999", 0),
        ] {
            assert_eq!(canonical(written, scale), Err(DecimalError::Digits), "{written}");
        }
        let zeros = format!("1.{}", "0".repeat(1 << 20));
        assert_eq!(canonical(&zeros, 1).as_deref(), Ok("1.0"));
    }

    #[test]
    fn a_number_is_the_shortest_decimal_of_its_double() {
        for (number, scale, expected) in [
            (json!(12.5), 2, "12.50"),
            (json!(12), 2, "12.00"),
            (json!(-0.0), 2, "0.00"),
            (json!(0.1), 18, "0.100000000000000000"),
            (json!(1e20), 0, "100000000000000000000"),
            (json!(-1e-18), 18, "-0.000000000000000001"),
            (json!(999_999_999_999_999_i64), 0, "999999999999999"),
            (json!(1_000_000_000_000_000_000_i64), 0, "1000000000000000000"),
        ] {
            assert_eq!(of(&number, scale).as_deref(), Ok(expected), "{number}");
        }
        for (number, scale) in [
            (json!(0.300_000_000_000_000_04), 2),
            (json!(0.300_000_000_000_000_04), 18),
            (json!(1.234), 2),
            (json!(1e28), 0),
            (json!(1e300), 0),
            (json!(1e-300), 18),
            (json!(1_234_567_890_123_456_i64), 0),
            (json!(u64::MAX), 0),
        ] {
            assert_eq!(of(&number, scale), Err(DecimalError::Digits), "{number}");
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn a_canonical_text_is_the_decimal_that_it_was_made_of(
            units in -9_999_999_999_999_999_999_999_999_999_i128..=9_999_999_999_999_999_999_999_999_999,
            shift in 0_u32..100,
            scale in 0..=MAX_SCALE,
        ) {
            let units = units >> shift;
            let written = text(units, scale);
            prop_assert_eq!(parse(written.as_bytes(), scale), Ok(units), "{}", written);
            let after = written.split_once('.').map_or(0, |(_, after)| after.len());
            prop_assert_eq!(after, usize::from(scale));
        }

        #[test]
        fn a_number_of_few_digits_is_what_its_text_is(text in "-?(0|[1-9][0-9]{0,7})(\\.[0-9]{0,6}[1-9])?", scale in 0..=MAX_SCALE) {
            let number: Number = serde_json::from_str(&text).unwrap();
            prop_assert_eq!(of_number(&number, scale), parse(text.as_bytes(), scale), "{}", text);
        }
    }
}

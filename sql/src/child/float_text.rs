//! Texts of doubles as `PostgreSQL` writes them: the shortest digits that read back as the same number, without a point
//! if it is whole, and with an exponent where it is very small or large.

use std::sync::Arc;

use datafusion::arrow::array::{ArrayRef, AsArray as _, StringArray};
use datafusion::arrow::datatypes::{DataType, Float32Type, Float64Type};
use datafusion::error::{DataFusionError, Result};

/// Exponent from which a double has an exponent in its text.
const DOUBLE_DIGITS: i32 = 15;
/// The same for a number of 32 bits.
const SINGLE_DIGITS: i32 = 6;

/// Returns the texts of doubles, as `Utf8`.
pub(super) fn texts(doubles: &ArrayRef) -> Result<ArrayRef> {
    let texts: StringArray = match doubles.data_type() {
        DataType::Float32 => (doubles.as_primitive::<Float32Type>().iter())
            .map(|value| value.map(|value| text(&format!("{value:e}"), f64::from(value), SINGLE_DIGITS)))
            .collect(),
        DataType::Float64 => (doubles.as_primitive::<Float64Type>().iter())
            .map(|value| value.map(|value| text(&format!("{value:e}"), value, DOUBLE_DIGITS)))
            .collect(),
        other => return Err(DataFusionError::Plan(format!("{other} is not a double"))),
    };
    Ok(Arc::new(texts))
}

/// Returns the text of a number from its shortest digits and exponent, such as `1.25e-7`.
fn text(shortest: &str, value: f64, digits: i32) -> String {
    if value.is_nan() {
        return "NaN".to_owned();
    }
    if value.is_infinite() {
        return if value > 0.0 { "Infinity" } else { "-Infinity" }.to_owned();
    }
    let (mantissa, exponent) = shortest.split_once('e').unwrap_or((shortest, "0"));
    let exponent: i32 = exponent.parse().unwrap_or_default();
    if value != 0.0 && !(-4..digits).contains(&exponent) {
        let sign = if exponent < 0 { '-' } else { '+' };
        return format!("{mantissa}e{sign}{:02}", exponent.unsigned_abs());
    }
    // Without an exponent the shortest digits are those of the formatter, up to the trailing zeros of a whole number.
    let sign = if mantissa.starts_with('-') { "-" } else { "" };
    let plain: String = mantissa.chars().filter(char::is_ascii_digit).collect();
    let places = usize::try_from(exponent.unsigned_abs()).unwrap_or_default();
    if exponent < 0 {
        return format!("{sign}0.{}{plain}", "0".repeat(places - 1));
    }
    if plain.len() <= places + 1 {
        return format!("{sign}{plain}{}", "0".repeat(places + 1 - plain.len()));
    }
    format!("{sign}{}.{}", &plain[..=places], &plain[places + 1..])
}

#[cfg(test)]
mod tests {
    use datafusion::arrow::array::{Float32Array, Float64Array};

    use super::*;

    #[test]
    fn a_double_reads_as_in_postgresql() {
        for (value, expected) in [
            (7.0, "7"),
            (0.0, "0"),
            (-1.5, "-1.5"),
            (0.1, "0.1"),
            (0.0001, "0.0001"),
            (1e-5, "1e-05"),
            (-1.2e-7, "-1.2e-07"),
            (100_000_000_000_000.0, "100000000000000"),
            (123_456_789_012_345.0, "123456789012345"),
            (1e15, "1e+15"),
            (1_234_567_890_123_456.0, "1.234567890123456e+15"),
            (1.5e300, "1.5e+300"),
            (5e-324, "5e-324"),
            (0.3 - 0.1, "0.19999999999999998"),
            (f64::NAN, "NaN"),
            (f64::NEG_INFINITY, "-Infinity"),
        ] {
            let array: ArrayRef = Arc::new(Float64Array::from(vec![value]));
            assert_eq!(texts(&array).unwrap().as_string::<i32>().value(0), expected);
        }
        for (value, expected) in [
            (0.1_f32, "0.1"),
            (123_456.0, "123456"),
            (1e6, "1e+06"),
            (16_777_216.0, "1.6777216e+07"),
        ] {
            let array: ArrayRef = Arc::new(Float32Array::from(vec![value]));
            assert_eq!(texts(&array).unwrap().as_string::<i32>().value(0), expected);
        }
    }
}

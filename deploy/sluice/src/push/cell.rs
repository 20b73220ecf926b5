//! Values of cells of CSV, and of texts of Parquet, in the types of fields.
//!
//! Invariant: a text that is no value of its type is refused, and no digit is dropped.

use std::borrow::Cow;

use anyhow::{Context, bail};
use types::json;

/// The most significant digits of a double that is written exactly.
const DIGITS_OF_DOUBLE: usize = 767;

pub(super) fn integer(cell: &str) -> anyhow::Result<i64> {
    cell.parse().context("it is no integer of 64 bits")
}

/// Returns a number as JSON writes it (RFC 8259 section 6), with all its digits. `+1`, `007`, `.5` and `5.` are numbers too.
pub(super) fn number(cell: &str) -> anyhow::Result<Cow<'_, str>> {
    let is_finite = cell.parse::<f64>().is_ok_and(f64::is_finite);
    if !is_finite {
        bail!("it is no number");
    }
    // What Rust reads as a finite number is a sign, digits with at most one point, and an exponent.
    let (sign, rest) = match cell.strip_prefix('-') {
        Some(rest) => ("-", rest),
        None => ("", cell.strip_prefix('+').unwrap_or(cell)),
    };
    let (mantissa, exponent) = rest.split_at(rest.find(['e', 'E']).unwrap_or(rest.len()));
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let digits = match whole.trim_start_matches('0') {
        "" => "0",
        digits => digits,
    };
    let point = if fraction.is_empty() { "" } else { "." };
    if digits == whole && !cell.starts_with('+') && !mantissa.ends_with('.') {
        return Ok(cell.into());
    }
    Ok(format!("{sign}{digits}{point}{fraction}{exponent}").into())
}

/// Returns a JSON text in one line, with all digits of its numbers.
pub(super) fn compact(text: &str) -> anyhow::Result<Cow<'_, str>> {
    json::parse(text.as_bytes()).context("it is not JSON")?;
    // JSON has line ends only between tokens (RFC 8259 section 7).
    if text.contains(['\n', '\r']) {
        return Ok(text.replace(['\n', '\r'], " ").into());
    }
    Ok(text.into())
}

pub(super) fn boolean(cell: &str) -> anyhow::Result<bool> {
    match cell {
        "true" | "TRUE" | "True" | "1" => Ok(true),
        "false" | "FALSE" | "False" | "0" => Ok(false),
        _ => bail!("it is neither true nor false"),
    }
}

/// Parses a number as a double and fails if the double drops digits.
pub(super) fn double(cell: &str) -> anyhow::Result<f64> {
    let text = number(cell)?;
    let double: f64 = text.parse()?;
    #[expect(clippy::cast_possible_truncation, reason = "what a double of at most 2^64 says")]
    let is_kept = match text
        .parse::<i64>()
        .map(i128::from)
        .or_else(|_| text.parse::<u64>().map(i128::from))
    {
        // Every integer of 64 bits that is stored as a double is one exactly.
        Ok(integer) => double as i128 == integer,
        Err(_) => holds(double, &text),
    };
    if !is_kept {
        bail!("the conversion would round it");
    }
    Ok(double)
}

/// Returns true if a double, printed with as many significant digits as `text` has, is the same decimal.
fn holds(double: f64, text: &str) -> bool {
    let (digits, exponent) = scientific(text);
    if digits.is_empty() || digits.len() > DIGITS_OF_DOUBLE {
        return digits.is_empty();
    }
    let printed = format!("{:.*e}", digits.len() - 1, double);
    scientific(&printed) == (digits, exponent)
}

/// Returns the significant digits of a number of JSON, without zeros at the end, and the power of ten of the first.
fn scientific(text: &str) -> (String, i64) {
    let (mantissa, exponent) = text.split_once(['e', 'E']).unwrap_or((text, "0"));
    let (whole, fraction) = mantissa
        .trim_start_matches('-')
        .split_once('.')
        .unwrap_or((mantissa.trim_start_matches('-'), ""));
    let all = format!("{whole}{fraction}");
    let digits = all.trim_start_matches('0');
    let zeros = all.len() - digits.len();
    let first = i64::try_from(whole.len()).unwrap_or(i64::MAX) - i64::try_from(zeros).unwrap_or(i64::MAX) - 1;
    let exponent = exponent.parse::<i64>().unwrap_or(0);
    (digits.trim_end_matches('0').to_owned(), exponent.saturating_add(first))
}

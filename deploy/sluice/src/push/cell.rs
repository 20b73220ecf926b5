//! Values of cells of CSV, and of texts of Parquet, in the types of fields.
//!
//! Invariant: a text that is no value of its type is refused, and no digit is dropped.

use std::borrow::Cow;

use anyhow::{Context, bail};
use types::json;

pub(super) fn integer(cell: &str) -> anyhow::Result<i64> {
    cell.parse().ok().context("it is no integer of 64 bits")
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
    json::parse(text.as_bytes()).ok().context("it is not JSON")?;
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
    json::whole_double(&number(cell)?).context("the conversion would round it")
}

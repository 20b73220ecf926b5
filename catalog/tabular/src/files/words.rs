//! Values of texts in the types of fields.
//!
//! Invariant: a text that is no value of its type is refused, and no digit is dropped.

use std::borrow::Cow;

use types::json;

pub(super) fn integer(text: &str) -> Result<i64, &'static str> {
    text.parse().map_err(|_error| "it is no integer of 64 bits")
}

/// Returns a number as JSON writes it (RFC 8259 section 6), with all its digits. `+1`, `007`, `.5` and `5.` are numbers too.
pub(super) fn number(text: &str) -> Result<Cow<'_, str>, &'static str> {
    if !text.parse::<f64>().is_ok_and(f64::is_finite) {
        return Err("it is no number");
    }
    // What Rust reads as a finite number is a sign, digits with at most one point, and an exponent.
    let (sign, rest) = match text.strip_prefix('-') {
        Some(rest) => ("-", rest),
        None => ("", text.strip_prefix('+').unwrap_or(text)),
    };
    let (mantissa, exponent) = rest.split_at(rest.find(['e', 'E']).unwrap_or(rest.len()));
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let digits = match whole.trim_start_matches('0') {
        "" => "0",
        digits => digits,
    };
    let point = if fraction.is_empty() { "" } else { "." };
    if digits == whole && !text.starts_with('+') && !mantissa.ends_with('.') {
        return Ok(text.into());
    }
    Ok(format!("{sign}{digits}{point}{fraction}{exponent}").into())
}

/// Returns a JSON text in one line, with all digits of its numbers.
pub(super) fn compact(text: &str) -> Result<Cow<'_, str>, &'static str> {
    json::parse(text.as_bytes()).map_err(|_error| "it is not JSON")?;
    // JSON has line ends only between tokens (RFC 8259 section 7).
    if text.contains(['\n', '\r']) {
        return Ok(text.replace(['\n', '\r'], " ").into());
    }
    Ok(text.into())
}

pub(super) fn boolean(text: &str) -> Result<bool, &'static str> {
    match text {
        "true" | "TRUE" | "True" | "1" => Ok(true),
        "false" | "FALSE" | "False" | "0" => Ok(false),
        _ => Err("it is neither true nor false"),
    }
}

/// Parses a number as a double and fails if the double drops digits.
pub(super) fn double(text: &str) -> Result<f64, &'static str> {
    json::whole_double(&number(text)?).ok_or("the conversion would round it")
}

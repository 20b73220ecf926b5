//! Column builders of a batch, and the conversion of JSON values to column types.
//!
//! Invariant: every call of [`ColumnBuilder::append`] or [`ColumnBuilder::append_null`] adds one entry.

use std::sync::Arc;

use arrow::array::{
    Array as _, ArrayRef, BinaryBuilder, BooleanBuilder, Date32Builder, Decimal128Builder, Float64Builder,
    Int64Builder, StringArray, StringBuilder, TimestampMicrosecondBuilder,
};
use serde_json::{Number, Value};

use crate::decimal::{self, DecimalError};
use crate::{Date, FieldType, Timestamp, canonical, date};

/// 2^53: every integer up to it is exact as an IEEE double.
const EXACT_DOUBLE: u64 = 1 << 53;

/// The range of a value's text in its line, without quotes.
pub(super) type Span = (usize, usize);

/// A value on the fast path: it needs no unescaping, and mostly no formatting.
#[derive(Clone, Copy, Debug)]
pub(super) enum PlainValue {
    Null,
    /// Text without characters that the canonical form escapes.
    Text(Span),
    /// An integer spelled in its canonical form.
    Integer(i64, Span),
    /// A double, with its text if that is the canonical form.
    Number(f64, Option<Span>),
    Boolean(bool),
    /// An instant with its text, which is the canonical form.
    Instant(i64, Span),
    /// A day with its text, which is the canonical form.
    Day(Date, Span),
    /// The units of a decimal as bytes. As a number of 128 bits they would make every value larger.
    Decimal([u8; 16]),
}

/// The builder of one column.
#[derive(Debug)]
pub(super) enum ColumnBuilder {
    /// Text as bytes, checked for UTF-8 elsewhere.
    Text(BinaryBuilder),
    Json(StringBuilder),
    Integer(Int64Builder),
    Number(Float64Builder),
    Boolean(BooleanBuilder),
    Timestamp(TimestampMicrosecondBuilder),
    Date(Date32Builder),
    /// Units, with the scale.
    Decimal(Decimal128Builder, u8),
}

impl ColumnBuilder {
    /// Creates a builder with space for `rows` values and, in text columns, `text` bytes in all.
    pub(super) fn new(kind: FieldType, rows: usize, text: usize) -> Self {
        match kind {
            FieldType::String => Self::Text(BinaryBuilder::with_capacity(rows, text)),
            FieldType::Json => Self::Json(StringBuilder::with_capacity(rows, text)),
            FieldType::Integer => Self::Integer(Int64Builder::with_capacity(rows)),
            FieldType::Number => Self::Number(Float64Builder::with_capacity(rows)),
            FieldType::Boolean => Self::Boolean(BooleanBuilder::with_capacity(rows)),
            FieldType::Timestamp => {
                Self::Timestamp(TimestampMicrosecondBuilder::with_capacity(rows).with_timezone("UTC"))
            }
            FieldType::Date => Self::Date(Date32Builder::with_capacity(rows)),
            FieldType::Decimal(scale) => Self::Decimal(
                Decimal128Builder::with_capacity(rows).with_data_type(kind.arrow()),
                scale,
            ),
        }
    }

    pub(super) fn append_null(&mut self) {
        match self {
            Self::Text(builder) => builder.append_null(),
            Self::Json(builder) => builder.append_null(),
            Self::Integer(builder) => builder.append_null(),
            Self::Number(builder) => builder.append_null(),
            Self::Boolean(builder) => builder.append_null(),
            Self::Timestamp(builder) => builder.append_null(),
            Self::Date(builder) => builder.append_null(),
            Self::Decimal(builder, _) => builder.append_null(),
        }
    }

    /// Appends a value that is not null, and its canonical form to `out`. If the value does not fit, appends a null,
    /// leaves `out` unchanged, and returns the broken rule.
    pub(super) fn append(&mut self, value: &Value, out: &mut Vec<u8>) -> Result<(), &'static str> {
        let rule = match (&mut *self, value) {
            (Self::Text(builder), Value::String(text)) => {
                builder.append_value(text);
                canonical::write_string(out, text);
                return Ok(());
            }
            // Every JSON value fits, so this arm comes before the checks of other types.
            (Self::Json(builder), value) => {
                let start = out.len();
                canonical::write_value(out, value);
                // Canonical JSON is UTF-8, so the conversion copies nothing.
                builder.append_value(String::from_utf8_lossy(&out[start..]));
                return Ok(());
            }
            (Self::Boolean(builder), &Value::Bool(flag)) => {
                builder.append_value(flag);
                out.extend_from_slice(if flag { b"true" } else { b"false" });
                return Ok(());
            }
            (Self::Integer(builder), Value::Number(number)) => match integer(number) {
                Ok(integer) => {
                    builder.append_value(integer);
                    canonical::write_integer(out, integer);
                    return Ok(());
                }
                Err(rule) => rule,
            },
            (Self::Number(builder), Value::Number(number)) => match double(number) {
                Ok(double) => {
                    // Adding 0.0 turns -0.0 into 0.0. The canonical form is `0` for both, but
                    // query engines disagree on whether they are equal.
                    builder.append_value(double + 0.0);
                    canonical::write_double(out, double);
                    return Ok(());
                }
                Err(rule) => rule,
            },
            // Most timestamps have the canonical spelling and need no calendar library.
            (Self::Timestamp(builder), Value::String(text)) => {
                if let Some(instant) = plain_instant(text.as_bytes()) {
                    builder.append_value(instant);
                    canonical::write_string(out, text);
                    return Ok(());
                }
                if let Ok(instant) = text.parse::<Timestamp>() {
                    builder.append_value(instant.micros());
                    canonical::write_string(out, &instant.to_string());
                    return Ok(());
                }
                "type"
            }
            (Self::Date(builder), Value::String(text)) => {
                if let Some(day) = date::parse(text.as_bytes()) {
                    builder.append_value(day.days());
                    canonical::write_string(out, text);
                    return Ok(());
                }
                "type"
            }
            (Self::Decimal(builder, scale), Value::String(_) | Value::Number(_)) => {
                let units = match value {
                    Value::String(text) => decimal::parse(text.as_bytes(), *scale),
                    Value::Number(number) => decimal::of_number(number, *scale),
                    _ => Err(DecimalError::Syntax),
                };
                match units {
                    Ok(units) => {
                        append_decimal(builder, units, *scale, out);
                        return Ok(());
                    }
                    Err(DecimalError::Syntax) => "type",
                    Err(DecimalError::Digits) => "range",
                }
            }
            _ => "type",
        };
        self.append_null();
        Err(rule)
    }

    /// Appends a fast-path value of `line` that is not null and has the column's type, and its canonical form to `out`.
    pub(super) fn append_plain(&mut self, value: PlainValue, line: &[u8], out: &mut Vec<u8>) {
        let spelled = |(start, end): Span| line.get(start..end).unwrap_or_default();
        match (&mut *self, value) {
            (Self::Text(builder), PlainValue::Text(span)) => {
                let text = spelled(span);
                builder.append_value(text);
                out.push(b'"');
                out.extend_from_slice(text);
                out.push(b'"');
            }
            (Self::Integer(builder), PlainValue::Integer(integer, span)) => {
                builder.append_value(integer);
                out.extend_from_slice(spelled(span));
            }
            (Self::Number(builder), PlainValue::Number(double, span)) => {
                // Turns -0.0 into 0.0, as in [`Self::append`].
                builder.append_value(double + 0.0);
                match span {
                    Some(span) => out.extend_from_slice(spelled(span)),
                    None => canonical::write_double(out, double),
                }
            }
            (Self::Boolean(builder), PlainValue::Boolean(flag)) => {
                builder.append_value(flag);
                out.extend_from_slice(if flag { b"true" } else { b"false" });
            }
            (Self::Timestamp(builder), PlainValue::Instant(micros, span)) => {
                builder.append_value(micros);
                out.push(b'"');
                out.extend_from_slice(spelled(span));
                out.push(b'"');
            }
            (Self::Date(builder), PlainValue::Day(day, span)) => {
                builder.append_value(day.days());
                out.push(b'"');
                out.extend_from_slice(spelled(span));
                out.push(b'"');
            }
            (Self::Decimal(builder, scale), PlainValue::Decimal(units)) => {
                append_decimal(builder, i128::from_le_bytes(units), *scale, out);
            }
            // Unreachable: values are made for the types of their columns.
            _ => {
                self.append_null();
                out.extend_from_slice(b"null");
            }
        }
    }

    pub(super) fn finish(mut self) -> ArrayRef {
        match &mut self {
            Self::Text(builder) => {
                let bytes = builder.finish();
                let rows = bytes.len();
                // Only text is appended, so the conversion cannot fail.
                Arc::new(StringArray::try_from_binary(bytes).unwrap_or_else(|_| StringArray::new_null(rows)))
            }
            Self::Json(builder) => Arc::new(builder.finish()),
            Self::Integer(builder) => Arc::new(builder.finish()),
            Self::Number(builder) => Arc::new(builder.finish()),
            Self::Boolean(builder) => Arc::new(builder.finish()),
            Self::Timestamp(builder) => Arc::new(builder.finish()),
            Self::Date(builder) => Arc::new(builder.finish()),
            Self::Decimal(builder, _) => Arc::new(builder.finish()),
        }
    }
}

/// Appends a decimal to its column, and its canonical form to `out`.
fn append_decimal(builder: &mut Decimal128Builder, units: i128, scale: u8, out: &mut Vec<u8>) {
    builder.append_value(units);
    out.push(b'"');
    decimal::write(out, units, scale);
    out.push(b'"');
}

/// Converts a JSON number to an integer; `1.0` is 1. Returns the broken rule if it is fractional or out of range.
fn integer(number: &Number) -> Result<i64, &'static str> {
    if let Some(integer) = number.as_i64() {
        return Ok(integer);
    }
    match number.as_f64() {
        Some(double) if double.fract() != 0.0 => Err("type"),
        #[expect(
            clippy::cast_precision_loss,
            clippy::cast_possible_truncation,
            reason = "below 2^53 they are exact"
        )]
        // 2^53 itself is excluded: the next integer is rounded to it.
        Some(double) if !number.is_u64() && double.abs() < EXACT_DOUBLE as f64 => Ok(double as i64),
        _ => Err("range"),
    }
}

/// Converts a JSON number to a double. An integer that a double would round is out of range.
fn double(number: &Number) -> Result<f64, &'static str> {
    // An integer is exact if its significant bits, without trailing zeros, fit into 53 bits.
    let magnitude = number.as_i64().map(i64::unsigned_abs).or_else(|| number.as_u64());
    let significant = magnitude
        .filter(|&magnitude| magnitude != 0)
        .map(|magnitude| magnitude >> magnitude.trailing_zeros());
    // Rounding would store another number than the contributor sent.
    if significant.is_some_and(|significant| significant > EXACT_DOUBLE) {
        return Err("range");
    }
    number.as_f64().filter(|double| double.is_finite()).ok_or("range")
}

/// Parses a timestamp with the canonical spelling `YYYY-MM-DDTHH:MM:SSZ` without a calendar library and returns its
/// microseconds. Returns `None` for any other text, also for a timestamp in another spelling.
pub(super) fn plain_instant(text: &[u8]) -> Option<i64> {
    const FORM: &[u8; 20] = b"0000-00-00T00:00:00Z";
    let text: &[u8; 20] = text.try_into().ok()?;
    let formed = text.iter().zip(FORM).fold(true, |formed, (byte, form)| {
        formed
            & if *form == b'0' {
                byte.is_ascii_digit()
            } else {
                byte == form
            }
    });
    if !formed {
        return None;
    }
    let two = |at: usize| i64::from(text[at] - b'0') * 10 + i64::from(text[at + 1] - b'0');
    let (hour, minute, second) = (two(11), two(14), two(17));
    if hour > 23 || minute > 59 || second > 59 {
        return None;
    }
    let days = date::days_of(text.first_chunk()?)?;
    Some((((days * 24 + hour) * 60 + minute) * 60 + second) * 1_000_000)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn agrees(text: &str) -> Result<(), TestCaseError> {
        if let Some(micros) = plain_instant(text.as_bytes()) {
            let instant = text.parse::<Timestamp>();
            prop_assert_eq!(instant.map(Timestamp::micros), Ok(micros), "{}", text);
            prop_assert_eq!(Timestamp::from_micros(micros).to_string(), text);
        }
        Ok(())
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn a_plain_timestamp_is_what_the_calendar_says(
            seconds in prop_oneof![-62_135_596_800_i64..=253_402_300_799, 253_402_128_000_i64..=253_402_300_799],
        ) {
            let text = Timestamp::from_micros(seconds * 1_000_000).to_string();
            prop_assert_eq!(plain_instant(text.as_bytes()), Some(seconds * 1_000_000));
            agrees(&text)?;
        }

        #[test]
        fn no_other_text_is_a_plain_timestamp(
            parts in (0_u32..10_000, 0_u32..20, 0_u32..40, 0_u32..30, 0_u32..70, 0_u32..70),
            mark in "[Zz+T ]",
        ) {
            let (year, month, day, hour, minute, second) = parts;
            agrees(&format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}{mark}"))?;
        }
    }

    #[test]
    fn days_that_do_not_exist_are_left_to_the_calendar() {
        for text in [
            "2026-02-29T00:00:00Z",
            "1900-02-29T00:00:00Z",
            "2026-00-01T00:00:00Z",
            "2026-13-01T00:00:00Z",
            "2026-11-21T24:00:00Z",
            "2026-11-21T23:59:60Z",
            "2026-11-21t00:00:00Z",
            "2026-11-21T00:00:00z",
            "2026-11-21T00:00:0:Z",
        ] {
            assert_eq!(plain_instant(text.as_bytes()), None, "{text}");
        }
        assert_eq!(plain_instant(b"2000-02-29T00:00:00Z"), Some(951_782_400_000_000));
    }
}

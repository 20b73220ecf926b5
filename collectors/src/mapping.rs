//! Mapping of a record of a source to a record of the contract.
//!
//! Invariant: a value that is not of the type of its field makes the record fail; it is never cut, guessed or left out.
//! A null, an empty text and a missing member are absent.

use serde_json::{Map, Number, Value, json};
use tabular::values::{ValueParse, Zone};
use types::contract::FieldTypeName;
use types::json::whole_double;
use types::{Date, Timestamp, decimal};

use crate::source::{CollectorSource, FieldMap};

/// Name of the only member of a number that is kept as it was written. JSON of this service has no such name.
const WRITTEN_MARK: &str = "\0";

/// Returns the value of a number of which a double drops digits.
pub(crate) fn written_number(number: &str) -> Value {
    json!({ WRITTEN_MARK: number })
}

/// Returns the text of such a number.
fn written(value: &Value) -> Option<&str> {
    value.as_object()?.get(WRITTEN_MARK)?.as_str()
}

/// Returns true if a value is such a number, or has one.
fn has_written(value: &Value) -> bool {
    match value {
        Value::Array(items) => items.iter().any(has_written),
        Value::Object(members) => members.contains_key(WRITTEN_MARK) || members.values().any(has_written),
        _ => false,
    }
}

/// Maps a record; `None` if it is no record of the contract.
pub(crate) fn record(source: &CollectorSource, raw: &Value) -> Option<Value> {
    let mut record = Map::new();
    for field in &source.text.fields {
        let value = match (&field.constant, &field.from) {
            (Some(constant), _) => Some(constant.clone()),
            // `convert` ends the whole record by `?`: a value of a wrong type must not become an absent
            // one.
            (None, Some(from)) => match raw.pointer(from).filter(|value| !is_absent(value)) {
                Some(value) => Some(convert(field, value)?),
                None => None,
            },
            (None, None) => None,
        };
        match value {
            Some(value) => {
                record.insert(field.name.clone(), value);
            }
            None if field.required => return None,
            None => {}
        }
    }
    Some(Value::Object(record))
}

fn is_absent(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::String(text) => text.trim().is_empty(),
        _ => false,
    }
}

fn convert(field: &FieldMap, value: &Value) -> Option<Value> {
    if let Some(number) = written(value) {
        // Only a text holds all of its digits.
        return match field.kind {
            FieldTypeName::String => Some(number.into()),
            FieldTypeName::Decimal => decimal_text(field, number),
            _ => None,
        };
    }
    match field.kind {
        FieldTypeName::String => match value {
            Value::String(text) => Some(text.trim().into()),
            Value::Number(number) => Some(number.to_string().into()),
            Value::Bool(flag) => Some(flag.to_string().into()),
            _ => None,
        },
        // Texts are parsed in full: "7 apples" is no 7, as a column that changed its meaning must be
        // noticed.
        FieldTypeName::Integer => match value {
            Value::Number(number) => integer(number).map(Value::from),
            Value::String(text) => text.trim().parse::<i64>().ok().map(Value::from),
            _ => None,
        },
        FieldTypeName::Number => match value {
            Value::Number(number) if number.is_f64() => Some(value.clone()),
            // An integer of 64 bits may have more digits than a double keeps.
            Value::Number(number) => whole_double(&number.to_string()).map(|_| value.clone()),
            Value::String(text) => whole_double(text.trim()).and_then(Number::from_f64).map(Value::Number),
            _ => None,
        },
        FieldTypeName::Boolean => match value {
            Value::Bool(_) => Some(value.clone()),
            Value::String(text) => text.trim().to_ascii_lowercase().parse::<bool>().ok().map(Value::Bool),
            _ => None,
        },
        FieldTypeName::Timestamp => instant(field.format.as_deref(), value),
        FieldTypeName::Json => (!has_written(value)).then(|| value.clone()),
        FieldTypeName::Date => Some(day(field.format.as_deref(), value.as_str()?.trim())?.to_string().into()),
        FieldTypeName::Decimal => match value {
            Value::String(text) => decimal_text(field, text.trim()),
            Value::Number(number) => {
                let scale = scale(field)?;
                Some(decimal::text(decimal::of_number(number, scale).ok()?, scale).into())
            }
            _ => None,
        },
    }
}

/// Returns the canonical text of a decimal that is written as text.
fn decimal_text(field: &FieldMap, text: &str) -> Option<Value> {
    let scale = scale(field)?;
    Some(decimal::text(decimal::parse(text.as_bytes(), scale).ok()?, scale).into())
}

/// Returns the scale of a decimal, which the definition was checked to have.
fn scale(field: &FieldMap) -> Option<u8> {
    u8::try_from(field.scale?).ok()
}

/// Reads a day, by a pattern of strptime(3) if `format` is one.
fn day(format: Option<&str>, text: &str) -> Option<Date> {
    match format.filter(|format| *format != "date") {
        None => text.parse().ok(),
        Some(pattern) => ValueParse::new(pattern)
            .ok()?
            .read(text.as_bytes())
            .ok()?
            .date()?
            // It is shown as `YYYY-MM-DD`.
            .to_string()
            .parse()
            .ok(),
    }
}

#[expect(clippy::cast_possible_truncation, reason = "the range is checked")]
fn integer(number: &Number) -> Option<i64> {
    // 2^53: beyond it a double names no single integer.
    const EXACT: f64 = 9_007_199_254_740_992.0;
    number.as_i64().or_else(|| {
        let double = number.as_f64()?;
        (double.fract() == 0.0 && double.abs() <= EXACT).then_some(double as i64)
    })
}

/// Reads a time. Digits finer than a microsecond are cut, which a contract cannot hold.
fn instant(format: Option<&str>, value: &Value) -> Option<Value> {
    let text = || value.as_str().map(str::trim);
    let Some(format) = format else {
        let instant = Timestamp::from_micros(text()?.parse::<jiff::Timestamp>().ok()?.as_microsecond());
        return instant.is_sayable().then(|| instant.to_string().into());
    };
    let (form, word) = match format {
        "unix-seconds" | "unix-milliseconds" | "unix-microseconds" => (format, whole(value)?.to_string()),
        // Without a time of day it is midnight.
        "date" => ("%Y-%m-%d", text()?.to_owned()),
        form => (form, text()?.to_owned()),
    };
    let moment = ValueParse::new(form).ok()?.read(word.as_bytes()).ok()?;
    let mut instant = Vec::new();
    // Without an offset the time is in UTC.
    moment.cut().write_instant(&Zone::Fixed(0), false, &mut instant).ok()?;
    String::from_utf8(instant).ok().map(Value::from)
}

/// Returns a whole number that is written as a number or as text.
fn whole(value: &Value) -> Option<i64> {
    match value {
        Value::Number(number) => integer(number),
        Value::String(text) => text.trim().parse().ok(),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn field(kind: FieldTypeName, format: Option<&str>) -> FieldMap {
        FieldMap {
            name: "at".to_owned(),
            kind,
            scale: (kind == FieldTypeName::Decimal).then_some(2),
            required: true,
            from: Some("/at".to_owned()),
            constant: None,
            format: format.map(str::to_owned),
        }
    }

    #[test]
    fn a_number_keeps_its_digits_or_its_record_fails() {
        let long = written_number("1000000000000000000007");
        for (kind, value, expected) in [
            (FieldTypeName::Number, long.clone(), None),
            (FieldTypeName::Integer, long.clone(), None),
            (FieldTypeName::Json, json!({"a": [long]}), None),
            (FieldTypeName::String, long, Some(json!("1000000000000000000007"))),
            (FieldTypeName::Number, json!(" 0.333333333333333333 "), None),
            (FieldTypeName::Number, json!("9007199254740993"), None),
            (FieldTypeName::Number, json!(9_007_199_254_740_993_u64), None),
            (FieldTypeName::Number, json!("1e-400"), None),
            (FieldTypeName::Number, json!("NaN"), None),
            (
                FieldTypeName::Number,
                json!("9007199254740992"),
                Some(json!(9_007_199_254_740_992.0)),
            ),
            (
                FieldTypeName::Number,
                json!("2.220446049250313081e-16"),
                Some(json!(2.220_446_049_250_313e-16)),
            ),
            (FieldTypeName::Number, json!("+12.50"), Some(json!(12.5))),
            (FieldTypeName::Json, json!({"a": [1.5]}), Some(json!({"a": [1.5]}))),
        ] {
            assert_eq!(convert(&field(kind, None), &value), expected, "{kind:?} {value}");
        }
    }

    #[test]
    fn times_of_every_form_become_rfc_3339() {
        for (format, value, expected) in [
            (
                None,
                json!("2026-11-24T10:00:00.123456789+01:00"),
                Some("2026-11-24T09:00:00.123456Z"),
            ),
            (Some("unix-seconds"), json!("1700000000"), Some("2023-11-14T22:13:20Z")),
            (
                Some("unix-milliseconds"),
                json!(1_700_000_000_040_i64),
                Some("2023-11-14T22:13:20.04Z"),
            ),
            (
                Some("rfc2822"),
                json!("Tue, 24 Nov 2026 10:00:00 GMT"),
                Some("2026-11-24T10:00:00Z"),
            ),
            (Some("date"), json!("2026-11-24"), Some("2026-11-24T00:00:00Z")),
            (Some("%Y%m%d"), json!("20261124"), Some("2026-11-24T00:00:00Z")),
            (
                Some("%Y-%m-%d %H:%M"),
                json!("2026-11-24 07:05"),
                Some("2026-11-24T07:05:00Z"),
            ),
            (Some("date"), json!("2026-13-24"), None),
            (Some("unix-seconds"), json!(i64::MAX), None),
            (None, json!("yesterday"), None),
            (None, json!(5), None),
        ] {
            let mapped = convert(&field(FieldTypeName::Timestamp, format), &value);
            assert_eq!(mapped, expected.map(Value::from), "{format:?} {value}");
        }
    }

    #[test]
    fn a_value_of_another_type_is_no_value() {
        for (kind, value, expected) in [
            (FieldTypeName::Integer, json!("7"), Some(json!(7))),
            (FieldTypeName::Integer, json!(7.0), Some(json!(7))),
            (FieldTypeName::Integer, json!(7.5), None),
            (FieldTypeName::Integer, json!("7 apples"), None),
            (FieldTypeName::Number, json!("1.25"), Some(json!(1.25))),
            (FieldTypeName::Number, json!("NaN"), None),
            (FieldTypeName::Number, json!({}), None),
            (FieldTypeName::Boolean, json!("True"), Some(json!(true))),
            (FieldTypeName::Boolean, json!(1), None),
            (FieldTypeName::String, json!(5), Some(json!("5"))),
            (FieldTypeName::String, json!(["a"]), None),
            (FieldTypeName::Json, json!(["a"]), Some(json!(["a"]))),
        ] {
            assert_eq!(convert(&field(kind, None), &value), expected, "{kind:?} {value}");
        }
    }

    #[test]
    fn days_and_decimals_keep_what_was_written() {
        for (kind, format, value, expected) in [
            (FieldTypeName::Date, None, json!(" 2020-02-29 "), Some("2020-02-29")),
            (FieldTypeName::Date, None, json!("2021-02-29"), None),
            (FieldTypeName::Date, None, json!(20_200_229), None),
            (
                FieldTypeName::Date,
                Some("date"),
                json!("2020-02-29"),
                Some("2020-02-29"),
            ),
            (
                FieldTypeName::Date,
                Some("%d.%m.%Y"),
                json!("29.02.2020"),
                Some("2020-02-29"),
            ),
            (FieldTypeName::Date, Some("%d.%m.%Y"), json!("30.02.2020"), None),
            (FieldTypeName::Decimal, None, json!("12.5"), Some("12.50")),
            (FieldTypeName::Decimal, None, json!(12.5), Some("12.50")),
            (FieldTypeName::Decimal, None, json!("12.345"), None),
            (FieldTypeName::Decimal, None, json!(0.300_000_000_000_000_04), None),
            (
                FieldTypeName::Decimal,
                None,
                written_number("1000000000000000000007"),
                Some("1000000000000000000007.00"),
            ),
        ] {
            let mapped = convert(&field(kind, format), &value);
            assert_eq!(mapped, expected.map(Value::from), "{kind:?} {format:?} {value}");
        }
    }
}

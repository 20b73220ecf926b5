//! Values of Parquet, Arrow and XLSX, and their JSON in the types of fields.
//!
//! Invariant: a value keeps its meaning in the type of its field, or it is a problem. No digit is dropped.

use std::borrow::Cow;

use data_encoding::{BASE64, HEXLOWER};
use jiff::tz::TimeZone;
use types::{Date, FieldType, Timestamp, canonical};

use super::words;
use crate::values::{TimeProblem, Zone};

const NANOSECONDS_PER_SECOND: i128 = 1_000_000_000;
const NANOSECONDS_PER_DAY: i128 = 86_400 * NANOSECONDS_PER_SECOND;
const NANOSECONDS_PER_MICROSECOND: i128 = 1_000;
/// Seconds of the 400 years after which the Gregorian calendar repeats.
const CALENDAR_CYCLE_SECONDS: i64 = 146_097 * 86_400;
const NO_TIME: &str = "it is no time of the years 1 to 9999";

/// A value of a file.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum FileCell<'a> {
    Null,
    Boolean(bool),
    Integer(i64),
    Unsigned(u64),
    Single(f32),
    Double(f64),
    /// A decimal with all digits that the file has.
    Decimal(Cow<'a, str>),
    Text(Cow<'a, str>),
    /// Text of a value that JSON has no type for: a time of day, an interval, a UUID.
    Form(Cow<'a, str>),
    Bytes(Cow<'a, [u8]>),
    /// Days since 1970-01-01.
    Day(i64),
    /// Time without a zone, in nanoseconds since 1970-01-01T00:00:00.
    Local(i128),
    /// Nanoseconds since 1970-01-01T00:00:00Z.
    Instant(i128),
    /// A list, a struct or a map as JSON.
    Nested(Vec<u8>),
    /// A nested value that JSON cannot say.
    Unsayable(String),
    /// The error of a formula.
    Failed,
    /// A formula whose value the file does not have.
    Unstored,
}

/// The text form of bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BytesForm {
    Base64,
    Hex,
}

/// Rules by which the values of a column become those of a field.
#[derive(Clone, Debug)]
pub(crate) struct FileCellRule {
    pub(crate) zone: Zone,
    /// True if a time is rounded to microseconds.
    pub(crate) rounds: bool,
    pub(crate) bytes: Option<BytesForm>,
    /// Texts that are null.
    pub(crate) nulls: Vec<String>,
}

impl Default for FileCellRule {
    fn default() -> Self {
        Self {
            zone: Zone::Fixed(0),
            rounds: false,
            bytes: None,
            nulls: Vec::new(),
        }
    }
}

/// Reason why a value does not fit its field.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct CellMisfit {
    /// Code of the verdict: `value`, or `ambiguous_time`.
    pub(crate) code: &'static str,
    pub(crate) problem: String,
}

fn misfit(problem: impl Into<String>) -> CellMisfit {
    CellMisfit {
        code: "value",
        problem: problem.into(),
    }
}

impl FileCell<'_> {
    /// Returns the value with bytes of its own.
    pub(crate) fn into_owned(self) -> FileCell<'static> {
        match self {
            Self::Null => FileCell::Null,
            Self::Boolean(value) => FileCell::Boolean(value),
            Self::Integer(value) => FileCell::Integer(value),
            Self::Unsigned(value) => FileCell::Unsigned(value),
            Self::Single(value) => FileCell::Single(value),
            Self::Double(value) => FileCell::Double(value),
            Self::Decimal(text) => FileCell::Decimal(text.into_owned().into()),
            Self::Text(text) => FileCell::Text(text.into_owned().into()),
            Self::Form(text) => FileCell::Form(text.into_owned().into()),
            Self::Bytes(bytes) => FileCell::Bytes(bytes.into_owned().into()),
            Self::Day(days) => FileCell::Day(days),
            Self::Local(nanoseconds) => FileCell::Local(nanoseconds),
            Self::Instant(nanoseconds) => FileCell::Instant(nanoseconds),
            Self::Nested(text) => FileCell::Nested(text),
            Self::Unsayable(problem) => FileCell::Unsayable(problem),
            Self::Failed => FileCell::Failed,
            Self::Unstored => FileCell::Unstored,
        }
    }

    /// Returns true if the value is null, also by a rule.
    pub(crate) fn is_null(&self, rule: &FileCellRule) -> bool {
        match self {
            Self::Null | Self::Failed | Self::Unstored => true,
            Self::Single(number) if !number.is_finite() => is_null_number(f64::from(*number), rule),
            Self::Double(number) if !number.is_finite() => is_null_number(*number, rule),
            Self::Text(text) => rule.nulls.iter().any(|null| null == text),
            _ => false,
        }
    }

    /// Returns the value as people read it.
    pub(crate) fn shown(&self) -> Cow<'_, str> {
        match self {
            Self::Null => "null".into(),
            Self::Boolean(value) => value.to_string().into(),
            Self::Integer(value) => value.to_string().into(),
            Self::Unsigned(value) => value.to_string().into(),
            Self::Single(value) => value.to_string().into(),
            Self::Double(value) => value.to_string().into(),
            Self::Decimal(text) | Self::Text(text) | Self::Form(text) => Cow::Borrowed(text),
            Self::Bytes(bytes) => text_of(bytes).map_or_else(|| BASE64.encode(bytes).into(), Cow::Borrowed),
            Self::Day(days) => day(*days).map_or_else(|| format!("{days} days").into(), Into::into),
            Self::Local(nanoseconds) => local_text(*nanoseconds).into(),
            Self::Instant(nanoseconds) => format!("{}Z", local_text(*nanoseconds)).into(),
            Self::Nested(text) => String::from_utf8_lossy(text),
            Self::Unsayable(problem) => Cow::Borrowed(problem),
            Self::Failed => "the error of a formula".into(),
            Self::Unstored => "a formula without a value".into(),
        }
    }

    /// Returns true for a time with digits beyond microseconds.
    pub(crate) fn is_finer(&self) -> bool {
        match self {
            Self::Local(nanoseconds) | Self::Instant(nanoseconds) => nanoseconds % NANOSECONDS_PER_MICROSECOND != 0,
            _ => false,
        }
    }

    /// Returns true for a local time that does not exist in the zone, or exists twice.
    pub(crate) fn is_ambiguous(&self, rule: &FileCellRule) -> bool {
        matches!(self, Self::Local(nanoseconds) if in_zone(*nanoseconds, &rule.zone).is_err())
    }

    /// Returns false for a day and a time outside of the years 1 to 9999.
    pub(crate) fn is_sayable(&self) -> bool {
        match self {
            Self::Day(days) => day(*days).is_some(),
            Self::Local(nanoseconds) | Self::Instant(nanoseconds) => {
                let rounds = FileCellRule {
                    rounds: true,
                    ..FileCellRule::default()
                };
                instant(*nanoseconds, &rounds).is_ok()
            }
            _ => true,
        }
    }

    /// Appends the value as JSON of a field of this type. After a problem `out` is as it was.
    pub(crate) fn write(&self, kind: FieldType, rule: &FileCellRule, out: &mut Vec<u8>) -> Result<(), CellMisfit> {
        if self.is_null(rule) {
            out.extend_from_slice(b"null");
            return Ok(());
        }
        if let Self::Unsayable(problem) = self {
            return Err(misfit(problem.clone()));
        }
        match kind {
            FieldType::String => self.write_text(rule, out),
            FieldType::Integer => self.write_integer(out),
            FieldType::Number => self.write_number(out),
            FieldType::Boolean => self.write_boolean(out),
            FieldType::Timestamp => self.write_timestamp(rule, out),
            FieldType::Date => self.write_date(out),
            FieldType::Decimal(scale) => self.write_decimal(scale, out),
            FieldType::Json => self.write_json(rule, out),
        }
    }

    fn other(&self, wanted: &str) -> CellMisfit {
        let is = match self {
            Self::Boolean(_) => "a boolean",
            Self::Integer(_) | Self::Unsigned(_) => "an integer",
            Self::Single(_) | Self::Double(_) => "a number",
            Self::Decimal(_) => "a decimal",
            Self::Text(_) => "a text",
            Self::Form(_) => "a time of day, an interval or a UUID",
            Self::Bytes(_) => "bytes",
            Self::Day(_) => "a day",
            Self::Local(_) | Self::Instant(_) => "a time",
            Self::Nested(_) => "a list, a struct or a map",
            _ => "nothing",
        };
        misfit(format!("it is {is}, and no {wanted}"))
    }

    fn write_text(&self, rule: &FileCellRule, out: &mut Vec<u8>) -> Result<(), CellMisfit> {
        match self {
            Self::Bytes(bytes) => {
                let text = match rule.bytes {
                    Some(BytesForm::Base64) => BASE64.encode(bytes).into(),
                    Some(BytesForm::Hex) => HEXLOWER.encode(bytes).into(),
                    None => text_of(bytes).map(Cow::Borrowed).ok_or_else(|| {
                        misfit("its bytes are no text of UTF-8; say whether they become Base64 or hexadecimal digits")
                    })?,
                };
                canonical::write_string(out, &text);
            }
            // A time without a zone is one of its zone as text too.
            Self::Local(nanoseconds) => {
                let instant = in_zone(*nanoseconds, &rule.zone)?;
                canonical::write_string(out, &format!("{}Z", local_text(instant)));
            }
            other => canonical::write_string(out, &other.shown()),
        }
        Ok(())
    }

    fn write_integer(&self, out: &mut Vec<u8>) -> Result<(), CellMisfit> {
        let value = match self {
            Self::Integer(value) => *value,
            Self::Unsigned(value) => {
                i64::try_from(*value).map_err(|_large| misfit("it is larger than an integer of 64 bits"))?
            }
            Self::Single(value) => whole(f64::from(*value))?,
            Self::Double(value) => whole(*value)?,
            Self::Decimal(text) => {
                let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
                if fraction.bytes().any(|digit| digit != b'0') {
                    return Err(misfit("it has a fraction, and an integer has none"));
                }
                words::integer(whole).map_err(misfit)?
            }
            Self::Text(text) => words::integer(text).map_err(misfit)?,
            other => return Err(other.other("integer")),
        };
        out.extend_from_slice(value.to_string().as_bytes());
        Ok(())
    }

    fn write_number(&self, out: &mut Vec<u8>) -> Result<(), CellMisfit> {
        let value = match self {
            Self::Integer(value) => words::double(&value.to_string()).map_err(misfit)?,
            Self::Unsigned(value) => words::double(&value.to_string()).map_err(misfit)?,
            Self::Single(value) => f64::from(*value),
            Self::Double(value) => *value,
            Self::Decimal(text) => {
                let digits = match text.split_once('.') {
                    Some(_) => text.trim_end_matches('0').trim_end_matches('.'),
                    None => text,
                };
                words::double(digits).map_err(misfit)?
            }
            Self::Text(text) => words::double(text).map_err(misfit)?,
            other => return Err(other.other("number")),
        };
        // JSON has no NaN and no infinities (RFC 8259 section 6).
        if !value.is_finite() {
            return Err(misfit(format!("`{value}` is no number of JSON")));
        }
        canonical::write_double(out, value);
        Ok(())
    }

    fn write_boolean(&self, out: &mut Vec<u8>) -> Result<(), CellMisfit> {
        let value = match self {
            Self::Boolean(value) => *value,
            Self::Text(text) => words::boolean(text).map_err(misfit)?,
            other => return Err(other.other("boolean")),
        };
        out.extend_from_slice(value.to_string().as_bytes());
        Ok(())
    }

    fn write_timestamp(&self, rule: &FileCellRule, out: &mut Vec<u8>) -> Result<(), CellMisfit> {
        let value = match self {
            Self::Instant(nanoseconds) => instant(*nanoseconds, rule)?,
            Self::Local(nanoseconds) => instant(in_zone(*nanoseconds, &rule.zone)?, rule)?,
            Self::Day(days) => {
                let midnight = i128::from(*days) * NANOSECONDS_PER_DAY;
                instant(in_zone(midnight, &rule.zone)?, rule)?
            }
            Self::Text(text) => text.parse::<Timestamp>().map_err(|error| misfit(error.to_string()))?,
            other => return Err(other.other("timestamp")),
        };
        canonical::write_string(out, &value.to_string());
        Ok(())
    }

    fn write_date(&self, out: &mut Vec<u8>) -> Result<(), CellMisfit> {
        let text = match self {
            Self::Day(days) => day(*days),
            Self::Local(nanoseconds) if nanoseconds % NANOSECONDS_PER_DAY == 0 => {
                i64::try_from(nanoseconds / NANOSECONDS_PER_DAY).ok().and_then(day)
            }
            Self::Local(_) | Self::Instant(_) => return Err(misfit("it has a time, and a date has none")),
            Self::Text(text) => Some(
                text.parse::<Date>()
                    .map_err(|error| misfit(error.to_string()))?
                    .to_string(),
            ),
            other => return Err(other.other("date")),
        };
        let text = text.ok_or_else(|| misfit("it is no day of the years 1 to 9999"))?;
        canonical::write_string(out, &text);
        Ok(())
    }

    fn write_decimal(&self, scale: u8, out: &mut Vec<u8>) -> Result<(), CellMisfit> {
        let text: Cow<'_, str> = match self {
            Self::Integer(value) => value.to_string().into(),
            Self::Unsigned(value) => value.to_string().into(),
            // The shortest decimal of a float of 32 bits is another than that of the double that it is widened to.
            Self::Single(value) => of_number(&value.to_string(), scale)?.into(),
            Self::Double(value) => of_number(&value.to_string(), scale)?.into(),
            Self::Decimal(text) => Cow::Borrowed(text),
            Self::Text(text) => words::number(text).map_err(misfit)?,
            other => return Err(other.other("decimal")),
        };
        let units = types::decimal::parse(text.as_bytes(), scale).map_err(|error| misfit(error.to_string()))?;
        canonical::write_string(out, &types::decimal::text(units, scale));
        Ok(())
    }

    fn write_json(&self, rule: &FileCellRule, out: &mut Vec<u8>) -> Result<(), CellMisfit> {
        match self {
            Self::Nested(text) => out.extend_from_slice(text),
            Self::Boolean(value) => out.extend_from_slice(value.to_string().as_bytes()),
            Self::Integer(value) => out.extend_from_slice(value.to_string().as_bytes()),
            Self::Unsigned(value) => out.extend_from_slice(value.to_string().as_bytes()),
            Self::Single(_) | Self::Double(_) => return self.write_number(out),
            // A column of texts for a field of this type holds JSON, as a file of CSV does.
            Self::Text(text) => out.extend_from_slice(words::compact(text).map_err(misfit)?.as_bytes()),
            _ => return self.write_text(rule, out),
        }
        Ok(())
    }
}

/// Says of NaN and infinities whether they are null: NaN is, since JSON has none.
fn is_null_number(number: f64, rule: &FileCellRule) -> bool {
    number.is_nan() || rule.nulls.iter().any(|null| null.parse() == Ok(number))
}

/// Returns the decimal of a number as it is written.
fn of_number(text: &str, scale: u8) -> Result<String, CellMisfit> {
    let number: serde_json::Number = text.parse().map_err(|_error| misfit("it is no number of JSON"))?;
    let units = types::decimal::of_number(&number, scale).map_err(|error| misfit(error.to_string()))?;
    Ok(types::decimal::text(units, scale))
}

fn whole(value: f64) -> Result<i64, CellMisfit> {
    // Beyond, integers of 64 bits and doubles are not the same.
    const END: f64 = 9_223_372_036_854_775_808.0;
    if value.fract() != 0.0 {
        return Err(misfit(format!(
            "the conversion would change `{value}`, which has a fraction"
        )));
    }
    if !(-END..END).contains(&value) {
        return Err(misfit("it is larger than an integer of 64 bits"));
    }
    #[expect(clippy::cast_possible_truncation, reason = "the bounds were checked")]
    Ok(value as i64)
}

/// Returns bytes that are text: UTF-8 without control characters other than those of text files.
pub(crate) fn text_of(bytes: &[u8]) -> Option<&str> {
    let text = std::str::from_utf8(bytes).ok()?;
    let is_plain = !text
        .chars()
        .any(|sign| sign.is_control() && !matches!(sign, '\n' | '\r' | '\t'));
    is_plain.then_some(text)
}

/// Returns `YYYY-MM-DD` of a day in the years 1 to 9999.
pub(crate) fn day(days: i64) -> Option<String> {
    let text = Date::from_days(i32::try_from(days).ok()?).to_string();
    text.parse::<Date>().is_ok().then_some(text)
}

/// Returns a time without its zone as RFC 3339 writes it, with milliseconds, microseconds or nanoseconds as it has them.
fn local_text(nanoseconds: i128) -> String {
    let seconds = nanoseconds.div_euclid(NANOSECONDS_PER_SECOND);
    let micros = i64::try_from(seconds * 1_000_000).map(Timestamp::from_micros);
    let Some(time) = micros.ok().filter(|time| time.is_sayable()) else {
        return format!("{nanoseconds} ns");
    };
    let mut text = time.to_string();
    text.truncate(text.len() - 1);
    match nanoseconds.rem_euclid(NANOSECONDS_PER_SECOND) {
        0 => text,
        rest if rest % 1_000_000 == 0 => format!("{text}.{:03}", rest / 1_000_000),
        rest if rest % 1_000 == 0 => format!("{text}.{:06}", rest / 1_000),
        rest => format!("{text}.{rest:09}"),
    }
}

/// Returns the instant of a local time.
fn in_zone(nanoseconds: i128, zone: &Zone) -> Result<i128, CellMisfit> {
    let offset = match zone {
        Zone::Fixed(seconds) => *seconds,
        zone @ Zone::Named(_) => {
            let seconds = i64::try_from(nanoseconds.div_euclid(NANOSECONDS_PER_SECOND)).unwrap_or(i64::MAX);
            // Instants of jiff end a day before the year 9999 does. The calendar repeats after 400 years.
            let instant = [0, CALENDAR_CYCLE_SECONDS]
                .into_iter()
                .find_map(|shift| jiff::Timestamp::new(seconds.checked_sub(shift)?, 0).ok());
            let local = TimeZone::UTC.to_datetime(instant.ok_or_else(|| misfit(NO_TIME))?);
            zone.offset(local).map_err(|problem| CellMisfit {
                code: "ambiguous_time",
                problem: match problem {
                    TimeProblem::Repeated => "this time exists twice in the zone, where the clocks are set back",
                    _ => "this time does not exist in the zone, where the clocks are set forward",
                }
                .to_owned(),
            })?
        }
    };
    Ok(nanoseconds - i128::from(offset) * NANOSECONDS_PER_SECOND)
}

/// Returns an instant in microseconds.
fn instant(nanoseconds: i128, rule: &FileCellRule) -> Result<Timestamp, CellMisfit> {
    let rest = nanoseconds.rem_euclid(NANOSECONDS_PER_MICROSECOND);
    if rest != 0 && !rule.rounds {
        return Err(misfit(
            "it has digits beyond microseconds, which the conversion would change",
        ));
    }
    let half = if rule.rounds {
        NANOSECONDS_PER_MICROSECOND / 2
    } else {
        0
    };
    let micros = (nanoseconds + half).div_euclid(NANOSECONDS_PER_MICROSECOND);
    let instant = i64::try_from(micros).ok().map(Timestamp::from_micros);
    instant
        .filter(|instant| instant.is_sayable())
        .ok_or_else(|| misfit(NO_TIME))
}

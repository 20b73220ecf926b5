//! Durations and sizes as text: `250ms`, `10s`, `8d`, `64KiB`.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use serde::{Deserialize, Serialize};

/// A duration written as a whole number and a measure of `ms`, `s`, `m`, `h` or `d` (24 hours).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(try_from = "String", into = "String")]
pub struct HumanDuration(pub Duration);

/// A number of bytes written as a whole number and a measure of `B`, `KiB`, `MiB` or `GiB`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(try_from = "String", into = "String")]
pub struct Size(pub u64);

/// Measures of durations with their milliseconds, longest first.
const DURATION_MEASURES: [(&str, u64); 5] = [
    ("d", 86_400_000),
    ("h", 3_600_000),
    ("m", 60_000),
    ("s", 1_000),
    ("ms", 1),
];
/// Measures of sizes with their bytes, largest first.
const SIZE_MEASURES: [(&str, u64); 4] = [("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10), ("B", 1)];

/// The error of a text that is not a quantity.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{text}` is not {expected}")]
pub struct QuantityError {
    text: String,
    expected: &'static str,
}

fn parse(text: &str, measures: &[(&str, u64)], expected: &'static str) -> Result<u64, QuantityError> {
    // Neither a sign nor a fraction is a digit, so both are refused as part of the measure.
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let (number, measure) = text.split_at(digits);
    let factor = measures
        .iter()
        .find(|(name, _)| *name == measure)
        .map(|(_, factor)| *factor);
    number
        .parse::<u64>()
        .ok()
        .zip(factor)
        // A value beyond 64 bits is refused instead of wrapping around.
        .and_then(|(number, factor)| number.checked_mul(factor))
        .ok_or_else(|| QuantityError {
            text: text.to_owned(),
            expected,
        })
}

/// Formats a value in the largest measure that is exact. Zero is `zero`, since every measure would be exact.
fn show(value: u64, measures: &[(&str, u64)], zero: &str) -> String {
    measures
        .iter()
        // Every measure divides zero, so zero has a text of its own.
        .find(|(_, factor)| value != 0 && value.is_multiple_of(*factor))
        .map_or_else(|| zero.to_owned(), |(name, factor)| format!("{}{name}", value / factor))
}

impl HumanDuration {
    /// Returns the whole seconds, at most [`u32::MAX`].
    pub fn seconds(self) -> u32 {
        u32::try_from(self.0.as_secs()).unwrap_or(u32::MAX)
    }

    /// Returns the whole hours, at most [`u32::MAX`].
    pub fn hours(self) -> u32 {
        u32::try_from(self.0.as_secs() / 3_600).unwrap_or(u32::MAX)
    }

    /// Returns the whole milliseconds, at most [`u64::MAX`].
    pub fn millis(self) -> u64 {
        u64::try_from(self.0.as_millis()).unwrap_or(u64::MAX)
    }
}

impl Size {
    /// Returns the bytes as `usize`, at most [`usize::MAX`].
    pub fn bytes(self) -> usize {
        usize::try_from(self.0).unwrap_or(usize::MAX)
    }
}

impl FromStr for HumanDuration {
    type Err = QuantityError;

    fn from_str(text: &str) -> Result<Self, QuantityError> {
        parse(
            text,
            &DURATION_MEASURES,
            "a duration such as `250ms`, `10s`, `5m`, `2h` or `8d`",
        )
        .map(|millis| Self(Duration::from_millis(millis)))
    }
}

impl fmt::Display for HumanDuration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&show(self.millis(), &DURATION_MEASURES, "0s"))
    }
}

impl FromStr for Size {
    type Err = QuantityError;

    fn from_str(text: &str) -> Result<Self, QuantityError> {
        parse(text, &SIZE_MEASURES, "a size such as `512B`, `64KiB`, `4MiB` or `1GiB`").map(Self)
    }
}

impl fmt::Display for Size {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&show(self.0, &SIZE_MEASURES, "0B"))
    }
}

macro_rules! text {
    ($($name:ident)*) => {$(
        impl TryFrom<String> for $name {
            type Error = QuantityError;

            fn try_from(text: String) -> Result<Self, QuantityError> {
                text.parse()
            }
        }

        impl From<$name> for String {
            fn from(value: $name) -> Self {
                value.to_string()
            }
        }
    )*};
}

text! { HumanDuration Size }

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantities_round_trip_in_their_largest_exact_measure() {
        for (text, shown) in [
            ("0s", "0s"),
            ("250ms", "250ms"),
            ("60s", "1m"),
            ("90s", "90s"),
            ("24h", "1d"),
            ("8d", "8d"),
        ] {
            assert_eq!(text.parse::<HumanDuration>().unwrap().to_string(), shown);
        }
        for (text, shown) in [
            ("0B", "0B"),
            ("1024B", "1KiB"),
            ("4MiB", "4MiB"),
            ("1536KiB", "1536KiB"),
        ] {
            assert_eq!(text.parse::<Size>().unwrap().to_string(), shown);
        }
    }

    #[test]
    fn other_texts_are_refused() {
        for text in [
            "",
            "5",
            "s",
            "-5s",
            "5 s",
            "1.5h",
            "5S",
            "99999999999999999999s",
            "18446744073709551615d",
        ] {
            assert!(text.parse::<HumanDuration>().is_err(), "{text}");
        }
        assert_eq!(
            "4MB".parse::<Size>().unwrap_err().to_string(),
            "`4MB` is not a size such as `512B`, `64KiB`, `4MiB` or `1GiB`"
        );
    }
}

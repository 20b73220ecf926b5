//! Money: integer micro-USDC, never a float.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

const MICROS_PER_CENT: i64 = 10_000;

/// An amount in micro-USDC (1,000,000 to the dollar).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct MicroUsdc(pub i64);

/// The text is not a price.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not an amount in dollars with at most two decimals")]
pub struct ParseMoneyError;

impl MicroUsdc {
    /// Parses dollars and cents without sign, exponent or grouping, such as `0.10` or `12`, of at most `most` digits of
    /// dollars.
    ///
    /// # Errors
    /// A text of another form, or an amount that 64 bits do not hold.
    pub fn parse(text: &str, most: usize) -> Result<Self, ParseMoneyError> {
        let (dollars, cents) = text.split_once('.').unwrap_or((text, ""));
        let digits = |part: &str| part.bytes().all(|byte| byte.is_ascii_digit());
        let shaped = (1..=most).contains(&dollars.len()) && cents.len() <= 2 && digits(dollars) && digits(cents);
        if !shaped || (cents.is_empty() && text.contains('.')) {
            return Err(ParseMoneyError);
        }
        let whole: i64 = dollars.parse().map_err(|_error| ParseMoneyError)?;
        // One digit of cents means tenths, as in `0.5`.
        let fraction: i64 = format!("{cents:0<2}").parse().map_err(|_error| ParseMoneyError)?;
        let in_cents = whole.checked_mul(100).and_then(|whole| whole.checked_add(fraction));
        let micros = in_cents.and_then(|cents| cents.checked_mul(MICROS_PER_CENT));
        micros.map(Self).ok_or(ParseMoneyError)
    }
}

/// Parses a price, as [`MicroUsdc::parse`] does.
impl FromStr for MicroUsdc {
    type Err = ParseMoneyError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        // Nine digits of dollars stay far below the range of 64 bits in micro-USDC.
        Self::parse(text, 9)
    }
}

/// Dollars and cents, such as `0.10`; more decimals only where the amount has them.
impl fmt::Display for MicroUsdc {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // In integers, so that an amount is shown to the digit: a double has no exact cent.
        let (dollars, micros) = (self.0 / 1_000_000, (self.0 % 1_000_000).abs());
        if micros % MICROS_PER_CENT == 0 {
            write!(f, "{dollars}.{:02}", micros / MICROS_PER_CENT)
        } else {
            let digits = format!("{micros:06}");
            write!(f, "{dollars}.{}", digits.trim_end_matches('0'))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dollars_and_cents_round_trip() {
        for (text, micros, shown) in [
            ("0", 0, "0.00"),
            ("0.1", 100_000, "0.10"),
            ("12.34", 12_340_000, "12.34"),
        ] {
            let amount: MicroUsdc = text.parse().unwrap();
            assert_eq!((amount.0, amount.to_string().as_str()), (micros, shown));
        }
    }

    #[test]
    fn anything_else_is_refused() {
        for text in [
            "",
            ".5",
            "1.",
            "-1",
            "+1",
            "1e3",
            "0.001",
            "1,000",
            "NaN",
            "1000000000",
            " 1",
        ] {
            assert_eq!(text.parse::<MicroUsdc>(), Err(ParseMoneyError), "{text}");
        }
    }
}

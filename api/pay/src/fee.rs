//! The platform's fee, by marginal brackets.
//!
//! Invariant: fee and share of a price add up to it. The fee of each bracket is rounded down, in the seller's favour.

use std::fmt;
use std::str::FromStr;

use serde::Deserialize;
use types::money::MicroUsdc;

#[cfg(test)]
mod tests;

/// Bracket of the fee: the part of a price above an amount costs a percentage, up to where the next bracket begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bracket {
    /// Amount above which the bracket begins, in micro-USDC.
    pub above: i64,
    /// Percentage of the part of a price in this bracket.
    pub percent: i64,
}

/// Brackets of the fee, in the order of their beginnings. Below the first one there is no fee.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub struct Brackets(Vec<Bracket>);

/// Parts of a price.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Split {
    /// Part of the platform.
    pub fee: MicroUsdc,
    /// Part of the seller.
    pub share: MicroUsdc,
}

/// The text or list is not one of brackets.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not brackets, such as `100000:30,1000000:20`: rising amounts of at least 0, with percentages up to 100")]
pub struct ParseBracketsError;

impl Brackets {
    /// Returns the brackets themselves.
    pub fn as_slice(&self) -> &[Bracket] {
        &self.0
    }

    /// Returns the fee and the share of a price.
    pub fn split(&self, price: MicroUsdc) -> Split {
        // A bracket ends where the next begins, so no amount is in two of them and none between two.
        let ends = self.0.iter().skip(1).map(|next| next.above).chain([i64::MAX]);
        let fee: i64 = self
            .0
            .iter()
            .zip(ends)
            .map(|(bracket, end)| {
                let part = price.0.min(end).saturating_sub(bracket.above).max(0);
                // Hundreds and the rest apart, so that a large price does not overflow.
                part / 100 * bracket.percent + part % 100 * bracket.percent / 100
            })
            .sum();
        Split {
            fee: MicroUsdc(fee),
            // By subtraction and not by percentages of its own: two roundings could lose or make a
            // millionth.
            share: MicroUsdc(price.0 - fee),
        }
    }
}

impl TryFrom<Vec<Bracket>> for Brackets {
    type Error = ParseBracketsError;

    fn try_from(brackets: Vec<Bracket>) -> Result<Self, Self::Error> {
        // Equal beginnings would make one bracket empty, and the text of a sale's brackets ambiguous.
        let rising = brackets.windows(2).all(|pair| pair[0].above < pair[1].above);
        // More than 100 % would make the share negative, and a movement of the ledger has a positive
        // amount.
        let sound = |bracket: &Bracket| bracket.above >= 0 && (0..=100).contains(&bracket.percent);
        if rising && brackets.iter().all(sound) {
            Ok(Self(brackets))
        } else {
            Err(ParseBracketsError)
        }
    }
}

impl TryFrom<String> for Brackets {
    type Error = ParseBracketsError;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        text.parse()
    }
}

/// Shows the brackets as they are stored with a sale, such as `100000:30,1000000:20`.
impl fmt::Display for Brackets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (number, Bracket { above, percent }) in self.0.iter().enumerate() {
            let comma = if number == 0 { "" } else { "," };
            write!(f, "{comma}{above}:{percent}")?;
        }
        Ok(())
    }
}

impl FromStr for Brackets {
    type Err = ParseBracketsError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let bracket = |part: &str| {
            let (above, percent) = part.split_once(':').ok_or(ParseBracketsError)?;
            Ok(Bracket {
                above: above.parse().map_err(|_error| ParseBracketsError)?,
                percent: percent.parse().map_err(|_error| ParseBracketsError)?,
            })
        };
        let parts = text.split(',').filter(|part| !part.is_empty());
        parts.map(bracket).collect::<Result<Vec<_>, _>>()?.try_into()
    }
}

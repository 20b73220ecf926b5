//! Facts about the numbers of a column.
//!
//! Invariant: a number is looked at once, and most of them without being taken apart.

use types::decimal;

use super::profile::Exclusion;
use crate::values::WrittenNumber;

/// Digits of a number without exponent that a double always holds.
const DOUBLE_DIGITS: usize = 15;

/// Facts about the numbers of a column.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct NumberFacts {
    /// Numbers.
    pub(super) count: u64,
    /// Whole numbers without point and exponent.
    pub(super) whole: u64,
    /// Whole numbers beyond 64 bits.
    pub(super) beyond_64_bits: Exclusion,
    /// Numbers with a point.
    pub(super) points: Exclusion,
    /// Numbers with a comma.
    pub(super) commas: Exclusion,
    /// Numbers with a comma and exactly three digits after it.
    pub(super) commas_of_three: u64,
    /// Numbers of which a double drops digits.
    pub(super) lossy: Exclusion,
    /// Numbers with an exponent.
    pub(super) exponents: Exclusion,
    /// Numbers of which a decimal has too many digits.
    pub(super) too_long: Exclusion,
    /// The most digits before and after the point.
    pub(super) whole_digits: usize,
    pub(super) scale: usize,
    /// Numbers that begin with zeros, or with a plus and are whole: they are codes, and digits of them would be lost.
    pub(super) codes: Exclusion,
    /// True if these codes begin with a plus alone.
    pub(super) is_plus: bool,
    /// Numbers of digits, one `E`, and digits.
    pub(super) scientific: Exclusion,
    /// Least and most bytes of a value.
    pub(super) widths: Option<(usize, usize)>,
    /// Least and greatest whole number of 64 bits.
    pub(super) range: Option<(i64, i64)>,
}

impl NumberFacts {
    /// Adds a number of few digits with a point or without, as most are. Returns false for every other word.
    pub(super) fn add_short(&mut self, word: &[u8], line: u64) -> bool {
        let (is_negative, digits) = match word {
            [b'-', digits @ ..] => (true, digits),
            digits => (false, digits),
        };
        // With its point it has at most as many digits as a double always holds.
        if digits.is_empty() || digits.len() > DOUBLE_DIGITS {
            return false;
        }
        let (mut value, mut point) = (0_i64, None);
        for (place, byte) in digits.iter().enumerate() {
            let digit = byte.wrapping_sub(b'0');
            if digit <= 9 {
                value = value * 10 + i64::from(digit);
            } else if *byte == b'.' && point.is_none() && place > 0 {
                point = Some(place);
            } else {
                return false;
            }
        }
        let whole = point.unwrap_or(digits.len());
        // Zeros before the first digit are a matter of codes.
        if digits[0] == b'0' && whole > 1 {
            return false;
        }
        self.count += 1;
        let width = word.len();
        self.widths = Some(
            self.widths
                .map_or((width, width), |(least, most)| (least.min(width), most.max(width))),
        );
        self.whole_digits = self.whole_digits.max(if digits[0] == b'0' { 0 } else { whole });
        if point.is_none() {
            self.whole += 1;
            let value = if is_negative { -value } else { value };
            self.range = Some(
                self.range
                    .map_or((value, value), |(least, most)| (least.min(value), most.max(value))),
            );
            return true;
        }
        let zeros = digits.iter().rev().take_while(|digit| **digit == b'0').count();
        self.scale = self.scale.max((digits.len() - whole - 1).saturating_sub(zeros));
        self.points.add(word, line);
        true
    }

    /// Adds a number of the file.
    pub(super) fn add(&mut self, number: &WrittenNumber<'_>, is_comma: bool, text: &[u8], line: u64) {
        self.count += 1;
        let width = text.len();
        self.widths = Some(
            self.widths
                .map_or((width, width), |(least, most)| (least.min(width), most.max(width))),
        );
        let (whole, fraction) = (number.whole_digits(), number.fraction_digits());
        if number.has_leading_zeros() || number.has_plus && number.is_whole() {
            if self.codes.is_none() {
                self.is_plus = !number.has_leading_zeros();
            }
            self.codes.add(text, line);
        }
        if number.fraction.is_some() {
            if is_comma {
                self.commas.add(text, line);
                let of_three = number.fraction.is_some_and(|fraction| fraction.len() == 3) && number.whole.len() <= 3;
                self.commas_of_three += u64::from(of_three);
            } else {
                self.points.add(text, line);
            }
        }
        if number.exponent.is_some() {
            self.exponents.add(text, line);
            let is_code = number.fraction.is_none() && text.iter().all(|byte| byte.is_ascii_digit() || *byte == b'E');
            if is_code {
                self.scientific.add(text, line);
            }
        } else {
            self.whole_digits = self.whole_digits.max(whole);
            self.scale = self.scale.max(fraction);
            if whole + fraction > usize::from(decimal::MAX_DIGITS) || fraction > usize::from(decimal::MAX_SCALE) {
                self.too_long.add(text, line);
            }
        }
        if number.is_whole() {
            self.whole += 1;
            match number.integer() {
                Some(integer) => {
                    let range = self.range.get_or_insert((integer, integer));
                    *range = (range.0.min(integer), range.1.max(integer));
                }
                None => self.beyond_64_bits.add(text, line),
            }
            if whole <= DOUBLE_DIGITS {
                return;
            }
        } else if whole + fraction <= DOUBLE_DIGITS && number.exponent.is_none() {
            return;
        }
        if number.double().is_none() {
            self.lossy.add(text, line);
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn a_short_number_says_what_a_long_one_says(word in "-?[0-9]{0,9}(\\.[0-9]{0,9})?") {
            let mut short = NumberFacts::default();
            if short.add_short(word.as_bytes(), 1) {
                let mut long = NumberFacts::default();
                let number = WrittenNumber::parse(word.as_bytes(), b'.').unwrap();
                long.add(&number, false, word.as_bytes(), 1);
                prop_assert_eq!(short, long, "{}", word);
            }
        }
    }

    #[test]
    fn most_numbers_are_short() {
        for word in ["0", "-1", "12.50", "0.5", "123456789012345", "5."] {
            assert!(NumberFacts::default().add_short(word.as_bytes(), 1), "{word}");
        }
        for word in ["", "-", "007", ".5", "1e5", "1,5", "+1", "1.2.3", "1234567890123456"] {
            assert!(!NumberFacts::default().add_short(word.as_bytes(), 1), "{word}");
        }
    }
}

//! Numbers as they are written, without loss.

use types::decimal::MAX_DIGITS;
use types::json::whole_double;

/// The most bytes of a decimal number without exponent that a double holds whatever its digits are.
const ALWAYS_HELD_BYTES: usize = 15;
/// The most digits of an integer that 64 bits hold whatever its digits are.
const ALWAYS_I64_DIGITS: usize = 18;

/// The parts of a number: `[+-]digits[.digits][e[+-]digits]`, with a digit before or after the point.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WrittenNumber<'a> {
    /// True after a minus.
    pub is_negative: bool,
    /// True after a plus.
    pub has_plus: bool,
    /// Digits before the point.
    pub whole: &'a [u8],
    /// Digits after the point, if there is one.
    pub fraction: Option<&'a [u8]>,
    /// The exponent with its sign, if there is one.
    pub exponent: Option<&'a [u8]>,
}

/// Reason why a number is not a value of a decimal field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DecimalProblem {
    /// It has an exponent, or zeros before its first digit.
    Form,
    /// It has more digits after the point than the scale.
    Scale,
    /// It has more than [`MAX_DIGITS`] digits.
    Digits,
}

fn digits(text: &[u8]) -> (&[u8], &[u8]) {
    let end = text.iter().position(|byte| !byte.is_ascii_digit());
    text.split_at(end.unwrap_or(text.len()))
}

fn without_leading_zeros(digits: &[u8]) -> &[u8] {
    let zeros = digits.iter().take_while(|digit| **digit == b'0').count();
    &digits[zeros..]
}

fn without_trailing_zeros(digits: &[u8]) -> &[u8] {
    let zeros = digits.iter().rev().take_while(|digit| **digit == b'0').count();
    &digits[..digits.len() - zeros]
}

impl<'a> WrittenNumber<'a> {
    /// Reads a number without blanks around it, with `point` before its decimals.
    pub fn parse(text: &'a [u8], point: u8) -> Option<Self> {
        let (is_negative, has_plus, rest) = match text {
            [b'-', rest @ ..] => (true, false, rest),
            [b'+', rest @ ..] => (false, true, rest),
            rest => (false, false, rest),
        };
        let (whole, rest) = digits(rest);
        let (fraction, rest) = match rest {
            [first, rest @ ..] if *first == point => {
                let (fraction, rest) = digits(rest);
                (Some(fraction), rest)
            }
            rest => (None, rest),
        };
        if whole.is_empty() && fraction.is_none_or(<[u8]>::is_empty) {
            return None;
        }
        let exponent = match rest {
            [] => None,
            [b'e' | b'E', exponent @ ..] => {
                let unsigned = exponent.strip_prefix(b"-").or_else(|| exponent.strip_prefix(b"+"));
                let (digits, rest) = digits(unsigned.unwrap_or(exponent));
                if digits.is_empty() || !rest.is_empty() {
                    return None;
                }
                Some(exponent)
            }
            _ => return None,
        };
        Some(Self {
            is_negative,
            has_plus,
            whole,
            fraction,
            exponent,
        })
    }

    /// Returns true if there are zeros before the first digit, as in `007`.
    pub const fn has_leading_zeros(&self) -> bool {
        matches!(self.whole, [b'0', _, ..])
    }

    /// Returns true if it is written as JSON has it (RFC 8259 section 6).
    pub const fn is_json(&self) -> bool {
        !self.has_plus && !self.whole.is_empty() && !self.has_leading_zeros() && !matches!(self.fraction, Some([]))
    }

    /// Returns true if it has neither point nor exponent.
    pub const fn is_whole(&self) -> bool {
        self.fraction.is_none() && self.exponent.is_none()
    }

    /// Returns the digits after the point, without zeros at the end. An exponent is not looked at.
    pub fn fraction_digits(&self) -> usize {
        without_trailing_zeros(self.fraction.unwrap_or_default()).len()
    }

    /// Returns the digits before the point, without zeros at the begin. An exponent is not looked at.
    pub fn whole_digits(&self) -> usize {
        without_leading_zeros(self.whole).len()
    }

    /// Returns the number as an integer of 64 bits. `1.0` is 1, as the contract says.
    pub fn integer(&self) -> Option<i64> {
        if self.exponent.is_some() || self.fraction_digits() > 0 {
            return None;
        }
        let mut value: i64 = 0;
        for digit in self.whole {
            let digit = i64::from(digit - b'0');
            // Counted downwards, because the least integer has no positive counterpart.
            value = value.checked_mul(10)?.checked_sub(digit)?;
        }
        if self.is_negative {
            Some(value)
        } else {
            value.checked_neg()
        }
    }

    /// Returns the double that is the number; `None` if a double drops digits of it.
    pub fn double(&self) -> Option<f64> {
        let mut text = Vec::with_capacity(32);
        self.write_json(&mut text);
        whole_double(str::from_utf8(&text).ok()?)
    }

    /// Writes the number as JSON (RFC 8259): no plus, no zeros at the begin, digits on both sides of the point.
    pub fn write_json(&self, out: &mut Vec<u8>) {
        if self.is_negative {
            out.push(b'-');
        }
        let whole = without_leading_zeros(self.whole);
        out.extend_from_slice(if whole.is_empty() { b"0" } else { whole });
        if let Some(fraction @ [_, ..]) = self.fraction {
            out.push(b'.');
            out.extend_from_slice(fraction);
        }
        if let Some(exponent) = self.exponent {
            out.push(b'e');
            out.extend_from_slice(exponent);
        }
    }

    /// Writes the number as the text of a decimal with this scale: exactly so many digits after the point.
    ///
    /// # Errors
    /// The reason why it is no such decimal; then nothing is written.
    pub fn write_decimal(&self, scale: u8, out: &mut Vec<u8>) -> Result<(), DecimalProblem> {
        let scale = usize::from(scale);
        if self.exponent.is_some() || self.has_leading_zeros() {
            return Err(DecimalProblem::Form);
        }
        let (whole, fraction) = (without_leading_zeros(self.whole), self.fraction.unwrap_or_default());
        let needed = without_trailing_zeros(fraction);
        if needed.len() > scale {
            return Err(DecimalProblem::Scale);
        }
        if whole.len() + scale > usize::from(MAX_DIGITS) {
            return Err(DecimalProblem::Digits);
        }
        // Zero has no sign.
        if self.is_negative && !(whole.is_empty() && needed.is_empty()) {
            out.push(b'-');
        }
        out.extend_from_slice(if whole.is_empty() { b"0" } else { whole });
        if scale > 0 {
            out.push(b'.');
            out.extend_from_slice(needed);
            out.resize(out.len() + scale - needed.len(), b'0');
        }
        Ok(())
    }

    /// Writes the number as a JSON number, unless a double drops digits of it. Returns false then, and nothing is written.
    pub fn write_double(&self, out: &mut Vec<u8>) -> bool {
        let start = out.len();
        self.write_json(out);
        let is_short = self.exponent.is_none() && out.len() - start <= ALWAYS_HELD_BYTES;
        let is_kept = is_short || str::from_utf8(&out[start..]).is_ok_and(|text| whole_double(text).is_some());
        if !is_kept {
            out.truncate(start);
        }
        is_kept
    }

    /// Writes the number as an integer of 64 bits. Returns false if it is none, and nothing is written.
    pub fn write_integer(&self, out: &mut Vec<u8>) -> bool {
        let whole = without_leading_zeros(self.whole);
        let is_plain = self.is_whole() && whole.len() <= ALWAYS_I64_DIGITS;
        if !is_plain && self.integer().is_none() {
            return false;
        }
        if self.is_negative && !whole.is_empty() {
            out.push(b'-');
        }
        out.extend_from_slice(if whole.is_empty() { b"0" } else { whole });
        true
    }
}

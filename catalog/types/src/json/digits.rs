//! Numbers of which an IEEE double drops digits.
//!
//! Invariants:
//! - A double holds a decimal if, printed with as many significant digits as were written (trailing zeros left out), it
//!   is the same decimal. So everything that a program printed of a double passes, and no other value takes its place.
//! - A text is scanned in time linear in its length, and most texts at one byte in [`MIN_LOSSY_CHARACTERS`], and for [`MIN_TINY_EXPONENT_DIGITS`] exponents.

use std::ops::Range;

use super::push_pointer;

/// The least characters of a number that can lose digits, unless it is next to zero: fifteen digits always fit a double.
const MIN_LOSSY_CHARACTERS: usize = 16;
/// The least digits of the exponent of a shorter number that is rounded next to zero, such as `1e-400` and `3e-324`.
const MIN_TINY_EXPONENT_DIGITS: usize = 3;
/// The most significant digits that every double in the usual range holds.
const ALWAYS_HELD: usize = 15;
/// The most significant digits of any double.
const MOST_DIGITS: usize = 767;
/// The most digits that fit 64 bits.
const WORD_DIGITS: usize = 19;
/// Decimal exponents at which fifteen digits are held.
const EXACT_EXPONENTS: std::ops::RangeInclusive<i64> = -290..=300;
/// The most numbers of a text that are named.
const MOST_NAMED: usize = 20;
/// The deepest nesting of strict JSON.
const MOST_DEPTH: usize = 128;
/// The most characters of a number that are shown.
const MOST_SHOWN: usize = 64;
/// The most bytes of a path. Names are a caller's, and each of many numbers would repeat them.
const MOST_PATH: usize = 1_024;
/// The most bytes that a character of a name takes as JSON, for each of its bytes: `\u0001`.
const MOST_ESCAPED: usize = 6;

/// A number of which a double drops digits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LostDigits {
    /// JSON pointer (RFC 6901) of the number in the text. One of more than 1,024 bytes ends before the first name that does
    /// not fit.
    pub path: String,
    /// The number as it is written.
    pub number: String,
}

impl LostDigits {
    /// The value that is expected in place of the number.
    pub const EXPECTED: &'static str = "a number that a double keeps";

    /// Returns the number with the way to send it whole. The end of a long number is left out.
    pub fn found(&self) -> String {
        let (number, end) = match self.number.get(..MOST_SHOWN) {
            Some(begin) if begin.len() < self.number.len() => (begin, "…"),
            _ => (self.number.as_str(), ""),
        };
        format!("{number}{end}; send it as text to a `decimal` or `string` field")
    }
}

/// Returns the numbers of a strict JSON text of which a double drops digits, in their order, at most 20. Integers of 64
/// bits are none: they are kept, or refused by the contract.
pub fn check_digits(text: &[u8]) -> Vec<LostDigits> {
    let mut found = Vec::new();
    // The places are looked for only where a number needs one.
    if is_suspect(text) {
        each_lost(text, |levels, place| {
            found.push(LostDigits {
                path: path(levels),
                number: String::from_utf8_lossy(&text[place]).into_owned(),
            });
            found.len() < MOST_NAMED
        });
    }
    found
}

/// Returns the places in a JSON text of all numbers that [`check_digits`] would name.
pub fn lost_digits(text: &[u8]) -> Vec<Range<usize>> {
    let mut found = Vec::new();
    if is_suspect(text) {
        each_lost(text, |_, place| {
            found.push(place);
            true
        });
    }
    found
}

/// Returns the double that is the number, which is spelled as in JSON; `None` if a double drops digits of it, of an integer
/// of 64 bits too.
pub fn whole_double(number: &str) -> Option<f64> {
    let double: f64 = number.parse().ok().filter(|double: &f64| double.is_finite())?;
    let integer = number.parse::<i64>().map(i128::from);
    let integer = integer.or_else(|_| number.parse::<u64>().map(i128::from));
    #[expect(clippy::cast_possible_truncation, reason = "what a double of at most 2^64 says")]
    let is_kept = match integer {
        // Every integer of 64 bits that is stored as a double is one exactly.
        Ok(integer) => double as i128 == integer,
        Err(_) => keeps_digits(number),
    };
    is_kept.then_some(double)
}

/// Returns true if a double holds the number, which is spelled as in JSON, or if it is an integer of 64 bits.
fn keeps_digits(number: &str) -> bool {
    if number.len() < MIN_LOSSY_CHARACTERS && !is_tiny(number.as_bytes()) {
        return true;
    }
    let Some(decimal) = Decimal::of(number.as_bytes()) else {
        return false;
    };
    if decimal.is_whole && (number.parse::<i64>().is_ok() || number.parse::<u64>().is_ok()) {
        return true;
    }
    let Decimal { digits, exponent, .. } = decimal;
    let leading = exponent.saturating_add(signed(digits));
    if digits == 0 || (digits <= ALWAYS_HELD && EXACT_EXPONENTS.contains(&leading)) {
        return true;
    }
    let Ok(double) = number.parse::<f64>() else {
        return false;
    };
    if !double.is_finite() || digits > MOST_DIGITS {
        return false;
    }
    is_nearest(&decimal, double.abs()).unwrap_or_else(|| is_printed(number.as_bytes(), &decimal, double.abs()))
}

/// A decimal without its sign: its significant digits, as an integer, times a power of ten.
#[derive(Clone, Copy)]
struct Decimal {
    /// Number of digits from the first to the last that is not zero.
    digits: usize,
    /// The digits as an integer, if they fit.
    value: Option<u64>,
    /// The power of ten.
    exponent: i64,
    /// True if the number is written without point and exponent.
    is_whole: bool,
}

impl Decimal {
    /// Reads a number; `None` if its exponent is none of 64 bits.
    fn of(number: &[u8]) -> Option<Self> {
        let (mut digits, mut zeros, mut value, mut point, mut end) = (0, 0, 0_u64, None, number.len());
        for (at, byte) in number.iter().enumerate() {
            let digit = byte.wrapping_sub(b'0');
            if digit > 9 {
                match byte {
                    b'.' => point = Some(at + 1),
                    b'e' | b'E' => {
                        end = at;
                        break;
                    }
                    _ => {}
                }
                continue;
            }
            // Beyond the digits of a word the value is not used.
            value = value.wrapping_mul(10).wrapping_add(u64::from(digit));
            digits += usize::from(digits > 0 || digit > 0);
            zeros = if digit == 0 { zeros + 1 } else { 0 };
        }
        let zeros = zeros.min(digits);
        let power = u32::try_from(zeros).ok().filter(|_| digits <= WORD_DIGITS);
        let written = match number.get(end + 1..) {
            None => 0,
            // An exponent beyond 64 bits is that of no double; only zero stays what it is.
            Some(written) => match str::from_utf8(written).ok()?.parse::<i64>() {
                Ok(written) => written,
                Err(_) if digits == 0 => 0,
                Err(_) => return None,
            },
        };
        let after = point.map_or(0, |point| signed(end - point));
        Some(Self {
            digits: digits - zeros,
            value: power.map(|power| value / 10_u64.pow(power)),
            exponent: written.saturating_sub(after).saturating_add(signed(zeros)),
            is_whole: point.is_none() && end == number.len(),
        })
    }
}

/// Powers of ten: as many as fit 128 bits beside the 53 of a double.
const POWERS_OF_TEN: [u128; 23] = {
    let mut tens = [1; 23];
    let mut at = 1;
    while at < tens.len() {
        tens[at] = tens[at - 1] * 10;
        at += 1;
    }
    tens
};

/// Returns true if the decimal is the nearest one of its length to the double; `None` if the numbers are too large for
/// this or as near as another.
fn is_nearest(decimal: &Decimal, double: f64) -> Option<bool> {
    const FRACTION_BITS: u32 = 52;
    let places = usize::try_from(-decimal.exponent)
        .ok()
        .filter(|places| *places < POWERS_OF_TEN.len())?;
    let bits = double.to_bits();
    let power = i64::try_from(bits >> FRACTION_BITS).ok().filter(|power| *power > 0)?;
    let significand = u128::from((bits & ((1 << FRACTION_BITS) - 1)) | (1 << FRACTION_BITS));
    // The double is its significand divided by two to the power of `shift`.
    let shift = u32::try_from(1_075 - power).ok().filter(|shift| *shift > 0)?;
    let value = u128::from(decimal.value?);
    if shift >= value.leading_zeros() {
        return None;
    }
    // Both sides times ten to the power of `places`, and two to that of `shift`: whole numbers below 2^127.
    let difference = (significand * POWERS_OF_TEN[places]).abs_diff(value << shift);
    let half = 1 << (shift - 1);
    (difference != half).then_some(difference < half)
}

/// Returns true if the double, printed with as many digits as the number has, is the number; or printed with the fewest
/// digits that are its own, since programs differ on which of two equally near decimals that is.
fn is_printed(number: &[u8], decimal: &Decimal, double: f64) -> bool {
    let end = number.iter().position(|byte| matches!(byte, b'e' | b'E'));
    let written = number[..end.unwrap_or(number.len())].iter().copied();
    let written = written.filter(u8::is_ascii_digit).skip_while(|byte| *byte == b'0');
    let written = written.take(decimal.digits);
    let first = decimal.exponent.saturating_add(signed(decimal.digits) - 1);
    let is_written = |printed: &str| {
        printed.split_once('e').is_some_and(|(mantissa, power)| {
            power.parse() == Ok(first) && mantissa.bytes().filter(u8::is_ascii_digit).eq(written.clone())
        })
    };
    is_written(&format!("{double:.*e}", decimal.digits.saturating_sub(1))) || is_written(&format!("{double:e}"))
}

fn signed(count: usize) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}

const fn is_of_number(byte: u8) -> bool {
    OF_NUMBERS[byte as usize]
}

/// True for the characters of numbers. A table, because most of a text is asked no more than this.
const OF_NUMBERS: [bool; 256] = {
    let mut of_numbers = [false; 256];
    let mut at = 0;
    while at < NUMBER_CHARACTERS.len() {
        of_numbers[NUMBER_CHARACTERS[at] as usize] = true;
        at += 1;
    }
    of_numbers
};
const NUMBER_CHARACTERS: &[u8] = b"0123456789.-+eE";

/// Returns true if a number has a negative exponent of [`MIN_TINY_EXPONENT_DIGITS`] digits or more.
fn is_tiny(number: &[u8]) -> bool {
    let sign = number.windows(2).position(|pair| is_sign(pair[0], pair[1]));
    sign.is_some_and(|sign| number.len() >= sign + 2 + MIN_TINY_EXPONENT_DIGITS)
}

/// Returns true for the beginning of a negative exponent.
const fn is_sign(letter: u8, sign: u8) -> bool {
    // A letter differs from its capital in this bit.
    letter | 0x20 == b'e' && sign == b'-'
}

/// Returns true if the text has a number of which a double drops digits, or text that looks like one.
fn is_suspect(text: &[u8]) -> bool {
    has_long(text) || has_tiny(text)
}

/// Looks for numbers of less than [`MIN_LOSSY_CHARACTERS`] characters.
fn has_tiny(text: &[u8]) -> bool {
    const AT_ONCE: usize = 64;
    /// Place of the last digit that the exponent needs, from its letter.
    const LAST: usize = 1 + MIN_TINY_EXPONENT_DIGITS;
    let from = |at: usize| text.get(at..).unwrap_or_default().chunks(AT_ONCE);
    let mut chunks = from(0).zip(from(1)).zip(from(LAST)).enumerate();
    chunks.any(|(chunk, ((letters, signs), digits))| {
        let places = || letters.iter().zip(signs).zip(digits);
        // In numbers and without a branch for each byte, since hardly a text has one.
        let begins = |((letter, sign), digit): ((&u8, &u8), &u8)| {
            u8::from(letter | 0x20 == b'e') & u8::from(*sign == b'-') & u8::from(digit.is_ascii_digit())
        };
        // Most texts have no sign, and the search for one is fast without optimization, too.
        signs.contains(&b'-')
            && places().fold(0, |found, place| found | begins(place)) > 0
            && places()
                .enumerate()
                .any(|(at, place)| begins(place) > 0 && is_lost_tiny(text, chunk * AT_ONCE + at))
    })
}

/// Returns true if the exponent that begins at `at` is that of a number of less than [`MIN_LOSSY_CHARACTERS`] characters of which a double
/// drops digits.
fn is_lost_tiny(text: &[u8], at: usize) -> bool {
    let before = text[..at].iter().rev().take(MIN_LOSSY_CHARACTERS);
    let begin = at - before.take_while(|byte| is_of_number(**byte)).count();
    let digits = text[at + 2..].iter().take(MIN_LOSSY_CHARACTERS);
    let end = at + 2 + digits.take_while(|byte| byte.is_ascii_digit()).count();
    end - begin < MIN_LOSSY_CHARACTERS && stands_alone(text, begin, end) && is_lost(&text[begin..end])
}

/// Looks for numbers of [`MIN_LOSSY_CHARACTERS`] characters and more.
fn has_long(text: &[u8]) -> bool {
    let mut at = MIN_LOSSY_CHARACTERS - 1;
    // A run of `MIN_LOSSY_CHARACTERS` characters or more has one of them at every `MIN_LOSSY_CHARACTERS`th place.
    while let Some(byte) = text.get(at) {
        if !is_of_number(*byte) {
            at += MIN_LOSSY_CHARACTERS;
            continue;
        }
        let begin = text[..at].iter().rposition(|byte| !is_of_number(*byte));
        let begin = begin.map_or(0, |before| before + 1);
        let end = end_of_number(text, at);
        if end - begin >= MIN_LOSSY_CHARACTERS && stands_alone(text, begin, end) && is_lost(&text[begin..end]) {
            return true;
        }
        at = end + MIN_LOSSY_CHARACTERS;
    }
    false
}

fn end_of_number(text: &[u8], at: usize) -> usize {
    let length = text[at..].iter().position(|byte| !is_of_number(*byte));
    length.map_or(text.len(), |length| at + length)
}

/// Returns true if what is around a run can be around a number. Digits of a text mostly have a quote there.
fn stands_alone(text: &[u8], begin: usize, end: usize) -> bool {
    let before = begin.checked_sub(1).and_then(|before| text.get(before));
    before.is_none_or(|byte| matches!(byte, b'[' | b':' | b',' | b' ' | b'\t' | b'\r' | b'\n'))
        && text
            .get(end)
            .is_none_or(|byte| matches!(byte, b']' | b'}' | b',' | b' ' | b'\t' | b'\r' | b'\n'))
}

fn is_lost(number: &[u8]) -> bool {
    str::from_utf8(number).is_ok_and(|number| !keeps_digits(number))
}

/// The place within one object or array.
enum NestingLevel<'a> {
    /// The member by its name with quotes; empty where the name is to come.
    Member(&'a [u8]),
    Item(usize),
}

/// Calls `take` with the levels around every number of which a double drops digits, and with its place, until it returns
/// false.
fn each_lost<'a>(text: &'a [u8], mut take: impl FnMut(&[NestingLevel<'a>], Range<usize>) -> bool) {
    let mut levels = Vec::new();
    let mut at = 0;
    while let Some(byte) = text.get(at) {
        match byte {
            b'"' => {
                let end = end_of_string(text, at + 1);
                if let Some(NestingLevel::Member(name @ [])) = levels.last_mut() {
                    *name = &text[at..end];
                }
                at = end;
                continue;
            }
            // The parser refuses deeper texts.
            b'{' | b'[' if levels.len() >= MOST_DEPTH => return,
            b'{' => levels.push(NestingLevel::Member(&[])),
            b'[' => levels.push(NestingLevel::Item(0)),
            b'}' | b']' => {
                levels.pop();
            }
            b',' => match levels.last_mut() {
                Some(NestingLevel::Member(name)) => *name = &[],
                Some(NestingLevel::Item(index)) => *index += 1,
                None => {}
            },
            b'-' | b'0'..=b'9' => {
                let end = end_of_number(text, at);
                if is_lost(&text[at..end]) && !take(&levels, at..end) {
                    return;
                }
                at = end;
                continue;
            }
            _ => {}
        }
        at += 1;
    }
}

/// Returns the place after the closing quote of a string that has begun.
fn end_of_string(text: &[u8], mut at: usize) -> usize {
    while let Some(rest) = text.get(at..)
        && let Some(next) = rest.iter().position(|byte| matches!(byte, b'"' | b'\\'))
    {
        if rest[next] == b'"' {
            return at + next + 1;
        }
        at += next + 2;
    }
    text.len()
}

fn path(levels: &[NestingLevel<'_>]) -> String {
    let mut path = String::new();
    for level in levels {
        let whole = path.len();
        match level {
            NestingLevel::Member(name) if name.len() > MOST_PATH * MOST_ESCAPED => break,
            NestingLevel::Member(name) => {
                let name: String = serde_json::from_slice(name).unwrap_or_default();
                push_pointer(&mut path, &name);
            }
            NestingLevel::Item(index) => push_pointer(&mut path, &index.to_string()),
        }
        if path.len() > MOST_PATH {
            path.truncate(whole);
            break;
        }
    }
    path
}

#[cfg(test)]
mod tests;

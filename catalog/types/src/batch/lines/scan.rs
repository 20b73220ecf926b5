//! Reads plain JSON, as most of it is; `None` is anything else.
//!
//! Invariant: what is read is JSON (RFC 8259), and a number is the one that [`serde_json`] makes of its text.

use super::super::column::{Plain, Span};

/// How many digits an integer has at most that surely fits 64 bits.
const SURE_DIGITS: usize = 18;
/// Up to how many digits that matter a decimal is the shortest one of its double.
const SHORTEST_DIGITS: usize = 15;
/// With how many zeros after its point a number below 1 is still spelled without an exponent (ECMAScript).
const ZEROS: usize = 5;

/// A place in a text.
pub(super) struct Scan<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> Scan<'a> {
    pub(super) const fn new(text: &'a str) -> Self {
        Self { text, at: 0 }
    }

    /// Where it is.
    pub(super) const fn at(&self) -> usize {
        self.at
    }

    pub(super) fn bytes(&self, start: usize, end: usize) -> &'a [u8] {
        &self.text.as_bytes()[start..end]
    }

    fn rest(&self) -> &'a [u8] {
        self.text.as_bytes().get(self.at..).unwrap_or_default()
    }

    fn byte(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    /// Goes beyond these bytes, where they are next.
    pub(super) fn skip(&mut self, bytes: &[u8]) -> bool {
        let is_next = self.rest().starts_with(bytes);
        self.at += if is_next { bytes.len() } else { 0 };
        is_next
    }

    /// The next byte that is not a space.
    pub(super) fn peek(&mut self) -> Option<u8> {
        loop {
            match self.byte()? {
                b' ' | b'\t' | b'\r' | b'\n' => self.at += 1,
                other => return Some(other),
            }
        }
    }

    pub(super) fn next(&mut self) -> Option<u8> {
        let byte = self.peek()?;
        self.at += 1;
        Some(byte)
    }

    pub(super) fn expect(&mut self, byte: u8) -> Option<()> {
        (self.next()? == byte).then_some(())
    }

    /// Nothing but spaces to the end.
    pub(super) fn end(&mut self) -> Option<()> {
        self.peek().is_none().then_some(())
    }

    /// A string without escapes, after its first quote.
    pub(super) fn text(&mut self) -> Option<Span> {
        let rest = self.rest();
        let length = plain_length(rest);
        if *rest.get(length)? != b'"' {
            return None;
        }
        let start = self.at;
        self.at += length + 1;
        Some((start, start + length))
    }

    pub(super) fn value(&mut self) -> Option<Plain> {
        match self.peek()? {
            b'"' => {
                self.at += 1;
                self.text().map(Plain::Text)
            }
            b't' => self.word("true", Plain::Boolean(true)),
            b'f' => self.word("false", Plain::Boolean(false)),
            b'n' => self.word("null", Plain::Null),
            b'-' | b'0'..=b'9' => self.number(),
            _ => None,
        }
    }

    fn word(&mut self, word: &str, value: Plain) -> Option<Plain> {
        self.skip(word.as_bytes()).then_some(value)
    }

    /// A number (RFC 8259 section 6).
    fn number(&mut self) -> Option<Plain> {
        let start = self.at;
        let negative = self.byte()? == b'-';
        self.at += usize::from(negative);
        let zero = self.byte()? == b'0';
        let mut integer = 0_i64;
        let digits = self.digits(&mut integer)?;
        if zero && digits > 1 {
            return None;
        }
        let mut whole = true;
        let mut is_canonical = false;
        if self.byte() == Some(b'.') {
            self.at += 1;
            let point = self.at;
            self.digits(&mut 0)?;
            is_canonical = is_shortest(if zero { 0 } else { digits }, self.bytes(point, self.at));
            whole = false;
        }
        if matches!(self.byte(), Some(b'e' | b'E')) {
            self.at += 1;
            if matches!(self.byte(), Some(b'+' | b'-')) {
                self.at += 1;
            }
            self.digits(&mut 0)?;
            (whole, is_canonical) = (false, false);
        }
        let span = (start, self.at);
        if whole {
            // Why not: the negative zero is a double.
            let plain = digits <= SURE_DIGITS && !(negative && integer == 0);
            return plain.then_some(Plain::Integer(if negative { -integer } else { integer }, span));
        }
        let double = self.text[start..self.at].parse::<f64>().ok()?;
        double
            .is_finite()
            .then_some(Plain::Number(double, is_canonical.then_some(span)))
    }

    /// One or more digits: how many. What they stand for is added to `value`, where it surely fits.
    fn digits(&mut self, value: &mut i64) -> Option<usize> {
        let start = self.at;
        while let Some(digit @ b'0'..=b'9') = self.byte() {
            if self.at - start < SURE_DIGITS {
                *value = *value * 10 + i64::from(digit - b'0');
            }
            self.at += 1;
        }
        (self.at > start).then_some(self.at - start)
    }
}

/// Whether a decimal with so many digits that are not a lone zero before its point, and these after it, is spelled as
/// its canonical form is (RFC 8785 section 3.2.2.3). No two decimals of 15 digits are one double, so the shortest
/// decimal of the double is this one.
fn is_shortest(before: usize, after: &[u8]) -> bool {
    let zeros = if before == 0 {
        after.iter().take_while(|digit| **digit == b'0').count()
    } else {
        0
    };
    before + after.len() - zeros <= SHORTEST_DIGITS && zeros <= ZEROS && after.last() != Some(&b'0')
}

/// How many bytes come before the first quote, backslash or control character.
fn plain_length(bytes: &[u8]) -> usize {
    const ONES: u64 = u64::MAX / 255;
    const HIGH: u64 = ONES << 7;
    // The high bit of each byte that is zero, the lowest of them for certain.
    let zero = |word: u64| word.wrapping_sub(ONES) & !word & HIGH;
    let (words, rest) = bytes.as_chunks::<8>();
    for (index, word) in words.iter().enumerate() {
        let word = u64::from_le_bytes(*word);
        let control = word.wrapping_sub(ONES * 0x20) & !word & HIGH;
        let found = control | zero(word ^ (ONES * u64::from(b'"'))) | zero(word ^ (ONES * u64::from(b'\\')));
        if found != 0 {
            return index * 8 + found.trailing_zeros() as usize / 8;
        }
    }
    let is_end = |byte: &u8| *byte < 0x20 || matches!(byte, b'"' | b'\\');
    words.len() * 8 + rest.iter().position(is_end).unwrap_or(rest.len())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::canonical;

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, cases: 2_048, ..ProptestConfig::default() })]

        #[test]
        fn a_decimal_that_is_said_to_be_canonical_is(text in "-?(0|[1-9][0-9]{0,15})\\.[0-9]{1,17}") {
            if let Some(Plain::Number(double, Some((start, end)))) = Scan::new(&text).value() {
                let mut canonical = Vec::new();
                canonical::write_double(&mut canonical, double);
                prop_assert_eq!(canonical, text.as_bytes()[start..end].to_vec());
            }
        }

        #[test]
        fn short_decimals_are_canonical(double in -1e6_f64..1e6) {
            let text = format!("{}.5", (double * 1e3).trunc());
            prop_assert!(matches!(Scan::new(&text).value(), Some(Plain::Number(_, Some(_)))), "{}", text);
        }

        #[test]
        fn plain_text_ends_where_the_first_escape_or_quote_is(text in "[a-z\u{e9}\u{1f600}\u{1}\"\\\\ ]{0,40}") {
            let expected = text.bytes().position(|byte| byte < 0x20 || byte == b'"' || byte == b'\\');
            prop_assert_eq!(plain_length(text.as_bytes()), expected.unwrap_or(text.len()));
        }
    }
}

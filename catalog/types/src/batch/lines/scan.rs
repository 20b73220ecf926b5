//! A scanner for JSON in its usual spelling. `None` means that the text needs the full parser.
//!
//! Invariant: accepted text is JSON (RFC 8259), and a number equals the one that [`serde_json`] makes of its text.

use super::super::column::{PlainValue, Span};
use super::EXACT_DOUBLE;

/// The most digits of an integer that always fits 64 bits.
const SURE_DIGITS: usize = 18;
/// Powers of ten up to the number of fractional digits. Each is exact as a double.
const POWERS_OF_TEN: [f64; SURE_DIGITS + 1] = [
    1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18,
];
/// The most significant digits with which a decimal is always the shortest one of its double.
const SHORTEST_DIGITS: usize = 15;
/// The most zeros after the point with which ECMAScript spells a number below 1 without an exponent.
const MAX_LEADING_ZEROS: usize = 5;

/// A text with a read position.
pub(super) struct TextScan<'a> {
    text: &'a [u8],
    at: usize,
    /// True if a string with a byte beyond ASCII was read.
    beyond_ascii: bool,
}

impl<'a> TextScan<'a> {
    pub(super) const fn new(text: &'a [u8]) -> Self {
        Self {
            text,
            at: 0,
            beyond_ascii: false,
        }
    }

    /// Returns true if all strings that were read are UTF-8.
    pub(super) fn is_text(&self) -> bool {
        !self.beyond_ascii || std::str::from_utf8(self.text).is_ok()
    }

    /// Returns the read position.
    pub(super) const fn at(&self) -> usize {
        self.at
    }

    pub(super) fn bytes(&self, start: usize, end: usize) -> &'a [u8] {
        &self.text[start..end]
    }

    pub(super) fn rest(&self) -> &'a [u8] {
        self.text.get(self.at..).unwrap_or_default()
    }

    fn byte(&self) -> Option<u8> {
        self.text.get(self.at).copied()
    }

    /// Skips `count` bytes; the caller has checked that they exist.
    pub(super) const fn skip(&mut self, count: usize) {
        self.at += count;
    }

    /// Returns the next byte after white space, without reading it.
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

    /// Succeeds if only white space is left.
    pub(super) fn end(&mut self) -> Option<()> {
        self.peek().is_none().then_some(())
    }

    /// Reads a string without escapes, after its opening quote.
    pub(super) fn text(&mut self) -> Option<Span> {
        let rest = self.rest();
        let (length, beyond_ascii) = plain_length(rest);
        if *rest.get(length)? != b'"' {
            return None;
        }
        self.beyond_ascii |= beyond_ascii;
        let start = self.at;
        self.at += length + 1;
        Some((start, start + length))
    }

    pub(super) fn value(&mut self) -> Option<PlainValue> {
        match self.peek()? {
            b'"' => {
                self.at += 1;
                self.text().map(PlainValue::Text)
            }
            b't' => self.word("true", PlainValue::Boolean(true)),
            b'f' => self.word("false", PlainValue::Boolean(false)),
            b'n' => self.word("null", PlainValue::Null),
            b'-' | b'0'..=b'9' => self.number(),
            _ => None,
        }
    }

    fn word(&mut self, word: &str, value: PlainValue) -> Option<PlainValue> {
        if !self.rest().starts_with(word.as_bytes()) {
            return None;
        }
        self.at += word.len();
        Some(value)
    }

    /// Reads a number (RFC 8259 section 6).
    fn number(&mut self) -> Option<PlainValue> {
        let start = self.at;
        let negative = self.byte()? == b'-';
        self.at += usize::from(negative);
        let zero = self.byte()? == b'0';
        let mut digits = 0_u64;
        let before = self.digits(&mut digits)?;
        // JSON forbids leading zeros.
        if zero && before > 1 {
            return None;
        }
        let mut whole = true;
        let mut is_canonical = false;
        let mut after = 0;
        if self.byte() == Some(b'.') {
            self.at += 1;
            let point = self.at;
            after = self.digits(&mut digits)?;
            is_canonical = is_shortest(if zero { 0 } else { before }, self.bytes(point, self.at));
            whole = false;
        }
        let mut decimal = !whole;
        // The text of a number with an exponent is never reused as its canonical form.
        if matches!(self.byte(), Some(b'e' | b'E')) {
            self.at += 1;
            if matches!(self.byte(), Some(b'+' | b'-')) {
                self.at += 1;
            }
            self.digits(&mut 0)?;
            (whole, decimal, is_canonical) = (false, false, false);
        }
        let span = (start, self.at);
        // More digits may overflow, so their value in `digits` is not used.
        let sure = before + after <= SURE_DIGITS;
        if whole {
            // Negative zero is a double, so it is no integer here.
            let integer = i64::try_from(digits)
                .ok()
                .filter(|_| sure && !(negative && digits == 0))?;
            return Some(PlainValue::Integer(if negative { -integer } else { integer }, span));
        }
        let double = if decimal && sure && digits <= EXACT_DOUBLE {
            // Both operands are exact, so the quotient is rounded once and is the nearest
            // double.
            #[expect(clippy::cast_precision_loss, reason = "2^53 and below are exact")]
            let double = digits as f64 / POWERS_OF_TEN[after];
            if negative { -double } else { double }
        } else {
            std::str::from_utf8(self.bytes(start, self.at)).ok()?.parse().ok()?
        };
        double
            .is_finite()
            .then_some(PlainValue::Number(double, is_canonical.then_some(span)))
    }

    /// Reads one or more digits, appends them to `value`, and returns their number. `value` is meaningful for at most
    /// [`SURE_DIGITS`] digits in all.
    fn digits(&mut self, value: &mut u64) -> Option<usize> {
        let start = self.at;
        for &byte in self.rest() {
            let digit = byte.wrapping_sub(b'0');
            if digit > 9 {
                break;
            }
            *value = value.wrapping_mul(10).wrapping_add(u64::from(digit));
            self.at += 1;
        }
        (self.at > start).then_some(self.at - start)
    }
}

/// Returns true if a decimal is spelled in its canonical form (RFC 8785 section 3.2.2.3). `before` is the number of
/// digits before the point, 0 for a lone zero, and `after` the digits behind it. Two different decimals of 15 digits
/// are never the same double, so the shortest decimal of the double is this one.
fn is_shortest(before: usize, after: &[u8]) -> bool {
    let zeros = if before == 0 {
        after.iter().take_while(|digit| **digit == b'0').count()
    } else {
        0
    };
    before + after.len() - zeros <= SHORTEST_DIGITS && zeros <= MAX_LEADING_ZEROS && after.last() != Some(&b'0')
}

/// The number of bytes that are checked at a time.
const SCAN_BYTES: usize = 16;

/// Returns the number of bytes before the first quote, backslash or control character, and whether a byte beyond ASCII
/// was seen. The second value may concern bytes a little behind the end.
fn plain_length(bytes: &[u8]) -> (usize, bool) {
    let mut beyond_ascii = false;
    let (blocks, rest) = bytes.as_chunks::<SCAN_BYTES>();
    for (index, block) in blocks.iter().enumerate() {
        let (before, beyond) = scan_block(*block);
        beyond_ascii |= beyond;
        if before < SCAN_BYTES {
            return (index * SCAN_BYTES + before, beyond_ascii);
        }
    }
    // Padding with quotes makes the scan stop at the end of the text.
    let mut block = [b'"'; SCAN_BYTES];
    block[..rest.len()].copy_from_slice(rest);
    let (before, beyond) = scan_block(block);
    (blocks.len() * SCAN_BYTES + before, beyond_ascii | beyond)
}

/// Returns the number of bytes of a block before the first that ends plain text, and whether any byte is beyond ASCII.
#[cfg(target_arch = "x86_64")]
fn scan_block(block: [u8; SCAN_BYTES]) -> (usize, bool) {
    use pulp::core_arch::x86::Sse2;
    // Costs nothing: every processor of this architecture has SSE2, and the compiler knows.
    let Some(sse2) = Sse2::try_new() else {
        return scan_block_portably(block);
    };
    let bytes = pulp::cast(block);
    let all = |byte: u8| sse2._mm_set1_epi8(byte.cast_signed());
    let quotes = sse2._mm_cmpeq_epi8(bytes, all(b'"'));
    let escapes = sse2._mm_cmpeq_epi8(bytes, all(b'\\'));
    let controls = sse2._mm_cmpeq_epi8(sse2._mm_min_epu8(bytes, all(0x1F)), bytes);
    let ends = sse2._mm_movemask_epi8(sse2._mm_or_si128(sse2._mm_or_si128(quotes, escapes), controls));
    let before = ends.trailing_zeros() as usize;
    (before.min(SCAN_BYTES), sse2._mm_movemask_epi8(bytes) != 0)
}

#[cfg(not(target_arch = "x86_64"))]
use scan_block_portably as scan_block;

/// Does the same without vector instructions.
fn scan_block_portably(block: [u8; SCAN_BYTES]) -> (usize, bool) {
    const ONES: u64 = u64::MAX / 255;
    const HIGH: u64 = ONES << 7;
    // Marks the high bit of each zero byte. Higher bytes may be marked wrongly, but the lowest
    // mark is right.
    let zero = |word: u64| word.wrapping_sub(ONES) & !word & HIGH;
    let word = |half: usize| {
        let mut word = [0; 8];
        word.copy_from_slice(&block[half * 8..][..8]);
        u64::from_le_bytes(word)
    };
    // Returns the number of bytes of a half before the first that ends plain text.
    let before = |word: u64| {
        let control = word.wrapping_sub(ONES * 0x20) & !word & HIGH;
        let found = control | zero(word ^ (ONES * u64::from(b'"'))) | zero(word ^ (ONES * u64::from(b'\\')));
        found.trailing_zeros() as usize / 8
    };
    let first = before(word(0));
    let length = if first < 8 { first } else { 8 + before(word(1)) };
    (length, (word(0) | word(1)) & HIGH != 0)
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
            if let Some(PlainValue::Number(double, Some((start, end)))) = TextScan::new(text.as_bytes()).value() {
                let mut canonical = Vec::new();
                canonical::write_double(&mut canonical, double);
                prop_assert_eq!(canonical, text.as_bytes()[start..end].to_vec());
            }
        }

        #[test]
        fn a_block_is_seen_alike_by_every_processor(bytes in prop::array::uniform16(any::<u8>()), plain in 0..17_usize) {
            let mut block = bytes;
            block[..plain].fill(b'a');
            prop_assert_eq!(scan_block(block), scan_block_portably(block));
            let is_end = |byte: &u8| *byte < 0x20 || matches!(byte, b'"' | b'\\');
            prop_assert_eq!(scan_block(block).0, block.iter().position(is_end).unwrap_or(SCAN_BYTES));
        }

        #[test]
        fn a_decimal_is_the_nearest_double(text in "-?(0|[1-9][0-9]{0,17})\\.[0-9]{1,19}([eE]-?[0-9]{1,2})?") {
            let Some(PlainValue::Number(double, _)) = TextScan::new(text.as_bytes()).value() else { panic!("{text}") };
            prop_assert_eq!(double.to_bits(), text.parse::<f64>().unwrap().to_bits(), "{}", text);
        }

        #[test]
        fn short_decimals_are_canonical(double in -1e6_f64..1e6) {
            let text = format!("{}.5", (double * 1e3).trunc());
            prop_assert!(matches!(TextScan::new(text.as_bytes()).value(), Some(PlainValue::Number(_, Some(_)))), "{}", text);
        }

        #[test]
        fn plain_text_ends_where_the_first_escape_or_quote_is(text in "[a-z\u{e9}\u{1f600}\u{1}\"\\\\ ]{0,40}") {
            let expected = text.bytes().position(|byte| byte < 0x20 || byte == b'"' || byte == b'\\');
            let (length, beyond_ascii) = plain_length(text.as_bytes());
            prop_assert_eq!(length, expected.unwrap_or(text.len()));
            prop_assert!(beyond_ascii || text.as_bytes()[..length].is_ascii());
            prop_assert!(!(beyond_ascii && text.is_ascii()));
        }
    }
}

//! The scanner: finds the kinds of personal data in one text.
//!
//! Invariant: a text that [`byte_classes`] clears meets no rule, and the scan of any other text is linear in its
//! length.

use super::context::ContextFlags;
use super::kind::{Kind, Kinds};
use super::number::{self, Group};
use super::{alphanumeric, card, email, identity, phone, travel_documents};
use crate::text::{ByteClasses, byte_classes, might_normalise, normalise};

/// The fewest digits any kind of number has: those of a UK national insurance number.
pub(super) const FEWEST_DIGITS: usize = 6;

/// Scans texts, and reuses its buffers.
#[derive(Clone, Debug, Default)]
pub(super) struct Scanner {
    folded: String,
    groups: Vec<Group>,
}

impl Scanner {
    /// Returns true if `text` needs a scan. For JSON text the result applies to all of its leaves.
    pub(super) fn suspects(text: &[u8]) -> bool {
        is_suspect(byte_classes(text), text)
    }

    /// Returns the kinds of personal data in `text`; `field` are the flags of its field's name.
    pub(super) fn scan(&mut self, text: &str, field: ContextFlags) -> Kinds {
        let mut kinds = Kinds::default();
        // Most texts end here, after one pass over their bytes.
        let seen = byte_classes(text.as_bytes());
        if !is_suspect(seen, text.as_bytes()) {
            return kinds;
        }
        if seen.beyond_ascii || seen.encoded {
            // The buffer is taken out, because the scan below borrows the scanner mutably.
            let mut folded = std::mem::take(&mut self.folded);
            folded.clear();
            normalise(text, &mut folded);
            self.scan_plain(&folded, byte_classes(folded.as_bytes()), field, &mut kinds);
            self.folded = folded;
        } else {
            self.scan_plain(text, seen, field, &mut kinds);
        }
        kinds
    }

    fn scan_plain(&mut self, text: &str, seen: ByteClasses, field: ContextFlags, kinds: &mut Kinds) {
        if seen.at && email::has_address(text, field) {
            kinds.insert(Kind::Email);
        }
        if seen.bracket && email::unmask(text).is_some_and(|text| email::has_address(&text, field)) {
            kinds.insert(Kind::Email);
        }
        if seen.angle && travel_documents::has_zone(text.as_bytes()) {
            kinds.insert(Kind::PassportMrz);
        }
        // Every rule below needs more digits.
        if seen.digits < FEWEST_DIGITS {
            return;
        }
        number::groups(text.as_bytes(), &mut self.groups);
        judge_numbers(text.as_bytes(), &self.groups, field, kinds);
        // Digits written apart are scanned a second time, joined.
        if let Some(closed) = number::collapse_spaced_digits(text.as_bytes(), &self.groups) {
            number::groups(&closed, &mut self.groups);
            judge_numbers(&closed, &self.groups, field, kinds);
        }
    }
}

/// Returns true if a text with these byte classes needs a scan.
fn is_suspect(seen: ByteClasses, text: &[u8]) -> bool {
    seen.at
        || seen.digits >= FEWEST_DIGITS
        || (seen.angle && memchr::memmem::find(text, b"<<").is_some())
        || (seen.beyond_ascii && might_normalise(text))
        || (seen.encoded && might_encode_at(text))
        || (seen.bracket && has_masked_at(text))
}

fn judge_numbers(text: &[u8], groups: &[Group], field: ContextFlags, kinds: &mut Kinds) {
    // Both passes read the same groups of digits; the first also reads the letters around them.
    alphanumeric::judge(text, groups, field, kinds);
    number::each(text, groups, field, |candidate| {
        identity::judge(candidate, kinds);
        // A number that passes the check digit of a card is reported as a card only.
        if let Some(kind) = card::judge(candidate).or_else(|| phone::judge(candidate)) {
            kinds.insert(kind);
        }
    });
}

/// Returns true if a bracket is followed by `at` or by an at of another alphabet.
fn has_masked_at(text: &[u8]) -> bool {
    memchr::memchr3_iter(b'(', b'[', b'{', text).any(|open| {
        let inside = text[open + 1..].trim_ascii_start();
        inside.starts_with("골".as_bytes()) || inside.get(..2).is_some_and(|word| word.eq_ignore_ascii_case(b"at"))
    })
}

/// Returns true if there may be an `@` in the encoding of URLs or HTML.
fn might_encode_at(text: &[u8]) -> bool {
    ["%40", "&#", "&c"]
        .iter()
        .any(|encoded| memchr::memmem::find(text, encoded.as_bytes()).is_some())
}

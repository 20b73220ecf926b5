//! Payment card numbers (ISO/IEC 7812): issuer ranges, lengths and the Luhn check digit.
//!
//! Invariant: a number without separators and without a word nearby is a card only in the common lengths 15 and 16,
//! since every tenth number of any length passes the Luhn check.

use super::checksum::{luhn, number};
use super::context::ContextFlags;
use super::kind::Kind;
use super::number::{Gap, Number};

/// Returns the rule by which the number is a payment card's.
pub(super) fn judge(candidate: &Number<'_>) -> Option<Kind> {
    let digits = candidate.digits();
    if !(13..=19).contains(&digits.len())
        || candidate.plus
        || candidate.is_decimal()
        || !is_issued(digits)
        || !luhn(digits)
    {
        return None;
    }
    // Cards are written with one kind of separator throughout.
    let joints = [Gap::Space, Gap::Hyphen, Gap::Dot, Gap::Line, Gap::Tab];
    if !joints.into_iter().any(|gap| candidate.joined_by(gap)) {
        return None;
    }
    if candidate.called(ContextFlags::CARD) {
        return Some(Kind::CardCalled);
    }
    let in_form = match candidate.shape() {
        // A bare run of digits is a card only in a common length, unless a word says that it is
        // one.
        [_] => matches!(digits.len(), 15 | 16) && !candidate.tight && !candidate.of_thing_or_field(),
        [4, 4, 4, 1 | 4] | [4, 6, 4 | 5] | [4, 4, 4, 4, 2 | 3] | [6, 13] => {
            !candidate.tight && !candidate.in_list && !candidate.of_thing()
        }
        // In other groupings a word for a card is needed.
        _ => false,
    };
    in_form.then_some(Kind::CardInForm)
}

/// Returns true if an issuer owns the range and uses the length.
fn is_issued(digits: &[u8]) -> bool {
    let length = digits.len();
    let prefix = |places: usize| number(&digits[..places]);
    match prefix(4) {
        4000..=4999 => matches!(length, 13 | 16 | 19),
        5100..=5599 | 2221..=2720 => length == 16,
        3400..=3499 | 3700..=3799 => length == 15,
        3000..=3059 | 3600..=3699 | 3800..=3999 => (14..=19).contains(&length),
        3528..=3589 => (16..=19).contains(&length),
        6011 | 6440..=6599 | 6000..=6009 | 8100..=8299 | 6200..=6299 => (16..=19).contains(&length),
        2200..=2205 | 9792 | 5018 | 5020 | 5038 | 5060..=5069 | 5080..=5089 | 5893 | 6304 | 6759 | 6761..=6763 => {
            (16..=19).contains(&length)
        }
        // Domestic cards of Korea.
        9400..=9499 => length == 16,
        _ => false,
    }
}

//! Phone numbers: international (ITU-T E.164) and the national forms of Korea, North America, Europe and others.
//!
//! Invariant: without a `+` or a word nearby, only forms that are rarely used for anything else are phone numbers. A
//! bare run of digits is one only if it is a Korean mobile number.

use super::checksum::number;
use super::context::ContextFlags;
use super::kind::Kind;
use super::number::{Gap, Number};

/// Returns the rule by which the number is a phone's.
pub(super) fn judge(candidate: &Number<'_>) -> Option<Kind> {
    if candidate.gaps().any(Gap::is_of_table) {
        return None;
    }
    // Evaluated lazily: the search for words costs more than all checks before it.
    let called = || candidate.called(ContextFlags::PHONE.and(ContextFlags::LOOSE));
    if candidate.plus {
        let phone = is_international(candidate.digits())
            && !is_decimal(candidate)
            && !candidate.gaps().any(|gap| gap == Gap::Slash)
            && (called() || !(candidate.tight || candidate.of_thing()))
            && (candidate.called(ContextFlags::PHONE) || !(candidate.is_coordinates() || candidate.is_sexagesimal()));
        return phone.then_some(Kind::PhoneInternational);
    }
    // Phones that receive text messages in Korea begin with 0.
    let texted = || candidate.digits()[0] == 0 && candidate.called(ContextFlags::TEXTED);
    if is_plausible(candidate)
        && (candidate.called(ContextFlags::PHONE) || (is_likely(candidate) && called()) || texted())
    {
        return Some(Kind::PhoneCalled);
    }
    if candidate.tight || candidate.of_thing() || is_dotted_quad(candidate) || candidate.in_field_of_codes() {
        return None;
    }
    if is_dialled_out(candidate) {
        return Some(Kind::PhoneDialledOut);
    }
    is_national(candidate).then_some(Kind::PhoneNational)
}

/// Returns true if the number is written with the prefix `00`: in groups of more than one width, with the country code
/// apart from the rest, and without the trunk zero that `+` forgives. The prefix alone is that of a padded number.
fn is_dialled_out(candidate: &Number<'_>) -> bool {
    let [0, 0, digits @ ..] = candidate.digits() else {
        return false;
    };
    let Some((_, rest)) = country_code(digits) else {
        return false;
    };
    let prefix = candidate.digits().len() - rest.len();
    let shape = candidate.shape();
    let apart = usize::from(shape[0]) == prefix
        || (shape[0] == 2 && shape.get(1).is_some_and(|code| usize::from(2 + code) == prefix));
    apart
        && shape.iter().any(|length| *length != shape[0])
        && !candidate.in_list
        && !is_decimal(candidate)
        && !is_version(candidate)
        && !candidate.is_sexagesimal()
        && rest.first() != Some(&0)
        && is_international(digits)
}

/// Returns true if the digits are a country code and a number of a length that the country uses.
fn is_international(digits: &[u8]) -> bool {
    let Some((code, rest)) = country_code(digits) else {
        return false;
    };
    // A trunk zero is often kept, as in `+44 (0)20 …` and `+82 010 …`; Italy's numbers have one of their own.
    // The trunk zero is not part of the international number.
    let rest = match rest {
        [0, rest @ ..] if code != 39 => rest,
        rest => rest,
    };
    let (least, most) = match code {
        1 => return is_north_american(rest),
        7 | 30 | 52 | 57 | 58 | 90 | 91 | 98 => (10, 10),
        27 | 31 | 33 | 34 | 36 | 40 | 41 | 48 | 56 | 61 | 66 | 84 | 93 | 94 => (8, 9),
        45 | 47 | 53 | 65 => (8, 8),
        32 | 46 | 51 | 60 | 63 | 64 | 92 | 95 => (7, 10),
        39 | 43 | 49 | 62 => (7, 12),
        20 | 44 | 81 | 82 => (8, 10),
        54 | 55 | 86 => (10, 11),
        _ => (6, 11),
    };
    (least..=most).contains(&rest.len()) && (code == 39 || rest.first() != Some(&0)) && digits.len() >= 8
}

/// Splits off an assigned country code (ITU-T E.164 list of assigned codes).
fn country_code(digits: &[u8]) -> Option<(u64, &[u8])> {
    let places = match digits {
        [1 | 7, ..] => 1,
        // Codes that are not assigned, or belong to the North American plan.
        [2, 1, 0 | 4 | 5 | 7 | 9, ..]
        | [2, 9, 2..=6, ..]
        | [3, 8, 4 | 8, ..]
        | [4, 2, 2 | 4..=9, ..]
        | [6, 7, 1, ..]
        | [6, 8, 4, ..]
        | [6, 9, 3..=9, ..]
        | [8, 5, 1 | 4 | 7..=9, ..]
        | [8, 8, 4 | 5 | 7 | 9, ..]
        | [9, 6 | 9, 9, ..]
        | [9, 7, 8, ..]
        | [9, 9, 0 | 1 | 7, ..] => return None,
        [2, 0 | 7, ..]
        | [3, 0..=4 | 6 | 9, ..]
        | [4, 0 | 1 | 3..=9, ..]
        | [5, 1..=8, ..]
        | [6, 0..=6, ..]
        | [8, 1 | 2 | 4 | 6, ..]
        | [9, 0..=5 | 8, ..] => 2,
        [2, 1..=6 | 9, ..]
        | [3, 5 | 7 | 8, ..]
        | [4, 2, ..]
        | [5, 0 | 9, ..]
        | [6, 7..=9, ..]
        | [8, 5 | 8, ..]
        | [9, 6 | 7 | 9, ..] => 3,
        _ => return None,
    };
    (digits.len() > places).then(|| (number(&digits[..places]), &digits[places..]))
}

/// The North American plan: area code and exchange begin with 2 to 9 and are not service codes such as 911.
fn is_north_american(digits: &[u8]) -> bool {
    match digits {
        [2..=9, b, c, 2..=9, e, f, _, _, _, _] => (b, c) != (&1, &1) && (e, f) != (&1, &1),
        _ => false,
    }
}

/// Returns true if a number next to a word for a phone can be one: long enough, and no date, time, decimal, address or
/// count.
fn is_plausible(candidate: &Number<'_>) -> bool {
    let digits = candidate.digits();
    let shape = candidate.shape();
    // These are the numbers of Korean call centres.
    let call_centre = matches!(shape, [4, 4] | [8]) && matches!(digits, [1, 5 | 6 | 8, ..]);
    let grouped = match shape {
        [_] => digits.len() >= 9 || candidate.field_names_phone(),
        // A single digit is a trunk or country code, or else another number.
        [1, _] => matches!(digits[0], 0 | 1 | 7 | 8) || candidate.area,
        [_, _] => true,
        _ => shape.iter().all(|length| *length <= 5) || candidate.area,
    };
    grouped
        && (MIN..=MAX).contains(&digits.len())
        && !(candidate.timed || is_dated(digits, shape) || call_centre)
        && !(is_decimal(candidate) || has_decimals(candidate) || is_dotted_quad(candidate) || is_count(candidate))
        && !is_version(candidate)
        && !(digits[0] == 0 && candidate.is_sexagesimal())
        // Parts of a path, or a list.
        && !(candidate.joined_by(Gap::Slash) && (shape.len() > 2 || (shape.len() > 1 && candidate.tight)))
        && digits.iter().any(|digit| *digit != digits[0])
}

/// Returns true if a plausible number next to a loose word is likely a phone's.
fn is_likely(candidate: &Number<'_>) -> bool {
    let digits = candidate.digits();
    let long = match digits.len() {
        ..9 => matches!(candidate.shape(), [3 | 4, 4] | [2, 2, 2, 2]),
        9 => digits[0] > 1,
        _ => true,
    };
    !candidate.tight && (long || digits[0] == 0 || candidate.area || candidate.gaps().any(|gap| gap == Gap::Hyphen))
}

/// Returns true if the digits begin with a date, or are a range of years.
fn is_dated(digits: &[u8], shape: &[u8]) -> bool {
    let year = |digits: &[u8]| matches!(digits, [1, 9, ..] | [2, 0, ..]);
    let within = |digits: &[u8], most: u64| (1..=most).contains(&number(digits));
    let day = |month: &[u8], day: &[u8]| within(month, 12) && within(day, 31);
    match shape {
        [4, 2, 2] => year(digits),
        [2, 2, 4] => year(&digits[4..]),
        [4, 4] => year(digits) && year(&digits[4..]),
        [8] => year(digits) && matches!(digits[4..], [0 | 1, _, 0..=3, _]),
        [4, 2, _, ..] => year(digits) && within(&digits[4..6], 12),
        [2, 2, 4, ..] => {
            let (first, second) = (&digits[..2], &digits[2..4]);
            year(&digits[4..]) && (day(first, second) || day(second, first))
        }
        [8, 4 | 6] | [12 | 14] => {
            let (hour, minute) = (number(&digits[8..10]), number(&digits[10..12]));
            year(digits) && day(&digits[4..6], &digits[6..8]) && hour < 24 && minute < 60
        }
        _ => false,
    }
}

/// Returns true if some separators are dots as in decimal fractions, and others are not.
fn has_decimals(candidate: &Number<'_>) -> bool {
    let digits = candidate.digits();
    let has = |gap| candidate.gaps().any(|other| other == gap);
    if !has(Gap::Dot) || is_north_american(digits) || (digits[0] == 1 && is_north_american(&digits[1..])) {
        return false;
    }
    let trunk = digits[0] == 0 && candidate.shape()[0] > 2;
    let mut gaps = candidate.gaps();
    let ranged = (gaps.next(), gaps.next(), gaps.next());
    (has(Gap::Space) && !trunk) || matches!(ranged, (Some(Gap::Dot), Some(Gap::Hyphen | Gap::Slash), Some(Gap::Dot)))
}

/// Returns true if the number is more likely a count in groups of thousands, or several round ones.
fn is_count(candidate: &Number<'_>) -> bool {
    let (digits, shape) = (candidate.digits(), candidate.shape());
    if digits[0] == 0 || shape.len() < 2 || !(candidate.joined_by(Gap::Space) || candidate.joined_by(Gap::Dot)) {
        return false;
    }
    let mut rest = digits;
    let round = shape.iter().all(|length| {
        let (group, others) = rest.split_at(usize::from(*length));
        rest = others;
        group.ends_with(&[0])
    });
    round || digits.ends_with(&[0; 6]) || matches!(shape, [1, 3, 3] | [3, 3, 1 | 2])
}

const MIN: usize = 7;
const MAX: usize = 15;

/// The national forms, by the lengths of their groups.
fn is_national(candidate: &Number<'_>) -> bool {
    let digits = candidate.digits();
    let hyphen = candidate.joined_by(Gap::Hyphen);
    let space = candidate.joined_by(Gap::Space);
    let dot = candidate.joined_by(Gap::Dot);
    let slash = candidate.joined_by(Gap::Slash);
    let area = candidate.gaps().next() == Some(Gap::Paren);
    let trunk = digits[0] == 0;
    let thing = candidate.of_thing_or_field();
    match *candidate.shape() {
        // Korean mobile, bare: 010 and a subscriber number that is assigned.
        [11] => matches!(digits, [0, 1, 0, 1..=9, ..]) && digits.iter().any(|digit| *digit > 1) && !thing,
        [3, 3 | 4, 4] if matches!(digits, [0, 1, 0 | 1 | 6..=9, ..]) => hyphen || space || dot || area,
        // Korea and Japan: an area or network code, an exchange, four digits.
        [3, 3 | 4, 4] if trunk && digits[1] != 0 => hyphen || area || (space && matches!(digits, [0, 2 | 5..=9, ..])),
        [3, 3, 4] if is_north_american(digits) => (hyphen || dot || area) && !thing,
        // Mobile numbers of China.
        [3, 4, 4] if matches!(digits, [1, 3..=9, ..]) => (hyphen || space) && !candidate.in_list && !thing,
        [3, 7] if candidate.area && is_north_american(digits) => !thing,
        [1, 3, 3, 4] | [1, 3, 7] if digits[0] == 1 && is_north_american(&digits[1..]) => {
            (hyphen || dot || candidate.gaps().any(|gap| gap == Gap::Paren)) && !thing
        }
        [2, 3, 4] => (hyphen || area) && matches!(digits, [0, 2, ..]),
        [2, 4, 4] if trunk => (hyphen || area || (space && candidate.area)) && digits[1] != 0,
        // Brazil, and its mobile numbers that begin with 9.
        [2, 4, 4] => area && candidate.gaps().last() == Some(Gap::Hyphen),
        [2, 5, 4] => digits[2] == 9 && candidate.gaps().last() == Some(Gap::Hyphen),
        // France: five pairs; rising small pairs are more likely drawn numbers or a dump of bytes.
        [2, 2, 2, 2, 2] => {
            let rising = digits.chunks(2).is_sorted() && digits[8] < 6;
            trunk && digits[1] != 0 && !rising && !candidate.in_list && (hyphen || space || dot)
        }
        // The United Kingdom.
        [5, 6] | [5, 3, 3] => matches!(digits, [0, 1 | 7, 1..=9, ..]) && (space || area || hyphen),
        [4, 3, 4] => matches!(digits, [0, 1 | 3 | 8, ..]) && (space || area || hyphen),
        // Australia, Switzerland, Turkey, Vietnam, Taiwan, toll-free Japan.
        [4, 3, 3] => trunk && digits[1] != 0 && (space || hyphen || dot),
        [3 | 4, 3, 2, 2] | [4, 2, 2, 2] => trunk && digits[1] != 0 && !dot && !slash,
        // Russia.
        [1, 3, 3, 2, 2] => matches!(digits, [7 | 8, 3 | 4 | 8 | 9, ..]) && !dot && !slash,
        // Germany, the Netherlands and others: an area or network code and the rest.
        [2, 8] => matches!(digits, [0, 6, ..]) && (hyphen || space),
        [3, 7] => trunk && digits[1] != 0 && (hyphen || slash),
        [4, 7] => trunk && digits[1] != 0 && (hyphen || slash || (space && matches!(digits, [0, 1, 5..=7, ..]))),
        [4, 8] => matches!(digits, [0, 1, 5..=7, ..]) && (hyphen || slash || space),
        [3, 5 | 6 | 8] | [4, 5 | 6] | [5, 4..=7] => trunk && digits[1] != 0 && (slash || area),
        _ => false,
    }
}

/// Returns true if the number is a decimal fraction: two groups with a dot.
fn is_decimal(candidate: &Number<'_>) -> bool {
    candidate.is_decimal() && !(candidate.plus && candidate.called(ContextFlags::PHONE))
}

/// Returns true if the number has the form of an IPv4 address.
fn is_dotted_quad(candidate: &Number<'_>) -> bool {
    candidate.shape().len() == 4 && candidate.joined_by(Gap::Dot) && candidate.shape().iter().all(|length| *length <= 3)
}

/// Returns true if the number is a version: its groups are separated by dots, and a group after the first is a single
/// digit other than the 9 that some mobile numbers have after the country code.
fn is_version(candidate: &Number<'_>) -> bool {
    let mut start = 0;
    let single = candidate.shape().iter().enumerate().any(|(place, length)| {
        let digit = candidate.digits()[start];
        start += usize::from(*length);
        *length == 1 && place > 0 && (place, digit) != (1, 9)
    });
    single && candidate.gaps().any(|gap| gap == Gap::Dot)
}

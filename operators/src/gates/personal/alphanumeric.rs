//! Identity and account numbers that mix letters and digits.
//!
//! Invariant: a number fills a whole word (or words): no letter or digit touches either end.

use super::checksum;
use super::context::ContextFlags;
use super::identity;
use super::kind::{Kind, Kinds};
use super::number::{Gap, Group};

/// Adds the kinds of alphanumeric number in `text`; `groups` are its groups of digits.
pub(super) fn judge(text: &[u8], groups: &[Group], field: ContextFlags, kinds: &mut Kinds) {
    for (index, group) in groups.iter().enumerate() {
        let at = Place {
            text,
            start: group.start,
            end: group.end,
            field,
        };
        let length = group.len();
        if length >= 2 && at.letters_before() == 2 && is_iban(&text[group.start - 2..]) {
            kinds.insert(Kind::Iban);
        }
        if (length == 2 || length == 6) && is_uk_nino(&at, &groups[index..]) {
            kinds.insert(Kind::UkNino);
        }
        if (length == 8 || length == 7 || length == 2) && is_es_dni(&at, &groups[index..]) {
            kinds.insert(Kind::EsDni);
        }
        if length == 2 && at.letters_before() == 6 && is_it_codice_fiscale(&text[group.start - 6..]) {
            kinds.insert(Kind::ItCodiceFiscale);
        }
        if length == 17 && at.letters_before() == 0 && is_cn_resident_id(&at) {
            kinds.insert(Kind::CnResidentId);
        }
    }
}

/// The position of a group of digits in a text.
struct Place<'a> {
    text: &'a [u8],
    start: usize,
    end: usize,
    field: ContextFlags,
}

impl Place<'_> {
    /// Returns the number of ASCII letters right before, or 0 if a digit or underscore precedes them.
    fn letters_before(&self) -> usize {
        let before = &self.text[..self.start];
        let letters = before
            .iter()
            .rev()
            .take_while(|byte| byte.is_ascii_alphabetic())
            .count();
        if before[..before.len() - letters]
            .last()
            .is_some_and(|byte| is_word(*byte))
        {
            0
        } else {
            letters
        }
    }

    fn called(&self, hint: ContextFlags) -> bool {
        ContextFlags::near(self.text, self.start, self.end).has(hint) || self.field.has(hint)
    }
}

const fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_'
}

/// The countries of the IBAN registry (ISO 13616) with the form of their numbers after the check digits: counts of
/// digits (`n`), letters (`a`) or both (`c`), in this order.
const IBAN_FORMS: &str = "AD8n12c AE19n AL8n16c AT16n AZ4a20c BA16n BE12n BG4a6n8c BH4a14c BI23n BR23n1a1c BY4c4n16c CH5n12c \
    CR18n CY8n16c CZ20n DE18n DJ23n DK14n DO4c20n EE16n EG25n ES20n FI14n FK2a12n FO14n FR10n11c2n GB4a14n GE2a16n GI4a15c \
    GL14n GR7n16c GT24c HR17n HU24n IE4a14n IL19n IQ4a15n IS22n IT1a10n12c JO4a4n18c KW4a22c KZ3n13c LB4n20c LC4a24c \
    LI5n12c LT16n LU3n13c LV4a13c LY21n MC10n11c2n MD20c ME18n MK3n10c2n MN16n MR23n MT4a5n18c MU4a19n3a NI4a20n NL4a10n \
    NO11n OM3n16c PK4a16c PL24n PS4a21c PT21n QA4a21c RO4a16c RS18n RU14n15c SA2n18c SC4a20n3a SD14n SE20n SI15n SK20n \
    SM1a10n12c SO19n ST21n SV4a20n TL19n TN20n TR6n16c UA6n19c VA18n VG4a16n XK16n YE4a4n18c";

/// Returns the class of each character of a country's IBAN after the country, at the front of the array, and their
/// number.
fn iban_form(country: [u8; 2]) -> Option<([u8; 34], usize)> {
    let form = IBAN_FORMS
        .split(' ')
        .find(|form| form.as_bytes().starts_with(&country))?;
    let mut classes = [b'n'; 34];
    let (mut length, mut count) = (2, 0);
    for byte in form.bytes().skip(2) {
        if byte.is_ascii_digit() {
            count = count * 10 + usize::from(byte - b'0');
        } else {
            classes.get_mut(length..length + count)?.fill(byte);
            length += count;
            count = 0;
        }
    }
    Some((classes, length))
}

/// Returns true if `text` begins with an IBAN, in one word or in groups of four.
fn is_iban(text: &[u8]) -> bool {
    let Some((classes, length)) = iban_form([text[0].to_ascii_uppercase(), text[1].to_ascii_uppercase()]) else {
        return false;
    };
    let mut characters = [0; 36];
    characters[..2].copy_from_slice(&text[..2]);
    let mut count = 0;
    let mut rest = text.iter().copied().enumerate().skip(2);
    while count < length {
        match rest.next() {
            // Every class is checked, because an identifier of letters and digits, such as a
            // UUID, often has the length and the check digits of a country whose numbers have
            // digits only.
            Some((_, byte)) if is_of(byte, classes[count]) => {
                characters[2 + count] = byte;
                count += 1;
            }
            Some((index, b' ' | b'-' | b'.')) if (count + 2) % 4 == 0 && text[index - 1].is_ascii_alphanumeric() => {}
            _ => return false,
        }
    }
    let ended = rest.next().is_none_or(|(_, byte)| !is_word(byte));
    ended && checksum::iban(&characters[..2 + length])
}

/// Returns true if a character is of a class of [`IBAN_FORMS`].
const fn is_of(byte: u8, class: u8) -> bool {
    match class {
        b'n' => byte.is_ascii_digit(),
        b'a' => byte.is_ascii_alphabetic(),
        _ => byte.is_ascii_alphanumeric(),
    }
}

/// Two letters, six digits, a letter from A to D (HMRC, NIM39110).
fn is_uk_nino(at: &Place<'_>, groups: &[Group]) -> bool {
    let spaced = matches!(groups, [a, b, c, ..]
        if (a.len(), b.len(), c.len()) == (2, 2, 2) && a.gap == b.gap && matches!(a.gap, Gap::Space | Gap::Hyphen));
    let end = if spaced { groups[2].end } else { at.end };
    if !spaced && end - at.start != 6 {
        return false;
    }
    let after = match &at.text[end..] {
        [b' ' | b'-', rest @ ..] | rest => rest,
    };
    let before = match &at.text[..at.start] {
        [rest @ .., b' ' | b'-'] | rest => rest,
    };
    let &[.., first, second] = before else { return false };
    let bounded = !before[..before.len() - 2].last().is_some_and(|byte| is_word(*byte))
        && !after.get(1).is_some_and(|byte| is_word(*byte));
    let legal = b"ABCEGHJKLMNOPRSTWXYZ".contains(&first)
        && b"ABCEGHJKLMNPRSTWXYZ".contains(&second)
        && ![*b"BG", *b"GB", *b"KN", *b"NK", *b"NT", *b"TN", *b"ZZ"].contains(&[first, second]);
    bounded
        && legal
        && after.first().is_some_and(|byte| (b'A'..=b'D').contains(byte))
        && (spaced || at.called(ContextFlags::UK_NINO))
}

/// Eight digits (DNI), or X, Y or Z and seven (NIE), and a check letter modulo 23.
fn is_es_dni(at: &Place<'_>, groups: &[Group]) -> bool {
    const LETTERS: &[u8; 23] = b"TRWAGMYFPDXBNJZSQVHLCKE";
    let (mut digits, mut count) = ([0; 8], 0);
    let mut push = |text: &[u8]| {
        for (digit, byte) in digits[count..].iter_mut().zip(text) {
            *digit = byte - b'0';
        }
        count += text.len();
    };
    let (mut start, mut end) = (at.start, at.end);
    let mut separated = false;
    match at.end - at.start {
        8 => push(&at.text[start..end]),
        2 => match groups {
            [a, b, c, ..] if (b.len(), c.len()) == (3, 3) && (a.gap, b.gap) == (Gap::Dot, Gap::Dot) => {
                for group in [a, b, c] {
                    push(&at.text[group.start..group.end]);
                }
                end = c.end;
                separated = true;
            }
            _ => return false,
        },
        _ => {
            start -= usize::from(at.text[..start].ends_with(b"-"));
            let Some(lead) = at.text[..start]
                .last()
                .map(u8::to_ascii_uppercase)
                .filter(|byte| (b'X'..=b'Z').contains(byte))
            else {
                return false;
            };
            start -= 1;
            push(&[lead - b'X' + b'0']);
            push(&at.text[at.start..end]);
        }
    }
    if at.text[..start]
        .last()
        .is_some_and(|byte| is_word(*byte) || *byte == b'-')
    {
        return false;
    }
    let (hyphen, letter) = match at.text[end..] {
        [b'-', letter, ..] => (true, letter),
        [letter, ..] => (false, letter),
        [] => return false,
    };
    let ended = !at
        .text
        .get(end + 1 + usize::from(hyphen))
        .is_some_and(|byte| is_word(*byte) || *byte == b'-');
    let checked = usize::try_from(checksum::number(&digits) % 23)
        .is_ok_and(|index| LETTERS[index] == letter.to_ascii_uppercase());
    ended && checked && (hyphen || separated || at.called(ContextFlags::ES_DNI))
}

/// Sixteen characters: name, birth date, place and a check letter (Decreto 12 marzo 1974).
fn is_it_codice_fiscale(text: &[u8]) -> bool {
    const FORM: &[u8; 16] = b"AAAAAA00A00A000A";
    const ODD: [u32; 26] = [
        1, 0, 5, 7, 9, 13, 15, 17, 19, 21, 2, 4, 18, 20, 11, 3, 6, 8, 12, 14, 16, 10, 22, 25, 24, 23,
    ];
    let Some(code) = text.get(..16) else { return false };
    if text.get(16).is_some_and(|byte| is_word(*byte)) {
        return false;
    }
    let formed = code.iter().zip(FORM).all(|(byte, form)| {
        if *form == b'0' {
            byte.is_ascii_digit()
        } else {
            byte.is_ascii_alphabetic()
        }
    });
    if !formed || !b"ABCDEHLMPRST".contains(&code[8].to_ascii_uppercase()) {
        return false;
    }
    let value = |byte: u8| {
        usize::from(if byte.is_ascii_digit() {
            byte - b'0'
        } else {
            byte.to_ascii_uppercase() - b'A'
        })
    };
    let sum: u32 = code[..15]
        .iter()
        .enumerate()
        .map(|(place, byte)| {
            if place % 2 == 0 {
                ODD[value(*byte)]
            } else {
                u32::try_from(value(*byte)).unwrap_or(0)
            }
        })
        .sum();
    u32::try_from(value(code[15])).is_ok_and(|check| sum % 26 == check)
}

/// Seventeen digits and the check character X.
fn is_cn_resident_id(at: &Place<'_>) -> bool {
    let mut digits = [0; 17];
    for (digit, byte) in digits.iter_mut().zip(&at.text[at.start..at.end]) {
        *digit = byte - b'0';
    }
    let after = &at.text[at.end..];
    let bounded = !at.text[..at.start].last().is_some_and(|byte| is_word(*byte))
        && matches!(after, [b'X' | b'x', rest @ ..] if !rest.first().is_some_and(|byte| is_word(*byte)));
    bounded && identity::is_cn_body(&digits) && identity::cn_check(&digits) == 10
}

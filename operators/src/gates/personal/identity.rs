//! Numbers that governments give to people, in digits only.
//!
//! Invariant: each rule checks what its issuer checks (dates, ranges, check digits); a form that other numbers share
//! also needs the word for it nearby or in the field's name.

use super::checksum::{is_date, luhn, number, verhoeff, weighted};
use super::context::ContextFlags;
use super::kind::{Kind, Kinds};
use super::number::{Gap, Number};

/// Adds the kinds of identity number that `candidate` is.
pub(super) fn judge(candidate: &Number<'_>, kinds: &mut Kinds) {
    // No government writes these numbers with a plus; such digits are a phone number's.
    if candidate.plus {
        return;
    }
    let rules: &[(Kind, Rule)] = match candidate.digits().len() {
        9 => &[(Kind::UsSsn, is_us_ssn), (Kind::CaSin, is_ca_sin)],
        10 => &[(Kind::SePersonnummer, is_se_personnummer)],
        11 => &[(Kind::BrCpf, is_br_cpf), (Kind::PlPesel, is_pl_pesel)],
        12 => &[
            (Kind::InAadhaar, is_in_aadhaar),
            (Kind::JpMyNumber, is_jp_my_number),
            (Kind::SePersonnummer, is_se_personnummer),
        ],
        13 => &[(Kind::KrResidentNumber, is_kr_resident_number)],
        15 => &[(Kind::FrNir, is_fr_nir)],
        18 => &[(Kind::CnResidentId, is_cn_resident_id)],
        _ => &[],
    };
    for (kind, is_kind) in rules {
        if is_kind(candidate) {
            kinds.insert(*kind);
        }
    }
}

/// The rule of a kind, for numbers with its number of digits.
type Rule = fn(&Number<'_>) -> bool;

/// Recognises `YYMMDD-SNNNNNN`: a birth date, then a digit for century, sex and nationality. Numbers issued since
/// October 2020 have a random tail, so the check digit is required only if the word before speaks against a person.
fn is_kr_resident_number(candidate: &Number<'_>) -> bool {
    const WEIGHTS: [u32; 12] = [2, 3, 4, 5, 6, 7, 8, 9, 2, 3, 4, 5];
    let digits = candidate.digits();
    let century = match digits[6] {
        1 | 2 | 5 | 6 => 1900,
        3 | 4 | 7 | 8 => 2000,
        _ => return false,
    };
    if !is_date(
        century + number(&digits[..2]),
        number(&digits[2..4]),
        number(&digits[4..6]),
    ) {
        return false;
    }
    let called = candidate.called(ContextFlags::KR_RESIDENT);
    let sum = weighted(digits, &WEIGHTS);
    // A foreigner's check digit is two more.
    let check = (if digits[6] < 5 { 11 } else { 13 } - sum % 11) % 10;
    let checked = u32::from(digits[12]) == check;
    match candidate.shape() {
        [6, 7] if candidate.joined_by(Gap::Hyphen) => {
            let other = candidate.tight || candidate.is_coordinates();
            called || (!other && (checked || !candidate.of_named_thing()))
        }
        [6, 7] | [13] => called,
        _ => false,
    }
}

/// Recognises `AAA-GG-SSSS` with the areas, groups and serials that exist (SSA, POMS RM 10201.030). The well-known
/// numbers of a wallet advertisement and of a brochure are excluded.
fn is_us_ssn(candidate: &Number<'_>) -> bool {
    let digits = candidate.digits();
    let (area, group, serial) = (number(&digits[..3]), number(&digits[3..5]), number(&digits[5..]));
    if matches!(area, 0 | 666 | 900..) || group == 0 || serial == 0 {
        return false;
    }
    if matches!((area, group, serial), (78, 5, 1120) | (219, 9, 9999)) {
        return false;
    }
    let called = candidate.called(ContextFlags::US_SSN);
    match candidate.shape() {
        [3, 2, 4] if candidate.joined_by(Gap::Hyphen) => called || !(candidate.tight || candidate.of_named_thing()),
        [3, 2, 4] | [9] => called,
        _ => false,
    }
}

/// `NNN.NNN.NNN-CC` with two check digits modulo 11.
fn is_br_cpf(candidate: &Number<'_>) -> bool {
    let digits = candidate.digits();
    if digits.iter().all(|digit| *digit == digits[0]) {
        return false;
    }
    let check = |places: u32| {
        let sum: u32 = digits
            .iter()
            .zip((2..=places + 1).rev())
            .map(|(digit, weight)| u32::from(*digit) * weight)
            .sum();
        sum * 10 % 11 % 10
    };
    if u32::from(digits[9]) != check(9) || u32::from(digits[10]) != check(10) {
        return false;
    }
    let called = candidate.called(ContextFlags::BR_CPF);
    match candidate.shape() {
        [3, 3, 3, 2] => called || (!candidate.tight && candidate.gaps().eq([Gap::Dot, Gap::Dot, Gap::Hyphen])),
        [9, 2] | [11] => called,
        _ => false,
    }
}

/// Twelve digits that begin with 2 to 9, with a Verhoeff check digit (UIDAI).
fn is_in_aadhaar(candidate: &Number<'_>) -> bool {
    let digits = candidate.digits();
    matches!(candidate.shape(), [4, 4, 4] | [12])
        && digits[0] >= 2
        && verhoeff(digits)
        && candidate.called(ContextFlags::IN_AADHAAR)
}

/// Region, birth date, serial and a check digit (GB 11643-1999). A check character X is found among the letters.
fn is_cn_resident_id(candidate: &Number<'_>) -> bool {
    let digits = candidate.digits();
    candidate.shape() == [18]
        && is_cn_body(&digits[..17])
        && cn_check(&digits[..17]) == u32::from(digits[17])
        && (candidate.called(ContextFlags::CN_RESIDENT)
            || !(candidate.tight || candidate.of_named_thing() || candidate.in_field_of_things()))
}

/// Returns true if 17 digits are a region, a birth date and a serial.
pub(super) fn is_cn_body(digits: &[u8]) -> bool {
    let year = number(&digits[6..10]);
    matches!(number(&digits[..2]), 11..=15 | 21..=23 | 31..=37 | 41..=46 | 50..=54 | 61..=65 | 71 | 81 | 82)
        && (1900..2100).contains(&year)
        && is_date(year, number(&digits[10..12]), number(&digits[12..14]))
}

/// Returns the check digit of 17 digits; 10 is written X.
pub(super) fn cn_check(digits: &[u8]) -> u32 {
    const WEIGHTS: [u32; 17] = [7, 9, 10, 5, 8, 4, 2, 1, 6, 3, 7, 9, 10, 5, 8, 4, 2];
    (12 - weighted(digits, &WEIGHTS) % 11) % 11
}

/// Sex, year, month, department, commune, order and a key of 97 less the remainder.
fn is_fr_nir(candidate: &Number<'_>) -> bool {
    let digits = candidate.digits();
    if !matches!(digits[0], 1 | 2) {
        return false;
    }
    let month = number(&digits[3..5]);
    if !matches!(month, 1..=12 | 20 | 30..=42 | 50..) || number(&digits[13..]) != 97 - number(&digits[..13]) % 97 {
        return false;
    }
    match candidate.shape() {
        [1, 2, 2, 2, 3, 3, 2] => !candidate.tight,
        [13, 2] | [15] => candidate.called(ContextFlags::FR_NIR),
        _ => false,
    }
}

/// A birth date with its century in the month, a serial and a weighted check digit.
fn is_pl_pesel(candidate: &Number<'_>) -> bool {
    const WEIGHTS: [u32; 11] = [1, 3, 7, 9, 1, 3, 7, 9, 1, 3, 1];
    let digits = candidate.digits();
    if candidate.shape() != [11] || !candidate.called(ContextFlags::PL_PESEL) {
        return false;
    }
    let (coded, day) = (number(&digits[2..4]), number(&digits[4..6]));
    let century = [1900, 2000, 2100, 2200, 1800].get(usize::try_from(coded / 20).unwrap_or(usize::MAX));
    let dated = century.is_some_and(|century| is_date(century + number(&digits[..2]), coded % 20, day));
    dated && weighted(digits, &WEIGHTS).is_multiple_of(10)
}

/// Nine digits with a Luhn check digit, not beginning with 0 or 8.
fn is_ca_sin(candidate: &Number<'_>) -> bool {
    let digits = candidate.digits();
    matches!(candidate.shape(), [3, 3, 3] | [9])
        && !matches!(digits[0], 0 | 8)
        && luhn(digits)
        && candidate.called(ContextFlags::CA_SIN)
}

/// Twelve digits with a check digit modulo 11.
fn is_jp_my_number(candidate: &Number<'_>) -> bool {
    const WEIGHTS: [u32; 11] = [6, 5, 4, 3, 2, 7, 6, 5, 4, 3, 2];
    let digits = candidate.digits();
    if !matches!(candidate.shape(), [4, 4, 4] | [12]) || !candidate.called(ContextFlags::JP_MY_NUMBER) {
        return false;
    }
    let remainder = weighted(digits, &WEIGHTS) % 11;
    u32::from(digits[11]) == if remainder <= 1 { 0 } else { 11 - remainder }
}

/// `YYMMDD-NNNC` with a Luhn check digit over ten digits; coordination numbers add 60 to the day.
fn is_se_personnummer(candidate: &Number<'_>) -> bool {
    let digits = candidate.digits();
    let short = match candidate.shape() {
        [6, 4] | [10] => digits,
        [8, 4] | [12] => &digits[2..],
        _ => return false,
    };
    let day = number(&short[4..6]);
    let day = if day > 60 { day - 60 } else { day };
    let year = number(&short[..2]);
    (is_date(1900 + year, number(&short[2..4]), day) || is_date(2000 + year, number(&short[2..4]), day))
        && luhn(short)
        && candidate.called(ContextFlags::SE_PERSON)
}

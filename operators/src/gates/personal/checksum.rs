//! Check digits and dates.
//!
//! Invariant: digits are values from 0 to 9, most significant first; a wrong length is a wrong number, never a panic.

/// Returns true if the digits end with their Luhn check digit (ISO/IEC 7812-1 annex B).
pub(super) fn luhn(digits: &[u8]) -> bool {
    let sum: u32 = digits
        .iter()
        .rev()
        .enumerate()
        .map(|(place, digit)| {
            // From the right, every second digit counts double, and the digits of a product of two
            // digits are added.
            let value = u32::from(*digit) << (place % 2);
            if value > 9 { value - 9 } else { value }
        })
        .sum();
    sum.is_multiple_of(10)
}

/// Returns true if the characters, with country code and check digits moved to the end, are 1 modulo 97 (ISO 13616, ISO
/// 7064).
pub(super) fn iban(characters: &[u8]) -> bool {
    let (head, tail) = characters.split_at(characters.len().min(4));
    let remainder = tail.iter().chain(head).fold(0_u32, |remainder, byte| match byte {
        b'0'..=b'9' => (remainder * 10 + u32::from(byte - b'0')) % 97,
        letter => (remainder * 100 + u32::from(letter.to_ascii_uppercase().wrapping_sub(b'A')) + 10) % 97,
    });
    remainder == 1
}

/// Returns true if the digits end with their Verhoeff check digit.
pub(super) fn verhoeff(digits: &[u8]) -> bool {
    // The dihedral group of order ten: rotations are 0 to 4, reflections 5 to 9.
    const fn product(left: u8, right: u8) -> u8 {
        match (left < 5, right < 5) {
            (true, true) => (left + right) % 5,
            (true, false) => 5 + (left + right - 5) % 5,
            (false, true) => 5 + (left - right) % 5,
            (false, false) => (left + 5 - right) % 5,
        }
    }
    const PERMUTATION: [u8; 10] = [1, 5, 7, 6, 2, 8, 3, 0, 9, 4];
    let check = digits.iter().rev().enumerate().fold(0, |check, (place, digit)| {
        let permuted = (0..place % 8).fold(*digit, |digit, _| PERMUTATION[usize::from(digit % 10)]);
        product(check, permuted)
    });
    check == 0
}

/// Returns the sum of digits times weights.
pub(super) fn weighted(digits: &[u8], weights: &[u32]) -> u32 {
    digits
        .iter()
        .zip(weights)
        .map(|(digit, weight)| u32::from(*digit) * weight)
        .sum()
}

/// Returns the number that the digits spell.
pub(super) fn number(digits: &[u8]) -> u64 {
    digits.iter().fold(0, |number, digit| number * 10 + u64::from(*digit))
}

/// Returns true if the day exists in the proleptic Gregorian calendar.
pub(super) const fn is_date(year: u64, month: u64, day: u64) -> bool {
    let leap = year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400));
    let days = match month {
        1 | 3 | 5 | 7 | 8 | 10 | 12 => 31,
        4 | 6 | 9 | 11 => 30,
        2 if leap => 29,
        2 => 28,
        _ => 0,
    };
    1 <= day && day <= days
}

#[cfg(test)]
mod tests {
    use super::*;

    fn digits(text: &str) -> Vec<u8> {
        text.bytes()
            .filter(u8::is_ascii_digit)
            .map(|byte| byte - b'0')
            .collect()
    }

    /// Every check digit other than the right one is wrong.
    fn one_of_ten(stem: &str, check: impl Fn(&[u8]) -> bool) -> String {
        let right: Vec<_> = (0..10)
            .map(|last| format!("{stem}{last}"))
            .filter(|number| check(&digits(number)))
            .collect();
        assert_eq!(right.len(), 1, "{right:?}");
        right[0].clone()
    }

    #[test]
    fn luhn_and_verhoeff_have_one_check_digit_in_ten() {
        assert_eq!(one_of_ten("411111111111111", luhn), "4111111111111111");
        assert_eq!(one_of_ten("37828224631000", luhn), "378282246310005");
        assert_eq!(one_of_ten("236", verhoeff), "2363");
        assert_eq!(one_of_ten("142857", verhoeff), "1428570");
    }

    #[test]
    fn verhoeff_sees_swapped_neighbours() {
        assert!(verhoeff(&digits("2363")) && !verhoeff(&digits("3263")) && !verhoeff(&digits("2633")));
    }

    #[test]
    fn ibans_of_the_registry_are_valid_and_changed_ones_are_not() {
        for iban_text in [
            "GB29NWBK60161331926819",
            "DE89370400440532013000",
            "NO9386011117947",
            "de89370400440532013000",
        ] {
            assert!(iban(iban_text.as_bytes()), "{iban_text}");
        }
        assert!(!iban(b"GB29NWBK60161331926818") && !iban(b"DE89370400440532013001") && !iban(b"GB") && !iban(b""));
    }

    #[test]
    fn days_that_do_not_exist_are_not_dates() {
        assert!(is_date(2000, 2, 29) && is_date(1999, 12, 31));
        assert!(!is_date(1900, 2, 29) && !is_date(1999, 2, 29) && !is_date(2001, 4, 31) && !is_date(2001, 13, 1));
        assert!(!is_date(2001, 0, 1) && !is_date(2001, 1, 0));
    }
}

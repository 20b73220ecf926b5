//! Numbers with few digits.
//!
//! Invariant: decimal digits come from the exact conversion between doubles and text, so that every machine rounds alike.

use std::fmt::Write as _;

/// Returns the double nearest to `value` rounded to `digits` significant digits.
pub(super) fn rounded(value: f64, digits: usize) -> f64 {
    let mut text = String::new();
    let precision = digits.saturating_sub(1);
    write!(text, "{value:.precision$e}").map_or(value, |()| text.parse().unwrap_or(value))
}

/// Returns the exponent of the first digit of a finite number: 2 of 123.4. That of zero is 0.
pub(super) fn exponent(value: f64) -> i32 {
    let text = format!("{value:e}");
    text.split_once('e')
        .map_or(0, |(_, exponent)| exponent.parse().unwrap_or(0))
}

/// Returns the double nearest to `value` rounded to a multiple of 10 to the power of `place`.
pub(super) fn rounded_at(value: f64, place: i32) -> f64 {
    if let Ok(behind) = usize::try_from(exponent(value) - place) {
        // More digits than 17 do not change a double.
        return rounded(value, behind.min(17) + 1);
    }
    // Below one unit: it is rounded to one or to none.
    let unit: f64 = format!("1e{place}").parse().unwrap_or(0.0);
    if value.abs() * 2.0 > unit {
        unit.copysign(value)
    } else {
        0.0
    }
}

/// Returns the largest number of two significant digits that is not above `value`.
pub(super) fn floor_two(value: f64) -> f64 {
    if value < 0.0 { -away(-value) } else { towards(value) }
}

/// Returns the smallest number of two significant digits that is not below `value`.
pub(super) fn ceil_two(value: f64) -> f64 {
    if value < 0.0 { -towards(-value) } else { away(value) }
}

/// Returns the number of two digits next to a positive one on the side of zero.
fn towards(value: f64) -> f64 {
    let (mantissa, exponent) = two(value);
    let nearest = of_two(mantissa, exponent);
    if nearest <= value {
        return nearest;
    }
    // Below 10 in the last place, the digits become finer.
    match mantissa {
        10 => of_two(99, exponent - 1),
        _ => of_two(mantissa - 1, exponent),
    }
}

/// Returns the number of two digits next to a positive one on the side of infinity, or the largest double.
fn away(value: f64) -> f64 {
    let (mantissa, exponent) = two(value);
    let nearest = of_two(mantissa, exponent);
    let away = if nearest >= value {
        nearest
    } else {
        of_two(mantissa + 1, exponent)
    };
    away.min(f64::MAX)
}

/// Returns the two first digits, rounded, as a number of 10 to 99, and the exponent of the second. Zero has no digits.
fn two(value: f64) -> (i32, i32) {
    let text = format!("{value:.1e}");
    let parts = text.split_once('e');
    parts.map_or((0, 0), |(mantissa, exponent)| {
        let mantissa = mantissa.replace('.', "").parse().unwrap_or(0);
        (mantissa, exponent.parse::<i32>().unwrap_or(0) - 1)
    })
}

fn of_two(mantissa: i32, exponent: i32) -> f64 {
    format!("{mantissa}e{exponent}").parse().unwrap_or(0.0)
}

/// Returns the largest whole number of two significant digits that is not above `value`.
pub(super) const fn floor_two_units(value: i128) -> i128 {
    let unit = unit_of_two(value);
    value.div_euclid(unit).saturating_mul(unit)
}

/// Returns the smallest whole number of two significant digits that is not below `value`.
pub(super) const fn ceil_two_units(value: i128) -> i128 {
    let unit = unit_of_two(value);
    match value.rem_euclid(unit) {
        0 => value,
        rest => value.saturating_add(unit - rest),
    }
}

/// Returns a count rounded to two significant digits.
pub(super) fn rounded_count(count: u64) -> u64 {
    let count = i128::from(count);
    let unit = unit_of_two(count);
    u64::try_from((count + unit / 2) / unit * unit).unwrap_or(u64::MAX)
}

/// Returns the value of the second digit.
const fn unit_of_two(value: i128) -> i128 {
    let mut unit = 1;
    while (value / unit).unsigned_abs() > 99 {
        unit *= 10;
    }
    unit
}

/// Returns `part` of `whole` in percent, rounded.
pub(super) fn percent(part: u64, whole: u64) -> u8 {
    let (part, whole) = (u128::from(part), u128::from(whole.max(1)));
    u8::try_from((200 * part + whole) / (2 * whole)).unwrap_or(100)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn two_digits_are_on_the_right_side() {
        for (value, floor, ceil) in [
            (1.25, 1.2, 1.3),
            (-1.25, -1.3, -1.2),
            (9.99, 9.9, 10.0),
            (-9.99, -10.0, -9.9),
            (0.999, 0.99, 1.0),
            (1.004, 1.0, 1.1),
            (123_456.0, 120_000.0, 130_000.0),
            (0.000_123, 0.000_12, 0.000_13),
            (2.5, 2.5, 2.5),
            (0.0, 0.0, 0.0),
            (5e-324, 5e-324, 5e-324),
            (f64::MAX, 1.7e308, f64::MAX),
            (f64::MIN, f64::MIN, -1.7e308),
        ] {
            assert_eq!((floor_two(value), ceil_two(value)), (floor, ceil), "{value}");
        }
        for (value, floor, ceil) in [
            (0, 0, 0),
            (99, 99, 99),
            (-99, -99, -99),
            (101, 100, 110),
            (-101, -110, -100),
            (999, 990, 1_000),
            (123_456, 120_000, 130_000),
        ] {
            assert_eq!(
                (floor_two_units(value), ceil_two_units(value)),
                (floor, ceil),
                "{value}"
            );
        }
        for (value, place, expected) in [
            (1234.56, -1, 1234.6),
            (1234.56, 2, 1200.0),
            (0.04, -1, 0.0),
            (-0.07, -1, -0.1),
        ] {
            assert_eq!(Some(rounded_at(value, place)), Some(expected), "{value} {place}");
        }
        assert_eq!(
            [percent(1, 3), percent(2, 3), percent(1, 200), percent(1, 201)],
            [33, 67, 1, 0]
        );
        assert_eq!([percent(0, 0), percent(u64::MAX, u64::MAX)], [0, 100]);
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn roundings_are_outward_and_near(bits in any::<u64>(), units in any::<i64>()) {
            let value = f64::from_bits(bits);
            if value.is_finite() {
                let (floor, ceil) = (floor_two(value), ceil_two(value));
                prop_assert!(floor <= value && value <= ceil, "{} {} {}", floor, value, ceil);
                if value.abs() > 1e-300 {
                    prop_assert!(ceil - floor <= value.abs() * 0.101, "{} {} {}", floor, value, ceil);
                }
            }
            let units = i128::from(units);
            let (floor, ceil) = (floor_two_units(units), ceil_two_units(units));
            prop_assert!(floor <= units && units <= ceil);
            prop_assert!((ceil - floor) * 10 <= units.abs() + 10 || units.abs() < 100);
        }
    }
}

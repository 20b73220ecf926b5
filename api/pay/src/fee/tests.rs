//! Tests of the fee: examples, every cent, and a second formula.

use super::*;

fn brackets() -> Brackets {
    "100000:30,1000000:20,10000000:10".parse().unwrap()
}

fn split(price: i64) -> (i64, i64) {
    let split = brackets().split(MicroUsdc(price));
    (split.fee.0, split.share.0)
}

#[test]
fn examples_are_exact() {
    for (price, fee, share) in [
        (10_000, 0, 10_000),
        (100_000, 0, 100_000),
        (110_000, 3_000, 107_000),
        (250_000, 45_000, 205_000),
        (333_333, 69_999, 263_334),
        (500_000, 120_000, 380_000),
        (1_000_000, 270_000, 730_000),
        (1_010_000, 272_000, 738_000),
        (10_000_000, 2_070_000, 7_930_000),
        (10_010_000, 2_071_000, 7_939_000),
        (100_000_000, 11_070_000, 88_930_000),
        (1_000_000_000, 101_070_000, 898_930_000),
    ] {
        assert_eq!(split(price), (fee, share), "{price}");
    }
}

/// The fee as tax tables give it: the sum up to a bracket, and a rate on the rest.
fn by_table(price: i64) -> i64 {
    let rest = |above: i64, percent: i64| i64::try_from(i128::from(price - above) * i128::from(percent) / 100).unwrap();
    match price {
        ..=100_000 => 0,
        100_001..=1_000_000 => rest(100_000, 30),
        1_000_001..=10_000_000 => 270_000 + rest(1_000_000, 20),
        _ => 2_070_000 + rest(10_000_000, 10),
    }
}

#[test]
fn every_cent_adds_up_and_neither_part_falls() {
    let mut before = (0, 0);
    for price in (10_000..=1_000_000_000).step_by(10_000) {
        let (fee, share) = split(price);
        assert_eq!((fee, fee + share), (by_table(price), price));
        assert!(fee >= before.0 && share >= before.1, "{price}");
        before = (fee, share);
    }
}

#[test]
fn the_largest_price_does_not_overflow() {
    let (fee, share) = split(999_999_999_990_000);
    assert_eq!((fee, fee + share), (by_table(999_999_999_990_000), 999_999_999_990_000));
    assert_eq!(split(i64::MAX).0, by_table(i64::MAX));
}

#[test]
fn brackets_are_what_was_written() {
    assert_eq!(brackets().to_string(), "100000:30,1000000:20,10000000:10");
    let none: Brackets = "".parse().unwrap();
    assert_eq!(none.split(MicroUsdc(5)).share.0, 5);
    for text in ["1:2:3", "1", "-1:5", "5:101", "5:1,5:2", "6:1,5:2", "a:1"] {
        assert_eq!(text.parse::<Brackets>(), Err(ParseBracketsError), "{text}");
    }
}

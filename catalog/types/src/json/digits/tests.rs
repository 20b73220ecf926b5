use proptest::prelude::*;

use super::*;

/// The rule in its own words: printed with as many digits, or with as few as it needs, it is the same decimal.
fn by_the_rule(number: &str) -> bool {
    let (mantissa, power) = number.split_once(['e', 'E']).unwrap_or((number, "0"));
    let mantissa = mantissa.trim_start_matches('-');
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let all = format!("{whole}{fraction}");
    let digits = all.trim_start_matches('0');
    let first = signed(whole.len()) - 1 - signed(all.len() - digits.len()) + power.parse::<i64>().unwrap();
    let digits = digits.trim_end_matches('0');
    if digits.is_empty() {
        return true;
    }
    let double: f64 = number.parse().unwrap();
    let double = double.abs();
    [format!("{double:.*e}", digits.len() - 1), format!("{double:e}")]
        .iter()
        .any(|printed| {
            let (mantissa, power) = printed.split_once('e').unwrap();
            mantissa.replace('.', "") == digits && power.parse::<i64>().unwrap() == first
        })
}

fn lost(text: &str) -> Vec<(String, String)> {
    let found = check_digits(text.as_bytes());
    found.into_iter().map(|lost| (lost.path, lost.number)).collect()
}

#[test]
fn what_a_double_drops_is_named_by_its_path() {
    for (text, expected) in [
        (
            r#"{"v":1000000000000000000007}"#,
            &[("/v", "1000000000000000000007")][..],
        ),
        (
            r#" {"records" : [ {"a":1}, {"a/b":[0, 0.333333333333333333 ], "c":"\"x"}, 9007199254740993.0 ]} "#,
            &[
                ("/records/1/a~1b/1", "0.333333333333333333"),
                ("/records/2", "9007199254740993.0"),
            ],
        ),
        (
            r#"{"é\u0022":-9223372036854775809}"#,
            &[("/é\"", "-9223372036854775809")],
        ),
        ("18446744073709551617", &[("", "18446744073709551617")]),
        (
            r#"{"a":{"b":1},"c":1.234567890123456789e-400}"#,
            &[("/c", "1.234567890123456789e-400")],
        ),
        (
            r#"{"a":1e-400,"b":[-3E-324,2.5e-310, 4.9e-0324 ],"c":"1e-400"}"#,
            &[("/a", "1e-400"), ("/b/0", "-3E-324")],
        ),
        ("1e-99999999999", &[("", "1e-99999999999")]),
    ] {
        let expected: Vec<_> = expected
            .iter()
            .map(|(path, number)| ((*path).to_owned(), (*number).to_owned()))
            .collect();
        assert_eq!(lost(text), expected, "{text}");
    }
}

#[test]
fn what_a_double_or_64_bits_keep_passes() {
    for number in [
        "9007199254740993",
        "-9223372036854775808",
        "18446744073709551615",
        "100000000000000000000",
        "9007199254740992.0",
        "0.1000000000000000055511151231257827021181583404541015625",
        "3.333333333333333148e-01",
        "2.220446049250313081e-16",
        "5.00000000000000000e-324",
        "5e-324",
        "1.5e-323",
        "-4.94E-324",
        "1e-300",
        "0e-999",
        "0.0e-99999999",
        "1.7976931348623157e+308",
        "0.00000000000000000000",
        "-0.0000000000000000e999999999999999999999",
        "0.000000000000000000000000000000123456789012345",
        "123456.789000000000000000000000000000",
        // Both are as near to the double.
        "1319501582261962.2",
        "1319501582261962.3",
    ] {
        assert_eq!(lost(&format!("[{number}]")), [], "{number}");
    }
}

#[test]
fn digits_of_a_text_are_no_number() {
    for text in [
        r#"{"id":"1000000000000000000007"}"#,
        r#"{"id":"at 1000000000000000000007, or"}"#,
        r#"{"id":"\\","b":"\" 0.333333333333333333 "}"#,
        r#"{"a 1000000000000000000007 b":1}"#,
        r#"{"a":"pre-400, 1e-400 ,","1e-400":1}"#,
    ] {
        assert_eq!(lost(text), [], "{text}");
    }
}

#[test]
fn a_path_ends_before_a_name_that_is_too_long() {
    let long = "x".repeat(1 << 20);
    let numbers = vec!["0.333333333333333333"; 20_000].join(",");
    for (text, path) in [
        (format!(r#"{{"a":{{"{long}":[{numbers}]}}}}"#), "/a"),
        (
            format!(r#"{{"a":[{{"{}":{{"b":1e-400}}}}]}}"#, "x".repeat(1_024)),
            "/a/0",
        ),
        (
            format!(r#"{{"{}":1e-400}}"#, "\\u0001".repeat(1_000)),
            &*format!("/{}", "\u{1}".repeat(1_000)),
        ),
    ] {
        assert_eq!(check_digits(text.as_bytes())[0].path, path);
    }
}

#[test]
fn a_double_is_the_number_or_there_is_none() {
    for number in [
        "9007199254740993",
        "-9223372036854775807",
        "18446744073709551615",
        "0.333333333333333333",
        "1e-400",
        "1e400",
        "nan",
    ] {
        assert_eq!(whole_double(number), None, "{number}");
    }
    for (number, double) in [
        ("9007199254740992", 9_007_199_254_740_992.0),
        ("-9223372036854775808", -9_223_372_036_854_775_808.0),
        ("12.50", 12.5),
        ("100000000000000000000", 1e20),
    ] {
        assert_eq!(whole_double(number), Some(double), "{number}");
    }
}

#[test]
fn many_are_named_up_to_a_limit_and_a_long_one_in_part() {
    let many = vec!["0.333333333333333333"; 1_000].join(",");
    assert_eq!(lost(&format!("[{many}]")).len(), MOST_NAMED);
    let long = format!("[0.{}]", "3".repeat(100_000));
    let found = check_digits(long.as_bytes());
    assert_eq!(found[0].number.len(), 100_002);
    assert_eq!(
        found[0].found(),
        format!(
            "0.{}…; send it as text to a `decimal` or `string` field",
            "3".repeat(MOST_SHOWN - 2)
        )
    );
    let places = lost_digits(format!("[{many}]").as_bytes());
    assert_eq!((places.len(), places[999].clone()), (1_000, 20_980..21_000));
    let deep = format!("{}0.333333333333333333", "[".repeat(1_000_000));
    assert_eq!(lost(&deep), []);
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, cases: 4_096, ..ProptestConfig::default() })]

    #[test]
    fn every_decimal_is_judged_by_the_rule(
        text in "-?(0|[1-9][0-9]{0,22})(\\.[0-9]{1,24})?([eE][+-]?[0-9]{1,3})?",
    ) {
        let is_64_bits = text.parse::<i64>().is_ok() || text.parse::<u64>().is_ok();
        if text.parse::<f64>().unwrap().is_finite() && !is_64_bits {
            let is_kept = by_the_rule(&text);
            prop_assert_eq!(keeps_digits(&text), is_kept, "{}", text);
            prop_assert_eq!(lost(&format!("[1,{text}]")).is_empty(), is_kept, "{}", text);
        }
    }

    #[test]
    fn a_number_next_to_zero_is_judged_by_the_rule(text in "-?[0-9](\\.[0-9]{1,4})?[eE]-(0?3[0-9]{2}|[0-9]{3,6})") {
        let is_kept = by_the_rule(&text);
        prop_assert_eq!(keeps_digits(&text), is_kept, "{}", text);
        let (before, after) = ("x".repeat(text.len() % 64), r#","e-100":"e-1000"}"#);
        prop_assert_eq!(lost(&format!(r#"{{"{before}":{text}{after}"#)).is_empty(), is_kept, "{}", text);
    }

    #[test]
    fn what_programs_print_of_a_double_is_kept(bits in any::<u64>(), digits in 0_usize..30) {
        let double = f64::from_bits(bits);
        if double.is_finite() {
            // The shortest digits, and as many as a format asks for beyond what is needed.
            for text in [format!("{double:e}"), format!("{double}"), format!("{double:.*e}", digits.max(16))] {
                prop_assert!(keeps_digits(&text), "{}", text);
            }
        }
    }

    #[test]
    fn usual_measurements_are_kept(double in -1e6_f64..1e6) {
        prop_assert!(keeps_digits(&double.to_string()));
        let long = format!("{double:.18}");
        prop_assert_eq!(keeps_digits(&long), by_the_rule(&long));
    }

    #[test]
    fn a_number_is_found_wherever_it_stands(before in "[a-z ]{0,40}", after in "[a-z ]{0,40}") {
        let text = format!(r#"{{"a":"{before}","b":1000000000000000000007,"c":"{after}"}}"#);
        prop_assert_eq!(lost(&text).len(), 1);
    }
}

use proptest::prelude::*;
use types::Timestamp;

use super::*;

fn instant(parse: &str, zone: &str, round: bool, word: &str) -> Result<String, TimeProblem> {
    let moment = ValueParse::new(parse).unwrap().read(word.as_bytes())?;
    let zone = TimeZones::new().get(zone).unwrap();
    let mut out = Vec::new();
    moment.write_instant(&zone, round, &mut out)?;
    Ok(String::from_utf8(out).unwrap())
}

#[test]
fn times_of_every_form_become_instants() {
    for (parse, zone, word, expected) in [
        ("%d.%m.%Y", "UTC", "04.03.2021", "2021-03-04T00:00:00Z"),
        ("%d.%m.%Y", "Europe/Oslo", "4.7.2021", "2021-07-03T22:00:00Z"),
        ("%d-%b-%Y", "UTC", "31-OCT-2023", "2023-10-31T00:00:00Z"),
        ("%d %b %Y", "UTC", "4 march 2021", "2021-03-04T00:00:00Z"),
        ("%Y-%m-%d %H:%M", "UTC", "2024-05-01 08:00", "2024-05-01T08:00:00Z"),
        ("%Y-%m-%d %H:%M", "+01:00", "2024-05-01 00:30", "2024-04-30T23:30:00Z"),
        (
            "%FT%T%.f%z",
            "Europe/Oslo",
            "2024-05-01T08:00:00.1234560Z",
            "2024-05-01T08:00:00.123456Z",
        ),
        ("%FT%T%.f%z", "UTC", "2024-05-01T08:00:00+0200", "2024-05-01T06:00:00Z"),
        ("%FT%T%.f%z", "UTC", "2024-05-01T08:00:00-02", "2024-05-01T10:00:00Z"),
        ("%F %T %z", "UTC", "2024-05-01 08:00:00 UTC", "2024-05-01T08:00:00Z"),
        (
            "%m/%d/%Y %I:%M:%S %p",
            "UTC",
            "05/01/2024 12:05:06 AM",
            "2024-05-01T00:05:06Z",
        ),
        (
            "%m/%d/%Y %I:%M %p",
            "UTC",
            "05/01/2024 12:05 pm",
            "2024-05-01T12:05:00Z",
        ),
        (
            "%a, %d %b %Y %H:%M:%S",
            "UTC",
            "Wed, 01 May 2024 08:00:00",
            "2024-05-01T08:00:00Z",
        ),
        ("%d/%m/%y", "UTC", "01/05/68", "2068-05-01T00:00:00Z"),
        ("%d/%m/%y", "UTC", "01/05/69", "1969-05-01T00:00:00Z"),
        ("unix-seconds", "UTC", "1714550400", "2024-05-01T08:00:00Z"),
        ("unix-seconds", "UTC", "1714550400.25", "2024-05-01T08:00:00.25Z"),
        ("unix-seconds", "UTC", "-0.5", "1969-12-31T23:59:59.5Z"),
        ("unix-milliseconds", "UTC", "1714550400125", "2024-05-01T08:00:00.125Z"),
        (
            "unix-microseconds",
            "UTC",
            "1714550400000001",
            "2024-05-01T08:00:00.000001Z",
        ),
        (
            "rfc2822",
            "UTC",
            "Wed, 01 May 2024 10:00:00 +0200",
            "2024-05-01T08:00:00Z",
        ),
        ("%Y-%m-%d", "UTC", "9999-12-31", "9999-12-31T00:00:00Z"),
        ("%Y-%m-%d", "UTC", "0001-01-01", "0001-01-01T00:00:00Z"),
    ] {
        assert_eq!(
            instant(parse, zone, false, word).as_deref(),
            Ok(expected),
            "{parse} {word}"
        );
        assert_eq!(expected.parse::<Timestamp>().unwrap().to_string(), expected);
    }
}

#[test]
fn what_is_no_time_says_why() {
    for (parse, zone, word, problem) in [
        ("%Y-%m-%d", "UTC", "2021-02-29", TimeProblem::Day),
        ("%Y-%m-%d", "UTC", "2021-13-01", TimeProblem::Day),
        ("%Y-%m-%d", "UTC", "0000-01-01", TimeProblem::Years),
        ("%Y-%m-%d", "UTC", "21-02-28", TimeProblem::Form),
        ("%Y-%m-%d", "UTC", "2021-02-28 ", TimeProblem::Form),
        ("%Y-%m-%d", "UTC", "", TimeProblem::Form),
        ("%Y-%m-%d %H:%M", "UTC", "2021-02-28 24:00", TimeProblem::Clock),
        ("%Y-%m-%d %I:%M %p", "UTC", "2021-02-28 13:00 PM", TimeProblem::Clock),
        ("%F %T", "UTC", "2021-02-28 23:59:60", TimeProblem::Clock),
        ("%FT%T%.f%z", "UTC", "2024-05-01T08:00:00.1234567Z", TimeProblem::Fine),
        ("%FT%T%z", "UTC", "0001-01-01T00:00:00+01:00", TimeProblem::Years),
        (
            "%Y-%m-%d %H:%M",
            "Europe/Berlin",
            "2024-03-31 02:30",
            TimeProblem::Skipped,
        ),
        (
            "%Y-%m-%d %H:%M",
            "Europe/Berlin",
            "2024-10-27 02:30",
            TimeProblem::Repeated,
        ),
        ("unix-seconds", "UTC", "1.5e9", TimeProblem::Form),
        ("unix-seconds", "UTC", "99999999999999999999", TimeProblem::Years),
        ("unix-seconds", "UTC", "0.0000001", TimeProblem::Fine),
        ("rfc2822", "UTC", "yesterday", TimeProblem::Form),
    ] {
        assert_eq!(instant(parse, zone, false, word), Err(problem), "{parse} {word}");
    }
    assert_eq!(TimeProblem::Skipped.code(), "ambiguous_time");
    assert_eq!(TimeProblem::Day.code(), "value");
}

#[test]
fn a_time_is_rounded_only_where_the_reading_says_so() {
    for (parse, word, expected) in [
        (
            "%FT%T%.f%z",
            "2024-05-01T08:00:00.1234565Z",
            "2024-05-01T08:00:00.123457Z",
        ),
        (
            "%FT%T%.f%z",
            "2024-05-01T08:00:00.1234564Z",
            "2024-05-01T08:00:00.123456Z",
        ),
        ("%FT%T%.f%z", "2023-12-31T23:59:59.9999999Z", "2024-01-01T00:00:00Z"),
        ("unix-seconds", "0.0000007", "1970-01-01T00:00:00.000001Z"),
        ("unix-seconds", "-0.0000007", "1969-12-31T23:59:59.999999Z"),
        ("unix-seconds", "-0.0000002", "1970-01-01T00:00:00Z"),
    ] {
        assert_eq!(instant(parse, "UTC", true, word).as_deref(), Ok(expected), "{word}");
    }
    assert_eq!(
        instant("%FT%T%.f%z", "UTC", true, "9999-12-31T23:59:59.9999999Z"),
        Err(TimeProblem::Years)
    );
}

#[test]
fn a_date_has_no_time_of_day() {
    let date = |parse: &str, word: &str| {
        let mut out = Vec::new();
        let moment = ValueParse::new(parse).unwrap().read(word.as_bytes()).unwrap();
        moment.write_date(&mut out).map(|()| String::from_utf8(out).unwrap())
    };
    assert_eq!(date("%F %T", "2024-02-29 00:00:00").as_deref(), Ok("2024-02-29"));
    assert_eq!(date("%F %T", "2024-02-29 00:00:01"), Err(TimeProblem::HasTime));
}

#[test]
fn patterns_that_do_not_name_a_day_are_refused() {
    for wrong in [
        "%H:%M",
        "%d.%m",
        "%Y-%m-%d %I:%M",
        "%Y-%m-%d %p",
        "%Y-%m-%d %M",
        "%Y-%m-%d %q",
        "%Y-%m-%d %",
        "%Y-%m-%d %Y",
        "date",
        "",
    ] {
        assert!(ValueParse::new(wrong).is_err(), "{wrong}");
    }
    assert!(ValueParse::new(&"%Y-%m-%d".repeat(100)).is_err());
}

#[test]
fn forms_are_told_apart_by_what_they_can_be() {
    let patterns = |word: &str| -> Vec<String> {
        let Some(shape) = TimeShape::of(word.as_bytes(), DateForms::ALL) else {
            return Vec::new();
        };
        let whole = |date: &str| {
            shape
                .clock
                .map_or_else(|| date.to_owned(), |clock| clock.pattern_after(date))
        };
        shape.dates.patterns().map(whole).collect()
    };
    for (word, expected) in [
        ("05/06/2020", &["%d/%m/%Y", "%m/%d/%Y"][..]),
        ("25/06/2020", &["%d/%m/%Y"]),
        ("06/25/2020", &["%m/%d/%Y"]),
        ("2021-03-04", &["%Y-%m-%d"]),
        ("04.03.2021", &["%d.%m.%Y"]),
        ("4 Mar 2021", &["%d %b %Y"]),
        ("March 4, 2021", &["%b %d, %Y"]),
        ("31-OCT-2023", &["%d-%b-%Y"]),
        ("31.02.2021", &[]),
        ("2024-05-01 08:00", &["%Y-%m-%d %H:%M"]),
        ("2024-05-01T08:00:00.5Z", &["%Y-%m-%dT%H:%M:%S%.f%z"]),
        ("2024-05-01 08:00:00 UTC", &["%Y-%m-%d %H:%M:%S%.f %z"]),
        ("2024-05-01 08:00:00 +0200", &["%Y-%m-%d %H:%M:%S%.f %z"]),
        (
            "5/6/2020 1:05:06 PM",
            &["%d/%m/%Y %I:%M:%S%.f %p", "%m/%d/%Y %I:%M:%S%.f %p"],
        ),
        ("5/16/2020 1:05PM", &["%m/%d/%Y %I:%M%p"]),
        ("2024-05-01 25:00", &[]),
        ("2024-05-01 and more", &[]),
        ("20240501", &[]),
        ("12E12", &[]),
        ("1.2.3.4567", &[]),
    ] {
        assert_eq!(patterns(word), expected, "{word}");
        for pattern in expected {
            assert!(
                ValueParse::new(pattern).unwrap().read(word.as_bytes()).is_ok(),
                "{pattern} {word}"
            );
        }
    }
    let usual = |word: &str| TimeShape::of(word.as_bytes(), DateForms::ALL).unwrap().is_usual;
    assert!(usual("2021-03-04") && usual("2024-05-01T08:00:00+02:00"));
    assert!(!usual("2021-3-4") && !usual("2024-05-01T08:00:00") && !usual("2024-05-01 08:00:00Z"));
}

#[test]
fn numbers_keep_what_is_written() {
    let json = |word: &str, point: u8| {
        let mut out = Vec::new();
        WrittenNumber::parse(word.as_bytes(), point)?.write_json(&mut out);
        String::from_utf8(out).ok()
    };
    for (word, point, expected) in [
        ("007", b'.', Some("7")),
        ("+.5", b'.', Some("0.5")),
        ("5.", b'.', Some("5")),
        ("-1,50", b',', Some("-1.50")),
        ("1E+5", b'.', Some("1e+5")),
        ("1.500,5", b',', None),
        ("1,5", b'.', None),
        ("", b'.', None),
        (".", b'.', None),
        ("-", b'.', None),
        ("1e", b'.', None),
        ("1e5x", b'.', None),
        ("0x10", b'.', None),
        ("1 000", b'.', None),
    ] {
        assert_eq!(json(word, point).as_deref(), expected, "{word}");
    }
    let integer = |word: &str| WrittenNumber::parse(word.as_bytes(), b'.').unwrap().integer();
    assert_eq!(integer("-9223372036854775808"), Some(i64::MIN));
    assert_eq!(integer("9223372036854775808"), None);
    assert_eq!(integer("9223372036854775807.0"), Some(i64::MAX));
    assert_eq!(integer("1.5"), None);
    let double = |word: &str| WrittenNumber::parse(word.as_bytes(), b'.').unwrap().double();
    assert_eq!(double("2.220446049250313081e-16"), Some(2.220_446_049_250_313e-16));
    assert_eq!(double("0.333333333333333333"), None);
}

#[test]
fn decimals_have_their_scale_or_a_reason() {
    let decimal = |word: &str, scale: u8| {
        let mut out = Vec::new();
        let number = WrittenNumber::parse(word.as_bytes(), b'.').unwrap();
        number
            .write_decimal(scale, &mut out)
            .map(|()| String::from_utf8(out).unwrap())
    };
    assert_eq!(decimal("12.5", 2).as_deref(), Ok("12.50"));
    assert_eq!(decimal("-0.00", 2).as_deref(), Ok("0.00"));
    assert_eq!(decimal("1.2300", 2).as_deref(), Ok("1.23"));
    assert_eq!(
        decimal("170141183460469231731", 0).as_deref(),
        Ok("170141183460469231731")
    );
    assert_eq!(decimal("012.5", 2), Err(DecimalProblem::Form));
    assert_eq!(decimal("1e3", 2), Err(DecimalProblem::Form));
    assert_eq!(decimal("1.234", 2), Err(DecimalProblem::Scale));
    assert_eq!(decimal(&"9".repeat(27), 2), Err(DecimalProblem::Digits));
    assert!(decimal(&"9".repeat(26), 2).is_ok());
}

#[test]
fn null_words_are_whole_words() {
    let words = ["n/a".to_owned(), "-".to_owned(), "x".repeat(100)];
    let nulls = NullWords::new(&words);
    assert!(nulls.contains(b"n/a") && nulls.contains(b"-") && nulls.contains("x".repeat(100).as_bytes()));
    assert!(!nulls.contains(b"N/A") && !nulls.contains(b"--") && !nulls.contains("x".repeat(99).as_bytes()));
    assert!(is_null(b"") && is_null(b"\\N") && !is_null(b"NULL"));
}

#[test]
fn the_release_of_the_zones_is_known() {
    let release = tz_release().unwrap();
    assert!(release.len() == 5 && release.starts_with("20"), "{release}");
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn an_instant_is_what_the_calendar_says(
        micros in -62_135_596_800_000_000_i64..=253_402_128_000_000_000,
        offset in -86_340_i32..=86_340,
    ) {
        let text = Timestamp::from_micros(micros).to_string();
        prop_assert_eq!(instant("%FT%T%.f%z", "UTC", false, &text), Ok(text.clone()));
        let minutes = offset / 60;
        let sign = if minutes < 0 { '-' } else { '+' };
        let (hours, minutes) = (minutes.abs() / 60, minutes.abs() % 60);
        let local = format!("{}{sign}{hours:02}:{minutes:02}", text.trim_end_matches('Z'));
        let expected = local.parse::<Timestamp>().map(|instant| instant.to_string()).ok();
        prop_assert_eq!(instant("%FT%T%.f%z", "UTC", false, &local).ok(), expected);
    }

    #[test]
    fn any_word_is_read_or_refused(word in "\\PC{0,40}") {
        for parse in ["%d.%m.%Y", "%Y-%m-%d %I:%M:%S%.f %p %z", "unix-milliseconds", "%b %d, %Y", "%a %f"] {
            let moment = ValueParse::new(parse).map(|parse| parse.read(word.as_bytes()));
            if let Ok(Ok(moment)) = moment {
                prop_assert!(moment.date().is_some());
            }
        }
        TimeShape::of(word.as_bytes(), DateForms::ALL);
        if let Some(number) = WrittenNumber::parse(word.as_bytes(), b'.') {
            let mut out = Vec::new();
            number.write_json(&mut out);
            prop_assert!(serde_json::from_slice::<serde_json::Number>(&out).is_ok() || number.double().is_none());
        }
    }
}

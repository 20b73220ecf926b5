mod addresses;
mod joints;
mod machines;
mod rules;
mod words;

use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::*;
use crate::conformance::{batch, check_gate};
use crate::{MAX_REASONS, Verdict};

fn reasons_of(rows: &Batch) -> Vec<(usize, String, String)> {
    let verdicts = PersonalData::new().judge(rows);
    let mut seen = Vec::new();
    for (row, verdict) in verdicts.exceptions() {
        match verdict {
            Verdict::Refuse { reasons } => {
                seen.extend(
                    reasons
                        .iter()
                        .map(|reason| (*row, reason.path.clone(), reason.code.clone())),
                );
            }
            other => panic!("{other:?}"),
        }
    }
    seen
}

fn reasons(record: Value) -> Vec<(String, String)> {
    reasons_of(&batch(&[record]))
        .into_iter()
        .map(|(_, path, code)| (path, code))
        .collect()
}

fn of(path: &str, code: &str) -> (String, String) {
    (path.to_owned(), code.to_owned())
}

#[test]
fn string_json_and_extra_members_are_scanned_and_named_by_their_path() {
    let seen = reasons(json!({
        "name": "kim@example.de and 010-1234-5678, again lee@example.de",
        "more": {"a/b": ["x", {"note": "call +82 10 1234 5678"}], "n": 7},
        "extra": {"deep": "123-45-6789"},
    }));
    assert_eq!(
        seen,
        [
            of("/name", "email"),
            of("/name", "phone"),
            of("/more/a~1b/1/note", "phone"),
            of("/extra/deep", "us_ssn"),
        ]
    );
}

#[test]
fn a_reason_never_shows_the_value() {
    let rows = batch(&[json!({"name": "kim@example.de", "kim@example.de": {"x": "lee@example.de", "y": "1"}})]);
    let verdicts = format!("{:?}", PersonalData::new().judge(&rows));
    assert!(!verdicts.contains("example"), "{verdicts}");
    assert_eq!(
        reasons_of(&rows),
        [
            (0, "/name".to_owned(), "email".to_owned()),
            (0, String::new(), "email".to_owned())
        ]
    );
}

#[test]
fn integers_count_only_under_the_name_of_a_persons_number() {
    assert_eq!(
        reasons(json!({"name": "a", "card": 4_111_111_111_111_111_u64})),
        [of("/card", "payment_card")]
    );
    assert_eq!(
        reasons(json!({"name": "a", "more": {"주민등록번호": 9_001_011_234_567_u64}})).len(),
        1
    );
    // 000101-3234567 has lost its leading zeros.
    assert_eq!(
        reasons(json!({"name": "a", "rrn": 1_013_234_567_u64})),
        [of("/rrn", "kr_resident_number")]
    );
    assert_eq!(reasons(json!({"name": "a", "count": 4_111_111_111_111_111_u64})), []);
    assert_eq!(
        reasons(json!({"name": "a", "value": 4_111_111_111_111_111_u64, "phone_id": 1_012_345_678})),
        []
    );
    for kind in ["integer", "number"] {
        let def = json!({"fields": [{"name": "ssn", "type": kind}, {"name": "rows", "type": kind}]});
        let contract = Arc::new(serde_json::from_value(def).unwrap());
        let rows = Batch::decode(&contract, &[json!({"ssn": 123_456_789, "rows": 123_456_789})]);
        assert_eq!(
            reasons_of(&rows),
            [(0, "/ssn".to_owned(), "us_ssn".to_owned())],
            "{kind}"
        );
    }
    let def = json!({"fields": [{"name": "ssn", "type": "number"}]});
    let contract = Arc::new(serde_json::from_value(def).unwrap());
    for number in [json!(123_456_789.5), json!(1e300), json!(-1e-9), json!(123_456.0)] {
        let rows = Batch::decode(&contract, &[json!({"ssn": number})]);
        assert_eq!(reasons_of(&rows), [], "{number}");
    }
}

#[test]
fn whole_decimals_are_judged_like_numbers_and_days_are_nobodys() {
    for scale in [0, 2, 18] {
        let def = json!({"fields": [
            {"name": "ssn", "type": "decimal", "scale": scale}, {"name": "rows", "type": "decimal", "scale": scale},
            {"name": "mobile", "type": "date"},
        ]});
        let contract = Arc::new(serde_json::from_value(def).unwrap());
        let mut rows = vec![json!({"ssn": "123456789", "rows": "123456789", "mobile": "1999-01-01"})];
        if scale > 0 {
            rows.push(json!({"ssn": "123456789.5"}));
        } else {
            rows.push(json!({"ssn": "9999999999999999999999999999"}));
        }
        let rows = Batch::decode(&contract, &rows);
        assert_eq!(rows.defects(), []);
        assert_eq!(
            reasons_of(&rows),
            [(0, "/ssn".to_owned(), "us_ssn".to_owned())],
            "{scale}"
        );
    }
}

#[test]
fn integers_are_phones_where_they_are_no_counts_and_no_times() {
    let is_phone = |name: &str, number: u64| !reasons(json!({"name": "a", name: number})).is_empty();
    for (name, number) in [
        ("phone", 612_345_678),
        ("phone", 1_732_170_000),
        ("home_phone", 4_155_552_671),
        ("mobile", 612_345_678),
        ("mobile", 9_876_543_210),
        ("mobile_number", 1_012_345_678),
        ("contact_2", 9_876_543_210),
        ("fax", 4_155_552_671),
    ] {
        assert!(is_phone(name, number), "{name} {number}");
    }
    for (name, number) in [
        ("mobile", 56_000_001),
        ("sms", 2_500_001),
        ("sms", 250_000_100),
        ("phone", 55_532_177),
        ("mobile", 561_000_000),
        ("last_call", 1_732_170_000),
        ("last_call", 1_732_170_000_123),
        ("mobile_subscribers", 386_123_456),
        ("call_duration", 9_876_543_210),
        ("문자", 9_876_543_210),
    ] {
        assert!(!is_phone(name, number), "{name} {number}");
    }
    for kind in ["integer", "number"] {
        let def = json!({"fields": [{"name": "mobile", "type": kind}]});
        let contract = Arc::new(serde_json::from_value(def).unwrap());
        let rows = [json!({"mobile": 56_000_001}), json!({"mobile": 9_876_543_210_u64})];
        let seen = reasons_of(&Batch::decode(&contract, &rows));
        assert_eq!(seen, [(1, "/mobile".to_owned(), "phone".to_owned())], "{kind}");
    }
}

#[test]
fn the_name_of_a_field_is_context_for_what_is_under_it() {
    assert_eq!(
        reasons(json!({"name": "a", "more": {"phone": {"home": "5553 2671 99"}}})),
        [of("/more/phone/home", "phone")]
    );
    assert_eq!(
        reasons(json!({"name": "a", "more": {"part": {"home": "5553 2671 99"}}})),
        []
    );
    assert_eq!(
        reasons(json!({"name": "a", "more": {"phones": ["x", "02 345 6789"]}})),
        [of("/more/phones/1", "phone")]
    );
}

#[test]
fn rows_are_judged_apart() {
    let rows = batch(&[
        json!({"name": "a"}),
        json!({"name": "kim@example.de"}),
        json!({"name": "b"}),
    ]);
    assert_eq!(reasons_of(&rows), [(1, "/name".to_owned(), "email".to_owned())]);
}

#[test]
fn a_scan_is_linear_in_the_worst_text() {
    // Each would take minutes if a rule looked back or ahead without a bound.
    for unit in [
        "1 ",
        "1-",
        "(1)",
        "a@",
        "@a.",
        "(at)",
        "+1 ",
        "9 9 9 9 ",
        "AB12 ",
        "<<",
        "%40",
        "0101",
        "1.2.3-",
        "4111\n",
        "4111\t",
        "id ",
        "id no. 4155552671 ",
        "order 415 ",
        "call 1:2 ",
        "a@b.世",
        "a@b.c:/",
        ".4111 ",
        "4e-05,.4111",
        "call_in 5 ",
        "phone_no_2_",
        "tel 500 4155552671 ",
    ] {
        let text = unit.repeat(100_000 / unit.len());
        Scanner::default().scan(&text, ContextFlags::PHONE);
    }
}

/// The least of three times, so that what else the machine does counts little.
fn took(mut work: impl FnMut()) -> Duration {
    let once = |_| {
        let begun = Instant::now();
        work();
        begun.elapsed()
    };
    (0..3).map(once).min().unwrap()
}

#[test]
fn ten_times_as_much_to_refuse_takes_ten_times_as_long() {
    let addresses = |count: usize| json!({"name": "a", "more": vec!["kim.minsu@example.de"; count]});
    let hidden = |count: usize| {
        let names = (0..count).map(|index| (format!("kim{index}@example.de"), json!("010-1234-5678")));
        json!({"name": "a", "more": names.collect::<serde_json::Map<_, _>>()})
    };
    let copies = |count: usize| json!({"name": format!("{}/", "a@b.co:".repeat(count))});
    let records: [&dyn Fn(usize) -> Value; 3] = [&addresses, &hidden, &copies];
    for record in records {
        let judge = |count: usize| {
            let rows = batch(&[record(count)]);
            took(|| drop(PersonalData::new().judge(&rows)))
        };
        let (few, many) = (judge(1_500), judge(15_000));
        assert!(many < few * 35, "{few:?}, then {many:?}");
    }
}

#[test]
fn of_many_reasons_the_first_are_named_and_the_others_counted() {
    let rows = batch(&[json!({"name": "a", "more": vec!["kim@example.de"; 20_000]})]);
    let verdicts = PersonalData::new().judge(&rows);
    let Verdict::Refuse { reasons } = &verdicts.exceptions()[0].1 else {
        panic!("refused")
    };
    assert_eq!(reasons.len(), MAX_REASONS);
    assert_eq!(reasons[18].path, "/more/18");
    assert_eq!(
        (reasons[19].code.as_str(), reasons[19].actual.as_str()),
        ("more", "19981 more")
    );
}

#[test]
fn one_path_names_a_kind_once() {
    let names = json!({"kim@example.de": 1, "lee": {"x": "lee@example.de"}, "park@example.de": {"y": "010-1234-5678"}});
    assert_eq!(
        reasons(json!({"name": "a", "more": names})),
        [of("/more", "email"), of("/more/lee/x", "email"), of("/more", "phone")]
    );
}

#[test]
fn keeps_the_contract_of_gates() {
    let rows = batch(&[
        json!({"name": "kim@example.de"}),
        json!({"name": "plain", "more": [1, 2, 3]}),
        json!({"name": "4111 1111 1111 1111", "more": {"x": "010-1234-5678"}}),
        json!({"name": 7}),
    ]);
    check_gate(PersonalData::new, &rows);
}

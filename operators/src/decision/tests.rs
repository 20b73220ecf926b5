use super::*;

fn refused(row: u32) -> RowVerdict {
    let reason = Reason {
        gate: "contract".to_owned(),
        code: "type".to_owned(),
        path: "/a".to_owned(),
        expected: "a number".to_owned(),
        actual: "text".to_owned(),
    };
    RowVerdict {
        row,
        verdict: Verdict::Refuse { reasons: vec![reason] },
    }
}

fn held(until: i64) -> RowVerdict {
    let verdict = Verdict::Hold {
        reason: Reason {
            gate: "screen".to_owned(),
            code: "budget".to_owned(),
            path: String::new(),
            expected: String::new(),
            actual: String::new(),
        },
        resumes_after: Some(Timestamp::from_micros(until)),
    };
    RowVerdict { row: 0, verdict }
}

#[test]
fn a_refusal_wins_over_a_hold_and_names_the_first_record_or_line() {
    let said = [held(1), refused(4), refused(7)];
    for (numbering, name) in [(Numbering::Records, "record 4"), (Numbering::Lines, "on line 5")] {
        let Decision::Reject { code, message } = Decision::of(Totals::of(9, 6, &said), numbering) else {
            panic!("two records are refused");
        };
        assert_eq!(code, "refused");
        let begin = format!("2 of 9 records are refused; the first is {name}");
        assert!(message.starts_with(&begin), "{message}");
    }
}

#[test]
fn a_hold_ends_with_the_last_of_its_records() {
    let hold = Decision::Hold {
        reason: "budget".to_owned(),
        resumes_after: Some(Timestamp::from_micros(3)),
    };
    let totals = Totals::of(9, 6, &[held(1), held(3), held(2)]);
    assert!(totals.is_lost());
    assert_eq!(Decision::of(totals, Numbering::Lines), hold);
}

#[test]
fn nothing_new_is_rejected_and_anything_new_is_merged() {
    for (rows, numbering, expected) in [
        (0, Numbering::Records, "duplicates"),
        (0, Numbering::Lines, "empty"),
        (1, Numbering::Lines, "duplicates"),
        (2, Numbering::Records, "duplicates"),
    ] {
        let decision = Decision::of(Totals::of(rows, 0, &[]), numbering);
        assert!(matches!(decision, Decision::Reject { code, .. } if code == expected));
    }
    assert_eq!(Decision::of(Totals::of(2, 1, &[]), Numbering::Lines), Decision::Merge);
}

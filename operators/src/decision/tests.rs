use super::*;
use crate::GateName;

fn refused(row: u32) -> RowVerdict {
    let reason = Reason {
        gate: GateName::CONTRACT,
        code: "type".to_owned(),
        path: "/a".to_owned(),
        expected: "a number".to_owned(),
        actual: "text".to_owned(),
    };
    RowVerdict::of_record(row, Verdict::Refuse { reasons: vec![reason] })
}

fn held(until: i64) -> RowVerdict {
    let verdict = Verdict::Hold {
        reason: Reason {
            gate: GateName::SCREEN,
            code: "budget".to_owned(),
            path: String::new(),
            expected: String::new(),
            actual: String::new(),
        },
        resumes_after: Some(Timestamp::from_micros(until)),
    };
    RowVerdict::of_record(0, verdict)
}

#[test]
fn a_refusal_wins_over_a_hold_and_names_the_first_record_or_line() {
    let said = [held(1), refused(4), refused(7)];
    for (numbering, name) in [(Numbering::Records, "record 4"), (Numbering::Lines, "on line 5")] {
        let Decision::Reject { code, message } = Decision::of(&Totals::of(9, 6, &said, OnRefused::Reject), numbering)
        else {
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
    let totals = Totals::of(9, 6, &[held(1), held(3), held(2)], OnRefused::Reject);
    assert!(totals.is_lost());
    assert_eq!(Decision::of(&totals, Numbering::Lines), hold);
}

#[test]
fn nothing_new_is_rejected_and_anything_new_is_merged() {
    for (rows, numbering, expected) in [
        (0, Numbering::Records, "duplicates"),
        (0, Numbering::Lines, "empty"),
        (1, Numbering::Lines, "duplicates"),
        (2, Numbering::Records, "duplicates"),
    ] {
        let decision = Decision::of(&Totals::of(rows, 0, &[], OnRefused::Reject), numbering);
        assert!(matches!(decision, Decision::Reject { code, .. } if code == expected));
    }
    assert_eq!(
        Decision::of(&Totals::of(2, 1, &[], OnRefused::Reject), Numbering::Lines),
        Decision::Merge
    );
}

fn tally(gate: &'static str, rows: u32, dropped: u32, refused: u32) -> Tally {
    Tally {
        gate: GateName::new(gate),
        rows,
        passed: rows - dropped - refused,
        dropped,
        refused,
        held: 0,
        note: None,
    }
}

#[test]
fn refused_records_are_left_out_up_to_half_of_all() {
    let some = |refused_rows: u32| (0..refused_rows).map(refused).collect::<Vec<_>>();
    let decide = |rows, passed, said: &[RowVerdict]| {
        let totals = Totals::of(rows, passed, said, OnRefused::Drop);
        Decision::of(&totals, Numbering::Records)
    };
    assert_eq!(decide(10, 6, &some(4)), Decision::Merge);
    assert_eq!(decide(10, 5, &some(5)), Decision::Merge);
    for (rows, passed, refused) in [(10, 4, 6), (3, 1, 2), (1, 0, 1), (3, 0, 3)] {
        let Decision::Reject { code, message } = decide(rows, passed, &some(refused)) else {
            panic!("{refused} of {rows}");
        };
        assert_eq!(code, "refused");
        let verb = if refused == 1 { "is" } else { "are" };
        let expected = format!(
            "{refused} of {rows} records {verb} refused, more than half; a wrong delimiter or column is likelier; the \
             first is record 0 at `/a`: expected a number, found text (contract: type)"
        );
        assert_eq!(message, expected);
    }
    let Decision::Reject { code, message } = decide(10, 0, &some(4)) else {
        panic!("nothing is new");
    };
    assert_eq!(
        (code.as_str(), message.as_str()),
        ("duplicates", "none of 10 records is new: 6 duplicates, 4 refused")
    );
}

#[test]
fn a_hold_holds_what_is_not_refused() {
    let said = [refused(0), held(5)];
    let totals = Totals::of(4, 2, &said, OnRefused::Drop);
    assert!(totals.is_lost());
    assert!(matches!(
        Decision::of(&totals, Numbering::Records),
        Decision::Hold { .. }
    ));
    let said = [refused(0), refused(1), refused(2), held(5)];
    let totals = Totals::of(4, 0, &said, OnRefused::Drop);
    assert!(matches!(
        Decision::of(&totals, Numbering::Records),
        Decision::Reject { .. }
    ));
    assert!(!Totals::of(4, 3, &[refused(0)], OnRefused::Drop).is_lost());
}

#[test]
fn a_summary_says_what_is_new_and_the_share_of_the_duplicates() {
    for (tallies, new, expected) in [
        (
            vec![tally("contract", 52_300, 0, 0), tally("dedup", 52_300, 47_090, 0)],
            5_210,
            "5,210 of 52,300 records are new; 47,090 duplicates dropped (90.0 %)",
        ),
        (
            vec![tally("contract", 480_000, 0, 0), tally("dedup", 480_000, 25, 0)],
            479_975,
            "479,975 of 480,000 records are new; 25 duplicates dropped (0.0 %)",
        ),
        (
            vec![tally("contract", 50_000, 0, 7), tally("dedup", 49_993, 0, 0)],
            49_993,
            "49,993 of 50,000 records are new; 7 refused and left out",
        ),
        (
            vec![tally("contract", 4_000, 0, 1), tally("dedup", 3_999, 3_998, 0)],
            1,
            "1 of 4,000 records is new; 3,998 duplicates dropped (99.9 %), 1 refused and left out",
        ),
        (vec![tally("contract", 3, 0, 0)], 3, "3 of 3 records are new"),
        (
            vec![tally("contract", 2, 0, 0), tally("dedup", 2, 1, 0)],
            1,
            "1 of 2 records is new; 1 duplicate dropped (50.0 %)",
        ),
    ] {
        assert_eq!(summary_of(&tallies, new), expected);
    }
}

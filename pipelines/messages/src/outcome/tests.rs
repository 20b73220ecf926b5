use operators::{Reason, Verdict};
use serde_json::json;
use types::unit::{Judge, UnitScores};
use types::vocabulary::{JudgeKind, Language, ReviewStep, StepOutcome};

use super::*;

/// An outcome of a contribution as it was written before outcomes had subjects.
const CONTRIBUTION: &str = concat!(
    r#"{"format":1,"contribution":"01010101-0101-0101-0101-010101010101","generation":2,"#,
    r#""dataset":"02020202-0202-0202-0202-020202020202","at":1790000000000000,"#,
    r#""resolution":{"status":"merged","version":3,"accepted":2,"recordCount":9,"root":"ab"},"rows":3,"#,
    r#""verdicts":[{"row":1,"verdict":"drop","reason":{"gate":"dedup","code":"duplicate_in_batch","path":"","#,
    r#""expected":"another record","actual":"the same"}}],"#,
    r#""tallies":[{"gate":"dedup","rows":3,"passed":2,"dropped":1,"refused":0,"held":0}]}"#
);
/// An outcome of a knowledge unit.
const UNIT: &str = concat!(
    r#"{"format":1,"unit":"03030303-0303-0303-0303-030303030303","chain":"04040404-0404-0404-0404-040404040404","#,
    r#""generation":0,"at":1790000000000000,"resolution":{"status":"published","scores":{"accuracy":70,"#,
    r#""novelty":60,"reproducibility":80,"specificity":75,"total":71},"#,
    r#""judge":{"kind":"heuristic","name":"rubric-1"},"language":"en"},"#,
    r#""report":[{"step":"score","outcome":"passed","code":"passed","detail":"Total 71 of 100.","#,
    r#""at":1790000000000000,"judge":{"kind":"heuristic","name":"rubric-1"},"#,
    r#""scores":{"accuracy":70,"novelty":60,"reproducibility":80,"specificity":75,"total":71}}]}"#
);

fn at() -> Timestamp {
    Timestamp::from_micros(1_790_000_000_000_000)
}

fn contribution() -> ContributionOutcome {
    let reason = Reason {
        gate: operators::GateName::DEDUP,
        code: "duplicate_in_batch".to_owned(),
        path: String::new(),
        expected: "another record".to_owned(),
        actual: "the same".to_owned(),
    };
    ContributionOutcome {
        format: BASE_FORMAT,
        contribution: ContributionId::from_bytes([1; 16]),
        generation: 2,
        dataset: DatasetId::from_bytes([2; 16]),
        at: at(),
        resolution: Resolution::Merged {
            version: types::Version(3),
            accepted: 2,
            record_count: 9,
            root: "ab".to_owned(),
        },
        rows: 3,
        verdicts: vec![RowVerdict::of_record(1, Verdict::Drop { reason })],
        tallies: vec![Tally {
            gate: operators::GateName::DEDUP,
            rows: 3,
            passed: 2,
            dropped: 1,
            refused: 0,
            held: 0,
            note: None,
        }],
        traceparent: None,
    }
}

fn unit() -> UnitOutcome {
    let scores = UnitScores {
        accuracy: 70,
        novelty: 60,
        reproducibility: 80,
        specificity: 75,
        total: 71,
    };
    let judge = Judge {
        kind: JudgeKind::Heuristic,
        name: "rubric-1".to_owned(),
    };
    let resolution = UnitResolution::Published {
        scores,
        judge: judge.clone(),
        language: Language::English,
        near: None,
        embedder: None,
    };
    let ids = (UnitId::from_bytes([3; 16]), UnitId::from_bytes([4; 16]));
    UnitOutcome {
        report: vec![ReviewEntry {
            step: ReviewStep::Score,
            outcome: StepOutcome::Passed,
            code: "passed".to_owned(),
            detail: "Total 71 of 100.".to_owned(),
            at: at(),
            judge: Some(judge),
            scores: Some(scores),
            similar: None,
        }],
        ..UnitOutcome::new(ids, 0, at(), resolution)
    }
}

#[test]
fn outcomes_are_written_byte_for_byte_as_before_and_come_back() {
    for (outcome, golden) in [
        (Outcome::Contribution(contribution()), CONTRIBUTION),
        (Outcome::Unit(unit()), UNIT),
    ] {
        let record = outcome.record().unwrap();
        assert_eq!(str::from_utf8(&record.value).unwrap(), golden);
        assert_eq!(Outcome::decode(golden.as_bytes()).unwrap(), outcome);
    }
}

#[test]
fn an_outcome_has_the_key_of_its_dataset_or_that_of_all_units() {
    assert_eq!(contribution().record().unwrap().key[..], [2; 16]);
    assert_eq!(unit().record().unwrap().key, KNOWLEDGE_TOPIC);
}

#[test]
fn a_unit_waits_or_is_rejected_with_a_reason() {
    for (resolution, json) in [
        (
            UnitResolution::Rejected {
                code: "score_below_55".to_owned(),
                message: "Total 51 of 100, 55 is needed.".to_owned(),
            },
            json!({"status": "rejected", "code": "score_below_55", "message": "Total 51 of 100, 55 is needed."}),
        ),
        (
            UnitResolution::Waiting {
                reason: "budget".to_owned(),
                resumes_after: Some(at()),
            },
            json!({"status": "waiting", "reason": "budget", "resumesAfter": 1_790_000_000_000_000_i64}),
        ),
        (
            UnitResolution::Waiting {
                reason: "paused".to_owned(),
                resumes_after: None,
            },
            json!({"status": "waiting", "reason": "paused"}),
        ),
    ] {
        assert_eq!(serde_json::to_value(&resolution).unwrap(), json);
        let outcome = UnitOutcome::new(
            (UnitId::from_bytes([3; 16]), UnitId::from_bytes([3; 16])),
            1,
            at(),
            resolution,
        );
        let record = outcome.record().unwrap();
        assert_eq!(Outcome::decode(&record.value).unwrap(), Outcome::Unit(outcome));
    }
}

#[test]
fn an_outcome_of_another_format_or_of_nothing_is_refused() {
    for golden in [CONTRIBUTION, UNIT] {
        let other = golden.replace("\"format\":1", "\"format\":2");
        assert!(matches!(Outcome::decode(other.as_bytes()), Err(DecodeError::Format(2))));
        for end in [0, 1, golden.len() / 2, golden.len() - 1] {
            assert!(Outcome::decode(&golden.as_bytes()[..end]).is_err(), "{end}");
        }
    }
    assert!(matches!(
        Outcome::decode(br#"{"format":1}"#),
        Err(DecodeError::Malformed(_))
    ));
}

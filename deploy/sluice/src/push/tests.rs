use clap::Parser as _;
use serde_json::{Value, json};

use crate::cli::{Cli, Command};

/// Returns the lines about an outcome of a push of a file that cannot be read again.
fn said(outcome: Value) -> Vec<String> {
    let cli = Cli::try_parse_from(["sluice", "push", "/nowhere/visits.jsonl", "--project", "visits"]).unwrap();
    let Command::Push(arguments) = cli.command else {
        panic!("push")
    };
    super::outcome(&arguments, &serde_json::from_value(outcome).unwrap())
}

fn tallies(passed: u64, dropped: u64, refused: u64) -> Value {
    let rows = passed + dropped + refused;
    json!([
        {"gate": "contract", "rows": rows, "passed": rows - refused, "dropped": 0, "refused": refused, "held": 0},
        {"gate": "dedup", "rows": rows - refused, "passed": passed, "dropped": dropped, "refused": 0, "held": 0},
    ])
}

fn verdicts() -> Value {
    let reason = |code: &str| json!({"gate": "contract", "code": code, "path": "/at", "expected": "a", "actual": "b"});
    json!([
        {"row": 2, "verdict": "drop", "reasons": [reason("duplicate_in_dataset")]},
        {"row": 6, "verdict": "refuse", "reasons": [reason("type")]},
    ])
}

#[test]
fn what_was_left_out_is_said_with_its_reasons_and_never_as_known() {
    let merged = said(json!({
        "id": "1", "status": "merged", "mergedVersion": 3, "acceptedCount": 6, "refusedCount": 4, "droppedCount": 1,
        "summary": "6 of 11 records are new; 1 duplicate dropped (9.1 %), 4 refused and left out",
        "tallies": tallies(6, 1, 4), "verdicts": verdicts(),
    }));
    let expected = "visits version 3: 6 of 11 records are new; 1 duplicate dropped (9.1 %), 4 refused and left out.";
    assert_eq!(merged[0], expected);
    assert_eq!(
        merged[3..],
        [
            "  record 7 /at: expected a, found b (contract: type)",
            "  contribution   1"
        ]
    );

    let known = |refused: u64| {
        said(json!({
            "id": "1", "status": "rejected", "reason": {"code": "duplicates", "message": "x"}, "refusedCount": refused,
            "tallies": tallies(0, 6, refused), "verdicts": verdicts(),
        }))
    };
    let expected = "Nothing new: of 10 records 6 are in `visits` already, 4 are refused and left out.";
    assert_eq!((known(4)[0].as_str(), known(4).len()), (expected, 5));
    assert_eq!(known(0)[0], "Nothing new: all 6 records are in `visits` already.");
}

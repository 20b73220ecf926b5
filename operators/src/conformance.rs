//! The suite that every gate runs (feature `testing`).
//!
//! Invariant: a gate that returns from [`check_gate`] answers for every row, answers the same again, and explains each
//! row it does not pass.
#![expect(clippy::panic, clippy::expect_used, reason = "the suite fails a test by panicking")]

use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use serde_json::{Value, json};
use types::{Batch, Contract};

use crate::{Gate, Reason, Verdict, Verdicts};

/// Checks the contract of [`Gate`] on `rows` with fresh gates from `make`; panics with what does not hold.
///
/// - one verdict per row, also of an empty batch and of the batch cut short;
/// - the same verdicts from the same gate again and from a fresh one: nothing is carried from batch to batch;
/// - every reason names the gate and a code, and every refusal has a reason;
/// - refusals are split-invariant: a row that is refused in the batch is refused alone, for the same reasons.
///   (Drops are not: the second of two twins is a duplicate only next to the first.)
pub fn check_gate<G: Gate>(make: impl Fn() -> G, rows: &Batch) {
    let mut gate = make();
    let verdicts = judge(&mut gate, rows);
    assert_eq!(
        judge(&mut gate, rows),
        verdicts,
        "the gate answers differently the second time"
    );
    assert_eq!(judge(&mut make(), rows), verdicts, "a fresh gate answers differently");

    let none = rows.filter(&vec![false; rows.len()]).expect("an empty batch");
    judge(&mut gate, &none);
    assert_eq!(judge(&mut gate, rows), verdicts, "an empty batch changed the gate");

    for row in 0..rows.len() {
        let alone: Vec<_> = (0..rows.len()).map(|other| other == row).collect();
        let alone = judge(&mut gate, &rows.filter(&alone).expect("a batch of one row"));
        let apart = alone
            .exceptions()
            .first()
            .map(|(_, verdict)| verdict)
            .filter(|verdict| refuses(verdict));
        let together = verdicts
            .exceptions()
            .iter()
            .find(|(other, _)| *other == row)
            .map(|(_, verdict)| verdict);
        assert_eq!(
            apart,
            together.filter(|verdict| refuses(verdict)),
            "row {row} alone and in its batch"
        );
    }
}

/// Runs a future that never waits, as a chain of gates is.
pub fn ready<F: Future>(future: F) -> F::Output {
    match pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(output) => output,
        Poll::Pending => panic!("the future waits"),
    }
}

/// A batch under a contract with a required `name`, one field of each other type, and extras.
pub fn batch(records: &[Value]) -> Batch {
    let def = json!({"fields": [
        {"name": "name", "type": "string", "required": true},
        {"name": "count", "type": "integer"},
        {"name": "ratio", "type": "number"},
        {"name": "ok", "type": "boolean"},
        {"name": "at", "type": "timestamp"},
        {"name": "more", "type": "json"},
    ], "allowExtra": true});
    let contract: Contract = serde_json::from_value(def).expect("the contract is valid");
    Batch::decode(&Arc::new(contract), records)
}

fn judge(gate: &mut impl Gate, rows: &Batch) -> Verdicts {
    let verdicts = gate.judge(rows);
    assert_eq!(verdicts.rows(), rows.len(), "one verdict per row");
    for (_, verdict) in verdicts.exceptions() {
        match verdict {
            Verdict::Pass => panic!("a pass among the exceptions"),
            Verdict::Drop { reason } | Verdict::Hold { reason, .. } => explained(gate, reason),
            Verdict::Refuse { reasons } => {
                assert!(!reasons.is_empty(), "a refusal without a reason");
                for reason in reasons {
                    explained(gate, reason);
                }
            }
        }
    }
    verdicts
}

fn explained(gate: &impl Gate, reason: &Reason) {
    assert_eq!(reason.gate, gate.name(), "a reason names its gate");
    let code = !reason.code.is_empty()
        && reason
            .code
            .bytes()
            .all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_');
    assert!(code, "`{}` is not a code", reason.code);
    assert!(
        !reason.expected.is_empty() && !reason.actual.is_empty(),
        "a reason explains itself"
    );
}

fn refuses(verdict: &Verdict) -> bool {
    matches!(verdict, Verdict::Refuse { .. })
}

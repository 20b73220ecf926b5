//! The gate that refuses records which violate the dataset's contract.
//!
//! Invariant: a row passes exactly when its batch has no defect for it, and a refusal has a reason for every defect
//! that the batch lists.

use types::json::LostDigits;
use types::{Batch, Defect};

use super::personal;
use crate::verdict::Refusals;
use crate::{Gate, GateName, Reason, Verdict, Verdicts};

/// Refuses the rows that violate the contract, with one reason per defect: `not_object`, `missing`, `type`, `range`,
/// `extra`, or `more` for defects that are only counted.
#[derive(Clone, Copy, Debug)]
pub struct Contract;

impl Gate for Contract {
    fn name(&self) -> GateName {
        GateName::CONTRACT
    }

    fn judge(&mut self, rows: &Batch) -> Verdicts {
        let mut refusals = Refusals::default();
        for defect in rows.defects() {
            // A closure, because a row keeps only so many reasons and a text for the others would be
            // made for nothing.
            refusals.add(defect.row, || reason(defect));
        }
        refusals.into_verdicts(rows.len())
    }
}

/// Converts a defect to a reason. A defect shows the name of an unknown member and the value of a scalar; either is
/// removed if it is personal data.
fn reason(defect: &Defect) -> Reason {
    // Verdicts are stored and shown, so they must not repeat personal data.
    let named = personal::is_personal(&defect.path, "");
    let shown = personal::is_personal(&defect.actual, &defect.path);
    Reason {
        gate: GateName::CONTRACT,
        code: defect.code.to_owned(),
        path: if named { String::new() } else { defect.path.clone() },
        expected: defect.expected.clone(),
        actual: match defect.actual.split_once(' ') {
            Some((kind, _)) if shown => kind.to_owned(),
            _ => defect.actual.clone(),
        },
    }
}

/// Returns the verdict on a line with numbers of which a double drops digits. As of a defect, personal data is removed.
pub fn lost_digits(numbers: &[LostDigits]) -> Verdict {
    let reason = |lost: &LostDigits| {
        let is_shown = !personal::is_personal(&lost.number, &lost.path);
        let is_named = !personal::is_personal(&lost.path, "");
        Reason {
            gate: GateName::DECODE,
            code: "digits".to_owned(),
            path: if is_named { lost.path.clone() } else { String::new() },
            expected: LostDigits::EXPECTED.to_owned(),
            actual: if is_shown {
                lost.found()
            } else {
                "another number".to_owned()
            },
        }
    };
    let mut refusals = Refusals::default();
    for lost in numbers {
        refusals.add(0, || reason(lost));
    }
    let said = refusals.into_verdicts(1).into_exceptions().pop();
    said.map_or(Verdict::Pass, |(_, verdict)| verdict)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use serde_json::{Value, json};

    use super::*;
    use crate::Verdict;
    use crate::conformance::check_gate;

    fn batch(records: &[Value]) -> Batch {
        let def = json!({"fields": [
            {"name": "name", "type": "string", "required": true},
            {"name": "count", "type": "integer", "required": true},
            {"name": "phone", "type": "string"},
        ]});
        Batch::decode(&Arc::new(serde_json::from_value(def).unwrap()), records)
    }

    fn refused(records: &[Value]) -> Vec<(usize, Vec<Reason>)> {
        let verdicts = Contract.judge(&batch(records));
        let refusal = |(row, verdict): &(usize, Verdict)| match verdict {
            Verdict::Refuse { reasons } => (*row, reasons.clone()),
            other => panic!("{other:?}"),
        };
        verdicts.exceptions().iter().map(refusal).collect()
    }

    #[test]
    fn a_refusal_names_every_defect_of_its_row_and_only_of_its_row() {
        let seen = refused(&[
            json!({"name": "a", "count": 1}),
            json!({"name": 7, "count": 1.5, "wrong": "x"}),
            json!({"name": "b", "count": 2}),
            json!({"count": 3}),
            json!("text"),
        ]);
        let rows: Vec<_> = seen.iter().map(|(row, _)| *row).collect();
        assert_eq!(rows, [1, 3, 4]);
        let mut codes: Vec<_> = seen[0]
            .1
            .iter()
            .map(|reason| (reason.path.as_str(), reason.code.as_str()))
            .collect();
        codes.sort_unstable();
        assert_eq!(codes, [("/count", "type"), ("/name", "type"), ("/wrong", "extra")]);
        let missing = Reason {
            gate: GateName::CONTRACT,
            code: "missing".to_owned(),
            path: "/name".to_owned(),
            expected: "string".to_owned(),
            actual: "nothing".to_owned(),
        };
        assert_eq!(seen[1].1, [missing]);
        assert_eq!(seen[2].1[0].code, "not_object");
    }

    #[test]
    fn a_defect_does_not_show_personal_data() {
        let seen = refused(&[
            json!({"name": "a", "count": 1, "kim@example.de": 1}),
            json!({"name": "a", "count": 1, "phone": 821_012_345_678_u64}),
            json!({"name": 12, "count": 1}),
        ]);
        assert_eq!((seen[0].1[0].code.as_str(), seen[0].1[0].path.as_str()), ("extra", ""));
        assert_eq!(seen[1].1[0].actual, "integer");
        assert_eq!(seen[2].1[0].actual, "integer 12");
    }

    #[test]
    fn keeps_the_contract_of_gates() {
        let records = [
            json!({"name": "a", "count": 1}),
            json!({"name": 7}),
            json!([]),
            json!({"name": "b", "count": 2}),
        ];
        check_gate(|| Contract, &batch(&records));
    }
}

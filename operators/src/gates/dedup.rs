//! The gate that drops records which the batch or the dataset already has.
//!
//! Invariant: the rows that pass have distinct keys, and the dataset had none of them at the time of the lookup. The
//! merge looks again in its critical section, since another batch may have merged in between.

use std::collections::hash_map::Entry;
use std::sync::Arc;

use types::Batch;
use types::key::{BuildMapHasher, KeyLookup, KeyMap};

use crate::{Gate, GateName, Reason, Verdict, Verdicts};

/// Drops the rows whose key the dataset has (`duplicate_in_dataset`), and all but the first row of each key in the
/// batch (`duplicate_in_batch`).
#[derive(Clone, Debug)]
pub struct Dedup {
    known: Arc<dyn KeyLookup>,
}

impl Dedup {
    /// Creates a gate that looks keys up in `known`.
    pub fn new(known: Arc<dyn KeyLookup>) -> Self {
        Self { known }
    }
}

impl Gate for Dedup {
    fn name(&self) -> GateName {
        GateName::DEDUP
    }

    fn judge(&mut self, rows: &Batch) -> Verdicts {
        let keys = rows.keys();
        let known = self.known.known(keys);
        let mut first = KeyMap::with_capacity_and_hasher(keys.len(), BuildMapHasher::default());
        let mut exceptions = Vec::new();
        for (row, key) in keys.iter().enumerate() {
            // If the lookup returned too few answers the row passes; the merge looks again
            // before it commits.
            if known.get(row).copied().unwrap_or(false) {
                let reason = reason(
                    "duplicate_in_dataset",
                    "a record the dataset does not have",
                    "a record it has",
                );
                exceptions.push((row, Verdict::Drop { reason }));
                continue;
            }
            // The first row of a key stays; later ones name it.
            match first.entry(*key) {
                Entry::Vacant(entry) => {
                    entry.insert(row);
                }
                Entry::Occupied(entry) => {
                    let actual = format!("the same as record {}", rows.positions()[*entry.get()]);
                    let reason = reason("duplicate_in_batch", "a record the batch does not have before", &actual);
                    exceptions.push((row, Verdict::Drop { reason }));
                }
            }
        }
        Verdicts::from_exceptions(keys.len(), exceptions)
    }
}

/// Builds a reason of this gate about a whole record.
fn reason(code: &str, expected: &str, actual: &str) -> Reason {
    Reason {
        gate: GateName::DEDUP,
        code: code.to_owned(),
        // A duplicate concerns the whole record.
        path: String::new(),
        expected: expected.to_owned(),
        actual: actual.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};
    use types::RecordKey;
    use types::key::NoKeys;

    use super::*;
    use crate::conformance::{batch, check_gate};

    #[derive(Debug)]
    struct Has(Vec<RecordKey>);

    impl KeyLookup for Has {
        fn known(&self, keys: &[RecordKey]) -> Vec<bool> {
            keys.iter().map(|key| self.0.contains(key)).collect()
        }
    }

    /// Says nothing about the rows it is asked for.
    #[derive(Debug)]
    struct Mute;

    impl KeyLookup for Mute {
        fn known(&self, _: &[RecordKey]) -> Vec<bool> {
            Vec::new()
        }
    }

    fn records(names: &[&str]) -> Vec<Value> {
        names.iter().map(|name| json!({"name": name})).collect()
    }

    fn dropped(gate: &mut Dedup, rows: &Batch) -> Vec<(usize, String, String)> {
        let verdicts = gate.judge(rows);
        let drop = |(row, verdict): &(usize, Verdict)| match verdict {
            Verdict::Drop { reason } => (*row, reason.code.clone(), reason.actual.clone()),
            other => panic!("{other:?}"),
        };
        verdicts.exceptions().iter().map(drop).collect()
    }

    #[test]
    fn the_first_of_each_key_passes_and_the_others_name_it() {
        let rows = batch(&records(&["a", "b", "a", "c", "b", "a"]));
        let again = |row: usize, first: u32| {
            (
                row,
                "duplicate_in_batch".to_owned(),
                format!("the same as record {first}"),
            )
        };
        let mut gate = Dedup::new(Arc::new(NoKeys));
        assert_eq!(dropped(&mut gate, &rows), [again(2, 0), again(4, 1), again(5, 0)]);
    }

    #[test]
    fn the_first_is_named_by_its_position_as_submitted() {
        let rows = batch(&records(&["x", "a", "a"])).filter(&[false, true, true]).unwrap();
        let mut gate = Dedup::new(Arc::new(NoKeys));
        assert_eq!(dropped(&mut gate, &rows)[0].2, "the same as record 1");
    }

    #[test]
    fn what_the_dataset_has_is_dropped_every_time() {
        let rows = batch(&records(&["a", "b", "a"]));
        let mut gate = Dedup::new(Arc::new(Has(vec![rows.keys()[0]])));
        let codes: Vec<_> = dropped(&mut gate, &rows)
            .into_iter()
            .map(|(row, code, _)| (row, code))
            .collect();
        let dataset = "duplicate_in_dataset".to_owned();
        assert_eq!(codes, [(0, dataset.clone()), (2, dataset)]);
    }

    #[test]
    fn spellings_of_one_record_are_duplicates() {
        let rows = batch(&[
            json!({"name": "a", "count": 1}),
            json!({"count": 1.0, "name": "a", "ratio": null}),
        ]);
        assert_eq!(dropped(&mut Dedup::new(Arc::new(NoKeys)), &rows).len(), 1);
    }

    #[test]
    fn an_index_that_does_not_answer_drops_nothing() {
        let rows = batch(&records(&["a", "b"]));
        assert_eq!(dropped(&mut Dedup::new(Arc::new(Mute)), &rows), []);
    }

    #[test]
    fn keeps_the_contract_of_gates() {
        let rows = batch(&records(&["a", "b", "a", "c", "b", "a"]));
        check_gate(|| Dedup::new(Arc::new(NoKeys)), &rows);
        let known = Arc::new(Has(vec![rows.keys()[1]]));
        check_gate(|| Dedup::new(Arc::<Has>::clone(&known)), &rows);
    }
}

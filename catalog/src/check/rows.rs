//! Check of a part's rows against its commit: hidden columns, record keys and the content root.

use std::sync::Arc;

use arrow::array::{Array, AsArray, RecordBatch};
use arrow::datatypes::{DataType, Int64Type};
use bytes::Bytes;
use serde_json::Value;
use types::{Batch, Contract, render};

use super::Checker;

/// Expected values of the hidden columns of a version's rows.
#[derive(Clone, Copy)]
pub(super) struct ExpectedRows<'a> {
    pub(super) number: u64,
    pub(super) contribution: &'a str,
    pub(super) agent: &'a str,
    pub(super) contract: Option<&'a Arc<Contract>>,
    /// Number of rows in the earlier parts of the same version: the ordinal of the first row.
    pub(super) first: u64,
    /// True if the keys must be new in the table, false if the table must have them.
    pub(super) new: bool,
}

/// Returns a hasher that starts with the content root of the version before.
pub(super) fn extension(root: &[u8; 32]) -> blake3::Hasher {
    let mut hasher = blake3::Hasher::new_derive_key("sluice 2026-11 content root v1");
    hasher.update(root);
    hasher
}

impl Checker {
    /// Checks the rows of a part and adds them to the root. Returns the number of rows.
    pub(super) fn rows(
        &mut self,
        part: &str,
        bytes: Bytes,
        expected: &ExpectedRows<'_>,
        root: &mut Option<blake3::Hasher>,
    ) -> u64 {
        let batches = match crate::part::decode(bytes) {
            Ok(batches) => batches,
            Err(error) => {
                self.violation("part_unreadable", part, &error);
                *root = None;
                return 0;
            }
        };
        let mut rows = 0;
        for batch in batches {
            let batch = match batch {
                Ok(batch) => batch,
                Err(error) => {
                    self.violation("part_unreadable", part, &error);
                    *root = None;
                    return rows;
                }
            };
            if let Err(problem) = self.batch(part, &batch, expected.first + rows, expected, root.as_mut()) {
                self.violation("part_unreadable", part, &problem);
                *root = None;
            }
            rows += batch.num_rows() as u64;
        }
        rows
    }

    pub(super) fn batch(
        &mut self,
        part: &str,
        batch: &RecordBatch,
        first: u64,
        expected: &ExpectedRows<'_>,
        root: Option<&mut blake3::Hasher>,
    ) -> Result<(), String> {
        let contract = expected.contract.ok_or("the table has no contract")?;
        let column = |name: &str, kind: &DataType| {
            let column = batch
                .column_by_name(name)
                .ok_or_else(|| format!("it has no column `{name}`"))?;
            if column.data_type() == kind {
                Ok(column)
            } else {
                Err(format!("column `{name}` is not {kind}"))
            }
        };
        let keys = column("_sluice_key", &DataType::Binary)?.as_binary::<i32>();
        let contributions = column("_sluice_contribution", &DataType::Utf8)?.as_string::<i32>();
        let agents = column("_sluice_agent", &DataType::Utf8)?.as_string::<i32>();
        let versions = column("_sluice_version", &DataType::Int64)?.as_primitive::<Int64Type>();
        let ordinals = column("_sluice_ordinal", &DataType::Int64)?.as_primitive::<Int64Type>();

        let records = render::records_of(contract, batch).map_err(|error| error.to_string())?;
        let records: Vec<Value> = records.into_iter().map(Value::Object).collect();
        // Keys and canonical forms are computed again from the rendered records, as a contributor would send them.
        let decoded = Batch::decode(contract, &records);
        if let Some(defect) = decoded.defects().first() {
            self.violation(
                "record_key",
                part,
                &format!("row {} breaks the contract", first + defect.row as u64),
            );
        }
        for row in 0..batch.num_rows() {
            let ordinal = first + row as u64;
            let told = keys.is_valid(row)
                && contributions.is_valid(row)
                && contributions.value(row) == expected.contribution
                && agents.is_valid(row)
                && agents.value(row) == expected.agent
                && u64::try_from(versions.value(row)) == Ok(expected.number)
                && u64::try_from(ordinals.value(row)) == Ok(ordinal);
            if !told {
                let version = versions.value(row);
                self.violation(
                    "hidden_columns",
                    part,
                    &format!("row {ordinal} has the version {version}, or is out of order"),
                );
            }
            let key = decoded.keys()[row];
            if keys.value(row) != key.as_bytes() {
                self.violation(
                    "record_key",
                    part,
                    &format!("the key column of row {ordinal} differs from the key of its record"),
                );
            }
            if !expected.new {
                if !self.keys.contains(key.as_bytes()) {
                    self.violation(
                        "compaction",
                        part,
                        &format!("row {ordinal}: no version has the key `{key}`"),
                    );
                }
            } else if !self.keys.insert(*key.as_bytes()) {
                self.violation(
                    "key_twice",
                    part,
                    &format!("row {ordinal}: an earlier row has the key `{key}`"),
                );
            }
        }
        if let Some(root) = root {
            for row in 0..batch.num_rows() {
                let canonical = decoded.canonical(row);
                // The length in front of each record keeps the borders of records in the hash.
                root.update(&u32::try_from(canonical.len()).unwrap_or(u32::MAX).to_le_bytes());
                root.update(canonical);
            }
        }
        Ok(())
    }
}

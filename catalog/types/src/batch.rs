//! A batch of records: typed columns, with the canonical form and the key of every row.
//!
//! Invariants: columns, canonical forms, keys and positions have one entry per row, keys once somebody asks for one; a row
//! without a defect satisfies the contract. Decoding is total: what does not fit is a [`Defect`], never an error and never
//! a lost row.

mod column;
mod decode;
mod lines;

use std::ops::Range;
use std::sync::{Arc, OnceLock};

use arrow::array::BooleanArray;
use arrow::compute::filter_record_batch;
use arrow::error::ArrowError;
use arrow::record_batch::RecordBatch;
use serde_json::Value;

use self::decode::Decoder;
pub use self::lines::Lines;
use crate::key::KeyHasher;
use crate::{Contract, RecordKey};

/// The most defects of a row that are named; where a row has more, the last says how many.
pub const MAX_DEFECTS: usize = 20;

/// How many bytes a record has about, where nobody says.
const USUAL: usize = 128;

/// One place where a record does not satisfy its contract.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Defect {
    /// Index of the row in the batch.
    pub row: usize,
    /// Machine-readable rule: `not_object`, `missing`, `type`, `range` or `extra`; `more` where the row has more defects
    /// than [`MAX_DEFECTS`].
    pub code: &'static str,
    /// JSON pointer within the record; empty for the record itself.
    pub path: String,
    /// What the contract asks for.
    pub expected: String,
    /// What the record has.
    pub actual: String,
}

/// Records of one contract.
#[derive(Clone, Debug)]
pub struct Batch {
    contract: Arc<Contract>,
    rows: RecordBatch,
    canonical: Canonical,
    keys: OnceLock<Vec<RecordKey>>,
    positions: Vec<u32>,
    defects: Vec<Defect>,
}

impl Batch {
    /// Decodes records; row `i` is `records[i]`.
    pub fn decode(contract: &Arc<Contract>, records: &[Value]) -> Self {
        let mut decoder = Decoder::new(contract, records.len(), records.len() * USUAL);
        for record in records {
            decoder.push(record);
        }
        decoder.finish()
    }

    /// The contract the records were decoded by.
    pub const fn contract(&self) -> &Arc<Contract> {
        &self.contract
    }

    /// The number of rows.
    pub fn len(&self) -> usize {
        self.rows.num_rows()
    }

    /// Whether there are no rows.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The typed columns, of the schema [`Contract::schema`]. A cell that does not fit is null.
    pub const fn columns(&self) -> &RecordBatch {
        &self.rows
    }

    /// The key of each row. They are made when they are asked for the first time: a record that is only judged by its
    /// contract needs none.
    pub fn keys(&self) -> &[RecordKey] {
        self.keys.get_or_init(|| {
            let canonical: Vec<_> = (0..self.len()).map(|row| self.canonical(row)).collect();
            KeyHasher::new().keys(&canonical)
        })
    }

    /// The canonical form of a row: an RFC 8785 object of its members that are not null.
    pub fn canonical(&self, row: usize) -> &[u8] {
        self.canonical.get(row)
    }

    /// For each row, its index in the batch as it was decoded.
    pub fn positions(&self) -> &[u32] {
        &self.positions
    }

    /// Where rows do not satisfy the contract, in row order, at most [`MAX_DEFECTS`] of each row.
    pub fn defects(&self) -> &[Defect] {
        &self.defects
    }

    /// The rows for which `keep` is true; `keep` has one entry per row.
    pub fn filter(&self, keep: &[bool]) -> Result<Self, ArrowError> {
        if keep.len() != self.len() {
            return Err(ArrowError::InvalidArgumentError(format!(
                "{} flags for {} rows",
                keep.len(),
                self.len()
            )));
        }
        let kept = || keep.iter().enumerate().filter(|(_, kept)| **kept).map(|(row, _)| row);
        let mut new_row = Vec::new();
        if !self.defects.is_empty() {
            new_row.resize(keep.len(), None);
            for (index, row) in kept().enumerate() {
                new_row[row] = Some(index);
            }
        }
        let defects = self
            .defects
            .iter()
            .filter_map(|defect| new_row[defect.row].map(|row| Defect { row, ..defect.clone() }));
        Ok(Self {
            contract: Arc::clone(&self.contract),
            rows: filter_record_batch(&self.rows, &BooleanArray::from(keep.to_vec()))?,
            canonical: Canonical {
                bytes: Arc::clone(&self.canonical.bytes),
                places: kept().map(|row| self.canonical.places[row].clone()).collect(),
            },
            keys: self.keys.get().map_or_else(OnceLock::new, |keys| {
                kept().map(|row| keys[row]).collect::<Vec<_>>().into()
            }),
            positions: kept().map(|row| self.positions[row]).collect(),
            defects: defects.collect(),
        })
    }
}

/// Canonical forms in one buffer, which batches that were filtered share.
#[derive(Clone, Debug)]
struct Canonical {
    bytes: Arc<Vec<u8>>,
    /// Where each row is.
    places: Vec<Range<usize>>,
}

impl Canonical {
    fn get(&self, row: usize) -> &[u8] {
        &self.bytes[self.places[row].clone()]
    }
}

#[cfg(test)]
mod tests;

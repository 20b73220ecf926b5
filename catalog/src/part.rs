//! Encoding of parts. A part is a Parquet file with rows of one version, or of several adjacent versions. A version has
//! one part, or several if it came as an upload.
//!
//! Invariant: the same rows give the same bytes. Rows are in the order of the batch, and the hidden columns follow
//! those of the contract.

mod footers;
mod proofs;
mod read;

use std::collections::HashMap;
use std::sync::Arc;

use arrow::array::{Array as _, ArrayRef, AsArray as _, BinaryArray, Int64Array, RecordBatch, StringArray};
use arrow::datatypes::{DataType, Field, FieldRef, Schema, SchemaRef};
use bytes::Bytes;
use object_store::path::Path;
use parquet::arrow::arrow_writer::{ArrowWriter, ArrowWriterOptions};
use parquet::basic::{Compression, Encoding, ZstdLevel};
use parquet::errors::ParquetError;
use parquet::file::properties::{EnabledStatistics, WriterProperties, WriterPropertiesBuilder};
use parquet::schema::types::ColumnPath;
use sha2::{Digest as _, Sha256};
use types::contract::PLACE_COLUMNS;
use types::proof::MAX_WHOLE_BYTES;
use types::{AgentId, Batch, Contract, ContributionId, DatasetId, Proof, RecordKey, Version, fault};

pub(crate) use footers::Footers;
pub(crate) use proofs::{Proofs, proof};
pub(crate) use read::{PartSource, SelectedColumns, decode, keys, lost, open, open_whole, verified};

use crate::{Error, Root};

/// Names of the hidden columns, which follow those of the contract: key (binary, 16 bytes), contribution (text), agent
/// (text), version (64 bits), ordinal (64 bits: index of the row in its version).
pub const HIDDEN_COLUMNS: [&str; 5] = [
    "_sluice_key",
    "_sluice_contribution",
    "_sluice_agent",
    PLACE_COLUMNS[0],
    PLACE_COLUMNS[1],
];

/// Number of hidden columns that have the same value in all rows of a version.
pub(crate) const CONSTANT_COLUMNS: usize = 3;
/// Maximum number of rows in a data page. Reading one row decodes one page.
pub(crate) const PAGE_ROWS: usize = 1_024;
/// Maximum number of rows of a small part, which is written with cheap compression.
pub(crate) const SMALL_PART_ROWS: usize = 4 * PAGE_ROWS;
/// Maximum number of rows in a row group.
pub(crate) const GROUP_ROWS: usize = 131_072;
/// Approximate maximum size of a row group in bytes. A reader of many rows holds one row group in memory.
pub(crate) const GROUP_BYTES: usize = 16 << 20;
/// Maximum size in bytes of a column's dictionary in a row group. The bound ends the dictionary early for texts that do
/// not repeat.
const DICTIONARY_BYTES: usize = 256 << 10;
/// Maximum average length in bytes of texts that count as names: they are looked up by value and get a Bloom filter.
const NAME_BYTES: usize = 64;
/// Maximum number of rows of a sample.
const SAMPLE_ROWS: usize = 4_096;
/// False positive rate of the Bloom filters in row groups.
const FALSE_POSITIVES: f64 = 0.01;

/// Returns the schema of a table: the columns of the contract, then [`HIDDEN_COLUMNS`].
pub(crate) fn schema(contract: &Contract) -> SchemaRef {
    let mut fields: Vec<_> = contract.schema().fields().iter().cloned().collect();
    let types = [
        DataType::Binary,
        DataType::Utf8,
        DataType::Utf8,
        DataType::Int64,
        DataType::Int64,
    ];
    fields.extend(
        HIDDEN_COLUMNS
            .into_iter()
            .zip(types)
            .map(|(name, kind)| Arc::new(Field::new(name, kind, true))),
    );
    Arc::new(Schema::new(fields))
}

/// A part, as its commit describes it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PartInfo {
    /// Version of the last row.
    pub version: Version,
    /// Version of the first row, for a compacted part. `None` if all rows are of one version.
    pub(crate) compacted: Option<Version>,
    /// Contribution of the last row.
    pub contribution: ContributionId,
    /// Index of the part within its version, from 0.
    pub(crate) index: u32,
    /// Number of earlier tries with the same name. It is 0 unless a try left an orphan.
    pub(crate) attempt: u32,
    /// Number of rows in the file.
    pub rows: u64,
    /// Size of the file in bytes.
    pub bytes: u64,
    /// SHA-256 of the file.
    pub sha256: [u8; 32],
}

impl PartInfo {
    /// Returns the version of the first row.
    pub fn first_version(&self) -> Version {
        self.compacted.unwrap_or(self.version)
    }

    /// Returns the file's name within the table.
    pub fn name(&self) -> String {
        match self.compacted {
            Some(first) => compacted_name(first, self.version, &self.sha256),
            None => name(self.version, self.contribution, self.index, self.attempt),
        }
    }

    /// Returns the path of the part in the object store.
    pub fn path(&self, dataset: DatasetId) -> Path {
        Path::from(format!("{dataset}/{}", self.name()))
    }
}

/// A part, with the content root after it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PartLink {
    /// Description of the part.
    pub part: PartInfo,
    /// Content root of the part's last version.
    pub root: Root,
}

/// Returns the name of a part. An orphan of a crash keeps its name, so the next try of the contribution uses the next
/// `attempt`.
pub(crate) fn name(version: Version, contribution: ContributionId, index: u32, attempt: u32) -> String {
    // Twenty digits sort names in the order of versions.
    let version = version.0;
    match (index, attempt) {
        (0, 0) => format!("part-{version:020}-{contribution}.parquet"),
        (0, _) => format!("part-{version:020}-{contribution}-{attempt}.parquet"),
        _ => format!("part-{version:020}-{contribution}-{attempt}-{index}.parquet"),
    }
}

/// Returns the name of a compacted part. It contains a hash, so the same name always means the same bytes.
pub(crate) fn compacted_name(first: Version, last: Version, sha256: &[u8; 32]) -> String {
    let (first, last, hash) = (first.0, last.0, data_encoding::HEXLOWER.encode(&sha256[..16]));
    format!("part-{first:020}-{last:020}-{hash}.parquet")
}

/// Parses the name of a part of this version and contribution. Returns its index and attempt.
pub(crate) fn place_of(name: &str, version: Version, contribution: ContributionId) -> Option<(u32, u32)> {
    let stem = format!("part-{:020}-{contribution}", version.0);
    let (index, attempt) = match name.strip_prefix(&stem)?.strip_suffix(".parquet")? {
        "" => (0, 0),
        suffix => match suffix.strip_prefix('-')?.split_once('-') {
            Some((attempt, index)) => (index.parse().ok()?, attempt.parse().ok()?),
            None => (0, suffix[1..].parse().ok()?),
        },
    };
    // Formatting the result again rejects other spellings of the same numbers, such as leading zeros.
    (self::name(version, contribution, index, attempt) == name).then_some((index, attempt))
}

#[derive(Clone, Debug)]
pub(crate) struct EncodedPart {
    pub(crate) bytes: Bytes,
    pub(crate) sha256: [u8; 32],
}

/// Returns the proof that a commit contains for a part with these bytes. Returns `None` for a small part, which is
/// always read whole.
pub(crate) fn proof_of(bytes: &[u8]) -> Option<Proof> {
    (bytes.len() as u64 > MAX_WHOLE_BYTES).then(|| Proof::of(bytes))
}

/// Encodes all rows of a version as one part.
pub(crate) fn encode(
    batch: &Batch,
    contribution: ContributionId,
    agent: AgentId,
    version: Version,
) -> Result<EncodedPart, Error> {
    fault::crash_encoder_on(batch);
    let rows = with_hidden(batch, contribution, agent, version)?;
    let bytes = write(&rows).map_err(Error::Encode)?;
    Ok(EncodedPart {
        sha256: Sha256::digest(&bytes).into(),
        bytes,
    })
}

/// Returns the columns of a part that has all rows of a version.
fn with_hidden(
    batch: &Batch,
    contribution: ContributionId,
    agent: AgentId,
    version: Version,
) -> Result<RecordBatch, Error> {
    let mut columns = varying(batch, 0);
    let at = constants(columns.len());
    columns.splice(at..at, constant(contribution, agent, version, batch.len()));
    let schema = schema(batch.contract());
    RecordBatch::try_new(schema, columns).map_err(|error| Error::Encode(error.into()))
}

/// Returns the columns whose values differ from row to row: all except those of [`constant`]. `first` is the ordinal of
/// the first row.
pub(crate) fn varying(batch: &Batch, first: u64) -> Vec<ArrayRef> {
    let first = i64::try_from(first).unwrap_or(i64::MAX);
    let end = first.saturating_add(i64::try_from(batch.len()).unwrap_or(i64::MAX));
    let keys = batch.keys().iter().map(RecordKey::as_bytes);
    let mut columns = batch.columns().columns().to_vec();
    columns.push(Arc::new(BinaryArray::from_iter_values(keys)));
    columns.push(Arc::new(Int64Array::from_iter_values(first..end)));
    columns
}

/// Returns the hidden columns with one value for all rows of a version: contribution, agent and version.
pub(crate) fn constant(
    contribution: ContributionId,
    agent: AgentId,
    version: Version,
    rows: usize,
) -> [ArrayRef; CONSTANT_COLUMNS] {
    let text = |id: String| Arc::new(StringArray::from_iter_values(std::iter::repeat_n(id, rows)));
    let number = i64::try_from(version.0).unwrap_or(i64::MAX);
    [
        text(contribution.to_string()),
        text(agent.to_string()),
        Arc::new(Int64Array::from_value(number, rows)),
    ]
}

/// Returns the position of the columns of [`constant`] among `varying` other columns: before the last, the ordinals.
pub(crate) const fn constants(varying: usize) -> usize {
    varying.saturating_sub(1)
}

/// Returns the writer properties of every part of about `rows` rows.
pub(crate) fn properties(rows: usize) -> Result<WriterPropertiesBuilder, ParquetError> {
    let [key, _, _, version, ordinal] = HIDDEN_COLUMNS.map(ColumnPath::from);
    // zstd needs a context per column for writing and reading, which costs more than all rows of a small part.
    // Compaction later moves most rows of a growing table into large parts.
    let compression = if rows <= SMALL_PART_ROWS {
        Compression::SNAPPY
    } else {
        Compression::ZSTD(ZstdLevel::try_new(1)?)
    };
    let mut properties = WriterProperties::builder()
        .set_compression(compression)
        .set_dictionary_enabled(false)
        // The writer checks the limit once per write batch, so both have the same size.
        .set_data_page_row_count_limit(PAGE_ROWS)
        .set_write_batch_size(PAGE_ROWS)
        .set_max_row_group_row_count(Some(GROUP_ROWS))
        .set_max_row_group_bytes(Some(GROUP_BYTES))
        .set_statistics_enabled(EnabledStatistics::Page)
        .set_column_encoding(ordinal.clone(), Encoding::DELTA_BINARY_PACKED)
        // Keys are random, so minima and maxima exclude nothing.
        .set_column_statistics_enabled(key.clone(), EnabledStatistics::None);
    // Keys do not compress, and versions and ordinals are small already.
    for plain in [key, version, ordinal] {
        properties = properties.set_column_compression(plain, Compression::UNCOMPRESSED);
    }
    if rows <= PAGE_ROWS {
        // With one page per column, an index of the pages repeats the footer.
        properties = properties
            .set_statistics_enabled(EnabledStatistics::Chunk)
            .set_offset_index_disabled(true);
    }
    Ok(properties)
}

/// Adds the encodings of text columns for a part of many rows, judged by `sample`, the columns of some of its rows.
/// Repeated texts get a dictionary. Names that are rare enough get a Bloom filter for lookups.
pub(crate) fn of_many(
    mut properties: WriterPropertiesBuilder,
    fields: &[FieldRef],
    sample: &[ArrayRef],
    rows: usize,
) -> WriterPropertiesBuilder {
    for (column, values) in columns_of(fields).iter().zip(sample) {
        let values = values.slice(0, values.len().min(SAMPLE_ROWS));
        let Some(texts) = values.as_string_opt::<i32>() else {
            continue;
        };
        let path = || ColumnPath::from(column.name().as_str());
        properties = properties
            .set_column_encoding(path(), Encoding::DELTA_LENGTH_BYTE_ARRAY)
            .set_column_dictionary_enabled(path(), true)
            .set_column_dictionary_page_size_limit(path(), DICTIONARY_BYTES);
        let bytes = texts.offsets().lengths().sum::<usize>();
        if bytes <= texts.len() * NAME_BYTES && !are_everywhere(texts) {
            // The filter is allocated for the maximum number of names and later folded to the actual number.
            properties = properties
                .set_column_bloom_filter_max_ndv(path(), GROUP_ROWS.min(rows) as u64)
                .set_column_bloom_filter_fpp(path(), FALSE_POSITIVES);
        }
    }
    properties
}

/// Returns true if names repeat so often that nearly every row group has nearly all of them: a filter would exclude
/// nothing.
///
/// A group has 32 times the rows of a sample. If `n` names are equally frequent and randomly ordered, a name is absent
/// from one of `e^(131072/n)` groups. From about 32,000 names on, that is one in 60. A sample of that many names has
/// more than 16 times as many names that occur once as names that occur twice.
fn are_everywhere(sample: &StringArray) -> bool {
    let mut seen: HashMap<&str, u32> = HashMap::new();
    let mut before = None;
    for name in sample.iter().flatten() {
        // Names that come in runs repeat too, but each is in few groups. A run therefore counts once.
        if before.replace(name) != Some(name) {
            *seen.entry(name).or_default() += 1;
        }
    }
    let of = |times: u32| seen.values().filter(|seen| **seen == times).count();
    !seen.is_empty() && of(1) <= 16 * of(2)
}

/// Returns the contract's columns among those of a table.
fn columns_of(fields: &[FieldRef]) -> &[FieldRef] {
    &fields[..fields.len() - HIDDEN_COLUMNS.len()]
}

fn write(rows: &RecordBatch) -> Result<Bytes, ParquetError> {
    let [_, contribution, agent, version, _] = HIDDEN_COLUMNS.map(ColumnPath::from);
    let mut properties = properties(rows.num_rows())?;
    // A dictionary with one text is small without compression.
    for constant in [contribution, agent, version] {
        properties = properties
            .set_column_dictionary_enabled(constant.clone(), true)
            .set_column_compression(constant, Compression::UNCOMPRESSED);
    }
    if rows.num_rows() > SMALL_PART_ROWS {
        properties = of_many(properties, rows.schema_ref().fields(), rows.columns(), rows.num_rows());
    } else {
        for column in columns_of(rows.schema_ref().fields()) {
            let path = || ColumnPath::from(column.name().as_str());
            if matches!(column.data_type(), DataType::Int64 | DataType::Timestamp(..)) {
                properties = properties.set_column_encoding(path(), Encoding::DELTA_BINARY_PACKED);
            }
            if column.data_type().is_primitive() || *column.data_type() == DataType::Boolean {
                properties = properties.set_column_compression(path(), Compression::UNCOMPRESSED);
            }
        }
    }
    // The column types are plain, so the embedded Arrow schema would only enlarge the file.
    let options = ArrowWriterOptions::new()
        .with_properties(properties.build())
        .with_skip_arrow_metadata(true);
    // A guess of the encoded size, which spares most reallocations.
    let buffer = Vec::with_capacity(rows.get_array_memory_size() / 2);
    let mut writer = ArrowWriter::try_new_with_options(buffer, rows.schema(), options)?;
    writer.write(rows)?;
    Ok(writer.into_inner()?.into())
}

#[cfg(test)]
mod tests;

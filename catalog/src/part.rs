//! A part: rows of a version, or of several one after the other, as one Parquet file. A version has one part, or several
//! where it came as an upload.
//!
//! Invariant: the same rows give the same bytes, in the order of the batch, with the hidden columns after those of the
//! contract.

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
use types::proof::WHOLE;
use types::{AgentId, Batch, Contract, ContributionId, DatasetId, Proof, RecordKey, Version};

pub(crate) use footers::Footers;
pub(crate) use proofs::{Proofs, proof};
pub(crate) use read::{Selected, Source, decode, keys, lost, open, open_whole, verified};

use crate::{Error, Root};

/// The hidden columns, after those of the contract: key (binary, 16 bytes), contribution (text), agent (text), version
/// (64 bits), ordinal (64 bits: index of the row in its version).
pub const HIDDEN: [&str; 5] = [
    "_sluice_key",
    "_sluice_contribution",
    "_sluice_agent",
    "_sluice_version",
    "_sluice_ordinal",
];

/// How many of the hidden columns have one value in all rows of a version.
pub(crate) const CONSTANTS: usize = 3;
/// How many rows a data page has at most: what a read of one row decodes.
pub(crate) const PAGE_ROWS: usize = 1_024;
/// Up to how many rows a part is small, and compressed so that it costs little.
pub(crate) const SMALL: usize = 4 * PAGE_ROWS;
/// How many rows a row group has at most.
const GROUP_ROWS: usize = 131_072;
/// How many bytes it has at most, roughly: what who reads many rows of a large part holds.
pub(crate) const GROUP_BYTES: usize = 16 << 20;
/// How many bytes the dictionary of a column of a row group has at most; of texts that do not repeat it is given up early.
const DICTIONARY_BYTES: usize = 256 << 10;
/// Up to this many bytes on average texts are names rather than prose, and looked up by their value.
const NAME_BYTES: usize = 64;
/// How many rows of a sample are looked at.
const SAMPLE: usize = 4_096;
/// How often a filter of the names of a row group says yes where it should say no.
const FALSE_POSITIVES: f64 = 0.01;

/// The columns of a table: those of the contract, then [`HIDDEN`].
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
        HIDDEN
            .into_iter()
            .zip(types)
            .map(|(name, kind)| Arc::new(Field::new(name, kind, true))),
    );
    Arc::new(Schema::new(fields))
}

/// A part as its commit names it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PartInfo {
    /// The version of its last row.
    pub version: Version,
    /// The version of its first row, where it was compacted of other parts; else all its rows are of one version.
    pub(crate) compacted: Option<Version>,
    /// The contribution of its last row.
    pub contribution: ContributionId,
    /// Which part of its version it is, from 0.
    pub(crate) index: u32,
    /// How often the version was tried under the same name before; 0 nearly always.
    pub(crate) attempt: u32,
    /// How many rows it has.
    pub rows: u64,
    /// The size of the file.
    pub bytes: u64,
    /// The SHA-256 of the file.
    pub sha256: [u8; 32],
}

impl PartInfo {
    /// The version of its first row.
    pub fn first_version(&self) -> Version {
        self.compacted.unwrap_or(self.version)
    }

    /// The file's name within the table.
    pub fn name(&self) -> String {
        match self.compacted {
            Some(first) => compacted_name(first, self.version, &self.sha256),
            None => name(self.version, self.contribution, self.index, self.attempt),
        }
    }

    /// The object that holds the part.
    pub fn path(&self, dataset: DatasetId) -> Path {
        Path::from(format!("{dataset}/{}", self.name()))
    }
}

/// A part in the chain of content roots.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Link {
    /// The part.
    pub part: PartInfo,
    /// The content root of its last version.
    pub root: Root,
}

/// The name of a part. A part that a crash orphaned keeps its name, and the next try of its contribution takes the
/// next attempt.
pub(crate) fn name(version: Version, contribution: ContributionId, index: u32, attempt: u32) -> String {
    let version = version.0;
    match (index, attempt) {
        (0, 0) => format!("part-{version:020}-{contribution}.parquet"),
        (0, _) => format!("part-{version:020}-{contribution}-{attempt}.parquet"),
        _ => format!("part-{version:020}-{contribution}-{attempt}-{index}.parquet"),
    }
}

/// The name of a part that was compacted: the same name is always the same bytes.
pub(crate) fn compacted_name(first: Version, last: Version, sha256: &[u8; 32]) -> String {
    let (first, last, hash) = (first.0, last.0, data_encoding::HEXLOWER.encode(&sha256[..16]));
    format!("part-{first:020}-{last:020}-{hash}.parquet")
}

/// Index and attempt of the part of this version and contribution that has this name.
pub(crate) fn place_of(name: &str, version: Version, contribution: ContributionId) -> Option<(u32, u32)> {
    let stem = format!("part-{:020}-{contribution}", version.0);
    let (index, attempt) = match name.strip_prefix(&stem)?.strip_suffix(".parquet")? {
        "" => (0, 0),
        suffix => match suffix.strip_prefix('-')?.split_once('-') {
            Some((attempt, index)) => (index.parse().ok()?, attempt.parse().ok()?),
            None => (0, suffix[1..].parse().ok()?),
        },
    };
    (self::name(version, contribution, index, attempt) == name).then_some((index, attempt))
}

/// An encoded part.
#[derive(Clone, Debug)]
pub(crate) struct Encoded {
    pub(crate) bytes: Bytes,
    pub(crate) sha256: [u8; 32],
}

/// The proof that a commit names of a part with these bytes: none of a small one, which is read whole.
pub(crate) fn proof_of(bytes: &[u8]) -> Option<Proof> {
    (bytes.len() as u64 > WHOLE).then(|| Proof::of(bytes))
}

/// Encodes the rows of a version.
pub(crate) fn encode(
    batch: &Batch,
    contribution: ContributionId,
    agent: AgentId,
    version: Version,
) -> Result<Encoded, Error> {
    let rows = with_hidden(batch, contribution, agent, version)?;
    let bytes = write(&rows).map_err(Error::Encode)?;
    Ok(Encoded {
        sha256: Sha256::digest(&bytes).into(),
        bytes,
    })
}

/// The columns of a part that has all rows of a version.
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

/// The columns of a part of one version whose values differ from row to row: all but those that [`constant`] makes; `first`
/// is the ordinal of the first row.
pub(crate) fn varying(batch: &Batch, first: u64) -> Vec<ArrayRef> {
    let first = i64::try_from(first).unwrap_or(i64::MAX);
    let end = first.saturating_add(i64::try_from(batch.len()).unwrap_or(i64::MAX));
    let keys = batch.keys().iter().map(RecordKey::as_bytes);
    let mut columns = batch.columns().columns().to_vec();
    columns.push(Arc::new(BinaryArray::from_iter_values(keys)));
    columns.push(Arc::new(Int64Array::from_iter_values(first..end)));
    columns
}

/// The hidden columns that have one value in all rows of a version: contribution, agent and version.
pub(crate) fn constant(
    contribution: ContributionId,
    agent: AgentId,
    version: Version,
    rows: usize,
) -> [ArrayRef; CONSTANTS] {
    let text = |id: String| Arc::new(StringArray::from_iter_values(std::iter::repeat_n(id, rows)));
    let number = i64::try_from(version.0).unwrap_or(i64::MAX);
    [
        text(contribution.to_string()),
        text(agent.to_string()),
        Arc::new(Int64Array::from_value(number, rows)),
    ]
}

/// Where those begin that [`constant`] makes, among so many that vary: before the last, the ordinals.
pub(crate) const fn constants(varying: usize) -> usize {
    varying.saturating_sub(1)
}

/// How every part of about `rows` rows is written, whoever writes it.
pub(crate) fn properties(rows: usize) -> Result<WriterPropertiesBuilder, ParquetError> {
    let [key, _, _, version, ordinal] = HIDDEN.map(ColumnPath::from);
    // Why: zstd needs a context for every column, to write it and to read it, which costs more than all the rows of a
    // small part. Of a table that grows, most rows are compacted into large ones.
    let compression = if rows <= SMALL {
        Compression::SNAPPY
    } else {
        Compression::ZSTD(ZstdLevel::try_new(1)?)
    };
    let mut properties = WriterProperties::builder()
        .set_compression(compression)
        .set_dictionary_enabled(false)
        .set_data_page_row_count_limit(PAGE_ROWS)
        .set_write_batch_size(PAGE_ROWS)
        .set_max_row_group_row_count(Some(GROUP_ROWS))
        .set_max_row_group_bytes(Some(GROUP_BYTES))
        .set_statistics_enabled(EnabledStatistics::Page)
        .set_column_encoding(ordinal.clone(), Encoding::DELTA_BINARY_PACKED)
        // Why: keys are random, so a range of them helps nobody.
        .set_column_statistics_enabled(key.clone(), EnabledStatistics::None);
    // Why: keys do not compress, and the others are small as they are.
    for plain in [key, version, ordinal] {
        properties = properties.set_column_compression(plain, Compression::UNCOMPRESSED);
    }
    if rows <= PAGE_ROWS {
        // Why: with one page a column, an index of the pages says nothing that the footer does not.
        properties = properties
            .set_statistics_enabled(EnabledStatistics::Chunk)
            .set_offset_index_disabled(true);
    }
    Ok(properties)
}

/// How the texts of a part of about `rows` rows, which are many, are written, as `sample`, the columns of some of them, are:
/// those that repeat in a dictionary, and names that are not everywhere so that they can be looked up.
pub(crate) fn of_many(
    mut properties: WriterPropertiesBuilder,
    fields: &[FieldRef],
    sample: &[ArrayRef],
    rows: usize,
) -> WriterPropertiesBuilder {
    for (column, values) in columns_of(fields).iter().zip(sample) {
        let values = values.slice(0, values.len().min(SAMPLE));
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
            // Why: it is made for as many names as there can be, then folded to as many as there are.
            properties = properties
                .set_column_bloom_filter_max_ndv(path(), GROUP_ROWS.min(rows) as u64)
                .set_column_bloom_filter_fpp(path(), FALSE_POSITIVES);
        }
    }
    properties
}

/// Whether names repeat so much that nearly every row group has nearly all of them, so that a filter of them would tell
/// nothing. A group has 32 times the rows of a sample: where `n` names are as frequent and come in any order, one is not in
/// one of `e^(131072/n)` groups. From about 32,000 names on, of which that is one in 60, more than 16 times as many come
/// once in a sample as come twice.
fn are_everywhere(sample: &StringArray) -> bool {
    let mut seen: HashMap<&str, u32> = HashMap::new();
    let mut before = None;
    for name in sample.iter().flatten() {
        // Why: names that come in runs repeat, too, and each is in few groups.
        if before.replace(name) != Some(name) {
            *seen.entry(name).or_default() += 1;
        }
    }
    let of = |times: u32| seen.values().filter(|seen| **seen == times).count();
    !seen.is_empty() && of(1) <= 16 * of(2)
}

/// The columns of the contract among those of a table.
fn columns_of(fields: &[FieldRef]) -> &[FieldRef] {
    &fields[..fields.len() - HIDDEN.len()]
}

fn write(rows: &RecordBatch) -> Result<Bytes, ParquetError> {
    let [_, contribution, agent, version, _] = HIDDEN.map(ColumnPath::from);
    let mut properties = properties(rows.num_rows())?;
    // Why: a dictionary of one text is small as it is.
    for constant in [contribution, agent, version] {
        properties = properties
            .set_column_dictionary_enabled(constant.clone(), true)
            .set_column_compression(constant, Compression::UNCOMPRESSED);
    }
    if rows.num_rows() > SMALL {
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
    // Why: the columns' types are plain, so the Arrow schema would only make every file larger.
    let options = ArrowWriterOptions::new()
        .with_properties(properties.build())
        .with_skip_arrow_metadata(true);
    let buffer = Vec::with_capacity(rows.get_array_memory_size() / 2);
    let mut writer = ArrowWriter::try_new_with_options(buffer, rows.schema(), options)?;
    writer.write(rows)?;
    Ok(writer.into_inner()?.into())
}

#[cfg(test)]
mod tests;

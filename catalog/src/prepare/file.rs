//! The files of a staged upload: parts as they will be, but for the version in them, which only the commit knows.
//!
//! Columns that have one value in all rows are not encoded row by row: a row group is given what was encoded for
//! another.
//!
//! Invariant: the version of a file is 8 bytes in one dictionary page of each row group, uncompressed and in no
//! statistics, so another version changes these and nothing else.

use std::fs::{File, OpenOptions};
use std::io::{self, BufWriter, Read as _, Write};
use std::os::unix::fs::FileExt as _;
use std::path::PathBuf;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, RecordBatch};
use arrow::datatypes::{FieldRef, SchemaRef};
use bytes::Bytes;
use parquet::arrow::arrow_writer::{
    ArrowColumnWriter, ArrowRowGroupWriterFactory, ArrowWriter, ArrowWriterOptions, compute_leaves,
};
use parquet::basic::Compression;
use parquet::column::writer::ColumnCloseResult;
use parquet::errors::ParquetError;
use parquet::file::metadata::ParquetMetaData;
use parquet::file::properties::{EnabledStatistics, WriterProperties};
use parquet::file::writer::{SerializedFileWriter, SerializedRowGroupWriter};
use parquet::schema::types::ColumnPath;
use sha2::{Digest as _, Sha256};
use types::proof::{Blocks, MAX_WHOLE_BYTES};
use types::{AgentId, ContributionId, Proof, Version};

use crate::part::{self, CONSTANT_COLUMNS, HIDDEN_COLUMNS};

/// Maximum number of rows in a data page: a read of one row decodes as many.
const PAGE_ROWS: usize = 4_096;
/// Bytes of a file that are read at once.
const READ_BYTES: usize = 1 << 20;

/// Values that all rows of an upload have in common.
#[derive(Clone, Debug)]
pub(super) struct CommonValues {
    /// The columns of the table.
    pub(super) schema: SchemaRef,
    pub(super) contribution: ContributionId,
    pub(super) agent: AgentId,
    pub(super) version: Version,
}

/// A file that is being written.
pub(super) struct PartWriter<W: Write + Send = BufWriter<File>> {
    parquet: SerializedFileWriter<HashingFile<W>>,
    groups: ArrowRowGroupWriterFactory,
    common: CommonValues,
    properties: WriterProperties,
    /// Maximum number of rows in a row group.
    group_rows: usize,
    /// The columns that vary of the row group that is being filled; none before its first row.
    columns: Vec<ArrowColumnWriter>,
    /// Number of rows in that row group.
    filled: usize,
    /// The others of the last row group.
    constants: Option<ConstantColumns>,
    path: PathBuf,
    rows: u64,
}

impl<W: Write + Send> std::fmt::Debug for PartWriter<W> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Writer")
            .field("path", &self.path)
            .finish_non_exhaustive()
    }
}

/// A file that is written and synced.
#[derive(Clone, Debug)]
pub(crate) struct WrittenPart {
    pub(crate) path: PathBuf,
    pub(super) rows: u64,
    pub(super) bytes: u64,
    pub(super) sha256: [u8; 32],
    /// If it is large.
    pub(crate) proof: Option<Proof>,
    /// Offset of the version in each row group.
    versions: Vec<u64>,
}

impl PartWriter {
    /// Makes the file of rows such as `sample`.
    pub(super) fn create(path: PathBuf, common: CommonValues, sample: &[ArrayRef]) -> Result<Self, ParquetError> {
        let file = OpenOptions::new().write(true).create(true).truncate(true).open(&path)?;
        Self::over(BufWriter::with_capacity(READ_BYTES, file), path, common, sample)
    }
}

impl<W: Write + Send> PartWriter<W> {
    /// Writes rows such as `sample` to `file`, whose place is `path`.
    pub(super) fn over(
        file: W,
        path: PathBuf,
        common: CommonValues,
        sample: &[ArrayRef],
    ) -> Result<Self, ParquetError> {
        let hashing = HashingFile {
            file,
            hashes: FileHashes::default(),
        };
        let properties = properties(common.schema.fields(), sample)?;
        let writer = ArrowWriter::try_new_with_options(hashing, Arc::clone(&common.schema), options(&properties))?;
        let (parquet, groups) = writer.into_serialized_writer()?;
        Ok(Self {
            parquet,
            groups,
            common,
            group_rows: properties.max_row_group_row_count().unwrap_or(usize::MAX),
            properties,
            columns: Vec::new(),
            filled: 0,
            constants: None,
            path,
            rows: 0,
        })
    }

    /// Adds rows: the columns that [`part::varying`] makes.
    pub(super) fn write(&mut self, columns: &[ArrayRef]) -> Result<(), ParquetError> {
        let rows = columns.first().map_or(0, Array::len);
        let mut from = 0;
        while from < rows {
            let some = (rows - from).min(self.group_rows - self.filled);
            self.fill(columns.iter().map(|column| column.slice(from, some)))?;
            from += some;
            self.filled += some;
            self.rows += some as u64;
            if self.filled == self.group_rows || self.unwritten() >= part::GROUP_BYTES {
                self.end_group()?;
            }
        }
        Ok(())
    }

    /// Adds rows to the row group that is being filled.
    fn fill(&mut self, columns: impl Iterator<Item = ArrayRef>) -> Result<(), ParquetError> {
        let constants = part::constants(self.common.schema.fields().len() - CONSTANT_COLUMNS);
        if self.columns.is_empty() {
            self.columns = self
                .groups
                .create_column_writers(self.parquet.flushed_row_groups().len())?;
            self.columns.drain(constants..constants + CONSTANT_COLUMNS);
        }
        let fields = self.common.schema.fields();
        let fields = fields[..constants]
            .iter()
            .chain(&fields[constants + CONSTANT_COLUMNS..]);
        for ((field, values), writer) in fields.zip(columns).zip(&mut self.columns) {
            for leaf in compute_leaves(field, &values)? {
                writer.write(&leaf)?;
            }
        }
        Ok(())
    }

    /// Ends the row group, if there is one.
    fn end_group(&mut self) -> Result<(), ParquetError> {
        if self.filled == 0 {
            return Ok(());
        }
        let rows = std::mem::take(&mut self.filled);
        let constants = match self.constants.take().filter(|constants| constants.rows == rows) {
            Some(constants) => constants,
            None => ConstantColumns::new(&self.common, &self.properties, rows)?,
        };
        let at = part::constants(self.columns.len());
        let mut group = self.parquet.next_row_group()?;
        for (index, column) in self.columns.drain(..).enumerate() {
            if index == at {
                constants.append(&mut group)?;
            }
            column.close()?.append_to_row_group(&mut group)?;
        }
        group.close()?;
        self.constants = Some(constants);
        Ok(())
    }

    pub(super) const fn rows(&self) -> u64 {
        self.rows
    }

    /// Roughly the size of the file.
    pub(super) fn bytes(&self) -> usize {
        self.parquet.bytes_written() + self.unwritten()
    }

    /// Roughly how much of that is still to be written.
    pub(super) fn unwritten(&self) -> usize {
        let open = self.columns.iter().map(ArrowColumnWriter::get_estimated_total_bytes);
        open.sum()
    }

    /// Writes what is left, and the footer.
    pub(super) fn end(&mut self) -> Result<ParquetMetaData, ParquetError> {
        self.end_group()?;
        self.parquet.finish()
    }
}

impl PartWriter {
    /// Ends the file and makes it durable.
    pub(super) fn finish(mut self) -> Result<WrittenPart, ParquetError> {
        let footer = self.end()?;
        let column = HIDDEN_COLUMNS
            .iter()
            .position(|name| *name == VERSION_COLUMN)
            .unwrap_or(0);
        let mut versions = Vec::with_capacity(footer.num_row_groups());
        for group in footer.row_groups() {
            let column = group.column(group.num_columns() - HIDDEN_COLUMNS.len() + column);
            let offsets = column.dictionary_page_offset().zip(Some(column.data_page_offset()));
            // The dictionary has one entry of 8 bytes, and the data pages come right after it.
            let at = offsets
                .filter(|(dictionary, data)| dictionary + 8 < *data)
                .and_then(|(_, data)| u64::try_from(data - 8).ok());
            versions.push(at.ok_or_else(|| ParquetError::General("the version has no dictionary".to_owned()))?);
        }
        // Not taken out of the writer, because that would write a second footer.
        let HashingFile { file, hashes } = self.parquet.inner_mut();
        let (sha256, proof) = std::mem::take(hashes).finish();
        file.flush()?;
        file.get_ref().sync_data()?;
        Ok(WrittenPart {
            bytes: file.get_ref().metadata()?.len(),
            path: self.path,
            rows: self.rows,
            sha256,
            proof,
            versions,
        })
    }
}

impl WrittenPart {
    /// Writes another version into the file. After an error the file is of neither; another try makes it whole.
    pub(super) fn set_version(&mut self, version: Version) -> io::Result<()> {
        let file = OpenOptions::new().read(true).write(true).open(&self.path)?;
        for at in &self.versions {
            file.write_all_at(&version.0.to_le_bytes(), *at)?;
        }
        file.sync_data()?;
        (self.sha256, self.proof) = hash(file)?;
        Ok(())
    }
}

/// The hashes of a file as it is written or read.
#[derive(Debug, Default)]
struct FileHashes {
    sha256: Sha256,
    blocks: Blocks,
}

impl FileHashes {
    fn update(&mut self, bytes: &[u8]) {
        self.sha256.update(bytes);
        self.blocks.update(bytes);
    }

    /// The SHA-256, and the proof if the file is large.
    fn finish(self) -> ([u8; 32], Option<Proof>) {
        let proof = Some(self.blocks.finish()).filter(|proof| proof.bytes() > MAX_WHOLE_BYTES);
        (self.sha256.finalize().into(), proof)
    }
}

/// The SHA-256 of a file, and its proof if it is large.
fn hash(mut file: File) -> io::Result<([u8; 32], Option<Proof>)> {
    let mut hash = FileHashes::default();
    let mut chunk = vec![0; READ_BYTES];
    loop {
        let read = file.read(&mut chunk)?;
        if read == 0 {
            return Ok(hash.finish());
        }
        hash.update(&chunk[..read]);
    }
}

/// The hidden column of the version.
const VERSION_COLUMN: &str = "_sluice_version";

fn properties(fields: &[FieldRef], sample: &[ArrayRef]) -> Result<WriterProperties, ParquetError> {
    let [_, contribution, agent, version, _] = HIDDEN_COLUMNS.map(ColumnPath::from);
    // As of many rows: their number is not known when the first are written.
    let mut properties = part::properties(usize::MAX)?
        .set_data_page_row_count_limit(PAGE_ROWS)
        .set_write_batch_size(PAGE_ROWS);
    for constant in [contribution, agent, version] {
        properties = properties
            // The version may change, and the others say nothing that the commit does not.
            .set_column_statistics_enabled(constant.clone(), EnabledStatistics::None)
            .set_column_dictionary_enabled(constant.clone(), true)
            .set_column_compression(constant, Compression::UNCOMPRESSED);
    }
    Ok(part::of_many(properties, fields, sample, usize::MAX).build())
}

fn options(properties: &WriterProperties) -> ArrowWriterOptions {
    // Without the Arrow schema: the columns' types are plain, so it would only make every file larger.
    ArrowWriterOptions::new()
        .with_properties(properties.clone())
        .with_skip_arrow_metadata(true)
}

/// The columns of a row group that have one value in all rows, encoded once for all row groups of a file that have as
/// many rows.
#[derive(Debug)]
struct ConstantColumns {
    rows: usize,
    /// A file of nothing else.
    file: Bytes,
    footer: ParquetMetaData,
}

impl ConstantColumns {
    fn new(common: &CommonValues, properties: &WriterProperties, rows: usize) -> Result<Self, ParquetError> {
        let at = part::constants(common.schema.fields().len() - CONSTANT_COLUMNS);
        let schema = Arc::new(common.schema.project(&[at, at + 1, at + 2])?);
        let columns = part::constant(common.contribution, common.agent, common.version, rows);
        let columns = RecordBatch::try_new(Arc::clone(&schema), columns.to_vec())?;
        let mut writer = ArrowWriter::try_new_with_options(Vec::new(), schema, options(properties))?;
        writer.write(&columns)?;
        let footer = writer.finish()?;
        Ok(Self {
            rows,
            file: std::mem::take(writer.inner_mut()).into(),
            footer,
        })
    }

    /// Appends them to a row group, whose next columns they are.
    fn append<W: Write + Send>(
        &self,
        group: &mut SerializedRowGroupWriter<'_, HashingFile<W>>,
    ) -> Result<(), ParquetError> {
        let offsets = self.footer.offset_index().and_then(|groups| groups.first());
        // An error, because without the index the library would panic when it ends the file.
        let missing = || ParquetError::General("an encoded column has no offset index".to_owned());
        for (index, column) in self.footer.row_group(0).columns().iter().enumerate() {
            let close = ColumnCloseResult {
                bytes_written: column.compressed_size().unsigned_abs(),
                rows_written: self.rows as u64,
                metadata: column.clone(),
                bloom_filter: None,
                column_index: None,
                offset_index: Some(
                    offsets
                        .and_then(|offsets| offsets.get(index))
                        .ok_or_else(missing)?
                        .clone(),
                ),
            };
            group.append_column(&self.file, close)?;
        }
        Ok(())
    }
}

/// A file and the hashes of what was written to it.
struct HashingFile<W> {
    file: W,
    hashes: FileHashes,
}

impl<W: Write> Write for HashingFile<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.file.write(bytes)?;
        self.hashes.update(&bytes[..written]);
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};
    use types::{Batch, Contract, Timestamp};

    use super::*;

    const GROUP: usize = 3 * PAGE_ROWS - 100;

    /// A file of as many rows as these batches have, in row groups of [`GROUP`] rows.
    fn check(batches: &[usize]) {
        let contract = json!({"fields": [{"name": "id", "type": "string"}, {"name": "n", "type": "number"}]});
        let contract: Arc<Contract> = Arc::new(serde_json::from_value(contract).unwrap());
        let at = Timestamp::from_micros(1);
        let common = CommonValues {
            schema: part::schema(&contract),
            contribution: ContributionId::new(at),
            agent: AgentId::new(at),
            version: Version(7),
        };
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("part");
        let of = |first: usize, rows: usize| {
            let record = |row: usize| json!({"id": format!("id {row}"), "n": row});
            let records: Vec<Value> = (first..first + rows).map(record).collect();
            part::varying(&Batch::decode(&contract, &records), first as u64)
        };
        let mut writer = PartWriter::create(path.clone(), common.clone(), &of(0, batches[0])).unwrap();
        writer.group_rows = GROUP;
        let mut first = 0;
        for rows in batches {
            writer.write(&of(first, *rows)).unwrap();
            first += rows;
        }
        let properties = writer.properties.clone().into_builder();
        let properties = properties.set_max_row_group_row_count(Some(GROUP)).build();
        let mut written = writer.finish().unwrap();
        assert_eq!(written.rows, first as u64);

        // What the library makes of the same rows, column by column.
        let plain = |version: Version| {
            let schema = Arc::clone(&common.schema);
            let mut columns = of(0, first);
            let at = part::constants(columns.len());
            columns.splice(
                at..at,
                part::constant(common.contribution, common.agent, version, first),
            );
            let rows = RecordBatch::try_new(Arc::clone(&schema), columns).unwrap();
            let mut plain = ArrowWriter::try_new_with_options(Vec::new(), schema, options(&properties)).unwrap();
            plain.write(&rows).unwrap();
            plain.into_inner().unwrap()
        };
        let same = |written: &WrittenPart, plain: &[u8]| {
            assert!(std::fs::read(&path).unwrap() == plain);
            assert_eq!(written.sha256, <[u8; 32]>::from(Sha256::digest(plain)));
            assert_eq!(written.proof, part::proof_of(plain));
        };
        same(&written, &plain(Version(7)));
        written.set_version(Version(1 << 40)).unwrap();
        same(&written, &plain(Version(1 << 40)));
    }

    #[test]
    fn a_file_has_the_bytes_that_it_had_if_each_row_were_encoded() {
        check(&[GROUP]);
        check(&[10, 20]);
        // Several row groups in one batch, the last one short.
        check(&[2 * GROUP + 5_000]);
    }

    #[test]
    fn row_groups_end_within_batches() {
        // The batches before the last end with pages, as what the library is given at once has pages of no others.
        check(&[PAGE_ROWS, PAGE_ROWS, GROUP, PAGE_ROWS, 1]);
    }
}

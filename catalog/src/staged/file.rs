//! The files of a staged upload: parts as they will be, but for the version in them, which only the commit knows.
//!
//! Invariant: the version of a file is 8 bytes in one dictionary page of each row group, uncompressed and in no
//! statistics, so another version changes these and nothing else.

use std::fs::{File, OpenOptions};
use std::io::{self, BufWriter, Read as _, Write};
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};

use arrow::array::RecordBatch;
use parquet::arrow::arrow_writer::{ArrowWriter, ArrowWriterOptions};
use parquet::basic::Compression;
use parquet::errors::ParquetError;
use parquet::file::properties::{EnabledStatistics, WriterProperties};
use parquet::schema::types::ColumnPath;
use sha2::{Digest as _, Sha256};
use types::Version;

use crate::part::{self, HIDDEN};

/// How many rows a data page has at most: what a read of one row decodes.
const PAGE_ROWS: usize = 4_096;
/// How much of a file is read at once.
const CHUNK: usize = 1 << 20;

/// A file that is being written.
pub(super) struct Writer {
    parquet: ArrowWriter<Hashing>,
    path: PathBuf,
    rows: u64,
}

impl std::fmt::Debug for Writer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Writer")
            .field("path", &self.path)
            .finish_non_exhaustive()
    }
}

/// A file that is written and synced.
#[derive(Clone, Debug)]
pub(super) struct Written {
    pub(super) path: PathBuf,
    pub(super) rows: u64,
    pub(super) bytes: u64,
    pub(super) sha256: [u8; 32],
    /// Where the version is.
    versions: Vec<u64>,
}

impl Writer {
    /// Makes the file of rows such as `sample`.
    pub(super) fn create(path: PathBuf, sample: &RecordBatch) -> Result<Self, ParquetError> {
        let file = OpenOptions::new().write(true).create(true).truncate(true).open(&path)?;
        // Why without the Arrow schema: the columns' types are plain, so it would only make every file larger.
        let options = ArrowWriterOptions::new()
            .with_properties(properties(sample)?)
            .with_skip_arrow_metadata(true);
        let hashing = Hashing {
            file: BufWriter::with_capacity(CHUNK, file),
            hash: Sha256::new(),
        };
        Ok(Self {
            parquet: ArrowWriter::try_new_with_options(hashing, sample.schema(), options)?,
            path,
            rows: 0,
        })
    }

    pub(super) fn write(&mut self, rows: &RecordBatch) -> Result<(), ParquetError> {
        self.rows += rows.num_rows() as u64;
        self.parquet.write(rows)
    }

    pub(super) const fn rows(&self) -> u64 {
        self.rows
    }

    /// Roughly the size of the file.
    pub(super) fn bytes(&self) -> usize {
        self.parquet.bytes_written() + self.parquet.in_progress_size()
    }

    /// Ends the file and makes it durable.
    pub(super) fn finish(mut self) -> Result<Written, ParquetError> {
        let footer = self.parquet.finish()?;
        let column = HIDDEN.iter().position(|name| *name == VERSION).unwrap_or(0);
        let mut versions = Vec::with_capacity(footer.num_row_groups());
        for group in footer.row_groups() {
            let column = group.column(group.num_columns() - HIDDEN.len() + column);
            let offsets = column.dictionary_page_offset().zip(Some(column.data_page_offset()));
            // The dictionary has one entry of 8 bytes, and the data pages come right after it.
            let at = offsets
                .filter(|(dictionary, data)| dictionary + 8 < *data)
                .and_then(|(_, data)| u64::try_from(data - 8).ok());
            versions.push(at.ok_or_else(|| ParquetError::General("the version has no dictionary".to_owned()))?);
        }
        // Why not taken out of the writer: that would write a second footer.
        let Hashing { file, hash } = self.parquet.inner_mut();
        file.flush()?;
        file.get_ref().sync_data()?;
        Ok(Written {
            bytes: file.get_ref().metadata()?.len(),
            path: self.path,
            rows: self.rows,
            sha256: std::mem::take(hash).finalize().into(),
            versions,
        })
    }
}

impl Written {
    /// Writes another version into the file. After an error the file is of neither; another try makes it whole.
    pub(super) fn set_version(&mut self, version: Version) -> io::Result<()> {
        let file = OpenOptions::new().read(true).write(true).open(&self.path)?;
        for at in &self.versions {
            file.write_all_at(&version.0.to_le_bytes(), *at)?;
        }
        file.sync_data()?;
        self.sha256 = hash(file)?;
        Ok(())
    }
}

/// The SHA-256 of a file.
fn hash(mut file: File) -> io::Result<[u8; 32]> {
    let mut hash = Sha256::new();
    let mut chunk = vec![0; CHUNK];
    loop {
        let read = file.read(&mut chunk)?;
        if read == 0 {
            return Ok(hash.finalize().into());
        }
        hash.update(&chunk[..read]);
    }
}

/// The hidden column of the version.
const VERSION: &str = "_sluice_version";

fn properties(sample: &RecordBatch) -> Result<WriterProperties, ParquetError> {
    let [_, contribution, agent, version, _] = HIDDEN.map(ColumnPath::from);
    // Why as of many rows: how many there will be is not known when the first are written.
    let mut properties = part::properties(usize::MAX)?
        .set_data_page_row_count_limit(PAGE_ROWS)
        .set_write_batch_size(PAGE_ROWS);
    for constant in [contribution, agent, version] {
        properties = properties
            // Why: the version may change, and the others say nothing that the commit does not.
            .set_column_statistics_enabled(constant.clone(), EnabledStatistics::None)
            .set_column_dictionary_enabled(constant.clone(), true)
            .set_column_compression(constant, Compression::UNCOMPRESSED);
    }
    Ok(part::of_many(properties, sample, usize::MAX).build())
}

/// A file and the hash of what was written to it.
struct Hashing {
    file: BufWriter<File>,
    hash: Sha256,
}

impl Write for Hashing {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.file.write(bytes)?;
        self.hash.update(&bytes[..written]);
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

/// The rows of a file, with the hidden columns, a few at a time.
pub(super) fn read(path: &Path) -> Result<parquet::arrow::arrow_reader::ParquetRecordBatchReader, ParquetError> {
    let file = File::open(path)?;
    let builder = parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder::try_new(file)?;
    builder.with_batch_size(PAGE_ROWS).build()
}

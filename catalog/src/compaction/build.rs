//! Building of a compacted part from the streamed rows of its inputs.
//!
//! Invariants: memory has at most one input part, one row group and the encoded part. The same rows give the same
//! bytes, whatever their layout was. If an input differs from its commit, nothing is put.

use std::sync::Arc;

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use bytes::Bytes;
use futures_util::TryStreamExt as _;
use parquet::arrow::arrow_writer::{ArrowWriter, ArrowWriterOptions};
use parquet::basic::Encoding;
use parquet::errors::ParquetError;
use parquet::schema::types::ColumnPath;
use sha2::{Digest as _, Sha256};
use tokio::sync::mpsc;
use types::{fault, mutate};

use super::input::InputBatches;
use super::{BuiltPart, DueCompaction};
use crate::log::PartRewrite;
use crate::part::{self, HIDDEN_COLUMNS, PartInfo, SelectedColumns};
use crate::{Error, commit};

/// Number of batches that are read ahead of the writer.
const BATCHES_AHEAD: usize = 2;

impl DueCompaction {
    /// Builds the part and puts it as a file that no commit names yet. Waits until no other part is being built in this
    /// process. Dropping the future ends the work.
    ///
    /// # Errors
    /// [`Error::NoRoom`] if a local disk has too little space, [`Error::Corrupt`] if an input is damaged.
    pub async fn build(self) -> Result<BuiltPart, Error> {
        // The semaphore is never closed. Without a permit, building would still be correct.
        let _turn = self.turn.acquire().await.ok();
        fault::point("compact.begin");
        let (first, last) = self.versions();
        let rows: u64 = self.inputs.iter().map(|part| part.rows).sum();
        if self.state.blocks() {
            // Only a local store uses the disk of this process.
            self.state.store.room_for(self.bytes())?;
        }
        let (written, bytes) = self.encode(rows).await?;
        fault::point("compact.built");
        let proof = part::proof_of(&bytes);
        let rewrite = PartRewrite {
            first,
            last,
            rows: written,
            bytes: bytes.len() as u64,
            sha256: Sha256::digest(&bytes).into(),
            // The commit removes exactly the inputs.
            replaces: self.inputs.iter().map(PartInfo::name).collect(),
        };
        let table = object_store::path::Path::from(self.state.dataset.to_string());
        let path = table.clone().join(rewrite.name());
        // The commit would be refused, because a compaction must keep the number of rows.
        if written != rows {
            return Err(Error::corrupt(&path, &format!("{written} rows were read for {rows}")));
        }
        match commit::put(&self.state, &path, bytes.into()).await {
            // The name contains a hash of the bytes, so the existing file is the same. The process that put it may have
            // failed before it was durable.
            Err(Error::Storage {
                source: object_store::Error::AlreadyExists { .. },
                ..
            }) => self.state.sync_dir(&table).await?,
            put => put?,
        }
        fault::point("compact.part");
        Ok(BuiltPart {
            rewrite,
            proof,
            inputs: self.inputs,
        })
    }

    /// Returns the approximate maximum size of the part in bytes.
    fn bytes(&self) -> u64 {
        self.inputs.iter().map(|part| part.bytes).sum()
    }

    /// Encodes the rows of the inputs. Returns the number of rows and the file.
    async fn encode(&self, rows: u64) -> Result<(u64, Bytes), Error> {
        let schema = part::schema(&self.contract);
        let size = self.bytes();
        // Reading is asynchronous and encoding blocks, so a blocking thread encodes.
        let (sender, receiver) = mpsc::channel(BATCHES_AHEAD);
        let write = move || write(&schema, rows, usize::try_from(size).unwrap_or(0), receiver);
        let writing = tokio::task::spawn_blocking(write);
        'reading: for part in &self.inputs {
            let all = SelectedColumns::All(&self.contract);
            let mut batches = part::open_whole(self.state.source(), part, all).await?;
            while let Some(batch) = batches.try_next().await? {
                if sender.send(batch).await.is_err() {
                    // The writer failed; its error is returned below.
                    break 'reading;
                }
            }
        }
        drop(sender);
        writing.await.map_err(Error::Stopped)?.map_err(Error::Encode)
    }
}

fn write(
    schema: &SchemaRef,
    rows: u64,
    size: usize,
    mut batches: mpsc::Receiver<RecordBatch>,
) -> Result<(u64, Bytes), ParquetError> {
    let mut input = InputBatches::new(Arc::clone(schema));
    let mut next = || -> Result<Option<RecordBatch>, ParquetError> {
        loop {
            if let Some(batch) = input.next() {
                return Ok(Some(batch));
            }
            let Some(batch) = batches.blocking_recv() else {
                input.end()?;
                return Ok(input.next());
            };
            input.push(batch)?;
        }
    };
    // The sample is a regrouped batch and not the first that was read. So the encoding does not depend on the earlier
    // layout of the rows.
    let first = next()?.unwrap_or_else(|| RecordBatch::new_empty(Arc::clone(schema)));
    let buffer = Vec::with_capacity(size);
    let mut writer = ArrowWriter::try_new_with_options(buffer, Arc::clone(schema), options(rows, &first)?)?;
    let (mut written, mut gathered) = (0, Some(first));
    while let Some(batch) = gathered {
        written += batch.num_rows() as u64;
        mutate!(Bug::CompactionLosesRow => let batch = crate::faults::lose_row(batch));
        writer.write(&batch)?;
        gathered = next()?;
    }
    Ok((written, writer.into_inner()?.into()))
}

/// Returns the writer options of a compacted part. They differ from those of [`part`] for the columns that are constant
/// in a part of one version.
fn options(rows: u64, sample: &RecordBatch) -> Result<ArrowWriterOptions, ParquetError> {
    let [_, contribution, agent, version, _] = HIDDEN_COLUMNS.map(ColumnPath::from);
    let rows = usize::try_from(rows).unwrap_or(usize::MAX);
    let mut properties = part::properties(rows)?
        .set_column_dictionary_enabled(contribution, true)
        .set_column_dictionary_enabled(agent, true)
        .set_column_encoding(version, Encoding::DELTA_BINARY_PACKED);
    if rows > part::SMALL_PART_ROWS {
        properties = part::of_many(properties, sample.schema_ref().fields(), sample.columns(), rows);
    }
    Ok(ArrowWriterOptions::new()
        .with_properties(properties.build())
        .with_skip_arrow_metadata(true))
}

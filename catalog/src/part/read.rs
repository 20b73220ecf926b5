//! Reads of parts, whole or by ranges.
//!
//! Invariant: a part is verified against its commit on every read: a whole file by its SHA-256, a range of a large file
//! by the hashes of its blocks.

use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use arrow::array::{AsArray, RecordBatch};
use arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use arrow::error::ArrowError;
use bytes::Bytes;
use futures_util::future::{BoxFuture, FutureExt as _};
use futures_util::stream::{self, BoxStream, StreamExt as _, TryStreamExt as _};
use object_store::path::Path;
use object_store::{ObjectStore, ObjectStoreExt as _};
use parking_lot::RwLock;
use parquet::arrow::ProjectionMask;
use parquet::arrow::arrow_reader::{ArrowReaderBuilder, ArrowReaderOptions, ParquetRecordBatchReaderBuilder};
use parquet::arrow::async_reader::{AsyncFileReader, ParquetRecordBatchStreamBuilder};
use parquet::errors::ParquetError;
use parquet::file::metadata::{PageIndexPolicy, ParquetMetaData, ParquetMetaDataReader};
use proof::pace::rows_at_once;
use sha2::{Digest as _, Sha256};
use types::proof::{DamagedBytes, MAX_WHOLE_BYTES};
use types::{Contract, DatasetId, Proof, RecordKey, mutate};

use super::{Footers, HIDDEN_COLUMNS, PartInfo, Proofs, proof, schema};
use crate::version_index::VersionIndex;
use crate::{Error, log};

/// Error text for a file on which the Parquet reader panicked.
const READER_PANICKED: &str = "the reader of Parquet files gave up on it";

/// Selection of columns for a read of a part.
#[derive(Clone, Copy, Debug)]
pub(crate) enum SelectedColumns<'a> {
    /// Columns of a contract.
    Contract(&'a Contract),
    /// Columns of a contract, and the hidden columns.
    All(&'a Contract),
    /// Only the hidden column with record keys.
    Keys,
}

impl SelectedColumns<'_> {
    fn schema(self) -> SchemaRef {
        match self {
            Self::Contract(contract) => contract.schema(),
            Self::All(contract) => schema(contract),
            Self::Keys => Arc::new(Schema::new(vec![Field::new(HIDDEN_COLUMNS[0], DataType::Binary, true)])),
        }
    }
}

/// Access to the parts of a table.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PartSource<'a> {
    pub(crate) objects: &'a Arc<dyn ObjectStore>,
    pub(crate) footers: &'a Arc<Footers>,
    pub(crate) proofs: &'a Arc<Proofs>,
    pub(crate) version_index: &'a RwLock<VersionIndex>,
    pub(crate) dataset: DatasetId,
}

impl PartSource<'_> {
    /// Returns the number of the commit that adds a part.
    pub(crate) fn commit_of(&self, part: &PartInfo) -> Option<u64> {
        let version_index = self.version_index.read();
        version_index.commit_adding(part)
    }
}

/// Opens a stream of the rows with indexes `rows`, in batches of [bounded memory](rows_at_once). A small part is read
/// at once. A large part is read one row group at a time while the stream is polled. Both are decoded while it is
/// polled.
///
/// # Errors
/// [`Error::Corrupt`] if the part differs from its commit, [`Error::Storage`] if it cannot be read. The stream has the
/// same errors.
pub(crate) async fn open(
    source: PartSource<'_>,
    part: &PartInfo,
    selected: SelectedColumns<'_>,
    rows: Range<u64>,
) -> Result<BoxStream<'static, Result<RecordBatch, Error>>, Error> {
    let path = part.path(source.dataset);
    let opening = async {
        if part.bytes <= MAX_WHOLE_BYTES {
            let bytes = whole(source.objects, source.dataset, part).await?;
            of_bytes(bytes, path.clone(), part, selected, &rows)
        } else {
            of_ranges(source, path.clone(), part, selected, &rows).await
        }
    };
    contained(source, path.clone(), opening).await
}

/// Opens a part like [`open`], but reads it whole and verifies its hash whatever its size. A writer that copies rows
/// into another part needs this.
pub(crate) async fn open_whole(
    source: PartSource<'_>,
    part: &PartInfo,
    selected: SelectedColumns<'_>,
) -> Result<BoxStream<'static, Result<RecordBatch, Error>>, Error> {
    let path = part.path(source.dataset);
    let opening = async {
        let bytes = whole(source.objects, source.dataset, part).await?;
        of_bytes(bytes, path.clone(), part, selected, &(0..part.rows))
    };
    contained(source, path.clone(), opening).await
}

/// Turns a panic of the Parquet reader into [`Error::Corrupt`]. The reader panics on some damaged files. The cached
/// footer of a damaged part is dropped, because the part may be restored from a copy.
async fn contained(
    source: PartSource<'_>,
    path: Path,
    opening: impl Future<Output = Result<BoxStream<'static, Result<RecordBatch, Error>>, Error>>,
) -> Result<BoxStream<'static, Result<RecordBatch, Error>>, Error> {
    let footers = Arc::clone(source.footers);
    let panicked = {
        let path = path.clone();
        move || Error::corrupt(&path, READER_PANICKED)
    };
    let noted = move |error| {
        if matches!(error, Error::Corrupt { .. }) {
            footers.forget(&path);
        }
        error
    };
    let batches = AssertUnwindSafe(opening).catch_unwind().await;
    let batches = batches.unwrap_or_else(|_panic| Err(panicked())).map_err(&noted)?;
    let batches = AssertUnwindSafe(batches).catch_unwind();
    Ok(batches
        .map(move |batch| batch.unwrap_or_else(|_panic| Err(panicked())).map_err(&noted))
        .boxed())
}

/// Returns the rows of a part whose bytes are in memory.
fn of_bytes(
    bytes: Bytes,
    path: Path,
    part: &PartInfo,
    selected: SelectedColumns<'_>,
    rows: &Range<u64>,
) -> Result<BoxStream<'static, Result<RecordBatch, Error>>, Error> {
    let wanted = selected.schema();
    let damaged = |problem: &dyn ToString| Error::corrupt(&path, &problem.to_string());
    let builder = ParquetRecordBatchReaderBuilder::try_new_with_options(bytes, with_pages());
    let builder = builder.map_err(|error| damaged(&error))?;
    let reader = select(builder, part, &wanted, rows)
        .map_err(|problem| damaged(&problem))?
        .build();
    let reader = reader.map_err(|error| damaged(&error))?;
    let batches = reader.map(move |batch| {
        let shaped = batch.and_then(|batch| shaped(&batch, &wanted));
        shaped.map_err(|error| Error::corrupt(&path, &error))
    });
    Ok(stream::iter(batches).boxed())
}

/// Returns the rows of a large part. Its row groups are read on demand.
async fn of_ranges(
    source: PartSource<'_>,
    path: Path,
    part: &PartInfo,
    selected: SelectedColumns<'_>,
    rows: &Range<u64>,
) -> Result<BoxStream<'static, Result<RecordBatch, Error>>, Error> {
    let wanted = selected.schema();
    let damaged = |problem: &dyn ToString| Error::corrupt(&path, &problem.to_string());
    let input = RangedReader {
        objects: Arc::clone(source.objects),
        footers: Arc::clone(source.footers),
        path: path.clone(),
        proof: proof(source, part).await?,
    };
    let opened = ParquetRecordBatchStreamBuilder::new_with_options(input, with_pages()).await;
    let builder = opened.map_err(|error| unreadable(&path, error))?;
    let builder = select(builder, part, &wanted, rows).map_err(|problem| damaged(&problem))?;
    source.footers.put(&path, builder.metadata());
    let stream = builder.build().map_err(|error| damaged(&error))?;
    let batches = stream.map(move |batch| {
        let batch = batch.map_err(|error| unreadable(&path, error))?;
        shaped(&batch, &wanted).map_err(|error| Error::corrupt(&path, &error))
    });
    Ok(batches.boxed())
}

fn with_pages() -> ArrowReaderOptions {
    ArrowReaderOptions::new().with_offset_index_policy(PageIndexPolicy::Optional)
}

fn shaped(batch: &RecordBatch, wanted: &SchemaRef) -> Result<RecordBatch, ArrowError> {
    RecordBatch::try_new(Arc::clone(wanted), batch.columns().to_vec())
}

/// Reads the record keys of a part's rows, in order.
pub(crate) async fn keys(source: PartSource<'_>, part: &PartInfo) -> Result<Vec<RecordKey>, Error> {
    let mut keys = Vec::with_capacity(usize::try_from(part.rows).unwrap_or(0));
    let batches = open(source, part, SelectedColumns::Keys, 0..part.rows).await?;
    for batch in batches.try_collect::<Vec<_>>().await? {
        for key in batch.column(0).as_binary::<i32>() {
            let key = key.and_then(|bytes| bytes.try_into().ok()).map(RecordKey::from_bytes);
            keys.push(key.ok_or_else(|| Error::corrupt(&part.path(source.dataset), "a key does not have 16 bytes"))?);
        }
    }
    Ok(keys)
}

/// Reads a whole part and verifies its SHA-256.
pub(crate) async fn whole(objects: &Arc<dyn ObjectStore>, dataset: DatasetId, part: &PartInfo) -> Result<Bytes, Error> {
    let path = part.path(dataset);
    // A range read opens and reads a local file in one step. The range is one byte longer than the part, so that a file
    // that is too long is found.
    let read = async {
        match objects.get_range(&path, 0..part.bytes.saturating_add(1)).await {
            Ok(bytes) => Ok(bytes),
            Err(error @ object_store::Error::NotFound { .. }) => Err(error),
            // An empty file has no range and gives an error, so it is read again and found to be damaged.
            Err(_) => objects.get(&path).await?.bytes().await,
        }
    };
    let bytes = match read.await {
        Ok(bytes) => bytes,
        Err(error) => return Err(lost(objects, &path, error).await),
    };
    let same = Sha256::digest(&bytes)[..] == part.sha256;
    mutate!(Bug::BlindReads => let same = true);
    if !same {
        return Err(Error::corrupt(&path, "its SHA-256 is not the one in its commit"));
    }
    Ok(bytes)
}

/// Reads these byte ranges of an object and verifies them with its proof.
pub(crate) async fn verified(
    objects: &Arc<dyn ObjectStore>,
    path: &Path,
    proof: &Proof,
    ranges: &[Range<u64>],
) -> Result<Vec<Bytes>, Error> {
    let damaged = |problem: DamagedBytes| Error::corrupt(path, &problem);
    let spans = proof.spans(ranges).map_err(damaged)?;
    let pieces = match objects.get_ranges(path, &spans).await {
        Ok(pieces) => pieces,
        Err(error) => return Err(lost(objects, path, error).await),
    };
    proof.cut(&spans, &pieces, ranges).map_err(damaged)
}

/// Converts a read error of a part that a commit names. A missing part is corruption, unless the table was deleted; any
/// other error is the store's.
pub(crate) async fn lost(objects: &Arc<dyn ObjectStore>, path: &Path, error: object_store::Error) -> Error {
    if !matches!(error, object_store::Error::NotFound { .. }) {
        return Error::storage(path, error);
    }
    // The path begins with the id of the table.
    if let Some(Ok(dataset)) = path.parts().next().map(|id| id.as_ref().parse()) {
        match log::was_deleted(objects, dataset).await {
            Ok(true) => return Error::Deleted { dataset },
            Ok(false) => {}
            Err(error) => return error,
        }
    }
    Error::corrupt(path, "its commit names it and it does not exist")
}

fn unreadable(path: &Path, error: ParquetError) -> Error {
    match error {
        ParquetError::External(source) => match source.downcast::<Error>() {
            Ok(error) => *error,
            Err(error) => Error::corrupt(path, &error),
        },
        error => Error::corrupt(path, &error),
    }
}

/// Restricts a reader to columns and rows. The error describes a file that lacks them.
fn select<T>(
    builder: ArrowReaderBuilder<T>,
    part: &PartInfo,
    wanted: &Schema,
    rows: &Range<u64>,
) -> Result<ArrowReaderBuilder<T>, String> {
    // The footer is compared with the commit before any row is decoded.
    let found = builder.metadata().file_metadata().num_rows();
    if u64::try_from(found) != Ok(part.rows) {
        return Err(format!("it has {found} rows and its commit says {}", part.rows));
    }
    let columns = builder.schema().fields();
    let mut indexes = Vec::with_capacity(wanted.fields().len());
    for field in wanted.fields() {
        let index = columns.iter().position(|column| column.name() == field.name());
        indexes.push(index.ok_or_else(|| format!("it has no column `{}`", field.name()))?);
    }
    let mask = ProjectionMask::roots(builder.parquet_schema(), indexes);
    // Batches are bounded by bytes too: a text that repeats takes little space in the file and much in memory.
    let at_once = rows_at_once(builder.metadata(), |column| mask.leaf_included(column), rows);
    let offset = usize::try_from(rows.start).map_err(|error| error.to_string())?;
    let limit = usize::try_from(rows.end - rows.start).map_err(|error| error.to_string())?;
    Ok(builder
        .with_projection(mask)
        .with_offset(offset)
        .with_limit(limit)
        .with_batch_size(at_once))
}

/// Reader of a large part by ranges.
#[derive(Debug)]
struct RangedReader {
    objects: Arc<dyn ObjectStore>,
    footers: Arc<Footers>,
    path: Path,
    proof: Arc<Proof>,
}

impl AsyncFileReader for RangedReader {
    fn get_bytes(&mut self, range: Range<u64>) -> BoxFuture<'_, Result<Bytes, ParquetError>> {
        async move {
            let read = verified(&self.objects, &self.path, &self.proof, &[range]).await;
            Ok(read.map_err(external)?.swap_remove(0))
        }
        .boxed()
    }

    fn get_byte_ranges(&mut self, ranges: Vec<Range<u64>>) -> BoxFuture<'_, Result<Vec<Bytes>, ParquetError>> {
        async move {
            let read = verified(&self.objects, &self.path, &self.proof, &ranges).await;
            read.map_err(external)
        }
        .boxed()
    }

    fn get_metadata<'a>(
        &'a mut self,
        options: Option<&'a ArrowReaderOptions>,
    ) -> BoxFuture<'a, Result<Arc<ParquetMetaData>, ParquetError>> {
        async move {
            if let Some(footer) = self.footers.get(&self.path) {
                return Ok(footer);
            }
            let (bytes, policy) = (
                self.proof.bytes(),
                options.map_or(PageIndexPolicy::Skip, ArrowReaderOptions::offset_index_policy),
            );
            let reader = ParquetMetaDataReader::new()
                .with_offset_index_policy(policy)
                .with_prefetch_hint(Some(64 << 10));
            reader.load_and_finish(&mut *self, bytes).await.map(Arc::new)
        }
        .boxed()
    }
}

fn external(error: Error) -> ParquetError {
    ParquetError::External(Box::new(error))
}

/// Decodes all rows and columns of a Parquet file, in batches. A panic of the reader, which some damaged files cause,
/// becomes an error and ends the iteration.
pub(crate) fn decode(bytes: Bytes) -> Result<impl Iterator<Item = Result<RecordBatch, ArrowError>>, ParquetError> {
    let opened = catch_unwind(AssertUnwindSafe(|| {
        let builder = ParquetRecordBatchReaderBuilder::try_new_with_options(bytes, with_pages())?;
        let at_once = rows_at_once(builder.metadata(), |_| true, &(0..u64::MAX));
        builder.with_batch_size(at_once).build()
    }));
    let opened = opened.unwrap_or_else(|_panic| Err(ParquetError::General(READER_PANICKED.to_owned())));
    let mut reader = Some(opened?);
    Ok(std::iter::from_fn(move || {
        let mut open = reader.take()?;
        // The reader is put back only if it returned a batch. After a panic or the last batch it is not used again.
        match catch_unwind(AssertUnwindSafe(|| open.next().map(|batch| (batch, open)))) {
            Ok(Some((batch, open))) => {
                reader = Some(open);
                Some(batch)
            }
            Ok(None) => None,
            Err(_panic) => Some(Err(ArrowError::ParquetError(READER_PANICKED.to_owned()))),
        }
    }))
}

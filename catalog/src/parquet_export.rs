//! Records of a version as one Parquet file, for other programs.
//!
//! Invariant: whatever the size of the version and however slowly its reader takes the bytes, an export has at most one
//! encoded row group, in a file without a name. Few row groups of a process are encoded at once.

use std::fmt;
use std::fs::{File, OpenOptions};
use std::io::{self, Seek as _};
use std::os::unix::fs::FileExt as _;
use std::sync::Arc;

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use bytes::Bytes;
use futures_util::stream::{self, BoxStream, StreamExt as _, TryStreamExt as _};
use parquet::arrow::ArrowWriter;
use parquet::basic::{Compression, ZstdLevel};
use parquet::errors::ParquetError;
use parquet::file::properties::WriterProperties;
use types::render::arrow::record_schema;

use crate::blocking::{BlockingPool, blocking};
use crate::key_store::KeyStore;
use crate::part::{GROUP_BYTES, GROUP_ROWS};
use crate::prepare::failure;
use crate::{Columns, Error, Snapshot};

/// Most bytes of the file that are read at a time.
const PIECE_BYTES: u64 = 256 << 10;

/// Encodes rows as one Parquet file, compressed with Zstandard.
///
/// # Errors
/// [`Error::Encode`] for a column of a type that the format lacks.
pub fn parquet_file(rows: &RecordBatch) -> Result<Vec<u8>, Error> {
    let encode = || {
        let mut writer = ArrowWriter::try_new(Vec::new(), rows.schema(), Some(properties()?))?;
        writer.write(rows)?;
        writer.into_inner()
    };
    encode().map_err(Error::Encode)
}

fn properties() -> Result<WriterProperties, ParquetError> {
    Ok(WriterProperties::builder()
        .set_compression(Compression::ZSTD(ZstdLevel::try_new(1)?))
        // A row group ends where the exporter says, so that nothing of the next stays in memory.
        .set_max_row_group_row_count(None)
        .build())
}

impl Snapshot {
    /// Streams the records of the version as one Parquet file, in the order of the rows. A row group is encoded when the one
    /// before was taken, on a blocking thread.
    ///
    /// # Errors
    /// The stream has the errors of [`Self::stream`], [`Error::NoRoom`] and [`Error::Scratch`] if the disk does not take a
    /// row group, and [`Error::Encode`].
    pub fn parquet(&self) -> BoxStream<'static, Result<Bytes, Error>> {
        let Some(contract) = self.contract() else {
            return stream::empty().boxed();
        };
        let schema = record_schema(contract);
        let rows = self.stream(Columns::Records, 0..self.record_count());
        let (places, store) = self.encoding();
        let begun = ParquetExport::begin(schema, rows, places, store);
        stream::once(begun)
            .map_ok(|export| {
                stream::try_unfold(export, |mut export| async move {
                    Ok(export.piece().await?.map(|piece| (piece, export)))
                })
            })
            .try_flatten()
            .boxed()
    }
}

/// A Parquet file that is encoded while it is read.
struct ParquetExport {
    schema: SchemaRef,
    rows: BoxStream<'static, Result<RecordBatch, Error>>,
    /// None once the footer is written.
    writer: Option<ArrowWriter<Arc<File>>>,
    /// The encoded row group.
    file: Arc<File>,
    /// Bytes of the file.
    encoded: u64,
    /// Bytes of the file that were taken.
    taken: u64,
    places: Arc<BlockingPool>,
    store: Arc<KeyStore>,
}

impl fmt::Debug for ParquetExport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ParquetExport").finish_non_exhaustive()
    }
}

impl ParquetExport {
    async fn begin(
        schema: SchemaRef,
        rows: BoxStream<'static, Result<RecordBatch, Error>>,
        places: Arc<BlockingPool>,
        store: Arc<KeyStore>,
    ) -> Result<Self, Error> {
        let (scratch, columns) = (Arc::clone(&store), Arc::clone(&schema));
        let opened = blocking(move || -> Result<_, Error> {
            let file = Arc::new(unnamed(&scratch)?);
            let writer = ArrowWriter::try_new(Arc::clone(&file), columns, Some(properties().map_err(Error::Encode)?));
            Ok((file, writer.map_err(failure)?))
        });
        let (file, writer) = opened.await.map_err(Error::Stopped)??;
        Ok(Self {
            schema,
            rows,
            writer: Some(writer),
            file,
            encoded: 0,
            taken: 0,
            places,
            store,
        })
    }

    /// Returns the next bytes of the file; none after its footer.
    async fn piece(&mut self) -> Result<Option<Bytes>, Error> {
        while self.taken == self.encoded {
            let Some(writer) = self.writer.take() else {
                return Ok(None);
            };
            self.encode_group(writer).await?;
        }
        let (file, at) = (Arc::clone(&self.file), self.taken);
        let length = (self.encoded - at).min(PIECE_BYTES);
        let read = blocking(move || -> io::Result<_> {
            let mut piece = vec![0; usize::try_from(length).unwrap_or(0)];
            file.read_exact_at(&mut piece, at)?;
            Ok(Bytes::from(piece))
        });
        let piece = read.await.map_err(Error::Stopped)?.map_err(Error::Scratch)?;
        self.taken += length;
        Ok(Some(piece))
    }

    /// Replaces the bytes of the file, all of which were taken, with those of the next row group or of the footer.
    async fn encode_group(&mut self, mut writer: ArrowWriter<Arc<File>>) -> Result<(), Error> {
        // Held for one row group and not while it is sent: a slow reader would otherwise keep everybody else waiting.
        let mut place = self.places.encoding_place().await;
        let (file, store) = (Arc::clone(&self.file), Arc::clone(&self.store));
        let emptied = blocking(move || {
            file.set_len(0).map_err(Error::Scratch)?;
            // The writer continues at the start: it counts its bytes by itself.
            (&*file).rewind().map_err(Error::Scratch)?;
            store.room_for(GROUP_BYTES as u64)
        });
        emptied.await.map_err(Error::Stopped)??;
        loop {
            let rows = match self.rows.try_next().await? {
                Some(rows) => {
                    // The rows lack the metadata of the columns.
                    let rows = RecordBatch::try_new(Arc::clone(&self.schema), rows.columns().to_vec());
                    Some(rows.map_err(|error| Error::Encode(error.into()))?)
                }
                None => None,
            };
            // The place goes with the work, which goes on if the reader leaves.
            let encoding = blocking(move || encode(&mut writer, rows).map(|step| (step, writer, place)));
            let (step, next, held) = encoding.await.map_err(Error::Stopped)?.map_err(failure)?;
            (writer, place) = (next, held);
            match step {
                EncodedStep::Filling => {}
                EncodedStep::Group => {
                    self.writer = Some(writer);
                    break;
                }
                EncodedStep::Footer => break,
            }
        }
        let file = Arc::clone(&self.file);
        let measured = blocking(move || file.metadata());
        self.encoded = measured.await.map_err(Error::Stopped)?.map_err(Error::Scratch)?.len();
        self.taken = 0;
        Ok(())
    }
}

/// State of a file after some of its rows.
#[derive(Clone, Copy, Debug)]
enum EncodedStep {
    /// The row group takes more rows.
    Filling,
    /// The row group is in the file.
    Group,
    /// The last row group and the footer are in the file.
    Footer,
}

/// Encodes rows, or the footer if there are none any more.
fn encode(writer: &mut ArrowWriter<Arc<File>>, rows: Option<RecordBatch>) -> Result<EncodedStep, ParquetError> {
    let step = match rows {
        None => {
            writer.finish()?;
            EncodedStep::Footer
        }
        Some(rows) => {
            writer.write(&rows)?;
            if writer.in_progress_size() < GROUP_BYTES && writer.in_progress_rows() < GROUP_ROWS {
                return Ok(EncodedStep::Filling);
            }
            writer.flush()?;
            EncodedStep::Group
        }
    };
    // The writer keeps the last bytes in a buffer.
    writer.sync()?;
    Ok(step)
}

/// Creates a file without a name on the disk of the index, which is removed when it is closed.
fn unnamed(store: &KeyStore) -> Result<File, Error> {
    // Dropping the folder removes the name of the file, and what a crash leaves is removed at the next opening.
    let folder = store.scratch()?;
    let file = OpenOptions::new()
        .read(true)
        .write(true)
        .create_new(true)
        .open(folder.path().join("row-group"));
    file.map_err(Error::Scratch)
}

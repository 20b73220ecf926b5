//! The table `records` over the open files of a version's parts.
//!
//! Invariants: a file is addressed by its index in the list of parts, so no name can reach any other file. Every byte
//! is compared with the proof of its part before the engine gets it.

use std::collections::{HashMap, HashSet};
use std::fs::File;
use std::io::ErrorKind;
use std::ops::Range;
use std::os::unix::fs::FileExt as _;
use std::sync::{Arc, OnceLock};

use async_trait::async_trait;
use bytes::Bytes;
use datafusion::arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use datafusion::catalog::{Session, TableProvider};
use datafusion::common::config::TableParquetOptions;
use datafusion::common::stats::Precision;
use datafusion::common::{Statistics, exec_err};
use datafusion::datasource::TableType;
use datafusion::datasource::listing::PartitionedFile;
use datafusion::datasource::physical_plan::parquet::ParquetFileReaderFactory;
use datafusion::datasource::physical_plan::{FileGroup, FileScanConfigBuilder, ParquetSource};
use datafusion::datasource::source::DataSourceExec;
use datafusion::error::Result;
use datafusion::execution::object_store::ObjectStoreUrl;
use datafusion::logical_expr::{Expr, TableProviderFilterPushDown};
use datafusion::parquet::arrow::arrow_reader::ArrowReaderOptions;
use datafusion::parquet::arrow::async_reader::AsyncFileReader;
use datafusion::parquet::errors::{ParquetError, Result as ParquetResult};
use datafusion::parquet::file::metadata::{PageIndexPolicy, ParquetMetaData, ParquetMetaDataReader};
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::empty::EmptyExec;
use datafusion::physical_plan::metrics::ExecutionPlanMetricsSet;
use futures_util::future::{BoxFuture, FutureExt as _};
use types::contract::{EXTRA_COLUMN, PLACE_COLUMNS};
use types::proof::DamagedBytes;
use types::{Contract, FieldType, Proof};

use crate::wire::ChildQuery;

/// URL of the store that the engine expects. The store is empty.
pub(super) const STORE_URL: &str = "parts://";
/// Metadata key of a column with JSON text.
pub(super) const JSON: &str = "json";
/// Metadata key of a column with integers of 64 bits. In `PostgreSQL` those of a statement may have 32.
pub(super) const BIGINT: &str = "bigint";

/// Number of bytes that are read from the end of a file for its footer.
const FOOTER_READ_BYTES: u64 = 64 << 10;
/// Size in bytes from which several threads may read a file, so its footer is cached.
const MIN_SHARED_BYTES: u64 = 8 << 20;

/// Returns the columns of `records`: those of the contract, with texts as views, and the places if they are wanted.
fn schema(contract: &Contract, has_places: bool) -> SchemaRef {
    let json = |name: &str| {
        let of_type = |field: &types::Field| field.name == name && field.kind == FieldType::Json;
        // Extra members are stored as one JSON text.
        name == EXTRA_COLUMN || contract.fields().iter().any(of_type)
    };
    let column = |field: &Arc<Field>| {
        let kind = match field.data_type() {
            DataType::Utf8 => DataType::Utf8View,
            other => other.clone(),
        };
        let column = Field::new(field.name(), kind, field.is_nullable());
        let marked = |key: &str| HashMap::from([(key.to_owned(), String::new())]);
        if json(field.name()) {
            column.with_metadata(marked(JSON))
        } else if *column.data_type() == DataType::Int64 {
            column.with_metadata(marked(BIGINT))
        } else {
            column
        }
    };
    let schema = contract.schema();
    let places = PLACE_COLUMNS.iter().filter(|_| has_places);
    let places = places.map(|name| Arc::new(Field::new(*name, DataType::Int64, true)));
    let columns = schema.fields().iter().map(&column);
    Arc::new(Schema::new(
        columns.chain(places.map(|place| column(&place))).collect::<Vec<_>>(),
    ))
}

/// First damage that a reader found.
pub(super) type Damage = Arc<OnceLock<String>>;

#[derive(Debug)]
struct OpenPart {
    file: File,
    rows: u64,
    proof: Arc<Proof>,
    footer: OnceLock<Arc<ParquetMetaData>>,
}

/// The table `records` of one version.
#[derive(Debug)]
pub(super) struct RecordsTable {
    schema: SchemaRef,
    parts: Arc<Vec<OpenPart>>,
    damage: Damage,
}

impl RecordsTable {
    /// Creates the table of a query from `files`. A damage that a read finds is stored in `damage`.
    pub(super) fn new(query: &ChildQuery, files: Vec<File>, damage: &Damage) -> Self {
        let part = |(file, (rows, proof)): (File, &(u64, Arc<Proof>))| OpenPart {
            file,
            rows: *rows,
            proof: Arc::clone(proof),
            footer: OnceLock::new(),
        };
        Self {
            schema: schema(&query.contract, query.has_places),
            parts: Arc::new(files.into_iter().zip(&query.parts).map(part).collect()),
            damage: Arc::clone(damage),
        }
    }

    /// Returns true if filters are evaluated per page before the other columns are read. That pays only if there are
    /// other columns. A query without a filter may get one while it runs, such as the bound of a top-k sort.
    fn read_late(&self, projection: Option<&Vec<usize>>, filters: &[Expr]) -> bool {
        // Late reads need a column that no filter uses.
        let filtered: HashSet<&str> = filters
            .iter()
            .flat_map(|filter| filter.column_refs())
            .map(|column| column.name.as_str())
            .collect();
        let read = projection.map_or(self.schema.fields().len(), Vec::len);
        read > filtered.len()
    }

    fn statistics(&self) -> Statistics {
        let rows = self.parts.iter().map(|part| part.rows).sum::<u64>();
        let rows = usize::try_from(rows).map_or(Precision::Absent, Precision::Exact);
        Statistics::new_unknown(&self.schema).with_num_rows(rows)
    }
}

#[async_trait]
impl TableProvider for RecordsTable {
    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }

    fn table_type(&self) -> TableType {
        TableType::Base
    }

    fn statistics(&self) -> Option<Statistics> {
        Some(self.statistics())
    }

    /// Filters go to the scan, which may skip pages, and are evaluated again after it.
    fn supports_filters_pushdown(&self, filters: &[&Expr]) -> Result<Vec<TableProviderFilterPushDown>> {
        Ok(vec![TableProviderFilterPushDown::Inexact; filters.len()])
    }

    async fn scan(
        &self,
        state: &dyn Session,
        projection: Option<&Vec<usize>>,
        filters: &[Expr],
        limit: Option<usize>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        // An empty version has no file to scan.
        if self.parts.is_empty() {
            let columns = projection.map(|indexes| self.schema.project(indexes)).transpose()?;
            let columns = columns.map_or_else(|| Arc::clone(&self.schema), Arc::new);
            return Ok(Arc::new(EmptyExec::new(columns)));
        }
        let options = TableParquetOptions {
            global: state.config_options().execution.parquet.clone(),
            ..TableParquetOptions::default()
        };
        let source = ParquetSource::new(Arc::clone(&self.schema))
            .with_table_parquet_options(options)
            .with_pushdown_filters(self.read_late(projection, filters))
            .with_parquet_file_reader_factory(Arc::new(PartReaders {
                parts: Arc::clone(&self.parts),
                damage: Arc::clone(&self.damage),
            }));
        // The index is the only name of a file.
        let file = |(index, part): (usize, &OpenPart)| PartitionedFile::new(index.to_string(), part.proof.bytes());
        let files = FileGroup::new(self.parts.iter().enumerate().map(file).collect());
        let scan = FileScanConfigBuilder::new(ObjectStoreUrl::parse(STORE_URL)?, Arc::new(source))
            // A file may be split among threads, so several threads may read one part.
            .with_file_groups(files.split_files(state.config().target_partitions()))
            .with_statistics(self.statistics())
            .with_projection_indices(projection.cloned())?
            .with_limit(limit)
            .build();
        Ok(DataSourceExec::from_data_source(scan))
    }
}

/// Factory of readers of the parts.
#[derive(Debug)]
struct PartReaders {
    parts: Arc<Vec<OpenPart>>,
    damage: Damage,
}

impl ParquetFileReaderFactory for PartReaders {
    fn create_reader(
        &self,
        _partition: usize,
        file: PartitionedFile,
        _hint: Option<usize>,
        _metrics: &ExecutionPlanMetricsSet,
    ) -> Result<Box<dyn AsyncFileReader + Send>> {
        // A path that is not an index of the list reaches no file.
        let index = file.path().as_ref().parse().ok();
        let Some(index) = index.filter(|index| *index < self.parts.len()) else {
            return exec_err!("there is no part {}", file.path());
        };
        Ok(Box::new(PartReader {
            parts: Arc::clone(&self.parts),
            damage: Arc::clone(&self.damage),
            index,
            whole: None,
        }))
    }
}

/// Reader of one part. Reads block the thread: they are answered from the page cache or the disk, and the process has
/// nothing else to do.
#[derive(Debug)]
struct PartReader {
    parts: Arc<Vec<OpenPart>>,
    damage: Damage,
    index: usize,
    /// All verified bytes of a small part, after the first read.
    whole: Option<Bytes>,
}

impl PartReader {
    fn part(&self) -> &OpenPart {
        &self.parts[self.index]
    }

    /// Reads these byte ranges of the part and verifies them.
    fn read(&mut self, ranges: &[Range<u64>]) -> ParquetResult<Vec<Bytes>> {
        let proof = &self.part().proof;
        let spans = proof.spans(ranges).map_err(|damaged| self.damaged(&damaged))?;
        if let Some(whole) = &self.whole {
            let at = |offset: u64| usize::try_from(offset).unwrap_or(usize::MAX);
            let cut = |range: &Range<u64>| whole.slice(at(range.start)..at(range.end));
            return Ok(ranges.iter().map(cut).collect());
        }
        let pieces: Vec<_> = spans
            .iter()
            .map(|span| self.piece(span))
            .collect::<ParquetResult<_>>()?;
        let found = proof.cut(&spans, &pieces, ranges);
        let found = found.map_err(|damaged| self.damaged(&damaged))?;
        // A small part has one hash over all bytes, so later reads come from memory.
        if proof.is_whole() {
            self.whole = pieces.into_iter().next();
        }
        Ok(found)
    }

    /// Reads a span of the file without verification.
    fn piece(&self, span: &Range<u64>) -> ParquetResult<Bytes> {
        let failed = |problem: &dyn ToString| {
            ParquetError::General(format!(
                "part {} could not be read: {}",
                self.index,
                problem.to_string()
            ))
        };
        let length = usize::try_from(span.end - span.start).map_err(|error| failed(&error))?;
        let mut bytes = vec![0; length];
        match self.part().file.read_exact_at(&mut bytes, span.start) {
            Ok(()) => Ok(bytes.into()),
            // A file that is too short is damaged, and not unreadable.
            Err(error) if error.kind() == ErrorKind::UnexpectedEof => Err(self.damaged(&span.into())),
            Err(error) => Err(failed(&error)),
        }
    }

    /// Records the damage and returns the error for the engine.
    fn damaged(&self, damaged: &DamagedBytes) -> ParquetError {
        let found = format!("part {}: {damaged}", self.index);
        // Only the first damage is kept; any is enough for the answer.
        drop(self.damage.set(found.clone()));
        ParquetError::General(found)
    }
}

impl AsyncFileReader for PartReader {
    fn get_bytes(&mut self, range: Range<u64>) -> BoxFuture<'_, ParquetResult<Bytes>> {
        async move { Ok(self.read(&[range])?.swap_remove(0)) }.boxed()
    }

    fn get_byte_ranges(&mut self, ranges: Vec<Range<u64>>) -> BoxFuture<'_, ParquetResult<Vec<Bytes>>> {
        async move { self.read(&ranges) }.boxed()
    }

    fn get_metadata<'a>(
        &'a mut self,
        options: Option<&'a ArrowReaderOptions>,
    ) -> BoxFuture<'a, ParquetResult<Arc<ParquetMetaData>>> {
        async move {
            if let Some(footer) = self.part().footer.get() {
                return Ok(Arc::clone(footer));
            }
            let bytes = self.part().proof.bytes();
            let (columns, offsets) = options.map_or((PageIndexPolicy::Skip, PageIndexPolicy::Skip), |options| {
                (options.column_index_policy(), options.offset_index_policy())
            });
            let reader = ParquetMetaDataReader::new()
                .with_column_index_policy(columns)
                .with_offset_index_policy(offsets)
                .with_prefetch_hint(usize::try_from(bytes.min(FOOTER_READ_BYTES)).ok());
            let footer = Arc::new(reader.load_and_finish(&mut *self, bytes).await?);
            if bytes >= MIN_SHARED_BYTES {
                // If two threads read the footer, both have the same one, so the second is dropped.
                drop(self.part().footer.set(Arc::clone(&footer)));
            }
            Ok(footer)
        }
        .boxed()
    }
}

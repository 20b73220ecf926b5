//! The table `records` over the open files of a version's parts.
//!
//! Invariants: a file is known by its place in the list of parts, so no name can reach a file that was not handed over. The
//! engine gets no byte that was not compared with the proof of its part after it was read.

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
use types::contract::EXTRA_COLUMN;
use types::proof::Damaged;
use types::{Contract, FieldType, Proof};

/// Where the engine looks for a store; there is nothing in it.
pub(super) const STORE: &str = "parts://";
/// What marks a column that holds JSON text: the key of its metadata.
pub(super) const JSON: &str = "json";

/// How much of the end of a file is read for its footer.
const FOOTER: u64 = 64 << 10;
/// From this size on a file may be read by several threads, so its footer is kept.
const SHARED: u64 = 8 << 20;

/// The columns of `records`: those of the contract, texts as views.
fn schema(contract: &Contract) -> SchemaRef {
    let json = |name: &str| {
        let of_type = |field: &types::Field| field.name == name && field.kind == FieldType::Json;
        name == EXTRA_COLUMN || contract.fields().iter().any(of_type)
    };
    let column = |field: &Arc<Field>| {
        let kind = match field.data_type() {
            DataType::Utf8 => DataType::Utf8View,
            other => other.clone(),
        };
        let column = Field::new(field.name(), kind, field.is_nullable());
        if json(field.name()) {
            column.with_metadata(HashMap::from([(JSON.to_owned(), String::new())]))
        } else {
            column
        }
    };
    Arc::new(Schema::new(
        contract.schema().fields().iter().map(column).collect::<Vec<_>>(),
    ))
}

/// The first damage that a reader found.
pub(super) type Damage = Arc<OnceLock<String>>;

/// One part.
#[derive(Debug)]
struct Part {
    file: File,
    rows: u64,
    proof: Arc<Proof>,
    footer: OnceLock<Arc<ParquetMetaData>>,
}

/// The table.
#[derive(Debug)]
pub(super) struct Table {
    schema: SchemaRef,
    parts: Arc<Vec<Part>>,
    damage: Damage,
}

impl Table {
    /// The parts `files`, each with its rows and proof; `damage` gets what is found of them.
    pub(super) fn new(contract: &Contract, files: Vec<File>, told: &[(u64, Arc<Proof>)], damage: &Damage) -> Self {
        let part = |(file, (rows, proof)): (File, &(u64, Arc<Proof>))| Part {
            file,
            rows: *rows,
            proof: Arc::clone(proof),
            footer: OnceLock::new(),
        };
        Self {
            schema: schema(contract),
            parts: Arc::new(files.into_iter().zip(told).map(part).collect()),
            damage: Arc::clone(damage),
        }
    }

    /// Whether filters are decided page by page before other columns are read: worth it only if there are others. Without a
    /// filter there may come one while the query runs, such as the least of the greatest so far.
    fn read_late(&self, projection: Option<&Vec<usize>>, filters: &[Expr]) -> bool {
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
impl TableProvider for Table {
    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }

    fn table_type(&self) -> TableType {
        TableType::Base
    }

    fn statistics(&self) -> Option<Statistics> {
        Some(self.statistics())
    }

    /// Every filter is told to the scan, and checked again after it.
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
            .with_parquet_file_reader_factory(Arc::new(Readers {
                parts: Arc::clone(&self.parts),
                damage: Arc::clone(&self.damage),
            }));
        let file = |(index, part): (usize, &Part)| PartitionedFile::new(index.to_string(), part.proof.bytes());
        let files = FileGroup::new(self.parts.iter().enumerate().map(file).collect());
        let scan = FileScanConfigBuilder::new(ObjectStoreUrl::parse(STORE)?, Arc::new(source))
            .with_file_groups(files.split_files(state.config().target_partitions()))
            .with_statistics(self.statistics())
            .with_projection_indices(projection.cloned())?
            .with_limit(limit)
            .build();
        Ok(DataSourceExec::from_data_source(scan))
    }
}

/// Makes readers of the parts.
#[derive(Debug)]
struct Readers {
    parts: Arc<Vec<Part>>,
    damage: Damage,
}

impl ParquetFileReaderFactory for Readers {
    fn create_reader(
        &self,
        _partition: usize,
        file: PartitionedFile,
        _hint: Option<usize>,
        _metrics: &ExecutionPlanMetricsSet,
    ) -> Result<Box<dyn AsyncFileReader + Send>> {
        let index = file.path().as_ref().parse().ok();
        let Some(index) = index.filter(|index| *index < self.parts.len()) else {
            return exec_err!("there is no part {}", file.path());
        };
        Ok(Box::new(Reader {
            parts: Arc::clone(&self.parts),
            damage: Arc::clone(&self.damage),
            index,
            whole: None,
        }))
    }
}

/// Reads one part. Reading does not wait: it is a call to the system that is answered from the cache of its pages or the
/// disk, and there is nothing else to do meanwhile.
#[derive(Debug)]
struct Reader {
    parts: Arc<Vec<Part>>,
    damage: Damage,
    index: usize,
    /// All bytes of a small part, verified, once it was read.
    whole: Option<Bytes>,
}

impl Reader {
    fn part(&self) -> &Part {
        &self.parts[self.index]
    }

    /// Verified bytes of the part: those of the ranges.
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
        if proof.is_whole() {
            self.whole = pieces.into_iter().next();
        }
        Ok(found)
    }

    /// The bytes of a span as they are in the file.
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
            Err(error) if error.kind() == ErrorKind::UnexpectedEof => Err(self.damaged(&span.into())),
            Err(error) => Err(failed(&error)),
        }
    }

    /// Notes that the part is damaged.
    fn damaged(&self, damaged: &Damaged) -> ParquetError {
        let found = format!("part {}: {damaged}", self.index);
        // The first that was found is as good as any.
        drop(self.damage.set(found.clone()));
        ParquetError::General(found)
    }
}

impl AsyncFileReader for Reader {
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
                .with_prefetch_hint(usize::try_from(bytes.min(FOOTER)).ok());
            let footer = Arc::new(reader.load_and_finish(&mut *self, bytes).await?);
            if bytes >= SHARED {
                // Why: whoever comes second has read the same footer.
                drop(self.part().footer.set(Arc::clone(&footer)));
            }
            Ok(footer)
        }
        .boxed()
    }
}

//! Rows of Parquet.

use std::panic;
use std::sync::Arc;

use arrow::array::RecordBatch;
use arrow::datatypes::{Field, IntervalUnit, Schema};
use parquet::arrow::arrow_reader::{
    ArrowReaderMetadata, ArrowReaderOptions, ParquetRecordBatchReader, ParquetRecordBatchReaderBuilder,
};
use parquet::basic::LogicalType;
use parquet::file::metadata::ParquetMetaData;

use super::arrow_columns::{as_read, rows};
use super::error::FileError;
use super::input::FileInput;
use super::nested;
use super::visitor::{RowVisitor, names_of};

/// The most rows that are read at once.
const ROWS_PER_BATCH: u64 = 8_192;
/// About the most bytes that are read at once. One row may have more.
const BYTES_PER_BATCH: u64 = 16 << 20;

/// Visits every row.
pub(super) fn visit(input: &FileInput, visitor: &mut dyn RowVisitor) -> Result<(), FileError> {
    let metadata = loaded(input)?;
    visitor.begin(names_of(metadata.schema())?)?;
    let uuids = uuids(metadata.metadata(), metadata.schema());
    let (reader, mut months) = readers(input, &metadata)?;
    let mut row = 0;
    for batch in reader {
        let mut batch = batch?;
        if let Some(months) = &mut months {
            let months = months
                .next()
                .ok_or_else(|| FileError::Refused("the file changed while it was read".to_owned()))??;
            batch = joined(&months, &batch)?;
        }
        rows(&batch, &uuids, |cells| {
            row += 1;
            visitor.row(row, cells)
        })?;
    }
    Ok(())
}

/// Reads the types of a file.
///
/// The reader panics at a type of Arrow that it does not know, such as the integers of 128 bits that Polars writes, so the
/// panic becomes an error.
fn loaded(input: &FileInput) -> Result<ArrowReaderMetadata, FileError> {
    let hook = panic::take_hook();
    panic::set_hook(Box::new(|_| ()));
    let loaded = panic::catch_unwind(|| ArrowReaderMetadata::load(input, ArrowReaderOptions::new()));
    panic::set_hook(hook);
    match loaded {
        Ok(loaded) => Ok(loaded?),
        Err(thrown) => {
            let words = thrown.downcast::<String>().map(|words| *words);
            Err(FileError::Refused(format!(
                "a column has a type that only Arrow's own schema names ({}); write it as a decimal, a text or an \
                 integer of 64 bits",
                words.as_deref().unwrap_or("it is not known here")
            )))
        }
    }
}

/// Returns a reader of the rows, and for a file with intervals another one of the same rows.
///
/// An interval of Parquet has months, days and milliseconds, of which Arrow reads either the months or the rest. The first
/// reader returns the rest, the second the months.
fn readers(
    input: &FileInput,
    metadata: &ArrowReaderMetadata,
) -> Result<(ParquetRecordBatchReader, Option<ParquetRecordBatchReader>), FileError> {
    let rows = rows_at_once(metadata.metadata());
    let open = |unit| -> Result<_, FileError> {
        let options = ArrowReaderOptions::new().with_schema(as_read(metadata.schema(), Some(unit)));
        let metadata = ArrowReaderMetadata::try_new(Arc::clone(metadata.metadata()), options)?;
        let builder = ParquetRecordBatchReaderBuilder::new_with_metadata(input.clone(), metadata);
        Ok(builder.with_batch_size(rows).build()?)
    };
    let mut fields = metadata.schema().fields().iter();
    let months = fields
        .any(|field| nested::has_interval(field.data_type()))
        .then(|| open(IntervalUnit::YearMonth))
        .transpose()?;
    Ok((open(IntervalUnit::DayTime)?, months))
}

/// Joins the batches of both readers.
fn joined(months: &RecordBatch, days: &RecordBatch) -> Result<RecordBatch, FileError> {
    let schema = days.schema();
    let columns = schema.fields().iter().zip(months.columns()).zip(days.columns());
    let columns = columns.map(|((field, months), days)| Ok((field.name(), nested::join_intervals(months, days)?)));
    Ok(RecordBatch::try_from_iter(
        columns.collect::<Result<Vec<_>, FileError>>()?,
    )?)
}

/// Says of each column's leaves, in order, whether it is a UUID. Arrow's type does not say it.
fn uuids(metadata: &ParquetMetaData, schema: &Schema) -> Vec<Vec<bool>> {
    let columns = metadata.file_metadata().schema_descr().columns().iter();
    let mut leaves = columns.map(|column| matches!(column.logical_type_ref(), Some(LogicalType::Uuid)));
    let of_field = |field: &Arc<Field>| leaves.by_ref().take(nested::leaves(field.data_type())).collect();
    schema.fields().iter().map(of_field).collect()
}

/// Returns the number of rows of about [`BYTES_PER_BATCH`], by the sizes of the row groups.
fn rows_at_once(metadata: &ParquetMetaData) -> usize {
    let groups = metadata.row_groups().iter().map(|group| {
        let (rows, bytes) = (group.num_rows().unsigned_abs(), group.total_byte_size().unsigned_abs());
        rows.saturating_mul(BYTES_PER_BATCH) / bytes.max(1)
    });
    // The group with the largest rows decides, because all batches have one size.
    usize::try_from(groups.min().unwrap_or(ROWS_PER_BATCH).clamp(1, ROWS_PER_BATCH)).unwrap_or(1)
}

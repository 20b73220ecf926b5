//! Conversion of Parquet files into JSON Lines by the contract of the project.
//!
//! Invariant: a value keeps its meaning in the type of its field, or the file is refused.

use std::collections::{HashMap, HashSet};
use std::io::Write;
use std::panic;

use anyhow::{Context, bail};
use arrow::array::{
    Array as _, ArrayRef, AsArray as _, BooleanArray, Date32Array, Decimal128Array, Float64Array, Int64Array,
    RecordBatch, StringArray, StringBuilder, TimestampMicrosecondArray, new_null_array,
};
use arrow::compute::kernels::cmp::not_distinct;
use arrow::compute::{CastOptions, cast_with_options};
use arrow::datatypes::{DataType, Field, Float32Type, Float64Type, IntervalUnit, Schema, SchemaRef};
use arrow::util::display::{FormatOptions, array_value_to_string};
use parquet::arrow::arrow_reader::{
    ArrowReaderMetadata, ArrowReaderOptions, ParquetRecordBatchReader, ParquetRecordBatchReaderBuilder,
};
use parquet::basic::LogicalType;
use parquet::file::metadata::ParquetMetaData;
use std::fs::File;
use std::ops::Range;
use std::sync::Arc;
use types::render::lines::RenderedLines;
use types::{Contract, Date, FieldType, Timestamp, decimal};

use super::cell::{boolean, compact, double, integer, number};
use super::nested::{self, NestedColumn};
use crate::terminal::shown;

/// The most rows that are read at once.
const ROWS_PER_BATCH: u64 = 8_192;
/// About the most bytes that are read and converted at once. One row may have more.
const BYTES_PER_BATCH: u64 = 16 << 20;
/// The most bytes of a nested value as JSON, those of a line that the service accepts.
const MOST_NESTED: usize = 4 << 20;

/// Casts that fail where a value does not fit.
pub(super) const STRICT: CastOptions<'static> = CastOptions {
    safe: false,
    format_options: FormatOptions::new(),
};

/// Returns the type of a column's field, or `None` if the contract allows the column as an extra member.
pub(super) fn kind_of(contract: &Contract, name: &str) -> anyhow::Result<Option<FieldType>> {
    match contract.fields().iter().find(|field| field.name == name) {
        Some(field) => Ok(Some(field.kind)),
        None if contract.allow_extra() => Ok(None),
        None => {
            let fields: Vec<&str> = contract.fields().iter().map(|field| field.name.as_str()).collect();
            bail!(
                "the column `{}` is no field of the project; its fields are {}",
                shown(name),
                fields.join(", ")
            )
        }
    }
}

/// Writes the records of a Parquet file as JSON Lines.
pub(super) fn parquet(file: &File, contract: &Contract, out: &mut impl Write) -> anyhow::Result<()> {
    let metadata = loaded(file)?;
    let mut seen = HashSet::new();
    for field in metadata.schema().fields() {
        // Arrow finds a column by its first name only, so the second one would be lost silently.
        if !seen.insert(field.name()) {
            bail!("two columns are called `{}`", shown(field.name()));
        }
        // Extra members have no type to convert to.
        if kind_of(contract, field.name())?.is_none() {
            bail!(
                "the column `{}` is no field of the project; leave it out",
                shown(field.name())
            );
        }
    }
    let uuids = uuids(metadata.metadata(), metadata.schema());
    let (reader, mut months) = readers(file, &metadata)?;
    let mut text = Vec::new();
    let mut read = 0;
    for batch in reader {
        let mut batch = batch?;
        if let Some(months) = &mut months {
            batch = joined(&months.next().context("the file changed")??, &batch)?;
        }
        // A few texts of a dictionary may fill many rows, so a batch is cut again by the bytes of its texts.
        let mut rest = 0..batch.num_rows();
        while !rest.is_empty() {
            let piece = batch.slice(rest.start, piece(&batch, rest.clone()));
            let piece = shaped(contract, &uuids, &piece, read)?;
            rest.start += piece.num_rows();
            read += piece.num_rows() as u64;
            let lines = RenderedLines::new(contract, &piece)?;
            // The buffer is reused for every piece.
            text.clear();
            lines.write(0..lines.len(), &mut text);
            out.write_all(&text)?;
        }
    }
    Ok(())
}

/// Reads the types of a file.
///
/// The reader panics at a type of Arrow that it does not know, such as the integers of 128 bits that Polars writes, so the
/// panic becomes an error.
fn loaded(file: &File) -> anyhow::Result<ArrowReaderMetadata> {
    let hook = panic::take_hook();
    panic::set_hook(Box::new(|_| ()));
    let loaded = panic::catch_unwind(|| ArrowReaderMetadata::load(file, ArrowReaderOptions::new()));
    panic::set_hook(hook);
    match loaded {
        Ok(loaded) => Ok(loaded?),
        Err(thrown) => {
            let words = thrown.downcast::<String>().map(|words| *words);
            bail!(
                "a column has a type that only Arrow's own schema names ({}); write it as a decimal, a text or an integer of \
                 64 bits",
                words.as_deref().unwrap_or("it is not known here")
            )
        }
    }
}

/// Returns a reader of the rows, and for a file with intervals another one of the same rows.
///
/// An interval of Parquet has months, days and milliseconds, of which Arrow reads either the months or the rest. The first
/// reader returns the rest, the second the months.
fn readers(
    file: &File,
    metadata: &ArrowReaderMetadata,
) -> anyhow::Result<(ParquetRecordBatchReader, Option<ParquetRecordBatchReader>)> {
    let rows = rows_at_once(metadata.metadata());
    let open = |unit| -> anyhow::Result<_> {
        let options = ArrowReaderOptions::new().with_schema(as_read(metadata.schema(), unit));
        let metadata = ArrowReaderMetadata::try_new(Arc::clone(metadata.metadata()), options)?;
        let builder = ParquetRecordBatchReaderBuilder::new_with_metadata(file.try_clone()?, metadata);
        Ok(builder.with_batch_size(rows).build()?)
    };
    let mut fields = metadata.schema().fields().iter();
    let months = fields
        .any(|field| nested::has_interval(field.data_type()))
        .then(|| open(IntervalUnit::YearMonth))
        .transpose()?;
    Ok((open(IntervalUnit::DayTime)?, months))
}

/// Returns the types that a file is read as. Texts are views of shared bytes: a dictionary's text that many rows have is in
/// memory once.
fn as_read(schema: &Schema, unit: IntervalUnit) -> SchemaRef {
    let leaf = |kind: &DataType| {
        let values = match kind {
            DataType::Dictionary(_, values) => values,
            plain => plain,
        };
        match values {
            DataType::Utf8 | DataType::LargeUtf8 => DataType::Utf8View,
            DataType::Interval(_) => DataType::Interval(unit),
            _ => kind.clone(),
        }
    };
    let field = |field: &Arc<Field>| {
        let kind = nested::with_leaves(field.data_type(), &leaf);
        Arc::new(field.as_ref().clone().with_data_type(kind))
    };
    Arc::new(Schema::new_with_metadata(
        schema.fields().iter().map(field).collect::<Vec<_>>(),
        schema.metadata().clone(),
    ))
}

/// Joins the batches of both readers.
fn joined(months: &RecordBatch, days: &RecordBatch) -> anyhow::Result<RecordBatch> {
    let schema = days.schema();
    let columns = schema.fields().iter().zip(months.columns()).zip(days.columns());
    let columns = columns.map(|((field, months), days)| Ok((field.name(), nested::join_intervals(months, days)?)));
    Ok(RecordBatch::try_from_iter(
        columns.collect::<anyhow::Result<Vec<_>>>()?,
    )?)
}

/// Says of each column's leaves, in order, whether it is a UUID. Arrow's type does not say it.
type Uuids = HashMap<String, Vec<bool>>;

fn uuids(metadata: &ParquetMetaData, schema: &Schema) -> Uuids {
    let columns = metadata.file_metadata().schema_descr().columns().iter();
    let mut leaves = columns.map(|column| matches!(column.logical_type_ref(), Some(LogicalType::Uuid)));
    let fields = schema.fields().iter();
    let of_field = |field: &Arc<Field>| {
        let own = leaves.by_ref().take(nested::leaves(field.data_type())).collect();
        (field.name().clone(), own)
    };
    fields.map(of_field).collect()
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

/// Returns the number of the first `rows` whose texts have about [`BYTES_PER_BATCH`], at least one.
fn piece(batch: &RecordBatch, rows: Range<usize>) -> usize {
    let texts: Vec<_> = batch
        .columns()
        .iter()
        .filter_map(|column| column.as_string_view_opt())
        .collect();
    let mut bytes = 0;
    let of_row = |row: usize| -> u64 {
        // The length is the lowest 32 bits of a view (Arrow columnar format, variable-size binary view layout).
        let lengths = texts.iter().map(|texts| texts.views()[row] & u128::from(u32::MAX));
        lengths.map(|length| u64::try_from(length).unwrap_or(0)).sum()
    };
    let more = rows.take_while(|row| {
        bytes += of_row(*row);
        bytes <= BYTES_PER_BATCH
    });
    more.count().max(1)
}

/// Casts the columns to the contract. A missing column is null. Of rows with long nested values only the first are
/// returned, at least one. `before` counts the rows before the batch.
fn shaped(contract: &Contract, uuids: &Uuids, batch: &RecordBatch, before: u64) -> anyhow::Result<RecordBatch> {
    let mut texts = HashMap::new();
    let mut rows = batch.num_rows();
    for field in contract.fields() {
        let Some(column) = batch.column_by_name(&field.name) else {
            continue;
        };
        if nested::is_nested(column.data_type()) {
            let problem = || format!("the column `{}` cannot be {}", field.name, field.kind.name());
            if !matches!(field.kind, FieldType::Json | FieldType::String) {
                return Err(anyhow::anyhow!(
                    "its values are lists, structs or maps, which `json` keeps"
                ))
                .with_context(problem);
            }
            let uuids = uuids.get(&field.name).map(Vec::as_slice).unwrap_or_default();
            let text = nested_texts(column, uuids, rows, before).with_context(problem)?;
            rows = text.len();
            texts.insert(&field.name, text);
        }
    }
    let batch = batch.slice(0, rows);
    let mut fields = Vec::new();
    let mut columns: Vec<ArrayRef> = Vec::new();
    for field in contract.fields() {
        let wanted = field.kind.arrow();
        let text = texts.get(&field.name);
        let column: ArrayRef = match (text, batch.column_by_name(&field.name)) {
            (Some(text), _) => Arc::new(text.slice(0, rows)),
            (None, None) => new_null_array(&wanted, rows),
            (None, Some(column)) => {
                let problem = || format!("the column `{}` cannot be {}", field.name, field.kind.name());
                let is_uuid = uuids.get(&field.name).is_some_and(|leaves| leaves.as_slice() == [true]);
                exactly(column, field.kind, is_uuid).with_context(problem)?
            }
        };
        fields.push(Field::new(&field.name, wanted, true));
        columns.push(column);
    }
    Ok(RecordBatch::try_new(Arc::new(Schema::new(fields)), columns)?)
}

/// Returns the first of `rows` nested values as JSON texts: about [`BYTES_PER_BATCH`], at least one.
fn nested_texts(column: &ArrayRef, uuids: &[bool], rows: usize, before: u64) -> anyhow::Result<StringArray> {
    let node = NestedColumn::new(column, uuids)?;
    let mut texts = StringBuilder::new();
    let (mut text, mut bytes) = (Vec::new(), 0);
    for row in 0..rows {
        if row > 0 && bytes > BYTES_PER_BATCH {
            break;
        }
        if node.is_null(row) {
            texts.append_null();
            continue;
        }
        text.clear();
        let number = before + row as u64 + 1;
        node.write(row, MOST_NESTED, &mut text)
            .with_context(|| format!("row {number}"))?;
        bytes += text.len() as u64;
        texts.append_value(std::str::from_utf8(&text)?);
    }
    Ok(texts.finish())
}

/// Casts a column, or fails if a value would change.
fn exactly(column: &ArrayRef, kind: FieldType, is_uuid: bool) -> anyhow::Result<ArrayRef> {
    if kind == FieldType::String {
        if let Some(texts) = nested::texts(column, is_uuid)? {
            return Ok(Arc::new(texts));
        }
        if column.data_type().is_binary() {
            let bytes = cast_with_options(column, &DataType::Binary, &STRICT)?;
            let no_text = "its values are bytes and no text of UTF-8; write them as Base64 or hexadecimal digits";
            return cast_with_options(&bytes, &DataType::Utf8, &STRICT).context(no_text);
        }
    }
    let column = &plain(column, kind)?;
    if let Some(texts) = column.as_string_opt::<i32>() {
        return of_texts(texts, kind);
    }
    // These casts would succeed with a meaning that the file does not state, such as the microseconds of a time.
    let is_other = match kind {
        FieldType::Boolean | FieldType::Timestamp | FieldType::Date => column.data_type().is_numeric(),
        FieldType::Integer | FieldType::Number | FieldType::Decimal(_) => {
            column.data_type().is_temporal() || column.data_type() == &DataType::Boolean
        }
        FieldType::String | FieldType::Json => false,
    };
    if is_other {
        bail!("its values are {}", column.data_type());
    }
    if let FieldType::Decimal(scale) = kind
        && column.data_type().is_floating()
    {
        return of_doubles(column, scale);
    }
    // The cast goes through the zone, so that a time without one is taken as UTC in any unit.
    let column = match column.data_type() {
        DataType::Timestamp(unit, None) => {
            let zoned = DataType::Timestamp(*unit, Some("UTC".into()));
            cast_with_options(column, &zoned, &STRICT)?
        }
        _ => Arc::clone(column),
    };
    let cast = cast_with_options(&column, &kind.arrow(), &STRICT)?;
    // The cast is checked by casting back, because casts of numbers and times truncate silently.
    if column.data_type().is_primitive() {
        let back = cast_with_options(&cast, column.data_type(), &STRICT)?;
        let kept = not_distinct(&back, &column)?;
        if let Some(row) = (0..kept.len()).find(|row| !kept.value(*row)) {
            let shown = array_value_to_string(&column, row)?;
            bail!("the conversion would change `{shown}`");
        }
    }
    match kind {
        FieldType::Number => {
            let numbers = cast.as_primitive::<Float64Type>();
            // JSON has no NaN and no infinities (RFC 8259 section 6).
            if let Some(number) = numbers.iter().flatten().find(|number| !number.is_finite()) {
                bail!("`{number}` is no number of JSON");
            }
            Ok(cast)
        }
        FieldType::Json => of_texts(cast.as_string(), kind),
        FieldType::String
        | FieldType::Integer
        | FieldType::Boolean
        | FieldType::Timestamp
        | FieldType::Date
        | FieldType::Decimal(_) => Ok(cast),
    }
}

/// Returns the same values in a plainer type: one kind of texts, no dictionaries, and no negative zero where integers
/// are wanted.
fn plain(column: &ArrayRef, kind: FieldType) -> anyhow::Result<ArrayRef> {
    let values = match column.data_type() {
        DataType::Dictionary(_, values) => cast_with_options(column, values, &STRICT)?,
        _ => Arc::clone(column),
    };
    Ok(match values.data_type() {
        DataType::LargeUtf8 | DataType::Utf8View => cast_with_options(&values, &DataType::Utf8, &STRICT)?,
        floating if floating.is_floating() && kind == FieldType::Integer => {
            let doubles = cast_with_options(&values, &DataType::Float64, &STRICT)?;
            Arc::new(
                doubles
                    .as_primitive::<Float64Type>()
                    // Adding 0.0 turns -0.0 into 0.0, which would otherwise fail the check of casting back.
                    .unary::<_, Float64Type>(|double| double + 0.0),
            )
        }
        _ => values,
    })
}

/// Converts doubles to decimals like numbers of JSON: each is the shortest decimal of its double, of few digits.
fn of_doubles(column: &ArrayRef, scale: u8) -> anyhow::Result<ArrayRef> {
    // The shortest decimal of a float of 32 bits is another than that of the double that it is widened to.
    let texts: Vec<Option<String>> = if column.data_type() == &DataType::Float64 {
        let doubles = column.as_primitive::<Float64Type>().iter();
        doubles.map(|double| double.map(|double| double.to_string())).collect()
    } else {
        let floats = cast_with_options(column, &DataType::Float32, &STRICT)?;
        let floats = floats.as_primitive::<Float32Type>().iter();
        floats.map(|float| float.map(|float| float.to_string())).collect()
    };
    let read = |text: Option<String>| {
        let read = |text: String| {
            let shown = || format!("`{text}` is no decimal of the field");
            let number: serde_json::Number = text.parse().with_context(shown)?;
            decimal::of_number(&number, scale).with_context(shown)
        };
        text.map(read).transpose()
    };
    let units = texts
        .into_iter()
        .map(read)
        .collect::<anyhow::Result<Decimal128Array>>()?;
    Ok(Arc::new(units.with_data_type(FieldType::Decimal(scale).arrow())))
}

/// Parses a column of texts as a type, with the rules for cells of CSV.
fn of_texts(texts: &StringArray, kind: FieldType) -> anyhow::Result<ArrayRef> {
    fn each<T, A: FromIterator<Option<T>>>(
        texts: &StringArray,
        read: impl Fn(&str) -> anyhow::Result<T>,
    ) -> anyhow::Result<A> {
        let read = |text: &str| read(text).with_context(|| format!("`{}`", shown(text)));
        texts.iter().map(|text| text.map(read).transpose()).collect()
    }
    Ok(match kind {
        FieldType::String => Arc::new(texts.clone()),
        FieldType::Integer => Arc::new(each::<_, Int64Array>(texts, integer)?),
        FieldType::Number => Arc::new(each::<_, Float64Array>(texts, double)?),
        FieldType::Boolean => Arc::new(each::<_, BooleanArray>(texts, boolean)?),
        FieldType::Timestamp => {
            let micros: TimestampMicrosecondArray = each(texts, |text| Ok(text.parse::<Timestamp>()?.micros()))?;
            Arc::new(micros.with_timezone("UTC"))
        }
        FieldType::Date => Arc::new(each::<_, Date32Array>(texts, |text| Ok(text.parse::<Date>()?.days()))?),
        FieldType::Decimal(scale) => {
            let read = |text: &str| Ok(decimal::parse(number(text)?.as_bytes(), scale)?);
            Arc::new(each::<_, Decimal128Array>(texts, read)?.with_data_type(kind.arrow()))
        }
        FieldType::Json => {
            let compact = |text: &str| Ok(compact(text)?.into_owned());
            Arc::new(each::<_, StringArray>(texts, compact)?)
        }
    })
}

#[cfg(test)]
pub(super) mod tests;

//! Conversion of table values into JSON values by the contract of the project, and of Parquet files into JSON Lines.
//!
//! Invariant: a value keeps its meaning in the type of its field, or the file is refused.

use std::collections::HashSet;
use std::io::Write;

use anyhow::{Context, bail};
use arrow::array::{
    Array as _, ArrayRef, AsArray as _, BooleanArray, Float64Array, Int64Array, RecordBatch, StringArray,
    TimestampMicrosecondArray, new_null_array,
};
use arrow::compute::kernels::cmp::not_distinct;
use arrow::compute::{CastOptions, cast_with_options};
use arrow::datatypes::{DataType, Field, Float64Type, Schema, SchemaRef};
use arrow::util::display::array_value_to_string;
use parquet::arrow::arrow_reader::{ArrowReaderMetadata, ArrowReaderOptions, ParquetRecordBatchReaderBuilder};
use parquet::file::metadata::ParquetMetaData;
use serde_json::Number;
use std::fs::File;
use std::ops::Range;
use std::sync::Arc;
use types::render::lines::Lines;
use types::{Contract, FieldType, Timestamp, json};

/// The most rows that are read at once.
const ROWS_PER_BATCH: u64 = 8_192;
/// About the most bytes that are read and converted at once. One row may have more.
const BYTES_PER_BATCH: u64 = 16 << 20;

/// Returns the type of a column's field, or `None` if the contract allows the column as an extra member.
pub(super) fn kind_of(contract: &Contract, name: &str) -> anyhow::Result<Option<FieldType>> {
    match contract.fields().iter().find(|field| field.name == name) {
        Some(field) => Ok(Some(field.kind)),
        None if contract.allow_extra() => Ok(None),
        None => {
            let fields: Vec<&str> = contract.fields().iter().map(|field| field.name.as_str()).collect();
            bail!(
                "the column `{name}` is no field of the project; its fields are {}",
                fields.join(", ")
            )
        }
    }
}

pub(super) fn integer(cell: &str) -> anyhow::Result<i64> {
    cell.parse().context("it is no integer of 64 bits")
}

/// Parses a number and keeps integers exact, so that the service detects one that a double would round.
pub(super) fn number(cell: &str) -> anyhow::Result<Number> {
    let integer = cell.parse::<i64>().map(Number::from);
    let integer = integer.or_else(|_| cell.parse::<u64>().map(Number::from));
    if let Ok(integer) = integer {
        return Ok(integer);
    }
    cell.parse().ok().and_then(Number::from_f64).context("it is no number")
}

pub(super) fn boolean(cell: &str) -> anyhow::Result<bool> {
    match cell {
        "true" | "TRUE" | "True" | "1" => Ok(true),
        "false" | "FALSE" | "False" | "0" => Ok(false),
        _ => bail!("it is neither true nor false"),
    }
}

/// Writes the records of a Parquet file as JSON Lines.
pub(super) fn parquet(file: File, contract: &Contract, out: &mut impl Write) -> anyhow::Result<()> {
    let metadata = ArrowReaderMetadata::load(&file, ArrowReaderOptions::new())?;
    let mut seen = HashSet::new();
    for field in metadata.schema().fields() {
        // Arrow finds a column by its first name only, so the second one would be lost silently.
        if !seen.insert(field.name()) {
            bail!("two columns are called `{}`", field.name());
        }
        // Extra members have no type to convert to.
        if kind_of(contract, field.name())?.is_none() {
            bail!("the column `{}` is no field of the project; leave it out", field.name());
        }
    }
    let options = ArrowReaderOptions::new().with_schema(shared_texts(metadata.schema()));
    let rows = rows_at_once(metadata.metadata());
    let metadata = ArrowReaderMetadata::try_new(Arc::clone(metadata.metadata()), options)?;
    let mut text = Vec::new();
    for batch in ParquetRecordBatchReaderBuilder::new_with_metadata(file, metadata)
        .with_batch_size(rows)
        .build()?
    {
        let batch = batch?;
        // A few texts of a dictionary may fill many rows, so a batch is cut again by the bytes of its texts.
        let mut rest = 0..batch.num_rows();
        while !rest.is_empty() {
            let piece = batch.slice(rest.start, piece(&batch, rest.clone()));
            rest.start += piece.num_rows();
            let piece = shaped(contract, &piece)?;
            let lines = Lines::new(contract, &piece)?;
            // The buffer is reused for every piece.
            text.clear();
            lines.write(0..lines.len(), &mut text);
            out.write_all(&text)?;
        }
    }
    Ok(())
}

/// Replaces texts by views of shared bytes: a dictionary's text that many rows have is in memory once.
fn shared_texts(schema: &Schema) -> SchemaRef {
    let fields = schema.fields().iter().map(|field| {
        let values = match field.data_type() {
            DataType::Dictionary(_, values) => values,
            plain => plain,
        };
        match values {
            DataType::Utf8 | DataType::LargeUtf8 => Arc::new(field.as_ref().clone().with_data_type(DataType::Utf8View)),
            _ => Arc::clone(field),
        }
    });
    Arc::new(Schema::new_with_metadata(
        fields.collect::<Vec<_>>(),
        schema.metadata().clone(),
    ))
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

/// Casts the columns to the contract. A missing column is null.
fn shaped(contract: &Contract, batch: &RecordBatch) -> anyhow::Result<RecordBatch> {
    let mut fields = Vec::new();
    let mut columns: Vec<ArrayRef> = Vec::new();
    for field in contract.fields() {
        let wanted = field.kind.arrow();
        let column = match batch.column_by_name(&field.name) {
            None => new_null_array(&wanted, batch.num_rows()),
            Some(column) => {
                let problem = || format!("the column `{}` cannot be {}", field.name, field.kind.name());
                exactly(column, field.kind).with_context(problem)?
            }
        };
        fields.push(Field::new(&field.name, wanted, true));
        columns.push(column);
    }
    Ok(RecordBatch::try_new(Arc::new(Schema::new(fields)), columns)?)
}

/// Casts a column, or fails if a value would change.
fn exactly(column: &ArrayRef, kind: FieldType) -> anyhow::Result<ArrayRef> {
    let strict = CastOptions {
        safe: false,
        ..CastOptions::default()
    };
    let column = &plain(column, kind, &strict)?;
    if let Some(texts) = column.as_string_opt::<i32>() {
        return of_texts(texts, kind);
    }
    let is_number = column.data_type().is_numeric();
    // A cast of numbers to times or booleans would succeed with a meaning that the file does not state.
    if is_number && matches!(kind, FieldType::Boolean | FieldType::Timestamp) {
        bail!("its values are {}", column.data_type());
    }
    // The cast goes through the zone, so that a time without one is taken as UTC in any unit.
    let column = match column.data_type() {
        DataType::Timestamp(unit, None) => {
            let zoned = DataType::Timestamp(*unit, Some("UTC".into()));
            cast_with_options(column, &zoned, &strict)?
        }
        _ => Arc::clone(column),
    };
    let cast = cast_with_options(&column, &kind.arrow(), &strict)?;
    // The cast is checked by casting back, because casts of numbers and times truncate silently.
    if column.data_type().is_primitive() {
        let back = cast_with_options(&cast, column.data_type(), &strict)?;
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
        _ => Ok(cast),
    }
}

/// Returns the same values in a plainer type: one kind of texts, no dictionaries, and no negative zero where integers
/// are wanted.
fn plain(column: &ArrayRef, kind: FieldType, strict: &CastOptions<'_>) -> anyhow::Result<ArrayRef> {
    let values = match column.data_type() {
        DataType::Dictionary(_, values) => cast_with_options(column, values, strict)?,
        _ => Arc::clone(column),
    };
    Ok(match values.data_type() {
        DataType::LargeUtf8 | DataType::Utf8View => cast_with_options(&values, &DataType::Utf8, strict)?,
        floating if floating.is_floating() && kind == FieldType::Integer => {
            let doubles = cast_with_options(&values, &DataType::Float64, strict)?;
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

/// Parses a column of texts as a type, with the rules for cells of CSV.
fn of_texts(texts: &StringArray, kind: FieldType) -> anyhow::Result<ArrayRef> {
    fn each<T, A: FromIterator<Option<T>>>(
        texts: &StringArray,
        read: impl Fn(&str) -> anyhow::Result<T>,
    ) -> anyhow::Result<A> {
        let read = |text: &str| read(text).with_context(|| format!("`{text}`"));
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
        FieldType::Json => {
            let compact = |text: &str| Ok(json::parse(text.as_bytes()).context("it is not JSON")?.to_string());
            Arc::new(each::<_, StringArray>(texts, compact)?)
        }
    })
}

/// Parses a number as a double and fails if the double has another value.
fn double(cell: &str) -> anyhow::Result<f64> {
    let number = number(cell)?;
    let integer = number
        .as_i64()
        .map(i128::from)
        .or_else(|| number.as_u64().map(i128::from));
    let double = number.as_f64().context("it is no number")?;
    #[expect(clippy::cast_possible_truncation, reason = "what a double of at most 2^64 says")]
    if integer.is_some_and(|integer| double as i128 != integer) {
        bail!("the conversion would round it");
    }
    Ok(double)
}

#[cfg(test)]
pub(super) mod tests {
    use arrow::array::{
        DictionaryArray, Float32Array, Int32Array, LargeStringArray, StringViewArray, TimestampMillisecondArray,
        TimestampNanosecondArray,
    };
    use arrow::datatypes::Int32Type;
    use parquet::arrow::ArrowWriter;
    use serde_json::{Value, json};

    use super::*;

    pub(in crate::push) fn contract(extra: bool) -> Contract {
        serde_json::from_value(json!({"fields": [
            {"name": "name", "type": "string", "required": true},
            {"name": "count", "type": "integer"},
            {"name": "ratio", "type": "number"},
            {"name": "good", "type": "boolean"},
            {"name": "at", "type": "timestamp"},
            {"name": "more", "type": "json"}
        ], "allowExtra": extra}))
        .unwrap()
    }

    #[test]
    fn a_parquet_file_whose_values_would_be_others_is_refused() {
        let contract = contract(false);
        let dictionary = |values: ArrayRef| {
            let keys = Int32Array::from(vec![Some(0), None]);
            Arc::new(DictionaryArray::<Int32Type>::try_new(keys, values).unwrap()) as ArrayRef
        };
        let texts = |text: &str| Arc::new(StringArray::from(vec![None, Some(text)])) as ArrayRef;
        let wrong: [(&str, ArrayRef, &str); 18] = [
            ("count", Arc::new(Float64Array::from(vec![1.0, 1.9])), "`1.9`"),
            (
                "ratio",
                Arc::new(Int64Array::from(vec![(1 << 53) + 1])),
                "9007199254740993",
            ),
            ("ratio", Arc::new(Float64Array::from(vec![f64::NAN])), "NaN"),
            ("good", Arc::new(Int64Array::from(vec![7])), "Int64"),
            ("at", Arc::new(Int64Array::from(vec![1_700_000_000])), "Int64"),
            ("at", Arc::new(TimestampNanosecondArray::from(vec![1])), "would change"),
            ("more", Arc::new(StringArray::from(vec!["{"])), "not JSON"),
            ("at", texts("2026-11-21T07:10:20.123456789Z"), "microsecond"),
            ("at", texts("2026-11-21T07:10:60Z"), "RFC 3339"),
            ("at", texts("2026-11-21"), "RFC 3339"),
            ("ratio", texts("9007199254740993"), "would round it"),
            ("ratio", texts("18446744073709551615"), "would round it"),
            ("ratio", texts("inf"), "no number"),
            ("count", texts("1.0"), "no integer"),
            ("good", texts("yes"), "neither"),
            ("count", dictionary(Arc::new(Float64Array::from(vec![1.9]))), "`1.9`"),
            (
                "at",
                dictionary(Arc::new(TimestampNanosecondArray::from(vec![1]))),
                "would change",
            ),
            ("count", Arc::new(StringViewArray::from(vec!["x"])), "no integer"),
        ];
        for (name, column, words) in wrong {
            let batch = RecordBatch::try_from_iter([(name, column)]).unwrap();
            let error = format!("{:#}", shaped(&contract, &batch).unwrap_err());
            assert!(error.contains(words) && error.contains(name), "{error}");
        }
        let right: [(&str, ArrayRef); 5] = [
            ("name", dictionary(Arc::new(StringArray::from(vec!["a"])))),
            ("count", Arc::new(Float64Array::from(vec![Some(-0.0), None]))),
            ("ratio", Arc::new(Int64Array::from(vec![Some(3), None]))),
            (
                "at",
                Arc::new(LargeStringArray::from(vec![Some("2026-11-21T16:10:20+09:00"), None])),
            ),
            (
                "more",
                Arc::new(StringArray::from(vec![Some("{\n \"x\": [1]\n}"), None])),
            ),
        ];
        let batch = RecordBatch::try_from_iter(right).unwrap();
        let batch = shaped(&contract, &batch).unwrap();
        let lines = Lines::new(&contract, &batch).unwrap();
        let mut line = Vec::new();
        lines.write(0..1, &mut line);
        let expected = json!({
            "name": "a", "count": 0, "ratio": 3.0, "good": null, "at": "2026-11-21T07:10:20Z", "more": {"x": [1]},
        });
        assert_eq!(serde_json::from_slice::<Value>(&line).unwrap(), expected);
        assert!(!line[..line.len() - 1].contains(&b'\n'), "it is one line");
    }

    #[test]
    fn a_parquet_file_of_other_types_is_cast() {
        let schema = Arc::new(Schema::new(vec![
            Field::new("count", DataType::Int32, true),
            Field::new("name", DataType::Utf8, false),
            Field::new("ratio", DataType::Float32, true),
            Field::new(
                "at",
                DataType::Timestamp(arrow::datatypes::TimeUnit::Millisecond, None),
                true,
            ),
        ]));
        let batch = RecordBatch::try_new(
            Arc::clone(&schema),
            vec![
                Arc::new(Int32Array::from(vec![Some(1), None])),
                Arc::new(StringArray::from(vec!["a", "b"])),
                Arc::new(Float32Array::from(vec![Some(0.5), None])),
                Arc::new(TimestampMillisecondArray::from(vec![Some(1_500), None])),
            ],
        )
        .unwrap();
        let file = tempfile::tempfile().unwrap();
        let mut writer = ArrowWriter::try_new(file.try_clone().unwrap(), schema, None).unwrap();
        writer.write(&batch).unwrap();
        writer.close().unwrap();
        let mut out = Vec::new();
        parquet(file, &contract(false), &mut out).unwrap();
        let mut lines = out.split(|byte| *byte == b'\n');
        let record: Value = serde_json::from_slice(lines.next().unwrap()).unwrap();
        let expected =
            json!({"name": "a", "count": 1, "ratio": 0.5, "good": null, "at": "1970-01-01T00:00:01.5Z", "more": null});
        assert_eq!(record, expected);
    }

    fn written(batch: &RecordBatch, times: usize) -> File {
        let file = tempfile::tempfile().unwrap();
        let mut writer = ArrowWriter::try_new(file.try_clone().unwrap(), batch.schema(), None).unwrap();
        for _ in 0..times {
            writer.write(batch).unwrap();
        }
        writer.close().unwrap();
        file
    }

    #[test]
    fn a_parquet_file_with_a_name_twice_is_refused() {
        let column = || Arc::new(StringArray::from(vec!["a"])) as ArrayRef;
        let field = |name: &str| Field::new(name, DataType::Utf8, true);
        let schema = Schema::new(vec![field("name"), field("more"), field("name")]);
        let batch = RecordBatch::try_new(Arc::new(schema), vec![column(), column(), column()]).unwrap();
        let error = parquet(written(&batch, 1), &contract(false), &mut Vec::new()).unwrap_err();
        assert_eq!(error.to_string(), "two columns are called `name`");
    }

    /// Counts what is written.
    #[derive(Default)]
    struct Counted {
        bytes: usize,
        most: usize,
    }

    impl Write for Counted {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.bytes += bytes.len();
            self.most = self.most.max(bytes.len());
            Ok(bytes.len())
        }

        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn texts_of_a_megabyte_a_row_are_converted_some_at_a_time() {
        const TEXT: usize = 1 << 20;
        const TEXT_ROWS: usize = 2_100;
        let text = "x".repeat(TEXT);
        let names: ArrayRef = Arc::new(StringArray::from(vec![text.as_str(); 100]));
        let batch = RecordBatch::try_from_iter([("name", names)]).unwrap();
        let mut counted = Counted::default();
        parquet(written(&batch, TEXT_ROWS / 100), &contract(false), &mut counted).unwrap();
        assert!(counted.bytes > TEXT_ROWS * TEXT, "{} bytes", counted.bytes);
        assert!(
            counted.most as u64 <= 2 * BYTES_PER_BATCH,
            "{} bytes at once",
            counted.most
        );
    }
}

//! Tables as JSON records, by the contract of the project they go to.
//!
//! Invariant: a cell becomes what its field's type says or the file is refused with the row and the column; an empty
//! cell and a null are no member.

use std::io::{Read, Write};

use anyhow::{Context, bail};
use arrow::array::{
    Array as _, ArrayRef, AsArray as _, BooleanArray, Float64Array, Int64Array, RecordBatch, StringArray,
    TimestampMicrosecondArray, new_null_array,
};
use arrow::compute::kernels::cmp::not_distinct;
use arrow::compute::{CastOptions, cast_with_options};
use arrow::datatypes::{DataType, Field, Float64Type, Schema};
use arrow::util::display::array_value_to_string;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use serde_json::{Map, Number, Value};
use std::fs::File;
use std::sync::Arc;
use types::render::lines::Lines;
use types::{Contract, FieldType, Timestamp, json};

/// How many rows are converted at once.
const ROWS: usize = 8_192;

/// The records of a CSV file whose first line names the fields.
pub(super) fn csv(input: impl Read, contract: &Contract, out: &mut impl Write) -> anyhow::Result<()> {
    let mut reader = csv::ReaderBuilder::new().from_reader(input);
    let names: Vec<String> = reader
        .headers()?
        .iter()
        .map(|name| name.trim_start_matches('\u{feff}').to_owned())
        .collect();
    if let Some(name) = names.iter().enumerate().find(|(at, name)| names[..*at].contains(name)) {
        bail!("two columns are called `{}`", name.1);
    }
    let kinds: Vec<Option<FieldType>> = names
        .iter()
        .map(|name| kind_of(contract, name))
        .collect::<Result<_, _>>()?;
    let mut line = Vec::new();
    for (row, record) in reader.records().enumerate() {
        let record = record?;
        let mut members = Map::new();
        for ((name, kind), cell) in names.iter().zip(&kinds).zip(&record) {
            if !cell.is_empty() {
                let value = value(cell, *kind).with_context(|| {
                    let row = record.position().map_or(row as u64 + 2, csv::Position::line);
                    format!("line {row}, column `{name}`")
                })?;
                members.insert(name.clone(), value);
            }
        }
        line.clear();
        serde_json::to_writer(&mut line, &members)?;
        line.push(b'\n');
        out.write_all(&line)?;
    }
    Ok(())
}

/// The type of a column's field; none of an extra one.
fn kind_of(contract: &Contract, name: &str) -> anyhow::Result<Option<FieldType>> {
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

fn value(cell: &str, kind: Option<FieldType>) -> anyhow::Result<Value> {
    Ok(match kind {
        Some(FieldType::Integer) => integer(cell)?.into(),
        Some(FieldType::Number) => Value::Number(number(cell)?),
        Some(FieldType::Boolean) => boolean(cell)?.into(),
        Some(FieldType::Json) => json::parse(cell.as_bytes()).context("it is not JSON")?,
        Some(FieldType::String | FieldType::Timestamp) | None => cell.into(),
    })
}

fn integer(cell: &str) -> anyhow::Result<i64> {
    cell.parse().context("it is no integer of 64 bits")
}

/// An integer as one, so that who takes the record sees when a double would round it.
fn number(cell: &str) -> anyhow::Result<Number> {
    let integer = cell.parse::<i64>().map(Number::from);
    let integer = integer.or_else(|_| cell.parse::<u64>().map(Number::from));
    if let Ok(integer) = integer {
        return Ok(integer);
    }
    cell.parse().ok().and_then(Number::from_f64).context("it is no number")
}

fn boolean(cell: &str) -> anyhow::Result<bool> {
    match cell {
        "true" | "TRUE" | "True" | "1" => Ok(true),
        "false" | "FALSE" | "False" | "0" => Ok(false),
        _ => bail!("it is neither true nor false"),
    }
}

/// The records of a Parquet file.
pub(super) fn parquet(file: File, contract: &Contract, out: &mut impl Write) -> anyhow::Result<()> {
    let builder = ParquetRecordBatchReaderBuilder::try_new(file)?;
    for field in builder.schema().fields() {
        if kind_of(contract, field.name())?.is_none() {
            bail!("the column `{}` is no field of the project; leave it out", field.name());
        }
    }
    let mut text = Vec::new();
    for batch in builder.with_batch_size(ROWS).build()? {
        let batch = shaped(contract, &batch?)?;
        let lines = Lines::new(contract, &batch)?;
        text.clear();
        lines.write(0..lines.len(), &mut text);
        out.write_all(&text)?;
    }
    Ok(())
}

/// The columns of the contract; those that a file does not have are null.
fn shaped(contract: &Contract, batch: &RecordBatch) -> anyhow::Result<RecordBatch> {
    let mut fields = Vec::new();
    let mut columns: Vec<ArrayRef> = Vec::new();
    for field in contract.fields() {
        let wanted = field.kind.arrow();
        let column = match batch.column_by_name(&field.name) {
            None => new_null_array(&wanted, batch.num_rows()),
            Some(column) => {
                let told = || format!("the column `{}` cannot be {}", field.name, field.kind.name());
                exactly(column, field.kind).with_context(told)?
            }
        };
        fields.push(Field::new(&field.name, wanted, true));
        columns.push(column);
    }
    Ok(RecordBatch::try_new(Arc::new(Schema::new(fields)), columns)?)
}

/// A column as a type, if every value of it is one of that type.
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
    if is_number && matches!(kind, FieldType::Boolean | FieldType::Timestamp) {
        bail!("its values are {}", column.data_type());
    }
    // Why through the zone: a time without one is taken as UTC, whatever its unit.
    let column = match column.data_type() {
        DataType::Timestamp(unit, None) => {
            let zoned = DataType::Timestamp(*unit, Some("UTC".into()));
            cast_with_options(column, &zoned, &strict)?
        }
        _ => Arc::clone(column),
    };
    let cast = cast_with_options(&column, &kind.arrow(), &strict)?;
    // Why back again: a cast of numbers and times cuts off what does not fit, and says nothing of it.
    if column.data_type().is_primitive() {
        let back = cast_with_options(&cast, column.data_type(), &strict)?;
        let kept = not_distinct(&back, &column)?;
        if let Some(row) = (0..kept.len()).find(|row| !kept.value(*row)) {
            let shown = array_value_to_string(&column, row)?;
            bail!("`{shown}` would be another value");
        }
    }
    match kind {
        FieldType::Number => {
            let numbers = cast.as_primitive::<Float64Type>();
            if let Some(number) = numbers.iter().flatten().find(|number| !number.is_finite()) {
                bail!("`{number}` is no number of JSON");
            }
            Ok(cast)
        }
        FieldType::Json => of_texts(cast.as_string(), kind),
        _ => Ok(cast),
    }
}

/// The same values in a type that says no less of them: texts of one kind, no dictionaries, and no zero below zero where
/// integers are wanted.
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
                    .unary::<_, Float64Type>(|double| double + 0.0),
            )
        }
        _ => values,
    })
}

/// A column of texts as a type: each as a cell of CSV is read.
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

/// A number as a double, which has to have its value.
fn double(cell: &str) -> anyhow::Result<f64> {
    let number = number(cell)?;
    let integer = number
        .as_i64()
        .map(i128::from)
        .or_else(|| number.as_u64().map(i128::from));
    let double = number.as_f64().context("it is no number")?;
    #[expect(clippy::cast_possible_truncation, reason = "what a double of at most 2^64 says")]
    if integer.is_some_and(|integer| double as i128 != integer) {
        bail!("it would be rounded");
    }
    Ok(double)
}

#[cfg(test)]
mod tests {
    use arrow::array::{
        DictionaryArray, Float32Array, Int32Array, LargeStringArray, StringViewArray, TimestampMillisecondArray,
        TimestampNanosecondArray,
    };
    use arrow::datatypes::Int32Type;
    use parquet::arrow::ArrowWriter;
    use serde_json::json;

    use super::*;

    fn contract(extra: bool) -> Contract {
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

    fn converted(text: &str, extra: bool) -> anyhow::Result<Vec<Value>> {
        let mut out = Vec::new();
        csv(text.as_bytes(), &contract(extra), &mut out)?;
        let lines = out.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
        Ok(lines.map(|line| serde_json::from_slice(line).unwrap()).collect())
    }

    #[test]
    fn cells_become_what_their_fields_say() {
        let text = "\u{feff}count,name,ratio,good,at,more\r\n\
                    7,\"a, \"\"b\"\"\nc\",2,true,2026-11-21T07:00:00Z,\"{\"\"x\"\":[1]}\"\r\n,d,0.5,0,,\r\n";
        let expected = [
            json!({"name": "a, \"b\"\nc", "count": 7, "ratio": 2, "good": true, "at": "2026-11-21T07:00:00Z", "more": {"x": [1]}}),
            json!({"name": "d", "ratio": 0.5, "good": false}),
        ];
        assert_eq!(converted(text, false).unwrap(), expected);
        assert_eq!(
            converted("name,other\na,1\n", true).unwrap(),
            [json!({"name": "a", "other": "1"})]
        );
    }

    #[test]
    fn a_cell_that_does_not_fit_is_named() {
        for (text, words) in [
            ("name,count\na,1\nb,1.5\n", "line 3, column `count`"),
            ("name,ratio\na,much\n", "line 2, column `ratio`"),
            ("name,good\na,yes\n", "line 2, column `good`"),
            ("name,more\na,{\n", "line 2, column `more`"),
            ("name,other\na,b\n", "the column `other` is no field"),
            ("name,count,name\na,1,b\n", "two columns are called `name`"),
        ] {
            let error = format!("{:#}", converted(text, false).unwrap_err());
            assert!(error.contains(words), "{error}");
        }
        assert!(converted("name,count\na\n", false).is_err(), "a row is too short");
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
            ("at", Arc::new(TimestampNanosecondArray::from(vec![1])), "another value"),
            ("more", Arc::new(StringArray::from(vec!["{"])), "not JSON"),
            ("at", texts("2026-11-21T07:10:20.123456789Z"), "microsecond"),
            ("at", texts("2026-11-21T07:10:60Z"), "RFC 3339"),
            ("at", texts("2026-11-21"), "RFC 3339"),
            ("ratio", texts("9007199254740993"), "rounded"),
            ("ratio", texts("18446744073709551615"), "rounded"),
            ("ratio", texts("inf"), "no number"),
            ("count", texts("1.0"), "no integer"),
            ("good", texts("yes"), "neither"),
            ("count", dictionary(Arc::new(Float64Array::from(vec![1.9]))), "`1.9`"),
            (
                "at",
                dictionary(Arc::new(TimestampNanosecondArray::from(vec![1]))),
                "another value",
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
}

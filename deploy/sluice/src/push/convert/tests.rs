use arrow::array::{
    Date32Array, DictionaryArray, Float32Array, Int32Array, LargeStringArray, StringViewArray,
    TimestampMillisecondArray, TimestampNanosecondArray,
};
use arrow::datatypes::Int32Type;
use data_encoding::BASE64;
use parquet::arrow::arrow_writer::ArrowWriterOptions;
use parquet::arrow::{ARROW_SCHEMA_META_KEY, ArrowWriter, encode_arrow_schema};
use parquet::file::metadata::KeyValue;
use parquet::file::properties::WriterProperties;
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
    let wrong: [(&str, ArrayRef, &str); 24] = [
        ("ratio", texts("1000000000000000000001"), "would round it"),
        ("ratio", texts("0.12345678901234567891"), "would round it"),
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
        ("count", Arc::new(TimestampNanosecondArray::from(vec![1])), "Timestamp"),
        ("ratio", Arc::new(TimestampMillisecondArray::from(vec![1])), "Timestamp"),
        ("ratio", Arc::new(Date32Array::from(vec![1])), "Date32"),
        ("count", Arc::new(BooleanArray::from(vec![true])), "Boolean"),
    ];
    for (name, column, words) in wrong {
        let batch = RecordBatch::try_from_iter([(name, column)]).unwrap();
        let error = format!("{:#}", shaped(&contract, &Uuids::new(), &batch, 0).unwrap_err());
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
    let batch = shaped(&contract, &Uuids::new(), &batch, 0).unwrap();
    let lines = RenderedLines::new(&contract, &batch).unwrap();
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
    parquet(&file, &contract(false), &mut out).unwrap();
    let mut lines = out.split(|byte| *byte == b'\n');
    let record: Value = serde_json::from_slice(lines.next().unwrap()).unwrap();
    let expected =
        json!({"name": "a", "count": 1, "ratio": 0.5, "good": null, "at": "1970-01-01T00:00:01.5Z", "more": null});
    assert_eq!(record, expected);
}

#[test]
fn days_and_decimals_are_sent_exactly_or_refused() {
    let contract: Contract = serde_json::from_value(json!({"fields": [
        {"name": "day", "type": "date"}, {"name": "price", "type": "decimal", "scale": 2},
    ]}))
    .unwrap();
    let sent = |name: &str, column: ArrayRef| {
        let batch = RecordBatch::try_from_iter_with_nullable([(name, column, true)]).unwrap();
        let mut out = Vec::new();
        parquet(&written(&batch, 1), &contract, &mut out).map_err(|error| format!("{error:#}"))?;
        let record: Value = serde_json::from_slice(out.split(|byte| *byte == b'\n').next().unwrap()).unwrap();
        Ok::<_, String>(record[name].clone())
    };
    let decimals = |units: i128, scale: i8| -> ArrayRef {
        let column = Decimal128Array::from(vec![units]).with_precision_and_scale(38, scale);
        Arc::new(column.unwrap())
    };
    let midnight = 18_321 * 86_400_000_i64;
    for (name, column, expected) in [
        (
            "day",
            Arc::new(Date32Array::from(vec![18_321])) as ArrayRef,
            json!("2020-02-29"),
        ),
        (
            "day",
            Arc::new(StringArray::from(vec!["2020-02-29"])),
            json!("2020-02-29"),
        ),
        (
            "day",
            Arc::new(TimestampMillisecondArray::from(vec![midnight])),
            json!("2020-02-29"),
        ),
        ("price", decimals(12_500, 3), json!("12.50")),
        ("price", decimals(7, 0), json!("7.00")),
        ("price", Arc::new(Int32Array::from(vec![-7])), json!("-7.00")),
        ("price", Arc::new(Float64Array::from(vec![0.1])), json!("0.10")),
        ("price", Arc::new(Float32Array::from(vec![0.1])), json!("0.10")),
        ("price", Arc::new(StringArray::from(vec!["12.5"])), json!("12.50")),
    ] {
        assert_eq!(sent(name, column), Ok(expected));
    }
    for (name, column) in [
        ("day", Arc::new(Int32Array::from(vec![18_321])) as ArrayRef),
        ("day", Arc::new(TimestampMillisecondArray::from(vec![midnight + 1]))),
        ("day", Arc::new(StringArray::from(vec!["2021-02-29"]))),
        ("price", decimals(12_345, 3)),
        ("price", decimals(10_i128.pow(30), 0)),
        ("price", Arc::new(Float64Array::from(vec![0.1 + 0.2]))),
        ("price", Arc::new(Float64Array::from(vec![f64::NAN]))),
        ("price", Arc::new(Date32Array::from(vec![1]))),
        ("price", Arc::new(BooleanArray::from(vec![true]))),
    ] {
        let kind = column.data_type().clone();
        let refused = sent(name, column).unwrap_err();
        assert!(refused.contains(name), "{kind}: {refused}");
    }
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

/// Polars writes its integers of 128 bits as bytes, and their type into Arrow's schema alone.
#[test]
fn a_parquet_file_with_a_type_that_no_reader_knows_is_refused() {
    let batch = RecordBatch::try_from_iter([("count", Arc::new(Int64Array::from(vec![1])) as ArrayRef)]).unwrap();
    let mut schema = BASE64.decode(encode_arrow_schema(&batch.schema()).as_bytes()).unwrap();
    let widths: Vec<usize> = (0..schema.len() - 3)
        .filter(|at| schema[*at..*at + 4] == 64_i32.to_le_bytes())
        .collect();
    let [width] = widths[..] else { panic!("{widths:?}") };
    schema[width..width + 4].copy_from_slice(&128_i32.to_le_bytes());
    let key = KeyValue::new(ARROW_SCHEMA_META_KEY.to_owned(), BASE64.encode(&schema));
    let properties = WriterProperties::builder()
        .set_key_value_metadata(Some(vec![key]))
        .build();
    let options = ArrowWriterOptions::new()
        .with_properties(properties)
        .with_skip_arrow_metadata(true);
    let file = tempfile::tempfile().unwrap();
    let mut writer = ArrowWriter::try_new_with_options(file.try_clone().unwrap(), batch.schema(), options).unwrap();
    writer.write(&batch).unwrap();
    writer.close().unwrap();
    let error = parquet(&file, &contract(false), &mut Vec::new())
        .unwrap_err()
        .to_string();
    assert!(
        error.contains("bit width of 128") && error.contains("decimal"),
        "{error}"
    );
}

#[test]
fn a_parquet_file_with_a_name_twice_is_refused() {
    let column = || Arc::new(StringArray::from(vec!["a"])) as ArrayRef;
    let field = |name: &str| Field::new(name, DataType::Utf8, true);
    let schema = Schema::new(vec![field("name"), field("more"), field("name")]);
    let batch = RecordBatch::try_new(Arc::new(schema), vec![column(), column(), column()]).unwrap();
    let error = parquet(&written(&batch, 1), &contract(false), &mut Vec::new()).unwrap_err();
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
    parquet(&written(&batch, TEXT_ROWS / 100), &contract(false), &mut counted).unwrap();
    assert!(counted.bytes > TEXT_ROWS * TEXT, "{} bytes", counted.bytes);
    assert!(
        counted.most as u64 <= 2 * BYTES_PER_BATCH,
        "{} bytes at once",
        counted.most
    );
}

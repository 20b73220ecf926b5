use std::sync::Arc;

use arrow::array::{
    ArrayRef, BooleanArray, Date32Array, DictionaryArray, Float64Array, Int32Array, Int64Array, LargeStringArray,
    RecordBatch, StringArray, StringViewArray, StructArray, TimestampMillisecondArray, TimestampNanosecondArray,
};
use arrow::datatypes::Int32Type;
use bytes::Bytes;
use data_encoding::BASE64;
use parquet::arrow::arrow_writer::ArrowWriterOptions;
use parquet::arrow::{ARROW_SCHEMA_META_KEY, ArrowWriter, encode_arrow_schema};
use parquet::file::metadata::KeyValue;
use parquet::file::properties::WriterProperties;
use serde_json::{Value, json};

use super::*;

fn contract() -> Contract {
    serde_json::from_value(json!({"fields": [
        {"name": "name", "type": "string"},
        {"name": "count", "type": "integer"},
        {"name": "ratio", "type": "number"},
        {"name": "good", "type": "boolean"},
        {"name": "at", "type": "timestamp"},
        {"name": "more", "type": "json"},
        {"name": "day", "type": "date"},
        {"name": "fare", "type": "decimal", "scale": 2}
    ]}))
    .unwrap()
}

fn written(batch: &RecordBatch) -> FileInput {
    let mut bytes = Vec::new();
    let mut writer = ArrowWriter::try_new(&mut bytes, batch.schema(), None).unwrap();
    writer.write(batch).unwrap();
    writer.close().unwrap();
    Bytes::from(bytes).into()
}

/// The first record of a file for [`contract`], or what is wrong with it.
fn converted(columns: Vec<(&str, ArrayRef)>) -> Result<Value, String> {
    #[derive(Default)]
    struct First(Vec<Value>, Vec<String>);
    impl RecordSink for First {
        fn record(&mut self, _row: u64, line: &[u8]) -> io::Result<()> {
            self.0.push(serde_json::from_slice(line).unwrap());
            Ok(())
        }
        fn problem(&mut self, problem: RowProblem) -> io::Result<()> {
            self.1
                .push(format!("{} `{}`: {}", problem.field, problem.value, problem.problem));
            Ok(())
        }
    }
    let input = written(&RecordBatch::try_from_iter(columns).unwrap());
    let options = InferOptions {
        contract: Some(contract()),
        ..InferOptions::default()
    };
    let (_, plan) = infer_file(&input, FileFormat::Parquet, &options).unwrap();
    let mut first = First::default();
    convert_records(&input, &plan, &mut first).unwrap();
    first
        .1
        .into_iter()
        .next()
        .map_or_else(|| Ok(first.0.swap_remove(0)), Err)
}

fn texts(text: &str) -> ArrayRef {
    Arc::new(StringArray::from(vec![None, Some(text)]))
}

fn dictionary(values: ArrayRef) -> ArrayRef {
    let keys = Int32Array::from(vec![Some(0), None]);
    Arc::new(DictionaryArray::<Int32Type>::try_new(keys, values).unwrap())
}

#[test]
fn a_value_that_would_be_another_is_a_problem() {
    let wrong: [(&str, ArrayRef, &str); 24] = [
        ("ratio", texts("1000000000000000000001"), "would round it"),
        ("ratio", texts("0.12345678901234567891"), "would round it"),
        ("count", Arc::new(Float64Array::from(vec![1.0, 1.9])), "`1.9`"),
        (
            "ratio",
            Arc::new(Int64Array::from(vec![(1 << 53) + 1])),
            "9007199254740993",
        ),
        ("ratio", Arc::new(Float64Array::from(vec![f64::INFINITY])), "inf"),
        (
            "good",
            Arc::new(Int64Array::from(vec![7])),
            "an integer, and no boolean",
        ),
        (
            "at",
            Arc::new(Int64Array::from(vec![1_700_000_000])),
            "an integer, and no timestamp",
        ),
        ("at", Arc::new(TimestampNanosecondArray::from(vec![1])), "would change"),
        ("more", Arc::new(StringArray::from(vec!["{"])), "not JSON"),
        ("at", texts("2026-11-21T07:10:20.123456789Z"), "microsecond"),
        ("at", texts("2026-11-21T07:10:60Z"), "RFC 3339"),
        ("at", texts("2026-11-21"), "RFC 3339"),
        ("ratio", texts("9007199254740993"), "would round it"),
        ("ratio", texts("inf"), "no number"),
        ("count", texts("1.0"), "no integer"),
        ("good", texts("yes"), "neither"),
        ("count", dictionary(Arc::new(StringArray::from(vec!["1.9"]))), "`1.9`"),
        ("count", Arc::new(StringViewArray::from(vec!["x"])), "no integer"),
        (
            "count",
            Arc::new(TimestampNanosecondArray::from(vec![1])),
            "a time, and no integer",
        ),
        (
            "ratio",
            Arc::new(TimestampMillisecondArray::from(vec![1])),
            "a time, and no number",
        ),
        ("ratio", Arc::new(Date32Array::from(vec![1])), "a day, and no number"),
        (
            "count",
            Arc::new(BooleanArray::from(vec![true])),
            "a boolean, and no integer",
        ),
        ("day", Arc::new(TimestampMillisecondArray::from(vec![1])), "has a time"),
        ("fare", Arc::new(Float64Array::from(vec![0.125])), "too many digits"),
    ];
    for (name, column, words) in wrong {
        let problem = converted(vec![(name, column)]).unwrap_err();
        assert!(problem.contains(words) && problem.starts_with(name), "{problem}");
    }
}

#[test]
fn a_value_of_another_type_is_taken_where_it_stays_the_same() {
    let first = vec![
        ("name", dictionary(Arc::new(StringArray::from(vec!["a"])))),
        (
            "count",
            Arc::new(Float64Array::from(vec![Some(-0.0), None])) as ArrayRef,
        ),
        ("ratio", Arc::new(Int64Array::from(vec![Some(3), None]))),
        ("good", Arc::new(StringArray::from(vec![Some("TRUE"), None]))),
        (
            "at",
            Arc::new(LargeStringArray::from(vec![Some("2026-11-21T16:10:20+09:00"), None])),
        ),
        (
            "more",
            Arc::new(StringArray::from(vec![Some("{\n \"x\": [1]\n}"), None])),
        ),
        (
            "day",
            Arc::new(TimestampMillisecondArray::from(vec![Some(86_400_000), None])),
        ),
        ("fare", Arc::new(Float64Array::from(vec![Some(12.5), None]))),
    ];
    let expected = json!({
        "name": "a", "count": 0, "ratio": 3, "good": true, "at": "2026-11-21T07:10:20Z", "more": {"x": [1]},
        "day": "1970-01-02", "fare": "12.50",
    });
    assert_eq!(converted(first).unwrap(), expected);
}

#[test]
fn times_within_values_keep_their_zone_or_have_none() {
    let time =
        |zone: Option<&str>| -> ArrayRef { Arc::new(TimestampMillisecondArray::from(vec![0]).with_timezone_opt(zone)) };
    let times = [("local", time(None)), ("zoned", time(Some("Europe/Oslo")))];
    let times: Vec<_> = times
        .into_iter()
        .map(|(name, column)| {
            (
                Arc::new(arrow::datatypes::Field::new(name, column.data_type().clone(), true)),
                column,
            )
        })
        .collect();
    let first = converted(vec![("more", Arc::new(StructArray::from(times)))]).unwrap();
    assert_eq!(
        first["more"],
        json!({"local": "1970-01-01T00:00:00", "zoned": "1970-01-01T00:00:00Z"})
    );
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
    let mut bytes = Vec::new();
    let mut writer = ArrowWriter::try_new_with_options(&mut bytes, batch.schema(), options).unwrap();
    writer.write(&batch).unwrap();
    writer.close().unwrap();
    let input = Bytes::from(bytes).into();
    let error = infer_file(&input, FileFormat::Parquet, &InferOptions::default()).unwrap_err();
    let error = error.to_string();
    assert!(
        error.contains("bit width of 128") && error.contains("decimal"),
        "{error}"
    );
}

#[test]
fn a_file_that_lies_about_its_length_is_refused() {
    let batch = RecordBatch::try_from_iter([("count", Arc::new(Int64Array::from(vec![1])) as ArrayRef)]).unwrap();
    let mut bytes = Vec::new();
    let mut writer = ArrowWriter::try_new(&mut bytes, batch.schema(), None).unwrap();
    writer.write(&batch).unwrap();
    writer.close().unwrap();
    for end in 0..bytes.len() {
        let cut = Bytes::copy_from_slice(&bytes[..end]).into();
        assert!(
            infer_file(&cut, FileFormat::Parquet, &InferOptions::default()).is_err(),
            "{end}"
        );
    }
}

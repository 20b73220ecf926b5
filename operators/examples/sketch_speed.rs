//! Prints the time that a sketch takes for each value of a table of ten columns, and the time of a merge and of a profile.

#![expect(clippy::print_stdout, clippy::unwrap_used, reason = "an example prints its result")]

use std::hint::black_box;
use std::sync::Arc;
use std::time::Instant;

use arrow::array::{
    ArrayRef, BooleanArray, Date32Array, Decimal128Array, Float64Array, Int64Array, RecordBatch, StringArray,
    TimestampMicrosecondArray,
};
use operators::profile::{ProfileLevel, SamplingKey, Sketch};
use types::{Contract, Field, FieldType, RecordKey};

const ROWS: usize = 1_000_000;
const BATCH_ROWS: usize = 8_192;
const COLUMNS: [(&str, FieldType); 10] = [
    ("place", FieldType::String),
    ("note", FieldType::String),
    ("count", FieldType::Integer),
    ("kind", FieldType::Integer),
    ("metres", FieldType::Number),
    ("degrees", FieldType::Number),
    ("flag", FieldType::Boolean),
    ("at", FieldType::Timestamp),
    ("day", FieldType::Date),
    ("price", FieldType::Decimal(2)),
];

/// Numbers of a fixed sequence (splitmix64).
fn number(at: u64) -> u64 {
    let mut mixed = at.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed ^ (mixed >> 27)
}

fn batch(contract: &Contract, rows: std::ops::Range<u64>) -> RecordBatch {
    let signed = |at| i64::try_from(number(at) >> 20).unwrap();
    #[expect(clippy::cast_precision_loss, reason = "any doubles will do")]
    let double = |at| signed(at) as f64 / 1e7;
    let columns: [ArrayRef; 10] = [
        Arc::new(StringArray::from_iter_values(
            rows.clone().map(|at| format!("place {}", number(at) % 40)),
        )),
        Arc::new(StringArray::from_iter_values(
            rows.clone().map(|at| format!("the note of row {at}")),
        )),
        Arc::new(Int64Array::from_iter_values(rows.clone().map(signed))),
        Arc::new(Int64Array::from_iter_values(rows.clone().map(|at| signed(at) % 7))),
        Arc::new(Float64Array::from_iter_values(rows.clone().map(double))),
        Arc::new(Float64Array::from_iter_values(
            rows.clone().map(|at| double(at + 1) - 1e6),
        )),
        Arc::new(
            rows.clone()
                .map(|at| Some(number(at).is_multiple_of(3)))
                .collect::<BooleanArray>(),
        ),
        Arc::new(TimestampMicrosecondArray::from_iter_values(rows.clone().map(signed)).with_timezone("UTC")),
        Arc::new(Date32Array::from_iter_values(
            rows.clone().map(|at| i32::try_from(number(at) % 20_000).unwrap()),
        )),
        Arc::new(
            Decimal128Array::from_iter_values(rows.map(|at| signed(at).into()))
                .with_precision_and_scale(28, 2)
                .unwrap(),
        ),
    ];
    RecordBatch::try_new(contract.schema(), columns.to_vec()).unwrap()
}

#[expect(clippy::cast_precision_loss, reason = "a speed")]
fn nanoseconds(since: Instant, values: usize) -> f64 {
    since.elapsed().as_nanos() as f64 / values as f64
}

fn main() {
    let fields = COLUMNS.map(|(name, kind)| Field::new(name, kind)).to_vec();
    let sampling = SamplingKey::new([7; 32]);
    let whole = Contract::new(fields.clone(), false).unwrap();
    let keys: Vec<RecordKey> = (0..ROWS as u128)
        .map(|row| RecordKey::from_bytes(row.to_le_bytes()))
        .collect();
    let starts = (0..ROWS).step_by(BATCH_ROWS);
    let ranges = starts.map(|first| first..ROWS.min(first + BATCH_ROWS));
    let batches: Vec<_> = ranges
        .map(|range| (range.clone(), batch(&whole, range.start as u64..range.end as u64)))
        .collect();
    let run = |contract: &Contract| {
        let mut sketch = Sketch::new(contract);
        for (range, rows) in &batches {
            let first = range.start as u64;
            sketch.add(rows, &keys[range.clone()], first, &sampling).unwrap();
        }
        sketch
    };
    for field in &fields {
        let contract = Contract::new(vec![field.clone()], false).unwrap();
        let start = Instant::now();
        black_box(run(&contract));
        println!("{:8} {:6.1} ns a value, alone", field.name, nanoseconds(start, ROWS));
    }
    let start = Instant::now();
    let sketch = run(&whole);
    println!("all      {:6.1} ns a value", nanoseconds(start, ROWS * COLUMNS.len()));
    let bytes = sketch.encode();
    let mut other = Sketch::decode(&whole, &bytes).unwrap();
    let start = Instant::now();
    other.merge(&sketch).unwrap();
    println!("merge    {:6.2} ms", nanoseconds(start, 1_000_000));
    let start = Instant::now();
    black_box(sketch.profile(ProfileLevel::Full));
    println!("profile  {:6.2} ms", nanoseconds(start, 1_000_000));
    println!("bytes    {:6}", bytes.len());
}

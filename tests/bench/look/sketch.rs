//! Sketches of a table of ten columns: the time for each value, of a merge and of the figures.

use std::hint::black_box;
use std::sync::Arc;
use std::time::Instant;

use arrow::array::{
    ArrayRef, BooleanArray, Date32Array, Decimal128Array, Float64Array, Int64Array, RecordBatch, StringArray,
    TimestampMicrosecondArray,
};
use operators::profile::{ProfileLevel, SamplingKey, Sketch};
use types::{Contract, Field, FieldType, RecordKey};

use crate::report::Report;

const ROWS: usize = 1_000_000;
/// The goal, in nanoseconds a value.
const GOAL: f64 = 60.0;
/// Runs, of which the fastest counts.
const RUNS: usize = 3;
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

fn millis(work: impl Fn()) -> f64 {
    let times = (0..RUNS).map(|_| {
        let begun = Instant::now();
        work();
        begun.elapsed().as_secs_f64() * 1e3
    });
    times.fold(f64::INFINITY, f64::min)
}

pub(super) fn run(report: &mut Report) {
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
    let sketched = |contract: &Contract| {
        let mut sketch = Sketch::new(contract);
        for (range, rows) in &batches {
            let first = range.start as u64;
            sketch.add(rows, &keys[range.clone()], first, &sampling).unwrap();
        }
        sketch
    };
    // Milliseconds of a million values are nanoseconds of one.
    let each = |contract: &Contract| millis(|| drop(black_box(sketched(contract))));
    let mut rows = Vec::new();
    for field in &fields {
        let contract = Contract::new(vec![field.clone()], false).unwrap();
        rows.push((
            format!("{}, alone", field.name),
            format!("{:.1} ns a value", each(&contract)),
        ));
    }
    let all = each(&whole) / f64::from(u32::try_from(COLUMNS.len()).unwrap());
    rows.insert(
        0,
        (
            "all ten columns".to_owned(),
            format!("{all:.1} ns a value (goal {GOAL})"),
        ),
    );
    let sketch = sketched(&whole);
    let bytes = sketch.encode();
    let merge = millis(|| {
        let mut other = Sketch::decode(&whole, &bytes).unwrap();
        other.merge(&sketch).unwrap();
        black_box(other);
    });
    rows.push(("decode and merge".to_owned(), format!("{merge:.2} ms")));
    let figures = millis(|| drop(black_box(sketch.profile(ProfileLevel::Full))));
    rows.push(("figures of a version".to_owned(), format!("{figures:.2} ms")));
    rows.push(("encoded".to_owned(), format!("{} bytes", bytes.len())));
    report.table(
        "sketch of a million rows of ten columns, one thread, best of three runs",
        &rows,
    );
}

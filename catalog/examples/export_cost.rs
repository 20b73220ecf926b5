//! What a version costs as a file of each format: `export_cost DIRECTORY [ROWS]`.
//!
//! Merges batches of 500 rows of ten columns, and prints for each format the CPU time (all threads) of reading the version and
//! encoding it, beside that of JSON lines, and the size of the file. Each is the least of three runs.

use std::error::Error;
use std::io::Write as _;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use catalog::storage::DurableLocal;
use catalog::{Catalog, Columns, CommitOutcome, PreparedVersion, Snapshot};
use futures_util::TryStreamExt as _;
use serde_json::{Value, json};
use types::clock::SystemClock;
use types::render::arrow::{ArrowStream, record_schema};
use types::render::csv::{CsvReader, RenderedCsv};
use types::render::lines::RenderedLines;
use types::{AgentId, Batch, Clock as _, Contract, ContributionId, DatasetId};

const BATCH_ROWS: u64 = 500;
const RUNS: usize = 3;
const FORMATS: [&str; 4] = ["ndjson", "csv", "arrow", "parquet"];

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let directory = PathBuf::from(arguments.next().ok_or("usage: export_cost DIRECTORY [ROWS]")?);
    let rows: u64 = arguments.next().as_deref().unwrap_or("200000").parse()?;
    let clock = SystemClock::default();
    let contract: Arc<Contract> = Arc::new(serde_json::from_value(json!({"fields": [
        {"name": "id", "type": "string", "required": true}, {"name": "value", "type": "number"},
        {"name": "count", "type": "integer"}, {"name": "ok", "type": "boolean"}, {"name": "note", "type": "string"},
        {"name": "at", "type": "timestamp"}, {"name": "day", "type": "date"}, {"name": "more", "type": "json"},
        {"name": "price", "type": "decimal", "scale": 2}, {"name": "ratio", "type": "number"}
    ]}))?);
    let objects = Arc::new(DurableLocal::open(directory.join("tables"))?);
    let catalog = Catalog::open(objects, directory.join("index"), Arc::new(clock))?;
    let dataset = DatasetId::new(clock.now());
    let mut table = catalog.table(dataset, &contract).await?;
    for first in (0..rows).step_by(usize::try_from(BATCH_ROWS)?) {
        let records: Vec<Value> = (first..first + BATCH_ROWS).map(record).collect();
        let mut prepared = PreparedVersion::of_batch(
            ContributionId::new(clock.now()),
            AgentId::new(clock.now()),
            Arc::new(Batch::decode(&contract, &records)),
        );
        let committed = table.commit(&mut prepared, clock.now(), |_| Value::Null).await?;
        if !matches!(committed, CommitOutcome::Committed(_)) {
            return Err("a batch was not merged".into());
        }
    }
    let snapshot = catalog.snapshot(dataset, None).await?.ok_or("there is no version")?;
    let (mut out, mut beside) = (std::io::stdout(), None);
    for format in FORMATS {
        let (mut least, mut bytes) = (Duration::MAX, 0);
        for _ in 0..RUNS {
            let before = cpu_time()?;
            bytes = encode(&snapshot, &contract, format).await?;
            least = least.min(cpu_time()?.saturating_sub(before));
        }
        let lines = *beside.get_or_insert(least);
        let ratio = least.as_secs_f64() / lines.as_secs_f64();
        writeln!(
            out,
            "{format}: {least:.2?} for {bytes} bytes, {ratio:.2} times JSON lines"
        )?;
    }
    table.close().await;
    Ok(())
}

/// Encodes a version in a format, and drops what it has encoded. Returns its size in bytes.
async fn encode(snapshot: &Snapshot, contract: &Contract, format: &str) -> Result<usize, Box<dyn Error>> {
    let mut bytes = 0;
    if format == "parquet" {
        let mut pieces = snapshot.parquet();
        while let Some(piece) = pieces.try_next().await? {
            bytes += piece.len();
        }
        return Ok(bytes);
    }
    let mut arrow = ArrowStream::new(record_schema(contract))?;
    let mut batches = snapshot.stream(Columns::Records, 0..snapshot.record_count());
    while let Some(rows) = batches.try_next().await? {
        let mut piece = Vec::new();
        match format {
            "csv" => {
                let cells = RenderedCsv::new(&rows, CsvReader::Spreadsheet)?;
                cells.write(0..cells.len(), &mut piece);
            }
            "arrow" => piece = arrow.encode(&rows)?,
            _ => {
                let lines = RenderedLines::new(contract, &rows)?;
                lines.write(0..lines.len(), &mut piece);
            }
        }
        bytes += piece.len();
    }
    Ok(bytes)
}

fn record(row: u64) -> Value {
    let mixed = row.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 16;
    let thousands = f64::from(u32::try_from(mixed % 1_000_000).unwrap_or(0)) / 1_000.0;
    json!({
        "id": format!("{mixed:012x}"), "value": thousands, "count": row, "ok": row.is_multiple_of(3),
        "note": format!("reading {} of the gauge at the quay", row % 997),
        "at": format!("2026-01-{:02}T{:02}:{:02}:00.{:06}Z", 1 + row % 28, row % 24, row % 60, mixed % 1_000_000),
        "day": format!("2026-{:02}-{:02}", 1 + row % 12, 1 + row % 28), "more": {"a": [row % 7, "b"], "c": thousands},
        "price": format!("{}.{:02}", mixed % 10_000, row % 100), "ratio": thousands / 7.0,
    })
}

/// CPU time of all threads of the process.
fn cpu_time() -> Result<Duration, Box<dyn Error>> {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    Ok(Duration::new(u64::try_from(time.tv_sec)?, u32::try_from(time.tv_nsec)?))
}

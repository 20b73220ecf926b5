//! What a merge costs as a table grows: `merge_cost DIRECTORY [VERSIONS]`.
//!
//! Merges batches of 500 rows and prints, for the hundred merges up to each mark, the median and the 99th percentile of
//! the wall time and the CPU time per merge (all threads, decoding left out); then what opening the table again,
//! reading pages, and building the key index again cost.

use std::error::Error;
use std::io::Write as _;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use arrow::array::RecordBatch;
use catalog::storage::DurableLocal;
use catalog::{Catalog, CommitOutcome, PreparedVersion};
use serde_json::{Value, json};
use types::clock::SystemClock;
use types::{AgentId, Batch, Clock as _, Contract, ContributionId, DatasetId};

const ROWS: u64 = 500;
const WINDOW: u64 = 100;
const MARKS: [u64; 7] = [100, 200, 300, 1_000, 2_000, 5_000, 10_000];

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let directory = PathBuf::from(arguments.next().ok_or("usage: merge_cost DIRECTORY [VERSIONS]")?);
    let versions: u64 = arguments.next().as_deref().unwrap_or("10000").parse()?;
    let mut out = std::io::stdout();
    let clock = SystemClock::default();
    let contract: Arc<Contract> = Arc::new(serde_json::from_value(json!({"fields": [
        {"name": "id", "type": "string", "required": true},
        {"name": "value", "type": "number"},
        {"name": "count", "type": "integer"},
        {"name": "ok", "type": "boolean"},
        {"name": "note", "type": "string"}
    ]}))?);
    let objects = Arc::new(DurableLocal::open(directory.join("tables"))?);
    let open = || Catalog::open(Arc::clone(&objects) as _, directory.join("index"), Arc::new(clock));
    let catalog = open()?;
    let dataset = DatasetId::new(clock.now());
    let mut table = catalog.table(dataset, &contract).await?;
    let mut version = 0;
    while version < versions {
        let batches: Vec<PreparedVersion> = (version..version + WINDOW)
            .map(|version| {
                let records: Vec<Value> = (0..ROWS).map(|row| record(version * ROWS + row)).collect();
                PreparedVersion::of_batch(
                    ContributionId::new(clock.now()),
                    AgentId::new(clock.now()),
                    Arc::new(Batch::decode(&contract, &records)),
                )
            })
            .collect();
        let mut walls = Vec::with_capacity(batches.len());
        let before = cpu_time()?;
        for mut prepared in batches {
            let start = Instant::now();
            let committed = table.commit(&mut prepared, clock.now(), |_| Value::Null).await?;
            if !matches!(committed, CommitOutcome::Committed(_)) {
                return Err("a batch was not merged".into());
            }
            walls.push(start.elapsed());
        }
        let spent = cpu_time()?.saturating_sub(before) / u32::try_from(walls.len())?;
        version += WINDOW;
        if MARKS.contains(&version) || version >= versions {
            walls.sort_unstable();
            let (middle, late) = (walls[walls.len() / 2], walls[walls.len() * 99 / 100]);
            writeln!(
                out,
                "up to version {version}: p50 {middle:.2?} p99 {late:.2?} cpu {spent:.2?} a merge"
            )?;
        }
    }
    let head = table.head();
    table.close().await;
    let last = Batch::decode(&contract, &[record(version * ROWS - 1), record(version * ROWS)]);
    drop(catalog);

    let (before, start) = (cpu_time()?, Instant::now());
    let catalog = open()?;
    let table = catalog.table(dataset, &contract).await?;
    let known = table.known().known(last.keys());
    let spent = cpu_time()?.saturating_sub(before);
    writeln!(
        out,
        "opened at {head}: {:.2?}, cpu {spent:.2?}, knows {known:?}",
        start.elapsed()
    )?;
    let Some(snapshot) = catalog.snapshot(dataset, None).await? else {
        return Err("no snapshot".into());
    };
    let (before, start) = (cpu_time()?, Instant::now());
    for page in 0..1_000_u64 {
        let offset = page.wrapping_mul(0x9e37_79b9_7f4a_7c15) % snapshot.record_count();
        let rows: usize = snapshot
            .page(offset, 200)
            .await?
            .iter()
            .map(RecordBatch::num_rows)
            .sum();
        if rows == 0 {
            return Err("an empty page".into());
        }
    }
    let spent = cpu_time()?.saturating_sub(before);
    writeln!(
        out,
        "pages of 200: {:.2?} each, cpu {:.2?}",
        start.elapsed() / 1_000,
        spent / 1_000
    )?;
    drop((table, catalog));

    std::fs::remove_dir_all(directory.join("index"))?;
    let (before, start) = (cpu_time()?, Instant::now());
    let catalog = open()?;
    let known = catalog.known(dataset).await?.known(last.keys());
    let spent = cpu_time()?.saturating_sub(before);
    writeln!(
        out,
        "index rebuilt: {:.2?}, cpu {spent:.2?}, knows {known:?}",
        start.elapsed()
    )?;
    Ok(())
}

fn record(number: u64) -> Value {
    json!({
        "id": format!("r{number}"),
        "value": f64::from(u32::try_from(number).unwrap_or(0)) * 0.37,
        "count": number,
        "ok": number.is_multiple_of(3),
        "note": format!("the note of r{number} says that it was seen at noon by the river and nothing else happened"),
    })
}

/// The CPU time of this process, in nanoseconds where the kernel's scheduler tells it.
fn cpu_time() -> Result<Duration, Box<dyn Error>> {
    let mut nanos = 0;
    for thread in std::fs::read_dir("/proc/self/task")? {
        let Ok(text) = std::fs::read_to_string(thread?.path().join("schedstat")) else {
            continue;
        };
        nanos += text.split(' ').next().unwrap_or("0").parse::<u64>()?;
    }
    Ok(Duration::from_nanos(nanos))
}
